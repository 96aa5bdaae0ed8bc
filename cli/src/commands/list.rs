//! `bulkhead platforms`, `systems` and `programs`.

use super::{Outcome, print_json, say};
use bulkhead_model::{
    LoadOptions, Programs, load_platform, load_system, platform_names, system_names,
};
use bulkhead_report::table::{plain, render};
use bulkhead_runner::place;
use bulkhead_runner::programs::Library;
use serde_json::json;
use std::path::Path;

/// Platforms with their size.
pub fn platforms(as_json: bool) -> Outcome {
    let options = LoadOptions::default();
    let mut table = plain(&["name", "tiles", "clock", "memory", "description"]);
    let mut list = Vec::new();
    for name in platform_names(&options) {
        let platform = load_platform(&name, &options)?;
        let hertz = platform
            .tiles
            .iter()
            .map(|t| t.pipeline.clock.frequency.0)
            .max()
            .unwrap_or(0);
        let bytes: u64 = platform.memories.iter().map(|m| m.size.0).sum();
        table.add_row(vec![
            name.clone(),
            format!(
                "{} + {} memory",
                platform.tiles.len(),
                platform.memories.len()
            ),
            format!("{} MHz", hertz / 1_000_000),
            format!("{} MiB", bytes >> 20),
            platform.about.clone().unwrap_or_default(),
        ]);
        list.push(json!({
            "name": name, "tiles": platform.tiles.len(), "memories": platform.memories.len(), "hertz": hertz, "bytes": bytes,
            "about": platform.about,
        }));
    }
    if as_json {
        print_json(&list)?
    } else {
        say(&render(&table))
    }
    Ok(0)
}

/// Systems and what they are about.
pub fn systems(as_json: bool) -> Outcome {
    let options = LoadOptions::default();
    let mut table = plain(&["name", "platform", "variants", "description"]);
    let mut list = Vec::new();
    for name in system_names(&options) {
        let system = load_system(&name, &options)?;
        let about = system.about.clone().unwrap_or_default();
        table.add_row(vec![
            name.clone(),
            system.platform.name.clone(),
            system.variants.len().max(1).to_string(),
            about.clone(),
        ]);
        list.push(json!({
            "name": name, "platform": system.platform.name, "variants": system.variants.len().max(1), "about": about,
        }));
    }
    if as_json {
        print_json(&list)?
    } else {
        say(&render(&table))
    }
    Ok(0)
}

/// Programs of the checkout.
pub fn programs(as_json: bool) -> Outcome {
    let names = Library::new(&place::root()?, Path::new(""))?.names();
    if as_json {
        print_json(&names)?;
    } else {
        say(&names.join("\n"));
    }
    Ok(0)
}
