//! What goes to the console: whole lines, each with the name of who wrote it.
//!
//! Why it exists: people and the runner believe what stands there, so nobody may write in another's name. Text comes in
//! pieces from many tiles and is not trusted; the name is the kernel's own. What it deliberately does not know: the device.

use core::fmt::{self, Write};

/// The console with its open line.
#[derive(Debug, Default)]
pub struct Lines {
    /// Tile and activity whose text has not ended its line.
    open: Option<(u16, u16)>,
}

impl Lines {
    /// Writes a piece of an activity's text. Each line begins with the name; control characters become `?`, so a text neither
    /// moves the cursor nor begins a line without a name.
    pub fn text(
        &mut self,
        writer: (u16, u16),
        name: impl fmt::Display,
        text: &[u8],
        out: &mut impl Write,
    ) -> fmt::Result {
        if self.open.is_some_and(|open| open != writer) {
            self.end(out)?;
        }
        for chunk in text.utf8_chunks() {
            let broken = chunk.invalid().iter().map(|_| '?');
            for character in chunk.valid().chars().chain(broken) {
                if self.open.replace(writer).is_none() {
                    write!(out, "[{name}] ")?;
                }
                match character {
                    '\n' => self.end(out)?,
                    _ if character.is_control() => out.write_char('?')?,
                    _ => out.write_char(character)?,
                }
            }
        }
        Ok(())
    }

    /// Writes a line of the kernel's own, never inside a line of others.
    pub fn line(&mut self, line: impl fmt::Display, out: &mut impl Write) -> fmt::Result {
        if self.open.is_some() {
            self.end(out)?;
        }
        writeln!(out, "kernel: {line}")
    }

    fn end(&mut self, out: &mut impl Write) -> fmt::Result {
        self.open = None;
        out.write_char('\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(pieces: &[((u16, u16), &str, &[u8])]) -> String {
        let (mut lines, mut out) = (Lines::default(), String::new());
        for (writer, name, text) in pieces {
            lines.text(*writer, name, text, &mut out).unwrap();
        }
        out
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

    proptest! {
        #[test]
        fn every_line_begins_with_a_name(
            pieces in proptest::collection::vec(
                (0u16..3, proptest::collection::vec(any::<u8>(), 0..40)), 0..20),
        ) {
            let (mut lines, mut out) = (Lines::default(), String::new());
            for (writer, text) in &pieces {
                lines.text((*writer, 1), format_args!("w{writer}"), text, &mut out).unwrap();
            }
            lines.line("mine", &mut out).unwrap();
            for line in out.lines() {
                prop_assert!(
                    line == "kernel: mine" || ["[w0] ", "[w1] ", "[w2] "].iter().any(|w| line.starts_with(w)),
                    "{line:?}"
                );
                prop_assert!(!line.chars().any(char::is_control));
            }
            prop_assert_eq!(out.matches("kernel: mine\n").count(), 1);
        }
    }
}
