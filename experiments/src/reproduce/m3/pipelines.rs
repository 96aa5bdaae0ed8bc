//! The paper's chips, each with two pipelines: in order, and out of order as in the paper.
//!
//! Why it exists: the paper's figures are those of out-of-order cores. Whoever reads ours wants to know what the pipeline changes, and which
//! one comes nearer. What it deliberately does not know: what a figure means, and how one of ours could come nearer to the paper's.

/// The paper's chips, and the same with harts that work out of order.
const CHIPS: [[&str; 2]; 2] = [
    ["tiled-2ghz", "tiled-2ghz-ooo"],
    ["tiled-star", "tiled-star-ooo"],
];

/// All platforms, in the order of the tables: a chip in order, then the same chip out of order.
pub const ALL: [&str; 4] = [CHIPS[0][0], CHIPS[0][1], CHIPS[1][0], CHIPS[1][1]];

/// The pipelines to run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pipelines {
    /// The platforms whose harts issue in order.
    InOrder,
    /// Those whose harts work out of order.
    OutOfOrder,
    /// All.
    #[default]
    Both,
}

impl Pipelines {
    /// Whether this platform is among them.
    pub fn have(self, platform: &str) -> bool {
        match self {
            Pipelines::InOrder => !is_out_of_order(platform),
            Pipelines::OutOfOrder => is_out_of_order(platform),
            Pipelines::Both => true,
        }
    }

    /// The platforms to run on.
    pub fn platforms(self) -> impl Iterator<Item = &'static str> {
        ALL.into_iter().filter(move |platform| self.have(platform))
    }

    /// The platforms of the chip with this name to run on.
    pub fn of(self, chip: &str) -> impl Iterator<Item = &'static str> {
        self.platforms()
            .filter(move |platform| self::chip(platform) == chip)
    }
}

/// The chip of a platform: the name of its platform in order, by which the paper's figures are filed.
pub fn chip(platform: &str) -> &str {
    let found = CHIPS.iter().find(|chip| chip.contains(&platform));
    found.map_or(platform, |chip| chip[0])
}

/// Whether its harts work out of order.
pub fn is_out_of_order(platform: &str) -> bool {
    CHIPS.iter().any(|chip| chip[1] == platform)
}

/// The addition to a sentence about a platform in which a single chip was measured until there were two pipelines.
pub fn on(platform: &str) -> String {
    match is_out_of_order(platform) {
        true => format!(" on {platform}"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::platform::PipelineModel;
    use bulkhead_model::{LoadOptions, load_platform};

    #[test]
    fn the_names_say_what_the_platforms_are() {
        for platform in ALL {
            let found = load_platform(platform, &LoadOptions::default()).expect("in the catalog");
            // Tile 0 of tiled-star has the kernel's core, which is in order on both.
            let model = found.tiles[1].pipeline.model;
            assert_eq!(model == PipelineModel::Interval, is_out_of_order(platform));
        }
        assert_eq!(chip("tiled-star-ooo"), "tiled-star");
        let both: Vec<&str> = Pipelines::Both.of("tiled-star").collect();
        assert_eq!(both, ["tiled-star", "tiled-star-ooo"]);
        let one: Vec<&str> = Pipelines::OutOfOrder.platforms().collect();
        assert_eq!(one, ["tiled-2ghz-ooo", "tiled-star-ooo"]);
    }
}
