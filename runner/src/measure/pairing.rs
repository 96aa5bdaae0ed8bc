//! Pairs the markers of flows and spans.
//!
//! A flow may begin on one tile and end on another, and several may be in progress; the number that the software assigns joins begin and
//! end. A span belongs to one application. What it deliberately does not know: which application is on which tile, or what a deadline is.

use bulkhead_report::result::Sample;
use std::collections::{BTreeMap, VecDeque};

/// A marker that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerEvent {
    /// Time in ticks.
    pub at: u64,
    /// Tile.
    pub tile: u16,
    /// Activity on it.
    pub activity: u16,
    /// Kind: an `abi::marker::MarkerKind`, or a number defined by an application.
    pub kind: u16,
    /// Value.
    pub value: u64,
    /// The address of the instruction.
    pub pc: u64,
}

/// Begins and ends that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Complete pairs in the order of their ends.
    pub samples: Vec<Sample>,
    /// Begun and never ended. What is in progress when the run stops counts only if it began long enough ago; see [`pair`].
    pub lost: u64,
    /// The number of each one that never ended, and when it began.
    pub open: Vec<(u64, u64)>,
    /// Ended without a beginning.
    pub stray: u64,
    /// Begun with a number that ended more often than it began. It is unknown which end belongs to which begin, so their latencies say
    /// nothing.
    pub doubled: u64,
}

/// Joins begins and ends with equal numbers. `begins` and `ends` are in time order. A begin without an end counts as lost if it is before
/// `settled` (ticks); later ones may only have been cut off by the end of the run.
pub fn pair(
    begins: impl IntoIterator<Item = MarkerEvent>,
    ends: impl IntoIterator<Item = MarkerEvent>,
    settled: u64,
) -> Pairs {
    // Numbers may recur, as often as a program likes, so each has a queue.
    let mut open: BTreeMap<u64, VecDeque<u64>> = BTreeMap::new();
    for begin in begins {
        open.entry(begin.value).or_default().push_back(begin.at);
    }
    let begun: BTreeMap<u64, u64> = open
        .iter()
        .map(|(&number, begins)| (number, begins.len() as u64))
        .collect();
    let mut ended: BTreeMap<u64, u64> = BTreeMap::new();
    let mut pairs = Pairs::default();
    for end in ends {
        *ended.entry(end.value).or_default() += 1;
        let queue = open.entry(end.value).or_default();
        match queue.front().copied() {
            Some(begin) if begin <= end.at => {
                queue.pop_front();
                pairs.samples.push(Sample {
                    number: end.value,
                    begin,
                    latency: end.at - begin,
                });
            }
            _ => pairs.stray += 1,
        }
    }
    let open = open.into_iter();
    pairs.open = open
        .flat_map(|(number, begins)| begins.into_iter().map(move |begin| (number, begin)))
        .collect();
    let lost = pairs.open.iter().filter(|(_, begin)| *begin < settled);
    pairs.lost = lost.count() as u64;
    pairs.doubled = begun
        .iter()
        .filter(|&(number, begun)| ended.get(number) > Some(begun))
        .map(|(_, begun)| begun)
        .sum();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, value: u64) -> MarkerEvent {
        MarkerEvent {
            at,
            tile: 0,
            activity: 0,
            kind: 0,
            value,
            pc: 0,
        }
    }

    #[test]
    fn overlapping_flows_are_told_apart_by_number() {
        let pairs = pair(
            [event(0, 1), event(10, 2)],
            [event(15, 2), event(30, 1)],
            100,
        );
        let got: Vec<_> = pairs
            .samples
            .iter()
            .map(|s| (s.number, s.latency))
            .collect();
        assert_eq!(got, [(2, 5), (1, 30)]);
        assert_eq!((pairs.lost, pairs.stray), (0, 0));
    }

    #[test]
    fn numbers_may_come_again() {
        let pairs = pair(
            [event(0, 1), event(20, 1)],
            [event(5, 1), event(26, 1)],
            100,
        );
        let got: Vec<_> = pairs.samples.iter().map(|s| s.latency).collect();
        assert_eq!(got, [5, 6]);
    }

    /// A program may begin all spans that a tile has room for before it ends the first one. Before the fix, two million with one number
    /// took minutes.
    #[test]
    fn one_number_for_everything_takes_no_longer_than_others() {
        const COUNT: u64 = 1 << 20;
        let begins = (0..COUNT).map(|at| event(at, 1));
        let ends = (0..COUNT).map(|at| event(COUNT + at, 1));
        let pairs = pair(begins, ends, 0);
        assert_eq!(pairs.samples.len() as u64, COUNT);
        assert!(pairs.samples.iter().all(|sample| sample.latency == COUNT));
    }

    #[test]
    fn a_number_that_ends_more_often_than_it_begins_is_doubled() {
        // Two sources number what they send from 1, and one of them marks the start of this flow.
        let pairs = pair(
            [event(0, 1), event(10, 2), event(20, 3)],
            [event(1, 1), event(7, 1), event(12, 2), event(21, 4)],
            100,
        );
        assert_eq!((pairs.doubled, pairs.lost, pairs.stray), (1, 1, 2));
        // Ends before the begin count, too: what ended the number then may end it again.
        let early = pair([event(5, 1)], [event(1, 1), event(7, 1)], 100);
        assert_eq!(early.doubled, 1);
        // A number may recur, and may lack an end.
        let again = pair(
            [event(0, 1), event(10, 1), event(20, 1)],
            [event(5, 1), event(15, 1)],
            100,
        );
        assert_eq!((again.doubled, again.lost), (0, 1));
    }

    #[test]
    fn a_flow_that_is_cut_off_is_not_lost() {
        let pairs = pair([event(0, 1), event(90, 2)], [], 50);
        assert_eq!((pairs.lost, pairs.open), (1, vec![(1, 0), (2, 90)]));
    }

    #[test]
    fn an_end_before_its_beginning_is_stray() {
        let pairs = pair([event(50, 1)], [event(10, 1)], 0);
        assert_eq!((pairs.samples.len(), pairs.stray), (0, 1));
    }
}
