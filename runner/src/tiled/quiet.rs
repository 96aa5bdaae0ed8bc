//! A system in which only some applications do something.
//!
//! Why it exists: only a run without the others shows what they cost, and such a run must be the same in everything else: the same start,
//! the same addresses, the same rights. So the others are present but asleep. What it deliberately does not know: what is measured.

use crate::tiled::attack::{NEVER, Plan};
use bulkhead_model::System;
use bulkhead_model::system::Argument;

/// Program that replaces the others.
pub const ADVERSARY: &str = "adversary/any";
/// The same for the holder of a network card.
pub const ADVERSARY_WITH_CARD: &str = "adversary/card";

/// Replaces all applications that `keeps` does not contain with sleeping adversaries. They keep tiles, memory, limits and gates, because
/// an attacker in their place would have them. Returns the indices of the replaced applications.
pub fn others(system: &mut System, keeps: impl Fn(usize) -> bool) -> Vec<usize> {
    system.variants.clear();
    let mut replaced = Vec::new();
    for (index, app) in system.apps.iter_mut().enumerate() {
        if keeps(index) {
            continue;
        }
        if app.is_unit() {
            // This is logic, not software: it cannot be taken over, but its clients are.
            app.background = true;
            continue;
        }
        replaced.push(index);
        app.program = ADVERSARY.to_owned();
        app.arguments = vec![Argument {
            name: "plan".to_owned(),
            value: Plan::only(0, 0).text(NEVER),
        }];
        app.task = None;
        app.background = true;
    }
    // Without anything to wait for, the system would end immediately.
    let mut own = system.apps.iter().enumerate().filter(|(i, _)| keeps(*i));
    if own.all(|(_, app)| app.background) {
        let own = system.apps.iter_mut().enumerate();
        for (_, app) in own.filter(|(index, _)| keeps(*index)) {
            app.background = false;
        }
    }
    let flows = std::mem::take(&mut system.flows);
    system.flows = flows
        .into_iter()
        .filter(|flow| keeps(flow.from) && keeps(flow.to))
        .collect();
    replaced
}
