//! Instructions that end a block because they may change what follows: CSRs, traps, fences of code and translation.

use super::block::Block;
use super::bus::Bus;
use super::core::{Core, Exception, Exit, Mode, Privilege};
use super::csr::status;
use super::isa::{Kind, Op, zicsr};
use super::trap::cause;
use crate::types::Tick;
use bulkhead_abi::cbqri::SRMCFG;
use bulkhead_abi::hpm::SCOUNTOVF;

impl Core {
    /// Executes an operation of this group. `bits` is its instruction; `a` and `b` are its source registers.
    pub fn system<B: Bus>(
        &mut self,
        bus: &mut B,
        block: &Block,
        op: &Op,
        bits: u64,
        a: u64,
        b: u64,
    ) -> Result<(), Exit> {
        self.settle(bus);
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
                if is_counter(op.imm as u16) {
                    // Counts what has arrived up to now.
                    self.before_store(offset)?;
                    self.ask_caches(bus);
                }
                if self
                    .control_register(bus, op, operand, self.base + offset)
                    .is_err()
                {
                    return illegal(bits);
                }
                self.pc = next;
            }
            Kind::Ecall => return trap(cause::USER_CALL + self.privilege as u64),
            Kind::Ebreak => return trap(cause::BREAKPOINT),
            Kind::Mret if self.privilege == Privilege::Machine => {
                self.return_from_trap(bus, true, offset);
            }
            Kind::Sret if !user && !supervisor_with(status::TSR) => {
                self.return_from_trap(bus, false, offset);
            }
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
                bus.empty_instruction_cache();
                self.forget_code();
                // The instructions after it are fetched again.
                self.base += self.costs.branch_penalty;
                self.statistics.stall_branch += self.costs.branch_penalty;
                self.pc = next;
            }
            _ => return illegal(bits),
        }
        self.base += length;
        Ok(())
    }

    fn return_from_trap<B: Bus>(&mut self, bus: &B, machine: bool, offset: Tick) {
        self.ask_caches_before_a_mode(bus);
        self.trap_return(machine, self.base + offset);
        self.base += self.costs.trap_entry;
        self.statistics.stall_trap += self.costs.trap_entry;
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
            // A read-modify-write of `mip` must not turn the level of an input line into a software bit.
            let basis = if number == 0x344 {
                self.csr.mip_software
            } else {
                old
            };
            self.csr_write(number, zicsr::new_value(op, basis, operand), now)?;
            if number == SRMCFG {
                self.identify(bus);
            }
        }
        self.x[op.rd as usize & 63] = old;
        Ok(())
    }
}

/// Whether a register shows or controls event counts.
fn is_counter(number: u16) -> bool {
    matches!(number, 0x320 | 0x323..=0x33f | 0xb03..=0xb1f | 0xc03..=0xc1f | SCOUNTOVF)
}

fn illegal(bits: u64) -> Result<(), Exit> {
    Err(Exit::Trap(Exception {
        cause: cause::ILLEGAL,
        value: bits,
    }))
}
