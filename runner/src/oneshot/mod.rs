//! The one-shot RTOS, as the host sees it: images of described systems, what lies in a core's memory, what markers and consoles say.
//!
//! Why it exists: cores of this paradigm have no way to print and no loader; the host reads and fills their memory. What it deliberately does
//! not know: policies of the kernel, and other paradigms.

pub mod adversary;
pub mod attacked;
pub mod attacks;
pub mod console;
pub mod footprint;
pub mod guard;
mod images;
pub mod jobs;
mod layout;
pub mod measured;
mod paradigm;
pub mod results;
pub mod stack;

pub use paradigm::OneShot;
