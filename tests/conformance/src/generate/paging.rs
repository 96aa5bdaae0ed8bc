//! Sv39: permissions, superpages, A and D bits, SUM, MXR, MPRV, page faults of all kinds, delegated or not.
//!
//! Tables: page 0 is the root; entry 2 maps the memory to itself for supervisor mode with one 2 MiB page; entry 3 maps the
//! same with 4 KiB pages for user mode (see [`ALIAS`]). Everything else is random: entry 0 and 511 lead to tables of random
//! entries, entry 1 and some others are random leaves.

use super::trap::{access, access_of_kind};
use super::{Builder, switch};
use crate::assembler::{self, Assembler};
use crate::encode::{self, SFENCE, word};
use crate::layout::*;
use crate::random::Random;

const PAGES: u64 = 8;
const VALID: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 4;
const EXECUTE: u64 = 8;
const USER: u64 = 16;
const GLOBAL: u64 = 32;
const ACCESSED: u64 = 64;
const DIRTY: u64 = 128;

/// Bytes of the data area: four pages.
const DATA_BYTES: u64 = 4 * 4096;

fn entry(physical: u64, flags: u64) -> u64 {
    physical >> 12 << 10 | flags
}

fn set(b: &mut Builder, page: u64, index: u64, value: u64) {
    let at = (page * 4096 + index * 8) as usize;
    b.tables[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A random leaf that leads to the data area if it is a 4 KiB page, to the memory if it is larger.
fn leaf(random: &mut Random, level: u64) -> u64 {
    let physical = match level {
        0 => DATA + random.below(4) * 4096,
        _ if random.one_in(8) => DRAM + random.below(512) * 4096,
        1 => DRAM,
        _ => DRAM,
    };
    let mut flags = match random.below(6) {
        0 => random.bits() & 0x3ff,
        1 => VALID | READ | WRITE | EXECUTE | ACCESSED | DIRTY | random.bits() & (USER | GLOBAL),
        2 => VALID | READ | ACCESSED | DIRTY | random.bits() & (USER | GLOBAL),
        3 => VALID | EXECUTE | random.bits() & (USER | ACCESSED),
        _ => VALID | READ | WRITE | random.bits() & (USER | EXECUTE | ACCESSED | DIRTY),
    };
    let physical = if level > 0 && flags & (READ | WRITE | EXECUTE) == 0 {
        // A pointer, then: to an empty table.
        TABLES + 7 * 4096
    } else {
        physical
    };
    if random.one_in(20) {
        // Reserved bits, and those of extensions that are not implemented.
        flags |= 1 << random.range(54, 63);
    }
    entry(physical, flags)
}

pub(super) fn setup(b: &mut Builder) {
    b.data.resize(DATA_BYTES as usize, 0);
    for page in 0..DATA_BYTES as usize / 4096 {
        // Functions that report the page in which they are: at offset 64, and one whose first instruction crosses two pages.
        let number = page as i64 + 1;
        let mut function = Assembler::new();
        function.i("addi", 30, 30, number << 4);
        function.push(encode::jalr(0, 1, 0));
        let inside = assembler::bytes(&function.finish());
        let mut function = Assembler::new();
        function.i("addi", 31, 31, number << 2);
        function.push(encode::jalr(0, 1, 0));
        let across = assembler::bytes(&function.finish());
        let begin = page * 4096;
        b.data[begin..begin + 6].copy_from_slice(&across[2..]);
        b.data[begin + 64..begin + 72].copy_from_slice(&inside);
        b.data[begin + 4094..begin + 4096].copy_from_slice(&across[..2]);
    }
    b.tables = vec![0; (PAGES * 4096) as usize];
    let pointer = |page: u64| entry(TABLES + page * 4096, VALID);
    let all = VALID | READ | WRITE | EXECUTE | ACCESSED | DIRTY;
    set(b, 0, 2, pointer(1));
    set(b, 1, 0, entry(DRAM, all));
    set(b, 0, 3, pointer(2));
    set(b, 2, 0, pointer(3));
    for page in 0..CODE_BYTES / 4096 {
        set(
            b,
            3,
            (CODE - DRAM) / 4096 + page,
            entry(CODE + page * 4096, all & !WRITE | USER),
        );
    }
    for page in 0..4 {
        set(
            b,
            3,
            (DATA - DRAM) / 4096 + page,
            entry(DATA + page * 4096, all & !EXECUTE | USER),
        );
    }
}

/// Maps one page for user mode, for everything, with nothing else in its gigabyte.
pub(super) fn map_alone(b: &mut Builder, virtual_address: u64, physical: u64) {
    let index = |level: u64| virtual_address >> (12 + 9 * level) & 511;
    set(b, 0, index(2), entry(TABLES + 4 * 4096, VALID));
    set(b, 4, index(1), entry(TABLES + 5 * 4096, VALID));
    let all = VALID | READ | WRITE | EXECUTE | USER | ACCESSED | DIRTY;
    set(b, 5, index(0), entry(physical, all));
}

/// Random entries for entries 0 and 511 of the root, their tables, and some gigabyte pages.
fn random_tables(b: &mut Builder) {
    set(b, 0, 0, entry(TABLES + 4 * 4096, VALID));
    set(b, 0, 511, entry(TABLES + 4 * 4096, VALID));
    for index in 0..8 {
        let value = match index {
            0 | 1 => entry(TABLES + 5 * 4096, VALID),
            2 => entry(TABLES + 6 * 4096, VALID),
            3 => {
                // Bits that a pointer may not have.
                let bits = b.random.bits() & (USER | GLOBAL | ACCESSED | DIRTY);
                entry(TABLES + 5 * 4096, VALID | bits)
            }
            _ => leaf(&mut b.random, 1),
        };
        set(b, 4, index, value);
        let value = leaf(&mut b.random, 1);
        set(b, 4, 504 + index, value);
    }
    for page in [5, 6] {
        for index in 0..16 {
            let value = leaf(&mut b.random, 0);
            set(b, page, index, value);
            let value = leaf(&mut b.random, 0);
            set(b, page, 496 + index, value);
        }
        // A pointer on the last level is reserved.
        set(b, page, 16, entry(DATA, VALID));
    }
    for index in [1, 4, 5] {
        let value = leaf(&mut b.random, 2);
        set(b, 0, index, value);
    }
}

/// A virtual address, usually one that some entry maps.
fn address(random: &mut Random) -> u64 {
    let low = match random.below(6) {
        0 => 4096 - random.below(9),
        1 => 64,
        2 => random.below(16),
        _ => random.below(512) * 8,
    };
    let page = match random.below(3) {
        0 => random.below(17),
        1 => 496 + random.below(16),
        _ => random.below(4),
    };
    let base = match random.below(10) {
        0..=3 => random.below(4) << 21 | page << 12,
        4 => random.below(8) << 21 | (DATA - DRAM) | random.below(4) << 12,
        5 => {
            (0x1ff << 30 | (504 + random.below(8)) << 21 | (DATA - DRAM) | random.below(4) << 12)
                | !0 << 39
        }
        6 => *random.pick(&[1, 4, 5]) << 30 | (DATA - DRAM) | random.below(4) << 12,
        7 => DATA | random.below(4) << 12 | if random.one_in(2) { ALIAS } else { 0 },
        // Not canonical.
        8 => random.bits(),
        _ => 0x1ff << 30 | page << 12 | !0 << 39,
    };
    base.wrapping_add(low)
}

/// An access at a random address. Where code in these pages is called, stores avoid these pages: the instruction cache would
/// not have to see the stores.
fn random_access(a: &mut Assembler, random: &mut Random, calls: bool, across: bool) {
    let mut address = address(random);
    if !across {
        address &= !7;
    }
    let kind = random.below(5);
    if calls && kind >= 2 {
        address = address & !0xfff | (128 + random.below(480) * 8 + random.below(8));
    }
    a.li(7, address);
    access_of_kind(a, random, 7, kind);
}

/// Physical protection of some pages of tables and data: a walk that it denies is an access fault. Tables are readable and
/// writable or neither, because QEMU does not check the rights when it sets A and D. With protection no access crosses pages:
/// QEMU would check the rights of the next physical page.
fn protect(b: &mut Builder) {
    b.fixed(|a, random| {
        let mut configuration = 0;
        for entry in 0..4 {
            let (page, rights) = match entry {
                0 => (TABLES + (4 + random.below(3)) * 4096, *random.pick(&[0, 7])),
                _ => (
                    DATA + random.below(4) * 4096,
                    *random.pick(&[0, 1, 3, 4, 5, 7]),
                ),
            };
            a.li(5, page >> 2 | 0x1ff);
            a.csr("csrrw", 0, 0x3b0 + entry, 5);
            configuration |= (3 << 3 | rights) << (8 * entry);
        }
        a.li(5, configuration);
        a.csr("csrrw", 0, 0x3a0, 5);
    });
}

pub(super) fn generate(b: &mut Builder) {
    setup(b);
    let calls = b.random.one_in(2);
    let mut supervisor = true;
    let physical = b.random.one_in(3);
    if physical {
        protect(b);
    }
    random_tables(b);
    b.fixed(|a, random| {
        a.li(5, *random.pick(&[0, 0xb1ff, 0xb000, 0xa000, 0x1000]));
        a.csr("csrrw", 0, 0x302, 5);
        a.li(5, 8 << 60 | random.below(2) << 44 | TABLES >> 12);
        a.csr("csrrw", 0, 0x180, 5);
        a.push(word(SFENCE, "sfence.vma"));
        switch(a, 1, 0);
    });
    for _ in 0..50 {
        match b.random.below(10) {
            0 => {
                let mode = *b.random.pick(&[0, 1]);
                supervisor = mode == 1;
                b.fixed(|a, _| switch(a, mode, if mode == 0 { ALIAS } else { 0 }));
            }
            1 => {
                // SUM and MXR, and back to supervisor mode.
                let (set, bits) = (
                    b.random.one_in(2),
                    *b.random.pick(&[0x4_0000, 0x8_0000, 0xc_0000]),
                );
                supervisor = true;
                b.chunk(|a, _| {
                    switch(a, 1, 0);
                    a.li(5, bits);
                    a.csr(if set { "csrrs" } else { "csrrc" }, 0, 0x100, 5);
                });
            }
            2 => {
                // Another entry, its fence, an access.
                let (page, index) = (*b.random.pick(&[5, 6]), b.random.below(16));
                let value = leaf(&mut b.random, 0);
                supervisor = true;
                b.chunk(|a, random| {
                    switch(a, 1, 0);
                    a.li(5, value);
                    a.li(6, TABLES + page * 4096 + index * 8);
                    a.memory("sd", 5, 0, 6);
                    // The same table is seen at several addresses.
                    let bases: &[u64] = if page == 5 {
                        &[0, 1 << 21, 3 << 21]
                    } else {
                        &[2 << 21]
                    };
                    let high = 0x1ff << 30 | !0 << 39;
                    if random.one_in(2) {
                        a.push(word(SFENCE, "sfence.vma"));
                        a.li(7, random.pick(bases) + (index << 12));
                    } else {
                        for base in bases.iter().flat_map(|&base| [base | high, base]) {
                            a.li(7, base + (index << 12));
                            a.push(word(SFENCE | 7 << 15, "sfence.vma x7"));
                        }
                    }
                    a.i("addi", 7, 7, 8 * random.range(16, 255));
                    access(a, random, 7);
                });
            }
            3 => {
                let mode = b.random.below(2);
                supervisor = mode == 1;
                b.chunk(|a, random| {
                    // Machine mode with another mode's view.
                    switch(a, 3, 0);
                    a.li(5, 0x1800);
                    a.csr("csrrc", 0, 0x300, 5);
                    a.li(5, 1 << 17 | random.below(2) << 11);
                    let address = address(random) & if physical { !7 } else { !0 };
                    a.li(7, address);
                    a.csr("csrrs", 0, 0x300, 5);
                    a.push(encode::encode(
                        encode::LOADS[3].0,
                        encode::Operands {
                            rd: 6,
                            rs1: 7,
                            ..Default::default()
                        },
                    ));
                    a.li(5, 1 << 17);
                    a.csr("csrrc", 0, 0x300, 5);
                    switch(a, mode, if mode == 0 { ALIAS } else { 0 });
                });
            }
            4 | 5 if calls => b.chunk(|a, random| {
                let address = match random.below(4) {
                    0 | 1 if !physical => address(random) & !0xfff | 0xffe,
                    _ => address(random) & !0xfff | 64,
                };
                a.li(7, address);
                if supervisor {
                    // QEMU would execute a user page in supervisor mode if it had been read before (SUM).
                    a.push(word(SFENCE, "sfence.vma"));
                }
                a.push(encode::jalr(1, 7, 0));
            }),
            _ => b.chunk(|a, random| random_access(a, random, calls, !physical)),
        }
    }
}
