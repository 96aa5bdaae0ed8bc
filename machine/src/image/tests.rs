//! Images built byte by byte from the ELF specification, and the test's own executable for debug information.

use super::*;
use proptest::prelude::*;

/// Program header: type, offset, virtual and physical address, bytes in the file and in memory.
type Header = (u32, u64, u64, u64, u64, u64);

/// A file of class, byte order, type and machine, with program headers and then `contents` at offset 0x1000.
fn elf(class: u8, order: u8, kind: u16, machine: u16, entry: u64, headers: &[Header]) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', class, order, 1, 0];
    file.resize(16, 0);
    file.extend(kind.to_le_bytes());
    file.extend(machine.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(entry.to_le_bytes());
    file.extend(64u64.to_le_bytes()); // program headers
    file.extend(0u64.to_le_bytes()); // section headers
    file.extend(0u32.to_le_bytes()); // flags
    for half in [64, 56, headers.len() as u16, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for &(kind, offset, virtual_address, physical, in_file, in_memory) in headers {
        file.extend(kind.to_le_bytes());
        file.extend(5u32.to_le_bytes());
        for word in [
            offset,
            virtual_address,
            physical,
            in_file,
            in_memory,
            0x1000,
        ] {
            file.extend(word.to_le_bytes());
        }
    }
    file.resize(0x1000, 0);
    file.extend(b"/lib/ld.so.1\0\x13\0\0\0");
    file
}

fn program(headers: &[Header]) -> Vec<u8> {
    elf(2, 1, 2, 243, 0x8000_0000, headers)
}

const CODE: Header = (1, 0x1000, 0x8000_0000, 0x8000_0000, 16, 0x100);

fn error(bytes: &[u8]) -> String {
    Image::parse("a.elf", bytes)
        .expect_err("is refused")
        .to_string()
}

#[test]
fn loads_segments() {
    let image = Image::parse("a.elf", &program(&[CODE])).expect("good");
    assert_eq!(image.entry, 0x8000_0000);
    assert_eq!(image.segments.len(), 1);
    assert_eq!(image.segments[0].size, 0x100);
    assert_eq!(image.segments[0].data, b"/lib/ld.so.1\0\x13\0\0");
    assert_eq!(image.check_fits(0x8000_0000, 0x100), Ok(()));
    assert_eq!(image.tohost(), None);
}

#[test]
fn loads_at_physical_addresses() {
    // A kernel linked high: the entry is virtual, and execution starts at the physical address.
    let high = (1, 0x1000, 0xffff_ffff_8000_0000, 0x8020_0000, 16, 16);
    let image = Image::parse("a.elf", &elf(2, 1, 2, 243, 0xffff_ffff_8000_0004, &[high]));
    let image = image.expect("good");
    assert_eq!(
        (image.entry, image.segments[0].address),
        (0x8020_0004, 0x8020_0000)
    );
}

#[test]
fn says_what_is_wrong() {
    insta::assert_snapshot!(error(b"#!/bin/sh\n"), @"a.elf: not an ELF file");
    insta::assert_snapshot!(error(b""), @"a.elf: not an ELF file");
    insta::assert_snapshot!(error(&elf(1, 1, 2, 243, 0, &[])), @"a.elf: a 32-bit ELF file; the machine's harts are RV64");
    insta::assert_snapshot!(error(&elf(2, 2, 2, 243, 0, &[])), @"a.elf: a big-endian ELF file; the machine is little-endian");
    insta::assert_snapshot!(error(&elf(2, 1, 2, 62, 0, &[])), @"a.elf: built for x86-64; the machine's harts are RISC-V (e_machine 243)");
    insta::assert_snapshot!(error(&elf(2, 1, 1, 243, 0, &[])), @"a.elf: an object file, not an executable; link it with a start address in the platform's memory");
    insta::assert_snapshot!(error(&elf(2, 1, 3, 243, 0, &[(3, 0x1000, 0, 0, 13, 13)])), @"a.elf: needs the interpreter /lib/ld.so.1; link it statically (no dynamic libraries)");
    let mut clears = elf(2, 1, 3, 243, 0, &[(3, 0x1000, 0, 0, 13, 13)]);
    clears[0x1000..0x1004].copy_from_slice(b"\x1b[2J");
    insta::assert_snapshot!(error(&clears), @"a.elf: needs the interpreter ?[2J/ld.so.1; link it statically (no dynamic libraries)");
    insta::assert_snapshot!(error(&program(&[])), @"a.elf: nothing to load: no PT_LOAD segment with contents");
    insta::assert_snapshot!(error(&program(&[(1, 0x1000, 0x9000_0000, 0x9000_0000, 16, 16)])), @"a.elf: the entry point 0x80000000 lies in no loaded segment");
    insta::assert_snapshot!(error(&program(&[(1, 0x8000, 0x8000_0000, 0x8000_0000, 16, 16)])), @"a.elf: damaged ELF file: a segment lies outside the file");
    insta::assert_snapshot!(error(&program(&[(1, 0x1000, 0x8000_0000, 0x8000_0000, 16, 8)])), @"a.elf: damaged ELF file: a segment is larger in the file than in memory");
    let image = Image::parse("a.elf", &program(&[CODE])).expect("good");
    let outside = image
        .check_fits(0x9000_0000, 0x1000_0000)
        .expect_err("outside");
    insta::assert_snapshot!(outside.to_string(), @"a.elf: segment 0 (0x80000000 to 0x80000100) is outside the memory (0x90000000 to 0xa0000000); link the program at 0x90000000");
    assert!(image.check_fits(0x8000_0000, 0xff).is_err());
}

#[inline(never)]
fn landmark(value: u64) -> u64 {
    std::hint::black_box(value) + 1
}

#[test]
fn resolves_function_file_and_line() {
    assert_eq!(landmark(1), 2);
    let own = std::fs::read(std::env::current_exe().expect("path")).expect("readable");
    let resolver = Resolver::new(&own);
    let found = resolver
        .functions
        .iter()
        .find(|f| f.2.contains("image") && f.2.contains("landmark"));
    let &(address, size, _) = found.expect("the test's own symbol");
    let location = resolver.resolve(address + size / 2);
    let (name, offset) = location.function.clone().expect("function");
    assert!(name.ends_with("image::tests::landmark"), "{name}");
    assert_eq!(offset, size / 2);
    assert!(
        location
            .file
            .clone()
            .is_some_and(|f| f.ends_with("image/tests.rs")),
        "{location}"
    );
    assert!(location.line.is_some());
    assert_eq!(resolver.resolve(0).to_string(), "unknown function");
}

/// Functions of assembly without a type, and the labels in them.
#[test]
fn names_assembly() {
    use object::write::{Object, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope};
    let mut file = Object::new(BinaryFormat::Elf, Architecture::Riscv64, Endianness::Little);
    let text = file.section_id(object::write::StandardSection::Text);
    file.append_section_data(text, &[0x13; 32], 4);
    let hostile = "\u{1b}[2J\nkernel: panicked at\u{9b}\u{202e}x";
    let places = [
        ("copy", 4, SymbolScope::Linkage),
        (".Ltmp0", 8, SymbolScope::Compilation),
        (hostile, 24, SymbolScope::Linkage),
    ];
    for (name, value, scope) in places {
        file.add_symbol(Symbol {
            name: name.into(),
            value,
            size: 0,
            kind: SymbolKind::Label,
            scope,
            weak: false,
            section: SymbolSection::Section(text),
            flags: SymbolFlags::Elf {
                st_info: u8::from(value != 8) << 4,
                st_other: 0,
            },
        });
    }
    let resolver = Resolver::new(&file.write().expect("an object"));
    assert_eq!(resolver.resolve(16).to_string(), "copy+0xc");
    assert_eq!(resolver.resolve(2).to_string(), "unknown function");
    // No name begins a line that looks like another program's, or does anything to a terminal.
    assert_eq!(
        resolver.resolve(24).to_string(),
        "?[2J?kernel: panicked at??x"
    );
}

#[test]
fn prints_locations() {
    let location = Location {
        function: Some(("kernel::main".to_owned(), 0x1c)),
        file: Some("src/main.rs".to_owned()),
        line: Some(12),
    };
    assert_eq!(location.to_string(), "kernel::main+0x1c at src/main.rs:12");
}

#[test]
fn a_file_without_debug_information_is_fine() {
    for bytes in [program(&[CODE]), b"nothing".to_vec()] {
        assert_eq!(
            Resolver::new(&bytes).resolve(0x8000_0000),
            Location::default()
        );
    }
}

proptest! {
    #[test]
    fn damaged_files_never_panic(position in 0usize..0x1010, value: u8, cut in 0usize..0x1010) {
        let mut bytes = program(&[CODE, CODE]);
        bytes[position] = value;
        for bytes in [&bytes[..], &bytes[..cut]] {
            let _ = Image::parse("a.elf", bytes).map(|image| image.check_fits(0x8000_0000, 1 << 20));
            Resolver::new(bytes).resolve(0x8000_0000);
        }
    }
}

/// GNU ld maps the file's headers below `-Ttext`; they are not part of the program.
#[test]
fn headers_below_memory_are_dropped_and_nothing_else() {
    let with_text_at = |text: u64| {
        let header = (1, 0, 0x7fff_f000, 0x7fff_f000, 0x1010, 0x1010);
        let mut file = program(&[header]);
        file.resize(file.len().next_multiple_of(8), 0);
        let sections = file.len() as u64;
        file[40..48].copy_from_slice(&sections.to_le_bytes());
        file[60..62].copy_from_slice(&2u16.to_le_bytes());
        file.extend([0; 64]);
        for word in [1u32, 1] {
            file.extend(word.to_le_bytes()); // name, PROGBITS
        }
        for word in [6, 0x7fff_f000 + text, text, 16, 0, 4, 0] {
            file.extend(u64::to_le_bytes(word)); // flags, address, offset, size, link and info, alignment, entry size
        }
        file
    };
    let mut good = Image::parse("a.elf", &with_text_at(0x1000)).expect("good");
    assert!(good.check_fits(0x8000_0000, 0x1000).is_err());
    good.trim_headers(0x8000_0000);
    good.check_fits(0x8000_0000, 0x1000).expect("fits");
    assert_eq!(good.segments[0].address, 0x8000_0000);
    assert_eq!(good.segments[0].data.len(), 16);
    assert_eq!(good.segments[0].size, 16);
    // Code below memory is not dropped.
    let mut bad = Image::parse("a.elf", &with_text_at(0xff0)).expect("good");
    bad.trim_headers(0x8000_0000);
    assert!(bad.check_fits(0x8000_0000, 0x1000).is_err());
}
