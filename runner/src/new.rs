//! A new application: a crate that builds and a system that runs it.
//!
//! What it deliberately does not know: how the crate is built later.

use crate::error::Error;
use crate::place;
use std::path::{Path, PathBuf};

const MANIFEST: &str = include_str!("../template/Cargo.toml.in");
const BUILD: &str = include_str!("../template/build.rs.in");
const MAIN: &str = include_str!("../template/main.rs.in");
const SYSTEM: &str = include_str!("../template/system.xml.in");

/// Makes the crate `folder` with an application of the same name, against the library of the checkout `root`.
pub fn create(folder: &Path, root: &Path) -> Result<Vec<PathBuf>, Error> {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
        .to_owned();
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.len() <= 32;
    if !good {
        return Err(Error::input(
            format!("`{name}` is no name for an application"),
            "use small letters, digits and hyphens, a letter first, 32 at most",
        ));
    }
    if folder.exists() {
        return Err(Error::input(
            format!("{} is there already", folder.display()),
            "choose another name, or remove it",
        ));
    }
    let library = root.join("software").join("lib");
    let files = [
        ("Cargo.toml", MANIFEST),
        ("build.rs", BUILD),
        ("src/main.rs", MAIN),
        ("system.xml", SYSTEM),
    ];
    let mut made = Vec::new();
    for (path, text) in files {
        let text = text
            .replace("@NAME@", &name)
            .replace("@LIBRARY@", &library.display().to_string());
        let path = folder.join(path);
        place::write(&path, text)?;
        made.push(path);
    }
    // The compiler that the library is made for; its version must not depend on the folder.
    let toolchain = place::read(&root.join("rust-toolchain.toml"))?;
    let path = folder.join("rust-toolchain.toml");
    place::write(&path, toolchain)?;
    made.push(path);
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
        let path = folder.path().join("blink");
        create(&path, &root()).expect("writes");
        let system = load_system(path.join("system.xml"), &LoadOptions::default()).expect("valid");
        assert_eq!(system.apps[0].name, "blink");
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("there");
        assert!(!manifest.contains('@'), "{manifest}");
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = create(folder.path(), &root()).expect_err("it exists");
        assert_eq!(error.code(), crate::error::exit::BAD_INPUT);
    }

    #[test]
    fn odd_names_are_refused() {
        for name in ["", "Upper", "a b", "a/..", "0day"] {
            assert!(create(Path::new(name), &root()).is_err(), "{name}");
        }
    }
}
