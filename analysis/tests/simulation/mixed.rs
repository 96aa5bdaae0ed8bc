//! Random systems that mix what [`crate::generate`] keeps separate: jitter and blocking with the memory mutex, budgets that run out
//! immediately or never, accesses that take no time, several processors with interrupts, tasks as long as their periods.

use bulkhead_model::system::Cpu;
use bulkhead_model::tasks::{Memguard, MutexOrder, Policy, Share, TaskSystem};
use bulkhead_model::units::Time;

use crate::generate::{self, PERIODS, ns};
use crate::random::Random;

/// Tasks on their own processors, with most of what a policy's description may contain.
fn mixed(random: &mut Random, policy: Policy, processors: u64, hundredths: u64) -> TaskSystem {
    let periods = [&PERIODS[..], &[120, 200]].concat();
    let tasks = generate::tasks(random, 6, hundredths, &periods);
    let processors = random.between(1, processors) as u32;
    let mut system = generate::system(policy, processors, tasks, random);
    generate::jitter(&mut system, random);
    generate::deadlines(&mut system, random, true);
    if random.one_in(2) {
        generate::overheads(&mut system, random);
    }
    if random.one_in(2) {
        generate::devices(&mut system, random);
    }
    if random.one_in(2) && policy != Policy::Edf {
        generate::blocking(&mut system, random);
    }
    system
}

/// Budgets from one access to more than a period holds; accesses may take no time, and there may be more than the cost holds.
fn memguard(system: &mut TaskSystem, random: &mut Random) {
    let access = random.below(2);
    let period = random.of_list(&[5, 10, 16, 25, 60]);
    system.memguard = Some(Memguard {
        period: ns(period),
        access: ns(access),
        accesses: None,
    });
    for core in 0..system.processors {
        let most = random.of_list(&[2, period / 2, period, 2 * period]);
        system.shares.push(Share {
            core: Some(core),
            budget: Some(random.between(1, most)),
            ..Share::default()
        });
    }
    for task in &mut system.tasks {
        task.deadline = task.deadline.min(task.period);
        let cost = task.cost.unwrap().nanoseconds();
        task.accesses = match random.below(4) {
            0 => 0,
            1 => 1,
            _ => random.below(cost + 4),
        };
    }
}

fn mutex(system: &mut TaskSystem, random: &mut Random) {
    generate::mutex(system, random);
    if random.one_in(2) {
        system.mutex = Some(MutexOrder::Core);
    }
}

pub fn fixed_priority(random: &mut Random) -> TaskSystem {
    let load = random.between(30, 160);
    let mut system = mixed(random, Policy::FixedPriority, 4, load);
    if random.one_in(2) {
        generate::sections(&mut system, random);
    }
    if random.one_in(2) {
        memguard(&mut system, random);
    }
    if random.one_in(2) {
        mutex(&mut system, random);
    }
    system
}

/// The memory mutex with jitter and blocking, and little else.
pub fn mutex_with_jitter(random: &mut Random) -> TaskSystem {
    let load = random.between(60, 200);
    let tasks = generate::tasks(random, 7, load, &PERIODS);
    let processors = random.between(2, 4) as u32;
    let mut system = generate::system(Policy::RateMonotonic, processors, tasks, random);
    generate::jitter(&mut system, random);
    if random.one_in(2) {
        generate::blocking(&mut system, random);
    }
    mutex(&mut system, random);
    system
}

pub fn regulated(random: &mut Random) -> TaskSystem {
    let policy = random.of_list(&[
        Policy::FixedPriority,
        Policy::RateMonotonic,
        Policy::Edf,
        Policy::OneShot,
        Policy::NonPreemptive,
    ]);
    let load = random.between(5, 70);
    let mut system = mixed(random, policy, 2, load);
    memguard(&mut system, random);
    system
}

pub fn without_preemption(random: &mut Random) -> TaskSystem {
    let policy = random.of_list(&[Policy::Threshold, Policy::NonPreemptive, Policy::OneShot]);
    let load = random.between(50, 200);
    let mut system = mixed(random, policy, 3, load);
    if policy == Policy::Threshold {
        for task in &mut system.tasks {
            task.threshold = task.priority.map(|p| random.between(1, p.into()) as u32);
        }
    }
    system
}

pub fn edf(random: &mut Random) -> TaskSystem {
    let load = random.between(60, 200);
    let mut system = mixed(random, Policy::Edf, 2, load);
    if random.one_in(3) {
        system.devices.clear();
        for task in &mut system.tasks {
            task.jitter = Time(0);
        }
        generate::offsets(&mut system, random);
    }
    system
}

/// Quotas of a whole period and of a unit, slices longer than jobs, a task alone.
pub fn time_slice(random: &mut Random) -> TaskSystem {
    let load = random.between(5, 110);
    let mut tasks = generate::tasks(random, 4, load, &[20, 45, 90, 200]);
    if random.one_in(4) {
        tasks.truncate(1);
    }
    let mut system = generate::system(Policy::TimeSlice, 1, tasks, random);
    generate::jitter(&mut system, random);
    generate::deadlines(&mut system, random, true);
    system.slice = ns(random.of_list(&[1, 3, 7, 20, 60]));
    if random.one_in(2) {
        generate::overheads(&mut system, random);
    }
    for task in &mut system.tasks {
        if random.one_in(2) {
            let period = random.between(2, 60);
            let budget = random.of_list(&[1, period / 2, period - 1, period]);
            task.quota = Some(Cpu {
                budget: ns(budget.max(1)),
                period: ns(period),
                priority: 0,
            });
        }
    }
    system
}

/// Jitter beyond the period, deadlines shorter than it, tasks without a transfer, slots as short as permitted.
pub fn three_phase(random: &mut Random) -> TaskSystem {
    let mut system = generate::three_phase(random);
    for task in &mut system.tasks {
        if random.one_in(3) {
            task.jitter = ns(random.below(task.period.nanoseconds() * 3 / 2));
        }
        match random.below(4) {
            0 => task.load = Time(0),
            1 => task.unload = Time(0),
            2 => (task.load, task.unload) = (ns(40), ns(1)),
            _ => {}
        }
    }
    let overhead = system.tdma.unwrap().nanoseconds();
    for share in &mut system.shares {
        if random.one_in(3) {
            share.slot = Some(ns(overhead + 1));
        }
    }
    generate::deadlines(&mut system, random, false);
    system
}

/// Up to four processors, and tasks that nearly fill one.
pub fn globally(random: &mut Random) -> TaskSystem {
    let policy = random.of_list(&[Policy::GlobalFixedPriority, Policy::GlobalEdf]);
    let processors = random.between(1, 4);
    let load = random.between(20, 90) * processors;
    let tasks = generate::tasks(random, 7, load, &[4, 6, 10, 12, 20, 30, 48]);
    let mut system = generate::system(policy, processors as u32, tasks, random);
    generate::deadlines(&mut system, random, false);
    if random.one_in(3) {
        generate::overheads(&mut system, random);
        system.overheads.interrupt = Time(0);
    }
    system
}
