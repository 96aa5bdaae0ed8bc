//! How much of a core's memory an image takes.
//!
//! Why it exists: 32 KiB is all that a core has, and the footprint is a promise. What it deliberately does not know: what counts as
//! small.

use crate::error::Error;
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, SectionFlags, elf};

/// Bytes of an image in memory, as counted by `size`. Everything allocated is in one of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Code and constants.
    pub text: u64,
    /// Data with an initial value.
    pub data: u64,
    /// Data that begins as zero.
    pub bss: u64,
    /// The stack of all tasks.
    pub stack: u64,
    /// The console ring with its header.
    pub ring: u64,
}

impl Footprint {
    /// The footprint of an ELF image.
    ///
    /// # Errors
    /// If it is not an image, or allocates a section that this kernel's images do not have.
    pub fn of(name: &str, image: &[u8]) -> Result<Self, Error> {
        let wrong = |what: String| {
            Error::input(
                format!("{name}: {what}"),
                "build it with the kernel in software/oneshot, whose linker script names all sections",
            )
        };
        let file =
            ElfFile64::<Endianness>::parse(image).map_err(|error| wrong(error.to_string()))?;
        if file.elf_header().e_machine(file.endian()) != elf::EM_RISCV {
            return Err(wrong("no program for RISC-V".to_owned()));
        }
        let mut sizes = Self::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else {
                continue;
            };
            if sh_flags & u64::from(elf::SHF_ALLOC) == 0 {
                continue;
            }
            let place = match section.name().unwrap_or_default() {
                ".text" | ".rodata" => &mut sizes.text,
                ".data" => &mut sizes.data,
                ".bss" => &mut sizes.bss,
                ".stack" => &mut sizes.stack,
                ".ring" => &mut sizes.ring,
                other => return Err(wrong(format!("the section {other} is in memory, too"))),
            };
            *place += section.size();
        }
        Ok(sizes)
    }

    /// Code, constants and data, without the stack and the console ring, as the paper counts.
    pub fn total(&self) -> u64 {
        self.text + self.data + self.bss
    }
}

/// Where the console ring of an image is; `None` if it is not an image.
pub fn ring(image: &[u8]) -> Option<u64> {
    let file = ElfFile64::<Endianness>::parse(image).ok()?;
    Some(file.section_by_name(".ring")?.address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_is_refused() {
        let error = Footprint::of("x", b"no program").expect_err("no program");
        assert!(error.to_string().starts_with("x: "), "{error}");
    }
}
