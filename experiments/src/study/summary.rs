//! From counts to areas and ratios, compared with the paper's.
//!
//! What it deliberately does not know: files, and how systems were judged.

use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::statistics;
use bulkhead_analysis::mc2::study::Counts;
use bulkhead_analysis::mc2::task_system::{Scenario, matching};
use bulkhead_runner::error::Error;
use serde::{Deserialize, Serialize};

/// The figures that the paper's text states about the study.
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
    /// Points of curves.
    pub points: Vec<PointFigure>,
}

/// One point of a curve.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PointFigure {
    /// The scheme.
    pub scheme: Scheme,
    /// The scenario.
    pub scenario: String,
    /// System utilisation in processors.
    pub utilisation: f64,
    /// Schedulable systems in percent.
    pub percent: f64,
    /// Its place.
    #[serde(rename = "where")]
    pub place: String,
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
    /// How much larger it is, in percent.
    pub percent: f64,
    /// Its place.
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
    /// The scenario.
    pub scenario: Scenario,
    /// One for each point on the horizontal axis.
    pub points: Vec<Counts>,
}

/// The area under a scheme's curve, and its variance due to the confidence of the points.
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

/// A ratio of areas and the paper's.
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
    /// How much larger the first one's area is, in percent.
    pub ours: f64,
    /// Half width of its 95 % confidence interval in percentage points, as if both schemes had judged different systems. (They judge
    /// the same ones, so the true interval is narrower.)
    pub confidence: f64,
    /// The paper's.
    pub paper: f64,
    /// Ours minus the paper's, in percentage points.
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

/// How much larger one scheme's area is than another's, in percent, and half the width of its 95 % confidence interval in percentage
/// points, as in [`Comparison::confidence`]; `None` if the other one has no area.
pub fn ratio(
    parameters: &StudyParameters,
    counts: &[&ScenarioCounts],
    scheme: Scheme,
    over: Scheme,
) -> Option<(f64, f64)> {
    let sum = |scheme| {
        counts
            .iter()
            .map(|c| area(parameters, c, scheme))
            .fold((0.0, 0.0), |(a, v), (area, variance)| {
                (a + area, v + variance)
            })
    };
    let ((first, first_variance), (second, second_variance)) = (sum(scheme), sum(over));
    if second <= 0.0 {
        return None;
    }
    let ratio = first / second;
    let relative =
        first_variance / (first * first).max(1e-300) + second_variance / (second * second);
    Some((
        (ratio - 1.0) * 100.0,
        1.96 * ratio * relative.sqrt() * 100.0,
    ))
}

/// Ratios of areas, for the studied schemes and scenarios.
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
        let Some((ours, confidence)) = ratio(parameters, &some, figure.scheme, figure.over) else {
            continue;
        };
        all.push(Comparison {
            scheme: figure.scheme,
            over: figure.over,
            only,
            scenarios: some.len(),
            ours,
            confidence,
            paper: figure.percent,
            difference: ours - figure.percent,
            place: figure.place,
        });
    }
    Ok(all)
}

/// Sums of areas that must be above zero.
type Sums = &'static [&'static [(f64, Scheme)]];

/// The claims of each of the paper's observations on the study about every scenario's areas.
const CLAIMS: &[(&str, &str, Sums)] = &[
    (
        "7",
        "C|C is better than R|R",
        &[&[(1.0, Scheme::CC), (-1.0, Scheme::RR)]],
    ),
    (
        "8",
        "O|C is better than C|C",
        &[&[(1.0, Scheme::OC), (-1.0, Scheme::CC)]],
    ),
    (
        "9",
        "C|C+A/B-ALL is better than C|C",
        &[&[(1.0, Scheme::CAll), (-1.0, Scheme::CC)]],
    ),
    (
        "10",
        "x|C+A/B-ALL is better than x|C+A/B-LP and x|C+A/B-SP",
        &[
            &[(1.0, Scheme::CAll), (-1.0, Scheme::CLong)],
            &[(1.0, Scheme::CAll), (-1.0, Scheme::CShort)],
            &[(1.0, Scheme::OAll), (-1.0, Scheme::OLong)],
            &[(1.0, Scheme::OAll), (-1.0, Scheme::OShort)],
        ],
    ),
    (
        "10, its second part",
        "C|C+A/B-LP and C|C+A/B-SP are closer to C|C than to C|C+A/B-ALL",
        &[
            &[
                (1.0, Scheme::CC),
                (1.0, Scheme::CAll),
                (-2.0, Scheme::CLong),
            ],
            &[
                (1.0, Scheme::CC),
                (1.0, Scheme::CAll),
                (-2.0, Scheme::CShort),
            ],
        ],
    ),
    (
        "11",
        "O|C+A/B-ALL is better than O|C, C|C+A/B-ALL, C|C and R|R",
        &[
            &[(1.0, Scheme::OAll), (-1.0, Scheme::OC)],
            &[(1.0, Scheme::OAll), (-1.0, Scheme::CAll)],
            &[(1.0, Scheme::OAll), (-1.0, Scheme::CC)],
            &[(1.0, Scheme::OAll), (-1.0, Scheme::RR)],
        ],
    ),
];

/// In how many scenarios one of the paper's observations holds. The paper states them for the sums over all scenarios.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Its number.
    pub number: String,
    /// The claim that was judged.
    pub claim: String,
    /// Whether it holds for the sums over all scenarios of the study.
    pub of_sums: bool,
    /// Scenarios in which it holds.
    pub holds: usize,
    /// Scenarios among these in which it holds by more than sampling can explain at 95 %.
    pub surely_holds: usize,
    /// Scenarios in which the opposite of some part holds.
    pub fails: usize,
    /// Scenarios among these in which it fails by more than sampling can explain.
    pub surely_fails: usize,
    /// Scenarios in which nothing is reversed, but some areas are equal.
    pub equal: usize,
}

/// Judges the paper's observations scenario by scenario, for the studied schemes.
pub fn observations(
    parameters: &StudyParameters,
    counts: &[ScenarioCounts],
    schemes: &[Scheme],
) -> Vec<Observation> {
    let asked = |sums: &Sums| {
        let mut all = sums.iter().flat_map(|sum| sum.iter());
        all.all(|(_, scheme)| schemes.contains(scheme))
    };
    CLAIMS
        .iter()
        .filter(|(_, _, sums)| asked(sums))
        .map(|&(number, claim, sums)| {
            let mut all = Observation {
                number: number.to_owned(),
                claim: claim.to_owned(),
                of_sums: false,
                holds: 0,
                surely_holds: 0,
                fails: 0,
                surely_fails: 0,
                equal: 0,
            };
            let mut totals = vec![0.0; sums.len()];
            for one in counts {
                let mut parts = Vec::with_capacity(sums.len());
                for (total, sum) in totals.iter_mut().zip(sums) {
                    let (mut value, mut variance) = (0.0, 0.0);
                    for &(factor, scheme) in *sum {
                        let (a, v) = area(parameters, one, scheme);
                        value += factor * a;
                        variance += factor * factor * v;
                    }
                    *total += value;
                    // A rounding error is not a difference: areas are multiples of far larger values.
                    let value = if value.abs() < 1e-9 { 0.0 } else { value };
                    parts.push((value, 1.96 * f64::sqrt(variance)));
                }
                if parts.iter().any(|(value, _)| *value < 0.0) {
                    all.fails += 1;
                    all.surely_fails += usize::from(parts.iter().any(|(v, w)| *v < -w));
                } else if parts.iter().all(|(value, _)| *value > 0.0) {
                    all.holds += 1;
                    all.surely_holds += usize::from(parts.iter().all(|(v, w)| v > w));
                } else {
                    all.equal += 1;
                }
            }
            all.of_sums = !counts.is_empty() && totals.iter().all(|t| *t > 0.0);
            all
        })
        .collect()
}

/// Where the mean of a scheme lies between `C|C` (0) and `C|C+A/B-ALL` (1); `None` if these are equal.
pub fn between(
    parameters: &StudyParameters,
    counts: &[ScenarioCounts],
    scheme: Scheme,
) -> Option<f64> {
    let sum = |scheme| -> f64 { counts.iter().map(|c| area(parameters, c, scheme).0).sum() };
    let (low, high) = (sum(Scheme::CC), sum(Scheme::CAll));
    ((high - low).abs() > 1e-9).then(|| (sum(scheme) - low) / (high - low))
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

    /// Three scenarios of one point: C|C above R|R by far, by one of ten, and below by far.
    #[test]
    fn observations_by_hand() {
        let parameters = StudyParameters {
            utilisation_step: 1_000,
            ..StudyParameters::default()
        };
        let one = |index, samples, rr, cc| ScenarioCounts {
            scenario: Scenario::from_index(index).expect("exists"),
            points: vec![Counts {
                samples,
                schedulable: [rr, cc, 0, 0, 0, 0, 0, 0, 0],
            }],
        };
        let counts = [
            one(0, 100, 10, 90),
            one(1, 10, 5, 6),
            one(2, 100, 60, 20),
            one(3, 10, 5, 5),
        ];
        let found = observations(&parameters, &counts, &[Scheme::RR, Scheme::CC]);
        assert_eq!(found.len(), 1, "others ask for schemes that are not there");
        let one = &found[0];
        assert_eq!((one.holds, one.surely_holds), (2, 1));
        assert_eq!((one.fails, one.surely_fails, one.equal), (1, 1, 1));
        // 0.8 + 0.1 - 0.4 halves.
        assert!(one.of_sums);
    }

    #[test]
    fn every_figure_has_its_place() {
        let figures = Figures::mc2().expect("valid");
        assert_eq!(figures.areas.len(), 11);
        assert!(figures.areas.iter().all(|f| !f.place.is_empty()));
        for point in &figures.points {
            let scenarios = matching(&point.scenario).expect("matches");
            assert!(scenarios.len() == 1 && !point.place.is_empty());
        }
    }
}
