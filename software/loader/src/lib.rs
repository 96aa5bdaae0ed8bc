//! From an ELF file and a size to the layout of an activity's memory.
//!
//! Why it exists: the kernel loads TileMux and the root manager, the manager loads everything else; both must agree on
//! the layout. What it deliberately does not know: how bytes get there. Nothing here allocates.
//!
//! An activity's memory is one region. From its start: the environment page, the program as linked, receive buffers, the
//! stack, the heap. Virtual addresses follow the same order; one page before and one behind the stack are not mapped.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod image;
pub mod layout;
