//! Bursts of accesses at the moments of a list: the neighbour of a program whose accesses come at irregular times, which somebody knows from an earlier
//! run.
//!
//! Arguments: the program waits until its cycle `begin`, makes a burst, and one more after each gap of a list; then it sleeps for ever (an empty list has none). The arguments
//! `a` to `h` have the list, one behind the other, because each has at most 63 characters. A character from `?` (0) to `~` (63) is a gap of
//! `least` cycles and `unit` cycles for each step; a digit from 1 to 9 is so many gaps of `least` cycles. In each burst, `hits` loads of
//! lines of the second level, `cleans` lines that are written back to memory (they are stored to before the burst), and `misses` (loads) of lines in
//! memory, in this order; up to 8 of each. A burst begins the same number of cycles after its moment on every hart. If one takes longer than its
//! gap, the next one follows it at once, and later ones come at their own moments again.
//!
//! Before `begin`, the program makes bursts that bring every line of code and data. What it does until then depends on the numbers of its arguments
//! and on the length of the list only, so other programs are where they were in a run with another list of this length.
//!
//! One hart does this, in the first part of its memory, and the others sleep: 16 lines for hits in 64 KiB, 16 that are written back, and 1 MiB.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Memory, wait_until};
use bulkhead_bare::hal::csr;
use bulkhead_bare::{Program, entry};

entry!(main);

/// Lines of the second level, and bytes among which they are.
const NEAR: u64 = 16;
const HITS: u64 = 64 << 10;
/// Bytes of lines in memory.
const MISSES: u64 = 1 << 20;
const LINE: u64 = 64;
/// Lines that are written back again and again: they stay in the first level.
const CLEANED: u64 = 16;
/// Arguments with the gaps, one behind the other, because an argument has at most 63 characters.
const PARTS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// Gaps before `begin`, after which every line of code and data is in the caches.
const WARM: &[u8] = b"~3~3~3~3~3~3~3~3";
/// All arguments together have fewer.
const LONGEST: usize = 512;
/// The character that means 0.
const ZERO: u8 = b'?';

fn main(program: &Program) {
    if program.rank > 0 {
        return;
    }
    let count = |name| program.value(name, 0u64);
    let burst = Burst {
        cached: program.memory.part(0, HITS),
        cleaned: program.memory.part(HITS, CLEANED * LINE),
        memory: program.memory.part(HITS + CLEANED * LINE, MISSES),
        hits: count("hits").min(8),
        cleans: count("cleans").min(8),
        misses: count("misses").min(8),
    };
    let begin = count("begin");
    let (least, unit) = (count("least"), count("unit").max(1));
    // Copied, so that what happens before `begin` depends on the number of gaps only.
    let mut list = [0; LONGEST];
    let mut length = 0;
    for name in PARTS {
        let part = program.argument(name).unwrap_or("").as_bytes();
        list[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    let list = &list[..length];
    let mut places = Places::default();
    let mut moment = 0;
    let warm = WARM.iter().map(|one| (one, false));
    let listed = list.iter().map(|one| (one, true));
    let mut waits = true;
    for (gap, is_listed) in warm.chain(listed) {
        if is_listed && waits {
            waits = false;
            moment = begin;
            burst.at(moment, &mut places);
        }
        for _ in 0..repeats(*gap).max(1) {
            if !is_listed {
                // The first bursts are late, and the wait has to be brought, too.
                moment = csr::cycle();
            }
            moment += least + unit * step(*gap);
            burst.at(moment, &mut places);
        }
    }
}

/// How many gaps of `least` cycles a digit stands for.
fn repeats(one: u8) -> u64 {
    match one {
        b'1'..=b'9' => u64::from(one - b'0'),
        _ => 0,
    }
}

/// The steps of a gap.
fn step(one: u8) -> u64 {
    match one {
        b'1'..=b'9' => 0,
        ZERO..=b'~' => u64::from(one - ZERO),
        _ => panic!("a gap {one:#x}; each is a character from ? to ~, or a digit from 1 to 9"),
    }
}

/// What to do.
struct Burst {
    cached: Memory,
    cleaned: Memory,
    memory: Memory,
    hits: u64,
    cleans: u64,
    misses: u64,
}

/// Where the next access of each kind goes.
#[derive(Default)]
struct Places {
    near: u64,
    line: u64,
    far: u64,
}

impl Burst {
    /// A burst at a moment. The same instructions make all of them, so that their lines are there.
    #[inline(never)]
    fn at(&self, moment: u64, places: &mut Places) {
        for ahead in 0..self.cleans {
            self.cleaned
                .set(((places.line + ahead) & (CLEANED - 1)) * LINE, 1);
        }
        wait_until(moment);
        loads(&self.cached, HITS / NEAR, &mut places.near, self.hits);
        for _ in 0..self.cleans {
            csr::clean(self.cleaned.base() + places.line * LINE);
            places.line = (places.line + 1) & (CLEANED - 1);
        }
        loads(&self.memory, LINE, &mut places.far, self.misses);
    }
}

/// Loads of words that are `step` bytes apart, round and round.
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
