//! The protocol of the console service.
//!
//! Why it exists: applications on many tiles write to one console. What it deliberately does not know: the text.

use crate::message::BODY_MAX;
use crate::requests;

/// Maximum bytes of a line.
pub const LINE: usize = BODY_MAX - 8;

requests! {
    /// Writes one line; lines of several clients are never mixed.
    Write = 1 -> u64 {
        /// Bytes of the line.
        length: u64,
        /// The line in UTF-8, without its end.
        text: [u8; LINE],
    }
}

impl Write {
    /// A line; text that is too long is cut off between two characters.
    pub fn new(line: &str) -> Self {
        let mut length = line.len().min(LINE);
        while !line.is_char_boundary(length) {
            length -= 1;
        }
        let mut text = [0; LINE];
        text[..length].copy_from_slice(&line.as_bytes()[..length]);
        Self {
            length: length as u64,
            text,
        }
    }

    /// The line, if it is one: no longer than a message, UTF-8, no control characters.
    pub fn line(&self) -> Option<&str> {
        let bytes = self.text.get(..usize::try_from(self.length).ok()?)?;
        let line = core::str::from_utf8(bytes).ok()?;
        (!line.chars().any(char::is_control)).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;

    proptest! {
        #[test]
        fn lines_come_back(line in "[^\u{0}-\u{1f}\u{7f}-\u{9f}]{0,300}") {
            let request = Write::new(&line);
            let back = request.line();
            prop_assert!(back.is_some_and(|back| line.starts_with(back)));
            prop_assert!(back.is_some_and(|back| back.len() + 4 > line.len().min(LINE)));
        }
    }

    #[test]
    fn what_is_no_line_is_none() {
        let mut bad = Write::new("ok");
        bad.length = LINE as u64 + 1;
        assert_eq!(bad.line(), None);
        bad.length = u64::MAX;
        assert_eq!(bad.line(), None);
        assert_eq!(Write::new("a\nb").line(), None);
        bad.length = 2;
        bad.text[1] = 0xff;
        assert_eq!(bad.line(), None);
        assert_eq!(
            Write::new(&String::from_iter(['ä'; 200]))
                .line()
                .map(str::len),
            Some(LINE)
        );
    }
}
