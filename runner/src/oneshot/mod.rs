//! The one-shot RTOS, as the host sees it: how large an image is, and what its console says.
//!
//! Why it exists: cores of this paradigm have no way to print; the host reads their memory. What it deliberately does not know: policies of
//! the kernel.

pub mod console;
pub mod footprint;
