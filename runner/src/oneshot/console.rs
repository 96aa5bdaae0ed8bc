//! The console of a core, as stored in its memory.
//!
//! Why it exists: the host reads rings that a kernel may be writing, that no kernel ever wrote, or that have been overwritten. It must
//! report what is there and never fail. What it deliberately does not know: where a ring is.

use bulkhead_abi::one_shot::ring::{HEADER, MAGIC, MAGIC_AT, SIZE, STATE};
use bulkhead_exec_one_shot::ring;

/// What a ring says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ring {
    /// No kernel has written here yet.
    Silent,
    /// These lines, oldest first, and how many older ones were overwritten since the core started, modulo 65536.
    Lines {
        /// As printed, with invalid characters replaced.
        lines: Vec<String>,
        /// Older ones.
        lost: u16,
    },
    /// It has been overwritten by something else.
    Broken,
}

fn word<const N: usize>(memory: &[u8], at: u64) -> Option<[u8; N]> {
    let at = usize::try_from(at).ok()?;
    memory.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Reads a ring from all bytes that it may occupy.
pub fn read(memory: &[u8]) -> Ring {
    match word(memory, MAGIC_AT).map(u32::from_le_bytes) {
        Some(MAGIC) => records(memory).unwrap_or(Ring::Broken),
        _ => Ring::Silent,
    }
}

fn records(memory: &[u8]) -> Option<Ring> {
    let size = u32::from_le_bytes(word(memory, SIZE)?) as usize;
    let state = u64::from_le_bytes(word(memory, STATE)?);
    let area = memory.get(HEADER as usize..)?.get(..size)?;
    let mut lines = Vec::new();
    let count = ring::walk(state, area, |_, text| {
        lines.push(String::from_utf8_lossy(text).into_owned());
    })?;
    let lost = ring::written(state).wrapping_sub(count);
    Some(Ring::Lines { lines, lost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(size: u32, state: [u16; 4], area: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(size.to_le_bytes());
        bytes.extend(state.iter().flat_map(|part| part.to_le_bytes()));
        bytes.extend(area);
        bytes
    }

    #[test]
    fn lines_come_in_their_order() {
        // "ab" is the oldest; after it the area has one byte left, so "c" is at the start.
        let bytes = ring(6, [2, 2, 2, 7], b"\x02c\x03ab\x00");
        let lines = vec!["ab".to_owned(), "c".to_owned()];
        assert_eq!(read(&bytes), Ring::Lines { lines, lost: 5 });
        assert_eq!(read(&[0; 64]), Ring::Silent);
        assert_eq!(read(b"RI"), Ring::Silent);
    }

    #[test]
    fn what_cannot_be_is_broken() {
        for (size, state) in [
            (100, [0, 0, 1, 1]),
            (6, [5, 0, 9, 9]),
            (6, [900, 0, 1, 1]),
            (0, [0, 0, 1, 1]),
            (u32::MAX, [0, 0, 0, 0]),
        ] {
            let bytes = ring(size, state, b"\x02c\x03ab\x09");
            assert_eq!(read(&bytes), Ring::Broken, "{size} {state:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(size in any::<u32>(), state in any::<[u16; 4]>(), area in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&ring(size % 400, state, &area));
            read(&ring(area.len() as u32, state, &area));
            read(&area);
        }
    }
}
