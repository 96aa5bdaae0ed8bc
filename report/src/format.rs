//! Numbers in readable form.
//!
//! What it deliberately does not know: which numbers.

/// Groups of three digits: `12 345`, with narrow spaces so that a number stays one word.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A span in a unit that keeps at most three digits before the point.
pub fn span(microseconds: f64) -> String {
    match microseconds {
        t if t < 1.0 => format!("{:.0} ns", t * 1000.0),
        t if t < 1000.0 => format!("{t:.2} us"),
        t if t < 1e6 => format!("{:.2} ms", t / 1000.0),
        t => format!("{:.2} s", t / 1e6),
    }
}

/// A share of a whole.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    format!("{:.0} %", 100.0 * part as f64 / whole as f64)
}

/// A number of things: `1 promise`, `2 promises`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1\u{202f}000");
        assert_eq!(grouped(12_345_678), "12\u{202f}345\u{202f}678");
    }

    #[test]
    fn spans_have_fitting_units() {
        assert_eq!(span(0.25), "250 ns");
        assert_eq!(span(2.50001), "2.50 us");
        assert_eq!(span(1500.0), "1.50 ms");
        assert_eq!(span(2e6), "2.00 s");
    }
}
