//! CSR instructions in machine mode: what can be written, what reads back, what is illegal.

use super::{Builder, scratch};
use crate::encode;
use crate::random::Random;

/// CSRs that a test may write in machine mode and restore at once: number, bits that it varies, bits that it always writes.
///
/// Bits are left out where several behaviours are legal (WARL) and QEMU shows one of them, where QEMU keeps bits that are
/// read-only zero (bit 0 of `mepc` and `sepc`, addresses beyond 56 bits in `pmpaddr`), or where the program could not continue
/// (MPRV, MIE, locked PMP entries). PMP entries are never writable but not readable, which is reserved.
const WRITABLE: &[(u32, u64, u64)] = &[
    (0x001, u64::MAX, 0),
    (0x002, u64::MAX, 0),
    (0x003, u64::MAX, 0),
    (0x100, 0x000c_6122, 0x2_0000_0000),
    (0x104, 0xaaa, 0),
    (0x105, 0x0000_00ff_ffff_ffc1, 0),
    (0x106, 7, 0),
    (0x140, u64::MAX, 0),
    (0x141, !1, 0),
    (0x142, 0x8000_0000_0000_000f, 0),
    (0x143, u64::MAX, 0),
    (0x144, 0x222, 0),
    (0x180, 0x8000_0fff_ffff_ffff, 0),
    (0x300, 0x007c_61a2, 0xa_0000_0000),
    (0x301, u64::MAX, 0),
    (0x302, 0xb1ff, 0),
    (0x303, 0xaaa, 0),
    (0x304, 0xaaa, 0),
    (0x305, 0x0000_00ff_ffff_ffc1, 0),
    (0x306, 7, 0),
    (0x320, 5, 0),
    (0x340, u64::MAX, 0),
    (0x341, !1, 0),
    (0x342, 0x8000_0000_0000_000f, 0),
    (0x343, u64::MAX, 0),
    (0x344, 0x222, 0),
    (0x30a, 1, 0),
    (0x10a, 1, 0),
    (0x3a0, 0x1d1d_1d1d_1d1d_1d1d, 0),
    (0x3a2, 0x1c1d_1d1d_1d1d_1d1d, 0),
    (0x3b0, 0x003f_ffff_ffff_ffff, 0),
    (0x3b7, 0x003f_ffff_ffff_ffff, 0),
    (0x3bf, 0x003f_ffff_ffff_ffff, 0),
];

/// Numbers of CSRs that neither side implements.
const ABSENT: &[u32] = &[
    0x004, 0x008, 0x00f, 0x015, 0x043, 0x0ff, 0x1ff, 0x200, 0x240, 0x280, 0x2ff, 0x400, 0x5c0,
    0x600, 0x604, 0x680, 0x6c0, 0x7c0, 0x800, 0x8ff, 0x9c0, 0xac0, 0xbc0, 0xcc0, 0xdc0, 0xe12,
    0xfc0, 0xfff, 0x3a1, 0x3a3, 0xc80, 0xb80,
];

/// CSRs whose values depend on the implementation; only whether they can be read is compared.
const PRIVATE: &[u32] = &[
    0xf11, 0xf12, 0xf13, 0xb00, 0xb02, 0xc00, 0xc02, 0xb03, 0xb12, 0x323, 0x332, 0xc03, 0xc12,
];

pub(super) fn generate(b: &mut Builder) {
    for _ in 0..60 {
        match b.random.below(8) {
            0 => {
                // Absent, or read-only and written.
                let csr = *b.random.pick(ABSENT);
                let (funct3, rd, source) = operation(&mut b.random);
                let rd = if super::kept(rd) { 0 } else { rd };
                b.single(encode::csr(funct3, rd, csr, source));
            }
            1 => {
                let csr = *b
                    .random
                    .pick(&[0xf11, 0xf12, 0xf13, 0xf14, 0xf15, 0xc00, 0xc02]);
                let funct3 = *b.random.pick(&[1, 2, 3, 5, 6, 7]);
                b.chunk(|a, random| {
                    // A set or clear by a register that holds zero is also a write, but not for QEMU.
                    let source = scratch(random);
                    a.li(source, random.corner() | 1);
                    a.push(encode::csr(funct3, 0, csr, source));
                });
            }
            2 => {
                // Set and clear with x0 or zero do not write.
                let csr = *b
                    .random
                    .pick(&[0xf11, 0xf12, 0xf13, 0xf14, 0xf15, 0xc00, 0xc02]);
                let funct3 = *b.random.pick(&[2, 3, 6, 7]);
                b.single(encode::csr(funct3, 0, csr, 0));
            }
            3 => {
                let csr = *b.random.pick(PRIVATE);
                let rd = b.target();
                b.chunk(|a, _| {
                    a.csr("csrrs", rd, csr, 0);
                    a.i("addi", rd, 0, 0);
                });
            }
            4 => delegated(b),
            5 if b.random.one_in(3) => modes(b),
            _ => writable(b),
        }
    }
}

fn operation(random: &mut Random) -> (u32, u32, u32) {
    (
        *random.pick(&[1, 2, 3, 5, 6, 7]),
        random.below(32) as u32,
        random.below(32) as u32,
    )
}

/// Write, set or clear; stores the value read and the value read back, and gives the CSR its old value again.
fn writable(b: &mut Builder) {
    let (csr, bits, always) = *b.random.pick(WRITABLE);
    let (was, now) = (b.slot(), b.slot());
    b.chunk(|a, random| {
        let mut value = random.corner() & bits | always;
        if csr == 0x300 && value & 0x1800 == 0x1000 {
            // MPP has no mode 2; the effect of writing it is unspecified.
            value |= 0x1800;
        }
        a.csr("csrrs", 5, csr, 0);
        match random.below(6) {
            0 if bits & 0x1f == 0x1f => {
                let name = *random.pick(&["csrrwi", "csrrsi", "csrrci"]);
                a.csr(name, 7, csr, random.below(32) as u32);
            }
            1 => {
                a.li(6, value);
                a.csr("csrrs", 7, csr, 6);
            }
            2 => {
                a.li(6, value & !always);
                a.csr("csrrc", 7, csr, 6);
            }
            3 => {
                // The same register as source and destination.
                a.li(7, value);
                a.csr("csrrw", 7, csr, 7);
            }
            _ => {
                a.li(6, value);
                a.csr("csrrw", 7, csr, 6);
            }
        }
        a.csr("csrrs", 28, csr, 0);
        a.csr("csrrw", 0, csr, 5);
        a.memory("sd", 7, was, 8);
        a.memory("sd", 28, now, 8);
    });
}

/// A translation mode that does not exist: the whole write has no effect.
fn modes(b: &mut Builder) {
    let slot = b.slot();
    b.chunk(|a, random| {
        // QEMU has modes 9 and 10 too.
        let mode = *random.pick(&[1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15]);
        a.li(6, mode << 60 | random.bits() & 0xfff_ffff_ffff);
        a.csr(random.pick::<&str>(&["csrrw", "csrrs"]), 0, 0x180, 6);
        a.csr("csrrs", 7, 0x180, 0);
        a.csr("csrrw", 0, 0x180, 0);
        a.memory("sd", 7, slot, 8);
    });
}

/// `sie` and `sip` show what `mideleg` delegates.
fn delegated(b: &mut Builder) {
    let slots = [b.slot(), b.slot(), b.slot(), b.slot()];
    b.chunk(|a, random| {
        let register = scratch(random);
        a.li(register, random.bits() & 0x222);
        a.csr("csrrw", 0, 0x303, register);
        a.li(register, random.bits() & 0x222);
        a.csr("csrrw", 0, 0x304, register);
        a.li(register, random.bits() & 0x222);
        a.csr("csrrw", 0, 0x344, register);
        a.li(register, random.bits() & 0x222);
        a.csr(
            random.pick::<&str>(&["csrrw", "csrrs", "csrrc"]),
            0,
            *random.pick(&[0x104, 0x144]),
            register,
        );
        for (csr, slot) in [0x104, 0x144, 0x304, 0x344].into_iter().zip(slots) {
            a.csr("csrrs", register, csr, 0);
            a.memory("sd", register, slot, 8);
        }
        for csr in [0x303, 0x304, 0x344] {
            a.csr("csrrw", 0, csr, 0);
        }
    });
}
