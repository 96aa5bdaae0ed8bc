//! The book states what things cost, and states it for this kernel.

use crate::activity::{ACTIVITY_COST, PLACE_COST};
use crate::costs;
use bulkhead_abi::syscall::Number;
use bulkhead_capabilities::Space;

#[test]
fn the_book_says_what_things_cost() {
    let page = |name: &str| {
        let path = format!("{}/../../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("the page is there");
        // Wherever its lines end.
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (node, holder) = (Space::NODE_COST, Space::HOLDER_COST);
    // What an application gets for what it causes itself.
    let objects = 4096 / node;
    for (name, said) in [
        (
            "reference/resources.md",
            format!(
                "pays {node} bytes for the node, {holder} for the place among the holders and {ACTIVITY_COST} for what"
            ),
        ),
        ("reference/resources.md", format!("a node of {node} bytes")),
        (
            "reference/tiled-os.md",
            format!("A capability costs {node} bytes"),
        ),
        (
            "quotas.md",
            format!(
                "An object costs {node} bytes, an activity {PLACE_COST}. Without a limit, an application gets 4 KiB for the objects that it causes itself, which is enough for {objects}."
            ),
        ),
    ] {
        assert!(page(name).contains(&said), "{name} does not say: {said}");
    }
}

/// The table of calls in the reference states the bounds that tests hold the kernel to.
#[test]
fn the_book_says_what_calls_cost_at_most() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/reference/tiled-os.md"
    );
    let page = std::fs::read_to_string(path).expect("the page is there");
    let mut rows: Vec<(String, costs::Bound)> = (0..64)
        .filter_map(Number::from_code)
        .map(|number| (format!("| `{number:?}` |"), costs::of(number)))
        .collect();
    for (what, bound) in [
        ("what a server agreed to", costs::AGREEMENT),
        ("a late reply, which may take an event", costs::REPLY),
        ("a step of making an activity or a window", costs::MAKING),
        (
            "a step of a revocation, of loading or of clearing",
            costs::REVOCATION,
        ),
    ] {
        rows.push((format!("| {what} |"), bound));
    }
    let wrong: Vec<String> = rows
        .into_iter()
        .map(|(name, bound)| format!("{name} {} | {} |", bound.nodes, bound.effects))
        .filter(|row| !page.lines().any(|line| line.starts_with(row)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
