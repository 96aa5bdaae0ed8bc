//! How Cargo calls the compiler for the chip.
//!
//! Why it exists: a program that was compiled with other flags is compiled again, so the test suite builds all programs with the flags of a run. `xtask` includes this
//! file and nothing else of this package. What it deliberately does not know: which programs exist, and where results go.

use std::path::{Path, PathBuf};

/// The compiler's name for the chip.
pub const TARGET: &str = "riscv64gc-unknown-none-elf";
/// Cargo profile for programs of the chip.
pub const PROFILE: &str = "chip";
/// Lets the linker replace two-instruction calls through a register with one direct jump, as other RISC-V toolchains do by default. The
/// compiler warns that the name of this feature may change.
const RELAX: &str = "\"-Ctarget-feature=+relax\"";

/// Where Cargo keeps the sources of packages.
pub fn cargo_home() -> PathBuf {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .unwrap_or_default()
}

/// Flags for the compiler. They keep the build machine's folders out of programs, so that programs are the same wherever they are built.
pub fn flags(folders: &[(&Path, &str)]) -> String {
    let flags: Vec<String> = folders
        .iter()
        // Cargo's configuration cannot hold a name with quotes; such a program has long paths, but works.
        .filter(|(from, _)| !from.display().to_string().contains(['"', '\\', '\'']))
        .map(|(from, to)| format!("\"--remap-path-prefix={}={to}\"", from.display()))
        .chain([RELAX.to_owned()])
        .collect();
    format!("target.{TARGET}.rustflags=[{}]", flags.join(","))
}

/// The compiler's output without its warning about [`RELAX`], which does not concern the user's program.
pub fn without_note(words: &str) -> String {
    let is_note =
        |part: &&str| part.starts_with("warning: unstable feature") && part.contains("`relax`");
    let parts: Vec<&str> = words.split("\n\n").filter(|part| !is_note(part)).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_flag_is_not_part_of_a_users_errors() {
        let warning = "warning: unstable feature specified for `-Ctarget-feature`: `relax`\n  |\n  = note: it can change";
        let error = "error[E0277]: cannot multiply\n --> src/main.rs:12:49";
        let own = "warning: unused variable: `relax`";
        let words = [warning, own, error].join("\n\n");
        assert_eq!(without_note(&words), [own, error].join("\n\n"));
    }

    #[test]
    fn odd_folders_are_left_out_of_the_flags() {
        let flags = flags(&[(Path::new("/a/b"), "."), (Path::new("/a\"b"), "x")]);
        assert_eq!(
            flags,
            "target.riscv64gc-unknown-none-elf.rustflags=[\"--remap-path-prefix=/a/b=.\",\"-Ctarget-feature=+relax\"]"
        );
    }
}
