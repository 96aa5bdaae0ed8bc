//! What streaming units compute, and how long it takes.
//!
//! Why it exists: it separates the function and timing of a unit's data path from how the unit gets its data. What it
//! deliberately does not know: messages, memories, clients.

use super::AcceleratorConfig;
use crate::types::Tick;

/// A data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Outputs its input unchanged.
    Copy,
    /// The same, and computes the CRC-32 of IEEE 802.3 over it.
    Checksum,
    /// Edges of an image of one byte a pixel: the sum of the absolute values of Sobel's two gradients, at most 255; 0 at the
    /// border (Sobel and Feldman, 1968, as in Gonzalez and Woods, Digital Image Processing).
    Edge,
    /// Not a data path: a unit controlled by an attacker. For tests of isolation.
    Rogue,
}

/// The state that a stream needs between two pieces. A switch to another client saves and restores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    operation: Operation,
    width: usize,
    /// The last two rows, the older one first.
    rows: [Vec<u8>; 2],
    /// The beginning of the next row.
    partial: Vec<u8>,
    /// Rows that came in.
    seen: usize,
    crc: u32,
    /// Bytes of the stream so far.
    pub position: u64,
}

impl Stream {
    /// A new stream; `None` if the unit cannot handle rows of this width.
    pub fn new(operation: Operation, width: u64, limit: u32) -> Option<Self> {
        let rows = operation == Operation::Edge;
        if rows && !(1..=u64::from(limit)).contains(&width) {
            return None;
        }
        Some(Self {
            operation,
            width: if rows { width as usize } else { 1 },
            rows: [Vec::new(), Vec::new()],
            partial: Vec::new(),
            seen: 0,
            crc: u32::MAX,
            position: 0,
        })
    }

    /// Bytes of a row. A stream must consist of whole rows.
    pub fn granularity(&self) -> u64 {
        self.width as u64
    }

    /// It did not stop within a row.
    pub fn is_whole(&self) -> bool {
        self.partial.is_empty()
    }

    /// Processes a piece, however the stream was split, and appends the results that are ready.
    pub fn push(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.position += data.len() as u64;
        match self.operation {
            Operation::Copy | Operation::Rogue => out.extend_from_slice(data),
            Operation::Checksum => {
                self.crc = data.iter().fold(self.crc, |crc, byte| step(crc, *byte));
                out.extend_from_slice(data);
            }
            Operation::Edge => {
                for byte in data {
                    self.partial.push(*byte);
                    if self.partial.len() == self.width {
                        self.row(out);
                    }
                }
            }
        }
    }

    /// A row is complete.
    fn row(&mut self, out: &mut Vec<u8>) {
        match self.seen {
            0 => {}
            // The first row is border.
            1 => out.extend(std::iter::repeat_n(0, self.width)),
            _ => sobel(&self.rows[0], &self.rows[1], &self.partial, out),
        }
        self.seen += 1;
        self.rows.swap(0, 1);
        std::mem::swap(&mut self.rows[1], &mut self.partial);
        self.partial.clear();
    }

    /// At the end of the stream, appends the results that are still inside.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.operation == Operation::Edge && self.seen > 0 {
            out.extend(std::iter::repeat_n(0, self.width));
            self.seen = 0;
        }
    }

    /// Bytes of results that the stream has produced.
    pub fn results(&self) -> u64 {
        match self.operation {
            Operation::Edge => self.position.saturating_sub(self.width as u64),
            _ => self.position,
        }
    }

    /// The checksum so far, if the unit computes one.
    pub fn checksum(&self) -> Option<u64> {
        (self.operation == Operation::Checksum).then_some((!self.crc).into())
    }
}

/// One byte of the CRC-32 (polynomial 0x04C11DB7, reflected).
fn step(crc: u32, byte: u8) -> u32 {
    (0..8).fold(crc ^ u32::from(byte), |crc, _| {
        (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
    })
}

fn sobel(above: &[u8], middle: &[u8], below: &[u8], out: &mut Vec<u8>) {
    let width = middle.len();
    for x in 0..width {
        if x == 0 || x + 1 == width {
            out.push(0);
            continue;
        }
        let at = |row: &[u8], x: usize| i32::from(row[x]);
        let gx = at(above, x + 1) + 2 * at(middle, x + 1) + at(below, x + 1)
            - at(above, x - 1)
            - 2 * at(middle, x - 1)
            - at(below, x - 1);
        let gy = at(below, x - 1) + 2 * at(below, x) + at(below, x + 1)
            - at(above, x - 1)
            - 2 * at(above, x)
            - at(above, x + 1);
        out.push((gx.abs() + gy.abs()).min(255) as u8);
    }
}

impl AcceleratorConfig {
    /// Ticks for a piece: start-up, then this many bytes per cycle.
    pub fn duration(&self, bytes: u64) -> Tick {
        (self.startup + bytes.div_ceil(self.bytes_per_cycle.max(1).into())) * self.cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(operation: Operation, width: u64, pieces: &[&[u8]]) -> (Vec<u8>, Option<u64>) {
        let mut stream = Stream::new(operation, width, 4096).expect("a width that it takes");
        let mut out = Vec::new();
        for piece in pieces {
            stream.push(piece, &mut out);
        }
        stream.finish(&mut out);
        (out, stream.checksum())
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        // The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
        let (out, crc) = run(Operation::Checksum, 1, &[b"1234", b"56789"]);
        assert_eq!(
            (out.as_slice(), crc),
            (&b"123456789"[..], Some(0xCBF4_3926))
        );
    }

    #[test]
    fn a_step_has_the_gradient_of_its_height() {
        // Columns 10 10 20 20: the gradient in x is 4 * 10 at both inner columns, that in y is 0.
        let image = [10u8, 10, 20, 20].repeat(3);
        let (out, _) = run(Operation::Edge, 4, &[&image]);
        assert_eq!(out, [0, 0, 0, 0, 0, 40, 40, 0, 0, 0, 0, 0]);
    }

    /// The definition, pixel by pixel on the whole image.
    fn reference(image: &[u8], width: usize) -> Vec<u8> {
        let height = image.len() / width;
        let pixel = |x: usize, y: usize| i32::from(image[y * width + x]);
        let kernel = [-1, 0, 1, -2, 0, 2, -1, 0, 1];
        (0..width * height)
            .map(|i| {
                let (x, y) = (i % width, i / width);
                if x == 0 || y == 0 || x + 1 == width || y + 1 == height {
                    return 0;
                }
                let (mut gx, mut gy) = (0, 0);
                for dy in 0..3 {
                    for dx in 0..3 {
                        let value = pixel(x + dx - 1, y + dy - 1);
                        gx += kernel[3 * dy + dx] * value;
                        gy += kernel[3 * dx + dy] * value;
                    }
                }
                (gx.abs() + gy.abs()).min(255) as u8
            })
            .collect()
    }

    proptest! {
        #[test]
        fn edges_are_those_of_the_definition_however_the_image_is_cut(
            width in 1usize..40, height in 1usize..20, seed in any::<u64>(), cut in 1usize..200,
        ) {
            let mut state = seed | 1;
            let image: Vec<u8> = (0..width * height).map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            }).collect();
            let pieces: Vec<&[u8]> = image.chunks(cut).collect();
            prop_assert_eq!(run(Operation::Edge, width as u64, &pieces).0, reference(&image, width));
        }
    }

    #[test]
    fn impossible_rows_are_refused() {
        assert!(Stream::new(Operation::Edge, 0, 4096).is_none());
        assert!(Stream::new(Operation::Edge, 4097, 4096).is_none());
        assert!(Stream::new(Operation::Copy, 0, 4096).is_some());
    }
}
