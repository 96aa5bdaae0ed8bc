//! Reads modules, and fills an application's memory.
//!
//! Why it exists: programs are loaded by transfers of the unit, through capabilities for memory. What it deliberately does not know: which
//! gates an application has.

use crate::calls::{Failure, call, kind_of};
use crate::gates::Selectors;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::environment::{
    ArgumentEntry, ENVIRONMENT_BASE, ENVIRONMENT_SIZE, Environment, GateEntry,
};
use bulkhead_abi::syscall::{
    MAP_LAZY, MAP_PAGES_MAX, ObjectKind, SEL_MODULES, Syscall, SyscallError, module_key,
};
use bulkhead_lib::common::payer::{Own, Paid};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::syscall;
use bulkhead_loader::environment;
use bulkhead_loader::image::{HEAD, Image, Segment};
use bulkhead_loader::layout::{Layout, PAGE};

/// Where a manager holds the module that it reads; one at a time.
const SEL_MODULE: u16 = 6;

/// Memory of this manager, active until it is closed.
pub struct Opened {
    selector: u16,
    gate: MemoryGate,
    /// Whether the capability goes with it.
    revoke: bool,
}

impl Opened {
    /// Makes memory usable.
    pub fn new(selector: u16) -> Result<Self, Failure> {
        let active = syscall::activate(selector);
        let (endpoint, size) = active.map_err(|error| Failure::Call("open memory", error))?;
        Ok(Self {
            selector,
            gate: MemoryGate::new(endpoint, size),
            revoke: false,
        })
    }

    /// Opens a boot module.
    fn module(name: &str) -> Result<Self, Failure> {
        open(name, SEL_MODULE)?;
        let opened = Self::new(SEL_MODULE)?;
        Ok(Self {
            revoke: true,
            ..opened
        })
    }

    /// Ends its use.
    pub fn close(self) -> Result<(), Failure> {
        let request = match self.revoke {
            true => Syscall::Revoke {
                selector: self.selector,
                keep: 0,
            },
            false => Syscall::Deactivate {
                gate: self.selector,
                endpoint: self.gate.endpoint(),
            },
        };
        call("close memory", &request).map(|_| ())
    }

    fn text(self, size: u64) -> Result<String, Failure> {
        let mut bytes = alloc::vec![0; size as usize];
        self.gate.read(0, &mut bytes).map_err(Failure::Transfer)?;
        self.close()?;
        // Memory comes in pages; the text ends before the first zero.
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        String::from_utf8(bytes).map_err(|_| Failure::NotText)
    }
}

/// The boot modules of a manager: all of them for the root manager, for others those that the one above gave them.
pub struct Modules {
    held: Paid<Own, BTreeMap<String, u16>>,
    has_all: bool,
}

impl Modules {
    /// Of a manager that was given these: names and selectors.
    pub fn new(given: &[(String, u16)], is_root: bool) -> Self {
        Self {
            held: given.iter().cloned().collect(),
            has_all: is_root,
        }
    }

    /// Opens one to read it.
    fn open(&self, name: &str) -> Result<Opened, Failure> {
        match self.held.get(name) {
            Some(selector) => Opened::new(*selector),
            None if self.has_all => Opened::module(name),
            None => Err(Failure::NoModule(name.into())),
        }
    }

    /// The memory of one, to give it to others: its selector, and its bytes.
    pub fn memory(&mut self, name: &str, selectors: &mut Selectors) -> Result<(u16, u64), Failure> {
        if let Some(selector) = self.held.get(name) {
            return match kind_of(*selector) {
                Some((ObjectKind::Memory, [_, size, _])) => Ok((*selector, size)),
                _ => Err(Failure::NoModule(name.into())),
            };
        }
        if !self.has_all {
            return Err(Failure::NoModule(name.into()));
        }
        let target = selectors.next()?;
        let size = open(name, target)?;
        self.held.insert(name.into(), target);
        Ok((target, size))
    }
}

fn open(name: &str, target: u16) -> Result<u64, Failure> {
    let request = Syscall::OpenModule {
        modules: SEL_MODULES,
        target,
        key: module_key(name.as_bytes()),
    };
    match call("open a module", &request) {
        Err(Failure::Call(_, SyscallError::NoModule)) => Err(Failure::NoModule(name.into())),
        other => other.map(|[size, ..]| size),
    }
}

/// Fills memory of this many bytes with a boot module; what is longer than the module stays.
pub fn fill_from_module(
    memory: u16,
    size: u64,
    name: &str,
    modules: &Modules,
) -> Result<(), Failure> {
    let memory = Opened::new(memory)?;
    let module = modules.open(name)?;
    let mut buffer = Box::new(PageBuffer([0; PAGE as usize]));
    let end = size.min(module.gate.size());
    let mut done = 0;
    while done < end {
        let piece = &mut buffer.0[..(end - done).min(PAGE) as usize];
        module.gate.read(done, piece).map_err(Failure::Transfer)?;
        memory.gate.write(done, piece).map_err(Failure::Transfer)?;
        done += piece.len() as u64;
    }
    module.close()?;
    memory.close()
}

/// Reads a whole boot module as text.
pub fn read_module(name: &str) -> Result<String, Failure> {
    let module = Opened::module(name)?;
    let size = module.gate.size();
    module.text(size)
}

/// Reads memory as text.
pub fn read_memory(selector: u16) -> Result<String, Failure> {
    let memory = Opened::new(selector)?;
    let size = memory.gate.size();
    memory.text(size)
}

/// Fills memory with text and a zero behind it.
pub fn write_memory(selector: u16, text: &str) -> Result<(), Failure> {
    let memory = Opened::new(selector)?;
    let gate = &memory.gate;
    gate.write(0, text.as_bytes()).map_err(Failure::Transfer)?;
    gate.write(text.len() as u64, &[0])
        .map_err(Failure::Transfer)?;
    memory.close()
}

/// The headers of a program.
pub fn image(app: &str, program: &str, modules: &Modules) -> Result<Image, Failure> {
    let module = modules.open(program)?;
    let mut head = alloc::vec![0; HEAD.min(module.gate.size() as usize)];
    module.gate.read(0, &mut head).map_err(Failure::Transfer)?;
    let size = module.gate.size();
    module.close()?;
    Image::parse(&head, size).map_err(|error| Failure::Program(app.into(), error))
}

/// How a heap is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Heap {
    /// As a whole, before the start.
    Eager,
    /// Page by page when it is used.
    Lazy,
    /// By a pager.
    Paged,
}

/// Name and value of an argument.
pub type Argument = (String, String);

/// What an application's memory is filled with.
pub struct Contents<'a> {
    /// For reports.
    pub name: &'a str,
    /// Boot module.
    pub program: &'a str,
    /// Its headers.
    pub image: &'a Image,
    /// Where everything goes.
    pub layout: &'a Layout,
    /// How its heap is mapped.
    pub heap: Heap,
    /// The environment page.
    pub header: Environment,
    /// Its gates.
    pub gates: &'a [GateEntry],
    /// Its arguments.
    pub arguments: &'a [Argument],
}

/// A page of data on its way from a module to an application.
#[repr(C, align(4096))]
struct PageBuffer([u8; PAGE as usize]);

/// Maps an activity's memory and fills it.
pub fn load(
    activity: u16,
    memory: u16,
    contents: &Contents,
    modules: &Modules,
) -> Result<(), Failure> {
    for part in contents.layout.parts() {
        let is_heap = part.address == contents.layout.heap;
        if is_heap && contents.heap == Heap::Paged {
            continue;
        }
        let lazy = is_heap && contents.heap == Heap::Lazy;
        let most = if lazy { part.pages } else { MAP_PAGES_MAX };
        let mut done = 0;
        while done < part.pages {
            let pages = (part.pages - done).min(most);
            let request = Syscall::Map {
                activity,
                address: part.address + done * PAGE,
                offset: part.offset + done * PAGE,
                pages,
                rights: part.rights | if lazy { MAP_LAZY } else { 0 },
            };
            call("map memory", &request)?;
            done += pages;
        }
    }
    let memory = Opened::new(memory)?;
    let module = modules.open(contents.program)?;
    let mut buffer = Box::new(PageBuffer([0; PAGE as usize]));
    for segment in contents.image.segments() {
        copy(segment, &module.gate, &memory.gate, &mut buffer.0)?;
    }
    module.close()?;
    let full = |_| Failure::Environment(contents.name.into());
    let arguments = contents.arguments.iter();
    let arguments = arguments.map(|(name, value)| environment::argument(name, value));
    let arguments = arguments
        .collect::<Result<Vec<ArgumentEntry>, _>>()
        .map_err(full)?;
    let page: &mut [u8; ENVIRONMENT_SIZE] = &mut buffer.0;
    environment::fill(page, contents.header, contents.gates, &arguments).map_err(full)?;
    memory.gate.write(0, page).map_err(Failure::Transfer)?;
    memory.close()
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
