//! `bulkhead audit`.

use super::{Outcome, print_json, results, say_with_files};
use crate::arguments::Audit;
use crate::progress::Bars;
use bulkhead_experiments::audit;
use bulkhead_report::audit::text;

/// Checks the domains of a system against adversaries, writes the page, prints the verdicts.
pub fn audit(options: &Audit) -> Outcome {
    let mut wanted = audit::Options::new(&options.system);
    wanted.overrides.clone_from(&options.set);
    wanted.variant.clone_from(&options.variant);
    wanted.domains.clone_from(&options.domain);
    wanted.attacks.clone_from(&options.attack);
    wanted.searches = options.searches;
    wanted.seed = options.seed;
    wanted.time = audit::time(&options.time)?;
    let folder = results(options.out.as_deref())?;
    let finished = audit::audit(&wanted, &Bars::new())?;
    let folder = folder(format!("audit-{}", finished.result.system));
    let written = finished.write(&folder)?;
    if options.json {
        print_json(&finished.result)?;
    } else {
        say_with_files(&text::summary(&finished.result), &folder, &written);
    }
    Ok(finished.code())
}
