//! A manager that gives the same memory to one child after the other and looks for leftovers of the previous child: bytes that reach
//! memory after their owner's end, and bytes that a new owner finds.
//!
//! It has tiles 4 and 5, which it shares with others, and starts nothing from its description. Tile 4 may be captured while the first
//! child runs. A child that has done its work makes a check marker of its argument; the last two make one of the number of lines that
//! they found. The manager prints each finding, and ends with the number of findings.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    MAP_EXECUTE, MAP_PAGES_MAX, MAP_READ, MAP_WRITE, SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORIES,
    SEL_TILES, Syscall, SyscallError,
};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{println, syscall, time};

bulkhead_lib::main!(main);

const PAGE: u64 = 4096;
/// A child's memory begins with a page for its environment and one for replies; then come its code and its data.
const BEGIN: u64 = 0x1000_0000;
const CODE_OFFSET: u64 = 2 * PAGE;
const DATA_OFFSET: u64 = 3 * PAGE;
const DATA: u64 = BEGIN + DATA_OFFSET;
/// Bytes that children own one after the other: less than the first level of a tile's caches.
const OWNED: u64 = 6 * PAGE;
/// Bytes that evict all other lines of a tile's caches: twice those of its second level.
const OTHERS: u64 = 1 << 20;
/// How long a child runs that uses this memory, and one that uses other memory, in nanoseconds: several times as long as it needs.
const LIFE: u64 = 3_000_000;
const LONG_LIFE: u64 = 12_000_000;
/// The tile of the first child, and that of its successors.
const NEAR: u16 = 4;
const FAR: u16 = 5;
/// The first of its own selectors, after those that a manager was given.
const FIRST: u16 = SEL_FREE + 100;
const LINE: u64 = 64;

/// The work of a child; its stack pointer (16 times a number) is its argument.
#[derive(Clone, Copy)]
enum Work {
    /// It stores its argument at the start of each line.
    Store,
    /// It loads from each line.
    Load,
    /// It counts the lines that do not begin with its argument, and reports their number.
    Look,
}

impl Work {
    /// `a0` runs from the start of the data to `a1`. Then a check marker, and `j .`.
    fn code(self, bytes: u64) -> [u32; 12] {
        const NOP: u32 = 0x13;
        let lui = |register: u32, address: u64| address as u32 & 0xFFFF_F000 | register << 7 | 0x37;
        let (begin, end) = (lui(10, DATA), lui(11, DATA + bytes));
        let (first, second, third) = match self {
            // sd sp, 0(a0)
            Self::Store => (0x0025_3023, NOP, NOP),
            // ld t0, 0(a0)
            Self::Load => (0x0005_3283, NOP, NOP),
            // ld t0, 0(a0); beq t0, sp, 8; addi a2, a2, 1
            Self::Look => (0x0005_3283, 0x0022_8463, 0x0016_0613),
        };
        let told = match self {
            // slti x0, a2, 11: a check marker of a2
            Self::Look => 0x00B6_2013,
            // slti x0, sp, 11
            Self::Store | Self::Load => 0x00B1_2013,
        };
        [
            begin,
            end,
            // addi a2, x0, 0
            0x0000_0613,
            first,
            second,
            third,
            // addi a0, a0, 64
            0x0405_0513,
            // bne a0, a1, -16
            0xFEB5_18E3,
            told,
            // j .
            0x0000_006F,
            NOP,
            NOP,
        ]
    }
}

fn revoke(selector: u16) {
    let request = Syscall::Revoke { selector, keep: 0 };
    if let Err(error) = syscall::call(&request) {
        println!("cannot be revoked: {error:?}");
    }
}

/// Writes or reads memory past the caches of the tiles.
fn with_gate(memory: u16, access: impl FnOnce(&MemoryGate) -> bool) -> Result<bool, SyscallError> {
    let (endpoint, size) = syscall::activate(memory)?;
    let gate = MemoryGate::new(endpoint, size);
    let done = access(&gate);
    syscall::call(&Syscall::Deactivate {
        gate: memory,
        endpoint: gate.endpoint(),
    })?;
    Ok(done)
}

/// Memory that a tile sees and a child there, both owned by this manager.
struct Place {
    memory: u16,
    child: u16,
    bytes: u64,
    /// Where it is in its memory tile.
    base: u64,
}

impl Place {
    /// Cuts memory of this many bytes for data, out of the first memory that exists.
    fn cut(memory: u16, bytes: u64) -> Result<Self, SyscallError> {
        let cut = |source| {
            syscall::call(&Syscall::CutMemory {
                source: SEL_MEMORIES + source,
                target: memory,
                size: DATA_OFFSET + bytes,
            })
        };
        let found = (0..16).find_map(|source| cut(source).ok());
        Ok(Self {
            memory,
            child: memory + 1,
            bytes,
            base: found.ok_or(SyscallError::NoMemory)?[0],
        })
    }

    /// Makes it visible to a tile.
    fn show(&self, tile: u16) -> Result<(), SyscallError> {
        syscall::call(&Syscall::ConfigureTile {
            tile: SEL_TILES + tile,
            memory: self.memory,
            tables: 0,
        })?;
        Ok(())
    }

    /// Starts a child in it, on a tile that sees it.
    fn start(&self, tile: u16, work: Work, number: u64) -> Result<(), SyscallError> {
        let code = work.code(self.bytes).map(u32::to_le_bytes);
        let filled = with_gate(self.memory, |gate| {
            gate.write(CODE_OFFSET, code.as_flattened()).is_ok()
        })?;
        if !filled {
            return Err(SyscallError::BadArgument);
        }
        syscall::call(&Syscall::CreateActivity {
            target: self.child,
            tile: SEL_TILES + tile,
            purse: SEL_KERNEL_MEMORY,
            memory: self.memory,
            reply: PAGE,
            priority: 0,
            tile_priority: 0,
            name: Name::new("owner").unwrap_or_default(),
        })?;
        let map = |offset, pages, rights| {
            syscall::call(&Syscall::Map {
                activity: self.child,
                address: BEGIN + offset,
                offset,
                pages,
                rights,
            })
        };
        map(CODE_OFFSET, 1, MAP_READ | MAP_EXECUTE)?;
        let mut offset = DATA_OFFSET;
        while offset < DATA_OFFSET + self.bytes {
            let pages = (DATA_OFFSET + self.bytes - offset) / PAGE;
            let pages = pages.min(MAP_PAGES_MAX);
            map(offset, pages, MAP_READ | MAP_WRITE)?;
            offset += pages * PAGE;
        }
        syscall::call(&Syscall::Start {
            activity: self.child,
            entry: BEGIN + CODE_OFFSET,
            stack: 16 * number,
        })?;
        Ok(())
    }

    /// Ends the child; no tile sees the memory any more.
    fn end(&self) {
        revoke(self.memory);
    }

    /// Makes every line of the data in memory begin with this number's value.
    fn fill(&self, number: u64) -> Result<(), SyscallError> {
        let filled = with_gate(self.memory, |gate| {
            let mut lines = (0..self.bytes).step_by(LINE as usize);
            let word = (16 * number).to_le_bytes();
            lines.all(|offset| gate.write(DATA_OFFSET + offset, &word).is_ok())
        })?;
        filled.then_some(()).ok_or(SyscallError::BadArgument)
    }

    /// Lines of the data in memory that do not begin with this number's value.
    fn others(&self, number: u64) -> Result<u64, SyscallError> {
        let mut count = 0;
        with_gate(self.memory, |gate| {
            for offset in (0..self.bytes).step_by(LINE as usize) {
                let mut word = [0; 8];
                if gate.read(DATA_OFFSET + offset, &mut word).is_err() {
                    return false;
                }
                count += u64::from(u64::from_le_bytes(word) != 16 * number);
            }
            true
        })?;
        Ok(count)
    }
}

/// Memory at the same place as before: it has the bytes of a piece that was given back, and nobody else cuts memory.
fn again(before: &Place, memory: u16) -> Result<Place, SyscallError> {
    let place = Place::cut(memory, before.bytes)?;
    if place.base != before.base {
        println!(
            "other memory: {:#x} instead of {:#x}",
            place.base, before.base
        );
        return Err(SyscallError::NoMemory);
    }
    Ok(place)
}

/// A child runs on a tile that sees its memory, and ends. The memory stays this manager's, and the tile still sees it.
fn lives(place: &Place, tile: u16, work: Work, number: u64) -> Result<(), SyscallError> {
    place.start(tile, work, number)?;
    let life = if place.bytes == OWNED {
        LIFE
    } else {
        LONG_LIFE
    };
    time::sleep_until(time::now() + life);
    revoke(place.child);
    Ok(())
}

fn attack() -> Result<u64, SyscallError> {
    let mut found = 0;
    let mut tell = |what: &str, lines: u64| {
        println!("{lines} lines {what}");
        found += lines;
    };

    // The hoarder's lines are dirty in the caches of its tile when it ends.
    let first = Place::cut(FIRST, OWNED)?;
    first.show(NEAR)?;
    lives(&first, NEAR, Work::Store, 1)?;
    let others = Place::cut(FIRST + 2, OTHERS)?;
    let missing = first.others(1)?;
    first.end();
    // If its tile is captured, they may be dirty again until the window has closed; then this is not a finding.
    println!("{missing} lines were not in memory at their owner's end");

    // Another owner has the memory on the other tile, and keeps it after its child has gone.
    let second = again(&first, FIRST + 4)?;
    tell("of the hoarder came with its memory", second.others(0)?);
    second.show(FAR)?;
    lives(&second, FAR, Work::Store, 2)?;
    tell("of the second owner were not in memory", second.others(2)?);
    // The first tile evicts whatever it still has; a captured one does so by itself, and reports that the child runs.
    others.show(NEAR)?;
    lives(&others, NEAR, Work::Load, 3)?;
    others.end();
    tell("of the hoarder came after its end", second.others(2)?);
    second.end();

    // Others on that tile look for leftovers: first in memory that is empty, then in memory that was filled past the caches.
    let mut before = second;
    for number in [0, 4] {
        let next = again(&before, before.memory + 2)?;
        if number > 0 {
            next.fill(number)?;
        }
        next.show(FAR)?;
        lives(&next, FAR, Work::Look, number)?;
        next.end();
        before = next;
    }
    Ok(found)
}

fn main() -> u64 {
    match attack() {
        Ok(found) => found,
        Err(error) => {
            println!("no attack: {error:?}");
            1
        }
    }
}
