//! Programs that are held back: they are loaded and started unchanged, but wait at their entry until a given moment.
//!
//! Why it exists: a program of a description or of the catalog begins with the system, so a run with it and a run without it start
//! differently, and it is impossible to say which part of a difference the program causes. Held back, it is present in both runs, with the
//! same bytes except for the moment, and the system starts identically to the cycle. What it deliberately does not know: what the program
//! does, and what is compared.
//!
//! The wait consists of a few instructions after the program's code, on the code's last page; the entry leads there. The linker script of
//! applications leaves room for them.

use crate::error::Error;
use crate::programs::Program;
use bulkhead_abi::dtu::TIME;
use bulkhead_abi::environment::{ENVIRONMENT_BASE, Environment};
use bulkhead_abi::memory_map::DTU_BASE;
use bulkhead_abi::tilemux::Ecall;
use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, elf};
use std::mem::offset_of;

/// Bytes of the instructions, followed by the moment.
const LENGTH: u64 = 56;
/// Offset of the moment.
const MOMENT: u64 = 48;

/// Registers that no program expects to be preserved at its entry.
const T0: u32 = 5;
const T1: u32 = 6;
const T2: u32 = 7;
const A0: u32 = 10;
const A1: u32 = 11;
const A7: u32 = 17;
const T3: u32 = 28;

fn upper(opcode: u32, register: u32, value: u64) -> u32 {
    (value as u32 & 0xffff_f000) | register << 7 | opcode
}

/// A load or `addi`; `function` and opcode decide.
fn immediate(opcode: u32, function: u32, register: u32, base: u32, value: i64) -> u32 {
    (value as u32 & 0xfff) << 20 | base << 15 | function << 12 | register << 7 | opcode
}

fn branch_if_not_below(left: u32, right: u32, distance: i64) -> u32 {
    let bits = |from: u32, count: u32| (distance >> from) as u32 & ((1 << count) - 1);
    bits(12, 1) << 31
        | bits(5, 6) << 25
        | right << 20
        | left << 15
        | 7 << 12
        | bits(1, 4) << 8
        | bits(11, 1) << 7
        | 0x63
}

fn jump(distance: i64) -> u32 {
    let bits = |from: u32, count: u32| (distance >> from) as u32 & ((1 << count) - 1);
    bits(20, 1) << 31 | bits(1, 10) << 21 | bits(11, 1) << 20 | bits(12, 8) << 12 | 0x6f
}

/// Sleeps until the unit's clock shows `moment` nanoseconds, then continues `distance` bytes from its own start.
fn instructions(moment: u64, distance: i64) -> Vec<u8> {
    let reply = offset_of!(Environment, syscall_reply) as i64;
    let (load, load_half) = (3, 5);
    let words = [
        upper(0x37, T0, DTU_BASE),
        upper(0x37, T1, ENVIRONMENT_BASE),
        // From here on in a loop, because TileMux may wake it earlier.
        upper(0x17, T2, 0),
        immediate(0x03, load, A1, T2, MOMENT as i64 - 8),
        immediate(0x03, load, T3, T0, TIME as i64),
        branch_if_not_below(T3, A1, 20),
        // Nothing arrives at this endpoint outside system calls.
        immediate(0x03, load_half, A0, T1, reply),
        immediate(0x13, 0, A7, 0, Ecall::Wait as i64),
        0x73,
        jump(-28),
        jump(distance - 40),
        immediate(0x13, 0, 0, 0, 0),
    ];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(moment.to_le_bytes());
    bytes
}

/// A copy of the program under another name, held back until this many microseconds after reset.
///
/// # Errors
/// If it is not an ELF file, or has no room after its code.
pub fn back(program: &Program, name: String, microseconds: u32) -> Result<Program, Error> {
    let refuse = |why: &str| {
        Error::input(
            format!(
                "{}: {why}, so it cannot be held back until an attack begins",
                program.name
            ),
            "link it with the linker script of applications (`bulkhead-app.x`)",
        )
    };
    let broken = |error: object::Error| refuse(&error.to_string());
    let data = program.elf.as_slice();
    let header = FileHeader64::<LittleEndian>::parse(data).map_err(broken)?;
    let little = LittleEndian;
    let segments = header.program_headers(little, data).map_err(broken)?;
    let entry = header.e_entry(little);
    let holds = |segment: &&elf::ProgramHeader64<LittleEndian>| {
        let begin = segment.p_vaddr(little);
        segment.p_type(little) == PT_LOAD
            && segment.p_flags(little) & PF_X != 0
            && (begin..begin + segment.p_memsz(little)).contains(&entry)
    };
    let code = segments.iter().position(|segment| holds(&segment));
    let at = code.ok_or_else(|| refuse("no code lies at its entry"))?;
    let code = &segments[at];
    let (address, offset) = (code.p_vaddr(little), code.p_offset(little));
    let used = code.p_filesz(little);
    let begin = (address + used).next_multiple_of(8) - address;
    let end = begin + LENGTH;
    // Nothing else may be there, in memory or in the file.
    let mut others = segments.iter().filter(|one| one.p_type(little) == PT_LOAD);
    let in_memory = others.any(|one| {
        let other = one.p_vaddr(little);
        other > address && other < address + end
    });
    let sections = header.sections(little, data).map_err(broken)?;
    let in_file = sections.iter().any(|section| {
        let range = section.file_range(little);
        range.is_some_and(|(from, length)| from < offset + end && from + length > offset + used)
    });
    let page = 4096;
    let same_page = (address + end - 1) / page == (address + used.max(1) - 1) / page;
    if used != code.p_memsz(little) || in_memory || in_file || !same_page {
        return Err(refuse("its code fills its last page"));
    }
    let distance = entry.wrapping_sub(address + begin) as i64;
    if distance.unsigned_abs() >= 1 << 20 {
        return Err(refuse(
            "its code ends more than a megabyte behind its entry",
        ));
    }
    let mut bytes = program.elf.clone();
    let from = (offset + begin) as usize;
    if bytes.len() < from + LENGTH as usize {
        bytes.resize(from + LENGTH as usize, 0);
    }
    let moment = u64::from(microseconds) * 1000;
    bytes[from..from + LENGTH as usize].copy_from_slice(&instructions(moment, distance));
    let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    let segment = header.e_phoff(little) as usize + at * usize::from(header.e_phentsize(little));
    put(
        offset_of!(FileHeader64<LittleEndian>, e_entry),
        address + begin,
    );
    put(
        segment + offset_of!(elf::ProgramHeader64<LittleEndian>, p_filesz),
        end,
    );
    put(
        segment + offset_of!(elf::ProgramHeader64<LittleEndian>, p_memsz),
        end,
    );
    Ok(Program { name, elf: bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable of one segment: `code` bytes of it at 0x1000 in memory and file.
    fn executable(code: usize) -> Program {
        let mut elf = vec![0; 0x1000 + code];
        elf[..16].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
        put(16, &2_u16.to_le_bytes());
        put(18, &243_u16.to_le_bytes());
        put(20, &1_u32.to_le_bytes());
        for (at, value) in [(24, 0x1000_u64), (32, 64)] {
            put(at, &value.to_le_bytes());
        }
        for (at, value) in [(52, 64_u16), (54, 56), (56, 1), (58, 64)] {
            put(at, &value.to_le_bytes());
        }
        put(64, &1_u32.to_le_bytes());
        put(68, &5_u32.to_le_bytes());
        for (at, value) in [
            (72, 0x1000_u64),
            (80, 0x1000),
            (96, code as u64),
            (104, code as u64),
        ] {
            put(at, &value.to_le_bytes());
        }
        Program {
            name: "p".to_owned(),
            elf,
        }
    }

    /// The instructions as encoded by an assembler.
    #[test]
    fn the_wait_is_written_as_an_assembler_does() {
        let bytes = instructions(0x1234, -0x100);
        let words: Vec<u32> = bytes[..48]
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let expected = [
            0x0300_02b7, // lui t0, 0x3000
            0x1000_0337, // lui t1, 0x10000
            0x0000_0397, // auipc t2, 0
            0x0283_b583, // ld a1, 40(t2)
            0x0202_be03, // ld t3, 32(t0)
            0x00be_7a63, // bgeu t3, a1, .+20
        ];
        assert_eq!(words[..6], expected, "{words:x?}");
        // ecall; j .-28; j .-0x128; nop
        assert_eq!(
            words[8..],
            [0x0000_0073, 0xfe5f_f06f, 0xed9f_f06f, 0x0000_0013]
        );
        assert_eq!(bytes[48..], 0x1234_u64.to_le_bytes());
    }

    #[test]
    fn moments_differ_and_nothing_else_does() {
        let program = executable(0x100);
        let of = |moment| back(&program, "held".to_owned(), moment).expect("room").elf;
        let (early, late) = (of(7), of(8));
        let differ = early.iter().zip(&late).enumerate();
        let differ: Vec<usize> = differ
            .filter(|(_, (a, b))| a != b)
            .map(|(at, _)| at)
            .collect();
        assert!(
            differ
                .iter()
                .all(|at| (0x1100 + 48..0x1100 + 56).contains(at)),
            "{differ:x?}"
        );
        assert_eq!(early.len(), late.len());
        assert_eq!(early[24..32], 0x1100_u64.to_le_bytes());
        // The rest is the program's.
        assert_eq!(early[0x1000..0x1100], program.elf[0x1000..]);
    }

    #[test]
    fn without_room_it_is_refused() {
        assert!(back(&executable(4096 - 56), "held".to_owned(), 1).is_ok());
        let full = back(&executable(4096 - 48), "held".to_owned(), 1);
        let error = full.map(|_| ()).expect_err("no room");
        assert!(error.to_string().contains("fills its last page"), "{error}");
        let text = Program {
            name: "t".to_owned(),
            elf: b"#!/bin/sh".to_vec(),
        };
        assert!(back(&text, "held".to_owned(), 1).is_err());
    }
}
