//! Applications in C beside those in Rust.

use bulkhead_runner::c_programs;
use bulkhead_system_tests::boot_text;

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
