//! Crashes of booted programs: address, registers and backtrace of a C program that breaks in four ways.

use bulkhead_runner::bare::{Booted, Options, boot};
use bulkhead_runner::progress::Silent;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = r#"
__attribute__((noinline)) int third(volatile int *p) { return *p + 1; }
__attribute__((noinline)) int second(int *p) { int got = third(p); __asm__ volatile("" ::: "memory"); return got * 3; }
__attribute__((noinline)) int first(int *p) { int got = second(p); __asm__ volatile("" ::: "memory"); return got + 7; }
__attribute__((noinline)) int deeper(volatile int *n) { volatile int room[64]; room[0] = *n; return deeper(n) + room[0]; }
__attribute__((noinline)) void broken(void) { __asm__ volatile("unimp"); }
static inline __attribute__((always_inline)) int inner(volatile int *p) {
    return *p + 1;
}
__attribute__((noinline)) int outer(int *p) {
    return inner(p) * 3;
}
static volatile int zero;
int work(void) {
#if KIND == 0
    return first((int *)(unsigned long)zero);
#elif KIND == 3
    return outer((int *)(unsigned long)zero);
#elif KIND == 1
    return deeper(&zero);
#else
    broken();
    return zero;
#endif
}
__asm__(".section .text.start,\"ax\"\n.globl _start\n_start: la sp, top\nli ra, 0\ncall work\n1: j 1b\n"
        ".section .stack,\"aw\",@nobits\n.skip 0x4000\ntop:\n.text\n");
"#;
/// The stack comes first in memory, so overrunning it leaves memory.
const SCRIPT: &str = "ENTRY(_start) SECTIONS { . = 0x80000000; .stack (NOLOAD) : { *(.stack) } . = ALIGN(4096); \
    .text : { *(.text.start) *(.text*) } .data : { *(.data*) *(.sdata*) *(.bss*) *(.sbss*) } .eh_frame : { *(.eh_frame) } }";

/// Boots one of the program's kinds; `None` without a compiler.
fn crashed(kind: u32) -> Option<Booted> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{kind}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name);
    std::fs::write(path("crash.c"), SOURCE).expect("writes");
    std::fs::write(path("crash.ld"), SCRIPT).expect("writes");
    let built = Command::new("riscv64-unknown-elf-gcc")
        .args([
            "-march=rv64gc",
            "-mabi=lp64d",
            "-mcmodel=medany",
            "-O2",
            "-g",
        ])
        .args([
            "-fno-optimize-sibling-calls",
            "-ffreestanding",
            "-nostdlib",
            "-static",
        ])
        .arg(format!("-DKIND={kind}"))
        .arg("-T")
        .arg(path("crash.ld"))
        .arg(path("crash.c"))
        .arg("-o")
        .arg(path("crash.elf"))
        .status();
    let Ok(status) = built else {
        eprintln!("skipped: there is no riscv64-unknown-elf-gcc");
        return None;
    };
    assert!(status.success());
    let options = Options {
        elf: &path("crash.elf"),
        others: &[],
        platform: Path::new("single"),
        overrides: &[],
        max_cycles: Some(10_000_000),
        trace: None,
    };
    Some(boot(&options, &Silent).expect("boots"))
}

fn functions(booted: &Booted) -> Vec<String> {
    let crash = booted.crash.as_ref().expect("crashed");
    let names = crash.backtrace.iter();
    let name = |frame: &String| {
        frame
            .split(['+', ' '])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    names.map(name).collect()
}

#[test]
fn a_null_pointer_three_functions_deep() {
    let Some(booted) = crashed(0) else { return };
    let crash = booted.crash.as_ref().expect("crashed");
    assert_eq!(
        functions(&booted),
        ["third", "second", "first", "work", "_start"]
    );
    assert!(crash.backtrace[0].ends_with("crash.c:2"), "{crash:?}");
    assert!(crash.backtrace[1].ends_with("crash.c:3"), "{crash:?}");
    assert_eq!(
        (crash.cause.as_str(), crash.address),
        ("load access fault", Some(0))
    );
    // `third`'s argument.
    assert_eq!(crash.registers[10], 0);
    let text = crash.text();
    assert!(
        text.contains("near 0: a null pointer?") && text.contains("   a0 0000000000000000"),
        "{text}"
    );
}

#[test]
fn a_full_stack() {
    let Some(booted) = crashed(1) else { return };
    let crash = booted.crash.as_ref().expect("crashed");
    assert_eq!(crash.cause, "store access fault");
    assert!(
        crash.address.is_some_and(|address| address < 0x8000_0000),
        "{crash:?}"
    );
    assert!(
        crash.truncated && functions(&booted).iter().all(|name| name == "deeper"),
        "{crash:?}"
    );
    assert!(
        crash
            .text()
            .contains("does a function call itself without end?")
    );
}

#[test]
fn an_illegal_instruction() {
    let Some(booted) = crashed(2) else { return };
    let crash = booted.crash.as_ref().expect("crashed");
    assert_eq!(functions(&booted), ["broken", "work", "_start"]);
    assert_eq!(
        (crash.cause.as_str(), crash.address),
        ("illegal instruction", None)
    );
}

/// Each function has its own place: the function that another was inlined into has the place of the call, not of the crash.
#[test]
fn a_null_pointer_in_an_inlined_function() {
    let Some(booted) = crashed(3) else { return };
    let frames = &booted.crash.as_ref().expect("crashed").backtrace;
    assert_eq!(functions(&booted)[..2], ["inner", "outer"], "{frames:?}");
    assert!(frames[0].ends_with("crash.c:8 (inlined)"), "{frames:?}");
    assert!(frames[1].ends_with("crash.c:11"), "{frames:?}");
}
