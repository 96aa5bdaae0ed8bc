//! When a server checks whether the senders of the requests that it keeps still wait for their answers.
//!
//! Why it exists: slots belong to gates, so a request of an activity that has ended occupies a slot of its successor until the server drops it, and a server is
//! not notified of a sender's end. So servers that keep requests for a long time check one request in each step, from time to time. Another client's request
//! waits for at most three checks: two of the framework, before and after it asks the service, and one of the service. What it deliberately does not know: requests, and how a server asks.

/// Nanoseconds from the end of a round to the next one: as long as clients wait between two checks of their receiver.
pub const ROUND: u64 = 10_000_000;

/// Rounds over requests that are kept. The first one begins when something has been kept for a whole [`ROUND`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// When the round begins; none while nothing is kept.
    begins: Option<u64>,
    /// Requests that this round has looked at.
    done: usize,
}

impl Rounds {
    /// The index of the request to check now, of `count` requests that are kept.
    #[inline]
    pub fn due(&mut self, now: u64, count: usize) -> Option<usize> {
        let begins = match self.begins {
            Some(begins) if count > 0 => begins,
            _ => {
                self.done = 0;
                self.begins = (count > 0).then_some(now.saturating_add(ROUND));
                return None;
            }
        };
        if now < begins {
            return None;
        }
        if self.done >= count {
            self.done = 0;
            self.begins = Some(now.saturating_add(ROUND));
            return None;
        }
        self.done += 1;
        Some(self.done - 1)
    }

    /// The request that was last due is no longer kept; the later ones move up.
    pub fn dropped(&mut self) {
        self.done = self.done.saturating_sub(1);
    }

    /// The moment from which [`due`](Self::due) may return a request; none if nothing was kept at its last call.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn one_request_in_each_step_and_none_too_early() {
        let mut rounds = Rounds::default();
        assert_eq!((rounds.due(5, 0), rounds.next()), (None, None));
        assert_eq!((rounds.due(7, 3), rounds.next()), (None, Some(7 + ROUND)));
        assert_eq!(rounds.due(6 + ROUND, 3), None);
        let now = 7 + ROUND;
        assert_eq!(rounds.due(now, 3), Some(0));
        assert_eq!(rounds.due(now, 3), Some(1));
        rounds.dropped();
        assert_eq!(rounds.due(now, 2), Some(1));
        assert_eq!(
            (rounds.due(now, 2), rounds.next()),
            (None, Some(now + ROUND))
        );
        // Nothing is kept any more, and then something else.
        assert_eq!((rounds.due(now + 1, 0), rounds.next()), (None, None));
        assert_eq!(
            (rounds.due(now + 2, 1), rounds.next()),
            (None, Some(now + 2 + ROUND))
        );
    }

    proptest! {
        /// Whatever comes and goes meanwhile: a request whose sender has ended is dropped within two rounds and the steps that they take,
        /// one whose sender waits is never dropped, and nothing is looked at more than once in a round.
        #[test]
        fn whoever_has_ended_is_found(steps in proptest::collection::vec((0u8..4, any::<prop::sample::Index>(), 0..ROUND / 2), 1..200)) {
            // A request: since when its sender is gone, and when it was looked at last.
            let mut kept: Vec<(Option<u64>, Option<u64>)> = Vec::new();
            let (mut rounds, mut now) = (Rounds::default(), 0);
            for (what, which, time) in steps {
                match what {
                    0 if kept.len() < 32 => kept.push((None, None)),
                    1 if !kept.is_empty() => drop(kept.remove(which.index(kept.len()))),
                    2 if !kept.is_empty() => {
                        let index = which.index(kept.len());
                        kept[index].0.get_or_insert(now);
                    }
                    _ => now += time,
                }
                while let Some(index) = rounds.due(now, kept.len()) {
                    let (gone, last) = kept[index];
                    prop_assert!(last.is_none_or(|last| now >= last + ROUND));
                    match gone {
                        Some(_) => {
                            kept.remove(index);
                            rounds.dropped();
                        }
                        None => kept[index].1 = Some(now),
                    }
                }
                // A step of this test takes up to half a round.
                prop_assert!(kept.iter().all(|(gone, _)| gone.is_none_or(|gone| now <= gone + 2 * ROUND)));
            }
        }
    }
}
