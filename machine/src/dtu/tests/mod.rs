//! Tests of whole units on a fake chip with fixed latencies.

mod attacks;
mod latencies;
mod model;
mod protocol;
mod rights;
mod shares;
mod unfetched;
mod world;
