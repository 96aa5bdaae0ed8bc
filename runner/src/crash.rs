//! A crash in full: what happened, which address was accessed, the registers, and who had called whom.
//!
//! Why it exists: the place of a fault is rarely the mistake; its callers lead there. What it deliberately does not know: how a program
//! was run, and what its memory looks like.

use crate::places::is_own;
use crate::programs::source;
use crate::trap;
use bulkhead_machine::hart::UnhandledTrap;
use bulkhead_machine::image::unwind::Unwinder;
use bulkhead_machine::image::{Location, Resolver};
use bulkhead_report::crash::Crash;

/// Frames at most: a stack that is full has thousands of them, and the innermost ones say why.
const FRAMES: usize = 32;
/// The register of the return address.
const RA: usize = 1;

/// As [`of`], of a program that was moved `by` from the addresses of its file. The registers, and where it happened, are those of the run.
pub fn of_moved(
    (elf, by): (&[u8], u64),
    trap: &UnhandledTrap,
    registers: &[u64; 32],
    read: &dyn Fn(u64) -> Option<u64>,
) -> Crash {
    if by == 0 {
        return of(elf, trap, registers, read);
    }
    // Return addresses are in `ra` and on the stack; the file's own code says which words of the stack they are.
    let resolver = Resolver::new(elf);
    let back = |value: u64| {
        let linked = value.wrapping_sub(by);
        match resolver.resolve(linked).function {
            Some(_) => linked,
            None => value,
        }
    };
    let linked = UnhandledTrap {
        pc: trap.pc.wrapping_sub(by),
        ..*trap
    };
    let mut own = *registers;
    own[RA] = back(own[RA]);
    let crash = of(elf, &linked, &own, &|address| read(address).map(back));
    Crash {
        pc: trap.pc,
        registers: registers.to_vec(),
        ..crash
    }
}

/// What is known of a trap that ended a program. `read` gives a word of memory as the program sees it.
pub fn of(
    elf: &[u8],
    trap: &UnhandledTrap,
    registers: &[u64; 32],
    read: &dyn Fn(u64) -> Option<u64>,
) -> Crash {
    let resolver = Resolver::new(elf);
    let unwinder = Unwinder::new(elf, &resolver);
    let mut frames = unwinder.walk(trap.pc, registers, read, FRAMES + 1);
    let truncated = frames.len() > FRAMES;
    frames.truncate(FRAMES);
    // Misaligned, refused and unmapped accesses of any kind name their address.
    let is_access = matches!(trap.cause, 0 | 1 | 4..=7 | 12 | 13 | 15);
    Crash {
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

/// The innermost place in the program's own sources, from which others' code that it is in was called. `None`: it is in its own, or nothing
/// is known.
pub fn called_in(
    elf: &[u8],
    pc: u64,
    registers: &[u64; 32],
    read: &dyn Fn(u64) -> Option<u64>,
) -> Option<String> {
    let resolver = Resolver::new(elf);
    let frames = Unwinder::new(elf, &resolver).walk(pc, registers, read, FRAMES);
    let places = frames.iter().flat_map(|pc| resolver.inlined(*pc));
    let mut places = places.map(named).enumerate();
    let own = places.find(|(_, place)| place.file.as_deref().is_some_and(is_own))?;
    (own.0 > 0).then(|| own.1.to_string())
}

/// A place with its file as users know it.
fn named(mut place: Location) -> Location {
    place.file = place.file.map(|file| source(&file).to_owned());
    place
}

/// The functions that an address is in: those inlined into each other, the innermost first.
fn places(resolver: &Resolver, pc: u64) -> Vec<String> {
    let mut outer = named(resolver.resolve(pc));
    let mut inlined: Vec<Location> = resolver.inlined(pc);
    // The last one is the function itself, which has a name even without debug information. What resolves is its name, and the line of the
    // innermost.
    if let Some(own) = inlined.pop().map(named) {
        (outer.file, outer.line) = (own.file, own.line);
    }
    let inlined = inlined
        .into_iter()
        .map(|place| format!("{} (inlined)", named(place)));
    let own = match outer.function {
        Some(_) => outer.to_string(),
        None => format!("{pc:#x}, which is no code of the program"),
    };
    inlined.chain([own]).collect()
}
