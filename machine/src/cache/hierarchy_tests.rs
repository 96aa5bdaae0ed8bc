//! The caches of one tile together: what each access costs, which requests reach memory, and that no write is lost.
//!
//! Below the caches is a recorder instead of a network, so every expected time is a closed form of latencies.

use super::*;
use crate::config::{Replacement, UnitPort};
use crate::ledger::Resource;
use crate::local_token::Part;

/// A token of the unit for each number.
fn unit(number: u32) -> LocalToken {
    Part::Unit.token(&mut { number })
}

pub(super) const A: Owner = Owner::new(0, 1);
pub(super) const B: Owner = Owner::new(0, 2);

pub(super) fn cache(size: u64, ways: u32, latency: u64, mshrs: u32) -> CacheConfig {
    CacheConfig {
        size,
        ways,
        line: 64,
        cycle: 2,
        latency,
        mshrs,
        replacement: Replacement::Lru,
        way_mask: 0,
        prefetcher: None,
    }
}

/// The level below the caches; remembers all requests.
#[derive(Default)]
pub(super) struct Below {
    pub(super) reads: Vec<(Tick, u64, u32)>,
    writes: Vec<(Tick, u64)>,
    /// Tags of the lines among them that memory has not acknowledged.
    posted: VecDeque<u32>,
    pub(super) accounts: Vec<Account>,
    pub(super) ledger: Ledger,
    /// Lines that are written back stay under way.
    holds: bool,
}

impl Lower for Below {
    fn read(&mut self, at: Tick, address: u64, _: Owner, tag: u32, account: Account) {
        assert_eq!(account.accounted(), at);
        self.reads.push((at, address, tag));
        self.accounts.push(account);
    }
    fn write_back(&mut self, at: Tick, address: u64, _: Owner, tag: u32, _: &[u8]) {
        self.writes.push((at, address));
        self.posted.push_back(tag);
    }
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}

/// Harts that do nothing with their lines: here, only times and states matter.
struct Idle;

impl Harts for Idle {
    fn take_line(&mut self, _: u32, _: &mut HeldLine<'_>) {}
}

pub(super) struct Bench {
    pub(super) tile: Hierarchy,
    pub(super) below: Below,
    pub(super) done: Vec<Done>,
}

impl Bench {
    /// 1-KiB first levels with 2 ways and 2 miss registers, 4-KiB second level with 4 ways, 12 cycles of 2 ticks and
    /// 3 miss registers.
    pub(super) fn new() -> Self {
        Self::with(UnitPort::Second)
    }
    fn with(unit: UnitPort) -> Self {
        let l1 = cache(1024, 2, 2, 2);
        Self {
            tile: Hierarchy::new(&l1, &l1, Some(&cache(4096, 4, 12, 3)), unit, 1),
            below: Below::default(),
            done: Vec::new(),
        }
    }
    pub(super) fn data(&mut self, now: Tick, address: u64, write: bool, owner: Owner) -> Outcome {
        let below = &mut self.below;
        let near = self.tile.data_near(now, address, write, owner, below);
        let outcome =
            near.unwrap_or_else(|| self.tile.data_miss(now, address, write, owner, below));
        self.settle(now);
        outcome
    }
    /// An access of the unit or the card, to its end if that is known.
    fn unit(
        &mut self,
        now: Tick,
        (address, bytes): (u64, u32),
        write: bool,
        owner: Owner,
        token: u32,
    ) -> Option<Tick> {
        let token = unit(token);
        let written = write.then_some(&[7; 64][..bytes as usize]);
        self.tile.carry(token, address, bytes as usize, written);
        let at = self
            .tile
            .unit_access(now, address, bytes, write, owner, token, &mut self.below);
        if at.is_some() {
            self.tile.take_carried(token).expect("it is done");
        }
        self.settle(now);
        at
    }
    pub(super) fn complete(&mut self, now: Tick) -> Arrived {
        self.complete_with(now, &[0; 64])
    }
    fn complete_with(&mut self, now: Tick, bytes: &[u8]) -> Arrived {
        let (_, _, tag) = self.below.reads.remove(0);
        let (below, done) = (&mut self.below, &mut self.done);
        let before = done.len();
        let arrived = self.tile.complete(now, tag, bytes, below, &mut Idle, done);
        self.take(before);
        self.settle(now);
        arrived
    }
    /// Memory has the oldest line that is under way.
    fn written(&mut self, now: Tick) {
        let tag = self.below.posted.pop_front().expect("a line is under way");
        let (below, done) = (&mut self.below, &mut self.done);
        let before = done.len();
        self.tile.written(now, tag, A, below, &mut Idle, done);
        self.take(before);
    }
    /// The unit takes the bytes of its accesses that were done since.
    fn take(&mut self, before: usize) {
        for done in &self.done[before..] {
            if let Waiter::Unit { token, .. } = done.waiter {
                self.tile.take_carried(token);
            }
        }
    }
    /// Memory has all lines, unless they are to stay under way.
    fn settle(&mut self, now: Tick) {
        while !self.below.holds && !self.below.posted.is_empty() {
            self.written(now);
        }
    }
    fn fill(&mut self, now: Tick, address: u64, write: bool, owner: Owner) {
        if let Outcome::Pending(_) = self.data(now, address, write, owner) {
            self.complete(now + 100);
        }
    }
}

#[test]
fn hit_times_of_the_levels() {
    let mut b = Bench::new();
    // Miss everywhere: the request leaves when the second level has looked, after 12 cycles of 2 ticks.
    assert_eq!(b.data(100, 0x1000, false, A), Outcome::Pending(1));
    assert_eq!(b.below.reads[0], (124, 0x1000, 0));
    b.complete(500);
    assert_eq!(
        b.done,
        [Done {
            waiter: Waiter::Data {
                token: 1,
                write: false
            },
            line: 0x1000,
            at: 500
        }]
    );
    // Now in both levels.
    assert_eq!(b.data(600, 0x1038, false, A), Outcome::Hit);
    // Two more lines of the same first-level set (8 sets of 64 bytes) push it out; the second level still has it.
    b.fill(1000, 0x1200, false, A);
    b.fill(2000, 0x1400, false, A);
    assert_eq!(b.data(3000, 0x1000, false, A), Outcome::Ready(3024));
    // The line is on its way: an access before 3024 gets it then, a later one is a hit.
    assert_eq!(b.data(3010, 0x1008, false, A), Outcome::Ready(3024));
    assert_eq!(b.data(3024, 0x1008, false, A), Outcome::Hit);
}

#[test]
fn misses_of_one_line_join() {
    let mut b = Bench::new();
    assert_eq!(b.data(0, 0x1000, false, A), Outcome::Pending(1));
    assert_eq!(b.data(2, 0x1008, true, A), Outcome::Pending(2));
    assert_eq!(b.unit(4, (0x1010, 16), false, B, 77), None);
    assert_eq!(b.below.reads.len(), 1);
    b.complete(300);
    assert_eq!(b.done.len(), 3);
    assert_eq!(
        b.done[2],
        Done {
            waiter: Waiter::Unit {
                token: unit(77),
                write: false
            },
            line: 0x1000,
            at: 300
        }
    );
    // The store made the line dirty: pushed out of both levels, it is written back once.
    for i in 1..=8 {
        b.fill(1000 * i, 0x1000 + 0x400 * i, false, A);
    }
    assert_eq!(b.below.writes.len(), 1);
    assert_eq!(b.below.writes[0].1, 0x1000);
}

#[test]
fn full_miss_registers_make_wait_in_order() {
    let mut b = Bench::new();
    assert_eq!(b.data(0, 0x1000, false, A), Outcome::Pending(1));
    assert_eq!(b.data(10, 0x2000, false, A), Outcome::Pending(2));
    // Two registers of the data cache are taken.
    assert_eq!(b.data(20, 0x3000, false, B), Outcome::Pending(3));
    assert_eq!(b.data(30, 0x3008, false, B), Outcome::Pending(4));
    assert_eq!(b.below.reads.len(), 2);
    b.complete(200);
    // The third starts at 200, 24 ticks for the second level; it waited 180 ticks for A. The fourth joins it, and waited 170.
    assert_eq!(b.below.reads[1], (224, 0x3000, 0));
    assert_eq!(
        b.below.accounts[2],
        Account {
            started: 44,
            service: 0,
            waited: 180,
            blocked: 180,
        }
    );
    let all = b.below.ledger.bookings();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].victim, all[0].culprit, all[0].ticks), (B, A, 350));
    assert_eq!((all[0].count, all[0].longest), (2, 180));
    b.complete(300);
    b.complete(400);
    assert_eq!(
        b.done.iter().map(|d| d.at).collect::<Vec<_>>(),
        [200, 300, 400, 400]
    );
    assert_eq!(b.tile.misses_under_way(), 0);
}

#[test]
fn full_registers_with_known_end_delay_the_access() {
    let mut b = Bench::new();
    for line in [0x1000, 0x1040, 0x1080] {
        b.fill(0, line, false, A);
    }
    // Push all three out of the first level (sets 0, 1, 2), not out of the second.
    for line in [0x1200, 0x1400, 0x1240, 0x1440, 0x1280, 0x1480] {
        b.fill(1000, line, false, A);
    }
    assert_eq!(b.data(5000, 0x1000, false, A), Outcome::Ready(5024));
    assert_eq!(b.data(5002, 0x1040, false, A), Outcome::Ready(5026));
    // Both registers are taken until 5024: the third starts then.
    assert_eq!(b.data(5004, 0x1080, false, B), Outcome::Ready(5048));
    // The two are on their way until then, no matter which access waits for their registers.
    assert_eq!(b.data(5010, 0x1000, false, A), Outcome::Ready(5024));
    assert_eq!(b.data(5012, 0x1040, false, A), Outcome::Ready(5026));
    assert_eq!(b.data(5024, 0x1000, false, A), Outcome::Hit);
    // The first one's arrival ended the wait.
    assert_eq!(waits(&b, B), [(A, 20)]);
}

/// The owners whose miss registers of the data cache an owner waited for, and for how long.
pub(super) fn waits(b: &Bench, victim: Owner) -> Vec<(Owner, Tick)> {
    let all = b.below.ledger.bookings();
    let own = all.iter().filter(|booking| booking.victim == victim);
    let registers = own.filter(|booking| booking.resource == Resource::Mshr(Level::L1d));
    registers
        .map(|booking| (booking.culprit, booking.ticks))
        .collect()
}

#[test]
fn each_stretch_of_a_wait_is_booked_to_whom_ended_it() {
    let mut b = Bench::new();
    let c = Owner::new(0, 3);
    b.data(0, 0x1000, false, A);
    b.data(10, 0x2000, false, B);
    b.data(20, 0x3000, false, c);
    b.data(30, 0x4000, false, c);
    // A's line comes: the first access of C continues, and the second one comes to the front.
    b.complete(200);
    assert_eq!(waits(&b, c), [(A, 180 + 170)]);
    // B's line comes: the second one continues.
    b.complete(300);
    assert_eq!(waits(&b, c), [(A, 180 + 170), (B, 100)]);
    let waited: Vec<Tick> = b.below.accounts.iter().map(|one| one.waited).collect();
    assert_eq!(waited, [0, 0, 180, 270]);
}

impl Bench {
    /// A fetch of the hart.
    fn fetch(&mut self, now: Tick, address: u64, owner: Owner) -> Outcome {
        let outcome = match self.tile.fetch_hit(now, address) {
            Some(outcome) => outcome,
            None => self.tile.fetch_miss(now, address, owner, &mut self.below),
        };
        self.settle(now);
        outcome
    }

    /// The owners for whom an owner waited, for which cache's registers and how long.
    fn register_waits(&self, victim: Owner) -> Vec<(Owner, Resource, Tick)> {
        let all = self.below.ledger.bookings();
        let own = all.iter().filter(|booking| booking.victim == victim);
        own.map(|booking| (booking.culprit, booking.resource, booking.ticks))
            .collect()
    }
}

#[test]
fn waits_for_registers_of_instructions_name_their_owner() {
    let mut b = Bench::new();
    b.fetch(0, 0x1000, A);
    b.fetch(10, 0x2000, A);
    b.fetch(20, 0x3000, B);
    b.complete(200);
    assert_eq!(b.register_waits(B), [(A, Resource::Mshr(Level::L1i), 180)]);
    assert_eq!(b.below.reads[1], (224, 0x3000, 0));
}

/// The second level has three registers, two for data of A and one for its instructions. B has a register of its first level for either kind of
/// access, and waits when the second level has been looked up.
#[test]
fn waits_for_registers_of_the_second_level_name_their_owner() {
    let c = Owner::new(0, 3);
    for fetch in [true, false] {
        let mut b = Bench::new();
        b.data(0, 0x1000, false, A);
        b.fetch(0, 0x2000, c);
        let other = if fetch { 0x3000 } else { 0x4000 };
        match fetch {
            true => b.data(0, other, false, A),
            false => b.fetch(0, other, c),
        };
        match fetch {
            true => b.fetch(100, 0x5000, B),
            false => b.data(100, 0x5000, false, B),
        };
        assert_eq!(b.below.reads.len(), 3);
        // A line of the other kind comes first.
        let first = if fetch { A } else { c };
        if !fetch {
            b.below.reads.swap(0, 1);
        }
        b.complete(200);
        let waited = 200 - (100 + 24);
        assert_eq!(
            b.register_waits(B),
            [(first, Resource::Mshr(Level::L2), waited)]
        );
        // It looks the line up again.
        let last = b.below.reads.last().expect("it reads");
        assert_eq!((last.0, last.1), (224, 0x5000));
        assert_eq!(b.below.accounts[3].waited, waited);
    }
}

/// An access that gets a register of the second level, and finds those of its first level taken then, has waited for both.
#[test]
fn each_level_has_its_part_of_a_wait() {
    let c = Owner::new(0, 3);
    let mut b = Bench::new();
    b.fetch(0, 0x3000, c);
    b.fetch(0, 0x2000, c);
    b.data(0, 0x1000, false, A);
    // The second level has no register any more, the first one has.
    b.data(100, 0x5000, false, B);
    // Now neither has: an access joins the line that was fetched.
    b.data(150, 0x2000, false, A);
    b.complete(200);
    b.complete(300);
    let (l1d, l2) = (Resource::Mshr(Level::L1d), Resource::Mshr(Level::L2));
    assert_eq!(b.register_waits(B), [(c, l1d, 100), (c, l2, 76)]);
}

/// A bench whose second level has these lines of different sets, and whose first level has none of them.
fn only_in_the_second(lines: &[u64]) -> Bench {
    let mut b = Bench::new();
    for &line in lines {
        for (i, address) in [line, line + 0x200, line + 0x400].into_iter().enumerate() {
            b.fill(1000 * i as Tick, address, false, A);
        }
    }
    b.done.clear();
    b
}

#[test]
fn what_waited_for_a_register_forgets_no_line_on_its_way() {
    let mut b = only_in_the_second(&[0x0, 0x40]);
    b.data(10_000, 0x8_0100, false, A);
    b.data(10_000, 0x8_0140, false, A);
    // Both registers wait for memory. Two accesses to one line, and one to another.
    for address in [0x0, 0x8, 0x40] {
        b.data(10_010, address, false, B);
    }
    b.complete(10_500);
    let times: Vec<Tick> = b.done.iter().map(|done| done.at).collect();
    // The second access to the first line finds it on its way; the other line uses the same register after it.
    assert_eq!(times, [10_500, 10_524, 10_524, 10_548]);
    // So does a later hit.
    assert_eq!(b.data(10_510, 0x10, false, A), Outcome::Ready(10_524));
    // Until the answer all three waited for A's line, and the third one then for B's.
    assert_eq!(waits(&b, B), [(A, 3 * 490), (B, 24)]);
}

#[test]
fn a_register_that_becomes_free_shortens_no_look_up() {
    let mut b = Bench::with(UnitPort::First);
    b.data(0, 0x8000, false, A);
    b.data(0, 0x8040, false, A);
    // The first level takes 2 cycles of 2 ticks. A register is free before.
    assert_eq!(b.unit(100, (0x9000, 16), false, B, 1), None);
    b.complete(102);
    assert_eq!(b.below.reads[1].0, 100 + 4 + 24);
    assert_eq!(waits(&b, B), []);
}

#[test]
fn evictions_by_others_are_booked() {
    let mut b = Bench::new();
    b.fill(0, 0x1000, false, A);
    b.fill(1000, 0x1200, false, B);
    b.fill(2000, 0x1400, false, B);
    // Second-level hit: its latency of 24 ticks is B's fault.
    assert_eq!(b.data(3000, 0x1000, false, A), Outcome::Ready(3024));
    let all = b.below.ledger.bookings();
    assert_eq!(
        (all[0].victim, all[0].culprit, all[0].resource, all[0].ticks),
        (A, B, Resource::CacheSet(Level::L1d), 24)
    );
    // Four lines of the second-level set (16 sets): B pushes A's line out of both levels.
    for i in 1..=5 {
        b.fill(4000 + 1000 * i, 0x1000 + 0x400 * i, false, B);
    }
    assert_eq!(b.data(20_000, 0x1000, false, A), Outcome::Pending(9));
    assert_eq!(
        b.complete(20_500),
        Arrived {
            owner: A,
            culprit: Some(B),
            level: Level::L2
        }
    );
}

#[test]
fn unit_goes_through_the_second_level() {
    let mut b = Bench::new();
    // Whole lines need no read.
    assert_eq!(b.unit(0, (0x1000, 64), true, A, 1), Some(24));
    assert!(b.below.reads.is_empty());
    assert_eq!(b.data(100, 0x1000, false, A), Outcome::Ready(124));
    b.tile.take_first_level_changed();
    // The unit's write takes the line out of the first level.
    assert_eq!(b.unit(200, (0x1000, 16), true, A, 2), Some(224));
    assert!(b.tile.take_first_level_changed());
    assert_eq!(b.data(300, 0x1000, false, A), Outcome::Ready(324));
    // A write to part of a line that no cache has needs a read.
    assert_eq!(b.unit(400, (0x8000, 16), true, A, 3), None);
    assert_eq!(b.below.reads[0].0, 424);
}

#[test]
fn a_refused_read_brings_no_line() {
    let mut b = Bench::new();
    assert_eq!(b.data(0, 1 << 31, false, A), Outcome::Pending(1));
    b.complete_with(24, &[]);
    assert_eq!((b.done[0].line, b.done[0].at), (1 << 31, 24));
    assert_eq!(b.tile.misses_under_way(), 0);
    assert_eq!(b.tile.reach(1 << 31, false), Reach::Below);
}

#[test]
fn without_a_second_level_the_unit_uses_the_data_cache() {
    let l1 = cache(1024, 2, 2, 2);
    let mut b = Bench::new();
    b.tile = Hierarchy::new(&l1, &l1, None, UnitPort::Second, 1);
    assert_eq!(b.unit(0, (0x1000, 64), true, A, 1), Some(4));
    assert_eq!(b.data(10, 0x1000, false, A), Outcome::Hit);
    // A hit takes the first level's 2 cycles of 2 ticks; a miss leaves after that look-up.
    assert_eq!(b.unit(20, (0x2000, 8), false, A, 2), None);
    assert_eq!(b.below.reads[0].0, 24);
    b.complete(50);
    assert_eq!(
        b.done,
        [Done {
            waiter: Waiter::Unit {
                token: unit(2),
                write: false
            },
            line: 0x2000,
            at: 50
        }]
    );
}

/// Accesses that wait for a miss register continue when a second-level hit gives one back, even if no miss is under way. (Found by the
/// conformance programs: such accesses were never woken.)
#[test]
fn waiting_behind_second_level_hits() {
    let mut b = Bench::new();
    let lines = [0x0, 0x40, 0x80];
    for line in lines {
        // Into both levels, then out of the first by two more lines of its set.
        for (i, address) in [line, line + 0x200, line + 0x400].into_iter().enumerate() {
            b.fill(1000 * i as Tick, address, false, A);
        }
    }
    b.done.clear();
    // Both miss registers wait for memory, and the three lines for them.
    assert!(matches!(
        b.data(10_000, 0x8_0100, false, A),
        Outcome::Pending(_)
    ));
    assert!(matches!(
        b.data(10_000, 0x8_0140, false, A),
        Outcome::Pending(_)
    ));
    for line in lines {
        assert!(matches!(
            b.data(10_010, line, false, A),
            Outcome::Pending(_)
        ));
    }
    b.complete(10_500);
    b.complete(10_504);
    let times: Vec<Tick> = b.done.iter().map(|d| d.at).collect();
    // A second-level hit takes 24 ticks. One register is left for the three, which use it one after another. That is decided when
    // the first miss has returned and the second has not.
    assert_eq!(times, [10_500, 10_524, 10_548, 10_572, 10_504]);
}

#[test]
fn a_unit_at_the_first_level_shares_it_with_the_hart() {
    let mut b = Bench::with(UnitPort::First);
    // A whole line is put into the first level after its 2 cycles of 2 ticks, without a read; the hart finds it there.
    assert_eq!(b.unit(0, (0x1000, 64), true, A, 1), Some(4));
    assert!(b.below.reads.is_empty());
    assert_eq!(b.data(100, 0x1000, false, A), Outcome::Hit);
    // The unit sees the hart's latest writes, too.
    b.fill(200, 0x2000, true, A);
    assert_eq!(b.unit(400, (0x2000, 16), false, A, 2), Some(404));
    // A line that only the second level has, because two more lines of the set have pushed it out of the first: 2 cycles of the
    // first level and 12 of the second.
    b.fill(1000, 0x1200, false, A);
    b.fill(2000, 0x1400, false, A);
    b.done.clear();
    assert_eq!(b.unit(3000, (0x1000, 16), true, A, 3), Some(3028));
    // On its way the hart gets it at the same moment, and the unit does not get it earlier either.
    assert_eq!(b.data(3010, 0x1008, false, A), Outcome::Ready(3028));
    assert_eq!(b.unit(3010, (0x1010, 16), false, A, 4), Some(3028));
    // A line that no level has: both levels are looked up, then memory is asked.
    assert_eq!(b.unit(4000, (0x8000, 16), true, A, 5), None);
    assert_eq!(b.below.reads[0].0, 4028);
    b.complete(4100);
    assert_eq!(b.data(4200, 0x8000, false, A), Outcome::Hit);
}

#[test]
fn a_unit_at_the_first_level_takes_its_miss_registers() {
    let mut b = Bench::with(UnitPort::First);
    for (number, line) in [0x8000, 0x8040].into_iter().enumerate() {
        let token = number as u32;
        assert_eq!(b.unit(0, (line, 16), false, B, token), None);
    }
    // Both of the first level's registers are taken: the hart waits for the first one.
    assert!(matches!(b.data(10, 0x9000, false, A), Outcome::Pending(_)));
    assert_eq!(b.below.reads.len(), 2);
    b.complete(300);
    assert_eq!(b.below.reads.len(), 2);
    assert_eq!(b.below.reads[1].0, 324);
    // From 10 to 300 it waited for a register that the unit held.
    let waits: Vec<_> = b.below.ledger.bookings().into_iter().collect();
    let waits: Vec<_> = waits
        .iter()
        .filter(|booking| booking.victim == A)
        .map(|booking| (booking.culprit, booking.resource, booking.ticks))
        .collect();
    assert_eq!(waits, [(B, Resource::Mshr(Level::L1d), 290)]);
}

proptest::proptest! {
    /// Misses of different lines in a lone data cache: each answer gives a register to the first miss that waits. All waits and their
    /// culprits are those of a queue, and match the accounts.
    #[test]
    fn waits_for_registers_are_those_of_a_queue(
        mshrs in 1u32..5,
        steps in proptest::collection::vec((proptest::prelude::any::<bool>(), 0u16..4, 1u64..50), 1..80),
    ) {
        let (l1, mut b) = (cache(1 << 16, 4, 2, mshrs), Bench::new());
        b.tile = Hierarchy::new(&l1, &l1, None, UnitPort::Second, 1);
        let (mut now, mut line) = (0, 0);
        let (mut under_way, mut queue) = (VecDeque::new(), VecDeque::new());
        let mut expected = std::collections::BTreeMap::<(Owner, Owner), Tick>::new();
        let drain = steps.len();
        for (comes, who, gap) in steps.into_iter().chain(vec![(true, 0, 5); drain]) {
            now += gap;
            if !comes {
                let owner = Owner::new(0, who);
                line += 64;
                b.data(now, line, false, owner);
                match under_way.len() < mshrs as usize {
                    true => under_way.push_back(owner),
                    false => queue.push_back((owner, now)),
                }
            } else if let Some(holder) = under_way.pop_front() {
                b.complete(now);
                // All of them have moved up one place.
                for (victim, since) in &mut queue {
                    *expected.entry((*victim, holder)).or_default() += now - *since;
                    *since = now;
                }
                under_way.extend(queue.pop_front().map(|(owner, _)| owner));
            }
        }
        let booked = b.below.ledger.bookings();
        let booked: std::collections::BTreeMap<_, _> =
            booked.iter().map(|b| ((b.victim, b.culprit), b.ticks)).collect();
        proptest::prop_assert_eq!(&booked, &expected);
        let waited: Tick = b.below.accounts.iter().map(|account| account.waited).sum();
        proptest::prop_assert_eq!(waited, expected.values().sum::<Tick>());
    }
}

mod conservation {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The first written line whose newest contents are lost: no cache has it dirty, and it was not written back.
    fn lost(b: &Bench, written: &BTreeSet<u64>, reached: &BTreeSet<u64>) -> Option<u64> {
        let dirty = |line: u64| {
            let second = b.tile.second.as_ref().map(|(cache, _)| cache);
            b.tile.data.cache.is_dirty(line) || second.is_some_and(|cache| cache.is_dirty(line))
        };
        let kept = |line: &&u64| !dirty(**line) && !reached.contains(*line);
        written.iter().find(kept).copied()
    }

    proptest! {
        /// A written line is dirty in some cache or has reached memory, whatever its bytes are.
        #[test]
        fn nothing_written_is_lost(
            steps in prop::collection::vec((0u64..48, any::<bool>(), 0u8..4), 1..400),
            first in any::<bool>(),
        ) {
            let mut b = Bench::with(if first { UnitPort::First } else { UnitPort::Second });
            let (mut written, mut reached) = (BTreeSet::new(), BTreeSet::new());
            for (index, (number, write, who)) in steps.into_iter().enumerate() {
                let (now, line) = (1000 * index as Tick, number * 64);
                let pending = match who {
                    0 => {
                        let bytes = if number % 2 == 0 { 64 } else { 16 };
                        b.unit(now, (line, bytes), write, B, 1).is_none()
                    }
                    1 => {
                        let hit = b.tile.fetch_hit(now, line);
                        hit.is_none()
                            && matches!(
                                b.tile.fetch_miss(now, line, A, &mut b.below),
                                Outcome::Pending(_)
                            )
                    }
                    _ => matches!(b.data(now, line, write, A), Outcome::Pending(_)),
                };
                if pending {
                    b.complete(now + 500);
                }
                if write && who != 1 {
                    written.insert(line);
                    reached.remove(&line);
                }
                reached.extend(b.below.writes.drain(..).map(|(_, line)| line));
                prop_assert_eq!(lost(&b, &written, &reached), None);
                prop_assert_eq!(b.tile.misses_under_way(), 0);
            }
        }
    }
}

#[test]
fn the_write_back_buffer_is_bounded() {
    let mut b = Bench::new();
    b.below.holds = true;
    let most = WRITE_BACKS as usize;
    // Stores to many lines push out dirty lines; no write ends until the test says so.
    let mut at = 0;
    let mut blocked = None;
    for i in 0..200u64 {
        at += 1000;
        let outcome = b.data(at, 0x1_0000 + i * 64, true, A);
        assert!(b.tile.write_backs_under_way() + 2 * b.tile.misses_under_way() <= most);
        match outcome {
            Outcome::Pending(token) if b.below.reads.is_empty() => {
                blocked = Some(token);
                break;
            }
            Outcome::Pending(_) => {
                b.complete(at + 100);
            }
            _ => {}
        }
    }
    let token = blocked.expect("the buffer fills up");
    assert_eq!(b.tile.write_backs_under_way(), most - 1);
    // One place is not enough for what a line can push out; two are. The wait is booked.
    b.done.clear();
    b.written(at + 300);
    assert_eq!(
        (b.below.reads.len(), b.tile.write_backs_under_way()),
        (1, most - 2)
    );
    b.complete(at + 500);
    let waiter = Waiter::Data { token, write: true };
    let ends: Vec<_> = b.done.iter().map(|done| (done.waiter, done.at)).collect();
    assert_eq!(ends, [(waiter, at + 500)]);
    let booked = b.below.ledger.bookings();
    assert!(
        booked
            .iter()
            .any(|b| b.resource == Resource::Mshr(Level::L1d) && b.ticks == 300)
    );
}

proptest::proptest! {
    /// Whatever the hart and the unit do, through either level: no more lines are on their way back than the buffer holds, and every access
    /// is served in the end.
    #[test]
    fn no_program_fills_more_than_the_buffer(
        first in proptest::prelude::any::<bool>(),
        steps in proptest::collection::vec((0u8..6, 0u64..160, proptest::prelude::any::<bool>()), 1..400),
    ) {
        let mut b = Bench::with(if first { UnitPort::First } else { UnitPort::Second });
        b.below.holds = true;
        let (mut asked, mut answered, mut written) = (0usize, 0, 0);
        let settle = |b: &mut Bench, answered: &mut usize| {
            *answered += b.done.len();
            b.done.clear();
        };
        let mut now = 0;
        for (token, (kind, line, write)) in steps.into_iter().enumerate() {
            now += 7;
            let address = 0x1_0000 + line * 64;
            match kind {
                0 | 1 => asked += usize::from(matches!(b.data(now, address, write, A), Outcome::Pending(_))),
                2 | 3 => {
                    let bytes = if kind == 2 { 64 } else { 16 };
                    let done = b.unit(now, (address, bytes), write, B, token as u32);
                    asked += usize::from(done.is_none());
                }
                4 if !b.below.reads.is_empty() => {
                    b.complete(now);
                }
                5 if written < b.below.writes.len() => {
                    written += 1;
                    b.written(now);
                }
                _ => {}
            }
            settle(&mut b, &mut answered);
            proptest::prop_assert!(b.tile.write_backs_under_way() <= WRITE_BACKS as usize);
            proptest::prop_assert_eq!(b.tile.write_backs_under_way(), b.below.writes.len() - written);
        }
        while written < b.below.writes.len() || !b.below.reads.is_empty() {
            now += 7;
            if b.below.reads.is_empty() {
                written += 1;
                b.written(now);
            } else {
                b.complete(now);
            }
            settle(&mut b, &mut answered);
            proptest::prop_assert!(b.tile.write_backs_under_way() <= WRITE_BACKS as usize);
        }
        proptest::prop_assert_eq!(asked, answered);
    }
}

#[path = "second_answers_tests.rs"]
mod second_answers;
