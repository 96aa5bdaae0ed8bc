//! Response times under a table for jobs that do not follow it.
//!
//! Why it exists: a table is made for jobs that arrive exactly a period apart. If they only arrive at least that far apart, a job may just
//! miss its slot and wait for the next one, so the table's own response times bound nothing. What it deliberately does not know: how the
//! table was made, and the decisions to which its slots lose time.
//!
//! Model: slots do not move. A job that arrives within a slot of its task waits for the next one, and what a slot has left when no job of its task is
//! there is lost. A dispatcher that gives such a job the rest of the slot is never later. Jobs of a task are served in order.
//!
//! Method: the supply of a time-triggered resource in any window (A. Mok, X. Feng, D. Chen, *Resource partition for real-time systems*,
//! RTAS 2001) against the demand of jobs that come as densely as they may. For a job J, take the last slot S before its end that was not
//! used to its end. Whatever is served after S arrived after the start of S, or S had been used; and from S to J's end, the task's slots
//! are used to their ends. So if J is job k after S, it ends when those slots have given what k jobs need, and it arrived k - 1 periods
//! after the start of S or later. The bound is the greatest difference over all slots S and all k, until k jobs end before the next one can
//! have arrived: that one finds another S. Before the first slot of all there is none; the last slot of a repetition before would have been
//! one, and earlier.
//!
//! Each slot after S loses what a turn at its start loses, and again what a turn within it loses when the next job follows the end of one.
//! A job that begins its turn later, or is longer, never ends earlier; so jobs of maximum length, in sequence, bound all others.

use super::table::{Table, Turns};
use super::task::{Task, Time, common_divisor};

/// Maximum slots and jobs examined.
const WORK: u64 = 50_000_000;

/// The part of a task's cost that is paid for others in a life of some length. A job that lives longer pays again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// The part of the cost.
    pub cost: Time,
    /// The life.
    pub life: Time,
}

/// Whole repetitions in which a backlog may settle before it counts as one that grows forever.
const ROUNDS: Time = 32;

/// The longest time from arrival to completion of each task's jobs; `None` if its slots are too few, or if too much would have to be
/// examined. `paid` has an entry for each task, or none at all.
pub fn response_times(
    table: &Table,
    tasks: &[Task],
    paid: &[Paid],
    turns: &Turns,
) -> Vec<Option<Time>> {
    let mut work = WORK;
    let one = |(index, task): (usize, &Task)| {
        let lost = |slot: usize| turns.first.get(slot).copied().unwrap_or(0);
        let all = table.slots.iter().enumerate();
        let own = Own {
            slots: all
                .filter(|(_, slot)| slot.task == index)
                .map(|(number, slot)| (slot.start, lost(number), slot.start + slot.length))
                .collect(),
            later: turns.later,
            length: table.length,
        };
        let usable = own.slots.iter();
        let given: u128 = usable
            .map(|slot| u128::from(slot.2.saturating_sub(slot.0 + slot.1)))
            .sum();
        let asked = u128::from(task.cost) * u128::from(table.length);
        // More would be late without bound.
        if given == 0 || given * u128::from(task.period) < asked {
            return None;
        }
        let paid = paid.get(index).copied().unwrap_or_default();
        let all = (0..own.slots.len()).map(|first| own.longest_after(first, task, paid, &mut work));
        all.collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    tasks.iter().enumerate().map(one).collect()
}

/// The slots of one task.
struct Own {
    /// Start, what a turn that begins with it loses, and end.
    slots: Vec<(Time, Time, Time)>,
    later: Time,
    length: Time,
}

/// Where the next turn begins.
#[derive(Clone, Copy)]
struct Place {
    slot: usize,
    repetition: Time,
    /// The first moment that serves.
    from: Time,
}

impl Own {
    fn slot(&self, slot: usize, repetition: Time) -> Option<Place> {
        let start = self.length.checked_mul(repetition)?;
        let from = start.checked_add(self.slots[slot].0 + self.slots[slot].1)?;
        Some(Place {
            slot,
            repetition,
            from,
        })
    }

    fn next(&self, place: Place) -> Option<Place> {
        match place.slot + 1 {
            slot if slot < self.slots.len() => self.slot(slot, place.repetition),
            _ => self.slot(0, place.repetition + 1),
        }
    }

    /// When a job of this cost ends, and in which slot.
    fn serve(&self, mut place: Place, mut cost: Time, work: &mut u64) -> Option<Place> {
        loop {
            *work = work.checked_sub(1)?;
            let end = self.length * place.repetition + self.slots[place.slot].2;
            let room = end.saturating_sub(place.from);
            if cost <= room {
                place.from += cost;
                return Some(place);
            }
            cost -= room;
            place = self.next(place)?;
        }
    }

    /// The longest response of a job after the slot `first`, not all of which was wanted; `None` if `work` is used up, or if jobs are
    /// later and later.
    fn longest_after(&self, first: usize, task: &Task, paid: Paid, work: &mut u64) -> Option<Time> {
        let begin = self.slots[first].0;
        let own = task.cost.saturating_sub(paid.cost);
        let most = self.length / common_divisor(self.length, task.period).max(1);
        let mut place = self.next(self.slot(first, 0)?)?;
        let (mut last, mut worst) = (begin, 0);
        // How late the first job of each `most` may begin: they come a whole number of tables after the first.
        let mut latest = place.from;
        for job in 1..=most.checked_mul(ROUNDS)? {
            // Lives that are paid for: one, and more where the job is served for longer than that.
            let mut lives = 1;
            let end = loop {
                let cost = own.checked_add(paid.cost.checked_mul(lives)?)?;
                let end = self.serve(place, cost, work)?;
                let longer = (end.from - last).checked_div(paid.life);
                let longer = longer.map_or(0, |lives| lives + 1);
                if longer <= lives || paid.cost == 0 {
                    break end;
                }
                lives = longer;
            };
            let response = (end.from - begin).saturating_sub((job - 1) * task.period);
            worst = worst.max(response);
            if response <= task.period {
                return Some(worst);
            }
            last = end.from;
            place = end;
            place.from += self.later;
            if job % most == 0 {
                let shift = place.from.saturating_sub(job * task.period);
                if shift <= latest {
                    return Some(worst);
                }
                latest = shift;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{self, Slot};
    use super::*;
    use proptest::prelude::*;

    /// Two tasks, (4, 2) and (6, 3), in the table of their hyperperiod. If jobs come with the table, they end within 2 and 6. A job of the second
    /// that arrives right after its slot began waits for the next one.
    #[test]
    fn by_hand() {
        let tasks = [Task::new(2, 4), Task::new(3, 6)];
        let table = table::build(&tasks).unwrap();
        let slots: Vec<_> = table
            .slots
            .iter()
            .map(|s| (s.start, s.length, s.task))
            .collect();
        assert_eq!(slots[..4], [(0, 2, 0), (2, 3, 1), (5, 2, 0), (7, 1, 1)]);
        assert_eq!(table::response_times(&table, &tasks), [3, 6]);
        let any = response_times(&table, &tasks, &[], &Turns::default());
        let observed = [0, 1].map(|task| worst_by_force(&table, task, &tasks[task], 3));
        for (bound, seen) in any.iter().zip(observed) {
            // It arrives arbitrarily shortly after the start of a slot; here by 1.
            assert_eq!(*bound, Some(seen + 1), "{any:?} {observed:?}");
        }
        assert!(any[1] > Some(6));
    }

    /// One slot of 3 in 10 for (10, 3), of which 1 pays for others in each 10: just missed, a job lives for 13, so it pays twice and needs the slot
    /// after the next one.
    #[test]
    fn a_longer_life_pays_again() {
        let slot = Slot {
            start: 2,
            length: 3,
            task: 0,
        };
        let table = Table {
            length: 10,
            slots: vec![slot],
        };
        let task = [Task::new(3, 10)];
        assert_eq!(
            response_times(&table, &task, &[], &Turns::default()),
            [Some(13)]
        );
        let slack = Table {
            length: 10,
            slots: vec![Slot { length: 4, ..slot }],
        };
        let paid = [Paid { cost: 1, life: 10 }];
        // 2 and twice 1.
        assert_eq!(
            response_times(&slack, &task, &paid, &Turns::default()),
            [Some(14)]
        );
        // A short life is paid for many times by one job, and each job pays for the time in which it is served.
        let short = [Paid { cost: 1, life: 2 }];
        let many = Table {
            length: 10,
            slots: vec![Slot { length: 8, ..slot }],
        };
        assert_eq!(
            response_times(&many, &[Task::new(2, 5)], &short, &Turns::default()),
            [Some(29)]
        );
        assert_eq!(
            response_times(&slack, &[Task::new(5, 10)], &[], &Turns::default()),
            [None]
        );
        assert_eq!(
            response_times(&Table::default(), &task, &[], &Turns::default()),
            [None]
        );
    }

    /// The longest response of jobs that arrive at any whole times, at least a period apart; `rest`: a job gets the rest of a slot within which it
    /// arrives.
    fn longest(table: &Table, index: usize, task: &Task, arrivals: &[u64], rest: bool) -> u64 {
        let own: Vec<&Slot> = table
            .slots
            .iter()
            .filter(|slot| slot.task == index)
            .collect();
        let mut left: Vec<u64> = vec![task.cost; arrivals.len()];
        let mut worst = 0;
        for repetition in 0.. {
            for slot in &own {
                let start = repetition * table.length + slot.start;
                // What is there when the slot begins, unless the rest is given, too.
                let there = arrivals.iter().filter(|a| **a <= start).count();
                for now in start..start + slot.length {
                    let job = left.iter().position(|left| *left > 0);
                    let Some(job) = job else { return worst };
                    let may = if rest {
                        arrivals[job] <= now
                    } else {
                        job < there
                    };
                    if may {
                        left[job] -= 1;
                        if left[job] == 0 {
                            worst = worst.max(now + 1 - arrivals[job]);
                        }
                    }
                }
            }
        }
        worst
    }

    /// The longest of all arrivals of this many jobs that begin within a table and are at most a table further apart than they must be.
    fn worst_by_force(table: &Table, index: usize, task: &Task, jobs: u32) -> u64 {
        let mut worst = 0;
        let mut all: Vec<Vec<u64>> = (0..table.length).map(|first| vec![first]).collect();
        for _ in 1..jobs {
            let later = all.iter().flat_map(|arrivals| {
                (0..table.length).map(move |more| {
                    let last = arrivals.last().copied().unwrap_or(0);
                    [arrivals.as_slice(), &[last + task.period + more]].concat()
                })
            });
            all = later.collect();
        }
        for arrivals in &all {
            worst = worst.max(longest(table, index, task, arrivals, false));
            let rest = longest(table, index, task, arrivals, true);
            assert!(rest <= worst, "{arrivals:?}");
        }
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]

        /// Tables that were built, and tables with odd slots: no arrivals of two jobs exceed the bound, and some of many jobs come within 1 of it.
        #[test]
        fn equal_to_every_arrival(
            drawn in prop::collection::vec((1u64..4, prop::sample::select(vec![3u64, 4, 6, 12])), 1..4),
            odd in prop::collection::vec((0usize..3, 1u64..4, 0u64..3), 0..6),
        ) {
            // All times are even, so that there is a whole time between any two.
            let tasks: Vec<Task> = drawn.iter().map(|&(cost, period)| Task::new(2 * cost.min(period), 2 * period)).collect();
            let mut start = 0;
            let slots = odd.iter().filter_map(|&(task, length, gap)| {
                let slot = Slot { start: 2 * (start + gap), length: 2 * length, task: task % tasks.len() };
                start += gap + length;
                (start <= 12).then_some(slot)
            });
            let odd = Table { length: 24, slots: slots.collect() };
            for table in [table::build(&tasks).ok(), Some(odd)].into_iter().flatten() {
                let bounds = response_times(&table, &tasks, &[], &Turns::default());
                for (index, task) in tasks.iter().enumerate() {
                    let Some(bound) = bounds[index] else { continue };
                    let seen = worst_by_force(&table, index, task, 2);
                    prop_assert!(seen < bound, "{seen} {bound} {table:?}");
                    // Jobs that come as densely as they may, from any time on, show that it is exact.
                    let dense = (0..table.length).map(|first| {
                        let arrivals: Vec<u64> = (0..9).map(|job| first + job * task.period).collect();
                        longest(&table, index, task, &arrivals, false)
                    });
                    prop_assert_eq!(dense.max().unwrap_or(0) + 1, bound, "{:?}", table);
                }
            }
        }
    }
}
