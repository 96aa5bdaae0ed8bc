//! Measures memory: chains of loads, and streams of loads and stores.
//!
//! Arguments: `role` (`chase`, `read`, `write`, `copy`, `store`, `dma`), `bytes` of the working set, measured `rounds` over it. The set contains
//! the lines at multiples of `stride` bytes whose address, modulo `period`, is in the `length` bytes from `first` on; so it can be a range,
//! a cache colour or a bank. A chase follows `chains` chains of loads over the lines, in random order (`seed`), or in address order with
//! `order=forward`. With `forever=true` it measures nothing and only disturbs others. `remote`: the address of the memory, in hexadecimal,
//! instead of the program's own; `extent`: its bytes, if the set has gaps. `dma`: channel 0 of the engine at `engine` (hexadecimal) moves `bytes` from the program's own memory to
//! `remote`, `rounds` times.
//!
//! The measured part is between the markers `MeasureBegin` and `MeasureEnd`, so the program need not know the time. `Check` gives the
//! number of loads, stores or bytes. Each of `passes` is a span, and a flow from the program to itself. A set whose size is not a multiple
//! of what an access needs is a mistake, and the program panics.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Memory, Registers, UNROLLED, fence};
use bulkhead_bare::hal::abi::dma::{CONTROL, FIRST_CHANNEL, START, STATUS, State, contiguous};
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::{Program, entry};
use bulkhead_random::Random;

entry!(main);

fn main(program: &Program) {
    // The other harts of a program with several harts have nothing to do.
    if program.rank > 0 {
        return;
    }
    let bytes = program.value("bytes", 1 << 16);
    let memory = match hexadecimal(program, "remote") {
        None => program.memory,
        Some(address) => Memory::of_others(address, program.value("extent", bytes)),
    };
    let rounds: u64 = program.value("rounds", 2);
    match program.argument("role") {
        Some("read") => stream(program, &memory.part(0, bytes), rounds, |part| {
            part.read();
        }),
        Some("write") => stream(program, &memory.part(0, bytes), rounds, |part| {
            part.write(1)
        }),
        Some("copy") => stream(program, &memory.part(0, bytes), rounds, Memory::copy),
        Some("dma") => transfer(program, &memory),
        Some("store") => {
            let part = memory.part(0, bytes);
            measured(program, part.bytes() / 8 * rounds, || {
                for _ in 0..rounds {
                    part.store(1);
                }
            });
        }
        None | Some("chase") => {
            let set = Set::new(program, &memory, bytes);
            match program.argument("order") {
                Some("forward") => set.link_forward(),
                None | Some("random") => set.link_randomly(program.value("seed", 1)),
                Some(other) => panic!("no order {other}"),
            }
            let mut heads = [0; 8];
            let chains = program.value("chains", 1usize);
            let Some(heads) = heads.get_mut(..chains).filter(|heads| !heads.is_empty()) else {
                panic!("{chains} chains; 1 to 8 are possible");
            };
            set.spread(heads);
            // Whole rounds, in unrolled steps.
            let steps = (set.lines * rounds / chains as u64).next_multiple_of(UNROLLED);
            measured(program, steps * chains as u64, || {
                set.memory.follow(heads, steps);
            });
        }
        Some(other) => panic!("no role {other}"),
    }
    device::exit(0);
}

/// A multiple of any burst.
const PAGE: u64 = 4096;

/// An argument that is an address.
fn hexadecimal(program: &Program, name: &str) -> Option<u64> {
    let text = program.argument(name)?;
    match u64::from_str_radix(text, 16) {
        Ok(address) => Some(address),
        Err(_) => panic!("{name} is no hexadecimal address"),
    }
}

/// Moves words to another memory by a DMA engine, once and then `rounds` times, which are measured: each from the store that starts the
/// channel to the load that sees its end. The engine sees no caches, so what was stored is flushed first.
fn transfer(program: &Program, to: &Memory) {
    let Some(engine) = hexadecimal(program, "engine") else {
        panic!("a transfer needs an engine");
    };
    // Bursts end at multiples of their length at both ends.
    let skipped = program.memory.base().next_multiple_of(PAGE) - program.memory.base();
    let from = program.memory.part(skipped, to.bytes());
    for (number, offset) in (1..).zip((0..from.bytes()).step_by(8)) {
        from.set(offset, number);
    }
    from.flush();
    let channel = Registers::at(engine + FIRST_CHANNEL);
    let words = contiguous(3, from.base(), to.base(), (to.bytes() / 8) as u32);
    for (number, word) in (0u64..).zip(words) {
        channel.set(8 * number, word);
    }
    let once = || {
        channel.set(CONTROL, START);
        // A load may overtake a store to another register.
        fence();
        while channel.get(STATUS) == State::Busy as u64 {}
    };
    once();
    let rounds: u64 = program.value("rounds", 1);
    marker::measure_begin(rounds);
    for _ in 0..rounds {
        once();
    }
    marker::measure_end(rounds);
    let status = channel.get(STATUS);
    assert!(
        status == State::Done as u64,
        "the transfer ended with status {status:#x}"
    );
    for offset in (0..to.bytes()).step_by(1 << 10) {
        assert!(
            to.get(offset) == 1 + offset / 8,
            "a wrong word at {offset:#x}"
        );
    }
    marker::check(to.bytes());
}

/// Runs `work` once to warm the caches, then `passes` times between markers; or again and again.
fn measured(program: &Program, count: u64, mut work: impl FnMut()) {
    let passes: u64 = program.value("passes", 1);
    work();
    while program.value("forever", false) {
        work();
    }
    fence();
    marker::measure_begin(count);
    for pass in 0..passes {
        marker::flow_begin(pass);
        marker::span_begin(pass);
        work();
        fence();
        marker::span_end(pass);
        marker::flow_end(pass);
    }
    marker::measure_end(count);
    marker::check(count * passes);
}

fn stream(program: &Program, part: &Memory, rounds: u64, pass: impl Fn(&Memory)) {
    measured(program, part.bytes() * rounds, || {
        for _ in 0..rounds {
            pass(part);
        }
    });
}

/// The lines of a working set.
struct Set {
    memory: Memory,
    lines: u64,
    stride: u64,
    period: u64,
    length: u64,
}

impl Set {
    fn new(program: &Program, memory: &Memory, bytes: u64) -> Self {
        let stride: u64 = program.value("stride", 64);
        let period: u64 = program.value("period", stride);
        let length: u64 = program.value("length", period);
        let first: u64 = program.value("first", 0);
        // To the first address in the set.
        let skipped = memory.base().next_multiple_of(period) - memory.base() + first;
        let lines = bytes / stride;
        let blocks = lines.div_ceil(length / stride);
        Self {
            memory: memory.part(skipped, (blocks - 1) * period + length),
            lines,
            stride,
            period,
            length,
        }
    }

    /// Offset of a line.
    fn offset(&self, line: u64) -> u64 {
        let in_block = self.length / self.stride;
        line / in_block * self.period + line % in_block * self.stride
    }

    fn link(&self, line: u64, next: u64) {
        self.memory.link(self.offset(line), self.offset(next));
    }

    fn link_forward(&self) {
        for line in 0..self.lines {
            self.link(line, (line + 1) % self.lines);
        }
    }

    /// One cycle through all lines; every such cycle is equally likely (Sattolo 1986). The lines themselves hold it while it is made.
    fn link_randomly(&self, seed: u64) {
        let mut random = Random::new(seed);
        for line in 0..self.lines {
            self.memory.set(self.offset(line), line);
        }
        for line in (1..self.lines).rev() {
            let (here, there) = (self.offset(line), self.offset(random.below(line)));
            let (own, other) = (self.memory.get(here), self.memory.get(there));
            self.memory.set(here, other);
            self.memory.set(there, own);
        }
        for line in 0..self.lines {
            self.link(line, self.memory.get(self.offset(line)));
        }
    }

    /// Spreads the starts of chains along the cycle.
    fn spread(&self, heads: &mut [u64]) {
        let share = self.lines / heads.len() as u64;
        let mut at = 0;
        for head in heads {
            *head = at;
            for _ in 0..share {
                at = self.memory.target(at);
            }
        }
    }
}
