//! `bulkhead run`.

use super::{Outcome, print_json, results, say_with_files};
use crate::arguments::Run;
use crate::progress::Bars;
use bulkhead_report::table;
use bulkhead_runner::run;
use bulkhead_runner::session::Window;

/// Lines of a console that are shown if something went wrong.
const TAIL: usize = 10;

/// Runs a system, writes the files, prints the table.
pub fn run(options: &Run) -> Outcome {
    let folder = results(options.out.as_deref())?;
    let finished = run::run(
        &run::Options {
            system: options.system.clone(),
            text: None,
            overrides: options.set.clone(),
            variants: options.variant.clone(),
            traces: !options.no_trace,
            window: Window {
                from: options.trace_from,
                until: options.trace_until,
                tiles: options.trace_tiles.clone(),
            },
        },
        &Bars::new(),
    )?;
    let folder = folder(finished.result.system.clone());
    let written = finished.write(&folder)?;
    if options.json {
        print_json(&finished.result)?;
    } else {
        let mut text = table::summary(&finished.result);
        text.push_str(&finished.said((!options.console).then_some(TAIL)));
        for line in finished.truncations() {
            text.push_str(&format!("\n{line}"));
        }
        say_with_files(&text, &folder, &written);
    }
    Ok(finished.code())
}
