//! The tests of switches for a timer of 10 MHz, as on `single`.
//!
//! Why it exists: see `switch_tests`. What it deliberately does not know: what is measured.
#![no_std]
#![no_main]

mod switch_tests;

use bulkhead_oneshot::{Configuration, system};
use switch_tests::{High, Low, Turn};

system! {
    Configuration::new(10_000);
    stack 1024; ring 256;
    tasks {
        High: High { turn: Turn::first(), activated: 0 }, priority 2;
        Low: Low { turn: Turn::first(), suspended: 0 }, priority 1;
    }
}
