//! Applications in C beside those in Rust.

use bulkhead_runner::c_programs;
use bulkhead_system_tests::boot_text;
use bulkhead_system_tests::shared_tiles::{boot, spans, variant};

const SYSTEM: &str = r#"<system name="c" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="sum" tile="2" program="c/sum"><sgate name="adder" to="adder" gate="priority-0"/><mgate name="numbers" size="4KiB"/></app>
    <app name="client" tile="4" program="service/client"><argument name="request" value="add"/><argument name="runs" value="50"/>
      <sgate name="service" to="adder" gate="priority-1"/></app>
    <app name="adder" tile="3" program="c/adder"><argument name="until" value="5"/><rgate name="priority-0"/><rgate name="priority-1"/></app>
  </domain>
</system>"#;

/// Two programs in C between a writer and a reader that compares: the first pipe uses messages, the second a region, the third
/// messages.
const PIPES: &str = r#"<system name="c" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer"><argument name="step" value="1000"/><sgate name="pipe" to="first" gate="input" credits="2"/></app>
    <app name="first" tile="3" program="c/relay"><rgate name="input" slots="2" slot-size="512B"/>
      <sgate name="output" to="second" gate="input" credits="3"/><mgate name="output-region" size="32KiB"/></app>
    <app name="second" tile="4" program="c/relay"><rgate name="input" slots="3"/><mgate name="input-region" of="first/output-region" size="32KiB" rights="r"/>
      <sgate name="output" to="reader" gate="pipe" credits="2"/></app>
    <app name="reader" tile="5" program="service/pipe-reader"><argument name="step" value="700"/><rgate name="pipe" slots="2" slot-size="2KiB"/></app>
  </domain>
</system>"#;

fn has_compiler() -> bool {
    let found = c_programs::compiler().is_some();
    if !found {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
    }
    found
}

#[test]
fn pipes_in_c() {
    if !has_compiler() {
        return;
    }
    let report = boot_text(PIPES, &[]).remove(0);
    assert_eq!(report.code, Some(0), "{}", report.console);
}

/// A server in C keeps a request of a client that fails; its successor waits in the library until the server drops it.
#[test]
fn a_server_in_c_drops_what_nobody_awaits() {
    if !has_compiler() {
        return;
    }
    let text = r#"<system name="c" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="keeper" tile="3" program="c/keeper"><rgate name="priority-0"/></app>
    <app name="client" tile="2" program="service/successor"><service restart="on-failure"/><rgate name="priority-0"/>
      <mgate name="note" size="4KiB"/><sgate name="server" to="keeper" credits="1"/></app>
  </domain>
</system>"#;
    let report = boot_text(text, &[]).remove(0);
    assert_eq!(report.code, Some(0), "{}", report.console);
    let said = report.printed("keeper");
    assert_eq!(said, ["the first sender has ended"], "{}", report.console);
}

#[test]
fn a_server_and_a_client_in_c() {
    if !has_compiler() {
        return;
    }
    let reports = boot_text(SYSTEM, &[]);
    let report = &reports[0];
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert_eq!(report.printed("sum"), ["the sum is 5050"]);
    assert_eq!(report.spans(2).len(), 100);
    assert_eq!(report.spans(4).len(), 50);
}

/// A job of a task in C is released with its period, even if another application has the hart, so its response contains its wait. Alone, it
/// begins at once.
#[test]
fn a_task_in_c_responds_from_its_release_on() {
    if !has_compiler() {
        return;
    }
    let program = r#"#include "bulkhead.h"
int main(void) {
    int task = bh_task();
    for (int job = 0; job < 20; job++) {
        bh_span_begin((uint64_t)bh_next_job(task));
        for (volatile int i = 0; i < 2000; i++) { }
        bh_span_end(job + 1);
        bh_complete(task);
    }
    return 0;
}
"#;
    let text = r#"<system name="late" platform="tiled-2ghz" duration="60ms" manager-tile="1">
  <tilemux tile="2" policy="realtime"/>
  <domain name="urgent" criticality="A">
    <app name="urgent" tile="2" program="sharing/periodic"><argument name="jobs" value="20"/><argument name="iterations" value="20000"/>
      <cpu quota="150us" period="1ms" priority="9"/><task period="1ms"/></app>
  </domain>
  <domain name="c" criticality="B">
    <app name="late" tile="2" program="late.c"><cpu quota="200us" period="1ms" priority="8"/><task period="1ms"/></app>
  </domain>
  <variant name="alone"><without domain="urgent"/></variant>
  <variant name="beside"/>
</system>"#;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("late.c", program), ("system.xml", text)] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let result = boot(folder.path().join("system.xml"), &[]);
    let of = |name: &str| {
        let seen = variant(&result, name);
        let mut tasks = seen.tasks.iter();
        let task = tasks
            .find(|task| task.application == "late")
            .expect("it has a task");
        let job = spans(seen, "late").latency.min;
        [task.begin, task.worst, Some(job)].map(|ticks| ticks.expect("it has jobs"))
    };
    let [begin, response, job] = of("alone");
    assert!(result.microseconds(begin) < 20.0, "{begin} of {job}");
    assert!(response >= begin + job);
    let urgent = spans(variant(&result, "beside"), "urgent").latency.min;
    let [begin, response, job] = of("beside");
    assert!(
        begin >= urgent,
        "{begin} after its release, {urgent} for the urgent"
    );
    assert!(response >= begin + job, "{response}, {begin}, {job}");
}
