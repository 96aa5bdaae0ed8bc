//! Programs of the chip on the host: the files of the managers and of the timer and console services, beside a double of the library
//! that they call.
//!
//! Why it exists: these programs run only on the chip, where no test can make the third call of a start fail or compare a state with an
//! earlier one. Here the double counts each call of the kernel and can refuse it. What it deliberately does not know: what the kernel
//! would do. The double grants everything that it is not told to refuse, and forgets activities that have ended. Other tests compare the
//! kernel with its own model, and the tests of whole systems run both together.
//!
//! The files are those of the programs, not copies: in them, `bulkhead_lib` is this crate.
#![forbid(unsafe_code)]

extern crate alloc;
extern crate self as bulkhead_lib;

mod double;

pub use bulkhead_common as common;
pub use double::{environment, gate, kernel, server, syscall, time};

/// The manager's modules use each other by the names that they have in its program.
macro_rules! manager {
    ($($name:ident = $path:literal,)*) => {
        $(
            #[path = $path]
            // Only the program's event loop, which is not among these files, calls some of their functions.
            #[allow(dead_code)]
            mod $name;
        )*
    };
}

manager! {
    calls = "../../../software/tiled/resmgr/src/calls.rs",
    connect = "../../../software/tiled/resmgr/src/connect.rs",
    create = "../../../software/tiled/resmgr/src/create.rs",
    draft = "../../../software/tiled/resmgr/src/draft.rs",
    gates = "../../../software/tiled/resmgr/src/gates.rs",
    load = "../../../software/tiled/resmgr/src/load.rs",
    pagers = "../../../software/tiled/resmgr/src/pagers.rs",
    services = "../../../software/tiled/resmgr/src/services.rs",
    start = "../../../software/tiled/resmgr/src/start.rs",
    tiles = "../../../software/tiled/resmgr/src/tiles.rs",
    world = "../../../software/tiled/resmgr/src/world.rs",
}

/// The timer service.
#[path = "../../../software/tiled/services/src/timer.rs"]
#[allow(unused_attributes)]
pub mod timer;

/// The console service.
#[path = "../../../software/tiled/services/src/console.rs"]
#[allow(unused_attributes)]
pub mod console;

#[cfg(test)]
mod tests;

// After the programs, so that these find the macros under the paths that they use.

/// Like the library's macro: a line of the console.
#[macro_export]
macro_rules! println {
    ($($text:tt)*) => { $crate::kernel::line(::std::format!($($text)*)) };
}

/// Like the library's macro: names the program's entry.
#[macro_export]
macro_rules! main {
    ($main:path) => {
        /// Runs the program.
        pub fn program() -> u64 {
            $main()
        }
    };
}
