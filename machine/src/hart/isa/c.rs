//! Compressed instructions (C extension, unprivileged specification 20191213, chapter 16): each is expanded into the 32-bit
//! encoding that it abbreviates, so no semantics are written twice.

const fn bits(half: u32, low: u32, count: u32) -> u32 {
    (half >> low) & ((1 << count) - 1)
}

/// Bit `from` of the half-word, moved to bit `to`.
const fn bit(half: u32, from: u32, to: u32) -> u32 {
    ((half >> from) & 1) << to
}

const fn i_type(imm: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (imm << 20) | (rs1 << 15) | (funct3 << 12) | (rd << 7) | opcode
}

const fn s_type(imm: u32, rs2: u32, rs1: u32, funct3: u32, opcode: u32) -> u32 {
    ((imm >> 5) << 25) | (rs2 << 20) | (rs1 << 15) | (funct3 << 12) | ((imm & 31) << 7) | opcode
}

const fn r_type(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (funct7 << 25) | (rs2 << 20) | (rs1 << 15) | (funct3 << 12) | (rd << 7) | opcode
}

fn b_type(offset: u32, rs1: u32, funct3: u32) -> u32 {
    (bits(offset, 12, 1) << 31)
        | (bits(offset, 5, 6) << 25)
        | (rs1 << 15)
        | (funct3 << 12)
        | (bits(offset, 1, 4) << 8)
        | (bits(offset, 11, 1) << 7)
        | 0x63
}

fn j_type(offset: u32, rd: u32) -> u32 {
    (bits(offset, 20, 1) << 31)
        | (bits(offset, 1, 10) << 21)
        | (bits(offset, 11, 1) << 20)
        | (bits(offset, 12, 8) << 12)
        | (rd << 7)
        | 0x6f
}

/// Sign-extends a value of `width` bits.
const fn sign(value: u32, width: u32) -> u32 {
    ((value << (32 - width)) as i32 >> (32 - width)) as u32
}

const LOAD: u32 = 0x03;
const LOAD_FP: u32 = 0x07;
const OP_IMM: u32 = 0x13;
const OP_IMM_32: u32 = 0x1b;
const STORE: u32 = 0x23;
const STORE_FP: u32 = 0x27;
const OP: u32 = 0x33;
const OP_32: u32 = 0x3b;

/// The 32-bit encoding of a compressed RV64 instruction; `None` for reserved and illegal ones.
pub fn expand(half: u16) -> Option<u32> {
    let h = half as u32;
    match (h & 3, h >> 13) {
        (0, funct) => quadrant0(h, funct),
        (1, funct) => quadrant1(h, funct),
        (2, funct) => quadrant2(h, funct),
        _ => None,
    }
}

fn quadrant0(h: u32, funct: u32) -> Option<u32> {
    let (rd, rs1) = (8 + bits(h, 2, 3), 8 + bits(h, 7, 3));
    let double = (bits(h, 10, 3) << 3) | (bits(h, 5, 2) << 6);
    let word = (bits(h, 10, 3) << 3) | bit(h, 6, 2) | bit(h, 5, 6);
    Some(match funct {
        0 => {
            let imm = (bits(h, 11, 2) << 4) | (bits(h, 7, 4) << 6) | bit(h, 6, 2) | bit(h, 5, 3);
            if imm == 0 {
                return None;
            }
            i_type(imm, 2, 0, rd, OP_IMM)
        }
        1 => i_type(double, rs1, 3, rd, LOAD_FP),
        2 => i_type(word, rs1, 2, rd, LOAD),
        3 => i_type(double, rs1, 3, rd, LOAD),
        5 => s_type(double, rd, rs1, 3, STORE_FP),
        6 => s_type(word, rd, rs1, 2, STORE),
        7 => s_type(double, rd, rs1, 3, STORE),
        _ => return None,
    })
}

fn quadrant1(h: u32, funct: u32) -> Option<u32> {
    let rd = bits(h, 7, 5);
    let imm = sign(bit(h, 12, 5) | bits(h, 2, 5), 6);
    let imm12 = imm & 0xfff;
    Some(match funct {
        0 => i_type(imm12, rd, 0, rd, OP_IMM),
        1 if rd != 0 => i_type(imm12, rd, 0, rd, OP_IMM_32),
        2 => i_type(imm12, 0, 0, rd, OP_IMM),
        3 if rd == 2 => {
            let imm = sign(
                bit(h, 12, 9) | bit(h, 6, 4) | bit(h, 5, 6) | (bits(h, 3, 2) << 7) | bit(h, 2, 5),
                10,
            );
            if imm == 0 {
                return None;
            }
            i_type(imm & 0xfff, 2, 0, 2, OP_IMM)
        }
        3 if imm != 0 => ((imm << 12) & 0xffff_f000) | (rd << 7) | 0x37,
        4 => return arithmetic(h, imm12),
        5 => {
            let offset = bit(h, 12, 11)
                | bit(h, 11, 4)
                | (bits(h, 9, 2) << 8)
                | bit(h, 8, 10)
                | bit(h, 7, 6)
                | bit(h, 6, 7)
                | (bits(h, 3, 3) << 1)
                | bit(h, 2, 5);
            j_type(sign(offset, 12), 0)
        }
        6 | 7 => {
            let offset = bit(h, 12, 8)
                | (bits(h, 10, 2) << 3)
                | (bits(h, 5, 2) << 6)
                | (bits(h, 3, 2) << 1)
                | bit(h, 2, 5);
            b_type(sign(offset, 9), 8 + bits(h, 7, 3), funct - 6)
        }
        _ => return None,
    })
}

fn arithmetic(h: u32, imm: u32) -> Option<u32> {
    let (rd, rs2) = (8 + bits(h, 7, 3), 8 + bits(h, 2, 3));
    let shift = bit(h, 12, 5) | bits(h, 2, 5);
    Some(match (bits(h, 10, 2), bit(h, 12, 0), bits(h, 5, 2)) {
        (0, ..) => i_type(shift, rd, 5, rd, OP_IMM),
        (1, ..) => i_type(0x400 | shift, rd, 5, rd, OP_IMM),
        (2, ..) => i_type(imm, rd, 7, rd, OP_IMM),
        (_, 0, 0) => r_type(0x20, rs2, rd, 0, rd, OP),
        (_, 0, 1) => r_type(0, rs2, rd, 4, rd, OP),
        (_, 0, 2) => r_type(0, rs2, rd, 6, rd, OP),
        (_, 0, 3) => r_type(0, rs2, rd, 7, rd, OP),
        (_, 1, 0) => r_type(0x20, rs2, rd, 0, rd, OP_32),
        (_, 1, 1) => r_type(0, rs2, rd, 0, rd, OP_32),
        _ => return None,
    })
}

fn quadrant2(h: u32, funct: u32) -> Option<u32> {
    let (rd, rs2) = (bits(h, 7, 5), bits(h, 2, 5));
    let load_double = bit(h, 12, 5) | (bits(h, 5, 2) << 3) | (bits(h, 2, 3) << 6);
    let load_word = bit(h, 12, 5) | (bits(h, 4, 3) << 2) | (bits(h, 2, 2) << 6);
    let store_double = (bits(h, 10, 3) << 3) | (bits(h, 7, 3) << 6);
    let store_word = (bits(h, 9, 4) << 2) | (bits(h, 7, 2) << 6);
    Some(match funct {
        0 => i_type(bit(h, 12, 5) | rs2, rd, 1, rd, OP_IMM),
        1 => i_type(load_double, 2, 3, rd, LOAD_FP),
        2 if rd != 0 => i_type(load_word, 2, 2, rd, LOAD),
        3 if rd != 0 => i_type(load_double, 2, 3, rd, LOAD),
        4 => match (bit(h, 12, 0), rd, rs2) {
            (0, 0, 0) => return None,
            (0, _, 0) => i_type(0, rd, 0, 0, 0x67),
            (0, _, _) => r_type(0, rs2, 0, 0, rd, OP),
            (_, 0, 0) => 0x0010_0073,
            (_, _, 0) => i_type(0, rd, 0, 1, 0x67),
            (_, _, _) => r_type(0, rs2, rd, 0, rd, OP),
        },
        5 => s_type(store_double, rs2, 2, 3, STORE_FP),
        6 => s_type(store_word, rs2, 2, 2, STORE),
        7 => s_type(store_double, rs2, 2, 3, STORE),
        _ => return None,
    })
}
