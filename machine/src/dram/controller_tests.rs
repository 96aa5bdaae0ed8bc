//! The controller: closed forms for each policy, then the properties that all policies share, on random requests.

use super::super::banks::{Timing, tests::ddr3};
use super::super::map::AddressMap;
use super::*;
use proptest::prelude::*;

const A: Owner = Owner::new(0, 0);
const B: Owner = Owner::new(1, 0);
const C: Owner = Owner::new(2, 0);

/// DDR3-1600 with one tick per cycle, eight banks with interleaved rows of 8 KiB, and a front end of 10 cycles.
pub fn config(policy: Policy) -> ControllerConfig {
    ControllerConfig {
        timing: ddr3(),
        map: AddressMap {
            size: 1 << 24,
            channels: 1,
            channel_interleave: None,
            banks: 8,
            bank_interleave: Some(8192),
            row: 8192,
            xor: false,
        },
        burst_bytes: 64,
        frontend: 10,
        policy,
        turns: Turns::Tile,
        closed_page: false,
        queue: 32,
        write_queue: None,
    }
}

struct Bench {
    controller: Controller<usize>,
    ledger: Ledger,
    served: Vec<(usize, Tick)>,
    /// The requester whose turn an owner's requests use.
    requester: fn(Owner) -> Owner,
}

impl Bench {
    fn new(config: ControllerConfig) -> Self {
        Self {
            controller: Controller::new(config, 9),
            ledger: Ledger::new(),
            served: Vec::new(),
            requester: |owner| Owner::new(owner.tile, 0),
        }
    }

    fn collect(&mut self) {
        for served in self.controller.take_served() {
            assert_eq!(served.account.accounted(), served.at, "{served:?}");
            self.served.push((served.token, served.at));
        }
    }

    /// Makes all decisions before `until`.
    fn run(&mut self, until: Tick) {
        self.collect();
        while self.controller.next_time() < until {
            self.controller.step(&mut self.ledger, None);
            self.collect();
        }
    }

    fn push(
        &mut self,
        now: Tick,
        token: usize,
        owner: Owner,
        address: u64,
        bytes: u32,
        write: bool,
    ) {
        self.run(now);
        let request = Request {
            token,
            address,
            bytes,
            write,
            owner,
            requester: (self.requester)(owner),
        };
        self.controller.push(now, request, Account::new(now));
        self.collect();
    }

    /// Ends of 64-byte reads and writes that arrive in this order, by number.
    fn ends(&mut self, requests: &[(Tick, Owner, u64, bool)]) -> Vec<Tick> {
        for (token, &(now, owner, address, write)) in requests.iter().enumerate() {
            self.push(now, token, owner, address, 64, write);
        }
        self.run(Tick::MAX);
        let mut ends = self.served.clone();
        ends.sort_unstable();
        assert_eq!(ends.len(), requests.len());
        ends.into_iter().map(|(_, at)| at).collect()
    }

    fn booked(&self, victim: Owner, culprit: Owner, resource: Resource) -> Tick {
        let bookings = self.ledger.bookings();
        let found = bookings
            .iter()
            .filter(|b| (b.victim, b.culprit, b.resource) == (victim, culprit, resource));
        found.map(|b| b.ticks).sum()
    }
}

const POLICIES: [Policy; 3] = [Policy::Fcfs, Policy::FirstReady { cap: 4 }, Policy::Slots];

#[test]
fn a_closed_an_open_and_another_row() {
    for policy in &POLICIES[..2] {
        let mut b = Bench::new(config(*policy));
        // Front end 10, tRCD 11, tCL 11, burst 4. Then without tRCD. Then another row of the bank, opened by another owner: tRP 11 more.
        let ends = b.ends(&[
            (0, A, 0, false),
            (1000, A, 64, false),
            (2000, B, 65536, false),
        ]);
        assert_eq!(ends, [36, 1025, 2047]);
        assert_eq!(b.booked(B, A, Resource::DramRow(9)), 22);
        let s = b.controller.statistics();
        assert_eq!((s.row_misses, s.row_hits, s.row_conflicts), (1, 1, 1));
    }
}

#[test]
fn a_chunk_streams_at_the_rate_of_the_bus() {
    for policy in &POLICIES[..2] {
        let mut b = Bench::new(config(*policy));
        b.push(0, 0, A, 0, 512, false);
        b.run(Tick::MAX);
        // 10 + 11 + 11, and eight bursts of 4 cycles.
        assert_eq!(b.served, [(0, 64)]);
        assert!(b.ledger.totals().is_empty());
    }
}

#[test]
fn reads_and_writes_in_turn_pay_for_turning_the_bus() {
    let mut b = Bench::new(config(Policy::Fcfs));
    // One open row; alternating reads and writes, all present from the start. A pair takes tCL + burst + gap - tCWL = 9 from read to write
    // and tCWL + burst + tWTR = 18 from write to read: 27 cycles for 8 cycles of data, 30 % of the bus.
    let requests: Vec<_> = (0..100).map(|k| (0, A, k * 64, k % 2 == 1)).collect();
    let ends = b.ends(&requests);
    // First read at 21; the last access, a write, 49 pairs and 9 cycles later; its data ends after tCWL + burst.
    assert_eq!(*ends.iter().max().unwrap(), 21 + 49 * 27 + 9 + 12);
    let share = b.controller.statistics().bus_busy as f64 / (49.5 * 27.0 + 12.0);
    assert!((0.29..0.31).contains(&share), "{share}");
}

#[test]
fn a_write_queue_turns_the_bus_rarely() {
    let queue = WriteQueue {
        size: 32,
        high: 24,
        low: 8,
    };
    let mut b = Bench::new(ControllerConfig {
        write_queue: Some(queue),
        ..config(Policy::FirstReady { cap: 4 })
    });
    // The same stream: reads first, writes in drains.
    let requests: Vec<_> = (0..100).map(|k| (0, A, k * 64, k % 2 == 1)).collect();
    let ends = b.ends(&requests);
    // Posted at once, as far as the queue has room.
    assert!(ends.iter().skip(1).step_by(2).take(24).all(|&at| at == 10));
    // 50 reads and 42 writes move without gaps, except for a few turnarounds.
    assert!(
        *ends.iter().max().unwrap() < 21 + 92 * 4 + 4 * 27,
        "{ends:?}"
    );
}

#[test]
fn a_read_of_a_posted_write_is_answered_from_the_queue() {
    let queue = WriteQueue {
        size: 32,
        high: 24,
        low: 8,
    };
    let mut b = Bench::new(ControllerConfig {
        write_queue: Some(queue),
        ..config(Policy::Fcfs)
    });
    // The write is acknowledged after the front end, and so is a read of the written data. A larger read goes to the banks.
    b.push(0, 0, A, 0, 64, true);
    b.push(100, 1, B, 0, 64, false);
    b.push(200, 2, B, 0, 128, false);
    b.run(Tick::MAX);
    assert_eq!(b.served, [(0, 10), (1, 110), (2, 200 + 10 + 11 + 11 + 8)]);
    assert!(b.ledger.totals().is_empty());
}

#[test]
fn a_full_write_queue_makes_writes_wait_for_whom_is_drained() {
    let queue = WriteQueue {
        size: 2,
        high: 2,
        low: 0,
    };
    let mut b = Bench::new(ControllerConfig {
        write_queue: Some(queue),
        ..config(Policy::Fcfs)
    });
    // B fills the queue; A's write is posted when B's first one has left: front end 10 and tRCD 11.
    let ends = b.ends(&[(0, B, 0, true), (0, B, 64, true), (0, A, 128, true)]);
    assert_eq!(ends, [10, 10, 21]);
    assert_eq!(b.booked(A, B, Resource::DramQueue(9)), 11);
}

#[test]
fn what_finds_its_row_open_goes_first() {
    // A's row is open; B wants another row of the bank, then A wants its own row again. In order: B closes the row first. First ready: A
    // does not wait, and B waits for A.
    let requests = [(0, A, 0, false), (20, B, 65536, false), (20, A, 64, false)];
    let in_order = Bench::new(config(Policy::Fcfs)).ends(&requests);
    let mut b = Bench::new(config(Policy::FirstReady { cap: 4 }));
    let first_ready = b.ends(&requests);
    // Both arrive at the banks at 30; A's read then takes 15. B may close the row at 21 + 28 - 11 = 38 (tRAS after the activation at 10).
    assert_eq!(first_ready, [36, 38 + 11 + 11 + 11 + 4, 45]);
    assert!(in_order[1] <= first_ready[1] && in_order[2] > first_ready[2]);
    // In order: B's row opens at 49; A closes it after tRAS and reopens its own.
    assert_eq!(in_order, [36, 75, 49 + 28 + 11 + 11 + 11 + 4]);
}

#[test]
fn the_cap_ends_what_overtakes() {
    for cap in [1, 4, 16] {
        let mut b = Bench::new(config(Policy::FirstReady { cap }));
        // A's stream of hits arrives before and after B's request for another row of the bank.
        let mut requests = vec![(0, A, 0, false), (1, B, 65536, false)];
        requests.extend((1..40).map(|k| (2, A, k * 64, false)));
        let ends = b.ends(&requests);
        let before = ends.iter().skip(2).filter(|&&at| at < ends[1]).count();
        assert_eq!(before as u32, cap.max(1), "cap {cap}: {ends:?}");
    }
}

/// Without a limit, accesses to open rows in the bus's current direction would keep the other direction out forever, because turning around
/// takes longer.
#[test]
fn a_stream_of_reads_does_not_starve_a_write_to_another_bank() {
    for cap in [1, 4] {
        let mut b = Bench::new(config(Policy::FirstReady { cap }));
        let mut requests = vec![
            (0, B, 8192, false),
            (0, A, 0, false),
            (100, A, 64, false),
            (101, B, 8192, true),
        ];
        // Both rows are open; reads come faster than the bus accepts them.
        requests.extend((2..80).map(|k| (102 + k, A, k * 64, false)));
        let ends = b.ends(&requests);
        let written = ends[3];
        let before = ends[4..].iter().filter(|&&at| at < written).count() as u32;
        // Reads whose data was already in transit when the write's command was issued also end before the write's data.
        assert!(before <= cap + 2, "cap {cap}: {before} of {ends:?}");
    }
}

/// Full load in both directions: each direction gets its turn, whichever owner fills the write queue.
#[test]
fn neither_reads_nor_writes_starve_beside_a_write_queue() {
    // Marks far apart and adjacent; with adjacent marks every new write asks for a drain.
    let marks = [(12, 4), (5, 4)];
    let policies = [Policy::Fcfs, Policy::FirstReady { cap: 4 }];
    for (policy, (high, low)) in policies.into_iter().flat_map(|p| marks.map(|m| (p, m))) {
        let queue = WriteQueue {
            size: 16,
            high,
            low,
        };
        let config = ControllerConfig {
            write_queue: Some(queue),
            ..config(policy)
        };
        // B writes faster than the memory and A reads occasionally; then the other way round.
        for many in [true, false] {
            let mut requests: Vec<_> = (0..600).map(|k| (k, B, k % 100 * 64, many)).collect();
            requests.extend((0..6).map(|k| (k * 100 + 50, A, 65536 + k * 64, !many)));
            requests.sort_by_key(|r| r.0);
            let mut b = Bench::new(config);
            let ends = b.ends(&requests);
            let few = requests.iter().zip(&ends).filter(|(r, _)| r.1 == A);
            let worst = few.map(|(r, end)| end - r.0).max().unwrap();
            // Its turn comes after one queue of the other direction, and within its turn it waits for earlier requests.
            assert!(worst < 40 * 16, "{policy:?}, {many}: {worst}");
        }
    }
}

/// When an access of A that arrives at `from` ends, beside rivals that keep a given number of accesses outstanding from a given time on:
/// address, and whether they write. `None`: not within 100 000 ticks.
fn beside(
    config: ControllerConfig,
    (from, address, write): (Tick, u64, bool),
    rivals: &[(Tick, u64, bool)],
) -> Option<Tick> {
    let mut b = Bench::new(config);
    let mut idle: Vec<usize> = (1..=rivals.len()).collect();
    for now in 0..from + 100_000 {
        b.run(now);
        for (token, at) in b.served.drain(..) {
            if token == 0 {
                return Some(at - from);
            }
            idle.push(token);
        }
        if now == from {
            b.push(now, 0, A, address, 64, write);
        }
        idle.retain(|&token| {
            let (begin, address, write) = rivals[token - 1];
            if begin <= now {
                b.push(now, token, B, address, 64, write);
            }
            begin > now
        });
    }
    None
}

/// Each drain closes the row that A's read needs, and hits of another bank are read while that row is reopened. They must not use up the
/// turn that reads have after a drain.
#[test]
fn a_read_whose_row_drains_close_does_not_starve() {
    for (size, high, low) in [(4, 2, 1), (8, 4, 3), (16, 12, 4)] {
        let config = ControllerConfig {
            write_queue: Some(WriteQueue { size, high, low }),
            ..config(Policy::FirstReady { cap: 4 })
        };
        let mut rivals = vec![(0, 65_536, true); 24];
        rivals.extend((0..8).map(|k| (0, 8192 + k * 64, false)));
        let end = beside(config, (5000, 0, false), &rivals);
        assert!(end.is_some_and(|end| end < 4000), "{size}: {end:?}");
    }
}

/// Writes were drained for a long time without any reads. Reads that then arrive go first for one queue, not for as long as the drain
/// lasted.
#[test]
fn a_write_does_not_wait_for_all_that_was_drained_before() {
    let config = ControllerConfig {
        write_queue: Some(WriteQueue {
            size: 8,
            high: 6,
            low: 2,
        }),
        ..config(Policy::FirstReady { cap: 4 })
    };
    let mut rivals = vec![(0, 65_536, true); 24];
    rivals.extend((0..16).map(|k| (30_000, 8192 + k * 64, false)));
    let end = beside(config, (30_100, 131_072, true), &rivals);
    assert!(end.is_some_and(|end| end < 8000), "{end:?}");
}

#[test]
fn slots_bound_the_worst_wait_by_the_number_of_requesters() {
    let mut b = Bench::new(config(Policy::Slots));
    let slot = b.controller.slot;
    // A write: tRCD 11 + tCWL 8 + burst 4 + tWR 12 + tRP 11.
    assert_eq!(slot, 46);
    // B and C flood; A asks once. At worst, one slot has begun and C has one before A: then 10 + 46 + 46 + 11 + 11 + 4.
    let mut requests: Vec<_> = (0..40)
        .map(|k| (0, if k % 2 == 0 { B } else { C }, k * 4096, k % 3 == 0))
        .collect();
    requests.insert(20, (57, A, 1 << 20, false));
    requests.sort_by_key(|r| r.0);
    let at = requests.iter().position(|r| r.1 == A).unwrap();
    let ends = b.ends(&requests);
    assert!(ends[at] <= 57 + 10 + 2 * slot + 26, "{}", ends[at]);
    assert!(b.booked(A, B, Resource::DramQueue(9)) + b.booked(A, C, Resource::DramQueue(9)) > 0);
}

#[test]
fn banks_work_at_the_same_time_and_channels_do_not_meet() {
    let mut b = Bench::new(config(Policy::Fcfs));
    // Another bank opens its row one tRRD later, hidden behind the first one.
    assert_eq!(b.ends(&[(0, A, 0, false), (0, B, 8192, false)]), [36, 41]);
    let mut two = config(Policy::Fcfs);
    two.map.channels = 2;
    two.map.channel_interleave = Some(8192);
    let mut b = Bench::new(two);
    assert_eq!(b.ends(&[(0, A, 0, false), (0, B, 8192, false)]), [36, 36]);
    assert!(b.ledger.totals().is_empty());
}

#[test]
fn a_closed_page_spares_the_next_row_its_precharge() {
    let closed = ControllerConfig {
        closed_page: true,
        ..config(Policy::Fcfs)
    };
    // Long after the first one: no precharge and no conflict.
    let mut b = Bench::new(closed);
    assert_eq!(
        b.ends(&[(0, A, 0, false), (1000, B, 65536, false)]),
        [36, 1036]
    );
    assert!(b.ledger.totals().is_empty());
    // A request waiting for the open row keeps it open.
    let mut b = Bench::new(closed);
    assert_eq!(b.ends(&[(0, A, 0, false), (0, A, 64, false)]), [36, 40]);
}

#[test]
fn waits_for_a_bank_and_the_data_bus_are_booked_to_whom_causes_them() {
    let (bank, bus) = (
        Resource::DramBank { memory: 9, bank: 0 },
        Resource::DramBus(9),
    );
    for policy in &POLICIES[..2] {
        // A opens the row for both at 10. B waits for tRCD, and then for A's burst.
        let mut b = Bench::new(config(*policy));
        assert_eq!(b.ends(&[(0, A, 0, false), (0, B, 64, false)]), [36, 40]);
        assert_eq!((b.booked(B, A, bank), b.booked(B, A, bus)), (11, 4));
        // The row is open. B waits until the bus has turned: tCWL + burst + tWTR behind a write, tCL + burst + gap - tCWL behind a read.
        for (write, turn) in [(true, 18), (false, 9)] {
            let mut b = Bench::new(config(*policy));
            b.ends(&[
                (0, A, 0, false),
                (1000, A, 64, write),
                (1000, B, 128, !write),
            ]);
            assert_eq!(b.booked(B, A, bus), turn, "{policy:?}, {write}");
            assert_eq!(b.booked(B, A, bank), 0, "{policy:?}, {write}");
        }
        // A's row closes by itself after tRAS, and B needs another row of the bank. It waits for A's row from 10 to A's access at 21, and
        // for the closed bank until 10 + tRAS + tRP.
        let mut b = Bench::new(ControllerConfig {
            closed_page: true,
            ..config(*policy)
        });
        assert_eq!(b.ends(&[(0, A, 0, false), (0, B, 65536, false)]), [36, 75]);
        let row = b.booked(B, A, Resource::DramRow(9));
        assert_eq!((row, b.booked(B, A, bank)), (11, 28), "{policy:?}");
        // A waits for nobody.
        assert!(
            b.ledger
                .bookings()
                .iter()
                .all(|booking| booking.victim == B)
        );
    }
}

/// Five banks are activated one after another: C's, three of A and B's, all ready at 10. B waits for tRRD behind each, and then until tFAW
/// after the first of four.
#[test]
fn waits_for_activations_are_booked_to_whom_causes_them() {
    for policy in &POLICIES[..2] {
        let mut b = Bench::new(config(*policy));
        let requests = [C, A, A, A, B].into_iter().zip(0..);
        let requests: Vec<_> = requests
            .map(|(owner, bank)| (0, owner, 8192 * bank, false))
            .collect();
        let ends = b.ends(&requests);
        let (rrd, faw) = (5, 24);
        assert_eq!(ends[4], 10 + faw + 26, "{policy:?}");
        let booked = |culprit| b.booked(B, culprit, Resource::DramActivates(9));
        // The fourth activate is at 10 + 3 tRRD; from then on the first one, C's, holds B back.
        assert_eq!(
            (booked(A), booked(C)),
            (2 * rrd, rrd + faw - 3 * rrd),
            "{policy:?}"
        );
        assert_eq!(
            b.booked(A, C, Resource::DramActivates(9)),
            3 * rrd,
            "{policy:?}"
        );
    }
}

#[test]
fn a_refresh_is_nobodys_fault() {
    let timing = Timing {
        refresh_interval: 1000,
        ..ddr3()
    };
    for policy in POLICIES {
        let mut b = Bench::new(ControllerConfig {
            timing,
            ..config(policy)
        });
        // Ready at 1005; the refresh, due at 1000 with all banks closed, lasts until 1128.
        let ends = b.ends(&[(995, A, 0, false)]);
        assert_eq!(ends, [1128 + 26], "{policy:?}");
        assert_eq!(b.booked(A, A, Resource::Refresh(9)), 123, "{policy:?}");
    }
}

#[test]
fn a_wait_for_others_before_a_refresh_is_theirs() {
    let timing = Timing {
        refresh_interval: 1000,
        ..ddr3()
    };
    for policy in &POLICIES[..2] {
        let mut b = Bench::new(ControllerConfig {
            timing,
            ..config(*policy)
        });
        // A's row may be closed when its write has recovered.
        let column = 980 + timing.activate;
        let closes = column + timing.write_cas + timing.burst + timing.write_recovery;
        // B, for another bank, is ready at 1005. The refresh is due at 1000.
        let ends = b.ends(&[(970, A, 0, true), (995, B, 8192, false)]);
        let refreshed = closes + timing.precharge + timing.refresh;
        assert_eq!(ends[1], refreshed + 26, "{policy:?}");
        let bank = Resource::DramBank { memory: 9, bank: 0 };
        assert_eq!(b.booked(B, A, bank), closes - 1005, "{policy:?}");
        assert_eq!(
            b.booked(B, B, Resource::Refresh(9)),
            refreshed - closes,
            "{policy:?}"
        );
    }
}

/// All distances between a command and an earlier one of a channel, derived again from the table: brute force over all pairs. Refreshes close
/// the banks at these moments.
fn legal(log: &[(Tick, Command)], refreshes: &[Tick], t: &Timing) {
    let write_of = |c: &Command| match c {
        Command::Column { write, .. } => Some(*write),
        _ => None,
    };
    for (k, (late, second)) in log.iter().enumerate() {
        let activates = log[..k]
            .iter()
            .rev()
            .filter(|(_, c)| matches!(c, Command::Activate { .. }));
        if let (Command::Activate { .. }, Some((fourth, _))) = (second, activates.clone().nth(3)) {
            assert!(late - fourth >= t.four_activates);
        }
        for (early, first) in &log[..k] {
            let gap = late - early;
            assert!(gap >= t.cycle, "{first:?} {second:?}");
            match (write_of(first), write_of(second)) {
                (Some(false), Some(false)) | (Some(true), Some(true)) => {
                    assert!(gap >= t.burst.max(t.column))
                }
                (Some(true), Some(false)) => {
                    assert!(gap >= t.write_cas + t.burst + t.write_to_read)
                }
                (Some(false), Some(true)) => {
                    assert!(gap + t.write_cas >= t.cas + t.burst + t.read_to_write)
                }
                _ => {}
            }
            if let (Command::Activate { bank: a, .. }, Command::Activate { bank: b, .. }) =
                (first, second)
                && a != b
            {
                assert!(gap >= t.activate_gap);
            }
        }
    }
    for (number, at) in (1..).zip(refreshes) {
        assert!(*at >= number * t.refresh_interval, "{number} at {at}");
        let mut others = log.iter().map(|(other, _)| other.abs_diff(*at));
        assert!(others.all(|gap| gap >= t.cycle), "refresh {number}");
    }
    // Bank by bank: a row is open from its activation to its precharge, and only then accessed. A refresh begins when the last one is closed.
    let mut begins = refreshes.to_vec();
    for bank in 0..8 {
        let mine = log.iter().filter(|(_, c)| matches!(c, Command::Activate { bank: b, .. } | Command::Precharge { bank: b } | Command::Column { bank: b, .. } if *b == bank));
        let (mut opened, mut closed) = (None, None::<Tick>);
        let (mut busy, mut next) = (0, 0);
        let last = (Tick::MAX, None);
        for (at, command) in mine.map(|(at, c)| (*at, Some(*c))).chain([last]) {
            while let Some(&refresh) = refreshes.get(next)
                && refresh < at
            {
                if opened.take().is_some() {
                    assert!(refresh >= busy, "a refresh at {refresh} before {busy}");
                    closed = Some(refresh);
                }
                begins[next] = begins[next].max(closed.map_or(0, |c| c + t.precharge));
                next += 1;
            }
            let Some(command) = command else { break };
            match command {
                Command::Activate { .. } => {
                    assert!(opened.is_none() && closed.is_none_or(|c| at >= c + t.precharge));
                    opened = Some(at);
                    busy = at + t.row_active;
                }
                Command::Precharge { .. } => {
                    assert!(opened.take().is_some() && at >= busy);
                    closed = Some(at);
                }
                Command::Column { write, close, .. } => {
                    assert!(opened.is_some_and(|o| at >= o + t.activate));
                    let data = if write {
                        t.write_cas + t.burst + t.write_recovery
                    } else {
                        t.read_to_precharge
                    };
                    busy = busy.max(at + data);
                    if close {
                        opened = None;
                        closed = Some(busy);
                    }
                }
            }
        }
    }
    // Nothing happens while the chips refresh, and none begins before the one before it has ended.
    for (k, (begin, closes)) in begins.iter().zip(refreshes).enumerate() {
        let mut during = log
            .iter()
            .filter(|(at, _)| (*closes..begin + t.refresh).contains(at));
        assert_eq!(during.next(), None, "refresh at {begin}");
        assert!(k == 0 || *closes >= begins[k - 1] + t.refresh);
    }
}

fn policies() -> impl Strategy<Value = ControllerConfig> {
    (
        0usize..3,
        1u32..6,
        any::<bool>(),
        1u32..20,
        prop::option::of((1u32..12, 0u32..12)),
        any::<[bool; 3]>(),
    )
        .prop_map(
            |(policy, cap, closed_page, queue, writes, [interleave, xor, channels])| {
                let policy = match POLICIES[policy] {
                    Policy::FirstReady { .. } => Policy::FirstReady { cap },
                    other => other,
                };
                let writes = writes.filter(|_| policy != Policy::Slots);
                let mut c = config(policy);
                c.closed_page = closed_page;
                c.queue = queue;
                c.write_queue = writes.map(|(high, low)| WriteQueue {
                    size: high + 3,
                    high,
                    low: low.min(high - 1),
                });
                c.map.bank_interleave = interleave.then_some(64);
                c.map.xor = xor;
                c.map.channels = 1 + u32::from(channels);
                c.map.channel_interleave = Some(256);
                c
            },
        )
}

proptest! {
    /// Every request is served, every tick of it is accounted for and recorded, and the commands are legal.
    #[test]
    fn whatever_comes_is_served_lawfully(
        mut c in policies(),
        refresh: bool,
        requests in prop::collection::vec((0u64..60, 0u64..1 << 18, 1u32..=512, any::<bool>(), 0u16..4), 1..80),
    ) {
        if refresh {
            c.timing.refresh_interval = 700;
        }
        let mut b = Bench::new(c);
        let mut now = 0;
        let n = requests.len();
        for (token, (gap, address, bytes, write, tile)) in requests.into_iter().enumerate() {
            now += gap;
            b.push(now, token, Owner::new(tile, 0), address, bytes, write);
        }
        b.run(Tick::MAX);
        let mut tokens: Vec<usize> = b.served.iter().map(|s| s.0).collect();
        tokens.sort_unstable();
        prop_assert_eq!(tokens, (0..n).collect::<Vec<_>>());
        prop_assert!(b.controller.requests.is_empty());
        prop_assert_eq!(b.controller.channels.len(), c.map.channels as usize);
        for channel in &b.controller.channels {
            let banks = &channel.banks;
            legal(banks.log(), banks.refreshed_at(), &c.timing);
            prop_assert!(refresh || banks.refreshed_at().is_empty());
        }
    }

    /// Slots: a burst waits at most for the slot in progress, one slot of each other requester, and refreshes.
    #[test]
    fn slots_keep_their_bound(requests in prop::collection::vec((0u64..80, 0u64..1 << 18, any::<bool>(), 0u16..5), 1..80)) {
        let mut b = Bench::new(config(Policy::Slots));
        let slot = b.controller.slot;
        let mut now = 0;
        let mut free = [0; 5];
        let mut bounds = Vec::new();
        for (token, (gap, address, write, tile)) in requests.into_iter().enumerate() {
            now += gap;
            let ready = now + 10;
            // The requester's own earlier bursts come first, each preceded by one slot of each other requester.
            let from = ready.max(free[tile as usize]);
            free[tile as usize] = from + 5 * slot;
            bounds.push(from + 5 * slot + 26);
            b.push(now, token, Owner::new(tile, 0), address & !63, 64, write);
        }
        b.run(Tick::MAX);
        for (token, at) in &b.served {
            prop_assert!(*at <= bounds[*token], "{} at {} of {}", token, at, bounds[*token]);
        }
    }
}

/// One of this many requesters has many requests under way: the others are served after one slot of each requester, whatever a requester
/// is.
#[test]
fn a_requester_is_a_tile_or_a_hart_of_one() {
    // Hart 0 of tile 0 has eight requests under way when hart 1 asks for one.
    let served = |requester: fn(Owner) -> Owner| {
        let mut b = Bench::new(config(Policy::Slots));
        b.requester = requester;
        let mut requests = vec![(0, A, 0, false); 8];
        requests.push((1, Owner::new(0, 1), 65536, false));
        *b.ends(&requests).last().expect("nine")
    };
    // Slots of 46 cycles; the first one begins after the front end of 10. Data ends 11 + 11 + 4 after the start of a slot.
    assert_eq!(served(|owner| owner), 10 + 46 + 26);
    assert_eq!(served(|owner| Owner::new(owner.tile, 0)), 10 + 8 * 46 + 26);
}
