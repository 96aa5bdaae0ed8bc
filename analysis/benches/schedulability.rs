//! Speed of the schedulability tests that studies call most often: task sets per second on one core.
//!
//! Sets are drawn as studies draw them: 20 tasks, periods log-uniform from 10 ms to 1 s in nanoseconds, utilisations summing
//! to 50 % to 100 % of the processors (in steps over the sets), rate-monotonic order. The generator is seeded and uses
//! integers, so every run times the same sets.
//!
//! At the end come ratios of times measured alternately, which say more on a busy machine than times do: two cores over one,
//! and phase three of the optimiser over a check of its answer (how many times longer it takes than reading its input).

use bulkhead_analysis::mc2::ways::{ONE, Scratch, WayPlan, WayProblem};
use bulkhead_analysis::schedulability::{
    Task, batch, edf, fixed_priority, global_edf, global_fixed_priority,
};
use bulkhead_random::Random;
use criterion::{Criterion, Throughput, criterion_group};
use std::hint::black_box;
use std::time::Instant;

const TASKS: usize = 20;
const SETS: usize = 2000;

/// A set whose utilisation is `permille` thousandths.
fn set(random: &mut Random, permille: u64) -> Vec<Task> {
    let weights: Vec<u64> = (0..TASKS).map(|_| 1 + random.below(1000)).collect();
    let sum: u64 = weights.iter().sum();
    let mut tasks: Vec<Task> = weights
        .iter()
        .map(|weight| {
            // Two decades: 10 ms times a power of ten in hundredths of a decade.
            let decade = random.below(2);
            let period = (10_000_000 * 10u64.pow(decade as u32)) * (100 + random.below(900)) / 100;
            let cost = (u128::from(period) * u128::from(weight * permille) / u128::from(sum * 1000))
                as u64;
            Task::new(cost.clamp(1, period), period)
        })
        .collect();
    tasks.sort_by_key(|t| t.period);
    tasks
}

fn sets(processors: u64) -> Vec<Vec<Task>> {
    let mut random = Random::new(0x9E37_79B9_7F4A_7C15);
    (0..SETS)
        .map(|i| {
            set(
                &mut random,
                processors * (500 + 500 * i as u64 / SETS as u64),
            )
        })
        .collect()
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedulability, 20 tasks");
    group.throughput(Throughput::Elements(SETS as u64));
    let one = sets(1);
    let four = sets(4);
    let count = |sets: &[Vec<Task>], test: &dyn Fn(&[Task]) -> bool| {
        sets.iter().filter(|s| test(s)).count()
    };
    group.bench_function("fixed priority, one processor", |b| {
        b.iter(|| {
            count(black_box(&one), &|s| {
                fixed_priority::schedulable(s).unwrap_or(false)
            })
        });
    });
    let mut scan = fixed_priority::Scan::default();
    group.bench_function("fixed priority, one processor, memory reused", |b| {
        b.iter(|| {
            black_box(&one)
                .iter()
                .filter(|s| scan.schedulable(s))
                .count()
        });
    });
    group.bench_function("fixed priority, all response times", |b| {
        b.iter(|| {
            black_box(&one)
                .iter()
                .map(|s| fixed_priority::response_times(s).map_or(0, |r| r.len()))
                .sum::<usize>()
        });
    });
    group.bench_function("earliest deadline first, one processor", |b| {
        b.iter(|| count(black_box(&one), &|s| edf::schedulable(s).unwrap_or(false)));
    });
    group.sample_size(20);
    group.bench_function("global fixed priority, four processors", |b| {
        b.iter(|| {
            count(black_box(&four), &|s| {
                global_fixed_priority::schedulable(s, 4).unwrap_or(false)
            })
        });
    });
    group.bench_function("global earliest deadline first, four processors", |b| {
        b.iter(|| {
            count(black_box(&four), &|s| {
                global_edf::schedulable(s, 4).unwrap_or(false)
            })
        });
    });
    group.finish();
}

/// Sixteen ways, four processors, demands that fall with ways; half of the problems are feasible.
fn way_problems() -> Vec<WayProblem> {
    let mut random = Random::new(0x0DDB_1A5E_5BAD_5EED);
    (0..64)
        .map(|i| {
            let mut problem = WayProblem::new(16, 4);
            problem.minimum_level_c = 1;
            problem.locked = 0..=i % 4;
            let load = 30 + random.below(50);
            let mut fill = |table: &mut [u64], percent: u64| {
                let (base, more) = (ONE / 100 * percent, ONE / 100 * random.below(60));
                for (at, entry) in table.iter_mut().enumerate() {
                    *entry = base + more / (1 + at as u64 % 17) + more / (4 + at as u64 / 17);
                }
            };
            for processor in &mut problem.processors {
                fill(&mut processor.a, load);
                fill(&mut processor.ab_b, load + 10);
                fill(&mut processor.ab_c, load / 2);
            }
            fill(&mut problem.c_total, 2 * load);
            fill(&mut problem.c_largest, load);
            problem
        })
        .collect()
}

fn bench_ways(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("optimiser");
    let problems = way_problems();
    let (mut scratch, mut plan) = (Scratch::default(), WayPlan::default());
    group.throughput(Throughput::Elements(problems.len() as u64));
    group.bench_function("ways of six regions, exact", |b| {
        b.iter(|| {
            black_box(&problems)
                .iter()
                .filter(|p| p.solve_into(&mut scratch, &mut plan))
                .count()
        });
    });
    group.finish();
}

/// The shortest of several alternating measurements of two functions, in seconds.
fn in_turn(mut first: impl FnMut(), mut second: impl FnMut()) -> (f64, f64) {
    let mut least = (f64::MAX, f64::MAX);
    // Many short rounds: on a busy machine some of them are undisturbed.
    for _ in 0..80 {
        let begin = Instant::now();
        first();
        let middle = Instant::now();
        second();
        least.0 = least.0.min((middle - begin).as_secs_f64());
        least.1 = least.1.min(middle.elapsed().as_secs_f64());
    }
    least
}

fn ratios() {
    let sets: Vec<Vec<Task>> = (0..8).flat_map(|_| sets(1)).collect();
    let pool = |workers| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(workers)
            .build()
            .expect("workers can be started")
    };
    let (one, two) = (pool(1), pool(2));
    let judge = |pool: &rayon::ThreadPool| {
        pool.install(|| batch::fixed_priority(black_box(&sets)).expect("sets are valid"))
    };
    assert_eq!(judge(&one), judge(&two));
    let times = in_turn(|| drop(judge(&one)), || drop(judge(&two)));
    println!(
        "two cores over one, fixed priority, {} sets: {:.2} times ({:.0} and {:.0} sets a second)",
        sets.len(),
        times.0 / times.1,
        sets.len() as f64 / times.0,
        sets.len() as f64 / times.1,
    );
    let problems = way_problems();
    let (mut scratch, mut plan) = (Scratch::default(), WayPlan::default());
    let mut solved = 0usize;
    let mut sum = 0u64;
    let times = in_turn(
        || {
            solved = problems
                .iter()
                .filter(|p| p.solve_into(&mut scratch, &mut plan))
                .count()
        },
        || {
            sum = black_box(&problems)
                .iter()
                .flat_map(|p| &p.processors)
                .flat_map(|t| [&t.a, &t.ab_b, &t.ab_c])
                .flat_map(|t| &t[..17 * 4])
                .fold(0, |sum: u64, &u| sum.wrapping_add(u));
        },
    );
    println!(
        "ways of six regions: {:.2} us a problem ({solved} of {} have a plan)\n  {:.1} times adding up its tables (sum {sum:x})",
        times.0 / problems.len() as f64 * 1e6,
        problems.len(),
        times.0 / times.1,
    );
}

criterion_group!(benches, bench, bench_ways);

fn main() {
    benches();
    // `cargo test --benches` only checks that everything runs.
    if std::env::args().any(|a| a == "--bench") {
        ratios();
    }
    Criterion::default().configure_from_args().final_summary();
}
