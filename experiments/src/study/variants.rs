//! What the study finds under each named variant of its model, compared with the frozen model and the paper.
//!
//! Why it exists: where ratios differ from the paper's, a reader wants to know which decision causes it, and what our earlier
//! values would have given. The same thinned scenarios, and the same random numbers, are judged for each.
//!
//! What it deliberately does not know: which variant is right. None becomes the default because of these results.

use super::summary::{between, comparisons, observations, ratio};
use super::{Comparison, Observation, ScenarioCounts, bad_parameter, count, quick, thinned};
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::study::Study;
use bulkhead_analysis::mc2::task_system::{Scenario, matching};
use bulkhead_analysis::mc2::variants::Variant;
use bulkhead_report::book::{Book, STUDY};
use bulkhead_report::page;
use bulkhead_report::table::{plain, render};
use bulkhead_runner::error::Error;
use maud::html;
use serde::Serialize;

/// Maximum scenarios of one variant.
const MOST_SCENARIOS: usize = 100;

/// A number with half the width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// In percent.
    pub value: f64,
    /// In percentage points, as in [`Comparison::confidence`].
    pub confidence: f64,
}

/// The results of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantRow {
    /// Its name; "frozen" for the study's own model.
    pub name: String,
    /// The difference.
    pub what: String,
    /// Arguments for and against it.
    pub grounds: String,
    /// SHA-256 over its parameters.
    pub parameters_hash: String,
    /// Generated systems.
    pub systems: u64,
    /// Curves above zero at the right end of the axis.
    pub cut_off: usize,
    /// Ratios beside the paper's.
    pub comparisons: Vec<Comparison>,
    /// `O|C` over `C|C` with small messages only, which the paper does not state.
    pub small_messages: Option<Estimate>,
    /// Where `C|C+A/B-LP` lies between `C|C` (0) and `C|C+A/B-ALL` (1).
    pub long_periods: Option<f64>,
    /// The same for `C|C+A/B-SP`.
    pub short_periods: Option<f64>,
    /// In how many scenarios the paper's observations hold.
    pub observations: Vec<Observation>,
}

/// All variants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variants {
    /// Scenarios of each.
    pub scenarios: usize,
    /// The frozen model first.
    pub rows: Vec<VariantRow>,
}

/// Runs the frozen model and each of `some` variants at half the precision. `done` receives the number of finished variants and
/// the total.
///
/// # Errors
/// [`Error`] for parameters out of range.
pub fn variants(
    parameters: &StudyParameters,
    some: &[&Variant],
    scenarios: &[Scenario],
    threads: Option<usize>,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Variants, Error> {
    let mut base = parameters.clone();
    quick(&mut base);
    let scenarios = thinned(scenarios, MOST_SCENARIOS);
    let total = some.len() + 1;
    done(0, total);
    let frozen = [(
        "frozen",
        "nothing",
        "Frozen before any ratio was computed with it.",
    )];
    let mut changes: Vec<_> = frozen
        .map(|(name, what, grounds)| (name, what, grounds, base.clone()))
        .to_vec();
    for variant in some {
        let mut changed = base.clone();
        (variant.change)(&mut changed);
        changes.push((variant.name, variant.what, variant.grounds, changed));
    }
    let mut rows = Vec::with_capacity(total);
    for (name, what, grounds, parameters) in changes {
        let study = Study::new(parameters).map_err(bad_parameter)?;
        let counts = count(&study, &scenarios, &Scheme::ALL, threads, &|| ())?;
        rows.push(row(name, what, grounds, study.parameters(), &counts)?);
        done(rows.len(), total);
    }
    Ok(Variants {
        scenarios: scenarios.len(),
        rows,
    })
}

fn row(
    name: &str,
    what: &str,
    grounds: &str,
    parameters: &StudyParameters,
    counts: &[ScenarioCounts],
) -> Result<VariantRow, Error> {
    let small = matching("*,*,*,*,Small,*,*").map_err(bad_parameter)?;
    let small: Vec<&ScenarioCounts> = counts
        .iter()
        .filter(|c| small.binary_search(&c.scenario).is_ok())
        .collect();
    let above = |c: &ScenarioCounts| {
        c.points
            .last()
            .map_or(0, |p| p.schedulable.iter().filter(|s| **s > 0).count())
    };
    Ok(VariantRow {
        name: name.to_owned(),
        what: what.to_owned(),
        grounds: grounds.to_owned(),
        parameters_hash: parameters.hash(),
        systems: counts
            .iter()
            .flat_map(|c| &c.points)
            .map(|p| p.samples)
            .sum(),
        cut_off: counts.iter().map(above).sum(),
        comparisons: comparisons(parameters, counts, &Scheme::ALL)?,
        small_messages: ratio(parameters, &small, Scheme::OC, Scheme::CC)
            .map(|(value, confidence)| Estimate { value, confidence }),
        long_periods: between(parameters, counts, Scheme::CLong),
        short_periods: between(parameters, counts, Scheme::CShort),
        observations: observations(parameters, counts, &Scheme::ALL),
    })
}

/// A ratio in the paper: scheme, divided by which scheme, only these scenarios.
type Which = (Scheme, Scheme, &'static str);

/// Headings after the name, and which of the paper's ratios they are.
const COLUMNS: [(&str, Option<Which>); 11] = [
    ("C|C / R|R", Some((Scheme::CC, Scheme::RR, "*"))),
    ("O|C / C|C", Some((Scheme::OC, Scheme::CC, "*"))),
    ("small", None),
    ("large", Some((Scheme::OC, Scheme::CC, "*,*,*,*,Large,*,*"))),
    ("ALL / C|C", Some((Scheme::CAll, Scheme::CC, "*"))),
    ("high", Some((Scheme::CAll, Scheme::CC, "*,*,*,*,*,High,*"))),
    ("LP at", None),
    ("SP at", None),
    ("O|ALL / C|C", Some((Scheme::OAll, Scheme::CC, "*"))),
    ("O|ALL / R|R", Some((Scheme::OAll, Scheme::RR, "*"))),
    ("7 holds in", None),
];

fn found(row: &VariantRow, (scheme, over, only): Which) -> Option<&Comparison> {
    row.comparisons
        .iter()
        .find(|c| c.scheme == scheme && c.over == over && c.only == only)
}

fn cells(row: &VariantRow) -> Vec<String> {
    let share = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}"));
    COLUMNS
        .iter()
        .map(|&(name, figure)| match (name, figure) {
            (_, Some(which)) => found(row, which).map_or_else(
                || "-".to_owned(),
                |c| format!("{:+.1} ± {:.1}", c.ours, c.confidence),
            ),
            ("small", _) => row.small_messages.map_or_else(
                || "-".to_owned(),
                |e| format!("{:+.1} ± {:.1}", e.value, e.confidence),
            ),
            ("LP at", _) => share(row.long_periods),
            ("SP at", _) => share(row.short_periods),
            _ => row
                .observations
                .first()
                .map_or_else(|| "-".to_owned(), |o| o.holds.to_string()),
        })
        .collect()
}

fn paper(row: &VariantRow) -> Vec<String> {
    COLUMNS
        .iter()
        .map(|&(_, figure)| {
            figure
                .and_then(|which| found(row, which))
                .map_or_else(String::new, |c| format!("{:+.0}", c.paper))
        })
        .collect()
}

fn legend(all: &Variants) -> String {
    format!(
        "How much larger the areas are, in percent with 95 % intervals, over {} scenarios at half the precision. ALL, LP, SP: C|C+A/B-..., \
         O|ALL: O|C+A/B-ALL; small and large: O|C / C|C with such messages only; high: ALL / C|C with high bandwidths only; LP at, SP at: \
         where LP and SP lie between C|C (0) and ALL (1); 7 holds in: scenarios in which C|C is better than R|R",
        all.scenarios
    )
}

/// The variants for the terminal.
pub fn variants_table(all: &Variants) -> String {
    let mut names = vec!["name"];
    names.extend(COLUMNS.map(|(name, _)| name));
    let mut table = plain(&names);
    for row in &all.rows {
        let mut line = vec![row.name.clone()];
        line.extend(cells(row));
        table.add_row(line);
    }
    if let Some(first) = all.rows.first() {
        let mut line = vec!["paper".to_owned()];
        line.extend(paper(first));
        table.add_row(line);
    }
    format!("{}\n{}", legend(all), render(&table))
}

/// The variants as a page.
pub fn variants_page(all: &Variants, book: &Book) -> String {
    let body = html! {
        h1 { "Variants of the schedulability study" }
        p.soft { (legend(all)) " " (book.more(STUDY)) }
        div.scroll { table {
            tr { th { "variant" } @for (name, _) in COLUMNS { th { (name) } } }
            @for row in &all.rows {
                tr { td { (row.name) } @for cell in cells(row) { td { (cell) } } }
            }
            @if let Some(first) = all.rows.first() {
                tr { td { "paper" } @for cell in paper(first) { td { (cell) } } }
            }
        } }
        h2 { "What differs, and the arguments for and against" }
        div.scroll { table {
            tr { th { "variant" } th.text { "what differs" } th.text { "grounds" } th { "systems" } th { "curves cut off" } th.text { "parameters" } }
            @for row in &all.rows {
                tr { td { (row.name) } td.text { (row.what) } td.text { (row.grounds) } td { (row.systems) } td { (row.cut_off) } td.text { code { (row.parameters_hash) } } }
            }
        } }
    };
    page::page("Variants of the study - Bulkhead", &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_analysis::mc2::variants::VARIANTS;

    #[test]
    fn rows_stand_beside_the_paper() {
        let parameters = StudyParameters {
            most_samples: 16,
            ..StudyParameters::default()
        };
        let scenarios = matching("C-Light,Short,Light,Quick,*,High,Many").expect("matches");
        let some: Vec<&Variant> = VARIANTS.iter().take(2).collect();
        let all = variants(&parameters, &some, &scenarios, Some(2), &|_, _| ()).expect("valid");
        assert_eq!(all.rows.len(), 3);
        assert!(
            all.rows
                .iter()
                .all(|r| r.comparisons.len() == 11 && r.systems > 0)
        );
        assert_ne!(all.rows[0].parameters_hash, all.rows[1].parameters_hash);
        let table = variants_table(&all);
        for text in ["frozen", "second", "paper", "±"] {
            assert!(table.contains(text), "{text}");
        }
        assert!(variants_page(&all, &Book::default()).contains(VARIANTS[1].what));
    }
}
