//! The generator's random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
//!
//! A failing seed must give the same program for years, so the sequence is our own and does not depend on a library's
//! version.

/// A reproducible stream of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed; nearby seeds give unrelated streams.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed);
        random.0 = random.bits();
        random
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (not 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add(self.below((high - low) as u64 + 1) as i64)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// A 64-bit integer that is often at an edge of some width.
    pub fn corner(&mut self) -> u64 {
        const EDGES: [u64; 22] = [
            0,
            1,
            2,
            u64::MAX,
            u64::MAX - 1,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x1_0000_0000,
            0xffff_ffff_7fff_ffff,
            0xffff_ffff_8000_0000,
            0xffff_ffff_ffff_8000,
            0x7fff_ffff_ffff_ffff,
            0x8000_0000_0000_0000,
            0x8000_0000_0000_0001,
            0x5555_5555_5555_5555,
        ];
        match self.below(8) {
            0..=3 => *self.pick(&EDGES),
            4 => 1 << self.below(64),
            5 => (self.range(-64, 64)) as u64,
            6 => self.bits() >> self.below(64),
            _ => self.bits(),
        }
    }

    /// Bits of a floating-point number, often special, boxed or not.
    pub fn corner_float(&mut self) -> u64 {
        const SINGLE: [u32; 22] = [
            0,
            1,
            2,
            0x007f_ffff,
            0x0080_0000,
            0x0080_0001,
            0x3f80_0000,
            0x3f80_0001,
            0x3f7f_ffff,
            0x4000_0000,
            0x4b80_0000,
            0x4eff_ffff,
            0x4f00_0000,
            0x4f80_0000,
            0x5f00_0000,
            0x5f80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7f80_0001,
            0x7fc0_0000,
            0x7fff_ffff,
            0x3f00_0000,
        ];
        const DOUBLE: [u64; 22] = [
            0,
            1,
            2,
            0x000f_ffff_ffff_ffff,
            0x0010_0000_0000_0000,
            0x0010_0000_0000_0001,
            0x3fe0_0000_0000_0000,
            0x3ff0_0000_0000_0000,
            0x3ff0_0000_0000_0001,
            0x3fef_ffff_ffff_ffff,
            0x41df_ffff_ffc0_0000,
            0x41e0_0000_0000_0000,
            0x41ef_ffff_ffe0_0000,
            0x43e0_0000_0000_0000,
            0x43f0_0000_0000_0000,
            0x3690_0000_0000_0000,
            0x380f_ffff_ffff_ffff,
            0x47ef_ffff_f000_0000,
            0x7fef_ffff_ffff_ffff,
            0x7ff0_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x7ff8_0000_0000_0000,
        ];
        let boxed = |bits: u32| 0xffff_ffff_0000_0000 | u64::from(bits);
        let sign = self.bits() & 1;
        match self.below(10) {
            0 | 1 => boxed(*self.pick(&SINGLE) | (sign as u32) << 31),
            2 | 3 => *self.pick(&DOUBLE) | sign << 63,
            4 => boxed((self.bits() as u32 & 0x807f_ffff) | (self.range(110, 145) as u32) << 23),
            5 => (self.bits() & 0x800f_ffff_ffff_ffff) | (self.range(1000, 1050) as u64) << 52,
            6 => boxed(self.bits() as u32),
            7 => (self.range(-1000, 1000) as f64).to_bits(),
            8 => boxed((self.range(-1000, 1000) as f32).to_bits()),
            _ => self.bits(),
        }
    }
}
