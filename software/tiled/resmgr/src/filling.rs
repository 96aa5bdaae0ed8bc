//! The pieces of mapping and filling an application's memory.
//!
//! Why it exists: each piece is one or two system calls, or one page; a more critical application waits for no more than that. What it
//! deliberately does not know: gates and arguments.

use bulkhead_abi::environment::ENVIRONMENT_BASE;
use bulkhead_abi::syscall::{MAP_LAZY, MAP_PAGES_MAX};
use bulkhead_loader::image::Segment;
use bulkhead_loader::layout::{PAGE, Part};

/// How a heap is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// As a whole, before the start.
    Eager,
    /// Page by page on first use.
    Lazy,
    /// By a pager.
    Paged,
}

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These pages are mapped.
    Map(Part),
    /// Makes the memory writable.
    OpenMemory,
    /// Makes the program readable.
    OpenProgram,
    /// Copies bytes of the program at an offset, followed by zeros, to an offset in the memory.
    Copy {
        /// Offset in the program.
        from: u64,
        /// Bytes of the program.
        bytes: u64,
        /// Offset in the memory.
        to: u64,
        /// Bytes in all, at most a page.
        size: u64,
    },
    /// Closes the program, which is no longer needed.
    CloseProgram,
    /// Writes the page with everything that the application is told.
    Environment,
    /// Leaves the memory to the application alone.
    CloseMemory,
}

/// All pieces in order, for the parts of a layout (the heap starts at this address) and the segments of a program.
pub fn pieces<'a>(
    parts: &'a [Part],
    segments: &'a [Segment],
    (heap_at, heap): (u64, Heap),
) -> impl Iterator<Item = Piece> + use<'a> {
    let is_paged = move |part: &&Part| part.address == heap_at && heap == Heap::Paged;
    let mapped = parts.iter().filter(move |part| !is_paged(part));
    let maps = mapped.flat_map(move |part| {
        let is_lazy = part.address == heap_at && heap == Heap::Lazy;
        let (most, rights) = match is_lazy {
            true => (part.pages, part.rights | MAP_LAZY),
            false => (MAP_PAGES_MAX, part.rights),
        };
        steps(part.pages, most).map(move |(done, pages)| {
            Piece::Map(Part {
                address: part.address + done * PAGE,
                offset: part.offset + done * PAGE,
                pages,
                rights,
            })
        })
    });
    let copies = segments.iter().flat_map(|segment| {
        steps(segment.memory_size, PAGE).map(|(done, size)| Piece::Copy {
            from: segment.offset + done,
            bytes: segment.file_size.saturating_sub(done).min(size),
            to: segment.address - ENVIRONMENT_BASE + done,
            size,
        })
    });
    let open = [Piece::OpenMemory, Piece::OpenProgram];
    let close = [Piece::CloseProgram, Piece::Environment, Piece::CloseMemory];
    maps.chain(open).chain(copies).chain(close)
}

/// Splits an amount into steps of at most `most`: the offset of each and its size.
fn steps(amount: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let step = most.max(1);
    (0..amount.div_ceil(step)).map(move |n| (n * step, (amount - n * step).min(step)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Every page of every part is mapped once, at its place in the layout; a heap for a pager is not mapped, and a lazy one is mapped
        /// in one piece.
        #[test]
        fn everything_is_mapped_once(sizes in prop::collection::vec(1u64..300, 1..6), heap in 0usize..6, how in 0u8..3) {
            let how = [Heap::Eager, Heap::Lazy, Heap::Paged][usize::from(how)];
            let mut at = 5;
            let parts: Vec<Part> = sizes.iter().map(|pages| {
                let part = Part { address: (at + 100) * PAGE, offset: at * PAGE, pages: *pages, rights: 1 };
                at += pages;
                part
            }).collect();
            let heap_at = parts.get(heap).map_or(0, |part| part.address);
            let mut mapped = BTreeMap::new();
            for piece in pieces(&parts, &[], (heap_at, how)) {
                let Piece::Map(part) = piece else { continue };
                let is_lazy = part.rights & MAP_LAZY != 0;
                prop_assert!(is_lazy || part.pages <= MAP_PAGES_MAX);
                prop_assert_eq!(is_lazy, how == Heap::Lazy && part.address == heap_at);
                for page in 0..part.pages {
                    let twice = mapped.insert(part.address + page * PAGE, part.offset + page * PAGE);
                    prop_assert_eq!(twice, None);
                }
            }
            let expected: BTreeMap<u64, u64> = parts.iter()
                .filter(|part| how != Heap::Paged || part.address != heap_at)
                .flat_map(|part| (0..part.pages).map(|n| (part.address + n * PAGE, part.offset + n * PAGE)))
                .collect();
            prop_assert_eq!(mapped, expected);
        }

        /// The memory has the bytes of the segments in their places, and zeros after the bytes from the file.
        #[test]
        fn every_byte_is_copied_once(shapes in prop::collection::vec((0u64..10_000, 0u64..10_000), 1..5)) {
            let (mut offset, mut address) = (64, ENVIRONMENT_BASE + PAGE);
            let segments: Vec<Segment> = shapes.iter().map(|(file_size, more)| {
                let segment = Segment { address, offset, file_size: *file_size, memory_size: file_size + more, rights: 1 };
                offset += file_size;
                address += segment.memory_size.next_multiple_of(PAGE);
                segment
            }).collect();
            let file = |at: u64| (at % 251) as u8 + 1;
            let mut memory = BTreeMap::new();
            let mut is_open = false;
            for piece in pieces(&[], &segments, (0, Heap::Eager)) {
                match piece {
                    Piece::OpenProgram => is_open = true,
                    Piece::CloseProgram => is_open = false,
                    Piece::Copy { from, bytes, to, size } => {
                        prop_assert!(is_open && bytes <= size && (1..=PAGE).contains(&size));
                        for n in 0..size {
                            let byte = if n < bytes { file(from + n) } else { 0 };
                            prop_assert_eq!(memory.insert(to + n, byte), None);
                        }
                    }
                    _ => {}
                }
            }
            let expected: BTreeMap<u64, u8> = segments.iter().flat_map(|s| {
                (0..s.memory_size).map(|n| {
                    let byte = if n < s.file_size { file(s.offset + n) } else { 0 };
                    (s.address - ENVIRONMENT_BASE + n, byte)
                })
            }).collect();
            prop_assert_eq!(memory, expected);
        }
    }
}
