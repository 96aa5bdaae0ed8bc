//! Programs as files: static RISC-V ELF images, and the source locations of program counters.
//!
//! Why it exists: the machine runs binaries from other sources, so a file that cannot work must be refused with a reason, and an
//! address in a report must be translated to a function, a file and a line. It does not know memory maps or tiles: the loader of
//! an image provides the memory's range.

use object::elf::{EM_RISCV, ET_DYN, ET_EXEC, FileHeader64, PT_INTERP, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A part of an image to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Physical address of the first byte.
    pub address: u64,
    /// Bytes from the file.
    pub data: Vec<u8>,
    /// Bytes in memory, at least as many as in the file; the rest is zero.
    pub size: u64,
    /// Leading bytes that belong to no section: the file's own headers, which GNU ld tends to map.
    pub headers: u64,
}

/// The reason why a file cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// It is not an ELF file but, for example, a script.
    #[error("{name}: not an ELF file")]
    NotElf {
        /// The file.
        name: String,
    },
    /// A program for RV32 or another 32-bit machine.
    #[error("{name}: a 32-bit ELF file; the machine's harts are RV64")]
    Not64Bit {
        /// The file.
        name: String,
    },
    /// Big endian.
    #[error("{name}: a big-endian ELF file; the machine is little-endian")]
    BigEndian {
        /// The file.
        name: String,
    },
    /// Another instruction set.
    #[error("{name}: built for {machine}; the machine's harts are RISC-V (e_machine 243)")]
    WrongMachine {
        /// The file.
        name: String,
        /// The architecture that it was built for.
        machine: String,
    },
    /// An object file, a core dump, ...
    #[error(
        "{name}: {kind}, not an executable; link it with a start address in the platform's memory"
    )]
    NotExecutable {
        /// The file.
        name: String,
        /// Its kind.
        kind: String,
    },
    /// It wants a dynamic linker.
    #[error(
        "{name}: needs the interpreter {interpreter}; link it statically (no dynamic libraries)"
    )]
    Dynamic {
        /// The file.
        name: String,
        /// The interpreter.
        interpreter: String,
    },
    /// It has nothing to load.
    #[error("{name}: nothing to load: no PT_LOAD segment with contents")]
    Empty {
        /// The file.
        name: String,
    },
    /// Its headers contradict its contents.
    #[error("{name}: damaged ELF file: {what}")]
    Damaged {
        /// The file.
        name: String,
        /// The contradiction.
        what: String,
    },
    /// A segment is outside memory.
    #[error(
        "{name}: segment {index} ({start:#x} to {end:#x}) is outside the memory ({memory_start:#x} to {memory_end:#x}); \
         link the program at {memory_start:#x}"
    )]
    OutsideMemory {
        /// The file.
        name: String,
        /// Number of the segment among the loaded ones.
        index: usize,
        /// First byte of the segment.
        start: u64,
        /// End of the segment.
        end: u64,
        /// First byte of memory.
        memory_start: u64,
        /// End of memory.
        memory_end: u64,
    },
    /// The first instruction is in no segment.
    #[error("{name}: the entry point {entry:#x} lies in no loaded segment")]
    EntryOutside {
        /// The file.
        name: String,
        /// The entry point.
        entry: u64,
    },
}

/// A program that can be loaded.
#[derive(Clone, Debug)]
pub struct Image {
    /// Name for messages.
    pub name: String,
    /// Address of the first instruction.
    pub entry: u64,
    /// The parts to load, in file order.
    pub segments: Vec<Segment>,
    symbols: BTreeMap<String, u64>,
}

impl Image {
    /// Reads a static RV64 executable.
    ///
    /// # Errors
    /// Why the file cannot be run.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ImageError> {
        let name = name.to_owned();
        let damaged = |what: &dyn fmt::Display| ImageError::Damaged {
            name: name.clone(),
            what: what.to_string(),
        };
        // The identification is checked by hand, to distinguish errors that the user can fix.
        if bytes.get(..4) != Some(&object::elf::ELFMAG) {
            return Err(ImageError::NotElf { name });
        }
        match bytes.get(4) {
            Some(2) => {}
            Some(1) => return Err(ImageError::Not64Bit { name }),
            _ => return Err(damaged(&"unknown class")),
        }
        match bytes.get(5) {
            Some(1) => {}
            Some(2) => return Err(ImageError::BigEndian { name }),
            _ => return Err(damaged(&"unknown byte order")),
        }
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(|e| damaged(&e))?;
        let endian = LittleEndian;
        let machine = header.e_machine(endian);
        if machine != EM_RISCV {
            let machine = machine_name(machine);
            return Err(ImageError::WrongMachine { name, machine });
        }
        let kind = header.e_type(endian);
        if kind != ET_EXEC && kind != ET_DYN {
            let kind = match kind {
                object::elf::ET_REL => "an object file".to_owned(),
                object::elf::ET_CORE => "a core dump".to_owned(),
                other => format!("of type {other}"),
            };
            return Err(ImageError::NotExecutable { name, kind });
        }
        let first_section = first_section(header, bytes);
        let mut segments = Vec::new();
        let entry = header.e_entry(endian);
        let mut entry_found = false;
        let mut physical_entry = entry;
        for segment in header
            .program_headers(endian, bytes)
            .map_err(|e| damaged(&e))?
        {
            let data = || {
                segment
                    .data(endian, bytes)
                    .map_err(|()| damaged(&"a segment lies outside the file"))
            };
            match segment.p_type(endian) {
                PT_INTERP => {
                    let text = String::from_utf8_lossy(data()?);
                    let interpreter = plain(text.trim_end_matches('\0'));
                    return Err(ImageError::Dynamic { name, interpreter });
                }
                PT_LOAD if segment.p_memsz(endian) != 0 => {
                    let data = data()?.to_vec();
                    let (address, size) = (segment.p_paddr(endian), segment.p_memsz(endian));
                    let virtual_address = segment.p_vaddr(endian);
                    if size < data.len() as u64 {
                        return Err(damaged(&"a segment is larger in the file than in memory"));
                    }
                    if address.checked_add(size).is_none() {
                        return Err(damaged(&"a segment wraps around the address space"));
                    }
                    if (virtual_address..virtual_address.saturating_add(size)).contains(&entry) {
                        // Execution starts untranslated.
                        entry_found = true;
                        physical_entry = address + (entry - virtual_address);
                    }
                    let headers = if segment.p_offset(endian) == 0 {
                        first_section.min(data.len() as u64)
                    } else {
                        0
                    };
                    segments.push(Segment {
                        address,
                        data,
                        size,
                        headers,
                    });
                }
                _ => {}
            }
        }
        if segments.is_empty() {
            return Err(ImageError::Empty { name });
        }
        if !entry_found {
            let entry_physical = |s: &Segment| (s.address..s.address + s.size).contains(&entry);
            if !segments.iter().any(entry_physical) {
                return Err(ImageError::EntryOutside { name, entry });
            }
        }
        Ok(Self {
            symbols: symbols(bytes),
            name,
            entry: physical_entry,
            segments,
        })
    }

    /// Drops file headers that the linker mapped before the start of memory. They are not part of the program; with
    /// `ld -Ttext=ADDRESS` they come just before it.
    pub fn trim_headers(&mut self, memory_start: u64) {
        for segment in &mut self.segments {
            let before = memory_start.saturating_sub(segment.address);
            if before != 0 && before <= segment.headers {
                segment.data.drain(..before as usize);
                segment.address += before;
                segment.size -= before;
                segment.headers -= before;
            }
        }
    }

    /// Checks that every segment lies in `[memory_start, memory_start + memory_size)`.
    ///
    /// # Errors
    /// [`ImageError::OutsideMemory`] for the first that does not.
    pub fn check_fits(&self, memory_start: u64, memory_size: u64) -> Result<(), ImageError> {
        let memory_end = memory_start.saturating_add(memory_size);
        for (index, segment) in self.segments.iter().enumerate() {
            let (start, end) = (segment.address, segment.address + segment.size);
            if start < memory_start || end > memory_end {
                return Err(ImageError::OutsideMemory {
                    name: self.name.clone(),
                    index,
                    start,
                    end,
                    memory_start,
                    memory_end,
                });
            }
        }
        Ok(())
    }

    /// Address of a symbol.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).copied()
    }

    /// The address at which the program reports its exit (HTIF), if it does.
    pub fn tohost(&self) -> Option<u64> {
        self.symbol("tohost")
    }

    /// The address at which the host answers (HTIF).
    pub fn fromhost(&self) -> Option<u64> {
        self.symbol("fromhost")
    }
}

/// Offset in the file of the first section that is loaded; 0 if the file has no section table.
fn first_section(header: &FileHeader64<LittleEndian>, bytes: &[u8]) -> u64 {
    let endian = LittleEndian;
    let sections = header.section_headers(endian, bytes).unwrap_or(&[]);
    sections
        .iter()
        .filter(|s| s.sh_flags(endian) & u64::from(object::elf::SHF_ALLOC) != 0)
        .map(|s| s.sh_offset(endian))
        .min()
        .unwrap_or(0)
}

fn machine_name(machine: u16) -> String {
    match machine {
        object::elf::EM_X86_64 => "x86-64".to_owned(),
        object::elf::EM_386 => "x86".to_owned(),
        object::elf::EM_AARCH64 => "AArch64".to_owned(),
        object::elf::EM_ARM => "Arm".to_owned(),
        other => format!("e_machine {other}"),
    }
}

/// Named global and local symbols. A global symbol takes precedence over local ones of the same name.
fn symbols(bytes: &[u8]) -> BTreeMap<String, u64> {
    let mut map = BTreeMap::new();
    let Ok(file) = object::File::parse(bytes) else {
        return map;
    };
    for global in [false, true] {
        for symbol in file.symbols() {
            if let Ok(name) = symbol.name()
                && !name.is_empty()
                && !symbol.is_undefined()
                && symbol.is_global() == global
            {
                map.insert(name.to_owned(), symbol.address());
            }
        }
    }
    map
}

/// The source location of a program counter.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Location {
    /// Function, demangled, and the distance from its start.
    pub function: Option<(String, u64)>,
    /// Source file, as given to the compiler.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<u32>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some((name, 0)) => write!(f, "{name}")?,
            Some((name, offset)) => write!(f, "{name}+{offset:#x}")?,
            None => f.write_str("unknown function")?,
        }
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " at {file}:{line}"),
            (Some(file), None) => write!(f, " in {file}"),
            _ => Ok(()),
        }
    }
}

/// Whether a character only shows itself: it ends no line, moves no cursor and does not change the order of what is read.
pub fn is_plain(c: char) -> bool {
    let moves = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !(c.is_control() || moves)
}

/// A text of a file, for lines of a report. Any name may be in a file; characters that are not plain become `?`.
fn plain(text: &str) -> String {
    let chars = text.chars();
    chars.map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// A function's name as its source has it.
fn demangled(name: &str) -> String {
    plain(&format!("{:#}", rustc_demangle::demangle(name)))
}

type Reader = gimli::EndianArcSlice<gimli::RunTimeEndian>;

/// Turns program counters into locations. Works on any ELF file, with as much information as the file contains.
pub struct Resolver {
    /// Address, size, name; sorted.
    functions: Vec<(u64, u64, String)>,
    /// Start and end of the sections with code. Debug information also describes functions that the linker dropped, at
    /// address 0.
    code: Vec<(u64, u64)>,
    lines: Option<addr2line::Context<Reader>>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("functions", &self.functions.len())
            .field("lines", &self.lines.is_some())
            .finish()
    }
}

impl Resolver {
    /// A resolver for an ELF file. Missing or damaged debug information only makes its answers less complete.
    pub fn new(bytes: &[u8]) -> Self {
        let Ok(file) = object::File::parse(bytes) else {
            return Self {
                functions: Vec::new(),
                code: Vec::new(),
                lines: None,
            };
        };
        let is_code = |symbol: &object::Symbol<'_, '_>| {
            let section = symbol.section_index();
            let section = section.and_then(|index| file.section_by_index(index).ok());
            section.is_some_and(|section| section.kind() == object::SectionKind::Text)
        };
        // Assembly does not always mark a symbol as a function.
        let mut functions: Vec<_> = file
            .symbols()
            .filter(|s| match s.kind() {
                object::SymbolKind::Text | object::SymbolKind::Label => true,
                object::SymbolKind::Unknown => is_code(s),
                _ => false,
            })
            .filter(|s| !s.is_undefined() && s.section_index().is_some())
            .filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_owned())))
            // `$x` and `.L` mark instruction sets and local labels, not functions.
            .filter(|(_, _, name)| !name.is_empty() && !name.starts_with(['$', '.']))
            .collect();
        functions.sort();
        let code = file
            .sections()
            .filter(|section| section.kind() == object::SectionKind::Text)
            .map(|section| {
                let start = section.address();
                (start, start.saturating_add(section.size()))
            })
            .collect();
        Self {
            functions,
            code,
            lines: Self::lines(&file),
        }
    }

    fn lines(file: &object::File<'_>) -> Option<addr2line::Context<Reader>> {
        let endian = if file.is_little_endian() {
            gimli::RunTimeEndian::Little
        } else {
            gimli::RunTimeEndian::Big
        };
        let load = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let section = file.section_by_name(id.name());
            // A section that cannot be read, such as a compressed one, counts as missing.
            let data = section.and_then(|section| section.data().ok());
            let compressed = file
                .section_by_name(id.name())
                .and_then(|s| s.compressed_file_range().ok())
                .is_some_and(|r| r.format != object::CompressionFormat::None);
            let data = data.filter(|_| !compressed).unwrap_or_default();
            Ok(Reader::new(Arc::from(data), endian))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        addr2line::Context::from_dwarf(dwarf).ok()
    }

    /// Whether an address is in the program's code.
    pub fn is_code(&self, address: u64) -> bool {
        let inside = |&(start, end): &(u64, u64)| (start..end).contains(&address);
        self.code.iter().any(inside)
    }

    /// The known location of an address; empty if nothing is known.
    pub fn resolve(&self, pc: u64) -> Location {
        if !self.is_code(pc) {
            return Location::default();
        }
        let line = self.lines.as_ref().and_then(|c| c.find_location(pc).ok()?);
        Location {
            function: self.function(pc),
            file: line.as_ref().and_then(|l| l.file).map(plain),
            // Line 0 means that the compiler knows no line.
            line: line.and_then(|l| l.line).filter(|&l| l != 0),
        }
    }

    /// The inlined functions around an address, the innermost first, each with the place within it; the last one is the function
    /// of [`Resolver::resolve`]. Empty if nothing is known.
    pub fn inlined(&self, pc: u64) -> Vec<Location> {
        let lines = self.lines.as_ref();
        let Some(lines) = lines.filter(|_| self.is_code(pc)) else {
            return Vec::new();
        };
        let Ok(mut frames) = lines.find_frames(pc).skip_all_loads() else {
            return Vec::new();
        };
        let mut all = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|name| {
                let raw = name.raw_name().ok()?;
                Some(demangled(&raw))
            });
            let place = frame.location;
            all.push(Location {
                function: name.map(|name| (name, 0)),
                file: place.as_ref().and_then(|l| l.file).map(plain),
                line: place.and_then(|l| l.line).filter(|&l| l != 0),
            });
        }
        all
    }

    /// Whether debug information says that an address, and whatever it was inlined into, was compiled from Rust.
    pub fn is_rust(&self, pc: u64) -> bool {
        let lines = self.lines.as_ref().filter(|_| self.is_code(pc));
        let Some(Ok(mut frames)) = lines.map(|lines| lines.find_frames(pc).skip_all_loads()) else {
            return false;
        };
        let mut count = 0;
        while let Ok(Some(frame)) = frames.next() {
            let language = frame.function.and_then(|name| name.language);
            if language != Some(gimli::DW_LANG_Rust) {
                return false;
            }
            count += 1;
        }
        count > 0
    }

    fn function(&self, pc: u64) -> Option<(String, u64)> {
        let after = self.functions.partition_point(|f| f.0 <= pc);
        let nearest = self.functions[..after].last()?.0;
        // Of several names for one address, the first in order that covers the address; assembly gives no sizes.
        let same = self.functions[..after].iter().rev();
        let mut names: Vec<_> = same.take_while(|f| f.0 == nearest).collect();
        names.reverse();
        let (start, _, name) = names
            .iter()
            .find(|(start, size, _)| pc - start < *size)
            .or_else(|| names.iter().find(|(_, size, _)| *size == 0))?;
        Some((demangled(name), pc - start))
    }
}

pub mod relocation;
pub mod unwind;

#[cfg(test)]
mod tests;
