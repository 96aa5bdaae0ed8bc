//! Many task systems at once, on all processors of the host, with answers in the order of the systems.
//!
//! Why it exists: studies and searches judge systems by the hundred thousand. Each answer depends on its own system only, so how the
//! work is split changes nothing. What it deliberately does not know: progress, files, where systems come from.

use super::fixed_priority::{self, Scan};
use super::task::{Task, TaskError, validate};
use rayon::prelude::*;

/// Systems that one worker takes at a time: enough that handing them out costs nothing compared with judging them.
const CHUNK: usize = 256;

/// For each system: does every task meet its deadline by preemptive fixed priorities on one processor? The same answers as
/// [`fixed_priority::schedulable`] on each.
///
/// # Errors
/// [`TaskError`] of the first system that is wrong.
pub fn fixed_priority(systems: &[Vec<Task>]) -> Result<Vec<bool>, TaskError> {
    let parts: Vec<Result<Vec<bool>, TaskError>> = systems
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut scan = Scan::default();
            chunk.iter().map(|tasks| one(&mut scan, tasks)).collect()
        })
        .collect();
    let mut all = Vec::with_capacity(systems.len());
    for part in parts {
        all.extend(part?);
    }
    Ok(all)
}

fn one(scan: &mut Scan, tasks: &[Task]) -> Result<bool, TaskError> {
    // The scan covers deadlines within periods and no blocking.
    if tasks
        .iter()
        .all(|t| t.deadline <= t.period && t.blocking == 0)
    {
        validate(tasks)?;
        Ok(scan.schedulable(tasks))
    } else {
        fixed_priority::schedulable(tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn answers_are_those_of_the_single_test(
            parts in prop::collection::vec(prop::collection::vec((1u64..9, 5u64..60, 0u64..70, 0u64..4, 0u64..2), 0..6), 0..600),
        ) {
            let systems: Vec<Vec<Task>> = parts.iter().map(|tasks| tasks.iter()
                .map(|&(c, t, d, j, b)| Task::constrained(c, t, d + 1).with_jitter(j).with_blocking(b)).collect()).collect();
            let single: Vec<bool> = systems.iter().map(|s| fixed_priority::schedulable(s).unwrap()).collect();
            prop_assert_eq!(fixed_priority(&systems).unwrap(), single);
        }
    }

    #[test]
    fn the_first_error_counts() {
        let good = vec![Task::new(1, 2)];
        assert_eq!(fixed_priority(&[]), Ok(Vec::new()));
        assert!(fixed_priority(&[good.clone(), vec![Task::new(0, 2)], good]).is_err());
    }
}
