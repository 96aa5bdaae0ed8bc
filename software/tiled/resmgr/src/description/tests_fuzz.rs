//! Damaged descriptions: the manager reads each or refuses it with a line, and it can read again every
//! part that it hands on.

use super::tests::TEXT;
use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::string::String;
use std::vec::Vec;

/// Pieces of the text: tags, names, values and the text between them.
fn pieces() -> Vec<&'static str> {
    TEXT.split_inclusive(['<', '>', '"', '=', ' ', '/'])
        .collect()
}

#[derive(Clone, Debug)]
enum Damage {
    Removes(usize),
    Doubles(usize),
    Swaps(usize, usize),
    Replaces(usize, String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0usize..1000;
    let values = [
        "18446744073709551615",
        "18446744073709551616B",
        "-1",
        "",
        "unlimited",
        "\u{e9}",
        "&#0;",
        "&lt;",
        "99999999999999s",
        "0B",
        "sub/hog",
        "../x",
        "controller\"",
        "300",
        "65536",
        "&quot;/><import app=&quot;x",
        "a&amp;b",
        "<manager name=\"a\"/>",
    ];
    prop_oneof![
        1 => at().prop_map(Damage::Removes),
        1 => at().prop_map(Damage::Doubles),
        1 => (at(), at()).prop_map(|(a, b)| Damage::Swaps(a, b)),
        3 => (at(), prop::sample::select(values.to_vec())).prop_map(|(at, v)| Damage::Replaces(at, v.to_string() + "\"")),
        1 => (at(), ".{0,12}").prop_map(|(at, v)| Damage::Replaces(at, v)),
    ]
}

fn damaged(all: &[Damage]) -> String {
    let mut pieces: Vec<String> = pieces().into_iter().map(String::from).collect();
    for one in all {
        let count = pieces.len().max(1);
        match one {
            Damage::Removes(at) if *at % count < pieces.len() => drop(pieces.remove(at % count)),
            Damage::Doubles(at) => pieces.insert(at % count, pieces[at % count].clone()),
            Damage::Swaps(a, b) => pieces.swap(a % count, b % count),
            Damage::Replaces(at, with) => pieces[at % count].clone_from(with),
            Damage::Removes(_) => {}
        }
    }
    pieces.concat()
}

/// The manager reads a text or refuses it. It can read each part that it hands on.
fn holds(text: &str) -> TestCaseResult {
    match read(text) {
        Err(mistake) => prop_assert!(
            mistake.line as usize <= text.lines().count() + 1,
            "{}",
            mistake
        ),
        Ok(system) => {
            for manager in &system.managers {
                // Selectors as the manager above assigns them.
                let selectors = |count: usize| (0..count as u16).collect::<Vec<u16>>();
                let (modules, imports) = (manager.modules.len(), manager.imports.len());
                let part = part(manager, &selectors(modules), &selectors(imports));
                let below = read(&part);
                prop_assert!(below.is_ok(), "{:?}\n{}", below.err(), part);
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn damaged_descriptions_are_read_or_refused(all in prop::collection::vec(damage(), 1..8)) {
        holds(&damaged(&all))?;
    }
}

#[test]
fn guided_description() {
    bulkhead_fuzz::target("description", |bytes| {
        holds(&damaged(&bytes.story(&damage(), 40)))
    });
}

/// Here the tool writes the text itself.
#[test]
fn guided_description_text() {
    bulkhead_fuzz::text("description-text", |bytes| {
        core::str::from_utf8(bytes).map_or(Ok(()), holds)
    });
}
