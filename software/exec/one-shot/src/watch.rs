//! Whether a job has run for longer than its budget.
//!
//! Why it exists: nothing preempts a job, so an overrun can only be reported. What it deliberately does not know: to whom. Times
//! are cycles of a counter that may wrap.

/// The watch of the running job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    start: u64,
    /// 0: no budget, or the overrun was reported.
    budget: u64,
}

impl Watch {
    /// No job.
    pub const fn new() -> Self {
        Self {
            start: 0,
            budget: 0,
        }
    }

    /// A job begins. A budget of 0 means none.
    #[inline]
    pub fn begin(&mut self, now: u64, budget: u64) {
        self.start = now;
        self.budget = budget;
    }

    /// These cycles are not the job's: somebody else had the core.
    #[inline]
    pub fn leave_out(&mut self, cycles: u64) {
        self.start = self.start.wrapping_add(cycles);
    }

    /// Whether the job has run for longer than its budget; reported once.
    #[inline]
    pub fn overruns(&mut self, now: u64) -> bool {
        let over = self.budget != 0 && now.wrapping_sub(self.start) > self.budget;
        if over {
            self.budget = 0;
        }
        over
    }

    /// The job has ended, and nothing is watched any more. Returns whether it ran for longer than its budget and this was not
    /// reported yet.
    #[inline]
    pub fn end(&mut self, now: u64) -> bool {
        let over = self.overruns(now);
        self.budget = 0;
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_is_told_once() {
        let mut watch = Watch::new();
        watch.begin(100, 10);
        assert!(!watch.overruns(110));
        assert!(watch.overruns(111) && !watch.overruns(500));
        watch.begin(600, 10);
        assert!(watch.overruns(611));
    }

    #[test]
    fn what_somebody_else_took_is_left_out() {
        let mut watch = Watch::new();
        watch.begin(u64::MAX - 1, 10);
        watch.leave_out(50);
        assert!(!watch.overruns(58) && watch.overruns(59));
        // Nobody is watched.
        watch.leave_out(50);
        assert!(!watch.end(500));
    }

    #[test]
    fn nobody_is_watched_after_the_end() {
        let mut watch = Watch::new();
        watch.begin(0, 10);
        assert!(!watch.end(10) && !watch.overruns(500) && !watch.end(500));
        watch.begin(0, 10);
        assert!(watch.end(11) && !watch.overruns(500));
    }

    #[test]
    fn no_budget_is_never_overrun_and_a_counter_may_wrap() {
        let mut watch = Watch::new();
        assert!(!watch.overruns(u64::MAX));
        watch.begin(0, 0);
        assert!(!watch.overruns(u64::MAX));
        watch.begin(u64::MAX - 1, 5);
        assert!(!watch.overruns(3) && watch.overruns(4));
    }
}
