//! The table that `bulkhead run` prints.
//!
//! What it deliberately does not know: colours of a terminal; the text is the same in a file.

use super::format::{grouped, share};
use crate::clocks;
use crate::distribution::{note, shown};
use crate::placement::Placement;
use crate::result::{AddedRun, Distribution, FlowResult, RequestResult, RunResult, VariantResult};
use bulkhead_model::units::Size;
use comfy_table::{CellAlignment, Table};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns that hold words; all others hold numbers and are right-aligned.
pub(crate) const TEXTS: &[&str] = &[
    "variant",
    "flow",
    "application",
    "request",
    "to",
    "delayed most by",
    "name",
    "description",
    "task",
    "constraint",
    "of",
    "verdict",
    "domain",
    "program",
    "pipeline",
    "controller",
];

/// An empty table in the style of all our tables.
pub fn plain(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset("     --            ");
    table.set_header(headings.to_vec());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((u16::from(index > 0), 1));
        if !TEXTS.contains(&headings[index]) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A table as text without trailing blanks.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Cells of a table, and whether what each row says holds: for a terminal and for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// One for each column.
    pub headings: Vec<&'static str>,
    /// Rows from top to bottom.
    pub rows: Vec<(bool, Vec<String>)>,
}

impl Grid {
    /// A table without rows.
    pub fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// The table as text.
    pub fn text(&self) -> String {
        let mut table = plain(&self.headings);
        for (_, cells) in &self.rows {
            table.add_row(cells);
        }
        render(&table)
    }
}

/// Time that others made the applications of a flow wait: (culprit, ticks), the worst first.
pub fn culprits(variant: &VariantResult, victims: &[&str]) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in &variant.interference {
        // The TileMux of an application's own tile works only for it.
        let culprit = entry.culprit.trim_end_matches(" (TileMux)");
        if victims.contains(&entry.victim.as_str()) && !victims.contains(&culprit) {
            *sums.entry(&entry.culprit).or_default() += entry.ticks;
        }
    }
    let mut sums: Vec<(String, u64)> = sums.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums
}

/// The applications that a flow passes: its ends and those in between.
pub fn victims(flow: &FlowResult) -> Vec<&str> {
    let mut names = vec![flow.from.as_str(), flow.to.as_str()];
    names.extend(flow.through.iter().map(String::as_str));
    names.sort_unstable();
    names.dedup();
    names
}

fn cell(result: &RunResult, ticks: u64) -> String {
    result.both(ticks)
}

/// The longest latency, if there is a sample.
fn worst(result: &RunResult, of: &Distribution) -> String {
    match of.count {
        0 => "-".to_owned(),
        _ => cell(result, of.max),
    }
}

/// A percentile, if there are enough samples for it.
pub(crate) fn percentile(result: &RunResult, percent: u64, of: &Distribution) -> String {
    let value = if percent == 50 { of.p50 } else { of.p99 };
    shown(percent, of.count, || cell(result, value))
}

/// The beginning of a flow bound's method that contains no measurement.
pub const ANALYSED: &str = "analysed from stated costs";

/// The kind of a result's flow bounds.
pub(crate) fn flow_bound(result: &RunResult) -> &'static str {
    let flows = result.variants.iter().flat_map(|variant| &variant.flows);
    let mut bounds = flows.filter_map(|flow| flow.bound.as_ref());
    match bounds.any(|bound| bound.method.starts_with(ANALYSED)) {
        true => {
            "A bound is analysed from the costs that the description states; no measurement is in it."
        }
        false => {
            "A bound is the worst latency measured alone + the analysed interference of all others."
        }
    }
}

/// The placement, one line per resident. The last line names the free tiles.
pub fn placement(placement: &Placement) -> String {
    let mut text = placement_grid(placement).text();
    if let Some(nobody) = nobody(placement) {
        text.push_str(&nobody);
        text.push('\n');
    }
    text
}

/// The placement as cells, one row per resident.
pub fn placement_grid(placement: &Placement) -> Grid {
    let mut grid = Grid::new(&[
        "tile",
        "application",
        "domain",
        "program",
        "memory",
        "of tile",
        "traffic",
    ]);
    for place in &placement.tiles {
        for one in &place.residents {
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let cells = vec![
                place.tile.to_string(),
                one.name.clone(),
                text(&one.domain),
                text(&one.program),
                one.memory
                    .map_or(String::new(), |(_, bytes)| Size(bytes).to_string()),
                one.memory
                    .map_or(String::new(), |(tile, _)| tile.to_string()),
                match (&one.limit, &one.program) {
                    (Some(limit), _) => limit.clone(),
                    (None, Some(_)) => "unlimited".to_owned(),
                    (None, None) => String::new(),
                },
            ];
            grid.rows.push((true, cells));
        }
    }
    grid
}

/// The tiles without applications, as a sentence without a full stop; nothing if there are none.
pub fn nobody(placement: &Placement) -> Option<String> {
    let free = placement
        .tiles
        .iter()
        .filter(|place| place.residents.is_empty() && place.memory.is_none());
    let free: Vec<String> = free.map(|place| place.tile.to_string()).collect();
    (!free.is_empty()).then(|| format!("nobody on {}", free.join(", ")))
}

/// The text for a user after a run: first failures, events, promises that were not judged and promises that held, then one line per variant
/// and flow, with the causes of the delays.
pub fn summary(result: &RunResult) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} on {}", result.system, result.platform);
    let _ = write!(out, "{}", result.whole_verdict().head(&result.happened()));
    for (title, crash) in result.crashes() {
        let _ = write!(out, "\n{title}:\n{}", crash.text());
    }
    measured(result, &mut out);
    out
}

/// The measurements of a chip, and of the one at the other end of its cable.
fn measured(result: &RunResult, out: &mut String) {
    let flows = result
        .variants
        .iter()
        .flat_map(|v| v.flows.iter().map(move |f| (v, f)));
    let mut table = plain(&[
        "variant",
        "flow",
        "samples",
        "p50",
        "p99",
        "worst",
        "misses",
        "bound",
        "delayed most by",
    ]);
    let mut any = false;
    for (variant, flow) in flows {
        any = true;
        let victims = victims(flow);
        let blame = culprits(variant, &victims);
        let total: u64 = blame.iter().map(|entry| entry.1).sum();
        let top: Vec<String> = blame
            .iter()
            .filter(|entry| entry.1 > 0)
            .take(2)
            .map(|(name, ticks)| format!("{name} {}", share(*ticks, total)))
            .collect();
        table.add_row(vec![
            variant.name.clone(),
            flow.name.clone(),
            flow.latency.count.to_string(),
            percentile(result, 50, &flow.latency),
            percentile(result, 99, &flow.latency),
            worst(result, &flow.latency),
            flow.misses.to_string(),
            flow.bound
                .as_ref()
                .map_or("none".to_owned(), |b| cell(result, b.ticks)),
            if top.is_empty() {
                "nobody".to_owned()
            } else {
                top.join(", ")
            },
        ]);
    }
    if any {
        let _ = writeln!(
            out,
            "\nEnd-to-end latency in cycles (us):\n{}",
            render(&table).trim_end()
        );
    }
    let flows = result.variants.iter().flat_map(|variant| &variant.flows);
    if flows.clone().any(|flow| flow.bound.is_some()) {
        let _ = writeln!(out, "{}", flow_bound(result));
    }
    if let Some(note) = note(&[50, 99], flows.map(|flow| flow.latency.count)) {
        let _ = writeln!(out, "{note}");
    }
    for note in unbounded(result) {
        let _ = writeln!(out, "No bound: {note}.");
    }
    for run in &result.added {
        let _ = writeln!(out, "{}", added(result, run));
    }
    tasks(result, out);
    spans(result, out);
    requests(result, out);
    clocks(result, out);
    frames(result, out);
    quotas(result, out);
    if let Some(peer) = &result.peer {
        let _ = writeln!(
            out,
            "\nThe other chip: {} on {}",
            peer.system, peer.platform
        );
        measured(peer, out);
    }
}

fn tasks(result: &RunResult, out: &mut String) {
    let mut variants = result.variants.iter();
    let missing = variants.any(|one| one.tasks.iter().any(|task| task.missing > 0));
    let mut head = vec!["variant", "task", "jobs", "misses"];
    head.extend(missing.then_some("never came"));
    head.extend(["allowed", "begun after", "worst", "deadline"]);
    let mut table = plain(&head);
    let mut any = false;
    for variant in &result.variants {
        let tasks = variant.tasks.iter();
        for task in tasks.filter(|task| task.jobs > 0 || task.missing > 0) {
            any = true;
            let mut row = vec![
                variant.name.clone(),
                task.application.clone(),
                task.jobs.to_string(),
                task.misses.to_string(),
            ];
            row.extend(missing.then(|| task.missing.to_string()));
            row.extend([
                task.allowed.to_string(),
                task.begin
                    .map_or("-".to_owned(), |begin| cell(result, begin)),
                task.worst
                    .map_or("-".to_owned(), |worst| cell(result, worst)),
                cell(result, task.deadline),
            ]);
            table.add_row(row);
        }
    }
    if any {
        let _ = writeln!(
            out,
            "\nJobs of tasks, from release to completion in cycles (us):\n{}",
            render(&table).trim_end()
        );
    }
}

/// Which flows have no bound, and why; each reason once.
pub fn unbounded(result: &RunResult) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for flow in result.variants.iter().flat_map(|variant| &variant.flows) {
        let note = flow.unbounded.as_ref();
        let note = note.map(|why| format!("flow {}: {why}", flow.name));
        notes.extend(note.filter(|note| !notes.contains(note)));
    }
    notes
}

/// The purpose of an additional run.
pub fn added(result: &RunResult, run: &AddedRun) -> String {
    let worst = run.worst.map_or("no sample".to_owned(), |worst| {
        format!("worst {}", cell(result, worst))
    });
    format!(
        "Added a run for the bound of flow {}: {}; {worst}.",
        run.flow, run.about
    )
}

fn clocks(result: &RunResult, out: &mut String) {
    let rows = clocks::rows(result);
    if rows.is_empty() {
        return;
    }
    let mut table = plain(&clocks::HEADINGS);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    let _ = writeln!(out, "\n{}:\n{}", clocks::TITLE, render(&table).trim_end());
}

fn spans(result: &RunResult, out: &mut String) {
    let mut table = plain(&[
        "variant",
        "application",
        "samples",
        "p50",
        "p99",
        "worst",
        "mean",
    ]);
    let mut any = false;
    for variant in &result.variants {
        for span in &variant.spans {
            any = true;
            table.add_row(vec![
                variant.name.clone(),
                span.application.clone(),
                span.latency.count.to_string(),
                percentile(result, 50, &span.latency),
                percentile(result, 99, &span.latency),
                worst(result, &span.latency),
                cell(result, span.latency.mean),
            ]);
        }
    }
    if any {
        let _ = writeln!(
            out,
            "\nSpans in cycles (us):\n{}",
            render(&table).trim_end()
        );
        let spans = result.variants.iter().flat_map(|variant| &variant.spans);
        if let Some(note) = note(&[50, 99], spans.map(|span| span.latency.count)) {
            let _ = writeln!(out, "{note}");
        }
    }
}

fn requests(result: &RunResult, out: &mut String) {
    let mut table = plain(&[
        "variant",
        "application",
        "request",
        "to",
        "count",
        "worst",
        "bound",
        "worst / bound",
        "wait for tokens",
    ]);
    let mut any = false;
    for variant in &result.variants {
        // The one that comes closest to its bound; the page has all of them.
        let closest = variant
            .requests
            .iter()
            .filter_map(|request| Some((request, request.bound.as_ref()?)))
            .max_by(|(a, a_bound), (b, b_bound)| {
                let cross = |worst: u64, bound: u64| u128::from(worst) * u128::from(bound);
                cross(a.worst, b_bound.ticks).cmp(&cross(b.worst, a_bound.ticks))
            });
        if let Some((request, bound)) = closest {
            any = true;
            table.add_row(vec![
                variant.name.clone(),
                request.application.clone(),
                request.kind.clone(),
                request.to.clone(),
                grouped(request.count),
                cell(result, request.worst),
                cell(result, bound.ticks),
                share(request.worst, bound.ticks),
                tokens(result, request),
            ]);
        }
    }
    if any {
        let _ = writeln!(
            out,
            "\nThe request that came closest to its bound, in cycles (us):\n{}",
            render(&table).trim_end()
        );
    }
}

/// The counters of network cards, in the order of the columns.
const FRAMES: [&str; 4] = [
    "frames sent",
    "frames received",
    "frames dropped",
    "frames malformed",
];

/// Frames of the network cards that did something: variant, tile, and [`FRAMES`].
pub fn frames_of(result: &RunResult) -> Vec<(String, u16, [u64; 4])> {
    let mut all = Vec::new();
    for variant in &result.variants {
        for tile in &variant.tiles {
            let counted = |name: &str| {
                let counter = tile.counters.iter().find(|counter| counter.name == name);
                counter.map(|counter| counter.value)
            };
            if let [Some(sent), Some(received), Some(dropped), Some(malformed)] =
                FRAMES.map(counted)
            {
                let counts = [sent, received, dropped, malformed];
                all.push((variant.name.clone(), tile.tile, counts));
            }
        }
    }
    all
}

fn frames(result: &RunResult, out: &mut String) {
    let all = frames_of(result);
    if all.is_empty() {
        return;
    }
    let mut table = plain(&[
        "variant",
        "tile",
        "sent",
        "received",
        "dropped",
        "malformed",
    ]);
    for (variant, tile, counts) in all {
        let mut row = vec![variant, tile.to_string()];
        row.extend(counts.map(grouped));
        table.add_row(row);
    }
    let _ = writeln!(
        out,
        "\nFrames of network cards:\n{}",
        render(&table).trim_end()
    );
}

/// How long a request may wait for tokens of its own limit before it begins.
pub fn tokens(result: &RunResult, request: &RequestResult) -> String {
    let most = request.tokens.map(|ticks| cell(result, ticks));
    most.unwrap_or_else(|| "-".to_owned())
}

fn quotas(result: &RunResult, out: &mut String) {
    let mut first = true;
    for variant in &result.variants {
        for quota in &variant.quotas {
            if std::mem::take(&mut first) {
                out.push_str("\nQuotas:\n");
            }
            let tile = quota
                .tile
                .map_or(String::new(), |tile| format!(" on tile {tile}"));
            let _ = writeln!(
                out,
                "  {}: {} of `{}`{tile}: {} of {} used",
                variant.name, quota.quota, quota.of, quota.used, quota.limit
            );
        }
    }
}

#[cfg(test)]
mod placement_tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    #[test]
    fn everybody_has_a_place() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        insta::assert_snapshot!(placement(&Placement::of(&system)));
    }
}
