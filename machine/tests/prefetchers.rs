//! Prefetchers of a whole chip: what programs compute is what they compute without, whatever is fetched ahead; ticks depend on no window; and the events
//! count.

use crate::common::*;
use bulkhead_abi::hpm::Event;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{PlatformConfig, PlatformKind, PrefetcherConfig, PrefetcherKind};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::Tick;
use proptest::prelude::*;

const DATA: u64 = MEMORY_BASE + 0x8_0000;
const MARK: u32 = 0x100;
const LIMIT: Tick = 3_000_000;

fn stream() -> PrefetcherConfig {
    PrefetcherConfig {
        kind: PrefetcherKind::Stream {
            streams: 8,
            stride: 8,
            training: 3,
            distance: 3,
        },
        degree: 2,
        page: 4096,
    }
}

/// Gives the data cache and the second level of each tile these prefetchers.
fn with(
    mut config: PlatformConfig,
    first: Option<PrefetcherConfig>,
    second: Option<PrefetcherConfig>,
) -> PlatformConfig {
    for tile in &mut config.tiles {
        let caches = [(&mut tile.l1d, &first), (&mut tile.l2, &second)];
        for (cache, prefetcher) in caches {
            let cache = cache.as_mut().expect("it has one");
            cache.prefetcher.clone_from(prefetcher);
        }
    }
    config
}

/// Reads lines one after the other, `step` bytes apart, each when the one before has come, and marks the sum.
fn walk(lines: i32, step: i32) -> Program {
    let mut p = Program::default();
    // Events of prefetchers: counters 3 and 4.
    p.addi(T0, ZERO, Event::DataPrefetch as i32)
        .csr(1, 0x323, T0);
    p.addi(T0, ZERO, Event::SecondPrefetch as i32)
        .csr(1, 0x324, T0);
    p.li(S0, DATA).addi(S1, ZERO, lines).addi(S2, ZERO, 0);
    let again = p.here();
    p.ld(T0, S0, 0).add(S2, S2, T0).addi(S0, S0, step);
    p.addi(S1, S1, -1).branch(1, S1, ZERO, again);
    p.marker(S2, MARK);
    for (counter, kind) in [(0xb03, MARK + 1), (0xb04, MARK + 2)] {
        // csrrs t0, counter, zero
        p.word(counter << 20 | 2 << 12 | T0 << 7 | 0x73)
            .marker(T0, kind);
    }
    p.word(WFI).spin();
    p
}

/// When the walk ends, which sum it finds, and how many lines each cache fetched ahead.
fn walked(config: &PlatformConfig, lines: i32, step: i32) -> (Tick, u64, [u64; 2]) {
    let mut machine = Machine::new(config).expect("valid");
    for line in 0..lines as u64 {
        let at = DATA + line * step as u64;
        let loaded = machine.load_tile(0, at, &(line + 1).to_le_bytes());
        loaded.expect("memory");
    }
    walk(lines, step).start(&mut machine, 0);
    machine.run(RunLimit { ticks: LIMIT }, None);
    let markers = machine.markers();
    let [mark, first, second] = markers[..] else {
        panic!("{markers:?}");
    };
    (mark.tick, mark.value, [first.value, second.value])
}

#[test]
fn a_walk_is_faster_and_finds_the_same() {
    let plain = platform(PlatformKind::Bare, 1);
    for (step, lines) in [(64, 60), (128, 30), (64, 200)] {
        let sum = (lines as u64) * (lines as u64 + 1) / 2;
        let (slow, found, ahead) = walked(&plain, lines, step);
        assert_eq!((found, ahead), (sum, [0, 0]));
        for (first, second) in [
            (Some(stream()), None),
            (None, Some(stream())),
            (Some(by_instruction(4)), None),
            (Some(stream()), Some(stream())),
        ] {
            let config = with(plain.clone(), first.clone(), second.clone());
            let (fast, found, ahead) = walked(&config, lines, step);
            assert_eq!(found, sum);
            // No more than there are and a few behind them in each page; most of them, if no other cache does.
            let most = lines as u64 + 4 * (lines as u64 * step as u64).div_ceil(4096);
            let both = first.is_some() && second.is_some();
            for (ahead, prefetcher) in ahead.into_iter().zip([&first, &second]) {
                match prefetcher {
                    None => assert_eq!(ahead, 0),
                    Some(_) => assert!(ahead <= most && (both || 2 * ahead > lines as u64)),
                }
            }
            assert!(
                fast * 3 < slow * 2,
                "{first:?}, {second:?}, step {step}: {fast} of {slow} ticks"
            );
        }
    }
}

#[test]
fn a_fetch_that_makes_the_second_level_fetch_ahead_follows_lines_in_turn() {
    // A loop of more lines of code than both levels have, so that its second round fetches blocks that are decoded; each uses two lines of one
    // set in turn.
    let mut config = with(platform(PlatformKind::Bare, 1), None, Some(stream()));
    let tile = &mut config.tiles[0];
    for (cache, size) in [(&mut tile.l1i, 2 << 10), (&mut tile.l2, 8 << 10)] {
        cache.as_mut().expect("it has one").size = size;
    }
    let mut p = Program::default();
    p.addi(T0, ZERO, Event::SecondPrefetch as i32)
        .csr(1, 0x324, T0);
    p.li(S0, DATA).li(S1, DATA + 0x800).addi(A0, ZERO, 3);
    p.addi(S2, ZERO, 0).jump_to_line();
    let again = p.here();
    for _ in 0..256 {
        for base in [S0, S1, S0, S1] {
            p.ld(T0, base, 0).add(S2, S2, T0);
        }
        p.jump_to_line();
    }
    p.addi(A0, A0, -1);
    let ends = p.here();
    p.word(0).jump_far(again);
    let end = p.here();
    p.patch_branch(ends, 0, A0, ZERO, end);
    // csrrs t0, mhpmcounter4, zero
    p.word(0xb04 << 20 | 2 << 12 | T0 << 7 | 0x73);
    p.marker(S2, MARK).marker(T0, MARK).word(WFI).spin();
    let mut machine = Machine::new(&config).expect("valid");
    for (at, value) in [(DATA, 1u64), (DATA + 0x800, 2)] {
        let loaded = machine.load_tile(0, at, &value.to_le_bytes());
        loaded.expect("memory");
    }
    p.start(&mut machine, 0);
    machine.run(RunLimit { ticks: LIMIT }, None);
    let values: Vec<u64> = machine.markers().iter().map(|mark| mark.value).collect();
    let [sum, ahead] = values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(sum, 3 * 256 * 6);
    assert!(ahead > 256, "{ahead} lines were fetched ahead");
}

#[derive(Clone, Debug)]
struct Random {
    steps: Vec<(u8, u64)>,
}

fn random() -> impl Strategy<Value = Random> {
    prop::collection::vec((0u8..8, 0u64..2048), 4..24).prop_map(|steps| Random { steps })
}

/// A loop of loads, stores and atomic operations at addresses that move from round to round, so that there is something to foresee.
fn program(random: &Random) -> Program {
    let mut p = Program::default();
    p.li(S0, DATA).addi(S1, ZERO, 30).addi(S2, ZERO, 1);
    let again = p.here();
    for &(what, offset) in &random.steps {
        p.li(T1, offset * 8).add(T1, T1, S0);
        match what {
            0..4 => p.ld(T0, T1, 0).add(S2, S2, T0),
            4 | 5 => p.sd(S2, T1, 0),
            6 => p.amo(0, 0, T0, T1, S2),
            _ => p.cbo(CBO_CLEAN, T1),
        };
    }
    p.addi(S0, S0, 64).addi(S1, S1, -1).marker(S2, MARK);
    let ends = p.here();
    p.word(0).jump_far(again);
    let end = p.here();
    p.patch_branch(ends, 0, S1, ZERO, end);
    p.word(FENCE).word(WFI).spin();
    p
}

fn run(
    config: &PlatformConfig,
    programs: &[Random],
    piece: Option<Tick>,
) -> (Vec<(Tick, u64)>, Vec<u8>) {
    let mut machine = Machine::new(config).expect("valid");
    for (tile, random) in programs.iter().enumerate() {
        let at = 0x4000 * tile as u64;
        start_hart(&mut machine, (tile as u16, 0), &program(random), at);
    }
    let mut length = 1;
    while machine.now() < LIMIT {
        length = length * 5 % 97;
        let ticks = piece.map_or(LIMIT, |piece| machine.now() + piece + length);
        let ticks = ticks.min(LIMIT);
        if machine.run(RunLimit { ticks }, None) != Outcome::Limit {
            break;
        }
    }
    let markers = machine.markers();
    let marked = markers.iter().filter(|marker| marker.tile == 0);
    let marked = marked.map(|marker| (marker.tick, marker.value)).collect();
    let mut bytes = vec![0; 0x8000];
    machine.peek(0, DATA, &mut bytes).expect("memory");
    (marked, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// One hart finds and leaves the same with any prefetchers, alone or in a cluster; and its ticks depend on no window.
    #[test]
    fn contents_never_change(
        random in random(),
        which in 0u8..16,
        ports in any::<bool>(),
        in_cluster in any::<bool>(),
    ) {
        let mut plain = match in_cluster {
            true => cluster(1),
            false => platform(PlatformKind::Bare, 1),
        };
        for tile in &mut plain.tiles {
            // Small, so that lines come and go.
            for cache in [&mut tile.l1d, &mut tile.l2].into_iter().flatten() {
                cache.size /= 8;
            }
        }
        if ports {
            other_controller(&mut plain, 1);
        }
        let kind = |bits: u8| match bits {
            0 => None,
            1 => Some(by_instruction(4)),
            _ => Some(stream()),
        };
        let second = match in_cluster && which >> 2 == 1 {
            // The second level of a cluster follows streams only.
            true => Some(stream()),
            false => kind(which >> 2),
        };
        let config = with(plain.clone(), kind(which & 3), second);
        let programs = [random];
        let (marked, bytes) = run(&config, &programs, None);
        let (expected, contents) = run(&plain, &programs, None);
        let values = |all: &[(Tick, u64)]| all.iter().map(|one| one.1).collect::<Vec<_>>();
        prop_assert_eq!(values(&marked), values(&expected));
        prop_assert!(bytes == contents);
        prop_assert_eq!(run(&config, &programs, Some(1000)).0, marked);
    }

    /// Ticks of a tile do not depend on how far others run ahead.
    #[test]
    fn windows_change_no_tick(programs in prop::collection::vec(random(), 2..4)) {
        let plain = platform(PlatformKind::Bare, programs.len() as u16);
        let config = with(plain, Some(stream()), Some(by_instruction(4)));
        let at_once = run(&config, &programs, None);
        prop_assert!(run(&config, &programs, Some(300)) == at_once);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |config: &PlatformConfig| {
        let error = Machine::new(config).err().expect("not valid");
        error.to_string()
    };
    let mut config = platform(PlatformKind::Bare, 1);
    config.tiles[0].l1i.as_mut().unwrap().prefetcher = Some(stream());
    assert!(refused(&config).contains("an instruction cache has no prefetcher"));
    let mut wrong = stream();
    wrong.degree = 0;
    let config = with(platform(PlatformKind::Bare, 1), Some(wrong), None);
    assert!(refused(&config).contains("degree must be 1 to 64"));
}
