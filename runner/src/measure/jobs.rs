//! What was done in the jobs of a flow: the counted part of its bound.
//!
//! Why it exists: a bound that starts from a measurement alone counts the transactions of a job, and every kind of system counts by one rule.
//! A job is everything that can delay a sample: what is done from the end of the previous sample (including what it left for later) to the
//! sample's own end. Nothing that begins later can delay the sample. What is done before the first sample is the start. Every transaction
//! counts for each job during which it was in progress. What it deliberately does not know: which transactions there are, and how a bound
//! follows from their number.

use bulkhead_report::result::Sample;

/// Numbers of transactions.
pub trait Work: Clone + Default {
    /// Adds those of another one.
    fn add(&mut self, other: &Self);

    /// Raises each number to that of another one.
    fn raise(&mut self, other: &Self);
}

/// From the beginning of a job to its end, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it begins.
    pub begin: u64,
    /// When it ends.
    pub end: u64,
}

/// The work in an interval.
#[derive(Clone, Debug)]
pub struct Stretch<W> {
    /// When it begins.
    pub begin: u64,
    /// When it ends.
    pub end: u64,
    /// The work.
    pub done: W,
}

/// When a first sample has gone through: from then on, everything that works on samples has started.
pub fn started(samples: &[Sample]) -> Option<u64> {
    samples.iter().map(|one| one.begin + one.latency).min()
}

/// The longest of the samples that began after that; `None` if there is none.
pub fn worst_started(samples: &[Sample]) -> Option<u64> {
    let first = started(samples)?;
    let after = samples.iter().filter(|one| one.begin >= first);
    after.map(|one| one.latency).max()
}

/// The jobs behind samples, by their begins.
pub fn jobs(samples: &[Sample]) -> Vec<Span> {
    let span = |sample: &Sample| (sample.begin, sample.begin + sample.latency);
    let mut all: Vec<(u64, u64)> = samples.iter().map(span).collect();
    let mut ends: Vec<u64> = all.iter().map(|one| one.1).collect();
    all.sort_unstable();
    ends.sort_unstable();
    let job = |(begin, end): (u64, u64)| {
        let before = ends.partition_point(|end| *end <= begin);
        // For a sample that takes no time, only its own end is not before it.
        let before = before - usize::from(begin == end);
        let begin = before.checked_sub(1).map_or(begin, |last| ends[last]);
        Span { begin, end }
    };
    all.into_iter().map(job).collect()
}

/// The maximum that was done in any of these spans: everything in progress during the span.
pub fn most<W: Work>(mut all: Vec<Stretch<W>>, spans: &[Span]) -> W {
    all.sort_by_key(|one| one.begin);
    // For all intervals up to each, the latest end.
    let mut reach: Vec<u64> = all.iter().map(|one| one.end).collect();
    for index in 1..reach.len() {
        reach[index] = reach[index].max(reach[index - 1]);
    }
    let mut most = W::default();
    for span in spans {
        let first = reach.partition_point(|end| *end <= span.begin);
        let begun = all[first..].iter().take_while(|one| one.begin < span.end);
        let mut sum = W::default();
        for one in begun.filter(|one| one.end > span.begin) {
            sum.add(&one.done);
        }
        most.raise(&sum);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_before_a_first_sample_is_over_may_belong_to_the_start() {
        let sample = |&(begin, latency): &(u64, u64)| Sample {
            number: 0,
            begin,
            latency,
        };
        let of = |all: &[(u64, u64)]| {
            let samples: Vec<Sample> = all.iter().map(sample).collect();
            (started(&samples), worst_started(&samples))
        };
        assert_eq!(of(&[]), (None, None));
        assert_eq!(of(&[(10, 90)]), (Some(100), None));
        assert_eq!(of(&[(10, 90), (100, 7), (200, 5)]), (Some(100), Some(7)));
        // The second one began before the first one was over.
        assert_eq!(of(&[(10, 90), (50, 70), (200, 5)]), (Some(100), Some(5)));
    }
}
