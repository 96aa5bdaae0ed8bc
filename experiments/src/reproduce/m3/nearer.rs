//! What the paper states, beside both pipelines: which one is nearer, and which of the paper's orderings each one has.
//!
//! Why it exists: the paper's cores work out of order, so it is not enough that the figures in order resemble the paper's. The rules here
//! were fixed before the first run out of order. What it deliberately does not know: why a figure is as it is.

use super::pipelines::{chip, is_out_of_order};
use super::{Reproduced, WORKLOADS};
use bulkhead_report::distribution::is_known;

/// Two figures are equally near if their distances from the paper's differ by at most this share of the paper's.
const EQUAL: f64 = 0.01;
/// A slowdown up to this is "no interference": the paper calls 1 percent the limit of what regulation leaves.
const NONE: f64 = 1.01;

/// Which pipeline's figure is nearer to the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearer {
    /// The one in order.
    InOrder,
    /// The one out of order.
    OutOfOrder,
    /// Neither.
    Equal,
}

/// A figure that the paper states, and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The paper's chip, by our name.
    pub chip: String,
    /// Which figure.
    pub what: String,
    /// In order, if it was measured.
    pub in_order: Option<f64>,
    /// Out of order, if it was measured.
    pub out_of_order: Option<f64>,
    /// The paper's.
    pub paper: f64,
}

impl Compared {
    /// Which one is nearer, if both were measured.
    pub fn nearer(&self) -> Option<Nearer> {
        let off = |ours: f64| (ours - self.paper).abs();
        let (one, other) = (off(self.in_order?), off(self.out_of_order?));
        Some(if (one - other).abs() <= self.paper.abs() * EQUAL {
            Nearer::Equal
        } else if one < other {
            Nearer::InOrder
        } else {
            Nearer::OutOfOrder
        })
    }
}

/// Every figure that the paper states and that was measured on either pipeline, with the paper's.
pub fn figures(all: &Reproduced) -> Vec<Compared> {
    let mut found: Vec<Compared> = Vec::new();
    let mut add = |platform: &str, what: String, ours: f64, paper: f64| {
        let mut known = found.iter();
        let known = known.position(|one| one.chip == chip(platform) && one.what == what);
        let place = known.unwrap_or_else(|| {
            found.push(Compared {
                chip: chip(platform).to_owned(),
                what,
                in_order: None,
                out_of_order: None,
                paper,
            });
            found.len() - 1
        });
        match is_out_of_order(platform) {
            true => found[place].out_of_order = Some(ours),
            false => found[place].in_order = Some(ours),
        }
    };
    for one in &all.round_trips {
        let Some(paper) = &one.published else {
            continue;
        };
        let (steady, all) = (&one.steady, &one.all);
        for (name, ours, paper) in [
            ("steady", steady.mean, Some(paper.steady)),
            ("steady deviation", steady.deviation, paper.steady_deviation),
            ("mean", all.mean, Some(paper.average)),
            ("p99", all.p99, is_known(99, all.count).then_some(paper.p99)),
            ("min", all.min, Some(paper.min)),
            ("max", all.max, Some(paper.max)),
            ("deviation", all.deviation, Some(paper.deviation)),
        ] {
            if let Some(paper) = paper {
                let what = format!("round trip, {name} (cycles)");
                add(&one.platform, what, ours as f64, paper as f64);
            }
        }
    }
    for one in &all.unregulated {
        if let Some(paper) = one.published {
            let what = format!("slowdown, {} beside {}", one.foreground, one.background);
            add(&one.platform, what, one.slowdown, paper);
        }
    }
    for one in &all.priorities {
        let what = format!("worst of {} clients without priorities (ms)", one.clients);
        add(&one.platform, what, one.plain / 1000.0, one.published);
    }
    found
}

/// What the paper says in words about how figures compare, and whether it is so with one pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// A name, by which the reason of a failure is filed.
    pub name: &'static str,
    /// In the paper's sense, with its section.
    pub what: String,
    /// Harts work out of order.
    pub out_of_order: bool,
    /// Our figures.
    pub ours: String,
    /// They are as the paper says.
    pub held: bool,
}

/// Every ordering of the paper for which the figures were measured, in order and out of order.
pub fn orderings(all: &Reproduced) -> Vec<Ordering> {
    let mut found = Vec::new();
    for out_of_order in [false, true] {
        let mut add = |name, what: &str, ours: String, held: bool| {
            found.push(Ordering {
                name,
                what: what.to_owned(),
                out_of_order,
                ours,
                held,
            });
        };
        let of = |name: &str, platform: &str| {
            chip(platform) == name && is_out_of_order(platform) == out_of_order
        };
        let steady = |name: &str| {
            let mut trips = all.round_trips.iter();
            let trip = trips.find(|one| of(name, &one.platform))?;
            Some((trip.steady.mean, trip.all.max))
        };
        if let (Some(gem5), Some(fpga)) = (steady("tiled-2ghz"), steady("tiled-star")) {
            add(
                "round-trip",
                "V-A: a round trip takes fewer cycles on gem5 than on the FPGA, and the same order of magnitude",
                format!("{} and {} cycles", gem5.0, fpga.0),
                gem5.0 < fpga.0 && fpga.0 < 10 * gem5.0,
            );
        }
        let slowdown = |name: &str, foreground: &str, background: &str| {
            let mut list = all.unregulated.iter();
            let one = list.find(|one| {
                of(name, &one.platform)
                    && one.foreground == foreground
                    && one.background == background
            });
            one.map(|one| one.slowdown)
        };
        for name in ["tiled-2ghz", "tiled-star"] {
            let beside = WORKLOADS.map(|background| slowdown(name, "accesses", background));
            if let [
                Some(compute),
                Some(accesses),
                Some(messages),
                Some(transfers),
            ] = beside
                && name == "tiled-star"
            {
                let others = compute.max(accesses).max(messages);
                add(
                    "transfers",
                    "V-C, FPGA: transfers disturb memory accesses more than any other workload does",
                    format!("{transfers:.3} beside transfers, {others:.3} beside others"),
                    transfers > others,
                );
            }
            let worst = |foreground: &str| {
                let list = WORKLOADS.map(|background| slowdown(name, foreground, background));
                let list: Option<Vec<f64>> = list.into_iter().collect();
                list.map(|list| list.into_iter().fold(0.0, f64::max))
            };
            if let [
                Some(compute),
                Some(accesses),
                Some(messages),
                Some(transfers),
            ] = WORKLOADS.map(worst)
            {
                let others = compute.max(messages).max(transfers);
                let (key, on) = match name {
                    "tiled-2ghz" => ("most-severe-gem5", "gem5"),
                    _ => ("most-severe-fpga", "FPGA"),
                };
                add(
                    key,
                    &format!(
                        "V-D, {on}: memory accesses have the most severe slowdown of all workloads"
                    ),
                    format!("{accesses:.3}, others {others:.3} at most"),
                    accesses > others,
                );
            }
        }
        let felt = |name: &str| {
            let list = ["accesses", "transfers"].map(|one| slowdown(name, one, "accesses"));
            match list {
                [Some(accesses), Some(transfers)] => Some((accesses, transfers)),
                _ => None,
            }
        };
        if let (Some(gem5), Some(fpga)) = (felt("tiled-2ghz"), felt("tiled-star")) {
            add(
                "accesses",
                "V-C: memory accesses disturb accesses and transfers on gem5 more than on the FPGA",
                format!(
                    "{:.3} and {:.3}, {:.3} and {:.3}",
                    gem5.0, gem5.1, fpga.0, fpga.1
                ),
                gem5.0 > fpga.0 && gem5.1 > fpga.1,
            );
        }
        let mut messages = Vec::new();
        for other in WORKLOADS {
            messages.extend(slowdown("tiled-2ghz", "messages", other));
            messages.extend(slowdown("tiled-2ghz", other, "messages"));
        }
        if messages.len() == 2 * WORKLOADS.len() {
            let worst = messages.into_iter().fold(0.0, f64::max);
            add(
                "messages",
                "V-C, gem5: no interference between message passing and other workloads (1 % at most)",
                format!("{worst:.4} at most"),
                worst <= NONE,
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::reproduced;
    use super::*;

    fn compared(in_order: f64, out_of_order: f64, paper: f64) -> Option<Nearer> {
        let one = Compared {
            chip: "tiled-2ghz".to_owned(),
            what: "a figure".to_owned(),
            in_order: Some(in_order),
            out_of_order: Some(out_of_order),
            paper,
        };
        one.nearer()
    }

    #[test]
    fn the_nearer_figure_is_that_with_the_smaller_distance() {
        assert_eq!(compared(90.0, 120.0, 100.0), Some(Nearer::InOrder));
        assert_eq!(compared(70.0, 120.0, 100.0), Some(Nearer::OutOfOrder));
        assert_eq!(compared(80.0, 120.5, 100.0), Some(Nearer::Equal));
    }

    #[test]
    fn figures_of_a_chip_are_in_one_row() {
        let mut all = reproduced();
        let mut other = all.round_trips[0].clone();
        other.platform = "tiled-2ghz-ooo".to_owned();
        other.steady.mean = 300;
        all.round_trips.push(other);
        let rows = figures(&all);
        assert_eq!(rows[0].what, "round trip, steady (cycles)");
        assert_eq!(
            (rows[0].in_order, rows[0].out_of_order, rows[0].paper),
            (Some(380.0), Some(300.0), 316.0)
        );
        assert_eq!(rows[0].nearer(), Some(Nearer::OutOfOrder));
        // The other chip was not measured, so nothing is said about both.
        assert!(orderings(&all).is_empty());
    }

    #[test]
    fn an_ordering_is_judged_for_each_pipeline() {
        let mut all = reproduced();
        let trip = all.round_trips[0].clone();
        for (platform, steady) in [
            ("tiled-star", 500),
            ("tiled-2ghz-ooo", 600),
            ("tiled-star-ooo", 500),
        ] {
            let mut other = trip.clone();
            other.platform = platform.to_owned();
            other.steady.mean = steady;
            all.round_trips.push(other);
        }
        let found = orderings(&all);
        let found: Vec<(bool, bool)> = found.iter().map(|o| (o.out_of_order, o.held)).collect();
        assert_eq!(found, [(false, true), (true, false)]);
    }
}
