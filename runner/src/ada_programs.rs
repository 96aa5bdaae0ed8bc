//! Tasks in Ada: files compiled with the run time of `software/oneshot/ada`.
//!
//! Why it exists: `program="blink.adb::Worker"` works wherever GNAT is installed. What it deliberately does not know: what tasks do, and
//! which of them an image runs.

mod complaints;

use crate::environment;
use crate::error::Error;
use crate::one_stack::{self, Declared};
use crate::place;
use object::{Object as _, ObjectSymbol as _};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prefix of GNAT's commands for the chip. The run time is written for the calls that this version makes.
const PREFIX: &str = "riscv64-linux-gnu-";
const VERSION: &str = "-12";

/// Units of the run time that the compiler calls, and those that programs name like its own; the units that they need follow.
const UNITS: &[&str] = &[
    "s-tarest.adb",
    "a-retide.adb",
    "a-rttiev.adb",
    "s-tposen.adb",
    "s-tpobop.adb",
    "a-sytaco.adb",
    "a-except.ads",
    "s-stoele.ads",
];

/// Flags for every unit. `-fcall-used`: a call preserves no register, because the job may end there.
fn flags() -> Vec<String> {
    let fixed = [
        "-march=rv64gc",
        "-mabi=lp64d",
        "-mcmodel=medany",
        "-fno-pic",
        "-Os",
        "-g",
        "-gno-record-gcc-switches",
        "-ffunction-sections",
        "-fdata-sections",
        "-fno-asynchronous-unwind-tables",
        "-fno-jump-tables",
        "-fno-optimize-sibling-calls",
        "-save-temps=obj",
    ];
    let mut all: Vec<String> = fixed.iter().map(|&flag| flag.to_owned()).collect();
    // The compiler refuses this flag for s0; the run time declares s0 clobbered where a job ends.
    all.extend((1..12).map(|number| format!("-fcall-used-s{number}")));
    all.extend((0..12).map(|number| format!("-fcall-used-fs{number}")));
    all
}

/// Whether GNAT for the chip is installed.
pub fn is_there() -> bool {
    let mut command = command("gnatmake");
    let command = command.arg("--version").stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn command(tool: &str) -> Command {
    let mut command = Command::new(format!("{PREFIX}{tool}{VERSION}"));
    environment::leave_out(&mut command);
    command
}

/// The name that the compiler gives the body of a task: `Unit.Task` of a file whose hyphens separate unit names. `kind`: `TKB` for a single
/// task, `TB` for a type.
pub fn body(file: &str, task: &str, kind: &str) -> String {
    let unit = Path::new(file).file_stem().and_then(OsStr::to_str);
    let unit = unit.unwrap_or_default().replace('-', "__");
    let task = task.replace('.', "__").to_lowercase();
    format!("{unit}__{task}{kind}")
}

/// Compiled files.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// One object file.
    pub object: Vec<u8>,
    /// Their declarations of tasks, by the names of [`body`].
    pub declared: Declared,
}

/// Compiles files of tasks and what they need, in `folder`, which is made and removed; the compiled run time stays beside it. `tasks`: files and tasks that must
/// be there.
///
/// # Errors
/// If there is no GNAT, it refuses, a task is not there, or one needs its stack behind a statement at which it waits.
pub fn object(
    root: &Path,
    sources: &[PathBuf],
    tasks: &[(&str, &str)],
    folder: &Path,
) -> Result<Compiled, Error> {
    let first = sources.first().map_or(root, PathBuf::as_path);
    if !is_there() {
        return Err(Error::input(
            format!(
                "{} needs GNAT 12 for RISC-V, and {PREFIX}gnatmake{VERSION} is not there",
                first.display()
            ),
            "install it: apt-get install gnat-12-riscv64-linux-gnu",
        ));
    }
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
    let compiled = compile(root, sources, first, folder).and_then(|compiled| {
        has_tasks(&compiled.object, tasks)?;
        Ok(compiled)
    });
    std::fs::remove_dir_all(folder).map_err(|error| Error::file(folder, error))?;
    compiled
}

/// Refuses task names that no file declares.
fn has_tasks(object: &[u8], tasks: &[(&str, &str)]) -> Result<(), Error> {
    let file = object::File::parse(object);
    let file = file.map_err(|error| Error::Machine(format!("GNAT's object: {error}")))?;
    let symbols: Vec<&str> = file.symbols().filter_map(|one| one.name().ok()).collect();
    for (file, task) in tasks {
        if !symbols.contains(&body(file, task, "TKB").as_str()) {
            let declared: Vec<&str> = symbols
                .iter()
                .filter_map(|name| name.strip_suffix("TKB"))
                .collect();
            return Err(Error::input(
                format!("{file} declares no task {task}"),
                format!(
                    "name a single task of the unit, or Instance.Task of a generic package in it; declared are {}",
                    declared.join(", ").replace("__", ".")
                ),
            ));
        }
    }
    Ok(())
}

fn compile(
    root: &Path,
    sources: &[PathBuf],
    first: &Path,
    folder: &Path,
) -> Result<Compiled, Error> {
    let library = root.join("software/oneshot/ada/rts");
    let run_time = run_time(&library, folder, first)?;
    for file in files_in(&run_time)? {
        let to = folder.join(file.file_name().unwrap_or_default());
        std::fs::copy(&file, to).map_err(|error| Error::file(&file, error))?;
    }
    let mut compiled = flags();
    let mut own: Vec<&Path> = sources
        .iter()
        .filter_map(|source| source.parent())
        .collect();
    own.dedup();
    compiled.extend(own.iter().map(|own| map(own, ".")));
    compiled.extend([map(folder, "."), map(&library, "rts")]);
    let mut includes: Vec<String> = own.iter().map(|own| include(own)).collect();
    includes.push(include(&library));
    let names = sources.iter().filter_map(|source| source.file_name());
    let names: Vec<&OsStr> = names.collect();
    finish(
        make(&names, &[], &includes, &library, &compiled),
        folder,
        first,
    )?;
    let declared = check(folder, first)?;
    let mut bind = command("gnatbind");
    bind.args([
        "-n",
        "-x",
        "-nostdinc",
        "-nostdlib",
        "-O=objects",
        "-o",
        "binder.adb",
    ])
    .args(&includes)
    .args(
        sources
            .iter()
            .map(|source| source.with_extension("ali"))
            .filter_map(|ali| ali.file_name().map(OsStr::to_owned)),
    );
    finish(bind, folder, first)?;
    let mut command_of_binder = command("gcc");
    command_of_binder
        .args(["-c", "-gnatg", "-gnatyN", "-gnatws", "-nostdinc"])
        .args(&includes)
        .args(&compiled)
        .arg("binder.adb");
    finish(command_of_binder, folder, first)?;
    let objects = place::read(&folder.join("objects"))?;
    let objects = String::from_utf8_lossy(&objects);
    let mut link = command("gcc");
    link.args(["-r", "-nostdlib", "-o", "all.o", "binder.o"])
        .args(objects.lines());
    finish(link, folder, first)?;
    Ok(Compiled {
        object: place::read(&folder.join("all.o"))?,
        declared,
    })
}

/// Switches for the units of the run time.
const OF_RUN_TIME: &[&str] = &["-a", "-gnatp", "-gnatg", "-gnatyN", "-gnatws"];

fn include(path: &Path) -> String {
    format!("-I{}", path.display())
}

/// Folders of the build machine do not reach the program.
fn map(from: &Path, to: &str) -> String {
    format!("-ffile-prefix-map={}={to}", from.display())
}

/// GNAT compiles units and what they need.
fn make(
    units: &[&OsStr],
    switches: &[&str],
    includes: &[String],
    library: &Path,
    compiled: &[String],
) -> Command {
    let mut command = command("gnatmake");
    command
        .args(units)
        .args(["-q", "-c", "-f", "-nostdinc"])
        .args(switches)
        .args(includes)
        .arg(format!("-gnatec={}", library.join("gnat.adc").display()))
        .arg("-cargs")
        .args(compiled);
    command
}

/// The files in a folder, in order.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::file(folder, error);
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        all.push(entry.map_err(failed)?.path());
    }
    all.retain(|path| path.is_file());
    all.sort();
    Ok(all)
}

/// All that the compiled run time depends on: the compiler, its flags, and names, times (they are in what GNAT writes) and contents of the sources.
fn digest(library: &Path) -> Result<String, Error> {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    for tool in ["gnatmake", "gcc"] {
        let mut command = command(tool);
        let output = command.arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| {
            let name = command.get_program().display();
            Error::Machine(format!("cannot run {name}: {error}"))
        })?;
        add(&output.stdout);
    }
    for flag in UNITS.iter().chain(OF_RUN_TIME) {
        add(flag.as_bytes());
    }
    for flag in flags() {
        add(flag.as_bytes());
    }
    for file in files_in(library)? {
        let failed = |error| Error::file(&file, error);
        let written = std::fs::metadata(&file).and_then(|found| found.modified());
        let written = written.map_err(failed)?;
        let since = written.duration_since(std::time::UNIX_EPOCH);
        let since = since.map_err(|_| {
            Error::input(
                format!("{} was written before 1970", file.display()),
                "set its time, for example with `touch`",
            )
        })?;
        add(file.file_name().unwrap_or_default().as_encoded_bytes());
        add(&since.as_nanos().to_le_bytes());
        add(&place::read(&file)?);
    }
    let digest = hash.finalize();
    Ok(digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// The folder with the compiled run time, beside `folder`. It is the same for all tasks, and takes the compiler longer than most of them, so it is compiled once.
fn run_time(library: &Path, folder: &Path, first: &Path) -> Result<PathBuf, Error> {
    let kept = folder.with_file_name(format!("ada-run-time-{}", digest(library)?));
    if kept.is_dir() {
        return Ok(kept);
    }
    // Others may do the same.
    let new = place::beside(&kept);
    if new.is_dir() {
        std::fs::remove_dir_all(&new).map_err(|error| Error::file(&new, error))?;
    }
    std::fs::create_dir_all(&new).map_err(|error| Error::file(&new, error))?;
    let mut compiled = flags();
    compiled.extend([map(&new, "."), map(library, "rts")]);
    let units: Vec<&OsStr> = UNITS.iter().map(OsStr::new).collect();
    let includes = [include(library)];
    let made = finish(
        make(&units, OF_RUN_TIME, &includes, library, &compiled),
        &new,
        first,
    );
    let moved = made.and_then(|()| match std::fs::rename(&new, &kept) {
        Err(_) if kept.is_dir() => Ok(()),
        moved => moved.map_err(|error| Error::file(&kept, error)),
    });
    if new.is_dir() {
        std::fs::remove_dir_all(&new).map_err(|error| Error::file(&new, error))?;
    }
    moved.map(|()| kept)
}

/// Refuses tasks that need their stack behind a statement at which they wait. Gives what the assembly says of the others.
fn check(folder: &Path, first: &Path) -> Result<Declared, Error> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(|error| Error::file(folder, error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "s"))
        .collect();
    all.sort();
    let mut refused = String::new();
    let mut declared = Declared::default();
    for path in all {
        let text = place::read(&path)?;
        let text = String::from_utf8_lossy(&text);
        for one in one_stack::refusals(&text) {
            // Writing to a string cannot fail.
            let _ = writeln!(refused, "{one}");
        }
        let mut of_file = one_stack::declared(&text);
        declared.priorities.append(&mut of_file.priorities);
        declared.kept.append(&mut of_file.kept);
    }
    if refused.is_empty() {
        return Ok(declared);
    }
    refused.push_str(
        "help: all tasks share one stack, and nothing on it is there behind `delay until` or another statement at which a task waits; declare in the \
         package what must survive. If the source has no such value, it is the compiler's own, or that of a procedure that the compiler has inserted \
         there: move the statement into a procedure `with No_Inline`",
    );
    Err(Error::Build {
        program: first.display().to_string(),
        output: refused,
    })
}

/// Runs a command in the folder.
fn finish(mut command: Command, folder: &Path, source: &Path) -> Result<(), Error> {
    let output = command.current_dir(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        let name = command.get_program().display();
        Error::Machine(format!("cannot run {name}: {error}"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let mut said = output.stdout;
    said.extend(output.stderr);
    Err(Error::Build {
        program: source.display().to_string(),
        output: complaints::explained(&String::from_utf8_lossy(&said)),
    })
}
