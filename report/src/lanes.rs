//! Pictures with a lane for each task: bars against deadlines, and schedules over time.
//!
//! Why it exists: with a row for each task and time running to the right, a reader sees at once which task is late, and why. What
//! it deliberately does not know: the meaning of the bars; analyses.

use super::plot::{FONT, SIZE, failed, scalable};
use super::scale::{Scale, tick};
use crate::Error;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Height of a lane, of the axis with its label, and of a line of the legend, in pixels.
const LANE: u32 = 26;
const AXIS: u32 = 52;
const LEGEND: u32 = 20;
/// Maximum characters of a name that are shown.
const NAME: usize = 24;
/// Width of a character.
const CHARACTER: u32 = 7;

/// Colours with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The worst case.
    Bound,
    /// An observation.
    Response,
    /// Something late or without a bound.
    Late,
    /// A limit.
    Limit,
    /// Kernel work, which comes before all tasks.
    Kernel,
    /// Words next to the bars.
    Word,
    /// A part of an application with its own colour.
    Own(RGBColor),
}

impl Ink {
    fn colour(self) -> RGBColor {
        match self {
            Self::Bound => RGBColor(150, 195, 224),
            Self::Response => RGBColor(0, 95, 150),
            Self::Late => RGBColor(213, 94, 0),
            Self::Limit => RGBColor(160, 20, 30),
            Self::Kernel => RGBColor(110, 110, 110),
            Self::Word => RGBColor(28, 36, 48),
            Self::Own(colour) => colour,
        }
    }

    /// A colour that is readable on it.
    fn contrast(self) -> RGBColor {
        let RGBColor(r, g, b) = self.colour();
        // Brightness as perceived by the eye (ITU-R BT.601), in thousandths.
        match 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) {
            140_000.. => Self::Word.colour(),
            _ => WHITE,
        }
    }
}

/// A thing in a lane.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// From the first to the second position, over this share of the lane's height.
    Bar(f64, f64, f64, Ink),
    /// A line across the lane's height.
    Line(f64, Ink),
    /// An arrow up: a release.
    Up(f64, Ink),
    /// An arrow down: a deadline.
    Down(f64, Ink),
    /// A text in a bar of this colour between the two positions, if it is wide enough.
    Label(f64, f64, String, Ink),
    /// Words that begin here.
    Words(f64, String, Ink),
}

/// A row of a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Its name at the left.
    pub name: String,
    /// Its colour on every picture, if it has one.
    pub colour: Option<RGBColor>,
    /// Its shapes; later ones cover earlier ones.
    pub shapes: Vec<Shape>,
    /// Text to the right of it.
    pub aside: String,
}

/// Everything else in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<'a> {
    /// Label of the time axis, with unit.
    pub axis: &'a str,
    /// Where the axis begins and ends. A logarithmic one begins above 0.
    pub range: (f64, f64),
    /// The axis is logarithmic.
    pub logarithmic: bool,
    /// The meaning of the colours, in words.
    pub legend: &'a [(&'a str, Shape)],
}

/// A name shortened to fit next to its lane.
fn short(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    let begin: String = name.chars().take(NAME - 1).collect();
    format!("{begin}…")
}

fn width(texts: impl Iterator<Item = usize>) -> u32 {
    12 + CHARACTER * u32::try_from(texts.max().unwrap_or(0)).unwrap_or(0)
}

fn words(ink: RGBColor, at: HPos) -> TextStyle<'static> {
    let mut style = TextStyle::from((FONT, 13).into_font()).pos(Pos::new(at, VPos::Center));
    style.color = ink.to_backend_color();
    style
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws a shape into the box of this `height` that starts at `top`; `x` maps times to positions.
fn draw(
    area: &Area<'_>,
    shape: &Shape,
    x: &dyn Fn(f64) -> i32,
    top: i32,
    height: i32,
) -> Result<(), Error> {
    let (bottom, middle) = (top + height, top + height / 2);
    let line = |points: Vec<(i32, i32)>, ink: Ink, wide: u32| {
        let style = ink.colour().stroke_width(wide);
        area.draw(&PathElement::new(points, style)).map_err(failed)
    };
    match shape {
        Shape::Bar(from, to, share, ink) => {
            let half = (f64::from(height) * share / 2.0).round() as i32;
            // A part that is too short for a pixel is still visible.
            let (left, right) = (x(*from), x(*to).max(x(*from) + 1));
            let corners = [(left, middle - half), (right, middle + half)];
            area.draw(&Rectangle::new(corners, ink.colour().filled()))
                .map_err(failed)
        }
        Shape::Line(at, ink) => line(vec![(x(*at), top + 2), (x(*at), bottom - 2)], *ink, 3),
        Shape::Up(at, ink) => {
            let at = x(*at);
            line(vec![(at, bottom), (at, top + 3)], *ink, 1)?;
            line(
                vec![(at - 3, top + 8), (at, top + 2), (at + 3, top + 8)],
                *ink,
                1,
            )
        }
        Shape::Down(at, ink) => {
            let at = x(*at);
            line(vec![(at, top), (at, bottom - 3)], *ink, 1)?;
            line(
                vec![(at - 3, bottom - 8), (at, bottom - 2), (at + 3, bottom - 8)],
                *ink,
                1,
            )
        }
        Shape::Label(from, to, text, ink) => {
            let (from, to) = (x(*from), x(*to));
            if to - from < 4 + (CHARACTER as i32) * text.chars().count() as i32 {
                return Ok(());
            }
            let style = words(ink.contrast(), HPos::Center);
            let middle = ((from + to) / 2, middle);
            area.draw(&Text::new(text.clone(), middle, style))
                .map_err(failed)
        }
        Shape::Words(at, text, ink) => {
            let style = words(ink.colour(), HPos::Left);
            area.draw(&Text::new(text.clone(), (x(*at) + 4, middle), style))
                .map_err(failed)
        }
    }
}

/// The picture.
///
/// # Errors
/// [`Error`] if it cannot be drawn.
pub fn picture(frame: &Frame<'_>, lanes: &[Lane]) -> Result<String, Error> {
    let (from, to) = frame.range;
    if frame.logarithmic {
        drawn(frame, lanes, Scale::logarithmic([from, to].into_iter()))
    } else {
        drawn(frame, lanes, Scale::linear(from..to))
    }
}

fn drawn(frame: &Frame<'_>, lanes: &[Lane], times: Scale) -> Result<String, Error> {
    let count = u32::try_from(lanes.len().max(1)).map_err(failed)?;
    let left = width(lanes.iter().map(|lane| short(&lane.name).chars().count()));
    let right = 16 + width(lanes.iter().map(|lane| lane.aside.chars().count()));
    let legend = 8 + LEGEND * u32::try_from(frame.legend.len()).map_err(failed)?;
    let mut svg = String::new();
    {
        let size = (SIZE.0, legend + LANE * count + AXIS);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_top(legend)
            .margin_right(right)
            .x_label_area_size(AXIS)
            .y_label_area_size(left)
            .build_cartesian_2d(times, 0.0..f64::from(count))
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(230, 230, 230))
            .axis_style(RGBColor(120, 120, 120))
            .x_desc(frame.axis)
            .x_label_formatter(&tick)
            .x_labels(8)
            .y_labels(0)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .draw()
            .map_err(failed)?;
        let plot = chart.plotting_area();
        let begin = frame.range.0;
        let x = |at: f64| plot.map_coordinate(&(at.max(begin), 0.0)).0;
        let (left, lane) = (left as i32, LANE as i32);
        for (line, (meaning, shape)) in (0i32..).zip(frame.legend) {
            let top = 4 + LEGEND as i32 * line;
            // The sample lies between 0 and 1.
            let sample = |at: f64| left + (at * 18.0).round() as i32;
            draw(&area, shape, &sample, top, LEGEND as i32 - 4)?;
            let middle = top + (LEGEND as i32 - 4) / 2;
            let text = Text::new(
                *meaning,
                (left + 26, middle),
                words(Ink::Word.colour(), HPos::Left),
            );
            area.draw(&text).map_err(failed)?;
        }
        for (row, one) in (0i32..).zip(lanes) {
            let top = legend as i32 + lane * row;
            let middle = top + lane / 2;
            let name = words(Ink::Word.colour(), HPos::Right);
            area.draw(&Text::new(short(&one.name), (left - 10, middle), name))
                .map_err(failed)?;
            if let Some(colour) = one.colour {
                let corners = [(left - 7, top + 6), (left - 3, top + lane - 6)];
                area.draw(&Rectangle::new(corners, colour.filled()))
                    .map_err(failed)?;
            }
            for shape in &one.shapes {
                draw(&area, shape, &x, top, lane)?;
            }
            let aside = ((SIZE.0 - right) as i32 + 10, middle);
            area.draw(&Text::new(
                one.aside.clone(),
                aside,
                words(Ink::Word.colour(), HPos::Left),
            ))
            .map_err(failed)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(scalable(svg))
}
