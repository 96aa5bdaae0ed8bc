//! The layout of the image.
//!
//! Why it exists: the format is defined once. What it deliberately does not know: operations.
//!
//! | blocks | what |
//! |---|---|
//! | 0 | superblock |
//! | 1 | head of the log, then [`LOG_BLOCKS`] blocks of it |
//! | then | bitmap: one bit for each block of the image, 1 for used |
//! | then | inodes, 16 in a block |
//! | then | data |

use crate::{Result, Status};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Bits of a block of the bitmap.
pub const BITS: u32 = (BLOCK * 8) as u32;
/// The most blocks of an image: a bitmap of four blocks.
pub const IMAGE_BLOCKS_MAX: u32 = 4 * BITS;
/// The most blocks that one operation can change.
pub const LOG_BLOCKS: usize = 12;
/// The most extents of a file.
pub const EXTENTS: usize = 29;
/// The most blocks added to a file in one step; this bounds the time for their zeros.
pub const GROW_MAX: u32 = 16;
/// The most blocks added to a file in one step, as a multiple of its blocks, if they are zeroed already. Unused ones come back
/// when the file is closed.
pub const GROWTH: u32 = 3;
/// The most blocks of a folder.
pub const FOLDER_BLOCKS: u32 = 64;
/// The most bytes of a name.
pub const NAME_MAX: usize = 56;
/// The most names in a path.
pub const DEPTH_MAX: usize = 8;
/// Number of the root folder.
pub const ROOT: u32 = 1;
/// Inodes in a block.
pub const INODES: u32 = (BLOCK / size_of::<Inode>()) as u32;
/// Entries in a block.
pub const ENTRIES: usize = BLOCK / size_of::<RawEntry>();

const MAGIC: u64 = u64::from_le_bytes(*b"EXTENTS2");

/// Block 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Superblock {
    magic: u64,
    /// Blocks of the image.
    pub blocks: u32,
    /// Inodes, a multiple of [`INODES`].
    pub inodes: u32,
    /// First block of the bitmap.
    pub bitmap: u32,
    /// First block of inodes.
    pub table: u32,
    /// First block of data.
    pub data: u32,
    reserved: u32,
    checksum: u64,
}

impl Superblock {
    /// For an image of this many blocks and inodes.
    ///
    /// # Errors
    /// [`Status::NoSpace`] if there is no room for data, or the image is too large.
    pub fn new(blocks: u32, inodes: u32) -> Result<Self> {
        let inodes = inodes.max(2).next_multiple_of(INODES);
        let bitmap = 2 + LOG_BLOCKS as u32;
        let table = bitmap + blocks.div_ceil(BITS);
        let data = table + inodes / INODES;
        if blocks > IMAGE_BLOCKS_MAX || blocks <= data {
            return Err(Status::NoSpace);
        }
        let mut superblock = Self {
            magic: MAGIC,
            blocks,
            inodes,
            bitmap,
            table,
            data,
            reserved: 0,
            checksum: 0,
        };
        superblock.checksum = superblock.sum();
        Ok(superblock)
    }

    fn sum(&self) -> u64 {
        checksum(0, &self.as_bytes()[..size_of::<Self>() - 8])
    }

    /// Whether it describes an image of at most `bytes` bytes, made by [`new`](Self::new).
    pub fn is_valid(&self, bytes: u64) -> bool {
        u64::from(self.blocks) * BLOCK as u64 <= bytes
            && Self::new(self.blocks, self.inodes).is_ok_and(|right| right == *self)
    }
}

/// Blocks of an image with room for `data` blocks of data and this many inodes.
pub fn size_for(data: u32, inodes: u32) -> u32 {
    let fixed = 2 + LOG_BLOCKS as u32 + inodes.max(2).div_ceil(INODES) + data;
    // One block of bitmap too many, for the bitmap itself, does no harm.
    fixed + fixed.div_ceil(BITS) + 1
}

/// 64-bit FNV-1a, continued.
pub fn checksum(before: u64, bytes: &[u8]) -> u64 {
    let mut hash = before ^ 0xcbf2_9ce4_8422_2325;
    // By words where possible: every operation sums the log, and a weak sum suffices against tearing.
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    for &byte in rest {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// Head of the log. Valid only with the right checksum over itself and the blocks.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LogHead {
    /// Over everything that follows, and the blocks.
    pub checksum: u64,
    /// Counts operations; an older head never fits newer blocks.
    pub sequence: u64,
    /// Blocks that follow.
    pub count: u32,
    /// The blocks of the image where they belong.
    pub targets: [u32; LOG_BLOCKS],
    /// The part of each block that is in the log: the first byte, and the number of bytes.
    pub parts: [[u16; 2]; LOG_BLOCKS],
    /// Zero.
    pub reserved: u32,
}

/// Consecutive blocks of the image.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Extent {
    /// First block.
    pub start: u32,
    /// Blocks.
    pub length: u32,
}

impl Extent {
    /// First block behind it.
    pub fn end(&self) -> u32 {
        self.start.saturating_add(self.length)
    }
}

/// The kind of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A file.
    File = 1,
    /// A folder.
    Folder = 2,
}

impl Kind {
    /// The kind of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Kind::File),
            2 => Some(Kind::Folder),
            _ => None,
        }
    }
}

/// A file or folder. All zero: free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Inode {
    /// A [`Kind`], 0 if it is free.
    pub kind: u32,
    /// Extents in use.
    pub count: u32,
    /// Bytes.
    pub size: u64,
    /// Blocks, in the order of the file.
    pub extents: [Extent; EXTENTS],
    /// The account of the inode and its blocks; 0: none.
    pub account: u64,
}

impl Inode {
    /// Empty.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind: kind as u32,
            count: 0,
            size: 0,
            extents: [Extent::default(); EXTENTS],
            account: 0,
        }
    }

    /// Its extents.
    pub fn used(&self) -> &[Extent] {
        &self.extents[..(self.count as usize).min(EXTENTS)]
    }

    /// Its blocks.
    pub fn blocks(&self) -> u32 {
        let lengths = self.used().iter().map(|e| e.length);
        lengths.fold(0, u32::saturating_add)
    }

    /// The block of the image that holds block `index` of the file, with all blocks that follow it in the same extent.
    pub fn find(&self, index: u32) -> Option<Extent> {
        let mut before = 0;
        for extent in self.used() {
            let end = extent.length.saturating_add(before);
            if index < end {
                let skipped = index - before;
                return Some(Extent {
                    start: extent.start.saturating_add(skipped),
                    length: extent.length - skipped,
                });
            }
            before = end;
        }
        None
    }
}

/// An entry of a folder. All zero: free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawEntry {
    /// Number of the inode.
    pub inode: u32,
    /// Bytes of the name.
    pub length: u32,
    /// The name.
    pub name: [u8; NAME_MAX],
}

impl RawEntry {
    /// An entry with a name that was checked.
    pub fn new(inode: u32, name: &str) -> Self {
        let mut entry = Self {
            inode,
            length: name.len() as u32,
            name: [0; NAME_MAX],
        };
        entry.name[..name.len()].copy_from_slice(name.as_bytes());
        entry
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.name[..(self.length as usize).min(NAME_MAX)]
    }
}

const _: () = assert!(size_of::<Inode>() == 256 && size_of::<RawEntry>() == 64);
const _: () = assert!(size_of::<LogHead>() == 120 && size_of::<Superblock>() == 40);
