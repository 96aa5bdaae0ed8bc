//! Exceptions of every kind except paging's, in all modes, some delegated to supervisor mode.

use super::{Builder, scratch, switch};
use crate::assembler::Assembler;
use crate::encode::{self, ATOMICS, EBREAK, ECALL, LOADS, Operands, STORES};
use crate::layout::*;
use crate::random::Random;

pub(super) fn generate(b: &mut Builder) {
    b.fixed(|a, random| {
        // Not the ecall from supervisor mode: the supervisor-mode handler needs it.
        let bits = match random.below(4) {
            0 => 0,
            1 => 0xb1ff,
            _ => random.bits() & 0xb1ff,
        };
        a.li(5, bits);
        a.csr("csrrw", 0, 0x302, 5);
    });
    for _ in 0..60 {
        match b.random.below(9) {
            0 => {
                let mode = *b.random.pick(&[0, 1, 3]);
                b.fixed(|a, _| switch(a, mode, 0));
            }
            1 => b.chunk(|a, random| {
                a.i("addi", 17, 0, random.range(0, 31));
                a.push(encode::word(ECALL, "ecall"));
            }),
            2 => b.chunk(|a, random| {
                a.push(if random.one_in(2) {
                    encode::word(EBREAK, "ebreak")
                } else {
                    encode::half(0x9002, "c.ebreak".to_owned())
                });
            }),
            3 => {
                let instruction = illegal(&mut b.random);
                b.single(instruction);
            }
            4 | 5 => b.chunk(|a, random| {
                let register = scratch(random);
                // Aligned and not atomic: for others QEMU reports the first part of the access that it makes itself.
                a.li(register, HOLE + random.below(8) * 8);
                let kind = random.below(4);
                access_of_kind(a, random, register, kind);
            }),
            6 => b.chunk(|a, random| {
                // A jump to nowhere comes back through ra.
                let register = scratch(random);
                a.li(register, HOLE + random.below(64));
                if random.one_in(2) {
                    a.push(encode::jalr(1, register, random.range(-2048, 2047)));
                } else {
                    a.push(encode::compressed_indirect(true, register));
                }
            }),
            7 => {
                b.chunk(|a, random| {
                    // A short instruction in the last two bytes of memory: a return, or one followed by nothing. (QEMU 7.2
                    // stops with a failed assertion at the first half of a long one.)
                    let (bits, end) = (*random.pick(&[0x0001, 0x8082]), DRAM + DRAM_BYTES);
                    a.li(6, bits);
                    a.li(7, end);
                    a.memory("sh", 6, -2, 7);
                    a.push(encode::word(encode::FENCE_I, "fence.i"));
                    a.push(encode::jalr(1, 7, -2));
                });
            }
            _ => {
                let rd = b.target();
                let csr = readable(&mut b.random);
                let slot = b.slot();
                b.chunk(|a, _| {
                    a.csr("csrrs", rd, csr, 0);
                    a.memory("sd", rd, slot, 8);
                });
            }
        }
    }
}

/// A CSR that all modes try to read; values that depend on the implementation are left out.
fn readable(random: &mut Random) -> u32 {
    const NAMED: [u32; 24] = [
        0x001, 0x002, 0x003, 0x100, 0x104, 0x105, 0x106, 0x140, 0x141, 0x142, 0x143, 0x144, 0x180,
        0x300, 0x301, 0x302, 0x303, 0x304, 0x305, 0x306, 0x341, 0x342, 0x343, 0xf14,
    ];
    if random.one_in(8) {
        0x7c0 + random.below(64) as u32
    } else {
        *random.pick(&NAMED)
    }
}

/// A load, store or atomic operation at the address in `register`.
pub(super) fn access(a: &mut Assembler, random: &mut Random, register: u32) {
    let kind = random.below(5);
    access_of_kind(a, random, register, kind);
}

/// See [`access`]; kinds 0 and 1 are loads, 2 and 3 stores, 4 atomic operations.
pub(super) fn access_of_kind(a: &mut Assembler, random: &mut Random, register: u32, kind: u64) {
    let rd = super::target(random);
    let o = Operands {
        rd,
        rs1: register,
        rs2: rd,
        ..Operands::default()
    };
    match kind {
        0 | 1 => a.push(encode::encode(random.pick(LOADS).0, o)),
        2 | 3 => a.push(encode::encode(random.pick(STORES).0, o)),
        _ => {
            let row = *random.pick(ATOMICS);
            let bytes = *random.pick(&[4, 8]);
            a.i("andi", register, register, -8);
            a.push(encode::atomic(row, bytes, o));
        }
    }
}

/// An encoding that RV64GC reserves.
fn illegal(random: &mut Random) -> encode::Instruction {
    const WORDS: [(u32, &str); 17] = [
        (0xffff_ffff, "all ones"),
        (0x0000_0000, "all zeros"),
        (0x0000_700b, "custom-0"),
        (0x0000_402b, "custom-1"),
        (0x0200_5013, "srli with a bit too many"),
        (0x0000_7003, "load of funct3 7"),
        (0x0000_4023, "store of funct3 4"),
        (0x0000_2063, "branch of funct3 2"),
        (0x0000_3063, "branch of funct3 3"),
        (0x0000_1067, "jalr of funct3 1"),
        (0x0600_0033, "op of funct7 3"),
        (0x0200_103b, "op-32 of funct3 1"),
        (0x4000_1033, "sll of funct7 32"),
        (0x0000_0077, "op-ve"),
        (0x3020_0173, "mret with rd"),
        (0x0020_0073, "uret"),
        (0x7b20_0073, "dret"),
    ];
    const HALVES: [(u32, &str); 9] = [
        (0x0000, "c.illegal"),
        (0x0004, "c.addi4spn of 0"),
        (0x8000, "quadrant 0, funct3 4"),
        (0x6101, "c.addi16sp of 0"),
        (0x6281, "c.lui of 0"),
        (0x2001, "c.addiw x0"),
        (0x4002, "c.lwsp x0"),
        (0x8002, "c.jr x0"),
        (0x9c41, "quadrant 1, reserved"),
    ];
    if random.one_in(2) {
        let (bits, text) = *random.pick(&WORDS);
        if bits & 3 == 3 {
            encode::word(bits, text)
        } else {
            encode::half(bits, text.to_owned())
        }
    } else {
        let (bits, text) = *random.pick(&HALVES);
        encode::half(bits, text.to_owned())
    }
}
