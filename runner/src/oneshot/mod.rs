//! The one-shot RTOS as the host sees it: images of described systems, the layout of a core's memory, markers and consoles.
//!
//! Why it exists: cores of this paradigm have no output device and no loader; the host reads and fills their memory. What it deliberately
//! does not know: policies of the kernel, and other paradigms.

pub mod adversary;
mod alive;
pub mod attacked;
pub mod attacks;
pub mod clocks;
pub mod console;
mod fill;
pub mod footprint;
mod forged;
pub mod guard;
pub mod handled;
pub mod host;
mod images;
pub mod jobs;
mod known;
mod layout;
mod link;
pub mod measured;
mod misused;
mod package;
mod paradigm;
pub mod results;
pub mod stack;
mod symbols;
pub mod tick;
mod unchanged;

pub use paradigm::OneShot;
