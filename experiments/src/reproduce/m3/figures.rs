//! The paper's figures: only values stated in its text or tables, each with its place.
//!
//! What it deliberately does not know: ours.

use super::differences::Explanation;
use bulkhead_runner::error::Error;
use serde::{Deserialize, Serialize};

/// Published figures of a paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Figures {
    /// The paper.
    pub source: String,
    /// Round trips.
    pub round_trips: Vec<RoundTripFigure>,
    /// Rows of Table I for systems and machines that are not built here.
    pub others: Vec<OtherFigure>,
    /// Slowdowns without regulation.
    pub slowdowns: Vec<Published>,
    /// The server with priorities.
    pub priorities: PrioritiesFigure,
    /// The regulated case.
    pub regulated: Regulated,
    /// Why our figures differ from these.
    pub explanations: Vec<Explanation>,
}

/// A row of Table I, in cycles.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RoundTripFigure {
    /// Our platform.
    pub platform: String,
    /// Their name for it.
    pub theirs: String,
    /// Average of all.
    pub average: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Least.
    pub min: u64,
    /// Greatest.
    pub max: u64,
    /// Standard deviation.
    pub deviation: u64,
    /// Average without outliers.
    pub steady: u64,
    /// Standard deviation without outliers, if the text states it.
    pub steady_deviation: Option<u64>,
    /// Its place.
    #[serde(rename = "where")]
    pub place: String,
}

/// A row of Table I for a system or machine that is not built here, in its own cycles.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct OtherFigure {
    /// Their name for it.
    pub theirs: String,
    /// Average of all.
    pub average: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Least.
    pub min: u64,
    /// Greatest.
    pub max: u64,
    /// Standard deviation.
    pub deviation: u64,
    /// Average without outliers, if the text states it.
    pub steady: Option<u64>,
    /// Standard deviation without outliers, if the text states it.
    pub steady_deviation: Option<u64>,
    /// Its place.
    #[serde(rename = "where")]
    pub place: String,
}

/// A slowdown that the text states.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Published {
    /// Our platform.
    pub platform: String,
    /// Measured workload.
    pub foreground: String,
    /// Other tiles' workload.
    pub background: String,
    /// Worst slowdown.
    pub slowdown: f64,
    /// Its place.
    #[serde(rename = "where")]
    pub place: String,
}

/// Figure 3 in words.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PrioritiesFigure {
    /// Time that the server needs for a request. Without priorities, each client adds this much.
    pub service_ms: f64,
    /// Worst latency of the high-priority client, whatever the others do.
    pub high_worst_ms: f64,
}

/// The regulated case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Regulated {
    /// The platform; the authors could not regulate the other one.
    pub platform: String,
    /// Limit of each background tile.
    pub limit_mib_per_second: u64,
    /// Maximum slowdown of every workload.
    pub slowdown_at_most: f64,
}

impl Figures {
    /// Figures of the paper of the tiled OS.
    pub fn m3() -> Result<Self, Error> {
        serde_json::from_str(include_str!("../../../../catalog/figures/m3.json"))
            .map_err(|error| Error::Machine(format!("catalog/figures/m3.json: {error}")))
    }

    /// A slowdown that the text states.
    pub fn slowdown(&self, platform: &str, foreground: &str, background: &str) -> Option<f64> {
        self.slowdowns
            .iter()
            .find(|one| {
                one.platform == platform
                    && one.foreground == foreground
                    && one.background == background
            })
            .map(|one| one.slowdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_place() {
        let figures = Figures::m3().expect("valid");
        assert!(figures.round_trips.iter().all(|f| !f.place.is_empty()));
        assert!(figures.others.iter().all(|f| !f.place.is_empty()));
        assert!(figures.slowdowns.iter().all(|f| !f.place.is_empty()));
        assert_eq!(
            figures.slowdown("tiled-star", "accesses", "transfers"),
            Some(5.59)
        );
    }
}
