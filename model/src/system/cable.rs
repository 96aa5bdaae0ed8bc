//! Cables and the drivers of network cards: reading, writing and rules.
//!
//! Why it exists: these rules involve a system, its platform and its peer's platform. What it deliberately does not know: frames.

use super::check::Places;
use super::{Cable, CableEnd, INTERRUPT_GATE, Peer, System};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::platform::Platform;
use crate::units::Time;
use crate::writer::Writer;

/// Minimum and maximum delay in picoseconds: a window of time is never longer than the shortest cable.
const DELAY: (u64, u64) = (100_000, 1_000_000_000_000);

/// The cables of a system. [`check`] reports what is wrong with them.
pub fn read(root: &Node, peer: &Option<Peer>) -> Vec<Cable> {
    let cables = root.all("cable").map(|node| {
        let number = |attribute| node.integer(attribute) as u32;
        let there = node.maybe_integer("peer").filter(|_| peer.is_some());
        let to = match (node.maybe_integer("to"), there) {
            (None, Some(tile)) => CableEnd::Peer(tile as u16),
            (tile, _) => CableEnd::Here(tile.unwrap_or(u64::from(u16::MAX)) as u16),
        };
        Cable {
            from: node.integer("from") as u16,
            to,
            delay: node.time("delay"),
            loss: number("loss"),
            duplicate: number("duplicate"),
            reorder: number("reorder"),
            late: node.time("late"),
            seed: number("seed"),
        }
    });
    cables.collect()
}

fn has_card(platform: &Platform, tile: u16) -> bool {
    platform
        .tile(tile)
        .is_some_and(|tile| tile.network_card.is_some())
}

fn cards(platform: &Platform) -> String {
    let tiles = platform.tiles.iter().filter(|t| t.network_card.is_some());
    let names: Vec<String> = tiles.map(|t| t.id.to_string()).collect();
    match names.is_empty() {
        true => format!("no tile of `{}` has one", platform.name),
        false => format!(
            "the tiles of `{}` that have one: {}",
            platform.name,
            names.join(", ")
        ),
    }
}

/// Reports every rule about cables and network cards that `system` breaks.
pub fn check(system: &System, root: &Node, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let mut used: Vec<(bool, u16)> = Vec::new();
    // Cables inside the peer use the peer's cards.
    if let Some(peer) = &system.peer {
        for cable in &peer.system.cables {
            used.push((true, cable.from));
            if let CableEnd::Here(tile) = cable.to {
                used.push((true, tile));
            }
        }
    }
    for (cable, node) in system.cables.iter().zip(root.all("cable")) {
        let mut error = |place: &str, what: String, help: String| {
            let problem = Problem::Inconsistent(what);
            errors.push(Diagnostic::new(problem, node.place(place), help));
        };
        let ends = [node.maybe_integer("to"), node.maybe_integer("peer")];
        if ends.iter().flatten().count() != 1 {
            let help = "write either to=\"TILE\" or peer=\"TILE\"".to_owned();
            error(
                "from",
                "the cable must have exactly one other end".to_owned(),
                help,
            );
            continue;
        }
        if ends[1].is_some() && system.peer.is_none() {
            let help = "add <peer name=\"...\" system=\"...\"/>, or write to=\"TILE\"".to_owned();
            error("peer", "the system has no <peer>".to_owned(), help);
            continue;
        }
        if !(DELAY.0..=DELAY.1).contains(&cable.delay.0) {
            let what = format!("the delay of {} is not between 100ns and 1s", cable.delay);
            error("delay", what, "20 m of cable take 100ns".to_owned());
        }
        let far = match cable.to {
            CableEnd::Here(tile) => (false, tile, "to"),
            CableEnd::Peer(tile) => (true, tile, "peer"),
        };
        for (at_peer, tile, attribute) in [(false, cable.from, "from"), far] {
            let platform = match &system.peer {
                Some(peer) if at_peer => &peer.system.platform,
                _ => &system.platform,
            };
            if !has_card(platform, tile) {
                let what = format!("tile {tile} has no network card");
                error(attribute, what, cards(platform));
            } else if used.contains(&(at_peer, tile)) {
                let what = format!("the network card of tile {tile} has a cable already");
                error(attribute, what, "a card has one cable".to_owned());
            }
            used.push((at_peer, tile));
        }
    }
    drivers(system, places, errors);
}

/// The application that drives a card.
fn drivers(system: &System, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let mut driven: Vec<u16> = Vec::new();
    for (index, (app, node)) in system.apps.iter().zip(&places.apps).enumerate() {
        if !app.device {
            continue;
        }
        let manager = system.manager_of(index);
        let mut error = |what: String, help: String| {
            let problem = Problem::Inconsistent(what);
            errors.push(Diagnostic::new(problem, node.place("device"), help));
        };
        if !has_card(&system.platform, app.tile) {
            let what = format!(
                "`{}` drives a network card, but tile {} has none",
                app.name, app.tile
            );
            error(what, cards(&system.platform));
        } else if driven.contains(&app.tile) {
            let what = format!(
                "two applications drive the network card of tile {}",
                app.tile
            );
            error(what, "one of them can serve the other".to_owned());
        } else if !starts(system, manager, app.tile) {
            let name = &system.managers[manager].name;
            let what = format!(
                "`{}` drives the network card of tile {}, which its manager `{name}` shares with others: the manager above starts that tile, and only it can give the card",
                app.name, app.tile
            );
            let help = format!(
                "place everything that is not below `{name}`, and `{name}` itself, on other tiles, or move `{}` out of `{name}`",
                app.name
            );
            error(what, help);
        }
        driven.push(app.tile);
        if !app.rgates.iter().any(|gate| gate.name == INTERRUPT_GATE) {
            let what = format!("`{}` has no receive gate for interrupts", app.name);
            let help =
                format!("add <rgate name=\"{INTERRUPT_GATE}\" slots=\"2\" slot-size=\"64B\"/>");
            error(what, help);
        }
    }
}

/// Whether a manager starts the TileMux of a tile on which one of its applications lives: only what is below the manager lives there. The
/// first manager starts all tiles shared by several managers.
fn starts(system: &System, manager: usize, tile: u16) -> bool {
    let is_below = |other| system.is_within(other, manager);
    let mut apps = (0..system.apps.len()).filter(|app| system.apps[*app].tile == tile);
    let mut managers = (0..system.managers.len()).filter(|m| system.managers[*m].tile == tile);
    system.managers[manager].parent.is_none()
        || apps.all(|app| is_below(system.manager_of(app)))
            && managers.all(|other| other != manager && is_below(other))
}

/// A peer must not have a peer itself.
pub fn nested(node: &crate::tree::Element) -> Diagnostic {
    Diagnostic::new(
        Problem::Inconsistent("the peer has a <peer> of its own".into()),
        &node.span,
        "two chips can run together; describe their cables in one of the two systems",
    )
}

/// The longest time for which both chips may run without synchronising.
pub fn lookahead(system: &System) -> Option<Time> {
    let far = system.cables.iter();
    let far = far.filter(|cable| matches!(cable.to, CableEnd::Peer(_)));
    far.map(|cable| cable.delay).min()
}

/// Writes a cable as canonical XML.
pub(super) fn write(writer: &mut Writer, cable: &Cable) {
    let (end, tile) = match cable.to {
        CableEnd::Here(tile) => ("to", tile),
        CableEnd::Peer(tile) => ("peer", tile),
    };
    writer
        .start("cable")
        .attribute("from", cable.from)
        .attribute(end, tile)
        .time("delay", cable.delay)
        .attribute("loss", cable.loss)
        .attribute("duplicate", cable.duplicate)
        .attribute("reorder", cable.reorder)
        .time("late", cable.late)
        .attribute("seed", cable.seed)
        .end();
}
