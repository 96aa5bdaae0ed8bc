//! The whole policy against a plain model: a list of tasks, each with what it waits for, searched from scratch
//! each time.

use crate::Task;
use crate::arrivals::{Arrival, Arrivals, Awaiting};
use crate::suspension::{Suspension, Waiting};
use crate::tasks::Tasks;
use core::sync::atomic::AtomicU64;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    Ready,
    Running,
    Until(u64),
    Object,
    Event,
    Stopped,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The running task waits for a tick, counted from now, a few before or after.
    Delay(u64),
    /// It waits for the suspension object.
    Suspend,
    /// It waits for an event.
    Await,
    /// It stops.
    Stop,
    /// The object becomes true.
    Truth,
    /// An event arrives.
    Event,
    /// A tick.
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..8).prop_map(Step::Delay),
        2 => Just(Step::Suspend),
        2 => Just(Step::Await),
        1 => Just(Step::Stop),
        3 => Just(Step::Truth),
        3 => Just(Step::Event),
        6 => Just(Step::Tick),
    ]
}

proptest! {
    #[test]
    fn the_order_of_jobs_is_that_of_a_plain_model(
        count in 1usize..8, minimum in 0u64..6, steps in proptest::collection::vec(step(), 0..150)
    ) {
        let table: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let mut tasks = Tasks::new(&table, 0);
        let (mut object, mut events) = (Suspension::new(), Arrivals::new(minimum));
        let mut model = vec![Model::Ready; count];
        let (mut now, mut is_true, mut kept, mut earliest) = (0u64, false, false, 0u64);
        let mut running: Option<usize> = None;
        for step in steps {
            // The most urgent task runs; nothing preempts it.
            if running.is_none() {
                running = model.iter().position(|task| *task == Model::Ready);
                prop_assert_eq!(tasks.take().map(usize::from), running);
                if let Some(task) = running {
                    model[task] = Model::Running;
                }
            }
            let release = |now: u64, earliest: &mut u64| {
                let at = now.max(*earliest);
                *earliest = at + minimum;
                if at <= now { Model::Ready } else { Model::Until(at) }
            };
            match (step, running) {
                (Step::Delay(by), Some(task)) => {
                    let until = (now + by).saturating_sub(2);
                    tasks.delay(task as Task, until);
                    model[task] = if until <= now { Model::Ready } else { Model::Until(until) };
                    running = None;
                }
                (Step::Suspend, Some(task)) => {
                    let taken = model.contains(&Model::Object);
                    match object.wait(task as Task) {
                        Waiting::Goes => tasks.release(task as Task),
                        Waiting::Waits => prop_assert!(!taken && !is_true),
                        Waiting::Taken => prop_assert!(taken),
                    }
                    if !taken {
                        model[task] = if is_true { Model::Ready } else { Model::Object };
                        is_true = false;
                        running = None;
                    }
                }
                (Step::Await, Some(task)) => {
                    let taken = model.contains(&Model::Event);
                    match events.wait(task as Task, now) {
                        Awaiting::Until(at) => tasks.delay(task as Task, at),
                        Awaiting::Waits => prop_assert!(!taken && !kept),
                        Awaiting::Taken => prop_assert!(taken),
                    }
                    if !taken {
                        model[task] = if kept { release(now, &mut earliest) } else { Model::Event };
                        kept = false;
                        running = None;
                    }
                }
                (Step::Stop, Some(task)) => {
                    tasks.stop(task as Task);
                    model[task] = Model::Stopped;
                    running = None;
                }
                (Step::Truth, _) => {
                    if let Some(task) = object.set_true() {
                        tasks.release(task);
                    }
                    match model.iter().position(|task| *task == Model::Object) {
                        Some(task) => model[task] = Model::Ready,
                        None => is_true = true,
                    }
                }
                (Step::Event, _) => {
                    let arrival = events.arrive(now);
                    if let Arrival::Releases(task, at) = arrival {
                        tasks.delay(task, at);
                    }
                    match model.iter().position(|task| *task == Model::Event) {
                        Some(task) => model[task] = release(now, &mut earliest),
                        None => {
                            prop_assert_eq!(arrival, if kept { Arrival::Lost } else { Arrival::Kept });
                            kept = true;
                        }
                    }
                }
                (Step::Tick, _) => {
                    now += 1;
                    let released = tasks.tick();
                    for (task, state) in model.iter_mut().enumerate() {
                        let due = matches!(state, Model::Until(at) if *at <= now);
                        prop_assert_eq!(released >> task & 1 == 1, due);
                        if due {
                            *state = Model::Ready;
                        }
                    }
                }
                (_, None) => {}
            }
            prop_assert_eq!(tasks.is_idle(), !model.contains(&Model::Ready));
            prop_assert_eq!(tasks.now(), now);
        }
    }
}
