//! Utilisation as an exact fraction, and its comparison with a bound.
//!
//! Comparing `C1/T1 + ... + Cn/Tn` with a number must not round. Most systems are far from the bound, so a comparison in
//! fixed point with directed rounding decides nearly always, and exact fractions the rest.

use super::task::{Task, Time};
use crate::exact::{Exact, integer, ratio};
use num_bigint::BigInt;
use num_traits::Zero;
use std::cmp::Ordering;

/// Sum of `cost / period`, exactly. Periods of 0 count as no load; [`super::validate`] refuses them.
pub fn utilisation(tasks: &[Task]) -> Exact {
    sum(tasks.iter().map(|t| (t.cost, t.period)))
}

/// Sum of fractions; those with denominator 0 are left out.
pub fn sum(fractions: impl Iterator<Item = (Time, Time)>) -> Exact {
    fractions
        .filter_map(|(n, d)| ratio(n, d))
        .fold(Exact::zero(), |sum, f| sum + f)
}

/// Numbers below and above a sum. Up to [`EXACTLY`] fractions are summed exactly; the denominators of more would grow with each,
/// so the parts are rounded to multiples of 2^-64.
pub fn enclosure(fractions: impl Iterator<Item = Exact>) -> (Exact, Exact) {
    let all: Vec<Exact> = fractions.collect();
    if all.len() <= EXACTLY {
        let sum = all.into_iter().fold(Exact::zero(), |sum, f| sum + f);
        return (sum.clone(), sum);
    }
    let shift = integer(1u128 << 64);
    let low = all.iter().fold(BigInt::zero(), |sum, f| {
        sum + (f * &shift).floor().to_integer()
    });
    let high = &low + all.len();
    (integer(low) / &shift, integer(high) / shift)
}

/// Fractions up to which [`enclosure`] is exact.
pub const EXACTLY: usize = 64;

/// Whether a sum is at most `bound`, exactly, but quickly where it is not close.
pub fn is_at_most(fractions: impl Iterator<Item = Exact> + Clone, bound: &Exact) -> bool {
    let (low, high) = enclosure(fractions.clone());
    if high <= *bound {
        true
    } else if low > *bound {
        false
    } else {
        fractions.fold(Exact::zero(), |sum, f| sum + f) <= *bound
    }
}

/// Compares a sum of fractions (denominators positive) with an integer, exactly.
pub fn compare(fractions: impl Iterator<Item = (Time, Time)> + Clone, bound: u64) -> Ordering {
    const SHIFT: u32 = 56;
    let mut low = 0u128;
    let mut count = 0u128;
    for (numerator, denominator) in fractions.clone() {
        low = low.saturating_add((u128::from(numerator) << SHIFT) / u128::from(denominator.max(1)));
        count += 1;
    }
    let bound_shifted = u128::from(bound) << SHIFT;
    if low > bound_shifted {
        Ordering::Greater
    } else if low.saturating_add(count) < bound_shifted {
        // Each quotient lost less than one.
        Ordering::Less
    } else {
        sum(fractions).cmp(&integer(bound))
    }
}

/// Compares the utilisation of `tasks` with a number of processors.
pub fn compare_with(tasks: &[Task], processors: u64) -> Ordering {
    compare(tasks.iter().map(|t| (t.cost, t.period)), processors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exactly_full_is_equal() {
        // 1/3 + 1/7 + 11/21 = 7/21 + 3/21 + 11/21 = 1.
        let tasks = [Task::new(1, 3), Task::new(1, 7), Task::new(11, 21)];
        assert_eq!(compare_with(&tasks, 1), Ordering::Equal);
        assert_eq!(utilisation(&tasks), integer(1));
    }

    proptest! {
        #[test]
        fn encloses(parts in prop::collection::vec((1u64..60, 1u64..60), 0..200), part in 0u64..100) {
            let fractions = || parts.iter().filter_map(|&(n, d)| ratio(n, d));
            let exact = fractions().fold(Exact::zero(), |sum, f| sum + f);
            let (low, high) = enclosure(fractions());
            prop_assert!(low <= exact && exact <= high && &high - &low < ratio(1, 1_000_000).unwrap());
            prop_assert!(is_at_most(fractions(), &exact));
            prop_assert_eq!(is_at_most(fractions(), &integer(part)), exact <= integer(part));
        }

        #[test]
        fn agrees_with_fractions(parts in prop::collection::vec((1u64..60, 1u64..60), 0..6), bound in 0u64..5) {
            let exact = sum(parts.iter().copied()).cmp(&integer(bound));
            prop_assert_eq!(compare(parts.iter().copied(), bound), exact);
        }
    }
}
