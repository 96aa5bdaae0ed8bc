//! `bulkhead reproduce`.

use super::{Outcome, print_json, say};
use crate::arguments::{Figure, Paper, Pipeline, Reproduce};
use crate::progress::Bars;
use bulkhead_experiments::reproduce::m3::pipelines::Pipelines;
use bulkhead_experiments::reproduce::{m2os, m3 as reproduce};
use bulkhead_runner::{Error, place};
use clap::ValueEnum;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Runs the experiments.
pub fn reproduce(options: &Reproduce) -> Outcome {
    match options.paper {
        Paper::M3 => reproduce_m3(options),
        Paper::M2os => reproduce_m2os(options),
    }
}

/// The folder for the results.
fn folder(options: &Reproduce, paper: &str) -> PathBuf {
    let usual = || Path::new("out").join(format!("reproduce-{paper}"));
    options.out.clone().unwrap_or_else(usual)
}

fn reproduce_m2os(options: &Reproduce) -> Outcome {
    let unknown = match (&options.figure, options.quick, options.pipeline) {
        (Some(figure), _, _) => figure.as_str(),
        (None, true, _) => "--quick",
        (None, false, Some(_)) => "--pipeline",
        (None, false, None) => "",
    };
    if !unknown.is_empty() {
        return Err(Error::input(
            format!("m2os has no `{unknown}`: its tables are measured together"),
            "leave it out; all of them take some seconds",
        ));
    }
    let out = folder(options, "m2os");
    place::writable(&out)?;
    let all = m2os::m2os(&Bars::new())?;
    let page = m2os::report(&all, &place::pages(&out)?)?;
    write(options, &out, page, &all, &m2os::summary(&all))?;
    Ok(all.code())
}

/// Writes page and data, and prints one or the other.
fn write(
    options: &Reproduce,
    out: &Path,
    page: String,
    all: &impl Serialize,
    summary: &str,
) -> Result<(), Error> {
    place::replace(&out.join("report.html"), page)?;
    let json = serde_json::to_string_pretty(all)
        .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
    place::replace(&out.join("result.json"), json)?;
    if options.json {
        return print_json(all);
    }
    say(&format!(
        "{summary}\nFiles in {}:\n  report.html\n  result.json",
        out.display()
    ));
    Ok(())
}

/// The figure of m3 with this name.
fn figure(name: &str) -> Result<Figure, Error> {
    Figure::from_str(name, true).map_err(|_| {
        let known = Figure::value_variants().iter();
        let known = known.filter_map(ValueEnum::to_possible_value);
        let known: Vec<String> = known.map(|one| one.get_name().to_owned()).collect();
        Error::input(
            format!("m3 has no figure `{name}`"),
            format!("take one of {}, or none for all", known.join(", ")),
        )
    })
}

fn reproduce_m3(options: &Reproduce) -> Outcome {
    let out = folder(options, "m3");
    place::writable(&out)?;
    let figure = options.figure.as_deref().map(figure).transpose()?;
    let beyond = matches!(figure, Some(Figure::Attacks | Figure::Regulation));
    if beyond && options.pipeline == Some(Pipeline::Interval) {
        return Err(Error::input(
            "the paper does not measure this, and it is measured in order only",
            "leave out `--pipeline`",
        ));
    }
    let wants = |one| figure.is_none_or(|figure| figure == one);
    let wanted = reproduce::Wanted {
        table1: wants(Figure::Table1),
        figure3: wants(Figure::Figure3),
        figure4: wants(Figure::Figure4),
        figure5: wants(Figure::Figure5),
        figure6: wants(Figure::Figure6),
        attacks: wants(Figure::Attacks),
        regulation: wants(Figure::Regulation),
        quick: options.quick,
        pipelines: match options.pipeline {
            Some(Pipeline::Inorder) => Pipelines::InOrder,
            Some(Pipeline::Interval) => Pipelines::OutOfOrder,
            Some(Pipeline::Both) | None => Pipelines::Both,
        },
    };
    let all = reproduce::m3(wanted, &Bars::new())?;
    let page = reproduce::report(&all, &place::pages(&out)?)?;
    write(options, &out, page, &all, &reproduce::summary(&all))?;
    Ok(all.code())
}
