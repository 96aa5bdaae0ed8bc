//! Threads of litmus tests: what they do, random starts, and what they find.
//!
//! Why it exists: accesses, the lines of variables and the counting are the same on every kind of chip, and so are the shapes ([`super::shapes`]).
//! Threads on harts of clusters and on a mesh that need no flushes are here, too, because two programs of tests run them. What it does not know: which
//! outcomes the memory model allows.

use super::*;
use bulkhead_abi::memory_map::{EXTERNAL_MEMORY, MEMORY_BASE};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::TileId;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Lines in which variables may be.
pub const LINES: u64 = 64;
pub const VARIABLES: usize = 3;
const DATA: u64 = MEMORY_BASE + 0x8_0000;
/// Registers of a thread: addresses of the variables, a barrier, the values of its loads, a value.
pub const ADDRESS: u32 = 18;
pub const THREADS: u32 = 21;
pub const BARRIER: u32 = 22;
pub const FOUND: u32 = 24;
pub const VALUE: u32 = 30;

/// A part of a variable: how many bytes (1, 2 or 4), and which one of the parts of that length.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub bytes: u64,
    pub number: u64,
}

impl Part {
    pub fn first(bytes: u64) -> Self {
        Self { bytes, number: 0 }
    }

    pub fn last(bytes: u64) -> Self {
        let number = 8 / bytes - 1;
        Self { bytes, number }
    }

    /// The variable's value if this part is 1, and all others are 0.
    pub fn one(self) -> u64 {
        1 << (8 * self.bytes * self.number)
    }
}

pub const X: u32 = 0;
pub const Y: u32 = 1;
pub const Z: u32 = 2;

/// What a thread does; variables and results are numbered.
#[derive(Clone, Copy, Debug)]
pub enum Do {
    /// Stores a value.
    W(u32, u32),
    /// Loads.
    R(u32),
    /// Loads from an address that depends on the previous load's value.
    RDependent(u32),
    /// Loads from an address that is known late and depends on no load.
    RLate(u32),
    /// Stores a value that depends on the previous load's value.
    WDependent(u32, u32),
    /// Stores a value to an address that depends on the previous load's value.
    WAddress(u32, u32),
    /// Stores a value after a branch on the previous load's value.
    WControl(u32, u32),
    /// Loads after such a branch.
    RControl(u32),
    /// Stores a value to each part of so many bytes of a variable, in one access.
    All(u32, u64, u32),
    /// Stores a value to a part of a variable.
    WPart(u32, Part, u32),
    /// Loads a part.
    RPart(u32, Part),
    /// Adds with acquire and release semantics; the old value is a result.
    Add(u32, u32),
    /// Adds with LR and SC until it succeeds; the old value is a result.
    Reserved(u32, u32),
    /// Loads with LR and acquire semantics.
    Acquire(u32),
    /// Adds nothing, with acquire semantics; the old value is a result.
    AcquireAdd(u32),
    /// Swaps with release semantics, like a store-release.
    Release(u32, u32),
    /// A fence of everything.
    F,
    /// A fence of these: see [`PRECEDING`].
    Fence(u32),
}

/// Fences by what must come before and after them, as the instruction's upper bits: reads are 2, writes 1.
pub const PRECEDING: u32 = 24;
pub const FOLLOWING: u32 = 20;
pub const WW: Do = Fence(1 << PRECEDING | 1 << FOLLOWING);
pub const WR: Do = Fence(1 << PRECEDING | 2 << FOLLOWING);
pub const RR: Do = Fence(2 << PRECEDING | 2 << FOLLOWING);
pub const RW: Do = Fence(2 << PRECEDING | 1 << FOLLOWING);
/// All but a read after a write.
pub const TSO: Do = Fence(8 << 28 | 3 << PRECEDING | 3 << FOLLOWING);
pub use Do::*;

impl Do {
    pub fn finds(&self) -> bool {
        matches!(
            self,
            R(_) | RDependent(_)
                | RControl(_)
                | RPart(..)
                | RLate(_)
                | Add(..)
                | Reserved(..)
                | Acquire(_)
                | AcquireAdd(_)
        )
    }
}

#[derive(Clone, Debug)]
pub struct Start {
    pub wait: [i32; 4],
    pub lines: [u64; VARIABLES],
    /// Which variables a thread has loaded beforehand, and to which it has written 0 beforehand.
    pub old: [u8; 4],
    pub owned: [u8; 4],
    /// How far the assignment of threads to ports is rotated.
    pub turn: usize,
    pub small: bool,
    pub out_of_order: bool,
    /// Each hart is in a cluster of its own, and the clusters are coherent with each other.
    pub apart: bool,
    /// Each hart is in a tile of a mesh of 2 x 2; the variables are in the tiles' local memories and in external memory.
    pub mesh: bool,
}

impl Start {
    /// Where everything is that is not a variable.
    fn base(&self) -> u64 {
        if self.mesh {
            EXTERNAL_MEMORY + 0x8_0000
        } else {
            DATA
        }
    }

    fn address(&self, line: u64) -> u64 {
        match self.mesh {
            false => DATA + line * 64,
            true if line >= 3 * LINES / 4 => self.base() + line * 64,
            // Two variables of one tile are in different banks or in the same one.
            true => window(line & 1, line >> 1 & 1) + 0x4000 + (line >> 2) * 0x200,
        }
    }
}

pub fn thread(ops: &[Do], start: &Start, number: usize, threads: usize) -> Program {
    let mut p = Program::default();
    p.addi(S0, ZERO, 2)
        .addi(THREADS, ZERO, threads as i32)
        .li(BARRIER, start.base() - 0x1000);
    // The first round uses its own lines: it fetches the instructions.
    for variable in 0..VARIABLES as u64 {
        let own = start.base() + 0x1_0000 + 0x1000 * number as u64 + 64 * variable;
        p.li(ADDRESS + variable as u32, own);
    }
    let round = p.here();
    for variable in 0..VARIABLES as u32 {
        let address = ADDRESS + variable;
        if start.owned[number] >> variable & 1 != 0 {
            p.sd(ZERO, address, 0);
        }
        if start.old[number] >> variable & 1 != 0 {
            p.ld(T0, address, 0);
        }
    }
    p.word(FENCE).addi(T1, ZERO, 1).amo(0, 3, ZERO, BARRIER, T1);
    let others = p.here();
    p.ld(T1, BARRIER, 0).branch(1, T1, THREADS, others);
    p.addi(T2, ZERO, start.wait[number] + 1);
    let wait = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
    perform(&mut p, ops, &|_, _| {});
    p.word(FENCE).addi(S0, S0, -1);
    for (variable, line) in start.lines.iter().enumerate() {
        p.li(ADDRESS + variable as u32, start.address(*line));
    }
    p.addi(BARRIER, BARRIER, 64)
        .branch(1, S0, ZERO, round)
        .word(WFI);
    p
}

/// What a thread does, one after the other. Its `flush` of the line at a register's address comes before each load and after each store; where caches
/// are coherent, it does nothing. Returns the first register after those of the loads.
pub fn perform(p: &mut Program, ops: &[Do], flush: &dyn Fn(&mut Program, u32)) -> u32 {
    let mut found = FOUND;
    for op in ops {
        let address = match *op {
            F | Fence(_) => ZERO,
            R(v) | RDependent(v) | RLate(v) | RControl(v) | RPart(v, _) => ADDRESS + v,
            W(v, _) | WDependent(v, _) | WAddress(v, _) | WControl(v, _) => ADDRESS + v,
            All(v, ..) | WPart(v, ..) | Add(v, _) | Reserved(v, _) => ADDRESS + v,
            Acquire(v) | AcquireAdd(v) | Release(v, _) => ADDRESS + v,
        };
        match *op {
            W(_, value) => {
                p.addi(VALUE, ZERO, value as i32).sd(VALUE, address, 0);
                flush(p, address);
            }
            WDependent(_, value) => {
                p.xor(T1, found - 1, found - 1).addi(T1, T1, value as i32);
                p.sd(T1, address, 0);
                flush(p, address);
            }
            WAddress(_, value) => {
                p.xor(T1, found - 1, found - 1).add(T1, T1, address);
                p.addi(VALUE, ZERO, value as i32).sd(VALUE, T1, 0);
                flush(p, T1);
            }
            WControl(_, value) => {
                on_condition(p, found - 1);
                p.addi(VALUE, ZERO, value as i32).sd(VALUE, address, 0);
                flush(p, address);
            }
            RControl(_) => {
                on_condition(p, found - 1);
                flush(p, address);
                p.ld(found, address, 0);
            }
            All(_, bytes, value) => {
                p.addi(VALUE, ZERO, value as i32).slli(T1, VALUE, 32);
                p.or(T1, T1, VALUE);
                for bits in [16, 8].into_iter().filter(|bits| *bits >= 8 * bytes) {
                    p.addi(VALUE, T1, 0).slli(T1, VALUE, bits as u32);
                    p.or(T1, T1, VALUE);
                }
                p.sd(T1, address, 0);
                flush(p, address);
            }
            WPart(_, part, value) => {
                p.addi(VALUE, ZERO, value as i32);
                p.store(part.bytes, VALUE, address, part.bytes * part.number);
                flush(p, address);
            }
            RPart(_, part) => {
                flush(p, address);
                p.load(part.bytes, found, address, part.bytes * part.number);
            }
            R(_) => {
                flush(p, address);
                p.ld(found, address, 0);
            }
            RDependent(_) => {
                p.xor(T1, found - 1, found - 1).add(T1, T1, address);
                flush(p, T1);
                p.ld(found, T1, 0);
            }
            RLate(_) => {
                // T1 = 0 / 1, two times.
                let divide = |rd: u32, a: u32, b: u32| {
                    1 << 25 | b << 20 | a << 15 | 4 << 12 | rd << 7 | 0x33
                };
                p.addi(VALUE, ZERO, 1).word(divide(T1, ZERO, VALUE));
                p.word(divide(T1, T1, VALUE)).add(T1, T1, address);
                flush(p, T1);
                p.ld(found, T1, 0);
            }
            Add(_, value) => {
                flush(p, address);
                p.addi(VALUE, ZERO, value as i32);
                p.amo(0, 3, found, address, VALUE);
                flush(p, address);
            }
            // Only where all threads reach one copy, so nothing is flushed.
            Reserved(_, value) => {
                let again = p.here();
                p.lr(found, address).addi(T1, found, value as i32);
                p.sc(VALUE, address, T1).branch(1, VALUE, ZERO, again);
            }
            Acquire(_) => {
                flush(p, address);
                p.amo(2, 2, found, address, ZERO);
            }
            AcquireAdd(_) => {
                flush(p, address);
                p.amo(0, 2, found, address, ZERO);
            }
            Release(_, value) => {
                flush(p, address);
                p.addi(VALUE, ZERO, value as i32);
                p.amo(1, 1, ZERO, address, VALUE);
                flush(p, address);
            }
            F => {
                p.word(FENCE);
            }
            Fence(of) => {
                p.word(of | 0x0f);
            }
        }
        found += u32::from(op.finds());
    }
    found
}

/// A branch on a value. What follows is executed in any case.
pub fn on_condition(p: &mut Program, value: u32) {
    let at = p.here();
    p.word(0);
    let on = p.here();
    p.patch_branch(at, 1, value, ZERO, on);
}

/// The values loaded, in thread order, and the final values of the variables.
pub fn outcome(threads: &[&[Do]], start: &Start) -> Vec<u64> {
    let count = threads.len();
    let mut config = match (start.mesh, start.apart) {
        (true, _) => mesh(2, 2),
        (false, false) => cluster(count as u16),
        (false, true) => coherent(&vec![1; count]),
    };
    small_memories(&mut config);
    for tile in &mut config.tiles {
        if start.out_of_order {
            tile.hart.interval = Some(OUT_OF_ORDER);
        }
        if let (true, Some(cache)) = (start.small, &mut tile.l2) {
            cache.size = 4 << 10;
        }
        if let Some(memory) = &mut tile.local_memory {
            memory.ports = 1 + u32::from(start.small);
        }
    }
    let mut machine = Machine::new(&config).unwrap();
    let hart = |number: usize| {
        let hart = (number + start.turn) % count;
        if start.apart || start.mesh {
            (hart as TileId, 0)
        } else {
            (0, hart)
        }
    };
    for (number, ops) in threads.iter().enumerate() {
        let program = thread(ops, start, number, count);
        let place = 0x1000 * (number as u64 + 1);
        start_hart(&mut machine, hart(number), &program, place);
    }
    let end = machine.run(RunLimit { ticks: 1_000_000 }, None);
    assert!(matches!(end, Outcome::Idle { .. }), "{end:?}");
    let mut seen = Vec::new();
    for (number, ops) in threads.iter().enumerate() {
        let place = hart(number);
        let hart = match start.mesh {
            false => machine.cluster_hart(place.0, place.1).unwrap(),
            true => machine.hart(place.0).unwrap(),
        };
        let loads = ops.iter().filter(|op| op.finds()).count();
        seen.extend((0..loads).map(|n| hart.register(FOUND as usize + n)));
    }
    for line in start.lines {
        let mut word = [0; 8];
        let at = start.address(line);
        machine.peek(0, at, &mut word).unwrap();
        seen.push(u64::from_le_bytes(word));
    }
    seen
}

/// What the lines of the variables are chosen by.
pub fn lines() -> impl Strategy<Value = (u64, u64, u64)> {
    (0..LINES, 1..LINES, 1..LINES)
}

/// The lines of the variables, which differ. The third one may have the line behind the others.
pub fn chosen((first, second, third): (u64, u64, u64)) -> [u64; VARIABLES] {
    let behind = if third == second { LINES } else { third };
    [
        first,
        (first + second) % LINES,
        (first + behind) % (2 * LINES),
    ]
}

/// How many of many starts end in a way. They are the same ones in every run.
pub fn count_starts<S: std::fmt::Debug>(
    starts: impl Strategy<Value = S>,
    cases: u32,
    ends: impl Fn(&S) -> bool,
) -> u32 {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let found = std::cell::Cell::new(0);
    let ran = TestRunner::new_with_rng(config, random).run(&starts, |start| {
        found.set(found.get() + u32::from(ends(&start)));
        Ok(())
    });
    ran.unwrap();
    found.get()
}

/// Starts of this many threads.
pub fn starts(threads: usize, out_of_order: bool, apart: bool) -> impl Strategy<Value = Start> {
    let starts = (
        prop::array::uniform4(0i32..40),
        lines(),
        prop::array::uniform4(0u8..8),
        prop::array::uniform4(0u8..8),
        0..threads,
        0u8..8,
    );
    starts.prop_map(move |(wait, lines, old, owned, turn, small)| Start {
        out_of_order,
        apart,
        mesh: false,
        wait,
        lines: chosen(lines),
        old,
        owned,
        turn,
        small: small == 0,
    })
}
