//! F and D: every operation, every rounding mode, every flag, boxing, and the state bits of `mstatus`.

use super::Builder;
use crate::encode::{self, FLOAT, Format, Operands};

pub(super) fn generate(b: &mut Builder) {
    for _ in 0..160 {
        match b.random.below(20) {
            0 => {
                // frm; 5 to 7 make every dynamic rounding illegal.
                let mode = if b.random.one_in(6) {
                    b.random.range(5, 7)
                } else {
                    b.random.range(0, 4)
                } as u32;
                let rd = b.target();
                b.single(encode::csr(5, rd, 2, mode));
            }
            1 => {
                let (csr, funct3, rd) = (
                    *b.random.pick(&[1, 2, 3]),
                    *b.random.pick(&[1, 2, 3, 5, 6, 7]),
                    b.target(),
                );
                b.chunk(|a, random| {
                    // For QEMU a set or clear by a register that holds zero is not a write (it leaves FS
                    // unchanged).
                    let mut source = random.below(32) as u32;
                    if funct3 < 4 {
                        source = super::scratch(random);
                        a.li(source, random.corner() << 8 | random.range(1, 255) as u64);
                    }
                    a.push(encode::csr(funct3, rd, csr, source));
                });
            }
            2 if b.random.one_in(8) => {
                // FS off, an operation that must trap, FS as a random state.
                let state = b.random.range(1, 3) as u64;
                let row = *b.random.pick(FLOAT);
                b.chunk(|a, random| {
                    a.li(5, 0x6000);
                    a.csr("csrrc", 0, 0x300, 5);
                    a.push(encode::encode(row, operands(row.2, random)));
                    a.csr("csrrs", 6, 3, 0);
                    a.memory("fld", 1, 0, 8);
                    a.memory("fsw", 1, 0, 8);
                    a.li(5, state << 13);
                    a.csr("csrrs", 0, 0x300, 5);
                });
            }
            _ => operation(b),
        }
    }
}

fn operands(format: Format, random: &mut crate::random::Random) -> Operands {
    let any = |random: &mut crate::random::Random| random.below(32) as u32;
    let mode = match random.below(16) {
        0 => random.range(5, 6) as u32,
        1..=6 => 7,
        _ => random.range(0, 4) as u32,
    };
    let (rd, rs1, rs2, rs3) = (any(random), any(random), any(random), any(random));
    let integer = matches!(
        format,
        Format::FloatCompare | Format::FloatToInteger | Format::FloatMove
    );
    let rd = if integer && super::kept(rd) { 0 } else { rd };
    Operands {
        rd,
        rs1,
        rs2,
        rs3,
        mode,
        ..Operands::default()
    }
}

/// Fresh operands, one operation, and its result and flags stored.
fn operation(b: &mut Builder) {
    let row = *b.random.pick(FLOAT);
    let o = operands(row.2, &mut b.random);
    let loads: Vec<(u32, i64)> = [o.rs1, o.rs2, o.rs3]
        .into_iter()
        .map(|r| (r, b.operand(true)))
        .collect();
    let integer = b.operand(false);
    let (result, flags) = (b.slot(), b.slot());
    b.chunk(|a, random| {
        if matches!(row.2, Format::IntegerToFloat | Format::FloatMoveBack) {
            if !super::kept(o.rs1) {
                a.memory("ld", o.rs1, integer, 9);
            }
        } else {
            for &(register, offset) in &loads {
                // Occasionally a binary32 value loaded as such, or an unchanged register.
                match random.below(8) {
                    0 => a.memory("flw", register, offset, 9),
                    1 => {}
                    _ => a.memory("fld", register, offset, 9),
                }
            }
        }
        a.push(encode::encode(row, o));
        if matches!(
            row.2,
            Format::FloatCompare | Format::FloatToInteger | Format::FloatMove
        ) {
            a.memory("sd", o.rd, result, 8);
        } else {
            a.memory("fsd", o.rd, result, 8);
        }
        if random.one_in(2) {
            a.csr("csrrw", 5, 1, 0);
        } else {
            a.csr("csrrs", 5, 3, 0);
        }
        a.memory("sd", 5, flags, 8);
    });
}
