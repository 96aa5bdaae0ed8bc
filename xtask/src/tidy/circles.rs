//! The law that the top modules of a package do not use each other in circles.
//!
//! Why it exists: no part of a circle can be read, tested or replaced alone. What it deliberately does not know: Rust; it reads
//! `crate::name` as text, which is how modules of a package name each other here. Circles below a top module are left to readers.

use super::Violation;
use super::source::strip;
use crate::tree::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Known circles, each with its reason: a package's folder, and the modules of the circle.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "software/lib",
        &["gate", "syscall"],
        "a call is a message over a gate, and a gate asks the kernel who may send",
    ),
    (
        "software/tiled/capabilities",
        &["gate", "resource", "revoke", "space"],
        "one tree of nodes, seen from four sides",
    ),
];

/// Top module of a source file below `src/`; nothing for the package's root, its programs, and tests.
fn top(below: &str) -> Option<&str> {
    let first = below.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    let test = below
        .split('/')
        .any(|part| part.ends_with("tests.rs") || part == "tests" || part == "test_support.rs");
    (!test && !["lib", "main", "bin"].contains(&name)).then_some(name)
}

/// The names that directly follow `crate::`, also in braces.
fn used(text: &str) -> BTreeSet<&str> {
    let word = |text: &'_ str| -> usize {
        text.find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(text.len())
    };
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(inside) = rest.strip_prefix('{') else {
            found.insert(&rest[..word(rest)]);
            continue;
        };
        // Names directly in these braces, not those in nested braces.
        let (mut depth, mut fresh) = (0usize, true);
        for (index, c) in inside.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => fresh = true,
                c if fresh && (c.is_alphabetic() || c == '_') => {
                    found.insert(&inside[index..index + word(&inside[index..])]);
                    fresh = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// Text without the tests at its end.
fn without_tests(text: &str) -> &str {
    let end = text.find("#[cfg(test)]\nmod tests {");
    end.map_or(text, |at| &text[..at])
}

/// Everything that can be reached from `start`.
fn reach<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, start: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for &next in uses.get(at).into_iter().flatten() {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

/// Top modules of a package use each other in one direction.
pub fn circles(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &tree.packages {
        let prefix = format!("{}/src/", package.folder);
        let files: Vec<(&str, &File)> = tree
            .files
            .iter()
            .filter(|file| file.ending() == "rs")
            .filter_map(|file| Some((top(file.path.strip_prefix(&prefix)?)?, file)))
            .collect();
        let tops: BTreeSet<&str> = files.iter().map(|(top, _)| *top).collect();
        let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (top, file) in &files {
            let text = strip(without_tests(&file.text));
            for name in used(&text) {
                if let Some(other) = tops.get(name).filter(|other| *other != top) {
                    uses.entry(top).or_default().insert(other);
                }
            }
        }
        let mut told = BTreeSet::new();
        for &top in &tops {
            if told.contains(top) || !reach(&uses, top).contains(top) {
                continue;
            }
            let circle: Vec<&str> = reach(&uses, top)
                .into_iter()
                .filter(|other| reach(&uses, other).contains(top))
                .collect();
            told.extend(circle.iter().copied());
            let known = KNOWN
                .iter()
                .any(|(folder, modules, _)| *folder == package.folder && *modules == circle);
            if !known {
                found.push(Violation::new(
                    &format!("{}/src", package.folder),
                    0,
                    format!(
                        "the modules {} use each other in a circle; move what they share below them",
                        circle.join(", ")
                    ),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Package;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree {
            files: files
                .iter()
                .map(|(path, text)| File::new(path, text))
                .collect(),
            packages: vec![Package {
                name: "p".to_owned(),
                folder: "p".to_owned(),
                uses: Vec::new(),
                links: Vec::new(),
                host_tests: false,
                fuzz: false,
                guided: Vec::new(),
            }],
        }
    }

    #[test]
    fn a_circle_of_modules_is_found_once() {
        let found = circles(&tree(&[
            ("p/src/a.rs", "use crate::{c::x, b::{d, self}};"),
            ("p/src/b/mod.rs", "mod inner;"),
            ("p/src/b/inner.rs", "fn f() { crate::a::g() }"),
            ("p/src/c.rs", "use crate::Error;"),
        ]));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("a, b "), "{}", found[0].message);
    }

    #[test]
    fn tests_comments_and_roots_make_no_circle() {
        let found = circles(&tree(&[
            ("p/src/lib.rs", "use crate::a;"),
            ("p/src/a.rs", "use crate::b;\n// crate::a"),
            (
                "p/src/b.rs",
                "// crate::a\n#[cfg(test)]\nmod tests {\n use crate::a; }",
            ),
            ("p/src/b/tests.rs", "use crate::a;"),
        ]));
        assert!(found.is_empty());
    }
}
