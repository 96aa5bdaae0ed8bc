//! Random systems: small numbers, so that everything interacts, and most of them not overloaded.

use bulkhead_model::system::Cpu;
use bulkhead_model::tasks::{
    CostPoint, Device, Direction, Memguard, MutexOrder, Overheads, Policy, Section, Share, Slot,
    Table, Task, TaskSystem,
};
use bulkhead_model::units::Time;

use crate::random::Random;

/// Nanoseconds as a time of a description.
pub fn ns(nanoseconds: u64) -> Time {
    Time(nanoseconds * 1000)
}

pub const PERIODS: [u64; 10] = [12, 15, 20, 24, 30, 36, 40, 48, 60, 90];

/// Tasks of about this utilisation in hundredths, none of them above it alone.
pub fn tasks(random: &mut Random, most: u64, hundredths: u64, periods: &[u64]) -> Vec<Task> {
    let count = random.between(2, most);
    let mut left = hundredths;
    (0..count)
        .map(|i| {
            let period = random.of_list(periods);
            let share = if i + 1 == count {
                left
            } else {
                random.below(left + 1)
            };
            left -= share.min(left);
            let cost = (period * share / 100).clamp(1, period);
            Task::new(format!("t{i}"), ns(cost), ns(period))
        })
        .collect()
}

pub fn system(
    policy: Policy,
    processors: u32,
    mut tasks: Vec<Task>,
    random: &mut Random,
) -> TaskSystem {
    for task in &mut tasks {
        if !policy.is_global() {
            task.core = Some(random.below(processors.into()) as u32);
        }
    }
    if policy.has_priorities() {
        let order = random.shuffled((1..=tasks.len() as u32).collect());
        // Mostly by period, so that there are bounds.
        let by_period = random.below(4) > 0;
        let mut list: Vec<usize> = (0..tasks.len()).collect();
        list.sort_by_key(|&i| tasks[i].period);
        for (position, &i) in list.iter().enumerate() {
            tasks[i].priority = Some(if by_period {
                position as u32 + 1
            } else {
                order[position]
            });
        }
    }
    TaskSystem::new("random", processors, policy, tasks)
}

pub fn jitter(system: &mut TaskSystem, random: &mut Random) {
    for task in &mut system.tasks {
        if random.one_in(3) {
            let most = task.period.nanoseconds() * 3 / 2;
            task.jitter = ns(random.below(most));
        }
    }
}

pub fn deadlines(system: &mut TaskSystem, random: &mut Random, beyond: bool) {
    for task in &mut system.tasks {
        let (cost, period) = (task.cost.unwrap().nanoseconds(), task.period.nanoseconds());
        let most = if beyond { 2 * period } else { period };
        if random.one_in(2) {
            task.deadline = ns(random.between((cost + period) / 2, most));
        }
    }
}

pub fn overheads(system: &mut TaskSystem, random: &mut Random) {
    system.overheads = Overheads {
        schedule: ns(random.below(3)),
        release: ns(random.below(3)),
        interrupt: ns(random.below(2)),
    };
}

pub fn devices(system: &mut TaskSystem, random: &mut Random) {
    for number in 0..random.below(3) {
        system.devices.push(Device {
            name: format!("d{number}"),
            rate: None,
            direction: Direction::In,
            copied: false,
            interrupts: Some((ns(random.between(15, 80)), ns(random.between(1, 3)))),
            core: random.below(system.processors.into()) as u32,
            task: None,
            buffer: None,
        });
    }
}

fn memguard(system: &mut TaskSystem, random: &mut Random) {
    // Hardware would not split an access by a preemption.
    let access = 1;
    let period = random.of_list(&[10, 16, 25]);
    system.memguard = Some(Memguard {
        period: ns(period),
        access: ns(access),
        accesses: None,
    });
    for core in 0..system.processors {
        system.shares.push(Share {
            core: Some(core),
            budget: Some(random.between(period / access / 3, period / access)),
            ..Share::default()
        });
    }
    for task in &mut system.tasks {
        task.deadline = task.deadline.min(task.period);
        if random.below(3) > 0 {
            task.accesses = random.below(task.cost.unwrap().nanoseconds() / access + 1);
        }
    }
}

pub fn sections(system: &mut TaskSystem, random: &mut Random) {
    for task in &mut system.tasks {
        let mut left = task.cost.unwrap().nanoseconds();
        for _ in 0..random.below(3) {
            let length = random.below(left + 1);
            left -= length;
            if length > 0 {
                // A resource is one of a single processor.
                let core = task.core.unwrap();
                task.sections.push(Section {
                    resource: format!("r{}", u64::from(core) * 2 + random.below(2)),
                    length: ns(length),
                });
            }
        }
    }
}

pub fn mutex(system: &mut TaskSystem, random: &mut Random) {
    system.mutex = Some(random.of_list(&[MutexOrder::Fifo, MutexOrder::Core]));
    for task in &mut system.tasks {
        task.deadline = task.deadline.min(task.period);
        let used: u64 = task.sections.iter().map(|s| s.length.nanoseconds()).sum();
        if random.below(3) > 0 {
            task.memory_phase =
                ns(random.below(task.cost.unwrap().nanoseconds().saturating_sub(used) + 1));
        }
    }
}

pub fn blocking(system: &mut TaskSystem, random: &mut Random) {
    for task in &mut system.tasks {
        if random.one_in(3) {
            task.blocking = ns(random.below(8));
        }
    }
}

fn fixed(random: &mut Random, policy: Policy, hundredths: u64) -> TaskSystem {
    let tasks = tasks(random, 5, hundredths, &PERIODS);
    let mut system = system(policy, 1, tasks, random);
    jitter(&mut system, random);
    deadlines(&mut system, random, true);
    system
}

/// Tasks with jitter on one processor or more, with the kernel's costs in half of the systems.
pub fn on_processors(
    random: &mut Random,
    policy: Policy,
    processors: u64,
    hundredths: u64,
) -> TaskSystem {
    let tasks = tasks(random, 5, hundredths, &PERIODS);
    let processors = random.between(1, processors) as u32;
    let mut system = system(policy, processors, tasks, random);
    jitter(&mut system, random);
    if random.one_in(2) {
        overheads(&mut system, random);
        system.overheads.interrupt = Time(0);
    }
    system
}

pub fn fixed_priority(random: &mut Random) -> TaskSystem {
    let load = random.between(50, 100);
    let mut system = fixed(random, Policy::FixedPriority, load);
    if random.one_in(3) {
        blocking(&mut system, random);
    }
    system
}

pub fn fixed_priority_overheads(random: &mut Random) -> TaskSystem {
    let load = random.between(30, 75);
    let mut system = fixed(random, Policy::FixedPriority, load);
    overheads(&mut system, random);
    devices(&mut system, random);
    system
}

pub fn fixed_priority_sections(random: &mut Random) -> TaskSystem {
    let load = random.between(30, 85);
    let mut system = fixed(random, Policy::FixedPriority, load);
    sections(&mut system, random);
    if random.one_in(2) {
        overheads(&mut system, random);
    }
    system
}

pub fn fixed_priority_memguard(random: &mut Random) -> TaskSystem {
    let load = random.between(20, 70);
    let mut system = fixed(random, Policy::FixedPriority, load);
    memguard(&mut system, random);
    if random.one_in(3) {
        sections(&mut system, random);
    }
    system
}

pub fn fixed_priority_mutex(random: &mut Random) -> TaskSystem {
    let tasks = tasks(random, 6, 120, &PERIODS);
    let mut system = system(Policy::FixedPriority, 3, tasks, random);
    if random.one_in(3) {
        devices(&mut system, random);
    }
    mutex(&mut system, random);
    system
}

pub fn fixed_priority_everything(random: &mut Random) -> TaskSystem {
    let tasks = tasks(random, 5, 70, &[40, 60, 90, 120]);
    let mut system = system(Policy::FixedPriority, 2, tasks, random);
    jitter(&mut system, random);
    overheads(&mut system, random);
    devices(&mut system, random);
    memguard(&mut system, random);
    sections(&mut system, random);
    if random.one_in(2) {
        mutex(&mut system, random);
    }
    system
}

pub fn offsets(system: &mut TaskSystem, random: &mut Random) {
    system.periodic = true;
    for task in &mut system.tasks {
        task.offset = ns(random.below(task.period.nanoseconds()));
    }
}

pub fn fixed_priority_offsets(random: &mut Random) -> TaskSystem {
    let tasks = tasks(random, 4, 95, &[12, 20, 24, 30]);
    let mut system = system(Policy::FixedPriority, 1, tasks, random);
    deadlines(&mut system, random, true);
    offsets(&mut system, random);
    if random.one_in(2) {
        overheads(&mut system, random);
        for task in &mut system.tasks {
            task.cost = Some(ns((task.cost.unwrap().nanoseconds() / 2).max(1)));
        }
    }
    system
}

pub fn rate_monotonic(random: &mut Random) -> TaskSystem {
    let load = random.between(30, 80);
    let mut system = fixed(random, Policy::RateMonotonic, load);
    if random.one_in(2) {
        overheads(&mut system, random);
        devices(&mut system, random);
    }
    system
}

fn without_preemption(random: &mut Random, policy: Policy) -> TaskSystem {
    let load = random.between(30, 90);
    let mut system = fixed(random, policy, load);
    if random.one_in(2) {
        overheads(&mut system, random);
        devices(&mut system, random);
    }
    if random.one_in(3) {
        memguard(&mut system, random);
    } else if random.one_in(3) {
        blocking(&mut system, random);
    }
    system
}

pub fn threshold(random: &mut Random) -> TaskSystem {
    let mut system = without_preemption(random, Policy::Threshold);
    for task in &mut system.tasks {
        task.threshold = task.priority.map(|p| random.between(1, p.into()) as u32);
    }
    system
}

pub fn non_preemptive(random: &mut Random) -> TaskSystem {
    without_preemption(random, Policy::NonPreemptive)
}

pub fn one_shot(random: &mut Random) -> TaskSystem {
    without_preemption(random, Policy::OneShot)
}

pub fn edf(random: &mut Random) -> TaskSystem {
    let load = random.between(50, 100);
    let mut system = fixed(random, Policy::Edf, load);
    if random.one_in(2) {
        overheads(&mut system, random);
        devices(&mut system, random);
        for task in &mut system.tasks {
            task.cost = Some(ns((task.cost.unwrap().nanoseconds() / 2).max(1)));
        }
    }
    system
}

pub fn edf_offsets(random: &mut Random) -> TaskSystem {
    let tasks = tasks(random, 4, 98, &[12, 20, 24, 30]);
    let mut system = system(Policy::Edf, 1, tasks, random);
    deadlines(&mut system, random, true);
    offsets(&mut system, random);
    system
}

pub fn edf_memguard(random: &mut Random) -> TaskSystem {
    let load = random.between(20, 70);
    let mut system = fixed(random, Policy::Edf, load);
    memguard(&mut system, random);
    if random.one_in(2) {
        overheads(&mut system, random);
    }
    system
}

pub fn time_slice(random: &mut Random) -> TaskSystem {
    let load = random.between(20, 60);
    let tasks = tasks(random, 4, load, &[60, 90, 120, 200]);
    let mut system = system(Policy::TimeSlice, 1, tasks, random);
    jitter(&mut system, random);
    deadlines(&mut system, random, true);
    system.slice = ns(random.between(2, 12));
    if random.one_in(2) {
        overheads(&mut system, random);
    }
    for task in &mut system.tasks {
        if random.one_in(3) {
            let period = random.between(8, 30);
            task.quota = Some(Cpu {
                budget: ns(random.between(period / 3, period)),
                period: ns(period),
                priority: 0,
            });
        }
    }
    system
}

pub fn table(random: &mut Random) -> TaskSystem {
    let load = random.between(40, 90);
    let tasks = tasks(random, 4, load, &[20, 30, 40, 60]);
    let mut system = system(Policy::Table, 1, tasks, random);
    deadlines(&mut system, random, false);
    offsets(&mut system, random);
    system.periodic = random.one_in(2);
    if random.one_in(2) {
        overheads(&mut system, random);
        system.overheads.interrupt = Time(0);
    }
    // Written by hand: pieces in any order, which may or may not suffice.
    if random.one_in(3) {
        let length = 120;
        let mut slots = Vec::new();
        let mut at = 0;
        while at < length {
            let piece = random.between(1, 8).min(length - at);
            let task = random.below(system.tasks.len() as u64) as usize;
            if !random.one_in(8) {
                slots.push(Slot {
                    task,
                    start: ns(at),
                    length: ns(piece),
                });
            }
            at += piece;
        }
        for task in &mut system.tasks {
            task.cost = Some(ns((task.cost.unwrap().nanoseconds() / 3).max(1)));
        }
        system.tables.push(Table {
            core: 0,
            length: ns(length),
            slots,
        });
    }
    system
}

pub fn three_phase(random: &mut Random) -> TaskSystem {
    let load = random.between(10, 40);
    let tasks = tasks(random, 4, load, &[200, 300, 400, 600]);
    let processors = random.between(1, 3) as u32;
    let mut system = system(Policy::ThreePhase, processors, tasks, random);
    for task in &mut system.tasks {
        task.load = ns(random.between(0, 8));
        task.unload = ns(random.between(0, 8));
        if random.one_in(4) {
            task.jitter = ns(random.below(40));
        }
    }
    let overhead = random.below(3);
    system.tdma = Some(ns(overhead));
    for core in 0..processors {
        system.shares.push(Share {
            core: Some(core),
            slot: Some(ns(overhead + random.between(1, 5))),
            ..Share::default()
        });
    }
    if random.one_in(2) {
        overheads(&mut system, random);
        system.overheads.interrupt = Time(0);
    }
    system
}

fn globally(random: &mut Random, policy: Policy, hundredths: u64) -> TaskSystem {
    let processors = random.between(1, 3);
    let tasks = tasks(random, 6, hundredths * processors / 2, &PERIODS);
    let mut system = system(policy, processors as u32, tasks, random);
    if policy != Policy::GlobalEdfSoft {
        deadlines(&mut system, random, false);
    }
    if random.one_in(2) {
        overheads(&mut system, random);
        system.overheads.interrupt = Time(0);
        for task in &mut system.tasks {
            task.cost = Some(ns((task.cost.unwrap().nanoseconds() / 2).max(1)));
        }
    }
    system
}

pub fn global_fixed_priority(random: &mut Random) -> TaskSystem {
    globally(random, Policy::GlobalFixedPriority, 110)
}

pub fn global_edf(random: &mut Random) -> TaskSystem {
    globally(random, Policy::GlobalEdf, 100)
}

pub fn global_edf_soft(random: &mut Random) -> TaskSystem {
    globally(random, Policy::GlobalEdfSoft, 170)
}

pub fn mc2(random: &mut Random) -> TaskSystem {
    let processors = random.between(1, 3) as u32;
    let load = 60 * u64::from(processors);
    let tasks = tasks(random, 7, load, &[40, 80, 120, 160]);
    let mut system = system(Policy::Mc2, processors, tasks, random);
    system.periodic = random.one_in(2);
    for task in &mut system.tasks {
        task.criticality = random.of_list(&['A', 'B', 'C', 'C', 'D']);
        let cost = (task.cost.unwrap().nanoseconds() / 2).max(1);
        task.costs = ['A', 'B', 'C']
            .iter()
            .zip([cost + cost / 2 + random.below(2), cost + cost / 4, cost])
            .filter(|(level, _)| **level >= task.criticality)
            .map(|(&level, cost)| CostPoint {
                level: Some(level),
                ways: None,
                time: ns(cost),
            })
            .collect();
        if task.criticality < 'D' {
            task.cost = None;
        }
        if task.criticality == 'C' {
            task.core = None;
        }
    }
    if random.one_in(2) {
        overheads(&mut system, random);
        devices(&mut system, random);
    }
    if random.one_in(2) {
        for core in 0..processors {
            written_table(&mut system, core, random);
        }
    }
    system
}

/// A table of level A in many slots, with gaps, which may or may not suffice.
fn written_table(system: &mut TaskSystem, core: u32, random: &mut Random) {
    const LENGTH: u64 = 480;
    let decision = system.overheads.schedule.nanoseconds();
    let most = random.between(3, 12);
    // What each job may get, with some room for interrupts and decisions.
    let mut wanted: Vec<(u64, usize, u64)> = Vec::new();
    for (index, task) in system.tasks.iter().enumerate() {
        if task.criticality == 'A' && task.core == Some(core) {
            let period = task.period.nanoseconds();
            let cost = task.costs[0].time.nanoseconds();
            let room = random.between(cost, 2 * cost + 6) + 2 * decision;
            wanted.extend((0..LENGTH / period).map(|job| (job * period, index, room)));
        }
    }
    let (mut slots, mut at): (Vec<Slot>, u64) = (Vec::new(), 0);
    while at < LENGTH {
        let there = wanted.iter_mut().filter(|job| job.0 <= at && job.2 > 0);
        let next = there.min_by_key(|job| job.0 + system.tasks[job.1].period.nanoseconds());
        let piece = random.between(1, most).min(LENGTH - at);
        if let Some(job) = next.filter(|_| !random.one_in(4)) {
            job.2 = job.2.saturating_sub(piece.saturating_sub(decision));
            slots.push(Slot {
                task: job.1,
                start: ns(at),
                length: ns(piece),
            });
        }
        at += piece;
    }
    if !slots.is_empty() {
        system.tables.push(Table {
            core,
            length: ns(LENGTH),
            slots,
        });
    }
}
