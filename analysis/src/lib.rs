//! Bounds: what a system may at worst do, computed from its description alone.
//!
//! Why it exists: a measurement shows what happened, a bound shows what can happen. The two must stay independent, so
//! this crate reads the model and deliberately knows nothing of the simulated machine; parameters reach it only through
//! the description. Verdicts are decided in exact integer or rational arithmetic; floating point appears at most in text.

pub mod communication;
pub mod exact;
pub mod mc2;
pub mod network_calculus;
pub mod plan;
pub mod schedulability;
