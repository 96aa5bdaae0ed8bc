//! A program is the same, byte by byte, wherever the checkout and the user's folder are: another order of functions would change the
//! ticks.

use bulkhead_model::{LoadOptions, load_system};
use bulkhead_runner::ada_programs::is_there;
use bulkhead_runner::new::{Kind, Language, create};
use bulkhead_runner::oneshot::OneShot;
use bulkhead_runner::paradigm::Paradigm;
use bulkhead_runner::place;
use bulkhead_runner::programs::{Library, Program};
use std::path::Path;
use std::process::Command;

/// Copies what git would keep, without the build folder.
fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("tar");
    let command = command.args(["--exclude=./target", "--exclude=./.git", "-cf"]);
    let archive = to.join("all.tar");
    let packed = command.arg(&archive).arg("-C").arg(from).arg(".").status();
    assert!(packed.expect("tar").success());
    let mut command = Command::new("tar");
    let command = command.arg("-xf").arg(&archive).arg("-C").arg(to);
    assert!(command.status().expect("tar").success());
    std::fs::remove_file(archive).expect("removed");
}

/// The programs of new applications, in folders below `users`.
fn programs(root: &Path, users: &Path) -> Vec<Program> {
    let made = |name: &str, language, kind| {
        let folder = users.join(name);
        create(&folder, root, language, kind).expect("made");
        let library = Library::new(root, &folder).expect("the checkout");
        (folder, library)
    };
    let mut all = Vec::new();
    let mut languages = vec![("rust", Language::Rust), ("c", Language::C)];
    if is_there() {
        languages.push(("ada", Language::Ada));
    }
    for (name, language) in languages {
        let (folder, library) = made(&format!("{name}-cores"), language, Kind::OneShot);
        let options = LoadOptions {
            programs: Some(&library),
            ..LoadOptions::default()
        };
        let system = load_system(folder.join("system.xml"), &options).expect("valid");
        all.extend(OneShot.build(&library, &[&system]).expect("images"));
    }
    for (name, language, program) in [("rust", Language::Rust, "."), ("c", Language::C, "main.c")] {
        let (_, library) = made(&format!("{name}-tiles"), language, Kind::One);
        all.extend(library.build([program]).expect("a program"));
    }
    all
}

#[test]
fn programs_are_the_same_wherever_they_are_built() {
    let root = place::root().expect("a checkout");
    let (here, there) = (tempfile::tempdir(), tempfile::tempdir());
    let (here, there) = (here.expect("a folder"), there.expect("a folder"));
    let other = there.path().join("another").join("checkout");
    std::fs::create_dir_all(&other).expect("a folder");
    copy(&root, &other);
    let first = programs(&root, here.path());
    let second = programs(&other, &there.path().join("another-user"));
    assert_eq!(first.len(), second.len());
    for (one, two) in first.iter().zip(&second) {
        assert_eq!(one.name, two.name);
        let differ = one
            .elf
            .iter()
            .zip(&two.elf)
            .position(|(one, two)| one != two);
        let equal = one.elf.len() == two.elf.len() && differ.is_none();
        assert!(
            equal,
            "{} differs at {differ:?} of {}",
            one.name,
            one.elf.len()
        );
    }
}
