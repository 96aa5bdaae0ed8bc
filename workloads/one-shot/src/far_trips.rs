//! Round trips from the first core of a mesh of 32 by 32.
//!
//! Why it exists: the measurement is a task of the library; this is an image with it. What it deliberately does not know: the other cores.
#![no_std]
#![no_main]

use bulkhead_oneshot::{Configuration, console, system};
use workload_one_shot::hops::FAR;
use workload_one_shot::trips::Trips;

system! {
    Configuration::new(600_000).when_idle(console::drain);
    stack 2048; ring 512;
    tasks { Trips: Trips::new(&FAR), priority 1; }
}
