//! Operations that change the file system; each happens wholly or not at all.
//!
//! Why it exists: every function here ends with a commit or an abort. What it deliberately does not know: how these work.

use crate::accounts::Charge;
use crate::allocate;
use crate::files::FileSystem;
use crate::layout::{
    BLOCK, EXTENTS, Extent, FOLDER_BLOCKS, GROW_MAX, GROWTH, INODES, Inode, Kind, ROOT, RawEntry,
};
use crate::path::Path;
use crate::transaction::{Block, ZEROS};
use crate::{Result, Status, Store};
use zerocopy::{FromBytes, IntoBytes};

impl<S: Store> FileSystem<S> {
    /// Commits a change that succeeded, and aborts one that failed.
    fn all_or_nothing<T>(&mut self, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outcome = change(self);
        match outcome {
            Ok(value) => match self.store.commit() {
                Ok(()) => Ok(value),
                Err(status) => {
                    self.accounts.is_stale |= self.store.is_in_doubt();
                    Err(status)
                }
            },
            Err(status) => {
                self.store.abort();
                Err(status)
            }
        }
    }

    /// Makes an empty file or folder. Returns its inode.
    ///
    /// # Errors
    /// [`Status::Exists`], [`Status::NotFound`] (for a folder on the way), [`Status::NoSpace`], also if the payer's share is full.
    pub fn create(&mut self, path: &Path<'_>, kind: Kind) -> Result<u32> {
        self.count()?;
        let (folder, name) = path.split_last().ok_or(Status::Exists)?;
        let folder = self.lookup(&folder)?;
        if self.find(folder, name)?.is_some() {
            return Err(Status::Exists);
        }
        if !self.accounts.has_inode() {
            return Err(Status::NoSpace);
        }
        let mut data = Inode::new(kind);
        self.accounts.take_over(&mut data);
        let (inode, grown) = self.all_or_nothing(|this| {
            let inode = this.free_inode()?;
            this.write_inode(inode, &data)?;
            let entry = RawEntry::new(inode, name.as_str());
            let (place, grown) = match this.search(folder, |entry| entry.inode == 0)? {
                Some(place) => ((place.block, place.offset), None),
                None => {
                    let (block, before, after) = this.grow_folder(folder)?;
                    ((block, 0), Some((before, after)))
                }
            };
            this.store.change(place.0, place.1, entry.as_bytes())?;
            Ok((inode, grown))
        })?;
        self.accounts.changed(None, Charge::of(&data));
        if let Some((before, after)) = grown {
            self.accounts.changed(before, after);
        }
        Ok(inode)
    }

    #[inline(never)]
    fn free_inode(&mut self) -> Result<u32> {
        let mut table: Block = [0; BLOCK];
        let mut inode = self.first_free;
        while inode < self.layout.inodes {
            if inode == self.first_free || inode.is_multiple_of(INODES) {
                self.store
                    .read(self.layout.table + inode / INODES, 0, &mut table)?;
            }
            let offset = (inode % INODES) as usize * size_of::<Inode>();
            let kind = u32::read_from_prefix(&table[offset..]).map_or(1, |(kind, _)| kind);
            if kind == 0 {
                self.first_free = inode;
                return Ok(inode);
            }
            inode += 1;
        }
        self.first_free = inode;
        Err(Status::NoSpace)
    }

    /// Adds an empty block to a folder; returns the block, and the folder before and after.
    fn grow_folder(&mut self, folder: u32) -> Result<(u32, Option<Charge>, Option<Charge>)> {
        let (mut data, _) = self.live(folder)?;
        if data.blocks() >= FOLDER_BLOCKS {
            return Err(Status::NoSpace);
        }
        let before = Charge::of(&data);
        if folder != ROOT {
            // The new file itself needs one more.
            if data.account != self.accounts.payer.0 && self.accounts.inode_room() < 2 {
                return Err(Status::NoSpace);
            }
            self.afford(&data, 1)?;
            self.accounts.take_over(&mut data);
        }
        let added = self.add_extent(&mut data, 1)?;
        data.size += BLOCK as u64;
        self.write_inode(folder, &data)?;
        Ok((added.start, before, Charge::of(&data)))
    }

    /// Takes up to `wanted` free blocks for a file, fills them with zeros, and adds them at its end.
    fn add_extent(&mut self, data: &mut Inode, wanted: u32) -> Result<Extent> {
        let last = data.used().last().copied();
        let near = last.map(|extent| extent.end());
        let clean = self.reserve.clean();
        // A file without blocks begins where the zeroed blocks are.
        let wish = near.or((clean.length > 0).then_some(clean.start));
        let found = allocate::find(&mut self.store, &self.layout, wish, wanted)?;
        // Nothing refers to them yet, so they are written at once, before any client can read them.
        for block in found.start..found.end() {
            if !(clean.start..clean.end()).contains(&block) {
                self.store.write_unused(block, &ZEROS)?;
            }
        }
        allocate::mark(&mut self.store, &self.layout, found, true)?;
        self.reserve.taken(found);
        let count = data.count as usize;
        if near == Some(found.start) {
            data.extents[count - 1].length += found.length;
        } else if count == EXTENTS {
            return Err(Status::NoSpace);
        } else {
            data.extents[count] = found;
            data.count += 1;
        }
        Ok(found)
    }

    /// Makes a file at least `blocks` blocks long, by at most [`GROW_MAX`] blocks at a time, or by up to [`GROWTH`] times its
    /// number of blocks if that many are zeroed already. Returns the number of its blocks. Its size in bytes does not change.
    ///
    /// # Errors
    /// [`Status::NoSpace`], [`Status::IsAFolder`].
    pub fn grow(&mut self, inode: u32, blocks: u32) -> Result<u32> {
        self.count()?;
        let (data, kind) = self.live(inode)?;
        if kind == Kind::Folder {
            return Err(Status::IsAFolder);
        }
        Ok(self.grow_file(inode, data, blocks)?.blocks())
    }

    /// The same for a file that was looked up already.
    pub(crate) fn grow_file(&mut self, inode: u32, mut data: Inode, blocks: u32) -> Result<Inode> {
        self.count()?;
        let before = Charge::of(&data);
        let present = data.blocks();
        let clean = self.reserve.clean();
        let next = data.used().last().map_or(clean.start, |last| last.end());
        let quick = match next == clean.start {
            true => clean.length.min(present.saturating_mul(GROWTH)),
            false => 0,
        };
        let wanted = blocks.saturating_sub(present).min(GROW_MAX.max(quick));
        if wanted == 0 {
            return Ok(data);
        }
        let room = self.accounts.room(&data);
        if room == 0 {
            return Err(Status::NoSpace);
        }
        self.accounts.take_over(&mut data);
        self.all_or_nothing(|this| {
            this.add_extent(&mut data, wanted.min(room))?;
            this.write_inode(inode, &data)
        })?;
        self.accounts.changed(before, Charge::of(&data));
        Ok(data)
    }

    /// Sets the size of a file in bytes, which must not shrink, and keeps all of its blocks.
    ///
    /// # Errors
    /// As for [`resize`](Self::resize); [`Status::BadRequest`] if it is smaller.
    pub fn set_size(&mut self, inode: u32, size: u64) -> Result<()> {
        if size < self.stat(inode)?.size {
            return Err(Status::BadRequest);
        }
        self.change_size(inode, size, false)
    }

    /// Sets the size of a file in bytes, and gives back the blocks after it.
    ///
    /// # Errors
    /// [`Status::BadRequest`] if its blocks do not reach that far, [`Status::IsAFolder`].
    pub fn resize(&mut self, inode: u32, size: u64) -> Result<()> {
        self.change_size(inode, size, true)
    }

    fn change_size(&mut self, inode: u32, size: u64, cut: bool) -> Result<()> {
        self.count()?;
        let (mut data, kind) = self.live(inode)?;
        let before = Charge::of(&data);
        if kind == Kind::Folder {
            return Err(Status::IsAFolder);
        }
        let needed = size.div_ceil(BLOCK as u64);
        if needed > u64::from(data.blocks()) {
            return Err(Status::BadRequest);
        }
        if size < data.size {
            self.clear_tail(&data, size)?;
        }
        self.all_or_nothing(|this| {
            if cut {
                this.cut(&mut data, needed as u32)?;
            }
            data.size = size;
            this.write_inode(inode, &data)
        })?;
        self.accounts.changed(before, Charge::of(&data));
        Ok(())
    }

    /// Writes zeros from the new end to the end of its block: a file that grows again must not show old bytes. A crash after this
    /// leaves zeros only where the shortened file would not have been read any more.
    fn clear_tail(&mut self, data: &Inode, size: u64) -> Result<()> {
        let offset = (size % BLOCK as u64) as usize;
        if offset == 0 {
            return Ok(());
        }
        let index = (size / BLOCK as u64) as u32;
        let block = data.find(index).ok_or(Status::Corrupt)?.start;
        self.all_or_nothing(|this| this.store.change(block, offset, &ZEROS[offset..]))
    }

    /// Gives back all blocks from `keep` on.
    fn cut(&mut self, data: &mut Inode, keep: u32) -> Result<()> {
        let mut before = 0;
        let mut count = 0;
        for index in 0..data.used().len() {
            let extent = data.extents[index];
            let kept = keep.saturating_sub(before).min(extent.length);
            before += extent.length;
            if kept < extent.length {
                let gone = Extent {
                    start: extent.start + kept,
                    length: extent.length - kept,
                };
                allocate::mark(&mut self.store, &self.layout, gone, false)?;
                self.reserve.given_back();
            }
            data.extents[index].length = kept;
            if kept > 0 {
                count += 1;
            } else {
                data.extents[index] = Extent::default();
            }
        }
        data.count = count;
        Ok(())
    }

    /// Removes a file or an empty folder. `may` is asked about exactly the inode to be removed.
    ///
    /// # Errors
    /// [`Status::NotFound`], [`Status::NotEmpty`], [`Status::NoRights`] for the root folder; or the error of `may`.
    pub fn remove(&mut self, path: &Path<'_>, may: impl FnOnce(u32) -> Result<()>) -> Result<()> {
        self.count()?;
        let (folder, name) = path.split_last().ok_or(Status::NoRights)?;
        let folder = self.lookup(&folder)?;
        let place = self.find(folder, name)?.ok_or(Status::NotFound)?;
        may(place.inode)?;
        let (mut data, kind) = self.live(place.inode)?;
        let before = Charge::of(&data);
        if kind == Kind::Folder && self.entry(place.inode, 0)?.is_some() {
            return Err(Status::NotEmpty);
        }
        self.all_or_nothing(|this| {
            let nothing = [0; size_of::<RawEntry>()];
            this.store.change(place.block, place.offset, &nothing)?;
            this.cut(&mut data, 0)?;
            (data.kind, data.size, data.account) = (0, 0, 0);
            this.write_inode(place.inode, &data)
        })?;
        self.accounts.changed(before, None);
        self.first_free = self.first_free.min(place.inode);
        Ok(())
    }

    /// Reads bytes of a file, for clients without an endpoint onto its blocks. Returns the number of bytes read.
    ///
    /// # Errors
    /// [`Status::IsAFolder`].
    pub fn read(&mut self, inode: u32, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let (data, kind) = self.live(inode)?;
        if kind == Kind::Folder {
            return Err(Status::IsAFolder);
        }
        let length = data.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let within = (at % BLOCK as u64) as usize;
            let piece = (length - done).min(BLOCK - within);
            let extent = data.find((at / BLOCK as u64) as u32);
            let block = extent.ok_or(Status::Corrupt)?.start;
            let target = &mut buffer[done..done + piece];
            self.store.read(block, within, target)?;
            done += piece;
        }
        Ok(length)
    }

    /// Writes bytes of a file and extends it if necessary, for clients without an endpoint onto its blocks, such as the maker of
    /// an image. The bytes of a single block are written completely or not at all.
    ///
    /// # Errors
    /// [`Status::NoSpace`]; bytes written before that stay.
    pub fn write(&mut self, inode: u32, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        let end = end.ok_or(Status::NoSpace)?;
        let needed = u32::try_from(end.div_ceil(BLOCK as u64)).map_err(|_| Status::NoSpace)?;
        while self.grow(inode, needed)? < needed {}
        let (data, _) = self.live(inode)?;
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let within = (at % BLOCK as u64) as usize;
            let piece = (bytes.len() - done).min(BLOCK - within);
            let extent = data.find((at / BLOCK as u64) as u32);
            let block = extent.ok_or(Status::Corrupt)?.start;
            let source = &bytes[done..done + piece];
            self.all_or_nothing(|this| this.store.change(block, within, source))?;
            done += piece;
        }
        if end > data.size {
            // Blocks after the new end may be granted to a client.
            self.set_size(inode, end)?;
        }
        Ok(())
    }
}
