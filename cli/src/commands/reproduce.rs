//! `bulkhead reproduce`.

use super::{Outcome, print_json, say};
use crate::arguments::{Figure, Paper, Reproduce};
use crate::progress::Bars;
use bulkhead_experiments::reproduce::m3 as reproduce;
use bulkhead_runner::{Error, place};

/// Runs the experiments.
pub fn reproduce(options: &Reproduce) -> Outcome {
    let Paper::M3 = options.paper;
    place::writable(&options.out)?;
    let wants = |figure| options.figure.is_none_or(|one| one == figure);
    let wanted = reproduce::Wanted {
        table1: wants(Figure::Table1),
        figure3: wants(Figure::Figure3),
        figure4: wants(Figure::Figure4),
        figure5: wants(Figure::Figure5),
        figure6: wants(Figure::Figure6),
        attacks: wants(Figure::Attacks),
        regulation: wants(Figure::Regulation),
        quick: options.quick,
    };
    let all = reproduce::m3(wanted, &Bars::new())?;
    let page = reproduce::report(&all, &place::pages(&options.out)?)?;
    place::write(&options.out.join("report.html"), page)?;
    let json = serde_json::to_string_pretty(&all)
        .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
    place::write(&options.out.join("result.json"), json)?;
    if options.json {
        print_json(&all)?;
    } else {
        say(&format!(
            "{}\nFiles in {}:\n  report.html\n  result.json",
            reproduce::summary(&all),
            options.out.display()
        ));
    }
    Ok(all.code())
}
