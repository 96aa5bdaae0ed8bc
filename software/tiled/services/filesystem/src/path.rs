//! Names of files: one place decides what a path may be.
//!
//! Why it exists: any sender of a message can name a path. Only this file parses the text; all other code takes a [`Path`], so two
//! places cannot read the same text in two ways. What it deliberately does not know: the contents of the file system.
//!
//! A path is a list of names between slashes. Empty parts and `.` mean nothing and are left out; there is no `..`. A name is UTF-8
//! without control characters; it may have dots, spaces and letters of any script: `v..` is a name like any other.

use crate::layout::{DEPTH_MAX, NAME_MAX};
use crate::{Result, Status};

/// A name that an entry of a folder can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    /// Checks a part of a path.
    ///
    /// # Errors
    /// [`Status::BadRequest`] if no entry can have this name.
    fn new(part: &'a str) -> Result<Self> {
        let is_none = part.is_empty() || part == "." || part == "..";
        let is_text = !part.chars().any(|c| c == '/' || c.is_control());
        match !is_none && is_text && part.len() <= NAME_MAX {
            true => Ok(Self(part)),
            false => Err(Status::BadRequest),
        }
    }

    /// The name of an entry, as an image holds it.
    ///
    /// # Errors
    /// [`Status::Corrupt`] if it is not a valid name.
    pub fn stored(bytes: &'a [u8]) -> Result<Self> {
        let text = core::str::from_utf8(bytes).map_err(|_| Status::Corrupt)?;
        Self::new(text).map_err(|_| Status::Corrupt)
    }

    /// Its text.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

/// The way from the root folder to a file or folder: at most [`DEPTH_MAX`] names; none for the root folder itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    names: [Name<'a>; DEPTH_MAX],
    count: usize,
}

impl<'a> Path<'a> {
    /// The root folder.
    pub const ROOT: Self = Self {
        names: [Name(""); DEPTH_MAX],
        count: 0,
    };

    /// Parses a text.
    ///
    /// # Errors
    /// [`Status::BadRequest`] for more than [`DEPTH_MAX`] names, or for a name that no entry can have.
    pub fn parse(text: &'a str) -> Result<Self> {
        let mut this = Self::ROOT;
        for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
            let place = this.names.get_mut(this.count).ok_or(Status::BadRequest)?;
            *place = Name::new(part)?;
            this.count += 1;
        }
        Ok(this)
    }

    /// Its names, starting below the root folder.
    pub fn names(&self) -> &[Name<'a>] {
        &self.names[..self.count]
    }

    /// The folder that holds it, and its name there; none for the root folder.
    pub fn split_last(&self) -> Option<(Path<'a>, Name<'a>)> {
        let (last, _) = self.names().split_last()?;
        let mut folder = *self;
        folder.count -= 1;
        Some((folder, *last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    fn texts(path: &Path<'_>) -> Vec<String> {
        path.names().iter().map(|n| n.as_str().into()).collect()
    }

    #[test]
    fn dots_belong_to_names() {
        for (text, names) in [
            ("", &[][..]),
            ("/././/", &[]),
            ("x/v..", &["x", "v.."]),
            ("é/a..", &["é", "a.."]),
            ("..a/.b/...", &["..a", ".b", "..."]),
            ("/dir//./file/", &["dir", "file"]),
        ] {
            assert_eq!(texts(&Path::parse(text).expect("a path")), names, "{text}");
        }
        for bad in ["..", "a/../b", "a\u{1b}[2J", "a\u{85}", "1/2/3/4/5/6/7/8/9"] {
            assert_eq!(Path::parse(bad), Err(Status::BadRequest), "{bad:?}");
        }
        assert_eq!(Name::stored(b"a/b"), Err(Status::Corrupt));
        assert_eq!(Name::stored(b"\xff"), Err(Status::Corrupt));
    }

    proptest! {
        /// For any text, the names joined again mean the same path, and they are the parts that `str::split` finds.
        #[test]
        fn any_text(text in "[/.a-cé\u{0}-\u{20}\u{7f}-\u{a0}]{0,24}|.{0,80}|([^/]{1,60}/){0,10}") {
            let parts: Vec<&str> = text.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
            match Path::parse(&text) {
                Ok(path) => {
                    prop_assert_eq!(texts(&path), parts.clone());
                    let again = parts.join("/");
                    prop_assert_eq!(Path::parse(&again), Ok(path));
                    match path.split_last() {
                        Some((folder, name)) => {
                            prop_assert_eq!(Some(&name.as_str()), parts.last());
                            prop_assert_eq!(texts(&folder), &parts[..parts.len() - 1]);
                        }
                        None => prop_assert!(parts.is_empty()),
                    }
                }
                Err(status) => {
                    prop_assert_eq!(status, Status::BadRequest);
                    let is_bad = |p: &&str| *p == ".." || p.len() > NAME_MAX || p.chars().any(char::is_control);
                    prop_assert!(parts.len() > DEPTH_MAX || parts.iter().any(is_bad));
                }
            }
        }
    }
}
