//! The layout of an activity's memory.
//!
//! Why it exists: one place decides. What it deliberately does not know: the contents.

use crate::image::Image;
use bulkhead_abi::environment::{ENVIRONMENT_BASE, PROGRAM_BASE};
use bulkhead_abi::syscall::{MAP_READ, MAP_WRITE};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Parts of a layout at most: environment, segments, buffers, stack, heap.
pub const PARTS_MAX: usize = crate::image::SEGMENTS_MAX + 4;

/// Pages with equal rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Part {
    /// Virtual address.
    pub address: u64,
    /// Offset in the activity's memory.
    pub offset: u64,
    /// Pages.
    pub pages: u64,
    /// `abi::syscall::MAP_*`.
    pub rights: u8,
}

/// The layout of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    parts: [Part; PARTS_MAX],
    count: usize,
    /// Virtual address of the receive buffers.
    pub buffers: u64,
    /// Their offset in the activity's memory.
    pub buffers_offset: u64,
    /// Lowest address of the stack.
    pub stack_bottom: u64,
    /// End of the stack.
    pub stack_top: u64,
    /// Virtual address of the heap.
    pub heap: u64,
    /// Bytes of the heap; may be 0.
    pub heap_size: u64,
}

/// Why a program does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// A segment does not start at a page, lies before the program base, or segments overlap or are out of order.
    BadSegment,
    /// The memory is too small; this many bytes are needed at least.
    TooSmall(u64),
}

impl Layout {
    /// Plans `memory` bytes (whole pages are used) for a program, `buffers` bytes of receive buffers and a stack.
    ///
    /// # Errors
    /// See [`LayoutError`].
    pub fn plan(image: &Image, memory: u64, buffers: u64, stack: u64) -> Result<Self, LayoutError> {
        let mut layout = Self::default();
        layout.part(ENVIRONMENT_BASE, 0, 1, MAP_READ);
        let mut end = PROGRAM_BASE;
        for segment in image.segments() {
            if segment.address % PAGE != 0 || segment.address < end {
                return Err(LayoutError::BadSegment);
            }
            let pages = segment.memory_size.div_ceil(PAGE);
            let offset = segment.address - ENVIRONMENT_BASE;
            layout.part(segment.address, offset, pages, segment.rights);
            end = segment.address + pages * PAGE;
        }
        let pages = |bytes: u64| bytes.div_ceil(PAGE);
        let (buffer_pages, stack_pages) = (pages(buffers), pages(stack).max(1));
        let fixed = end - ENVIRONMENT_BASE;
        let needed = pages(fixed)
            .checked_add(buffer_pages)
            .and_then(|sum| sum.checked_add(stack_pages))
            .filter(|sum| *sum <= u64::MAX / PAGE)
            .ok_or(LayoutError::TooSmall(u64::MAX))?;
        let heap_pages = (memory / PAGE)
            .checked_sub(needed)
            .ok_or(LayoutError::TooSmall(needed * PAGE))?;
        layout.buffers = end;
        layout.buffers_offset = fixed;
        layout.part(end, fixed, buffer_pages, MAP_READ);
        let stack_offset = fixed + buffer_pages * PAGE;
        // One page before and one behind the stack stay unmapped.
        layout.stack_bottom = end + (buffer_pages + 1) * PAGE;
        layout.stack_top = layout.stack_bottom + stack_pages * PAGE;
        layout.part(
            layout.stack_bottom,
            stack_offset,
            stack_pages,
            MAP_READ | MAP_WRITE,
        );
        layout.heap = layout.stack_top + PAGE;
        layout.heap_size = heap_pages * PAGE;
        let heap_offset = stack_offset + stack_pages * PAGE;
        layout.part(layout.heap, heap_offset, heap_pages, MAP_READ | MAP_WRITE);
        Ok(layout)
    }

    fn part(&mut self, address: u64, offset: u64, pages: u64, rights: u8) {
        if pages > 0 {
            self.parts[self.count] = Part {
                address,
                offset,
                pages,
                rights,
            };
            self.count += 1;
        }
    }

    /// The parts to map, in order of address.
    pub fn parts(&self) -> &[Part] {
        &self.parts[..self.count]
    }

    /// Whether an address is in the guard page below the stack.
    pub fn is_stack_overflow(&self, address: u64) -> bool {
        (self.stack_bottom - PAGE..self.stack_bottom).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::file;
    use proptest::prelude::*;

    fn image(segments: &[(u32, u64, u64, u64, u64)]) -> Image {
        Image::parse(&file(segments[0].2, segments), u64::MAX).unwrap()
    }

    #[test]
    fn a_small_program() {
        let image = image(&[
            (5, 0, 0x1000_1000, 0x1234, 0x1234),
            (6, 0, 0x1000_3000, 0, 0x10),
        ]);
        let layout = Layout::plan(&image, 16 * PAGE, 100, 2 * PAGE).unwrap();
        // environment 1, text 2, data 1, buffers 1, stack 2: 7 pages; 9 remain
        assert_eq!(layout.heap_size, 9 * PAGE);
        assert_eq!(layout.buffers, 0x1000_4000);
        assert_eq!(layout.stack_bottom, 0x1000_6000);
        assert_eq!(layout.stack_top, 0x1000_8000);
        assert_eq!(layout.heap, 0x1000_9000);
        assert!(layout.is_stack_overflow(0x1000_5fff) && !layout.is_stack_overflow(0x1000_6000));
        assert_eq!(
            Layout::plan(&image, 6 * PAGE, 100, 2 * PAGE),
            Err(LayoutError::TooSmall(7 * PAGE))
        );
        assert!(Layout::plan(&image, 7 * PAGE, 100, 2 * PAGE).is_ok());
    }

    #[test]
    fn refuses_segments_in_wrong_places() {
        let low = image(&[(5, 0, 0x1000_0000, 16, 16)]);
        assert_eq!(
            Layout::plan(&low, 1 << 20, 0, PAGE),
            Err(LayoutError::BadSegment)
        );
        let unaligned = image(&[(5, 0, 0x1000_1004, 16, 16)]);
        assert_eq!(
            Layout::plan(&unaligned, 1 << 20, 0, PAGE),
            Err(LayoutError::BadSegment)
        );
        let overlap = image(&[(5, 0, 0x1000_1000, 16, 0x1001), (6, 0, 0x1000_2000, 16, 16)]);
        assert_eq!(
            Layout::plan(&overlap, 1 << 20, 0, PAGE),
            Err(LayoutError::BadSegment)
        );
    }

    proptest! {
        #[test]
        fn parts_are_disjoint_and_inside(text in 1u64..100_000, data in 1u64..100_000, memory in 0u64..1 << 20, buffers in 0u64..70_000, stack in 0u64..70_000) {
            let second = 0x1000_1000 + text.div_ceil(PAGE) * PAGE;
            let image = image(&[(5, 0, 0x1000_1000, text, text), (6, 0, second, 0, data)]);
            match Layout::plan(&image, memory, buffers, stack) {
                Err(LayoutError::TooSmall(needed)) => prop_assert!(memory < needed),
                Err(other) => prop_assert!(false, "{other:?}"),
                Ok(layout) => {
                    for pair in layout.parts().windows(2) {
                        prop_assert!(pair[0].address + pair[0].pages * PAGE <= pair[1].address);
                        prop_assert_eq!(pair[0].offset + pair[0].pages * PAGE, pair[1].offset);
                    }
                    let last = layout.parts().last().unwrap();
                    prop_assert!(last.offset + last.pages * PAGE <= memory);
                    prop_assert!(layout.parts().iter().all(|p| !(layout.stack_bottom - PAGE..layout.stack_bottom).contains(&p.address)));
                }
            }
        }
    }
}
