//! Axes whose values can be read off: linear and logarithmic, with round ticks.
//!
//! Why it exists: a logarithmic axis with a single label forces its reader to guess. What it deliberately does not know: the
//! pictures.

use super::format::grouped;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use std::ops::Range;

/// Minimum ticks of an axis, so that a value between two of them can be estimated.
const ENOUGH: usize = 4;
/// Digits of the ticks in a decade, the coarsest set first.
const DIGITS: [&[f64]; 3] = [
    &[1.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
];

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Each whole number has a tick, and nothing else: the values are cases.
    whole: bool,
}

impl Scale {
    /// A linear axis.
    pub fn linear(range: Range<f64>) -> Self {
        let Range { start, end } = range;
        Self {
            low: start,
            high: if end > start { end } else { start + 1.0 },
            logarithmic: false,
            whole: false,
        }
    }

    /// An axis of `count` cases, numbered from 1 on, with half a case of room at both ends.
    pub fn cases(count: usize) -> Self {
        Self {
            low: 0.5,
            high: count.max(1) as f64 + 0.5,
            logarithmic: false,
            whole: true,
        }
    }

    /// A logarithmic axis over these values, from one round number to another. Values without a logarithm are ignored.
    pub fn logarithmic(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        // On a short axis, the next round number is close.
        let digits = if high / low < 4.0 {
            DIGITS[2]
        } else {
            DIGITS[1]
        };
        let round = |power: i32| digits.iter().map(move |digit| digit * 10f64.powi(power));
        let (first, last) = (low.log10().floor() as i32, high.log10().floor() as i32);
        let below = round(first - 1).chain(round(first));
        let above = round(last).chain(round(last + 1));
        let (from, to) = (low * 0.97, high * 1.03);
        Self {
            low: below
                .filter(|end| *end <= from)
                .fold(0.0, f64::max)
                .max(from / 10.0),
            high: above.filter(|end| *end >= to).fold(to * 10.0, f64::min),
            logarithmic: true,
            whole: false,
        }
    }

    fn holds(&self, value: f64) -> bool {
        // Powers of ten and the ends are computed in different ways.
        (self.low * 0.999_999..=self.high * 1.000_001).contains(&value)
    }

    /// Round values on the axis, at most `most` of them; all cases of an axis of cases.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        if most == 0 {
            return Vec::new();
        }
        if self.whole {
            return (1..=self.high as u64).map(|case| case as f64).collect();
        }
        if !self.logarithmic {
            return round_steps(self.low, self.high, most);
        }
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let of = |digits: &[f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
                .filter(|value| self.holds(*value))
                .collect()
        };
        let sets = DIGITS.iter().map(|digits| of(digits));
        let fitting = |ticks: &Vec<f64>| ticks.len() >= ENOUGH && ticks.len() <= most;
        if let Some(ticks) = sets.rev().find(fitting) {
            return ticks;
        }
        let powers = of(DIGITS[0]);
        if powers.len() > most {
            let step = powers.len().div_ceil(most.max(1));
            return powers.into_iter().step_by(step).collect();
        }
        round_steps(self.low, self.high, most)
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn round_steps(low: f64, high: f64, most: usize) -> Vec<f64> {
    let least = (high - low) / most.max(2) as f64;
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    let step = steps.into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|count| count as f64 * step).collect()
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(hint.bold_points())
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// A number on an axis without needless digits.
pub(crate) fn tick(value: &f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded >= 10_000.0 && rounded == rounded.round() {
        return grouped(rounded as u64);
    }
    let text = format!("{rounded:.4}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        // Too small for four digits.
        "0" | "-0" if rounded != 0.0 => format!("{value:e}"),
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logarithmic(values: &[f64], most: usize) -> Vec<f64> {
        Scale::logarithmic(values.iter().copied()).ticks(most)
    }

    #[test]
    fn a_logarithmic_axis_has_ticks_wherever_it_lies() {
        // The quickstart's latencies, with the bound and the deadline: the reader finds 6.5 between 5 and 10.
        assert_eq!(
            logarithmic(&[6.4, 24.6], 10),
            [6.0, 8.0, 10.0, 15.0, 20.0, 30.0]
        );
        assert_eq!(
            logarithmic(&[6.4, 400.0], 10),
            [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
        );
        assert_eq!(logarithmic(&[1.0, 1e6], 10).len(), 7);
        let short: Vec<String> = logarithmic(&[3.0, 3.1], 10).iter().map(tick).collect();
        assert_eq!(short[..4], ["2", "2.2", "2.4", "2.6"]);
        assert!(logarithmic(&[], 10).len() >= ENOUGH);
    }

    #[test]
    fn every_axis_has_a_few_ticks_inside_of_it() {
        for low in 1..40 {
            for factor in [1.01, 1.5, 3.0, 9.0, 50.0, 1e3, 1e9] {
                let low = f64::from(low) * 0.37;
                let scale = Scale::logarithmic([low, low * factor].into_iter());
                let ticks = scale.ticks(10);
                assert!((3..=11).contains(&ticks.len()), "{low} {factor}: {ticks:?}");
                assert!(ticks.iter().all(|tick| scale.holds(*tick)), "{ticks:?}");
                assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
        assert_eq!(
            round_steps(0.0, 103.0, 10),
            [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        );
    }

    #[test]
    fn each_case_has_a_tick() {
        assert_eq!(Scale::cases(3).ticks(10), [1.0, 2.0, 3.0]);
        let many: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(Scale::cases(20).ticks(10), many);
        let scale = Scale::cases(2);
        assert_eq!(scale.map(&1.0, (0, 100)), 25);
        assert_eq!(scale.map(&2.0, (0, 100)), 75);
    }

    #[test]
    fn positions_follow_the_logarithm() {
        let scale = Scale {
            low: 1.0,
            high: 100.0,
            logarithmic: true,
            whole: false,
        };
        assert_eq!(
            [1.0, 10.0, 100.0].map(|v| scale.map(&v, (50, 250))),
            [50, 150, 250]
        );
        // Downwards, like pixels.
        let scale = Scale::linear(0.0..10.0);
        assert_eq!(
            [0.0, 4.0, 10.0].map(|v| scale.map(&v, (300, 100))),
            [300, 220, 100]
        );
    }

    #[test]
    fn ticks_have_no_needless_digits() {
        let texts = [0.0, 0.05, 1.5, 10.0, 12_000.0, -2.0].map(|value| tick(&value));
        assert_eq!(texts, ["0", "0.05", "1.5", "10", "12\u{202f}000", "-2"]);
    }
}
