//! A crash in full: what happened, which address was accessed, the registers, and who had called whom.
//!
//! Why it exists: the place of a fault is rarely the mistake; its callers lead there. What it deliberately does not know: how a program
//! was run, and what its memory looks like.

use crate::trap;
use bulkhead_machine::hart::UnhandledTrap;
use bulkhead_machine::image::unwind::Unwinder;
use bulkhead_machine::image::{Location, Resolver};
use serde::Serialize;

/// Frames at most: a stack that is full has thousands of them, and the innermost ones say why.
const FRAMES: usize = 32;
/// Names of the registers in the calling convention.
const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

/// A crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Crash {
    /// The exception in words.
    pub cause: String,
    /// Where it happened.
    pub pc: u64,
    /// The address that was accessed, if it was an access that failed.
    pub address: Option<u64>,
    /// Integer registers `x0` to `x31`.
    pub registers: Vec<u64>,
    /// Function, file and line of each frame, the innermost first.
    pub backtrace: Vec<String>,
    /// There are more frames.
    pub truncated: bool,
}

impl Crash {
    /// Of a trap that nobody handled. `read` gives a word of memory as the program sees it.
    pub fn of(
        elf: &[u8],
        trap: &UnhandledTrap,
        registers: &[u64; 32],
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Self {
        let resolver = Resolver::new(elf);
        let unwinder = Unwinder::new(elf, &resolver);
        let mut frames = unwinder.walk(trap.pc, registers, read, FRAMES + 1);
        let truncated = frames.len() > FRAMES;
        frames.truncate(FRAMES);
        // Misaligned, refused and unmapped accesses of any kind name their address.
        let is_access = matches!(trap.cause, 0 | 1 | 4..=7 | 12 | 13 | 15);
        Self {
            cause: trap::cause(trap.cause),
            pc: trap.pc,
            address: is_access.then_some(trap.value),
            registers: registers.to_vec(),
            backtrace: frames
                .iter()
                .flat_map(|pc| places(&resolver, *pc))
                .collect(),
            truncated,
        }
    }

    /// For the terminal: a few lines, each indented.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(address) = self.address {
            let hint = match address {
                0..0x1000 => ", near 0: a null pointer?",
                _ => "",
            };
            text.push_str(&format!("  address {address:#x}{hint}\n"));
        }
        text.push_str("  backtrace, the innermost function first:\n");
        for (index, frame) in self.backtrace.iter().enumerate() {
            text.push_str(&format!("  {index:>4}: {frame}\n"));
        }
        if self.truncated {
            text.push_str("        and more; does a function call itself without end?\n");
        }
        text.push_str("  registers:\n");
        let named: Vec<String> = NAMES
            .iter()
            .zip(&self.registers)
            .skip(1)
            .map(|(name, value)| format!("{name:>5} {value:016x}"))
            .collect();
        for row in named.chunks(4) {
            text.push_str(&format!("  {}\n", row.join("")));
        }
        text
    }
}

/// The functions that an address is in: those inlined into each other, the innermost first.
fn places(resolver: &Resolver, pc: u64) -> Vec<String> {
    let outer = resolver.resolve(pc);
    let mut inlined: Vec<Location> = resolver.inlined(pc);
    // The last one is the function itself, which has a name even without debug information.
    inlined.pop();
    let inlined = inlined
        .into_iter()
        .map(|place| format!("{place} (inlined)"));
    let own = match outer.function {
        Some(_) => outer.to_string(),
        None => format!("{pc:#x}, which is no code of the program"),
    };
    inlined.chain([own]).collect()
}
