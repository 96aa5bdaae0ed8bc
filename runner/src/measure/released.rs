//! When the jobs of a periodic task were released, according to its program.
//!
//! Why it exists: a job's response begins at its release. If others keep the job from the hart, it starts later, and that wait is a part of
//! the response that a bound contains. What it deliberately does not know: periods and deadlines.
//!
//! A program can state any release, so a release later than the start of its job is ignored. An earlier one can only make the response
//! longer.

use crate::measure::MarkerEvent;
use bulkhead_abi::marker::MarkerKind;

/// The releases of an activity's jobs.
pub struct Released {
    /// Number of each job, and its release: the moment that the program stated before it waited for it. If the program stated none, or a
    /// moment after the job's start, the release is the start.
    pub all: Vec<MarkerEvent>,
    /// The longest time from a release that the program stated to the start of its job, in ticks. The last job may not have started.
    pub begin: Option<u64>,
}

impl Released {
    /// From the markers of an activity for which the run was over at `over`, in ticks.
    pub fn of(markers: &[MarkerEvent], per_second: u64, over: u64) -> Self {
        let mut released = Self {
            all: Vec::new(),
            begin: None,
        };
        // The run never reached a moment that is beyond all ticks.
        let tick = |nanoseconds: u64| {
            let ticks = u128::from(nanoseconds) * u128::from(per_second) / 1_000_000_000;
            u64::try_from(ticks).ok()
        };
        let mut due: Option<MarkerEvent> = None;
        for marker in markers {
            match MarkerKind::from_code(marker.kind) {
                Some(MarkerKind::JobDue) => due = Some(*marker),
                Some(MarkerKind::JobRelease) => {
                    let said = due.take().and_then(|due| tick(due.value));
                    let at = said.filter(|said| *said <= marker.at);
                    released.add(
                        MarkerEvent {
                            at: at.unwrap_or(marker.at),
                            ..*marker
                        },
                        at.map(|at| marker.at - at),
                    );
                }
                _ => {}
            }
        }
        // The last job was released and did not get the hart.
        if let Some(due) = due
            && let Some(at) = tick(due.value).filter(|at| *at < over)
        {
            let value = released
                .all
                .last()
                .map_or(1, |last| last.value.wrapping_add(1));
            released.add(MarkerEvent { at, value, ..due }, Some(over - at));
        }
        released
    }

    fn add(&mut self, release: MarkerEvent, later: Option<u64>) {
        self.all.push(release);
        self.begin = self.begin.max(later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MarkerKind::{JobComplete, JobDue, JobRelease};

    const PER_SECOND: u64 = 2_000_000_000;

    fn released(markers: &[(u64, MarkerKind, u64)]) -> (Vec<(u64, u64)>, Option<u64>) {
        let event = |&(at, kind, value): &(u64, MarkerKind, u64)| MarkerEvent {
            at,
            tile: 2,
            activity: 1,
            kind: kind as u16,
            value,
            pc: 0,
        };
        let markers: Vec<MarkerEvent> = markers.iter().map(event).collect();
        let found = Released::of(&markers, PER_SECOND, 10_000);
        let all = found.all.iter().map(|one| (one.value, one.at));
        (all.collect(), found.begin)
    }

    /// Two ticks in a nanosecond. The second job waited for the hart from 1000 to 1600.
    #[test]
    fn a_release_is_the_moment_that_was_said_before_the_wait() {
        let found = released(&[
            (10, JobDue, 250),
            (502, JobRelease, 1),
            (700, JobComplete, 1),
            (701, JobDue, 500),
            (1600, JobRelease, 2),
        ]);
        assert_eq!(found, (vec![(1, 500), (2, 1000)], Some(600)));
    }

    #[test]
    fn without_a_word_a_job_is_released_when_it_begins() {
        let found = released(&[(502, JobRelease, 1), (900, JobRelease, 2)]);
        assert_eq!(found, (vec![(1, 502), (2, 900)], None));
    }

    /// Each stated release is for one job, and none makes a response shorter.
    #[test]
    fn a_word_counts_once_and_a_later_moment_not_at_all() {
        let found = released(&[
            (10, JobDue, 250),
            (510, JobRelease, 1),
            (900, JobRelease, 2),
            (901, JobDue, 1000),
            (1500, JobRelease, 3),
            (1501, JobDue, u64::MAX),
            (1600, JobRelease, 4),
        ]);
        let all = vec![(1, 500), (2, 900), (3, 1500), (4, 1600)];
        assert_eq!(found, (all, Some(10)));
    }

    /// A job that starves until the end was released and did not start. A job that is not due before the end does not count.
    #[test]
    fn a_job_that_never_begins_is_released_all_the_same() {
        let begun = [(10, JobDue, 250), (500, JobRelease, 1)];
        let ends = |due: u64| released(&[&begun[..], &[(600, JobDue, due)]].concat());
        assert_eq!(ends(3000), (vec![(1, 500), (2, 6000)], Some(4000)));
        for later in [5000, u64::MAX] {
            assert_eq!(ends(later), (vec![(1, 500)], Some(0)));
        }
    }
}
