//! Two periodic tasks: see `six_tasks`.
//!
//! Why it exists: together with the six tasks, it shows the cost of a task. What it deliberately does
//! not know: the same.
#![no_std]
#![no_main]

mod periodic;

use bulkhead_oneshot::{Configuration, system};
use periodic::Periodic;

system! {
    Configuration::new(10_000);
    stack 1024; ring 1024;
    tasks {
        Periodic: Periodic::new("task 1", 5), priority 2;
        Periodic: Periodic::new("task 2", 7), priority 1;
    }
}
