//! What runs before every task: handlers of interrupts, releases of jobs, stalls of the whole processor.
//!
//! Why it exists: such work has no priority and no deadline, so every test has to count it, regardless of the task it is done for. A
//! handler is a [`Task`] whose deadline does not matter. Tests that use windows count handlers as demand of the window; the others let
//! each job pay for everything that its longest life may meet ([`taken`], [`pays`]): mc2-rts20, section 6.1, paragraph "Overhead
//! accounting", does so for interrupts.
//!
//! What it deliberately does not know: what handlers do, and where descriptions name them.

use super::task::{LIMIT, Task, Time};

/// A handler: its longest run and the minimum inter-arrival time of its requests.
pub const fn handler(cost: Time, distance: Time) -> Task {
    Task::new(cost, distance)
}

/// Something that happens at most once in a busy period, such as a stall in progress when it began.
pub const fn once(cost: Time) -> Task {
    Task::new(cost, LIMIT)
}

/// Maximum time that handlers take from a window of this length: everything requested in it, and one run of each that was requested
/// earlier.
pub fn taken(handlers: &[Task], window: Time) -> Time {
    handlers.iter().fold(0, |sum, h| {
        let most = window
            .saturating_add(h.jitter)
            .div_ceil(h.period.max(1))
            .saturating_add(1);
        sum.saturating_add(most.saturating_mul(h.cost))
    })
}

/// The task if each of its jobs pays for what handlers take from a life of this length. Tests refuse a cost above their limit.
pub fn pays(task: &Task, handlers: &[Task], life: Time) -> Task {
    Task {
        cost: task.cost.saturating_add(taken(handlers, life)),
        ..*task
    }
}

/// The time requested of handlers in the first `window` of a busy period. `None` beyond 64 bits.
pub fn requested(handlers: &[Task], window: Time) -> Option<Time> {
    handlers.iter().try_fold(0u64, |sum, h| {
        let requests = window.checked_add(h.jitter)?.div_ceil(h.period);
        sum.checked_add(requests.checked_mul(h.cost)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interrupt of 1 every 5 meets a life of 10 three times: twice in it and once from before.
    #[test]
    fn by_hand() {
        let handlers = [handler(1, 5), handler(2, 100).with_jitter(95)];
        assert_eq!(taken(&handlers[..1], 10), 3);
        // 10 + 95 hold two requests of the second, and one from before.
        assert_eq!(taken(&handlers, 10), 3 + 6);
        assert_eq!(pays(&Task::new(4, 10), &handlers, 10), Task::new(13, 10));
        assert_eq!(requested(&handlers, 10), Some(2 + 4));
        assert_eq!(requested(&[once(7)], 1 << 40), Some(7));
        assert_eq!(requested(&handlers, u64::MAX), None);
    }
}
