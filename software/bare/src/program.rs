//! What a program knows about itself.
//!
//! Why it exists and what it does not know: see the crate.

use crate::arch::{self, Memory};
use bulkhead_hal::abi::bare::{Environment, MAGIC, STACK};
use bulkhead_hal::device::Console;
use core::fmt::Write;
use core::panic::PanicInfo;
use core::str::FromStr;

/// What a hart knows.
pub struct Program {
    /// The hart's number (`mhartid`).
    pub hart: u64,
    /// Its position among the program's harts in order of arrival, from 0.
    pub rank: usize,
    /// How many harts run the program.
    pub harts: usize,
    /// The memory between the program and its stacks, or its environment if the stacks are elsewhere. The same for all its harts.
    pub memory: Memory,
    environment: &'static Environment,
}

impl Program {
    /// `end`: of the program.
    pub(crate) fn new(hart: u64, rank: usize, end: u64, environment: &'static Environment) -> Self {
        if environment.magic != MAGIC {
            // The program's starter does not know what it needs, not even a console.
            arch::stop();
        }
        let below = core::ptr::from_ref(environment) as u64;
        let stacks = match environment.stacks {
            0 => STACK * u64::from(environment.harts),
            _ => 0,
        };
        Self {
            hart,
            rank,
            harts: environment.harts as usize,
            memory: Memory::between(end, below - stacks),
            environment,
        }
    }

    /// The value of an `<argument>`, if there is one of that name.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let used = self
            .environment
            .arguments
            .get(..self.environment.length as usize)?;
        let mut all = core::str::from_utf8(used).ok()?.split(' ');
        all.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// The same as a number or another value; `default` if there is none.
    ///
    /// # Panics
    /// If there is one and it cannot be read.
    #[track_caller]
    pub fn value<T: FromStr>(&self, name: &str, default: T) -> T {
        match self.argument(name).map(str::parse) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(_)) => panic!("the argument {name} cannot be read"),
        }
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // Without a console, the backtrace shows the place in the sources.
    if arch::has_console() {
        // The console takes everything.
        let _ = writeln!(Console, "{info}");
    }
    arch::stop()
}
