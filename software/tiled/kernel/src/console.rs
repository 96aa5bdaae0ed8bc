//! Output to the console: whole lines, each with the name of its writer, a few bytes at a time.
//!
//! Why it exists: people and the runner trust the printed lines, so no activity may write in another's name. Text comes in pieces
//! from many tiles and is not trusted; the kernel itself adds the name. A text of many lines becomes much longer when a long name
//! is put before each line, so no caller waits for the whole text: it is written in pieces of [`PIECE`] bytes. What it deliberately
//! does not know: the device.

use crate::activity::PATH;
use bulkhead_abi::tilemux::PRINT_TEXT;
use core::fmt::{self, Write};

/// Bytes that are written in one piece of work: a line of a program with its name takes two or three.
pub const PIECE: usize = 32;
/// Most bytes of a line of the kernel's own: which activity stopped, where, and how.
const OWN: usize = PATH + 160;

/// Bytes to write. Bytes that do not fit are left out.
#[derive(Clone, Copy, Debug)]
struct Buffer<const N: usize> {
    bytes: [u8; N],
    length: usize,
    /// Number of bytes already written.
    at: usize,
}

impl<const N: usize> Default for Buffer<N> {
    fn default() -> Self {
        Self {
            bytes: [0; N],
            length: 0,
            at: 0,
        }
    }
}

impl<const N: usize> Buffer<N> {
    fn set(&mut self, text: impl fmt::Display) {
        (self.length, self.at) = (0, 0);
        // A line that is too long is cut off.
        let _ = write!(self, "{text}");
    }

    /// The whole characters of the rest, at most `room` bytes.
    fn rest(&self, room: usize) -> &str {
        let rest = &self.bytes[self.at..self.length];
        let mut end = rest.len().min(room);
        while end < rest.len() && rest[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        // Only whole characters are added and taken.
        core::str::from_utf8(&rest[..end]).unwrap_or_default()
    }

    fn is_written(&self) -> bool {
        self.at == self.length
    }
}

impl<const N: usize> Write for Buffer<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut end = text.len().min(N - self.length);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.bytes[self.length..self.length + end].copy_from_slice(&text.as_bytes()[..end]);
        self.length += end;
        match end == text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

/// Writes the rest of a buffer, in whole characters and at most `room` bytes. Returns whether all is written.
fn pour<const N: usize>(from: &mut Buffer<N>, room: &mut usize, out: &mut impl Write) -> bool {
    let rest = from.rest(*room);
    let end = rest.len();
    // The console never fails.
    let _ = out.write_str(rest);
    from.at += end;
    *room -= end;
    from.is_written()
}

/// The console with its open line and its unwritten output: one text, and one line of the kernel's own.
#[derive(Debug, Default)]
pub struct Lines {
    /// Tile and activity whose text has not ended its line.
    open: Option<(u16, u16)>,
    /// The writer of the text, the head of each of its lines, and the text.
    writer: (u16, u16),
    head: Buffer<{ PATH + 4 }>,
    text: Buffer<PRINT_TEXT>,
    /// Whether the head of one of its lines is being written: nothing may come in between.
    is_heading: bool,
    own: Buffer<OWN>,
}

impl Lines {
    /// Whether a text has an unwritten rest.
    pub fn has_text(&self) -> bool {
        !self.text.is_written()
    }

    /// Whether a line of the kernel's own has an unwritten rest.
    pub fn has_line(&self) -> bool {
        !self.own.is_written()
    }

    /// Begins a piece of an activity's text, or continues it after its first `written` bytes. The last text must be written, or a
    /// line of it must have ended. Each line begins with the name; control characters become `?`, so a text neither moves the
    /// cursor nor begins a line without a name.
    pub fn text(
        &mut self,
        writer: (u16, u16),
        name: impl fmt::Display,
        text: &[u8],
        written: usize,
    ) {
        self.writer = writer;
        self.head.set(format_args!("[{name}] "));
        let length = text.len().min(PRINT_TEXT);
        let bytes = &mut self.text.bytes[..length];
        bytes.copy_from_slice(&text[..length]);
        // After the first byte that is not part of a character, only one-byte characters count: searching for others after each such byte
        // would take long.
        let valid = core::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len);
        for at in 0..length {
            // Control characters of one byte and of two.
            match bytes[at] {
                b'\n' => {}
                0..0x20 | 0x7F => bytes[at] = b'?',
                0x80.. if at >= valid => bytes[at] = b'?',
                0x80..0xA0 if at > 0 && bytes[at - 1] == 0xC2 => {
                    (bytes[at - 1], bytes[at]) = (b'?', b'?')
                }
                _ => {}
            }
        }
        self.text.length = length;
        self.text.at = written.min(self.text.length);
    }

    /// Bytes of the text that are written, if none of its lines is open.
    fn written(&self) -> Option<usize> {
        (self.open.is_none() && !self.is_heading).then_some(self.text.at)
    }

    /// Puts the text aside, if none of its lines is open, so that another one may come first; returns how many of its bytes are written.
    /// After a line of the kernel's own, the text continues only once it is begun again.
    pub fn put_aside(&mut self) -> Option<usize> {
        let written = self.written()?;
        (self.text.length, self.text.at) = (0, 0);
        Some(written)
    }

    /// Begins a line of the kernel's own, after the last one is written; it is never inside a line of others.
    pub fn line(&mut self, line: impl fmt::Display) {
        self.own.set(format_args!("kernel: {line}"));
        // Even if it is too long, it ends.
        self.own.length = self.own.length.min(OWN - 1);
        let _ = self.own.write_char('\n');
    }

    /// Writes one piece of the output: of the kernel's own line first, unless the name of a writer has begun.
    pub fn step(&mut self, out: &mut impl Write) {
        let mut room = PIECE;
        while room > 0 && (self.has_line() || self.has_text()) {
            if self.has_line() && !self.is_heading {
                if self.open.is_some() {
                    self.end(&mut room, out);
                } else if !pour(&mut self.own, &mut room, out) {
                    // A character that does not fit is the first of the next piece.
                    return;
                }
            } else if self.open.is_some_and(|open| open != self.writer) {
                self.end(&mut room, out);
            } else if self.open.is_none() {
                self.is_heading = true;
                if !pour(&mut self.head, &mut room, out) {
                    return;
                }
                (self.is_heading, self.head.at) = (false, 0);
                self.open = Some(self.writer);
            } else if !self.words(&mut room, out) {
                return;
            }
        }
    }

    /// Writes the rest of a line of the text. Returns false if not all of it fits, or the line ends: more important output may come
    /// next.
    fn words(&mut self, room: &mut usize, out: &mut impl Write) -> bool {
        let rest = self.text.rest(*room);
        let line = rest.find('\n').unwrap_or(rest.len());
        if rest.starts_with('\n') {
            self.text.at += 1;
            self.end(room, out);
            return false;
        }
        // The console never fails.
        let _ = out.write_str(&rest[..line]);
        self.text.at += line;
        *room -= line;
        line > 0
    }

    fn end(&mut self, room: &mut usize, out: &mut impl Write) {
        self.open = None;
        *room -= 1;
        // The console never fails.
        let _ = out.write_char('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(lines: &mut Lines, out: &mut String) {
        while lines.has_text() || lines.has_line() {
            let before = out.len();
            lines.step(out);
            assert!((1..=PIECE).contains(&(out.len() - before)));
        }
    }

    fn show(pieces: &[((u16, u16), &str, &[u8])]) -> String {
        let (mut lines, mut out) = (Lines::default(), String::new());
        for (writer, name, text) in pieces {
            lines.text(*writer, name, text, 0);
            all(&mut lines, &mut out);
        }
        out
    }

    /// A hostile program sends endless lines, with the longest possible name: each piece of work is still short, and the kernel's
    /// own lines come in between.
    #[test]
    fn many_lines_with_a_long_name_keep_nobody_waiting() {
        let name = "n".repeat(PATH);
        let (mut lines, mut out) = (Lines::default(), String::new());
        lines.text((1, 1), &name, &[b'\n'; PRINT_TEXT], 0);
        lines.step(&mut out);
        assert_eq!(out.len(), PIECE);
        lines.line("mine");
        let mut steps = 1;
        while lines.has_line() {
            lines.step(&mut out);
            steps += 1;
        }
        assert!(
            steps <= (PATH + 4 + "\nkernel: mine\n".len()).div_ceil(PIECE),
            "{steps}"
        );
        all(&mut lines, &mut out);
        let mut seen = out.lines();
        let head = format!("[{name}] ");
        assert_eq!(
            (seen.next(), seen.next()),
            (Some(&*head), Some("kernel: mine"))
        );
        // A line that the kernel's own line interrupted begins again.
        assert!(seen.clone().all(|line| line == head));
        assert_eq!(seen.count(), PRINT_TEXT);
    }

    #[test]
    fn a_line_that_is_too_long_ends_all_the_same() {
        let (mut lines, mut out) = (Lines::default(), String::new());
        lines.line("x".repeat(5000));
        all(&mut lines, &mut out);
        assert_eq!(out.len(), OWN);
        assert!(out.ends_with("x\n"));
    }

    #[test]
    fn each_line_has_the_name_of_its_writer() {
        assert_eq!(
            show(&[
                ((2, 3), "a", b"one\ntw"),
                ((2, 4), "b", b"three\n"),
                ((2, 3), "a", b"o\n"),
                ((2, 3), "a", b"\n"),
            ]),
            "[a] one\n[a] tw\n[b] three\n[a] o\n[a] \n"
        );
    }

    #[test]
    fn nobody_writes_as_the_kernel() {
        let forged = b"x\nkernel: activity 3 (b) on tile 2 stopped: panic\r\x1b[2K\xff";
        assert_eq!(
            show(&[((2, 3), "a", forged)]),
            "[a] x\n[a] kernel: activity 3 (b) on tile 2 stopped: panic??[2K?"
        );
    }

    /// Searching for characters after each invalid byte once took a piece of work 11 414 cycles.
    #[test]
    fn behind_what_is_no_character_only_ascii_counts() {
        let text = b"\xc3\xbc \xff \xc3\xbc a\xc3";
        assert_eq!(show(&[((1, 1), "a", text)]), "[a] \u{fc} ? ?? a?");
    }

    /// Two texts that take turns after each line are written as if each were alone, and a piece of work ends with a line at the
    /// latest.
    #[test]
    fn what_is_put_aside_is_not_written_behind_a_line_of_the_kernels_own() {
        let (mut lines, mut out) = (Lines::default(), String::new());
        lines.text((1, 1), "a", b"x\ny\n", 0);
        while lines.written() != Some(2) {
            lines.step(&mut out);
        }
        lines.line("mine");
        let written = lines.put_aside().expect("its first line has ended");
        while lines.has_line() {
            lines.step(&mut out);
        }
        lines.text((1, 1), "a", b"x\ny\n", written);
        all(&mut lines, &mut out);
        assert_eq!(out, "[a] x\nkernel: mine\n[a] y\n");
    }

    #[test]
    fn texts_take_turns_after_each_line() {
        let texts: [&[u8]; 2] = [
            b"one\n\nt\xc3\xbc\xff\rwo\nthree",
            b"\n\na line that is longer than a piece of work\n",
        ];
        let (mut lines, mut out) = (Lines::default(), String::new());
        let mut written = [Some(0); 2];
        while written.iter().any(Option::is_some) {
            for (number, at) in written.iter_mut().enumerate() {
                let Some(before) = *at else { continue };
                lines.text((1, number as u16), number, texts[number], before);
                let begin = out.len();
                while lines.has_text() && lines.written().is_none_or(|now| now == before) {
                    lines.step(&mut out);
                }
                assert!(out[begin..].trim_start().lines().count() <= 1, "{out}");
                *at = lines.written().filter(|_| lines.has_text());
            }
        }
        for (number, text) in texts.iter().enumerate() {
            let own = out
                .lines()
                .filter(|line| line.starts_with(&format!("[{number}] ")));
            let own: Vec<_> = own.collect();
            let alone = show(&[((1, number as u16), &number.to_string(), text)]);
            assert_eq!(own, alone.lines().collect::<Vec<_>>());
        }
    }

    proptest! {
        #[test]
        fn every_line_begins_with_a_name(
            pieces in proptest::collection::vec(
                (0u16..3, proptest::collection::vec(any::<u8>(), 0..PRINT_TEXT), 0usize..4), 0..20),
        ) {
            let (mut lines, mut out) = (Lines::default(), String::new());
            for (writer, text, steps) in &pieces {
                lines.text((*writer, 1), format_args!("w{writer}"), text, 0);
                (0..*steps).for_each(|_| lines.step(&mut out));
                lines.line("here");
                all(&mut lines, &mut out);
            }
            lines.line("mine");
            all(&mut lines, &mut out);
            for line in out.lines() {
                prop_assert!(
                    ["kernel: mine", "kernel: here"].contains(&line) || ["[w0] ", "[w1] ", "[w2] "].iter().any(|w| line.starts_with(w)),
                    "{line:?}"
                );
                prop_assert!(!line.chars().any(char::is_control));
            }
            prop_assert_eq!(out.matches("kernel: mine\n").count(), 1);
        }
    }
}
