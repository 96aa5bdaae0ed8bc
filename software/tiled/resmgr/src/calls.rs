//! The manager's system calls and their failures.
//!
//! Why it exists: the kernel can refuse any step of a start, and the report must name the step. What it deliberately does not know: the
//! order of steps.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use bulkhead_abi::dtu::{DtuError, SLOTS_MAX};
use bulkhead_abi::syscall::{ObjectKind, Syscall, SyscallError};
use bulkhead_lib::syscall;
use bulkhead_loader::image::ImageError;
use bulkhead_loader::layout::LayoutError;
use bulkhead_resmgr::description::Mistake;
use core::fmt;

/// The most messages that an application may have outstanding over all of its gates. Each needs a slot for its reply. One slot more is
/// needed because a reply, and with it the credit for another message, may arrive between the check of the buffer and the sending of
/// that message.
pub const CREDITS_MAX: u32 = SLOTS_MAX as u32 - 1;

/// Why the system could not be started.
#[derive(Debug)]
pub enum Failure {
    /// The description is wrong.
    Description(Mistake),
    /// The description is not UTF-8.
    NotText,
    /// This manager has no memory gate of this name with a region of its own below it.
    NoRegion(Box<str>),
    /// There is no boot module of this name.
    NoModule(Box<str>),
    /// The program of an application is unusable.
    Program(Box<str>, ImageError),
    /// A program does not fit its memory.
    Layout(Box<str>, LayoutError),
    /// Names or gates do not fit the environment of an application.
    Environment(Box<str>),
    /// An application has more credits than there are slots for replies.
    Credits(Box<str>, u32),
    /// The manager needs more capabilities than it has selectors.
    Selectors,
    /// The kernel refused a step.
    Call(&'static str, SyscallError),
    /// A transfer failed.
    Transfer(DtuError),
    /// A step for this application, manager or tile failed.
    For(Box<str>, Box<Failure>),
}

impl Failure {
    /// Adds the name of the application or manager to a failure that does not name one yet.
    pub fn by(name: &str) -> impl FnOnce(Failure) -> Failure {
        move |failure| failure.concerning(|| format!("`{name}`"))
    }

    /// Adds the tile to a failure.
    pub fn on(tile: u16) -> impl FnOnce(Failure) -> Failure {
        move |failure| failure.concerning(|| format!("tile {tile}"))
    }

    /// The kernel's error, if it refused the step.
    fn refusal(&self) -> Option<SyscallError> {
        match self {
            Failure::Call(_, error) => Some(*error),
            Failure::For(_, failure) => failure.refusal(),
            _ => None,
        }
    }

    /// Whether the kernel has given up the tile that the step needed.
    pub fn is_lost_tile(&self) -> bool {
        self.refusal() == Some(SyscallError::TileLost)
    }

    /// Whether the step may have failed because its activity has ended.
    pub fn is_of_an_end(&self) -> bool {
        use SyscallError::{NoActivity, NoCapability, Revoked, WrongState};
        let ends = [NoActivity, NoCapability, Revoked, WrongState];
        self.refusal().is_some_and(|error| ends.contains(&error))
    }

    fn concerning(self, whom: impl FnOnce() -> String) -> Failure {
        match self {
            Failure::Call(..) | Failure::Transfer(_) | Failure::Selectors | Failure::NotText => {
                Failure::For(whom().into(), Box::new(self))
            }
            known => known,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Description(mistake) => write!(f, "{mistake}"),
            Failure::NotText => f.write_str("system.xml is not UTF-8"),
            Failure::NoRegion(name) => write!(f, "there is no memory gate `{name}`"),
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
            Failure::Selectors => f.write_str("more capabilities than selectors"),
            Failure::Call(what, error) => write!(f, "the kernel refused to {what}: {error:?}"),
            Failure::Transfer(error) => write!(f, "a transfer failed: {error:?}"),
            Failure::For(whom, failure) => write!(f, "{whom}: {failure}"),
        }
    }
}

/// Makes a system call; the report of a failure names it by `what`.
pub fn call(what: &'static str, request: &Syscall) -> Result<syscall::Results, Failure> {
    syscall::call(request).map_err(|error| Failure::Call(what, error))
}

/// The most endpoints and page tables ever in use of a tile capability with quotas of its own.
pub fn tile_used(selector: u16) -> Option<[u64; 2]> {
    match syscall::call(&Syscall::Usage { selector }) {
        Ok([endpoints, tables, ..]) => Some([endpoints, tables]),
        Err(_) => None,
    }
}

/// The most ever in use of a purse.
pub fn purse_used(selector: u16) -> Option<u64> {
    match syscall::call(&Syscall::Usage { selector }) {
        Ok([used, ..]) => Some(used),
        Err(_) => None,
    }
}

/// The kind of the object that a selector names, and the first quotas.
pub fn kind_of(selector: u16) -> Option<(ObjectKind, [u64; 3])> {
    match syscall::call(&Syscall::Query { selector }) {
        Ok([kind, a, b, c, ..]) => Some((ObjectKind::from_code(kind)?, [a, b, c])),
        Err(_) => None,
    }
}
