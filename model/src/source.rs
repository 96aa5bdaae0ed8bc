//! Texts and places in them.
//!
//! Why it exists: every error names file, line and column, even when a value came from the command line. What it
//! deliberately does not know: XML.

use std::sync::Arc;

/// A text that values come from: a file, or an override on the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// File name as given, or `--set`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A range of a source, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub source: Arc<Source>,
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

impl Span {
    /// The range `range` of `source`.
    pub fn new(source: &Arc<Source>, range: std::ops::Range<usize>) -> Self {
        Self {
            source: source.clone(),
            start: range.start,
            end: range.end,
        }
    }

    /// Line and column of the first byte, both from 1; columns count characters.
    pub fn position(&self) -> (usize, usize) {
        let text = &self.source.text;
        let before = text.get(..self.start).unwrap_or(text);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |last| last.chars().count())
            + 1;
        (line, column)
    }

    /// `file:line:column`.
    pub fn place(&self) -> String {
        let (line, column) = self.position();
        format!("{}:{line}:{column}", self.source.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Arc::new(Source {
            name: "f".into(),
            text: "ab\nçd\n".into(),
        });
        assert_eq!(Span::new(&source, 0..1).position(), (1, 1));
        assert_eq!(Span::new(&source, 3..5).position(), (2, 1));
        // `ç` is two bytes and one column.
        assert_eq!(Span::new(&source, 5..6).position(), (2, 2));
        assert_eq!(Span::new(&source, 7..7).position(), (3, 1));
    }
}
