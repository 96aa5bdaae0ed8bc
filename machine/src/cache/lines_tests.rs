//! Compares data in lines with a plain memory: one hart's loads and stores pass the levels, while reads and writes of memory overtake
//! each other as on two networks.

use super::super::*;
use crate::cache::HeldLine;
use crate::config::{PrefetcherConfig, PrefetcherKind, Replacement, UnitPort};
use crate::ledger::Ledger;
use crate::local_token::{LocalToken, Part};
use crate::noc::Account;
use crate::types::Tick;
use proptest::prelude::*;
use std::collections::BTreeMap;

const OWNER: Owner = Owner::new(0, 0);
/// Lines that the hart uses: more than all levels can hold.
const LINES: u64 = 96;

type Bytes = [u8; 64];

/// Memory behind two networks: reads and writes are served in any order among each other, writes in the order in which they left.
#[derive(Default)]
struct Far {
    memory: BTreeMap<u64, Bytes>,
    reads: Vec<(u32, u64)>,
    /// Served reads on their way back.
    answers: Vec<(u32, Bytes)>,
    writes: Vec<(Tick, u32, u64, Bytes)>,
    acknowledgements: Vec<(u32, u64)>,
    ledger: Ledger,
}

impl Lower for Far {
    fn read(&mut self, _: Tick, address: u64, _: Owner, tag: u32, _: Account) {
        self.reads.push((tag, address));
    }
    fn write_back(&mut self, at: Tick, address: u64, _: Owner, tag: u32, bytes: &[u8]) {
        let bytes = bytes.try_into().unwrap();
        self.writes.push((at, tag, address, bytes));
        self.writes.sort_by_key(|w| w.0);
    }
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}

/// An access that waits for its line: address, and the byte that it stores.
#[derive(Clone, Copy, Debug)]
struct Late(u64, Option<u8>);

/// Lines that only the unit writes, each time with a greater number in all bytes.
const UNITS: std::ops::Range<u64> = 0x1_0000 + 8 * 64..0x1_0000 + 12 * 64;

/// A line of the unit.
#[derive(Clone, Copy, Debug, Default)]
struct Version {
    /// The unit wants to write this value. Below: it has written it, and a reader has seen it.
    wanted: u8,
    written: u8,
    seen: u8,
}

/// A hart that checks what it loads against a plain memory.
#[derive(Default)]
struct Checker {
    late: Vec<Late>,
    flat: BTreeMap<u64, u8>,
    performed: usize,
    /// The lines of the unit, if there is one.
    versions: Option<BTreeMap<u64, Version>>,
}

impl Checker {
    fn perform(&mut self, Late(address, store): Late, byte: &mut u8) {
        self.performed += 1;
        if UNITS.contains(&address)
            && let Some(versions) = &mut self.versions
        {
            let version = versions.entry(address & !63).or_default();
            assert!(
                (version.seen..=version.wanted).contains(byte),
                "{address:#x} {byte} {version:?}"
            );
            version.seen = *byte;
            return;
        }
        let before = self.flat.get(&address).copied().unwrap_or(0);
        assert_eq!(*byte, before, "at {address:#x}");
        if let Some(value) = store {
            *byte = value;
            self.flat.insert(address, value);
        }
    }

    /// Everything that waits for this line, in order.
    fn perform_line(&mut self, line: u64, bytes: &mut [u8]) -> bool {
        let (now, later) = self.late.iter().partition(|l| l.0 & !63 == line);
        self.late = later;
        let now: Vec<Late> = now;
        for late in &now {
            self.perform(*late, &mut bytes[(late.0 & 63) as usize]);
        }
        now.iter().any(|late| late.1.is_some())
    }
}

impl Harts for Checker {
    fn take_line(&mut self, _: u32, line: &mut HeldLine<'_>) {
        line.written |= self.perform_line(line.address, line.bytes);
    }
}

struct World {
    caches: Hierarchy,
    far: Far,
    hart: Checker,
    done: Vec<Done>,
    now: Tick,
    token: u32,
    /// Accesses of the unit that wait: token, address, whether it writes.
    pending: Vec<(LocalToken, u64, bool)>,
}

impl World {
    fn new(second: bool, replacement: Replacement) -> Self {
        Self::with(second, replacement, UnitPort::Second)
    }

    fn with(second: bool, replacement: Replacement, port: UnitPort) -> Self {
        Self::fetching_ahead(second, replacement, port, 0)
    }

    /// Bit 0 of `ahead`: the data cache fetches ahead; bit 1: the second level does; bit 2: by instructions.
    fn fetching_ahead(second: bool, replacement: Replacement, port: UnitPort, ahead: u8) -> Self {
        let kind = match ahead & 4 {
            0 => PrefetcherKind::Stream {
                streams: 4,
                stride: 4,
                training: 2,
                distance: 3,
            },
            _ => PrefetcherKind::Stride {
                entries: 16,
                ways: 4,
                bits: 3,
                initial: 4,
                threshold: 50,
            },
        };
        let prefetcher = PrefetcherConfig {
            kind,
            degree: 3,
            page: 4096,
        };
        let with = |size, ways, ahead: bool| CacheConfig {
            size,
            ways,
            replacement,
            prefetcher: ahead.then(|| prefetcher.clone()),
            ..CacheConfig::default()
        };
        let l2 = with(2048, 4, ahead & 2 != 0);
        let l1i = with(512, 2, false);
        let l1d = with(512, 2, ahead & 1 != 0);
        let mut caches = Hierarchy::new(&l1i, &l1d, second.then_some(&l2), port, 7);
        caches.expect_own_bytes();
        Self {
            caches,
            far: Far::default(),
            hart: Checker::default(),
            done: Vec::new(),
            now: 0,
            token: 0,
            pending: Vec::new(),
        }
    }

    /// An access of the unit, unless one to the same line waits.
    fn unit(&mut self, address: u64, length: usize, value: Option<u8>) {
        let line = address & !63;
        if self.pending.iter().any(|p| p.1 & !63 == line) {
            return;
        }
        let write = value.is_some();
        let value = match UNITS.contains(&address) && write {
            true => {
                let versions = self.hart.versions.get_or_insert_default();
                let version = versions.entry(line).or_default();
                if version.wanted == u8::MAX {
                    return;
                }
                version.wanted += 1;
                Some(version.wanted)
            }
            false => value,
        };
        let token = Part::Unit.token(&mut self.token);
        let (now, bytes) = (self.now, length as u32);
        let written = value.map(|value| vec![value; length]);
        self.caches
            .carry(token, address, length, written.as_deref());
        self.pending.push((token, address, write));
        let lower = &mut self.far;
        let at = self
            .caches
            .unit_access(now, address, bytes, write, OWNER, token, lower);
        if at.is_some() {
            self.unit_done(token);
        }
    }

    fn unit_done(&mut self, token: LocalToken) {
        let Some(position) = self.pending.iter().position(|p| p.0 == token) else {
            assert!(
                self.caches.take_carried(token).is_none(),
                "it was forgotten"
            );
            return;
        };
        let (_, address, write) = self.pending.remove(position);
        let carried = self.caches.take_carried(token).expect("it was carried");
        let versions = self.hart.versions.get_or_insert_default();
        if UNITS.contains(&address) {
            let version = versions.entry(address & !63).or_default();
            let byte = carried.bytes()[0];
            assert!(carried.bytes().iter().all(|b| *b == byte), "{carried:?}");
            match write {
                true => version.written = byte,
                false => assert_eq!(byte, version.written, "{address:#x}"),
            }
            return;
        }
        for (byte, at) in carried.bytes().iter().zip(address..) {
            match write {
                true => {
                    self.hart.flat.insert(at, *byte);
                }
                false => assert_eq!(
                    *byte,
                    self.hart.flat.get(&at).copied().unwrap_or(0),
                    "at {at:#x}"
                ),
            }
        }
    }

    /// Cancels the oldest waiting access of the unit.
    fn forget(&mut self) {
        if !self.pending.is_empty() && !UNITS.contains(&self.pending[0].1) {
            let (token, ..) = self.pending.remove(0);
            self.caches.forget(token);
        }
    }

    /// Tells the unit what is done.
    fn tell(&mut self) {
        for done in std::mem::take(&mut self.done) {
            if let Waiter::Unit { token, .. } = done.waiter {
                self.unit_done(token);
            }
        }
    }

    fn access(&mut self, address: u64, store: Option<u8>) {
        if self.hart.late.len() >= 6 {
            return;
        }
        let write = store.is_some();
        let (now, lower) = (self.now, &mut self.far);
        let near = self.caches.data_near(now, address, write, OWNER, lower);
        let outcome =
            near.unwrap_or_else(|| self.caches.data_miss(now, address, write, OWNER, lower));
        let late = Late(address, store);
        if let Outcome::Pending(_) = outcome {
            return self.hart.late.push(late);
        }
        if UNITS.contains(&address)
            && let Some(versions) = &mut self.hart.versions
        {
            // Earlier writes are there.
            let version = versions.entry(address & !63).or_default();
            version.seen = version.seen.max(version.written);
        }
        let place = self.caches.data_place(address);
        let line = place & !63;
        let mut bytes: Bytes = self.caches.data_bytes()[line..line + 64]
            .try_into()
            .unwrap();
        if self.hart.perform_line(address & !63, &mut bytes) {
            self.caches.wrote(place, 0);
        }
        self.hart.perform(late, &mut bytes[(address & 63) as usize]);
        self.caches.data_bytes_mut()[line..line + 64].copy_from_slice(&bytes);
    }

    fn fetch(&mut self, address: u64) {
        if self.caches.fetch_hit(self.now, address).is_some() {
            return;
        }
        let lower = &mut self.far;
        let outcome = self.caches.fetch_miss(self.now, address, OWNER, lower);
        if let Outcome::Ready(_) = outcome {
            // The fetch must see the hart's stores now.
            let bytes = self.caches.instruction_line(address).unwrap();
            for (offset, byte) in bytes.iter().enumerate() {
                if self.hart.versions.is_some() {
                    break;
                }
                let flat = self.hart.flat.get(&(address + offset as u64));
                assert_eq!(*byte, flat.copied().unwrap_or(0));
            }
        }
    }

    /// Writes a line to memory, as the hart does when none of its accesses waits for the line.
    fn manage(&mut self, address: u64, what: Management) {
        let line = address & !63;
        if self.hart.late.iter().all(|late| late.0 & !63 != line) {
            let (lower, waiter) = (&mut self.far, self.caches.manager());
            let outcome = self
                .caches
                .manage(self.now, line, what, OWNER, waiter, lower);
            if let Ok(outcome) = outcome {
                let here = self.caches.peek(line).is_some();
                assert!(
                    what == Management::Clean || matches!(outcome, Outcome::Pending(_)) == here
                );
            }
        }
    }

    /// Memory or the network does one thing.
    fn outside(&mut self, what: u8, which: usize) {
        self.now += 3;
        match what {
            0 if !self.far.reads.is_empty() => {
                let index = which % self.far.reads.len();
                let (tag, line) = self.far.reads.remove(index);
                let bytes = self.far.memory.get(&line).copied().unwrap_or([0; 64]);
                self.far.answers.push((tag, bytes));
            }
            1 if !self.far.writes.is_empty() => {
                let (_, tag, line, bytes) = self.far.writes.remove(0);
                self.far.memory.insert(line, bytes);
                self.far.acknowledgements.push((tag, line));
            }
            2 if !self.far.answers.is_empty() => {
                let index = which % self.far.answers.len();
                let (tag, bytes) = self.far.answers.remove(index);
                let (lower, hart) = (&mut self.far, &mut self.hart);
                self.caches
                    .complete(self.now, tag, &bytes, lower, hart, &mut self.done);
            }
            3 if !self.far.acknowledgements.is_empty() => {
                // The acknowledgements of one line come back in order.
                let index = which % self.far.acknowledgements.len();
                let line = self.far.acknowledgements[index].1;
                let mut all = self.far.acknowledgements.iter();
                let index = all.position(|a| a.1 == line).unwrap();
                let (tag, _) = self.far.acknowledgements.remove(index);
                let (lower, hart) = (&mut self.far, &mut self.hart);
                self.caches
                    .written(self.now, tag, OWNER, lower, hart, &mut self.done);
            }
            _ => {}
        }
        self.tell();
    }

    /// Runs until nothing is under way.
    fn drain(&mut self) {
        while self.caches.misses_under_way() + self.caches.write_backs_under_way() > 0 {
            for what in 0..4 {
                self.outside(what, 0);
            }
        }
        assert!(self.hart.late.is_empty(), "{:?}", self.hart.late);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_load_finds_what_flat_memory_has(
        steps in prop::collection::vec((0u8..9, 0..LINES, 0u64..64, any::<u8>()), 1..3000),
        second in any::<bool>(),
        kind in 0usize..3,
        ahead in 0u8..8,
    ) {
        let replacement = [Replacement::Lru, Replacement::TreePlru, Replacement::Random][kind];
        let mut world = World::fetching_ahead(second, replacement, UnitPort::Second, ahead);
        for (what, line, offset, value) in steps {
            // A few lines are used often.
            let line = if value & 3 == 0 { line } else { line % 12 };
            let address = 0x1_0000 + line * 64 + offset;
            world.now += 1;
            world.caches.set_pc(offset & 6);
            match what {
                0 | 1 => world.access(address, None),
                2 | 3 => world.access(address, Some(value)),
                4 => world.fetch(address & !63),
                5 if value == 0 => world.caches.empty_instruction_cache(),
                5 if value < 8 => world.manage(address, Management::Clean),
                5 if value < 24 => world.manage(address, Management::Flush),
                5 if value < 48 => {
                    let lower = &mut world.far;
                    let (line, fetch) = (address & !63, value & 1 != 0);
                    world.caches.prefetch(world.now, line, fetch, OWNER, lower);
                }
                _ => world.outside(value & 3, (value >> 2).into()),
            }
        }
        world.drain();
        for (address, value) in &world.hart.flat {
            let (line, offset) = (address & !63, (address & 63) as usize);
            let above = world.caches.peek(line).map(|bytes| bytes[offset]);
            let below = || world.far.memory.get(&line).map_or(0, |bytes| bytes[offset]);
            prop_assert_eq!(above.unwrap_or_else(below), *value);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// The unit and the hart use different bytes of the same lines, and lines that only the unit writes, whole or in parts.
    #[test]
    fn a_unit_and_a_hart_find_what_flat_memory_has(
        steps in prop::collection::vec((0u8..12, 0..LINES, 0u64..64, any::<u8>()), 1..3000),
        second in any::<bool>(),
        first in any::<bool>(),
        kind in 0usize..3,
        ahead in 0u8..8,
    ) {
        let replacement = [Replacement::Lru, Replacement::TreePlru, Replacement::Random][kind];
        let port = if first { UnitPort::First } else { UnitPort::Second };
        let mut world = World::fetching_ahead(second, replacement, port, ahead);
        world.hart.versions = Some(BTreeMap::new());
        for (what, line, offset, value) in steps {
            let line = if value & 3 == 0 { line } else { line % 14 };
            let start = 0x1_0000 + line * 64;
            let address = start + offset % 32;
            let of_unit = UNITS.contains(&start);
            let from = 32 + offset % 32;
            let length = (1 + u64::from(value) % (64 - from)) as usize;
            world.now += 1;
            match what {
                0 | 1 => world.access(start + offset % 32, None),
                2 | 3 if !of_unit => world.access(address, Some(value)),
                4 => world.fetch(start),
                5 if value < 8 => world.manage(address, Management::Clean),
                5 if value < 24 => world.manage(address, Management::Flush),
                6 if of_unit => world.unit(start, 64, Some(0)),
                6 => world.unit(start + from, length, Some(value)),
                7 => world.unit(start + from, length, None),
                8 if value < 16 => world.forget(),
                _ => world.outside(value & 3, (value >> 2).into()),
            }
        }
        world.drain();
        prop_assert!(world.pending.is_empty(), "{:?}", world.pending);
        for (address, value) in &world.hart.flat {
            let (line, offset) = (address & !63, (address & 63) as usize);
            let above = world.caches.peek(line).map(|bytes| bytes[offset]);
            let below = || world.far.memory.get(&line).map_or(0, |bytes| bytes[offset]);
            prop_assert_eq!(above.unwrap_or_else(below), *value);
        }
        for (line, version) in world.hart.versions.iter().flatten() {
            let above = world.caches.peek(*line).map(|bytes| bytes[5]);
            let below = || world.far.memory.get(line).map_or(0, |bytes| bytes[5]);
            prop_assert_eq!(above.unwrap_or_else(below), version.written);
            prop_assert_eq!(version.written, version.wanted);
        }
    }
}

#[test]
fn a_line_on_its_way_to_memory_is_not_read_from_there() {
    let mut world = World::new(true, Replacement::Lru);
    world.access(0x1_0000, Some(7));
    world.outside(0, 0);
    world.outside(2, 0);
    // Enough lines of its sets to push it out of both levels, read as memory answers.
    for i in 1..12 {
        world.access(0x1_0000 + i * 0x200, None);
        world.outside(0, 0);
        world.outside(2, 0);
    }
    assert_eq!(world.far.writes.len(), 1);
    assert!(world.caches.peek(0x1_0000).is_some());
    let before = (world.hart.performed, world.far.reads.len());
    world.access(0x1_0000, None);
    assert_eq!(
        (world.hart.performed, world.far.reads.len()),
        (before.0 + 1, before.1)
    );
    world.drain();
}

#[test]
fn a_reservation_ends_when_its_line_leaves() {
    let mut world = World::new(true, Replacement::Lru);
    let comes = |world: &mut World, address| {
        world.access(address, None);
        world.outside(0, 0);
        world.outside(2, 0);
    };
    comes(&mut world, 0x1_0000);
    world.caches.reserve(0x1_0008, 0);
    comes(&mut world, 0x1_0040);
    assert!(!world.caches.take_reservation(0x1_0040, 0));
    world.caches.reserve(0x1_0008, 0);
    assert!(world.caches.take_reservation(0x1_0010, 0));
    assert!(!world.caches.take_reservation(0x1_0010, 0));
    world.caches.reserve(0x1_0008, 0);
    world.caches.reserve(0x1_0010, 1);
    // The other hart writes the line; each hart's own writes do not count.
    world.access(0x1_0000, None);
    let place = world.caches.data_place(0x1_0000);
    world.caches.wrote(place, 1);
    assert!(!world.caches.take_reservation(0x1_0008, 0));
    assert!(world.caches.take_reservation(0x1_0010, 1));
    world.caches.reserve(0x1_0008, 0);
    // Four sets, two ways: the same line comes back with the same value.
    for line in [0x1_0100, 0x1_0200, 0x1_0000] {
        comes(&mut world, line);
    }
    assert!(!world.caches.take_reservation(0x1_0008, 0));
}
