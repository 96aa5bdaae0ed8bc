//! A simulation that does not know about rests and rounds: a chain of three programs, each with steps that compute and steps that access
//! memory, some before and some after the message that it passes on. Beside others, each access takes longer than alone by up to a fixed
//! time. Where [`super::alone`] sees enough rest, no sample may take longer than the worst sample alone plus that time for each access of a
//! job. Where it does not, some samples do, because their work piles up.

use super::{Alone, alone};
use crate::tiled::names;
use crate::watch::{Event, Log};
use bulkhead_machine::ledger::Ended;
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::Owner;
use bulkhead_model::{LoadOptions, System, load_system};
use bulkhead_random::Random;
use bulkhead_report::result::Sample;

/// Systems per test; `BULKHEAD_SYSTEMS` overrides the number.
const SYSTEMS: u64 = 300;
const SAMPLES: usize = 12;
/// Sensor, controller, actuator.
const TILES: [u16; 3] = [2, 3, 4];

/// The work of a program for a sample.
struct Job {
    /// Ticks of each step, and whether it is an access.
    steps: Vec<(u64, bool)>,
    /// After this many steps it passes the sample on. The first program's sample begins after one step.
    passes: usize,
}

struct Drawn {
    distance: u64,
    /// An access may take this much longer.
    longer: u64,
    /// For each sample, the jobs of all programs.
    jobs: Vec<[Job; 3]>,
}

fn drawn(random: &mut Random) -> Drawn {
    let most = 1 + random.below(8);
    let mut jobs = Vec::new();
    for number in 0..SAMPLES as u64 {
        jobs.push([0_u64, 1, 2].map(|_| {
            // Every fourth job has more to do.
            let steps = 2 + random.below(most) + if number % 4 == 3 { random.below(4) } else { 0 };
            let step = |_| (1 + random.below(20), random.chance(50));
            let steps: Vec<(u64, bool)> = (0..steps).map(step).collect();
            let passes = 1 + random.below(steps.len() as u64) as usize;
            Job { steps, passes }
        }));
    }
    Drawn {
        distance: 40 + random.below(120) + if random.chance(60) { 800 } else { 0 },
        longer: random.below(40),
        jobs,
    }
}

#[derive(Default)]
struct Seen {
    samples: Vec<Sample>,
    ended: Vec<Ended>,
    log: Log,
}

/// Runs all jobs. `more`: how much longer the next access takes.
fn run(drawn: &Drawn, mut more: impl FnMut() -> u64) -> Seen {
    let mut seen = Seen::default();
    let mut free = [0_u64; 3];
    let mut logs: [Vec<(u64, u64)>; 3] = Default::default();
    for (number, jobs) in drawn.jobs.iter().enumerate() {
        let mut there = 1000 + number as u64 * drawn.distance;
        let mut begin = 0;
        for (at, job) in jobs.iter().enumerate() {
            let mut now = there.max(free[at]);
            let awake = now;
            for (done, &(ticks, access)) in job.steps.iter().enumerate() {
                let end = now + ticks + if access { more() } else { 0 };
                if access {
                    seen.ended.push(Ended {
                        owner: Owner::new(TILES[at], 2),
                        transaction: Transaction::CacheRead,
                        begin: now,
                        end,
                    });
                }
                now = end;
                if at == 0 && done == 0 {
                    begin = now;
                }
                if done + 1 == job.passes {
                    there = now;
                }
            }
            free[at] = now;
            match logs[at].last_mut() {
                Some(last) if last.1 == awake => last.1 = now,
                _ => logs[at].push((awake, now)),
            }
        }
        seen.samples.push(Sample {
            number: number as u64,
            begin,
            latency: there.saturating_sub(begin),
        });
    }
    for (tile, spans) in TILES.into_iter().zip(logs) {
        seen.log.0.push((tile, 10, Event::Asleep));
        for (begin, end) in spans {
            seen.log.0.push((tile, begin, Event::Awake));
            seen.log.0.push((tile, end, Event::Asleep));
        }
    }
    seen
}

fn known(system: &System, seen: &Seen) -> Alone {
    let names = names::of(system, &names::all_as(system, 2));
    let flow = super::tests::result(seen.samples.clone());
    alone(system, &names, &flow, &seen.ended, Some(&seen.log)).expect("samples and accesses")
}

fn accesses(jobs: &[super::Job]) -> u64 {
    jobs.iter().map(|job| job.line_reads).sum()
}

#[test]
fn where_rest_is_enough_no_sample_is_longer_than_its_accesses_allow() {
    let systems = std::env::var("BULKHEAD_SYSTEMS").ok();
    let systems = systems.map_or(SYSTEMS, |text| text.parse().expect("a number"));
    let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
    let system = system.variants.into_iter().next().expect("alone");
    let (mut judged, mut refused, mut piled_up) = (0_u64, 0_u64, 0_u64);
    for number in 0..systems {
        let mut random = Random::new(number + 1);
        let drawn = drawn(&mut random);
        let quiet = run(&drawn, || 0);
        if quiet.ended.is_empty() {
            continue;
        }
        let known = known(&system, &quiet);
        let rest = known.rest.as_ref().expect("seen");
        let enough = drawn.longer * accesses(&rest.jobs) <= rest.shortest;
        let bound = known.worst + drawn.longer * accesses(&known.jobs);
        let mut worst = 0;
        for way in 0..12 {
            let seen = run(&drawn, || match way {
                0 => drawn.longer,
                _ if random.chance(way * 8) => drawn.longer,
                _ => random.below(drawn.longer + 1),
            });
            worst = seen
                .samples
                .iter()
                .map(|one| one.latency)
                .fold(worst, u64::max);
        }
        let above = worst > bound;
        assert!(
            !(enough && above),
            "system {number}: {worst} was seen, the bound is {bound}"
        );
        judged += u64::from(enough);
        refused += u64::from(!enough);
        piled_up += u64::from(!enough && above);
    }
    println!(
        "{judged} bounded, {refused} refused, of them {piled_up} above what would have been the bound"
    );
    assert!(judged * 5 > systems, "silence is no soundness");
    assert!(piled_up > 0, "the refusal has a reason");
}
