//! `bulkhead boot`.

use super::{Outcome, print_json, say};
use crate::arguments::Boot;
use crate::progress::Bars;
use bulkhead_report::format::grouped;
use bulkhead_runner::bare as boot;

/// Boots a program and reports the outcome.
pub fn boot(options: &Boot) -> Outcome {
    let on = options.on.iter();
    let others: Vec<_> = on.map(|(a, b, elf)| (*a, *b, elf.as_path())).collect();
    let booted = boot::boot(
        &boot::Options {
            elf: &options.elf,
            others: &others,
            platform: &options.platform,
            max_cycles: options.max_cycles,
            trace: options.trace.as_deref(),
        },
        &Bars::new(),
    )?;
    if options.json {
        print_json(&booted)?;
        return Ok(booted.code);
    }
    let mut text = booted.console.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("{}\n", booted.end));
    if let Some(crash) = &booted.crash {
        text.push_str(&crash.text());
    }
    text.push_str(&format!("{:>16}  cycles\n", grouped(booted.cycles)));
    text.push_str(&format!(
        "{:>16}  instructions\n",
        grouped(booted.instructions)
    ));
    for counter in booted
        .counters
        .iter()
        .filter(|counter| !counter.name.ends_with("cycles"))
    {
        text.push_str(&format!(
            "{:>16}  {}\n",
            grouped(counter.value),
            counter.name
        ));
    }
    if let Some(path) = &options.trace {
        text.push_str(&format!("trace: {}\n", path.display()));
    }
    say(&text);
    Ok(booted.code)
}
