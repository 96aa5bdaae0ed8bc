//! The parts that clients and services of the tiled OS share and that need no hardware: typed messages, the protocols of the
//! services, and the policy by which a server takes requests.
//!
//! Why it exists: these are decisions and layouts, so they run under the host's tests. What it deliberately does not know:
//! gates, endpoints, and how time passes. Times are nanoseconds.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod account;
pub mod console;
pub mod file;
pub mod line;
pub mod message;
pub mod network;
pub mod pager;
pub mod path;
pub mod payer;
pub mod pipe;
pub mod quantity;
pub mod rounds;
pub mod sessions;
pub mod shares;
pub mod status;
pub mod timer;
pub mod waiting;
