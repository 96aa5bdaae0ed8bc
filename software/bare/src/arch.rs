//! Start of the harts, and measured memory accesses.
//!
//! Why it exists: the crate's few unsafe lines are here. What it deliberately does not know: arguments.
#![allow(unsafe_code)]

pub mod kernels;
pub mod regulator;

use crate::Program;
use bulkhead_hal::abi::bare::{ENVIRONMENT, Environment, STACK};
use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Makes a function of type `fn(&Program)` the one that every hart of the program calls.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn bulkhead_main(program: &$crate::Program) {
            let main: fn(&$crate::Program) = $main;
            main(program)
        }
    };
}

// Harts arrive with their number in `a0` and the address of the device tree in `a1`; their stacks are below the environment or
// where it says, in order of arrival.
core::arch::global_asm!(
    ".section .text.start, \"ax\"",
    ".globl _start",
    ".option push",
    ".option arch, +a",
    "_start:",
    "    li t0, {float}",
    "    csrs mstatus, t0",
    "    la t0, {counter}",
    "    li t1, 1",
    "    amoadd.d a2, t1, (t0)",
    "    slli t1, a2, {stack}",
    "    addi a1, a1, -{environment}",
    "    ld sp, {stacks}(a1)",
    "    bnez sp, 1f",
    "    mv sp, a1",
    "1:",
    "    sub sp, sp, t1",
    "    la a3, __end",
    // The unwinder stops at a return address of 0.
    "    li ra, 0",
    "    tail {start}",
    ".option pop",
    float = const 1 << 13,
    counter = sym CAME,
    stack = const STACK.trailing_zeros(),
    environment = const ENVIRONMENT,
    stacks = const core::mem::offset_of!(Environment, stacks),
    start = sym start,
);

/// Harts that have come.
static CAME: AtomicU64 = AtomicU64::new(0);
/// There is a console.
static CONSOLE: AtomicBool = AtomicBool::new(false);

unsafe extern "Rust" {
    /// What [`entry!`] defines.
    safe fn bulkhead_main(program: &Program);
}

extern "C" fn start(hart: u64, environment: &'static Environment, rank: usize, end: u64) -> ! {
    let program = Program::new(hart, rank, end, environment);
    if environment.console != 0 {
        CONSOLE.store(true, Ordering::Relaxed);
    }
    bulkhead_main(&program);
    loop {
        bulkhead_hal::csr::wait_for_interrupt();
    }
}

pub(crate) fn has_console() -> bool {
    CONSOLE.load(Ordering::Relaxed)
}

/// Ends the run with an unhandled trap, so that the call chain is reported.
pub(crate) fn stop() -> ! {
    // SAFETY: a breakpoint traps; without a handler nothing runs afterwards.
    unsafe { asm!("ebreak", options(noreturn)) }
}

/// Loads of each chain per loop iteration, so that the two other instructions of the loop cost little.
pub const UNROLLED: u64 = 32;

/// The loop of [`Memory::follow`].
macro_rules! follow {
    ($steps:expr, $at:expr, $($chain:ident)+) => {{
        $(let mut $chain = $at($chain);)+
        let mut rounds = ($steps / UNROLLED).max(1);
        // SAFETY: loads without effect besides their time; an address outside of memory traps.
        unsafe {
            asm!(
                ".balign 64",
                "2:",
                ".rept {unrolled}",
                $(concat!("ld {", stringify!($chain), "}, 0({", stringify!($chain), "})"),)+
                ".endr",
                "addi {rounds}, {rounds}, -1",
                "bnez {rounds}, 2b",
                rounds = inout(reg) rounds,
                unrolled = const UNROLLED,
                $($chain = inout(reg) $chain,)+
                options(nostack, readonly)
            );
        }
        let _ = (rounds, $($chain),+);
    }};
}

/// A range of memory outside Rust's objects, in words of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    base: u64,
    words: u64,
}

impl Memory {
    /// From one address to another, rounded inwards to lines of 64 bytes.
    pub(crate) fn between(from: u64, to: u64) -> Self {
        let base = from.next_multiple_of(64);
        Self {
            base,
            words: (to & !63).saturating_sub(base) / 8,
        }
    }

    /// Memory of another tile, or external memory. Harts of other tiles see the same words there.
    pub fn of_others(address: u64, bytes: u64) -> Self {
        Self::between(address, address + bytes)
    }

    /// Address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.words * 8
    }

    /// A part of it.
    ///
    /// # Panics
    /// If it is not inside the memory.
    #[track_caller]
    pub fn part(&self, offset: u64, bytes: u64) -> Self {
        assert!(
            offset.is_multiple_of(8) && bytes.is_multiple_of(8) && offset + bytes <= self.bytes(),
            "{bytes} bytes from {offset} are not in {} bytes of memory",
            self.bytes()
        );
        Self {
            base: self.base + offset,
            words: bytes / 8,
        }
    }

    #[track_caller]
    fn word(&self, offset: u64) -> &'static AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset / 8 < self.words);
        // SAFETY: the words of this memory belong to nothing of Rust's, and are accessed as atomic ones only.
        unsafe { &*((self.base + offset) as *const AtomicU64) }
    }

    /// Writes the address of one word into another: a step of a chain.
    pub fn link(&self, from: u64, to: u64) {
        let to = core::ptr::from_ref(self.word(to)) as u64;
        self.word(from).store(to, Ordering::Relaxed);
    }

    /// The word at an offset.
    pub fn get(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    /// Reads 1 to 4 words for nothing, the first one at an offset and each `step` bytes behind the one before it. Their lines come, and no later instruction
    /// waits for them.
    #[inline(always)]
    pub fn touch(&self, offset: u64, step: u64, count: u64) {
        let at = core::ptr::from_ref(self.word(offset));
        self.word(offset + 3 * step);
        // SAFETY: the words can be read, and their values go nowhere.
        unsafe {
            match count {
                1 => asm!("ld zero, 0({0})", in(reg) at, options(nostack, readonly)),
                2 => asm!(
                    "ld zero, 0({0})", "add {0}, {0}, {1}", "ld zero, 0({0})",
                    inout(reg) at => _, in(reg) step, options(nostack, readonly)
                ),
                3 => asm!(
                    "ld zero, 0({0})", "add {0}, {0}, {1}", "ld zero, 0({0})", "add {0}, {0}, {1}", "ld zero, 0({0})",
                    inout(reg) at => _, in(reg) step, options(nostack, readonly)
                ),
                _ => asm!(
                    "ld zero, 0({0})", "add {0}, {0}, {1}", "ld zero, 0({0})", "add {0}, {0}, {1}", "ld zero, 0({0})",
                    "add {0}, {0}, {1}", "ld zero, 0({0})",
                    inout(reg) at => _, in(reg) step, options(nostack, readonly)
                ),
            }
        }
    }

    /// Loads four words, `step` bytes apart, in four cycles in a row, for ever: at `begin` and every `period` cycles after it, in cycles of the hart,
    /// each time the next four, round and round. The memory's size is a power of two, and a multiple of four steps.
    ///
    /// A wait that reads the clock in a loop ends some cycles too late, and each hart's some others. So the clock is read once for each burst, and
    /// instructions of one cycle fill the time until then. All harts with the same moments have the same delay, so their loads leave them together.
    /// A burst that is late does not wait.
    pub fn touch_at_moments(&self, begin: u64, period: u64, step: u64) -> ! {
        let first = core::ptr::from_ref(self.word(0));
        assert!(self.bytes().is_power_of_two() && 4 * step <= self.bytes());
        // Nothing comes back, so each register may be used.
        // SAFETY: the words are in the memory and can be read, and their values go nowhere. The jump leads to one of the 64 instructions before
        // label 3, or to it.
        unsafe {
            asm!(
                ".option push",
                "la t0, 3f",
                "li t1, 0",
                "1:",
                "add t4, a0, t1",
                "add t5, t4, a1",
                "add t6, t5, a1",
                "add a7, t6, a1",
                "add t1, a7, a1",
                "sub t1, t1, a0",
                "and t1, t1, a2",
                "2:",
                "rdcycle t2",
                "sub t2, a4, t2",
                "bgtz t2, 4f",
                "add a4, a4, a3",
                "j 3f",
                "4:",
                "addi t3, t2, -64",
                "bgtz t3, 2b",
                "add a4, a4, a3",
                "slli t2, t2, 1",
                "sub t3, t0, t2",
                "jr t3",
                ".option rvc",
                ".rept 64",
                "c.nop",
                ".endr",
                "3:",
                "ld zero, 0(t4)",
                "ld zero, 0(t5)",
                "ld zero, 0(t6)",
                "ld zero, 0(a7)",
                "j 1b",
                ".option pop",
                in("a0") first,
                in("a1") step,
                in("a2") self.bytes() - 1,
                in("a3") period,
                in("a4") begin,
                options(nostack, readonly, noreturn)
            )
        }
    }

    /// Writes the word at an offset.
    pub fn set(&self, offset: u64, value: u64) {
        self.word(offset).store(value, Ordering::Relaxed);
    }

    /// Adds to the word at an offset, atomically. Returns what it was.
    pub fn add(&self, offset: u64, value: u64) -> u64 {
        self.word(offset).fetch_add(value, Ordering::Relaxed)
    }

    /// Replaces the word at an offset by `new` if it is `old`, with LR and SC. Returns whether it was.
    pub fn replace(&self, offset: u64, old: u64, new: u64) -> bool {
        let word = self.word(offset);
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        word.compare_exchange(old, new, done, failed).is_ok()
    }

    /// The offset that the word at an offset links to.
    pub fn target(&self, offset: u64) -> u64 {
        self.get(offset) - self.base
    }

    /// Follows the chains that begin at these offsets for `steps` steps each (a positive multiple of [`UNROLLED`]), with one load of each
    /// chain in turn. A chain that was not linked leads out of memory, and traps.
    ///
    /// # Panics
    /// If there are not 1 to 8 chains.
    pub fn follow(&self, heads: &[u64], steps: u64) {
        let at = |offset: u64| core::ptr::from_ref(self.word(offset)) as u64;
        match *heads {
            [a] => follow!(steps, at, a),
            [a, b] => follow!(steps, at, a b),
            [a, b, c] => follow!(steps, at, a b c),
            [a, b, c, d] => follow!(steps, at, a b c d),
            [a, b, c, d, e] => follow!(steps, at, a b c d e),
            [a, b, c, d, e, f] => follow!(steps, at, a b c d e f),
            [a, b, c, d, e, f, g] => follow!(steps, at, a b c d e f g),
            [a, b, c, d, e, f, g, h] => follow!(steps, at, a b c d e f g h),
            _ => panic!("{} chains; 1 to 8 are possible", heads.len()),
        }
    }

    /// Reads every word once, in line order. Returns the sum.
    #[inline(never)]
    pub fn read(&self) -> u64 {
        let mut sum = 0u64;
        for line in 0..self.words / 8 {
            let words: [u64; 8] = core::array::from_fn(|word| {
                self.at(line * 8 + word as u64).load(Ordering::Relaxed)
            });
            sum = words.iter().fold(sum, |sum, word| sum.wrapping_add(*word));
        }
        sum
    }

    /// Writes every word once, in line order.
    #[inline(never)]
    pub fn write(&self, value: u64) {
        for line in 0..self.words / 8 {
            for word in 0..8 {
                self.at(line * 8 + word).store(value, Ordering::Relaxed);
            }
        }
    }

    /// Writes every word once, each after the previous one has been performed.
    #[inline(never)]
    pub fn store(&self, value: u64) {
        for line in 0..self.words / 8 {
            for word in 0..8 {
                self.at(line * 8 + word).store(value, Ordering::Relaxed);
                fence();
            }
        }
    }

    /// Copies the first half to the second, in line order.
    #[inline(never)]
    pub fn copy(&self) {
        let half = self.words / 16;
        for line in 0..half {
            let words: [u64; 8] = core::array::from_fn(|word| {
                self.at(line * 8 + word as u64).load(Ordering::Relaxed)
            });
            for (word, value) in words.into_iter().enumerate() {
                let to = (half + line) * 8 + word as u64;
                self.at(to).store(value, Ordering::Relaxed);
            }
        }
    }

    /// Copies its words to another memory of at least its size, in line order.
    ///
    /// # Panics
    /// If the other memory is smaller.
    #[inline(never)]
    #[track_caller]
    pub fn copy_to(&self, other: &Self) {
        assert!(
            self.words <= other.words,
            "{} bytes do not fit in {}",
            self.bytes(),
            other.bytes()
        );
        for line in 0..self.words / 8 {
            let words: [u64; 8] = core::array::from_fn(|word| {
                self.at(line * 8 + word as u64).load(Ordering::Relaxed)
            });
            for (word, value) in words.into_iter().enumerate() {
                let to = other.at(line * 8 + word as u64);
                to.store(value, Ordering::Relaxed);
            }
        }
    }

    /// A word by its number, which the caller keeps below [`Memory::words`].
    #[inline(always)]
    fn at(&self, word: u64) -> &'static AtomicU64 {
        debug_assert!(word < self.words);
        // SAFETY: as in `word`; the callers above count lines of this memory.
        unsafe { &*((self.base + word * 8) as *const AtomicU64) }
    }
}

impl Memory {
    /// Writes every line back to memory and drops it, and waits until all of them are there.
    pub fn flush(&self) {
        for line in (self.base..self.base + self.bytes()).step_by(LEAST_LINE) {
            bulkhead_hal::csr::write_back(line);
        }
        fence();
    }
}

/// No line is shorter.
const LEAST_LINE: usize = 16;

/// Registers of a device, of eight or of four bytes.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    base: u64,
}

impl Registers {
    /// The registers from an address on, which are no Rust memory.
    pub fn at(base: u64) -> Self {
        Self { base }
    }

    /// Reads the register at an offset.
    pub fn get(&self, offset: u64) -> u64 {
        // SAFETY: a device register is no Rust memory; an address without one traps.
        unsafe { ((self.base + offset) as *const u64).read_volatile() }
    }

    /// Reads a register of four bytes.
    pub fn get_half(&self, offset: u64) -> u32 {
        // SAFETY: as in `get`.
        unsafe { ((self.base + offset) as *const u32).read_volatile() }
    }

    /// Writes a register of four bytes.
    pub fn set_half(&self, offset: u64, value: u32) {
        // SAFETY: as in `get`.
        unsafe { ((self.base + offset) as *mut u32).write_volatile(value) };
    }

    /// Writes the register at an offset.
    pub fn set(&self, offset: u64, value: u64) {
        // SAFETY: as in `get`. What a device does with memory is up to the caller, whose Rust objects are elsewhere.
        unsafe { ((self.base + offset) as *mut u64).write_volatile(value) };
    }
}

/// Waits until the hart's cycle `moment`, and a fixed number of cycles more. Does not wait if that is over.
///
/// A wait that reads the clock in a loop ends some cycles too late, and each hart's some others. This reads the clock a last time up to 64 cycles
/// before the moment, and instructions of one cycle fill the rest: so many are executed as are missing.
#[inline(always)]
pub fn wait_until(moment: u64) {
    // SAFETY: reads the clock. The jump leads to one of the 64 instructions before label 3, or to it.
    unsafe {
        asm!(
            ".option push",
            "la {end}, 3f",
            "2:",
            "rdcycle {left}",
            "sub {left}, {moment}, {left}",
            "blez {left}, 3f",
            "addi {more}, {left}, -64",
            "bgtz {more}, 2b",
            "slli {left}, {left}, 1",
            "sub {more}, {end}, {left}",
            "jr {more}",
            ".option rvc",
            ".rept 64",
            "c.nop",
            ".endr",
            "3:",
            ".option pop",
            moment = in(reg) moment,
            end = out(reg) _,
            left = out(reg) _,
            more = out(reg) _,
            options(nostack)
        );
    }
}

/// Waits until all earlier accesses are performed.
#[inline(always)]
pub fn fence() {
    // SAFETY: only orders.
    unsafe { asm!("fence rw, rw", options(nostack)) };
}
