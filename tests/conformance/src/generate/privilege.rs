//! Transitions between the modes and the fields of `mstatus` that govern them.

use super::{Builder, switch};
use crate::encode::{self, MRET, SFENCE, SRET, WFI, word};

const MPRV: u64 = 1 << 17;
const MPP: u64 = 3 << 11;
const SPP: u64 = 1 << 8;
const SPIE: u64 = 1 << 5;
const MPIE: u64 = 1 << 7;
const TVM: u64 = 1 << 20;
const TW: u64 = 1 << 21;
const TSR: u64 = 1 << 22;

pub(super) fn generate(b: &mut Builder) {
    for _ in 0..40 {
        let (first, second) = (b.slot(), b.slot());
        b.chunk(|a, random| {
            switch(a, 3, 0);
            // A random starting point.
            let stack = random.bits() & (SPP | SPIE | MPIE | TVM | TW | TSR);
            a.li(5, SPP | SPIE | MPIE | TVM | TW | TSR | MPP);
            a.csr("csrrc", 0, 0x300, 5);
            let mode = *random.pick(&[0, 1, 3]);
            a.li(5, stack | mode << 11);
            a.csr("csrrs", 0, 0x300, 5);
            a.li(5, random.below(8));
            a.csr("csrrw", 0, 0x306, 5);
            a.li(5, random.below(8));
            a.csr("csrrw", 0, 0x106, 5);
            match random.below(6) {
                0 | 1 => {
                    // MRET to the next instruction, and what is possible there.
                    let here = a.label();
                    a.address(6, here);
                    a.csr("csrrw", 0, 0x341, 6);
                    a.push(word(MRET, "mret"));
                    a.bind(here);
                    a.csr("csrrs", 7, 0x100, 0);
                    a.memory("sd", 7, first, 8);
                    privileged(a, random);
                }
                2 | 3 => {
                    // SRET from machine mode, then perhaps again from its target.
                    let here = a.label();
                    a.address(6, here);
                    a.csr("csrrw", 0, 0x141, 6);
                    // Without MPRV, which SRET also clears (volume II, "Memory Privilege in mstatus Register"), but not in
                    // QEMU 7.2.
                    a.push(word(SRET, "sret"));
                    a.bind(here);
                    privileged(a, random);
                }
                4 => {
                    // Loads with another mode's rights (no protection here: they succeed).
                    a.li(5, MPRV);
                    a.csr("csrrs", 0, 0x300, 5);
                    a.memory("ld", 7, first, 9);
                    a.csr("csrrs", 28, 0x300, 0);
                    a.csr("csrrc", 0, 0x300, 5);
                    a.memory("sd", 7, first, 8);
                    a.memory("sd", 28, second, 8);
                }
                _ => {
                    switch(a, *random.pick(&[0, 1]), 0);
                    privileged(a, random);
                    privileged(a, random);
                }
            }
            switch(a, 3, 0);
            a.csr("csrrs", 7, 0x300, 0);
            a.memory("sd", 7, second, 8);
        });
    }
}

/// An instruction whose legality depends on the mode and on `mstatus`.
fn privileged(a: &mut crate::assembler::Assembler, random: &mut crate::random::Random) {
    match random.below(10) {
        0 => {
            // SRET returns to the next instruction, in the mode given by SPP.
            let here = a.label();
            a.address(6, here);
            a.csr("csrrw", 0, 0x141, 6);
            a.push(word(SRET, "sret"));
            a.bind(here);
            a.csr("csrrs", 7, 0x100, 0);
        }
        1 => a.push(word(SFENCE, "sfence.vma")),
        2 => a.csr("csrrs", 7, 0x180, 0),
        3 => a.csr("csrrw", 7, 0x180, 0),
        4 => {
            let here = a.label();
            a.address(6, here);
            a.csr("csrrw", 0, 0x341, 6);
            a.push(word(MRET, "mret"));
            a.bind(here);
        }
        5 => {
            // With an interrupt pending and nothing enabled, WFI ends at once where it is legal.
            switch(a, 3, 0);
            a.csr("csrrci", 0, 0x300, 8);
            a.csr("csrrci", 0, 0x300, 2);
            a.csr("csrrwi", 0, 0x303, 2);
            a.csr("csrrwi", 0, 0x304, 2);
            a.csr("csrrsi", 0, 0x344, 2);
            switch(a, 1, 0);
            a.push(word(WFI, "wfi"));
            switch(a, 3, 0);
            a.csr("csrrw", 0, 0x304, 0);
            a.csr("csrrci", 0, 0x344, 2);
            a.csr("csrrw", 0, 0x303, 0);
        }
        6 | 7 => {
            // Counters: only whether they can be read.
            a.csr("csrrs", 7, 0xc00 + random.below(3) as u32, 0);
            a.i("addi", 7, 0, 0);
        }
        8 => {
            let csr = *random.pick(&[0x100, 0x104, 0x142, 0x300, 0x306, 0x3a0, 0xf14, 0x001]);
            a.push(encode::csr(2, 7, csr, 0));
        }
        _ => a.push(word(SFENCE | 5 << 15 | 6 << 20, "sfence.vma x5, x6")),
    }
}
