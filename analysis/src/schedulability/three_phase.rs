//! Three-phase tasks: load into a scratchpad by DMA, execute without memory, unload; one DMA engine for all cores by TDMA.
//!
//! Memory phases: mpsoc-ecrts19, Equation 1: two consecutive phases (an unload and a load) that need `k` slots take at most
//! `k * round + slot`, because the core gets one slot a round and may just have missed one.
//!
//! Response times: after S. Wasly, R. Pellizzoni, *Hiding memory latency using fixed priority scheduling*, RTAS 2014. Time
//! on a core is a sequence of intervals: in one, a task executes from one half of the scratchpad while the DMA unloads the
//! other half and loads the next task into it. An interval is as long as the longer of the two. Which task comes next is
//! decided when a load begins, so a task waits for the interval in which it arrives and, if a task of lower priority is
//! loaded in it, for that task's interval.
//!
//! Assumptions: sporadic tasks with deadlines within periods, statically on this core, non-preemptive, by decreasing
//! priority; every execution fits into one half; a phase pair's bound covers the unload before it as well.

use super::fixed_priority::STEPS_MAX;
use super::task::{Task, TaskError, Time, validate_constrained};
use thiserror::Error;

/// The slots of the DMA engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tdma {
    /// Slot of each core, overhead included; positive.
    pub slots: Vec<Time>,
    /// Part of each core's slot in which the engine can transfer; positive and within the slot.
    pub usable: Vec<Time>,
}

/// A task of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasedTask {
    /// Execution phase as the cost; period and deadline.
    pub task: Task,
    /// Transfer time of the load, alone.
    pub load: Time,
    /// Transfer time of the unload, alone.
    pub unload: Time,
}

/// Why there is no analysis.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PhaseError {
    /// A task is wrong.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A core without a slot, or one whose usable part is empty or longer than the slot.
    #[error("core {0} has no slot with usable time")]
    NoSlot(usize),
}

impl Tdma {
    /// The round: all slots.
    pub fn round(&self) -> Option<Time> {
        self.slots
            .iter()
            .try_fold(0u64, |sum, s| sum.checked_add(*s))
    }

    /// Longest time in which `core` gets its transfers of `unload` and then `load` done (mpsoc-ecrts19, Equation 1). Each
    /// of them begins in a slot of its own, as an engine that is programmed once a slot does. `None` if it overflows.
    ///
    /// # Errors
    /// [`PhaseError::NoSlot`].
    pub fn memory_time(
        &self,
        core: usize,
        unload: Time,
        load: Time,
    ) -> Result<Option<Time>, PhaseError> {
        let (Some(&slot), Some(&usable)) = (self.slots.get(core), self.usable.get(core)) else {
            return Err(PhaseError::NoSlot(core));
        };
        if usable == 0 || usable > slot {
            return Err(PhaseError::NoSlot(core));
        }
        let slots = unload.div_ceil(usable) + load.div_ceil(usable);
        if slots == 0 {
            return Ok(Some(0));
        }
        Ok(self
            .round()
            .and_then(|r| slots.checked_mul(r)?.checked_add(slot)))
    }
}

/// Response times of the tasks of `core` from arrival to the end of the unload, by decreasing priority, also of tasks that miss
/// their deadlines. `None`: beyond the period, so that a job would meet the next one.
///
/// # Errors
/// [`PhaseError`] if something is out of range.
pub fn response_times(
    tasks: &[PhasedTask],
    tdma: &Tdma,
    core: usize,
) -> Result<Vec<Option<Time>>, PhaseError> {
    let plain: Vec<Task> = tasks.iter().map(|t| t.task).collect();
    validate_constrained(&plain)?;
    if let Some(task) = plain.iter().position(|t| t.blocking > 0) {
        return Err(TaskError::NotCovered {
            task,
            what: "blocking",
        }
        .into());
    }
    let largest_unload = tasks.iter().map(|t| t.unload).max().unwrap_or(0);
    let largest_load = tasks.iter().map(|t| t.load).max().unwrap_or(0);
    // The memory part of an interval: whatever is there is unloaded, and whatever comes next is loaded.
    let Some(memory) = tdma.memory_time(core, largest_unload, largest_load)? else {
        return Ok(vec![None; tasks.len()]);
    };
    let interval = |task: &Task| task.cost.max(memory);
    // A task that may be late may have two jobs pending at once, so both may be in the way of a more urgent one. No task is late as
    // long as no bound says so: the first late job would be late without that.
    let mut late = vec![false; tasks.len()];
    loop {
        let of = |(index, phased)| response(&plain, index, phased, interval, memory, &late);
        let all: Vec<_> = tasks.iter().enumerate().map(of).collect();
        let more: Vec<_> = all.iter().map(Option::is_none).collect();
        if more == late {
            return Ok(all);
        }
        late = more;
    }
}

fn response(
    tasks: &[Task],
    index: usize,
    phased: &PhasedTask,
    interval: impl Fn(&Task) -> Time,
    memory: Time,
    late: &[bool],
) -> Option<Time> {
    let task = &phased.task;
    let limit = task.period.checked_sub(task.jitter)?;
    // Lower tasks: one executes in the interval of the arrival, another one is loaded in it and executes in the next.
    let jobs = |k: usize| std::iter::repeat_n(interval(&tasks[k]), 1 + usize::from(late[k]));
    let mut lower: Vec<Time> = (index + 1..tasks.len()).flat_map(jobs).collect();
    lower.sort_unstable_by(|a, b| b.cmp(a));
    let blocked = lower
        .iter()
        .take(2)
        .try_fold(0u64, |sum, l| sum.checked_add(*l))?;
    // An interval in which no task executes still takes the DMA's time: the one before the own execution, and any that is needed to
    // fill the pipeline.
    let own = blocked.checked_add(memory)?.checked_add(interval(task))?;
    let mut window = own;
    // Until the own load begins, every arrival of higher priority goes first; afterwards it executes for certain. Counting
    // all arrivals up to the own completion is never too few.
    for _ in 0..STEPS_MAX {
        let done = window.checked_add(memory)?;
        if done > limit {
            return None;
        }
        let needed = tasks[..index].iter().try_fold(own, |sum, h| {
            let arrivals = window.checked_add(h.jitter)? / h.period + 1;
            sum.checked_add(arrivals.checked_mul(interval(h))?)
        })?;
        if needed <= window {
            return done.checked_add(task.jitter);
        }
        window = needed;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of mpsoc-ecrts19, section 5: three cores, 256 KiB partitions in 32 KiB slots of 38.81 us, 3.89 us of
    /// programming: slot 42.7 us, round 128.1 us, 16 slots: 2092.3 us to reload.
    #[test]
    fn published_example() {
        let tdma = Tdma {
            slots: vec![42_700; 3],
            usable: vec![38_810; 3],
        };
        assert_eq!(tdma.round(), Some(128_100));
        let half = 8 * 38_810;
        assert_eq!(tdma.memory_time(0, half, half).unwrap(), Some(2_092_300));
    }

    #[test]
    fn refuses_cores_without_slots() {
        let tdma = Tdma {
            slots: vec![10, 10],
            usable: vec![8, 0],
        };
        assert_eq!(tdma.memory_time(1, 1, 1), Err(PhaseError::NoSlot(1)));
        assert_eq!(tdma.memory_time(2, 1, 1), Err(PhaseError::NoSlot(2)));
        assert_eq!(tdma.memory_time(0, 0, 0), Ok(Some(0)));
    }

    /// By hand: rounds of 6, 2 usable of 3: transfers of 4 and 4 take 4 slots: 4 * 6 + 3 = 27. Intervals of the tasks: 27 and
    /// 30. The first waits for the second's interval, then one to be loaded, its own, and its unload: 30 + 27 + 27 + 27. The
    /// second: one to be loaded, one of the first, its own, its unload: 27 + 27 + 30 + 27.
    #[test]
    fn by_hand() {
        let tdma = Tdma {
            slots: vec![3, 3],
            usable: vec![2, 2],
        };
        let task = |cost, period| PhasedTask {
            task: Task::new(cost, period),
            load: 4,
            unload: 4,
        };
        let responses = response_times(&[task(20, 400), task(30, 500)], &tdma, 0).unwrap();
        assert_eq!(responses, [Some(111), Some(111)]);
    }

    fn phased() -> impl Strategy<Value = Vec<PhasedTask>> {
        let task =
            (1u64..40, 200u64..600, 1u64..8, 1u64..8).prop_map(|(c, t, load, unload)| PhasedTask {
                task: Task::new(c, t),
                load,
                unload,
            });
        prop::collection::vec(task, 1..5)
    }

    /// The core as mpsoc-ecrts19, section 2, draws it: two halves, a DMA that unloads before it loads, non-preemptive
    /// execution, the next task chosen when its load begins. Transfers get the core's slot of each round. Unit steps.
    fn simulate(
        tasks: &[PhasedTask],
        tdma: &Tdma,
        core: usize,
        offsets: &[u64],
        horizon: u64,
    ) -> Vec<u64> {
        #[derive(Clone, Copy)]
        enum Half {
            Empty,
            Loading {
                task: usize,
                arrival: u64,
                left: u64,
                fresh: bool,
            },
            Loaded {
                task: usize,
                arrival: u64,
            },
            Running {
                task: usize,
                arrival: u64,
                left: u64,
            },
            Full {
                task: usize,
                arrival: u64,
            },
            Unloading {
                task: usize,
                arrival: u64,
                left: u64,
                fresh: bool,
            },
        }
        let round = tdma.round().unwrap();
        let start: u64 = tdma.slots[..core].iter().sum();
        let mut halves = [Half::Empty; 2];
        let mut waiting: Vec<(usize, u64)> = Vec::new();
        let mut worst = vec![0; tasks.len()];
        // A transfer that begins takes a slot of its own: it waits for the next start of one.
        for now in 0..horizon {
            for (i, t) in tasks.iter().enumerate() {
                if now >= offsets[i]
                    && (now - offsets[i]).is_multiple_of(t.task.period)
                    && now < horizon / 2
                {
                    waiting.push((i, now));
                }
            }
            waiting.sort_unstable();
            let in_slot = (now % round)
                .checked_sub(start)
                .filter(|p| *p < tdma.usable[core]);
            let busy = halves
                .iter()
                .position(|h| matches!(h, Half::Loading { .. } | Half::Unloading { .. }));
            if busy.is_none() {
                // Unload first, in order to make room; then load the most urgent task.
                let full = halves.iter().position(|h| matches!(h, Half::Full { .. }));
                let empty = halves.iter().position(|h| matches!(h, Half::Empty));
                if let Some(h) = full
                    && let Half::Full { task, arrival } = halves[h]
                {
                    halves[h] = Half::Unloading {
                        task,
                        arrival,
                        left: tasks[task].unload,
                        fresh: true,
                    };
                } else if let Some(h) = empty
                    && !waiting.is_empty()
                {
                    let (task, arrival) = waiting.remove(0);
                    halves[h] = Half::Loading {
                        task,
                        arrival,
                        left: tasks[task].load,
                        fresh: true,
                    };
                }
            }
            let running = halves.iter().any(|h| matches!(h, Half::Running { .. }));
            if !running
                && let Some(h) = halves.iter().position(|h| matches!(h, Half::Loaded { .. }))
                && let Half::Loaded { task, arrival } = halves[h]
            {
                halves[h] = Half::Running {
                    task,
                    arrival,
                    left: tasks[task].task.cost,
                };
            }
            for half in &mut halves {
                match half {
                    Half::Running {
                        task,
                        arrival,
                        left,
                    } => {
                        *left -= 1;
                        if *left == 0 {
                            *half = Half::Full {
                                task: *task,
                                arrival: *arrival,
                            };
                        }
                    }
                    Half::Loading {
                        task,
                        arrival,
                        left,
                        fresh,
                    } => {
                        if in_slot == Some(0) {
                            *fresh = false;
                        }
                        if in_slot.is_some() && !*fresh {
                            *left -= 1;
                            if *left == 0 {
                                *half = Half::Loaded {
                                    task: *task,
                                    arrival: *arrival,
                                };
                            }
                        }
                    }
                    Half::Unloading {
                        task,
                        arrival,
                        left,
                        fresh,
                    } => {
                        if in_slot == Some(0) {
                            *fresh = false;
                        }
                        if in_slot.is_some() && !*fresh {
                            *left -= 1;
                            if *left == 0 {
                                worst[*task] = worst[*task].max(now + 1 - *arrival);
                                *half = Half::Empty;
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn no_simulation_is_worse(
            tasks in phased(),
            slots in prop::collection::vec((1u64..5, 0u64..2), 1..4),
            core in any::<prop::sample::Index>(),
            offsets in prop::collection::vec(0u64..300, 5),
        ) {
            let tdma = Tdma {
                slots: slots.iter().map(|(u, o)| u + o).collect(),
                usable: slots.iter().map(|(u, _)| *u).collect(),
            };
            let core = core.index(slots.len());
            let bounds = response_times(&tasks, &tdma, core).unwrap();
            let seen = simulate(&tasks, &tdma, core, &offsets, 6000);
            for (bound, seen) in bounds.iter().zip(&seen) {
                prop_assert!(bound.is_none_or(|bound| *seen <= bound), "{} > {:?}", seen, bound);
            }
        }

        /// The same above a task that asks for more than there is: several of its jobs are pending.
        #[test]
        fn no_simulation_above_late_tasks_is_worse(
            tasks in phased(),
            late in (20u64..60, 10u64..60),
            usable in 1u64..5,
            offsets in prop::collection::vec(0u64..300, 6),
        ) {
            let tdma = Tdma { slots: vec![usable], usable: vec![usable] };
            let mut tasks = tasks;
            tasks.push(PhasedTask { task: Task::new(late.0, late.1), load: 1, unload: 1 });
            let bounds = response_times(&tasks, &tdma, 0).unwrap();
            let seen = simulate(&tasks, &tdma, 0, &offsets, 6000);
            for (bound, seen) in bounds.iter().zip(&seen) {
                prop_assert!(bound.is_none_or(|bound| *seen <= bound), "{} > {:?}", seen, bound);
            }
        }

        #[test]
        fn longer_transfers_are_never_better(tasks in phased(), usable in 1u64..5) {
            let tdma = Tdma { slots: vec![5, 5], usable: vec![usable, 5] };
            let before = response_times(&tasks, &tdma, 0).unwrap();
            let mut longer = tasks.clone();
            longer[0].load += 5;
            for (b, a) in before.iter().zip(response_times(&longer, &tdma, 0).unwrap()) {
                prop_assert!(a.is_none() || b.is_some_and(|b| b <= a.unwrap()));
            }
        }
    }
}
