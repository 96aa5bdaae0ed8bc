//! From counts to areas and ratios, beside the paper's.
//!
//! What it deliberately does not know: files, and how systems were judged.

use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::statistics;
use bulkhead_analysis::mc2::study::Counts;
use bulkhead_analysis::mc2::task_system::{Scenario, matching};
use bulkhead_runner::error::Error;
use serde::{Deserialize, Serialize};

/// What the paper's text states of the study.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Figures {
    /// The paper.
    pub source: String,
    /// Scenarios.
    pub scenarios: usize,
    /// Processor time.
    pub cpu_days: u64,
    /// Confidence.
    pub confidence: String,
    /// Ratios of areas.
    pub areas: Vec<AreaFigure>,
}

/// One ratio of schedulable-utilisation areas.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AreaFigure {
    /// The larger area.
    pub scheme: Scheme,
    /// The other one.
    pub over: Scheme,
    /// Only these scenarios; all if absent.
    pub only: Option<String>,
    /// By how much it is larger, in percent.
    pub percent: f64,
    /// Where it stands.
    #[serde(rename = "where")]
    pub place: String,
}

impl Figures {
    /// The study's figures.
    pub fn mc2() -> Result<Self, Error> {
        serde_json::from_str(include_str!("../../../catalog/figures/mc2-study.json"))
            .map_err(|error| Error::Machine(format!("catalog/figures/mc2-study.json: {error}")))
    }
}

/// Everything that was counted in one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioCounts {
    /// Which.
    pub scenario: Scenario,
    /// One for each point on the horizontal axis.
    pub points: Vec<Counts>,
}

/// The area under a scheme's curve and the variance that the confidence of its points gives it.
fn area(parameters: &StudyParameters, counts: &ScenarioCounts, scheme: Scheme) -> (f64, f64) {
    let step = parameters.utilisation_step as f64 / 1000.0;
    let shares: Vec<f64> = counts.points.iter().map(|c| c.share(scheme)).collect();
    let variance = counts
        .points
        .iter()
        .zip(&shares)
        .map(|(c, p)| step * step * p * (1.0 - p) / (c.samples.max(1) as f64))
        .sum();
    (statistics::area(&shares, step), variance)
}

/// A scheme's schedulable-utilisation area over all scenarios of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// Scheme.
    pub scheme: Scheme,
    /// Sum of the areas under its curves, in processors.
    pub area: f64,
    /// Mean for a scenario, in processors.
    pub mean: f64,
}

/// A ratio of areas beside the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The first scheme.
    pub scheme: Scheme,
    /// The second one.
    pub over: Scheme,
    /// Which scenarios.
    pub only: String,
    /// How many of them were studied.
    pub scenarios: usize,
    /// By how much the first one's area is larger, in percent.
    pub ours: f64,
    /// Half width of its 95 % confidence interval in percentage points, as if both schemes had judged different systems. (They
    /// judge the same ones, so the true interval is narrower.)
    pub confidence: f64,
    /// The paper's.
    pub paper: f64,
    /// Ours less the paper's, in percentage points.
    pub difference: f64,
    /// Where the paper says so.
    #[serde(rename = "where")]
    pub place: String,
}

/// Areas of all schemes.
pub fn areas(
    parameters: &StudyParameters,
    counts: &[ScenarioCounts],
    schemes: &[Scheme],
) -> Vec<Area> {
    schemes
        .iter()
        .map(|&scheme| {
            let area: f64 = counts.iter().map(|c| area(parameters, c, scheme).0).sum();
            Area {
                scheme,
                area,
                mean: area / counts.len().max(1) as f64,
            }
        })
        .collect()
}

/// Ratios of areas, as far as schemes and scenarios were studied.
pub fn comparisons(
    parameters: &StudyParameters,
    counts: &[ScenarioCounts],
    schemes: &[Scheme],
) -> Result<Vec<Comparison>, Error> {
    let mut all = Vec::new();
    for figure in Figures::mc2()?.areas {
        if !schemes.contains(&figure.scheme) || !schemes.contains(&figure.over) {
            continue;
        }
        let only = figure.only.clone().unwrap_or_else(|| "*".to_owned());
        let wanted = matching(&only)
            .map_err(|e| Error::Machine(format!("catalog/figures/mc2-study.json: {e}")))?;
        let some: Vec<&ScenarioCounts> = counts
            .iter()
            .filter(|c| wanted.binary_search(&c.scenario).is_ok())
            .collect();
        let sum = |scheme| {
            some.iter()
                .map(|c| area(parameters, c, scheme))
                .fold((0.0, 0.0), |(a, v), (area, variance)| {
                    (a + area, v + variance)
                })
        };
        let ((first, first_variance), (second, second_variance)) =
            (sum(figure.scheme), sum(figure.over));
        if second <= 0.0 {
            continue;
        }
        let ratio = first / second;
        let relative =
            first_variance / (first * first).max(1e-300) + second_variance / (second * second);
        let ours = (ratio - 1.0) * 100.0;
        all.push(Comparison {
            scheme: figure.scheme,
            over: figure.over,
            only,
            scenarios: some.len(),
            ours,
            confidence: 1.96 * ratio * relative.sqrt() * 100.0,
            paper: figure.percent,
            difference: ours - figure.percent,
            place: figure.place,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two points at 0.5 and 1.0: C|C falls to zero at 1.0, R|R is half as good at 0.5.
    #[test]
    fn ratios_by_hand() {
        let parameters = StudyParameters {
            utilisation_step: 500,
            ..StudyParameters::default()
        };
        let point = |rr, cc| Counts {
            samples: 100,
            schedulable: [rr, cc, 0, 0, 0, 0, 0, 0, 0],
        };
        let counts = [ScenarioCounts {
            scenario: Scenario([0; 7]),
            points: vec![point(50, 100), point(0, 0)],
        }];
        let schemes = [Scheme::RR, Scheme::CC];
        let areas = areas(&parameters, &counts, &schemes);
        // 0.5 * (1 + 0.5) / 2 + 0.5 * 0.5 / 2 and 0.5 + 0.5 / 2.
        assert!((areas[0].area - 0.5).abs() < 1e-12 && (areas[1].area - 0.75).abs() < 1e-12);
        let comparisons = comparisons(&parameters, &counts, &schemes).expect("figures are valid");
        assert_eq!(comparisons.len(), 1);
        assert!((comparisons[0].ours - 50.0).abs() < 1e-9);
        assert!((comparisons[0].difference - 45.0).abs() < 1e-9);
        // Only R|R at 0.5 is uncertain: 0.5 * sqrt (0.25 / 100) / 0.5 = 5 % of its area.
        assert!((comparisons[0].confidence - 1.96 * 1.5 * 5.0).abs() < 1e-6);
    }

    #[test]
    fn every_figure_has_its_place() {
        let figures = Figures::mc2().expect("valid");
        assert_eq!(figures.areas.len(), 11);
        assert!(figures.areas.iter().all(|f| !f.place.is_empty()));
    }
}
