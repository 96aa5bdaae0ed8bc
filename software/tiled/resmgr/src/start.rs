//! Creates, connects, loads and starts all applications.
//!
//! Why it exists: these are the manager's steps, in an order in which no application runs before all gates are there.
//! What it deliberately does not know: what happens afterwards.

use crate::{call, close, open_module};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::dtu::{DtuError, NO_ENDPOINT, SLOTS_MAX};
use bulkhead_abi::environment::{
    ArgumentEntry, ENVIRONMENT_BASE, ENVIRONMENT_MAGIC, ENVIRONMENT_SIZE, Environment, GateEntry,
    GateKind,
};
use bulkhead_abi::syscall::{SYSCALL_SLOT, Syscall, SyscallError};
use bulkhead_abi::tilemux::table_pages;
use bulkhead_abi::words::Name;
use bulkhead_lib::gate::MemoryGate;
use bulkhead_loader::environment;
use bulkhead_loader::image::{HEAD, Image, ImageError, Segment};
use bulkhead_loader::layout::{Layout, LayoutError, PAGE};
use bulkhead_resmgr::description::{App, Mistake};
use core::fmt;
use zerocopy::FromZeros;

/// Bytes of a stack, at most a quarter of an application's memory.
const STACK: u64 = 16 << 10;
/// Messages that an application may have under way at most, over all of its gates: their replies need one slot each, and one
/// more, because a reply may come, and with it the credit for another message, between the look at the buffer and that
/// message.
const CREDITS_MAX: u32 = SLOTS_MAX as u32 - 1;
/// Bytes of such a slot at least.
const CALL_SLOT: u16 = 64;

/// Why the system could not be started.
#[derive(Debug)]
pub enum Failure {
    /// The description is wrong.
    Description(Mistake),
    /// The description is not UTF-8.
    NotText,
    /// There is no such boot module.
    NoModule(String),
    /// The program of an application is unusable.
    Program(String, ImageError),
    /// A program does not fit its memory.
    Layout(String, LayoutError),
    /// Names or gates do not fit the environment of an application.
    Environment(String),
    /// An application has more credits than there can be slots for replies.
    Credits(String, u32),
    /// The kernel refused a step.
    Call(&'static str, SyscallError),
    /// A transfer failed.
    Transfer(DtuError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Description(mistake) => write!(f, "{mistake}"),
            Failure::NotText => f.write_str("system.xml is not UTF-8"),
            Failure::NoModule(name) => write!(f, "there is no boot module `{name}`"),
            Failure::Program(name, error) => write!(f, "program of `{name}`: {error:?}"),
            Failure::Layout(name, LayoutError::TooSmall(bytes)) => {
                write!(f, "`{name}` needs at least {bytes} bytes of memory")
            }
            Failure::Layout(name, error) => write!(f, "program of `{name}`: {error:?}"),
            Failure::Environment(name) => {
                write!(f, "gates and arguments of `{name}` do not fit one page")
            }
            Failure::Credits(name, credits) => write!(
                f,
                "`{name}` has {credits} credits over all of its gates, more than {CREDITS_MAX}"
            ),
            Failure::Call(what, error) => write!(f, "the kernel refused to {what}: {error:?}"),
            Failure::Transfer(error) => write!(f, "a transfer failed: {error:?}"),
        }
    }
}

/// A started application.
pub struct Started {
    /// Its activity.
    pub activity: u16,
    /// Its name.
    pub name: String,
    /// Where its parts lie.
    pub layout: Layout,
    /// Whether the system ends only after it.
    pub foreground: bool,
    /// Whether it has ended.
    pub ended: bool,
}

/// An application on its way to its start.
struct Draft<'a> {
    app: &'a App,
    activity: u16,
    image: Image,
    layout: Layout,
    header: Environment,
    gates: Vec<GateEntry>,
    /// Endpoints of its receive gates.
    receive: Vec<u16>,
}

/// Starts all applications.
///
/// # Errors
/// The first failure.
pub fn start(apps: &[App]) -> Result<Vec<Started>, Failure> {
    configure_tiles(apps)?;
    let mut drafts = Vec::new();
    for app in apps {
        drafts.push(create(app, apps)?);
    }
    for index in 0..drafts.len() {
        connect(&mut drafts, index)?;
    }
    for draft in &drafts {
        load(draft)?;
    }
    // What runs in the background first: what the others measure shall not see it start.
    let (foreground, background): (Vec<_>, Vec<_>) = drafts.iter().partition(|d| d.app.foreground);
    for draft in background.into_iter().chain(foreground) {
        let request = Syscall::Start {
            activity: draft.activity,
            entry: draft.image.entry,
            stack: draft.layout.stack_top,
        };
        call("start an activity", &request)?;
    }
    let started = drafts.into_iter().map(|draft| Started {
        activity: draft.activity,
        name: draft.app.name.clone(),
        layout: draft.layout,
        foreground: draft.app.foreground,
        ended: false,
    });
    Ok(started.collect())
}

/// Gives every tile the memory that its applications need.
fn configure_tiles(apps: &[App]) -> Result<(), Failure> {
    let mut needs: BTreeMap<(u16, u16), u64> = BTreeMap::new();
    for app in apps {
        let memory = app.memory.next_multiple_of(PAGE) + table_pages(app.memory) * PAGE;
        *needs.entry((app.tile, app.memory_tile)).or_default() += memory;
    }
    for ((tile, memory_tile), memory) in needs {
        let request = Syscall::ConfigureTile {
            tile,
            memory,
            memory_tile,
        };
        call("configure a tile", &request)?;
    }
    Ok(())
}

/// Slots and bytes of a slot for the replies to an application's messages; none if it sends nothing.
fn call_slots(app: &App, apps: &[App]) -> Result<Option<(u8, u16)>, Failure> {
    let credits = app
        .send
        .iter()
        .map(|gate| u32::from(gate.credits))
        .sum::<u32>();
    let sizes = app.send.iter();
    let sizes = sizes.map(|gate| apps[gate.to].receive[gate.gate].slot_size);
    if credits > CREDITS_MAX {
        return Err(Failure::Credits(app.name.clone(), credits));
    }
    let size = sizes.max().unwrap_or(CALL_SLOT).max(CALL_SLOT);
    Ok((credits > 0).then_some((credits as u8 + 1, size)))
}

/// Creates an activity with its receive endpoints, and plans its memory.
fn create<'a>(app: &'a App, apps: &[App]) -> Result<Draft<'a>, Failure> {
    let module = open_module(&app.program)?;
    let mut head = alloc::vec![0; HEAD.min(module.size() as usize)];
    module.read(0, &mut head).map_err(Failure::Transfer)?;
    close(&module)?;
    let image = Image::parse(&head, module.size());
    let image = image.map_err(|error| Failure::Program(app.name.clone(), error))?;
    let call_slots = call_slots(app, apps)?;
    let bytes = |slots: u8, size: u16| u64::from(slots) * u64::from(size);
    let buffers = bytes(1, SYSCALL_SLOT)
        + call_slots.map_or(0, |(slots, size)| bytes(slots, size))
        + app
            .receive
            .iter()
            .map(|g| bytes(g.slots, g.slot_size))
            .sum::<u64>();
    let stack = STACK.min(app.memory / 4);
    let layout = Layout::plan(&image, app.memory, buffers, stack);
    let layout = layout.map_err(|error| Failure::Layout(app.name.clone(), error))?;

    let name = Name::new(&app.name).ok_or_else(|| Failure::Environment(app.name.clone()))?;
    let request = Syscall::CreateActivity {
        tile: app.tile,
        memory: app.memory,
        memory_tile: app.memory_tile,
        name,
    };
    let [id, syscall_send, frequency, ..] = call("create an activity", &request)?;
    let activity = id as u16;
    let mut at = 0;
    let mut receive = |slots: u8, slot_size: u16, replies: bool| {
        let request = Syscall::CreateReceive {
            activity,
            offset: layout.buffers_offset + at,
            slots,
            slot_size,
            replies: replies.into(),
        };
        let [endpoint, ..] = call("create a receive gate", &request)?;
        let buffer = layout.buffers + at;
        at += bytes(slots, slot_size);
        Ok((endpoint as u16, buffer))
    };
    let (syscall_reply, syscall_buffer) = receive(1, SYSCALL_SLOT, false)?;
    let (call_reply, call_buffer) = match call_slots {
        Some((slots, size)) => receive(slots, size, false)?,
        None => (NO_ENDPOINT, 0),
    };
    let mut endpoints = Vec::new();
    let mut gates = Vec::new();
    for gate in &app.receive {
        let (endpoint, buffer) = receive(gate.slots, gate.slot_size, true)?;
        endpoints.push(endpoint);
        gates.push(GateEntry {
            slot_size: gate.slot_size,
            buffer,
            size: gate.slots.into(),
            ..entry(app, &gate.name, GateKind::Receive, endpoint)?
        });
    }
    let own = bulkhead_lib::environment();
    let (period, deadline) = app.task.unwrap_or((0, 0));
    let header = Environment {
        magic: ENVIRONMENT_MAGIC,
        activity,
        tile: app.tile,
        timebase: own.timebase,
        frequency,
        period,
        deadline,
        heap_start: layout.heap,
        heap_size: layout.heap_size,
        stack_bottom: layout.stack_bottom,
        stack_top: layout.stack_top,
        syscall_send: syscall_send as u16,
        syscall_reply,
        call_reply,
        syscall_buffer,
        call_buffer,
        name: name.0,
        ..Environment::new_zeroed()
    };
    if let Some((rate, burst)) = app.limit {
        let request = Syscall::SetLimit {
            activity,
            rate,
            burst,
        };
        call("set a limit", &request)?;
    }
    if let Some((budget, period, priority)) = app.budget {
        let request = Syscall::SetBudget {
            activity,
            budget,
            period,
            priority,
        };
        call("set a budget", &request)?;
    }
    Ok(Draft {
        app,
        activity,
        image,
        layout,
        header,
        gates,
        receive: endpoints,
    })
}

fn entry(app: &App, name: &str, kind: GateKind, endpoint: u16) -> Result<GateEntry, Failure> {
    let name = Name::new(name).ok_or_else(|| Failure::Environment(app.name.clone()))?;
    Ok(GateEntry {
        name: name.0,
        kind: kind as u32,
        endpoint,
        ..GateEntry::new_zeroed()
    })
}

/// Makes the send and memory gates of an application.
fn connect(drafts: &mut [Draft], index: usize) -> Result<(), Failure> {
    let (app, activity) = (drafts[index].app, drafts[index].activity);
    for gate in &app.send {
        let target = &drafts[gate.to];
        let request = Syscall::CreateSend {
            activity,
            target: target.activity,
            endpoint: target.receive[gate.gate],
            label: gate.label,
            credits: gate.credits,
        };
        let [endpoint, ..] = call("create a send gate", &request)?;
        let slot_size = target.app.receive[gate.gate].slot_size;
        let made = GateEntry {
            slot_size,
            size: gate.credits.into(),
            ..entry(app, &gate.name, GateKind::Send, endpoint as u16)?
        };
        drafts[index].gates.push(made);
    }
    for gate in &app.memory_gates {
        let request = Syscall::CreateMemory {
            activity,
            size: gate.size,
            rights: gate.rights,
            memory_tile: gate.memory_tile,
        };
        let [endpoint, ..] = call("create a memory gate", &request)?;
        let made = GateEntry {
            size: gate.size,
            rights: gate.rights.into(),
            ..entry(app, &gate.name, GateKind::Memory, endpoint as u16)?
        };
        drafts[index].gates.push(made);
    }
    Ok(())
}

/// A page of data on its way from a module to an application.
#[repr(C, align(4096))]
struct PageBuffer([u8; PAGE as usize]);

/// Fills and maps an application's memory.
fn load(draft: &Draft) -> Result<(), Failure> {
    let activity = draft.activity;
    for part in draft.layout.parts() {
        let request = Syscall::Map {
            activity,
            address: part.address,
            offset: part.offset,
            pages: part.pages,
            rights: part.rights,
        };
        call("map memory", &request)?;
    }
    let [endpoint, ..] = call("open memory", &Syscall::OpenMemory { activity })?;
    let memory = MemoryGate::new(endpoint as u16, draft.app.memory);
    let module = open_module(&draft.app.program)?;
    let mut buffer = Box::new(PageBuffer([0; PAGE as usize]));
    for segment in draft.image.segments() {
        copy(segment, &module, &memory, &mut buffer.0)?;
    }
    close(&module)?;
    let full = |_| Failure::Environment(draft.app.name.clone());
    let arguments = draft.app.arguments.iter();
    let arguments = arguments.map(|(name, value)| environment::argument(name, value));
    let arguments = arguments
        .collect::<Result<Vec<ArgumentEntry>, _>>()
        .map_err(full)?;
    let page: &mut [u8; ENVIRONMENT_SIZE] = &mut buffer.0;
    environment::fill(page, draft.header, &draft.gates, &arguments).map_err(full)?;
    memory.write(0, page).map_err(Failure::Transfer)?;
    close(&memory)
}

/// Copies a segment, and zeros what the file does not hold.
fn copy(
    segment: &Segment,
    module: &MemoryGate,
    memory: &MemoryGate,
    buffer: &mut [u8; PAGE as usize],
) -> Result<(), Failure> {
    let start = segment.address - ENVIRONMENT_BASE;
    let mut done = 0;
    while done < segment.memory_size {
        let in_file = segment.file_size.saturating_sub(done);
        let piece = (segment.memory_size - done).min(PAGE);
        let data = &mut buffer[..piece as usize];
        let from_file = in_file.min(piece) as usize;
        data[from_file..].fill(0);
        if from_file > 0 {
            let file = &mut data[..from_file];
            module
                .read(segment.offset + done, file)
                .map_err(Failure::Transfer)?;
        }
        memory
            .write(start + done, data)
            .map_err(Failure::Transfer)?;
        done += piece;
    }
    Ok(())
}
