//! Physical memory protection with 16 entries (privileged specification 20211203, section 3.7).
//!
//! It only decides whether an access is allowed; the trap logic handles a refusal.

/// Number of entries.
pub const ENTRIES: usize = 16;

const R: u8 = 1;
const W: u8 = 2;
const X: u8 = 4;
const LOCK: u8 = 0x80;
const ADDRESS_MASK: u64 = (1 << 54) - 1;

/// The right that an access needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Instruction fetch.
    Execute,
}

#[derive(Clone, Copy, Default)]
struct Range {
    /// First byte.
    start: u64,
    /// First byte after it; `u64::MAX` for the end of the address space.
    end: u64,
}

impl Range {
    /// Whether any byte from `start` up to `end` is in the range. A top-of-range entry that ends before it begins contains
    /// no bytes.
    fn touches(&self, start: u64, end: u64) -> bool {
        start < self.end && self.start < end && self.start < self.end
    }
}

/// The registers and the ranges that they describe.
#[derive(Clone, Default)]
pub struct Pmp {
    config: [u8; ENTRIES],
    address: [u64; ENTRIES],
    ranges: [Range; ENTRIES],
    active: bool,
}

impl Pmp {
    /// `pmpcfg` register `index` (0 or 2 on RV64): eight entries.
    pub fn config_register(&self, index: usize) -> u64 {
        let first = index * 4;
        (0..8).fold(0, |value, i| {
            value | (self.config[first + i] as u64) << (8 * i)
        })
    }

    /// Writes eight entries; locked ones keep their value. Reserved combinations (W without R) become "no access".
    pub fn set_config_register(&mut self, index: usize, value: u64) {
        let first = index * 4;
        for i in 0..8 {
            let old = self.config[first + i];
            if old & LOCK == 0 {
                let mut new = (value >> (8 * i)) as u8 & 0x9f;
                if new & (R | W) == W {
                    new &= !(R | W | X);
                }
                self.config[first + i] = new;
            }
        }
        self.update();
    }

    /// `pmpaddr` register.
    pub fn address_register(&self, index: usize) -> u64 {
        self.address[index]
    }

    /// Writes an address unless the entry, or a following top-of-range entry that uses it, is locked.
    pub fn set_address_register(&mut self, index: usize, value: u64) {
        let next_uses = index + 1 < ENTRIES && {
            let next = self.config[index + 1];
            next & LOCK != 0 && (next >> 3) & 3 == 1
        };
        if self.config[index] & LOCK == 0 && !next_uses {
            self.address[index] = value & ADDRESS_MASK;
            self.update();
        }
    }

    fn update(&mut self) {
        self.active = false;
        for i in 0..ENTRIES {
            let address = self.address[i];
            self.ranges[i] = match (self.config[i] >> 3) & 3 {
                1 => Range {
                    start: if i == 0 { 0 } else { self.address[i - 1] << 2 },
                    end: address << 2,
                },
                2 => Range {
                    start: address << 2,
                    end: (address << 2) + 4,
                },
                3 => {
                    let ones = address.trailing_ones();
                    let size = 1u128 << (ones + 3);
                    let start = ((address & !((1u64 << ones) - 1)) as u128) << 2;
                    Range {
                        start: start as u64,
                        end: (start + size).min(u64::MAX as u128) as u64,
                    }
                }
                _ => Range::default(),
            };
            self.active |= (self.config[i] >> 3) & 3 != 0;
        }
    }

    /// Whether an access to `bytes` bytes at `address` is allowed. The lowest-numbered entry that matches any byte decides,
    /// and must match all bytes.
    pub fn allows(&self, address: u64, bytes: u64, need: Need, machine: bool) -> bool {
        if !self.active {
            return machine;
        }
        let end = address.saturating_add(bytes);
        for (range, config) in self.ranges.iter().zip(self.config) {
            if range.touches(address, end) {
                let whole = address >= range.start && end <= range.end;
                let bit = match need {
                    Need::Read => R,
                    Need::Write => W,
                    Need::Execute => X,
                };
                return whole && (config & bit != 0 || (machine && config & LOCK == 0));
            }
        }
        machine
    }

    /// Whether the same answer holds for the whole page that contains `address`.
    pub fn uniform_page(&self, address: u64) -> bool {
        // The end of the last page has no number. No range reaches it: an entry has addresses of 56 bits.
        let (start, end) = (address & !0xfff, (address & !0xfff).saturating_add(0x1000));
        for range in &self.ranges {
            if range.touches(start, end) {
                return start >= range.start && end <= range.end;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn napot_tor_and_partial_matches() {
        let mut pmp = Pmp::default();
        // No entry is on: only machine mode passes (section 3.7.1).
        assert!(!pmp.allows(0x8000_0000, 8, Need::Read, false));
        assert!(pmp.allows(0x8000_0000, 8, Need::Read, true));
        // Entry 0: NAPOT 4 KiB at 0x8000_1000, read only. Entry 1: top of range up to 0x8000_0000 from entry 0's address.
        pmp.set_address_register(0, (0x8000_1000 | 0x7ff) >> 2);
        pmp.set_config_register(0, 0x19);
        assert!(pmp.allows(0x8000_1ff8, 8, Need::Read, false));
        assert!(!pmp.allows(0x8000_1ffc, 8, Need::Read, true)); // partial: fails even in machine mode
        assert!(!pmp.allows(0x8000_1000, 8, Need::Write, false));
        assert!(pmp.allows(0x8000_1000, 8, Need::Write, true)); // not locked
        assert!(!pmp.allows(0x8000_2000, 8, Need::Read, false)); // no match
        assert!(pmp.allows(0x8000_2000, 8, Need::Read, true));
        assert!(pmp.uniform_page(0x8000_1000) && pmp.uniform_page(0x8000_2000));
    }

    /// Found by an audit, whose adversaries make a core jump anywhere.
    #[test]
    fn the_last_page_of_the_address_space_has_an_end() {
        let mut pmp = Pmp::default();
        pmp.set_address_register(1, 0x8000_1000 >> 2);
        pmp.set_config_register(0, 0x8d << 8);
        assert!(pmp.uniform_page(u64::MAX) && pmp.uniform_page(u64::MAX - 0xfff));
        assert!(pmp.allows(u64::MAX - 7, 8, Need::Execute, true));
    }

    /// Found by the conformance programs.
    #[test]
    fn empty_ranges_match_nothing() {
        let mut pmp = Pmp::default();
        for (entry, address) in [
            (0, 0x8000_1000 >> 2),
            (1, 0x8000_1000 >> 2),
            (2, u64::MAX >> 10),
        ] {
            pmp.set_address_register(entry, address);
        }
        // Entry 1: top of range from its own end, nothing allowed; entry 2: everything.
        pmp.set_config_register(0, 0x1f_0800);
        assert!(pmp.allows(0x8000_0ffc, 8, Need::Read, false));
        assert!(pmp.uniform_page(0x8000_0000));
    }

    #[test]
    fn locked_entries_bind_machine_mode_and_keep_their_registers() {
        let mut pmp = Pmp::default();
        pmp.set_address_register(0, 0x1000);
        pmp.set_address_register(1, 0x2000);
        pmp.set_config_register(0, 0x8900); // entry 1: locked, TOR, read only
        pmp.set_address_register(0, 5);
        pmp.set_address_register(1, 5);
        pmp.set_config_register(0, 0x1f1f);
        assert_eq!(
            [pmp.address_register(0), pmp.address_register(1)],
            [0x1000, 0x2000]
        );
        assert_eq!(pmp.config_register(0) >> 8, 0x89);
        pmp.set_config_register(0, 0);
        assert!(pmp.allows(0x4000, 4, Need::Read, true));
        assert!(!pmp.allows(0x4000, 4, Need::Write, true));
    }

    #[test]
    fn the_whole_address_space_in_one_entry() {
        let mut pmp = Pmp::default();
        pmp.set_address_register(0, u64::MAX);
        pmp.set_config_register(0, 0x1f);
        assert!(pmp.allows(0, 8, Need::Execute, false));
        assert!(pmp.allows((1 << 56) - 16, 8, Need::Write, false));
    }

    #[test]
    fn write_without_read_is_reserved() {
        let mut pmp = Pmp::default();
        pmp.set_config_register(0, 0x1a);
        assert_eq!(pmp.config_register(0), 0x18);
    }
}
