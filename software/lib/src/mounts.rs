//! Several file services in one tree of names.
//!
//! Why it exists: a program opens `/maps/town` and need not care which service has it. What it deliberately does not know: how
//! files are read; a [`Mount`] does that.
//!
//! The longest path that leads to a name wins, by whole parts: with services at `/` and `/maps`, the name `/maps/town` is
//! `town` of the second, and `/mapsize` is `mapsize` of the first.

use crate::argument;
use crate::file::{Entry, File, Info, Mount, Result};
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_common::path;
use bulkhead_common::status::Status;

/// File services by their mount points.
#[derive(Debug, Default)]
pub struct Mounts {
    all: Vec<(String, Mount)>,
}

impl Mounts {
    /// No services yet.
    pub const fn new() -> Self {
        Self { all: Vec::new() }
    }

    /// The services of the argument `mounts`: paths and gates such as `/:files /maps:maps`, each over a session.
    ///
    /// # Errors
    /// [`Status::BadRequest`] for an argument of another form; or an error of a service.
    ///
    /// # Panics
    /// If the description does not give a gate.
    pub fn from_environment() -> Result<Self> {
        let mut this = Self::new();
        for entry in argument::text("mounts").unwrap_or("").split_whitespace() {
            let (at, gate) = entry.split_once(':').ok_or(Status::BadRequest)?;
            this.add(at, Mount::connect(gate)?)?;
        }
        Ok(this)
    }

    /// Mounts a file service at a path.
    ///
    /// # Errors
    /// [`Status::Exists`] if there is one already.
    pub fn add(&mut self, at: &str, mount: Mount) -> Result<()> {
        let at = at.trim_matches('/');
        if self.all.iter().any(|(known, _)| known == at) {
            return Err(Status::Exists);
        }
        self.all.push((at.into(), mount));
        Ok(())
    }

    /// Unmounts a file service, whose files are all closed.
    pub fn remove_mount(&mut self, at: &str) -> Option<Mount> {
        let at = at.trim_matches('/');
        let index = self.all.iter().position(|(known, _)| known == at)?;
        Some(self.all.remove(index).1)
    }

    /// The service of a name, and the name there.
    fn find<'p>(&mut self, name: &'p str) -> Result<(&mut Mount, &'p str)> {
        let paths = self.all.iter().map(|(at, _)| at.as_str());
        let (index, rest) = path::longest(paths, name).ok_or(Status::NotFound)?;
        Ok((&mut self.all[index].1, rest))
    }

    /// Opens a file, see [`Mount::open`].
    ///
    /// # Errors
    /// [`Status::NotFound`] if no service is mounted there; otherwise the service's error.
    pub fn open(&mut self, path: &str, flags: u64) -> Result<File<'_>> {
        let (mount, path) = self.find(path)?;
        mount.open(path, flags)
    }

    /// Size, kind and extents of a file or folder.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn stat(&mut self, path: &str) -> Result<Info> {
        let (mount, path) = self.find(path)?;
        mount.stat(path)
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn make_folder(&mut self, path: &str) -> Result<()> {
        let (mount, path) = self.find(path)?;
        mount.make_folder(path)
    }

    /// Removes a file or an empty folder.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn remove(&mut self, path: &str) -> Result<()> {
        let (mount, path) = self.find(path)?;
        mount.remove(path)
    }

    /// Calls `action` for each entry of a folder; services mounted in it are not among them.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn list(&mut self, path: &str, action: impl FnMut(Entry)) -> Result<()> {
        let (mount, path) = self.find(path)?;
        mount.list(path, action)
    }
}
