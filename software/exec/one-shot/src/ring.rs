//! The console ring: the last lines of a core, for any reader of its memory.
//!
//! Why it exists: cores have no console of their own. A line must never be divided, and a reader must find whole lines at any time
//! (m2os-mc-ngres21, section 4.5). What it deliberately does not know: its readers; none of them answers.
//!
//! The oldest lines make room for a new one. Stores come in the order in which a reader may look: first the oldest lines are taken
//! away, then the text is written in their place, then it is made visible. Each step ends with one store of one word.

use bulkhead_abi::one_shot::ring::{LINE, MAGIC};
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// The header, as `abi` defines it: a reader begins with it.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    magic: u32,
    size: u32,
    state: AtomicU64,
}

impl Header {
    /// No lines, in an area of this size (65535 bytes at most).
    pub const fn new(size: u32) -> Self {
        Self {
            magic: MAGIC,
            size,
            state: AtomicU64::new(0),
        }
    }

    fn publish(&self, state: State) {
        let State {
            oldest,
            next,
            lines,
            written,
        } = state;
        let word = oldest as u64
            | (next as u64) << 16
            | (lines as u64) << 32
            | (written as u64 & 0xFFFF) << 48;
        self.state.store(word, Ordering::Release);
    }
}

#[derive(Clone, Copy)]
struct State {
    oldest: usize,
    next: usize,
    lines: usize,
    written: usize,
}

impl State {
    fn drop_oldest(&mut self, area: &[u8]) {
        let length = area.get(self.oldest).copied().unwrap_or(0);
        let next = self.oldest + usize::from(length);
        // A length of 0, and the end, lead to the start.
        self.oldest = match area.get(next) {
            None | Some(0) => 0,
            Some(_) => next,
        };
        self.lines -= 1;
    }
}

/// Writes a line that is given in pieces; a line longer than [`LINE`] or than the ring is cut.
pub fn write(header: &Header, area: &mut [u8], pieces: &[&[u8]]) {
    let size = area.len().min(header.size as usize);
    let (Some(room), Some(area)) = (size.checked_sub(1), area.get_mut(..size)) else {
        return;
    };
    let whole: usize = pieces.iter().map(|piece| piece.len()).sum();
    let record = 1 + whole.min(room).min(LINE);
    let word = header.state.load(Ordering::Relaxed);
    let part = |shift: u32| usize::from((word >> shift) as u16);
    let mut state = State {
        oldest: part(0),
        next: part(16),
        lines: part(32),
        written: part(48),
    };
    let end = state.next;
    let wraps = end + record > size;
    if wraps {
        // The lines after this place are dropped, and the new line begins at the start of the area.
        while state.lines > 0 && state.oldest >= end {
            state.drop_oldest(area);
        }
        state.next = 0;
    }
    let place = state.next..state.next + record;
    while state.lines > 0 && place.contains(&state.oldest) {
        state.drop_oldest(area);
    }
    if state.lines == 0 {
        state.oldest = state.next;
    }
    header.publish(state);
    fence(Ordering::Release);
    if wraps && let Some(mark) = area.get_mut(end) {
        *mark = 0;
    }
    let Some((mark, text)) = area.get_mut(place).and_then(<[u8]>::split_first_mut) else {
        return;
    };
    *mark = record as u8;
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    for (to, from) in text.iter_mut().zip(bytes) {
        *to = *from;
    }
    state.next += record;
    state.lines += 1;
    state.written += 1;
    header.publish(state);
}

/// The lines written since the start, modulo 65536, as a header's word of state says.
pub fn written(state: u64) -> u16 {
    (state >> 48) as u16
}

/// Gives all lines of a copy of a ring to `each`, with their numbers, the oldest first as 0; returns how many they are. `None`: the ring contains what
/// [`write`] does not write. Any bytes are read in a time that depends on their number only.
pub fn walk<'a>(state: u64, area: &'a [u8], mut each: impl FnMut(u16, &'a [u8])) -> Option<u16> {
    let (mut at, count) = (usize::from(state as u16), (state >> 32) as u16);
    let mut bytes = 0;
    for number in 0..count {
        if at == area.len() || *area.get(at)? == 0 {
            at = 0;
        }
        let length = usize::from(*area.get(at)?);
        let text = area.get(at + 1..at + length)?;
        // A ring has no more than its own bytes, however often its contents say to wrap around.
        bytes += length;
        if bytes > area.len() {
            return None;
        }
        each(number, text);
        at += length;
    }
    Some(count)
}

/// The oldest line that a reader on the same core has not seen. `seen` counts the lines that it has read and those that were lost
/// before it could.
pub fn unread<'a>(header: &Header, area: &'a [u8], seen: &mut u16) -> Option<&'a [u8]> {
    let word = header.state.load(Ordering::Relaxed);
    let [oldest, _, lines, written] = [0, 16, 32, 48].map(|shift| (word >> shift) as u16);
    let mut skip = lines
        .checked_sub(written.wrapping_sub(*seen))
        .unwrap_or_else(|| {
            *seen = written.wrapping_sub(lines);
            0
        });
    if skip == lines {
        return None;
    }
    let mut at = usize::from(oldest);
    loop {
        if area.get(at).is_none_or(|length| *length == 0) {
            at = 0;
        }
        let end = at + usize::from(*area.get(at)?);
        if skip == 0 {
            *seen = seen.wrapping_add(1);
            return area.get(at + 1..end);
        }
        skip -= 1;
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// The lines that a reader finds, written from the description in `abi`: oldest first.
    fn lines(header: &Header, area: &[u8]) -> Vec<Vec<u8>> {
        let word = header.state.load(Ordering::Acquire).to_le_bytes();
        let part = |at: usize| usize::from(u16::from_le_bytes([word[at], word[at + 1]]));
        let (mut at, count) = (part(0), part(4));
        let mut found = Vec::new();
        for _ in 0..count {
            if at == area.len() || area[at] == 0 {
                at = 0;
            }
            let length = usize::from(area[at]);
            found.push(area[at + 1..at + length].to_vec());
            at += length;
        }
        found
    }

    #[test]
    fn a_line_is_never_divided() {
        let header = Header::new(10);
        let mut area = [0xAA; 10];
        write(&header, &mut area, &[b"ab", b"", b"c"]);
        write(&header, &mut area, &[b"defg"]);
        assert_eq!(lines(&header, &area), [b"abc".to_vec(), b"defg".to_vec()]);
        // One byte is left: the line begins at the start and replaces the first one.
        write(&header, &mut area, &[b"hi"]);
        assert_eq!(lines(&header, &area), [b"defg".to_vec(), b"hi".to_vec()]);
        write(&header, &mut area, &[b""]);
        assert_eq!(lines(&header, &area).len(), 3);
        write(&header, &mut area, &[b"0123456789"]);
        assert_eq!(lines(&header, &area), [b"012345678".to_vec()]);
    }

    #[test]
    fn without_room_nothing_is_written() {
        let header = Header::new(0);
        write(&header, &mut [], &[b"x"]);
        assert!(lines(&header, &[]).is_empty());
    }

    proptest! {
        /// Against a list of all lines: the ring has the last ones, as many as fit one after another.
        #[test]
        fn the_last_lines_are_there(size in 1usize..600, written in proptest::collection::vec(0usize..300, 0..60)) {
            let header = Header::new(size as u32);
            let mut area = vec![0x55; size];
            let mut all = VecDeque::new();
            let mut seen = 0;
            for (number, length) in written.into_iter().enumerate() {
                let line: Vec<u8> = (0..length).map(|i| (i + number) as u8).collect();
                let (first, second) = line.split_at(length / 2);
                write(&header, &mut area, &[first, second]);
                let mut line = line.clone();
                line.truncate((size - 1).min(LINE));
                let mut last = None;
                while let Some(line) = unread(&header, &area, &mut seen) {
                    last = Some(line);
                }
                prop_assert_eq!(last, Some(&line[..]));
                all.push_back(line);
                let found = lines(&header, &area);
                let mut walked = Vec::new();
                let count = walk(header.state.load(Ordering::Relaxed), &area, |number, line| {
                    assert_eq!(usize::from(number), walked.len());
                    walked.push(line.to_vec());
                });
                prop_assert_eq!(count.map(usize::from), Some(found.len()));
                prop_assert_eq!(&walked, &found);
                prop_assert!(!found.is_empty() && found.len() <= all.len());
                prop_assert!(all.iter().rev().zip(found.iter().rev()).all(|(a, b)| a == b));
                // At most the room of one longest line is unused at the end, and the newest line needed the rest.
                let used: usize = found.iter().map(|line| line.len() + 1).sum();
                let longest = all.iter().map(|line| line.len() + 1).max().unwrap_or(0);
                prop_assert!(found.len() == all.len() || used + 2 * longest >= size);
            }
        }
    }
}
