//! Times and sizes in arguments: `250us`, `1ms`, or plain nanoseconds; `64KiB`, or plain bytes.
//!
//! Why it exists: the limits of a server are arguments of the description, which are plain text. What it deliberately does
//! not know: what is measured.

/// Nanoseconds of a text such as `250us`; a plain number is nanoseconds.
pub fn time(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Bytes of a text such as `64KiB`; a plain number is bytes.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let sizes = ["4096", "4096B", "4KiB", "3MiB", "1GiB"].map(size);
        assert_eq!(sizes, [4096, 4096, 4096, 3 << 20, 1 << 30].map(Some));
        assert_eq!(["KiB", "1KB", "-1B", "99999999999GiB"].map(size), [None; 4]);
        assert_eq!(time("250us"), Some(250_000));
        assert_eq!(time("1ms"), Some(1_000_000));
        assert_eq!(time("3s"), Some(3_000_000_000));
        assert_eq!(time("17"), Some(17));
        assert_eq!(time("17ns"), Some(17));
        for bad in [
            "",
            "ms",
            "1m",
            "-1ms",
            "1.5ms",
            "99999999999999999999",
            "20000000000s",
        ] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }
}
