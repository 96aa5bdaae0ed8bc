//! Programs without a kernel where they run.
//!
//! Why it exists: loading a description asks whether a finished file can be where it is put, and a run puts it there. What it deliberately
//! does not know: descriptions, and what else is in memory.

use bulkhead_abi::bare::STACK;
use bulkhead_machine::image::Image;

/// A program where it runs.
pub struct Moved {
    /// Its image there.
    pub image: Image,
    /// How far it was moved from where it is linked, modulo 2^64.
    pub by: u64,
}

/// A program in `size` bytes of memory from `base` on; or why it cannot be there, and what would be right.
pub fn placed((name, elf): (&str, &[u8]), base: u64, size: u64) -> Result<Moved, (String, String)> {
    let wrong = |error: &dyn std::fmt::Display, help: String| (error.to_string(), help);
    let parsed = Image::parse(name, elf);
    let mut image = parsed.map_err(|error| {
        let help = "build it for riscv64gc-unknown-none-elf, statically linked";
        wrong(&error, help.to_owned())
    })?;
    let by = image.move_to(elf, base);
    let by = by.map_err(|error| wrong(&error, "link it statically, with -pie".to_owned()))?;
    image.trim_headers(base);
    // A program that begins inside and is too long is reported with the missing bytes.
    let inside = base..base + size;
    if image
        .segments
        .iter()
        .all(|one| inside.contains(&one.address))
    {
        return Ok(Moved { image, by });
    }
    image.check_fits(base, size).map_err(|error| {
        let help = format!(
            "link it with -pie (docs/reference/bare.md), so that it runs anywhere; or write at=\"...\" and memory=\"...\" \
             for the addresses to which it is linked, with {STACK} bytes more for each hart"
        );
        wrong(&error, help)
    })?;
    Ok(Moved { image, by })
}
