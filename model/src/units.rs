//! Quantities with units, exactly.
//!
//! Why it exists: a description says `8MiB/s` or `13.75ns`, never a bare number, and no rounding may creep in between
//! the file and the machine. What it deliberately does not know: files, positions, and what each attribute requires.
//!
//! Every quantity is an integer in a base unit: bytes, bytes per second, picoseconds, hertz, millionths. A decimal
//! fraction is accepted if the value is whole in the base unit.

use std::fmt;

use serde::Serialize;

/// An amount of memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Size(pub u64);

/// A rate in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Rate(pub u64);

/// A span of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Time(pub u64);

/// A frequency in hertz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Frequency(pub u64);

/// A share in millionths of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Share(pub u32);

impl Time {
    /// Whole nanoseconds, rounded up.
    pub fn nanoseconds(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// The time that this many cycles of a clock take, rounded up to a nanosecond, which is the resolution of the
    /// software's timers. `None` if it does not fit.
    pub fn of_cycles(cycles: u64, clock: Frequency) -> Option<Self> {
        let nanoseconds = (u128::from(cycles) * 1_000_000_000).div_ceil(u128::from(clock.0.max(1)));
        u64::try_from(nanoseconds * 1000).ok().map(Self)
    }
}

/// Nanoseconds, exactly, in the largest unit in which they are at least 1: `1.25ms`.
pub fn in_largest_unit(nanoseconds: u64) -> String {
    let (factor, unit) = match nanoseconds {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, fraction) = (nanoseconds / factor, nanoseconds % factor);
    if fraction == 0 {
        return format!("{whole}{unit}");
    }
    let digits = format!("{fraction:0width$}", width = factor.ilog10() as usize);
    format!("{whole}.{}{unit}", digits.trim_end_matches('0'))
}

/// The dimension of a number. Each dimension has its own units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Bytes.
    Size,
    /// Bytes a second.
    Rate,
    /// Picoseconds.
    Time,
    /// Hertz.
    Frequency,
    /// Millionths.
    Share,
    /// Clock cycles.
    Cycles,
}

/// A unit and its factor to the base unit of its dimension. The first unit of a table is the base unit.
type Units = &'static [(&'static str, u64)];

const SIZE: Units = &[
    ("B", 1),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const RATE: Units = &[
    ("B/s", 1),
    ("kB/s", 1000),
    ("MB/s", 1_000_000),
    ("GB/s", 1_000_000_000),
    ("KiB/s", 1 << 10),
    ("MiB/s", 1 << 20),
    ("GiB/s", 1 << 30),
    ("kbit/s", 125),
    ("Mbit/s", 125_000),
    ("Gbit/s", 125_000_000),
];
const TIME: Units = &[
    ("ps", 1),
    ("ns", 1000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
const FREQUENCY: Units = &[
    ("Hz", 1),
    ("kHz", 1000),
    ("MHz", 1_000_000),
    ("GHz", 1_000_000_000),
];
const SHARE: Units = &[("%", 10_000)];
const CYCLES: Units = &[("cycles", 1)];

impl Dimension {
    const ALL: [Self; 6] = [
        Self::Size,
        Self::Rate,
        Self::Time,
        Self::Frequency,
        Self::Share,
        Self::Cycles,
    ];

    const fn units(self) -> Units {
        match self {
            Self::Size => SIZE,
            Self::Rate => RATE,
            Self::Time => TIME,
            Self::Frequency => FREQUENCY,
            Self::Share => SHARE,
            Self::Cycles => CYCLES,
        }
    }

    /// The noun for the things that the number counts, for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Size => "an amount of memory",
            Self::Rate => "a rate",
            Self::Time => "a time",
            Self::Frequency => "a frequency",
            Self::Share => "a percentage",
            Self::Cycles => "a number of cycles",
        }
    }

    /// The base unit in words.
    const fn base(self) -> &'static str {
        match self {
            Self::Size => "bytes",
            Self::Rate => "bytes a second",
            Self::Time => "picoseconds",
            Self::Frequency => "hertz",
            Self::Share => "millionths",
            Self::Cycles => "cycles",
        }
    }

    /// The units that are possible, for messages: `ns, us, ms or s`.
    pub fn unit_list(self) -> String {
        let names: Vec<&str> = self.units().iter().map(|unit| unit.0).collect();
        crate::text::alternatives(&names)
    }

    /// The unit that differs only in upper and lower case.
    pub fn unit_in_other_case(self, unit: &str) -> Option<&'static str> {
        let mut names = self.units().iter().map(|known| known.0);
        names.find(|name| name.eq_ignore_ascii_case(unit))
    }

    /// The dimension that a unit belongs to.
    fn of_unit(unit: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|dimension| dimension.factor(unit).is_some())
    }

    fn factor(self, unit: &str) -> Option<u64> {
        // The micro sign and the Greek letter look the same.
        let unit = match unit {
            "\u{b5}s" | "\u{3bc}s" => "us",
            other => other,
        };
        self.units()
            .iter()
            .find(|known| known.0 == unit)
            .map(|known| known.1)
    }
}

/// Why a text is not a quantity of the required dimension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number without a unit.
    #[error("`{number}` has no unit")]
    Missing {
        /// The number as written.
        number: String,
    },
    /// A unit of another dimension, or an unknown one.
    #[error("`{unit}` is not a unit of {}", wanted.noun())]
    Wrong {
        /// The unit as written.
        unit: String,
        /// The dimension that was wanted.
        wanted: Dimension,
        /// The dimension for which the unit would be right.
        belongs: Option<Dimension>,
    },
    /// Not a decimal number.
    #[error("`{text}` is not {}", wanted.noun())]
    NotANumber {
        /// The written text.
        text: String,
        /// The dimension that was wanted.
        wanted: Dimension,
    },
    /// Larger than the base unit can count in 64 bits.
    #[error("`{text}` is too large: it does not fit 64 bits in {}", wanted.base())]
    Overflow {
        /// The written text.
        text: String,
        /// The dimension that was wanted.
        wanted: Dimension,
    },
    /// A fraction of the base unit.
    #[error("`{text}` is not a whole number of {}", wanted.base())]
    NotWhole {
        /// The written text.
        text: String,
        /// The dimension that was wanted.
        wanted: Dimension,
    },
}

/// The value of `text` in the base unit of `dimension`. Accepts `8MiB/s`, `8 MiB/s` and `13.75ns`.
pub fn parse(text: &str, dimension: Dimension) -> Result<u64, UnitError> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim_start();
    let not_a_number = || UnitError::NotANumber {
        text: text.into(),
        wanted: dimension,
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return Err(not_a_number()),
        None => (number, ""),
    };
    if whole.is_empty() || fraction.contains('.') {
        return Err(not_a_number());
    }
    if unit.is_empty() {
        return Err(UnitError::Missing {
            number: number.into(),
        });
    }
    let factor = dimension.factor(unit).ok_or_else(|| UnitError::Wrong {
        unit: unit.into(),
        wanted: dimension,
        belongs: Dimension::of_unit(unit),
    })?;
    let overflow = || UnitError::Overflow {
        text: text.into(),
        wanted: dimension,
    };
    // Trailing zeros of a fraction carry no information, and dropping them keeps the power of ten small.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(UnitError::NotWhole {
            text: text.into(),
            wanted: dimension,
        });
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let whole: u64 = whole.parse().map_err(|_| overflow())?;
    let fraction: u64 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().map_err(|_| overflow())?
    };
    let scaled = (u128::from(whole) * scale)
        .checked_add(u128::from(fraction))
        .and_then(|digits| digits.checked_mul(u128::from(factor)))
        .ok_or_else(overflow)?;
    if !scaled.is_multiple_of(scale) {
        return Err(UnitError::NotWhole {
            text: text.into(),
            wanted: dimension,
        });
    }
    u64::try_from(scaled / scale).map_err(|_| overflow())
}

/// Writes `value` with the largest unit of `order` that divides it.
fn write_exact(f: &mut fmt::Formatter<'_>, value: u64, order: &[(&str, u64)]) -> fmt::Result {
    let (unit, factor) = order
        .iter()
        .copied()
        .filter(|unit| value != 0 && value.is_multiple_of(unit.1))
        .max_by_key(|unit| unit.1)
        .unwrap_or(order[0]);
    write!(f, "{}{unit}", value / factor)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, &[SIZE[0], SIZE[4], SIZE[5], SIZE[6]])
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, RATE)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, TIME)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, FREQUENCY)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / 10_000, self.0 % 10_000);
        if fraction == 0 {
            return write!(f, "{whole}%");
        }
        let digits = format!("{fraction:04}");
        write!(f, "{whole}.{}%", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_have_their_standard_factors() {
        // IEC 80000-13 binary prefixes, SI decimal prefixes.
        assert_eq!(parse("8MiB/s", Dimension::Rate), Ok(8_388_608));
        assert_eq!(parse("8MB/s", Dimension::Rate), Ok(8_000_000));
        assert_eq!(parse("16 KiB", Dimension::Size), Ok(16_384));
        assert_eq!(parse("13.75ns", Dimension::Time), Ok(13_750));
        assert_eq!(parse("1.5ms", Dimension::Time), Ok(1_500_000_000));
        assert_eq!(parse("2GHz", Dimension::Frequency), Ok(2_000_000_000));
        assert_eq!(parse("12.5%", Dimension::Share), Ok(125_000));
        assert_eq!(parse("0.5KiB", Dimension::Size), Ok(512));
        assert_eq!(
            parse("400µs", Dimension::Time),
            parse("400us", Dimension::Time)
        );
        assert_eq!(parse("4 \u{3bc}s", Dimension::Time), Ok(4_000_000));
        assert_eq!(parse("7cycles", Dimension::Cycles), Ok(7));
        assert_eq!(
            parse("1.000000000000000000000000s", Dimension::Time),
            Ok(1_000_000_000_000)
        );
    }

    #[test]
    fn wrong_texts_say_what_is_wrong() {
        let message = |text, dimension| parse(text, dimension).unwrap_err().to_string();
        assert_eq!(message("400", Dimension::Time), "`400` has no unit");
        assert_eq!(
            message("8MiB", Dimension::Rate),
            "`MiB` is not a unit of a rate"
        );
        assert_eq!(message("fast", Dimension::Rate), "`fast` is not a rate");
        assert_eq!(message("-1us", Dimension::Time), "`-1us` is not a time");
        assert_eq!(
            message("1.2.3us", Dimension::Time),
            "`1.2.3us` is not a time"
        );
        assert_eq!(message("1.us", Dimension::Time), "`1.us` is not a time");
        assert_eq!(message(".5us", Dimension::Time), "`.5us` is not a time");
        assert_eq!(message("", Dimension::Time), "`` is not a time");
        assert_eq!(
            message("0.3B", Dimension::Size),
            "`0.3B` is not a whole number of bytes"
        );
        assert_eq!(
            message("99999999999GiB", Dimension::Size),
            "`99999999999GiB` is too large: it does not fit 64 bits in bytes"
        );
        assert_eq!(
            message("99999999999999999999999999999B", Dimension::Size),
            "`99999999999999999999999999999B` is too large: it does not fit 64 bits in bytes"
        );
    }

    #[test]
    fn cycles_round_up_to_nanoseconds() {
        assert_eq!(
            Time::of_cycles(1, Frequency(2_000_000_000)),
            Some(Time(1000))
        );
        assert_eq!(
            Time::of_cycles(100, Frequency(80_000_000)),
            Some(Time(1_250_000))
        );
        assert_eq!(Time::of_cycles(u64::MAX, Frequency(1)), None);
    }

    proptest! {
        #[test]
        fn what_is_displayed_parses_back(value: u64, share in 0u32..10_000_000) {
            prop_assert_eq!(parse(&Size(value).to_string(), Dimension::Size), Ok(value));
            prop_assert_eq!(parse(&Rate(value).to_string(), Dimension::Rate), Ok(value));
            prop_assert_eq!(parse(&Time(value).to_string(), Dimension::Time), Ok(value));
            prop_assert_eq!(parse(&Frequency(value).to_string(), Dimension::Frequency), Ok(value));
            prop_assert_eq!(parse(&Share(share).to_string(), Dimension::Share), Ok(u64::from(share)));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            for dimension in Dimension::ALL {
                let _ = parse(&text, dimension);
            }
        }

        #[test]
        fn decimals_are_exact(whole in 0u64..1_000_000, fraction in 0u64..1000) {
            let text = format!("{whole}.{fraction:03}ns");
            prop_assert_eq!(parse(&text, Dimension::Time), Ok(whole * 1000 + fraction));
        }
    }
}
