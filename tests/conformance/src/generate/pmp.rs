//! Physical memory protection: all address modes and permissions, priorities, and accesses at the edges of the regions.

use super::trap::access;
use super::{Builder, switch};
use crate::encode;
use crate::layout::*;
use crate::random::Random;

pub(super) fn generate(b: &mut Builder) {
    for page in 0..2 {
        // Something to execute.
        b.data[page * 4096 + 64..page * 4096 + 68].copy_from_slice(&0x0000_8067u32.to_le_bytes());
    }
    for _ in 0..12 {
        b.chunk(|a, random| {
            switch(a, 3, 0);
            let mut configuration = 0;
            for entry in 0..8 {
                let (address, mut mode) = region(random, DATA);
                if entry == 0 && mode == 1 {
                    // It would begin at address 0 and make the program's own code inaccessible.
                    mode = 2;
                }
                let permissions = match random.below(4) {
                    // Writable but not readable is reserved.
                    0 => 0,
                    1 => 7,
                    _ => *random.pick(&[1, 3, 4, 5, 7]),
                };
                a.li(5, address);
                a.csr("csrrw", 0, 0x3b0 + entry, 5);
                configuration |= (mode << 3 | permissions) << (8 * entry);
            }
            // Occasionally only the code is left besides them; an access that no entry matches fails outside machine mode.
            let everything = !random.one_in(4);
            if !everything {
                a.li(5, CODE >> 2 | (CODE_BYTES / 8 - 1));
                a.csr("csrrw", 0, 0x3b7, 5);
                configuration = configuration & !0 >> 8 | 0x1d << 56;
            }
            a.li(5, (u64::from(everything) * 0x1f) << 56);
            a.csr("csrrw", 0, 0x3a2, 5);
            a.li(5, configuration);
            a.csr("csrrw", 0, 0x3a0, 5);
            a.push(encode::word(encode::SFENCE, "sfence.vma"));
            if random.one_in(4) {
                // In machine mode they do not count, except through MPRV.
                a.li(7, place(random, DATA));
                access(a, random, 7);
                a.li(5, 0x1800);
                a.csr("csrrc", 0, 0x300, 5);
                a.li(5, 1 << 17);
                a.li(7, place(random, DATA) & !7);
                a.csr("csrrs", 0, 0x300, 5);
                a.memory("ld", 6, 0, 7);
                a.csr("csrrc", 0, 0x300, 5);
            }
            switch(a, random.below(2), 0);
        });
        for _ in 0..6 {
            b.chunk(|a, random| {
                a.li(7, place(random, DATA));
                if random.one_in(6) {
                    a.li(7, DATA + random.below(2) * 4096 + 64);
                    a.push(encode::jalr(1, 7, 0));
                } else {
                    access(a, random, 7);
                }
            });
        }
    }
    b.fixed(|a, _| {
        switch(a, 3, 0);
    });
}

/// Locked entries: they bind machine mode too, and neither they nor what they depend on can be written any more.
pub(super) fn generate_locked(b: &mut Builder) {
    b.fixed(|a, _| {
        // No region may begin at address 0, which would make the program's own code inaccessible.
        a.li(5, SPARE >> 2);
        for entry in 0..8 {
            a.csr("csrrw", 0, 0x3b0 + entry, 5);
        }
    });
    for _ in 0..12 {
        let (first, second) = (b.slot(), b.slot());
        b.chunk(|a, random| {
            let entry = random.below(8);
            let (address, mut mode) = region(random, SPARE);
            if entry == 0 && mode == 1 {
                mode = 2;
            }
            let rights = *random.pick(&[0, 1, 3, 4, 5, 7]);
            let lock = u64::from(random.one_in(2)) << 7;
            a.li(5, address);
            a.csr("csrrw", 0, 0x3b0 + entry as u32, 5);
            a.csr("csrrs", 7, 0x3b0 + entry as u32, 0);
            a.memory("sd", 7, first, 8);
            // The other entries stay as they are.
            a.li(5, 0xff << (8 * entry));
            a.csr("csrrs", 6, 0x3a0, 0);
            a.r("or", 6, 6, 5);
            a.r("xor", 6, 6, 5);
            a.li(5, (lock | mode << 3 | rights) << (8 * entry));
            a.r("or", 6, 6, 5);
            a.csr("csrrw", 0, 0x3a0, 6);
            a.csr("csrrs", 7, 0x3a0, 0);
            a.memory("sd", 7, second, 8);
        });
        for _ in 0..5 {
            b.chunk(|a, random| {
                a.li(7, place(random, SPARE));
                access(a, random, 7);
            });
        }
    }
}

/// An address near the ends of regions. Aligned to at least four bytes and within one page: otherwise QEMU overlooks small
/// regions in the middle of an access, and reports its first byte where ours reports the page's.
fn place(random: &mut Random, base: u64) -> u64 {
    let address = base + random.below(64) * 128 + random.range(-2, 2).rem_euclid(32) as u64 * 4;
    if address & 0xfff == 0xffc {
        address - 4
    } else {
        address
    }
}

/// A region inside 8 KiB from `base`, as `pmpaddr` and address mode.
fn region(random: &mut Random, base: u64) -> (u64, u64) {
    let address = base + random.below(65) * 128;
    match random.below(5) {
        0 => (address >> 2, 0),
        1 => (address >> 2, 1),
        2 => ((address + 4 * random.below(8)) >> 2, 2),
        3 => (address >> 2, 1),
        _ => {
            let bits = random.range(3, 12);
            let size = 1u64 << bits;
            let base = address & !(size - 1);
            (base >> 2 | ((size >> 3) - 1), 3)
        }
    }
}
