//! Firmware that others built boots unchanged: OpenSBI's generic image, as packaged by Debian.

use bulkhead_runner::bare::{Options, boot};
use bulkhead_runner::progress::Silent;
use std::path::Path;

const FIRMWARE: &str = "/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_jump.elf";

#[test]
fn opensbi_boots_to_its_report() {
    opensbi("single", 1);
}

/// Harts that race for the boot, wait for each other by software interrupts, and share locks.
#[test]
fn opensbi_boots_on_the_harts_of_a_cluster() {
    opensbi("virt", 4);
}

fn opensbi(platform: &str, harts: usize) {
    let elf = Path::new(FIRMWARE);
    if !elf.exists() {
        eprintln!("skipped: {FIRMWARE} is missing; install Debian's package opensbi");
        return;
    }
    let options = Options {
        elf,
        others: &[],
        platform: Path::new(platform),
        overrides: &[],
        max_cycles: Some(20_000_000),
        trace: None,
    };
    let booted = boot(&options, &Silent).expect("it boots");
    for line in [
        "OpenSBI v",
        &format!("Platform Name             : bulkhead,{platform}"),
        &format!("Platform HART Count       : {harts}"),
        "Platform Console Device   : uart8250",
        "Boot HART PMP Count       : 16",
        "Domain0 Next Mode         : S-mode",
    ] {
        assert!(
            booted.console.contains(line),
            "{line}\n{}\n{}",
            booted.console,
            booted.end
        );
    }
}
