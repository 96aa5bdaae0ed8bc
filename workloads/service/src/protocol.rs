//! What the example service understands.
//!
//! Why it exists: service and clients include this file. What it deliberately does not know: gates.

#![allow(dead_code, reason = "not every program uses all of it")]

use bulkhead_lib::common::message::Request;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Adds two numbers.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Add {
    /// One number.
    pub first: u64,
    /// The other.
    pub second: u64,
}

impl Request for Add {
    const OPERATION: u64 = 1;
    type Reply = u64;
}

/// Computes for some time.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Work {
    /// Nanoseconds.
    pub time: u64,
    /// Nanoseconds that the service is told by the estimate: a service that estimates wrongly.
    pub estimate: u64,
}

impl Request for Work {
    const OPERATION: u64 = 2;
    type Reply = u64;
}

#[allow(
    dead_code,
    reason = "a service that keeps requests is there for clients that are attacked by it"
)]
/// Never answers, and answers when asked again by anybody.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Keep {}

impl Request for Keep {
    const OPERATION: u64 = 3;
    type Reply = u64;
}
