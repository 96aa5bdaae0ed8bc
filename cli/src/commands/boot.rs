//! `bulkhead boot`.

use super::{Outcome, print_json, say_as_it_is};
use crate::arguments::Boot;
use crate::progress::Bars;
use bulkhead_model::{LoadOptions, input, load_platform};
use bulkhead_report::format::grouped;
use bulkhead_runner::bare as boot;
use bulkhead_runner::oneshot::tick;

/// Maximum bytes of an ELF file that is examined: images of the one-shot RTOS have 32 KiB and their names and lines.
const MOST: u64 = 64 << 20;

/// Boots a program and reports the outcome.
pub fn boot(options: &Boot) -> Outcome {
    let on = options.on.iter();
    let others: Vec<_> = on.map(|(a, b, elf)| (*a, *b, elf.as_path())).collect();
    let booted = boot::boot(
        &boot::Options {
            elf: &options.elf,
            others: &others,
            platform: &options.platform,
            overrides: &options.set,
            max_cycles: options.max_cycles,
            trace: options.trace.as_deref(),
        },
        &Bars::new(),
    )?;
    if options.json {
        print_json(&booted)?;
        return Ok(booted.code);
    }
    let mut text = String::new();
    // Only the host can know it.
    let load = LoadOptions::with_changes(&options.set);
    let platform = load_platform(&options.platform, &load)?;
    // A larger file is no such image.
    if let Ok(image) = input::read(&options.elf, MOST)
        && let Some(note) = tick::unusual(&image, &platform)
    {
        text.push_str(&format!("Note: {note}\n"));
    }
    text.push_str(&booted.console);
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
    // The program has the terminal to itself, as on a serial line.
    say_as_it_is(&text);
    Ok(booted.code)
}
