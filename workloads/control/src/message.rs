//! The messages between sensor, controller and actuator.
//!
//! Why it exists: all three include this file. What it deliberately does not know: the control law.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A value on its way through the loop, aligned so that a message never crosses a page.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct Sample {
    /// Job of the sensor, counted from 1; 0 means that no more jobs follow.
    pub job: u64,
    /// When the job was released, in nanoseconds since reset.
    pub release: u64,
    /// Measured value, or set value for the actuator.
    pub value: f64,
    /// Deadline relative to the release in nanoseconds, 0 for none.
    pub deadline: u64,
    /// Not zero: the job counts; zero while everything is still cold.
    pub measured: u64,
    /// Zero.
    pub reserved: [u64; 3],
}

impl Sample {
    /// The last message.
    #[allow(dead_code, reason = "not every program of the loop ends it")]
    pub fn end() -> Self {
        Self::default()
    }

    /// The sample in a payload. A payload that is too short means the end: it is unusable.
    #[allow(dead_code, reason = "the sensor receives nothing")]
    pub fn from_payload(payload: &[u8]) -> Self {
        Self::read_from_prefix(payload).map_or(Self::default(), |(sample, _)| sample)
    }
}
