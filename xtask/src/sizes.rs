//! How large each part is, and how much of it is `unsafe`.
//!
//! Why it exists: the kernel and TileMux are trusted, and their size is a promise (docs/promises.md). What it
//! deliberately does not know: what is a good size.

use crate::tidy::source::{code_lines, strip, unsafe_lines};
use crate::tree::{self, File};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Default)]
struct Size {
    files: usize,
    code: usize,
    tests: usize,
    unsafe_lines: usize,
}

/// Part that a file belongs to: two levels of folders below `software`, otherwise one.
fn part(path: &str) -> String {
    let pieces: Vec<&str> = path.split('/').collect();
    let depth = match pieces.first() {
        Some(&"software") if pieces.get(1) == Some(&"tiled") => 3,
        Some(&"software" | &"tests") => 2,
        _ => 1,
    };
    pieces[..depth.min(pieces.len().saturating_sub(1))].join("/")
}

fn add(sizes: &mut BTreeMap<String, Size>, file: &File) {
    let size = sizes.entry(part(&file.path)).or_default();
    size.files += 1;
    // Tests beside the code do not run on the chip.
    let (code, tests) = match file.text.find("#[cfg(test)]\nmod ") {
        Some(at) => file.text.split_at(at),
        None => (file.text.as_str(), ""),
    };
    let in_tests = file.path.contains("/tests/") || file.path.contains("/benches/");
    if in_tests {
        size.tests += code_lines(&file.text);
    } else {
        size.code += code_lines(code);
        size.tests += code_lines(tests);
        size.unsafe_lines += unsafe_lines(&strip(code));
    }
}

/// Prints the table.
pub fn run(root: &Path) -> Result<bool, String> {
    let tree = tree::read(root)?;
    let mut sizes = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.ending() == "rs") {
        add(&mut sizes, file);
    }
    println!(
        "{:<24} {:>6} {:>8} {:>8} {:>8} {:>8}",
        "part", "files", "code", "tests", "unsafe", "share"
    );
    for (part, size) in &sizes {
        println!(
            "{part:<24} {:>6} {:>8} {:>8} {:>8} {:>7.1}%",
            size.files,
            size.code,
            size.tests,
            size.unsafe_lines,
            100.0 * size.unsafe_lines as f64 / size.code.max(1) as f64
        );
    }
    println!(
        "code and tests in lines that are neither blank nor comment; unsafe: lines inside unsafe blocks"
    );
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_tiled_system_are_told_apart() {
        assert_eq!(
            part("software/tiled/kernel/src/main.rs"),
            "software/tiled/kernel"
        );
        assert_eq!(part("software/hal/src/lib.rs"), "software/hal");
        assert_eq!(part("machine/src/dtu/mod.rs"), "machine");
    }

    #[test]
    fn tests_beside_the_code_do_not_count_as_code() {
        let mut sizes = BTreeMap::new();
        let text = "//! doc\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        add(&mut sizes, &File::new("abi/src/lib.rs", text));
        assert_eq!((sizes["abi"].code, sizes["abi"].tests), (1, 4));
    }
}
