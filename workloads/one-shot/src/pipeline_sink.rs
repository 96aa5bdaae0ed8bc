//! The last core of the pipeline: polls its port every tick.
//!
//! Why it exists: see `pipeline`. What it deliberately does not know: where the flow begins.
#![no_std]
#![no_main]

#[allow(dead_code)]
mod pipeline;

use bulkhead_hal::marker::flow_end;
use bulkhead_oneshot::port::Data;
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, system, time};
use pipeline::{Input, Item, Other, TIMER};

static DATA: Data<Item> = Data::new();

struct Sink {
    input: Input,
}

impl Task for Sink {
    fn run(&mut self, job: Job) -> Done {
        if let Some(item) = self.input.take(&DATA) {
            flow_end(item.number);
            console::number("stages ", item.stages);
        }
        job.delay_until(time::now() + 1)
    }
}

system! {
    Configuration::new(TIMER);
    stack 1024; ring 1024;
    tasks {
        Sink: Sink { input: Input::new() }, priority 2;
        Other: Other { cycles: 120_000, period: 5 }, priority 1;
    }
}
