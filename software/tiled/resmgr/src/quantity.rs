//! Quantities of the canonical description: a whole number and the base unit.
//!
//! Why it exists: the runner hands over canonical values, `4096B`, `8388608B/s`, `1000000ns`. What it deliberately does not
//! know: other units; the model has turned them into these.

use bulkhead_abi::dtu::UNLIMITED_CREDITS;
use core::fmt;

/// Bytes.
pub fn size(text: &str) -> Option<u64> {
    text.strip_suffix('B')?.parse().ok()
}

/// Bytes a second.
pub fn rate(text: &str) -> Option<u64> {
    text.strip_suffix("B/s")?.parse().ok()
}

/// Nanoseconds.
pub fn time(text: &str) -> Option<u64> {
    text.strip_suffix("ns")?.parse().ok()
}

/// Credits of a send gate: a number, or the unit's value for unlimited credits.
pub fn credits(text: &str) -> Option<u8> {
    match text {
        "unlimited" => Some(UNLIMITED_CREDITS),
        text => number(text).filter(|credits| *credits != UNLIMITED_CREDITS),
    }
}

/// A plain number.
pub fn number<T: core::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Nanoseconds, for reports: printed in the largest unit that gives a whole number.
#[derive(Clone, Copy, Debug)]
pub struct Duration(pub u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
        let whole = units.iter().find(|(unit, _)| self.0.is_multiple_of(*unit));
        let (unit, name) = whole.copied().unwrap_or((1, "ns"));
        write!(f, "{} {name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn durations_are_said_in_whole_numbers() {
        for (nanoseconds, text) in [
            (50_000_000, "50 ms"),
            (2_000_000_000, "2 s"),
            (1500, "1500 ns"),
            (1_500_000, "1500 us"),
            (1, "1 ns"),
        ] {
            assert_eq!(Duration(nanoseconds).to_string(), text);
        }
    }

    #[test]
    fn base_units_only() {
        assert_eq!(size("4096B"), Some(4096));
        assert_eq!(size("4KiB"), None);
        assert_eq!(size("4096"), None);
        assert_eq!(rate("8388608B/s"), Some(8 << 20));
        assert_eq!(rate("8388608B"), None);
        assert_eq!(time("1000000ns"), Some(1_000_000));
        assert_eq!(time("1ms"), None);
        assert_eq!(number::<u16>("70000"), None);
        assert_eq!(credits("32"), Some(32));
        assert_eq!(credits("unlimited"), Some(UNLIMITED_CREDITS));
        // The unit's value for unlimited credits is no number of credits.
        assert_eq!(credits("255"), None);
    }
}
