//! Variables of the host's environment do not change programs of the chip.

use std::path::Path;
use std::process::Command;

/// Tells whether the compiler finds what only the host's variables lead to.
const IN_C: &str = r#"#include "bulkhead_oneshot.h"
#if __has_include("only_here.h")
#error "the host's folders"
#endif
struct told { bh_releases releases; };
static bh_done tell(struct told *self, bh_job job)
{
    bh_print(__DATE__[0] ? "in C" : "never");
    return bh_next(&self->releases, job);
}
BH_TASK(told, struct told, tell, {0})
"#;

const SYSTEM: &str = r#"<system name="here" paradigm="one-shot" platform="epiphany3" duration="3ms">
  <task name="rust" program="one-shot::buffer::Watcher" core="0" priority="1" period="1ms" cost="20us"/>
  <task name="c" program="here.c::told" core="1" priority="1" period="1ms" cost="20us"/>ADA
</system>"#;

const IN_ADA: &str = r#"
  <task name="ada" program="here.adb::Worker" core="2" priority="1" period="1ms" cost="20us"/>"#;

/// Another spelling of the checkout's folder.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Runs a system. The digest of its run, and those of its images.
fn run(folder: &Path, with: &[(&str, &str)]) -> Result<(String, String), String> {
    let root = Path::new(ROOT)
        .canonicalize()
        .expect("the checkout is there");
    let out = folder.join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .args(["run", "here.xml", "--out", "out"])
        .current_dir(folder)
        .env("BULKHEAD_ROOT", root)
        .envs(with.iter().copied())
        .output()
        .expect("the command starts");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let result = std::fs::read(out.join("result.json")).expect("a result");
    let result: serde_json::Value = serde_json::from_slice(&result).expect("JSON");
    let inputs = result["provenance"]["inputs"].to_string();
    Ok((result["variants"][0]["digest"].to_string(), inputs))
}

/// Each variable breaks a build that reads it: what it names is not there, or fails.
#[test]
fn no_variable_of_the_host_changes_an_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    };
    let has_gnat = Command::new("riscv64-linux-gnu-gnatmake-12")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_gnat {
        eprintln!("skipped for Ada: there is no GNAT 12 for RISC-V");
    }
    write(
        "here.xml",
        &SYSTEM.replace("ADA", if has_gnat { IN_ADA } else { "" }),
    );
    write("here.c", IN_C);
    write("here.ads", "package Here is\n   task Worker;\nend Here;\n");
    let body = "with Bulkhead.Console; with Bulkhead.Releases;\npackage body Here is\n   task body Worker is\n   begin\n      loop\n         \
                Bulkhead.Console.Put_Line (\"in Ada\");\n         Bulkhead.Releases.Wait_For_Next;\n      end loop;\n   end Worker;\nend Here;\n";
    write("here.adb", body);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let odd = elsewhere.path();
    std::fs::write(odd.join("only_here.h"), "").expect("it is written");
    std::fs::write(odd.join("only_here.ads"), "package Only_Here is\nend;\n")
        .expect("it is written");
    // In the place of GCC's own assembler.
    let assembler = odd.join("as");
    std::fs::write(&assembler, "#!/bin/sh\nexit 1\n").expect("it is written");
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&assembler, may_run).expect("it may run");
    let place = odd.display().to_string();
    let before = run(folder.path(), &[]).expect("it runs");
    let of_cargo = [
        ("RUSTFLAGS", "-Copt-level=0"),
        ("CARGO_ENCODED_RUSTFLAGS", "-Copt-level=0"),
        ("CARGO_BUILD_RUSTFLAGS", "-Copt-level=0"),
        (
            "CARGO_TARGET_RISCV64GC_UNKNOWN_NONE_ELF_RUSTFLAGS",
            "-Copt-level=0",
        ),
        (
            "CARGO_TARGET_RISCV64GC_UNKNOWN_NONE_ELF_LINKER",
            "/bin/false",
        ),
        ("CARGO_PROFILE_CHIP_OPT_LEVEL", "0"),
        ("CARGO_PROFILE_CHIP_CODEGEN_UNITS", "7"),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
        ("CARGO_BUILD_TARGET", "riscv64imac-unknown-none-elf"),
        ("CARGO_BUILD_RUSTC", "/bin/false"),
        ("CARGO_BUILD_RUSTC_WRAPPER", "/bin/false"),
        ("CARGO_INCREMENTAL", "1"),
        ("CARGO_TARGET_DIR", &place),
        ("CARGO_UNSTABLE_BUILD_STD", "core"),
        ("RUSTC", "/bin/false"),
        ("RUSTC_BOOTSTRAP", "1"),
        ("RUSTC_WRAPPER", "/bin/false"),
        ("RUSTC_WORKSPACE_WRAPPER", "/bin/false"),
        ("LLD_VERSION", "another one"),
    ];
    let of_others = [
        ("CFLAGS", "-O0"),
        ("CC", "/bin/false"),
        ("CPATH", &*place),
        ("C_INCLUDE_PATH", &place),
        ("COMPILER_PATH", &place),
        ("GCC_EXEC_PREFIX", &place),
        ("LIBRARY_PATH", &place),
        ("SOURCE_DATE_EPOCH", "1"),
        ("GNUTARGET", "elf32-littleriscv"),
        ("LDEMULATION", "elf32lriscv"),
        ("ADA_INCLUDE_PATH", &place),
        ("ADA_OBJECTS_PATH", &place),
        ("LANG", "de_DE.UTF-8"),
        ("LC_ALL", "de_DE.UTF-8"),
        ("TZ", "Pacific/Auckland"),
        ("BULKHEAD_ROOT", ROOT),
    ];
    let all: Vec<(&str, &str)> = of_cargo.into_iter().chain(of_others).collect();
    assert_eq!(run(folder.path(), &all), Ok(before));
    if has_gnat {
        // A unit that is only there for the host.
        write("here.adb", &format!("with Only_Here;\n{body}"));
        let said = run(folder.path(), &all).expect_err("it is refused");
        assert!(said.contains("only_here"), "{said}");
    }
}
