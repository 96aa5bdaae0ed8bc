//! Traps: which interrupt is taken, which mode handles it, and what the registers hold afterwards (privileged
//! specification 20211203, sections 3.1.6 to 3.1.15, 3.3.2 and 4.1).

use super::bus::Bus;
use super::core::{Core, Exception, Mode, Privilege};
use super::csr::{SUPERVISOR_INTERRUPTS, status};
use super::pmp::Need;
use super::{Stop, UnhandledTrap};
use crate::types::Tick;

/// Exception codes.
#[allow(missing_docs)] // The names of table 3.6.
pub mod cause {
    pub const FETCH_ACCESS: u64 = 1;
    pub const ILLEGAL: u64 = 2;
    pub const BREAKPOINT: u64 = 3;
    pub const LOAD_MISALIGNED: u64 = 4;
    pub const LOAD_ACCESS: u64 = 5;
    pub const STORE_MISALIGNED: u64 = 6;
    pub const STORE_ACCESS: u64 = 7;
    pub const USER_CALL: u64 = 8;
    pub const FETCH_PAGE: u64 = 12;
    pub const LOAD_PAGE: u64 = 13;
    pub const STORE_PAGE: u64 = 15;
    pub const INTERRUPT: u64 = 1 << 63;
}

/// Interrupts by falling priority (section 3.1.9, and Sscofpmf): MEI, MSI, MTI, SEI, SSI, STI, LCOFI.
const PRIORITY: [u64; 7] = [11, 3, 7, 9, 1, 5, 13];

impl Core {
    /// The interrupt that the hart takes now, if any. Apart from its callers: a hart that begins to run would load the order of interrupts each time.
    #[inline(never)]
    pub fn interrupt(&self) -> Option<u64> {
        let pending = self.csr.mip() & self.csr.mie;
        if pending == 0 {
            return None;
        }
        let machine_on = self.privilege < Privilege::Machine || self.csr.mstatus & status::MIE != 0;
        let supervisor_on = self.privilege < Privilege::Supervisor
            || (self.privilege == Privilege::Supervisor && self.csr.mstatus & status::SIE != 0);
        let machine = if machine_on {
            pending & !self.csr.mideleg
        } else {
            0
        };
        let supervisor = if supervisor_on {
            pending & self.csr.mideleg & SUPERVISOR_INTERRUPTS
        } else {
            0
        };
        let taken = if machine != 0 { machine } else { supervisor };
        PRIORITY
            .into_iter()
            .find(|number| taken & (1 << number) != 0)
    }

    /// Whether an interrupt is pending and enabled in `mie`, whatever the global enables say: it ends WFI.
    #[inline(always)]
    pub fn interrupt_wakes(&self) -> bool {
        self.csr.mip() & self.csr.mie != 0
    }

    /// Takes a synchronous exception of the instruction at `pc`, `offset` ticks after the start of its block.
    pub fn take_exception<B: Bus>(
        &mut self,
        bus: &mut B,
        exception: Exception,
        pc: u64,
        offset: Tick,
    ) -> Option<Stop> {
        self.base += offset;
        self.enter(bus, exception.cause, exception.value, pc)
    }

    /// Takes an interrupt between blocks.
    pub fn take_interrupt<B: Bus>(&mut self, bus: &mut B, number: u64) -> Option<Stop> {
        self.statistics.interrupts += 1;
        self.enter(bus, cause::INTERRUPT | number, 0, self.pc)
    }

    fn enter<B: Bus>(&mut self, bus: &mut B, cause: u64, value: u64, pc: u64) -> Option<Stop> {
        let interrupt = cause & cause::INTERRUPT != 0;
        let code = cause & !cause::INTERRUPT;
        let delegation = if interrupt {
            self.csr.mideleg
        } else {
            self.csr.medeleg
        };
        let to_supervisor = self.privilege <= Privilege::Supervisor && delegation >> code & 1 != 0;
        let vector = if to_supervisor {
            self.csr.stvec
        } else {
            self.csr.mtvec
        };
        let mut target = vector & !3;
        if interrupt && vector & 1 != 0 {
            target = target.wrapping_add(4 * code);
        }
        if !to_supervisor && !self.machine_can_fetch(bus, target) {
            let trap = UnhandledTrap { cause, pc, value };
            self.pc = pc;
            self.mode = Mode::Dead(trap);
            return Some(Stop::Unhandled(trap));
        }
        self.ask_caches_before_a_mode(bus);
        self.statistics.traps += 1;
        self.statistics.stall_trap += self.costs.trap_entry;
        self.base += self.costs.trap_entry;
        self.reservation = None;
        self.reserving = false;
        if !interrupt && !to_supervisor && self.privilege == Privilege::User {
            self.remember_trap(UnhandledTrap { cause, pc, value });
        }
        let old = self.csr.mstatus;
        let previous = self.privilege as u64;
        if to_supervisor {
            let spie = if old & status::SIE != 0 {
                status::SPIE
            } else {
                0
            };
            let spp = if previous != 0 { status::SPP } else { 0 };
            self.csr.mstatus = (old & !(status::SPIE | status::SIE | status::SPP)) | spie | spp;
            (self.csr.scause, self.csr.sepc, self.csr.stval) = (cause, pc, value);
            self.set_mode(Privilege::Supervisor, false, self.base);
        } else {
            let mpie = if old & status::MIE != 0 {
                status::MPIE
            } else {
                0
            };
            self.csr.mstatus =
                (old & !(status::MPIE | status::MIE | status::MPP)) | mpie | previous << 11;
            (self.csr.mcause, self.csr.mepc, self.csr.mtval) = (cause, pc, value);
            self.set_mode(Privilege::Machine, false, self.base);
            self.resumes = false;
        }
        self.contexts_changed();
        self.pc = target;
        None
    }

    /// Whether a machine-mode trap handler at `target` can be fetched at all. Address 0 counts as "never set".
    fn machine_can_fetch<B: Bus>(&self, bus: &B, target: u64) -> bool {
        target != 0
            && self.pmp.allows(target, 2, Need::Execute, true)
            && !bus.is_device(target)
            && bus.allows(target, 2, false)
    }

    /// MRET or SRET at `now`; the caller has checked the mode.
    pub fn trap_return(&mut self, machine: bool, now: Tick) {
        let old = self.csr.mstatus;
        let mut new = old;
        let previous;
        if machine {
            previous = Privilege::from_bits(old >> 11);
            new &= !(status::MIE | status::MPP);
            new |= status::MPIE
                | if old & status::MPIE != 0 {
                    status::MIE
                } else {
                    0
                };
            self.pc = self.csr.mepc;
        } else {
            previous = if old & status::SPP != 0 {
                Privilege::Supervisor
            } else {
                Privilege::User
            };
            new &= !(status::SIE | status::SPP);
            new |= status::SPIE
                | if old & status::SPIE != 0 {
                    status::SIE
                } else {
                    0
                };
            self.pc = self.csr.sepc;
        }
        if previous != Privilege::Machine {
            new &= !status::MPRV;
        }
        self.csr.mstatus = new;
        self.set_mode(previous, true, now);
        self.resumes = previous != Privilege::Machine;
        self.reservation = None;
        self.contexts_changed();
    }
}
