//! A reproduction as text and as a page.
//!
//! What it deliberately does not know: how it was measured.

use super::{Reproduced, Slowdown, WORKLOADS, more};
use crate::error::Error;
use crate::report::page::{page, picture};
use crate::report::plot::{Axes, Bar, Mark, Series, bars, chart};
use crate::report::table::{plain, render};
use maud::{Markup, html};
use std::fmt::Write;

fn names(workload: &str) -> &str {
    match workload {
        "compute" => "computation",
        "accesses" => "memory accesses",
        "messages" => "message passing",
        "transfers" => "memory transfers",
        other => other,
    }
}

/// A reproduction for the terminal.
pub fn summary(all: &Reproduced) -> String {
    let mut out = String::new();
    if !all.round_trips.is_empty() {
        let mut table = plain(&[
            "name",
            "of",
            "steady",
            "mean",
            "p99",
            "min",
            "max",
            "deviation",
        ]);
        for one in &all.round_trips {
            let d = &one.all;
            let mut row = vec![
                one.platform.clone(),
                "Bulkhead".to_owned(),
                one.steady.mean.to_string(),
            ];
            row.extend([d.mean, d.p99, d.min, d.max, d.deviation].map(|v| v.to_string()));
            table.add_row(row);
            if let Some(p) = &one.published {
                let mut row = vec![p.theirs.clone(), "paper".to_owned(), p.steady.to_string()];
                row.extend([p.average, p.p99, p.min, p.max, p.deviation].map(|v| v.to_string()));
                table.add_row(row);
            }
        }
        let _ = writeln!(
            out,
            "Table I: round trip of one byte and its reply, in cycles\n{}",
            render(&table)
        );
    }
    for (title, list) in groups(all) {
        let mut headings = vec!["name"];
        headings.extend(WORKLOADS.map(names));
        let mut table = plain(&headings);
        for foreground in WORKLOADS {
            let mut row = vec![names(foreground).to_owned()];
            row.extend(WORKLOADS.map(|background| cell(&list, foreground, background)));
            table.add_row(row);
        }
        let _ = writeln!(
            out,
            "{title}: worst slowdown of a row beside a column\n{}",
            render(&table)
        );
    }
    if !all.sweep.is_empty() {
        let limits = limits(all);
        let mut headings = vec!["name".to_owned()];
        headings.extend(limits.iter().map(|limit| format!("{limit} MiB/s")));
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut table = plain(&headings);
        for background in super::SWEPT {
            let mut row = vec![format!("beside {}", names(background))];
            row.extend(limits.iter().map(|limit| {
                all.sweep
                    .iter()
                    .find(|one| one.background == background && one.limit == Some(*limit))
                    .map_or("-".to_owned(), |one| format!("{:.3}", one.slowdown))
            }));
            table.add_row(row);
        }
        let _ = writeln!(
            out,
            "Figure 5, right: memory accesses, over the limit of each background tile\n{}",
            render(&table)
        );
    }
    out.push_str(&more::summary(all));
    let failed: Vec<_> = all.claims.iter().filter(|claim| !claim.held).collect();
    let _ = writeln!(
        out,
        "Claims: {} hold, {} fail",
        all.claims.len() - failed.len(),
        failed.len()
    );
    for claim in failed {
        let _ = writeln!(out, "  fails: {}", claim.what);
    }
    out
}

fn limits(all: &Reproduced) -> Vec<u64> {
    let mut limits: Vec<u64> = all.sweep.iter().filter_map(|one| one.limit).collect();
    limits.sort_unstable();
    limits.dedup();
    limits
}

/// Matrices: a title and its slowdowns.
fn groups(all: &Reproduced) -> Vec<(String, Vec<&Slowdown>)> {
    let mut groups = Vec::new();
    for platform in ["tiled-gem5", "tiled-fpga"] {
        let list: Vec<&Slowdown> = all
            .unregulated
            .iter()
            .filter(|one| one.platform == platform)
            .collect();
        if !list.is_empty() {
            groups.push((format!("Figure 4, {platform}, no regulation"), list));
        }
    }
    if let Some(limit) = all.regulated.first().and_then(|one| one.limit) {
        groups.push((
            format!("Figure 5, left, background limited to {limit} MiB/s a tile"),
            all.regulated.iter().collect(),
        ));
    }
    groups
}

fn cell(list: &[&Slowdown], foreground: &str, background: &str) -> String {
    list.iter()
        .find(|one| one.foreground == foreground && one.background == background)
        .map_or("-".to_owned(), |one| match one.published {
            Some(published) => format!("{:.3} (paper {published})", one.slowdown),
            None => format!("{:.3}", one.slowdown),
        })
}

/// The page.
pub fn report(all: &Reproduced) -> Result<String, Error> {
    let mut sections: Vec<Markup> = Vec::new();
    if !all.round_trips.is_empty() {
        sections.push(round_trips(all)?);
    }
    for (title, list) in groups(all) {
        sections.push(matrix(&title, &list)?);
    }
    if !all.sweep.is_empty() {
        sections.push(sweep(all)?);
    }
    sections.extend(more::sections(all)?);
    let body = html! {
        h1 { "M3 beside Bulkhead" }
        p.soft { (all.source) ". Only values that the paper's text or tables state stand here as the paper's; its plots were not measured." }
        table {
            tr { th.text { "claim" } th.text { "" } }
            @for claim in &all.claims {
                tr { td.text { (claim.what) } td.text { @if claim.held { span.good { "holds" } } @else { span.bad { "FAILS" } } } }
            }
        }
        @for section in sections { (section) }
    };
    Ok(page("M3 beside Bulkhead", &body))
}

fn round_trips(all: &Reproduced) -> Result<Markup, Error> {
    let parts = ["Bulkhead".to_owned(), "paper".to_owned()];
    let rows: Vec<Bar> = all
        .round_trips
        .iter()
        .map(|one| Bar {
            name: one.platform.clone(),
            parts: vec![
                one.steady.mean as f64,
                one.published.as_ref().map_or(0.0, |p| p.steady as f64),
            ],
        })
        .collect();
    let svg = bars("steady round trip in cycles", &parts, &rows, false)?;
    Ok(html! {
        h2 { "Table I: round trip of a message of one byte and its reply" }
        div.scroll { table {
            tr { th.text { "platform" } th.text { "of" } th { "steady" } th { "mean" } th { "p99" } th { "min" } th { "max" } th { "deviation" } }
            @for one in &all.round_trips {
                tr { td.text { (one.platform) } td.text { "Bulkhead" } td { (one.steady.mean) } td { (one.all.mean) } td { (one.all.p99) } td { (one.all.min) } td { (one.all.max) } td { (one.all.deviation) } }
                @if let Some(p) = &one.published {
                    tr.soft { td.text { (p.theirs) } td.text { "paper" } td { (p.steady) } td { (p.average) } td { (p.p99) } td { (p.min) } td { (p.max) } td { (p.deviation) } }
                }
            }
        } }
        p.soft { "In cycles. Steady: mean without outliers as in box plots; everything else with the cold start." }
        (picture(svg))
    })
}

fn matrix(title: &str, list: &[&Slowdown]) -> Result<Markup, Error> {
    let parts: Vec<String> = WORKLOADS
        .iter()
        .map(|b| format!("beside {}", names(b)))
        .collect();
    let rows: Vec<Bar> = WORKLOADS
        .iter()
        .map(|foreground| Bar {
            name: names(foreground).to_owned(),
            parts: WORKLOADS
                .iter()
                .map(|background| {
                    list.iter()
                        .find(|one| one.foreground == *foreground && one.background == *background)
                        .map_or(0.0, |one| one.slowdown)
                })
                .collect(),
        })
        .collect();
    let svg = bars(
        "worst run, relative to the worst run alone",
        &parts,
        &rows,
        false,
    )?;
    Ok(html! {
        h2 { (title) }
        div.scroll { table {
            tr { th.text { "measured" } @for background in WORKLOADS { th { "beside " (names(background)) } } }
            @for foreground in WORKLOADS {
                tr { td.text { (names(foreground)) } @for background in WORKLOADS { td { (cell(list, foreground, background)) } } }
            }
        } }
        (picture(svg))
    })
}

fn sweep(all: &Reproduced) -> Result<Markup, Error> {
    let series: Vec<Series> = super::SWEPT
        .iter()
        .map(|background| Series {
            name: format!("beside {}", names(background)),
            points: all
                .sweep
                .iter()
                .filter(|one| one.background == *background)
                .filter_map(|one| Some((one.limit? as f64, one.slowdown)))
                .collect(),
        })
        .collect();
    let axes = Axes {
        x: "limit of each background tile in MiB/s",
        y: "slowdown of memory accesses",
        log_x: true,
        legend_below: false,
        levels: vec![("undisturbed".to_owned(), 1.0)],
    };
    Ok(html! {
        h2 { "Figure 5, right: memory accesses over the limit of the background" }
        (picture(chart(&axes, &series, Mark::Line)?))
    })
}
