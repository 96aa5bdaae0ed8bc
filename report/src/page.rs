//! The report page: one self-contained HTML file that loads nothing.
//!
//! What it deliberately does not know: browser scripts; there are none.

use super::format::{counted, grouped, share, span};
use super::plot::{Axes, Bar, Mark, Series, Upright, application_bars, chart, cumulative};
use super::table::{added, culprits, flow_bound, frames_of, percentile, unbounded, victims};
use crate::Error;
use crate::book::{BOUNDS, Book, FLOWS, FRAMES, LEDGER, TASKS, VERDICTS};
use crate::distribution::{note, shown};
use crate::palette::{ITSELF, Palette};
use crate::result::{Distribution, FlowResult, RunResult, Sample, VariantResult};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::collections::BTreeMap;

const STYLE: &str = "
:root { --ink: #1c2430; --soft: #5b6675; --line: #e2e6ec; --good: #00795a; --bad: #b3261e; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: #fff; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1rem; margin-bottom: .3rem; } .soft { color: var(--soft); } code { font-size: .85rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .92rem; font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--line); padding: .25rem .7rem; }
td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid var(--line); } th:first-child, td:first-child, td.text, th.text { text-align: left; padding-left: 0; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } svg { width: 100%; height: auto; } .scroll { overflow-x: auto; }
pre { font-size: .85rem; } .whole { white-space: nowrap; } td { white-space: nowrap; } td.text { white-space: normal; min-width: 6rem; } details summary { cursor: pointer; color: var(--soft); margin: .5rem 0; }
";

/// A whole page around `body`.
pub fn page(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
    .into_string()
}

/// An SVG picture, unchanged.
pub fn picture(svg: String) -> Markup {
    PreEscaped(svg)
}

/// The report of a run. `notes`: remarks on the files next to the page, one line each; `book`: where the book is.
///
/// # Errors
/// If a plot cannot be drawn.
pub fn report(result: &RunResult, notes: &[String], book: &Book) -> Result<String, Error> {
    let title = format!("{} - Bulkhead", result.system);
    let verdict = html! {
        (result.whole_verdict().markup(&result.happened()))
        p.soft { "What each word here means: " (book.more(VERDICTS)) }
        @for (title, crash) in result.crashes() {
            details open { summary { (title) } pre.scroll { (crash.text()) } }
        }
        @for note in notes { p.soft { (note) } }
    };
    Ok(page(&title, &chip(result, &verdict, book)?))
}

/// The report of one chip, and of the chip at the other end of its cable. `head` covers both.
fn chip(result: &RunResult, head: &Markup, book: &Book) -> Result<Markup, Error> {
    let palette = Palette::of(result);
    let flows: Vec<&str> = names(
        result
            .variants
            .iter()
            .flat_map(|v| v.flows.iter().map(|f| f.name.as_str())),
    );
    let spans: Vec<&str> = names(
        result
            .variants
            .iter()
            .flat_map(|v| v.spans.iter().map(|s| s.application.as_str())),
    );
    let peer = result.peer.as_ref();
    let peer = peer.map(|peer| chip(peer, &html! {}, book)).transpose()?;
    Ok(html! {
        h1 { (result.system) }
        p.soft { "on " (result.platform) "; " (counted(result.variants.len(), "variant")) "; cycles are those of the user tiles' harts ("
            (format!("{:.0} MHz", result.ticks_per_second as f64 / result.cycle_ticks.max(1) as f64 / 1e6)) ")" }
        (head)
        @if let Some(peer) = &result.peer { (neighbour(peer)) }
        @for flow in &flows { (flow_section(result, flow, book)?) }
        @if !spans.is_empty() { (span_section(result, &spans, book)?) }
        (crate::chip::section(result, &palette, book))
        (blame_section(result, &flows, &palette, book)?)
        (request_section(result, book))
        (crate::clocks::section(result))
        (frame_section(result, book))
        (task_section(result, book))
        (tile_section(result))
        (provenance_section(result))
        @if let Some(peer) = peer { (peer) }
    })
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in all {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// The text of the first chip's part about the other chip.
fn neighbour(peer: &RunResult) -> Markup {
    html! {
        p { "A cable joins this chip with another one, " (peer.system) " on " (peer.platform) ", whose part follows this one. "
            "Its promises are among those above, with `" (peer.system) "/` before the variant." }
    }
}

fn frame_section(result: &RunResult, book: &Book) -> Markup {
    let all = frames_of(result);
    html! {
        @if !all.is_empty() {
            h2 { "Frames of network cards" }
            p.soft { "Received frames reached a driver; dropped frames found no buffer, no room, or no listener. " (book.more(FRAMES)) }
            div.scroll { table {
                tr { th { "variant" } th { "tile" } th { "sent" } th { "received" } th { "dropped" } th { "malformed" } th { "out" } th { "in" } }
                @for (variant, tile, counts) in &all {
                    tr { td { (variant) } td { (tile) } @for count in counts { td { (grouped(*count)) } }
                        @for rate in frame_rates(result, variant, *tile) { td { (rate) } } }
                }
            } }
        }
    }
}

/// Frames per second that a card sent and received, averaged over the run.
fn frame_rates(result: &RunResult, variant: &str, tile: u16) -> [String; 2] {
    let variant = result.variants.iter().find(|one| one.name == variant);
    ["bytes sent", "bytes received"].map(|counter| {
        let of = |variant: &VariantResult| {
            let tile = variant.tiles.iter().find(|one| one.tile == tile)?;
            let counter = tile.counters.iter().find(|one| one.name == counter)?;
            let seconds = result.microseconds(variant.ticks) / 1e6;
            Some(bits(counter.value, seconds))
        };
        variant.and_then(of).unwrap_or_else(|| "-".to_owned())
    })
}

/// The rate of a link, in bits per second as usual for links.
fn bits(bytes: u64, seconds: f64) -> String {
    let bits = if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds
    } else {
        0.0
    };
    match bits {
        b if b >= 1e9 => format!("{:.2} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.1} Mbit/s", b / 1e6),
        b => format!("{:.1} kbit/s", b / 1e3),
    }
}

fn with_flow<'a>(result: &'a RunResult, name: &str) -> Vec<(&'a VariantResult, &'a FlowResult)> {
    result
        .variants
        .iter()
        .flat_map(|v| v.flows.iter().map(move |f| (v, f)))
        .filter(|(_, f)| f.name == name)
        .collect()
}

/// A distribution in the legend: its middle and its end, so that readers need not read them off the curve.
fn named(result: &RunResult, variant: &str, of: &Distribution) -> String {
    let us = |ticks| format!("{:.2}", result.microseconds(ticks));
    let middle = shown(50, of.count, || format!("median {}, ", us(of.p50)));
    let middle = middle.trim_start_matches('-');
    format!("{variant}: {middle}worst {} us", us(of.max))
}

fn latencies(result: &RunResult, samples: &[Sample]) -> Vec<f64> {
    let all = samples.iter();
    all.map(|sample| result.microseconds(sample.latency))
        .collect()
}

fn flow_section(result: &RunResult, name: &str, book: &Book) -> Result<Markup, Error> {
    let rows = with_flow(result, name);
    let Some((_, first)) = rows.first() else {
        return Ok(html! {});
    };
    // A deadline far above all samples would flatten them onto the axis; the distribution and the text show it
    // anyway.
    let highest = rows.iter().map(|(_, f)| f.latency.max).max().unwrap_or(0);
    let near = first
        .deadline
        .filter(|d| *d <= highest.saturating_mul(3))
        .map(|d| ("deadline".to_owned(), result.microseconds(d)));
    let seen = rows.iter().filter(|(_, f)| !f.samples.is_empty());
    let distribution: Vec<Series> = seen
        .clone()
        .map(|(v, f)| Series {
            name: named(result, &v.name, &f.latency),
            points: cumulative(&latencies(result, &f.samples)),
        })
        .collect();
    let bounds = seen.clone().enumerate().filter_map(|(series, (v, f))| {
        let x = result.microseconds(f.bound.as_ref()?.ticks);
        Some(Upright {
            name: format!("bound, {}: {x:.1} us", v.name),
            x,
            series: Some(series),
        })
    });
    let deadline = first.deadline.map(|ticks| Upright {
        name: format!("deadline: {}", span(result.microseconds(ticks))),
        x: result.microseconds(ticks),
        series: None,
    });
    let begin = |s: &Sample| result.microseconds(s.begin) / 1000.0;
    let over_time: Vec<Series> = seen
        .clone()
        .map(|(v, f)| Series {
            name: v.name.clone(),
            points: f
                .samples
                .iter()
                .map(|s| (begin(s), result.microseconds(s.latency)))
                .collect(),
        })
        .collect();
    let cumulative_axes = Axes {
        x: "end-to-end latency in us",
        y: "samples at or below in %",
        log_x: true,
        uprights: bounds.chain(deadline).collect(),
        ..Axes::default()
    };
    let time_axes = Axes {
        x: "begin in ms of simulated time",
        y: "latency in us",
        levels: near.into_iter().collect(),
        ..Axes::default()
    };
    Ok(html! {
        h2 { "Flow " (name) ": " (first.from) " to " (first.to) }
        div.scroll { table {
            tr { th { "variant" } th { "samples" } th { "p50" } th { "p99" } th { "worst" } th { "misses" } th { "bound" } th.text { "delayed most by" } }
            @for (variant, flow) in &rows { (flow_row(result, variant, flow)) }
        } }
        p.soft { "Latencies in cycles, with microseconds in brackets. Percentiles are values that were observed (nearest rank). "
            @if rows.iter().any(|(_, f)| f.bound.is_some()) { (flow_bound(result)) " " }
            (note(&[50, 99], rows.iter().map(|(_, f)| f.latency.count)).unwrap_or_default())
            @if let Some(d) = first.deadline { " Deadline: " (span(result.microseconds(d))) "." } " " (book.more(FLOWS)) }
        h3 { "Distribution" }
        (picture(chart(&cumulative_axes, &distribution, Mark::Line)?))
        h3 { "Over time" }
        (picture(chart(&time_axes, &over_time, Mark::Dots)?))
    })
}

fn both(result: &RunResult, ticks: u64) -> String {
    result.both(ticks)
}

fn flow_row(result: &RunResult, variant: &VariantResult, flow: &FlowResult) -> Markup {
    let blame = culprits(variant, &victims(flow));
    let total: u64 = blame.iter().map(|b| b.1).sum();
    html! {
        tr {
            td { (variant.name) } td { (flow.latency.count) }
            td { (percentile(result, 50, &flow.latency)) } td { (percentile(result, 99, &flow.latency)) } td { (both(result, flow.latency.max)) }
            td.bad[flow.misses > 0] { (flow.misses) @if flow.lost > 0 { ", " (flow.lost) " of them lost" } }
            td { @match &flow.bound { Some(bound) => (both(result, bound.ticks)), None => "none" } }
            td.text { @if total == 0 { "nobody" } @else {
                @for (index, (name, ticks)) in blame.iter().filter(|b| b.1 > 0).take(3).enumerate() {
                    @if index > 0 { ", " } span.whole { (name) " " (share(*ticks, total)) }
                } } }
        }
    }
}

fn span_section(result: &RunResult, applications: &[&str], book: &Book) -> Result<Markup, Error> {
    let mut charts = Vec::new();
    for &application in applications {
        let series: Vec<Series> = result
            .variants
            .iter()
            .flat_map(|v| {
                v.spans
                    .iter()
                    .filter(|s| s.application == application)
                    .map(move |s| (v, s))
            })
            .map(|(v, s)| Series {
                name: named(result, &v.name, &s.latency),
                points: cumulative(&latencies(result, &s.samples)),
            })
            .collect();
        let axes = Axes {
            x: "span in us",
            y: "samples at or below in %",
            log_x: true,
            ..Axes::default()
        };
        charts.push((application, chart(&axes, &series, Mark::Line)?));
    }
    Ok(html! {
        h2 { "Spans that applications measured" }
        p.soft { (book.more(FLOWS)) }
        div.scroll { table {
            tr { th { "variant" } th.text { "application" } th { "samples" } th { "least" } th { "p50" } th { "p99" } th { "worst" } th { "mean" } th { "deviation" } }
            @for variant in &result.variants { @for one in &variant.spans {
                tr { td { (variant.name) } td.text { (one.application) } td { (one.latency.count) }
                    td { (both(result, one.latency.min)) } td { (percentile(result, 50, &one.latency)) } td { (percentile(result, 99, &one.latency)) }
                    td { (both(result, one.latency.max)) } td { (both(result, one.latency.mean)) } td { (both(result, one.latency.deviation)) } }
            } }
        } }
        @if let Some(note) = note(&[50, 99], result.variants.iter().flat_map(|v| &v.spans).map(|s| s.latency.count)) { p.soft { (note) } }
        @for (application, svg) in charts { h3 { (application) } (picture(svg)) }
    })
}

/// The causes of the waits of the flows' applications, or of all applications if there is no flow.
fn blame_section(
    result: &RunResult,
    flows: &[&str],
    palette: &Palette,
    book: &Book,
) -> Result<Markup, Error> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for name in flows {
        if let Some((_, flow)) = with_flow(result, name).first() {
            groups.push((
                format!("the flow {name}"),
                victims(flow).into_iter().map(str::to_owned).collect(),
            ));
        }
    }
    if groups.is_empty() {
        for name in names(
            result
                .variants
                .iter()
                .flat_map(|v| v.spans.iter().map(|s| s.application.as_str())),
        ) {
            groups.push((name.to_owned(), vec![name.to_owned()]));
        }
    }
    let mut pictures = Vec::new();
    for (title, members) in &groups {
        let mut culprits: BTreeMap<String, u64> = BTreeMap::new();
        for entry in result.variants.iter().flat_map(|v| &v.interference) {
            if members.contains(&entry.victim) {
                *culprits
                    .entry(blame_name(&entry.culprit, members))
                    .or_default() += entry.ticks;
            }
        }
        let mut order: Vec<(String, u64)> = culprits.into_iter().filter(|c| c.1 > 0).collect();
        order.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let parts: Vec<String> = order.iter().take(6).map(|c| c.0.clone()).collect();
        let rows: Vec<Bar> = result
            .variants
            .iter()
            .map(|variant| Bar {
                name: variant.name.clone(),
                parts: parts
                    .iter()
                    .map(|part| {
                        let ticks: u64 = variant
                            .interference
                            .iter()
                            .filter(|e| {
                                members.contains(&e.victim)
                                    && blame_name(&e.culprit, members) == *part
                            })
                            .map(|e| e.ticks)
                            .sum();
                        result.microseconds(ticks)
                    })
                    .collect(),
            })
            .collect();
        // An axis of length zero has no scale.
        let bars = if parts.is_empty() {
            None
        } else {
            Some(application_bars(
                "waiting in all, in us",
                &parts,
                palette,
                &rows,
            )?)
        };
        pictures.push((title, bars));
    }
    Ok(html! {
        h2 { "Who caused the delays" }
        p.soft { "Every cycle that a request waited, or that an application was ready and did not have the processor, by culprit; summed over all requests of the applications. "
            "From the machine's interference ledger: nothing is sampled or estimated. " (book.more(LEDGER)) }
        @for (title, svg) in pictures {
            h3 { "Waiting of " (title) }
            @match svg {
                Some(svg) => (picture(svg)),
                None => p { "Nobody waited." },
            }
        }
        details { summary { "All entries" }
            div.scroll { table {
                tr { th { "variant" } th.text { "victim" } th.text { "culprit" } th.text { "resource" } th { "cycles" } }
                @for variant in &result.variants { @for entry in &variant.interference {
                    tr { td { (variant.name) } td.text { (entry.victim) } td.text { (entry.culprit) } td.text { (entry.resource) } td { (grouped(result.cycles(entry.ticks))) } }
                } }
            } }
        }
    })
}

fn blame_name(culprit: &str, members: &[String]) -> String {
    // The TileMux of an application's own tile works only for it.
    let name = culprit.trim_end_matches(" (TileMux)");
    if members.iter().any(|m| m == name) {
        ITSELF.to_owned()
    } else {
        culprit.to_owned()
    }
}

fn request_section(result: &RunResult, book: &Book) -> Markup {
    let any = result.variants.iter().any(|v| !v.requests.is_empty());
    html! {
        @if any {
            h2 { "Worst requests beside their bounds" }
            p.soft { (book.more(BOUNDS)) }
            div.scroll { table {
                tr { th { "variant" } th.text { "application" } th.text { "request" } th.text { "to" } th { "count" } th { "worst" } th { "bound" } th { "worst / bound" } th { "wait for tokens" } }
                @for variant in &result.variants { @for r in &variant.requests {
                    tr { td { (variant.name) } td.text { (r.application) } td.text { (r.kind) } td.text { (r.to) } td { (grouped(r.count)) } td { (both(result, r.worst)) }
                        td { @match &r.bound { Some(b) => (both(result, b.ticks)), None => "none" } }
                        td { @match &r.bound { Some(b) => (share(r.worst, b.ticks)), None => "-" } }
                        td { @match r.tokens { Some(ticks) => (both(result, ticks)), None => "-" } } }
                } }
            } }
            (methods(result))
        }
    }
}

fn methods(result: &RunResult) -> Markup {
    let bounds = result.variants.iter().flat_map(|v| {
        v.requests
            .iter()
            .filter_map(|r| r.bound.as_ref())
            .chain(v.flows.iter().flat_map(|f| &f.bound))
    });
    let mut texts: Vec<(&str, &str)> = bounds
        .map(|b| (b.method.as_str(), b.covers.as_str()))
        .collect();
    texts.sort_unstable();
    texts.dedup();
    let requests = result.variants.iter().flat_map(|v| &v.requests);
    let mut none: Vec<String> = requests
        .filter_map(|r| {
            Some(format!(
                "{} of {}: {}",
                r.kind,
                r.application,
                r.unbounded.as_ref()?
            ))
        })
        .chain(unbounded(result))
        .collect();
    none.sort_unstable();
    none.dedup();
    html! {
        @if !texts.is_empty() { ul.soft { @for (method, covers) in texts { li { b { (method) } ": " (covers) } } } }
        @if !none.is_empty() { p.soft { "Without a bound:" } ul.soft { @for note in none { li { (note) } } } }
        @for run in &result.added { p.soft { (added(result, run)) } }
    }
}

fn task_section(result: &RunResult, book: &Book) -> Markup {
    let any = result.variants.iter().any(|v| !v.tasks.is_empty());
    html! {
        @if any {
            h2 { "Jobs of tasks" }
            p.soft { "As programs mark them, from release to completion. A miss is a job that reports itself late, that completes later than its deadline "
                "after its release, or that never completes. A job never came if nothing released it although its period had passed. " (book.more(TASKS)) }
            div.scroll { table {
                tr { th { "variant" } th.text { "task" } th { "jobs" } th { "misses" } th { "allowed" } th { "begun after" } th { "worst" } th { "deadline" } }
                @for v in &result.variants { @for task in &v.tasks {
                    tr { td { (v.name) } td.text { (task.application) } td { (task.jobs) } td.bad[task.misses > task.allowed] { (task.misses) @if task.missing > 0 { ", and " (task.missing) " that never came" } } td { (task.allowed) }
                        td { @match task.begin { Some(begin) => (both(result, begin)), None => "-" } }
                        td { @match task.worst { Some(worst) => (both(result, worst)), None => "-" } } td { (both(result, task.deadline)) } }
                } }
            } }
        }
    }
}

fn tile_section(result: &RunResult) -> Markup {
    html! {
        h2 { "Tiles" }
        @for v in &result.variants {
            details { summary { (v.name) ": " (grouped(v.instructions)) " instructions in " (span(result.microseconds(v.ticks))) " of simulated time" }
                @for tile in &v.tiles {
                    h3 { "Tile " (tile.tile) @if !tile.applications.is_empty() { " (" (tile.applications.join(", ")) ")" } }
                    div.scroll { table {
                        tr { th.text { "counter" } th { "value" } }
                        tr { td { "instructions" } td { (grouped(tile.instructions)) } }
                        @for counter in &tile.counters { tr { td { (counter.name) } td { (grouped(counter.value)) } } }
                    } }
                }
            }
        }
    }
}

fn provenance_section(result: &RunResult) -> Markup {
    html! {
        h2 { "Provenance" }
        p.soft { "Bulkhead " (result.provenance.version) ". The run is deterministic: the same inputs give the same ticks on every machine." }
        @if !result.provenance.overrides.is_empty() { p { "Overrides: " @for o in &result.provenance.overrides { code { (o) } " " } } }
        div.scroll { table {
            tr { th.text { "input" } th.text { "SHA-256" } }
            @for input in &result.provenance.inputs { tr { td { (input.name) } td.text { code { (input.sha256) } } } }
            @for v in &result.variants { tr { td { "observations of " (v.name) } td.text { code { (v.digest) } } } }
        } }
    }
}
