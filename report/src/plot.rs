//! Pictures as inline SVG: lines, steps, points and bars with axes that carry units.
//!
//! What it deliberately does not know: what is plotted.

use crate::Error;
use plotters::prelude::*;
use std::fmt::Display;
use std::ops::Range;

/// Colours that stay apart for readers with colour blindness (Okabe and Ito's palette), darkest contrast first.
const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
    RGBColor(0, 0, 0),
    RGBColor(136, 34, 85),
];
/// Width and height of a picture, in pixels before the page scales it.
pub(crate) const SIZE: (u32, u32) = (760, 360);
pub(crate) const FONT: &str = "sans-serif";

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// What a picture that cannot be drawn says.
pub fn failed(error: impl Display) -> Error {
    Error::new(error)
}

/// Named points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y).
    pub points: Vec<(f64, f64)>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Joined by lines, with dots.
    Line,
    /// As dots.
    Dots,
}

/// Axes of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes<'a> {
    /// Label with unit.
    pub x: &'a str,
    /// Label with unit.
    pub y: &'a str,
    /// Logarithmic x axis; all x must be positive.
    pub log_x: bool,
    /// Horizontal lines with a name: deadlines, limits.
    pub levels: Vec<(String, f64)>,
    /// The legend is at the lower right, where a rising curve leaves room, not at the upper right.
    pub legend_below: bool,
}

fn range(values: impl Iterator<Item = f64>, from_zero: bool) -> Range<f64> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|v| v.is_finite()) {
        low = low.min(value);
        high = high.max(value);
    }
    if !low.is_finite() {
        return 0.0..1.0;
    }
    if from_zero {
        low = low.min(0.0);
    }
    let room = if high > low {
        (high - low) * 0.04
    } else {
        high.abs() * 0.1 + 1.0
    };
    if from_zero {
        low..high + room
    } else {
        low - room..high + room
    }
}

/// A number on an axis without needless digits.
pub(crate) fn tick(value: &f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 || *value == value.round() {
        format!("{value:.0}")
    } else if magnitude >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}

/// Lines or dots over common axes.
pub fn chart(axes: &Axes<'_>, series: &[Series], mark: Mark) -> Result<String, Error> {
    let legend = if axes.legend_below {
        SeriesLabelPosition::LowerRight
    } else {
        SeriesLabelPosition::UpperRight
    };
    chart_with(axes, series, mark, legend)
}

/// Lines that rise: the legend is at the upper left, where they leave room.
pub fn rising(axes: &Axes<'_>, series: &[Series]) -> Result<String, Error> {
    chart_with(axes, series, Mark::Line, SeriesLabelPosition::UpperLeft)
}

fn chart_with(
    axes: &Axes<'_>,
    series: &[Series],
    mark: Mark,
    legend: SeriesLabelPosition,
) -> Result<String, Error> {
    let xs = || series.iter().flat_map(|s| s.points.iter().map(|p| p.0));
    let ys = series
        .iter()
        .flat_map(|s| s.points.iter().map(|p| p.1))
        .chain(axes.levels.iter().map(|level| level.1));
    let y = range(ys, true);
    if axes.log_x {
        let x = range(xs(), false);
        // Without points there is nothing to take a logarithm of.
        let low = xs().filter(|x| *x > 0.0).fold(x.end, f64::min) * 0.9;
        // Labels count from a power of ten; without one in the range there would be none.
        let power = 10f64.powf(low.log10().floor());
        let low = if power * 10.0 > x.end * 1.1 {
            power
        } else {
            low
        };
        draw(
            axes,
            series,
            mark,
            legend,
            (low..x.end * 1.1).log_scale(),
            y,
            low,
        )
    } else {
        let x = range(xs(), false);
        let left = x.start;
        draw(axes, series, mark, legend, x, y, left)
    }
}

fn draw<X>(
    axes: &Axes<'_>,
    series: &[Series],
    mark: Mark,
    legend: SeriesLabelPosition,
    x: X,
    y: Range<f64>,
    left: f64,
) -> Result<String, Error>
where
    X: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
    X::CoordDescType: plotters::coord::ranged1d::ValueFormatter<f64>,
{
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 230, 230))
            .axis_style(RGBColor(120, 120, 120))
            .x_desc(axes.x)
            .y_desc(axes.y)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()
            .map_err(failed)?;
        for (index, one) in series.iter().enumerate() {
            let ink = colour(index);
            // Equal curves lie upon each other: what is below looks out on both sides.
            let wider = match series.len() {
                few @ 2..=4 => (few - 1 - index) as u32,
                _ => 0,
            };
            let drawn = match mark {
                Mark::Line => chart
                    .draw_series(LineSeries::new(
                        one.points.iter().copied(),
                        ink.stroke_width(2 + wider),
                    ))
                    .map_err(failed)?,
                Mark::Dots => chart
                    .draw_series(
                        one.points
                            .iter()
                            .map(|&p| Circle::new(p, 2 + wider as i32, ink.filled())),
                    )
                    .map_err(failed)?,
            };
            drawn
                .label(one.name.as_str())
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], ink.filled()));
        }
        let right = series
            .iter()
            .flat_map(|s| s.points.iter().map(|p| p.0))
            .fold(left, f64::max);
        for (name, level) in &axes.levels {
            let ink = RGBColor(180, 30, 30);
            chart
                .draw_series(DashedLineSeries::new(
                    [(left, *level), (right, *level)],
                    6,
                    4,
                    ink.stroke_width(1),
                ))
                .map_err(failed)?
                .label(name.as_str())
                .legend(move |(x, y)| Rectangle::new([(x, y - 1), (x + 12, y + 1)], ink.filled()));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(220, 220, 220))
            .label_font((FONT, 13))
            .position(legend)
            .draw()
            .map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(scalable(svg))
}

/// Cumulative distribution as points: the share of values that are not above x.
pub fn cumulative(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mut points = Vec::with_capacity(sorted.len() * 2);
    let mut before = 0.0;
    for (index, &value) in sorted.iter().enumerate() {
        // Only the corners of the steps: many samples are equal.
        if sorted.get(index + 1) == Some(&value) {
            continue;
        }
        let after = 100.0 * (index + 1) as f64 / count;
        points.push((value, before));
        points.push((value, after));
        before = after;
    }
    points
}

/// A horizontal bar made of named parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Name at the axis.
    pub name: String,
    /// Values in the order of the parts' names.
    pub parts: Vec<f64>,
}

/// Horizontal bars, their parts stacked (`stacked`) or beside each other.
pub fn bars(x_label: &str, parts: &[String], rows: &[Bar], stacked: bool) -> Result<String, Error> {
    let height = 70
        + 26 * rows.len().max(1) as u32
            * if stacked {
                1
            } else {
                parts.len().max(1) as u32
            }
        + 20 * parts.len() as u32;
    let end = rows
        .iter()
        .map(|row| {
            if stacked {
                row.parts.iter().sum::<f64>()
            } else {
                row.parts.iter().copied().fold(0.0, f64::max)
            }
        })
        .fold(0.0, f64::max)
        .max(1e-9);
    let room = 20 * parts.len() as i32;
    let label_width = 12
        + 8 * rows
            .iter()
            .map(|row| row.name.chars().count())
            .max()
            .unwrap_or(0) as u32;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        let (legend, area_below) = area.split_vertically(room);
        for (index, name) in parts.iter().enumerate() {
            let y = 12 + 20 * index as i32;
            legend
                .draw(&Rectangle::new(
                    [
                        (label_width as i32 + 12, y - 5),
                        (label_width as i32 + 24, y + 5),
                    ],
                    colour(index).filled(),
                ))
                .map_err(failed)?;
            legend
                .draw(&Text::new(
                    name.clone(),
                    (label_width as i32 + 30, y - 6),
                    (FONT, 13),
                ))
                .map_err(failed)?;
        }
        let count = rows.len().max(1);
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let mut chart = ChartBuilder::on(&area_below)
            .margin(12)
            .margin_right(24)
            .x_label_area_size(40)
            .y_label_area_size(label_width)
            .build_cartesian_2d(0.0..end * 1.05, 0.0..count as f64)
            .map_err(failed)?;
        let name_of = |y: &f64| {
            // Rows run from top to bottom; labels stand at the middle of a row.
            let row = count as f64 - y - 0.5;
            if (row - row.round()).abs() < 1e-6 && row >= -0.1 {
                names.get(row.round() as usize).cloned().unwrap_or_default()
            } else {
                String::new()
            }
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 230, 230))
            .axis_style(RGBColor(120, 120, 120))
            .x_desc(x_label)
            .x_label_formatter(&tick)
            .y_labels(0)
            .y_label_formatter(&name_of)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()
            .map_err(failed)?;
        for (index, row) in rows.iter().enumerate() {
            let top = count as f64 - index as f64;
            let mut from = 0.0;
            let lane = 0.8 / row.parts.len().max(1) as f64;
            for (part, &value) in row.parts.iter().enumerate() {
                let corners = if stacked {
                    let corners = [(from, top - 0.15), (from + value, top - 0.85)];
                    from += value;
                    corners
                } else {
                    let y = top - 0.1 - lane * part as f64;
                    [(0.0, y), (value, y - lane * 0.9)]
                };
                chart
                    .draw_series(std::iter::once(Rectangle::new(
                        corners,
                        colour(part).filled(),
                    )))
                    .map_err(failed)?;
            }
        }
        // Names beside the rows: drawn by hand because an axis of numbers would not put them at the middle.
        let plot = chart.plotting_area().clone();
        for (index, name) in names.iter().enumerate() {
            let (x, y) = plot.map_coordinate(&(0.0, count as f64 - index as f64 - 0.5));
            let style = TextStyle::from((FONT, 13).into_font()).pos(
                plotters::style::text_anchor::Pos::new(
                    plotters::style::text_anchor::HPos::Right,
                    plotters::style::text_anchor::VPos::Center,
                ),
            );
            area.draw(&Text::new(name.clone(), (x - 8, y), style))
                .map_err(failed)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(scalable(svg))
}

/// Lets the picture shrink with the page.
pub fn scalable(svg: String) -> String {
    let Some(start) = svg.find("<svg ") else {
        return svg;
    };
    let Some(end) = svg[start..].find('>') else {
        return svg;
    };
    let tag = &svg[start..start + end];
    let value = |name: &str| {
        tag.split_once(&format!(" {name}=\""))
            .and_then(|(_, rest)| rest.split_once('"'))
            .map(|(value, _)| value)
            .unwrap_or_default()
    };
    let (width, height) = (value("width"), value("height"));
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\"{}",
        &svg[start + end..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_cumulative_distribution() {
        // Two of four values are 1, so half lie at or below it.
        assert_eq!(
            cumulative(&[2.0, 1.0, 1.0, 4.0]),
            [
                (1.0, 0.0),
                (1.0, 50.0),
                (2.0, 50.0),
                (2.0, 75.0),
                (4.0, 75.0),
                (4.0, 100.0)
            ]
        );
    }

    #[test]
    fn a_chart_has_labels_and_scales() {
        let series = [Series {
            name: "alone".to_owned(),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
        }];
        let axes = Axes {
            x: "time in ms",
            y: "latency in us",
            log_x: false,
            legend_below: false,
            levels: vec![("deadline".to_owned(), 4.0)],
        };
        let svg = chart(&axes, &series, Mark::Line).expect("draws");
        assert!(
            svg.starts_with("<svg viewBox=\"0 0 760 360\""),
            "{}",
            &svg[..80]
        );
        for text in ["time in ms", "latency in us", "alone", "deadline"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn empty_charts_draw() {
        let axes = Axes {
            x: "x",
            y: "y",
            log_x: true,
            legend_below: false,
            levels: Vec::new(),
        };
        assert!(chart(&axes, &[], Mark::Dots).is_ok());
        assert!(bars("x", &[], &[], true).is_ok());
    }

    #[test]
    fn rows_keep_their_names() {
        let rows = [
            Bar {
                name: "alone".to_owned(),
                parts: vec![1.0, 2.0],
            },
            Bar {
                name: "unregulated".to_owned(),
                parts: vec![5.0, 2.0],
            },
        ];
        let svg =
            bars("us", &["hog".to_owned(), "refresh".to_owned()], &rows, true).expect("draws");
        for text in ["alone", "unregulated", "hog", "refresh"] {
            assert!(svg.contains(text), "{text}");
        }
    }
}
