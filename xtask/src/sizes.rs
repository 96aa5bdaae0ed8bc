//! The size of each part, and its share of `unsafe`.
//!
//! Why it exists: the kernel and TileMux are trusted, and their size is a promise (docs/promises.md). What it
//! deliberately does not know: a good size.

use crate::tidy::source::{code_lines, strip, unsafe_lines};
use crate::tree::{self, File, Package};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Default)]
struct Size {
    files: usize,
    code: usize,
    tests: usize,
    unsafe_lines: usize,
}

/// Part that a file belongs to: its crate below `software`, two levels of folders below `tests`, otherwise one.
fn part(path: &str) -> String {
    let pieces: Vec<&str> = path.split('/').collect();
    let source = pieces.iter().position(|piece| *piece == "src");
    let depth = match pieces.first() {
        Some(&"software") => source.unwrap_or(pieces.len() - 1),
        Some(&"tests") => 2,
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
    let folders = ["/tests/", "/benches/"];
    let in_tests =
        folders.iter().any(|folder| file.path.contains(folder)) || file.path.ends_with("/tests.rs");
    if in_tests {
        size.tests += code_lines(&file.text);
    } else {
        size.code += code_lines(code);
        size.tests += code_lines(tests);
        size.unsafe_lines += unsafe_lines(&strip(code));
    }
}

/// The trusted programs: everything that they link is trusted, too.
const TRUSTED: [&str; 2] = ["software/tiled/kernel", "software/tiled/tilemux"];
/// Not counted with them: layouts and numbers that all software shares, and collections.
const SHARED: [&str; 2] = ["abi", "software/lib/common"];
/// Maximum lines of code of the trusted parts.
const CODE_MAX: usize = 10_500;
/// Less than this share of them is unsafe, in percent.
const UNSAFE_MAX: usize = 3;

/// Folders of all packages of this repository that the trusted programs link, including themselves.
fn linked(packages: &[Package]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = TRUSTED.map(str::to_owned).into();
    while let Some(folder) = open.pop() {
        if SHARED.contains(&folder.as_str()) || found.contains(&folder) {
            continue;
        }
        let package = packages.iter().find(|package| package.folder == folder);
        open.extend(
            package
                .into_iter()
                .flat_map(|package| package.links.clone()),
        );
        found.insert(folder);
    }
    found
}

fn row(part: &str, size: &Size) {
    println!(
        "{part:<34} {:>6} {:>8} {:>8} {:>8} {:>7.1}%",
        size.files,
        size.code,
        size.tests,
        size.unsafe_lines,
        100.0 * size.unsafe_lines as f64 / size.code.max(1) as f64
    );
}

fn trusted(sizes: &BTreeMap<String, Size>, linked: &BTreeSet<String>) -> Size {
    let parts = linked.iter().filter_map(|part| sizes.get(part));
    parts.fold(Size::default(), |sum, part| Size {
        files: sum.files + part.files,
        code: sum.code + part.code,
        tests: sum.tests + part.tests,
        unsafe_lines: sum.unsafe_lines + part.unsafe_lines,
    })
}

fn is_small(size: &Size) -> bool {
    size.code <= CODE_MAX && 100 * size.unsafe_lines < UNSAFE_MAX * size.code
}

/// Prints the table; returns whether the trusted parts are as small as promised.
pub fn run(root: &Path) -> Result<bool, String> {
    let tree = tree::read(root)?;
    let mut sizes = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.ending() == "rs") {
        add(&mut sizes, file);
    }
    println!(
        "{:<34} {:>6} {:>8} {:>8} {:>8} {:>8}",
        "part", "files", "code", "tests", "unsafe", "share"
    );
    for (part, size) in &sizes {
        row(part, size);
    }
    let linked = linked(&tree.packages);
    let together = trusted(&sizes, &linked);
    row("kernel and TileMux together", &together);
    println!(
        "code and tests in lines that are neither blank nor comment; unsafe: lines inside unsafe blocks"
    );
    println!(
        "kernel and TileMux together, with all that they link but {}: {}; at most {CODE_MAX} lines, less than {UNSAFE_MAX} % of them \
         unsafe, are promised",
        SHARED.join(" and "),
        linked.into_iter().collect::<Vec<_>>().join(", ")
    );
    Ok(is_small(&together))
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
        assert_eq!(
            part("software/hal/network/src/lib.rs"),
            "software/hal/network"
        );
        assert_eq!(part("machine/src/dtu/mod.rs"), "machine");
    }

    #[test]
    fn tests_beside_the_code_do_not_count_as_code() {
        let mut sizes = BTreeMap::new();
        let text = "//! doc\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        add(&mut sizes, &File::new("abi/src/lib.rs", text));
        assert_eq!((sizes["abi"].code, sizes["abi"].tests), (1, 4));
        add(&mut sizes, &File::new("abi/src/tests.rs", "fn c() {}\n"));
        assert_eq!((sizes["abi"].code, sizes["abi"].tests), (1, 5));
    }

    #[test]
    fn the_trusted_parts_are_judged_together() {
        let size = |code, unsafe_lines| Size {
            code,
            unsafe_lines,
            ..Size::default()
        };
        let sizes = BTreeMap::from([
            ("software/tiled/tilemux".to_owned(), size(1000, 100)),
            ("software/tiled/kernel".to_owned(), size(4000, 20)),
            ("software/hal".to_owned(), size(500, 50)),
            ("machine".to_owned(), size(20_000, 0)),
        ]);
        let package = |folder: &str, links: &[&str]| Package {
            name: folder.to_owned(),
            folder: folder.to_owned(),
            uses: vec![],
            links: links.iter().map(|link| (*link).to_owned()).collect(),
            host_tests: false,
            fuzz: false,
            guided: Vec::new(),
        };
        // A package that is linked indirectly is trusted, too; packages that everybody shares are not counted.
        let packages = [
            package("software/tiled/kernel", &["abi", "software/loader"]),
            package("software/loader", &["software/hal"]),
            package("software/hal", &[]),
            package("machine", &[]),
        ];
        let linked = linked(&packages);
        assert!(linked.contains("software/hal") && !linked.contains("abi"));
        let together = trusted(&sizes, &linked);
        assert_eq!((together.code, together.unsafe_lines), (5500, 170));
        assert!(!is_small(&together) && is_small(&size(5500, 160)));
        assert!(is_small(&size(CODE_MAX, 0)) && !is_small(&size(CODE_MAX + 1, 0)));
        assert!(!is_small(&size(1000, 30)));
    }
}
