//! Folders of the host that become images of the file service: whether all that is in them can be opened.
//!
//! Why it exists: whoever checks a description, and whoever makes the image, must agree about links that lead nowhere or upwards, and pipes. What it
//! deliberately does not know: descriptions, and how an image looks.

use bulkhead_model::input;
use std::path::{Path, PathBuf};

/// Maximum nesting of folders: a link that leads upwards is not a tree.
pub(crate) const DEPTH: usize = 16;

/// Opens all that an image of a folder would contain, without reading it.
///
/// # Errors
/// The first path that cannot be opened, and why.
pub(crate) fn readable(folder: &Path) -> Result<(), (PathBuf, String)> {
    let mut open: Vec<(PathBuf, usize)> = vec![(folder.to_path_buf(), 0)];
    while let Some((path, depth)) = open.pop() {
        if depth > DEPTH {
            let why = format!(
                "it is nested more than {DEPTH} folders deep; perhaps a link leads to a folder above it"
            );
            return Err((path, why));
        }
        for entry in input::entries(&path).map_err(|error| (path, error.to_string()))? {
            if entry.is_dir() {
                open.push((entry, depth + 1));
            } else if let Err(error) = input::open(&entry, input::BINARY_LIMIT) {
                return Err((entry, error.to_string()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that leads nowhere, and a pipe, which would wait for a writer, deep in a folder; and a folder that contains itself.
    #[cfg(unix)]
    #[test]
    fn what_cannot_be_opened_is_found_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("maps/old");
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::write(inside.join("a"), "1").unwrap();
        let found = || readable(folder.path()).map_err(|(path, _)| path);
        assert_eq!(found(), Ok(()));
        let link = inside.join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert_eq!(found(), Err(link.clone()));
        std::fs::remove_file(&link).unwrap();
        let pipe = inside.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            assert_eq!(found(), Err(pipe.clone()));
            std::fs::remove_file(&pipe).unwrap();
        }
        std::os::unix::fs::symlink("..", &link).unwrap();
        let (_, why) = readable(folder.path()).unwrap_err();
        assert!(why.contains("nested more than 16 folders deep"), "{why}");
        assert!(readable(&folder.path().join("nothing")).is_err());
    }
}
