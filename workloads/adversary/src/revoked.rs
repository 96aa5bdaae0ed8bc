//! Uses memory after its revocation: every transfer must fail once the call has returned.
//!
//! Arguments: `rounds` (100). Exit code: 0 if all did, and all quota came back.
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::DtuError;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, Syscall};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{argument, println, syscall};

bulkhead_lib::main!(main);

fn left() -> [syscall::Results; 2] {
    [SEL_TILE, SEL_KERNEL_MEMORY].map(|selector| {
        let query = Syscall::Query { selector };
        syscall::call(&query).unwrap_or_default()
    })
}

fn round() -> Result<(), &'static str> {
    let call = |what, request: Syscall| syscall::call(&request).map_err(|_| what);
    let derive = |source, target| Syscall::DeriveMemory {
        source,
        target,
        offset: 0,
        size: 64,
        rights: 1,
    };
    call("derive", derive(SEL_MEMORY, SEL_FREE))?;
    // Two generations, both active.
    call("derive again", derive(SEL_FREE, SEL_FREE + 1))?;
    let mut gates = [MemoryGate::new(0, 0); 2];
    for (number, gate) in gates.iter_mut().enumerate() {
        let active = syscall::activate(SEL_FREE + number as u16);
        let (endpoint, size) = active.map_err(|_| "activate")?;
        *gate = MemoryGate::new(endpoint, size);
    }
    let mut magic = [0; 8];
    for gate in &gates {
        gate.read(0, &mut magic)
            .map_err(|_| "a read while it may")?;
        if &magic != b"ACTIVITY" {
            return Err("what was read");
        }
    }
    let revoke = Syscall::Revoke {
        selector: SEL_FREE,
        keep: 0,
    };
    call("revoke", revoke)?;
    for gate in &gates {
        if gate.read(0, &mut magic) != Err(DtuError::InvalidEndpoint) {
            return Err("a read after the revocation");
        }
    }
    match syscall::call(&revoke) {
        Err(_) => Ok(()),
        Ok(_) => Err("a second revocation"),
    }
}

fn main() -> u64 {
    let rounds: u64 = argument::value("rounds", 100);
    let before = left();
    for number in 0..rounds {
        if let Err(what) = round() {
            println!("round {number}: {what} went wrong");
            return 1;
        }
    }
    if left() != before {
        println!("quota was lost or made");
        return 1;
    }
    0
}
