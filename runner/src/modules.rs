//! Host data that a system reads: files unchanged, and folders as images for the file service.
//!
//! Why it exists: applications get their tables and pictures the way they get their programs, as boot modules. What it
//! deliberately does not know: what is in the files.

use crate::error::Error;
use crate::host_folders::DEPTH;
use crate::place;
use crate::programs::{Library, Program};
use bulkhead_filesystem::{BLOCK, FileSystem, Kind, Path as Inside, Status, Store};
use bulkhead_model::System;
use bulkhead_model::input;
use bulkhead_model::system::ModuleSource;
use std::path::{Path, PathBuf};

/// Files and folders that fit in an image, besides those it begins with.
const INODES: u32 = 256;

/// The boot module for a `<module>` of this name. No program has such a name.
pub fn boot_name(module: &str) -> String {
    format!("data:{module}")
}

/// The name of the content of a storage device among the programs. No program has such a name.
pub fn content_name(peripheral: u16) -> String {
    format!("content:{peripheral}")
}

impl Library {
    /// The modules of a system, and the contents of its storage devices, read from the host.
    ///
    /// # Errors
    /// If something cannot be read, or a folder does not fit its image.
    pub fn modules(&self, system: &System) -> Result<Vec<Program>, Error> {
        let modules = system.modules.iter().map(|module| {
            let elf = match &module.source {
                ModuleSource::File(file) => place::read(&self.base().join(file))?,
                ModuleSource::Folder(folder, size) => image(&self.base().join(folder), size.0)?,
            };
            Ok(Program {
                name: boot_name(&module.name),
                elf,
            })
        });
        let attached = system.bare.iter().flat_map(|bare| &bare.programs);
        let attached = attached.flat_map(|placed| &placed.attached);
        let contents = attached.filter_map(|one| {
            let file = one.file.as_ref()?;
            let read = |file: &str| place::read(&self.base().join(file));
            Some(read(file).map(|elf| Program {
                name: content_name(one.peripheral),
                elf,
            }))
        });
        modules.chain(contents).collect()
    }
}

/// An image in memory.
struct Bytes(Vec<u8>);

impl Bytes {
    fn part(&mut self, offset: u64, length: usize) -> Result<&mut [u8], Status> {
        let start = usize::try_from(offset).map_err(|_| Status::Transfer)?;
        let end = start.checked_add(length).ok_or(Status::Transfer)?;
        self.0.get_mut(start..end).ok_or(Status::Transfer)
    }
}

impl Store for Bytes {
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Status> {
        buffer.copy_from_slice(self.part(offset, buffer.len())?);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Status> {
        self.part(offset, data.len())?.copy_from_slice(data);
        Ok(())
    }
}

/// An image of `size` bytes with the contents of a folder. Names are sorted, so the image is the same everywhere.
///
/// # Errors
/// If something cannot be read, or does not fit.
pub fn image(folder: &Path, size: u64) -> Result<Vec<u8>, Error> {
    let full = |status: Status, path: &Path| {
        Error::input(
            format!(
                "{} does not fit an image of {size} bytes: {status}",
                path.display()
            ),
            "give the <module> a larger size, or shorter names (at most 51 bytes of letters, digits, `.`, `-`, `_`)",
        )
    };
    let blocks = u32::try_from(size / BLOCK as u64).unwrap_or(u32::MAX);
    let store = Bytes(vec![0; blocks as usize * BLOCK]);
    let mut system =
        FileSystem::format(store, blocks, INODES).map_err(|status| full(status, folder))?;
    let mut open: Vec<(PathBuf, String, usize)> = vec![(folder.to_path_buf(), String::new(), 0)];
    while let Some((path, inside, depth)) = open.pop() {
        if depth > DEPTH {
            return Err(Error::input(
                format!(
                    "{} is nested more than {DEPTH} folders deep",
                    path.display()
                ),
                "use fewer levels; perhaps a link leads to a folder above it",
            ));
        }
        let entries = input::entries(&path).map_err(|error| Error::file(&path, error))?;
        for entry in entries {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            let name = match inside.as_str() {
                "" => name.into_owned(),
                inside => format!("{inside}/{name}"),
            };
            let full = |status| full(status, &entry);
            let within = Inside::parse(&name).map_err(full)?;
            if entry.is_dir() {
                system.create(&within, Kind::Folder).map_err(full)?;
                open.push((entry, name, depth + 1));
            } else {
                let data = place::read(&entry)?;
                let inode = system.create(&within, Kind::File).map_err(full)?;
                system.write(inode, 0, &data).map_err(full)?;
            }
        }
    }
    system.check().map_err(|status| full(status, folder))?;
    Ok(system.into_store().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_becomes_an_image_and_the_same_one_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let big: Vec<u8> = (0..30_000u32).map(|i| i as u8).collect();
        std::fs::create_dir_all(folder.path().join("maps/old")).unwrap();
        std::fs::write(folder.path().join("readme"), "hello").unwrap();
        std::fs::write(folder.path().join("maps/big.bin"), &big).unwrap();
        let bytes = image(folder.path(), 1 << 20).unwrap();
        assert_eq!(bytes, image(folder.path(), 1 << 20).unwrap());
        assert_eq!(bytes.len(), 1 << 20);

        let mut system = FileSystem::mount(Bytes(bytes), 1 << 20).unwrap();
        let mut read = |path: &str| {
            let inode = system
                .lookup(&bulkhead_filesystem::Path::parse(path).unwrap())
                .unwrap();
            let mut buffer = vec![0; 40_000];
            let length = system.read(inode, 0, &mut buffer).unwrap();
            buffer.truncate(length);
            buffer
        };
        assert_eq!(read("readme"), b"hello");
        assert_eq!(read("maps/big.bin"), big);
        assert!(
            system
                .lookup(&bulkhead_filesystem::Path::parse("maps/old").unwrap())
                .is_ok()
        );

        let error = image(folder.path(), 1 << 17).unwrap_err().to_string();
        assert!(
            error.contains("does not fit an image of 131072 bytes"),
            "{error}"
        );
        assert!(image(&folder.path().join("nothing"), 1 << 20).is_err());
    }
}
