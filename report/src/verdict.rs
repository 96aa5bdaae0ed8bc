//! Verdicts: each promise held, failed, or was not judged, and why.
//!
//! Why it exists: `run`, `audit`, `check`, `plan` and `reproduce` use the same words for different things, and a reader must be
//! able to trust all of them: nothing is called good unless it was judged. Each command turns its results into [`Promise`]s; only
//! this file decides the outcome, its text and the exit code. What it deliberately does not know: the promises themselves, and how
//! they are judged.

use crate::format::counted;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// Exit codes of the command, as `docs/reference/exit-codes.md` lists them.
pub mod exit {
    /// Nothing failed.
    pub const GOOD: u8 = 0;
    /// A failure of Bulkhead, of the host or of a build.
    pub const FAILURE: u8 = 1;
    /// The input is invalid; nothing was run.
    pub const BAD_INPUT: u8 = 2;
    /// A promise failed.
    pub const PROMISE_BROKEN: u8 = 3;
    /// A program faulted, stopped with an error, did not finish or ran into a limit, or the kernel stopped.
    pub const PROGRAM_FAILED: u8 = 4;
}

pub use bulkhead_analysis::plan::Judgement;

/// How a value compares with a bound that it should not exceed, for the text of a promise.
pub fn relation<T: PartialOrd>(value: T, bound: T) -> &'static str {
    match value <= bound {
        true => "within",
        false => "above",
    }
}

/// Something that was promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The run to which it belongs: a variant, a domain; empty if there is only one.
    pub variant: String,
    /// The promise, and by how much it held or failed.
    pub what: String,
    /// Its judgement.
    pub judgement: Judgement,
    /// Why it was not judged, or where a failure is explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The description says that it may fail here (`misses="any"` of a variant): a failure is shown but does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected: bool,
}

impl Promise {
    /// A promise that was judged.
    pub fn judged(variant: &str, what: impl Into<String>, held: bool) -> Self {
        Self {
            variant: variant.to_owned(),
            what: what.into(),
            judgement: Judgement::of(held),
            because: None,
            expected: false,
        }
    }

    /// A promise that was not judged, and the reason.
    pub fn not_judged(variant: &str, what: impl Into<String>, because: impl Into<String>) -> Self {
        Self {
            judgement: Judgement::NotJudged,
            because: Some(because.into()),
            ..Self::judged(variant, what, true)
        }
    }

    /// Marks a failure of it as expected, if `it` is true.
    #[must_use]
    pub fn if_expected(mut self, it: bool) -> Self {
        self.expected = it && self.judgement == Judgement::Failed;
        self
    }

    /// The same promise, but no longer held, because its basis ended early.
    #[must_use]
    pub fn unless_held(self, because: &str) -> Self {
        match self.judgement {
            Judgement::Held => Self::not_judged(&self.variant, self.what, because),
            _ => self,
        }
    }
}

/// The outcome of all promises together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A promise failed that was not expected to.
    Failed,
    /// At least one promise was judged, and none failed.
    Held,
    /// No promise was judged.
    NothingJudged,
}

/// Promises of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Failed unexpectedly.
    pub failed: usize,
    /// Failed as expected.
    pub expected: usize,
    /// Not judged.
    pub not_judged: usize,
    /// Held.
    pub held: usize,
}

/// All promises of a result, and their outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Verdict {
    promises: Vec<Promise>,
}

/// A verdict as stored in files. The outcome is for their readers; it follows from the promises and is never read back.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(default)]
    outcome: Option<Outcome>,
    promises: Vec<Promise>,
}

impl From<Verdict> for Written {
    fn from(verdict: Verdict) -> Self {
        Self {
            outcome: Some(verdict.outcome()),
            promises: verdict.promises,
        }
    }
}

impl From<Written> for Verdict {
    fn from(written: Written) -> Self {
        Self::of(written.promises)
    }
}

impl FromIterator<Promise> for Verdict {
    fn from_iter<I: IntoIterator<Item = Promise>>(promises: I) -> Self {
        Self::of(promises.into_iter().collect())
    }
}

impl Verdict {
    /// The verdict on these promises.
    pub fn of(promises: Vec<Promise>) -> Self {
        Self { promises }
    }

    /// All of them, in their order.
    pub fn promises(&self) -> &[Promise] {
        &self.promises
    }

    /// How many there are of each kind.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for promise in &self.promises {
            *match (promise.judgement, promise.expected) {
                (Judgement::Failed, false) => &mut counts.failed,
                (Judgement::Failed, true) => &mut counts.expected,
                (Judgement::NotJudged, _) => &mut counts.not_judged,
                (Judgement::Held, _) => &mut counts.held,
            } += 1;
        }
        counts
    }

    /// The outcome. Expected failures do not affect it.
    pub fn outcome(&self) -> Outcome {
        match self.counts() {
            Counts { failed: 1.., .. } => Outcome::Failed,
            Counts { held: 1.., .. } => Outcome::Held,
            _ => Outcome::NothingJudged,
        }
    }

    /// Nothing failed unexpectedly. This does not say that anything was judged.
    pub fn is_kept(&self) -> bool {
        self.outcome() != Outcome::Failed
    }

    /// Exit code. `accident`: a program or the kernel ended that must not. Measurements of a faulting program mean little, so an
    /// accident comes first.
    pub fn code(&self, accident: bool) -> u8 {
        match (accident, self.outcome()) {
            (true, _) => exit::PROGRAM_FAILED,
            (false, Outcome::Failed) => exit::PROMISE_BROKEN,
            (false, Outcome::Held | Outcome::NothingJudged) => exit::GOOD,
        }
    }

    /// The head of a text. `happened`: incidents (panics, crashes, stops), one line each.
    pub fn head(&self, happened: &[String]) -> String {
        let mut out = String::new();
        for part in self.parts(happened) {
            out.push_str(&part.title);
            out.push('\n');
            for line in part.lines {
                out.push_str("  ");
                out.push_str(&line);
                out.push('\n');
            }
        }
        out
    }

    /// The head of a page, with the promises that held below it.
    pub fn markup(&self, happened: &[String]) -> Markup {
        let held = self.promises.iter();
        let held = held.filter(|promise| promise.judgement == Judgement::Held);
        let held: Vec<&Promise> = held.collect();
        html! {
            @for part in self.parts(happened) {
                p { span class=(part.class) { (part.title) } }
                @if !part.lines.is_empty() { ul { @for line in &part.lines { li { (line) } } } }
            }
            @if !held.is_empty() {
                details { summary { "Promises that held" }
                    div.scroll { table {
                        tr { th.text { "of" } th.text { "promise" } }
                        @for promise in held { tr { td { (promise.variant) } td.text { (promise.what) } } }
                    } }
                }
            }
        }
    }

    /// The head's parts in order: failures, incidents, promises that were not judged, then those that held.
    fn parts(&self, happened: &[String]) -> Vec<Part> {
        let counts = self.counts();
        let of = |wanted: Judgement, expected: bool| {
            let all = self.promises.iter();
            all.filter(move |p| p.judgement == wanted && p.expected == expected)
                .map(line)
        };
        let part = |class, title: String, lines| Part {
            class,
            title,
            lines,
        };
        let mut parts = Vec::new();
        if counts.failed > 0 {
            let title = format!("FAILED: {}", counted(counts.failed, "promise"));
            parts.push(part("bad", title, of(Judgement::Failed, false).collect()));
        }
        if !happened.is_empty() {
            parts.push(part("bad", "Happened:".to_owned(), happened.to_vec()));
        }
        if counts.expected > 0 {
            let title = format!(
                "Failed as expected: {}",
                counted(counts.expected, "promise")
            );
            parts.push(part("soft", title, of(Judgement::Failed, true).collect()));
        }
        // An expected failure has been judged.
        if self.outcome() == Outcome::NothingJudged && counts.expected == 0 {
            let title = match counts.not_judged {
                0 => "Nothing was judged: there are no promises.".to_owned(),
                n => format!("Nothing was judged, of {}:", counted(n, "promise")),
            };
            parts.push(part("bad", title, self.unjudged()));
        } else if counts.not_judged > 0 {
            let title = format!("Not judged: {}", counted(counts.not_judged, "promise"));
            parts.push(part("soft", title, self.unjudged()));
        }
        if counts.held > 0 {
            let title = format!("Held: {}", counted(counts.held, "promise"));
            parts.push(part("good", title, Vec::new()));
        }
        parts
    }

    /// Promises that were not judged: one line per run and reason. Runs with the same promises for the same reason are combined.
    pub fn unjudged(&self) -> Vec<String> {
        let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
        let all = self.promises.iter();
        for promise in all.filter(|p| p.judgement == Judgement::NotJudged) {
            let why = promise.because.as_deref().unwrap_or_default();
            let known = groups
                .iter_mut()
                .find(|group| (group.0, group.1) == (&*promise.variant, why));
            match known {
                Some(group) => group.2.push(&promise.what),
                None => groups.push((&promise.variant, why, vec![&promise.what])),
            }
        }
        let mut lines: Vec<(Vec<&str>, &str, Vec<&str>)> = Vec::new();
        for (variant, why, what) in groups {
            let known = lines
                .iter_mut()
                .find(|line| line.1 == why && line.2 == what);
            match known {
                Some(line) => line.0.push(variant),
                None => lines.push((vec![variant], why, what)),
            }
        }
        let text = |(variants, why, what): (Vec<&str>, &str, Vec<&str>)| {
            let runs = prefix(&named(&variants, ", "));
            format!("{runs}{}, because {why}", named(&what, "; "))
        };
        lines.into_iter().map(text).collect()
    }
}

/// The first names; the others are counted.
fn named(all: &[&str], between: &str) -> String {
    const NAMED: usize = 3;
    let mut text = all[..all.len().min(NAMED)].join(between);
    if all.len() > NAMED {
        text += &format!(" and {} more", all.len() - NAMED);
    }
    text
}

/// A part of the head.
struct Part {
    class: &'static str,
    title: String,
    lines: Vec<String>,
}

fn prefix(variant: &str) -> String {
    match variant {
        "" => String::new(),
        name => format!("{name}: "),
    }
}

fn line(promise: &Promise) -> String {
    let why = promise.because.as_ref();
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    format!("{}{}{why}", prefix(&promise.variant), promise.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Verdict {
        let why = "`hog` has no limit";
        Verdict::of(vec![
            Promise::judged("a", "flow loop: 0 late of 50, 0 allowed", true),
            Promise::judged("b", "flow loop: 14 late of 50, 0 allowed", false),
            Promise::judged("c", "flow loop: 50 late of 50, 0 allowed", false).if_expected(true),
            Promise::judged("c", "cache miss of sensor: within its bound", true).if_expected(true),
            Promise::not_judged("b", "bound of cache miss of sensor", why),
            Promise::not_judged("b", "bound of message of sensor", why),
            Promise::not_judged("b", "bound of write-back of sensor", why),
            Promise::not_judged("b", "bound of message of actuator", why),
            Promise::not_judged("c", "bound of message of actuator", why),
            Promise::not_judged("d", "bound of message of actuator", why),
            Promise::not_judged(
                "d",
                "task sensor",
                "its <task> has no cost, from which `check` would bound it",
            ),
        ])
    }

    #[test]
    fn the_head_names_what_failed_first() {
        let happened = ["b: tile 3, sensor: stopped: panic".to_owned()];
        insta::assert_snapshot!(all().head(&happened), @r"
        FAILED: 1 promise
          b: flow loop: 14 late of 50, 0 allowed
        Happened:
          b: tile 3, sensor: stopped: panic
        Failed as expected: 1 promise
          c: flow loop: 50 late of 50, 0 allowed
        Not judged: 7 promises
          b: bound of cache miss of sensor; bound of message of sensor; bound of write-back of sensor and 1 more, because `hog` has no limit
          c, d: bound of message of actuator, because `hog` has no limit
          d: task sensor, because its <task> has no cost, from which `check` would bound it
        Held: 2 promises
        ");
        let page = all().markup(&happened).into_string();
        for text in [
            "class=\"bad\">FAILED",
            "class=\"good\">Held: 2",
            "<td>a</td>",
        ] {
            assert!(page.contains(text), "{text} in {page}");
        }
    }

    #[test]
    fn what_was_expected_and_what_nobody_judged_is_neither_good_nor_bad() {
        let judged = |held| Promise::judged("v", "w", held);
        let unjudged = || Promise::not_judged("v", "w", "r");
        let cases = [
            (vec![], Outcome::NothingJudged),
            (vec![unjudged()], Outcome::NothingJudged),
            (
                vec![judged(false).if_expected(true)],
                Outcome::NothingJudged,
            ),
            (vec![judged(true), unjudged()], Outcome::Held),
            (vec![judged(true), judged(false)], Outcome::Failed),
            (vec![unjudged(), judged(false)], Outcome::Failed),
            (vec![judged(true).unless_held("r")], Outcome::NothingJudged),
            (vec![judged(false).unless_held("r")], Outcome::Failed),
        ];
        for (promises, outcome) in cases {
            let verdict = Verdict::of(promises);
            assert_eq!(verdict.outcome(), outcome, "{verdict:?}");
            let broken = u8::from(outcome == Outcome::Failed) * exit::PROMISE_BROKEN;
            assert_eq!((verdict.code(false), verdict.code(true)), (broken, 4));
        }
    }

    #[test]
    fn nothing_judged_says_so() {
        assert_eq!(
            Verdict::default().head(&[]),
            "Nothing was judged: there are no promises.\n"
        );
        let why = Verdict::of(vec![Promise::not_judged(
            "",
            "flow loop",
            "it has no samples",
        )]);
        assert_eq!(
            why.head(&[]),
            "Nothing was judged, of 1 promise:\n  flow loop, because it has no samples\n"
        );
    }

    #[test]
    fn what_failed_as_expected_was_judged() {
        let verdict = Verdict::of(vec![Promise::judged("v", "w", false).if_expected(true)]);
        assert_eq!(verdict.head(&[]), "Failed as expected: 1 promise\n  v: w\n");
    }

    #[test]
    fn a_file_cannot_claim_another_outcome() {
        let text = serde_json::to_string(&all()).expect("writes");
        assert!(
            text.starts_with("{\"outcome\":\"failed\",\"promises\":["),
            "{text}"
        );
        let lie = text.replace("\"outcome\":\"failed\"", "\"outcome\":\"held\"");
        let back: Verdict = serde_json::from_str(&lie).expect("reads");
        assert_eq!(back, all());
        assert_eq!(back.outcome(), Outcome::Failed);
    }
}
