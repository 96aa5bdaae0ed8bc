//! Loadable segments of an ELF file.
//!
//! Why it exists: only the first bytes of a file, which hold its headers, are available when its layout is planned. What
//! it deliberately does not know: sections, symbols, relocations; programs here are static. Parsing is the crate
//! `object`'s.

use bulkhead_abi::syscall::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use object::LittleEndian;
use object::elf::{EM_RISCV, ET_EXEC, FileHeader64, PF_R, PF_W, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// Maximum segments of a program.
pub const SEGMENTS_MAX: usize = 8;
/// Bytes of a file that hold all headers.
pub const HEAD: usize = 1024;

/// A segment to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// Where it is linked.
    pub address: u64,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory; the rest is zero.
    pub memory_size: u64,
    /// `abi::syscall::MAP_*`.
    pub rights: u8,
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// First instruction.
    pub entry: u64,
    segments: [Segment; SEGMENTS_MAX],
    count: usize,
}

/// Why a file is not a program for this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// Not an ELF file of 64 bits, little endian, or damaged.
    NotElf,
    /// Not a static RISC-V executable.
    NotExecutable,
    /// Too many segments, or headers too far from the start.
    TooComplex,
    /// A segment is outside the file or wraps around.
    BadSegment,
    /// The entry is in no executable segment.
    BadEntry,
}

impl Image {
    /// Reads the headers. `head` holds the first bytes of the file, [`HEAD`] or all of it; `size` is the file's size.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub fn parse(head: &[u8], size: u64) -> Result<Self, ImageError> {
        let header = FileHeader64::<LittleEndian>::parse(head).map_err(|_| ImageError::NotElf)?;
        let little = LittleEndian;
        if header.endian() != Ok(LittleEndian) {
            return Err(ImageError::NotElf);
        }
        if header.e_type(little) != ET_EXEC || header.e_machine(little) != EM_RISCV {
            return Err(ImageError::NotExecutable);
        }
        let headers = header
            .program_headers(little, head)
            .map_err(|_| ImageError::TooComplex)?;
        let mut image = Self {
            entry: header.e_entry(little),
            segments: [Segment::default(); SEGMENTS_MAX],
            count: 0,
        };
        for program in headers {
            if program.p_type(little) != PT_LOAD || program.p_memsz(little) == 0 {
                continue;
            }
            let flags = program.p_flags(little);
            let right = |flag, right| if flags & flag != 0 { right } else { 0 };
            let segment = Segment {
                address: program.p_vaddr(little),
                offset: program.p_offset(little),
                file_size: program.p_filesz(little),
                memory_size: program.p_memsz(little),
                rights: right(PF_R, MAP_READ) | right(PF_W, MAP_WRITE) | right(PF_X, MAP_EXECUTE),
            };
            let in_file = segment.offset.checked_add(segment.file_size);
            if in_file.is_none_or(|end| end > size)
                || segment.file_size > segment.memory_size
                || segment.address.checked_add(segment.memory_size).is_none()
            {
                return Err(ImageError::BadSegment);
            }
            let place = image.segments.get_mut(image.count);
            *place.ok_or(ImageError::TooComplex)? = segment;
            image.count += 1;
        }
        let entry = image.entry;
        let holds = |s: &Segment| {
            s.rights & MAP_EXECUTE != 0 && entry >= s.address && entry - s.address < s.memory_size
        };
        if !image.segments().iter().any(holds) {
            return Err(ImageError::BadEntry);
        }
        Ok(image)
    }

    /// The segments in the order of the file.
    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }

    /// End of the last segment.
    pub fn end(&self) -> u64 {
        let ends = self.segments().iter().map(|s| s.address + s.memory_size);
        ends.max().unwrap_or(0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A minimal file, written from the ELF-64 object file format: header, then program headers.
    pub(crate) fn file(entry: u64, segments: &[(u32, u64, u64, u64, u64)]) -> Vec<u8> {
        let mut f = Vec::new();
        f.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        f.extend(2u16.to_le_bytes()); // e_type: executable
        f.extend(243u16.to_le_bytes()); // e_machine: RISC-V
        f.extend(1u32.to_le_bytes()); // e_version
        f.extend(entry.to_le_bytes());
        f.extend(64u64.to_le_bytes()); // e_phoff
        f.extend(0u64.to_le_bytes()); // e_shoff
        f.extend(0u32.to_le_bytes()); // e_flags
        for half in [64u16, 56, segments.len() as u16, 0, 0, 0] {
            f.extend(half.to_le_bytes()); // e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
        }
        for &(flags, offset, address, file_size, memory_size) in segments {
            f.extend(1u32.to_le_bytes()); // p_type: load
            f.extend(flags.to_le_bytes());
            for word in [offset, address, address, file_size, memory_size, 4096] {
                f.extend(word.to_le_bytes());
            }
        }
        f
    }

    #[test]
    fn reads_segments() {
        let file = file(
            0x1000_1004,
            &[
                (5, 0x1000, 0x1000_1000, 0x234, 0x234),
                (6, 0x2000, 0x1000_2000, 8, 0x5000),
            ],
        );
        let image = Image::parse(&file, 0x3000).unwrap();
        assert_eq!(image.entry, 0x1000_1004);
        assert_eq!(image.segments().len(), 2);
        assert_eq!(image.segments()[0].rights, MAP_READ | MAP_EXECUTE);
        assert_eq!(image.segments()[1].rights, MAP_READ | MAP_WRITE);
        assert_eq!(image.end(), 0x1000_7000);
    }

    #[test]
    fn refuses_bad_files() {
        let good = file(0x1000, &[(5, 0, 0x1000, 16, 16)]);
        assert!(Image::parse(&good, 1000).is_ok());
        assert_eq!(Image::parse(b"", 0), Err(ImageError::NotElf));
        assert_eq!(Image::parse(&good[..40], 40), Err(ImageError::NotElf));
        assert_eq!(
            Image::parse(&good[..100], 1000),
            Err(ImageError::TooComplex)
        );
        assert_eq!(Image::parse(&good, 15), Err(ImageError::BadSegment));
        let mut other = good.clone();
        other[18] = 62;
        assert_eq!(Image::parse(&other, 1000), Err(ImageError::NotExecutable));
        let entry = file(0x2000, &[(5, 0, 0x1000, 16, 16)]);
        assert_eq!(Image::parse(&entry, 1000), Err(ImageError::BadEntry));
        let wraps = file(0x1000, &[(5, 0, 0x1000, 16, u64::MAX)]);
        assert_eq!(Image::parse(&wraps, 1000), Err(ImageError::BadSegment));
        let many = file(0x1000, &[(5, 0, 0x1000, 16, 16); 9]);
        assert_eq!(Image::parse(&many, 1000), Err(ImageError::TooComplex));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..176, value: u8, size: u64) {
            let _ = Image::parse(&bytes, size);
            let mut file = file(0x1000, &[(5, 0, 0x1000, 16, 16), (6, 0x40, 0x2000, 16, 16)]);
            file[at] = value;
            let _ = Image::parse(&file, size);
        }
    }
}
