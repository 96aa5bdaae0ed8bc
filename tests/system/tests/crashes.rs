//! Crashed applications: their call chain and registers, without a tick of difference.

use bulkhead_report::crash::Crash;
use bulkhead_runner::c_programs;

use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{Finished, Options, run};

/// A chain of functions that keep values on the stack. `kind` says how the last one breaks.
const SOURCE: &str = r#"#include "bulkhead.h"
__attribute__((noinline)) int third(volatile int *at) { return *at + 1; }
__attribute__((noinline)) int second(int *at) { int got = third(at); __asm__ volatile("" ::: "memory"); return got * 3; }
__attribute__((noinline)) int first(int *at) { int got = second(at); __asm__ volatile("" ::: "memory"); return got + 7; }
__attribute__((noinline)) int deeper(volatile int *n) { volatile int room[64]; room[0] = *n; return deeper(n) + room[0]; }
int main(void)
{
    int one = 1;
    if (bh_number("kind", 0) == 0)
        return first((int *)(uintptr_t)bh_number("address", 0x18));
    return deeper(&one);
}
"#;
const SYSTEM: &str = r#"<system name="crashes" platform="tiled-gem5" duration="30ms">
  <domain name="d">
    <app name="null" tile="2" program="chain.c"/>
    <app name="full" tile="2" program="chain.c"><argument name="kind" value="1"/><cpu quota="1ms" period="10ms"/></app>
    <app name="panic" tile="3" program="adversary/fault"><argument name="kind" value="panic"/></app>
    <app name="load" tile="4" program="adversary/fault"><argument name="kind" value="load"/></app>
    <app name="other" tile="5" program="latency/syscall"><argument name="runs" value="10"/></app>
  </domain>
  <tilemux tile="2"/>
</system>"#;

fn crashed() -> Option<Finished> {
    if c_programs::compiler().is_none() {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("chain.c"), SOURCE).expect("it can be written");
    let system = folder.path().join("system.xml");
    std::fs::write(&system, SYSTEM).expect("it can be written");
    let options = Options {
        system,
        ..Options::default()
    };
    Some(run(&options, &Silent).expect("it runs"))
}

/// Names of the functions of a backtrace.
fn functions(crash: &Crash) -> Vec<&str> {
    let frames = crash.backtrace.iter();
    let name = |frame: &'_ String| frame.find(['+', ' ']).unwrap_or(frame.len());
    frames.map(|frame| &frame[..name(frame)]).collect()
}

#[test]
fn a_crash_has_its_callers_registers_and_address() {
    let Some(finished) = crashed() else {
        return;
    };
    let result = &finished.result;
    let crash = |of: &str| {
        let mut all = result.variants[0].incidents.iter();
        let incident = all.find(|one| one.application == of);
        let incident = incident.unwrap_or_else(|| panic!("{of}: {:?}", result.happened()));
        incident
            .crash
            .as_ref()
            .unwrap_or_else(|| panic!("{of}: {incident:?}"))
    };
    let null = crash("null");
    println!("{}", null.text());
    let chain = functions(null);
    assert_eq!(chain[..4], ["third", "second", "first", "main"]);
    assert!(
        null.backtrace[0].contains("at chain.c:2"),
        "{:?}",
        null.backtrace
    );
    assert!(
        null.backtrace[2].contains("at chain.c:4"),
        "{:?}",
        null.backtrace
    );
    assert_eq!(null.address, Some(0x18));
    // The argument of the last function.
    assert_eq!(null.registers[10], 0x18);

    let full = crash("full");
    assert!(full.truncated && functions(full).iter().filter(|f| **f == "deeper").count() >= 31);
    assert_eq!(
        full.address.map(|at| at & !0xfff),
        Some(full.registers[2] & !0xfff)
    );

    let panic = crash("panic");
    assert_eq!(panic.address, None);
    assert!(
        functions(panic).contains(&"core::panicking::panic_fmt"),
        "{:?}",
        panic.backtrace
    );
    assert!(
        panic
            .backtrace
            .iter()
            .any(|frame| frame.contains("workloads/adversary/src/fault.rs"))
    );

    let load = crash("load");
    assert_eq!(load.address, Some(8));
    assert!(
        load.backtrace
            .iter()
            .any(|frame| frame.contains("workloads/adversary/src/fault.rs"))
    );
    // Each one once on the terminal and once on the page.
    let titles: Vec<String> = result.crashes().into_iter().map(|one| one.0).collect();
    assert_eq!(titles.len(), 4, "{titles:?}");
}
