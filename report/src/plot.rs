//! Pictures as inline SVG: lines, steps, points and bars with axes that carry units.
//!
//! What it deliberately does not know: the meaning of the data.

use crate::Error;
use crate::palette::Palette;
use crate::scale::{Scale, tick};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Display;
use std::ops::Range;

/// Colours that colour-blind readers can tell apart (Okabe and Ito's palette), darkest contrast first.
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
/// Dash and gap of the first curves, in pixels: where curves overlap, the lower one shows through the gaps.
const DASHES: [(i32, i32); 5] = [SOLID, (11, 7), (3, 5), (18, 5), (7, 12)];
const SOLID: (i32, i32) = (1, 0);
/// Of published points; all are darker than the curves.
const PUBLISHED: [RGBColor; 4] = [
    RGBColor(0, 0, 0),
    RGBColor(136, 34, 85),
    RGBColor(0, 68, 51),
    RGBColor(90, 90, 90),
];
/// Deadlines and limits.
const LIMIT: RGBColor = RGBColor(180, 30, 30);
/// Words.
const INK: RGBColor = RGBColor(28, 36, 48);
/// Width and height of a picture, in pixels before the page scales it.
pub(crate) const SIZE: (u32, u32) = (760, 360);
/// Pixels at the right of a picture.
const RIGHT: i32 = 24;
pub(crate) const FONT: &str = "sans-serif";
/// Height of a line of the legend, and the width of a character and of a sample in it.
const LEGEND: i32 = 20;
const CHARACTER: i32 = 7;
const SAMPLE: i32 = 34;

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// The error of a picture that cannot be drawn.
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes<'a> {
    /// Label with unit.
    pub x: &'a str,
    /// Label with unit.
    pub y: &'a str,
    /// Logarithmic x axis, which its label mentions; all x must be positive.
    pub log_x: bool,
    /// Names of the values 1, 2, ... of the x axis, if they are cases and no numbers. Where the names have no room, the axis has the numbers.
    pub cases: &'a [String],
    /// Named horizontal lines: deadlines, limits.
    pub levels: Vec<(String, f64)>,
    /// Vertical lines.
    pub uprights: Vec<Upright>,
    /// Points of others, beside all series: filled marks, never joined.
    pub published: Vec<Series>,
}

impl Axes<'_> {
    /// Whether the names of all cases fit side by side below an axis of this many pixels.
    fn cases_fit(&self, width: i32) -> bool {
        /// Of a letter of a label, with the space between two names.
        const LETTER: usize = 8;
        let longest = self.cases.iter().map(|name| name.chars().count()).max();
        longest.unwrap_or(0) * LETTER * self.cases.len() <= width as usize
    }
}

/// A vertical line: a bound of a series, or a deadline of all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Upright {
    /// Name in the legend.
    pub name: String,
    /// The place on the axis.
    pub x: f64,
    /// The series whose colour it has; `None` for a deadline.
    pub series: Option<usize>,
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

/// An entry of the legend: how it is drawn, and its name.
enum Sample {
    Line(RGBColor, (i32, i32)),
    Mark(RGBColor, usize),
    Filled(usize),
    Box(RGBColor),
}

/// Entries side by side, in as many lines as needed: the start of each, its line, and the number of lines.
fn flow(names: &[&str], width: i32) -> (Vec<(i32, i32)>, i32) {
    let (mut x, mut line, mut places) = (0, 0, Vec::new());
    for name in names {
        let wide = SAMPLE + 18 + CHARACTER * name.chars().count() as i32;
        if x > 0 && x + wide > width {
            (x, line) = (0, line + 1);
        }
        places.push((x, line));
        x += wide;
    }
    let lines = if names.is_empty() { 0 } else { line + 1 };
    (places, lines)
}

fn words(at: HPos) -> TextStyle<'static> {
    let mut style = TextStyle::from((FONT, 13).into_font()).pos(Pos::new(at, VPos::Center));
    style.color = INK.to_backend_color();
    style
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws the legend above a picture, where no curve can hide it.
fn legend(area: &Area<'_>, left: i32, entries: &[(Sample, &str)]) -> Result<(), Error> {
    let names: Vec<&str> = entries.iter().map(|entry| entry.1).collect();
    let (places, _) = flow(&names, SIZE.0 as i32 - left);
    for ((sample, name), (x, nth)) in entries.iter().zip(places) {
        let (x, y) = (left + x, 14 + LEGEND * nth);
        match sample {
            Sample::Line(ink, dash) => {
                let ends = vec![(x, y), (x + SAMPLE - 6, y)];
                line(area, ends, *dash, ink.stroke_width(3))?;
                Ok(())
            }
            Sample::Mark(ink, shape) => area.draw(&mark((x + SAMPLE - 14, y), *shape, *ink)),
            Sample::Filled(nth) => area.draw(&filled((x + SAMPLE - 14, y), *nth)),
            Sample::Box(ink) => {
                let corners = [(x + 12, y - 5), (x + SAMPLE - 8, y + 5)];
                area.draw(&Rectangle::new(corners, ink.filled()))
            }
        }
        .map_err(failed)?;
        let text = Text::new((*name).to_owned(), (x + SAMPLE, y), words(HPos::Left));
        area.draw(&text).map_err(failed)?;
    }
    Ok(())
}

/// A line through points, with this dash and gap.
fn line(
    area: &Area<'_>,
    points: Vec<(i32, i32)>,
    (dash, gap): (i32, i32),
    style: ShapeStyle,
) -> Result<(), Error> {
    if (dash, gap) == SOLID {
        area.draw(&PathElement::new(points, style))
    } else {
        area.draw(&DashedPathElement::new(points, dash, gap, style))
    }
    .map_err(failed)
}

/// A point of the series with this number: circle, triangle, cross, square. These remain distinguishable where they
/// overlap.
fn mark((x, y): (i32, i32), series: usize, ink: RGBColor) -> PathElement<(i32, i32)> {
    let corners: &[(i32, i32)] = match series % 4 {
        0 => &[
            (-4, 0),
            (-3, -3),
            (0, -4),
            (3, -3),
            (4, 0),
            (3, 3),
            (0, 4),
            (-3, 3),
            (-4, 0),
        ],
        1 => &[(0, -4), (4, 3), (-4, 3), (0, -4)],
        2 => &[(-3, -3), (3, 3), (0, 0), (3, -3), (-3, 3)],
        _ => &[(-3, -3), (3, -3), (3, 3), (-3, 3), (-3, -3)],
    };
    let points: Vec<(i32, i32)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    PathElement::new(points, ink.stroke_width(2))
}

/// A published point: diamond, square, triangle or hexagon. They are larger than other marks, so that a curve through one does not hide it.
fn filled((x, y): (i32, i32), nth: usize) -> Polygon<(i32, i32)> {
    let corners: &[(i32, i32)] = match nth % 4 {
        0 => &[(0, -7), (6, 0), (0, 7), (-6, 0)],
        1 => &[(-5, -5), (5, -5), (5, 5), (-5, 5)],
        2 => &[(-6, -5), (6, -5), (0, 6)],
        _ => &[(-6, 0), (-3, -5), (3, -5), (6, 0), (3, 5), (-3, 5)],
    };
    let points: Vec<(i32, i32)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    Polygon::new(points, PUBLISHED[nth % PUBLISHED.len()].filled())
}

fn dash(series: usize) -> (i32, i32) {
    DASHES[series % DASHES.len()]
}

/// Lines or dots over common axes.
///
/// # Errors
/// [`Error`] if it cannot be drawn.
pub fn chart(axes: &Axes<'_>, series: &[Series], kind: Mark) -> Result<String, Error> {
    let all = || series.iter().chain(&axes.published).flat_map(|s| &s.points);
    let xs = || all().map(|p| p.0);
    let marked = xs().chain(axes.uprights.iter().map(|upright| upright.x));
    let ys = all().map(|p| p.1);
    let ys = ys.chain(axes.levels.iter().map(|level| level.1));
    let x = if !axes.cases.is_empty() {
        Scale::cases(axes.cases.len())
    } else if axes.log_x {
        Scale::logarithmic(marked)
    } else {
        Scale::linear(range(marked, false))
    };
    let y = Scale::linear(range(ys, true));
    let label = match axes.log_x {
        true => format!("{} (logarithmic axis)", axes.x),
        false => axes.x.to_owned(),
    };
    let mut entries: Vec<(Sample, &str)> = Vec::new();
    for (index, one) in series.iter().enumerate() {
        let sample = match kind {
            Mark::Line => Sample::Line(colour(index), dash(index)),
            Mark::Dots => Sample::Mark(colour(index), index),
        };
        entries.push((sample, &one.name));
    }
    for (nth, one) in axes.published.iter().enumerate() {
        entries.push((Sample::Filled(nth), &one.name));
    }
    for upright in &axes.uprights {
        let ink = upright.series.map_or(LIMIT, colour);
        entries.push((Sample::Line(ink, (2, 3)), &upright.name));
    }
    for (name, _) in &axes.levels {
        entries.push((Sample::Line(LIMIT, (6, 4)), name));
    }
    const LEFT: i32 = 72;
    let case = |x: &f64| match axes.cases.get((*x as usize).wrapping_sub(1)) {
        Some(name) if axes.cases_fit(SIZE.0 as i32 - LEFT - RIGHT) => name.clone(),
        _ => tick(x),
    };
    let names: Vec<&str> = entries.iter().map(|entry| entry.1).collect();
    let above = 6 + LEGEND * flow(&names, SIZE.0 as i32 - LEFT).1;
    let mut svg = String::new();
    {
        let size = (SIZE.0, SIZE.1 + above as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        legend(&area, LEFT, &entries)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_top(above)
            .margin_right(RIGHT)
            .x_label_area_size(44)
            .y_label_area_size(LEFT - 12)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 230, 230))
            .axis_style(RGBColor(120, 120, 120))
            .x_desc(label)
            .y_desc(axes.y)
            .x_label_formatter(&case)
            .y_label_formatter(&tick)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()
            .map_err(failed)?;
        let plot = chart.plotting_area();
        let at = |x: f64, y: f64| plot.map_coordinate(&(x, y));
        let (bottom, top) = (plot.get_pixel_range().1.end, plot.get_pixel_range().1.start);
        let (left, right) = (plot.get_pixel_range().0.start, plot.get_pixel_range().0.end);
        let line = |points: Vec<(i32, i32)>, dash, ink: RGBColor, wide: u32| {
            line(&area, points, dash, ink.stroke_width(wide))
        };
        for upright in &axes.uprights {
            let (x, ink) = (at(upright.x, 0.0).0, upright.series.map_or(LIMIT, colour));
            line(vec![(x, top), (x, bottom)], (2, 3), ink, 2)?;
        }
        for (_, level) in &axes.levels {
            let (_, y) = at(0.0, *level);
            line(vec![(left, y), (right, y)], (6, 4), LIMIT, 1)?;
        }
        for (index, one) in series.iter().enumerate() {
            let points: Vec<(i32, i32)> = one.points.iter().map(|&(x, y)| at(x, y)).collect();
            if kind == Mark::Line && points.len() > 1 {
                // A solid curve shows on both sides of those on top of it.
                let wide = if dash(index) == SOLID { 5 } else { 3 };
                line(points, dash(index), colour(index), wide)?;
                continue;
            }
            for point in points {
                area.draw(&mark(point, index, colour(index)))
                    .map_err(failed)?;
            }
        }
        for (nth, one) in axes.published.iter().enumerate() {
            for &(x, y) in &one.points {
                area.draw(&filled(at(x, y), nth)).map_err(failed)?;
            }
        }
        area.present().map_err(failed)?;
    }
    Ok(scalable(svg))
}

/// Cumulative distribution as points: the share of values at most x.
pub fn cumulative(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mut points = Vec::with_capacity(sorted.len() * 2);
    let mut before = 0.0;
    for (index, &value) in sorted.iter().enumerate() {
        // Only the corners of the steps, because many samples are equal.
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
    /// Values in the order of the parts' names; NaN for none.
    pub parts: Vec<f64>,
}

/// Horizontal bars with parts stacked (`stacked`) or side by side, coloured by number.
///
/// # Errors
/// [`Error`] if it cannot be drawn.
pub fn bars(x_label: &str, parts: &[String], rows: &[Bar], stacked: bool) -> Result<String, Error> {
    let inks = (0..parts.len()).map(colour).collect();
    drawn_bars(x_label, parts, inks, rows, stacked)
}

/// Stacked bars whose parts are applications in their colours.
///
/// # Errors
/// [`Error`] if it cannot be drawn.
pub fn application_bars(
    x_label: &str,
    parts: &[String],
    palette: &Palette,
    rows: &[Bar],
) -> Result<String, Error> {
    let inks = parts.iter().map(|name| palette.colour(name)).collect();
    drawn_bars(x_label, parts, inks, rows, true)
}

fn drawn_bars(
    x_label: &str,
    parts: &[String],
    inks: Vec<RGBColor>,
    rows: &[Bar],
    stacked: bool,
) -> Result<String, Error> {
    let lanes = if stacked { 1 } else { parts.len().max(1) };
    let row_height = if stacked { 30 } else { 10 + 20 * lanes as u32 };
    let ends = rows.iter().map(|row| match stacked {
        true => row.parts.iter().sum::<f64>(),
        false => row.parts.iter().copied().fold(0.0, f64::max),
    });
    let end = ends.fold(0.0, f64::max).max(1e-9);
    let begin = rows.iter().flat_map(|row| row.parts.iter().copied());
    let begin = begin.fold(0.0, f64::min);
    let longest = rows.iter().map(|row| row.name.chars().count()).max();
    let left = 20 + CHARACTER * longest.unwrap_or(0) as i32;
    let samples = inks.iter().map(|ink| Sample::Box(*ink));
    let entries: Vec<(Sample, &str)> = samples.zip(parts.iter().map(String::as_str)).collect();
    let names: Vec<&str> = parts.iter().map(String::as_str).collect();
    let above = 6 + LEGEND * flow(&names, SIZE.0 as i32 - left).1;
    let count = rows.len().max(1);
    let mut svg = String::new();
    {
        let height = above as u32 + row_height * count as u32 + 66;
        let area = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        legend(&area, left, &entries)?;
        // Room for the number at the end of the longest bar.
        let room = (end - begin) * 0.12;
        let from = if begin < 0.0 { begin - room } else { 0.0 };
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_top(above)
            .margin_right(24)
            .x_label_area_size(40)
            .y_label_area_size(left - 12)
            .build_cartesian_2d(
                Scale::linear(from..end + room),
                Scale::linear(0.0..count as f64),
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 230, 230))
            .axis_style(RGBColor(120, 120, 120))
            .x_desc(x_label)
            .x_label_formatter(&tick)
            .y_labels(0)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()
            .map_err(failed)?;
        let plot = chart.plotting_area();
        let at = |x: f64, y: f64| plot.map_coordinate(&(x, y));
        for (index, row) in rows.iter().enumerate() {
            let top = count as f64 - index as f64;
            let lane = 0.88 / lanes as f64;
            let mut sum = 0.0;
            let all = row.parts.iter().copied().enumerate();
            for (part, value) in all.filter(|(_, value)| value.is_finite()) {
                let y = if stacked {
                    top - 0.12
                } else {
                    top - 0.06 - lane * part as f64
                };
                let (start, stop) = if stacked {
                    (sum, sum + value)
                } else {
                    (0.0, value)
                };
                let high = if stacked { 0.76 } else { lane * 0.9 };
                sum += value;
                let corners = [at(start, y), at(stop, y - high)];
                let ink = inks.get(part).copied().unwrap_or(INK);
                area.draw(&Rectangle::new(corners, ink.filled()))
                    .map_err(failed)?;
                if !stacked {
                    number(&area, at(stop.max(0.0), y - high / 2.0), value)?;
                }
            }
            if stacked {
                number(&area, at(sum, top - 0.5), sum)?;
            }
            let (x, y) = at(from, top - 0.5);
            let name = Text::new(row.name.clone(), (x - 8, y), words(HPos::Right));
            area.draw(&name).map_err(failed)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(scalable(svg))
}

/// A value after the end of its bar.
fn number(area: &Area<'_>, (x, y): (i32, i32), value: f64) -> Result<(), Error> {
    let text = match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.01 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    let text = Text::new(text, (x + 5, y), words(HPos::Left));
    area.draw(&text).map_err(failed)
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
        // Two of four values are 1, so half are at most 1.
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
            levels: vec![("deadline".to_owned(), 4.0)],
            uprights: vec![Upright {
                name: "bound of alone".to_owned(),
                x: 3.0,
                series: Some(0),
            }],
            ..Axes::default()
        };
        let svg = chart(&axes, &series, Mark::Line).expect("draws");
        assert!(
            svg.starts_with("<svg viewBox=\"0 0 760 386\""),
            "{}",
            &svg[..80]
        );
        for text in [
            "time in ms",
            "latency in us",
            "alone",
            "deadline",
            "bound of alone",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn cases_have_their_names_where_they_fit() {
        let drawn = |names: &[&str]| {
            let cases: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let axes = Axes {
                x: "loop",
                y: "GB/s",
                cases: &cases,
                ..Axes::default()
            };
            let points = (1..=names.len()).map(|case| (case as f64, 1.0)).collect();
            let one = Series {
                name: "s".to_owned(),
                points,
            };
            chart(&axes, &[one], Mark::Dots).expect("it draws")
        };
        let svg = drawn(&["read", "write", "copy"]);
        assert!(
            svg.contains("\nread\n") && svg.contains("\ncopy\n"),
            "{svg}"
        );
        assert!(!svg.contains("\n1.5\n"), "{svg}");
        let long = ["a name that is long"; 6];
        let svg = drawn(&long);
        assert!(!svg.contains("a name"), "{svg}");
        assert!(svg.contains("\n6\n"), "{svg}");
    }

    #[test]
    fn empty_charts_draw() {
        let axes = Axes {
            x: "x",
            y: "y",
            log_x: true,
            ..Axes::default()
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
