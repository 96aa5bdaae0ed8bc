//! Processor time as a capability, on the machine: programs that may start children start them with all the time that they can get.

use bulkhead_abi::marker::MarkerKind;
use bulkhead_system_tests::{Report, boot_text};

/// Jobs of the loop.
const JOBS: usize = 60;
/// Tile of the loop and of all children.
const TILE: u16 = 2;

/// The controller next to an application without `<cpu>` that starts children; next to a manager that may take 10 % of each millisecond
/// and starts children instead of its applications; and next to both, each with this wish.
fn boot(wish: &str) -> Vec<Report> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/systems/heirs.xml");
    let text = std::fs::read_to_string(file).expect("the system is there");
    let wished = text.replace("value=\"any\"", &format!("value=\"{wish}\""));
    assert!(wish == "any" || wished != text);
    boot_text(&wished, &[])
}

/// The numbers of the children that ran: each reports its own when it gets the processor.
fn ran(report: &Report) -> Vec<u64> {
    let all = report.values(MarkerKind::Check, TILE);
    // Their number is their stack pointer; the loop has a check of its own at its end.
    let numbers = all.iter().map(|check| check / 16);
    let is_child = |number: &u64| (1..100).contains(number) || (201..300).contains(number);
    numbers.filter(is_child).collect()
}

fn unharmed(wish: &str) {
    let names = ["alone", "timeless", "manager", "both"];
    let reports = boot(wish);
    assert_eq!(reports.len(), names.len());
    for (name, report) in names.into_iter().zip(&reports) {
        let children = ran(report);
        let worst = report.spans(TILE).iter().copied().max().unwrap_or(0);
        let jobs = report.spans(TILE).len();
        println!("{wish}, {name}: {jobs} jobs, worst {worst} cycles, children {children:?}");
        // A loop without neighbours shows nothing.
        for (variants, first, last) in [
            (["timeless", "both"], 1, 99),
            (["manager", "both"], 201, 299),
        ] {
            let is_here = children
                .iter()
                .any(|number| (first..=last).contains(number));
            assert_eq!(
                is_here,
                variants.contains(&name),
                "{name}: {children:?}\n{}",
                report.console
            );
        }
        // The manager tries each wish by itself, whatever the application's wish is.
        let wishes = (201..=205).all(|number| children.contains(&number));
        assert_eq!(
            wishes,
            ["manager", "both"].contains(&name),
            "{name}: {children:?}\n{}",
            report.console
        );
        assert_eq!(jobs, JOBS, "{name}\n{}", report.console);
        let missed = report.values(MarkerKind::DeadlineMiss, TILE);
        assert!(missed.is_empty(), "{name}: {missed:?}\n{}", report.console);
        assert_eq!(report.stopped("controller"), Some("exit 0"), "{name}");
    }
}

#[test]
fn a_control_loop_meets_every_deadline_beside_children_that_anyone_starts() {
    unharmed("any");
}

/// 800 s of 1000 s: the rate is a fifth less than all, and the budget is longer than the run.
#[test]
fn a_long_period_is_no_way_to_all_the_time() {
    unharmed("period");
}

#[test]
fn a_tenth_of_each_millisecond_is_not_more() {
    unharmed("tenth");
}

#[test]
fn the_highest_priority_is_nobodys_to_take() {
    unharmed("urgent");
}

#[test]
fn children_of_children_come_from_the_same_time() {
    unharmed("grandchild");
}
