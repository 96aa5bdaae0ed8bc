//! Where the checkout is: programs are built from it, and applications link its library.
//!
//! What it deliberately does not know: what is in it.

use crate::error::Error;
use bulkhead_model::input;
use bulkhead_report::book::Book;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The checkout that this program was built from, for copies that `cargo install` puts elsewhere.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Folder of the checkout: `BULKHEAD_ROOT` (the launcher sets it); the first folder upwards from the executable or the current folder
/// that holds Bulkhead's sources; `share/bulkhead` next to the folder of the executable; or where it was built.
///
/// # Errors
/// If none of them holds Bulkhead's sources.
pub fn root() -> Result<PathBuf, Error> {
    let is_root = |folder: &Path| {
        folder.join("rust-toolchain.toml").is_file() && folder.join("software").is_dir()
    };
    if let Some(given) = std::env::var_os("BULKHEAD_ROOT") {
        let given = PathBuf::from(given);
        if is_root(&given) {
            // Compilers replace the folder's name by a text, and know only one spelling of it.
            return given
                .canonicalize()
                .map_err(|error| Error::file(&given, error));
        }
        return Err(Error::input(
            format!(
                "BULKHEAD_ROOT is {}, which holds no checkout of Bulkhead",
                given.display()
            ),
            "set it to the folder with the launcher, or unset it",
        ));
    }
    let executable = std::env::current_exe().ok();
    let starts = [executable.clone(), std::env::current_dir().ok()];
    let above = starts.iter().flatten().flat_map(|start| start.ancestors());
    let shared = executable
        .as_deref()
        .and_then(|file| Some(file.parent()?.parent()?.join("share/bulkhead")));
    let built = Path::new(BUILT_FROM);
    above
        .chain(shared.as_deref())
        .chain([built])
        .find(|folder| is_root(folder))
        .map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
        .ok_or_else(|| {
            Error::input(
                "the sources of the chip's software are not found: the folder from which this copy of Bulkhead was built no longer exists",
                "run the launcher of a checkout (./bulkhead), or set BULKHEAD_ROOT to its folder",
            )
        })
}

/// Folder of the checkout where the book is built.
pub const BOOK: &str = "target/book";

/// The book, relative to a folder: the built one (`bulkhead book`), or its sources. Nothing if no relative path leads to the checkout.
pub fn book(folder: &Path) -> Book {
    let found = || {
        let root = root().ok()?.canonicalize().ok()?;
        let folder = folder.canonicalize().ok()?;
        let built = root.join(BOOK);
        let is_built = built.join("index.html").is_file();
        let way = relative(&folder, if is_built { &built } else { &root });
        let way = way.to_str()?.to_owned();
        Some(match is_built {
            true => Book::built(&way),
            false => Book::sources(&format!("{way}/docs")),
        })
    };
    found().unwrap_or_default()
}

/// Creates a folder for pages. Returns the book, relative to it.
///
/// # Errors
/// If it cannot be created.
pub fn pages(folder: &Path) -> Result<Book, Error> {
    std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
    Ok(book(folder))
}

/// The path from one folder to another, both absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components());
    let common = common.take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    up.chain(to.components().skip(common)).collect()
}

/// What a name on the command line means: a folder with a `system.xml` means that file, and everything else means itself. A name in the
/// catalog takes precedence over a folder of the same name, which must then be written `./NAME`.
///
/// # Errors
/// If it is a folder without a `system.xml`.
pub fn description(named: &Path) -> Result<PathBuf, Error> {
    let options = bulkhead_model::LoadOptions::default();
    let is_one = |names: Vec<String>| names.iter().any(|name| Path::new(name) == named);
    let is_system = is_one(bulkhead_model::system_names(&options));
    let inside = named.join("system.xml");
    if inside.is_file() && !is_system {
        return Ok(inside);
    }
    let is_known = is_system
        || is_one(bulkhead_model::task_system_names(&options))
        || is_one(bulkhead_model::platform_names(&options));
    if !named.is_dir() || is_known {
        return Ok(named.to_path_buf());
    }
    Err(Error::input(
        format!(
            "{} is a folder, and there is no system.xml in it",
            named.display()
        ),
        "name a description (a file that ends in .xml), or a folder that `bulkhead new` made",
    ))
}

/// A path as a shell reads it, quoted if necessary.
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Reads a file that a user named, of at most [`input::BINARY_LIMIT`] bytes.
///
/// # Errors
/// As for [`input::read`].
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    input::read(path, input::BINARY_LIMIT).map_err(|error| Error::file(path, error))
}

/// Writes a file that somebody named, and the folders above it, like [`replace`]. But what has its name and is no file stays as it is: a device
/// is not replaced, and nothing is written through a link that others may have put there.
///
/// # Errors
/// If it cannot be written, or its name is that of a link, a folder, a pipe or a device.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    let what = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => None,
        Ok(found) if found.is_symlink() => Some("a link"),
        Ok(found) if found.is_dir() => Some("a folder"),
        Ok(_) => Some("a device, a pipe or a socket"),
        // Writing it says what is wrong, if anything is.
        Err(_) => None,
    };
    match what {
        None => replace(path, contents),
        Some(what) => Err(Error::input(
            format!("{} is {what}, and only files are written", path.display()),
            "name a file, or a name that nothing has",
        )),
    }
}

/// A name beside `path` that is only used once: no other process, and no other thread of this one, has it.
pub fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_added_extension(format!("{}-{number}", std::process::id()))
}

/// Writes a file of a folder of results, and the folders above it. It replaces whatever has its name there: several people may use the
/// folder, so a link is not followed, and the write does not wait for the reader of a pipe. No reader finds half of a file.
///
/// # Errors
/// If it cannot be written, or a folder has its name.
pub fn replace(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    let beside = beside(path);
    let put = || {
        let mut file = std::fs::File::create_new(&beside)?;
        file.write_all(contents.as_ref())?;
        std::fs::rename(&beside, path)
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let done = std::fs::create_dir_all(folder).and_then(|()| put());
    done.map_err(|error| {
        // Also what a process of this number left there earlier, so that the next attempt works.
        std::fs::remove_file(&beside).ok();
        Error::file(path, error)
    })
}

/// Checks before long work that its files can be written later: the folder, or the nearest existing folder above it, must accept new
/// files.
///
/// # Errors
/// If it does not accept new files, or is a file.
pub fn writable(folder: &Path) -> Result<(), Error> {
    let there = folder.ancestors().find(|above| above.exists());
    let there = there.unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(Error::input(
            format!("{} is a file, and results go to a folder", there.display()),
            "name a folder with --out",
        ));
    }
    let probe = there.join(format!(".bulkhead-{}", std::process::id()));
    let made = std::fs::File::create_new(&probe).and_then(|_| std::fs::remove_file(&probe));
    made.map_err(|error| {
        Error::input(
            format!(
                "cannot create files in the folder {}: {error}",
                there.display()
            ),
            "name another one with --out",
        )
    })
}

/// The texts of the sources in a folder and, if wanted, in the folders inside it.
pub fn texts(folder: &Path, inside: bool) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let ending = path.extension().and_then(|ending| ending.to_str());
        if is_folder && inside {
            all.extend(texts(&path, inside));
        } else if matches!(ending, Some("rs" | "c" | "h")) {
            // What cannot be read, or is no text, mentions nothing.
            let bytes = read(&path).ok();
            all.extend(bytes.and_then(|bytes| String::from_utf8(bytes).ok()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_book_is_relative() {
        let way = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(way("/a/out/quick", "/a/docs"), Path::new("../../docs"));
        assert_eq!(way("/a", "/a/docs"), Path::new("docs"));
        assert_eq!(way("/b/c", "/a"), Path::new("../../a"));
    }

    #[test]
    fn folders_for_results_are_tried_before_the_work() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        write(&file, "").expect("written");
        writable(&folder.path().join("out/deeper")).expect("can be made");
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("read").collect();
        assert_eq!(left.len(), 1, "nothing is left behind");
        for bad in [file.clone(), file.join("out"), "/proc/none".into()] {
            let error = writable(&bad).expect_err("takes no files");
            assert_eq!(error.code(), crate::error::exit::BAD_INPUT, "{error}");
        }
    }

    /// Before the fix, a link in a folder that others may write to let `run` write over any file of its user, and a pipe kept it waiting for
    /// ever.
    #[test]
    #[cfg(unix)]
    fn results_go_where_no_link_leads_and_no_pipe_waits() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        write(&at("precious"), "keep").expect("written");
        let out = at("out");
        std::fs::create_dir(&out).expect("made");
        std::os::unix::fs::symlink(at("precious"), out.join("link")).expect("linked");
        let mut pipe = std::process::Command::new("mkfifo");
        let pipe = pipe.arg(out.join("pipe")).status();
        assert!(pipe.expect("mkfifo").success());
        for name in ["link", "pipe", "new", "new"] {
            replace(&out.join(name), name).expect("replaced");
            assert_eq!(read(&out.join(name)).expect("a file"), name.as_bytes());
        }
        assert_eq!(read(&at("precious")).expect("there"), b"keep");
        std::fs::create_dir(out.join("folder")).expect("made");
        replace(&out.join("folder"), "x").expect_err("a folder has its name");
        let left = std::fs::read_dir(&out).expect("read").count();
        assert_eq!(left, 4, "nothing is left beside them");
    }

    /// Before the fix, `boot --trace` and `study` wrote through a link that others had put where they write.
    #[test]
    #[cfg(unix)]
    fn nothing_is_written_through_a_link_or_over_a_device() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for text in ["keep", "keep"] {
            write(&at("precious"), text).expect("a new file, and the same again");
        }
        std::os::unix::fs::symlink(at("precious"), at("link")).expect("linked");
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).expect("linked");
        let devices = [Path::new("/dev/null").to_path_buf(), folder.path().into()];
        for name in [at("link"), at("dangling")].into_iter().chain(devices) {
            let error = write(&name, "lost").expect_err("no file");
            assert_eq!(error.code(), crate::error::exit::BAD_INPUT, "{error}");
        }
        assert_eq!(read(&at("precious")).expect("there"), b"keep");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn a_folder_means_the_system_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = description(folder.path()).expect_err("it is empty");
        assert_eq!(error.code(), crate::error::exit::BAD_INPUT);
        assert!(error.to_string().contains("no system.xml"), "{error}");
        let file = folder.path().join("system.xml");
        write(&file, "").expect("written");
        assert_eq!(description(folder.path()).expect("found"), file);
        // Names in the catalog, and names of nothing, mean themselves.
        for name in ["quickstart", "tiled-2ghz", "nothing.xml"] {
            let named = description(Path::new(name)).expect("no folder");
            assert_eq!(named, Path::new(name));
        }
    }

    #[test]
    fn sources_are_read_with_the_folders_inside() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            write(&folder.path().join(name), text).expect("written");
        };
        put("main.rs", "value(\"jobs\", 1)");
        put("bin/other.rs", "value(\"count\", 1)");
        put("notes.md", "joobs");
        assert_eq!(texts(folder.path(), false).len(), 1);
        let all = texts(folder.path(), true);
        assert_eq!(all.len(), 2);
        assert!(!all.iter().any(|text| text.contains("joobs")));
    }
}
