//! The root resource manager: starts what the description names, and ends the system when its work is done.
//!
//! Why it exists: policy stands outside of the kernel, in an ordinary activity with the right to manage. What it
//! deliberately does not know: how rights are enforced.
//!
//! It ends with 0 when all foreground applications ended with 0, with 3 if one of them ended otherwise, and with 2 if the
//! system could not be started.
#![no_std]
#![no_main]

extern crate alloc;

mod start;

use alloc::string::String;
use bulkhead_abi::syscall::{StopCause, Syscall, SyscallError, module_key};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{println, syscall};
use bulkhead_resmgr::description;
use start::{Failure, Started};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match run() {
        Ok(code) => code,
        Err(failure) => {
            println!("{failure}");
            2
        }
    }
}

fn run() -> Result<u64, Failure> {
    let text = read_module("system.xml")?;
    let apps = description::read(&text).map_err(Failure::Description)?;
    let mut started = start::start(&apps)?;
    let mut code = 0;
    while started.iter().any(|s| s.foreground && !s.ended) {
        let results = call("wait", &Syscall::WaitEvent)?;
        let [id, a, b, c, d, ..] = results;
        let Some(activity) = started.iter_mut().find(|s| u64::from(s.activity) == id) else {
            continue;
        };
        activity.ended = true;
        let cause = StopCause::from_words([a, b, c, d]);
        explain(activity, cause);
        if activity.foreground && cause != Some(StopCause::Exit(0)) {
            code = 3;
        }
    }
    Ok(code)
}

/// Says what only the manager knows: that a fault was a stack that ran over.
fn explain(activity: &Started, cause: Option<StopCause>) {
    if let Some(StopCause::Fault { value, .. }) = cause
        && activity.layout.is_stack_overflow(value)
    {
        println!(
            "activity {} ({}): stack overflow",
            activity.activity, activity.name
        );
    }
}

/// Makes a system call; `what` is for the report if it fails.
fn call(what: &'static str, request: &Syscall) -> Result<syscall::Results, Failure> {
    syscall::call(request).map_err(|error| Failure::Call(what, error))
}

/// Opens a boot module.
fn open_module(name: &str) -> Result<MemoryGate, Failure> {
    let key = module_key(name.as_bytes());
    match syscall::call(&Syscall::OpenModule { key }) {
        Ok([endpoint, size, ..]) => Ok(MemoryGate::new(endpoint as u16, size)),
        Err(SyscallError::NoModule) => Err(Failure::NoModule(name.into())),
        Err(error) => Err(Failure::Call("open a module", error)),
    }
}

fn close(gate: &MemoryGate) -> Result<(), Failure> {
    let endpoint = gate.endpoint();
    call("close a gate", &Syscall::Close { endpoint }).map(|_| ())
}

/// Reads a whole boot module as text.
fn read_module(name: &str) -> Result<String, Failure> {
    let gate = open_module(name)?;
    let mut bytes = alloc::vec![0; gate.size() as usize];
    gate.read(0, &mut bytes).map_err(Failure::Transfer)?;
    close(&gate)?;
    String::from_utf8(bytes).map_err(|_| Failure::NotText)
}
