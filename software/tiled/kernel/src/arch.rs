//! Entry, traps, memory and console of the kernel's hart.
//!
//! Why it exists: the kernel's few unsafe lines are here. What it deliberately does not know: tiles and activities.
#![allow(unsafe_code)]

use bulkhead_abi::boot::{BOOT_MAGIC, BOOT_VERSION, BootHeader, BootModule, BootTile};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::message::{HEADER_SIZE, Header};
use bulkhead_abi::syscall::{PRIORITIES, SYSCALL_SLOT};
use bulkhead_common::payer::Fixed;
use bulkhead_hal::heap::SteadyHeap;
use bulkhead_hal::{csr, device};
use core::fmt::Write;

pub use bulkhead_hal::device::{Console, exit};

/// Bytes of a page.
pub const PAGE: usize = 4096;

core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".globl _start",
    "_start:",
    "    la sp, kernel_stack",
    "    la t0, bss_start",
    "    la t1, bss_end",
    "1:  bgeu t0, t1, 2f",
    "    sd zero, 0(t0)",
    "    addi t0, t0, 8",
    "    j 1b",
    // Code and constants are read once, four lines at a time, so that the first call of each kind does not wait for memory at every
    // line.
    "2:  la t0, _start",
    "    la t1, code_end",
    "4:  ld t2, 0(t0)",
    "    ld t3, 64(t0)",
    "    ld t4, 128(t0)",
    "    ld t5, 192(t0)",
    "    addi t0, t0, 256",
    "    bltu t0, t1, 4b",
    "    la t0, 3f",
    "    csrw mtvec, t0",
    "    call {start}",
    ".balign 4",
    "3:  la sp, kernel_stack",
    "    call {trap}",
    start = sym start,
    trap = sym trap,
);

#[global_allocator]
static ALLOCATOR: SteadyHeap = SteadyHeap::empty();

/// Memory that is used by address only: the unit writes it.
#[repr(C, align(4096))]
struct Memory {
    page: [u8; PAGE],
    syscalls: [u8; ALL_CALL_BYTES],
    notifications: [u8; 32 * 128],
    servers: [u8; 32 * 128],
}

/// A group of tiles whose messages share buffers.
#[repr(C, align(64))]
#[derive(Clone)]
struct Group {
    prints: [u8; PRINT_BYTES as usize],
    answers: [u8; ANSWER_BYTES],
}

/// Bytes of a group's buffer for text, behind which that for answers begins.
pub const PRINT_BYTES: u64 = 32 * 192;
const ANSWER_BYTES: usize = 32 * 128;
/// Bytes from one group's buffers to the next one's.
pub const GROUP_BYTES: u64 = size_of::<Group>() as u64;

static mut MEMORY: Memory = Memory {
    page: [0; PAGE],
    syscalls: [0; ALL_CALL_BYTES],
    notifications: [0; 32 * 128],
    servers: [0; 32 * 128],
};

/// What the boot ROM says.
pub struct BootTable {
    /// Header.
    pub header: BootHeader,
    /// Tiles.
    pub tiles: Fixed<BootTile>,
    /// Modules.
    pub modules: Fixed<BootModule>,
}

extern "C" fn start(tile: u64, table: u64) -> ! {
    // SAFETY: the boot ROM places a table at this address; `a0` and `a1` are the arguments of the boot contract. The magic is checked
    // before the counts are believed, and nothing else uses memory from `free_start` on.
    let table = unsafe {
        let mut header = (table as *const BootHeader).read_unaligned();
        assert_eq!(header.magic, BOOT_MAGIC, "no boot table");
        assert_eq!(header.version, BOOT_VERSION, "version of the boot table");
        let tiles = table + size_of::<BootHeader>() as u64;
        let modules = tiles + u64::from(header.tiles) * size_of::<BootTile>() as u64;
        // Only the allocator uses the heap's memory: this runs once, and nothing gets the memory before `free_start`. The heap is not
        // cleared, which would take long.
        let heap = header.free_start;
        header.free_start += header.heap;
        assert!(
            header.free_start <= header.free_end,
            "no memory for the heap"
        );
        ALLOCATOR.give(MEMORY_BASE + heap, header.heap);
        BootTable {
            header,
            tiles: (0..header.tiles as usize)
                .map(|i| (tiles as *const BootTile).add(i).read_unaligned())
                .collect(),
            modules: (0..header.modules as usize)
                .map(|i| (modules as *const BootModule).add(i).read_unaligned())
                .collect(),
        }
    };
    crate::boot(tile as u16, &table)
}

extern "C" fn trap() -> ! {
    let (cause, pc, value) = (csr::mcause(), csr::mepc(), csr::mtval());
    // The console never fails.
    let _ = writeln!(
        Console,
        "kernel: trap {cause:#x} at {pc:#x}, value {value:#x}"
    );
    device::exit(2)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    // The console never fails.
    let _ = writeln!(Console, "kernel: {info}");
    device::exit(2)
}

/// Slots for system calls of one priority.
pub const CALL_SLOTS: u16 = 16;
/// Bytes of the buffer for system calls of one priority: a page, so that a shift finds it.
pub const CALL_BYTES: u64 = PAGE as u64;
const _: () = assert!(CALL_SLOTS as u64 * SYSCALL_SLOT as u64 <= CALL_BYTES);
const ALL_CALL_BYTES: usize = PRIORITIES * CALL_BYTES as usize;

/// System calls where the unit stores them. Separate from the other buffers, so a call can be read while the unit is used.
pub struct Calls {
    address: u64,
}

impl Calls {
    /// Label and words of a fetched call of a priority.
    #[inline(always)]
    pub fn message(&self, level: usize, offset: u32) -> (u64, &[u64]) {
        let address = self.address + level as u64 * CALL_BYTES + u64::from(offset);
        // SAFETY: `Buffers::take` gave the address of the buffers of all priorities, and the offset comes from the unit, which wrote
        // header and payload and does not touch them until the reply; slots are aligned to 64 bytes. Volatile because the compiler
        // does not see the unit's writes.
        unsafe {
            let header = address as *const Header;
            let (length, label) = (
                (&raw const (*header).length).read_volatile(),
                (&raw const (*header).label).read_volatile(),
            );
            let words = (address as *const u8).add(HEADER_SIZE).cast();
            let words = core::slice::from_raw_parts(words, usize::from(length) / 8);
            (label, words)
        }
    }
}

/// The memory that the kernel shares with its unit: receive buffers and one page for data in transit.
pub struct Buffers {
    /// Address of the buffer for system calls.
    pub syscalls: u64,
    /// Address of the buffers of all groups of tiles, [`GROUP_BYTES`] each.
    pub groups: u64,
    /// Address of the buffer for notifications.
    pub notifications: u64,
    /// Address of the buffer for answers of servers.
    pub servers: u64,
    page: u64,
}

impl Buffers {
    /// The only set of buffers, for this many groups of tiles; called once.
    pub fn take(groups: usize) -> (Self, Calls) {
        let group = Group {
            prints: [0; PRINT_BYTES as usize],
            answers: [0; ANSWER_BYTES],
        };
        let groups = alloc::vec![group; groups].leak().as_ptr() as u64;
        // SAFETY: addresses only; the unit accesses the memory, and otherwise only these values do.
        unsafe {
            let buffers = Self {
                syscalls: (&raw const MEMORY.syscalls) as u64,
                groups,
                notifications: (&raw const MEMORY.notifications) as u64,
                servers: (&raw const MEMORY.servers) as u64,
                page: (&raw const MEMORY.page) as u64,
            };
            let address = buffers.syscalls;
            (buffers, Calls { address })
        }
    }

    /// The first bytes of the page.
    pub fn page(&mut self, length: usize) -> &mut [u8] {
        assert!(length <= PAGE);
        // SAFETY: the page belongs to this one value, which is borrowed for as long as the slice lives.
        unsafe { core::slice::from_raw_parts_mut(self.page as *mut u8, length) }
    }

    /// Copies data into the page, from where the unit can take it.
    pub fn fill(&mut self, data: &[u8]) -> &[u8] {
        let page = self.page(data.len());
        page.copy_from_slice(data);
        page
    }

    /// Label and payload of a fetched message in one of the receive buffers.
    #[inline(always)]
    pub fn message(&self, buffer: u64, offset: u32) -> (u64, &[u8]) {
        let address = buffer + u64::from(offset);
        // SAFETY: callers name one of the buffers above and an offset from the unit, which wrote header and payload and does not
        // touch them until the acknowledgement. Volatile because the compiler does not see the unit's writes.
        unsafe {
            let header = address as *const Header;
            let (length, label) = (
                (&raw const (*header).length).read_volatile(),
                (&raw const (*header).label).read_volatile(),
            );
            let payload = (address as *const u8).add(HEADER_SIZE);
            (label, core::slice::from_raw_parts(payload, length.into()))
        }
    }
}
