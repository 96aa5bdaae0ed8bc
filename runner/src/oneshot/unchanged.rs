//! Objects that Cargo made in this process, and the files that it made them from.
//!
//! Why it exists: Cargo takes 40 ms to find that nothing has changed, and an audit, a measurement or a test builds the same images many times. As long as the object
//! and all files that Cargo names as its sources are as they were, Cargo need not be asked again. Another process always asks it. Nothing is noted where a build script of somebody else
//! takes part, because it may read whatever it likes, nor where Cargo names a folder. What it deliberately does not know: variables of the environment and versions of compilers, which no
//! process changes while it runs.

use bulkhead_model::input;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What was built: the folder of the package, the folders of the packages of tasks, and the name of the object.
type Key = (PathBuf, Vec<PathBuf>, String);

/// A file as it was: when it was written, and its bytes; `None` if there was none.
type Seen = (PathBuf, Option<(SystemTime, u64)>);

/// Files of any folder above a source that say how Cargo builds: somebody may change them, or make one where none was.
const SETTINGS: [&str; 6] = [
    "Cargo.toml",
    "Cargo.lock",
    ".cargo/config.toml",
    ".cargo/config",
    "rust-toolchain.toml",
    "rust-toolchain",
];

/// An object, and the files that it depends on; the object is among them.
type Object = (PathBuf, Vec<Seen>);

/// All objects of this process.
static MADE: Mutex<BTreeMap<Key, Object>> = Mutex::new(BTreeMap::new());

fn made() -> MutexGuard<'static, BTreeMap<Key, Object>> {
    // Each change of the map is one operation, so nobody leaves half of one.
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A build of objects of one package.
pub(super) struct Asked<'a> {
    /// The folder of the generated package.
    pub(super) folder: &'a Path,
    /// Bulkhead's own sources: their build scripts name all that they read.
    pub(super) root: &'a Path,
    /// The folders of the packages of tasks.
    pub(super) tasks: Vec<PathBuf>,
    /// The names of the objects.
    pub(super) names: &'a [&'a str],
}

impl Asked<'_> {
    fn key(&self, name: &str) -> Key {
        (self.folder.to_owned(), self.tasks.clone(), name.to_owned())
    }

    /// The objects by name, if all were made in this process and nothing has changed since.
    pub(super) fn known(&self) -> Option<Vec<(String, PathBuf)>> {
        let of = |name: &&str| {
            let (path, files) = made().get(&self.key(name))?.clone();
            let is_same = |one: &Seen| seen(&one.0) == *one;
            files
                .iter()
                .all(is_same)
                .then(|| ((*name).to_owned(), path))
        };
        self.names.iter().map(of).collect()
    }

    /// Cargo was asked at `since`, and has made these objects.
    pub(super) fn note(&self, since: SystemTime, built: &[(String, PathBuf)]) {
        for (name, path) in built {
            // Whoever writes a file while Cargo works may come after Cargo has read it.
            let is_older =
                |one: &Seen| one.0 == *path || one.1.is_none_or(|(written, _)| written < since);
            match self.files(path).filter(|files| files.iter().all(is_older)) {
                Some(files) => made().insert(self.key(name), (path.clone(), files)),
                None => made().remove(&self.key(name)),
            };
        }
    }

    /// An object, the sources that Cargo names next to it, and all settings above them. The manifest of the generated package is none of them: images come and go there. Nothing if
    /// one of the sources is not a file, or may read others.
    fn files(&self, object: &Path) -> Option<Vec<Seen>> {
        let text = input::read_text(&object.with_extension("d")).ok()?;
        let (_, sources) = text.trim_end().split_once(": ")?;
        let sources = sources.replace("\\ ", "\0");
        let sources = sources.split(' ').map(|one| one.replace('\0', " "));
        let sources: BTreeSet<PathBuf> = sources.map(PathBuf::from).collect();
        let outside = || sources.iter().filter(|one| !one.starts_with(self.folder));
        let mut others = outside().filter(|one| !one.starts_with(self.root));
        if others.any(|one| one.ends_with("build.rs"))
            || !object.is_file()
            || !sources.iter().all(|one| one.is_file())
        {
            return None;
        }
        let folders: BTreeSet<&Path> = outside().flat_map(|one| one.ancestors().skip(1)).collect();
        let settings = folders
            .iter()
            .flat_map(|folder| SETTINGS.map(|name| folder.join(name)));
        let all = [object.to_owned()].into_iter();
        Some(
            all.chain(sources.iter().cloned())
                .chain(settings)
                .map(|path| seen(&path))
                .collect(),
        )
    }
}

fn seen(path: &Path) -> Seen {
    let file = std::fs::metadata(path);
    let found = file.and_then(|file| Ok((file.modified()?, file.len())));
    (path.to_owned(), found.ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_object_is_known_until_a_file_of_it_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (object, package) = (folder.path().join("image"), folder.path().join("a b"));
        std::fs::create_dir(&package).expect("made");
        let source = package.join("lib.rs");
        let manifest = package.join("Cargo.toml");
        for path in [&object, &source, &manifest] {
            std::fs::write(path, "1").expect("written");
        }
        let listed = source.display().to_string().replace(' ', "\\ ");
        let list = format!("{}: {listed}\n", object.display());
        std::fs::write(object.with_extension("d"), list).expect("written");
        let generated = folder.path().join("generated");
        let root = folder.path().join("root");
        let asked = Asked {
            folder: &generated,
            root: &root,
            tasks: vec![package.clone()],
            names: &["image"],
        };
        let built = [("image".to_owned(), object.clone())];
        assert_eq!(asked.known(), None);
        // A source as young as the question may have been written after Cargo read it.
        let (written, _) = seen(&manifest).1.expect("it is there");
        asked.note(written, &built);
        assert_eq!(asked.known(), None);
        let later = written + Duration::from_secs(1);
        for path in [&object, &source, &manifest] {
            asked.note(later, &built);
            assert_eq!(asked.known().as_deref(), Some(&built[..]));
            std::fs::write(path, "22").expect("written");
            assert_eq!(asked.known(), None, "{}", path.display());
        }
        // Settings that were not there; a setting is as young as anything else that was written.
        std::fs::create_dir(package.join(".cargo")).expect("made");
        for name in SETTINGS.map(|name| package.join(name)) {
            if name == manifest {
                continue;
            }
            asked.note(later, &built);
            assert_eq!(asked.known().as_deref(), Some(&built[..]));
            std::fs::write(&name, "1").expect("written");
            assert_eq!(asked.known(), None, "{}", name.display());
        }
        asked.note(later, &built);
        let other = Asked {
            tasks: Vec::new(),
            ..asked
        };
        assert_eq!(other.known(), None);
        std::fs::remove_file(&source).expect("removed");
        let again = Asked {
            tasks: vec![package],
            ..other
        };
        assert_eq!(again.known(), None);
    }

    /// A build script may read files that nobody names, and a folder may get another file.
    #[test]
    fn nothing_is_known_where_scripts_or_folders_take_part() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, package) = (folder.path().join("root"), folder.path().join("package"));
        let object = folder.path().join("object");
        std::fs::write(&object, "1").expect("written");
        for one in [&root, &package] {
            std::fs::create_dir_all(one.join("maps")).expect("made");
            for name in ["lib.rs", "build.rs"] {
                std::fs::write(one.join(name), "1").expect("written");
            }
        }
        let generated = folder.path().join("generated");
        let asked = Asked {
            folder: &generated,
            root: &root,
            tasks: vec![package.clone()],
            names: &["object"],
        };
        let built = [("object".to_owned(), object.clone())];
        let later = SystemTime::now() + Duration::from_secs(1);
        for (more, is_known) in [
            (package.join("lib.rs"), true),
            (package.join("build.rs"), false),
            (root.join("build.rs"), true),
            (package.join("maps"), false),
            (package.join("nothing.rs"), false),
        ] {
            let list = format!("{}: {}\n", object.display(), more.display());
            std::fs::write(object.with_extension("d"), list).expect("written");
            asked.note(later, &built);
            assert_eq!(asked.known().is_some(), is_known, "{}", more.display());
        }
    }
}
