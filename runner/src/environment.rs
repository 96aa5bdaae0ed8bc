//! Variables of the host's environment that would change what compilers make.
//!
//! Why it exists: a program must be the same, byte by byte, on every host, so what users set for their own builds must not reach the chip's programs. What
//! it deliberately does not know: how programs are compiled.
//!
//! Variables stay that say where things are or how many resources a build takes (`CARGO_HOME`, `CARGO_TARGET_DIR`, `CARGO_BUILD_JOBS`, `TMPDIR`, `PATH`), that
//! choose the toolchain as a whole (`RUSTUP_TOOLCHAIN`), or that only change what people read (`LANG`, `CARGO_TERM_COLOR`).

use std::process::Command;

/// How names begin. Cargo takes each key of its configuration from a variable, too: `profile.chip.opt-level` from `CARGO_PROFILE_CHIP_OPT_LEVEL`.
const PREFIXES: &[&str] = &[
    // Flags, compilers and their wrappers, targets, features of nightly compilers, versions of packages.
    "CARGO_BUILD_",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "CARGO_UNSTABLE_",
    "CARGO_RESOLVER_",
    // The compiler, its wrappers, features of nightly compilers.
    "RUSTC",
    // Rust's linker.
    "LLD_",
    // Where GNAT looks for units.
    "ADA_",
    // Clang's arguments.
    "CCC_",
];

/// Whole names: Cargo's; GCC's ("Environment Variables Affecting GCC" in its manual), and those of its linker.
const NAMES: &[&str] = &[
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "GCC_EXEC_PREFIX",
    "GCC_COMPARE_DEBUG",
    "COMPILER_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "DEPENDENCIES_OUTPUT",
    "SUNPRO_DEPENDENCIES",
    "SOURCE_DATE_EPOCH",
    "LDEMULATION",
    "GNUTARGET",
    "LD_RUN_PATH",
];

/// Of those with such a prefix: where Cargo puts results, and how many processes it starts.
const HARMLESS: &[&str] = &[
    "CARGO_TARGET_DIR",
    "CARGO_TARGET_TMPDIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_BUILD_JOBS",
];

fn changes_programs(name: &str) -> bool {
    let begins = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    (begins || NAMES.contains(&name)) && !HARMLESS.contains(&name)
}

/// A compiler that is called with this command gets none of them.
pub fn leave_out(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(changes_programs) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::changes_programs;

    #[test]
    fn settings_are_left_out_and_places_stay() {
        for name in [
            "CARGO_BUILD_RUSTC",
            "CARGO_PROFILE_CHIP_OPT_LEVEL",
            "CARGO_TARGET_RISCV64GC_UNKNOWN_NONE_ELF_RUSTFLAGS",
            "RUSTC",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "C_INCLUDE_PATH",
            "ADA_PRJ_OBJECTS_FILE",
        ] {
            assert!(changes_programs(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_JOBS",
            "CARGO",
            "RUSTUP_TOOLCHAIN",
            "PATH",
            "LANG",
        ] {
            assert!(!changes_programs(name), "{name}");
        }
    }
}
