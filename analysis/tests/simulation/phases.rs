//! Three phases: two halves of a scratchpad, one DMA engine with one slot per processor in each round, execution without
//! preemption.
//!
//! The engine unloads before it loads, and takes the most urgent released task when it begins. A transfer begins with its own slot
//! and continues in the processor's slots, each of which begins with the overhead. The kernel's decisions and releases take from
//! executions.

use bulkhead_model::tasks::TaskSystem;

use crate::arrivals::{self, Arrival, ns};
use crate::random::Random;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    In,
    Waits,
    Runs,
    Done,
    Out,
}

struct Half {
    job: Arrival,
    state: State,
    left: u64,
    /// A transfer whose first slot has begun.
    begun: bool,
}

pub fn run(system: &TaskSystem, random: &mut Random) -> Vec<u64> {
    let span = arrivals::span(system, random);
    let mut worst = vec![0; system.tasks.len()];
    let jobs = arrivals::jobs(system, span, random);
    let overhead = ns(system.tdma.unwrap());
    let slots: Vec<u64> = (0..system.processors)
        .map(|core| ns(system.share(Some(core)).and_then(|s| s.slot).unwrap()))
        .collect();
    let round: u64 = slots.iter().sum();
    let shift = random.below(round);
    for core in 0..system.processors as usize {
        let begin: u64 = slots[..core].iter().sum();
        let here = jobs
            .iter()
            .filter(|job| system.tasks[job.task].core == Some(core as u32))
            .copied()
            .collect();
        processor(
            system,
            here,
            (begin, slots[core], round, shift, overhead),
            span.end,
            &mut worst,
        );
    }
    worst
}

fn processor(
    system: &TaskSystem,
    jobs: Vec<Arrival>,
    (begin, slot, round, shift, overhead): (u64, u64, u64, u64, u64),
    end: u64,
    worst: &mut [u64],
) {
    let (decision, release) = (ns(system.overheads.schedule), ns(system.overheads.release));
    let mut halves: Vec<Half> = Vec::new();
    let mut waiting: Vec<Arrival> = Vec::new();
    let mut next = 0;
    let mut kernel = 0;
    for now in 0..end {
        while jobs.get(next).is_some_and(|job| job.release <= now) {
            waiting.push(jobs[next]);
            kernel += release;
            next += 1;
        }
        waiting.sort_by_key(|job| (system.tasks[job.task].priority, job.arrival));
        let moving = |half: &Half| matches!(half.state, State::In | State::Out);
        if !halves.iter().any(moving) {
            if let Some(half) = halves.iter_mut().find(|half| half.state == State::Done) {
                half.state = State::Out;
                half.left = half.job.needs(ns(system.tasks[half.job.task].unload));
            } else if halves.len() < 2 && !waiting.is_empty() {
                let job = waiting.remove(0);
                halves.push(Half {
                    job,
                    state: State::In,
                    left: job.needs(ns(system.tasks[job.task].load)),
                    begun: false,
                });
            }
        }
        // Nothing to move is moved at once.
        for half in &mut halves {
            if half.left == 0 && half.state == State::In {
                half.state = State::Waits;
            }
        }
        let gone = |half: &Half| half.left == 0 && half.state == State::Out;
        for half in halves.iter().filter(|half| gone(half)) {
            let task = half.job.task;
            worst[task] = worst[task].max(now - half.job.arrival);
        }
        halves.retain(|half| !gone(half));
        if !halves.iter().any(|half| half.state == State::Runs)
            && let Some(half) = halves.iter_mut().find(|half| half.state == State::Waits)
        {
            half.state = State::Runs;
            let cost = ns(system.tasks[half.job.task].cost.unwrap());
            half.left = half.job.needs(cost).max(1) + 2 * decision;
        }
        let place = (now + shift) % round;
        let in_slot = place.checked_sub(begin).filter(|place| *place < slot);
        for half in &mut halves {
            match half.state {
                State::Runs if kernel == 0 => {
                    half.left -= 1;
                    if half.left == 0 {
                        half.state = State::Done;
                        half.begun = false;
                    }
                }
                State::In | State::Out => {
                    half.begun |= in_slot == Some(0);
                    if half.begun && in_slot.is_some_and(|place| place >= overhead) {
                        half.left -= 1;
                    }
                    if half.left == 0 && half.state == State::In {
                        half.state = State::Waits;
                    } else if half.left == 0 {
                        let task = half.job.task;
                        worst[task] = worst[task].max(now + 1 - half.job.arrival);
                        half.state = State::Out;
                    }
                }
                _ => {}
            }
        }
        halves.retain(|half| half.state != State::Out || half.left > 0);
        kernel = kernel.saturating_sub(1);
    }
}
