//! `bulkhead audit`.

use super::{Outcome, print_json, say};
use crate::arguments::Audit;
use crate::progress::Bars;
use bulkhead_runner::audit::{self, text};
use std::path::PathBuf;

/// Checks the domains of a system against adversaries, writes the page, prints the verdicts.
pub fn audit(options: &Audit) -> Outcome {
    let mut wanted = audit::Options::new(&options.system);
    wanted.overrides.clone_from(&options.set);
    wanted.variant.clone_from(&options.variant);
    wanted.domains.clone_from(&options.domain);
    wanted.searches = options.searches;
    wanted.seed = options.seed;
    wanted.time = audit::time(&options.time)?;
    let finished = audit::audit(&wanted, &Bars::new())?;
    let folder = options
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("out").join(format!("audit-{}", finished.result.system)));
    let written = finished.write(&folder)?;
    if options.json {
        print_json(&finished.result)?;
    } else {
        let mut text = text::summary(&finished.result);
        text.push_str(&format!("\nFiles in {}:\n", folder.display()));
        for path in written {
            text.push_str(&format!(
                "  {}\n",
                path.file_name().unwrap_or_default().to_string_lossy()
            ));
        }
        say(&text);
    }
    Ok(finished.code())
}
