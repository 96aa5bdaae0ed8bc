//! Host files named by a user: read up to a limit, or refused.
//!
//! Why it exists: a name on the command line or in a description may refer to a pipe without a writer, or to a device that never ends. All
//! input passes through here, so neither hangs the program nor fills its memory. What it deliberately does not know: what is in the file.

use std::fmt::Display;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// Maximum bytes of a text: descriptions, overrides, task files, results of studies.
pub const TEXT_LIMIT: u64 = 16 << 20;
/// Maximum bytes of a program or module.
pub const BINARY_LIMIT: u64 = 1 << 30;
/// Maximum entries of a folder.
pub const ENTRIES_LIMIT: usize = 100_000;

fn refused(why: impl Display) -> Error {
    Error::new(ErrorKind::InvalidInput, why.to_string())
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}

/// Reads a regular file of at most this many bytes.
///
/// # Errors
/// As for [`open`], and if the file becomes larger while it is read.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let (file, length) = open(path, limit)?;
    let mut bytes = Vec::new();
    // Files with generated contents report that they are empty.
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(0))?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(refused(format!("it is larger than {}", size(limit)))),
        false => Ok(bytes),
    }
}

/// Opens a regular file of at most this many bytes. Returns its length, too.
///
/// # Errors
/// The system's error; [`ErrorKind::InvalidInput`] for a folder, a pipe, a device or a socket, and for a file that is larger.
pub fn open(path: &Path, limit: u64) -> Result<(File, u64), Error> {
    // Opening a pipe would wait for a writer, so the kind is checked first; and the opened file is checked again, because the name may
    // refer to something else by then.
    let check = |about: std::fs::Metadata| match about.is_file() {
        true if about.len() > limit => Err(refused(format!("it is larger than {}", size(limit)))),
        true => Ok(about.len()),
        false if about.is_dir() => Err(refused("it is a folder, not a file")),
        false => Err(refused(
            "it is not a regular file but a device, a pipe or a socket; copy its contents to a file",
        )),
    };
    check(std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    let length = check(file.metadata()?)?;
    Ok((file, length))
}

/// The same for UTF-8 text of at most [`TEXT_LIMIT`] bytes.
///
/// # Errors
/// As for [`read`]; [`ErrorKind::InvalidData`] if it is not such a text.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = read(path, TEXT_LIMIT)?;
    let text = String::from_utf8(bytes);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// The paths in a folder in their order, at most [`ENTRIES_LIMIT`].
///
/// # Errors
/// The system's error; [`ErrorKind::InvalidInput`] if there are more.
pub fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, Error> {
    let all = std::fs::read_dir(folder)?.take(ENTRIES_LIMIT + 1);
    let mut all = all
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    if all.len() > ENTRIES_LIMIT {
        return Err(refused(format!(
            "the folder has more than {ENTRIES_LIMIT} entries"
        )));
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_their_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        std::fs::write(&path, "12345").expect("written");
        assert_eq!(read(&path, 5).expect("fits"), b"12345");
        let error = read(&path, 4).expect_err("larger");
        assert_eq!(error.to_string(), "it is larger than 4 bytes");
        assert_eq!(read_text(&path).expect("text"), "12345");
        std::fs::write(&path, [0xff]).expect("written");
        let error = read_text(&path).expect_err("no text");
        assert_eq!(error.to_string(), "it is not UTF-8 text");
        let error = read(folder.path(), 4).expect_err("a folder");
        assert_eq!(error.to_string(), "it is a folder, not a file");
        assert_eq!(entries(folder.path()).expect("one"), [path]);
    }

    /// Issue 11, finding 11: each of these hung, or was read until memory ran out.
    #[test]
    #[cfg(unix)]
    fn devices_pipes_and_sockets_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("linked");
        let mut all = vec![Path::new("/dev/zero"), &link, &socket];
        if made.is_ok_and(|status| status.success()) {
            all.push(&pipe);
        }
        for path in all {
            let error = read(path, BINARY_LIMIT).expect_err("no file");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", path.display());
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
        // By its kind a regular file, but one that claims to be empty.
        let made_up = Path::new("/proc/self/status");
        if made_up.exists() {
            assert!(read(made_up, 10).is_err());
            assert!(!read(made_up, 1 << 20).expect("short").is_empty());
        }
    }
}
