//! How near the bounds of programs on the harts of a cluster are to what devices beside them do, where memory serves harts in turn.
//!
//! One rival commands a disk and accesses its registers without a pause (`devices/registers`), one takes the packets of a camera, and one makes
//! bursts of accesses. The search begins with the worst that one would try first, and goes on with random ones. That nothing exceeds a
//! bound, and how near it comes, is what it is for.

use crate::cluster_bounds::{one, ran};
use crate::turns::{TURNS, victims};
use bulkhead_random::Random;
use bulkhead_report::result::RunResult;
use bulkhead_runner::bare::rivals::Burst;
use bulkhead_runner::measure::jobs::worst_started;

/// Random neighbours that are tried for each victim after the fixed ones.
const RANDOM: u32 = 4;

/// What is beside a victim.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    /// Bytes of a command of the disk, commands under way, and accesses to its registers in each turn: loads, stores.
    disk: (u64, u64, u64, u64),
    /// Cycles from one turn to the next.
    period: u64,
    /// Rate of the disk, and accesses under way.
    rate: (&'static str, u64),
    burst: &'static str,
    /// From one packet of the camera to the next.
    gap: &'static str,
    bursts: Burst,
}

const SATURATED: Neighbours = Neighbours {
    disk: (16384, 8, 4, 4),
    period: 0,
    rate: ("4GiB/s", 32),
    burst: "64B",
    gap: "3us",
    bursts: Burst {
        misses: 4,
        hits: 0,
        cleans: 0,
        stores: 0,
        period: 0,
        phase: 0,
        shift: 0,
    },
};

fn known() -> Vec<Neighbours> {
    let cleans = Burst {
        cleans: 4,
        misses: 0,
        ..SATURATED.bursts
    };
    vec![
        SATURATED,
        Neighbours {
            bursts: cleans,
            ..SATURATED
        },
        // Registers alone, and the disk alone.
        Neighbours {
            disk: (512, 1, 4, 4),
            rate: ("1MiB/s", 1),
            ..SATURATED
        },
        Neighbours {
            disk: (16384, 8, 0, 0),
            bursts: cleans,
            ..SATURATED
        },
        // One period for all, near that of a chase in memory.
        Neighbours {
            period: 290,
            bursts: Burst {
                cleans: 1,
                period: 290,
                ..Burst::default()
            },
            ..SATURATED
        },
    ]
}

fn random(random: &mut Random) -> Neighbours {
    let period = one(random, &[0, 150, 250, 350, 700]);
    Neighbours {
        disk: (
            one(random, &[512, 4096, 16384]),
            1 + random.below(8),
            random.below(5),
            random.below(5),
        ),
        period,
        rate: (
            one(random, &["100MiB/s", "600MiB/s", "4GiB/s"]),
            1 + random.below(32),
        ),
        burst: one(random, &["8B", "32B", "64B"]),
        gap: one(random, &["3us", "20us"]),
        bursts: Burst::random(random, period),
    }
}

/// The system: a victim on hart 0, and its neighbours.
fn beside(victim: &str, all: &Neighbours) -> RunResult {
    let (bytes, depth, loads, stores) = all.disk;
    let arguments = |all: &[(&str, u64)]| -> String {
        let each = all.iter();
        each.map(|(name, value)| format!(r#"<argument name="{name}" value="{value}"/>"#))
            .collect()
    };
    let disk = arguments(&[
        ("bytes", bytes),
        ("depth", depth),
        ("loads", loads),
        ("stores", stores),
        ("period", all.period),
    ]);
    let bursts = arguments(&all.bursts.arguments());
    let text = format!(
        r#"<system name="s" paradigm="bare" platform="imx6-devices" duration="200ms"><domain name="d">{victim}
        <app name="disk" harts="1" program="devices/registers" ways="4-7" memory="256KiB">{disk}<attach peripheral="disk"/></app>
        <app name="viewer" harts="2" program="devices/camera" ways="8-11" memory="256KiB"><argument name="frames" value="100000"/><argument name="lossy" value="true"/><attach peripheral="camera"/></app>
        <app name="bursts" harts="3" program="memory/bursts" ways="12-15" memory="2MiB">{bursts}</app>
        </domain><flow name="pass" from="own" to="own"/></system>"#
    );
    let (rate, outstanding) = all.rate;
    let changes = [
        "cluster@miss-registers=hart".to_owned(),
        format!("peripheral[disk]@rate={rate}"),
        format!("peripheral[disk]@outstanding={outstanding}"),
        format!("peripheral[disk]@burst={}", all.burst),
        "peripheral[disk]@startup=1".to_owned(),
        "peripheral[camera]@rate=1GiB/s".to_owned(),
        format!("peripheral[camera]@gap={}", all.gap),
    ];
    let turns = TURNS.iter().map(|one| (*one).to_owned());
    let overrides = turns.chain(changes).map(|one| format!("platform/{one}"));
    ran(&text, overrides.collect())
}

/// With turns by hart, a program that uses no device has a bound beside programs with devices, and no neighbour of a search exceeds it.
#[test]
fn no_device_of_a_search_exceeds_the_bound() {
    let mut ratios = Vec::new();
    for (name, victim) in &victims()[1..] {
        let mut found: Option<(u64, u64, u64, Neighbours)> = None;
        let random_ones = &mut Random::new(13);
        let known = known();
        for number in 0..known.len() + RANDOM as usize {
            let tried = known
                .get(number)
                .copied()
                .unwrap_or_else(|| random(random_ones));
            let result = beside(victim, &tried);
            let flow = &result.variants[0].flows[0];
            let bound = flow.bound.as_ref();
            let bound = bound.unwrap_or_else(|| panic!("{:?} {tried:?}", flow.unbounded));
            let worst = worst_started(&flow.samples).expect("several passes");
            assert!(
                worst <= bound.ticks,
                "{name}: {worst} is above the bound of {}: {tried:?}",
                bound.ticks
            );
            let alone = result.added.first().and_then(|added| added.worst);
            if found.as_ref().is_none_or(|(_, before, ..)| worst > *before) {
                found = Some((alone.unwrap_or(0), worst, bound.ticks, tried));
            }
        }
        let (alone, worst, bound, tried) = found.expect("it tried");
        let ratio = bound as f64 / worst as f64;
        println!(
            "{name}: alone {alone}, worst {worst}, bound {bound}: {ratio:.2} times\n  {tried:?}"
        );
        ratios.push(ratio);
    }
    println!("{ratios:.2?}");
}
