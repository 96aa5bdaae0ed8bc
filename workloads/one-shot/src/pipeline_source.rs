//! The first core of the pipeline: an event every twenty ticks, so that the analysis can show that none overtakes another one on sixteen cores.
//!
//! Why it exists: see `pipeline`. What it deliberately does not know: where the flow ends.
#![no_std]
#![no_main]

#[allow(dead_code)]
mod pipeline;

use bulkhead_hal::marker::flow_begin;
use bulkhead_oneshot::{Configuration, Done, Job, Task, core_number, system};
use pipeline::{Item, Other, Output, TIMER, next};

/// Ticks between events.
const PERIOD: u64 = 20;

struct Source {
    output: Output,
    number: u64,
}

impl Task for Source {
    fn run(&mut self, job: Job) -> Done {
        // The first events find nobody; from the third on the flow counts.
        self.number += 1;
        if self.number >= 3 {
            flow_begin(self.number);
        }
        let item = Item {
            number: self.number,
            stages: 0,
        };
        self.output.put(next(core_number()), &item);
        job.delay_until(self.number * PERIOD)
    }
}

system! {
    Configuration::new(TIMER);
    stack 1024; ring 64;
    tasks {
        Source: Source { output: Output::new(), number: 0 }, priority 2;
        Other: Other { cycles: 120_000, period: 5 }, priority 1;
    }
}
