//! A program that accesses registers of its device all the time, with as many accesses under way as the hart can have, and lets a storage device
//! fill buffers meanwhile: the worst that a program can do with a device on the links that others use.
//!
//! Arguments: `disk`, the address of the registers (the loader gives it for `<attach>`); `bytes` of a command; `depth`, commands under way; `loads`
//! and `stores` in each turn of the loop, at most four of each; `period`, cycles from one turn to the next (0: without a pause). It runs for
//! ever. Without `loads` and `stores`, it only looks for ended commands.
#![no_std]
#![no_main]

use bulkhead_bare::arch::Registers;
use bulkhead_bare::hal::abi::peripheral::{
    AT_END, AT_REFUSAL, CAPACITY, CAUSE, COMMAND, COMPLETED, CULPRIT, DESTINATION, ENABLE,
    INTERRUPT, KIND, LENGTH, READ, SIZE, SOURCE, UNIT,
};
use bulkhead_bare::hal::csr;
use bulkhead_bare::{Program, entry};

entry!(main);

fn main(program: &Program) {
    if program.rank > 0 {
        return;
    }
    let disk = Registers::at(program.value("disk", 0));
    let bytes: u64 = program.value("bytes", 4096);
    let depth: u64 = program.value("depth", 4);
    let loads: u64 = program.value("loads", 4);
    let stores: u64 = program.value("stores", 4);
    let period: u64 = program.value("period", 0);
    let buffers = program.memory.part(0, bytes * depth);
    // Lines of the buffers must not be written over what the device brings.
    buffers.flush();
    disk.set(LENGTH, bytes);
    // Each end of a command sends a message, which nobody takes.
    disk.set(ENABLE, AT_END | AT_REFUSAL);
    let (all, step) = (disk.get(SIZE) / disk.get(UNIT), bytes / disk.get(UNIT));
    let (mut asked, mut block) = (0, 0);
    let mut begin = csr::cycle();
    loop {
        while asked - disk.get(COMPLETED) < depth {
            disk.set(SOURCE, block);
            disk.set(DESTINATION, buffers.base() + asked % depth * bytes);
            disk.set(COMMAND, READ);
            block = if block + 2 * step <= all {
                block + step
            } else {
                0
            };
            asked += 1;
        }
        for _ in 0..16 {
            // Nothing waits for the values before all of them have been asked for.
            let one = |number: u64, register| match number < loads {
                true => disk.get(register),
                false => 0,
            };
            let seen = [
                one(0, KIND),
                one(1, CAPACITY),
                one(2, CULPRIT),
                one(3, UNIT),
            ];
            for register in [CAUSE, INTERRUPT, CAUSE, INTERRUPT]
                .into_iter()
                .take(stores as usize)
            {
                disk.set(register, 1);
            }
            core::hint::black_box(seen);
            if period > 0 {
                begin += period;
                while csr::cycle() < begin {}
            }
        }
    }
}
