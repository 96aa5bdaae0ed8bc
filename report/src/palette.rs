//! Colours: one for each application, the same on every picture of a page.
//!
//! Why it exists: a reader who has found the hog in one picture finds it in the next one. What it deliberately does not know: what
//! applications do, and the pictures.

use crate::result::RunResult;
use plotters::style::RGBColor;

/// Applications: Paul Tol's qualitative scheme "muted", which colour-blind readers can tell apart.
const APPLICATIONS: [RGBColor; 9] = [
    RGBColor(51, 34, 136),
    RGBColor(136, 204, 238),
    RGBColor(17, 119, 51),
    RGBColor(221, 204, 119),
    RGBColor(136, 34, 85),
    RGBColor(204, 102, 119),
    RGBColor(68, 170, 153),
    RGBColor(153, 153, 51),
    RGBColor(170, 68, 153),
];
/// Colours of the kernel, of refreshes, and of anything else that is not an application of the description.
const KERNEL: RGBColor = RGBColor(90, 98, 110);
const REFRESH: RGBColor = RGBColor(200, 205, 212);
const OWN: RGBColor = RGBColor(150, 157, 168);
const OTHERS: RGBColor = RGBColor(225, 150, 90);

/// The delays that a flow's own applications cause each other.
pub const ITSELF: &str = "itself";

/// Colours of the applications of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Palette {
    names: Vec<String>,
}

impl Palette {
    /// Colours of all owners in a result: first those of the placement in tile order, then the others.
    pub fn of(result: &RunResult) -> Self {
        let residents = result
            .placement
            .tiles
            .iter()
            .flat_map(|tile| &tile.residents);
        let placed = residents.map(|one| one.name.as_str());
        let waits = result.variants.iter().flat_map(|v| &v.interference);
        let seen = waits.flat_map(|entry| [entry.victim.as_str(), entry.culprit.as_str()]);
        Self::named(placed.chain(seen).map(bare))
    }

    /// Colours of these names, each name once, in order.
    pub fn named<'a>(all: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names: Vec<String> = Vec::new();
        for name in all {
            if fixed(name).is_none() && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Self { names }
    }

    /// The colour of an application or another culprit.
    pub fn colour(&self, name: &str) -> RGBColor {
        let name = bare(name);
        if let Some(colour) = fixed(name) {
            return colour;
        }
        let Some(index) = self.names.iter().position(|known| known == name) else {
            return OTHERS;
        };
        let RGBColor(r, g, b) = APPLICATIONS[index % APPLICATIONS.len()];
        // The second round is brighter, the third darker.
        let shade = |part: u8| match index / APPLICATIONS.len() % 3 {
            0 => part,
            1 => part / 2 + 128,
            _ => part / 2,
        };
        RGBColor(shade(r), shade(g), shade(b))
    }
}

/// The TileMux of an application's tile works for it.
pub fn bare(name: &str) -> &str {
    name.trim_end_matches(" (TileMux)")
}

fn fixed(name: &str) -> Option<RGBColor> {
    match name {
        "kernel" => Some(KERNEL),
        "refresh" => Some(REFRESH),
        "own limit" | ITSELF => Some(OWN),
        _ => None,
    }
}

/// A colour in SVG and CSS notation.
pub fn css(colour: RGBColor) -> String {
    let RGBColor(r, g, b) = colour;
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn everybody_has_one_colour_and_keeps_it() {
        let result = crate::sample::sample();
        let palette = Palette::of(&result);
        assert_eq!(palette.colour("hog"), palette.colour("hog (TileMux)"));
        assert_ne!(palette.colour("hog"), palette.colour("controller"));
        assert_eq!(palette.colour("kernel"), KERNEL);
        assert_eq!(palette.colour("who is this"), OTHERS);
    }

    #[test]
    fn twenty_seven_applications_differ() {
        let names: Vec<String> = (0..27).map(|number| format!("app-{number}")).collect();
        let palette = Palette {
            names: names.clone(),
        };
        let colours: BTreeSet<String> = names.iter().map(|n| css(palette.colour(n))).collect();
        assert_eq!(colours.len(), 27);
    }
}
