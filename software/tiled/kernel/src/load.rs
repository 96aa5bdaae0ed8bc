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
/// What is wrong with the file.
pub fn parse(hardware: &mut impl Hardware, module: Region) -> Result<Image, ImageError> {
    let mut head = [0; HEAD];
    let size = (HEAD as u64).min(module.size);
    hardware.read(module, 0, &mut head[..size as usize]);
    Image::parse(&head[..size as usize], module.size)
}

/// Loads a module into a region whose first byte has the virtual address `base`.
///
/// # Errors
/// What is wrong with the file; [`ImageError::BadSegment`] too if a segment lies outside the region.
pub fn load(
    hardware: &mut impl Hardware,
    module: Region,
    target: Region,
    base: u64,
) -> Result<Image, ImageError> {
    let image = parse(hardware, module)?;
    for segment in image.segments() {
        let start = segment.address.checked_sub(base);
        let start = start.ok_or(ImageError::BadSegment)?;
        let end = start.checked_add(segment.memory_size);
        if end.is_none_or(|end| end > target.size) {
            return Err(ImageError::BadSegment);
        }
        let mut buffer = [0; PIECE];
        let mut done = 0;
        while done < segment.memory_size {
            let file_left = segment.file_size.saturating_sub(done);
            let left = if file_left > 0 {
                file_left
            } else {
                segment.memory_size - done
            };
            let piece = left.min(PIECE as u64);
            let bytes = &mut buffer[..piece as usize];
            if file_left > 0 {
                hardware.read(module, segment.offset + done, bytes);
            } else {
                bytes.fill(0);
            }
            hardware.write(target, start + done, bytes);
            done += piece;
        }
    }
    Ok(image)
}
