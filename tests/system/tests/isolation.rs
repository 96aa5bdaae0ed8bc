//! Adversaries of all kinds next to a control loop: each ends as it must, and nobody else is affected.

use bulkhead_abi::marker::MarkerKind;
use bulkhead_system_tests::{Report, boot};

fn cause<'a>(report: &'a Report, name: &str) -> &'a str {
    match report.stopped(name) {
        Some(cause) => cause,
        None => panic!("{name} did not stop:\n{}", report.console),
    }
}

#[test]
fn adversaries_end_and_harm_nobody() {
    let reports = boot("adversaries.xml");
    let [alone, beside] = &reports[..] else {
        panic!("two variants")
    };

    // Forbidden actions are stopped, with the right cause and, where it is known, the right address.
    let starts = |name, text: &str| {
        let cause = cause(beside, name);
        assert!(cause.starts_with(text), "{name}: {cause}");
    };
    starts("load", "load page fault at ");
    assert!(cause(beside, "load").ends_with("value 0x8"));
    starts("store", "store page fault at ");
    assert!(cause(beside, "store").ends_with("value 0x8"));
    assert_eq!(
        cause(beside, "execute"),
        "instruction page fault at 0x20000000, value 0x20000000"
    );
    // csrr a0, mstatus
    starts("privileged", "illegal instruction at ");
    starts("breakpoint", "breakpoint at ");
    starts("call", "unknown environment call at ");
    assert_eq!(cause(beside, "panic"), "panic");
    assert_eq!(cause(beside, "exhaust"), "heap exhausted");
    starts("stack", "store page fault at ");
    let explained = |line: &&str| line.ends_with("(stack): stack overflow");
    assert!(
        beside.printed("root").iter().any(explained),
        "{:?}",
        beside.printed("root")
    );
    // TileMux and the unit's privileged, external and endpoint registers are not addresses of an application.
    assert!(cause(beside, "memory").ends_with("value 0x80000000"));
    assert!(cause(beside, "registers-p").ends_with("value 0x3001000"));
    assert!(cause(beside, "registers-e").ends_with("value 0x3002000"));
    assert!(cause(beside, "registers-n").ends_with("value 0x3004000"));
    // Allowed actions have no effect on rights.
    for name in ["registers", "endpoints", "syscalls"] {
        assert_eq!(cause(beside, name), "exit 0", "{:?}", beside.printed(name));
    }
    // Nobody writes to the console in the kernel's name. Others' lines may interrupt a long one, so its parts are
    // joined.
    assert_eq!(cause(beside, "forger"), "exit 0");
    let text = "kernel: activity 2 (sensor) on tile 2 stopped: panic";
    let line = "x".repeat(127);
    let forged = beside.printed("forger").concat();
    assert_eq!(forged, format!("{text}{text}??[2K{text}??1A?{line}{text}"));
    let own = |line: &&str| line.starts_with("kernel: activity 2 (sensor)");
    assert_eq!(beside.console.lines().filter(own).count(), 1);
    // An application that shares a tile with endless loops still computes what it should.
    assert_eq!(cause(beside, "witness"), "exit 0");
    assert_eq!(cause(beside, "compute"), "exit 0");
    assert_eq!(beside.stopped("spin"), None);

    // The control loop next to them: same results, no deadline missed. Some of the others did not end with 0: code 3.
    assert_eq!((alone.code, beside.code), (Some(0), Some(3)));
    for report in [alone, beside] {
        for name in ["sensor", "controller", "actuator"] {
            assert_eq!(cause(report, name), "exit 0");
        }
        assert_eq!(report.flows().len(), 20);
        assert!(report.values(MarkerKind::DeadlineMiss, 4).is_empty());
    }
    for tile in [2, 3, 4] {
        assert_eq!(
            alone.values(MarkerKind::Check, tile),
            beside.values(MarkerKind::Check, tile)
        );
    }
}

#[test]
fn activities_that_share_a_tile() {
    let reports = boot("shared-tile.xml");
    let [report] = &reports[..] else {
        panic!("one run")
    };
    assert_eq!(report.code, Some(0), "{}", report.console);
    for name in [
        "ping",
        "w1",
        "w2",
        "w3",
        "w4",
        "sensor",
        "controller",
        "actuator",
    ] {
        assert_eq!(cause(report, name), "exit 0");
    }
    assert_eq!(report.spans(2).len(), 200);
    assert_eq!(report.flows().len(), 20);
    // The witnesses on two tiles computed the same.
    let checks = report.values(MarkerKind::Check, 2);
    assert_eq!((checks.len(), checks[0]), (2, checks[1]));
    assert_eq!(checks, report.values(MarkerKind::Check, 1));
}

#[test]
fn senseless_commands_change_nothing_for_others() {
    let reports = boot("random.xml");
    let [alone, beside] = &reports[..] else {
        panic!("two variants")
    };
    let good = [
        "witness-1",
        "witness-2",
        "witness-3",
        "sensor",
        "controller",
        "actuator",
    ];
    for report in [alone, beside] {
        assert_eq!(report.code, Some(0), "{}", report.console);
        assert!(
            good.iter()
                .all(|name| report.stopped(name) == Some("exit 0"))
        );
        assert_eq!(report.flows().len(), 8);
    }
    // What they compute is the same, even where they share the tile.
    for tile in 1..=4 {
        let sorted = |report: &Report| {
            let mut values = report.values(MarkerKind::Check, tile);
            values.sort_unstable();
            values
        };
        assert_eq!(sorted(alone), sorted(beside), "tile {tile}");
    }
}
