//! Control and status registers: which exist, who may access them, which bits can be written.
//!
//! Where the specification leaves a choice, this file does what QEMU 7.2 does. Other files handle performance counters
//! (`counters.rs`) and the registers' role in traps (`trap.rs`) and translation (`mmu.rs`).

use super::core::{Core, Privilege};
use super::qos::Qos;
use crate::types::Tick;
use bulkhead_abi::cbqri::SRMCFG;
use bulkhead_abi::hpm::{OVERFLOW_INTERRUPT, SCOUNTOVF};

/// Bits of `mstatus`.
#[allow(missing_docs)] // The names of the privileged specification, section 3.1.6.
pub mod status {
    pub const SIE: u64 = 1 << 1;
    pub const MIE: u64 = 1 << 3;
    pub const SPIE: u64 = 1 << 5;
    pub const MPIE: u64 = 1 << 7;
    pub const SPP: u64 = 1 << 8;
    pub const MPP: u64 = 3 << 11;
    pub const FS: u64 = 3 << 13;
    pub const MPRV: u64 = 1 << 17;
    pub const SUM: u64 = 1 << 18;
    pub const MXR: u64 = 1 << 19;
    pub const TVM: u64 = 1 << 20;
    pub const TW: u64 = 1 << 21;
    pub const TSR: u64 = 1 << 22;
    pub const SD: u64 = 1 << 63;
    /// UXL = SXL = 64 bits, not writable.
    pub const XL: u64 = 0xa << 32;
    pub const WRITABLE: u64 =
        SIE | MIE | SPIE | MPIE | SPP | MPP | FS | MPRV | SUM | MXR | TVM | TW | TSR;
    pub const SUPERVISOR: u64 = SIE | SPIE | SPP | FS | SUM | MXR;
    pub const SUPERVISOR_READ: u64 = SUPERVISOR | SD | (3 << 32);
}

/// Supervisor bits of `mip` and `mie`: SSI, STI, SEI, LCOFI.
pub const SUPERVISOR_INTERRUPTS: u64 = 0x222 | COUNTER_OVERFLOW;
const ALL_INTERRUPTS: u64 = 0xaaa | COUNTER_OVERFLOW;
const COUNTER_OVERFLOW: u64 = 1 << OVERFLOW_INTERRUPT;
/// Exceptions that can be delegated: all but environment calls from machine mode.
const DELEGABLE: u64 = 0xb3ff;
/// RV64IMAFDC with supervisor and user mode.
const MISA: u64 = (2 << 62) | 0x14_112d;
const ENVIRONMENT_MASK: u64 = 0xf1;
/// `menvcfg`: page-table entries have memory types (Svpbmt).
pub const PBMTE: u64 = 1 << 62;

/// The registers that are plain storage with a rule for writing.
#[derive(Clone, Default)]
#[allow(missing_docs)] // The names of the privileged specification.
pub struct Csrs {
    pub mstatus: u64,
    pub medeleg: u64,
    pub mideleg: u64,
    pub mie: u64,
    /// Bits of `mip` that software wrote.
    pub mip_software: u64,
    /// Bits of `mip` that inputs drive.
    pub mip_lines: u64,
    pub mtvec: u64,
    pub mscratch: u64,
    pub mepc: u64,
    pub mcause: u64,
    pub mtval: u64,
    pub mcounteren: u64,
    pub scounteren: u64,
    pub menvcfg: u64,
    pub senvcfg: u64,
    pub stvec: u64,
    pub sscratch: u64,
    pub sepc: u64,
    pub scause: u64,
    pub stval: u64,
    pub satp: u64,
    pub qos: Option<Qos>,
    pub frm: u8,
    pub fflags: u8,
}

impl Csrs {
    /// State after a reset.
    pub fn reset() -> Self {
        Self {
            mstatus: status::XL,
            ..Self::default()
        }
    }

    /// `mip` as software reads it.
    #[inline(always)]
    pub fn mip(&self) -> u64 {
        self.mip_software | self.mip_lines
    }

    /// `mstatus` as software reads it, with the summary bit SD.
    pub fn mstatus(&self) -> u64 {
        if self.mstatus & status::FS == status::FS {
            self.mstatus | status::SD
        } else {
            self.mstatus
        }
    }

    /// The FP unit is on.
    #[inline(always)]
    pub fn fp_on(&self) -> bool {
        self.mstatus & status::FS != 0
    }

    /// Notes that the FP state differs from the state that software saved.
    #[inline(always)]
    pub fn fp_dirty(&mut self) {
        self.mstatus |= status::FS;
    }
}

/// The CSR does not exist, or this mode may not access it in this way.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused;

type Outcome<T> = Result<T, Refused>;

fn allow(condition: bool) -> Outcome<()> {
    if condition { Ok(()) } else { Err(Refused) }
}

impl Core {
    /// Whether the current mode may access the register, and write it if `write`.
    pub fn csr_access(&self, number: u16, write: bool) -> Outcome<()> {
        let needed = (number >> 8) & 3;
        allow(self.privilege as u16 >= needed && needed != 2)?;
        allow(!(write && number >> 10 == 3))?;
        match number {
            0x001..=0x003 => allow(self.csr.fp_on()),
            0x180 => allow(
                !(self.privilege == Privilege::Supervisor && self.csr.mstatus & status::TVM != 0),
            ),
            0xc00..=0xc1f => {
                let bit = 1u64 << (number & 31);
                let machine =
                    self.privilege == Privilege::Machine || self.csr.mcounteren & bit != 0;
                let supervisor =
                    self.privilege != Privilege::User || self.csr.scounteren & bit != 0;
                allow(machine && supervisor)
            }
            _ => Ok(()),
        }
    }

    /// Reads a register without a privilege check. `now` is the time of the instruction; `timer` gives the value of `mtime` at
    /// that time.
    pub fn csr_read(
        &self,
        number: u16,
        now: Tick,
        timer: impl FnOnce(Tick) -> u64,
    ) -> Outcome<u64> {
        let csr = &self.csr;
        Ok(match number {
            0x001 => csr.fflags as u64,
            0x002 => csr.frm as u64,
            0x003 => (csr.frm as u64) << 5 | csr.fflags as u64,
            0xc01 => timer(now),
            0xc00 | 0xc02..=0xc1f => self.counter(number as usize & 31, now),
            0xb00 | 0xb02..=0xb1f => self.counter(number as usize & 31, now),
            0x320 => self.counters.inhibit as u64,
            0x323..=0x33f => self.counters.event(number as usize & 31),
            SCOUNTOVF => self.counters.overflows(match self.privilege {
                Privilege::Machine => u32::MAX,
                _ => csr.mcounteren as u32,
            }),
            0x100 => csr.mstatus() & status::SUPERVISOR_READ,
            0x104 => csr.mie & csr.mideleg,
            0x105 => csr.stvec,
            0x106 => csr.scounteren,
            0x10a => csr.senvcfg,
            0x140 => csr.sscratch,
            0x141 => csr.sepc,
            0x142 => csr.scause,
            0x143 => csr.stval,
            0x144 => csr.mip() & csr.mideleg,
            0x180 => csr.satp,
            SRMCFG => csr.qos.as_ref().ok_or(Refused)?.read(),
            0x300 => csr.mstatus(),
            0x301 => MISA,
            0x302 => csr.medeleg,
            0x303 => csr.mideleg,
            0x304 => csr.mie,
            0x305 => csr.mtvec,
            0x306 => csr.mcounteren,
            0x30a => csr.menvcfg,
            0x340 => csr.mscratch,
            0x341 => csr.mepc,
            0x342 => csr.mcause,
            0x343 => csr.mtval,
            0x344 => csr.mip(),
            0x3a0 | 0x3a2 => self.pmp.config_register(number as usize & 15),
            0x3b0..=0x3bf => self.pmp.address_register(number as usize & 15),
            // Vendor, architecture, implementation, configuration pointer; debug triggers: none.
            0xf11..=0xf13 | 0xf15 | 0x7a0..=0x7a4 => 0,
            0xf14 => self.hart_id,
            _ => return Err(Refused),
        })
    }

    /// Writes a register without a privilege check. `now` is the time of the instruction.
    pub fn csr_write(&mut self, number: u16, value: u64, now: Tick) -> Outcome<()> {
        let csr = &mut self.csr;
        match number {
            0x001..=0x003 => {
                match number {
                    1 => csr.fflags = value as u8 & 31,
                    2 => csr.frm = value as u8 & 7,
                    _ => (csr.frm, csr.fflags) = ((value >> 5) as u8 & 7, value as u8 & 31),
                }
                csr.fp_dirty();
            }
            0xb00 | 0xb02..=0xb1f => self.set_counter(number as usize & 31, value, now),
            0x320 => self.set_counter_inhibit(value as u32, now),
            0x323..=0x33f => self.set_counter_event(number as usize & 31, value, now),
            0x100 => self.write_status(value, status::SUPERVISOR),
            0x104 => {
                csr.mie = (csr.mie & !csr.mideleg) | (value & csr.mideleg);
            }
            0x105 if value & 3 < 2 => csr.stvec = value,
            0x105 => {}
            0x106 => csr.scounteren = value & 0xffff_ffff,
            0x10a => csr.senvcfg = value & ENVIRONMENT_MASK,
            0x140 => csr.sscratch = value,
            0x141 => csr.sepc = value & !1,
            0x142 => csr.scause = value,
            0x143 => csr.stval = value,
            0x144 => {
                // Supervisor mode can write only the software interrupt and the counter-overflow interrupt.
                let mask = csr.mideleg & (2 | COUNTER_OVERFLOW);
                csr.mip_software = (csr.mip_software & !mask) | (value & mask);
            }
            0x180 => {
                // Bare and Sv39 exist; a write with another mode has no effect at all (section 4.1.11).
                if matches!(value >> 60, 0 | 8) && value != csr.satp {
                    csr.satp = value;
                    self.translation_changed();
                }
            }
            SRMCFG => csr.qos.as_mut().ok_or(Refused)?.write(value),
            0x300 => self.write_status(value, status::WRITABLE),
            0x301 => {}
            0x302 => csr.medeleg = value & DELEGABLE,
            0x303 => csr.mideleg = value & SUPERVISOR_INTERRUPTS,
            0x304 => csr.mie = value & ALL_INTERRUPTS,
            0x305 if value & 3 < 2 => csr.mtvec = value,
            0x305 => {}
            0x306 => csr.mcounteren = value & 0xffff_ffff,
            0x30a => {
                let types = if self.memory_types { PBMTE } else { 0 };
                csr.menvcfg = value & (ENVIRONMENT_MASK | types);
            }
            0x340 => csr.mscratch = value,
            0x341 => csr.mepc = value & !1,
            0x342 => csr.mcause = value,
            0x343 => csr.mtval = value,
            0x344 => csr.mip_software = value & SUPERVISOR_INTERRUPTS,
            0x3a0 | 0x3a2 => {
                self.pmp.set_config_register(number as usize & 15, value);
                self.mmu.forget();
            }
            0x3b0..=0x3bf => {
                self.pmp.set_address_register(number as usize & 15, value);
                self.mmu.forget();
            }
            0x7a0..=0x7a3 => {}
            _ => return Err(Refused),
        }
        Ok(())
    }

    /// Writes the bits of `mask` in `mstatus`.
    pub fn write_status(&mut self, value: u64, mask: u64) {
        let mut new = (self.csr.mstatus & !mask) | (value & mask);
        if new & status::MPP == 2 << 11 {
            // Mode 2 does not exist: the field keeps its value.
            new = (new & !status::MPP) | (self.csr.mstatus & status::MPP);
        }
        self.csr.mstatus = new;
        self.contexts_changed();
    }
}
