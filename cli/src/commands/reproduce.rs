//! `bulkhead reproduce`.

use super::{Outcome, print_json, say};
use crate::arguments::{Figure, Paper, Reproduce};
use crate::progress::Bars;
use bulkhead_experiments::reproduce::{m2os, m3 as reproduce};
use bulkhead_runner::{Error, place};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Runs the experiments.
pub fn reproduce(options: &Reproduce) -> Outcome {
    match options.paper {
        Paper::M3 => reproduce_m3(options),
        Paper::M2os => reproduce_m2os(options),
    }
}

/// The folder for what is found.
fn folder(options: &Reproduce, paper: &str) -> PathBuf {
    let usual = || Path::new("out").join(format!("reproduce-{paper}"));
    options.out.clone().unwrap_or_else(usual)
}

fn reproduce_m2os(options: &Reproduce) -> Outcome {
    if options.figure.is_some() || options.quick {
        return Err(Error::input(
            "only m3 has figures and --quick",
            "leave them out: all tables of m2os take some seconds",
        ));
    }
    let out = folder(options, "m2os");
    place::writable(&out)?;
    let all = m2os::m2os(&Bars::new())?;
    let page = m2os::report(&all, &place::pages(&out)?)?;
    write(options, &out, page, &all, &m2os::summary(&all))?;
    Ok(all.code())
}

/// Writes page and data, and prints the one or the other.
fn write(
    options: &Reproduce,
    out: &Path,
    page: String,
    all: &impl Serialize,
    summary: &str,
) -> Result<(), Error> {
    place::write(&out.join("report.html"), page)?;
    let json = serde_json::to_string_pretty(all)
        .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
    place::write(&out.join("result.json"), json)?;
    if options.json {
        return print_json(all);
    }
    say(&format!(
        "{summary}\nFiles in {}:\n  report.html\n  result.json",
        out.display()
    ));
    Ok(())
}

fn reproduce_m3(options: &Reproduce) -> Outcome {
    let out = folder(options, "m3");
    place::writable(&out)?;
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
    let page = reproduce::report(&all, &place::pages(&out)?)?;
    write(options, &out, page, &all, &reproduce::summary(&all))?;
    Ok(all.code())
}
