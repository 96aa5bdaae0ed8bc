//! Fields of system calls: how each kind of value is encoded in the words of a request.
//!
//! Why it exists: the table of calls names kinds, not words. What it deliberately does not know: calls.

use crate::words::{NAME_WORDS, Name, Reader};

/// A field of a request.
pub(crate) trait Field: Sized {
    /// Words that it takes.
    const WORDS: usize = 1;
    /// Encodes it in that many words.
    fn put(self, words: &mut [u64]);
    /// Decodes it.
    fn get(reader: &mut Reader) -> Option<Self>;
}

impl Field for u64 {
    #[inline(always)]
    fn put(self, words: &mut [u64]) {
        words[0] = self;
    }
    fn get(reader: &mut Reader) -> Option<Self> {
        reader.word()
    }
}

impl Field for u16 {
    #[inline(always)]
    fn put(self, words: &mut [u64]) {
        words[0] = self.into();
    }
    fn get(reader: &mut Reader) -> Option<Self> {
        reader.half()
    }
}

impl Field for u8 {
    #[inline(always)]
    fn put(self, words: &mut [u64]) {
        words[0] = self.into();
    }
    fn get(reader: &mut Reader) -> Option<Self> {
        reader.byte()
    }
}

impl Field for Name {
    const WORDS: usize = NAME_WORDS;
    #[inline(always)]
    fn put(self, words: &mut [u64]) {
        words.copy_from_slice(&self.to_words());
    }
    fn get(reader: &mut Reader) -> Option<Self> {
        reader.name()
    }
}

impl Field for u32 {
    #[inline(always)]
    fn put(self, words: &mut [u64]) {
        words[0] = self.into();
    }
    fn get(reader: &mut Reader) -> Option<Self> {
        reader.word()?.try_into().ok()
    }
}
