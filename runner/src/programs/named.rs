//! What a description may name: programs, and host files beside it.
//!
//! Why it exists: the model asks before anything is built ([`Programs`]), so a mistake is told with its place. What it deliberately does not
//! know: how programs are built.

use super::{Library, Own, absolute, binaries, binary_of, is_program};
use crate::convert::convert;
use crate::error::Error;
use crate::host_folders::readable;
use crate::loadable;
use crate::manifests::metadata;
use crate::moved::placed;
use crate::place;
use bulkhead_machine::config::MemoryConfig;
use bulkhead_model::platform::Platform;
use bulkhead_model::{HostKind, Programs, input};
use std::path::Path;

impl Programs for Library {
    fn contains(&self, name: &str) -> bool {
        self.known.contains_key(name)
            || self.own(name).is_some()
            || self.task_folder(name).is_some()
    }

    fn names(&self) -> Vec<String> {
        let known = self.known.keys();
        let known = known.filter(|name| !name.starts_with("tiled/")).cloned();
        self.beside().into_iter().chain(known).collect()
    }

    fn refusal(&self, name: &str) -> Option<(String, String)> {
        if self.known.contains_key(name) {
            return None;
        }
        let (folder, source) = match self.own(name)? {
            Own::Elf(path) => return is_program(name, &path).err().and_then(explained),
            Own::C(_) => return None,
            Own::Package(folder) => (folder, None),
            Own::Binary(folder, source) => (folder, Some(source)),
        };
        // If Cargo cannot read the package, building it says why.
        let folder = absolute(&Path::new(".").join(folder)).ok()?;
        let metadata = metadata(&folder).ok()?;
        let all = binaries(&metadata, &folder);
        binary_of(&all, name, source.as_deref())
            .err()
            .and_then(explained)
    }

    fn unreadable(&self, name: &str, kind: HostKind) -> Option<(String, String)> {
        let path = self.base.join(name);
        let tried = match kind {
            HostKind::File => {
                let tried = input::open(&path, input::BINARY_LIMIT).map(drop);
                tried.map_err(|error| (path, error.to_string()))
            }
            HostKind::Folder => readable(&path),
        };
        let (path, why) = tried.err()?;
        Some((path.display().to_string(), why))
    }

    fn bare_refusal(&self, name: &str) -> Option<(String, String)> {
        let is_known = self.known.contains_key(name);
        match self.own(name).filter(|_| !is_known) {
            Some(Own::C(_)) => Some((
                format!("{name}: programs in C are compiled for the tiled OS, and this system has no kernel"),
                "write it in Rust (docs/reference/bare.md); or compile it yourself and link it with -pie, without a C library, and name the ELF file".to_owned(),
            )),
            _ => self.refusal(name),
        }
    }

    fn misplaced(&self, name: &str, base: u64, size: u64) -> Option<(String, String)> {
        let is_known = self.known.contains_key(name);
        match self.own(name).filter(|_| !is_known)? {
            Own::Elf(path) => {
                let elf = place::read(&path).ok()?;
                placed((name, &elf), base, size).err()
            }
            _ => None,
        }
    }

    fn shares_refusal(&self, platform: &Platform) -> Option<String> {
        let config = convert(platform);
        let refused = |memory: &MemoryConfig| {
            let dram = &memory.dram;
            let bandwidth = dram.bandwidth.as_ref()?;
            let why = bandwidth.check(&dram.controller, &dram.shares).err()?;
            Some(format!("memory tile {}: {why}", memory.id))
        };
        config.memories.iter().find_map(refused)
    }

    fn application_refusal(&self, name: &str) -> Option<(String, String)> {
        let is_known = self.known.contains_key(name);
        match self.own(name).filter(|_| !is_known) {
            Some(Own::Elf(path)) => is_application(name, &path).err().and_then(explained),
            _ => self.refusal(name),
        }
    }
}

/// Whether a manager could load a finished program.
fn is_application(name: &str, path: &Path) -> Result<(), Error> {
    is_program(name, path)?;
    loadable::check(name, &place::read(path)?)
}

/// The cause and the remedy of an error that has both.
fn explained(error: Error) -> Option<(String, String)> {
    let remedy = error.remedy()?.to_owned();
    Some((error.to_string(), remedy))
}
