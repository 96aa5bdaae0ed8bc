//! Whether a program replaced the same lines beside others as it did alone.
//!
//! Why it exists: a bound that starts from a run alone assumes that the same accesses hit. Where several misses are under way, lines may
//! come in another order beside others, and then another line may be replaced. The ordered list of the lines that a hart requested from
//! memory shows this. What it deliberately does not know: caches, and what a bound is.

use bulkhead_analysis::communication::ClusterJob;
use bulkhead_machine::ledger::Asked;

/// The common part of two runs of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// All reads and writes left in the same order.
    SameOrder,
    /// Every line was read and written in the same order, but some writes left before or after other reads.
    InOrder,
    /// The same lines were read and written, in another order.
    OtherOrder,
    /// The same lines in the same order, as far as they were kept.
    AsFarAsKept,
}

impl Replaced {
    /// What a job did alone, with what this says of the order of its accesses. `came`: its requests came to the banks in the same order.
    pub(super) fn ordered(self, job: ClusterJob, came: bool) -> ClusterJob {
        ClusterJob {
            ordered: self == Replaced::SameOrder,
            reads_ordered: matches!(self, Replaced::SameOrder | Replaced::InOrder),
            came_ordered: came,
            ..job
        }
    }
}

/// Compares what a hart asked memory for alone and beside others. `ended`: the program did everything in both runs. Then either run may
/// lack the last `open` lines, which had not been requested when it ended; otherwise, one run may be shorter than the other.
///
/// # Errors
/// What differs.
pub(super) fn replaced(
    alone: &Asked,
    here: &Asked,
    ended: bool,
    open: usize,
) -> Result<Replaced, String> {
    let kept = alone.unkept == 0 && here.unkept == 0;
    let mut same = match (kept, among(alone, here)) {
        (true, true) => Replaced::SameOrder,
        (true, false) => Replaced::InOrder,
        (false, _) => Replaced::AsFarAsKept,
    };
    for (done, alone, here) in [
        ("read from", &alone.reads, &here.reads),
        ("written to", &alone.writes, &here.writes),
    ] {
        let both = alone.len().min(here.len());
        let more = alone.len().max(here.len()) - both;
        if ended && kept && more > open {
            return Err(format!(
                "{} lines were {done} memory alone, but {} here",
                alone.len(),
                here.len()
            ));
        }
        let mut pairs = alone.iter().zip(here);
        let Some(at) = pairs.position(|(alone, here)| alone != here) else {
            continue;
        };
        let sorted = |all: &[u64]| {
            let mut all = all[..both].to_vec();
            all.sort_unstable();
            all
        };
        if !(ended && kept) || sorted(alone) != sorted(here) {
            return Err(format!(
                "line {} that was {done} memory is at {:#x} alone, and here at {:#x}",
                at + 1,
                alone[at],
                here[at]
            ));
        }
        same = Replaced::OtherOrder;
    }
    Ok(same)
}

/// Whether writes left at the same places among the reads. What only one of the runs has must be behind everything that both have.
fn among(alone: &Asked, here: &Asked) -> bool {
    let both = alone.writes.len().min(here.writes.len());
    let reads = alone.reads.len().min(here.reads.len()) as u64;
    let ends = |one: &Asked| one.behind[both..].iter().all(|behind| *behind >= reads);
    alone.behind[..both] == here.behind[..both] && ends(alone) && ends(here)
}

/// Whether requests came to the banks in the same order, as far as both runs made them, and all of them were kept.
pub(super) fn came_in_order(alone: &Asked, here: &Asked) -> bool {
    let kept = |one: &Asked| one.came_for.len() < Asked::MOST;
    let mut pairs = alone.came_for.iter().zip(&here.came_for);
    kept(alone) && kept(here) && pairs.all(|(alone, here)| alone == here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(reads: &[u64], writes: &[u64]) -> Asked {
        Asked {
            reads: reads.to_vec(),
            writes: writes.to_vec(),
            behind: vec![2; writes.len()],
            came: Vec::new(),
            came_for: Vec::new(),
            managed: 0,
            unkept: 0,
        }
    }

    #[test]
    fn requests_come_in_order_as_far_as_both_runs_go() {
        let came = |lines: &[u64]| Asked {
            came_for: lines.to_vec(),
            ..asked(&[], &[])
        };
        let alone = came(&[1, 2, 3]);
        assert!(came_in_order(&alone, &came(&[1, 2])));
        assert!(came_in_order(&alone, &came(&[1, 2, 3, 4])));
        assert!(!came_in_order(&alone, &came(&[1, 3, 2])));
        let many = came(&vec![1; Asked::MOST]);
        assert!(!came_in_order(&many, &came(&[1])));
    }

    #[test]
    fn lines_and_their_order_decide() {
        let alone = asked(&[1, 2, 3], &[7]);
        let found = |reads: &[u64], ended| replaced(&alone, &asked(reads, &[7]), ended, 1);
        assert_eq!(found(&[1, 2, 3], true), Ok(Replaced::SameOrder));
        assert_eq!(found(&[1, 3, 2], true), Ok(Replaced::OtherOrder));
        // One more may have been under way at the end; two may not.
        assert_eq!(found(&[1, 2, 3, 4], true), Ok(Replaced::SameOrder));
        assert!(found(&[1, 2, 3, 4, 5], true).is_err());
        assert!(found(&[1, 2, 4], true).is_err());
        // A run that did not end shows a part, whose order must be the same.
        assert_eq!(found(&[1, 2], false), Ok(Replaced::SameOrder));
        assert!(found(&[1, 3, 2], false).is_err());
        let other = replaced(&alone, &asked(&[1, 2, 3], &[8]), true, 1);
        assert_eq!(
            other.expect_err("another line"),
            "line 1 that was written to memory is at 0x7 alone, and here at 0x8"
        );
    }

    /// The queue of a hart has its reads and writes in one order, so it is not enough that each kind has the same.
    #[test]
    fn writes_have_the_same_place_among_the_reads() {
        let alone = asked(&[1, 2, 3], &[7]);
        let other = |behind: &[u64], reads: &[u64]| {
            let mut here = asked(reads, &[7, 8][..behind.len()]);
            here.behind = behind.to_vec();
            replaced(&alone, &here, true, 1)
        };
        assert_eq!(other(&[2], &[1, 2, 3]), Ok(Replaced::SameOrder));
        assert_eq!(other(&[3], &[1, 2, 3]), Ok(Replaced::InOrder));
        // One more write was under way at the end, behind all reads, or before one that was behind it alone.
        assert_eq!(other(&[2, 3], &[1, 2, 3]), Ok(Replaced::SameOrder));
        assert_eq!(other(&[2, 2], &[1, 2, 3]), Ok(Replaced::InOrder));
        assert_eq!(other(&[2, 2], &[1, 2]), Ok(Replaced::SameOrder));
    }

    #[test]
    fn what_was_not_kept_is_not_compared() {
        let mut alone = asked(&[1, 2], &[]);
        alone.unkept = 5;
        let longer = asked(&[1, 2, 3, 4, 5], &[]);
        assert_eq!(
            replaced(&alone, &longer, true, 1),
            Ok(Replaced::AsFarAsKept)
        );
        assert!(replaced(&alone, &asked(&[2, 1], &[]), true, 1).is_err());
    }
}
