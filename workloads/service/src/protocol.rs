//! The requests of the example service.
//!
//! Why it exists: services and clients include this file. What it deliberately does not know: gates.

#![allow(dead_code, reason = "not every program uses all of it")]

use bulkhead_lib::common::status::Status;
use bulkhead_lib::server::Incoming;

bulkhead_lib::common::requests! {
    /// Adds two numbers.
    Add = 1 -> u64 {
        /// One number.
        first: u64,
        /// The other.
        second: u64,
    }
    /// Computes for some time.
    Work = 2 -> u64 {
        /// Nanoseconds.
        time: u64,
        /// Nanoseconds that the estimate tells the service: to make a service estimate wrongly.
        estimate: u64,
    }
    /// Not answered until the next such request from anybody.
    Keep = 3 -> u64 {}
    /// Ends what was lent.
    Lend = 4 -> u64 {
        /// [`TAKES`], [`WITHDRAWS`] or [`DIES`].
        end: u64,
    }
}

/// The page is taken back.
pub const TAKES: u64 = 0;
/// The service is no longer offered.
pub const WITHDRAWS: u64 = 1;
/// The service stops.
pub const DIES: u64 = 2;
/// The contents of a page while it is lent, and otherwise.
pub const SHARED: u64 = 0x5AAD_5AAD;
pub const SECRET: u64 = 0x5EC2_5EC2;

/// Answers a request to add.
pub fn add(request: Incoming) {
    let sum = request
        .body::<Add>()
        .and_then(|Add { first, second }| first.checked_add(second).ok_or(Status::BadRequest));
    request.answer(sum);
}
