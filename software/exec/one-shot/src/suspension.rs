//! Suspension objects: a task waits until another task or a handler sets a condition.
//!
//! Why it exists: the cheapest way to wake a task (Ada reference manual, D.10). What it deliberately does not know: tasks.

use crate::Task;

/// Nobody.
const NOBODY: Task = Task::MAX;

/// The result of a task's wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// The task continues at once.
    Goes,
    /// It waits.
    Waits,
    /// Another task waits here already, so this one cannot.
    Taken,
}

/// A condition that at most one task waits for.
#[derive(Clone, Copy, Debug)]
pub struct Suspension {
    is_true: bool,
    waits: Task,
}

impl Default for Suspension {
    fn default() -> Self {
        Self::new()
    }
}

impl Suspension {
    /// The condition is false, and no task waits.
    pub const fn new() -> Self {
        Self {
            is_true: false,
            waits: NOBODY,
        }
    }

    /// Sets the condition to true. If a task waits, it is released instead (the result) and the condition stays false.
    #[inline]
    #[must_use = "this task is ready now"]
    pub fn set_true(&mut self) -> Option<Task> {
        if self.waits == NOBODY {
            self.is_true = true;
            return None;
        }
        Some(core::mem::replace(&mut self.waits, NOBODY))
    }

    /// Sets the condition to false.
    #[inline]
    pub fn set_false(&mut self) {
        self.is_true = false;
    }

    /// Whether the condition is true.
    #[inline]
    pub fn is_true(&self) -> bool {
        self.is_true
    }

    /// A task waits until the condition is true, and makes it false.
    #[inline]
    pub fn wait(&mut self, task: Task) -> Waiting {
        if self.waits != NOBODY {
            return Waiting::Taken;
        }
        if core::mem::take(&mut self.is_true) {
            return Waiting::Goes;
        }
        self.waits = task;
        Waiting::Waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_truth_releases_one_task() {
        let mut object = Suspension::new();
        assert_eq!(object.wait(3), Waiting::Waits);
        assert_eq!(object.wait(4), Waiting::Taken);
        assert_eq!((object.set_true(), object.is_true()), (Some(3), false));
        assert_eq!((object.set_true(), object.set_true()), (None, None));
        assert!(object.is_true());
        assert_eq!(object.wait(4), Waiting::Goes);
        assert_eq!(object.wait(4), Waiting::Waits);
    }

    #[test]
    fn a_truth_can_be_taken_back() {
        let mut object = Suspension::new();
        assert_eq!(object.set_true(), None);
        object.set_false();
        assert_eq!(object.wait(0), Waiting::Waits);
    }
}
