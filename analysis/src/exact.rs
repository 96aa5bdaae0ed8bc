//! Exact numbers: rationals of unbounded size.
//!
//! Why it exists: a verdict must not depend on rounding or overflow, and curves divide bytes by rates. The arithmetic is
//! the `num` crates'; this file only names it and converts to the integers of the rest of the crate. It deliberately
//! offers no conversion from floating point.

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

/// A rational number of unbounded size.
pub type Exact = num_rational::BigRational;

/// An integer as a rational.
pub fn integer(value: impl Into<BigInt>) -> Exact {
    Exact::from_integer(value.into())
}

/// `numerator / denominator`, or `None` if the denominator is zero.
pub fn ratio(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> Option<Exact> {
    let denominator = denominator.into();
    (!denominator.is_zero()).then(|| Exact::new(numerator.into(), denominator))
}

/// The smallest integer at least `value`; `None` if it does not fit (or is negative).
pub fn ceiling(value: &Exact) -> Option<u64> {
    value.ceil().to_integer().to_u64()
}

/// The largest integer at most `value`; `None` if it does not fit (or is negative).
pub fn floor(value: &Exact) -> Option<u64> {
    value.floor().to_integer().to_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_the_safe_side() {
        // 7/2 lies between 3 and 4.
        let value = ratio(7, 2).unwrap();
        assert_eq!((floor(&value), ceiling(&value)), (Some(3), Some(4)));
        assert_eq!(ceiling(&integer(5)), Some(5));
        assert_eq!(ceiling(&integer(-1)), None);
        assert!(ratio(1, 0).is_none());
    }
}
