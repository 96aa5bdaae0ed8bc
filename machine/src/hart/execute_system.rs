//! Instructions that end a block because they may change what follows: CSRs, traps, fences of code and translation.

use super::block::{Block, read_instruction};
use super::bus::Bus;
use super::core::{Core, Exception, Exit, Mode, Privilege};
use super::csr::status;
use super::isa::{Kind, Op, zicsr};
use super::pmp::Need;
use super::trap::cause;
use crate::types::Tick;

impl Core {
    /// The bits of an instruction that turned out to be illegal, for `xtval`. Reads them again, because operations do not
    /// keep their encoding.
    #[cold]
    pub fn instruction_bits<B: Bus>(&mut self, bus: &mut B, op: &Op) -> u64 {
        if op.kind == Kind::Illegal {
            return op.imm as u32 as u64;
        }
        let pc = self.pc.wrapping_add(op.offset as u64);
        let mut half = |core: &Self, address: u64| {
            let physical = core
                .mmu
                .quick(Need::Execute, address)
                .or_else(|| core.peek_fetch(bus, address))?;
            bus.read(physical, 2).ok()
        };
        let low = half(self, pc).unwrap_or(0);
        if op.length == 2 {
            low
        } else {
            low | half(self, pc.wrapping_add(2)).unwrap_or(0) << 16
        }
    }

    /// Executes an operation of this group; `a` and `b` are its source registers.
    pub fn system<B: Bus>(
        &mut self,
        bus: &mut B,
        block: &Block,
        op: &Op,
        a: u64,
        b: u64,
    ) -> Result<(), Exit> {
        let offset = op.cycle as Tick * self.costs.cycle;
        let next = self.pc.wrapping_add(op.offset as u64 + op.length as u64);
        let length = block.cycles as Tick * self.costs.cycle;
        let trap = |cause| Err(Exit::Trap(Exception { cause, value: 0 }));
        let user = self.privilege == Privilege::User;
        let supervisor_with =
            |bit| self.privilege == Privilege::Supervisor && self.csr.mstatus & bit != 0;
        match op.kind {
            Kind::Csrrw
            | Kind::Csrrs
            | Kind::Csrrc
            | Kind::Csrrwi
            | Kind::Csrrsi
            | Kind::Csrrci => {
                let immediate = matches!(op.kind, Kind::Csrrwi | Kind::Csrrsi | Kind::Csrrci);
                let operand = if immediate { op.rs1 as u64 } else { a };
                if self
                    .control_register(bus, op, operand, self.base + offset)
                    .is_err()
                {
                    return self.illegal(bus, op);
                }
                self.pc = next;
            }
            Kind::Ecall => return trap(cause::USER_CALL + self.privilege as u64),
            Kind::Ebreak => return trap(cause::BREAKPOINT),
            Kind::Mret if self.privilege == Privilege::Machine => self.return_from_trap(true),
            Kind::Sret if !user && !supervisor_with(status::TSR) => self.return_from_trap(false),
            Kind::Wfi if !user && !supervisor_with(status::TW) => {
                self.pc = next;
                if !self.interrupt_wakes() {
                    self.mode = Mode::Waiting;
                }
            }
            Kind::SfenceVma if !user && !supervisor_with(status::TVM) => {
                let address = (op.rs1 != 0).then_some(a);
                let asid = (op.rs2 != 0).then_some(b as u16);
                self.mmu.fence(address, asid);
                self.pc = next;
            }
            Kind::FenceI => {
                self.wait_all(offset)?;
                self.forget_blocks = true;
                self.forget_lines();
                // What is behind it is fetched again.
                self.base += self.costs.branch_penalty;
                self.statistics.stall_branch += self.costs.branch_penalty;
                self.pc = next;
            }
            _ => return self.illegal(bus, op),
        }
        self.base += length;
        Ok(())
    }

    fn return_from_trap(&mut self, machine: bool) {
        self.trap_return(machine);
        self.base += self.costs.trap_entry;
        self.statistics.stall_trap += self.costs.trap_entry;
    }

    fn illegal<B: Bus>(&mut self, bus: &mut B, op: &Op) -> Result<(), Exit> {
        let value = self.instruction_bits(bus, op);
        Err(Exit::Trap(Exception {
            cause: cause::ILLEGAL,
            value,
        }))
    }

    fn control_register<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        operand: u64,
        now: Tick,
    ) -> Result<(), super::csr::Refused> {
        let number = op.imm as u16;
        let writes = zicsr::writes(op);
        self.csr_access(number, writes)?;
        let old = self.csr_read(number, now, |now| bus.timer(now))?;
        if writes {
            // A read-modify-write of `mip` must not turn a line's level into a software bit.
            let basis = if number == 0x344 {
                self.csr.mip_software
            } else {
                old
            };
            self.csr_write(number, zicsr::new_value(op, basis, operand), now)?;
        }
        self.x[op.rd as usize & 63] = old;
        Ok(())
    }

    /// Translates a fetch without any effect on time or TLBs; for diagnosis only.
    fn peek_fetch<B: Bus>(&self, bus: &mut B, address: u64) -> Option<u64> {
        let bare = self.privilege == Privilege::Machine || self.csr.satp >> 60 == 0;
        let physical = if bare {
            address
        } else {
            self.mmu.peek_fetch(address, (self.csr.satp >> 44) as u16)?
        };
        read_instruction(bus, physical).map(|_| physical)
    }
}
