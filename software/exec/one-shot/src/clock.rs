//! What a message with the time of another clock says about the own one.
//!
//! Why it exists: cores start one after the other and their timers differ, so a master tells them its time (m2os-mc-ngres21, section 4.3), and
//! the way of its message must be added. How long that was nobody knows exactly, but both ends know between which of their own counts it was.
//! What it deliberately does not know: messages, memory, and timers.
//!
//! The message arrives after it was sent and before its acknowledgement, both counts of the master; and after the last look of the other core
//! that did not find it and before the one that did, both counts of that core. So the difference of the clocks at the arrival is in a
//! [`Window`], whatever delayed the message, its acknowledgement or the looks: a delay makes the window wider.

/// Between which values the difference of two clocks was: what the own clock lacks, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    least: u64,
    width: u64,
}

impl Window {
    /// Of a message sent at a count of the master and acknowledged `way` later, which arrived between two counts of the own clock.
    #[inline]
    pub fn of(sent: u64, way: u64, earliest: u64, latest: u64) -> Self {
        let width = way.saturating_add(latest.wrapping_sub(earliest));
        Self {
            least: sent.wrapping_sub(latest),
            width,
        }
    }

    /// The narrower of two.
    #[inline]
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match other.width < self.width {
            true => other,
            false => self,
        }
    }

    /// What to add to the own clock: the middle.
    #[inline]
    pub fn correction(self) -> u64 {
        self.least.wrapping_add(self.width / 2)
    }

    /// By how many counts that is wrong at most, at the arrival.
    #[inline]
    pub fn error(self) -> u64 {
        self.width.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // Sent at 1000, acknowledged 30 later; seen between 5 and 15: between 985 and 1025 is missing.
        let window = Window::of(1000, 30, 5, 15);
        assert_eq!((window.correction(), window.error()), (1005, 20));
        // The own clock is ahead: the correction is negative.
        let window = Window::of(5, 1, 1000, 1002);
        assert_eq!(window.correction() as i64, -996);
        assert_eq!(window.error(), 2);
        assert_eq!(window.or(Window::of(7, 90, 7, 8)), window);
    }

    proptest! {
        /// Clocks with any counts and speeds, and a message that takes any time: the true difference at its arrival is within the error.
        #[test]
        fn the_error_is_bounded(
            master: u64, own: u64, speeds in (1u64..5, 1u64..5), phases in (0u64..4, 0u64..4),
            way in 0u64..10_000, back in 0u64..10_000, before in 0u64..1000, after in 0u64..1000,
        ) {
            // Counts at a moment: several moments may have the same one.
            let of = |at: u64, from: u64, speed: u64, phase: u64| from.wrapping_add((at + phase) / speed);
            let master = |at| of(at, master, speeds.0, phases.0);
            let own = |at| of(at, own, speeds.1, phases.1);
            let send = 1000;
            let arrival = send + way;
            let sent = master(send);
            let window = Window::of(
                sent,
                master(arrival + back).wrapping_sub(sent),
                own(arrival.saturating_sub(before)),
                own(arrival + after),
            );
            let truth = master(arrival).wrapping_sub(own(arrival));
            let wrong = window.correction().wrapping_sub(truth) as i64;
            prop_assert!(wrong.unsigned_abs() <= window.error(), "{} of {}", wrong, window.error());
        }
    }
}
