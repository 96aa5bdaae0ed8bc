//! Checks whether an image is consistent.
//!
//! Why it exists: tests check after every crash, and a service checks before it trusts an image. What it deliberately does not
//! know: how to repair one.

use crate::files::FileSystem;
use crate::layout::{BITS, BLOCK, FOLDER_BLOCKS, Kind, ROOT};
use crate::transaction::Block;
use crate::{Result, Status, Store};
use alloc::vec;
use alloc::vec::Vec;

/// The contents of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files.
    pub files: u32,
    /// Folders, the root included.
    pub folders: u32,
    /// Blocks of files and folders.
    pub used: u32,
    /// Free blocks.
    pub free: u32,
}

impl<S: Store> FileSystem<S> {
    /// Reads everything but the contents of files: every inode in use has exactly one name, every block has one owner, and the
    /// bitmap agrees.
    ///
    /// # Errors
    /// [`Status::Corrupt`] otherwise.
    pub fn check(&mut self) -> Result<Summary> {
        let layout = self.layout;
        let mut owned = vec![false; layout.blocks as usize];
        owned[..layout.data as usize].fill(true);
        let mut summary = Summary::default();
        let mut names = vec![0u32; layout.inodes as usize];
        names[ROOT as usize] = 1;
        let mut folders = Vec::new();
        for inode in ROOT..layout.inodes {
            let data = self.inode(inode)?;
            if data.kind == 0 {
                continue;
            }
            let kind = Kind::from_number(data.kind).ok_or(Status::Corrupt)?;
            for extent in data.used() {
                if extent.length == 0 {
                    return Err(Status::Corrupt);
                }
                for block in extent.start..extent.end() {
                    match owned.get_mut(block as usize) {
                        Some(owned) if !*owned => *owned = true,
                        _ => return Err(Status::Corrupt),
                    }
                }
            }
            if data.size > u64::from(data.blocks()) * BLOCK as u64 {
                return Err(Status::Corrupt);
            }
            summary.used += data.blocks();
            match kind {
                Kind::File => summary.files += 1,
                Kind::Folder if data.blocks() > FOLDER_BLOCKS => return Err(Status::Corrupt),
                Kind::Folder => {
                    summary.folders += 1;
                    folders.push(inode);
                }
            }
        }
        for folder in folders {
            let mut position = 0;
            while let Some(entry) = self.entry(folder, position)? {
                let count = names.get_mut(entry.inode as usize).ok_or(Status::Corrupt)?;
                *count += 1;
                position = entry.next;
            }
        }
        for inode in ROOT..layout.inodes {
            let used = self.inode(inode)?.kind != 0;
            if names[inode as usize] != u32::from(used) {
                return Err(Status::Corrupt);
            }
        }
        let mut map: Block = [0; BLOCK];
        for block in 0..layout.blocks {
            if block % BITS == 0 {
                self.store.read(layout.bitmap + block / BITS, 0, &mut map)?;
            }
            let bit = block % BITS;
            let used = map[(bit / 8) as usize] >> (bit % 8) & 1 == 1;
            if used != owned[block as usize] {
                return Err(Status::Corrupt);
            }
            summary.free += u32::from(!used);
        }
        Ok(summary)
    }
}
