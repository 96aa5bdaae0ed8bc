//! Fills the constants of a core into its image: the tick, the budgets of its tasks, and which of them messages release.
//!
//! Why it exists: no instruction of an image depends on them (the kernel reads them from `bulkhead_system` and `bulkhead_told`), so images that differ in nothing
//! else need only one build. What it deliberately does not know: where they come from, and how images are built.

use super::images::Told;
use crate::error::Error;
use bulkhead_abi::one_shot::system::{BUDGET, DESCRIPTOR, SIZE, TASKS, TIMER};
use bulkhead_abi::one_shot::told;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// The file of an image with these constants. `timer`: counts of the timer in a tick. `budgets`: cycles that a job of each task may take, the most urgent
/// task first; the kernel watches no budget of more than 32 bits. `None`: the tasks are not those of a description, and nobody watches them. `released`: what
/// the kernel must know of tasks that messages release, if there are some.
///
/// # Errors
/// If the file is no image of the kernel, or has other numbers of tasks.
pub fn fill(
    name: &str,
    elf: &[u8],
    timer: u64,
    budgets: Option<&[u64]>,
    released: Option<&Told>,
) -> Result<Vec<u8>, Error> {
    let broken = |what: &str| Error::Machine(format!("{name}: {what}"));
    let file = object::File::parse(elf)
        .map_err(|error| broken(&format!("the linker made no ELF file ({error})")))?;
    let place = |address: u64, bytes: u64| {
        let place = place(&file, address, bytes);
        place.ok_or_else(|| {
            broken(&format!(
                "{bytes} bytes at {address:#x} are not in the file"
            ))
        })
    };
    let constant = |symbol: &str, bytes: u64| {
        let mut symbols = file.symbols();
        let found = symbols.find(|one| one.name() == Ok(symbol));
        let found = found.ok_or_else(|| broken(&format!("it has no constant `{symbol}`")))?;
        place(found.address(), bytes)
    };
    let word = |at: usize| {
        let bytes = elf[at..at + 8].try_into();
        u64::from_le_bytes(bytes.expect("8 bytes"))
    };
    let counted = |count: u64, expected: usize, what: &str| match count == expected as u64 {
        true => Ok(()),
        false => Err(broken(&format!(
            "it has {count} {what} instead of {expected}"
        ))),
    };
    let system = constant("bulkhead_system", SIZE)?;
    let (tasks, count) = (
        word(system + TASKS as usize),
        word(system + TASKS as usize + 8),
    );
    let mut filled = elf.to_vec();
    let mut put = |at: usize, bytes: &[u8]| filled[at..at + bytes.len()].copy_from_slice(bytes);
    put(system + TIMER as usize, &timer.to_le_bytes());
    if let Some(budgets) = budgets {
        counted(count, budgets.len(), "tasks")?;
        for (number, &budget) in budgets.iter().enumerate() {
            let descriptor = place(tasks + number as u64 * DESCRIPTOR, DESCRIPTOR)?;
            // 0: nobody watches.
            let budget = u32::try_from(budget).unwrap_or(0);
            put(descriptor + BUDGET as usize, &budget.to_le_bytes());
        }
    }
    if let Some(released) = released {
        let plan = constant("bulkhead_told", told::SIZE)?;
        let (readers, count) = (
            word(plan + told::READERS as usize),
            word(plan + told::READERS as usize + 8),
        );
        counted(count, released.tasks.len(), "tasks that messages release")?;
        let rings = u32::try_from(released.rings);
        let rings = rings.map_err(|_| broken("it accepts more rings in a tick than it counts"))?;
        put(plan + told::RINGS as usize, &rings.to_le_bytes());
        for (number, &task) in released.tasks.iter().enumerate() {
            let reader = place(readers + number as u64 * told::READER, told::READER)?;
            let task = u8::try_from(task).ok().filter(|one| *one != told::NOBODY);
            let task = task.ok_or_else(|| broken("it has more tasks than a kernel"))?;
            put(reader, &[task]);
        }
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
            fill("image", elf, 1, None, None)
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
