//! Errors on the terminal: cause, place in the file, remedy.
//!
//! Why it exists: a description may come from anybody. Whatever is in it, a terminal shows a few readable errors, and nothing in it moves the
//! cursor or looks like another line. What this module deliberately does not know: anything about errors except their texts and places.

use bulkhead_model::Diagnostic as Problem;
use bulkhead_runner::Error;
use bulkhead_runner::observed::is_plain;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use std::fmt;
use std::io::{IsTerminal, Write};

/// Maximum errors that are shown: a user who has more corrects these first.
const ERRORS_MAX: usize = 50;
/// Maximum bytes of a message or a remedy.
const MESSAGE_MAX: usize = 2000;

/// A text without characters that move a cursor or change the order of what is read; each becomes as many `?` as it has bytes, so places
/// stay where they are.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\r' {
            // The end of a line in some files.
            plain.push(' ');
            continue;
        }
        match is_plain(c) || matches!(c, '\n' | '\t') {
            true => plain.push(c),
            false => plain.extend(std::iter::repeat_n('?', c.len_utf8())),
        }
    }
    plain
}

/// The beginning of a text that a line can show.
fn short(text: &str) -> String {
    let end = text.floor_char_boundary(MESSAGE_MAX);
    match end == text.len() {
        true => plain(text),
        false => format!(
            "{} ... and {} bytes more",
            plain(&text[..end]),
            text.len() - end
        ),
    }
}

/// A problem in a description, in the form that miette needs.
#[derive(Debug)]
struct Shown {
    message: String,
    code: String,
    help: Option<String>,
    source: Option<NamedSource<String>>,
    place: Option<(std::ops::Range<usize>, String)>,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (range, _) = self.place.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            Some("here".to_owned()),
            range.clone(),
        ))))
    }
}

/// Whether the line at `start` and its neighbours can be shown: a file with one endless line cannot.
fn is_short(text: &str, start: usize) -> bool {
    const SHOWN_MAX: usize = 2000;
    let (before, after) = text.split_at(text.floor_char_boundary(start));
    let backwards = before.rsplitn(3, '\n').take(2).map(str::len);
    let forwards = after.splitn(3, '\n').take(2).map(str::len);
    backwards.chain(forwards).sum::<usize>() < SHOWN_MAX
}

fn shown(problem: &Problem) -> Shown {
    let place = problem
        .range()
        .zip(problem.position())
        .map(|(range, (line, column))| {
            let file = problem.file().unwrap_or_default();
            (range, format!("{}:{line}:{column}", plain(file)))
        });
    let message = match &place {
        Some((_, place)) => format!("{place}: {}", problem.message()),
        None => problem.message(),
    };
    Shown {
        message: short(&message),
        code: problem.code().to_owned(),
        help: (!problem.help.is_empty()).then(|| short(&problem.help)),
        source: problem
            .file()
            .zip(problem.text())
            .filter(|(_, text)| {
                problem
                    .range()
                    .is_none_or(|range| is_short(text, range.start))
            })
            .map(|(file, text)| NamedSource::new(plain(file), plain(text)).with_language("xml")),
        place,
    }
}

/// The text for an error; `fancy` uses colours and lines.
pub fn render(error: &Error, fancy: bool) -> String {
    let all: Vec<Shown> = match error {
        // Each one is placed by a search through its file.
        Error::Description(errors) => errors.list.iter().take(ERRORS_MAX).map(shown).collect(),
        other => vec![Shown {
            message: plain(&other.to_string()),
            code: match other {
                Error::Input { .. } => "bulkhead::input",
                _ => "bulkhead::failure",
            }
            .to_owned(),
            help: other.remedy().map(plain),
            source: None,
            place: None,
        }],
    };
    let theme = if fancy {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    // Names have hyphens and slashes, so lines break only between words.
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(110)
        .with_break_words(false)
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation);
    let mut out = String::new();
    for one in &all {
        // Writing to a string cannot fail.
        let _ = handler.render_report(&mut out, one);
    }
    if let Error::Description(errors) = error
        && let Some(more @ 1..) = errors.list.len().checked_sub(ERRORS_MAX)
    {
        out += &format!("  and {more} more errors\n");
    }
    out
}

/// Prints an error.
pub fn show(error: &Error) {
    let fancy = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // A reader that has gone away is not an error.
    let _ = std::io::stderr().write_all(render(error, fancy).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system_text};

    #[test]
    fn a_bad_description_shows_its_place() {
        let text = "<system name=\"s\" platform=\"tiled-2ghz\" duration=\"5\"/>\n";
        let errors = load_system_text("s.xml", text, &LoadOptions::default()).expect_err("no unit");
        insta::assert_snapshot!(render(&errors.into(), false));
    }

    /// An endless line is not shown, but its place is.
    #[test]
    fn endless_lines_are_not_shown() {
        let text = format!(
            "<system name=\"s\" {} duration=\"5\"/>",
            " ".repeat(100_000)
        );
        let errors = load_system_text("s.xml", &text, &LoadOptions::default()).expect_err("bad");
        let shown = render(&errors.into(), false);
        assert!(shown.len() < 2000 && shown.contains("s.xml:1:"), "{shown}");
    }

    /// A file may be full of errors, and full of texts for a terminal. Before the fix, each error was placed by a search through 2 MB, which
    /// took minutes, and all of them were shown, as they were.
    #[test]
    fn hostile_descriptions_give_a_few_readable_errors() {
        let one = "<app name=\"a\" program=\"&#x9b;31m&#10;&#x202e;evil\"/>\n";
        let text = format!(
            "<system name=\"s\" platform=\"&#x9b;2J\"><domain name=\"{}\" \u{9b}=\"\u{202e}\">{}</domain></system>",
            "d".repeat(1_000_000),
            one.repeat(20_000)
        );
        for text in [text, one.repeat(3).replace("&#x9b;", "\u{1b}[")] {
            let errors =
                load_system_text("s\u{1b}.xml", &text, &LoadOptions::default()).expect_err("bad");
            let shown = render(&errors.into(), false);
            assert!(shown.len() < 100_000, "{}", shown.len());
            assert_eq!(plain(&shown), shown);
        }
    }

    #[test]
    fn other_bad_input_has_a_remedy() {
        insta::assert_snapshot!(render(
            &Error::input("no such program", "name another"),
            false
        ));
    }

    #[test]
    fn a_file_of_the_host_that_fails_has_a_remedy() {
        let full = std::io::ErrorKind::StorageFull.into();
        insta::assert_snapshot!(render(&Error::file("out/trace".as_ref(), full), false));
    }
}
