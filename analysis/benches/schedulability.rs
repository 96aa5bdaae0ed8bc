//! Speed of the schedulability tests that studies call most: task sets a second on one core.
//!
//! Sets are drawn as studies draw them: 20 tasks, periods log-uniform from 10 ms to 1 s in nanoseconds, utilisations summing
//! to 50 % to 100 % of the processors (in steps over the sets), rate-monotonic order. The generator is in integers and
//! seeded, so that every run times the same sets.

use bulkhead_analysis::schedulability::{
    Task, edf, fixed_priority, global_edf, global_fixed_priority,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const TASKS: usize = 20;
const SETS: usize = 2000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

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
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
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

criterion_group!(benches, bench);
criterion_main!(benches);
