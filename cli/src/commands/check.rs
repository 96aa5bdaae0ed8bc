//! `bulkhead check`.

use super::{Outcome, print_json, say};
use crate::arguments::Check;
use bulkhead_runner::{place, run};
use serde_json::json;

/// Validates a description and says what is in it.
pub fn check(options: &Check) -> Outcome {
    let (system, _) = run::load(&options.system, &options.set, &place::root()?)?;
    let variants = run::variants(&system, &[])?;
    if options.json {
        let names: Vec<&str> = variants.iter().map(|(name, _)| name.as_str()).collect();
        print_json(&json!({
            "system": system.name, "platform": system.platform.name, "applications": system.apps.len(),
            "flows": system.flows.len(), "variants": names,
        }))?;
        return Ok(0);
    }
    let mut text = format!(
        "{} on {}: {} applications, {} flows, valid\n",
        system.name,
        system.platform.name,
        system.apps.len(),
        system.flows.len()
    );
    for (name, variant) in &variants {
        text.push_str(&format!(
            "  variant {name}: {} applications, {}\n",
            variant.apps.len(),
            variant.duration
        ));
    }
    say(&text);
    Ok(0)
}
