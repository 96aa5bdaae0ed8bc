//! Messages as little-endian 64-bit words, and names in fixed fields.
//!
//! Why it exists: system calls and the protocol of TileMux travel as words, which every side can check field by field
//! before it relies on them. What it deliberately does not know: what the words mean.

/// Bytes of a name (activity, gate, argument), padded with zeros.
pub const NAME: usize = 32;
/// Words of a [`Name`].
pub const NAME_WORDS: usize = NAME / 8;

/// A name in a fixed field. A longer name is rejected when it is made, not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Name(pub [u8; NAME]);

impl Name {
    /// The name, if it has at most [`NAME`] bytes and no zero byte.
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; NAME];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        (!text.as_bytes().contains(&0)).then_some(Self(bytes))
    }

    /// Whether it can appear in a report: a letter, then letters, digits, `-`, `_` or `.`, as in descriptions.
    pub fn is_plain(&self) -> bool {
        let mut bytes = self.as_str().bytes();
        bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
            && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    }

    /// The text; empty if it is not UTF-8.
    pub fn as_str(&self) -> &str {
        text(&self.0)
    }

    /// The name as words.
    pub fn to_words(self) -> [u64; NAME_WORDS] {
        core::array::from_fn(|i| {
            u64::from_le_bytes(core::array::from_fn(|byte| self.0[i * 8 + byte]))
        })
    }

    /// Decodes a name.
    pub fn from_words(words: [u64; NAME_WORDS]) -> Self {
        Self(core::array::from_fn(|i| words[i / 8].to_le_bytes()[i % 8]))
    }
}

/// The text in a zero-padded field; empty if it is not UTF-8.
pub fn text(field: &[u8]) -> &str {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    core::str::from_utf8(&field[..end]).unwrap_or("")
}

/// Small data in one page, as messages must be: with this alignment, up to 128 bytes never cross a page.
#[repr(C, align(128))]
#[derive(Debug, Clone, Copy)]
pub struct Aligned<T>(pub T);

/// Writes words in order into a fixed buffer.
#[derive(Clone, Copy, Debug)]
pub struct Words<const N: usize> {
    words: [u64; N],
    length: usize,
}

impl<const N: usize> Words<N> {
    /// An empty message.
    pub const fn new() -> Self {
        Self {
            words: [0; N],
            length: 0,
        }
    }

    /// Removes all words.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends the words. If they do not fit, that is an error of this crate, found by its tests.
    #[inline(always)]
    pub fn push(&mut self, words: &[u64]) -> &mut Self {
        self.words[self.length..self.length + words.len()].copy_from_slice(words);
        self.length += words.len();
        self
    }

    /// The words so far.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        &self.words[..self.length]
    }
}

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads words in order; everything that is missing or too large is `None`.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u64]);

impl Reader<'_> {
    /// The next word.
    #[inline]
    pub fn word(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next word, if it fits 16 bits.
    #[inline]
    pub fn half(&mut self) -> Option<u16> {
        self.word()?.try_into().ok()
    }

    /// The next word, if it fits 8 bits.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        self.word()?.try_into().ok()
    }

    /// The next words as a name.
    pub fn name(&mut self) -> Option<Name> {
        let mut words = [0; NAME_WORDS];
        for word in &mut words {
            *word = self.word()?;
        }
        Some(Name::from_words(words))
    }
}
