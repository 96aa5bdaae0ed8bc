//! Reads modules, and fills an application's memory.
//!
//! Why it exists: the unit's transfers load programs through memory capabilities. What it deliberately does not know: the application's
//! gates.

use crate::calls::{Failure, call, kind_of};
use crate::gates::Selectors;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::environment::{ArgumentEntry, ENVIRONMENT_SIZE, Environment, GateEntry};
use bulkhead_abi::syscall::{
    ObjectKind, PRIORITIES, SEL_FREE, SEL_MODULES, Syscall, SyscallError, module_key,
};
use bulkhead_lib::common::payer::{Own, Paid};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::syscall;
use bulkhead_loader::image::{HEAD, Image};
use bulkhead_loader::layout::PAGE;
use bulkhead_resmgr::environment;
use bulkhead_resmgr::filling::Piece;

/// Where a manager holds the module that it reads: the first of these selectors at its own start, and later one for each priority of
/// applications, because it fills one application per priority at a time.
const SEL_MODULE: u16 = 6;
const _: () = assert!(SEL_MODULE + PRIORITIES as u16 <= SEL_FREE);

/// Memory of this manager, active until it is closed.
pub struct Opened {
    selector: u16,
    gate: MemoryGate,
    /// Whether closing it revokes the capability.
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
    fn module(name: &str, selector: u16) -> Result<Self, Failure> {
        open(name, selector)?;
        let opened = Self::new(selector)?;
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

/// The boot modules of a manager: the root manager has all of them, any other has those that the manager above gave it.
pub struct Modules {
    held: Paid<Own, BTreeMap<String, u16>>,
    has_all: bool,
}

impl Modules {
    /// The modules of a manager that was given these names and selectors.
    pub fn new(given: &[(String, u16)], is_root: bool) -> Self {
        Self {
            held: given.iter().cloned().collect(),
            has_all: is_root,
        }
    }

    /// Opens a module to read it for an application of this priority.
    fn open(&self, name: &str, priority: u8) -> Result<Opened, Failure> {
        match self.held.get(name) {
            Some(selector) => Opened::new(*selector),
            None if self.has_all => Opened::module(name, SEL_MODULE + u16::from(priority)),
            None => Err(Failure::NoModule(name.into())),
        }
    }

    /// The memory of a module, for handing it on: its selector and its bytes.
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

/// Fills this many bytes of memory with a boot module; memory beyond the module's end keeps its contents.
pub fn fill_from_module(
    memory: u16,
    size: u64,
    name: &str,
    modules: &Modules,
) -> Result<(), Failure> {
    let memory = Opened::new(memory)?;
    let module = modules.open(name, 0)?;
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
    let module = Opened::module(name, SEL_MODULE)?;
    let size = module.gate.size();
    module.text(size)
}

/// Reads memory as text.
pub fn read_memory(selector: u16) -> Result<String, Failure> {
    let memory = Opened::new(selector)?;
    let size = memory.gate.size();
    memory.text(size)
}

/// Fills memory with text and a final zero.
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
    let module = modules.open(program, 0)?;
    let mut head = alloc::vec![0; HEAD.min(module.gate.size() as usize)];
    module.gate.read(0, &mut head).map_err(Failure::Transfer)?;
    let size = module.gate.size();
    module.close()?;
    Image::parse(&head, size).map_err(|error| Failure::Program(app.into(), error))
}

/// Name and value of an argument.
pub type Argument = (String, String);

/// The contents of an application's memory.
pub struct Contents<'a> {
    /// For reports.
    pub name: &'a str,
    /// The activity.
    pub activity: u16,
    /// Its memory.
    pub memory: u16,
    /// Boot module.
    pub program: &'a str,
    /// The application's priority as a caller of the kernel.
    pub priority: u8,
    /// The environment page.
    pub header: Environment,
    /// Its gates.
    pub gates: &'a [GateEntry],
    /// Its arguments.
    pub arguments: [&'a [Argument]; 2],
}

/// A page of data on its way from a module to an application.
#[repr(C, align(4096))]
struct PageBuffer([u8; PAGE as usize]);

/// The filling of an application's memory and its progress.
pub struct Filling {
    memory: Option<Opened>,
    program: Option<Opened>,
    buffer: Box<PageBuffer>,
}

impl Filling {
    /// A filling that has not started.
    pub fn new() -> Self {
        Self {
            memory: None,
            program: None,
            buffer: Box::new(PageBuffer([0; PAGE as usize])),
        }
    }

    /// Does a piece of it.
    pub fn step(
        &mut self,
        piece: Piece,
        contents: &Contents,
        modules: &Modules,
    ) -> Result<(), Failure> {
        match piece {
            Piece::Map(part) => {
                let request = Syscall::Map {
                    activity: contents.activity,
                    address: part.address,
                    offset: part.offset,
                    pages: part.pages,
                    rights: part.rights,
                };
                call("map memory", &request)?;
            }
            Piece::OpenMemory => self.memory = Some(Opened::new(contents.memory)?),
            Piece::OpenProgram => {
                self.program = Some(modules.open(contents.program, contents.priority)?);
            }
            Piece::Copy {
                from,
                bytes,
                to,
                size,
            } => {
                let page = &mut self.buffer.0[..size as usize];
                let (file, rest) = page.split_at_mut(bytes as usize);
                rest.fill(0);
                if let Some(program) = self.program.as_ref().filter(|_| bytes > 0) {
                    program.gate.read(from, file).map_err(Failure::Transfer)?;
                }
                self.write(to, size as usize)?;
            }
            Piece::CloseProgram => close(&mut self.program)?,
            Piece::Environment => {
                let full = |_| Failure::Environment(contents.name.into());
                let arguments = contents.arguments.into_iter().flatten();
                let arguments = arguments.map(|(name, value)| environment::argument(name, value));
                let arguments = arguments
                    .collect::<Result<Vec<ArgumentEntry>, _>>()
                    .map_err(full)?;
                let page: &mut [u8; ENVIRONMENT_SIZE] = &mut self.buffer.0;
                let filled = environment::fill(page, contents.header, contents.gates, &arguments);
                filled.map_err(full)?;
                self.write(0, ENVIRONMENT_SIZE)?;
            }
            Piece::CloseMemory => close(&mut self.memory)?,
        }
        Ok(())
    }

    /// Writes the first bytes of the buffer.
    fn write(&self, to: u64, size: usize) -> Result<(), Failure> {
        let page = &self.buffer.0[..size];
        let written = self
            .memory
            .as_ref()
            .map(|memory| memory.gate.write(to, page));
        written.transpose().map_err(Failure::Transfer).map(|_| ())
    }

    /// Abandons the filling at any point.
    pub fn abandon(mut self) {
        // A module or memory that is gone needs no closing.
        let _ = close(&mut self.program);
        let _ = close(&mut self.memory);
    }
}

fn close(opened: &mut Option<Opened>) -> Result<(), Failure> {
    opened.take().map_or(Ok(()), Opened::close)
}
