//! A descriptor: its words, and the addresses of its elements.
//!
//! Why it exists: registers and memory have the same eight words. What it deliberately does not know: channels, time, memories.

use bulkhead_abi::dma::{
    CONFIG, CONFIG_RESERVED, COUNTS, DESTINATION, ELEMENT_STRIDES, FLAG, INTERRUPT_AT_END, NEXT,
    ROW_STRIDES, SOURCE,
};

/// The words of a descriptor.
pub const WORDS: usize = 8;

/// A descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor(pub [u64; WORDS]);

/// Source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Destination,
}

impl Descriptor {
    fn word(&self, offset: u64) -> u64 {
        self.0[offset as usize / 8]
    }

    /// Bytes of an element: 1, 2, 4 or 8.
    pub fn bytes(&self) -> u8 {
        1 << (self.word(CONFIG) & 3)
    }

    /// The channel asks for an interrupt at its end.
    pub fn interrupts(&self) -> bool {
        self.word(CONFIG) & INTERRUPT_AT_END != 0
    }

    /// The address of the flag and its value, if there is one.
    pub fn flag(&self) -> Option<(u64, u64)> {
        let address = self.word(FLAG);
        (address != 0).then_some((address, self.word(CONFIG) >> 32))
    }

    /// The address of the next descriptor, if there is one.
    pub fn next(&self) -> Option<u64> {
        let address = self.word(NEXT);
        (address != 0).then_some(address)
    }

    /// Elements of a row, and rows.
    fn counts(&self) -> (u32, u32) {
        let counts = self.word(COUNTS);
        (counts as u32, (counts >> 32) as u32)
    }

    /// Whether all addresses and strides are aligned as required and all reserved bits are 0.
    pub fn is_valid(&self) -> bool {
        let unit = u64::from(self.bytes());
        let halves = |word: u64| [word as u32, (word >> 32) as u32].map(u64::from);
        let strides = [ELEMENT_STRIDES, ROW_STRIDES].map(|offset| halves(self.word(offset)));
        self.word(CONFIG) & CONFIG_RESERVED == 0
            && self.word(SOURCE).is_multiple_of(unit)
            && self.word(DESTINATION).is_multiple_of(unit)
            && strides
                .as_flattened()
                .iter()
                .all(|s| s.is_multiple_of(unit))
            && self.word(FLAG).is_multiple_of(8)
            && self.word(NEXT).is_multiple_of(8)
    }

    /// The address of the element at this place in this row.
    pub fn address(&self, end: End, (row, place): (u32, u32)) -> u64 {
        let (base, shift) = match end {
            End::Source => (SOURCE, 0),
            End::Destination => (DESTINATION, 32),
        };
        let stride = |offset: u64| i64::from((self.word(offset) >> shift) as u32 as i32);
        let along = stride(ELEMENT_STRIDES).wrapping_mul(place.into());
        let down = stride(ROW_STRIDES).wrapping_mul(row.into());
        let from = self.word(base);
        from.wrapping_add(along as u64).wrapping_add(down as u64)
    }

    /// The first element, if there is one.
    pub fn first(&self) -> Option<(u32, u32)> {
        let (places, rows) = self.counts();
        (places > 0 && rows > 0).then_some((0, 0))
    }

    /// The elements, from this one on, that make one access: those of its row that are adjacent at both ends and in one burst there.
    pub fn side_by_side(&self, (row, place): (u32, u32), burst: u32) -> u32 {
        let unit = u32::from(self.bytes());
        let dense = u64::from(unit) | u64::from(unit) << 32;
        if burst <= unit || self.word(ELEMENT_STRIDES) != dense {
            return 1;
        }
        let room = |end| {
            let behind = self.address(end, (row, place)) % u64::from(burst);
            (burst - behind as u32) / unit
        };
        let (places, _) = self.counts();
        let room = room(End::Source).min(room(End::Destination));
        room.min(places - place)
    }

    /// The element this many places after another one of its row.
    pub fn after(&self, (row, place): (u32, u32), elements: u32) -> Option<(u32, u32)> {
        let (places, rows) = self.counts();
        match (places - place > elements, row + 1 < rows) {
            (true, _) => Some((row, place + elements)),
            (false, true) => Some((row + 1, 0)),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_have_strides_of_their_own() {
        // Two rows of three elements of four bytes: a column of a matrix with 64-byte rows, read upwards, becomes a row.
        let mut words = [0; WORDS];
        words[0] = 2 | 0x55 << 32;
        (words[1], words[2]) = (0x1000, 0x2000);
        words[3] = 3 | 2 << 32;
        words[4] = u64::from(-64i32 as u32) | 4 << 32;
        words[5] = 4 | 0x100 << 32;
        let one = Descriptor(words);
        assert!(one.is_valid());
        let mut at = one.first();
        let mut seen = Vec::new();
        while let Some(element) = at {
            let [source, destination] =
                [End::Source, End::Destination].map(|end| one.address(end, element));
            seen.push((source, destination));
            at = one.after(element, 1);
        }
        assert_eq!(
            seen,
            [
                (0x1000, 0x2000),
                (0xFC0, 0x2004),
                (0xF80, 0x2008),
                (0x1004, 0x2100),
                (0xFC4, 0x2104),
                (0xF84, 0x2108)
            ]
        );
    }

    proptest! {
        /// Every element comes exactly once, in row order, with the address of the closed form.
        #[test]
        fn all_elements_come_once(places in 0u32..6, rows in 0u32..6, along in -9i32..9, down in -9i32..9) {
            let mut words = [0; WORDS];
            words[0] = 3;
            words[1] = 0x8000;
            words[3] = u64::from(places) | u64::from(rows) << 32;
            words[4] = u64::from((8 * along) as u32);
            words[5] = u64::from((8 * down) as u32);
            let one = Descriptor(words);
            prop_assert!(one.is_valid());
            let all = std::iter::successors(one.first(), |at| one.after(*at, 1));
            let got: Vec<u64> = all.map(|at| one.address(End::Source, at)).collect();
            let mut wanted = Vec::new();
            for row in 0..i64::from(rows) {
                for place in 0..i64::from(places) {
                    wanted.push((0x8000 + 8 * (row * i64::from(down) + place * i64::from(along))) as u64);
                }
            }
            prop_assert_eq!(got, wanted);
        }
    }

    proptest! {
        /// Bursts cover every byte of a row once, in order, and none crosses a border of a burst at either end.
        #[test]
        fn bursts_cover_a_row(source in 0u64..64, destination in 0u64..64, places in 1u32..200, rows in 1u32..3, power in 4u32..8) {
            let burst = 1 << power;
            let mut words = [0; WORDS];
            words[0] = 3;
            (words[1], words[2]) = (0x8000 + 8 * source, 0x4000 + 8 * destination);
            words[3] = u64::from(places) | u64::from(rows) << 32;
            words[4] = 8 | 8 << 32;
            words[5] = 0x1000 | 0x1000 << 32;
            let one = Descriptor(words);
            prop_assert!(one.is_valid());
            let mut at = one.first();
            let mut next = (0, 0);
            while let Some(element) = at {
                prop_assert_eq!(element, next);
                let count = one.side_by_side(element, burst);
                for end in [End::Source, End::Destination] {
                    let first = one.address(end, element);
                    let last = first + 8 * u64::from(count) - 1;
                    prop_assert_eq!(first / u64::from(burst), last / u64::from(burst));
                }
                next = (element.0, element.1 + count);
                if next.1 == places {
                    next = (element.0 + 1, 0);
                }
                at = one.after(element, count);
            }
            prop_assert_eq!(next, (rows, 0));
        }
    }

    proptest! {
        /// No access crosses a line at either end, whatever the strides are, if bursts are at most a line. So an access of a coherent engine has
        /// one line.
        #[test]
        fn no_access_crosses_a_line(log2 in 0u64..4, bases in prop::array::uniform2(0u64..64), strides in prop::array::uniform4(-40i64..40),
            places in 1u32..9, rows in 1u32..4, dense: bool, power in 2u32..7) {
            let (unit, line) = (1u64 << log2, 64);
            // 4: each element is an access.
            let burst = if power == 2 { 0 } else { 1 << power };
            let [a, b, c, d] = strides.map(|stride| u64::from((stride * unit as i64) as u32));
            let mut words = [0; WORDS];
            words[0] = log2;
            (words[1], words[2]) = (0x8000 + unit * bases[0], 0x4000 + unit * bases[1]);
            words[3] = u64::from(places) | u64::from(rows) << 32;
            words[4] = if dense { unit | unit << 32 } else { a | b << 32 };
            words[5] = c | d << 32;
            let one = Descriptor(words);
            prop_assert!(one.is_valid());
            let mut at = one.first();
            while let Some(element) = at {
                let count = one.side_by_side(element, burst);
                for end in [End::Source, End::Destination] {
                    let first = one.address(end, element);
                    let last = first + unit * u64::from(count) - 1;
                    prop_assert_eq!(first / line, last / line);
                }
                at = one.after(element, count);
            }
        }
    }

    #[test]
    fn only_elements_side_by_side_at_both_ends_make_a_burst() {
        let dense = Descriptor([3, 0x100, 0x200, 8, 8 | 8 << 32, 0, 0, 0]);
        assert_eq!(dense.side_by_side((0, 0), 64), 8);
        assert_eq!(dense.side_by_side((0, 5), 64), 3);
        assert_eq!(dense.side_by_side((0, 0), 0), 1);
        for strides in [16 | 8 << 32, 8 | 16 << 32, 8] {
            let mut words = dense.0;
            words[4] = strides;
            assert_eq!(
                Descriptor(words).side_by_side((0, 0), 64),
                1,
                "{strides:#x}"
            );
        }
    }

    #[test]
    fn what_is_not_aligned_is_refused() {
        let valid = Descriptor([3, 8, 16, 1, 8 | 8 << 32, 0, 64, 72]);
        assert!(valid.is_valid());
        for (word, value) in [
            (0, 3 | 1 << 3),
            (0, 3 | 1 << 31),
            (1, 12),
            (2, 17),
            (4, 8 | 4 << 32),
            (5, 2),
            (6, 4),
            (7, 1),
        ] {
            let mut words = valid.0;
            words[word] = value;
            assert!(!Descriptor(words).is_valid(), "{word} {value:#x}");
        }
    }
}
