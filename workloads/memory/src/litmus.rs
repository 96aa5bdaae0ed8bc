//! Litmus tests of the memory model (RVWMO) on the harts of a chip, whichever programs and clusters these are in.
//!
//! Why it exists: what a chip's caches and pipelines do together is seen by programs only, on the chip that a description makes. Variables are in
//! lines that others have had, have modified or have flushed beforehand, and threads start after random waits. What it deliberately does not
//! know: the machine, and what should appear: it stops at what the model forbids, and prints how often the rest appeared.
//!
//! Arguments: `shared`, the address in hexadecimal of 8 KiB in the memory of the program with `lends=true`; `parties`, the harts of all programs
//! together, 2 to 4; `first`, the number of this program's first thread (its harts are numbered from there, thread 0 judges and ends the run);
//! `rounds` of each test (100), `seed`. Each test runs without fences, and with one between the accesses of each thread.
//!
//! Source of the tests' names and of what is forbidden: RISC-V ISA manual, volume I, RVWMO explanatory material, and Alglave, Maranget, Tautschnig,
//! "Herding cats" (TOPLAS 2014).
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Memory, fence};
use bulkhead_bare::hal::device::{self, Console};
use bulkhead_bare::{Program, entry};
use bulkhead_random::Random;
use core::fmt::Write;
use core::hint::black_box;
use core::sync::atomic::{Ordering, compiler_fence};

entry!(main);

const LINE: u64 = 64;
const BYTES: u64 = 8192;
/// Where arrivals at the barrier are counted, over all rounds.
const BARRIER: u64 = 0;
/// A line for each thread: what it found.
const FOUND: u64 = LINE;
/// Pairs of variables, each in a line of its own.
const VARIABLES: u64 = 8 * LINE;
const PAIRS: u64 = 56;

/// What a judge sees: the values that the roles found, two for each, and those that both variables have at the end.
struct Outcome {
    found: [[u64; 2]; 4],
    last: [u64; 2],
}

struct Test {
    name: &'static str,
    roles: u64,
    /// What a role does with the variables: accesses with `between` between them, and what it found.
    role: fn(u64, Variables, fn()) -> [u64; 2],
    /// Not possible if accesses take effect in program order.
    relaxed: fn(&Outcome) -> bool,
    /// Forbidden without fences, too.
    always: bool,
}

/// Two words.
#[derive(Clone, Copy)]
struct Variables {
    memory: Memory,
    at: [u64; 2],
}

impl Variables {
    fn get(&self, which: usize) -> u64 {
        self.memory.get(self.at[which])
    }

    fn set(&self, which: usize, value: u64) {
        self.memory.set(self.at[which], value);
    }
}

const X: usize = 0;
const Y: usize = 1;

const TESTS: [Test; 7] = [
    Test {
        name: "SB",
        roles: 2,
        role: |role, v, between| {
            let (own, other) = if role == 0 { (X, Y) } else { (Y, X) };
            v.set(own, 1);
            between();
            [v.get(other), 0]
        },
        relaxed: |o| o.found[0][0] == 0 && o.found[1][0] == 0,
        always: false,
    },
    Test {
        name: "MP",
        roles: 2,
        role: |role, v, between| match role {
            0 => {
                v.set(X, 1);
                between();
                v.set(Y, 1);
                [0, 0]
            }
            _ => two(v, [Y, X], between),
        },
        relaxed: |o| o.found[1] == [1, 0],
        always: false,
    },
    Test {
        name: "LB",
        roles: 2,
        role: |role, v, between| {
            let (own, other) = if role == 0 { (X, Y) } else { (Y, X) };
            let found = v.get(own);
            between();
            v.set(other, 1);
            [found, 0]
        },
        relaxed: |o| o.found[0][0] == 1 && o.found[1][0] == 1,
        always: false,
    },
    Test {
        name: "2+2W",
        roles: 2,
        role: |role, v, between| {
            let (first, second) = if role == 0 { (X, Y) } else { (Y, X) };
            v.set(first, 1);
            between();
            v.set(second, 2);
            [0, 0]
        },
        relaxed: |o| o.last == [1, 1],
        always: false,
    },
    Test {
        name: "CoRR",
        roles: 2,
        role: |role, v, between| match role {
            0 => {
                v.set(X, 1);
                [0, 0]
            }
            _ => two(v, [X, X], between),
        },
        relaxed: |o| o.found[1] == [1, 0],
        always: true,
    },
    Test {
        name: "WRC",
        roles: 3,
        role: |role, v, between| match role {
            0 => {
                v.set(X, 1);
                [0, 0]
            }
            1 => {
                let found = v.get(X);
                between();
                v.set(Y, found);
                [found, 0]
            }
            _ => two(v, [Y, X], between),
        },
        relaxed: |o| o.found[1][0] == 1 && o.found[2] == [1, 0],
        always: false,
    },
    Test {
        name: "IRIW",
        roles: 4,
        role: |role, v, between| match role {
            0 | 1 => {
                v.set(role as usize, 1);
                [0, 0]
            }
            2 => two(v, [X, Y], between),
            _ => two(v, [Y, X], between),
        },
        relaxed: |o| o.found[2] == [1, 0] && o.found[3] == [1, 0],
        always: false,
    },
];

fn two(v: Variables, which: [usize; 2], between: fn()) -> [u64; 2] {
    let first = v.get(which[0]);
    between();
    [first, v.get(which[1])]
}

/// Orders the accesses in the program's code, and nothing on the chip.
fn nothing() {
    compiler_fence(Ordering::SeqCst);
}

fn main(program: &Program) {
    let text = program.argument("shared").unwrap_or_default();
    let Ok(address) = u64::from_str_radix(text, 16) else {
        panic!("`shared` is no hexadecimal address: {text:?}");
    };
    let memory = match program.value("lends", false) {
        true => {
            let first = program.memory.base();
            assert!(
                address >= first,
                "{address:#x} is the program's, which ends at {first:#x}"
            );
            program.memory.part(address - first, BYTES)
        }
        false => Memory::of_others(address, BYTES),
    };
    let parties: u64 = program.value("parties", 2);
    assert!((2..=4).contains(&parties), "{parties} parties");
    let thread = program.value("first", 0) + program.rank as u64;
    let mut run = Run {
        memory,
        parties,
        thread,
        met: 0,
        common: Random::new(program.value("seed", 1)),
        own: Random::new(program.value("seed", 1) + 1 + thread),
    };
    let rounds: u64 = program.value("rounds", 100);
    let mut wrong = false;
    for test in TESTS.iter().filter(|test| test.roles <= parties) {
        let relaxed = [nothing as fn(), fence].map(|between| {
            let seen = (0..rounds).filter(|round| run.once(test, *round, between));
            seen.count()
        });
        if thread == 0 {
            let said = writeln!(Console, "{} {} {}", test.name, relaxed[0], relaxed[1]);
            assert!(said.is_ok(), "the console takes everything");
            wrong |= relaxed[1] > 0 || test.always && relaxed[0] > 0;
        }
    }
    if thread == 0 {
        device::exit(u16::from(wrong));
    }
}

struct Run {
    memory: Memory,
    parties: u64,
    thread: u64,
    /// How often all have met at the barrier.
    met: u64,
    /// The same numbers for all threads.
    common: Random,
    own: Random,
}

impl Run {
    fn meet(&mut self) {
        self.met += 1;
        fence();
        self.memory.add(BARRIER, 1);
        while self.memory.get(BARRIER) < self.met * self.parties {}
        fence();
    }

    /// Puts lines where they may be before a test.
    fn prepare(&mut self, variables: Variables) {
        let which = self.own.below(2) as usize;
        let line = self.memory.part(variables.at[which], LINE);
        match self.own.below(4) {
            0 => {
                black_box(variables.get(which));
            }
            // The word stays what it is.
            1 => {
                self.memory.add(variables.at[which], 0);
            }
            2 => line.flush(),
            _ => {}
        }
    }

    /// A round of a test. Returns whether its outcome was a relaxed one, if this is thread 0.
    fn once(&mut self, test: &Test, round: u64, between: fn()) -> bool {
        let first = VARIABLES + self.common.below(PAIRS) * 2 * LINE;
        let variables = Variables {
            memory: self.memory,
            at: [first, first + LINE],
        };
        if self.thread == 0 {
            variables.set(X, 0);
            variables.set(Y, 0);
        }
        self.meet();
        self.prepare(variables);
        let wait = self.own.below(64);
        self.meet();
        for turn in 0..wait {
            black_box(turn);
        }
        let role = (self.thread + round) % self.parties;
        if role < test.roles {
            let found = (test.role)(role, variables, between);
            self.memory.set(FOUND + role * LINE, found[0]);
            self.memory.set(FOUND + role * LINE + 8, found[1]);
        }
        self.meet();
        if self.thread > 0 {
            return false;
        }
        let found = [0, 1, 2, 3].map(|role| {
            let at = FOUND + role * LINE;
            [self.memory.get(at), self.memory.get(at + 8)]
        });
        let last = [variables.get(X), variables.get(Y)];
        (test.relaxed)(&Outcome { found, last })
    }
}
