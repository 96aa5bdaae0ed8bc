//! What fetching ahead costs and saves, in closed forms, and that it never makes an access wait for a register.

use super::super::tests::*;
use super::super::*;
use crate::config::{CacheConfig, PrefetcherConfig, PrefetcherKind};

/// Ticks that memory needs.
const MEMORY: Tick = 1000;
/// Ticks of a cycle, and of a look-up in the second level.
const CYCLE: Tick = 2;
const SECOND: Tick = 24;

fn stream(distance: u32) -> Option<PrefetcherConfig> {
    Some(PrefetcherConfig {
        kind: PrefetcherKind::Stream {
            streams: 8,
            stride: 8,
            training: 3,
            distance,
        },
        degree: 2,
        page: 4096,
    })
}

fn bench(first: Option<PrefetcherConfig>, second: Option<PrefetcherConfig>) -> Bench {
    let l1 = CacheConfig {
        prefetcher: first,
        ..cache(1 << 14, 4, 2, 8)
    };
    let l2 = CacheConfig {
        prefetcher: second,
        ..cache(1 << 16, 4, 12, 8)
    };
    let mut b = Bench::new();
    b.tile = Hierarchy::new(&l1, &l1, Some(&l2), UnitPort::Second, 1);
    b
}

/// When the accesses to the lines of a page end. Each begins `period` ticks after the start of the previous one, but not before that one
/// ends.
fn run(b: &mut Bench, period: Tick, lines: u64) -> Vec<Tick> {
    let (mut now, mut ends) = (0, Vec::new());
    for line in 0..lines {
        while b
            .below
            .reads
            .first()
            .is_some_and(|read| read.0 + MEMORY <= now)
        {
            b.complete(b.below.reads[0].0 + MEMORY);
        }
        let mut end = match b.data(now, 0x10_0000 + 64 * line, false, A) {
            Outcome::Hit => now,
            Outcome::Ready(at) => at,
            Outcome::Pending(_) => Tick::MAX,
        };
        while end == Tick::MAX {
            let at = b.below.reads[0].0 + MEMORY;
            let before = b.done.len();
            b.complete(at);
            let own = |done: &Done| done.line == 0x10_0000 + 64 * line;
            if b.done[before..].iter().any(own) {
                end = at;
            }
        }
        ends.push(end);
        now = end.max(now + period);
    }
    ends
}

#[test]
fn a_slow_stream_hits_from_its_fourth_line_on() {
    let mut b = bench(stream(2), None);
    let ends = run(&mut b, 5000, 12);
    for (line, end) in (0..).zip(ends) {
        let begin = match line {
            0 => 0,
            _ => 5000 * line,
        };
        // Three misses train.
        let expected = begin + if line < 3 { SECOND + MEMORY } else { 0 };
        assert_eq!(end, expected, "line {line}");
    }
    // The third request asks for two lines, one cycle after the other; then each first use for one.
    assert_eq!(b.tile.events().data_prefetches, 2 + 9);
}

/// While it waits for a line, `distance` more are under way: `distance` + 1 lines arrive in the time of one trip to memory.
#[test]
fn a_fast_stream_is_as_fast_as_its_distance_lets_it_be() {
    for distance in 1..=4u32 {
        for period in [10, 200, 400, 700] {
            let mut b = bench(stream(distance), None);
            let ends = run(&mut b, period, 60);
            let (way, lines) = (CYCLE + SECOND + MEMORY, u64::from(distance) + 1);
            // In the middle of a page.
            let took = ends[20 + 4 * lines as usize] - ends[20];
            let expected = 4 * way.max(lines * period);
            assert_eq!(took, expected, "distance {distance}, period {period}");
        }
    }
}

#[test]
fn the_second_level_fetches_ahead_for_itself() {
    let mut b = bench(None, stream(4));
    let ends = run(&mut b, 5000, 12);
    for (line, end) in (0..).zip(ends) {
        // From the fourth line on, the second level has it.
        let expected = 5000 * line + SECOND + if line < 3 { MEMORY } else { 0 };
        assert_eq!(end, expected, "line {line}");
    }
    let events = b.tile.events();
    assert!(events.second_prefetches > 9);
    assert_eq!(events.data_prefetches, 0);
    let used = |b: &Bench| {
        let events = b.tile.events();
        (events.second_prefetches_used, events.second_prefetches_late)
    };
    assert_eq!(used(&b), (9, 0));
    // A fast stream needs each line while the line is still on its way.
    let mut b = bench(None, stream(1));
    run(&mut b, 10, 60);
    assert_eq!(used(&b), (57, 57));
}

#[test]
fn what_is_fetched_ahead_is_asked_for_one_cycle_after_the_other() {
    let mut b = bench(stream(2), None);
    for line in 0..3 {
        b.data(10_000 * line, 64 * line, false, A);
        if line < 2 {
            b.complete(10_000 * line + 2000);
        }
    }
    let reads: Vec<_> = b.below.reads.iter().map(|read| (read.0, read.1)).collect();
    let at = 20_000 + SECOND;
    assert_eq!(reads, [(at, 128), (at + CYCLE, 192), (at + 2 * CYCLE, 256)]);
    // An access joins a line that is on its way, and its register is that line's.
    assert!(matches!(b.data(20_100, 192, false, B), Outcome::Pending(_)));
    assert_eq!(b.below.reads.len(), 4, "its first use fetches one more");
    assert_eq!(b.below.reads[3].1, 320);
}

#[test]
fn nothing_is_fetched_ahead_where_an_access_would_wait() {
    // Two registers: the third miss has one, and one line is fetched ahead with the other. The second line is dropped, and named again.
    let l1 = CacheConfig {
        prefetcher: stream(2),
        ..cache(1 << 14, 4, 2, 2)
    };
    let mut b = Bench::new();
    b.tile = Hierarchy::new(
        &l1,
        &l1,
        Some(&cache(1 << 16, 4, 12, 8)),
        UnitPort::Second,
        1,
    );
    for line in 0..2 {
        b.data(10_000 * line, 64 * line, false, A);
        b.complete(10_000 * line + 2000);
    }
    b.data(20_000, 128, false, A);
    assert_eq!(b.below.reads.len(), 2);
    b.complete(22_000);
    b.complete(22_002);
    assert_eq!(b.data(30_000, 192, false, A), Outcome::Hit);
    let reads: Vec<_> = b.below.reads.iter().map(|read| read.1).collect();
    assert_eq!(reads, [256, 320]);
}

/// Two of B's lines are under way when A needs a register more than there are: it waits for the first of them, and then for the second.
#[test]
fn waits_for_what_is_fetched_ahead_are_booked_to_whom_it_serves() {
    let misses = |prefetcher| {
        let mut b = bench(prefetcher, None);
        // Only what B's last line has had fetched ahead is under way then.
        for line in 0..7 {
            let at = 10_000 * line;
            b.data(at, 64 * line, false, B);
            while b
                .below
                .reads
                .first()
                .is_some_and(|read| line < 6 || read.1 <= 384)
            {
                b.complete(at + 2000);
            }
        }
        for other in 0..8 {
            b.data(70_000 + 10 * other, 0x80_0000 + 64 * 9 * other, false, A);
        }
        b
    };
    let mut b = misses(stream(8));
    let ahead: Vec<u64> = b.below.reads.iter().map(|read| read.1).take(2).collect();
    assert!(
        ahead.iter().all(|line| *line > 384 && *line < 0x8_0000),
        "{ahead:?}"
    );
    let under_way = |b: &Bench| {
        b.below
            .reads
            .iter()
            .filter(|read| read.1 >= 0x80_0000)
            .count()
    };
    assert_eq!((b.below.reads.len(), under_way(&b)), (8, 6));
    // The seventh miss has waited since 70 060, the eighth since 70 070.
    b.complete(71_000);
    assert_eq!(waits(&b, A), [(B, 940 + 930)]);
    b.complete(71_500);
    assert_eq!(waits(&b, A), [(B, 940 + 930 + 500)]);
    let waited: Vec<Tick> = b.below.accounts.iter().map(|one| one.waited).collect();
    assert_eq!(waited[waited.len() - 2..], [940, 1430]);
    while !b.below.reads.is_empty() {
        b.complete(80_000);
    }
    assert_eq!(waits(&b, A), [(B, 940 + 930 + 500)]);
    assert_eq!(waits(&b, B), []);
    // Without a prefetcher there are eight registers for eight misses.
    let mut b = misses(None);
    assert_eq!(under_way(&b), 8);
    while !b.below.reads.is_empty() {
        b.complete(80_000);
    }
    assert_eq!([waits(&b, A), waits(&b, B)], [[], []]);
}
