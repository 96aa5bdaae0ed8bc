//! The host core: loads the other cores, starts them, and shows their consoles.
//!
//! Why it exists: cores of a mesh have no memory of their own that outlives a reset, and no console device; on the paper's board another
//! processor does this (m2os-mc-ngres21, sections 4.1, 4.3 and 4.5). Here it is a core with the same kernel, whose only task reads one ring in each
//! tick. What it deliberately does not know: what the images are; the list in external memory says what to copy where, in which order.
//!
//! Whatever is in the memory of another core, it is bytes: indices are checked before they are used, and each look at a ring takes a bounded time. A
//! core that never starts, that writes over its ring, or that writes faster than one can read is told once, and the others are read as before.

use crate::arch::{Chip, Core};
use crate::task::{Done, Job, Task};
use crate::{console, time};
use bulkhead_abi::memory_map::EXTERNAL_MEMORY;
use bulkhead_abi::one_shot::host::{
    BUSY, CORE_WORDS, CORES, CORES_MAX, HEADER_WORDS, PATIENCE, PIECE_WORDS, PIECES, RING_MAX,
};
use bulkhead_abi::one_shot::{host, marker, ring as layout};
use bulkhead_exec_one_shot::port::Memory;
use bulkhead_exec_one_shot::ring;
use bulkhead_hal::{device, marker::custom};

/// What is known of a core's console.
#[derive(Clone, Copy)]
struct Known {
    /// Lines that were shown or lost, modulo 65536.
    seen: u16,
    /// Looks at a ring that changed meanwhile, one after the other.
    busy: u16,
    /// What was told.
    told: u16,
}

static KNOWN: Core<[Known; CORES_MAX]> = Core::new(
    [Known {
        seen: 0,
        busy: 0,
        told: 0,
    }; CORES_MAX],
);

/// A copy of a ring's lines.
#[repr(align(8))]
struct Area([u8; RING_MAX]);

static AREA: Core<Area> = Core::new(Area([0; RING_MAX]));

fn get(address: u64) -> u64 {
    let Ok(word) = Chip.load_double(address);
    word
}

fn list(word: u64) -> u64 {
    get(EXTERNAL_MEMORY + 8 * word)
}

/// Copies all images, then starts all cores, in the order of the list. For [`crate::Configuration::at_first`].
pub fn start() {
    #[repr(align(8))]
    struct Block([u8; 256]);
    let mut block = Block([0; 256]);
    for piece in 0..list(PIECES) {
        let at = HEADER_WORDS + piece * PIECE_WORDS;
        let [to, from, bytes] = [0, 1, 2].map(|word| list(at + word));
        let mut done = 0;
        while done < bytes {
            let length = (bytes - done).min(256) as usize;
            let Some(part) = block.0.get_mut(..length) else {
                return;
            };
            let Ok(()) = Chip.copy_from(from + done, part);
            let Ok(()) = Chip.copy_to(to + done, part);
            done += 256;
        }
    }
    // Everything has arrived before anything starts.
    let Ok(()) = Chip.order();
    for index in 0..list(CORES) {
        let at = core(index);
        let Ok(()) = Chip.store_double(list(at + host::START), list(at + host::ENTRY));
    }
}

/// The word of the list where a core's begin.
fn core(index: u64) -> u64 {
    HEADER_WORDS + list(PIECES) * PIECE_WORDS + index * CORE_WORDS
}

/// The task of the host core.
pub struct Host {
    next: u64,
    since: u64,
}

impl Host {
    /// Begins with the first core.
    pub const fn new() -> Self {
        Self { next: 0, since: 0 }
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Task for Host {
    fn run(&mut self, job: Job) -> Done {
        let cores = list(CORES).min(CORES_MAX as u64);
        if self.since == 0 {
            self.since = time::now();
        }
        if self.next < cores {
            look(self.next, time::now() - self.since > PATIENCE);
        }
        self.next = match self.next + 1 {
            next if next < cores => next,
            _ => 0,
        };
        job.delay_until(time::now() + 1)
    }
}

/// Shows the new lines of a core, and tells what is wrong with its ring. `late`: it must have started by now.
fn look(index: u64, late: bool) {
    let at = core(index);
    let mut known = KNOWN.with(|all| all.get(index as usize).copied());
    if let Some(known) = &mut known {
        if known.told & 1 << host::BROKEN != 0 {
            return;
        }
        if let Some(wrong) = lines(at, known, late)
            && known.told & 1 << wrong == 0
        {
            known.told |= 1 << wrong;
            custom::<{ marker::HOST_TOLD }>(list(at + host::NUMBER) & 0xFFFF | wrong << 16);
            begin(at);
            put(match wrong {
                host::SILENT => b"it has not started",
                host::BROKEN => b"its console was written over",
                _ => b"its console changes faster than it can be read",
            });
            end();
        }
        KNOWN.with(|all| {
            if let Some(place) = all.get_mut(index as usize) {
                *place = *known;
            }
        });
    }
}

/// Shows the new lines; what is wrong, if something is.
fn lines(at: u64, known: &mut Known, late: bool) -> Option<u64> {
    let (ring, size) = (list(at + host::RING), list(at + host::SIZE));
    let header = get(ring);
    if header as u32 != layout::MAGIC {
        return late.then_some(host::SILENT);
    }
    if header >> 32 != size || size > RING_MAX as u64 {
        return Some(host::BROKEN);
    }
    let state = get(ring + layout::STATE);
    if ring::written(state) == known.seen {
        return None;
    }
    AREA.with(|area| {
        let area = area.0.get_mut(..size as usize)?;
        let Ok(()) = Chip.copy_from(ring + layout::HEADER, area);
        if get(ring + layout::STATE) != state {
            known.busy = known.busy.saturating_add(1);
            return (known.busy >= BUSY).then_some(host::BUSY_RING);
        }
        known.busy = 0;
        // The whole ring before any line is shown.
        let Some(count) = ring::walk(state, area, |_, _| {}) else {
            return Some(host::BROKEN);
        };
        let new = ring::written(state).wrapping_sub(known.seen);
        if new > count {
            begin(at);
            let mut digits = [0; 20];
            put(b"(");
            put(console::decimal((new - count).into(), &mut digits));
            put(b" older lines, modulo 65536)");
            end();
        }
        let first = count - new.min(count);
        let shown = ring::walk(state, area, |number, line| {
            if number >= first {
                begin(at);
                put(line);
                end();
            }
        });
        known.seen = ring::written(state);
        shown.map_or(Some(host::BROKEN), |_| None)
    })
}

/// Begins a line of a core.
fn begin(at: u64) {
    let mut digits = [0; 20];
    put(b"core ");
    put(console::decimal(list(at + host::NUMBER) >> 16, &mut digits));
    put(b": ");
}

/// Prints; each character that is not plain becomes a dot. So a line that another core wrote stays one line, and begins with the number of that core.
fn put(text: &[u8]) {
    for byte in text {
        let is_plain = matches!(byte, b' '..=b'~');
        device::put(if is_plain { *byte } else { b'.' });
    }
}

/// Ends a line.
fn end() {
    device::put(b'\n');
}
