//! Tests of whole units on a fake chip with fixed latencies.

mod latencies;
mod world;
