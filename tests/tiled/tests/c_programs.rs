//! Applications in C beside those in Rust.

use bulkhead_runner::c_programs;
use bulkhead_system_tests::boot_text;

const SYSTEM: &str = r#"<system name="c" platform="tiled-gem5" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="sum" tile="2" program="c/sum"><sgate name="adder" to="adder" gate="priority-0"/><mgate name="numbers" size="4KiB"/></app>
    <app name="client" tile="4" program="service/client"><argument name="request" value="add"/><argument name="runs" value="50"/>
      <sgate name="service" to="adder" gate="priority-1"/></app>
    <app name="adder" tile="3" program="c/adder" background="true"><rgate name="priority-0"/><rgate name="priority-1"/></app>
  </domain>
</system>"#;

#[test]
fn a_server_and_a_client_in_c() {
    if c_programs::compiler().is_none() {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
        return;
    }
    let reports = boot_text(SYSTEM, &[]);
    let report = &reports[0];
    assert_eq!(report.code, Some(0), "{}", report.console);
    assert_eq!(report.printed("sum"), ["the sum is 5050"]);
    assert_eq!(report.spans(2).len(), 100);
    assert_eq!(report.spans(4).len(), 50);
}
