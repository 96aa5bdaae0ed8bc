//! The law of the inventory: sizes of tables on the page of payers are those of the code.
//!
//! Why it exists: readers judge by that page who can fill a table, but a change of a number in the code does not change the page. What it
//! deliberately does not know: sizes that the compiler computes (the costs of nodes and places) or that follow from a description.

use super::Violation;
use crate::tree::Tree;

/// The page.
const PAGE: &str = "docs/reference/resources.md";
/// The file that defines a constant, its name, and the page's words for its value (`{}`).
type Fact = (&'static str, &'static str, &'static str);

const TILEMUX: &str = "abi/src/tilemux.rs";
const SYSCALL: &str = "abi/src/syscall.rs";
const SPACE: &str = "software/tiled/capabilities/src/space.rs";
const ARCH: &str = "software/tiled/kernel/src/arch.rs";
const LAYOUT: &str = "software/tiled/services/filesystem/src/layout.rs";
const SERVER: &str = "software/lib/src/server.rs";
const STACK: &str = "software/tiled/services/network/src/stack.rs";

const FACTS: &[Fact] = &[
    (SPACE, "NODES_MAX", "| what purses hold, at most {} |"),
    (SPACE, "NODES_MAX", "| {} capabilities |"),
    (TILEMUX, "ACTIVITIES", "| {}, as TileMux has places |"),
    (
        TILEMUX,
        "ACTIVITIES",
        "no tables that grow: {} activities for each tile",
    ),
    (TILEMUX, "ACTIVITIES", "| {} activities on a tile |"),
    (
        TILEMUX,
        "PRINT_TEXT",
        "| one text ({} bytes) with its writer's name",
    ),
    (
        TILEMUX,
        "PRINT_REPLY_SLOTS",
        "a place for an answer of a pager to each ({} slots)",
    ),
    (
        "abi/src/dtu.rs",
        "AWAITED_COUNT",
        "(`AWAITED`, {} registers of a page)",
    ),
    (
        "abi/src/memory_map.rs",
        "PMP_WINDOWS",
        "| windows of each tile | {} |",
    ),
    (
        "abi/src/memory_map.rs",
        "PMP_WINDOWS",
        "| {} windows of a tile |",
    ),
    (
        "software/tiled/kernel/src/system/activities.rs",
        "NUMBERS_END",
        "| one for each number that was ever used, of {} |",
    ),
    (
        ARCH,
        "CALL_SLOTS",
        "| slots for calls | {} for each priority |",
    ),
    (
        "software/tiled/kernel/src/console.rs",
        "PIECE",
        "written, {} bytes in each piece of work",
    ),
    (
        "software/tiled/kernel/src/system/clearing.rs",
        "RANGES_MAX",
        "| ranges of used memory | {} |",
    ),
    (SYSCALL, "SELECTORS", "| {} selectors of an activity |"),
    (SYSCALL, "PIECES_MAX", "| {} pieces cut out of one memory |"),
    (SYSCALL, "SERVICES_MAX", "| {} services of an application |"),
    (SYSCALL, "SHARED_MAX", "its exports, and {} imports |"),
    (
        SERVER,
        "CLIENTS",
        "| gates, accounts of clients | {} clients for each gate |",
    ),
    (SERVER, "CLIENTS", "| {} sessions at a gate |"),
    (
        LAYOUT,
        "LOG_BLOCKS",
        "| files: changed blocks of one operation | {} |",
    ),
    (
        LAYOUT,
        "FOLDER_BLOCKS",
        "has no owner and has at most {} blocks",
    ),
    (
        STACK,
        "SOCKETS",
        "closed ones that linger, connections being opened | {}, ",
    ),
    (STACK, "ORPHANS", "connections being opened | 32, {} and "),
    (
        "software/tiled/services/network/src/stack/backlog.rs",
        "PENDING",
        " and {}, or fewer if memory does not suffice |",
    ),
    (STACK, "SOCKETS", "| {} sockets of a network service |"),
    (
        "software/tiled/resmgr/src/services.rs",
        "OFFERS",
        "it accepts at most {} offers from it",
    ),
];

/// The value of a constant that is written as one number.
fn value(text: &str, name: &str) -> Option<(usize, u64)> {
    let begin = format!("const {name}: ");
    text.lines().enumerate().find_map(|(at, line)| {
        let line = line.trim_start();
        let rest = line.strip_prefix("pub ").unwrap_or(line);
        let rest = rest.strip_prefix("pub(super) ").unwrap_or(rest);
        let (_, number) = rest.strip_prefix(&begin)?.split_once(" = ")?;
        let number = number.strip_suffix(';')?.replace('_', "");
        let parsed = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => number.parse(),
        };
        Some((at + 1, parsed.ok()?))
    })
}

/// A number as pages write it: numbers of five or more digits are in groups of three.
fn written(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Sizes on the page are those of the code.
pub fn inventory(tree: &Tree) -> Vec<Violation> {
    compare(tree, FACTS)
}

fn compare(tree: &Tree, facts: &[Fact]) -> Vec<Violation> {
    let text = |path: &str| tree.files.iter().find(|file| file.path == path);
    let Some(page) = text(PAGE) else {
        return vec![Violation::new(
            PAGE,
            0,
            "the page that lists every table is missing",
        )];
    };
    let words: Vec<&str> = page.text.split_whitespace().collect();
    let page = words.join(" ");
    let mut found = Vec::new();
    for &(path, name, phrase) in facts {
        match text(path).and_then(|file| value(&file.text, name)) {
            None => found.push(Violation::new(
                path,
                0,
                format!("{PAGE} names the size {name}, and no constant of this name with one number is here: change the law (xtask, inventory.rs) with the code"),
            )),
            Some((line, value)) => {
                let phrase = phrase.replace("{}", &written(value));
                if !page.contains(phrase.trim()) {
                    found.push(Violation::new(
                        path,
                        line,
                        format!("{name} is {}, and {PAGE} does not say \"{}\"", written(value), phrase.trim()),
                    ));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::File;

    fn lines(code: &str, page: &str) -> Vec<usize> {
        let tree = Tree {
            files: vec![File::new("a.rs", code), File::new(PAGE, page)],
            ..Tree::default()
        };
        let facts: &[Fact] = &[("a.rs", "MOST", "| at most {} nodes |")];
        compare(&tree, facts)
            .iter()
            .map(|found| found.line)
            .collect()
    }

    #[test]
    fn a_size_that_the_page_does_not_say_is_found() {
        let page = "| nodes | at most\n65 000 nodes | all |";
        for code in [
            "const MOST: u16 = 65_000;",
            "x\n    pub const MOST: usize = 0xFDE8;",
        ] {
            assert!(lines(code, page).is_empty(), "{code}");
        }
        assert_eq!(lines("\n\npub(super) const MOST: u16 = 64_000;", page), [3]);
        // A constant that no longer exists, or is computed.
        assert_eq!(lines("const MOST: u16 = 65 * 1000;", page), [0]);
        assert_eq!(lines("const LEAST: u16 = 65_000;", page), [0]);
    }

    #[test]
    fn numbers_are_written_as_on_pages() {
        let all = [64, 1024, 32_768, 1_000_000].map(written);
        assert_eq!(all, ["64", "1024", "32 768", "1 000 000"]);
    }
}
