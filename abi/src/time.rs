//! Processor time that a tile capability carries: the arithmetic that the kernel, managers and the description's checks share.
//!
//! Why it exists: the parts of a budget must not demand more of the processor than the budget itself, in any window of time, and
//! all software that divides budgets must get the same sum. What it deliberately does not know: which activity runs.
//!
//! A budget *Q* in each period *P* demands at most `ceil(t / P) * Q` in a window of length *t* (a sporadic task). A part (*q*, *p*) of
//! it may demand `ceil(t / p) * q`. Over one period *P* that is `ceil(P / p) * q`, and over *k* of them at most *k* times as much,
//! because `ceil(k * x) <= k * ceil(x)`. So parts whose [`charge`]s add up to at most *Q* demand no more than the budget in every
//! window, whatever their periods are. A part with a longer period is charged as a whole: it may use all of that at once.

/// The smallest budget, in nanoseconds: the switches that a smaller one causes would use it up.
pub const LEAST_BUDGET: u64 = 10_000;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Instead of a period: a whole processor, which is divided by rates; its parts may have any period.
pub const WHOLE: u64 = 0;

/// Nanoseconds that `budget` in each `period` takes from each period `of` of its source; [`WHOLE`] counts as a second. `None` if the
/// numbers are invalid: a period of 0, or a budget longer than its period.
pub const fn charge(budget: u64, period: u64, of: u64) -> Option<u64> {
    if period == 0 || budget > period {
        return None;
    }
    if of == WHOLE {
        // At most a second.
        return Some((budget as u128 * SECOND as u128).div_ceil(period as u128) as u64);
    }
    budget.checked_mul(of.div_ceil(period))
}

/// One budget and period from which all these parts can be derived: the one with the lowest rate whose period is one of theirs, and of
/// several the one with the shortest period. `None` without parts, or if the sum exceeds 64 bits.
pub fn enclose(parts: impl Iterator<Item = (u64, u64)> + Clone) -> Option<(u64, u64)> {
    let all = parts.clone();
    let sums = parts.filter_map(|(_, of)| {
        let mut sum = 0u64;
        for (budget, period) in all.clone() {
            sum = sum.checked_add(charge(budget, period, of)?)?;
        }
        Some((sum, of))
    });
    sums.min_by(|first, second| {
        let rate = |sum: u64, other: u64| u128::from(sum) * u128::from(other);
        let rates = rate(first.0, second.1).cmp(&rate(second.0, first.1));
        rates.then(first.1.cmp(&second.1))
    })
}
