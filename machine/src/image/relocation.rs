//! Programs that run anywhere: position-independent ELF files, moved to an address.
//!
//! Why it exists: several programs on one chip cannot all be at the address to which each was linked. What it deliberately does not know:
//! where a program goes; and dynamic linking: a file that needs symbols of another file is refused.

use super::{Image, ImageError};
use object::LittleEndian;
use object::elf::{ET_DYN, FileHeader64, R_RISCV_RELATIVE, SHT_RELA};
use object::read::elf::{FileHeader as _, Rela as _, SectionHeader as _};

impl Image {
    /// Moves a position-independent image (`-pie`) so that its first byte is at `address`, and applies its relocations. Returns the
    /// distance, modulo 2^64. Other images are linked to fixed addresses and stay there: 0. `bytes`: the file from which the image was
    /// read.
    ///
    /// # Errors
    /// If the file asks for anything but its own moved addresses, or for one outside its segments.
    pub fn move_to(&mut self, bytes: &[u8], address: u64) -> Result<u64, ImageError> {
        let name = self.name.clone();
        let damaged = |what: String| ImageError::Damaged {
            name: name.clone(),
            what,
        };
        let header = FileHeader64::<LittleEndian>::parse(bytes);
        let header = header.map_err(|error| damaged(error.to_string()))?;
        let endian = LittleEndian;
        if header.e_type(endian) != ET_DYN {
            return Ok(0);
        }
        let first = self.segments.iter().map(|one| one.address).min();
        let by = address.wrapping_sub(first.unwrap_or(address));
        let sections = header.sections(endian, bytes);
        let sections = sections.map_err(|error| damaged(error.to_string()))?;
        for section in sections.iter() {
            let is_loaded = section.sh_flags(endian) & u64::from(object::elf::SHF_ALLOC) != 0;
            if section.sh_type(endian) != SHT_RELA || !is_loaded {
                continue;
            }
            let all = section.rela(endian, bytes);
            let Some((all, _)) = all.map_err(|error| damaged(error.to_string()))? else {
                continue;
            };
            for one in all {
                let kind = one.r_type(endian, false);
                if kind != R_RISCV_RELATIVE {
                    return Err(damaged(format!(
                        "a relocation of type {kind}; only those that a program of one file needs can be done (R_RISCV_RELATIVE)"
                    )));
                }
                let (place, target) = (one.r_offset(endian), one.r_addend(endian) as u64);
                let value = target.wrapping_add(by).to_le_bytes();
                if !self.put(place, value) {
                    return Err(damaged(format!(
                        "a relocation of {place:#x}, where nothing is loaded"
                    )));
                }
            }
        }
        for segment in &mut self.segments {
            segment.address = segment.address.wrapping_add(by);
        }
        self.entry = self.entry.wrapping_add(by);
        for symbol in self.symbols.values_mut() {
            *symbol = symbol.wrapping_add(by);
        }
        Ok(by)
    }

    /// Writes a word at an address of the file. Zeros that are not in the file become part of it.
    fn put(&mut self, address: u64, value: [u8; 8]) -> bool {
        let mut all = self.segments.iter_mut();
        let place = all.find_map(|segment| {
            let from = address.checked_sub(segment.address)?;
            let end = from.checked_add(8).filter(|end| *end <= segment.size)?;
            Some((segment, from as usize, end as usize))
        });
        let Some((segment, from, end)) = place else {
            return false;
        };
        if segment.data.len() < end {
            segment.data.resize(end, 0);
        }
        segment.data[from..end].copy_from_slice(&value);
        true
    }
}
