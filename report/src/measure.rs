//! Curves of memory costs: the data, a table and a page.
//!
//! Why it exists: terminal, page and file show the same points beside the same closed forms. What it deliberately does not know: how a
//! point was measured, and where a closed form comes from.

use crate::Error;
use crate::format::grouped;
use crate::page::{page, picture};
use crate::plot::{Axes, Mark, Series, Upright, chart};
use crate::table::{plain, render};
use maud::html;
use serde::Serialize;

/// Version of the file.
pub const SCHEMA: u32 = 1;
/// From this relative difference on, a reader wants to know why a point and its closed form differ.
pub const WIDE: f64 = 0.1;

/// The measurements of a platform.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Version of the file.
    pub schema: u32,
    /// The platform.
    pub platform: String,
    /// Clock of the hart whose cycles are counted, in hertz.
    pub frequency: u64,
    /// Pictures, in the order of the page.
    pub figures: Vec<Figure>,
}

/// Curves over common axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// A short name for files.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What is done, and what it shows.
    pub about: String,
    /// Label of the x axis, with its unit.
    pub x: String,
    /// Label of the y axis, with its unit.
    pub y: String,
    /// The x axis is logarithmic.
    pub log_x: bool,
    /// Names of the values 1, 2, ... of the x axis, if they are cases and no numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// Vertical lines: sizes of caches.
    pub sizes: Vec<Size>,
    /// Curves.
    pub curves: Vec<Curve>,
}

/// A vertical line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Size {
    /// Its name.
    pub name: String,
    /// Its place.
    pub x: f64,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its points, by x.
    pub points: Vec<Point>,
    /// Who published it; `None`: it was measured here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The varied value.
    pub x: f64,
    /// The measured value.
    pub y: f64,
    /// The value of the closed form, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<f64>,
}

impl Point {
    /// Measured minus closed form, relative to the closed form.
    pub fn difference(&self) -> Option<f64> {
        let closed = self.closed.filter(|closed| *closed > 0.0)?;
        Some(self.y / closed - 1.0)
    }
}

impl Measurement {
    /// Points whose closed form is off by more than [`WIDE`].
    pub fn wide(&self) -> usize {
        let points = self.figures.iter().flat_map(|figure| &figure.curves);
        let points = points.flat_map(|curve| &curve.points);
        let wide = |point: &&Point| point.difference().is_some_and(|d| d.abs() > WIDE);
        points.filter(wide).count()
    }

    /// Everything as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}: memory, in cycles of {} MHz\n",
            self.platform,
            grouped(self.frequency / 1_000_000)
        );
        for figure in &self.figures {
            text.push_str(&format!("\n{}\n{}", figure.title, render(&figure.table())));
            for source in figure.sources() {
                text.push_str(&format!("{source}\n"));
            }
        }
        let wide = match self.wide() {
            0 => "No point differs from its closed form by more than 10 %.".to_owned(),
            1 => "1 point differs from its closed form by more than 10 % (marked !).".to_owned(),
            n => format!("{n} points differ from their closed forms by more than 10 % (marked !)."),
        };
        text.push_str(&format!("\n{wide}\n"));
        text
    }

    /// A page with all pictures.
    ///
    /// # Errors
    /// If a picture cannot be drawn.
    pub fn page(&self) -> Result<String, Error> {
        let pictures: Result<Vec<String>, Error> =
            self.figures.iter().map(Figure::picture).collect();
        let pictures = pictures?;
        let body = html! {
            h1 { "Memory of " (self.platform) }
            p { "Cycles are those of the hart, at " (grouped(self.frequency / 1_000_000)) " MHz. Dotted lines are the sizes of caches; closed forms come from the parameters of the platform alone. Filled marks are values that others published for the chip, or for one like it." }
            @for (figure, svg) in self.figures.iter().zip(pictures) {
                h2 { (figure.title) }
                p { (figure.about) }
                (picture(svg))
                @if !figure.cases.is_empty() {
                    p { (figure.numbered()) }
                }
                @for source in figure.sources() {
                    p { (source) }
                }
                table {
                    thead { tr { @for cell in figure.headings() { th { (cell) } } } }
                    tbody { @for row in figure.rows() { tr { @for cell in row { td { (cell) } } } } }
                }
            }
        };
        Ok(page(&format!("Memory of {}", self.platform), &body))
    }
}

impl Figure {
    fn headings(&self) -> [&str; 5] {
        ["", &self.x, &self.y, "closed form", "difference"]
    }

    fn rows(&self) -> Vec<[String; 5]> {
        let curves = self.curves.iter();
        let rows = curves.flat_map(|curve| {
            curve.points.iter().map(|point| {
                [
                    curve.name.clone(),
                    self.case(point.x),
                    number(point.y),
                    point.closed.map_or("-".to_owned(), number),
                    point.difference().map_or("-".to_owned(), |d| {
                        let mark = if d.abs() > WIDE { " !" } else { "" };
                        format!("{:+.1} %{mark}", d * 100.0)
                    }),
                ]
            })
        });
        rows.collect()
    }

    /// Where published curves come from.
    fn sources(&self) -> Vec<String> {
        let source = |curve: &Curve| {
            let source = curve.source.as_ref()?;
            Some(format!("Published: {}: {source}.", curve.name))
        };
        self.curves.iter().filter_map(source).collect()
    }

    /// The cases by their numbers in the picture.
    fn numbered(&self) -> String {
        let all = (1..).zip(&self.cases);
        let all: Vec<String> = all
            .map(|(number, name)| format!("{number}: {name}"))
            .collect();
        format!("{}.", all.join(", "))
    }

    /// What a value of the x axis is called.
    fn case(&self, x: f64) -> String {
        let name = self.cases.get((x as usize).wrapping_sub(1));
        name.cloned().unwrap_or_else(|| number(x))
    }

    fn table(&self) -> comfy_table::Table {
        let mut table = plain(&self.headings());
        for row in self.rows() {
            table.add_row(row.to_vec());
        }
        table
    }

    /// The picture as SVG.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn picture(&self) -> Result<String, Error> {
        let (mut series, mut published) = (Vec::new(), Vec::new());
        for curve in &self.curves {
            let points = curve.points.iter();
            let drawn = Series {
                name: curve.name.clone(),
                points: points.clone().map(|point| (point.x, point.y)).collect(),
            };
            if curve.source.is_some() {
                published.push(drawn);
                continue;
            }
            series.push(drawn);
            let closed: Vec<(f64, f64)> = points
                .filter_map(|point| Some((point.x, point.closed?)))
                .collect();
            if !closed.is_empty() {
                series.push(Series {
                    name: format!("{}: closed form", curve.name),
                    points: closed,
                });
            }
        }
        let uprights = self.sizes.iter().map(|size| Upright {
            name: size.name.clone(),
            x: size.x,
            series: None,
        });
        let axes = Axes {
            x: &self.x,
            y: &self.y,
            log_x: self.log_x,
            cases: &self.cases,
            levels: Vec::new(),
            uprights: uprights.collect(),
            published,
        };
        // Two points are two cases, with nothing in between.
        let is_curve = |curve: &Curve| curve.source.is_none() && curve.points.len() > 2;
        let is_curve = self.cases.is_empty() && self.curves.iter().any(is_curve);
        let mark = match is_curve {
            true => Mark::Line,
            false => Mark::Dots,
        };
        chart(&axes, &series, mark)
    }
}

/// Three significant digits; whole numbers unchanged.
fn number(value: f64) -> String {
    match value {
        value if value.fract() == 0.0 || value >= 1000.0 => grouped(value.round() as u64),
        value if value >= 100.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measurement {
        let point = |x, y, closed| Point { x, y, closed };
        Measurement {
            schema: SCHEMA,
            platform: "chip".to_owned(),
            frequency: 1_000_000_000,
            figures: vec![Figure {
                id: "latency".to_owned(),
                title: "Latency".to_owned(),
                about: "A chain.".to_owned(),
                x: "working set in KiB".to_owned(),
                y: "cycles a load".to_owned(),
                log_x: true,
                cases: Vec::new(),
                sizes: vec![Size {
                    name: "first level".to_owned(),
                    x: 16.0,
                }],
                curves: vec![
                    Curve {
                        name: "random".to_owned(),
                        points: vec![
                            point(4.0, 2.0, Some(2.0)),
                            point(4096.0, 1234.5, Some(1000.0)),
                            point(8192.0, 12.25, None),
                        ],
                        source: None,
                    },
                    Curve {
                        name: "another chip".to_owned(),
                        points: vec![point(4.0, 2.5, None)],
                        source: Some("a guide, page 1".to_owned()),
                    },
                ],
            }],
        }
    }

    #[test]
    fn points_far_from_their_closed_forms_are_marked() {
        let measured = measured();
        assert_eq!(measured.wide(), 1);
        let text = measured.text();
        for part in ["+23.4 % !", "1 point differs", "cycles of 1\u{202f}000 MHz"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_terminal_has_every_point_and_its_source() {
        insta::assert_snapshot!(measured().text());
    }

    /// Measured points have a line, published ones a filled mark.
    #[test]
    fn published_points_can_be_told_apart() {
        let svg = measured().figures[0].picture().expect("drawn");
        let marks = svg.matches("<polygon").count();
        // One in the picture, and one in the legend.
        assert_eq!(marks, 2, "{svg}");
        assert!(svg.contains("another chip"), "{svg}");
    }

    #[test]
    fn the_data_fit_their_schema() {
        let schema = include_str!("../../docs/schemas/measure.json");
        crate::schemas::fits(schema, &measured());
    }

    #[test]
    fn the_page_has_the_picture_and_every_point() {
        let page = measured().page().expect("drawn");
        for part in [
            "<svg",
            "working set in KiB",
            "cycles a load",
            "1\u{202f}235",
            "+23.4 % !",
            "Published: another chip: a guide, page 1.",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }
}
