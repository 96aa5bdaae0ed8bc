//! The table that the runner places in memory for the first software of a tiled system, the kernel.
//!
//! The kernel's hart starts in machine mode with `a0` = its tile and `a1` = tile-physical address of a [`BootHeader`]. After the
//! header come `tiles` [`BootTile`]s and then `modules` [`BootModule`]s, without gaps.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a boot table: "BULKHEAD".
pub const BOOT_MAGIC: u64 = u64::from_le_bytes(*b"BULKHEAD");
/// Version of the layout.
pub const BOOT_VERSION: u32 = 4;

/// Start of the table.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BootHeader {
    /// [`BOOT_MAGIC`].
    pub magic: u64,
    /// [`BOOT_VERSION`].
    pub version: u32,
    /// Number of [`BootTile`]s.
    pub tiles: u32,
    /// Number of [`BootModule`]s.
    pub modules: u32,
    /// Tile of the root resource manager.
    pub manager_tile: u32,
    /// Memory of the root resource manager in bytes.
    pub manager_memory: u64,
    /// Frequency of the `time` CSR in hertz.
    pub timebase: u64,
    /// First byte of the kernel's memory (in the first memory tile): its heap first, then the memory that it gives away.
    pub free_start: u64,
    /// End of that memory.
    pub free_end: u64,
    /// Bytes of the kernel's heap, whole pages; see [`kernel_heap`].
    pub heap: u64,
}

/// [`BootTile::kind`]: harts and a DTU.
pub const TILE_PROCESSING: u32 = 1;
/// [`BootTile::kind`]: memory.
pub const TILE_MEMORY: u32 = 2;

/// One tile of the platform.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BootTile {
    /// Number on the network.
    pub id: u32,
    /// [`TILE_PROCESSING`] or [`TILE_MEMORY`].
    pub kind: u32,
    /// Bytes of memory (memory tiles).
    pub memory: u64,
    /// Clock of its harts in hertz (processing tiles).
    pub frequency: u64,
    /// Endpoints of its DTU.
    pub endpoints: u32,
    /// Harts.
    pub harts: u32,
    /// A [`crate::tilemux::TilePolicy`] (processing tiles).
    pub policy: u32,
    /// Time slice of its TileMux in nanoseconds, not 0 (processing tiles).
    pub slice: u32,
    /// Bytes of a line of its caches, if these hold the bytes of memory; 0 if memory is flat.
    pub line: u64,
}

/// Tiles that share the kernel's endpoints for text and answers: as many as a receive endpoint has slots.
pub const TILE_GROUP: usize = 32;
/// Endpoints of the kernel's unit in addition to those of the groups of tiles.
pub const KERNEL_ENDPOINTS: usize = 62;
/// Bytes of the kernel's heap that no purse pays for: a fixed part, and a part for each user tile.
const HEAP: (u64, u64) = (1 << 20, 32 << 10);

/// Bytes of the kernel's heap, on a chip of this many user tiles, with which all purses together hold this many bytes. Purses are
/// charged with the size of the objects; the rest is for separately reserved places, and for gaps.
pub const fn kernel_heap(tiles: u64, purses: u64) -> u64 {
    let own = HEAP.0 + tiles * HEAP.1;
    own.saturating_add((purses / 2).saturating_mul(5))
}

/// The most that all purses together can hold: the numbers of capabilities suffice for that.
pub const KERNEL_PURSES_MAX: u64 = 65_000 * 192;

/// The bytes that all purses together hold with a heap of this many bytes.
pub const fn kernel_purses(tiles: u64, heap: u64) -> u64 {
    heap.saturating_sub(HEAP.0 + tiles * HEAP.1) / 5 * 2
}

/// Endpoints that the kernel's unit needs for this many user tiles: for each group one for text, one for answers, and rights to reply to
/// text.
pub const fn kernel_endpoints(tiles: usize) -> usize {
    KERNEL_ENDPOINTS + tiles.div_ceil(TILE_GROUP) * (TILE_GROUP + 2)
}

/// Bytes of a module's name.
pub const MODULE_NAME: usize = 64;

/// A file in memory: a program, or the description of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BootModule {
    /// Zero-terminated name, such as `control/loop`.
    pub name: [u8; MODULE_NAME],
    /// First byte, an offset into the first memory tile; a multiple of 4096.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}
