//! The picture of a scenario: a curve with error bars for each scheme, and what the paper states about it.
//!
//! Why it exists: several schemes often schedule nearly the same systems, so their curves cover each other. Each has a colour for
//! where I/O buffers go, a dash for the messages, and marks at its own points, which stay apart where lines do not.
//!
//! What it deliberately does not know: how anything was counted.

use super::bad_parameter;
use super::summary::{Figures, ScenarioCounts};
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::{Devices, Messages, Scheme};
use bulkhead_analysis::mc2::statistics;
use bulkhead_analysis::mc2::task_system::matching;
use bulkhead_report::plot::{failed, scalable};
use bulkhead_runner::error::Error;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

const SIZE: (u32, u32) = (760, 400);
const FONT: &str = "sans-serif";

/// Colours of Okabe and Ito, by where I/O buffers go.
fn colour(scheme: Scheme) -> RGBColor {
    match scheme.devices() {
        Devices::Random => RGBColor(0, 0, 0),
        Devices::LevelC => RGBColor(0, 114, 178),
        Devices::Own => RGBColor(213, 94, 0),
        Devices::OwnLongPeriods => RGBColor(0, 158, 115),
        Devices::OwnShortPeriods => RGBColor(204, 121, 167),
    }
}

/// Marks: triangles for long and short periods, circles for all, squares for the others; empty without optimised messages.
fn mark(scheme: Scheme, (x, y): (i32, i32)) -> Vec<(i32, i32)> {
    let corners: &[(i32, i32)] = match scheme.devices() {
        Devices::OwnLongPeriods => &[(0, -5), (5, 4), (-5, 4)],
        Devices::OwnShortPeriods => &[(0, 5), (5, -4), (-5, -4)],
        Devices::Own => &[(0, -5), (5, 0), (0, 5), (-5, 0)],
        Devices::LevelC => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        Devices::Random => &[(-5, -1), (5, -1), (5, 1), (-5, 1)],
    };
    corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect()
}

/// The picture, up to where all curves have reached zero.
///
/// # Errors
/// [`Error::Report`] if it cannot be drawn, [`Error::Machine`] if the paper's figures cannot be read.
pub fn picture(
    parameters: &StudyParameters,
    counts: &ScenarioCounts,
    schemes: &[Scheme],
) -> Result<String, Error> {
    let last = counts
        .points
        .iter()
        .rposition(|p| schemes.iter().any(|s| p.schedulable[s.index()] > 0))
        .map_or(1, |last| (last + 2).min(counts.points.len()));
    let at = |index: usize| parameters.utilisation(index as u64) as f64 / 1000.0;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..at(last.max(1) - 1), 0.0..104.0)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 230, 230))
            .axis_style(RGBColor(120, 120, 120))
            .x_desc("system utilisation in processors")
            .y_desc("schedulable systems in %")
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()
            .map_err(failed)?;
        for &scheme in schemes {
            let ink = colour(scheme);
            let line = ink.stroke_width(2);
            let is_optimised = scheme.messages() == Messages::Optimised;
            let fill = if is_optimised { ink } else { WHITE };
            let points: Vec<(f64, f64)> = counts.points[..last]
                .iter()
                .enumerate()
                .map(|(index, point)| (at(index), point.share(scheme) * 100.0))
                .collect();
            let bars = counts.points[..last].iter().enumerate().map(|(i, p)| {
                let (low, high) = statistics::bounds(p.schedulable[scheme.index()], p.samples);
                let ends = vec![(at(i), low * 100.0), (at(i), high * 100.0)];
                PathElement::new(ends, ink.mix(0.35).stroke_width(1))
            });
            chart.draw_series(bars).map_err(failed)?;
            let drawn = if is_optimised {
                chart.draw_series(LineSeries::new(points.iter().copied(), line))
            } else {
                chart.draw_series(DashedLineSeries::new(points.iter().copied(), 7, 4, line))
            };
            drawn
                .map_err(failed)?
                .label(scheme.name())
                .legend(move |(x, y)| {
                    let ends = [(x, y), (x + 24, y)];
                    let dash = if is_optimised { 0 } else { 4 };
                    EmptyElement::at((0, 0))
                        + DashedPathElement::new(ends, 7, dash, line)
                        + Polygon::new(mark(scheme, (x + 12, y)), fill.filled())
                        + PathElement::new(closed(mark(scheme, (x + 12, y))), ink)
                });
            // Marks where no other scheme has one.
            let marks = points.iter().skip(scheme.index() % 4).step_by(4);
            chart
                .draw_series(marks.map(|&at| {
                    EmptyElement::at(at)
                        + Polygon::new(mark(scheme, (0, 0)), fill.filled())
                        + PathElement::new(closed(mark(scheme, (0, 0))), ink.stroke_width(1))
                }))
                .map_err(failed)?;
        }
        for point in Figures::mc2()?.points {
            let wanted = matching(&point.scenario).map_err(bad_parameter)?;
            if !wanted.contains(&counts.scenario) || !schemes.contains(&point.scheme) {
                continue;
            }
            let ink = RGBColor(180, 30, 30).stroke_width(2);
            chart
                .draw_series([Circle::new((point.utilisation, point.percent), 8, ink)])
                .map_err(failed)?
                .label(format!("paper, {}", point.scheme.name()))
                .legend(move |(x, y)| Circle::new((x + 12, y), 5, ink));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(220, 220, 220))
            .label_font((FONT, 13))
            .legend_area_size(32)
            .position(SeriesLabelPosition::LowerLeft)
            .draw()
            .map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(scalable(svg))
}

fn closed(mut corners: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    corners.extend(corners.first().copied());
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_analysis::mc2::study::Counts;

    /// Equal curves stay apart: the nine schemes have nine pairs of colour and dash, and their own marks.
    #[test]
    fn equal_curves_stay_apart() {
        let mut seen = Vec::new();
        for scheme in Scheme::ALL {
            let looks = (colour(scheme), scheme.messages() == Messages::Optimised);
            assert!(!seen.contains(&looks), "{}", scheme.name());
            seen.push(looks);
        }
        let long = mark(Scheme::CLong, (0, 0));
        assert_ne!(long, mark(Scheme::CShort, (0, 0)));
        assert_ne!(Scheme::CLong.index() % 4, Scheme::CShort.index() % 4);
    }

    /// The paper's point is drawn only in its scenario; bars are drawn in every one.
    #[test]
    fn the_papers_point_is_drawn() {
        let parameters = StudyParameters::default();
        let counts = |pattern| ScenarioCounts {
            scenario: matching(pattern).expect("matches")[0],
            points: (0..20)
                .map(|i| Counts {
                    samples: 20,
                    schedulable: [20 - i; 9],
                })
                .collect(),
        };
        let there = counts("C-Light,Short,Medium,Slow,Large,High,Many");
        let svg = picture(&parameters, &there, &Scheme::ALL).expect("draws");
        assert!(svg.contains("paper, O|C"));
        let other = counts("C-Light,Short,Medium,Slow,Large,High,Few");
        let svg = picture(&parameters, &other, &Scheme::ALL).expect("draws");
        assert!(!svg.contains("paper"));
    }
}
