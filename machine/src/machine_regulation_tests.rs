//! Token buckets and harts: what is admitted, who waits, and how an interrupt gets a hart off a waiting access.

use super::isolation::in_pieces;
use super::*;
use bulkhead_abi::dtu::PRIVILEGED_CREDIT;
use bulkhead_abi::memory_map::{CLINT_BASE, CLINT_MTIME, CLINT_MTIMECMP};

/// Marks the interrupts taken by the timer's handler.
const TAKEN: u16 = 0x101;
const T3: u32 = 28;
const T4: u32 = 29;
/// Timer cycles between two interrupts: 20 us.
const DISTANCE: i32 = 200;

impl Program {
    fn csrw(&mut self, csr: u32, rs: u32) -> &mut Self {
        self.word(csr << 20 | rs << 15 | 1 << 12 | 0x73)
    }

    /// The rest runs in user mode, with access to everything. If wanted, a timer interrupt every [`DISTANCE`] is taken in machine mode
    /// and marked with its number.
    fn user(&mut self, timer: bool) -> &mut Self {
        self.li(T0, 0x1f).li(T1, u64::MAX >> 10);
        self.csrw(0x3b0, T1).csrw(0x3a0, T0);
        self.li(T3, CLINT_BASE + CLINT_MTIMECMP).addi(T4, ZERO, 0);
        // auipc
        self.word(T0 << 7 | 0x17);
        let base = self.here() - 1;
        self.addi(T1, T0, 0);
        let handler_at = self.here() - 1;
        self.csrw(0x305, T1);
        if timer {
            self.li(T2, CLINT_BASE + CLINT_MTIME)
                .load(T2, T2, 0)
                .addi(T2, T2, DISTANCE)
                .store(T2, T3, 0)
                .addi(T1, ZERO, 0x80)
                .csrw(0x304, T1);
        }
        self.addi(T0, T0, 0);
        let rest_at = self.here() - 1;
        self.csrw(0x341, T0).csrw(0x300, ZERO).word(0x3020_0073);
        let here = self.here();
        let to = |at: usize| ((here - base) * 4) as u32 + at as u32;
        self.0[handler_at] |= to(0) << 20;
        // The handler: marks, resets the timer, returns.
        self.addi(T4, T4, 1).marker(T4, TAKEN.into());
        self.addi(T2, T2, DISTANCE)
            .store(T2, T3, 0)
            .word(0x3020_0073);
        let here = self.here();
        self.0[rest_at] |= (((here - base) * 4) as u32) << 20;
        self
    }
}

/// Streams through 80 KiB repeatedly in user mode: a load, and a store if `store`.
fn hog(store: bool, timer: bool) -> Program {
    let mut p = Program::default();
    p.user(timer);
    p.li(S0, MEMORY_BASE + 0x10000)
        .li(S1, MEMORY_BASE + 0x24000);
    let pass = p.here();
    p.addi(A0, S0, 0);
    let again = p.here();
    p.load(A1, A0, 0);
    if store {
        p.addi(A1, A1, 1).store(A1, A0, 0);
    }
    p.addi(A0, A0, 64);
    p.branch(4, A0, S1, again);
    p.branch(0, ZERO, ZERO, pass);
    p
}

fn regulated(program: &Program, rate: u64, amount: u64, limit: u64) -> Machine {
    let config = platform(PlatformKind::Tiled, 1, 1);
    let mut machine = Machine::new(&config).unwrap();
    give_memory(&mut machine, 0, 100, 0);
    let unit = machine.unit_mut(0).unwrap();
    unit.set_bucket(0, 0, rate, amount, limit);
    start(&mut machine, 0, program);
    machine
}

fn moved(machine: &Machine) -> u64 {
    let memory = &machine.statistics().memories[0].counters;
    memory.read_bytes + memory.written_bytes
}

fn waited(machine: &Machine) -> Tick {
    let owner = Owner::new(0, dtu::TILEMUX_ACTIVITY);
    let bookings = machine.ledger().bookings();
    let mine = bookings
        .iter()
        .filter(|b| b.victim == owner && b.culprit == owner && b.resource == Resource::Bucket);
    mine.map(|b| b.ticks).sum()
}

#[test]
fn token_buckets_slow_cache_misses_down() {
    // 64 MB/s: in 200 us at most 12800 bytes and the initial amount of 64; the last access may evict two lines.
    let mut machine = regulated(&hog(true, false), 64_000_000, 64, 4096);
    assert_eq!(
        machine.run(RunLimit { ticks: 800_000 }, None),
        Outcome::Limit
    );
    let bytes = moved(&machine);
    assert!(bytes <= 12_800 + 64 + 2 * 64 && bytes > 11_000, "{bytes}");
    // Nearly all of the time is a wait for tokens, and is recorded as such.
    let waited = waited(&machine);
    assert!((700_000..=800_000).contains(&waited), "{waited}");
}

/// A store that hits and a line that is written to memory, repeatedly: there are no misses, yet the traffic is regulated.
#[test]
fn token_buckets_slow_cache_management_down() {
    for what in [1, 2] {
        let mut p = Program::default();
        // CBO.CLEAN and CBO.FLUSH in user mode.
        p.li(T0, 1 << 6).csrw(0x30a, T0).csrw(0x10a, T0);
        p.user(false);
        p.li(S0, MEMORY_BASE + 0x10000);
        let again = p.here();
        p.store(S0, S0, 0)
            .word(what << 20 | S0 << 15 | 2 << 12 | 0x0f);
        p.branch(0, ZERO, ZERO, again);
        let mut machine = regulated(&p, 64_000_000, 64, 4096);
        let ended = machine.run(RunLimit { ticks: 800_000 }, None);
        assert_eq!(ended, Outcome::Limit);
        let bytes = moved(&machine);
        assert!(
            bytes <= 12_800 + 64 + 4 * 64 && bytes > 11_000,
            "{what}: {bytes}"
        );
    }
}

#[test]
fn machine_mode_borrows_and_no_more() {
    let mut machine = regulated(&stream(0x14000), 64_000_000, 64, 4096);
    machine.unit_mut(0).unwrap().set_borrowed(PRIVILEGED_CREDIT);
    machine.run(RunLimit { ticks: 800_000 }, None);
    let bytes = moved(&machine);
    let credit = u64::from(PRIVILEGED_CREDIT);
    // The last lines before the credit was used up: as many as there are miss registers, each evicting two.
    let posted = 8 * 2 * 64;
    assert!(bytes > 11_000 + credit, "{bytes}");
    assert!(bytes <= 12_800 + 64 + credit + posted, "{bytes}");
    // If the kernel allows nothing, TileMux waits like an application.
    let mut machine = regulated(&stream(0x14000), 64_000_000, 64, 4096);
    machine.run(RunLimit { ticks: 800_000 }, None);
    let bytes = moved(&machine);
    assert!(
        (11_000..=12_800 + 64 + 64 + posted).contains(&bytes),
        "{bytes}"
    );
}

/// How long after the timer fired each of its interrupts was taken.
fn delays(machine: &Machine) -> Vec<Tick> {
    let markers = machine.markers();
    let taken: Vec<_> = markers.iter().filter(|m| m.kind == TAKEN).collect();
    let distance = DISTANCE as Tick * 400;
    let first = taken.first().map_or(0, |m| m.tick);
    // The timer's grid: the first interrupt is late by less than one distance.
    let phase = first / 400 * 400;
    let delay = |m: &&Marker| {
        (m.tick + distance)
            .saturating_sub(phase + (m.value - 1) * distance)
            .saturating_sub(distance)
    };
    taken.iter().map(delay).collect()
}

#[test]
fn an_interrupt_gets_the_hart_off_an_access_that_waits() {
    // 64 KB/s: a line takes a millisecond, 50 interrupts.
    for store in [false, true] {
        let mut machine = regulated(&hog(store, true), 64_000, 64, 4096);
        machine.unit_mut(0).unwrap().set_borrowed(PRIVILEGED_CREDIT);
        machine.run(RunLimit { ticks: 16_000_000 }, None);
        let delays = delays(&machine);
        assert!(delays.len() > 150, "{}", delays.len());
        // A wait that cannot be interrupted would cost up to 4 000 000 ticks; a memory access takes a few hundred.
        let worst = delays.iter().max().copied().unwrap_or(0);
        assert!(worst < 2000, "{worst}");
        // A withdrawn access has taken no tokens, and a waiting one keeps its place: 4 ms bring 256 bytes.
        let bytes = moved(&machine);
        let credit = u64::from(PRIVILEGED_CREDIT);
        assert!(
            bytes >= 64 + 3 * 64 && bytes <= 64 + 256 + credit,
            "{bytes}"
        );
    }
}

#[test]
fn an_access_that_is_withdrawn_is_made_again_and_only_once() {
    // Every turn increments the counter in memory. If no access happens twice or not at all, the sum of all words is the number of turns.
    let turns = |timer: bool| {
        let mut p = Program::default();
        p.user(timer);
        p.li(S0, MEMORY_BASE + 0x10000)
            .li(S1, MEMORY_BASE + 0x24000)
            .addi(A0, S0, 0);
        let again = p.here();
        p.load(A1, A0, 0).addi(A1, A1, 1).store(A1, A0, 0);
        // amoadd.d a1, a1, (a0)
        p.word(A1 << 20 | A0 << 15 | 3 << 12 | A1 << 7 | 0x2f);
        p.addi(A0, A0, 64);
        p.branch(4, A0, S1, again);
        let end = p.here();
        p.branch(0, ZERO, ZERO, end);
        let mut machine = regulated(&p, 32_000_000, 64, 4096);
        machine.run(RunLimit { ticks: 40_000_000 }, None);
        let lines = (MEMORY_BASE + 0x10000..MEMORY_BASE + 0x24000).step_by(64);
        let word = |at| {
            let mut word = [0; 8];
            machine.peek(0, at, &mut word).unwrap();
            u64::from_le_bytes(word)
        };
        lines.map(word).collect::<Vec<_>>()
    };
    assert!(turns(false).iter().all(|word| *word == 2));
    assert_eq!(turns(true), turns(false));
}

#[test]
fn windows_do_not_change_withdrawals() {
    let begin = || regulated(&hog(true, true), 4_000_000, 64, 4096);
    let mut whole = begin();
    whole.run(RunLimit { ticks: 2_400_000 }, None);
    let mut pieces = begin();
    assert_eq!(in_pieces(&mut pieces, 2_400_000), Outcome::Limit);
    assert_eq!(whole.markers(), pieces.markers());
    assert_eq!(whole.digest(), pieces.digest());
    let mut seen = begin();
    seen.watch(0, None).unwrap();
    seen.run(RunLimit { ticks: 2_400_000 }, None);
    assert_eq!(whole.digest(), seen.digest());
}
