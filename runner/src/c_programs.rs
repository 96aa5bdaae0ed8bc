//! Programs in C: one file, compiled and linked with the library for C.
//!
//! Why it exists: `program="hello.c"` works wherever a compiler is installed. What it deliberately does not know: what programs do.

use crate::environment;
use crate::error::Error;
use crate::one_stack;
use crate::place;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Suitable compilers, with the arguments that make them produce code for the chip.
const COMPILERS: &[(&str, &[&str])] = &[
    ("riscv64-unknown-elf-gcc", &[]),
    ("riscv64-linux-gnu-gcc", &["-no-pie", "-fno-pic"]),
    ("riscv64-elf-gcc", &[]),
    ("clang", &["--target=riscv64-unknown-elf", "-fuse-ld=lld"]),
];

/// The compiler of this machine, if there is one.
pub fn compiler() -> Option<(&'static str, &'static [&'static str])> {
    COMPILERS.iter().copied().find(|(name, _)| {
        let mut command = Command::new(name);
        let works = |command: &mut Command| command.status().is_ok_and(|status| status.success());
        command.arg("--version").stdin(Stdio::null());
        let found = works(command.stdout(Stdio::null()).stderr(Stdio::null()));
        // Clang needs its own linker to link for the chip.
        found
            && (*name != "clang"
                || works(
                    Command::new("ld.lld")
                        .arg("--version")
                        .stdout(Stdio::null())
                        .stderr(Stdio::null()),
                ))
    })
}

/// Flags for every file.
const FLAGS: &[&str] = &[
    "-march=rv64gc",
    "-mabi=lp64d",
    "-mcmodel=medany",
    "-std=c11",
    "-g",
    "-gno-record-gcc-switches",
    "-Wall",
    "-Wextra",
    "-ffreestanding",
];

/// Compiles `source` and links it with `library`. Returns the ELF file, which is in `folder`, and the compiler's warnings.
///
/// # Errors
/// If there is no compiler, or it refuses.
pub fn build(
    root: &Path,
    source: &Path,
    library: &Path,
    folder: &Path,
) -> Result<(PathBuf, String), Error> {
    let mut command = command(root, source)?;
    std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
    let key = bulkhead_abi::syscall::module_key(source.as_os_str().as_encoded_bytes());
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let target = absolute(&folder.join(format!("{stem}-{key:016x}.elf")))?;
    command
        .args([
            "-O2",
            "-nostdlib",
            "-nostartfiles",
            "-static",
            "-Wl,--gc-sections",
            "-Wl,--build-id=none",
        ])
        .arg("-I")
        .arg(root.join("software/lib/c/include"))
        .arg("-T")
        .arg(root.join("software/lib/bulkhead-app.x"))
        .arg(source)
        .arg(library)
        .arg("-o")
        .arg(&target);
    let warnings = finish(command, source)?;
    Ok((target, warnings))
}

/// What the compiler refuses in tasks that share one stack: a job whose end gives no value, an unused end value, pointers to objects that
/// are gone when the job ends, and stacks of unknown size.
const ONE_STACK: &[&str] = &[
    "-Werror=return-type",
    "-Werror=unused-result",
    "-Werror=uninitialized",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=return-local-addr",
    "-Werror=dangling-pointer",
    "-Werror=vla",
];

/// Compiles tasks of the one-shot RTOS in `folder`, and refuses those that keep the address of a local variable. Returns the object file. `copies`: how many tasks
/// of an image may be the same.
///
/// # Errors
/// If there is no compiler, if the compiler refuses the source, or if a task keeps such an address.
pub fn object(
    root: &Path,
    source: &Path,
    folder: &Path,
    copies: usize,
    notifies: bool,
) -> Result<Vec<u8>, Error> {
    let mut compile = command(root, source)?;
    std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
    let target = absolute(&place::beside(&folder.join("tasks")).with_added_extension("o"))?;
    let assembly = target.with_extension("s");
    compile
        .args(["-S", "-Os", "-ffunction-sections", "-fdata-sections"])
        .args(["-fno-asynchronous-unwind-tables"])
        .args(ONE_STACK)
        .arg(format!("-DBH_COPIES={copies}"))
        .args(notifies.then_some("-DBH_NOTIFY"))
        .arg("-I")
        .arg(root.join("software/oneshot/c/include"))
        .arg(source)
        .arg("-o")
        .arg(&assembly);
    finish(compile, source)?;
    let assembled = assemble(root, source, &assembly, &target);
    remove(&assembly)?;
    assembled?;
    let bytes = place::read(&target)?;
    remove(&target)?;
    Ok(bytes)
}

/// Makes an object file from the compiler's assembly of a source, if no job keeps an address of its stack.
fn assemble(root: &Path, source: &Path, assembly: &Path, target: &Path) -> Result<(), Error> {
    let text = crate::place::read(assembly)?;
    let refused = one_stack::kept(&String::from_utf8_lossy(&text));
    if !refused.is_empty() {
        let mut output: String = refused.iter().map(|one| format!("{one}\n")).collect();
        output.push_str("help: keep the value itself in a field of the task, or make the variable a field or static");
        return Err(Error::Build {
            program: source.display().to_string(),
            output,
        });
    }
    let mut command = command(root, source)?;
    // The assembly already contains the debug information.
    command.args(["-c", "-g0"]);
    command.arg(assembly).arg("-o").arg(target);
    finish(command, source).map(drop)
}

fn remove(path: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(|error| Error::file(path, error))
}

/// The compiler with the common flags. Folders of the build machine do not reach the program.
fn command(root: &Path, source: &Path) -> Result<Command, Error> {
    let Some((name, arguments)) = compiler() else {
        return Err(Error::input(
            format!(
                "{} needs a C compiler for RISC-V, and there is none",
                source.display()
            ),
            "install one: apt-get install gcc-riscv64-unknown-elf",
        ));
    };
    let mut command = Command::new(name);
    let folder = source.parent().unwrap_or(root);
    command
        .args(arguments)
        .args(FLAGS)
        .arg(format!("-ffile-prefix-map={}=bulkhead", root.display()))
        .arg(format!("-ffile-prefix-map={}=.", folder.display()))
        // The compiler records its working directory.
        .current_dir(folder);
    environment::leave_out(&mut command);
    Ok(command)
}

/// A path that means the same in every folder.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| Error::file(path, error))
}

/// Runs the compiler. Returns its warnings.
fn finish(mut command: Command, source: &Path) -> Result<String, Error> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        let name = command.get_program().display();
        Error::Machine(format!("cannot run {name}: {error}"))
    })?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(words);
    }
    Err(Error::Build {
        program: source.display().to_string(),
        output: words,
    })
}
