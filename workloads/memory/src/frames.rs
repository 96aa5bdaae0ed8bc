//! Copies frames from a buffer outside the program's memory to the program's own, as a client of a camera's driver does.
//!
//! Arguments: `bytes` of a frame, a multiple of 64; `buffer`: its address, in hexadecimal, where nobody else has memory; `frames`, all of which are
//! measured, after one that is not. The measured part is between the markers `MeasureBegin` and `MeasureEnd`, which give the bytes that were copied;
//! `Check` says them again, after the words of the copy have been compared.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Memory, fence};
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::{Program, entry};

entry!(main);

/// Bytes between two words that are compared.
const APART: usize = 1 << 10;

fn main(program: &Program) {
    // The other harts of a program with several harts have nothing to do.
    if program.rank > 0 {
        return;
    }
    let bytes: u64 = program.value("bytes", 1 << 16);
    let frames: u64 = program.value("frames", 1);
    let Some(Ok(address)) = program
        .argument("buffer")
        .map(|text| u64::from_str_radix(text, 16))
    else {
        panic!("no buffer, or no hexadecimal address");
    };
    assert!(
        bytes.is_multiple_of(64) && address.is_multiple_of(64),
        "{bytes} bytes at {address:#x} are no whole lines"
    );
    let buffer = Memory::of_others(address, bytes);
    let own = program.memory.part(0, bytes);
    // A device fills memory and no cache.
    for (number, offset) in (1..).zip((0..bytes).step_by(APART)) {
        buffer.set(offset, number);
    }
    buffer.flush();
    buffer.copy_to(&own);
    fence();
    marker::measure_begin(bytes * frames);
    for _ in 0..frames {
        buffer.copy_to(&own);
    }
    fence();
    marker::measure_end(bytes * frames);
    for (number, offset) in (1..).zip((0..bytes).step_by(APART)) {
        assert!(own.get(offset) == number, "a wrong word at {offset:#x}");
    }
    marker::check(bytes * frames);
    device::exit(0);
}
