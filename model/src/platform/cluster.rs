//! Rules of a cluster of harts.
//!
//! Why it exists: a tile with a cluster has other parts than one with a single hart. What it deliberately does not know: what the rules
//! are for; the machine says that.

use super::read::numbers;
use super::{Platform, PlatformKind};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::units::Size;
use bulkhead_abi::memory_map::{PMP_WINDOW_SIZE, PMP_WINDOWS};

/// Reports every rule broken by the clusters of `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    for node in root.all("cluster") {
        let banks = node.integer("banks");
        if !banks.is_power_of_two() {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!("a second level cannot have {banks} banks")),
                node.place("banks"),
                "write a power of two, such as 2",
            ));
        }
    }
    for node in root.all("cluster") {
        partitions(node, errors);
        shares(node, errors);
        capacity(node, errors);
        cores(root, node, errors);
    }
    coherent(root, errors);
    let tiles = root.all("tile");
    let clusters = tiles.filter(|node| node.maybe_text("cluster").is_some());
    let mut any = false;
    for node in clusters {
        tile(platform, root, node, errors);
        any = true;
    }
    for node in root.all("tile") {
        if any && node.maybe_text("network-card").is_some() {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "tile {} has a network card on a chip with a cluster",
                    node.integer("id")
                )),
                node.place("network-card"),
                "remove it, or the cluster",
            ));
        }
    }
    windows(platform, root, errors);
}

/// An element of a kind, by name.
fn named<'a>(root: &'a Node, element: &'a str, name: Option<String>) -> Option<&'a Node> {
    let name = name?;
    root.all(element).find(|node| node.text("name") == name)
}

/// Bytes of a line of the coherent clusters; `None`: no tile has one.
pub(super) fn coherent_line(root: &Node) -> Option<u64> {
    root.all("tile").find_map(|tile| {
        let cluster = named(root, "cluster", tile.maybe_text("cluster"))?;
        let cache = named(root, "cache", tile.maybe_text("l2"))?;
        cluster.boolean("coherent").then(|| cache.size("line").0)
    })
}

/// Checks that a coherent cluster has another cluster or a device to be coherent with, that all lines have one length and one name each,
/// and that no line is fetched ahead of its use.
fn coherent(root: &Node, errors: &mut Vec<Diagnostic>) {
    let mut wrong = |cause: String, node: &Node, attribute: &str, help: String| {
        let place = node.place(attribute);
        errors.push(Diagnostic::new(Problem::Inconsistent(cause), place, help));
    };
    let of = |tile: &Node| {
        let cluster = named(root, "cluster", tile.maybe_text("cluster"))?;
        cluster.boolean("coherent").then_some(cluster)
    };
    let tiles = root.all("tile");
    let all: Vec<_> = tiles.filter_map(|tile| Some((tile, of(tile)?))).collect();
    let device = || {
        let mut devices = root.all("peripheral").chain(root.all("engine"));
        devices.any(|one| one.boolean("coherent"))
    };
    // An element may describe several tiles.
    let count: usize = all.iter().map(|(tile, _)| numbers(tile).count()).sum();
    if count == 0 || count == 1 && !device() {
        let alone = root.all("cluster").filter(|one| one.boolean("coherent"));
        for cluster in alone {
            let name = cluster.text("name");
            wrong(
                format!(
                    "cluster `{name}` is coherent with other clusters and devices, but there is nothing that it is coherent with"
                ),
                cluster,
                "coherent",
                "remove it: the harts of one cluster are coherent without it; or write it at the clusters of two tiles, or at a <peripheral> or an <engine>, too".into(),
            );
        }
        return;
    }
    let first = all[0].0.integer("id");
    let (mut length, mut told) = (None, Vec::new());
    for (tile, cluster) in &all {
        let Some(cache) = named(root, "cache", tile.maybe_text("l2")) else {
            // Another rule says that.
            continue;
        };
        let (id, line) = (tile.integer("id"), cache.size("line"));
        if let Some(length) = length.filter(|length| *length != line) {
            wrong(
                format!(
                    "tile {id} has lines of {line}, and tile {first}, whose cluster is coherent with its own, of {length}"
                ),
                tile,
                "l2",
                "use second levels with lines of equal size in coherent clusters".into(),
            );
        }
        length = length.or(Some(line));
        let cores = cluster.all("core").map(|core| core.maybe_text("l1d"));
        let firsts = std::iter::once(tile.maybe_text("l1d")).chain(cores);
        let firsts = firsts.filter_map(|name| named(root, "cache", name));
        for cache in std::iter::once(cache).chain(firsts) {
            let (name, fetches) = (cache.text("name"), cache.child("prefetcher"));
            let Some(prefetcher) = fetches.filter(|one| one.text("kind") != "off") else {
                continue;
            };
            // Several harts may have caches of one kind.
            if told.contains(&name) {
                continue;
            }
            wrong(
                format!(
                    "cache `{name}` fetches lines ahead, and the cluster of tile {id} is coherent with others"
                ),
                prefetcher,
                "kind",
                "write kind=\"off\": a line that is fetched ahead would be taken from its owner in another cluster, who would have to ask for it again".into(),
            );
            told.push(name);
        }
    }
    for memory in root.all("memory") {
        for attribute in ["dropped-bits", "second-port-of"] {
            if memory.maybe_text(attribute).is_some() {
                wrong(
                    format!(
                        "memory {} gives bytes a second address, and the cluster of tile {first} is coherent with others",
                        memory.integer("id")
                    ),
                    memory,
                    attribute,
                    "remove it, or coherent=\"true\": caches know a line by its address, so two addresses of one byte are two lines".into(),
                );
            }
        }
    }
}

/// The memories of a bare chip are in windows of every tile: a single one in windows that follow each other.
fn windows(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    if platform.kind != PlatformKind::Bare {
        return;
    }
    let several = platform.memories.len() > 1;
    let mut needed = 0;
    for node in root.all("memory") {
        needed += node.size("size").0.div_ceil(PMP_WINDOW_SIZE);
        if needed > PMP_WINDOWS {
            let all = match several {
                true => "several memories share",
                false => "a bare platform has",
            };
            let help = match several {
                true => "write smaller memories, or fewer: each one begins at a window of its own"
                    .into(),
                false => format!("write at most {}", Size(PMP_WINDOW_SIZE * PMP_WINDOWS)),
            };
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "memory {} does not fit: {all} {PMP_WINDOWS} windows of {} each",
                    node.integer("id"),
                    Size(PMP_WINDOW_SIZE)
                )),
                node.place("size"),
                help,
            ));
            return;
        }
    }
}

/// Each hart has one kind; a core has lines of the second level's length and a walker that writes nothing.
fn cores(root: &Node, cluster: &Node, errors: &mut Vec<Diagnostic>) {
    let name = cluster.text("name");
    let tiles = root.all("tile");
    let mut tiles = tiles.filter(|tile| tile.maybe_text("cluster").as_ref() == Some(&name));
    let second = tiles.find_map(|tile| tile.maybe_text("l2"));
    let line = |cache: &str| {
        let mut caches = root.all("cache");
        let found = caches.find(|node| node.text("name") == cache);
        found.map(|node| node.size("line"))
    };
    let mut seen = Vec::new();
    for node in cluster.all("core") {
        let (hart, harts) = (node.integer("hart"), cluster.integer("harts"));
        let mut wrong = |cause: String, attribute: &str, help: &str| {
            let place = node.place(attribute);
            errors.push(Diagnostic::new(Problem::Inconsistent(cause), place, help));
        };
        let one =
            "write one <core> for each hart that is of another kind; harts are numbered from 0";
        if hart >= harts {
            wrong(
                format!("<core> is for hart {hart}, but the cluster has only {harts} harts"),
                "hart",
                one,
            );
        } else if seen.contains(&hart) {
            wrong(format!("hart {hart} has two <core> elements"), "hart", one);
        }
        seen.push(hart);
        let below = second.as_deref().and_then(line);
        for attribute in ["l1i", "l1d"] {
            let own = line(&node.text(attribute));
            if let (Some(own), Some(below)) = (own, below)
                && own != below
            {
                wrong(
                    format!("hart {hart} has lines of {own}, and the second level of {below}"),
                    attribute,
                    "use caches with lines of equal size in a cluster",
                );
            }
        }
        walker(
            root,
            &node.text("pipeline"),
            &format!("hart {hart} is in a cluster"),
            errors,
        );
    }
}

/// The walker of a hart in a cluster leaves accessed and dirty bits to traps.
fn walker(root: &Node, pipeline: &str, who: &str, errors: &mut Vec<Diagnostic>) {
    let mut pipelines = root.all("pipeline");
    if let Some(pipeline) = pipelines.find(|other| other.text("name") == pipeline)
        && pipeline.boolean("hardware-ad")
    {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "{who}, but the page-table walker of its harts sets accessed and dirty bits"
            )),
            pipeline.place("hardware-ad"),
            "write hardware-ad=\"false\": in a cluster, a trap handler must set these bits, because walkers read shared lines",
        ));
    }
}

/// Each hart has at most one partition.
fn partitions(cluster: &Node, errors: &mut Vec<Diagnostic>) {
    let mut seen = Vec::new();
    for node in cluster.all("partition") {
        let (hart, harts) = (node.integer("hart"), cluster.integer("harts"));
        let cause = if hart >= harts {
            format!("<partition> is for hart {hart}, but the cluster has only {harts} harts")
        } else if seen.contains(&hart) {
            format!("hart {hart} has two <partition> elements")
        } else {
            seen.push(hart);
            continue;
        };
        errors.push(Diagnostic::new(
            Problem::Inconsistent(cause),
            node.place("hart"),
            "write one <partition> for each hart that is limited; harts are numbered from 0",
        ));
    }
}

/// A share belongs to an RCID, and leaves its hart some slot.
fn shares(cluster: &Node, errors: &mut Vec<Diagnostic>) {
    for node in cluster.all("partition") {
        let mut given = ["reserved", "weight"].into_iter();
        let Some(attribute) = given.find(|attribute| node.gives(attribute)) else {
            continue;
        };
        let share = super::share(node);
        let (cause, help) = if cluster.child("capacity").is_none() {
            (
                "a share belongs to an RCID, and the harts of this cluster have none",
                "remove it, or add a <capacity>",
            )
        } else if share.weight == 0 && share.reserved == 0 {
            (
                "a weight of 0 without a reservation leaves no slot",
                "write a weight of 1 to 255, or `reserved`",
            )
        } else {
            continue;
        };
        let place = node.place(attribute);
        errors.push(Diagnostic::new(
            Problem::Inconsistent(cause.into()),
            place,
            help,
        ));
    }
}

/// The fields of bits can hold the identifiers of a capacity controller, and there is one for each hart with ways of its own.
fn capacity(cluster: &Node, errors: &mut Vec<Diagnostic>) {
    let Some(node) = cluster.child("capacity") else {
        return;
    };
    let mut wrong = |cause: String, attribute: &str, help: String| {
        let place = node.place(attribute);
        errors.push(Diagnostic::new(Problem::Inconsistent(cause), place, help));
    };
    for attribute in ["rcids", "mcids"] {
        let count = node.integer(attribute);
        if !count.is_power_of_two() {
            wrong(
                format!("a field of `srmcfg` cannot hold {count} identifiers"),
                attribute,
                "write a power of two, such as 16".into(),
            );
        }
    }
    let harts = cluster.integer("harts");
    if let Some(programmer) = node.maybe_integer("programmer").filter(|one| *one >= harts) {
        wrong(
            format!(
                "hart {programmer} programs <capacity>, but the cluster has only {harts} harts"
            ),
            "programmer",
            format!("harts are numbered from 0 to {}", harts - 1),
        );
    }
    let rcids = node.integer("rcids");
    let own = cluster.all("partition").map(|one| one.integer("hart") + 1);
    if let Some(last) = own.max().filter(|last| *last >= rcids) {
        wrong(
            format!(
                "hart {} has a <partition>, so its RCID is {last}, but there are only {rcids}",
                last - 1
            ),
            "rcids",
            format!("write {}", (last + 1).next_power_of_two()),
        );
    }
}

/// Partitions name ways that the second level has.
fn ways(root: &Node, tile: &Node, errors: &mut Vec<Diagnostic>) {
    let named = |element, attribute| named(root, element, tile.maybe_text(attribute));
    let (Some(cluster), Some(l2)) = (named("cluster", "cluster"), named("cache", "l2")) else {
        return;
    };
    for node in cluster.all("partition") {
        let (first, ways, there) = (
            node.integer("first"),
            node.integer("ways"),
            l2.integer("ways"),
        );
        if first + ways > there {
            let last = first + ways - 1;
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "<partition> takes the ways {first} to {last} of cache `{}`, which has {there} ways",
                    l2.text("name")
                )),
                node.place("ways"),
                format!("ways are numbered from 0 to {}", there - 1),
            ));
        }
    }
}

/// Harts with miss registers of their own have equally many, at least one each.
fn registers(root: &Node, tile: &Node, errors: &mut Vec<Diagnostic>) {
    let named = |element, attribute| named(root, element, tile.maybe_text(attribute));
    let (Some(cluster), Some(second)) = (named("cluster", "cluster"), named("cache", "l2")) else {
        return;
    };
    let (harts, all) = (cluster.integer("harts"), second.integer("mshrs"));
    if cluster.text("miss-registers") == "hart" && (all == 0 || !all.is_multiple_of(harts)) {
        let cause = format!("{all} miss registers cannot be divided equally among {harts} harts");
        let help = format!(
            "write a multiple of {harts} as mshrs of cache `{}`, or miss-registers=\"shared\"",
            second.text("name")
        );
        let place = cluster.place("miss-registers");
        errors.push(Diagnostic::new(Problem::Inconsistent(cause), place, help));
    }
}

fn tile(platform: &Platform, root: &Node, node: &Node, errors: &mut Vec<Diagnostic>) {
    ways(root, node, errors);
    let id = node.integer("id");
    let mut wrong = |cause: &str, attribute: &str, help: &str| {
        let cause = format!("tile {id} has a cluster, but {cause}");
        let place = node.place(attribute);
        errors.push(Diagnostic::new(Problem::Inconsistent(cause), place, help));
    };
    if platform.kind != PlatformKind::Bare {
        wrong(
            "the platform is not bare",
            "cluster",
            "remove cluster=\"...\", or write kind=\"bare\" at the platform",
        );
    }
    if node.maybe_text("l2").is_none() {
        wrong(
            "no second level for its harts",
            "cluster",
            "add l2=\"...\": the harts share it",
        );
    }
    if node.integer("harts") != 1 {
        wrong(
            "harts of its own, too",
            "harts",
            "remove harts=\"...\": the <cluster> says how many there are",
        );
    }
    let second = named(root, "cache", node.maybe_text("l2"));
    if let Some(second) = second.filter(|second| second.integer("latency") == 0) {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "cache `{}` is the second level of a cluster, and its look-up takes no time",
                second.text("name")
            )),
            second.place("latency"),
            "write at least 1",
        ));
    }
    registers(root, node, errors);
    let who = format!("tile {id} has a cluster");
    walker(root, &node.text("pipeline"), &who, errors);
}
