//! The effect on the ratios of each parameter that the paper leaves open.
//!
//! Why it exists: readers should not have to believe our choices. Each open parameter takes its low and its high value while all
//! others keep theirs; the same thinned scenarios and the same random numbers are judged each time.

use super::summary::comparisons;
use super::{Comparison, bad_parameter, count, quick, thinned};
use bulkhead_analysis::mc2::open_parameters::OPEN;
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::study::Study;
use bulkhead_analysis::mc2::task_system::Scenario;
use bulkhead_report::book::{Book, STUDY};
use bulkhead_report::page;
use bulkhead_report::table::{plain, render};
use bulkhead_runner::error::Error;
use maud::html;
use serde::Serialize;

/// Maximum scenarios of one variation.
const MOST_SCENARIOS: usize = 100;

/// One parameter at one value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variation {
    /// Parameter; "none" for the study's own values.
    pub parameter: String,
    /// Its value.
    pub value: String,
    /// Ratios with it.
    pub comparisons: Vec<Comparison>,
}

/// All variations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Scenarios of each.
    pub scenarios: usize,
    /// SHA-256 over the unchanged parameters.
    pub parameters_hash: String,
    /// The unchanged study first.
    pub variations: Vec<Variation>,
}

/// Runs all variations. `done` receives the number of finished variations and the total.
///
/// # Errors
/// [`Error`] for parameters out of range.
pub fn sensitivity(
    parameters: &StudyParameters,
    scenarios: &[Scenario],
    threads: Option<usize>,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Sensitivity, Error> {
    let mut base = parameters.clone();
    quick(&mut base);
    let scenarios = thinned(scenarios, MOST_SCENARIOS);
    let mut changes: Vec<(&str, String, StudyParameters)> =
        vec![("none", String::new(), base.clone())];
    for open in OPEN {
        for change in [open.low, open.high] {
            let mut changed = base.clone();
            change(&mut changed);
            // Some have only one other value.
            if changes.iter().all(|c| c.2 != changed) {
                changes.push((open.name, (open.value)(&changed), changed));
            }
        }
    }
    let total = changes.len();
    let mut variations = Vec::with_capacity(total);
    done(0, total);
    for (parameter, value, parameters) in changes {
        let study = Study::new(parameters).map_err(bad_parameter)?;
        let counts = count(&study, &scenarios, &Scheme::ALL, threads, &|| ())?;
        variations.push(Variation {
            parameter: parameter.to_owned(),
            value,
            comparisons: comparisons(study.parameters(), &counts, &Scheme::ALL)?,
        });
        done(variations.len(), total);
    }
    Ok(Sensitivity {
        scenarios: scenarios.len(),
        parameters_hash: parameters.hash(),
        variations,
    })
}

fn heading(one: &Comparison) -> String {
    let only = if one.only == "*" { "" } else { " *" };
    format!("{} / {}{only}", one.scheme.name(), one.over.name())
}

/// The variations for the terminal: ratios in percent.
pub fn sensitivity_table(all: &Sensitivity) -> String {
    let headings: Vec<String> = all
        .variations
        .first()
        .map(|v| v.comparisons.iter().map(heading).collect())
        .unwrap_or_default();
    let mut names = vec!["name", "description"];
    names.extend(headings.iter().map(String::as_str));
    let mut table = plain(&names);
    for one in &all.variations {
        let mut row = vec![one.parameter.clone(), one.value.clone()];
        row.extend(one.comparisons.iter().map(|c| format!("{:+.1}", c.ours)));
        table.add_row(row);
    }
    if let Some(first) = all.variations.first() {
        let mut row = vec!["paper".to_owned(), String::new()];
        row.extend(first.comparisons.iter().map(|c| format!("{:+.0}", c.paper)));
        table.add_row(row);
    }
    format!(
        "How much larger the areas are, in percent, over {} scenarios (*: only large messages, only high bandwidths)\n{}",
        all.scenarios,
        render(&table)
    )
}

/// The variations as a page.
pub fn sensitivity_page(all: &Sensitivity, book: &Book) -> String {
    let body = html! {
        h1 { "Sensitivity of the schedulability study" }
        p.soft { "Ratios of areas in percent over " (all.scenarios) " scenarios; each open parameter at a low and a high value, all others unchanged. *: only large messages, only high bandwidths. " (book.more(STUDY)) }
        div.scroll { table {
            tr { th { "parameter" } th.text { "value" } @if let Some(first) = all.variations.first() { @for one in &first.comparisons { th { (heading(one)) } } } }
            @for one in &all.variations {
                tr { td { (one.parameter) } td.text { (one.value) } @for c in &one.comparisons { td { (format!("{:+.1}", c.ours)) } } }
            }
            @if let Some(first) = all.variations.first() {
                tr { td { "paper" } td {} @for c in &first.comparisons { td { (format!("{:+.0}", c.paper)) } } }
            }
        } }
        h2 { "Reasons for the values" }
        div.scroll { table {
            tr { th { "parameter" } th.text { "unit" } th.text { "reason" } }
            @for open in OPEN { tr { td { (open.name) } td.text { (open.unit) } td.text { (open.reason) } } }
        } }
        p.soft { "Parameters " code { (all.parameters_hash) } }
    };
    page::page("Sensitivity of the study - Bulkhead", &body)
}
