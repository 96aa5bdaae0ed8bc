//! The prefetchers of a cluster's second level and of its first levels: what a stream costs with and without them, in closed form; whose
//! lines they take and who pays; and that neither windows nor numbers change a tick.

use crate::common::*;
use bulkhead_abi::cbqri::SRMCFG;
use bulkhead_abi::hpm::Event;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::cache::CacheStatistics;
use bulkhead_machine::config::{
    CapacityConfig, CoreConfig, PlatformConfig, PrefetcherConfig, PrefetcherKind,
};
use bulkhead_machine::ledger::{Booking, Level};
use bulkhead_machine::machine::{Machine, RunLimit};
use bulkhead_machine::types::{Tick, TileId};

const LINE: u64 = 64;
const MARK: u32 = 0x100;
const LIMIT: Tick = 2_000_000;
/// Lines that a first level does not hold: twice as many as it has.
const LONG: i32 = 512;
/// The counters that `count` selects: fetched, used, late; or lines that the first level has fetched, instead of the late ones.
const COUNTERS: [u32; 3] = [3, 4, 5];
const COUNTED: [Event; 3] = [
    Event::SecondPrefetch,
    Event::SecondPrefetchUsed,
    Event::SecondPrefetchLate,
];
const COUNTED_IN_FIRST: [Event; 3] = [
    Event::SecondPrefetch,
    Event::SecondPrefetchUsed,
    Event::DataPrefetch,
];

fn stream(distance: u32) -> PrefetcherConfig {
    PrefetcherConfig {
        kind: PrefetcherKind::Stream {
            streams: 8,
            stride: 8,
            training: 3,
            distance,
        },
        degree: 2,
        page: 4096,
    }
}

fn with(mut config: PlatformConfig, prefetcher: Option<PrefetcherConfig>) -> PlatformConfig {
    let l2 = config.tiles[0].l2.as_mut().expect("a second level");
    (l2.prefetcher, l2.mshrs) = (prefetcher, 16);
    config
}

/// Gives the data caches of all clusters this prefetcher.
fn first(mut config: PlatformConfig, prefetcher: Option<PrefetcherConfig>) -> PlatformConfig {
    for tile in &mut config.tiles {
        let l1d = tile.l1d.as_mut().expect("a first level");
        (l1d.prefetcher, l1d.mshrs) = (prefetcher.clone(), 8);
        tile.l2.as_mut().expect("a second level").mshrs = 16;
    }
    config
}

/// Where a hart has its lines.
fn data(port: usize) -> u64 {
    MEMORY_BASE + 0x10_0000 * (1 + port as u64)
}

/// Begins to count.
fn count(p: &mut Program, events: [Event; 3]) {
    for (counter, event) in COUNTERS.into_iter().zip(events) {
        p.li(T0, event as u64).csr(1, 0x320 + counter, T0);
    }
}

/// Marks what was counted.
fn mark_counts(p: &mut Program) {
    for counter in COUNTERS {
        // csrrs t0, counter, zero
        p.word((0xb00 + counter) << 20 | 2 << 12 | T0 << 7 | 0x73)
            .marker(T0, MARK + counter);
    }
}

/// Loads lines one after the other, `step` lines apart, each when the one before has come and `pause` rounds of a loop later, and marks each.
fn walk(port: usize, lines: i32, step: u64, pause: i32) -> Program {
    walk_counting(COUNTED, (port, lines), step, pause)
}

fn walk_counting(
    events: [Event; 3],
    (port, lines): (usize, i32),
    step: u64,
    pause: i32,
) -> Program {
    let mut p = Program::default();
    count(&mut p, events);
    p.li(S0, data(port))
        .li(S3, LINE * step)
        .addi(S1, ZERO, lines);
    p.jump_to_line();
    let again = p.here();
    p.ld(T0, S0, 0).add(S2, T0, T0).marker(S2, MARK);
    p.add(S0, S0, S3).addi(S1, S1, -1).addi(T2, ZERO, pause);
    let waits = p.here();
    p.addi(T2, T2, -1).branch(5, T2, ZERO, waits);
    p.branch(1, S1, ZERO, again);
    mark_counts(&mut p);
    p.word(WFI);
    p
}

fn machine(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for (port, program) in programs.iter().enumerate() {
        start_port(&mut machine, port, program, 0x1_0000 * port as u64);
    }
    machine
}

fn run(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = machine(config, programs);
    machine.run(RunLimit { ticks: LIMIT }, None);
    machine
}

/// The moments at which a hart had its lines, and its counters.
fn seen(machine: &Machine, port: u16) -> (Vec<Tick>, [u64; 3]) {
    let markers = machine.markers();
    let own = || markers.iter().filter(|m| m.activity == port);
    let ticks = own().filter(|m| u32::from(m.kind) == MARK);
    let counts = COUNTERS.map(|counter| {
        let mut marked = own().filter(|m| u32::from(m.kind) == MARK + counter);
        marked.next().expect("it has ended").value
    });
    (ticks.map(|m| m.tick).collect(), counts)
}

fn walked(config: &PlatformConfig, lines: i32, step: u64, pause: i32) -> (Vec<Tick>, [u64; 3]) {
    seen(&run(config, &[walk(0, lines, step, pause)]), 0)
}

/// The same with a first level that fetches ahead; the last counter has its lines.
fn walked_first(
    config: &PlatformConfig,
    lines: i32,
    step: u64,
    pause: i32,
) -> (Vec<Tick>, [u64; 3]) {
    let walk = walk_counting(COUNTED_IN_FIRST, (0, lines), step, pause);
    seen(&run(config, &[walk]), 0)
}

/// Ticks from one line to the next in the middle of a page, of which each of `of` lines after the other takes its part.
fn period(ticks: &[Tick], of: usize) -> Tick {
    ticks[30 + 4 * of] - ticks[30]
}

/// A hart that waits for each line has a prefetcher's `distance` more under way: `distance + 1` lines come in the time of one miss,
/// but none sooner than a hit of the second level.
#[test]
fn a_fast_stream_is_as_fast_as_its_distance_lets_it_be() {
    let plain = cluster(1);
    let (slow, none) = walked(&plain, 60, 1, 0);
    assert_eq!(none, [0; 3]);
    let miss = period(&slow, 1) / 4;
    let hit = period(&walked_again(&plain, LONG), 1) / 4;
    assert!(miss > 2 * hit, "{miss} and {hit} ticks");
    for distance in 1..=4u32 {
        let config = with(plain.clone(), Some(stream(distance)));
        let (ticks, counts) = walked(&config, 60, 1, 0);
        let lines = distance as usize + 1;
        let expected = 4 * miss.max(lines as Tick * hit);
        assert_eq!(period(&ticks, lines), expected, "distance {distance}");
        // The first three train; what is behind the last line, and in its page, is fetched for nothing.
        let [fetched, used, late] = without_code(&config, counts);
        assert_eq!((fetched, used), (57 + u64::from(distance), 57));
        match miss > lines as Tick * hit {
            // Of as many lines as come together, the first one at least is wanted before.
            true => assert!((late + 1) * lines as u64 >= used, "{distance}: {late} late"),
            false => assert!(late < used, "{distance}: {late} late"),
        }
    }
}

/// A walk over lines after a walk over as many or more. If that one is longer than the first level, they are in the second level only.
fn walked_again(config: &PlatformConfig, before: i32) -> Vec<Tick> {
    let mut p = Program::default();
    p.words_of(&until_wfi(&walk(0, before, 1, 0)));
    p.words_of(&walk(0, 60, 1, 0));
    let (all, _) = seen(&run(config, &[p]), 0);
    all[before as usize..].to_vec()
}

/// What a walk's counters tell about data: instructions are a stream, too, and the same in a walk of two lines, which is none.
fn without_code(config: &PlatformConfig, counts: [u64; 3]) -> [u64; 3] {
    let (_, code) = walked(config, 2, 1, 0);
    std::array::from_fn(|i| counts[i] - code[i])
}

/// Ticks from each line to the next.
fn steps(ticks: &[Tick]) -> Vec<Tick> {
    ticks.windows(2).map(|w| w[1] - w[0]).collect()
}

/// A program without the WFI at its end.
fn until_wfi(program: &Program) -> Program {
    let bytes = program.bytes();
    let words = bytes
        .chunks(4)
        .map(|w| u32::from_le_bytes(w.try_into().expect("four")));
    let mut all = Program::default();
    for word in words.filter(|word| *word != WFI) {
        all.word(word);
    }
    all
}

/// Everything that comes behind the third line of a slow stream is a hit, whichever its step; steps that are no stream change no tick.
#[test]
fn a_slow_stream_hits_from_its_fourth_line_on() {
    let plain = cluster(1);
    let ahead = with(plain.clone(), Some(stream(3)));
    for step in [1, 2, 3] {
        let lines = 60 / step as i32;
        let (slow, _) = walked(&plain, lines, step, 200);
        let (fast, counts) = walked(&ahead, lines, step, 200);
        let [fetched, used, late] = without_code(&ahead, counts);
        let (fast, slow) = (steps(&fast), steps(&slow));
        assert_eq!(fast[..2], slow[..2], "step {step}");
        let least = fast.iter().min();
        assert!(fast[2..].iter().all(|one| Some(one) == least), "{fast:?}");
        assert_eq!((used, late), (lines as u64 - 3, 0), "step {step}");
        assert!(
            fetched >= used && fetched <= used + 3,
            "step {step}: {fetched}"
        );
    }
    let (slow, _) = walked(&plain, 40, 9, 0);
    let (same, counts) = walked(&ahead, 40, 9, 0);
    // Instructions that are fetched ahead let the walk begin at another moment of the network's cycle, which has four ticks.
    let long = |ticks: &[Tick]| ticks.last().expect("a walk") - ticks[0];
    assert!(long(&same).abs_diff(long(&slow)) <= 4);
    assert_eq!(without_code(&ahead, counts), [0; 3]);
}

fn second(machine: &Machine, port: u16) -> CacheStatistics {
    let all = machine.statistics().caches;
    let mut own = all
        .iter()
        .filter(|c| c.level == Level::L2 && c.owner.activity == port);
    own.next().map(|c| c.counters).unwrap_or_default()
}

/// Reads its lines again and again, each after the previous one.
fn keeper(port: usize, lines: i32, rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S3, rounds as u64).li(S2, LINE);
    let round = p.here();
    p.li(S0, data(port)).addi(S1, ZERO, lines);
    let again = p.here();
    p.ld(T0, S0, 0).add(T0, T0, T0).add(S0, S0, S2);
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    p.addi(S3, S3, -1).branch(1, S3, ZERO, round).word(WFI);
    p
}

/// What is fetched ahead for a hart fills the ways of that hart only, and its requests and waits are that hart's.
#[test]
fn lines_fetched_ahead_take_the_ways_of_their_hart_and_are_its_own() {
    let mut config = cluster(2);
    config.tiles[0].cluster.as_mut().expect("a cluster").fills = vec![0b0011, 0b1100];
    // 24 KiB: more than the first level has, and less than two ways have.
    let victim = || keeper(0, 384, 6);
    let alone = run(&config, &[victim()]);
    for prefetcher in [None, Some(stream(4))] {
        let config = with(config.clone(), prefetcher.clone());
        let beside = run(&config, &[victim(), walk(1, 2000, 1, 0)]);
        waits_are_booked(&beside);
        let (kept, others) = (second(&beside, 0), second(&beside, 1));
        assert_eq!((kept.misses_by_others, others.misses_by_others), (0, 0));
        match prefetcher {
            None => assert_eq!(kept.misses, second(&alone, 0).misses),
            Some(_) => {
                let (_, [fetched, used, _]) = seen(&beside, 1);
                assert!(fetched > 1800 && used > 1700, "{fetched} and {used} lines");
                // The walk has few misses left, and each line that it has fetched was an eviction of its own from some moment on.
                assert!(others.misses < 300, "{others:?}");
                assert!(
                    others.evictions + 600 > others.misses + fetched,
                    "{others:?}"
                );
                assert!(kept.misses < second(&alone, 0).misses);
            }
        }
    }
}

/// Tables belong to harts: what others ask for changes nothing that is foreseen.
#[test]
fn nobody_changes_what_is_foreseen_for_another_hart() {
    let mut config = with(cluster(4), Some(stream(3)));
    let tile = &mut config.tiles[0];
    tile.l2.as_mut().expect("a second level").mshrs = 32;
    let cluster = tile.cluster.as_mut().expect("a cluster");
    cluster.fills = vec![0b0001, 0b0010, 0b0100, 0b1000];
    cluster.divided_registers = true;
    let victim = walk(0, 300, 1, 20);
    let (_, alone) = seen(&run(&config, std::slice::from_ref(&victim)), 0);
    let programs: Vec<_> = (1..4)
        .map(|port| walk(port, 4000, 2 * port as u64, 0))
        .collect();
    let all: Vec<_> = [victim].into_iter().chain(programs).collect();
    let (_, beside) = seen(&run(&config, &all), 0);
    assert_eq!(beside[..2], alone[..2]);
}

/// The counter of an MCID counts lines that were fetched ahead for requests with it.
#[test]
fn lines_fetched_ahead_have_the_identifiers_of_their_request() {
    use bulkhead_abi::cbqri::{CC_MON_CTL, CC_MON_CTR_VAL, EVENT_OCCUPANCY, monitoring};
    use bulkhead_abi::memory_map::CAPACITY_BASE;
    let mut config = cluster(1);
    config.tiles[0]
        .cluster
        .as_mut()
        .expect("a cluster")
        .capacity = Some(CapacityConfig {
        rcids: 4,
        mcids: 4,
        programmers: 1,
    });
    let mut p = Program::default();
    let operate = |p: &mut Program, value: u64| {
        p.li(A0, CAPACITY_BASE).li(T0, value).sd(T0, A0, CC_MON_CTL);
        let wait = p.here();
        p.ld(T0, A0, CC_MON_CTL).srli(T1, T0, 39).andi(T1, T1, 1);
        p.branch(1, T1, ZERO, wait);
    };
    operate(
        &mut p,
        monitoring::CONFIG_EVENT | 2 << 8 | EVENT_OCCUPANCY << 20,
    );
    p.jump_to_line();
    p.li(S3, 2 << 16).li(S0, data(0)).csr(1, SRMCFG as u32, S3);
    for _ in 0..4 {
        p.ld(T0, S0, 0).add(T0, T0, T0).addi(S0, S0, 64);
    }
    p.csr(1, SRMCFG as u32, ZERO).li(T2, 500);
    let waits = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, waits);
    operate(&mut p, monitoring::READ_COUNTER | 2 << 8);
    p.ld(T0, A0, CC_MON_CTR_VAL).marker(T0, MARK).word(WFI);
    let counted = |config: &PlatformConfig| {
        let machine = run(config, std::slice::from_ref(&p));
        let markers = machine.markers();
        markers.first().expect("it has ended").value
    };
    // Instructions under the identifier are the same in both.
    let plain = counted(&config);
    assert!((4..8).contains(&plain), "{plain}");
    // The third line names two more, and the fourth one, which was fetched ahead, two: three strides ahead of it at most.
    assert_eq!(counted(&with(config, Some(stream(3)))), plain + 3);
}

/// Walks and lines that harts share, through all parts of a page.
fn contending(harts: usize) -> Vec<Program> {
    let program = |port: usize| {
        let mut p = Program::default();
        count(&mut p, COUNTED);
        let (own, shared) = (port, 0);
        p.li(S4, 12).li(S2, LINE);
        let round = p.here();
        for (place, step) in [(own, 1), (shared, 2), (own, 3), (shared, 1)] {
            p.li(S0, data(place)).li(S3, LINE * step).addi(S1, ZERO, 40);
            let again = p.here();
            p.ld(T0, S0, 0).addi(T0, T0, 1);
            match (port + place + step as usize) % 3 {
                0 => p.sd(T0, S0, 0),
                1 => p.amo(0, 0, T1, S0, T0),
                _ => p.add(T1, T0, T0),
            };
            p.add(S0, S0, S3).addi(S1, S1, -1);
            p.branch(1, S1, ZERO, again).marker(T0, MARK);
        }
        p.addi(S4, S4, -1).branch(1, S4, ZERO, round).word(FENCE);
        mark_counts(&mut p);
        p.spin();
        p
    };
    (0..harts).map(program).collect()
}
const S4: u32 = 20;

#[test]
fn windows_change_nothing() {
    for harts in [1, 2, 4, 8] {
        for registers in [2, 16] {
            let mut config = with(cluster(harts), Some(stream(4)));
            let l2 = config.tiles[0].l2.as_mut().expect("a second level");
            (l2.size, l2.mshrs) = (16 << 10, registers);
            let programs = contending(harts.into());
            pieces_change_nothing(|| machine(&config, &programs), 150_000);
        }
    }
}

/// Two clusters of two harts each, with a program on each hart.
fn in_pairs(config: &PlatformConfig, programs: &[Program]) -> Machine {
    let mut machine = Machine::new(config).expect("valid");
    for (i, program) in programs.iter().enumerate() {
        let hart = (i as TileId / 2, i % 2);
        start_hart(&mut machine, hart, program, 0x1_0000 * i as u64);
    }
    machine
}

/// The same where two clusters are coherent with each other and take lines from one another that were fetched ahead.
#[test]
fn windows_change_nothing_in_coherent_clusters() {
    let mut config = coherent(&[2, 2]);
    for tile in &mut config.tiles {
        let l2 = tile.l2.as_mut().expect("a second level");
        (l2.size, l2.mshrs, l2.prefetcher) = (16 << 10, 16, Some(stream(4)));
    }
    let programs = contending(4);
    let build = || in_pairs(&config, &programs);
    let mut whole = build();
    whole.run(RunLimit { ticks: LIMIT }, None);
    waits_are_booked(&whole);
    for (tile, port) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let markers = whole.markers();
        let mut own = markers
            .iter()
            .filter(|m| (m.tile, m.activity) == (tile, port));
        let mut marked = |counter| own.find(|m| u32::from(m.kind) == MARK + counter);
        let [fetched, used] = [3, 4].map(|counter| marked(counter).expect("it has ended").value);
        assert!(
            fetched > 100 && used > 50,
            "{tile} {port}: {fetched} {used}"
        );
    }
    pieces_change_nothing(build, 150_000);
}

#[test]
fn numbers_change_nothing() {
    let config = with(cluster(4), Some(stream(4)));
    let mut renumbered = config.clone();
    renumbered.tiles[0]
        .cluster
        .as_mut()
        .expect("a cluster")
        .harts = vec![7, 3, 11, 0];
    assert!(seen_by_all(&config) == seen_by_all(&renumbered));
}

/// The markers of four contending harts and what was booked.
fn seen_by_all(config: &PlatformConfig) -> (Vec<(Tick, u16, u64)>, Vec<Booking>) {
    let machine = run(config, &contending(4));
    waits_are_booked(&machine);
    let markers = machine.markers();
    let seen = markers.iter().map(|m| (m.tick, m.activity, m.value));
    (seen.collect(), machine.ledger().bookings())
}

/// Without a prefetcher and with one, programs whose harts share nothing leave the same bytes, also those whose harts use lines of one page in
/// turn, so that a hart's prefetcher brings what another one has modified.
#[test]
fn contents_never_change() {
    // `far`: bytes from one hart's lines to those of the next.
    let program = |port: u64, far: u64| {
        let mut p = Program::default();
        p.li(S4, 6).li(S2, port + 3);
        let round = p.here();
        for step in [1u64, 3, 2] {
            p.li(S0, data(0) + far * port).li(S3, 4 * LINE * step);
            p.addi(S1, ZERO, 40);
            let again = p.here();
            p.ld(T0, S0, 0).add(S2, S2, T0).sd(S2, S0, 8);
            p.amo(0, 0, T1, S0, S2).add(S2, S2, T1);
            p.add(S0, S0, S3)
                .addi(S1, S1, -1)
                .branch(1, S1, ZERO, again);
        }
        p.addi(S4, S4, -1)
            .branch(1, S4, ZERO, round)
            .word(FENCE)
            .spin();
        p
    };
    for harts in [1u64, 4] {
        for far in [0x10_0000, LINE] {
            let bytes = |config: &PlatformConfig| {
                let programs: Vec<_> = (0..harts).map(|port| program(port, far)).collect();
                let machine = run(config, &programs);
                let places = (0..harts).map(|port| data(0) + far * port);
                let of = |at| {
                    let mut bytes = vec![0; 0x8000];
                    machine.peek(0, at, &mut bytes).expect("memory");
                    bytes
                };
                places.map(of).collect::<Vec<_>>()
            };
            let plain = || cluster(harts as u16);
            let expected = bytes(&plain());
            assert!(expected.iter().flatten().any(|byte| *byte != 0));
            assert!(
                bytes(&with(plain(), Some(stream(4)))) == expected,
                "{harts} {far}"
            );
            assert!(
                bytes(&first(plain(), Some(stream(3)))) == expected,
                "{harts} {far}"
            );
            let both = first(with(plain(), Some(stream(4))), Some(stream(3)));
            assert!(bytes(&both) == expected, "{harts} {far}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |config: &PlatformConfig| {
        let error = Machine::new(config).err().expect("not valid");
        error.to_string()
    };
    let config = with(cluster(2), Some(by_instruction(2)));
    assert!(refused(&config).contains("follows streams only"));
    let mut config = cluster(2);
    let tile = &mut config.tiles[0];
    let core = CoreConfig {
        hart: tile.hart.clone(),
        l1i: bulkhead_machine::config::CacheConfig {
            prefetcher: Some(stream(3)),
            ..tile.l1i.clone().expect("a first level")
        },
        l1d: tile.l1d.clone().expect("a first level"),
    };
    tile.cluster.as_mut().expect("a cluster").cores = vec![None, Some(core)];
    assert!(refused(&config).contains("an instruction cache has no prefetcher"));
}

/// When a hart has had its lines in each of two rounds over them.
fn twice(config: &PlatformConfig, lines: i32, step: u64, pause: i32) -> Vec<Tick> {
    let mut p = Program::default();
    p.li(S3, LINE * step).addi(S4, ZERO, 2);
    let round = p.here();
    p.li(S0, data(0)).addi(S1, ZERO, lines);
    p.jump_to_line();
    let again = p.here();
    p.ld(T0, S0, 0).add(S2, T0, T0).marker(S2, MARK);
    p.add(S0, S0, S3).addi(S1, S1, -1).addi(T2, ZERO, pause);
    let waits = p.here();
    p.addi(T2, T2, -1).branch(5, T2, ZERO, waits);
    p.branch(1, S1, ZERO, again).addi(S4, S4, -1);
    p.branch(1, S4, ZERO, round).word(WFI);
    let machine = run(config, &[p]);
    machine.markers().iter().map(|m| m.tick).collect()
}

/// Ticks of a cycle of the harts, and of the network.
const CYCLE: Tick = 2;
const NETWORK: Tick = 4;

/// A first level that fetches `distance` lines ahead has `distance + 1` under way while the hart waits for one: they come in the time of
/// one miss and a cycle, because a line is asked for a cycle after the access that names it. No line comes sooner than a hit.
#[test]
fn a_stream_of_a_first_level_is_as_fast_as_its_distance_lets_it_be() {
    let plain = first(cluster(1), None);
    let miss = period(&walked(&plain, 60, 1, 0).0, 1) / 4;
    let again = period(&walked_again(&plain, LONG), 1) / 4;
    let all_there = walked_again(&plain, 60);
    let hit = period(&all_there, 1) / 4;
    assert!(miss > again && again > hit, "{miss}, {again}, {hit}");
    for distance in 1..=4u32 {
        let config = first(plain.clone(), Some(stream(distance)));
        let lines = distance as usize + 1;
        let (ticks, [second, _, ahead]) = walked_first(&config, 60, 1, 0);
        // Memory answers at edges of the network's clock.
        let expected = 4 * (miss + CYCLE).max(lines as Tick * hit);
        let rounding = period(&ticks, lines).abs_diff(expected);
        assert!(rounding <= 4 * NETWORK, "distance {distance}: {rounding}");
        // The first three train; some of what is behind the last line has come, too.
        assert_eq!(second, 0);
        assert!((57..=57 + u64::from(distance)).contains(&ahead), "{ahead}");
        // The same for lines that the second level has, without any rounding.
        let expected = 4 * (again + CYCLE).max(lines as Tick * hit);
        let period = period(&walked_again(&config, LONG), lines);
        assert_eq!(period, expected, "distance {distance}");
    }
}

/// Everything behind the third line of a slow stream hits in the first level, whichever its step; an instruction with a stride of any
/// length is followed in the same way; steps that are no stream change no tick.
#[test]
fn a_slow_stream_hits_in_the_first_level() {
    let plain = first(cluster(1), None);
    let kinds = [
        (stream(3), 1),
        (stream(3), 3),
        (by_instruction(2), 1),
        (by_instruction(2), 12),
    ];
    for (prefetcher, step) in kinds {
        let config = first(plain.clone(), Some(prefetcher));
        // Within a page.
        let lines = 60 / step as i32;
        let slow = steps(&twice(&plain, lines, step, 200));
        let fast = steps(&twice(&config, lines, step, 200));
        assert_eq!(fast[..2], slow[..2], "step {step}");
        // In the second round, everything is there.
        let hit = slow[slow.len() - 1];
        let mut first = fast[2..lines as usize - 1].iter();
        assert!(first.all(|one| *one == hit), "step {step}: {hit}, {fast:?}");
        let (_, [_, _, ahead]) = walked_first(&config, lines, step, 200);
        assert!(ahead >= lines as u64 - 3, "step {step}: {ahead}");
    }
    let config = first(plain.clone(), Some(stream(3)));
    assert_eq!(walked(&config, 40, 9, 0), walked(&plain, 40, 9, 0));
}

/// An access to a line that is on its way joins the request: none is made twice, and each access counts once.
#[test]
fn an_access_joins_the_line_that_is_on_its_way() {
    let plain = first(cluster(1), None);
    let counted = |config: &PlatformConfig| {
        let machine = run(config, &[walk(0, 60, 1, 0)]);
        let all = machine.statistics().caches;
        let mut own = all.iter().filter(|cache| cache.level == Level::L1d);
        let counters = own.next().expect("a first level").counters;
        (counters.hits + counters.misses, second(&machine, 0).misses)
    };
    let (accesses, below) = counted(&plain);
    let config = first(plain.clone(), Some(stream(3)));
    // Three are fetched for nothing.
    assert_eq!(counted(&config), (accesses, below + 3));
}

/// Whoever waits because of a line that is fetched ahead waits for the hart that it serves, and every wait is booked.
#[test]
fn waits_for_lines_of_a_first_level_are_booked_to_its_hart() {
    let mut config = first(cluster(2), Some(stream(4)));
    let cluster = config.tiles[0].cluster.as_mut().expect("a cluster");
    cluster.fills = vec![0b0011, 0b1100];
    let machine = run(&config, &[keeper(0, 384, 6), walk(1, 2000, 1, 0)]);
    waits_are_booked(&machine);
    let waited = |victim: u16, culprit: u16| -> Tick {
        let booked = machine.ledger().bookings();
        let own = booked.iter().filter(|b| b.victim.activity == victim);
        let own = own.filter(|b| b.culprit.activity == culprit);
        own.map(|b| b.ticks).sum()
    };
    assert!(waited(0, 1) > 0 && waited(1, 0) > 0);
    // The victim's lines stay: what is fetched ahead for the other hart fills that hart's ways.
    assert_eq!(second(&machine, 0).misses_by_others, 0);
}

#[test]
fn windows_change_nothing_with_first_levels_that_fetch_ahead() {
    for (harts, prefetcher) in [
        (1, stream(3)),
        (2, by_instruction(4)),
        (4, stream(4)),
        (8, stream(3)),
    ] {
        for registers in [2, 8] {
            let mut config = first(cluster(harts), Some(prefetcher.clone()));
            let tile = &mut config.tiles[0];
            for cache in [&mut tile.l1d, &mut tile.l2] {
                let cache = cache.as_mut().expect("it has one");
                (cache.size, cache.mshrs) = (cache.size / 4, registers);
            }
            let programs = contending(harts.into());
            pieces_change_nothing(|| machine(&config, &programs), 150_000);
        }
    }
}

#[test]
fn numbers_change_nothing_with_first_levels_that_fetch_ahead() {
    let config = with(first(cluster(4), Some(stream(3))), Some(stream(4)));
    let mut renumbered = config.clone();
    let cluster = renumbered.tiles[0].cluster.as_mut().expect("a cluster");
    cluster.harts = vec![7, 3, 11, 0];
    assert!(seen_by_all(&config) == seen_by_all(&renumbered));
}

/// In clusters that are coherent with each other, too, windows change nothing, and additions under a reservation are never lost.
#[test]
fn first_levels_of_coherent_clusters_may_fetch_ahead() {
    let config = first(coherent(&[2, 2]), Some(stream(3)));
    let programs = contending(4);
    let build = || in_pairs(&config, &programs);
    pieces_change_nothing(build, 150_000);
    let sums = |config: &PlatformConfig| {
        let mut machine = in_pairs(config, &[(); 4].map(|()| adder(20)));
        machine.run(RunLimit { ticks: LIMIT }, None);
        waits_are_booked(&machine);
        let mut bytes = vec![0; 40 * LINE as usize];
        machine.peek(0, data(0), &mut bytes).expect("memory");
        let lines = bytes.chunks(LINE as usize);
        lines.map(|line| u64::from(line[0])).collect::<Vec<_>>()
    };
    assert_eq!(sums(&config), [80; 40]);
}

/// Adds one to each of 40 lines, in several rounds.
fn adder(rounds: i32) -> Program {
    let mut p = Program::default();
    p.li(S2, LINE).addi(S4, ZERO, rounds).addi(T0, ZERO, 1);
    let round = p.here();
    p.li(S0, data(0)).addi(S1, ZERO, 40);
    let again = p.here();
    p.amo(0, 0, T1, S0, T0).add(S0, S0, S2);
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    p.addi(S4, S4, -1).branch(1, S4, ZERO, round);
    p.word(FENCE).word(WFI);
    p
}
