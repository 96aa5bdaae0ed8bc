//! Fills the constants of a core into its image: the tick, and the budgets of its tasks.
//!
//! Why it exists: no instruction of an image depends on them (the kernel reads them from the constant `bulkhead_system`), so images that differ in nothing else
//! need only one build. What it deliberately does not know: where they come from, and how images are built.

use crate::error::Error;
use bulkhead_abi::one_shot::system::{BUDGET, DESCRIPTOR, SIZE, TASKS, TIMER};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// The file of an image with these constants. `timer`: counts of the timer in a tick. `budgets`: cycles that a job of each task may take, the most urgent
/// task first; the kernel watches no budget of more than 32 bits. `None`: the tasks are not those of a description, and nobody watches them.
///
/// # Errors
/// If the file is no image of the kernel, or has another number of tasks.
pub fn fill(name: &str, elf: &[u8], timer: u64, budgets: Option<&[u64]>) -> Result<Vec<u8>, Error> {
    let broken = |what: &str| Error::Machine(format!("{name}: {what}"));
    let file = object::File::parse(elf)
        .map_err(|error| broken(&format!("the linker made no ELF file ({error})")))?;
    let mut symbols = file.symbols();
    let system = symbols
        .find(|one| one.name() == Ok("bulkhead_system"))
        .ok_or_else(|| broken("it has no constant `bulkhead_system`"))?
        .address();
    let place = |address: u64, bytes: u64| {
        let place = place(&file, address, bytes);
        place.ok_or_else(|| {
            broken(&format!(
                "{bytes} bytes at {address:#x} are not in the file"
            ))
        })
    };
    let constant = place(system, SIZE)?;
    let word = |offset: u64| {
        let at = constant + offset as usize;
        let bytes = elf[at..at + 8].try_into();
        u64::from_le_bytes(bytes.expect("8 bytes"))
    };
    let (tasks, count) = (word(TASKS), word(TASKS + 8));
    if let Some(budgets) = budgets
        && count != budgets.len() as u64
    {
        let what = format!("it has {count} tasks instead of {}", budgets.len());
        return Err(broken(&what));
    }
    let mut filled = elf.to_vec();
    let mut put = |at: usize, bytes: &[u8]| filled[at..at + bytes.len()].copy_from_slice(bytes);
    put(constant + TIMER as usize, &timer.to_le_bytes());
    for (number, &budget) in budgets.unwrap_or_default().iter().enumerate() {
        let descriptor = place(tasks + number as u64 * DESCRIPTOR, DESCRIPTOR)?;
        // 0: nobody watches.
        let budget = u32::try_from(budget).unwrap_or(0);
        put(descriptor + BUDGET as usize, &budget.to_le_bytes());
    }
    Ok(filled)
}

/// Where the bytes at an address are in the file.
fn place(file: &object::File<'_>, address: u64, bytes: u64) -> Option<usize> {
    let end = address.checked_add(bytes)?;
    let mut sections = file.sections();
    sections.find_map(|section| {
        let (begin, size) = section.file_range()?;
        let offset = address.checked_sub(section.address())?;
        let is_inside = offset < size && end - section.address() <= size;
        usize::try_from(begin + offset).ok().filter(|_| is_inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_is_refused() {
        let refused = |elf: &[u8]| {
            fill("image", elf, 1, None)
                .expect_err("no image")
                .to_string()
        };
        let text = refused(b"no program");
        assert!(
            text.contains("image: the linker made no ELF file"),
            "{text}"
        );
        let program = std::fs::read(std::env::current_exe().expect("a path"));
        let text = refused(&program.expect("this test"));
        assert!(text.contains("no constant `bulkhead_system`"), "{text}");
    }
}
