//! Which task runs next.
//!
//! Why it exists: the one decision of the kernel. What it deliberately does not know: what tasks do, and why they wait.

use crate::Task;
use crate::alarms::Alarms;
use core::sync::atomic::AtomicU64;

/// The tasks of a core. A task is ready, or runs, or waits: for a tick, or for a call of [`Tasks::release`].
#[derive(Debug)]
pub struct Tasks<'a> {
    ready: u64,
    /// Tasks that stopped for good: nothing makes them ready.
    stopped: u64,
    now: u64,
    alarms: Alarms<'a>,
}

impl<'a> Tasks<'a> {
    /// No tasks.
    pub const fn none() -> Self {
        Self {
            ready: 0,
            stopped: 0,
            now: 0,
            alarms: Alarms::over(&[]),
        }
    }

    /// One task for each word of the table (at most 64), all ready; the tick is `now`.
    pub fn new(table: &'a [AtomicU64], now: u64) -> Self {
        let count = table.len().min(crate::TASKS);
        Self {
            ready: match count {
                0 => 0,
                count => u64::MAX >> (crate::TASKS - count),
            },
            stopped: 0,
            now,
            alarms: Alarms::new(&table[..count]),
        }
    }

    /// Ticks so far.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The most urgent ready task, which runs from now on.
    #[inline]
    pub fn take(&mut self) -> Option<Task> {
        if self.ready == 0 {
            return None;
        }
        let first = self.ready.trailing_zeros();
        // Clears the lowest bit, which is that task's.
        self.ready &= self.ready - 1;
        Some(first as Task)
    }

    /// Makes a task ready now. Has no effect on a task that is ready or has stopped.
    #[inline]
    pub fn release(&mut self, task: Task) {
        self.ready |= 1u64.checked_shl(task.into()).unwrap_or(0) & !self.stopped;
    }

    /// Makes a task ready at a tick: now, if the tick has come.
    #[inline]
    pub fn delay(&mut self, task: Task, until: u64) {
        if until <= self.now {
            self.release(task);
        } else {
            self.alarms.set(task, until);
        }
    }

    /// A tick has passed. Returns the tasks that it made ready, as a set.
    #[inline]
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        let due = self.alarms.due(self.now) & !self.stopped;
        self.ready |= due;
        due
    }

    /// A task never runs again, whatever releases it.
    pub fn stop(&mut self, task: Task) {
        let bit = 1u64.checked_shl(task.into()).unwrap_or(0);
        self.stopped |= bit;
        self.ready &= !bit;
    }

    /// Whether no task is ready.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.ready == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table<const N: usize>() -> [AtomicU64; N] {
        [const { AtomicU64::new(0) }; N]
    }

    #[test]
    fn the_most_urgent_ready_task_runs() {
        let table = table::<3>();
        let mut tasks = Tasks::new(&table, 10);
        assert_eq!([tasks.take(), tasks.take()], [Some(0), Some(1)]);
        tasks.release(0);
        tasks.delay(1, 9);
        assert_eq!([tasks.take(), tasks.take()], [Some(0), Some(1)]);
        assert_eq!([tasks.take(), tasks.take()], [Some(2), None]);
        assert!(tasks.is_idle());
    }

    #[test]
    fn who_delays_is_ready_at_that_tick() {
        let table = table::<2>();
        let mut tasks = Tasks::new(&table, 0);
        assert_eq!([tasks.take(), tasks.take()], [Some(0), Some(1)]);
        tasks.delay(1, 2);
        tasks.delay(0, 2);
        assert_eq!((tasks.tick(), tasks.take()), (0, None));
        assert_eq!((tasks.tick(), tasks.take()), (0b11, Some(0)));
        assert_eq!((tasks.now(), tasks.take()), (2, Some(1)));
    }

    #[test]
    fn a_stopped_task_stays_stopped() {
        let table = table::<2>();
        let mut tasks = Tasks::new(&table, 0);
        tasks.delay(0, 1);
        tasks.stop(0);
        tasks.release(0);
        assert_eq!(
            (tasks.tick(), tasks.take(), tasks.take()),
            (0, Some(1), None)
        );
    }

    #[test]
    fn tasks_that_do_not_exist_change_nothing() {
        let mut none = Tasks::none();
        none.delay(0, 5);
        assert_eq!((none.tick(), none.take()), (0, None));
        let table = table::<64>();
        let mut all = Tasks::new(&table, 0);
        all.release(200);
        all.stop(64);
        let order: Vec<_> = core::iter::from_fn(|| all.take()).collect();
        assert_eq!(order, (0..64).collect::<Vec<_>>());
    }
}
