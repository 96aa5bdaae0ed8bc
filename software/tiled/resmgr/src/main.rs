//! A resource manager: starts what its part of the description names, and ends when its work is done.
//!
//! Why it exists: policy is outside the kernel, in ordinary activities that own resources. What it deliberately does not
//! know: how rights are enforced; whether it is the root manager or one below.
//!
//! The root manager ends with 0 when all foreground applications ended with 0, with 3 if one of them ended otherwise, and with 2 if the
//! system could not be started. If there are none in the foreground, it serves until the run ends. A manager below tells the one above when
//! all of its foreground applications have ended, and lives on for those in the background.
#![no_std]
#![no_main]

extern crate alloc;

mod calls;
mod connect;
mod create;
mod draft;
mod gates;
mod load;
mod pagers;
mod services;
mod start;
mod tiles;
mod world;

use alloc::string::String;
use bulkhead_abi::syscall::{Event, REPORT_DONE, SEL_DESCRIPTION, Syscall, SyscallError};
use bulkhead_lib::{println, time};
use bulkhead_resmgr::description;
use calls::{Failure, call};
use services::NOT_STARTED;
use world::World;

bulkhead_lib::main!(main);

/// Most events that are heard after the time when an application has waited long enough for another one.
const LATE: u32 = 256;

fn main() -> u64 {
    let is_root = calls::kind_of(SEL_DESCRIPTION).is_none();
    match run(is_root) {
        Ok(code) => code,
        Err(failure) => {
            println!("{failure}");
            if !is_root {
                let value = REPORT_DONE | NOT_STARTED;
                let _ = call("report", &Syscall::Report { value });
                // The one above ends this manager with the system, or when it wants to.
                loop {
                    let _ = wait(None);
                }
            }
            NOT_STARTED
        }
    }
}

fn run(is_root: bool) -> Result<u64, Failure> {
    let text: String = match is_root {
        true => load::read_module("system.xml")?,
        false => load::read_memory(SEL_DESCRIPTION)?,
    };
    let system = description::read(&text).map_err(Failure::Description)?;
    drop(text);
    let mut world = World::start(&system, is_root)?;
    let mut is_busy = true;
    // Where nobody works in the foreground there is no work whose end would end the system.
    let ends = !is_root || world.has_foreground();
    let mut late = 0;
    loop {
        if ends && is_busy && !world.is_busy() && world.has_said_all() {
            world.print_quotas();
            if is_root {
                return Ok(world.code);
            }
            // It lives on for those in the background.
            world.say_done();
            is_busy = false;
        }
        let patience = match world.has_work() {
            // What has happened is heard first, and nothing is waited for.
            true => Some(1),
            false => world.patience_ends(),
        };
        match wait(patience)? {
            Some((activity, Event::Service(service))) => world.offered(activity, service),
            Some((activity, Event::Stopped(cause))) => world.stopped(activity, cause),
            Some((activity, Event::Reported(value))) => world.reported(activity, value),
            Some((_, Event::Told(word))) => world.told(word),
            None if patience == Some(1) => world.go_on(),
            None => world.expire(),
        }
        // What happened in time is heard first; but an application that always has something to say keeps nobody waiting.
        late = match patience {
            Some(end) if end <= time::now() => late + 1,
            _ => 0,
        };
        if late > LATE {
            world.expire();
            world.go_on();
        }
    }
}

/// Waits for an event of something that this manager started; for none if there is none until a time, in nanoseconds since reset.
fn wait(until: Option<u64>) -> Result<Option<(u16, Event)>, Failure> {
    let until = until.unwrap_or(0);
    loop {
        let [_, activity, a, b, c, d, e, ..] = match call("wait", &Syscall::WaitEvent { until }) {
            Err(Failure::Call(_, SyscallError::Timeout)) => return Ok(None),
            other => other?,
        };
        if let Some(event) = Event::from_words([a, b, c, d, e]) {
            return Ok(Some((activity as u16, event)));
        }
    }
}
