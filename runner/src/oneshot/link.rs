//! Images are linked from what compilers made: the kernel with the tasks in Rust, and tasks in C and Ada.
//!
//! Why it exists: the compiler needs half a second for an image, and the linker a hundredth. So what only addresses depend on is left to the linker: how large the
//! stack is, and which tasks of compiled files an image has. What it deliberately does not know: what parts are made from.

use super::symbols;
use crate::cargo::{self, Linker};
use crate::environment;
use crate::error::Error;
use crate::place;
use crate::programs::Library;
use bulkhead_abi::one_shot::STACK;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the source of an image calls the tasks of compiled files, with a number behind it.
pub(super) const TASK: &str = "bulkhead_task_";

/// What an image is linked from.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// What it is in messages.
    pub(super) what: String,
    /// The object with the kernel and the tasks in Rust.
    pub(super) kernel: Vec<u8>,
    /// The objects of tasks in C and Ada. All that is in them is in the image if something needs it.
    pub(super) tasks: Vec<Vec<u8>>,
    /// The tasks of these objects, by the numbers that the source gives them.
    pub(super) names: Vec<String>,
}

/// Links an image with a stack of at least this many bytes.
///
/// # Errors
/// If there is no linker, or it refuses.
pub(super) fn image(library: &Library, parts: &Parts, stack: u64) -> Result<Vec<u8>, Error> {
    let linker = cargo::linker(library.root())?;
    let folder = place::beside(&library.generated().join("one-shot").join("link"));
    std::fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, error))?;
    let linked = linked(&linker, library, parts, stack, &folder);
    std::fs::remove_dir_all(&folder).map_err(|error| Error::file(&folder, error))?;
    Ok(without_numbers(linked?))
}

fn linked(
    linker: &Linker,
    library: &Library,
    parts: &Parts,
    stack: u64,
    folder: &Path,
) -> Result<Vec<u8>, Error> {
    let kernel = folder.join("kernel.o");
    place::write(&kernel, &parts.kernel)?;
    let mut objects: Vec<PathBuf> = vec![kernel];
    for (number, object) in parts.tasks.iter().enumerate() {
        let path = folder.join(format!("tasks-{number}.o"));
        place::write(&path, object)?;
        objects.push(path);
    }
    let script = library.kernel_package("software/oneshot");
    let image = folder.join("image");
    let mut command = Command::new(&linker.program);
    command
        .args(["-flavor", "gnu", "--gc-sections", "-z", "noexecstack"])
        .args(objects)
        .arg(&linker.builtins)
        .arg("-T")
        .arg(script.join("bulkhead-oneshot.x"))
        .arg("--defsym=bulkhead_described=1")
        .arg(format!(
            "--defsym=bulkhead_more_stack={}",
            stack.saturating_sub(STACK)
        ));
    for (number, name) in parts.names.iter().enumerate() {
        command.arg(format!("--defsym={TASK}{number}=\"{name}\""));
    }
    command.arg("-o").arg(&image);
    environment::leave_out(&mut command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        let name = linker.program.display();
        Error::Machine(format!("cannot run the linker {name}: {error}"))
    })?;
    if !output.status.success() {
        return Err(symbols::short(Error::Build {
            program: parts.what.clone(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        }));
    }
    place::read(&image)
}

/// Takes the names of numbered tasks away: whoever asks for the name of an address gets the task's own.
fn without_numbers(mut image: Vec<u8>) -> Vec<u8> {
    for place in numbered(&image).unwrap_or_default() {
        if let Some(name) = image.get_mut(place..place + 4) {
            name.fill(0);
        }
    }
    image
}

/// Where the names of numbered tasks are in the table of symbols.
fn numbered(image: &[u8]) -> Option<Vec<usize>> {
    /// Bytes of a symbol; it begins with the place of its name.
    const SYMBOL: usize = 24;
    let file = ElfFile64::<Endianness>::parse(image).ok()?;
    let table = file.section_by_name(".symtab")?.file_range()?;
    let table = usize::try_from(table.0).ok()?;
    let all = file.symbols().filter(|one| {
        let name = one.name().ok().and_then(|name| name.strip_prefix(TASK));
        name.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    Some(all.map(|one| table + one.index().0 * SYMBOL).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_stays_as_it_is() {
        for bytes in [&b"no program"[..], b""] {
            assert_eq!(without_numbers(bytes.to_vec()), bytes);
        }
        let own = std::fs::read(std::env::current_exe().expect("a path")).expect("this test");
        assert!(without_numbers(own.clone()) == own);
    }
}
