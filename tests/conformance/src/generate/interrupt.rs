//! Interrupts: software, timer, and interrupts that machine mode raises for supervisor mode; priority, delegation, vectors.
//!
//! A program never depends on when an interrupt arrives: it raises the interrupt while it is disabled, waits until `mip` shows
//! it, and then enables it; an enabled pending interrupt must be taken before the next instruction.

use super::{Builder, HALF, switch};
use crate::assembler::{self, Assembler};
use crate::encode::{MRET, SRET, WFI, word};
use crate::layout::*;

const MIE: i64 = 8;

pub(super) fn generate(b: &mut Builder) {
    // Vector tables in the data area: machine mode at 0, supervisor mode at 1024.
    for (at, ret, supervisor) in [(0, MRET, false), (1024, SRET, true)] {
        let table = vectors(ret, supervisor);
        b.data[at..at + table.len()].copy_from_slice(&table);
    }
    // The results then go to the upper half.
    b.registers[8] = DATA + HALF + HALF / 2;
    for _ in 0..20 {
        let slots = [b.slot(), b.slot(), b.slot()];
        b.chunk(|a, random| {
            switch(a, 3, 0);
            a.li(8, DATA + HALF + HALF / 2);
            a.csr("csrrci", 0, 0x300, 8);
            a.csr("csrrci", 0, 0x300, 2);
            let mut bits = 0;
            if random.one_in(2) {
                bits |= 8;
                a.li(5, CLINT_SOFTWARE);
                a.i("addi", 6, 0, 1);
                a.memory("sw", 6, 0, 5);
            }
            if random.one_in(2) {
                bits |= 0x80;
                a.li(5, CLINT_COMPARE);
                if random.one_in(4) {
                    // A moment in the future.
                    a.li(6, CLINT_TIME);
                    a.memory("ld", 6, 0, 6);
                    a.i("addi", 6, 6, random.range(1, 100));
                    a.memory("sd", 6, 0, 5);
                } else {
                    a.memory("sd", 0, 0, 5);
                }
                if random.one_in(2) {
                    // Nothing is enabled in mstatus: WFI waits and continues.
                    a.li(5, 0x80);
                    a.csr("csrrw", 0, 0x304, 5);
                    a.push(word(WFI, "wfi"));
                    a.csr("csrrw", 0, 0x304, 0);
                }
            }
            wait(a, bits, true);
            // Supervisor-mode interrupts raised by software.
            let raised = random.bits() & 0x222;
            a.li(5, raised);
            a.csr("csrrs", 0, 0x344, 5);
            a.li(5, random.bits() & 0x222);
            a.csr("csrrw", 0, 0x303, 5);
            let (machine, supervisor) = (random.one_in(3), random.one_in(3));
            a.li(
                5,
                if machine {
                    DATA + 1
                } else {
                    MACHINE_HANDLER + random.below(2)
                },
            );
            a.csr("csrrw", 0, 0x305, 5);
            a.li(
                5,
                if supervisor {
                    DATA + 1025
                } else {
                    SUPERVISOR_HANDLER + random.below(2)
                },
            );
            a.csr("csrrw", 0, 0x105, 5);
            a.li(
                5,
                if random.one_in(2) {
                    0xaaa
                } else {
                    random.bits() & 0xaaa
                },
            );
            a.csr("csrrw", 0, 0x304, 5);
            if random.one_in(2) {
                a.csr("csrrsi", 0, 0x300, 2);
            }
            let vectored = machine || supervisor;
            match random.below(4) {
                0 | 1 => {
                    a.csr("csrrsi", 0, 0x300, MIE as u32);
                    a.csr("csrrs", 7, 0x344, 0);
                    a.csr("csrrci", 0, 0x300, MIE as u32);
                }
                2 => {
                    let here = a.label();
                    let mode = *random.pick(&[0, 1]);
                    lower(a, mode, here);
                    a.bind(here);
                    if mode == 1 {
                        a.csr("csrrsi", 7, 0x100, 2);
                        a.csr("csrrs", 7, 0x144, 0);
                    } else {
                        a.i("addi", 7, 0, 3);
                    }
                }
                _ => {
                    // Through SRET into user mode, where supervisor interrupts are always enabled.
                    let (here, there) = (a.label(), a.label());
                    lower(a, 1, here);
                    a.bind(here);
                    a.address(6, there);
                    a.csr("csrrw", 0, 0x141, 6);
                    a.li(6, 0x100);
                    a.csr("csrrc", 0, 0x100, 6);
                    a.push(word(SRET, "sret"));
                    a.bind(there);
                    a.i("addi", 7, 0, 5);
                }
            }
            // Back in machine mode through the runtime's handler; with the test's own vectors, ecall would go to their entry 0,
            // which handles it.
            let _ = vectored;
            switch(a, 3, 0);
            a.csr("csrrci", 0, 0x300, MIE as u32);
            a.li(5, MACHINE_HANDLER);
            a.csr("csrrw", 0, 0x305, 5);
            a.li(8, DATA + HALF + HALF / 2);
            a.memory("sd", 7, slots[0], 8);
            a.csr("csrrs", 7, 0x304, 0);
            a.memory("sd", 7, slots[1], 8);
            a.csr("csrrs", 7, 0x300, 0);
            a.memory("sd", 7, slots[2], 8);
            // Quiet again.
            a.csr("csrrw", 0, 0x304, 0);
            a.csr("csrrw", 0, 0x344, 0);
            a.li(5, CLINT_SOFTWARE);
            a.memory("sw", 0, 0, 5);
            a.li(5, CLINT_COMPARE);
            a.li(6, u64::MAX);
            a.memory("sd", 6, 0, 5);
            wait(a, 0x88, false);
            a.csr("csrrw", 0, 0x303, 0);
        });
    }
}

/// Waits until all these bits of `mip` are set, or clear.
fn wait(a: &mut Assembler, bits: u64, set: bool) {
    if bits == 0 {
        return;
    }
    let again = a.label();
    a.li(5, bits);
    a.bind(again);
    a.csr("csrrs", 6, 0x344, 0);
    a.r("and", 6, 6, 5);
    a.branch("bne", 6, if set { 5 } else { 0 }, again);
}

/// MRET to a label in a lower mode.
fn lower(a: &mut Assembler, mode: u64, to: crate::assembler::Label) {
    a.address(6, to);
    a.csr("csrrw", 0, 0x341, 6);
    a.li(6, 0x1800);
    a.csr("csrrc", 0, 0x300, 6);
    a.li(6, mode << 11);
    a.csr("csrrs", 0, 0x300, 6);
    a.push(word(MRET, "mret"));
}

/// A vector table whose interrupt entries note their number in `x31`, disable their source and return. Entry 0 (exceptions)
/// continues at the runtime's handler.
fn vectors(ret: u32, supervisor: bool) -> Vec<u8> {
    let mut a = Assembler::new();
    let entries: Vec<_> = (0..16).map(|_| a.label()).collect();
    for &entry in &entries {
        a.jump(0, entry);
    }
    let (handler, enable) = if supervisor {
        (SUPERVISOR_HANDLER, 0x104)
    } else {
        (MACHINE_HANDLER, 0x304)
    };
    for (number, &entry) in entries.iter().enumerate() {
        a.bind(entry);
        if number == 0 {
            a.li(30, handler);
            a.push(crate::encode::jalr(0, 30, 0));
            continue;
        }
        a.i("slli", 31, 31, 4);
        a.i("addi", 31, 31, number as i64);
        a.li(30, 1 << number);
        a.csr("csrrc", 0, enable, 30);
        a.push(word(ret, "return"));
    }
    assembler::bytes(&a.finish())
}
