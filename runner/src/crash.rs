//! A crash in full: what happened, which address was accessed, the registers, and the call chain.
//!
//! Why it exists: the place of a fault is rarely the mistake; its callers lead to it. What it deliberately does not know: how a program
//! was run, and what its memory looks like.

use crate::names::Names;
use crate::observed::Observed;
use crate::places::is_own;
use crate::programs::{Program, source};
use crate::trap;
use bulkhead_machine::hart::UnhandledTrap;
use bulkhead_machine::image::unwind::Unwinder;
use bulkhead_machine::image::{Location, Resolver};
use bulkhead_machine::types::Owner;
use bulkhead_report::crash::Crash;
use bulkhead_report::result::{Incident, IncidentKind};

/// Maximum number of frames: a full stack has thousands, and the innermost ones show the cause.
const FRAMES: usize = 32;
/// The register of the return address.
const RA: usize = 1;
/// The stack pointer.
const SP: usize = 2;

/// Like [`of`], for a program that was moved `by` from the addresses of its file. The registers, and where it happened, are those of the
/// run.
pub fn of_moved(
    (elf, by): (&[u8], u64),
    trap: &UnhandledTrap,
    registers: &[u64; 32],
    read: &dyn Fn(u64) -> Option<u64>,
) -> Crash {
    if by == 0 {
        return of(elf, trap, registers, read);
    }
    // Return addresses are in `ra` and on the stack; the file's own code shows which words of the stack they are.
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

/// The known facts about a trap that ended a program. `read` returns a word of memory as the program sees it.
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

/// Adds the backtrace to a crash, if the machine kept what is needed. A panic in a library gets the place that called it, and an access on
/// the stack where there is no memory its cause.
pub fn explain(program: &Program, incident: &mut Incident, seen: &Observed) {
    if incident.kind != IncidentKind::Crash {
        return;
    }
    let mut all = seen.crashes.iter();
    let kept = all.find(|one| (Some(one.at), one.owner.tile) == (incident.at, incident.tile));
    let Some(kept) = kept else {
        return;
    };
    let read = |address| kept.word(address);
    let crash = of(&program.elf, &kept.trap, &kept.registers, &read);
    if is_panic_of_others(&incident.what)
        && let Some(own) = called_in(&program.elf, kept.trap.pc, &kept.registers, &read)
    {
        incident.what += &format!(", called in {own}");
    }
    // A large frame can skip the page below the stack, at which its manager recognises an overflow.
    let is_beyond = read(kept.registers[SP]).is_none();
    if crash.is_near_stack() && is_beyond && !incident.what.contains("stack overflow") {
        incident.what += ": stack overflow; give the application a larger `stack`";
    }
    incident.crash = Some(crash);
}

/// Whether an application panicked at a place that is not in its own sources.
fn is_panic_of_others(what: &str) -> bool {
    let place = what.strip_prefix("stopped: panic: ");
    let place = place.and_then(|said| said.rsplit_once(" at "));
    let file = place.and_then(|(_, place)| place.split(':').next());
    file.is_some_and(|file| !is_own(file))
}

/// Where an application's own sources called the code of others in which it crashed, or was when the run ended.
pub fn called(
    program: &Program,
    names: &Names,
    seen: &Observed,
    (application, pc): (&str, u64),
) -> Option<String> {
    let is_it = |owner: Owner, at: u64| at == pc && names.owner(owner) == application;
    let elf = &program.elf;
    let mut running = seen.running.iter();
    if let Some(one) = running.find(|one| is_it(one.owner, one.pc)) {
        return called_in(elf, pc, &one.registers, &|address| one.word(address));
    }
    let mut crashes = seen.crashes.iter();
    let one = crashes.find(|one| is_it(one.owner, one.trap.pc))?;
    called_in(elf, pc, &one.registers, &|address| one.word(address))
}

/// The innermost place in the program's own sources that called the foreign code in which the program is. `None`: the program is in its own
/// code, or nothing is known.
fn called_in(
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

/// The functions at an address: those inlined into each other, the innermost first.
fn places(resolver: &Resolver, pc: u64) -> Vec<String> {
    let mut outer = named(resolver.resolve(pc));
    let mut inlined: Vec<Location> = resolver.inlined(pc);
    // The last one is the function itself, which has a name even without debug information. `resolve` returns its name and the line of the
    // innermost function.
    if let Some(own) = inlined.pop().map(named) {
        (outer.file, outer.line) = (own.file, own.line);
    }
    let inlined = inlined
        .into_iter()
        .map(|place| format!("{} (inlined)", named(place)));
    let own = match outer.function {
        Some(_) => outer.to_string(),
        None => format!("{pc:#x}, which is not in the program's code"),
    };
    inlined.chain([own]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_library_is_told_from_one_of_the_program() {
        for (what, of_others) in [
            (
                "stopped: panic: no <sgate name=\"x\"> in the description at bulkhead/software/lib/src/gate.rs:110:21",
                true,
            ),
            (
                "stopped: panic: index out of bounds at src/main.rs:7:3",
                false,
            ),
            ("stopped: panic", false),
            ("stopped: exit 3", false),
        ] {
            assert_eq!(is_panic_of_others(what), of_others, "{what}");
        }
    }
}
