//! The law of payers: every table of the trusted parts names the payer of its entries.
//!
//! Why it exists: a table that a client can fill without paying stops all others. What it deliberately does not know: whether the type
//! tells the truth; docs/reference/resources.md says how each payer is charged.

use super::Violation;
use super::source::strip;
use crate::tree::Tree;

/// The places where the law holds: folders and files.
const PLACES: [&str; 10] = [
    "software/lib/common/src/",
    "software/lib/src/server.rs",
    "software/tiled/capabilities/src/",
    "software/tiled/kernel/src/",
    "software/tiled/resmgr/src/",
    "software/tiled/services/filesystem/src/",
    "software/tiled/services/network/src/",
    "software/tiled/services/pager/src/",
    "software/tiled/services/src/",
    "software/tiled/tilemux/src/",
];
/// Data that is read once and only borrowed afterwards, so nobody can add to it: a manager's description.
const READ_ONCE: &str = "software/tiled/resmgr/src/description";
/// The types that name payers.
const TYPES: &str = "software/lib/common/src/payer.rs";
/// Types that grow.
const GROWING: [&str; 8] = [
    "Vec",
    "VecDeque",
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "LinkedList",
    "String",
    "HashMap",
];
/// Types that name a payer.
const PAID: [&str; 5] = ["Paid", "PaidList", "PaidQueue", "Reserved", "Fixed"];

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The words of a text with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    let starts =
        (0..bytes.len()).filter(|&i| is_word(bytes[i]) && (i == 0 || !is_word(bytes[i - 1])));
    starts.map(|start| {
        let length = bytes[start..].iter().take_while(|b| is_word(**b)).count();
        (start, &text[start..start + length])
    })
}

/// The body of a type that begins at a place: from its first bracket to the closing one.
fn body(text: &str, from: usize) -> Option<(usize, usize)> {
    let open = from + text[from..].find(['{', '(', ';'])?;
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b';' if depth == 0 => return None,
            b'{' | b'(' => depth += 1,
            b'}' | b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some((open, at));
                }
            }
            _ => {}
        }
    }
    None
}

/// Tables of the state of trusted parts have types that name their payers.
pub fn payers(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &tree.files {
        let is_trusted = PLACES.iter().any(|place| file.path.starts_with(place));
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let is_test = file.path.contains("/tests/") || name.starts_with("tests");
        let is_state = is_trusted && !file.path.starts_with(READ_ONCE);
        if !is_state || is_test || file.ending() != "rs" || file.path == TYPES {
            continue;
        }
        let text = strip(&file.text);
        let text = &text[..text.find("#[cfg(test)]\nmod ").unwrap_or(text.len())];
        let types = words(text).filter(|(_, word)| matches!(*word, "struct" | "enum"));
        for (start, end) in types.filter_map(|(at, _)| body(text, at)) {
            let inside = &text[start..end];
            for (at, name) in words(inside).filter(|(_, name)| GROWING.contains(name)) {
                // A field takes one line, and its payer comes before the growing part.
                let field = inside[..at].rfind('\n').map_or(0, |line| line + 1);
                if words(&inside[field..at]).any(|(_, word)| PAID.contains(&word)) {
                    continue;
                }
                let line = 1 + text[..start + at].matches('\n').count();
                found.push(Violation::new(
                    &file.path,
                    line,
                    format!(
                        "{name}: who pays for what is in it? Use Fixed, Reserved or Paid of bulkhead_common::payer, and add the table to docs/reference/resources.md"
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
    use crate::tree::File;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let files = vec![File::new(path, text)];
        let tree = Tree {
            files,
            ..Tree::default()
        };
        payers(&tree).iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_table_without_a_payer_is_found() {
        let text = "struct A {\n    a: u8,\n    events: VecDeque<(u16, Event)>,\n    b: Paid<Creator, BTreeMap<u16, A>>,\n}\n\
                    struct B(Vec<u8>);\nenum C {\n    D { all: [Vec<u8>; 3] },\n}\nfn f(a: Vec<u8>) {}\nstruct E;\n";
        let path = "software/tiled/kernel/src/a.rs";
        assert_eq!(lines(path, text), [3, 6, 8]);
        assert_eq!(lines("software/tiled/services/src/a.rs", text), [3, 6, 8]);
        assert!(lines("software/tiled/kernel/src/tests/a.rs", text).is_empty());
        assert!(lines("software/tiled/services/pager/src/tests_fuzz.rs", text).is_empty());
        assert!(lines("machine/src/a.rs", text).is_empty());
        assert_eq!(lines("software/tiled/resmgr/src/start.rs", text), [3, 6, 8]);
        assert!(lines("software/tiled/resmgr/src/description.rs", text).is_empty());
        let test = "#[cfg(test)]\nmod tests { struct A { a: Vec<u8> } }";
        assert!(lines(path, test).is_empty());
    }
}
