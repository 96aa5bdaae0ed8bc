//! What applications of the tiled OS link: entry, gates, time, periodic tasks, markers, printing.
//!
//! Why it exists: an application should read like its purpose. What it deliberately does not know: how activities are
//! created and scheduled; it finds its gates and arguments in its environment.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! use bulkhead_lib as lib;
//! lib::main!(main);
//! fn main() -> u64 {
//!     let input = lib::gate::ReceiveGate::named("input");
//!     // ...
//!     0
//! }
//! ```
//! If the description lacks a required gate or argument, that is an error in the description: functions called `named` panic with a
//! message that says what is missing, and the manager reports it.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;

pub mod argument;
pub mod client;
pub mod file;
pub mod gate;
pub mod lines;
pub mod mounts;
pub mod pages;
pub mod paging;
pub mod pipe;
mod repeat;
mod runtime;
pub mod select;
pub mod server;
pub mod services;
pub mod session;
pub mod socket;
pub mod syscall;
pub mod task;
pub mod threads;
pub mod time;

pub use bulkhead_abi as abi;
pub use bulkhead_common as common;
pub use bulkhead_hal::marker;
pub use bulkhead_user as hal;
pub use runtime::{Console, environment, exit, name, start};
pub use zerocopy;

/// Prints to the tile's console, one call to TileMux for each line.
#[macro_export]
macro_rules! println {
    ($($text:tt)*) => { $crate::Console::line(::core::format_args!($($text)*)) };
}

/// Makes a function `fn() -> u64` the program; its result is the exit code.
#[macro_export]
macro_rules! main {
    ($main:path) => {
        extern "C" fn bulkhead_start() -> ! {
            $crate::start($main)
        }
        $crate::hal::user_entry!(bulkhead_start);
    };
}
