//! Six periodic tasks, as the paper's: each puts a line on the console, sets a flag, computes its next activation and delays until then.
//!
//! Why it exists: its size is compared with Table 3 of m2os-mc-ngres21. What it deliberately does not know: what a line is for.
#![no_std]
#![no_main]

mod periodic;

use bulkhead_oneshot::{Configuration, system};
use periodic::Periodic;

system! {
    Configuration::new(10_000);
    stack 1024; ring 1024;
    tasks {
        Periodic: Periodic::new("task 1", 5), priority 6;
        Periodic: Periodic::new("task 2", 7), priority 5;
        Periodic: Periodic::new("task 3", 10), priority 4;
        Periodic: Periodic::new("task 4", 14), priority 3;
        Periodic: Periodic::new("task 5", 20), priority 2;
        Periodic: Periodic::new("task 6", 35), priority 1;
    }
}
