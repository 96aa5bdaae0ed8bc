//! The reference page of the description: its tables are those of the language, and its example is valid.
//!
//! `BLESS=1 cargo test -p bulkhead-model --test reference` rewrites the tables after a change of the language.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use bulkhead_model::grammar::{self, ElementRule, Kind};
use bulkhead_model::units::Size;
use bulkhead_model::{LoadOptions, load_system_text};

const MARK: &str = "<!-- generated from model/src/grammar: BLESS=1 cargo test -p bulkhead-model --test reference -->\n";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/description.md")
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Name => "name".into(),
        Kind::Text { .. } => "text".into(),
        Kind::Integer { min, max: u64::MAX } => format!("number from {min}"),
        Kind::Integer { min, max } => format!("{min} to {max}"),
        Kind::Boolean => "`true`, `false`".into(),
        Kind::Choice(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Kind::Size { min, max } => format!("memory, {} to {}", Size(min), Size(max)),
        Kind::Rate => "rate".into(),
        Kind::RateOrNone => "rate or `none`".into(),
        Kind::Time => "time".into(),
        Kind::Span => "time or 0".into(),
        Kind::Frequency => "frequency".into(),
        Kind::Drift { max } => format!("-{max}ppm to {max}ppm"),
        Kind::Cost => "time or cycles".into(),
        Kind::Quota => "time or percentage".into(),
        Kind::Credits { max } => format!("1 to {max}, or `unlimited`"),
    }
}

fn tables(title: &str, rules: &[ElementRule], out: &mut String) {
    writeln!(out, "\n## {title}").unwrap();
    for rule in rules {
        writeln!(out, "\n### `<{}>`\n\n{}", rule.name, escape(rule.about)).unwrap();
        if !rule.children.is_empty() {
            let inside: Vec<String> = rule
                .children
                .iter()
                .map(|child| match (child.min, child.max) {
                    (0, 1) => format!("`{}` (at most once)", child.name),
                    (1, 1) => format!("`{}` (once)", child.name),
                    (1, _) => format!("`{}` (at least once)", child.name),
                    _ => format!("`{}`", child.name),
                })
                .collect();
            writeln!(out, "Inside: {}.", inside.join(", ")).unwrap();
        }
        out.push_str("\n| attribute | value | default | meaning |\n|---|---|---|---|\n");
        for attribute in rule.attributes {
            let default = match (attribute.required, attribute.default) {
                (true, _) => "**required**".to_owned(),
                (false, Some(value)) => format!("`{value}`"),
                (false, None) => String::new(),
            };
            let (name, kind, about) = (
                attribute.name,
                kind(attribute.kind),
                escape(attribute.about),
            );
            writeln!(out, "| `{name}` | {kind} | {default} | {about} |").unwrap();
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('<', "&lt;").replace('|', "\\|")
}

#[test]
fn the_tables_are_those_of_the_language() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (prose, found) = text.split_once(MARK).expect("the page has the mark");
    let mut expected = String::new();
    tables("Elements of systems", grammar::SYSTEM, &mut expected);
    tables("Elements of task systems", grammar::TASKS, &mut expected);
    tables("Elements of platforms", grammar::PLATFORM, &mut expected);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(page(), format!("{prose}{MARK}{expected}")).unwrap();
    } else {
        assert_eq!(found, expected, "BLESS=1 writes the tables anew");
    }
}

#[test]
fn the_example_is_valid() {
    let text = std::fs::read_to_string(page()).unwrap();
    let example = text
        .split("```xml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let system = load_system_text("example", example, &LoadOptions::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(system.runs().len(), 3);
}
