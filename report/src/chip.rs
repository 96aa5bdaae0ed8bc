//! The picture of a chip: where each application is, and which application's traffic crosses which link.
//!
//! Why it exists: most delays have one cause, the traffic of two applications on the same link, and a picture shows that at once.
//! What it deliberately does not know: the machine; it draws only results.

use crate::book::{Book, CHIP};
use crate::format::{grouped, share};
use crate::palette::{Palette, bare, css};
use crate::placement::{Place, Placement};
use crate::result::{LinkEnd, LinkResult, RunResult, VariantResult};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Size of a tile's box, and the gaps between boxes, and between boxes and routers.
const BOX: (f64, f64) = (128.0, 62.0);
const GAP: f64 = 14.0;
const ARM: f64 = 64.0;
/// Half the width of the lane between the boxes of a router; links to the rows above and below run in it.
const LANE: f64 = 26.0;
/// Maximum boxes next to each other in a row of a router, on each side of the lane.
const SIDE: usize = 4;
/// Width of the busiest link, and minimum width of a link with any traffic.
const WIDEST: f64 = 22.0;
const THINNEST: f64 = 1.0;
/// Names in a box; one line says how many others there are.
const NAMES: usize = 2;
/// Characters of a name in a box.
const LETTERS: usize = 15;

type Point = (f64, f64);

/// The places of all parts.
struct Layout {
    size: Point,
    routers: BTreeMap<u16, Point>,
    /// Middles of the boxes.
    tiles: BTreeMap<u16, Point>,
}

fn layout(placement: &Placement) -> Layout {
    let columns = placement.columns.max(1);
    let is_crossbar = columns == 1 && placement.rows <= 1;
    let router_of = |place: &Place| if is_crossbar { 0 } else { place.router };
    let mut around: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for router in 0..columns * placement.rows.max(1) {
        around.insert(router, Vec::new());
    }
    for place in &placement.tiles {
        around.entry(router_of(place)).or_default().push(place.tile);
    }
    let most = around.values().map(Vec::len).max().unwrap_or(1).max(1);
    // Rows of boxes above and below a router, with at most two sides. One box needs only the left side above.
    let (least, sides) = if most == 1 { (1, 1.0) } else { (2, 2.0) };
    let rows = most.div_ceil(2 * SIDE).max(least);
    let side = most.div_ceil(rows).div_ceil(2).max(1);
    let (above, below) = (rows.div_ceil(2), rows / 2);
    let half = LANE + side as f64 * (BOX.0 + GAP) + GAP / 2.0;
    let wide = 2.0 * LANE + sides * side as f64 * (BOX.0 + GAP) + GAP;
    let high_of = |rows: usize| ARM + rows as f64 * (BOX.1 + GAP);
    let high = high_of(above) + high_of(below);
    let mut all = Layout {
        size: (
            wide * f64::from(columns) + GAP,
            high * f64::from(placement.rows.max(1)) + GAP,
        ),
        routers: BTreeMap::new(),
        tiles: BTreeMap::new(),
    };
    for (router, tiles) in around {
        let (column, row) = (router % columns, router / columns);
        let middle = (
            wide * f64::from(column) + half,
            high * f64::from(row) + high_of(above),
        );
        all.routers.insert(router, middle);
        for (index, tile) in tiles.into_iter().enumerate() {
            // Row by row, half of the boxes left of the lane: 0 1 | 2 3.
            let (line, place) = (index / (2 * side), index % (2 * side));
            let (is_right, nth) = (place >= side, place % side);
            let away = LANE + GAP / 2.0 + BOX.0 / 2.0;
            let x = match is_right {
                true => away + nth as f64 * (BOX.0 + GAP),
                false => -away - (side - 1 - nth) as f64 * (BOX.0 + GAP),
            };
            let y = match line < above {
                true => -ARM - (above - 1 - line) as f64 * (BOX.1 + GAP) - BOX.1 / 2.0,
                false => ARM + (line - above) as f64 * (BOX.1 + GAP) + BOX.1 / 2.0,
            };
            all.tiles.insert(tile, (middle.0 + x, middle.1 + y));
        }
    }
    all
}

impl Layout {
    /// The end of a link; at a box, the middle of the edge towards its router.
    fn end(&self, end: LinkEnd, other: LinkEnd) -> Option<Point> {
        match end {
            LinkEnd::Router(router) => self.routers.get(&router).copied(),
            LinkEnd::Tile(tile) => {
                let (x, y) = *self.tiles.get(&tile)?;
                let towards = match other {
                    LinkEnd::Router(router) => self.routers.get(&router)?.1,
                    LinkEnd::Tile(_) => y,
                };
                Some((x, y + (towards - y).signum() * BOX.1 / 2.0))
            }
        }
    }
}

/// Both channels of a link together: bytes by application, and ticks.
struct Joined<'a> {
    from: LinkEnd,
    to: LinkEnd,
    busy: u64,
    channels: u64,
    traffic: Vec<(&'a str, u64)>,
}

fn joined(links: &[LinkResult]) -> Vec<Joined<'_>> {
    let mut by_ends: BTreeMap<(LinkEnd, LinkEnd), Vec<&LinkResult>> = BTreeMap::new();
    for link in links {
        by_ends.entry((link.from, link.to)).or_default().push(link);
    }
    let mut all = Vec::new();
    for ((from, to), links) in by_ends {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for one in links.iter().flat_map(|link| &link.traffic) {
            *sums.entry(bare(&one.application)).or_default() += one.bytes;
        }
        let mut traffic: Vec<(&str, u64)> = sums.into_iter().collect();
        traffic.sort_by_key(|one| std::cmp::Reverse(one.1));
        all.push(Joined {
            from,
            to,
            busy: links.iter().map(|link| link.busy).sum(),
            channels: links.len() as u64,
            traffic,
        });
    }
    all
}

impl Joined<'_> {
    fn bytes(&self) -> u64 {
        self.traffic.iter().map(|one| one.1).sum()
    }
}

/// Bytes per second, in a unit that keeps at most three digits before the point.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    let a_second = if seconds > 0.0 {
        bytes as f64 / seconds
    } else {
        0.0
    };
    let units = ["B/s", "KiB/s", "MiB/s", "GiB/s"];
    let power = (1..units.len())
        .rev()
        .find(|n| a_second >= 1024f64.powi(*n as i32));
    let power = power.unwrap_or(0);
    let value = a_second / 1024f64.powi(power as i32);
    match value {
        v if v >= 100.0 || power == 0 => format!("{v:.0} {}", units[power]),
        v if v >= 10.0 => format!("{v:.1} {}", units[power]),
        v => format!("{v:.2} {}", units[power]),
    }
}

fn short(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.to_owned();
    }
    let begin: String = name.chars().take(LETTERS - 1).collect();
    format!("{begin}…")
}

/// Stripes of a link, to the right of its middle in the direction of travel.
fn stripes(
    joined: &Joined<'_>,
    (from, to): (Point, Point),
    most: u64,
) -> Vec<(Point, Point, f64, usize)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let normal = (-dy / length, dx / length);
    let mut offset = 1.0;
    let mut all = Vec::new();
    for (index, (_, bytes)) in joined.traffic.iter().enumerate() {
        let wide = WIDEST * *bytes as f64 / most.max(1) as f64;
        // An application with at least a hundredth of the link's bytes stays visible.
        if wide < 0.3 && *bytes < joined.bytes() / 100 {
            continue;
        }
        let wide = wide.max(THINNEST);
        let away = offset + wide / 2.0;
        offset += wide;
        let moved = |(x, y): Point| (x + normal.0 * away, y + normal.1 * away);
        all.push((moved(from), moved(to), wide, index));
    }
    all
}

/// A link's traffic in words.
fn words(joined: &Joined<'_>, result: &RunResult, variant: &VariantResult) -> String {
    let seconds = result.microseconds(variant.ticks) / 1e6;
    let of = |(name, bytes): &(&str, u64)| format!("{name} {}", rate(*bytes, seconds));
    let shares: Vec<String> = joined.traffic.iter().map(of).collect();
    format!(
        "{} to {}: sending {} of the time; {}",
        joined.from,
        joined.to,
        share(joined.busy, variant.ticks * joined.channels),
        shares.join(", ")
    )
}

/// The chip in one variant. `most`: bytes of the widest link on all pictures of the page.
fn picture(
    result: &RunResult,
    variant: &VariantResult,
    palette: &Palette,
    (all, most): (&Layout, u64),
) -> Markup {
    let links = joined(&variant.links);
    let number = |value: f64| format!("{value:.1}");
    let view = format!("0 0 {:.0} {:.0}", all.size.0, all.size.1);
    let label = format!("The chip in the variant {}", variant.name);
    html! {
        svg viewBox=(view) role="img" aria-label=(label) xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" {
            @for link in &links {
                @if let (Some(from), Some(to)) = (all.end(link.from, link.to), all.end(link.to, link.from)) {
                    g {
                        title { (words(link, result, variant)) }
                        line x1=(number(from.0)) y1=(number(from.1)) x2=(number(to.0)) y2=(number(to.1)) stroke="#d5dae1" stroke-width="1" {}
                        @for (from, to, wide, index) in stripes(link, (from, to), most) {
                            line x1=(number(from.0)) y1=(number(from.1)) x2=(number(to.0)) y2=(number(to.1))
                                stroke=(css(palette.colour(link.traffic[index].0))) stroke-width=(number(wide)) {}
                        }
                    }
                }
            }
            @for (router, (x, y)) in &all.routers {
                circle cx=(number(*x)) cy=(number(*y)) r="15" fill="#fff" stroke="#5b6675" stroke-width="1.5" {}
                text x=(number(*x)) y=(number(*y + 4.5)) text-anchor="middle" fill="#5b6675" { "R" (router) }
            }
            @for place in &result.placement.tiles {
                @if let Some((x, y)) = all.tiles.get(&place.tile) { (tile(place, (x - BOX.0 / 2.0, y - BOX.1 / 2.0), palette)) }
            }
        }
    }
}

/// A tile's box: its number and its residents in their colours.
fn tile(place: &Place, (x, y): Point, palette: &Palette) -> Markup {
    let number = |value: f64| format!("{value:.1}");
    let heading = match place.memory {
        Some(_) => format!("memory {}", place.tile),
        None => format!("tile {}", place.tile),
    };
    let size = place.memory.map(bulkhead_model::units::Size);
    let names: Vec<&str> = place
        .residents
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let shown = match names.len() {
        few if few <= NAMES => few,
        _ => NAMES - 1,
    };
    let fill = if place.memory.is_some() {
        "#eef1f5"
    } else {
        "#fff"
    };
    let ink = if names.is_empty() && place.memory.is_none() {
        "#9aa3af"
    } else {
        "#1c2430"
    };
    html! {
        g {
            title { (heading) @for name in &names { ", " (name) } }
            rect x=(number(x)) y=(number(y)) width=(number(BOX.0)) height=(number(BOX.1)) rx="4" fill=(fill) stroke="#9aa3af" {}
            text x=(number(x + 8.0)) y=(number(y + 17.0)) fill=(ink) { (heading) }
            @if let Some(size) = size { text x=(number(x + 8.0)) y=(number(y + 34.0)) fill="#5b6675" { (size) } }
            @for (index, name) in names.iter().take(shown).enumerate() {
                rect x=(number(x + 8.0)) y=(number(y + 24.0 + 18.0 * index as f64)) width="10" height="10" fill=(css(palette.colour(name))) {}
                text x=(number(x + 23.0)) y=(number(y + 33.5 + 18.0 * index as f64)) fill="#1c2430" { (short(name)) }
            }
            @if shown < names.len() {
                text x=(number(x + 23.0)) y=(number(y + 33.5 + 18.0 * shown as f64)) fill="#5b6675" { "and " (names.len() - shown) " more" }
            }
        }
    }
}

/// The link that carried most, in words.
fn busiest(result: &RunResult) -> Option<String> {
    let links = result.variants.iter().flat_map(|variant| {
        let all = joined(&variant.links).into_iter();
        all.map(move |link| (link.bytes(), words(&link, result, variant), variant))
    });
    // The first of several that carried equally much.
    let (_, words, variant) = links.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    Some(format!("{words} ({})", variant.name))
}

/// The chip in every variant, and every link in numbers. Nothing for a result without a placement or traffic.
pub fn section(result: &RunResult, palette: &Palette, book: &Book) -> Markup {
    let all = layout(&result.placement);
    let most = result.variants.iter().flat_map(|v| joined(&v.links));
    let most = most.map(|link| link.bytes()).max().unwrap_or(0);
    if result.placement.tiles.is_empty() || most == 0 {
        return html! {};
    }
    // A large chip keeps its size, and its page scrolls.
    let least = format!("min-width: {:.0}px", all.size.0 * 0.72);
    html! {
        h2 { "The chip and its traffic" }
        p.soft { "Each line is one direction of a link, drawn to the right of that direction. Its width shows the bytes that it carried; its colours show "
            "the applications that sent or requested them. The scale is the same for all variants. Point at a link for its numbers"
            @if let Some(busiest) = busiest(result) { "; the widest is " (busiest) } ". "
            (book.more(CHIP)) }
        @for (index, variant) in result.variants.iter().enumerate() {
            @if index < 4 { h3 { (variant.name) } div.scroll { div style=(least) { (picture(result, variant, palette, (&all, most))) } } }
            @else { details { summary { (variant.name) } div.scroll { div style=(least) { (picture(result, variant, palette, (&all, most))) } } } }
        }
        details { summary { "All links" }
            div.scroll { table {
                tr { th { "variant" } th.text { "from" } th.text { "to" } th { "sending" } th { "bytes" } th { "rate" } th.text { "most of it" } }
                @for variant in &result.variants { @for link in joined(&variant.links) {
                    tr { td { (variant.name) } td.text { (link.from) } td.text { (link.to) }
                        td { (share(link.busy, variant.ticks * link.channels)) } td { (grouped(link.bytes())) }
                        td { (rate(link.bytes(), result.microseconds(variant.ticks) / 1e6)) }
                        td.text { @for (index, (name, bytes)) in link.traffic.iter().take(3).enumerate() {
                            @if index > 0 { ", " } (name) " " (share(*bytes, link.bytes())) } } }
                } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    fn overlap(a: Point, b: Point) -> bool {
        (a.0 - b.0).abs() < BOX.0 && (a.1 - b.1).abs() < BOX.1
    }

    #[test]
    fn no_box_covers_another_or_a_router_on_any_chip_of_the_catalog() {
        for name in ["quickstart", "network/two-chips", "accelerators"] {
            let system = load_system(name, &LoadOptions::default()).expect("valid");
            no_box_covers(&Placement::of(&system));
        }
        // A crossbar of 40 tiles, and meshes with five tiles and with one at each router.
        for (columns, rows, tiles) in [(1, 1, 40), (3, 2, 30), (8, 8, 64)] {
            let place = |tile: u16| Place {
                tile,
                router: tile % (columns * rows),
                memory: None,
                residents: Vec::new(),
            };
            no_box_covers(&Placement {
                columns,
                rows,
                tiles: (0..tiles).map(place).collect(),
            });
        }
    }

    fn no_box_covers(placement: &Placement) {
        let all = layout(placement);
        assert_eq!(all.tiles.len(), placement.tiles.len());
        let boxes: Vec<Point> = all.tiles.values().copied().collect();
        for (index, a) in boxes.iter().enumerate() {
            assert!(a.0 > BOX.0 / 2.0 && a.0 + BOX.0 / 2.0 < all.size.0, "{a:?}");
            assert!(a.1 > BOX.1 / 2.0 && a.1 + BOX.1 / 2.0 < all.size.1, "{a:?}");
            assert!(!boxes[index + 1..].iter().any(|b| overlap(*a, *b)));
            assert!(!all.routers.values().any(|router| overlap(*a, *router)));
        }
    }

    #[test]
    fn both_channels_are_one_line() {
        let link = |channel, application: &str, bytes| LinkResult {
            from: LinkEnd::Tile(1),
            to: LinkEnd::Router(0),
            channel,
            busy: 10,
            traffic: vec![crate::result::Traffic {
                application: application.to_owned(),
                bytes,
            }],
        };
        let links = [link(0, "a", 5), link(1, "a (TileMux)", 7), link(1, "b", 6)];
        let joined = joined(&links);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].traffic, [("a", 12), ("b", 6)]);
    }

    #[test]
    fn rates_have_units() {
        assert_eq!(rate(0, 1.0), "0 B/s");
        assert_eq!(rate(1 << 20, 0.5), "2.00 MiB/s");
        assert_eq!(rate(5, 0.0), "0 B/s");
    }
}
