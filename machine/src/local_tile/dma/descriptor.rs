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

    /// The element after another one.
    pub fn after(&self, (row, place): (u32, u32)) -> Option<(u32, u32)> {
        let (places, rows) = self.counts();
        match (place + 1 < places, row + 1 < rows) {
            (true, _) => Some((row, place + 1)),
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
            at = one.after(element);
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
            let all = std::iter::successors(one.first(), |at| one.after(*at));
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
