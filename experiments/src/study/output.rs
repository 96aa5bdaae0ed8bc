//! The output for readers: a table, a page with an index of plots, counts as CSV, the summary as
//! JSON.
//!
//! What it deliberately does not know: how anything was counted.

use super::curves::picture;
use super::folder::replace;
use super::summary::ScenarioCounts;
use super::{Comparison, Figures, Observation, StudyResult};
use bulkhead_analysis::mc2::open_parameters::{FROZEN, OPEN};
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::task_system::CATEGORIES;
use bulkhead_report::book::{Book, STUDY};
use bulkhead_report::format::counted;
use bulkhead_report::page;
use bulkhead_report::table::{plain, render};
use bulkhead_runner::error::Error;
use bulkhead_runner::place;
use maud::{Markup, html};
use rayon::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// The result for the terminal.
pub fn table(result: &StudyResult) -> Result<String, Error> {
    let figures = Figures::mc2()?;
    let mut out = String::new();
    let mut areas = plain(&["name", "area", "mean"]);
    for area in &result.areas {
        areas.add_row([
            area.scheme.name().to_owned(),
            format!("{:.1}", area.area),
            format!("{:.3}", area.mean),
        ]);
    }
    let _ = writeln!(
        out,
        "Schedulable-utilisation areas in processors, summed over {} scenarios and as their mean\n{}",
        result.scenarios,
        render(&areas)
    );
    if !result.comparisons.is_empty() {
        let mut ratios = plain(&[
            "name",
            "description",
            "scenarios",
            "ours",
            "+-",
            "paper",
            "difference",
        ]);
        for one in &result.comparisons {
            ratios.add_row([
                format!("{} over {}", one.scheme.name(), one.over.name()),
                only(one),
                one.scenarios.to_string(),
                format!("{:+.1} %", one.ours),
                format!("{:.2}", one.confidence),
                format!("{:+.0} %", one.paper),
                format!("{:+.1}", one.difference),
            ]);
        }
        let _ = writeln!(out, "How much larger the areas are\n{}", render(&ratios));
        if result.scenarios < figures.scenarios {
            let _ = writeln!(
                out,
                "The paper's figures are of all {} scenarios; this study has {}.",
                figures.scenarios, result.scenarios
            );
        }
    }
    if !result.observations.is_empty() {
        let names = [
            "name",
            "description",
            "of sums",
            "holds",
            "surely",
            "fails",
            "surely",
            "equal",
        ];
        let mut table = plain(&names);
        for one in &result.observations {
            table.add_row([
                one.number.clone(),
                one.claim.clone(),
                yes(one.of_sums).to_owned(),
                one.holds.to_string(),
                one.surely_holds.to_string(),
                one.fails.to_string(),
                one.surely_fails.to_string(),
                one.equal.to_string(),
            ]);
        }
        let _ = writeln!(
            out,
            "The paper's observations, of the sums of areas and scenario by scenario (surely: beyond the 95 % interval)\n{}",
            render(&table)
        );
    }
    let _ = writeln!(
        out,
        "{} systems were judged; every share is known within {:.3} at 95 %.",
        result.systems, result.widest
    );
    if result.cut_off > 0 {
        let _ = writeln!(
            out,
            "{} curves are above zero at the right end of the axis: their areas are too small.",
            result.cut_off
        );
    }
    Ok(out)
}

fn yes(holds: bool) -> &'static str {
    if holds { "holds" } else { "fails" }
}

fn only(one: &Comparison) -> String {
    if one.only == "*" {
        "all scenarios".to_owned()
    } else {
        format!("only ({})", one.only.replace(',', ", "))
    }
}

/// Counts as CSV, with their provenance in lines that begin with `#`.
pub fn csv(result: &StudyResult) -> String {
    let identity = &result.identity;
    let mut out = format!(
        "# Bulkhead {}, study of mc2-rts20, section 6\n# command: {}\n# seed: {}\n# parameters: {} (all values in study.json)\n\
         # shares are schedulable systems over samples; half width of the 95 % interval (Wilson) at most {:.4}\n",
        identity.version,
        identity.command,
        identity.parameters.seed,
        identity.parameters_hash,
        result.widest
    );
    out.push_str("scenario");
    for (name, _) in CATEGORIES {
        let _ = write!(out, ",{name}");
    }
    out.push_str(",utilisation,samples");
    for scheme in &identity.schemes {
        let _ = write!(out, ",{}", scheme.name());
    }
    out.push('\n');
    for counts in &result.counts {
        for (index, point) in counts.points.iter().enumerate() {
            let _ = write!(out, "{}", counts.scenario.index());
            for (choice, (_, names)) in counts.scenario.0.iter().zip(CATEGORIES) {
                let _ = write!(out, ",{}", names[usize::from(*choice)]);
            }
            let utilisation = identity.parameters.utilisation(index as u64);
            let _ = write!(
                out,
                ",{}.{:03},{}",
                utilisation / 1000,
                utilisation % 1000,
                point.samples
            );
            for scheme in &identity.schemes {
                let _ = write!(out, ",{}", point.schedulable[scheme.index()]);
            }
            out.push('\n');
        }
    }
    out
}

/// The page of a study. `book`: where the book is.
pub fn page(result: &StudyResult, book: &Book) -> Result<String, Error> {
    let figures = Figures::mc2()?;
    let identity = &result.identity;
    let body = html! {
        h1 { "Schedulability study of the mixed-criticality kernel" }
        p.soft { (counted(result.scenarios, "scenario")) ", " (counted(identity.schemes.len(), "scheme")) ", " (result.systems)
            " generated systems; every share of schedulable systems is known within " (format!("{:.3}", result.widest)) " at 95 %. Paper: " (figures.source) }
        h2 { "Areas" }
        p { "The schedulable-utilisation area (SUA) of a scheme is the sum of the areas under its curves, in processors. " (book.more(STUDY)) }
        div.scroll { table {
            tr { th { "scheme" } th { "area" } th { "mean of a scenario" } }
            @for area in &result.areas {
                tr { td { (area.scheme.name()) } td { (format!("{:.1}", area.area)) } td { (format!("{:.3}", area.mean)) } }
            }
        } }
        h2 { "Beside the paper" }
        (comparison_table(&result.comparisons, book))
        @if result.cut_off > 0 { p.bad { (result.cut_off) " curves are above zero at the right end of the axis: their areas are too small." } }
        h2 { "The paper's observations" }
        (observation_table(&result.observations))
        h2 { "Parameters that the paper leaves open" }
        p.soft { "Decided from the paper's text and the platform alone, and frozen on " (FROZEN) ", before a ratio was computed with them. A variant of the \
            model (" code { "--variant" } ") has other values here; its reasons are those of " code { "bulkhead study variants" } "." }
        (open_parameters(&identity.parameters))
        h2 { "Scenarios" }
        p.soft { "Utilisation at which half of the systems are schedulable, by interpolation." }
        (index(result))
        h2 { "Provenance" }
        p.soft { "Bulkhead " (identity.version) ", seed " (identity.parameters.seed) ", parameters " code { (identity.parameters_hash) } ", command " code { (identity.command) } }
    };
    Ok(page::page("Schedulability study - Bulkhead", &body))
}

fn comparison_table(comparisons: &[Comparison], book: &Book) -> Markup {
    if comparisons.is_empty() {
        return html! { p { "The paper compares none of these schemes with each other in these scenarios. " (book.more(STUDY)) } };
    }
    html! {
        div.scroll { table {
            tr { th { "area of" } th.text { "over" } th.text { "scenarios" } th { "ours" } th { "paper" } th { "difference" } th.text { "where" } }
            @for one in comparisons {
                tr {
                    td { (one.scheme.name()) } td.text { (one.over.name()) } td.text { (only(one)) " (" (one.scenarios) ")" }
                    td { (format!("{:+.1} % ± {:.2}", one.ours, one.confidence)) } td { (format!("{:+.0} %", one.paper)) }
                    td { (format!("{:+.1}", one.difference)) } td.text { (one.place) }
                }
            }
        } }
        p.soft { "Differences in percentage points. The interval (95 %) assumes that the two schemes judged different systems; they judge the same ones, so the true interval is narrower. " (book.more(STUDY)) }
    }
}

fn observation_table(observations: &[Observation]) -> Markup {
    if observations.is_empty() {
        return html! { p { "None of the paper's observations is about these schemes alone." } };
    }
    html! {
        div.scroll { table {
            tr { th { "observation" } th.text { "claim" } th.text { "of the sums" } th { "holds in" } th { "surely" } th { "fails in" } th { "surely" } th { "equal in" } }
            @for one in observations {
                tr {
                    td { (one.number) } td.text { (one.claim) } td.text { (yes(one.of_sums)) }
                    td { (one.holds) } td { (one.surely_holds) } td { (one.fails) } td { (one.surely_fails) } td { (one.equal) }
                }
            }
        } }
        p.soft { "Numbers of scenarios; surely: by more than the 95 % interval of the difference, as if the schemes had judged different systems. The paper \
            states its observations of sums over all scenarios." }
    }
}

fn open_parameters(parameters: &StudyParameters) -> Markup {
    html! {
        div.scroll { table {
            tr { th { "parameter" } th.text { "value" } th.text { "unit" } th.text { "earlier" } th.text { "reason of the frozen value" } }
            @for open in OPEN {
                tr {
                    td { code { (open.name) } } td.text { ((open.value)(parameters)) } td.text { (open.unit) }
                    td.text { @for (value, when) in open.earlier { div { (value) " (" (when) ")" } } } td.text { (open.reason) }
                }
            }
        } }
    }
}

fn index(result: &StudyResult) -> Markup {
    let parameters = &result.identity.parameters;
    html! {
        div.scroll { table {
            tr { th { "scenario" } @for scheme in &result.identity.schemes { th { (scheme.name()) } } }
            @for counts in &result.counts {
                tr {
                    td { a href=(format!("plots/{}.svg", counts.scenario.file_name())) { (counts.scenario.name()) } }
                    @for &scheme in &result.identity.schemes { td { (half(parameters, counts, scheme)) } }
                }
            }
        } }
    }
}

/// Where a curve crosses one half.
fn half(parameters: &StudyParameters, counts: &ScenarioCounts, scheme: Scheme) -> String {
    let step = parameters.utilisation_step as f64 / 1000.0;
    let mut before = 1.0;
    for (index, point) in counts.points.iter().enumerate() {
        let share = point.share(scheme);
        if share < 0.5 {
            let part = (before - 0.5) / (before - share);
            return format!("{:.2}", (index as f64 + part) * step);
        }
        before = share;
    }
    "-".to_owned()
}

/// Writes everything into the folder. The summary comes last and marks the study as finished.
pub fn write(folder: &Path, result: &StudyResult) -> Result<(), Error> {
    let parameters = &result.identity.parameters;
    result.counts.par_iter().try_for_each(|counts| {
        let svg = picture(parameters, counts, &result.identity.schemes)?;
        let name = format!("{}.svg", counts.scenario.file_name());
        replace(&folder.join("plots").join(name), &svg)
    })?;
    replace(&folder.join("counts.csv"), &csv(result))?;
    replace(
        &folder.join("index.html"),
        &page(result, &place::pages(folder)?)?,
    )?;
    let summary = serde_json::to_string_pretty(result)
        .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
    replace(&folder.join("summary.json"), &summary)
}
