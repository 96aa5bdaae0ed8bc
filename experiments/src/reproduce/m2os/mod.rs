//! Tables 1 to 6 of m2os-mc-ngres21 beside ours.
//!
//! Why it exists: a system that claims to be the paper's must do what the paper's does, and say what it costs. What it deliberately does
//! not know: how to bring a result closer to a figure; it runs the programs of `workloads/one-shot` and reads the paper's figures from
//! `catalog/figures/m2os.json`.

pub mod beyond;
pub mod parallel;

use beyond::Comparison;
use bulkhead_report::book::{Book, M2OS};
use bulkhead_report::distribution::distribution;
use bulkhead_report::page::{page, picture};
use bulkhead_report::plot::{Axes, Mark, Series, chart};
use bulkhead_report::result::Distribution;
use bulkhead_report::table::{plain, render};
use bulkhead_report::verdict::{Promise, Verdict};
use bulkhead_runner::error::Error;
use bulkhead_runner::oneshot::measured::{Spans, footprint, spans};
use bulkhead_runner::progress::Progress;
use maud::{Markup, html};
use parallel::Section;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Our platform.
const PLATFORM: &str = "epiphany3";
/// Its clock, which is the paper's, in cycles per microsecond.
const MEGAHERTZ: f64 = 600.0;
/// Maximum cycles of any of the programs.
const CYCLES: u64 = 2_000_000_000;
/// Cores one to six hops from the first one.
pub const TARGETS: [u16; 6] = [1, 2, 3, 7, 11, 15];
/// Effects that the platform does not show.
const LIMITS: &str = "Not shown: the paper's instruction set with its two issue slots and 64 registers, and its chip's library. The figures compare \
     designs and not cores. A write here waits for an acknowledgement, which Epiphany does not have; a hop takes 1.5 cycles in each direction on both.";

/// The paper's figures.
#[derive(Clone, Debug, Deserialize)]
struct Figures {
    source: String,
    rows: Vec<Figure>,
    sizes: Vec<SizeFigure>,
}

/// A figure in the paper. `id`: the program and the number of its span.
#[derive(Clone, Debug, Deserialize)]
struct Figure {
    id: String,
    table: String,
    what: String,
    min_ns: f64,
    average_ns: f64,
    max_ns: f64,
    why: String,
}

/// A row of Table 3.
#[derive(Clone, Debug, Deserialize)]
struct SizeFigure {
    program: String,
    what: String,
    text: u64,
    data: u64,
    bss: u64,
    why: String,
}

/// A time and the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `Table 1`.
    pub table: String,
    /// The operation.
    pub what: String,
    /// Ours, in cycles of 600 MHz.
    pub ours: Distribution,
    /// Our mean in nanoseconds.
    pub ours_ns: f64,
    /// The paper's least, average and greatest in nanoseconds.
    pub paper_ns: [f64; 3],
    /// Our mean divided by the paper's average, minus one, in percent.
    pub difference: f64,
    /// Why it differs, if it differs by more than a tenth.
    pub why: Option<String>,
}

/// A size and the paper's, in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Size {
    /// The thing that has this size.
    pub what: String,
    /// Ours: code and constants, data, zeroed data.
    pub ours: [u64; 3],
    /// In addition: stack and console.
    pub beside: [u64; 2],
    /// The paper's: text, data, bss.
    pub paper: [u64; 3],
    /// Why it differs.
    pub why: String,
}

/// All results and the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// The paper.
    pub source: String,
    /// Tables 1, 2, 4, 5 and 6.
    pub rows: Vec<Row>,
    /// Table 3.
    pub sizes: Vec<Size>,
    /// Beyond the paper: parallel sections.
    pub sections: Vec<Section>,
    /// Beyond the paper: what else is compared.
    pub comparisons: Vec<Comparison>,
    /// Whether ours are at most the paper's, and what is beyond the paper is within its bounds.
    pub verdict: Verdict,
}

impl Reproduced {
    /// Exit code of the command.
    pub fn code(&self) -> u8 {
        self.verdict.code(false)
    }
}

/// Runs the paper's tests, parallel sections, and what else is beyond the paper.
///
/// # Errors
/// If one cannot be run.
pub fn m2os(progress: &dyn Progress) -> Result<Reproduced, Error> {
    let (sections, promises) = parallel::sections(progress)?;
    let papers = papers(progress)?;
    let (comparisons, others) = beyond::beyond(progress)?;
    let all = papers.verdict.promises().iter().cloned();
    let all = all.chain(promises).chain(others);
    Ok(Reproduced {
        sections,
        comparisons,
        verdict: Verdict::of(all.collect()),
        ..papers
    })
}

/// Runs the paper's tests.
fn papers(progress: &dyn Progress) -> Result<Reproduced, Error> {
    let text = include_str!("../../../../catalog/figures/m2os.json");
    let figures: Figures = serde_json::from_str(text)
        .map_err(|error| Error::Machine(format!("catalog/figures/m2os.json: {error}")))?;
    let beside = |first: &'static str, other: &'static str| {
        let others = TARGETS.map(|tile| (tile, other));
        [&[(0, first)][..], &others].concat()
    };
    let run = |placed: &[(u16, &str)]| spans(PLATFORM, placed, CYCLES, progress);
    let seen: BTreeMap<&str, Spans> = BTreeMap::from([
        ("switches", run(&[(0, "one-shot/switches-mesh")])?),
        (
            "ports",
            run(&beside("one-shot/port-times", "one-shot/port-owner"))?,
        ),
        (
            "trips",
            run(&beside("one-shot/round-trip", "one-shot/port-answer"))?,
        ),
    ]);
    let rows: Vec<Row> = figures
        .rows
        .iter()
        .map(|figure| row(figure, &seen))
        .collect::<Result<_, _>>()?;
    let mut sizes = Vec::new();
    for figure in &figures.sizes {
        let ours = footprint(&figure.program)?;
        sizes.push(Size {
            what: figure.what.clone(),
            ours: [ours.text, ours.data, ours.bss],
            beside: [ours.stack, ours.ring],
            paper: [figure.text, figure.data, figure.bss],
            why: figure.why.clone(),
        });
    }
    let times = rows.iter().map(|row| {
        let what = format!(
            "{}, {}: at most the paper's {:.1} ns",
            row.table, row.what, row.paper_ns[1]
        );
        Promise::judged("", what, row.ours_ns <= row.paper_ns[1])
    });
    let bytes = sizes.iter().map(|size| {
        let (ours, paper): (u64, u64) = (size.ours.iter().sum(), size.paper.iter().sum());
        let what = format!(
            "Table 3, {}: {ours} bytes; at most the paper's {paper} are allowed",
            size.what
        );
        Promise::judged("", what, ours <= paper)
    });
    let verdict = Verdict::of(times.chain(bytes).collect());
    Ok(Reproduced {
        source: figures.source,
        rows,
        sizes,
        sections: Vec::new(),
        comparisons: Vec::new(),
        verdict,
    })
}

fn row(figure: &Figure, seen: &BTreeMap<&str, Spans>) -> Result<Row, Error> {
    let missing = || Error::Machine(format!("nothing was measured for {}", figure.id));
    let (program, number) = figure.id.split_once('/').ok_or_else(missing)?;
    let number: u64 = number.parse().map_err(|_| missing())?;
    let cycles = seen.get(program).and_then(|spans| spans.get(&number));
    let cycles = cycles.ok_or_else(missing)?;
    let sum: u64 = cycles.iter().sum();
    let ours_ns = sum as f64 / cycles.len().max(1) as f64 * 1000.0 / MEGAHERTZ;
    let difference = (ours_ns / figure.average_ns - 1.0) * 100.0;
    Ok(Row {
        table: figure.table.clone(),
        what: figure.what.clone(),
        ours: distribution(cycles.iter().copied()),
        ours_ns,
        paper_ns: [figure.min_ns, figure.average_ns, figure.max_ns],
        difference,
        why: (difference.abs() > 10.0).then(|| figure.why.clone()),
    })
}

/// Nanoseconds of cycles.
fn nanoseconds(cycles: u64) -> f64 {
    cycles as f64 * 1000.0 / MEGAHERTZ
}

const TIMES: [&str; 8] = [
    "what",
    "min",
    "average",
    "max",
    "paper min",
    "average",
    "max",
    "difference",
];
const SIZES: [&str; 9] = [
    "what",
    "text",
    "data",
    "bss",
    "together",
    "paper",
    "difference",
    "stack",
    "console",
];

/// The title of the table of sections.
const BEYOND: &str = "Beyond the paper: parallel sections, in cycles of 600 MHz";
const SECTIONS: [&str; 9] = [
    "what",
    "cores",
    "section: min",
    "max",
    "speed-up",
    "longest response",
    "bound",
    "waits (us)",
    "blocks right",
];

fn section_cells(section: &Section) -> Vec<String> {
    let [worst, bound] = section.response;
    let [wait, helpers] = section.waits;
    let [compared, equal] = section.compared;
    vec![
        section.what.clone(),
        section.cores.to_string(),
        section.section.min.to_string(),
        section.section.max.to_string(),
        format!("{:.2}", section.speed_up),
        worst.to_string(),
        bound.to_string(),
        match section.cores {
            1 => "-".to_owned(),
            _ => format!("{wait}; {helpers}"),
        },
        format!("{equal} of {compared}"),
    ]
}

/// The table of sections, and their speed-up by cores.
fn sections_markup(all: &Reproduced) -> Result<Markup, Error> {
    let mut series: Vec<Series> = Vec::new();
    for section in &all.sections {
        let point = (section.cores as f64, section.speed_up);
        match series.iter_mut().find(|one| one.name == section.what) {
            Some(one) => one.points.push(point),
            None => series.push(Series {
                name: section.what.clone(),
                points: vec![point],
            }),
        }
    }
    let cores = parallel::CORES.map(|cores| (cores as f64, cores as f64));
    series.push(Series {
        name: "as many times as cores".to_owned(),
        points: cores.to_vec(),
    });
    let axes = Axes {
        x: "cores",
        y: "speed-up",
        ..Axes::default()
    };
    let plot = chart(&axes, &series, Mark::Line)?;
    Ok(html! {
        h2 { (BEYOND) }
        div.scroll { table {
            tr { @for heading in SECTIONS { th { (heading) } } }
            @for section in &all.sections { tr { @for cell in section_cells(section) { td { (cell) } } } }
        } }
        (picture(plot))
    })
}

fn cells(row: &Row) -> Vec<String> {
    let [least, average, most] = row.paper_ns;
    vec![
        row.what.clone(),
        format!("{:.1}", nanoseconds(row.ours.min)),
        format!("{:.1}", row.ours_ns),
        format!("{:.1}", nanoseconds(row.ours.max)),
        format!("{least:.1}"),
        format!("{average:.1}"),
        format!("{most:.1}"),
        format!("{:+.1} %", row.difference),
    ]
}

fn size_cells(size: &Size) -> Vec<String> {
    let (ours, paper): (u64, u64) = (size.ours.iter().sum(), size.paper.iter().sum());
    let difference = (ours as f64 / paper.max(1) as f64 - 1.0) * 100.0;
    let mut cells = vec![size.what.clone()];
    cells.extend(size.ours.iter().map(u64::to_string));
    cells.extend([
        ours.to_string(),
        paper.to_string(),
        format!("{difference:+.1} %"),
    ]);
    cells.extend(size.beside.iter().map(u64::to_string));
    cells
}

/// The heads of a comparison's columns.
fn headings(comparison: &Comparison) -> Vec<&str> {
    let columns = comparison.columns.iter().map(String::as_str);
    ["what"].into_iter().chain(columns).collect()
}

/// Titles of the tables of times.
fn tables(all: &Reproduced) -> Vec<&str> {
    let mut titles: Vec<&str> = all.rows.iter().map(|row| &*row.table).collect();
    titles.dedup();
    titles
}

/// Explanations of differences, each once, with the rows that it explains.
fn reasons<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (why, what) in rows {
        match all.iter_mut().find(|known| known.0 == why) {
            Some(known) => known.1.push(what),
            None => all.push((why, vec![what])),
        }
    }
    let text = |(why, what): (&str, Vec<&str>)| format!("{}: {why}.", over_hops(&what).join("; "));
    all.into_iter().map(text).collect()
}

/// Names that differ only in their number of hops, which follow each other, become one name: `write, 1 hop` and `write, 2 hops` become
/// `write, 1 to 2 hops`.
fn over_hops(names: &[&str]) -> Vec<String> {
    let hops = |name: &str| -> Option<(String, u32)> {
        let (what, hops) = name.rsplit_once(", ")?;
        let number = hops.strip_suffix(" hop").or(hops.strip_suffix(" hops"))?;
        Some((what.to_owned(), number.parse().ok()?))
    };
    let mut all: Vec<(String, Option<(u32, u32)>)> = Vec::new();
    for name in names {
        let Some((what, number)) = hops(name) else {
            all.push(((*name).to_owned(), None));
            continue;
        };
        match all.last_mut() {
            Some((known, Some((_, last)))) if *known == what && *last + 1 == number => {
                *last = number;
            }
            _ => all.push((what, Some((number, number)))),
        }
    }
    let in_words = |(what, hops): (String, Option<(u32, u32)>)| match hops {
        None => what,
        Some((1, 1)) => format!("{what}, 1 hop"),
        Some((first, last)) if first == last => format!("{what}, {first} hops"),
        Some((first, last)) => format!("{what}, {first} to {last} hops"),
    };
    all.into_iter().map(in_words).collect()
}

fn reasons_of(all: &Reproduced, title: &str) -> Vec<String> {
    let rows = all.rows.iter().filter(|row| row.table == title);
    reasons(rows.filter_map(|row| Some((row.why.as_deref()?, &*row.what))))
}

/// For the terminal.
pub fn summary(all: &Reproduced) -> String {
    let mut out = format!("{}\n", all.verdict.head(&[]));
    // Writing to a string cannot fail.
    for title in tables(all) {
        let mut table = plain(&TIMES);
        for row in all.rows.iter().filter(|row| row.table == title) {
            table.add_row(cells(row));
        }
        let _ = writeln!(out, "{title}, in ns\n{}", render(&table));
        for reason in reasons_of(all, title) {
            let _ = writeln!(out, "  {reason}");
        }
        out.push('\n');
    }
    let mut table = plain(&SIZES);
    all.sizes.iter().for_each(|size| {
        table.add_row(size_cells(size));
    });
    let _ = writeln!(out, "Table 3, in bytes\n{}", render(&table));
    for reason in reasons(all.sizes.iter().map(|size| (&*size.why, &*size.what))) {
        let _ = writeln!(out, "  {reason}");
    }
    if !all.sections.is_empty() {
        let mut table = plain(&SECTIONS);
        all.sections.iter().for_each(|section| {
            table.add_row(section_cells(section));
        });
        let _ = writeln!(out, "\n{BEYOND}\n{}", render(&table));
    }
    for comparison in &all.comparisons {
        let mut table = plain(&headings(comparison));
        comparison.rows.iter().for_each(|(name, cells)| {
            table.add_row([&[name.clone()][..], cells].concat());
        });
        let _ = writeln!(
            out,
            "\nBeyond the paper. {}\n{}",
            comparison.title,
            render(&table)
        );
    }
    let _ = writeln!(out, "\n{LIMITS}");
    out
}

/// As a page.
///
/// # Errors
/// If a plot cannot be drawn.
pub fn report(all: &Reproduced, book: &Book) -> Result<String, Error> {
    let mut plots = Vec::new();
    for (title, words) in [
        ("Table 5", ["write 8 bytes", "read 8 bytes"]),
        (
            "Table 6",
            ["round trip of 8 bytes", "round trip of 40 bytes"],
        ),
    ] {
        let mut series = Vec::new();
        for word in words {
            let rows: Vec<&Row> = all
                .rows
                .iter()
                .filter(|row| row.table == title && row.what.starts_with(word))
                .collect();
            let points = |value: &dyn Fn(&Row) -> f64| {
                let hops = 1..;
                hops.zip(&rows)
                    .map(|(hops, row)| (f64::from(hops), value(row)))
                    .collect()
            };
            series.push(Series {
                name: format!("{word}, ours"),
                points: points(&|row| row.ours_ns),
            });
            series.push(Series {
                name: format!("{word}, paper"),
                points: points(&|row| row.paper_ns[1]),
            });
        }
        let axes = Axes {
            x: "hops",
            y: "average in ns",
            ..Axes::default()
        };
        plots.push((title, chart(&axes, &series, Mark::Line)?));
    }
    let sections = match &all.sections[..] {
        [] => html! {},
        _ => sections_markup(all)?,
    };
    let body = html! {
        h1 { "M2OS-mc: the one-shot RTOS" }
        p { (all.source) ". " (book.more(M2OS)) }
        (all.verdict.markup(&[]))
        @for title in tables(all) {
            h2 { (title) ", in ns" }
            div.scroll { table {
                tr { @for heading in TIMES { th { (heading) } } }
                @for row in all.rows.iter().filter(|row| row.table == title) {
                    tr { @for cell in cells(row) { td { (cell) } } }
                }
            } }
            @for (_, plot) in plots.iter().filter(|plot| plot.0 == title) { (picture(plot.clone())) }
            ul.soft { @for reason in reasons_of(all, title) { li { (reason) } } }
        }
        h2 { "Table 3, in bytes" }
        div.scroll { table {
            tr { @for heading in SIZES { th { (heading) } } }
            @for size in &all.sizes { tr { @for cell in size_cells(size) { td { (cell) } } } }
        } }
        ul.soft { @for reason in reasons(all.sizes.iter().map(|size| (&*size.why, &*size.what))) { li { (reason) } } }
        (sections)
        @for comparison in &all.comparisons {
            h2 { "Beyond the paper" }
            p { (comparison.title) }
            div.scroll { table {
                tr { @for heading in headings(comparison) { th { (heading) } } }
                @for (name, cells) in &comparison.rows { tr { td { (name) } @for cell in cells { td { (cell) } } } }
            } }
        }
        p.soft { (LIMITS) }
    };
    Ok(page("M2OS-mc - Bulkhead", &body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_runner::progress::Silent;

    /// Every figure of the paper has a measurement, and every difference beyond a tenth has an explanation.
    #[test]
    fn names_that_differ_in_hops_only_are_one() {
        let names = [
            "write, 1 hop",
            "write, 2 hops",
            "write, 3 hops",
            "read, 1 hop",
            "lock",
            "read, 4 hops",
            "read, 6 hops",
        ];
        let joined = over_hops(&names).join("; ");
        assert_eq!(
            joined,
            "write, 1 to 3 hops; read, 1 hop; lock; read, 4 hops; read, 6 hops"
        );
    }

    #[test]
    fn every_table_is_beside_the_papers() {
        let all = papers(&Silent).expect("it runs");
        let counts: Vec<usize> = ["Table 1", "Table 2", "Table 4", "Table 5", "Table 6"]
            .map(|title| all.rows.iter().filter(|row| row.table == title).count())
            .into();
        assert_eq!(counts, [3, 7, 6, 12, 12]);
        assert_eq!(all.sizes.len(), 2);
        for row in &all.rows {
            assert!(row.ours.count >= 13, "{row:?}");
            assert_eq!(row.why.is_some(), row.difference.abs() > 10.0, "{row:?}");
        }
        // An item's round trip takes longer over more hops, at its best and on average.
        for word in ["of 8 bytes", "of 40 bytes"] {
            let rows = all.rows.iter().filter(|row| row.table == "Table 6");
            let trips: Vec<_> = rows.filter(|row| row.what.contains(word)).collect();
            assert_eq!(trips.len(), 6);
            for pair in trips.windows(2) {
                let [near, far] = [pair[0], pair[1]];
                let grows = near.ours.min < far.ours.min && near.ours_ns < far.ours_ns;
                assert!(grows, "{near:?} {far:?}");
            }
        }
        assert!(all.verdict.is_kept(), "{}", all.verdict.head(&[]));
        let text = summary(&all);
        assert!(text.contains("Table 6, in ns") && text.contains("round trip of 40 bytes, 6 hops"));
        report(&all, &Book::default()).expect("a page");
    }
}
