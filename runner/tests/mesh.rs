//! C programs on the tiles of `epiphany3` that exchange data by remote stores and polling.

use bulkhead_runner::bare::{Booted, Options, boot};
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Silent;
use std::path::{Path, PathBuf};
use std::process::Command;

/// KIND 0 asks cores 1 to 15 to square a number, and adds up the answers; KIND 1 answers; KIND 2 starts core 5, whose program it contains.
const SOURCE: &str = r#"
typedef unsigned long u64;
#define WINDOW(core) (0x100000000ul + ((u64)(core) << 20))
#define CORE(i) ((u64)(i) / 4 << 6 | (u64)(i) % 4)
#define MAIL 0x6000
static volatile u64 *mail(u64 window) { return (volatile u64 *)(window + MAIL); }
static void put(const char *s) { while (*s) *(volatile char *)0x10000000 = *s++; }
static void end(int code) { *(volatile unsigned *)0x100000 = code ? code << 16 | 0x3333 : 0x5555; }
#if KIND == 0
void work(u64 core) {
    u64 sum = 0;
    for (u64 i = 1; i < 16; i++) mail(WINDOW(CORE(i)))[0] = i;
    for (u64 i = 1; i < 16; i++) {
        volatile u64 *answer = mail(WINDOW(core)) + i;
        while (!*answer) ;
        sum += *answer;
    }
    put(sum == 1240 ? "all squares\n" : "wrong\n");
    end(sum != 1240);
}
#elif KIND == 1
void work(u64 core) {
    volatile u64 *question = mail(0x80000000);
    while (!*question) ;
    put("asked\n");
    mail(WINDOW(0))[*question] = *question * *question;
}
#else
__attribute__((section(".other"), noinline, used)) void other(u64 core) {
    mail(WINDOW(0))[0] = core;
    __asm__ volatile("fence; 1: wfi; j 1b");
}
void work(u64 core) {
    volatile u64 *registers = (volatile u64 *)(WINDOW(CORE(5)) + 0xf0000);
    int before = registers[1];
    registers[1] = 0x80000000;
    while (mail(0x80000000)[0] != CORE(5)) ;
    end(before != 0 || registers[1] != 1);
}
#endif
__asm__(".section .text.start,\"ax\"\n.globl _start\n_start: la sp, top\ncall work\n1: wfi\nj 1b\n"
        ".section .stack,\"aw\",@nobits\n.skip 0x400\ntop:\n.text\n");
"#;
const SCRIPT: &str = "ENTRY(_start) SECTIONS { . = 0x80000000; .text : { *(.text.start) *(.text*) *(.rodata*) *(.srodata*) } \
    .data : { *(.data*) *(.sdata*) *(.bss*) *(.sbss*) } .stack (NOLOAD) : { *(.stack) } \
    .other 0x104100000 : { *(.other) } /DISCARD/ : { *(.eh_frame) *(.comment) } }";

/// Builds one of the program's kinds; `None` without a compiler.
fn build(name: &str, kind: u32, script: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mesh-{name}-{kind}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name);
    std::fs::write(path("mesh.c"), SOURCE).expect("writes");
    std::fs::write(path("mesh.ld"), script).expect("writes");
    let built = Command::new("riscv64-unknown-elf-gcc")
        .args(["-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany", "-O2"])
        .args(["-ffreestanding", "-nostdlib", "-static"])
        .arg(format!("-DKIND={kind}"))
        .arg("-T")
        .arg(path("mesh.ld"))
        .arg(path("mesh.c"))
        .arg("-o")
        .arg(path("mesh.elf"))
        .status();
    let Ok(status) = built else {
        eprintln!("skipped: there is no riscv64-unknown-elf-gcc");
        return None;
    };
    assert!(status.success());
    Some(path("mesh.elf"))
}

fn booted(elf: &Path, others: &[(u16, u16, &Path)], platform: &str) -> Result<Booted, Error> {
    let options = Options {
        elf,
        others,
        platform: Path::new(platform),
        overrides: &[],
        max_cycles: Some(1_000_000),
        trace: None,
    };
    boot(&options, &Silent)
}

#[test]
fn sixteen_programs_exchange_by_remote_stores() {
    let (Some(first), Some(other)) = (build("squares", 0, SCRIPT), build("squares", 1, SCRIPT))
    else {
        return;
    };
    let run = || booted(&first, &[(1, 15, &other)], "epiphany3").expect("boots");
    let once = run();
    assert_eq!(once.exit, Some(0), "{}\n{}", once.end, once.console);
    let lines: Vec<&str> = once.console.lines().collect();
    assert_eq!(lines[0], "tile 0: all squares");
    assert_eq!(lines.len(), 16);
    assert!(lines[1..].iter().all(|line| line.ends_with(": asked")));
    assert_eq!(run().digest, once.digest);
    // Two tiles that do not exist, one that is named twice, and a platform on which all share one memory.
    let error = |others: &[(u16, u16, &Path)], platform: &str| {
        let error = booted(&first, others, platform).expect_err("refused");
        error.to_string()
    };
    let missing = error(&[(14, 17, &other)], "epiphany3");
    assert!(missing.contains("no tile 16"), "{missing}");
    let twice = error(&[(1, 3, &other), (3, 3, &other)], "epiphany3");
    assert!(twice.contains("tile 3 gets two programs"), "{twice}");
    let single = error(&[(1, 1, &other)], "single");
    assert!(single.contains("tile 1 of the platform single"), "{single}");
}

#[test]
fn one_program_brings_the_image_of_another_tile() {
    // Core 5 is in the second row and column: 1 << 6 | 1.
    let Some(elf) = build("start", 2, SCRIPT) else {
        return;
    };
    let run = booted(&elf, &[], "epiphany3").expect("boots");
    assert_eq!(run.exit, Some(0), "{}\n{}", run.end, run.console);
}

#[test]
fn a_program_that_does_not_fit_is_refused() {
    let far = SCRIPT.replace("(NOLOAD) : {", "(NOLOAD) : { . += 0x8000;");
    let Some(elf) = build("large", 0, &far) else {
        return;
    };
    let error = booted(&elf, &[], "epiphany3").expect_err("refused");
    let text = error.to_string();
    assert!(
        text.contains("for tile 0") && text.contains("not in memory"),
        "{text}"
    );
}
