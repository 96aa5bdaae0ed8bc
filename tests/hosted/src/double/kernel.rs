//! The kernel's double: it grants every call, counts them, and refuses the ones that a test names.
//!
//! What it deliberately does not know: quotas and rights. It knows which activities are alive, because managers ask for that.

use super::syscall::Results;
use bulkhead_abi::dtu::DtuError;
use bulkhead_abi::syscall::{
    ObjectKind, REPLY_WORDS, SEL_DESCRIPTION, SEL_MODULES, SEL_TILES, Syscall, SyscallError,
};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A program: headers and one segment, from the ELF-64 object file format. The entry is the segment's first byte.
pub const PROGRAM: &[u8] = &program();

/// Where programs are linked.
const BASE: u64 = bulkhead_abi::environment::PROGRAM_BASE;

const fn program() -> [u8; 4096] {
    const fn put(mut file: [u8; 4096], at: usize, value: u64, bytes: usize) -> [u8; 4096] {
        let all = value.to_le_bytes();
        let mut index = 0;
        while index < bytes {
            file[at + index] = all[index];
            index += 1;
        }
        file
    }
    let mut file = [0; 4096];
    // Magic, 64 bits, little endian, version; an executable for RISC-V.
    file = put(file, 0, 0x464c_457f, 4);
    file = put(file, 4, 0x01_01_02, 3);
    file = put(file, 16, 2, 2);
    file = put(file, 18, 243, 2);
    file = put(file, 20, 1, 4);
    file = put(file, 24, BASE, 8);
    file = put(file, 32, 64, 8);
    file = put(file, 52, 64, 2);
    file = put(file, 54, 56, 2);
    file = put(file, 56, 1, 2);
    // The segment: loaded, read and executed, the whole file.
    file = put(file, 64, 1, 4);
    file = put(file, 68, 5, 4);
    file = put(file, 80, BASE, 8);
    file = put(file, 88, BASE, 8);
    file = put(file, 96, 4096, 8);
    file = put(file, 104, 4096, 8);
    put(file, 112, 4096, 8)
}

/// What is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call with this number, counted from 0, with this error.
    Call(usize, SyscallError),
    /// The transfer with this number.
    Transfer(usize),
}

/// What the kernel knows.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// Activities that are alive, by the selectors of their manager.
    pub alive: BTreeMap<u16, u16>,
    /// What is to fail.
    pub fault: Option<Fault>,
    /// Whether it has failed.
    pub has_failed: bool,
    /// Calls so far.
    pub calls: usize,
    /// Transfers so far.
    pub transfers: usize,
    /// Activities that a call stopped, and whose ends their manager has not yet heard of.
    pub stopped: Vec<u16>,
    /// What was printed.
    pub lines: Vec<String>,
    /// Activities that each selector has named, and endpoints of each activity, so that its numbers depend on no other.
    created: BTreeMap<u16, u16>,
    endpoints: BTreeMap<u16, u16>,
}

thread_local! {
    static KERNEL: RefCell<Kernel> = RefCell::default();
}

/// Starts with a new, empty kernel and a clock at 0.
pub fn reset(fault: Option<Fault>) {
    super::time::set(0);
    with(|kernel| {
        *kernel = Kernel {
            fault,
            ..Kernel::default()
        }
    });
}

/// Looks at the kernel, or changes it.
pub fn with<T>(does: impl FnOnce(&mut Kernel) -> T) -> T {
    KERNEL.with_borrow_mut(does)
}

/// Prints a line.
pub fn line(text: String) {
    with(|kernel| kernel.lines.push(text));
}

/// A transfer of the unit.
///
/// # Errors
/// The one that the test wants.
pub fn transfer() -> Result<(), DtuError> {
    with(|kernel| {
        kernel.transfers += 1;
        if kernel.fault == Some(Fault::Transfer(kernel.transfers - 1)) {
            kernel.has_failed = true;
            return Err(DtuError::NoPermission);
        }
        Ok(())
    })
}

/// A call.
///
/// # Errors
/// The one that the test wants; [`SyscallError::NoActivity`] if the activity does not exist.
pub fn call(request: &Syscall) -> Result<Results, SyscallError> {
    with(|kernel| {
        kernel.calls += 1;
        if let Some(Fault::Call(number, error)) = kernel.fault
            && number == kernel.calls - 1
        {
            kernel.has_failed = true;
            return Err(error);
        }
        kernel.grant(request)
    })
}

fn results<const N: usize>(words: [u64; N]) -> Results {
    let mut all = [0; REPLY_WORDS - 1];
    all[..N].copy_from_slice(&words);
    all
}

impl Kernel {
    fn grant(&mut self, request: &Syscall) -> Result<Results, SyscallError> {
        // A manager's own selector always exists.
        let there = |kernel: &Self, activity: u16| match activity == 0
            || kernel.alive.contains_key(&activity)
        {
            true => Ok(()),
            false => Err(SyscallError::NoActivity),
        };
        match *request {
            Syscall::Query { selector } => match selector {
                SEL_MODULES | SEL_DESCRIPTION => {
                    Ok(results([ObjectKind::Memory as u64, 1 << 20, 1 << 20, 8]))
                }
                SEL_TILES.. => Ok(results([ObjectKind::Tile as u64, 0, 0, 0, 0, 0, 1])),
                _ => match self.alive.get(&selector) {
                    Some(id) => Ok(results([ObjectKind::Activity as u64, u64::from(*id)])),
                    None => Err(SyscallError::NoCapability),
                },
            },
            Syscall::CreateActivity { target, .. } => {
                if self.alive.contains_key(&target) {
                    return Err(SyscallError::SelectorTaken);
                }
                let count = self.created.entry(target).or_default();
                *count += 1;
                let id = target * 32 + *count % 32;
                self.alive.insert(target, id);
                self.endpoints.remove(&target);
                Ok(results([u64::from(id), 4, 5, 1_000_000_000]))
            }
            Syscall::Activate { activity, .. } => {
                there(self, activity)?;
                let count = self.endpoints.entry(activity).or_default();
                *count = *count % 1000 + 1;
                Ok(results([u64::from(*count), 1 << 20]))
            }
            Syscall::OpenModule { .. } => Ok(results([PROGRAM.len() as u64])),
            Syscall::Stop { activity } => {
                there(self, activity)?;
                self.stopped.extend(self.alive.remove(&activity));
                Ok(results([]))
            }
            Syscall::Start { activity, .. }
            | Syscall::Delegate { activity, .. }
            | Syscall::Obtain { activity, .. }
            | Syscall::Map { activity, .. }
            | Syscall::Tell { activity, .. } => {
                there(self, activity)?;
                Ok(results([]))
            }
            _ => Ok(results([])),
        }
    }
}
