//! A new application: programs that build and a system that runs them.
//!
//! What it deliberately does not know: how the programs are built later.

use crate::error::Error;
use crate::place;
use bulkhead_model::grammar::NAME_MAX;
use std::path::{Path, PathBuf};

/// A file of a template: its path in the folder, and its text.
type File = (&'static str, &'static str);

const PACKAGE: [File; 2] = [
    ("Cargo.toml", include_str!("../template/rust/Cargo.toml.in")),
    ("build.rs", include_str!("../template/rust/build.rs.in")),
];

/// A package of tasks of the one-shot RTOS.
const TASKS: [File; 2] = [
    (
        "tasks/Cargo.toml",
        include_str!("../template/one-shot/Cargo.toml.in"),
    ),
    (
        "tasks/src/lib.rs",
        include_str!("../template/one-shot/lib.rs.in"),
    ),
];

/// Language of a new application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A Cargo package.
    Rust,
    /// Files in C.
    C,
    /// Units in Ada, only for the one-shot RTOS.
    Ada,
}

/// The kind of application to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A periodic task on one tile.
    One,
    /// A sender and a receiver on two tiles, and a flow between them.
    Two,
    /// The same as tasks of the one-shot RTOS on two cores.
    OneShot,
}

/// Sources and what the description names: the files, then the words of its template.
type Sources = (&'static [File], &'static [(&'static str, &'static str)]);

/// `None`: such applications cannot be written in this language.
fn sources(language: Language, kind: Kind) -> Option<Sources> {
    let sources: Sources = match (language, kind) {
        (Language::Ada, Kind::One | Kind::Two) => return None,
        (Language::Ada, Kind::OneShot) => (
            &[
                (
                    "tasks.ads",
                    include_str!("../template/one-shot/tasks.ads.in"),
                ),
                (
                    "tasks.adb",
                    include_str!("../template/one-shot/tasks.adb.in"),
                ),
            ],
            &[
                ("SENDER", "tasks.adb::Sender"),
                ("RECEIVER", "tasks.adb::Receiver"),
                ("WHAT", "a unit in Ada, and a task that it declares"),
            ],
        ),
        (Language::Rust, Kind::One) => (
            &[("src/main.rs", include_str!("../template/rust/main.rs.in"))],
            &[
                ("ONE", "src/main.rs"),
                ("WHAT", "the source of a binary of this Cargo package"),
            ],
        ),
        (Language::Rust, Kind::Two) => (
            &[
                (
                    "src/bin/sender.rs",
                    include_str!("../template/rust/sender.rs.in"),
                ),
                (
                    "src/bin/receiver.rs",
                    include_str!("../template/rust/receiver.rs.in"),
                ),
            ],
            &[
                ("SENDER", "src/bin/sender.rs"),
                ("RECEIVER", "src/bin/receiver.rs"),
            ],
        ),
        (Language::C, Kind::One) => (
            &[("main.c", include_str!("../template/c/main.c.in"))],
            &[
                ("ONE", "main.c"),
                (
                    "WHAT",
                    "a file in C, which is compiled and linked with the library",
                ),
            ],
        ),
        (Language::C, Kind::Two) => (
            &[
                ("sender.c", include_str!("../template/c/sender.c.in")),
                ("receiver.c", include_str!("../template/c/receiver.c.in")),
            ],
            &[("SENDER", "sender.c"), ("RECEIVER", "receiver.c")],
        ),
        (Language::Rust, Kind::OneShot) => (
            &TASKS,
            &[
                ("SENDER", "tasks::Sender"),
                ("RECEIVER", "tasks::Receiver"),
                (
                    "WHAT",
                    "the folder of a Cargo package, and a type of its library",
                ),
            ],
        ),
        (Language::C, Kind::OneShot) => (
            &[("tasks.c", include_str!("../template/one-shot/tasks.c.in"))],
            &[
                ("SENDER", "tasks.c::sender"),
                ("RECEIVER", "tasks.c::receiver"),
                ("WHAT", "a file in C, and a task that it defines"),
            ],
        ),
    };
    Some(sources)
}

/// Creates `folder` with applications and a system that runs them, using the library of the checkout `root`.
///
/// # Errors
/// If the folder's name is not a valid name, the folder exists already, or it cannot be written.
pub fn create(
    folder: &Path,
    root: &Path,
    language: Language,
    kind: Kind,
) -> Result<Vec<PathBuf>, Error> {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
        .to_owned();
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.len() <= NAME_MAX;
    if !good {
        return Err(Error::input(
            format!("`{name}` is not a name for an application"),
            format!(
                "use at most {NAME_MAX} small letters, digits and hyphens, and begin with a letter"
            ),
        ));
    }
    if folder.exists() {
        return Err(Error::input(
            format!("{} already exists", folder.display()),
            "choose another name, or remove it",
        ));
    }
    let (files, words) = sources(language, kind).ok_or_else(|| {
        Error::input(
            "applications of the tiled OS cannot be written in Ada",
            "add --paradigm one-shot, or use --language rust or c",
        )
    })?;
    let system = match kind {
        Kind::One => include_str!("../template/one.xml.in"),
        Kind::Two => include_str!("../template/two.xml.in"),
        Kind::OneShot => include_str!("../template/one-shot/system.xml.in"),
    };
    let package = match (language, kind) {
        (Language::Rust, Kind::One | Kind::Two) => &PACKAGE[..],
        (_, Kind::OneShot) | (Language::C | Language::Ada, _) => &[],
    };
    let library = root.join("software").join("lib").display().to_string();
    let kernel = root.join("software").join("oneshot").display().to_string();
    let schema = root.join("model/schema/system.xsd").display().to_string();
    let always = [
        ("NAME", name.as_str()),
        ("LIBRARY", &library),
        ("KERNEL", &kernel),
        ("SCHEMA", &schema),
    ];
    let mut made = Vec::new();
    for (path, text) in package.iter().chain(files).chain(&[("system.xml", system)]) {
        let mut text = (*text).to_owned();
        for (word, value) in always.iter().chain(words) {
            text = text.replace(&format!("@{word}@"), value);
        }
        let path = folder.join(path);
        place::write(&path, text)?;
        made.push(path);
    }
    if language == Language::Rust {
        // The compiler that the library is written for. Its version must not depend on the folder.
        let toolchain = place::read(&root.join("rust-toolchain.toml"))?;
        let path = folder.join("rust-toolchain.toml");
        place::write(&path, toolchain)?;
        made.push(path);
    }
    let path = folder.join(".gitignore");
    place::write(&path, "/target\n/out\n")?;
    made.push(path);
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn a_new_application_has_a_valid_system() {
        let folder = tempfile::tempdir().expect("a folder");
        for language in [Language::Rust, Language::C, Language::Ada] {
            for kind in [Kind::One, Kind::Two, Kind::OneShot] {
                if sources(language, kind).is_none() {
                    let other = folder.path().join("other");
                    let error = create(&other, &root(), language, kind).expect_err("refused");
                    assert_eq!(error.code(), crate::error::exit::BAD_INPUT);
                    assert!(!other.exists());
                    continue;
                }
                let path = folder
                    .path()
                    .join(format!("{language:?}-{kind:?}").to_lowercase());
                let made = create(&path, &root(), language, kind).expect("writes");
                let system = load_system(path.join("system.xml"), &LoadOptions::default());
                let system = system.expect("valid");
                let tasks = system.one_shot.as_ref().map_or(0, |one| one.programs.len());
                let parts = if kind == Kind::One { 1 } else { 2 };
                assert_eq!(system.apps.len() + tasks, parts);
                for program in system.one_shot.iter().flat_map(|one| &one.programs) {
                    let file = program.name.split_once("::").map(|one| path.join(one.0));
                    assert!(file.is_some_and(|file| file.exists()), "{}", program.name);
                }
                for app in &system.apps {
                    assert!(path.join(&app.program).exists(), "{}", app.program);
                }
                for file in made {
                    let text = std::fs::read_to_string(&file).expect("there");
                    assert!(!text.contains('@'), "{}", file.display());
                }
            }
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = create(folder.path(), &root(), Language::C, Kind::One).expect_err("it exists");
        assert_eq!(error.code(), crate::error::exit::BAD_INPUT);
    }

    #[test]
    fn odd_names_are_refused() {
        let long = "a".repeat(NAME_MAX + 1);
        for name in ["", "Upper", "a b", "a/..", "0day", &long] {
            assert!(
                create(Path::new(name), &root(), Language::C, Kind::One).is_err(),
                "{name}"
            );
        }
    }
}
