//! Interrupts of devices: waiting for one, without a trap handler.
//!
//! Why it exists: a program that has nothing else to do sleeps until its device has something for it. What it deliberately does not know: what
//! the device does, and other harts.

use crate::Program;
use crate::arch::Registers;
use bulkhead_hal::abi::memory_map::PLIC_BASE;
use bulkhead_hal::abi::plic::{CLAIM, CONTEXT_SIZE, ENABLE, ENABLE_SIZE, THRESHOLD, context};
use bulkhead_hal::csr;

/// Machine external interrupt in `mie`.
const EXTERNAL: u64 = 1 << 11;

/// The interrupt controller, as the hart of a program uses it in machine mode.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts {
    controller: Registers,
    context: u64,
}

impl Interrupts {
    /// Of the program's hart, which must be at the port of its number, as it is on all platforms of the catalog.
    pub fn of(program: &Program) -> Self {
        Self {
            controller: Registers::at(PLIC_BASE),
            context: context(program.hart as u32).into(),
        }
    }

    /// Lets this source wake the hart.
    pub fn listen(&self, source: u32) {
        let controller = self.controller;
        controller.set_half(4 * u64::from(source), 1);
        let enable = ENABLE + ENABLE_SIZE * self.context + 4 * u64::from(source / 32);
        controller.set_half(enable, controller.get_half(enable) | 1 << (source % 32));
        csr::set_mie(csr::mie() | EXTERNAL);
    }

    fn claim_register(&self) -> u64 {
        THRESHOLD + CONTEXT_SIZE * self.context + CLAIM
    }

    /// Sleeps until a source is pending, and claims it.
    pub fn wait(&self) -> u32 {
        loop {
            let source = self.controller.get_half(self.claim_register());
            if source != 0 {
                return source;
            }
            csr::wait_for_interrupt();
        }
    }

    /// The source was served: its next interrupt may come.
    pub fn complete(&self, source: u32) {
        self.controller.set_half(self.claim_register(), source);
    }
}
