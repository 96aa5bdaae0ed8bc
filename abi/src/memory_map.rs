//! The devices and memory in a tile's physical address space.
//!
//! The addresses of the exit device, the CLINT, the console and the start of memory are those of QEMU's `virt` machine,
//! so that a bare-metal program for that board runs unchanged on the platform `single`.

/// Exit device (SiFive test finisher): a 32-bit write of [`EXIT_PASS`] ends the run with success.
pub const EXIT_BASE: u64 = 0x0010_0000;
/// Value that ends the run with exit code 0.
pub const EXIT_PASS: u32 = 0x5555;
/// Low 16 bits of the value that ends the run with the exit code in the upper 16 bits.
pub const EXIT_FAIL: u32 = 0x3333;
/// Core-local interruptor: software interrupt and timer of the tile.
pub const CLINT_BASE: u64 = 0x0200_0000;
/// Offset of the software-interrupt register of hart 0 (4 bytes a hart).
pub const CLINT_MSIP: u64 = 0x0000;
/// Offset of the timer-compare register of hart 0 (8 bytes a hart).
pub const CLINT_MTIMECMP: u64 = 0x4000;
/// Offset of the timer, which counts at the platform's timebase frequency.
pub const CLINT_MTIME: u64 = 0xBFF8;
/// Size of the interruptor's window in bytes.
pub const CLINT_SIZE: u64 = 0x1_0000;
/// Lockdown registers of a cluster's second level, where the PL310 has them in its window: 32 bits each, for the hart at port `i` one for
/// data at [`LOCKDOWN_FIRST`]` + 8 * i`, and one for instructions four bytes behind it. Bit `w`: fills for that hart do not take
/// way `w`.
pub const LOCKDOWN_BASE: u64 = 0x0201_0000;
/// Offset of the first lockdown register.
pub const LOCKDOWN_FIRST: u64 = 0x900;
/// Size of the lockdown registers' window in bytes: a page.
pub const LOCKDOWN_SIZE: u64 = 0x1000;
/// Registers of a cluster's capacity controller ([`crate::cbqri`]), in clusters that have one instead of lockdown registers.
pub const CAPACITY_BASE: u64 = 0x0202_0000;
/// Size of the controller's window in bytes: a page.
pub const CAPACITY_SIZE: u64 = 0x1000;
/// Bandwidth controllers: a page for each memory, in their order, where the memory has one ([`crate::bandwidth`]).
pub const BANDWIDTH_BASE: u64 = 0x0203_0000;
/// Length of such a page.
pub const BANDWIDTH_SIZE: u64 = 0x1000;
/// Registers of the DMA engines beside the tiles of a bare chip, in the order of their numbers: a page each, with the channels where
/// [`crate::dma`] has them in a page. They are across the network.
pub const DMA_BASE: u64 = 0x0280_0000;
/// Size of an engine's window in bytes: a page.
pub const DMA_SIZE: u64 = 0x1000;
/// The most engines.
pub const DMA_ENGINES: u64 = 16;
/// Registers of the tile's data transfer unit (see [`crate::dtu`]).
pub const DTU_BASE: u64 = 0x0300_0000;
/// Size of the unit's window in bytes.
pub const DTU_SIZE: u64 = 0x1_0000;
/// Interrupt controller of a tile or cluster that takes interrupts of other parts ([`crate::plic`]), where QEMU's `virt` board has it.
pub const PLIC_BASE: u64 = 0x0C00_0000;
/// Size of its window in bytes.
pub const PLIC_SIZE: u64 = 0x0400_0000;
/// 16550-compatible console.
pub const UART_BASE: u64 = 0x1000_0000;
/// Size of the console's window in bytes.
pub const UART_SIZE: u64 = 0x100;
/// Registers of the tile's network card: a virtio network device over virtio-mmio (version 2), where QEMU's `virt` machine
/// has its first virtio device. See [`crate::network`].
pub const NETWORK_CARD_BASE: u64 = 0x1000_1000;
/// Size of the card's window in bytes: a page.
pub const NETWORK_CARD_SIZE: u64 = 0x1000;
/// Tightly coupled memories of the tiles of a bare chip: one window for each tile that has some, in the order of the tiles. They are the
/// tile's own there, and those of all other tiles across the network.
pub const TCM_BASE: u64 = 0x4000_0000;
/// Size of a tile's window in bytes.
pub const TCM_WINDOW: u64 = 0x10_0000;
/// The most tiles with tightly coupled memories: their windows end where memory starts.
pub const TCM_WINDOWS: u64 = (MEMORY_BASE - TCM_BASE) / TCM_WINDOW;
/// Start of memory. On a tile with a data transfer unit, window `i` of [`PMP_WINDOWS`] starts at
/// `MEMORY_BASE + i * PMP_WINDOW_SIZE` and is backed by memory endpoint `i` of that unit; an address outside the
/// endpoint's region or rights raises an access fault. On a tile without one it is the memory tile itself.
pub const MEMORY_BASE: u64 = 0x8000_0000;
/// Size of a protection window in bytes.
pub const PMP_WINDOW_SIZE: u64 = 0x2000_0000;
/// Number of protection windows; endpoints `0..PMP_WINDOWS` of every unit are memory endpoints for them.
pub const PMP_WINDOWS: u64 = 4;

/// Start of the windows of all tiles on a chip with local memories: the window of core `row << 6 | column` starts at
/// `TILE_WINDOWS + (core << TILE_WINDOW_SHIFT)`, so that the low 32 bits are an address of the Epiphany architecture.
pub const TILE_WINDOWS: u64 = 0x1_0000_0000;
/// Bits of an address within a tile's window: a window has 1 MiB.
pub const TILE_WINDOW_SHIFT: u32 = 20;
/// Bits of a column, and of a row, in the number of a core.
pub const CORE_BITS: u32 = 6;
/// Most rows, and most columns, of a mesh.
pub const MESH_SIDE: u16 = 1 << CORE_BITS;
/// Where a tile's registers are in its window: a page. Its local memory starts at 0 and ends before.
pub const TILE_REGISTERS: u64 = 0xF_0000;
/// Size of the page of registers.
pub const TILE_REGISTERS_SIZE: u64 = 0x1000;
/// Register: bit 0 raises or lowers the software interrupt of the tile's hart.
pub const TILE_DOORBELL: u64 = 0x00;
/// Register: a write starts the tile's hart at that address; it reads 1 if the hart was started.
pub const TILE_START: u64 = 0x08;
/// Register: the number of the core; cannot be written.
pub const TILE_CORE: u64 = 0x10;
/// External memory of a chip with local memories.
pub const EXTERNAL_MEMORY: u64 = 0x2_0000_0000;
