//! Laws about documents and descriptions: the change log, links, the book's contents, bad examples.
//!
//! What it deliberately does not know: code (see `laws`).

use super::Violation;
use crate::tree::{File, Tree};
use std::collections::BTreeSet;

/// Each file in `catalog/invalid` carries its expected message in a comment `expect: ...`.
pub fn invalid_descriptions(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|file| file.path.starts_with("catalog/invalid/") && file.ending() == "xml")
        .filter(|file| !file.text.to_lowercase().contains("expect"))
        .map(|file| {
            Violation::new(
                &file.path,
                0,
                "no expectation; add a comment with expect: and the message",
            )
        })
        .collect()
}

/// The change log exists and its first section has entries.
pub fn change_log(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.files.iter().find(|file| file.path == "CHANGELOG.md") else {
        return vec![Violation::new("CHANGELOG.md", 0, "missing")];
    };
    let mut sections = file.text.split("\n## ").skip(1);
    let full = sections
        .next()
        .is_some_and(|section| section.lines().any(|line| line.starts_with("- ")));
    if full {
        Vec::new()
    } else {
        vec![Violation::new(
            &file.path,
            0,
            "the newest section has no entry; say what changes for a user",
        )]
    }
}

/// Targets of Markdown links on a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let rest = &line[at + 2..];
        rest.find(')').map(|end| &rest[..end])
    })
}

/// Joins a relative link to the folder of the page that holds it.
fn resolve(page: &str, target: &str) -> String {
    let mut pieces: Vec<&str> = page.split('/').collect();
    pieces.pop();
    for piece in target.split('/') {
        match piece {
            "." | "" => {}
            ".." => {
                pieces.pop();
            }
            other => pieces.push(other),
        }
    }
    pieces.join("/")
}

fn markdown(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.ending() == "md")
}

/// The book's name of a heading in links: its words in small letters, joined by hyphens, without other marks.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || matches!(c, '_' | '-') => Some(c.to_ascii_lowercase()),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.collect()
}

/// The anchors of a page: headings outside of blocks of code.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let outside = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    let headings = outside.filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

/// Relative links lead somewhere, to a heading if they name one, and those of the book into the book; blocks of code end.
pub fn links(tree: &Tree) -> Vec<Violation> {
    let mut places: BTreeSet<String> = BTreeSet::new();
    for file in &tree.files {
        let mut path = file.path.as_str();
        places.insert(path.to_owned());
        while let Some((folder, _)) = path.rsplit_once('/') {
            places.insert(folder.to_owned());
            path = folder;
        }
    }
    let mut found = Vec::new();
    for file in markdown(tree) {
        let fences = file.text.lines().map(str::trim_start);
        let fences = fences.filter(|line| line.starts_with("```"));
        if fences.count() % 2 != 0 {
            found.push(Violation::new(
                &file.path,
                0,
                "a block of code does not end",
            ));
        }
        for (index, line) in file.text.lines().enumerate() {
            for target in targets(line) {
                let (target, heading) = target.split_once('#').unwrap_or((target, ""));
                if target.contains("://") || target.ends_with(".png") {
                    continue;
                }
                let page = match target {
                    "" => file.path.clone(),
                    target => resolve(&file.path, target),
                };
                let page = markdown(tree).find(|one| one.path == page);
                if let Some(page) = page.filter(|_| !heading.is_empty())
                    && !anchors(&page.text).contains(heading)
                {
                    found.push(Violation::new(
                        &file.path,
                        index + 1,
                        format!("{} has no heading #{heading}", page.path),
                    ));
                }
                if target.is_empty() {
                    continue;
                }
                let place = resolve(&file.path, target);
                let message = match places.contains(&place) {
                    false => format!("the link to {target} leads nowhere"),
                    true if file.path.starts_with("docs/") && !place.starts_with("docs/") => {
                        format!("the book does not contain {target}; name {place} without a link")
                    }
                    true => continue,
                };
                found.push(Violation::new(&file.path, index + 1, message));
            }
        }
    }
    found
}

/// The book's contents list every page of the book.
pub fn summary_lists_pages(tree: &Tree) -> Vec<Violation> {
    let Some(summary) = tree
        .files
        .iter()
        .find(|file| file.path == "docs/SUMMARY.md")
    else {
        return vec![Violation::new("docs/SUMMARY.md", 0, "missing")];
    };
    let listed: BTreeSet<String> = summary
        .text
        .lines()
        .flat_map(targets)
        .map(|target| resolve("docs/SUMMARY.md", target))
        .collect();
    markdown(tree)
        .filter(|file| file.path.starts_with("docs/") && file.path != "docs/SUMMARY.md")
        .filter(|file| !listed.contains(&file.path))
        .map(|file| Violation::new(&file.path, 0, "not in docs/SUMMARY.md"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree {
            files: files
                .iter()
                .map(|(path, text)| File::new(path, text))
                .collect(),
            packages: Vec::new(),
        }
    }

    #[test]
    fn a_bad_description_without_expectation_is_found() {
        assert_eq!(
            invalid_descriptions(&tree(&[("catalog/invalid/a.xml", "<system/>")])).len(),
            1
        );
        assert!(
            invalid_descriptions(&tree(&[("catalog/invalid/a.xml", "<!-- expect: x -->")]))
                .is_empty()
        );
    }

    #[test]
    fn an_empty_change_log_is_found() {
        assert_eq!(change_log(&tree(&[])).len(), 1);
        assert_eq!(
            change_log(&tree(&[("CHANGELOG.md", "# Changes\n\n## Unreleased\n")])).len(),
            1
        );
        assert!(
            change_log(&tree(&[(
                "CHANGELOG.md",
                "# Changes\n\n## Unreleased\n\n- a\n"
            )]))
            .is_empty()
        );
    }

    #[test]
    fn a_dead_link_is_found() {
        let page = (
            "docs/a/b.md",
            "[x](../c.md) [y](https://example.org) [z](nowhere.md)",
        );
        let found = links(&tree(&[page, ("docs/c.md", "")]));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("nowhere.md"));
    }

    #[test]
    fn a_link_out_of_the_book_is_found() {
        let page = ("docs/a/b.md", "[x](../../lib.rs) [y](../c.md)");
        let readme = ("README.md", "[x](lib.rs)");
        let found = links(&tree(&[page, readme, ("docs/c.md", ""), ("lib.rs", "")]));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].message,
            "the book does not contain ../../lib.rs; name lib.rs without a link"
        );
    }

    #[test]
    fn a_heading_that_is_not_there_is_found() {
        let page = (
            "docs/a.md",
            "## Own part\n[1](b.md#two-words-here) [2](b.md#in-code) [3](#own-part) [4](#other) [5](b.md#none)",
        );
        let other = ("docs/b.md", "# Two words, `here`\n```\n# In code\n```\n");
        let found = links(&tree(&[page, other]));
        let all: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(
            all,
            [
                "docs/b.md has no heading #in-code",
                "docs/a.md has no heading #other",
                "docs/b.md has no heading #none"
            ]
        );
        let open = links(&tree(&[("docs/c.md", "```text\n")]));
        assert_eq!(open[0].message, "a block of code does not end");
    }

    #[test]
    fn a_page_outside_the_contents_is_found() {
        let files = [
            ("docs/SUMMARY.md", "- [A](a.md)"),
            ("docs/a.md", ""),
            ("docs/b.md", ""),
        ];
        let found = summary_lists_pages(&tree(&files));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "docs/b.md");
    }
}
