//! A misbehaving application harms nobody, and the report says what it did.

use bulkhead_runner::new;
use bulkhead_system_tests::whole::{finished, system, variant};

/// Variant, what the report must say about the attacker (nothing: it ends well or runs on), and the file in which it
/// happened.
const EXPECTED: [(&str, &str, &str); 19] = [
    ("load", "stopped: load page fault", "probe.rs:"),
    ("store", "stopped: store page fault", "probe.rs:"),
    ("execute", "stopped: instruction page fault", ""),
    ("privileged", "stopped: illegal instruction", "probe.rs:"),
    ("breakpoint", "stopped: breakpoint", "probe.rs:"),
    ("panic", "stopped: panic", "fault.rs:"),
    ("call", "stopped: unknown environment call", "probe.rs:"),
    ("heap", "stopped: heap exhausted", ""),
    ("stack", "stopped: store page fault", "in memcpy+"),
    ("spin", "", ""),
    ("chatter", "", ""),
    ("memory-load", "stopped: load page fault", "probe.rs:"),
    ("memory-store", "stopped: store page fault", "probe.rs:"),
    ("own-registers", "", ""),
    (
        "privileged-registers",
        "stopped: store page fault",
        "probe.rs:",
    ),
    (
        "external-registers",
        "stopped: store page fault",
        "probe.rs:",
    ),
    (
        "endpoint-registers",
        "stopped: store page fault",
        "probe.rs:",
    ),
    ("endpoints", "", ""),
    ("syscalls", "", ""),
];

#[test]
fn the_control_loop_goes_on_beside_every_attacker() {
    let finished = finished(system("hostile"), &[], false);
    assert_eq!(finished.result.variants.len(), EXPECTED.len());
    for (name, what, file) in EXPECTED {
        let variant = variant(&finished.result, name);
        let flow = &variant.flows[0];
        assert_eq!(
            (flow.latency.count, flow.misses, flow.lost),
            (10, 0, 0),
            "{name}"
        );
        let said: Vec<&str> = variant.incidents.iter().map(|i| i.what.as_str()).collect();
        if what.is_empty() {
            assert!(said.is_empty(), "{name}: {said:?}");
        } else {
            assert_eq!(said.len(), 1, "{name}: {said:?}");
            assert!(
                said[0].starts_with(what) && said[0].contains(file),
                "{name}: {said:?}"
            );
            assert_eq!(variant.incidents[0].application, "attacker", "{name}");
            let explained =
                said[0].contains("stack overflow; give the application a larger `stack`");
            assert_eq!(explained, name == "stack", "{said:?}");
        }
    }
    assert!(finished.result.is_kept(), "{:?}", finished.result.verdict);
    // A program faulted, and the command's exit code says so.
    assert_eq!(finished.code(), 4);
}

/// A user's own package: the damage is done by a helper that was inlined into `main`, which was inlined into the
/// library's start.
const BROKEN: &str = r#"#![no_std]
#![no_main]
bulkhead_lib::main!(main);
#[inline(always)]
fn look(at: u64) -> u64 {
    unsafe { core::ptr::read_volatile(at as *const u64) }
}
fn main() -> u64 {
    let at: u64 = bulkhead_lib::argument::value("at", 8);
    look(at)
}
"#;

#[test]
fn a_fault_in_an_inlined_function_names_the_users_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("broken");
    let root = bulkhead_runner::place::root().expect("the checkout is there");
    new::create(&own, &root, new::Language::Rust, new::Kind::One).expect("the folder is new");
    std::fs::write(own.join("src/main.rs"), BROKEN).expect("it can be written");
    let finished = finished(own.join("system.xml"), &[], false);
    let incident = &finished.result.variants[0].incidents[0].what;
    assert!(
        incident.contains("look at src/main.rs:6, inlined into"),
        "{incident}"
    );
}
