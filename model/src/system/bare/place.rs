//! Tiles, harts, memory and ways of programs without a kernel.
//!
//! Why it exists and what it does not know: see the parent module.

use super::check::wrong;
use super::{Coupled, GRANULE, Placed, colour};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::platform::{Memory, Partition, Platform, PlatformKind, Share, Tile};
use crate::system::App;
use crate::units::Size;
use bulkhead_abi::memory_map::MEMORY_BASE;
use std::ops::Range;

/// Finds a place for each application. Programs with a fixed place come first. `apps` get their tiles and
/// sizes.
pub(super) fn place(
    platform: &Platform,
    apps: &mut [App],
    nodes: &[&Node],
    errors: &mut Vec<Diagnostic>,
) -> Option<Vec<Placed>> {
    let before = errors.len();
    let mut taken: Vec<(u16, u16, String)> = Vec::new();
    let mut all = Vec::new();
    for (app, node) in apps.iter_mut().zip(nodes) {
        let Some(tile) = tile_of(platform, node, errors) else {
            continue;
        };
        app.tile = tile.id;
        let harts = harts(tile, node, errors);
        for &hart in &harts {
            match taken.iter().find(|one| (one.0, one.1) == (tile.id, hart)) {
                Some((_, _, other)) => errors.push(wrong(
                    format!(
                        "hart {hart} of tile {} already runs the program of `{other}`",
                        tile.id
                    ),
                    node.place(if node.gives("harts") { "harts" } else { "name" }),
                    "give each program harts of its own, such as harts=\"1\"",
                )),
                None => taken.push((tile.id, hart, app.name.clone())),
            }
        }
        all.push(Placed {
            harts,
            base: MEMORY_BASE,
            size: 0,
            tcm: coupled(platform, tile, node, errors),
            more: Vec::new(),
            offset: 0,
            ways: ways(platform, tile, node, errors),
            share: share(platform, tile, node, errors),
            attached: Vec::new(),
            rings: Vec::new(),
        });
    }
    if errors.len() > before {
        return None;
    }
    match platform.kind {
        PlatformKind::Mesh => locals(platform, apps, nodes, &mut all, errors),
        PlatformKind::Tiled | PlatformKind::Bare => {
            inside(platform, apps, nodes, &mut all, errors);
            let mut ranges: Vec<(u16, Range<u64>)> = Vec::new();
            for fixed in [true, false] {
                for ((app, node), placed) in apps.iter_mut().zip(nodes).zip(&mut all) {
                    if placed.tcm == Some(Coupled::Program) {
                        continue;
                    }
                    if (node.gives("at") || node.gives("bank")) == fixed {
                        shared(platform, app, node, (placed, &mut ranges), errors);
                    }
                }
            }
        }
    }
    (errors.len() == before).then_some(all)
}

fn tile_of<'p>(
    platform: &'p Platform,
    node: &Node,
    errors: &mut Vec<Diagnostic>,
) -> Option<&'p Tile> {
    let wanted = node.maybe_integer("tile");
    let mut tiles = platform.tiles.iter();
    let found = match wanted {
        Some(id) => tiles.find(|tile| u64::from(tile.id) == id),
        None => tiles.next(),
    };
    if found.is_none() {
        let known: Vec<String> = platform.tiles.iter().map(|t| t.id.to_string()).collect();
        errors.push(Diagnostic::new(
            Problem::Unknown {
                kind: "tile",
                name: wanted.unwrap_or(0).to_string(),
            },
            node.place("tile"),
            format!("tiles with harts are {}", known.join(", ")),
        ));
    }
    if let Some(tile) = found.filter(|tile| tile.accelerator.is_some()) {
        errors.push(wrong(
            format!("tile {} has a streaming unit and no hart", tile.id),
            node.place("tile"),
            "name a tile with a hart",
        ));
        return None;
    }
    found
}

/// Harts of a tile that run single programs: the second hart of a tiled tile is reserved for the tiled OS.
fn count(tile: &Tile) -> u16 {
    let harts = tile.cluster.as_ref().map_or(1, |cluster| cluster.harts);
    u16::try_from(harts).unwrap_or(u16::MAX)
}

fn harts(tile: &Tile, node: &Node, errors: &mut Vec<Diagnostic>) -> Vec<u16> {
    let all = count(tile);
    let Some(text) = node.maybe_text("harts") else {
        return (0..all).collect();
    };
    let found: Option<Vec<Range<u16>>> = text.split(',').map(range).collect();
    let mut harts: Vec<u16> = found.into_iter().flatten().flatten().collect();
    harts.sort_unstable();
    let repeats = harts.windows(2).any(|pair| pair[0] == pair[1]);
    if harts.is_empty() || repeats || harts.iter().any(|hart| *hart >= all) {
        let example = match all {
            1 => "0".to_owned(),
            more => format!("0-{}", more - 1),
        };
        errors.push(wrong(
            format!("tile {} does not have the harts `{text}`", tile.id),
            node.place("harts"),
            format!(
                "write numbers and ranges of them, each hart once: tile {} has {example}",
                tile.id
            ),
        ));
        return Vec::new();
    }
    harts
}

/// `3` or `0-3`.
fn range(text: &str) -> Option<Range<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<u16>().ok()?);
    (first <= last).then_some(first..last.checked_add(1)?)
}

fn ways(
    platform: &Platform,
    tile: &Tile,
    node: &Node,
    errors: &mut Vec<Diagnostic>,
) -> Option<(u32, u32)> {
    let text = node.maybe_text("ways")?;
    // A description has the ways at the <cluster>, so they would be those of the other tile, too.
    let name = |tile: &Tile| tile.cluster.as_ref().map(|cluster| cluster.name.clone());
    let mut others = platform.tiles.iter().filter(|other| other.id != tile.id);
    if let (Some(cluster), Some(other)) =
        (name(tile), others.find(|other| name(other) == name(tile)))
    {
        errors.push(wrong(
            format!(
                "tile {} cannot have ways of its own, because tile {} has the same cluster `{cluster}`",
                tile.id, other.id
            ),
            node.place("ways"),
            "give the tile a <cluster> of its own in the platform",
        ));
        return None;
    }
    let there = match (&tile.cluster, &tile.l2) {
        (Some(_), Some(l2)) => u64::from(l2.ways),
        _ => 0,
    };
    let found = range(&text).filter(|ways| u64::from(ways.end) <= there);
    if found.is_none() {
        let (what, help) = match there {
            0 => (
                format!("tile {} cannot keep ways for a hart", tile.id),
                "remove it: only the second level of a <cluster> has lockdown".to_owned(),
            ),
            _ => (
                format!(
                    "the second level of tile {} does not have the ways `{text}`",
                    tile.id
                ),
                format!("write one range of ways, such as 0-{}", there - 1),
            ),
        };
        errors.push(wrong(what, node.place("ways"), help));
    }
    found.map(|ways| (u32::from(ways.start), u32::from(ways.end - ways.start)))
}

/// A share belongs to an RCID, and only a hart with ways of its own has one that nobody else uses.
fn share(
    platform: &Platform,
    tile: &Tile,
    node: &Node,
    errors: &mut Vec<Diagnostic>,
) -> Option<Share> {
    let given = ["reserved", "weight"].into_iter();
    let place = node.place(given.clone().find(|attribute| node.gives(attribute))?);
    let mut controllers = platform.memories.iter();
    let there = controllers.any(|memory| memory.dram.controller.bandwidth_blocks.is_some());
    let identified = tile
        .cluster
        .as_ref()
        .is_some_and(|one| one.capacity.is_some());
    let share = crate::platform::share(node);
    let (what, help) = if !there || !identified {
        (
            format!("no memory has a share for the harts of tile {}", tile.id),
            "remove it: shares need a memory with `bandwidth-blocks`, and a <cluster> with a <capacity>",
        )
    } else if !node.gives("ways") {
        (
            "a hart without ways of its own may use the share of any RCID".to_owned(),
            "give the program `ways`; then each of its harts has an RCID of its own",
        )
    } else if share.weight == 0 && share.reserved == 0 {
        (
            "a weight of 0 without a reservation leaves no slot".to_owned(),
            "write a weight of 1 to 255, or `reserved`",
        )
    } else {
        return Some(share);
    };
    errors.push(wrong(what, place, help));
    None
}

/// The platform with the programs' ways: a program's partition replaces the platform's.
pub(super) fn partition(platform: &mut Platform, apps: &[App], all: &[Placed]) {
    for (app, placed) in apps.iter().zip(all) {
        let Some((first, ways)) = placed.ways else {
            continue;
        };
        let own = placed.harts.iter().map(|&hart| Partition {
            hart: hart.into(),
            first,
            ways,
            share: placed.share.unwrap_or_default(),
        });
        let own: Vec<Partition> = own.collect();
        let tile = platform.tiles.iter_mut().find(|tile| tile.id == app.tile);
        let Some(cluster) = tile.and_then(|tile| tile.cluster.as_mut()) else {
            continue;
        };
        let is_own = |one: &Partition| own.iter().any(|other| other.hart == one.hart);
        cluster.partitions.retain(|one| !is_own(one));
        cluster.partitions.extend(own);
        cluster.partitions.sort_by_key(|one| one.hart);
        // The canonical description lists it among the platform's parts.
        let name = cluster.name.clone();
        let cluster = cluster.clone();
        let mut parts = platform.clusters.iter_mut();
        if let Some(part) = parts.find(|part| part.name == name) {
            *part = cluster;
        }
    }
}

/// The part of a program in the tightly coupled memories of its tile.
fn coupled(
    platform: &Platform,
    tile: &Tile,
    node: &Node,
    errors: &mut Vec<Diagnostic>,
) -> Option<Coupled> {
    let what = node.maybe_text("tcm")?;
    let Some(base) = platform.tcm_base(tile.id) else {
        let with = platform.tiles.iter().filter(|one| !one.tcm.is_empty());
        let with: Vec<String> = with.map(|one| one.id.to_string()).collect();
        let help = match with.is_empty() {
            true => "remove it: no tile of the platform has tightly coupled memories".to_owned(),
            false => format!(
                "remove it, or name a tile that has such memories: {}",
                with.join(", ")
            ),
        };
        errors.push(wrong(
            format!("tile {} has no tightly coupled memory", tile.id),
            node.place("tcm"),
            help,
        ));
        return None;
    };
    let size = tile.tcm_bytes();
    Some(match what.as_str() {
        "program" => Coupled::Program,
        _ => Coupled::Stack { base, size },
    })
}

/// Programs that are in the tightly coupled memories of their tiles have all of these.
fn inside(
    platform: &Platform,
    apps: &mut [App],
    nodes: &[&Node],
    all: &mut [Placed],
    errors: &mut Vec<Diagnostic>,
) {
    let programs = apps.iter_mut().zip(nodes).zip(all);
    for ((app, node), placed) in programs.filter(|(_, placed)| placed.tcm == Some(Coupled::Program))
    {
        whole(
            node,
            "a program in tightly coupled memories",
            "remove it: the program gets all tightly coupled memories of its tile",
            errors,
        );
        let bytes = platform.tile(app.tile).map_or(0, Tile::tcm_bytes);
        app.memory = Size(bytes);
        app.memory_tile = app.tile;
        placed.size = bytes;
        placed.base = platform.tcm_base(app.tile).unwrap_or(MEMORY_BASE);
    }
}

/// A program that has all of a memory of its tile cannot say where it is.
fn whole(node: &Node, what: &str, help: &str, errors: &mut Vec<Diagnostic>) {
    let given = ["memory", "memory-tile", "at", "bank", "colour"];
    for attribute in given.into_iter().filter(|name| node.gives(name)) {
        errors.push(wrong(
            format!("{what} cannot have `{attribute}`"),
            node.place(attribute),
            help,
        ));
    }
}

/// On a mesh, a program has the local memory of its tile.
fn locals(
    platform: &Platform,
    apps: &mut [App],
    nodes: &[&Node],
    all: &mut [Placed],
    errors: &mut Vec<Diagnostic>,
) {
    for ((app, node), placed) in apps.iter_mut().zip(nodes).zip(all) {
        whole(
            node,
            "a program in a local memory",
            "remove it: on a mesh, a program has the whole local memory of its tile",
            errors,
        );
        let tile = platform.tile(app.tile);
        let local = tile.and_then(|tile| tile.local_memory.as_ref());
        app.memory = local.map_or(Size(0), |memory| memory.size);
        app.memory_tile = app.tile;
        placed.size = app.memory.0;
    }
}

/// In a memory that others use, too.
fn shared(
    platform: &Platform,
    app: &mut App,
    node: &Node,
    (placed, ranges): (&mut Placed, &mut Vec<(u16, Range<u64>)>),
    errors: &mut Vec<Diagnostic>,
) {
    let Some(memory) = memory_of(platform, node, errors) else {
        return;
    };
    app.memory_tile = memory.id;
    placed.size = app.memory.0.next_multiple_of(GRANULE);
    app.memory = Size(placed.size);
    let is_window = platform.kind == PlatformKind::Tiled;
    for attribute in ["at", "bank"]
        .into_iter()
        .filter(|name| is_window && node.gives(name))
    {
        errors.push(wrong(
            format!("a program behind a data transfer unit cannot have `{attribute}`"),
            node.place(attribute),
            "remove it: the unit shows each program its own memory at the same address",
        ));
    }
    let Some(colour) = colour::of(platform, (node, memory), errors) else {
        return;
    };
    let Some((within, colour)) = within(platform, (node, memory, colour), errors) else {
        return;
    };
    let behind = platform.behind(memory);
    let free = |start: u64| -> Result<u64, u64> {
        if let Some(next) = colour::moved(memory, start, placed.size) {
            return Err(next);
        }
        let end = start.saturating_add(placed.size);
        let meets = |other: &Range<u64>| other.start < end && start < other.end;
        // The memories behind a second port have the same bytes at other addresses.
        let taken = ranges.iter().filter_map(|(of, other)| {
            let before = behind.iter().take_while(|(id, _)| id != of);
            let from: u64 = before.map(|(_, size)| size).sum();
            let is_here = behind.iter().any(|(id, _)| id == of);
            is_here.then(|| from + other.start..from + other.end)
        });
        match taken.into_iter().find(meets) {
            Some(other) => Err(other.end),
            None if end > within.end => Err(u64::MAX),
            None => Ok(start),
        }
    };
    let mut start = within.start;
    let found = loop {
        match free(start) {
            Ok(start) => break Some(start),
            Err(u64::MAX) => break None,
            // A specified place is used or refused.
            Err(_) if node.gives("at") => break None,
            Err(next) => start = next,
        }
    };
    let Some(start) = found else {
        let (place, help) = match (node.gives("at"), node.gives("bank")) {
            (true, _) => (
                "at",
                "the range meets another program's memory, or the end of the memory",
            ),
            (_, true) => ("bank", "write less memory, or another bank"),
            _ => ("memory", "write less memory, or remove a program"),
        };
        errors.push(wrong(
            format!("no {} are free for `{}`", app.memory, app.name),
            if node.gives(place) {
                node.place(place)
            } else {
                node.place("name")
            },
            help,
        ));
        return;
    };
    let mut from = 0;
    for (id, size) in &behind {
        let first = start.max(from);
        let end = (start + placed.size).min(from + size);
        if first < end {
            ranges.push((*id, first - from..end - from));
        }
        from += size;
    }
    let base = platform.memory_base(memory.id).unwrap_or(MEMORY_BASE);
    colour::put(placed, memory, base, start, colour);
    if is_window {
        placed.base = MEMORY_BASE;
    }
}

/// The memory tile of a program: the platform's first one if it names none.
fn memory_of<'p>(
    platform: &'p Platform,
    node: &Node,
    errors: &mut Vec<Diagnostic>,
) -> Option<&'p Memory> {
    let wanted = node.maybe_integer("memory-tile");
    let mut memories = platform.memories.iter();
    let found = match wanted {
        Some(id) => memories.find(|memory| u64::from(memory.id) == id),
        None => memories.next(),
    };
    if found.is_none() {
        let known: Vec<String> = platform.memories.iter().map(|m| m.id.to_string()).collect();
        match wanted {
            Some(id) => errors.push(Diagnostic::new(
                Problem::Unknown {
                    kind: "memory tile",
                    name: id.to_string(),
                },
                node.place("memory-tile"),
                format!("memory tiles are {}", known.join(", ")),
            )),
            None => errors.push(wrong(
                format!("the platform {} has no memory for programs", platform.name),
                node.place("name"),
                "add a <memory>",
            )),
        }
    }
    found
}

/// Range of memory offsets where a program may be, behind an address translator, and its colour; `colour` is what the description says.
fn within(
    platform: &Platform,
    (node, memory, colour): (&Node, &Memory, u64),
    errors: &mut Vec<Diagnostic>,
) -> Option<(Range<u64>, u64)> {
    let size = memory.window();
    let base = platform.memory_base(memory.id).unwrap_or(MEMORY_BASE);
    if let Some(text) = node.maybe_text("at") {
        let at = text
            .strip_prefix("0x")
            .map(|hex| u64::from_str_radix(&hex.replace('_', ""), 16));
        let offset = at.and_then(Result::ok).and_then(|at| at.checked_sub(base));
        let offset = offset.filter(|offset| *offset < size && offset.is_multiple_of(GRANULE));
        if offset.is_none() {
            errors.push(wrong(
                format!("no page of memory begins at `{text}`"),
                node.place("at"),
                format!(
                    "write a multiple of {GRANULE:#x} from {base:#x} to {:#x}",
                    base + size - GRANULE
                ),
            ));
        }
        if node.gives("bank") {
            errors.push(wrong(
                "the program has both an address and a bank",
                node.place("bank"),
                "keep one of them: the address determines the bank",
            ));
            return None;
        }
        return offset.map(|offset| {
            let (byte, colour) = memory.byte(offset);
            (byte..memory.size.0, colour)
        });
    }
    let size = memory.size.0;
    let Some(bank) = node.maybe_integer("bank") else {
        return Some((0..size, colour));
    };
    let dram = &memory.dram;
    let bytes = dram.bank_bytes(size);
    let banks = u64::from(dram.banks);
    let (cause, help) = match bytes {
        None => (
            format!("the memory of {} interleaves its banks", platform.name),
            "remove it, or choose a memory with a <controller bank-map=\"block\">: only there is a bank one range of addresses".to_owned(),
        ),
        Some(_) if bank >= banks => (
            format!("the memory has no bank {bank}"),
            format!("banks are numbered from 0 to {}", banks - 1),
        ),
        Some(bytes) => return Some((bank * bytes..(bank + 1) * bytes, colour)),
    };
    errors.push(wrong(cause, node.place("bank"), help));
    None
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_include_both_ends() {
        for (text, wanted) in [
            ("3", Some(3..4)),
            ("0-3", Some(0..4)),
            (" 1 - 2 ", Some(1..3)),
            ("3-0", None),
            ("-1", None),
            ("1-", None),
            ("", None),
            ("65535", None),
            ("1-2-3", None),
        ] {
            assert_eq!(range(text), wanted, "{text}");
        }
    }
}
