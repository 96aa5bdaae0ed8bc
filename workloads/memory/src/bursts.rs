//! Bursts of accesses at chosen moments, for ever: the worst neighbour that a program can have.
//!
//! Arguments: in each burst, `hits` loads of lines of the second level, `cleans` lines that are written back to memory (they are stored to before the
//! burst), `stores` and `misses` (loads) of lines in memory, in this order. No instruction waits for a load, so a burst takes as long as its
//! instructions, as far as the hart has places for what is under way. A burst begins every `period` cycles, `phase` cycles
//! later than a multiple of it; with `period=0`, one follows the other. `shift` cycles are added to the phase after each burst, so that the moments
//! move over those of another program. Most bursts begin some cycles after their moments, because the hart reads the clock in a loop. With `hits=4` and
//! nothing else but `period` and `phase`, the four loads leave in four cycles in a row, the same number of cycles after each moment on every hart.
//!
//! Each hart of the program does this in an equal part of its memory: the lines of hits are 16 in the first 64 KiB, 4 KiB apart, so that they need
//! the same few sets of a first level, which soon gives each of them up; those in memory are in the 1 MiB behind them. A small memory is
//! divided in proportion. Without any accesses, the program sleeps.
//! It prepares nothing else: the first bursts bring the lines, because a program that it is to disturb may be short.
#![no_std]
#![no_main]

use bulkhead_bare::arch::Memory;
use bulkhead_bare::hal::csr;
use bulkhead_bare::{Program, entry};

entry!(main);

/// Lines of the second level.
const NEAR: u64 = 16;
/// Bytes among which they are, and bytes of lines in memory, at most.
const HITS: u64 = 64 << 10;
const MISSES: u64 = 1 << 20;
const LINE: u64 = 64;
/// Lines that are written back again and again: they stay in the first level.
const CLEANED: u64 = 16;

fn main(program: &Program) {
    let count = |name| program.value(name, 0u64);
    let (hits, misses) = (count("hits"), count("misses"));
    let (stores, cleans) = (count("stores"), count("cleans"));
    let (period, shift) = (count("period"), count("shift"));
    if hits + misses + stores + cleans == 0 {
        return;
    }
    let share = (program.memory.bytes() / program.harts as u64) & !(LINE - 1);
    let own = program.memory.part(program.rank as u64 * share, share);
    // A sixteenth and a half of the memory: both and the lines that are cleaned fit.
    let most = share.max(LINE).ilog2() - 1;
    let far_bytes = MISSES.min(1 << most);
    let near_bytes = HITS.min(far_bytes / 8);
    if near_bytes < NEAR * 8 || near_bytes + far_bytes + CLEANED * LINE > share {
        panic!("{share} bytes of memory for each hart, which are too few");
    }
    let cached = own.part(0, near_bytes);
    let memory = own.part(near_bytes, far_bytes);
    let cleaned = own.part(near_bytes + far_bytes, CLEANED * LINE);
    // Where the next access of each kind goes.
    let (mut near, mut far, mut line) = (0, 0, 0);
    let mut begin = csr::cycle();
    if period > 0 {
        begin = begin.next_multiple_of(period) + count("phase");
    }
    if hits == 4 && period > 0 && misses + stores + cleans + shift == 0 {
        cached.touch_at_moments(begin, period, near_bytes / NEAR);
    }
    loop {
        for ahead in 0..cleans.min(CLEANED) {
            cleaned.set(((line + ahead) & (CLEANED - 1)) * LINE, 1);
        }
        while period > 0 && csr::cycle() < begin {}
        begin += period + shift;
        loads(&cached, near_bytes / NEAR, &mut near, hits);
        for _ in 0..cleans {
            csr::clean(cleaned.base() + line * LINE);
            line = (line + 1) & (CLEANED - 1);
        }
        for _ in 0..stores {
            memory.set(far, 1);
            far = (far + LINE) & (far_bytes - 1);
        }
        loads(&memory, LINE, &mut far, misses);
    }
}

/// Loads of words that are `step` bytes apart, round and round. The memory's size is a power of two and at least four steps.
#[inline(always)]
fn loads(memory: &Memory, step: u64, at: &mut u64, count: u64) {
    let mut left = count;
    while left > 0 {
        if *at + 4 * step > memory.bytes() {
            *at = 0;
        }
        let most = left.min(4);
        memory.touch(*at, step, most);
        *at += most * step;
        left -= most;
    }
}
