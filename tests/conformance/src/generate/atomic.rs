//! Atomic memory operations and reservations.

use super::{Builder, HALF, scratch};
use crate::encode::{self, ATOMICS, Format, LR, Operands, SC};

pub(super) fn generate(b: &mut Builder) {
    operations(b, true);
}

/// Atomic operations, with or without pairs of LR and SC.
pub(super) fn operations(b: &mut Builder, reservations: bool) {
    for _ in 0..150 {
        let size = if b.random.one_in(2) { 4 } else { 8 };
        let half = HALF as i64 / 2;
        let mut offset = b.random.range(-half / 8, half / 8 - 1) * 8;
        if size == 4 && b.random.one_in(2) {
            offset += 4;
        }
        if b.random.one_in(10) {
            // Misaligned: an exception.
            offset += b.random.range(1, size - 1);
        }
        let (rd, rs2, mode) = (b.target(), b.source(), b.random.below(4) as u32);
        let bytes = size as u32;
        let load = ("lr", LR, Format::LoadReserved);
        let store = ("sc", SC, Format::Atomic);
        match b.random.below(6) {
            0..=3 => {
                let row = *b.random.pick(ATOMICS);
                b.chunk(|a, random| {
                    let rs1 = scratch(random);
                    a.i("addi", rs1, 9, offset);
                    a.push(encode::atomic(
                        row,
                        bytes,
                        Operands {
                            rd,
                            rs1,
                            rs2,
                            mode,
                            ..Operands::default()
                        },
                    ));
                });
            }
            4 if reservations => {
                let other = b.random.below(6);
                b.chunk(|a, random| {
                    let (rs1, loaded) = (scratch(random), scratch(random));
                    a.i("addi", rs1, 9, offset);
                    a.push(encode::atomic(
                        load,
                        bytes,
                        Operands {
                            rd: loaded,
                            rs1,
                            mode,
                            ..Operands::default()
                        },
                    ));
                    if offset % size != 0 {
                        // SC faults on such an address too (volume I, "Load-Reserved/Store-Conditional Instructions"), but in
                        // QEMU it just fails because the LR before it did.
                        return;
                    }
                    // The loaded value may have replaced the address.
                    a.i(
                        "addi",
                        rs1,
                        9,
                        if other == 0 { offset ^ 64 } else { offset },
                    );
                    a.push(encode::atomic(
                        store,
                        bytes,
                        Operands {
                            rd,
                            rs1,
                            rs2,
                            mode,
                            ..Operands::default()
                        },
                    ));
                    if other == 1 {
                        a.i("addi", rs1, 9, offset);
                        a.push(encode::atomic(
                            store,
                            bytes,
                            Operands {
                                rd,
                                rs1,
                                rs2,
                                mode,
                                ..Operands::default()
                            },
                        ));
                    }
                });
            }
            _ => {
                let slot = b.slot();
                b.chunk(|a, _| a.memory("sd", rd, slot, 8));
            }
        }
    }
}
