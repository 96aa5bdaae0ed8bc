//! Laws about code: the allowed dependencies between packages, the places where `unsafe` is allowed, the length
//! of a file.
//!
//! What it deliberately does not know: documents (see `documents`).

use super::Violation;
use super::source::{lines_with_word, strip};
use crate::tree::{File, Tree};

/// Longest source file in lines (blueprint, section 2).
const FILE_LENGTH: usize = 800;

/// Files outside `software/hal` and the `arch` modules that may hold `unsafe`, each with its reason.
const UNSAFE_FILES: &[(&str, &str)] = &[];

/// What the command and the Python package join.
const JOINED: &[&str] = &[
    "features",
    "model",
    "analysis",
    "report",
    "runner",
    "experiments",
];

/// The allowed dependencies: a folder (or anything below it), and the folders that it may depend on.
const MAY_USE: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("random", &[]),
    ("fuzz", &["random"]),
    // It has no code, only dependencies: whoever builds a program may ask the features that all programs ask.
    ("features", &[]),
    ("model", &["abi", "fuzz"]),
    ("machine", &["abi"]),
    ("analysis", &["abi", "model", "random"]),
    // Result types and what users see: no machine.
    ("report", &["model", "analysis"]),
    // Guided tests of hostile programs' requests need `fuzz`; nothing on the chip can link it (it needs the host's library).
    ("software", &["abi", "random", "fuzz", "software"]),
    ("workloads", &["abi", "random", "software", "workloads"]),
    (
        "runner",
        &[
            "abi",
            "model",
            "machine",
            "analysis",
            "report",
            // Attacks are drawn from their seeds.
            "random",
            // The format of images, pure and without the chip: folders of the host become such images.
            "software/tiled/services/filesystem",
            // The loader of the managers, pure: a program that they would refuse is refused before anything runs.
            "software/loader",
            // The format of a console's ring, pure: the loader and the host core read rings in the same way.
            "software/exec/one-shot",
        ],
    ),
    (
        "experiments",
        &["abi", "model", "analysis", "report", "runner"],
    ),
    ("cli", JOINED),
    ("python", JOINED),
    ("xtask", &[]),
    (
        "tests",
        &[
            "abi",
            "random",
            "fuzz",
            "features",
            "model",
            "machine",
            "analysis",
            "report",
            "runner",
            "experiments",
            "cli",
            "software",
            "workloads",
        ],
    ),
];

fn rust(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.ending() == "rs")
}

fn within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Packages depend on each other only as the blueprint allows.
pub fn dependencies(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &tree.packages {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let Some((_, allowed)) = MAY_USE
            .iter()
            .find(|(folder, _)| within(&package.folder, folder))
        else {
            found.push(Violation::new(&manifest, 0, "this folder is not in the blueprint; say in xtask/src/tidy/laws.rs what it may depend on"));
            continue;
        };
        for used in &package.uses {
            if !allowed.iter().any(|folder| within(used, folder)) {
                let list = if allowed.is_empty() {
                    "nothing here".to_owned()
                } else {
                    allowed.join(", ")
                };
                found.push(Violation::new(
                    &manifest,
                    0,
                    format!("must not depend on {used}; it may depend on {list}"),
                ));
            }
        }
    }
    found
}

/// Every package takes the lints of the workspace, which deny `unsafe`.
pub fn lints(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml") && file.text.contains("[package]"))
        // The only place with assembly and registers: it lists its lints itself, without the denial of
        // `unsafe`.
        .filter(|file| !file.path.starts_with("software/hal/"))
        .filter(|file| {
            let squeezed = file.text.replace(' ', "");
            !squeezed.contains("[lints]\nworkspace=true")
                && !squeezed.contains("lints.workspace=true")
        })
        .map(|file| {
            Violation::new(
                &file.path,
                0,
                "takes no lints; add [lints] workspace = true",
            )
        })
        .collect()
}

fn unsafe_allowed(path: &str) -> bool {
    let in_software = path.starts_with("software/") || path.starts_with("workloads/");
    path.starts_with("software/hal/")
        || (in_software && (path.contains("/arch/") || path.ends_with("/arch.rs")))
        || UNSAFE_FILES.iter().any(|(file, _)| *file == path)
}

/// `unsafe` appears only where the blueprint allows it.
pub fn unsafe_places(tree: &Tree) -> Vec<Violation> {
    rust(tree)
        .filter(|file| !unsafe_allowed(&file.path))
        .flat_map(|file| {
            lines_with_word(&strip(&file.text), "unsafe")
                .into_iter()
                .map(|line| {
                    Violation::new(
                        &file.path,
                        line,
                        "unsafe outside software/hal and the arch modules; move it there behind a safe function",
                    )
                })
        })
        .collect()
}

/// Every unsafe block and implementation says why it is sound.
pub fn safety_comments(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in rust(tree) {
        let stripped = strip(&file.text);
        let lines: Vec<&str> = file.text.lines().collect();
        for line in lines_with_word(&stripped, "unsafe") {
            let code = stripped.lines().nth(line - 1).unwrap_or_default();
            if !code.contains("unsafe {") && !code.contains("unsafe impl") {
                continue;
            }
            // The comment is directly above; the statement that holds the block may begin some lines earlier.
            let near = lines[line.saturating_sub(8)..line].join("\n");
            if !near.contains("SAFETY:") {
                found.push(Violation::new(
                    &file.path,
                    line,
                    "no SAFETY: comment above; say why this is sound",
                ));
            }
        }
    }
    found
}

/// No source file grows past 800 lines.
pub fn file_length(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|file| matches!(file.ending(), "rs" | "S" | "c" | "h" | "py" | "ts" | "sh"))
        .filter_map(|file| {
            let lines = file.text.lines().count();
            (lines > FILE_LENGTH).then(|| {
                Violation::new(
                    &file.path,
                    0,
                    format!("{lines} lines; split it, {FILE_LENGTH} are the limit"),
                )
            })
        })
        .collect()
}

/// A module opens with why it exists and what it does not know.
pub fn module_docs(tree: &Tree) -> Vec<Violation> {
    rust(tree)
        // Tests beside the code belong to the module that they test, which says why it exists.
        .filter(|file| !file.path.ends_with("/tests.rs") && !file.path.ends_with("_tests.rs"))
        .filter(|file| {
            !file
                .text
                .lines()
                .find(|line| !line.trim().is_empty())
                .is_some_and(|line| line.starts_with("//!"))
        })
        .map(|file| {
            Violation::new(
                &file.path,
                1,
                "no module documentation; open with //! and why this module exists",
            )
        })
        .collect()
}

/// A folder of tests with an `all.rs` is one program, so a file that it does not name is never compiled, and its tests never run.
pub fn test_modules(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for all in tree
        .files
        .iter()
        .filter(|file| file.path.ends_with("/tests/all.rs"))
    {
        let folder = all.path.trim_end_matches("all.rs");
        let code = strip(&all.text);
        let is_named = |module: &str| {
            code.lines()
                .any(|line| line.trim() == format!("mod {module};"))
        };
        let modules = rust(tree).filter_map(|file| {
            let name = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            let name = name.strip_suffix("/mod").unwrap_or(name);
            (name != "all" && !name.contains('/')).then_some((file, name))
        });
        for (file, name) in modules.filter(|(_, name)| !is_named(name)) {
            found.push(Violation::new(
                &file.path,
                0,
                format!("its tests never run; add `mod {name};` to {}", all.path),
            ));
        }
    }
    found
}

/// Nothing is left half done.
pub fn unfinished(tree: &Tree) -> Vec<Violation> {
    // Written in two halves so that this file does not break its own law.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat());
    let macros = [["todo", "!("], ["unimplemented", "!("]].map(|halves| halves.concat());
    let mut found = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| matches!(file.ending(), "rs" | "S" | "toml" | "xml" | "sh"))
    {
        for (index, line) in file.text.lines().enumerate() {
            let marked = words.iter().any(|word| {
                line.split(|c: char| !c.is_ascii_alphanumeric())
                    .any(|piece| piece == word)
            });
            if marked || macros.iter().any(|name| line.contains(name.as_str())) {
                found.push(Violation::new(
                    &file.path,
                    index + 1,
                    "unfinished; finish it or open an issue",
                ));
            }
        }
    }
    found
}

/// Nothing of the host reaches a simulated result: no host time, no randomly seeded hash tables, no threads.
pub fn determinism(tree: &Tree) -> Vec<Violation> {
    const FORBIDDEN: &[(&str, &str)] = &[
        ("Instant", "host time"),
        ("SystemTime", "host time"),
        ("RandomState", "a randomly seeded hash"),
        (
            "HashMap",
            "a randomly seeded hash; use BTreeMap or rustc_hash",
        ),
        (
            "HashSet",
            "a randomly seeded hash; use BTreeSet or rustc_hash",
        ),
        ("thread", "the order of threads"),
    ];
    let mut found = Vec::new();
    for file in rust(tree).filter(|file| {
        ["machine/src/", "model/src/", "analysis/src/"]
            .iter()
            .any(|folder| file.path.starts_with(folder))
    }) {
        let stripped = strip(&file.text);
        for (word, what) in FORBIDDEN {
            for line in lines_with_word(&stripped, word) {
                found.push(Violation::new(
                    &file.path,
                    line,
                    format!("{word}: {what} could reach a result"),
                ));
            }
        }
    }
    found
}

/// One function reads all files that users name; it bounds their size and refuses devices and pipes.
pub fn host_input(tree: &Tree) -> Vec<Violation> {
    const ROOMS: &[&str] = &[
        "model",
        "analysis",
        "report",
        "runner",
        "experiments",
        "cli",
        "python",
    ];
    let reads = |file: &&File| {
        let room = ROOMS
            .iter()
            .any(|room| within(&file.path, &format!("{room}/src")));
        room && !file.path.contains("tests") && file.path != "model/src/input.rs"
    };
    let mut found = Vec::new();
    for file in rust(tree).filter(reads) {
        let text = strip(&file.text);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in [
            "fs::read",
            "fs::read_to_string",
            "read_to_end",
            "read_to_string",
        ] {
            for line in lines_with_word(code, word) {
                found.push(Violation::new(
                    &file.path,
                    line,
                    format!("{word} may hang or fill the memory; use bulkhead_model::input"),
                ));
            }
        }
    }
    found
}

/// No path of a developer's machine.
pub fn machine_paths(tree: &Tree) -> Vec<Violation> {
    let paths = ["root", "work", "home", "tmp", "Users"].map(|name| format!("/{name}/"));
    let mut found = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            for path in &paths {
                let bad = line.match_indices(path.as_str()).any(|(at, _)| {
                    // Part of a longer path such as `target/tmp/` is fine.
                    !line[..at].chars().next_back().is_some_and(|c| {
                        c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | ')')
                    })
                });
                if bad {
                    found.push(Violation::new(
                        &file.path,
                        index + 1,
                        format!("{path} is a path of one machine"),
                    ));
                }
            }
        }
    }
    found
}

/// Packages come from Rust's own registry only, and no file names a mirror.
pub fn registries(tree: &Tree) -> Vec<Violation> {
    let ours = ["registry+https://github.com/rust-lang/crates", ".io-index"].concat();
    let hosts = [
        ["index.crates", ".io"],
        ["static.crates", ".io"],
        ["pypi", ".org"],
        ["pythonhosted", ".org"],
        ["registry.npmjs", ".org"],
        ["proxy.golang", ".org"],
    ]
    .map(|halves| halves.concat());
    let mut found = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            if file.path == "Cargo.lock" {
                if line.starts_with("source = ") && !line.contains(&ours) {
                    found.push(Violation::new(
                        &file.path,
                        index + 1,
                        "a package from elsewhere than Rust's registry",
                    ));
                }
            } else if hosts.iter().any(|host| line.contains(host.as_str())) {
                found.push(Violation::new(
                    &file.path,
                    index + 1,
                    "names a package registry's host",
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

    fn tree(path: &str, text: &str) -> Tree {
        Tree {
            files: vec![File::new(path, text)],
            packages: Vec::new(),
        }
    }

    fn package(folder: &str, uses: &[&str]) -> Tree {
        Tree {
            files: Vec::new(),
            packages: vec![Package {
                name: folder.to_owned(),
                folder: folder.to_owned(),
                uses: uses.iter().map(|&u| u.to_owned()).collect(),
                links: Vec::new(),
                host_tests: false,
                fuzz: false,
                guided: Vec::new(),
            }],
        }
    }

    #[test]
    fn every_file_of_tests_is_named() {
        let all = |text: &str| Tree {
            files: [
                ("m/tests/all.rs", text),
                ("m/tests/one.rs", ""),
                ("m/tests/common/mod.rs", ""),
                ("m/tests/common/programs.rs", ""),
                ("other/tests/alone.rs", ""),
            ]
            .map(|(path, text)| File::new(path, text))
            .into(),
            packages: Vec::new(),
        };
        assert_eq!(test_modules(&all("mod common;\nmod one;\n")), []);
        let missing = |text: &str| {
            let found = test_modules(&all(text));
            let paths = found.into_iter().map(|one| one.path);
            paths.collect::<Vec<String>>()
        };
        assert_eq!(missing("mod common;\n// mod one;\n"), ["m/tests/one.rs"]);
        assert_eq!(missing("mod one;\nmod ones;\n"), ["m/tests/common/mod.rs"]);
    }

    #[test]
    fn bounds_stay_independent_of_measurements() {
        assert!(dependencies(&package("analysis", &["model"])).is_empty());
        assert_eq!(dependencies(&package("analysis", &["machine"])).len(), 1);
        assert_eq!(
            dependencies(&package("machine", &["software/hal"])).len(),
            1
        );
        assert_eq!(dependencies(&package("abi", &["model"])).len(), 1);
        assert_eq!(dependencies(&package("somewhere", &[])).len(), 1);
        // A folder whose name only begins the same is another folder.
        assert_eq!(dependencies(&package("model", &["abiding"])).len(), 1);
    }

    #[test]
    fn a_package_without_lints_is_found() {
        assert_eq!(
            lints(&tree("a/Cargo.toml", "[package]\nname = \"a\"\n")).len(),
            1
        );
        assert!(
            lints(&tree(
                "a/Cargo.toml",
                "[package]\n[lints]\nworkspace = true\n"
            ))
            .is_empty()
        );
    }

    #[test]
    fn unsafe_is_found_outside_its_places() {
        let text = "fn f() { unsafe { g() } }";
        assert_eq!(unsafe_places(&tree("machine/src/a.rs", text)).len(), 1);
        assert!(unsafe_places(&tree("software/hal/src/csr.rs", text)).is_empty());
        assert!(unsafe_places(&tree("software/tiled/kernel/src/arch/mod.rs", text)).is_empty());
        assert!(unsafe_places(&tree("machine/src/a.rs", "#![forbid(unsafe_code)]")).is_empty());
    }

    #[test]
    fn an_unexplained_unsafe_block_is_found() {
        assert_eq!(
            safety_comments(&tree("a.rs", "fn f() { unsafe { g() } }")).len(),
            1
        );
        assert!(safety_comments(&tree("a.rs", "// SAFETY: g is.\nunsafe { g() }")).is_empty());
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(file_length(&tree("a.rs", &"x\n".repeat(800))).is_empty());
        assert_eq!(file_length(&tree("a.rs", &"x\n".repeat(801))).len(), 1);
    }

    #[test]
    fn a_module_without_documentation_is_found() {
        assert_eq!(module_docs(&tree("a.rs", "fn f() {}")).len(), 1);
        assert!(module_docs(&tree("a.rs", "//! Why.\n")).is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        let word = ["TO", "DO"].concat();
        let call = ["todo", "!()"].concat();
        assert_eq!(
            unfinished(&tree("a.rs", &format!("// {word}: later"))).len(),
            1
        );
        assert_eq!(unfinished(&tree("a.rs", &call)).len(), 1);
        assert!(unfinished(&tree("a.rs", "let todos = 1;")).is_empty());
    }

    #[test]
    fn host_time_in_the_machine_is_found() {
        assert_eq!(
            determinism(&tree("machine/src/a.rs", "use std::time::Instant;")).len(),
            1
        );
        assert!(determinism(&tree("runner/src/a.rs", "use std::time::Instant;")).is_empty());
        assert!(determinism(&tree("machine/src/a.rs", "use rustc_hash::FxHashMap;")).is_empty());
    }

    #[test]
    fn unbounded_reading_is_found() {
        let text = "fn f() { std::fs::read(path) }";
        assert_eq!(host_input(&tree("runner/src/a.rs", text)).len(), 1);
        assert!(host_input(&tree("model/src/input.rs", text)).is_empty());
        let tests = format!("#[cfg(test)]\nmod tests {{ {text} }}");
        assert!(host_input(&tree("runner/src/a.rs", &tests)).is_empty());
    }

    #[test]
    fn a_path_of_a_machine_is_found() {
        let path = format!("/{}/x", "root");
        assert_eq!(machine_paths(&tree("a.md", &path)).len(), 1);
        assert!(machine_paths(&tree("a.md", &format!("target{path}"))).is_empty());
    }

    #[test]
    fn a_mirror_is_found() {
        let host = ["static.crates", ".io"].concat();
        assert_eq!(registries(&tree("a.toml", &host)).len(), 1);
        assert_eq!(
            registries(&tree("Cargo.lock", "source = \"registry+https://mirror\"")).len(),
            1
        );
    }
}
