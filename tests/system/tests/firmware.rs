//! Firmware that others built boots unchanged: OpenSBI's generic image, as Debian packages it.

use bulkhead_runner::bare::{Options, boot};
use bulkhead_runner::progress::Silent;
use std::path::Path;

const FIRMWARE: &str = "/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_jump.elf";

#[test]
fn opensbi_boots_to_its_report() {
    let elf = Path::new(FIRMWARE);
    if !elf.exists() {
        eprintln!("skipped: {FIRMWARE} is missing; install Debian's package opensbi");
        return;
    }
    let options = Options {
        elf,
        others: &[],
        platform: Path::new("single"),
        max_cycles: Some(20_000_000),
        trace: None,
    };
    let booted = boot(&options, &Silent).expect("it boots");
    for line in [
        "OpenSBI v",
        "Platform Name             : bulkhead,single",
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
