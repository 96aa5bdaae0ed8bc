//! A core in the middle of the pipeline: polls its port every tick and writes the next one's.
//!
//! Why it exists: see `pipeline`. What it deliberately does not know: where the flow begins and ends.
#![no_std]
#![no_main]

mod pipeline;

use bulkhead_oneshot::port::Data;
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, core_number, system, time};
use pipeline::{Input, Item, Other, Output, TIMER, next};

static DATA: Data<Item> = Data::new();

struct Stage {
    input: Input,
    output: Output,
}

impl Task for Stage {
    fn run(&mut self, job: Job) -> Done {
        if let Some(mut item) = self.input.take(&DATA) {
            item.stages += 1;
            if !self.output.put(next(core_number()), &item) {
                console::number("nobody took event ", item.number);
            }
        }
        job.delay_until(time::now() + 1)
    }
}

system! {
    Configuration::new(TIMER);
    stack 1024; ring 256;
    tasks {
        Stage: Stage { input: Input::new(), output: Output::new() }, priority 2;
        Other: Other { cycles: 120_000, period: 5 }, priority 1;
    }
}
