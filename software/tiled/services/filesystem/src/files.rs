//! The file system: making, mounting, looking things up.
//!
//! Why it exists: these operations change nothing in the image. What it deliberately does not know: the log.

use crate::accounts::Accounts;
use crate::layout::{
    BLOCK, ENTRIES, Extent, FOLDER_BLOCKS, INODES, Inode, Kind, ROOT, RawEntry, Superblock,
};
use crate::path::{Name, Path};
use crate::reserve::Reserve;
use crate::transaction::{Block, Transactions, ZEROS};
use crate::{Result, Status, Store};
use alloc::boxed::Box;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A mounted file system.
///
/// Steps of an operation, in transfers of a block: looking up a path reads at most 64 blocks for each of at most 8 folders; an
/// operation changes at most 12 blocks, each written twice; growing writes at most [`crate::GROW_MAX`] blocks of zeros; a
/// search for free blocks reads at most 4 blocks, and one for a free inode at most all blocks of the table.
#[derive(Clone, Debug)]
pub struct FileSystem<S> {
    pub(crate) store: Transactions<S>,
    pub(crate) layout: Superblock,
    /// No inode below this one is free.
    pub(crate) first_free: u32,
    /// Free blocks that hold zeros.
    pub(crate) reserve: Reserve,
    /// The payer of each block and inode.
    pub(crate) accounts: Accounts,
}

/// Attributes of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Number of the inode.
    pub inode: u32,
    /// File or folder.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Blocks.
    pub blocks: u32,
    /// Extents.
    pub extents: u32,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the search for the next entry begins.
    pub next: u32,
    /// Its inode.
    pub inode: u32,
    /// Its name.
    pub name: Box<str>,
}

/// The place of a folder's entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub block: u32,
    pub offset: usize,
    pub inode: u32,
}

impl<S: Store> FileSystem<S> {
    /// Makes an empty file system of this many blocks, with room for this many files and folders.
    ///
    /// # Errors
    /// [`Status::NoSpace`] if the image is too small or too large; or the store's error.
    pub fn format(mut store: S, blocks: u32, inodes: u32) -> Result<Self> {
        // One inode is never used, one is the root folder.
        let layout = Superblock::new(blocks, inodes.saturating_add(2))?;
        for block in 1..layout.data {
            store.write(u64::from(block) * BLOCK as u64, &ZEROS)?;
        }
        let mut this = Self {
            store: Transactions::new(store),
            layout,
            first_free: ROOT + 1,
            reserve: Reserve::default(),
            accounts: Accounts::unlimited(),
        };
        let mut map: Block = [0; BLOCK];
        for bit in 0..layout.data as usize {
            map[bit / 8] |= 1 << (bit % 8);
        }
        this.store.write_unused(layout.bitmap, &map)?;
        this.write_inode(ROOT, &Inode::new(Kind::Folder))?;
        this.store.commit()?;
        // Written last: before this there is no file system.
        this.store.change(0, 0, layout.as_bytes())?;
        this.store.commit()?;
        Ok(this)
    }

    /// Opens the file system in a store of this many bytes, and completes an operation that a crash interrupted.
    ///
    /// # Errors
    /// [`Status::Corrupt`] if there is none; or the store's error.
    pub fn mount(mut store: S, bytes: u64) -> Result<Self> {
        let mut layout = Superblock::new_zeroed();
        store.read(0, layout.as_mut_bytes())?;
        if !layout.is_valid(bytes) {
            return Err(Status::Corrupt);
        }
        Ok(Self {
            store: Transactions::recover(store, layout.blocks)?,
            layout,
            first_free: ROOT + 1,
            reserve: Reserve::default(),
            accounts: Accounts::unlimited(),
        })
    }

    /// Drops all caches.
    #[cfg(test)]
    pub(crate) fn forget_hints(&mut self) {
        self.store.forget_hints();
        self.first_free = ROOT + 1;
        self.reserve = Reserve::default();
        self.accounts.payer = crate::Account::IMAGE;
        self.accounts.blocks.sort();
        self.accounts.inodes.sort();
    }

    /// Fills free blocks with zeros ahead of time, in steps: see [`Reserve::prepare`]. Returns false if there is nothing to do.
    ///
    /// # Errors
    /// The store's error.
    pub fn prepare(&mut self) -> Result<bool> {
        self.reserve.prepare(&mut self.store, &self.layout)
    }

    /// Blocks of the image.
    pub fn blocks(&self) -> u32 {
        self.layout.blocks
    }

    /// Gives the store back.
    pub fn into_store(self) -> S {
        self.store.into_store()
    }

    fn inode_place(&self, inode: u32) -> Result<(u32, usize)> {
        if inode < ROOT || inode >= self.layout.inodes {
            return Err(Status::Corrupt);
        }
        let offset = (inode % INODES) as usize * size_of::<Inode>();
        Ok((self.layout.table + inode / INODES, offset))
    }

    pub(crate) fn inode(&mut self, inode: u32) -> Result<Inode> {
        let (block, offset) = self.inode_place(inode)?;
        self.store.load(block, offset)
    }

    pub(crate) fn write_inode(&mut self, inode: u32, data: &Inode) -> Result<()> {
        let (block, offset) = self.inode_place(inode)?;
        self.store.change(block, offset, data.as_bytes())
    }

    pub(crate) fn live(&mut self, inode: u32) -> Result<(Inode, Kind)> {
        let data = self.inode(inode)?;
        let kind = Kind::from_number(data.kind).ok_or(Status::Corrupt)?;
        Ok((data, kind))
    }

    /// Finds a file or folder.
    ///
    /// # Errors
    /// [`Status::NotFound`], [`Status::NotAFolder`].
    pub fn lookup(&mut self, path: &Path<'_>) -> Result<u32> {
        let mut at = ROOT;
        for name in path.names() {
            at = self.find(at, *name)?.ok_or(Status::NotFound)?.inode;
        }
        Ok(at)
    }

    /// The entry of a name in a folder.
    pub(crate) fn find(&mut self, folder: u32, name: Name<'_>) -> Result<Option<Place>> {
        self.search(folder, |entry| {
            entry.inode != 0 && entry.name() == name.as_str().as_bytes()
        })
    }

    /// The first entry that matches.
    #[inline(never)]
    pub(crate) fn search(
        &mut self,
        folder: u32,
        wanted: impl Fn(&RawEntry) -> bool,
    ) -> Result<Option<Place>> {
        let (data, kind) = self.live(folder)?;
        if kind != Kind::Folder {
            return Err(Status::NotAFolder);
        }
        let mut entries: Block = [0; BLOCK];
        for index in 0..data.blocks().min(FOLDER_BLOCKS) {
            let Some(Extent { start: block, .. }) = data.find(index) else {
                break;
            };
            self.store.read(block, 0, &mut entries)?;
            let list = <[RawEntry; ENTRIES]>::ref_from_bytes(&entries);
            let list = list.map_or(&[][..], |list| &list[..]);
            if let Some(at) = list.iter().position(&wanted) {
                return Ok(Some(Place {
                    block,
                    offset: at * size_of::<RawEntry>(),
                    inode: list[at].inode,
                }));
            }
        }
        Ok(None)
    }

    /// Attributes of an inode.
    ///
    /// # Errors
    /// [`Status::Corrupt`] if there is no such inode.
    pub fn stat(&mut self, inode: u32) -> Result<Stat> {
        let (data, kind) = self.live(inode)?;
        Ok(Stat {
            inode,
            kind,
            size: data.size,
            blocks: data.blocks(),
            extents: data.count,
        })
    }

    /// The first entry of a folder at position `from` or after it; 0 is the start.
    ///
    /// # Errors
    /// [`Status::NotAFolder`].
    pub fn entry(&mut self, folder: u32, from: u32) -> Result<Option<Entry>> {
        let (data, kind) = self.live(folder)?;
        if kind != Kind::Folder {
            return Err(Status::NotAFolder);
        }
        let mut position = from;
        while let Some(extent) = data.find(position / ENTRIES as u32) {
            let offset = position as usize % ENTRIES * size_of::<RawEntry>();
            let entry: RawEntry = self.store.load(extent.start, offset)?;
            position += 1;
            if entry.inode != 0 {
                return Ok(Some(Entry {
                    next: position,
                    inode: entry.inode,
                    name: Name::stored(entry.name())?.as_str().into(),
                }));
            }
        }
        Ok(None)
    }

    /// The blocks that hold a file from block `index` on, as far as they are contiguous.
    ///
    /// # Errors
    /// [`Status::NotFound`] if the file is shorter.
    pub fn extent(&mut self, inode: u32, index: u32) -> Result<Extent> {
        let (data, _) = self.live(inode)?;
        data.find(index).ok_or(Status::NotFound)
    }
}
