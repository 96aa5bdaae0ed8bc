//! Our figures and the paper's, and why some of them differ.
//!
//! Why it exists: a figure that is more than a tenth off needs its explanation beside it. A figure without an explanation is a failure, so
//! no one has to search for them. What it deliberately does not know: how a figure was measured.

use super::Reproduced;
use bulkhead_report::distribution::is_known;
use bulkhead_report::verdict::Promise;
use serde::Deserialize;

/// A figure may differ from the paper's by this share without an explanation.
const TOLERANCE: f64 = 0.1;

/// Why a figure differs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Explanation {
    /// The figure: see [`Difference::of`].
    pub of: String,
    /// In a sentence or two.
    pub why: String,
    /// Page and section of the book.
    pub page: String,
}

/// A figure that differs from the paper's by more than a tenth.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which: `round-trip/PLATFORM/COLUMN`, `slowdown/PLATFORM/WORKLOAD/BESIDE`.
    pub of: String,
    /// Ours.
    pub ours: f64,
    /// The paper's.
    pub paper: f64,
}

impl Difference {
    /// In words, with the explanation.
    pub fn text(&self, why: Option<&Explanation>) -> String {
        let Self { of, ours, paper } = self;
        let off = match *paper {
            0.0 => String::new(),
            paper => format!(" ({:+.0} %)", (ours / paper - 1.0) * 100.0),
        };
        let number = |value: &f64| {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let why = why.map_or("not explained".to_owned(), |one| {
            format!("{} [{}]", one.why, one.page)
        });
        format!(
            "{of}: {} where the paper has {}{off}. {why}",
            number(ours),
            number(paper)
        )
    }
}

/// Every figure that the paper states, and ours.
fn comparisons(all: &Reproduced) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |of: String, ours: f64, paper: f64| found.push(Difference { of, ours, paper });
    for one in &all.round_trips {
        let Some(paper) = &one.published else {
            continue;
        };
        let columns = [
            ("steady", one.steady.mean, Some(paper.steady)),
            (
                "steady deviation",
                one.steady.deviation,
                paper.steady_deviation,
            ),
            ("mean", one.all.mean, Some(paper.average)),
            (
                "p99",
                one.all.p99,
                is_known(99, one.all.count).then_some(paper.p99),
            ),
            ("min", one.all.min, Some(paper.min)),
            ("max", one.all.max, Some(paper.max)),
            ("deviation", one.all.deviation, Some(paper.deviation)),
        ];
        for (name, ours, paper) in columns {
            if let Some(paper) = paper {
                add(
                    format!("round-trip/{}/{name}", one.platform),
                    ours as f64,
                    paper as f64,
                );
            }
        }
    }
    for one in &all.unregulated {
        if let Some(paper) = one.published {
            let name = format!(
                "slowdown/{}/{}/{}",
                one.platform, one.foreground, one.background
            );
            add(name, one.slowdown, paper);
        }
    }
    found
}

/// The figures that differ from the paper's by more than a tenth.
pub fn of(all: &Reproduced) -> Vec<Difference> {
    let mut found = comparisons(all);
    found.retain(|one| (one.ours - one.paper).abs() > one.paper.abs() * TOLERANCE);
    found
}

/// Lines to put beside the figures whose names begin with this.
pub fn beside(all: &Reproduced, begin: &str) -> Vec<String> {
    let found = of(all).into_iter().filter(|one| one.of.starts_with(begin));
    found
        .map(|one| one.text(all.explanation(&one.of)))
        .collect()
}

/// The explanation of each difference is a claim of its own.
pub fn promise(all: &Reproduced) -> Option<Promise> {
    if comparisons(all).is_empty() {
        return None;
    }
    let found = of(all);
    let open = found
        .iter()
        .filter(|one| all.explanation(&one.of).is_none());
    let open: Vec<&str> = open.map(|one| one.of.as_str()).collect();
    let what = match open.as_slice() {
        [] => format!(
            "{} figures are more than a tenth off the paper's, and each has its explanation",
            found.len()
        ),
        open => format!(
            "figures more than a tenth off the paper's have no explanation in catalog/figures/m3.json: {}",
            open.join(", ")
        ),
    };
    Some(Promise::judged("", what, open.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::reproduced;
    use super::*;

    #[test]
    fn a_figure_that_is_far_off_needs_an_explanation() {
        let mut all = reproduced();
        // 380 cycles where the paper has 316; the least and the worst of the sample match the paper's.
        let found: Vec<String> = of(&all).into_iter().map(|one| one.of).collect();
        assert!(
            found.contains(&"round-trip/tiled-2ghz/steady".to_owned()),
            "{found:?}"
        );
        assert!(
            !found.contains(&"round-trip/tiled-2ghz/max".to_owned()),
            "{found:?}"
        );
        let open = promise(&all).expect("figures");
        assert!(
            open.what.contains("round-trip/tiled-2ghz/steady"),
            "{}",
            open.what
        );
        assert_eq!(open.judgement, bulkhead_report::verdict::Judgement::Failed);
        all.explanations = found
            .iter()
            .map(|of| Explanation {
                of: of.clone(),
                why: "made up.".to_owned(),
                page: "docs/papers/m3.md".to_owned(),
            })
            .collect();
        let closed = promise(&all).expect("figures");
        assert_eq!(closed.judgement, bulkhead_report::verdict::Judgement::Held);
        let lines = beside(&all, "round-trip/tiled-2ghz/steady");
        assert_eq!(
            lines[0],
            "round-trip/tiled-2ghz/steady: 380 where the paper has 316 (+20 %). made up. [docs/papers/m3.md]"
        );
    }

    #[test]
    fn a_zero_of_ours_differs_from_what_the_paper_has() {
        let mut all = reproduced();
        let published = all.round_trips[0].published.as_mut().expect("a figure");
        published.steady_deviation = Some(32);
        let found = of(&all);
        let found = found
            .iter()
            .find(|one| one.of.ends_with("steady deviation"));
        assert_eq!(found.map(|one| (one.ours, one.paper)), Some((0.0, 32.0)));
    }
}
