//! The second level as tools see it, without any effect on time or state.
//!
//! Why it exists: the newest bytes of a line may be here. What it deliberately does not know: first levels and other clusters.

use super::{Directory, Memory, Transaction};

impl Directory {
    /// The bytes of a line here or on its way to memory, if memory does not have the same.
    pub fn peek(&self, line: u64) -> Option<&[u8]> {
        let written = || self.written_bytes(line);
        let here = self.copy(line);
        here.or_else(|| written().map(|bytes| &bytes[..self.length]))
    }

    /// The bytes of a line that is here.
    pub fn copy(&self, line: u64) -> Option<&[u8]> {
        let asked = |t: &Transaction| t.ask.line == line && t.is_below();
        let here = self.cache.line(line);
        here.filter(|_| !self.transactions.iter().any(asked))
    }

    /// Writes bytes into every copy of a line, for tools that load memory.
    pub fn poke(&mut self, line: u64, offset: usize, bytes: &[u8]) {
        let range = offset..offset + bytes.len();
        if let Some(there) = self.cache.line_mut(line) {
            there[range.clone()].copy_from_slice(bytes);
        }
        let written = self.writing.iter_mut().filter(|w| w.0 == line);
        let fetched = self.fetched.iter_mut().filter(|f| f.1 == line);
        let under_way = written.map(|w| &mut w.2).chain(fetched.map(|f| &mut f.2));
        for there in under_way {
            there[range.clone()].copy_from_slice(bytes);
        }
        for transaction in self.transactions.iter_mut().filter(|t| t.ask.line == line) {
            if let Memory::Came(there, _) = &mut transaction.memory {
                there[range.clone()].copy_from_slice(bytes);
            }
        }
    }
}
