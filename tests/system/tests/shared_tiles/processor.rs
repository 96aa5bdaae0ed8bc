//! Processor time in the ledger: the waits match the schedule, and nobody can lie about them.

use bulkhead_report::result::VariantResult;
use bulkhead_system_tests::shared_tiles::{boot, elapsed, spans, system, variant};

/// The applications for which an activity waited at the hart, and how long.
fn waits<'a>(seen: &'a VariantResult, victim: &str, resource: &str) -> Vec<(&'a str, u64)> {
    let all = seen.interference.iter();
    all.filter(|entry| entry.victim == victim && entry.resource == resource)
        .map(|entry| (entry.culprit.as_str(), entry.ticks))
        .collect()
}

fn of(waits: &[(&str, u64)], culprit: &str) -> u64 {
    let found = waits.iter().find(|(name, _)| *name == culprit);
    found.map_or(0, |(_, ticks)| *ticks)
}

fn near(got: u64, expected: u64, percent: u64) -> bool {
    got.abs_diff(expected) * 100 <= expected * percent
}

#[test]
fn waits_for_the_hart_are_what_the_schedule_says() {
    let result = boot(system("processor"), &[]);
    let seen = |name| variant(&result, name);
    // Its manager's requests are what it takes to start it, a 750th of its time at most; nobody else requests anything.
    let work = |name| {
        let mut all = waits(seen(name), "work", "processor");
        let start = of(&all, "root");
        assert!(
            start > 0 && start * 750 < elapsed(seen("alone"), "work"),
            "{all:?}"
        );
        all.retain(|(culprit, _)| *culprit != "root");
        all
    };
    let mux = "TileMux of tile 2";
    for name in ["alone", "spin", "liar", "hungry"] {
        println!("{name}: {:?}", work(name));
        println!("patient: {:?}", waits(seen(name), "patient", "processor"));
    }
    // Alone, only TileMux is in the way: where the program starts and ends (9701 cycles, 7737 before TileMux accounted for its own time),
    // and never while it computes.
    let undisturbed = &spans(seen("alone"), "work").latency;
    assert_eq!(undisturbed.min, undisturbed.max, "{undisturbed:?}");
    let alone = work("alone");
    assert_eq!(alone.len(), 1, "{alone:?}");
    assert!(
        alone[0].1 * 800 < elapsed(seen("alone"), "work"),
        "{alone:?}"
    );
    // An application that takes longer because of others' slices waits exactly for them; the rest is due to the caches.
    let longer = elapsed(seen("spin"), "work") - elapsed(seen("alone"), "work");
    let spin = work("spin");
    assert_eq!(spin.len(), 2, "{spin:?}");
    // While it starts, until its first span, and after its last one it waits for a few more slices.
    let slice = result.ticks_per_second / 5000;
    let waited = of(&spin, "spin") + of(&spin, mux);
    assert!(
        (longer..longer + 4 * slice).contains(&waited),
        "{longer}: {spin:?}"
    );
    assert!(of(&spin, mux) * 50 < of(&spin, "spin"), "{spin:?}");
    // An application that claims that others have the hart is booked all the same, under its own name.
    let liar = work("liar");
    assert_eq!(liar.len(), 2, "{liar:?}");
    assert!(
        near(of(&liar, "liar"), of(&spin, "spin"), 3),
        "{liar:?}, {spin:?}"
    );
    assert_eq!(seen("liar").incidents, seen("spin").incidents);
    let text = format!("{:?}", seen("liar").interference);
    assert!(
        !text.contains("innocent") && !text.contains("several"),
        "{text}"
    );
}

#[test]
fn the_ledger_names_who_starves_others() {
    let result = boot(system("processor"), &[]);
    let seen = variant(&result, "hungry");
    let waits = |resource| waits(seen, "patient", resource);
    let (hart, budget) = (waits("processor"), waits("processor budget"));
    println!(
        "{} of {}: {hart:?}, {budget:?}",
        seen.ticks, result.ticks_per_second
    );
    // At most six tenths of each period. The urgent one is started when the patient one has used up its first budget, because requests of
    // the kernel wait while an activity with a priority runs; it takes its six tenths out of the second budget at least once.
    let hungry = of(&hart, "hungry");
    let most = seen.ticks * 6 / 10;
    let period = result.ticks_per_second / 1000;
    assert!((period * 6 / 10..most).contains(&hungry), "{hart:?}");
    assert!(
        hart.iter()
            .all(|(name, ticks)| *name == "hungry" || ticks * 20 < hungry)
    );
    // What its own budget keeps from it is nobody else's fault.
    assert_eq!(budget.len(), 1, "{budget:?}");
    assert_eq!(budget[0].0, "own limit");
    // 900 us in each 4 ms, and there are less than two of those.
    assert!(
        (2 * period..4 * period).contains(&budget[0].1),
        "{budget:?}"
    );
    // Without the urgent one, only TileMux is in the way, and the manager that starts it.
    let alone = variant(&result, "alone");
    let alone = alone.interference.iter();
    let mut others = alone.filter(|e| e.victim == "patient" && e.resource == "processor");
    assert!(others.all(|entry| ["patient (TileMux)", "root"].contains(&entry.culprit.as_str())));
}
