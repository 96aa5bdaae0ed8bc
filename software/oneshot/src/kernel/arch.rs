//! The hart's entry into the kernel.
//!
//! Why it exists: the assembly of the entry names functions of the kernel, which `crate::arch` does not know. What it deliberately does not
//! know: what they do.
#![allow(unsafe_code)]

crate::arch::entry!(
    super::start,
    super::dispatch,
    super::interrupt,
    super::fault
);
