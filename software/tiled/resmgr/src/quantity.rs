//! Quantities of the canonical description: a whole number and the base unit.
//!
//! Why it exists: the runner hands over canonical values, `4096B`, `8388608B/s`, `1000000ns`. What it deliberately does not
//! know: other units; the model has turned them into these.

use bulkhead_abi::dtu::UNLIMITED_CREDITS;

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

/// Credits of a send gate: a number, or the unit's for those that are not counted.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // The unit's number for it is no number of credits.
        assert_eq!(credits("255"), None);
    }
}
