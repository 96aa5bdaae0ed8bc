//! A double of the library: the functions that programs call, and their effects here.

pub mod gate;
pub mod kernel;
pub mod server;
pub mod syscall;
pub mod time;

use bulkhead_abi::environment::Environment;
use zerocopy::FromZeros;

/// The environment of the program: that of tile 1.
pub fn environment() -> Environment {
    Environment {
        tile: 1,
        ..Environment::new_zeroed()
    }
}
