//! The filed verdicts of the catalog, and what has changed since.
//!
//! Why it exists: a change of an analysis, of a kernel or of a description must not change a verdict of the catalog without a stated
//! reason. So verdicts are in files of this crate, a changed one fails a test, and filing it needs a reason in the change log. What it
//! deliberately does not know: how a verdict comes about.
//!
//! There is a file for each system, a section for each command, a line for each promise. Numbers are left out, because each change of
//! timing changes them: a line has the promise and its verdict.

use bulkhead_report::verdict::{Judgement, Promise};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Tests that run at the same time file sections of one file.
static FILES: Mutex<()> = Mutex::new(());

/// The environment variable that files the present verdicts. Its value is the reason for the changes, a part of the change log's top
/// section.
pub const FILE: &str = "BULKHEAD_FILE_VERDICTS";

/// A promise in a line.
pub fn line(promise: &Promise) -> String {
    let judged = match (promise.judgement, promise.expected) {
        (Judgement::Held, _) => "held",
        (Judgement::Failed, false) => "FAILED",
        (Judgement::Failed, true) => "failed as expected",
        (Judgement::NotJudged, _) => "not judged",
    };
    let of = match promise.variant.as_str() {
        "" => String::new(),
        variant => format!("{variant}: "),
    };
    let why = promise.because.as_ref();
    let why = why.map_or(String::new(), |why| format!(", because {why}"));
    without_numbers(&format!("{judged}: {of}{}{why}", promise.what))
}

/// A text with `#` for its numbers: those that begin a word, with spaces between their groups of digits. Numbers in names stay.
pub fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(here) = rest.next() {
        let inside = before.is_alphanumeric() || "-_.".contains(before);
        before = here;
        if !here.is_ascii_digit() || inside {
            out.push(here);
            continue;
        }
        while let Some(&next) = rest.peek() {
            if !next.is_ascii_digit() && next != '.' {
                break;
            }
            before = next;
            rest.next();
        }
        if before == '.' {
            // The end of a sentence.
            out.push_str("#.");
        } else if !(out.ends_with("# ") || out.ends_with("#\u{202f}")) {
            out.push('#');
        } else {
            out.pop();
        }
    }
    out
}

/// The file of a system.
fn file(system: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("verdicts");
    folder.join(format!("{}.txt", system.replace('/', "-")))
}

/// Sections of a file: command and lines.
fn sections(text: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("== "), all.last_mut()) {
            (Some(command), _) => all.push((command.to_owned(), Vec::new())),
            // Older files have a sign for each group of digits.
            (None, Some((_, lines))) => lines.push(line.replace("\u{202f}#", "")),
            (None, None) => {}
        }
    }
    all
}

/// The change log's top section.
fn top(changes: &str) -> &str {
    let top = changes.split_once("\n## ").map_or("", |(_, rest)| rest);
    top.split_once("\n## ").map_or(top, |(top, _)| top)
}

/// The difference in lines of `-` (filed) and `+` (now); empty if there is none.
fn difference(filed: &[String], now: &[String]) -> String {
    let mut out = String::new();
    for (sign, here, there) in [('-', filed, now), ('+', now, filed)] {
        let mut there: Vec<&String> = there.iter().collect();
        for line in here {
            match there.iter().position(|other| *other == line) {
                Some(at) => {
                    there.remove(at);
                }
                None => writeln!(out, "  {sign} {line}").expect("a string"),
            }
        }
    }
    out
}

/// Compares a system's verdicts under one command with the filed ones, or files them.
///
/// # Errors
/// What changed, and what to do about it.
pub fn compare(system: &str, command: &str, now: &[String]) -> Result<(), String> {
    let _alone = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let path = file(system);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut all = sections(&text);
    let filed = all.iter().position(|(name, _)| name == command);
    let change = match filed {
        Some(at) => difference(&all[at].1, now),
        None => "  nothing was filed yet\n".to_owned(),
    };
    if change.is_empty() {
        return Ok(());
    }
    let head =
        format!("verdicts of `{command}` on {system} are not those that were filed:\n{change}");
    let Ok(reason) = std::env::var(FILE) else {
        return Err(format!(
            "{head}If that is right, say why in a sentence of the change log's top section, and run again with {FILE}='a part of that sentence'."
        ));
    };
    let changes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CHANGELOG.md");
    let changes =
        std::fs::read_to_string(changes).map_err(|error| format!("CHANGELOG.md: {error}"))?;
    if filed.is_some() && (reason.trim().is_empty() || !top(&changes).contains(reason.trim())) {
        return Err(format!(
            "{head}They are not filed: the change log's top section does not contain {FILE}='{reason}'; it must say why they changed."
        ));
    }
    match filed {
        Some(at) => all[at].1 = now.to_vec(),
        None => {
            all.push((command.to_owned(), now.to_vec()));
            all.sort();
        }
    }
    let mut text = String::new();
    for (command, lines) in all {
        writeln!(text, "== {command}").expect("a string");
        for line in lines {
            writeln!(text, "{line}").expect("a string");
        }
    }
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_and_names_stay() {
        let cases = [
            (
                "flow loop: 0 late of 50, 0 allowed",
                "flow loop: # late of #, # allowed",
            ),
            ("worst 180 025 cycles (90.01 us).", "worst # cycles (# us)."),
            ("worst 1\u{202f}180\u{202f}025 cycles", "worst # cycles"),
            (
                "hog-1 on tile 2, within 12ms.",
                "hog-1 on tile #, within #ms.",
            ),
            ("a bound of 7.", "a bound of #."),
            ("v1.5: x2", "v1.5: x2"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_numbers(text), expected);
        }
    }

    #[test]
    fn what_changed_is_named_however_often_it_is_there() {
        let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        let (filed, now) = (
            lines("held: a\nheld: a\nheld: b"),
            lines("held: b\nheld: a\nFAILED: a"),
        );
        assert_eq!(difference(&filed, &now), "  - held: a\n  + FAILED: a\n");
        assert_eq!(difference(&filed, &filed), "");
        let text = "== check\nheld: a\n== run\n";
        assert_eq!(
            sections(text),
            [
                ("check".to_owned(), lines("held: a")),
                ("run".to_owned(), Vec::new())
            ]
        );
        assert_eq!(
            top("# Changes\n\n## Now\n- one\n\n## Before\n- two\n"),
            "Now\n- one\n"
        );
    }
}
