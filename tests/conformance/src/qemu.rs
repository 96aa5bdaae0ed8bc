//! Runs a batch on QEMU's virt machine.
//!
//! QEMU's memory is a shared file: the initial contents go in and the results come out of it, without a boot loader, an
//! executable file or a serial line. The run ends by the sifive_test device.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::layout::DRAM_BYTES;

/// The program that is started.
pub const PROGRAM: &str = "qemu-system-riscv64";

/// Extensions that the machine does not have; the ones that this QEMU knows are turned off.
const OFF: &[&str] = &[
    "h",
    "zba",
    "zbb",
    "zbc",
    "zbs",
    "zfa",
    "zfh",
    "zfhmin",
    "zawrs",
    "zacas",
    "zicbom",
    "zicbop",
    "zicboz",
    "zicond",
    "zihintntl",
    "zimop",
    "zcmop",
    "sstc",
    "svinval",
    "svnapot",
    "svpbmt",
    "sscofpmf",
];

/// Turned on where QEMU knows them: the interrupt architecture, because without it QEMU takes the pending interrupt of the
/// lowest number instead of that of the highest priority; and A and D bits set by the walker.
const ON: &[&str] = &["x-smaia", "x-ssaia", "smaia", "ssaia", "svadu"];

/// The processor and its options, as far as this QEMU knows them.
fn cpu() -> Result<&'static str, Error> {
    static CPU: OnceLock<String> = OnceLock::new();
    if let Some(cpu) = CPU.get() {
        return Ok(cpu);
    }
    let output = Command::new(PROGRAM)
        .args(["-device", "rv64-riscv-cpu,help"])
        .stdin(Stdio::null())
        .output()
        .map_err(missing)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let knows = |option: &&&str| {
        text.lines()
            .any(|line| line.trim_start().starts_with(&format!("{option}=<")))
    };
    let mut cpu = "rv64".to_owned();
    for (options, value) in [(OFF, "off"), (ON, "on")] {
        for option in options.iter().filter(knows) {
            cpu += &format!(",{option}={value}");
        }
    }
    Ok(CPU.get_or_init(|| cpu))
}

fn missing(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        Error::Missing
    } else {
        Error::Io(error)
    }
}

/// The longest run of one batch; a program that reaches it never ends.
const LIMIT: Duration = Duration::from_secs(20);

/// Why QEMU gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not installed.
    #[error("{PROGRAM} is not installed (Debian package qemu-system-misc)")]
    Missing,
    /// It did not end in time: some test hangs.
    #[error("QEMU did not end within {} s", LIMIT.as_secs())]
    Timeout,
    /// It ended in another way than by the exit device.
    #[error("QEMU failed: {0}")]
    Failed(String),
    /// A file could not be used.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Whether QEMU can be started.
#[must_use]
pub fn available() -> bool {
    let status = Command::new(PROGRAM)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Runs memory `image` from its first byte and returns the memory afterwards.
///
/// # Errors
/// When QEMU is missing, fails or does not end.
pub fn run(image: &[u8]) -> Result<Vec<u8>, Error> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(image)?;
    file.as_file().set_len(DRAM_BYTES)?;
    file.flush()?;
    let path = file.path().display();
    // A second hart makes QEMU translate atomic operations as such; with one hart, it would translate them to a load and a
    // store, whose exceptions are those of a load.
    let mut child = Command::new(PROGRAM)
        .args([
            "-machine",
            "virt,memory-backend=ram",
            "-cpu",
            cpu()?,
            "-bios",
            "none",
            "-smp",
            "2",
            "-m",
        ])
        .arg(format!("{}M", DRAM_BYTES >> 20))
        .arg("-object")
        .arg(format!(
            "memory-backend-file,id=ram,size={}M,mem-path={path},share=on",
            DRAM_BYTES >> 20
        ))
        .args([
            "-display",
            "none",
            "-serial",
            "none",
            "-monitor",
            "none",
            "-no-reboot",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    let begin = Instant::now();
    let mut pause = Duration::from_millis(2);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Err(Error::Timeout);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    if !status.success() {
        let mut message = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut message)?;
        }
        return Err(Error::Failed(message));
    }
    Ok(std::fs::read(file.path())?)
}
