//! Whether the memory of an application or manager has room for its program, buffers and stack.
//!
//! Why it exists: if a manager has no room for one application, it starts nothing, so the least critical application would keep the most
//! critical one from starting. The rules are those of the managers, applied before anything runs. Their numbers (stacks, slots for replies)
//! are those of `software/tiled/resmgr/src/create.rs`. A test of the whole system compares both to the page, for an application and for a
//! manager. What it deliberately does not know: how programs are built.

use crate::error::Error;
use crate::programs::Program;
use bulkhead_abi::syscall::SYSCALL_SLOT;
use bulkhead_loader::image::{HEAD, Image};
use bulkhead_loader::layout::{Layout, LayoutError, PAGE};
use bulkhead_model::System;
use bulkhead_model::system::App;

/// Bytes of the stack of an application and of a manager; a stack has at most a quarter of the memory.
const STACKS: [u64; 2] = [16 << 10, 64 << 10];
/// Minimum bytes of a slot for replies.
const CALL_SLOT: u64 = 64;

/// An owner of memory, as its manager starts it.
struct Owner<'a> {
    /// Its kind and name, for messages.
    what: String,
    program: &'a str,
    memory: u64,
    buffers: u64,
    /// Bytes of its stack, if the description gives them; otherwise the stack has at most `usual` bytes.
    stack: Option<u64>,
    usual: u64,
}

impl Owner<'_> {
    /// The least memory in which its program fits, if the present one is too small.
    fn lacks(&self, image: &Image) -> Option<u64> {
        let plan = |memory: u64| {
            let stack = self.stack.unwrap_or(self.usual.min(memory / 4));
            Layout::plan(image, memory, self.buffers, stack)
        };
        let mut memory = self.memory;
        // The stack grows with the memory up to its usual size.
        while let Err(LayoutError::TooSmall(needed)) = plan(memory) {
            memory = needed.max(memory.saturating_add(PAGE));
            if memory == u64::MAX {
                break;
            }
        }
        (memory > self.memory).then_some(memory)
    }

    /// The same for the smallest program that there can be: a page of code.
    fn lacks_least(&self) -> Option<u64> {
        let stack = self.stack.unwrap_or(self.usual.min(self.memory / 4));
        let buffers = self.buffers.div_ceil(PAGE);
        let pages = 2 + buffers + stack.div_ceil(PAGE).max(1);
        let needed = pages.saturating_mul(PAGE);
        (needed > self.memory).then_some(needed)
    }
}

/// Bytes of the buffers of an application: for replies to its system calls and to its messages, and of its receive gates.
fn buffers(system: &System, app: &App) -> u64 {
    let received = app.rgates.iter();
    let received = received.map(|gate| u64::from(gate.slots) * u64::from(gate.slot_size));
    // A sender whose credits are not counted handles replies itself: there is room for one reply.
    let credits = app.sgates.iter().map(|gate| u64::from(gate.credits.max(1)));
    let credits: u64 = credits.sum();
    let sizes = app.sgates.iter();
    let sizes = sizes.map(|gate| u64::from(system.apps[gate.to].rgates[gate.gate].slot_size));
    let slot = sizes.max().unwrap_or(CALL_SLOT).max(CALL_SLOT);
    let replies = match credits {
        0 => 0,
        credits => (credits + 1) * slot,
    };
    u64::from(SYSCALL_SLOT) + replies + received.sum::<u64>()
}

/// Checks every application and manager. A program that is not in `programs` is not built yet: it has at least a page.
///
/// # Errors
/// Names the first one whose memory is too small, and how much it needs.
pub fn check(system: &System, programs: &[Program]) -> Result<(), Error> {
    let apps = system.apps.iter().filter(|app| !app.is_unit());
    let apps = apps.map(|app| Owner {
        what: format!("application `{}`", app.name),
        program: &app.program,
        memory: app.memory.0,
        buffers: buffers(system, app),
        stack: app.stack.map(|stack| stack.0),
        usual: STACKS[0],
    });
    // The kernel loads the root manager.
    let managers = system.managers.iter().skip(1).map(|manager| Owner {
        what: format!("manager `{}`", manager.name),
        program: &manager.program,
        memory: manager.memory.0,
        buffers: SYSCALL_SLOT.into(),
        stack: None,
        usual: STACKS[1],
    });
    for owner in apps.chain(managers) {
        let mut all = programs.iter();
        let built = all.find(|program| program.name == owner.program);
        let image = built.map(|Program { elf, .. }| {
            Image::parse(elf.get(..HEAD).unwrap_or(elf), elf.len() as u64)
        });
        let lacks = match &image {
            Some(Ok(image)) => owner.lacks(image),
            // Other checks refuse a program that cannot be read.
            Some(Err(_)) => None,
            None => owner.lacks_least(),
        };
        let Some(needed) = lacks else { continue };
        let Owner {
            what,
            program,
            memory,
            ..
        } = owner;
        let why = match image {
            Some(_) => format!("{program} with its buffers and stack needs {needed}"),
            None => format!(
                "its buffers and stack leave no room for any program; the smallest one needs {needed}"
            ),
        };
        return Err(Error::input(
            format!("the {what} has {memory} bytes of memory: {why}"),
            format!("give it memory=\"{}KiB\" or more", needed.div_ceil(1024)),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loadable;
    use bulkhead_model::{LoadOptions, load_system_text};

    /// A program of three pages.
    fn program() -> Program {
        let segment = |rights, page: u64| (rights, 0x1000_1000 + page * PAGE, PAGE);
        let segments = [segment(5, 0), segment(6, 1), segment(6, 2)];
        Program {
            name: "p".to_owned(),
            elf: loadable::tests::elf(2, 0x1000_1000, &segments),
        }
    }

    fn said(attributes: &str, gates: &str) -> String {
        said_with(&[program()], attributes, gates)
    }

    fn said_with(programs: &[Program], attributes: &str, gates: &str) -> String {
        let text = format!(
            "<system name='s' platform='tiled-2ghz'><domain name='d'><app name='a' tile='2' program='p' {attributes}>{gates}</app></domain></system>"
        );
        let system = load_system_text("s", &text, &LoadOptions::default());
        let system = system.unwrap_or_else(|error| panic!("{error}"));
        let checked = check(&system, programs);
        checked.map_or_else(|error| error.to_string(), |()| "good".to_owned())
    }

    /// Environment 1, program 3, buffers 1, stack: pages.
    #[test]
    fn memory_holds_program_buffers_and_stack() {
        assert_eq!(said("memory='36KiB' stack='16KiB'", ""), "good");
        assert_eq!(
            said("memory='32KiB' stack='16KiB'", ""),
            "the application `a` has 32768 bytes of memory: p with its buffers and stack needs 36864"
        );
        // Without a size, the stack is a quarter of the memory.
        assert_eq!(said("memory='28KiB'", ""), "good");
        assert_eq!(
            said("memory='16KiB'", ""),
            "the application `a` has 16384 bytes of memory: p with its buffers and stack needs 28672"
        );
    }

    #[test]
    fn what_no_program_fits_is_refused_before_one_is_built() {
        let gates = "<rgate name='g' slots='32' slot-size='2KiB'/>";
        assert_eq!(said_with(&[], "memory='36KiB' stack='16KiB'", ""), "good");
        assert_eq!(
            said_with(&[], "memory='64KiB'", gates),
            "the application `a` has 65536 bytes of memory: its buffers and stack leave no room for any program; the smallest one needs 94208"
        );
    }

    /// 192 bytes for calls, 8 slots of 2 KiB, and 8 plus one slots for replies, of the gate's size: nine pages.
    #[test]
    fn every_slot_needs_room() {
        let gates = "<rgate name='g' slots='8' slot-size='2KiB'/><sgate name='s' to='a' gate='g' credits='8'/>";
        assert_eq!(said("memory='68KiB' stack='16KiB'", gates), "good");
        assert_eq!(
            said("memory='64KiB' stack='16KiB'", gates),
            "the application `a` has 65536 bytes of memory: p with its buffers and stack needs 69632"
        );
    }
}
