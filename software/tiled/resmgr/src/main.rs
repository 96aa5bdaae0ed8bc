//! A resource manager: starts what its part of the description names, and ends when its work is done.
//!
//! Why it exists: policy stands outside of the kernel, in ordinary activities that own resources. What it deliberately does not
//! know: how rights are enforced; whether it is the root manager or one below.
//!
//! The root manager ends with 0 when all foreground applications ended with 0, with 3 if one of them ended otherwise, and
//! with 2 if the system could not be started. A manager below tells the one above when all of its foreground applications have
//! ended, and lives on for those in the background.
#![no_std]
#![no_main]

extern crate alloc;

mod calls;
mod connect;
mod gates;
mod load;
mod start;

use alloc::string::String;
use bulkhead_abi::syscall::{Event, REPORT_DONE, SEL_DESCRIPTION, StopCause, Syscall};
use bulkhead_lib::println;
use bulkhead_resmgr::description;
use calls::{Failure, call};
use start::Started;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let is_root = calls::kind_of(SEL_DESCRIPTION).is_none();
    let code = match run(is_root) {
        Ok(code) => code,
        Err(failure) => {
            println!("{failure}");
            2
        }
    };
    if !is_root {
        // The one above ends this manager with the system, or when it wants to.
        let _ = call(
            "report",
            &Syscall::Report {
                value: REPORT_DONE | code,
            },
        );
        loop {
            let _ = wait();
        }
    }
    code
}

fn run(is_root: bool) -> Result<u64, Failure> {
    let text: String = match is_root {
        true => load::read_module("system.xml")?,
        false => load::read_memory(SEL_DESCRIPTION)?,
    };
    let system = description::read(&text).map_err(Failure::Description)?;
    drop(text);
    let mut started = start::start(&system)?;
    let failed = started.iter().any(|s| s.foreground && s.failed);
    let mut code = u64::from(failed) * 3;
    while started
        .iter()
        .any(|s| s.foreground && !s.ended && !s.failed)
    {
        let (activity, event) = wait()?;
        let Some(found) = started.iter().position(|s| s.activity == activity) else {
            continue;
        };
        if let Event::Service(service) = event {
            // What it offers is its own affair; if it cannot be taken, its clients find no service.
            let _ = connect::offered(&system, &started, found, service);
        }
        code = code.max(heard(&mut started[found], event));
    }
    Ok(code)
}

/// Waits for an event of something that this manager started.
fn wait() -> Result<(u16, Event), Failure> {
    loop {
        let [_, activity, a, b, c, d, e, ..] = call("wait", &Syscall::WaitEvent {})?;
        if let Some(event) = Event::from_words([a, b, c, d, e]) {
            return Ok((activity as u16, event));
        }
    }
}

/// What an event means for the exit code.
fn heard(target: &mut Started, event: Event) -> u64 {
    match event {
        Event::Stopped(cause) => {
            let was = core::mem::replace(&mut target.ended, true);
            explain(target, cause);
            u64::from(!was && target.foreground && cause != StopCause::Exit(0)) * 3
        }
        Event::Reported(value) if target.is_manager && value & REPORT_DONE != 0 => {
            target.ended = true;
            u64::from(value != REPORT_DONE) * 3
        }
        Event::Reported(_) | Event::Service(_) => 0,
    }
}

/// Says what only the manager knows: that a fault was a stack that ran over.
fn explain(activity: &Started, cause: StopCause) {
    if let StopCause::Fault { value, .. } = cause
        && activity.layout.is_stack_overflow(value)
    {
        println!(
            "activity {} ({}): stack overflow",
            activity.activity, activity.name
        );
    }
}
