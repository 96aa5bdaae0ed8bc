//! Shared tiles: policies, budgets, isolation and latencies of TileMux.
//!
//! What it deliberately does not know: the insides of TileMux.

mod analysis;
mod isolation;
mod policies;
mod processor;
mod time;
