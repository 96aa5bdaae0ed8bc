//! Whether the managers of the chip can load a program.
//!
//! Why it exists: a manager that cannot start one application starts nothing, so a file of the least critical application would keep the
//! most critical one from starting. The rules are those of the chip's own loader, applied before anything runs. What it deliberately does
//! not know: how much memory an application has; its manager knows its gates, and says how much it needs.

use crate::error::Error;
use bulkhead_loader::image::{HEAD, Image, ImageError, SEGMENTS_MAX};
use bulkhead_loader::layout::{Layout, PAGE};

/// How to make a program loadable.
const LINK: &str = "link it as an application: in Rust, build.rs passes `-Tbulkhead-app.x` to the linker, as that of `bulkhead new` does";
/// How to give a program its entry.
const MAIN: &str = "in Rust, `bulkhead_lib::main!(main)` names its main function";

/// Checks a program of an application or manager, called `name` in the description.
///
/// # Errors
/// Why a manager would refuse it, or the kernel would refuse to map or start it, and what would be right.
pub fn check(name: &str, elf: &[u8]) -> Result<(), Error> {
    match refusal(elf) {
        None => Ok(()),
        Some((why, remedy)) => Err(Error::input(format!("{name}: {why}"), remedy)),
    }
}

fn refusal(elf: &[u8]) -> Option<(String, &'static str)> {
    let head = elf.get(..HEAD).unwrap_or(elf);
    let image = match Image::parse(head, elf.len() as u64) {
        Ok(image) => image,
        Err(error) => {
            let (why, remedy) = of_image(error);
            return Some((why, remedy));
        }
    };
    let refuse = |why: &str, remedy| Some((why.to_owned(), remedy));
    if !image.entry.is_multiple_of(2) {
        return refuse("its entry is at an odd address", MAIN);
    }
    let cannot_be_mapped = |rights: u8| {
        use bulkhead_abi::syscall::{MAP_READ, MAP_WRITE};
        rights == 0 || rights & MAP_WRITE != 0 && rights & MAP_READ == 0
    };
    if image
        .segments()
        .iter()
        .any(|one| cannot_be_mapped(one.rights))
    {
        return refuse(
            "a segment has no rights, or is writable but not readable",
            LINK,
        );
    }
    // No buffers, the smallest stack, and all memory that there could be.
    if Layout::plan(&image, u64::MAX, 0, PAGE).is_err() {
        return refuse(
            "its segments do not begin at pages from 0x10001000 on, are not in the order of their addresses, or overlap",
            LINK,
        );
    }
    None
}

fn of_image(error: ImageError) -> (String, &'static str) {
    let (why, remedy) = match error {
        ImageError::NotElf => ("it is not a 64-bit ELF file, or it is damaged", LINK),
        ImageError::NotExecutable => ("it is not linked to fixed addresses", LINK),
        ImageError::TooComplex => {
            return (
                format!(
                    "it has more than {SEGMENTS_MAX} segments, or headers beyond its first {HEAD} bytes"
                ),
                LINK,
            );
        }
        ImageError::BadSegment => ("a segment lies outside the file or wraps around", LINK),
        ImageError::BadEntry => ("its entry is in no segment with code", MAIN),
    };
    (why.to_owned(), remedy)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file of a type with an entry and segments (rights as in ELF files, address, bytes), from the ELF-64 object file format.
    pub(crate) fn elf(kind: u16, entry: u64, segments: &[(u32, u64, u64)]) -> Vec<u8> {
        const CONTENTS: u64 = 0x1000;
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend([kind, 243].map(u16::to_le_bytes).concat());
        file.extend(1u32.to_le_bytes());
        file.extend([entry, 64, 0].map(u64::to_le_bytes).concat());
        file.extend(0u32.to_le_bytes());
        let count = segments.len() as u16;
        file.extend([64, 56, count, 64, 0, 0].map(u16::to_le_bytes).concat());
        for (rights, address, bytes) in segments {
            file.extend([1, *rights].map(u32::to_le_bytes).concat());
            let words = [CONTENTS, *address, *address, *bytes, *bytes, CONTENTS];
            file.extend(words.map(u64::to_le_bytes).concat());
        }
        file.resize(2 * CONTENTS as usize, 0);
        file
    }

    const BASE: u64 = 0x1000_1000;
    /// Rights as in ELF files.
    const READ_EXECUTE: u32 = 5;

    fn said(entry: u64, segments: &[(u32, u64, u64)]) -> String {
        let checked = check("x", &elf(2, entry, segments));
        checked.map_or_else(|error| error.to_string(), |()| "good".to_owned())
    }

    /// Each of these kept the most critical application from starting.
    #[test]
    fn what_no_manager_can_load_is_refused_before_anything_runs() {
        let code = (READ_EXECUTE, BASE, 0x1000);
        assert_eq!(said(BASE, &[code]), "good");
        assert_eq!(
            said(BASE + 0x1000 - 2, &[code, (6, BASE + 0x3000, 8)]),
            "good"
        );
        for (entry, segments, why) in [
            (BASE + 1, vec![code], "x: its entry is at an odd address"),
            (
                BASE + 0x1000,
                vec![code],
                "x: its entry is in no segment with code",
            ),
            (
                BASE,
                vec![(4, BASE, 0x1000)],
                "x: its entry is in no segment with code",
            ),
            (
                BASE,
                vec![code, (0, BASE + 0x1000, 8)],
                "x: a segment has no rights, or is writable but not readable",
            ),
            (
                BASE,
                vec![code, (2, BASE + 0x1000, 8)],
                "x: a segment has no rights, or is writable but not readable",
            ),
            (
                BASE,
                vec![code; 9],
                "x: it has more than 8 segments, or headers beyond its first 1024 bytes",
            ),
        ] {
            assert_eq!(said(entry, &segments), why);
        }
        let order = "x: its segments do not begin at pages from 0x10001000 on, are not in the order of their addresses, or overlap";
        for (entry, segments) in [
            (BASE, vec![code, code]),
            (BASE, vec![(6, BASE + 0x5000, 8), code]),
            (BASE + 4, vec![(READ_EXECUTE, BASE + 4, 8)]),
            (0x1000, vec![(READ_EXECUTE, 0x1000, 8)]),
            (0, vec![(READ_EXECUTE, 0, 8)]),
        ] {
            assert_eq!(said(entry, &segments), order);
        }
        let moved = check("x", &elf(3, BASE, &[code]));
        let moved = moved.expect_err("position independent");
        assert_eq!(moved.to_string(), "x: it is not linked to fixed addresses");
        assert_eq!(moved.code(), crate::error::exit::BAD_INPUT);
        assert!(moved.remedy().is_some());
        assert!(check("x", b"text").is_err());
    }
}
