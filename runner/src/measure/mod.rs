//! From raw observations to measurements: distributions, flows, spans.
//!
//! Why it exists: software only says "number 7 begins here" with a marker that costs nothing; pairing and counting
//! happen outside the chip. What it deliberately does not know: the machine; it works on plain events.

pub mod jobs;
pub mod lives;
pub mod pairing;
pub mod released;

pub use lives::Lives;
pub use pairing::{MarkerEvent, Pairs, pair};
pub use released::Released;
