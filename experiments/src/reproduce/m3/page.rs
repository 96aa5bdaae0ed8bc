//! A reproduction as text and as a page.
//!
//! What it deliberately does not know: how it was measured.

use super::beside::ASSUMPTION;
use super::defences::{self, footnote};
use super::nearer::{self, Nearer};
use super::pipelines::ALL;
use super::{Reproduced, Slowdown, WORKLOADS, differences, more};
use bulkhead_report::book::{Book, M3};
use bulkhead_report::distribution::{note, shown};
use bulkhead_report::page::{page, picture};
use bulkhead_report::plot::{Axes, Bar, Mark, Series, bars, chart};
use bulkhead_report::table::{plain, render};
use bulkhead_runner::error::Error;
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
    let mut out = format!("{}\n", all.verdict().head(&[]));
    if !all.round_trips.is_empty() {
        let mut table = plain(&TABLE_ONE);
        for (_, row) in table_one(all) {
            table.add_row(row);
        }
        let _ = writeln!(
            out,
            "Table I: round trip of one byte and its reply, in cycles\n{}",
            render(&table)
        );
        let note = footnote(all.round_trips.iter().map(|one| &one.bound));
        let note = note.map_or(String::new(), |note| format!("{note} "));
        let _ = writeln!(out, "{note}{}", message_text(all));
        for line in table_one_notes(all) {
            let _ = writeln!(out, "  {line}");
        }
        out.push('\n');
    }
    for (title, list) in groups(all) {
        let mut headings = vec!["name"];
        headings.extend(WORKLOADS.map(names));
        let mut table = plain(&headings);
        for foreground in WORKLOADS {
            let mut row = vec![names(foreground).to_owned()];
            row.extend(WORKLOADS.map(|background| cell(&list, foreground, background)));
            table.add_row(row);
            let mut row = vec!["  bound".to_owned()];
            row.extend(WORKLOADS.map(|background| bound(&list, foreground, background)));
            table.add_row(row);
        }
        let _ = writeln!(
            out,
            "{title}: worst slowdown of a row beside a column\n{}",
            render(&table)
        );
        for line in notes(all, &title, &list) {
            let _ = writeln!(out, "  {line}");
        }
    }
    for (platform, list) in sweeps(all) {
        let limits = limits(&list);
        let mut headings = vec!["name".to_owned()];
        headings.extend(limits.iter().map(|limit| format!("{limit} MiB/s")));
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut table = plain(&headings);
        for row in swept(&list, &limits) {
            table.add_row(row);
        }
        let _ = writeln!(
            out,
            "Figure 5, right, {platform}: memory accesses, over the limit of each background tile\n{}",
            render(&table)
        );
    }
    out.push_str(&more::summary(all));
    out.push_str(&both(all));
    out.push_str(&defences::summary(all));
    let _ = writeln!(out, "{ASSUMPTION}");
    out
}

/// A figure for a table: three digits behind the point, unless it is a whole number.
fn figure(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.3}"),
    }
}

/// Columns of the comparison of the pipelines.
const PIPELINES: [&str; 6] = ["name", "of", "in order", "out of order", "paper", "nearer"];

/// Every figure that the paper states, with both pipelines'.
fn compared(all: &Reproduced) -> Vec<Vec<String>> {
    let ours = |value: Option<f64>| value.map_or("-".to_owned(), figure);
    let rows = nearer::figures(all).into_iter().map(|one| {
        let nearer = match one.nearer() {
            Some(Nearer::InOrder) => "in order",
            Some(Nearer::OutOfOrder) => "out of order",
            Some(Nearer::Equal) => "equal",
            None => "-",
        };
        let (in_order, out_of_order) = (ours(one.in_order), ours(one.out_of_order));
        let paper = figure(one.paper);
        vec![
            one.chip,
            one.what,
            in_order,
            out_of_order,
            paper,
            nearer.to_owned(),
        ]
    });
    rows.collect()
}

/// How many figures of each chip are nearer with which pipeline, in a sentence.
fn counted(all: &Reproduced) -> Option<String> {
    let figures = nearer::figures(all);
    let count = |nearer| {
        let mut all = figures.iter().map(nearer::Compared::nearer);
        all.by_ref().filter(|one| *one == Some(nearer)).count()
    };
    let [one, other, equal] = [Nearer::InOrder, Nearer::OutOfOrder, Nearer::Equal].map(count);
    (one + other + equal > 0).then(|| {
        format!(
            "Of the figures that the paper states, {one} are nearer in order, {other} out of order, and {equal} equally near (within 1 % of the paper's)."
        )
    })
}

/// Orderings of the paper: what it says, and whether each pipeline has it.
fn ordered(all: &Reproduced) -> Vec<Vec<String>> {
    let rows = nearer::orderings(all).into_iter().map(|one| {
        let pipeline = match one.out_of_order {
            true => "out of order",
            false => "in order",
        };
        let held = if one.held { "yes" } else { "no" };
        vec![one.what, pipeline.to_owned(), held.to_owned(), one.ours]
    });
    rows.collect()
}

/// Columns of the orderings.
const ORDERINGS: [&str; 4] = ["name", "pipeline", "so", "description"];

/// Both pipelines beside the paper.
fn both(all: &Reproduced) -> String {
    let mut out = String::new();
    for (title, headings, rows) in [
        (
            "Both pipelines beside the paper's figures",
            PIPELINES.as_slice(),
            compared(all),
        ),
        (
            "Both pipelines beside what the paper says in words",
            ORDERINGS.as_slice(),
            ordered(all),
        ),
    ] {
        if rows.is_empty() {
            continue;
        }
        let mut table = plain(headings);
        for row in rows {
            table.add_row(row);
        }
        let _ = writeln!(out, "{title}\n{}", render(&table));
    }
    if let Some(text) = counted(all) {
        let _ = writeln!(out, "{text}\n");
    }
    out
}

/// The same for the page.
fn pipelines(all: &Reproduced) -> Option<Markup> {
    let (figures, orderings) = (compared(all), ordered(all));
    if figures.is_empty() && orderings.is_empty() {
        return None;
    }
    let is_text = |heading: &str| {
        matches!(
            heading,
            "name" | "of" | "nearer" | "pipeline" | "description"
        )
    };
    let part = |headings: &[&str], rows: &[Vec<String>]| {
        html! {
            div.scroll { table {
                tr { @for heading in headings { @if is_text(heading) { th.text { (heading) } } @else { th { (heading) } } } }
                @for row in rows {
                    tr { @for (heading, cell) in headings.iter().zip(row) { @if is_text(heading) { td.text { (cell) } } @else { td { (cell) } } } }
                }
            } }
        }
    };
    Some(html! {
        h2 { "Both pipelines beside the paper" }
        @if !figures.is_empty() { (part(&PIPELINES, &figures)) }
        @if let Some(text) = counted(all) { p.soft { (text) } }
        @if !orderings.is_empty() { (part(&ORDERINGS, &orderings)) }
    })
}

/// Differences from the paper, with their explanations, to go beside a matrix.
fn notes(all: &Reproduced, title: &str, list: &[&Slowdown]) -> Vec<String> {
    match (title.starts_with("Figure 4"), list.first()) {
        (true, Some(one)) => differences::beside(all, &format!("slowdown/{}/", one.platform)),
        _ => Vec::new(),
    }
}

/// Notes that a reader of Table I must know: percentiles of too few runs, and differences from the paper.
fn table_one_notes(all: &Reproduced) -> Vec<String> {
    let few = note(&[99], all.round_trips.iter().map(|one| one.all.count));
    few.into_iter()
        .chain(differences::beside(all, "round-trip/"))
        .collect()
}

/// Bounds of messages, in a sentence.
fn message_text(all: &Reproduced) -> String {
    let texts = all
        .round_trips
        .iter()
        .map(|one| format!("{} cycles on {}", one.message_bound.text(0), one.platform));
    format!(
        "A message by itself takes at most {}.",
        texts.collect::<Vec<_>>().join(", ")
    )
}

/// Rows of the sweep: slowdowns and bounds for each background, by limit.
fn swept(list: &[&Slowdown], limits: &[u64]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for background in super::SWEPT {
        let at = |limit: &u64, text: &dyn Fn(&Slowdown) -> String| {
            let mut list = list.iter();
            let found = list.find(|one| one.background == background && one.limit == Some(*limit));
            found.map_or("-".to_owned(), |one| text(one))
        };
        let row = |name: String, text: &dyn Fn(&Slowdown) -> String| {
            let mut row = vec![name];
            row.extend(limits.iter().map(|limit| at(limit, text)));
            row
        };
        let name = format!("beside {}", names(background));
        rows.push(row(name, &|one| format!("{:.3}", one.slowdown)));
        rows.push(row("  bound".to_owned(), &|one| one.bound.text(2)));
    }
    rows
}

/// The sweep by platform.
fn sweeps(all: &Reproduced) -> Vec<(&str, Vec<&Slowdown>)> {
    let of = |platform| all.sweep.iter().filter(move |one| one.platform == platform);
    let platforms = ALL
        .iter()
        .map(|platform| (*platform, of(*platform).collect()));
    platforms
        .filter(|(_, list): &(_, Vec<_>)| !list.is_empty())
        .collect()
}

/// Columns of Table I.
const TABLE_ONE: [&str; 10] = [
    "name",
    "of",
    "steady",
    "deviation",
    "mean",
    "p99",
    "min",
    "max",
    "deviation",
    "bound",
];

/// Rows of Table I, and whether they are the paper's.
fn table_one(all: &Reproduced) -> Vec<(bool, Vec<String>)> {
    let mut rows = Vec::new();
    let known = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    for one in &all.round_trips {
        let (d, steady) = (&one.all, &one.steady);
        let mut row = vec![one.platform.clone(), "Bulkhead".to_owned()];
        let text = |value: u64| value.to_string();
        row.extend([steady.mean, steady.deviation, d.mean].map(text));
        row.push(shown(99, d.count, || text(d.p99)));
        row.extend([d.min, d.max, d.deviation].map(text));
        row.push(one.bound.text(0));
        rows.push((false, row));
        if let Some(p) = &one.published {
            let mut row = vec![p.theirs.clone(), "paper".to_owned(), p.steady.to_string()];
            row.push(known(p.steady_deviation));
            row.extend([p.average, p.p99, p.min, p.max, p.deviation].map(|v| v.to_string()));
            row.push("-".to_owned());
            rows.push((true, row));
        }
    }
    for p in &all.others {
        let mut row = vec![p.theirs.clone(), "paper".to_owned(), known(p.steady)];
        row.push(known(p.steady_deviation));
        row.extend([p.average, p.p99, p.min, p.max, p.deviation].map(|v| v.to_string()));
        row.push("-".to_owned());
        rows.push((true, row));
    }
    rows
}

fn bound(list: &[&Slowdown], foreground: &str, background: &str) -> String {
    let mut list = list.iter();
    let found = list.find(|one| one.foreground == foreground && one.background == background);
    found.map_or("-".to_owned(), |one| one.bound.text(2))
}

fn limits(list: &[&Slowdown]) -> Vec<u64> {
    let mut limits: Vec<u64> = list.iter().filter_map(|one| one.limit).collect();
    limits.sort_unstable();
    limits.dedup();
    limits
}

/// Matrices: a title and its slowdowns.
fn groups<'a>(all: &'a Reproduced) -> Vec<(String, Vec<&'a Slowdown>)> {
    let mut groups = Vec::new();
    let of = |list: &'a [Slowdown], platform: &str| -> Vec<&'a Slowdown> {
        list.iter().filter(|one| one.platform == platform).collect()
    };
    for platform in ALL {
        let list = of(&all.unregulated, platform);
        if !list.is_empty() {
            groups.push((format!("Figure 4, {platform}, no regulation"), list));
        }
    }
    for platform in ALL {
        let list = of(&all.regulated, platform);
        if let Some(limit) = list.first().and_then(|one| one.limit) {
            let title =
                format!("Figure 5, left, {platform}, background limited to {limit} MiB/s a tile");
            groups.push((title, list));
        }
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

/// The page. `book`: where the book is.
pub fn report(all: &Reproduced, book: &Book) -> Result<String, Error> {
    let mut sections: Vec<Markup> = Vec::new();
    if !all.round_trips.is_empty() {
        sections.push(round_trips(all)?);
    }
    for (title, list) in groups(all) {
        sections.push(matrix(&title, &list, &notes(all, &title, &list))?);
    }
    for (platform, list) in sweeps(all) {
        sections.push(sweep(platform, &list)?);
    }
    sections.extend(more::sections(all)?);
    sections.extend(pipelines(all));
    sections.extend(defences::sections(all)?);
    let body = html! {
        h1 { "M3 beside Bulkhead" }
        p.soft { (all.source) ". Values are given as the paper's only if its text or tables state them; none was read off its plots." }
        (all.verdict().markup(&[]))
        p.soft { (ASSUMPTION) }
        @for section in sections { (section) p.soft { (book.more(M3)) } }
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
                one.published.as_ref().map_or(f64::NAN, |p| p.steady as f64),
            ],
        })
        .collect();
    let svg = bars("steady round trip in cycles", &parts, &rows, false)?;
    Ok(html! {
        h2 { "Table I: round trip of a message of one byte and its reply" }
        div.scroll { table {
            tr { @for (index, heading) in TABLE_ONE.iter().enumerate() { @if index < 2 { th.text { (heading) } } @else { th { (heading) } } } }
            @for (paper, row) in table_one(all) {
                tr.soft[paper] { @for (index, cell) in row.iter().enumerate() { @if index < 2 { td.text { (cell) } } @else { td { (cell) } } } }
            }
        } }
        p.soft { "In cycles. Steady, and the deviation after it, leave out outliers as box plots do; all other columns include the cold start. "
            (footnote(all.round_trips.iter().map(|one| &one.bound)).unwrap_or_default()) " " (message_text(all)) }
        ul { @for line in table_one_notes(all) { li { (line) } } }
        (picture(svg))
    })
}

fn matrix(title: &str, list: &[&Slowdown], notes: &[String]) -> Result<Markup, Error> {
    // With limits, every factor is close to 1, and the rest is an overhead.
    let limited = list.iter().any(|one| one.limit.is_some());
    let height = |slowdown: f64| {
        if limited {
            (slowdown - 1.0) * 100.0
        } else {
            slowdown
        }
    };
    let label = match limited {
        true => "overhead of the worst run over the worst run alone, in %",
        false => "worst run, relative to the worst run alone",
    };
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
                        .map_or(f64::NAN, |one| height(one.slowdown))
                })
                .collect(),
        })
        .collect();
    let svg = bars(label, &parts, &rows, false)?;
    Ok(html! {
        h2 { (title) }
        div.scroll { table {
            tr { th.text { "measured" } @for background in WORKLOADS { th { "beside " (names(background)) } } }
            @for foreground in WORKLOADS {
                tr { td.text { (names(foreground)) } @for background in WORKLOADS { td { (cell(list, foreground, background)) } } }
                tr.soft { td.text { "bound" } @for background in WORKLOADS { td { (bound(list, foreground, background)) } } }
            }
        } }
        @if !notes.is_empty() { ul { @for line in notes { li { (line) } } } }
        (picture(svg))
    })
}

fn sweep(platform: &str, list: &[&Slowdown]) -> Result<Markup, Error> {
    let series: Vec<Series> = super::SWEPT
        .iter()
        .map(|background| Series {
            name: format!("beside {}", names(background)),
            points: list
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
        levels: vec![("undisturbed".to_owned(), 1.0)],
        ..Axes::default()
    };
    let limits = limits(list);
    Ok(html! {
        h2 { "Figure 5, right, " (platform) ": memory accesses over the limit of the background" }
        div.scroll { table {
            tr { th.text { "MiB/s" } @for limit in &limits { th { (limit) } } }
            @for (index, row) in swept(list, &limits).iter().enumerate() {
                tr.soft[index % 2 == 1] { @for cell in row { td { (cell) } } }
            }
        } }
        (picture(chart(&axes, &series, Mark::Line)?))
    })
}
