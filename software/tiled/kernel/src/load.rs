//! Copies a program from a boot module to memory.
//!
//! Why it exists: the kernel loads TileMux and the root manager; all others are loaded by managers. What it deliberately
//! does not know: what the program is.

use crate::hardware::{Hardware, Region};
use bulkhead_loader::image::{HEAD, Image, ImageError};

/// Bytes of one copy.
const PIECE: usize = 2048;

/// Reads the headers of a module.
///
/// # Errors
/// The defect of the file.
pub fn parse(hardware: &mut impl Hardware, module: Region) -> Result<Image, ImageError> {
    let mut head = [0; HEAD];
    let size = (HEAD as u64).min(module.size);
    hardware.read(module, 0, &mut head[..size as usize]);
    Image::parse(&head[..size as usize], module.size)
}

/// A program that is being copied, piece by piece.
#[derive(Clone, Debug)]
pub struct Loading {
    image: Image,
    module: Region,
    target: Region,
    base: u64,
    segment: usize,
    done: u64,
}

impl Loading {
    /// Begins to load a module into a region whose first byte has the virtual address `base`.
    ///
    /// # Errors
    /// [`ImageError::BadSegment`] if a segment lies outside the region.
    pub fn new(
        image: Image,
        module: Region,
        target: Region,
        base: u64,
    ) -> Result<Self, ImageError> {
        for segment in image.segments() {
            let start = segment.address.checked_sub(base);
            let start = start.ok_or(ImageError::BadSegment)?;
            let end = start.checked_add(segment.memory_size);
            if end.is_none_or(|end| end > target.size) {
                return Err(ImageError::BadSegment);
            }
        }
        Ok(Self {
            image,
            module,
            target,
            base,
            segment: 0,
            done: 0,
        })
    }

    /// Address of the first instruction.
    pub fn entry(&self) -> u64 {
        self.image.entry
    }

    /// Copies a piece; returns whether it was the last one.
    pub fn step(&mut self, hardware: &mut impl Hardware) -> bool {
        let Some(segment) = self.image.segments().get(self.segment) else {
            return true;
        };
        let file_left = segment.file_size.saturating_sub(self.done);
        let left = match file_left {
            0 => segment.memory_size - self.done,
            left => left,
        };
        let mut buffer = [0; PIECE];
        let piece = left.min(PIECE as u64);
        let bytes = &mut buffer[..piece as usize];
        if file_left > 0 {
            hardware.read(self.module, segment.offset + self.done, bytes);
        }
        let start = segment.address - self.base;
        hardware.write(self.target, start + self.done, bytes);
        self.done += piece;
        if self.done >= segment.memory_size {
            self.segment += 1;
            self.done = 0;
        }
        false
    }
}
