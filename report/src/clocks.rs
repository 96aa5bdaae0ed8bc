//! The table of clocks: how wrong each is, beside how wrong it may be.
//!
//! Why it exists: the terminal and the page show the same cells. What it deliberately does not know: how cores agree on the time.

use crate::format::{grouped, share};
use crate::result::{ClockError, RunResult};
use maud::{Markup, html};

/// The title of the table.
pub const TITLE: &str = "Clocks of cores beside the clock that they follow, in cycles (us)";
/// The heads of its columns.
pub const HEADINGS: [&str; 10] = [
    "variant",
    "core",
    "follows",
    "counts added",
    "synchronised: error",
    "bound",
    "error / bound",
    "end: error",
    "bound",
    "error / bound",
];

/// Its rows.
pub fn rows(result: &RunResult) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for variant in &result.variants {
        for clock in &variant.clocks {
            let cells = |one: ClockError| {
                [
                    result.both(one.error),
                    result.both(one.bound),
                    share(one.error, one.bound),
                ]
            };
            let mut row = vec![
                variant.name.clone(),
                clock.core.to_string(),
                clock.master.to_string(),
                match clock.correction {
                    less if less < 0 => format!("-{}", grouped(less.unsigned_abs())),
                    more => grouped(more.unsigned_abs()),
                },
            ];
            row.extend(cells(clock.synchronised));
            row.extend(cells(clock.end));
            all.push(row);
        }
    }
    all
}

/// For the page.
pub fn section(result: &RunResult) -> Markup {
    let rows = rows(result);
    html! {
        @if !rows.is_empty() {
            h2 { "Clocks" }
            p.soft { (TITLE) "; the bound at the end includes the drift of both clocks." }
            div.scroll { table {
                tr { @for heading in HEADINGS { th { (heading) } } }
                @for row in &rows { tr { @for cell in row { td { (cell) } } } }
            } }
        }
    }
}
