//! The image of the vision programs, and their computation on it.
//!
//! Why it exists: the programs that compare themselves with streaming units share it. What it deliberately does not know:
//! the location of images.

use alloc::vec;
use alloc::vec::Vec;

/// An image that anybody can reproduce: a linear congruential generator (Numerical Recipes).
pub struct Pixels(u32);

impl Pixels {
    /// From its beginning.
    pub const fn new() -> Self {
        Self(7)
    }

    /// The next pixels.
    pub fn fill(&mut self, piece: &mut [u8]) {
        for pixel in piece {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *pixel = (self.0 >> 24) as u8;
        }
    }
}

/// 64-bit FNV-1a.
pub struct Hash(pub u64);

impl Hash {
    /// Of nothing.
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Goes on.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// CRC-32 of IEEE 802.3, a byte at a time.
pub struct Crc {
    table: [u32; 256],
    value: u32,
}

impl Crc {
    /// Of nothing.
    pub fn new() -> Self {
        let table = core::array::from_fn(|byte| {
            (0..8).fold(byte as u32, |crc, _| {
                crc >> 1 ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
            })
        });
        Self {
            table,
            value: u32::MAX,
        }
    }

    /// Goes on.
    pub fn add(&mut self, bytes: &[u8]) {
        self.value = bytes.iter().fold(self.value, |crc, byte| {
            crc >> 8 ^ self.table[usize::from(crc as u8 ^ byte)]
        });
    }

    /// The checksum so far.
    pub const fn value(&self) -> u64 {
        !self.value as u64
    }

    /// Begins anew.
    pub const fn reset(&mut self) {
        self.value = u32::MAX;
    }
}

/// Edges by Sobel's gradients, row by row; the border is 0.
pub struct Edges {
    width: usize,
    window: Vec<u8>,
    seen: usize,
}

impl Edges {
    /// For an image of this width, at least 2.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            window: vec![0; 3 * width],
            seen: 0,
        }
    }

    /// Takes the next row; appends the row of the result that it completes, if any.
    pub fn row(&mut self, row: &[u8], out: &mut Vec<u8>) {
        self.window.copy_within(self.width.., 0);
        self.window[2 * self.width..].copy_from_slice(row);
        match self.seen {
            0 => {}
            1 => out.resize(out.len() + self.width, 0),
            _ => sobel(&self.window, self.width, out),
        }
        self.seen += 1;
    }

    /// Takes the end of the image; then begins anew.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.resize(out.len() + self.width, 0);
        self.seen = 0;
    }
}

/// The middle row of three.
fn sobel(window: &[u8], width: usize, out: &mut Vec<u8>) {
    let (above, rest) = window.split_at(width);
    let (middle, below) = rest.split_at(width);
    out.push(0);
    for x in 1..width - 1 {
        let at = |row: &[u8], x: usize| i32::from(row[x]);
        let right = at(above, x + 1) + 2 * at(middle, x + 1) + at(below, x + 1);
        let left = at(above, x - 1) + 2 * at(middle, x - 1) + at(below, x - 1);
        let bottom = at(below, x - 1) + 2 * at(below, x) + at(below, x + 1);
        let top = at(above, x - 1) + 2 * at(above, x) + at(above, x + 1);
        out.push(((right - left).abs() + (bottom - top).abs()).min(255) as u8);
    }
    out.push(0);
}
