//! Platform rules that involve several values.
//!
//! Why it exists: the machine relies on them, and a user should read them as sentences with a place. What it
//! deliberately does not know: files and XML.

use super::PAGE;
use super::read::numbers;
use super::{Platform, PlatformKind, PrefetcherKind, TICK_LIMIT, Tile, Topology, common_tick};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::units::{Frequency, Size};
use std::collections::BTreeSet;

/// Reports every rule broken by `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    clocks(platform, root, errors);
    for node in root.all("cache") {
        cache(node, errors);
    }
    powers_of_two(root, errors);
    tiles(platform, root, errors);
    memories(platform, root, errors);
    routers(platform, root, errors);
    super::mesh::check(platform, root, errors);
    super::cluster::check(platform, root, errors);
    super::engines::check(platform, root, errors);
    super::tcm::check(platform, root, errors);
    super::translator::check(platform, root, errors);
    super::peripherals::check(platform, root, errors);
    super::doorbells::check(platform, root, errors);
    super::pipeline::check(platform, root, errors);
}

fn clocks(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let frequencies = platform
        .clocks
        .iter()
        .map(|clock| clock.frequency.0)
        .chain([platform.timebase.0]);
    let places = root.all("clock").chain(root.child("timebase"));
    let mut ticks = 1;
    for (frequency, node) in frequencies.zip(places) {
        let Some(common) = common_tick(ticks, frequency) else {
            let all: Vec<String> = platform
                .clocks
                .iter()
                .map(|clock| clock.frequency.to_string())
                .chain([platform.timebase.to_string()])
                .collect();
            errors.push(Diagnostic::new(
                Problem::NoCommonTick {
                    clocks: all.join(", "),
                    limit: Frequency(TICK_LIMIT).to_string(),
                },
                node.place("frequency"),
                "choose frequencies with a small common multiple, such as 800MHz and 1GHz",
            ));
            return;
        };
        ticks = common;
    }
}

fn cache(node: &Node, errors: &mut Vec<Diagnostic>) {
    let what = format!("cache `{}`", node.text("name"));
    let (size, ways, line) = (
        node.size("size").0,
        node.integer("ways"),
        node.size("line").0,
    );
    if !line.is_power_of_two() {
        errors.push(Diagnostic::new(
            Problem::Geometry {
                what,
                cause: format!("a line of {line} bytes is not a power of two"),
            },
            node.place("line"),
            format!("the nearest are {}", neighbours(line)),
        ));
        return;
    }
    let sets = size / (ways * line);
    if !size.is_multiple_of(ways * line) || !sets.is_power_of_two() {
        let nearest = sets.max(1).next_power_of_two() * ways * line;
        errors.push(Diagnostic::new(
            Problem::Geometry {
                what,
                cause: format!(
                    "{} in {ways} ways with {} lines: the number of sets is not a power of two",
                    Size(size),
                    Size(line)
                ),
            },
            node.place("size"),
            format!(
                "{ways} ways and {} lines fit a size of {}",
                Size(line),
                Size(nearest)
            ),
        ));
    }
    if node.text("replacement") == "tree-plru" && !ways.is_power_of_two() {
        errors.push(Diagnostic::new(
            Problem::Geometry {
                what: format!("cache `{}`", node.text("name")),
                cause: format!("tree-plru needs a power of two of ways, not {ways}"),
            },
            node.place("replacement"),
            "use replacement=\"lru\", or 2, 4, 8 or 16 ways",
        ));
    }
    if let Some(prefetcher) = node.child("prefetcher") {
        let cache = format!("cache `{}`", node.text("name"));
        self::prefetcher(prefetcher, &cache, line, errors);
    }
}

/// Where a tile has a cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Instructions,
    Data,
    Second,
}

/// Sizes and counts of a prefetcher of a cache with lines of this many bytes.
fn prefetcher(node: &Node, cache: &str, line: u64, errors: &mut Vec<Diagnostic>) {
    let mut wrong = |attribute: &str, cause: String, help: &str| {
        let what = format!("the prefetcher of {cache}");
        let problem = Problem::Geometry { what, cause };
        errors.push(Diagnostic::new(problem, node.place(attribute), help));
    };
    let page = node.size("page").0;
    if !page.is_power_of_two() || page < line {
        let cause =
            format!("a page of {page} bytes is not a power of two of lines of {line} bytes");
        wrong("page", cause, "use a power of two, such as 4KiB");
    }
    let (entries, ways) = (node.integer("entries"), node.integer("ways"));
    if !entries.is_multiple_of(ways) || !(entries / ways).is_power_of_two() {
        let cause =
            format!("{entries} entries in {ways} ways: the number of sets is not a power of two");
        wrong(
            "entries",
            cause,
            "use as many entries as ways, or 2, 4, 8 times as many",
        );
    }
    let (bits, confidence) = (node.integer("confidence-bits"), node.integer("confidence"));
    if confidence >> bits != 0 {
        let cause = format!("a confidence of {confidence} does not fit {bits} bits");
        wrong("confidence", cause, "write less, or more confidence-bits");
    }
}

fn neighbours(value: u64) -> String {
    let above = value.max(1).next_power_of_two();
    format!("{} and {}", above / 2, above)
}

/// Values used to extract address bits.
fn powers_of_two(root: &Node, errors: &mut Vec<Diagnostic>) {
    const RULES: [(&str, &str, bool); 10] = [
        ("pipeline", "predictor-entries", true),
        ("pipeline", "l2-tlb-entries", true),
        ("dtu", "block", false),
        ("dram", "banks", false),
        ("dram", "row", false),
        ("dram", "bus", false),
        ("dram", "burst", false),
        ("network", "chunk", false),
        ("local-memory", "width", false),
        ("local-memory", "fetch", false),
    ];
    for (element, attribute, zero) in RULES {
        for node in root.all(element) {
            let value = match attribute {
                "predictor-entries" | "l2-tlb-entries" | "banks" => node.integer(attribute),
                _ => node.size(attribute).0,
            };
            if !(value.is_power_of_two() || zero && value == 0) {
                let name = node.rule.attribute("name").map(|_| node.text("name"));
                errors.push(Diagnostic::new(
                    Problem::Geometry {
                        what: match name {
                            Some(name) => format!("{element} `{name}`"),
                            None => element.to_owned(),
                        },
                        cause: format!("{attribute} is {value}, which is not a power of two"),
                    },
                    node.place(attribute),
                    format!("the nearest are {}", neighbours(value)),
                ));
            }
        }
    }
    for node in root.all("dram") {
        if node.size("burst").0 > node.size("row").0 {
            errors.push(Diagnostic::new(
                Problem::Geometry {
                    what: format!("dram `{}`", node.text("name")),
                    cause: "a burst is larger than a row".into(),
                },
                node.place("burst"),
                format!("write at most {}", node.size("row")),
            ));
        }
    }
}

fn tiles(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let tiled = platform.kind == PlatformKind::Tiled;
    for node in root.all("tile") {
        let Some(tile) = platform.tile(node.integer("id") as u16) else {
            continue;
        };
        if tiled != tile.dtu.is_some() {
            let (cause, help) = if tiled {
                (
                    "has no DTU, but the platform is tiled",
                    "add dtu=\"...\", or kind=\"bare\" to the platform",
                )
            } else {
                (
                    match platform.kind {
                        PlatformKind::Mesh => "has a DTU, but the platform is a mesh",
                        _ => "has a DTU, but the platform is bare",
                    },
                    "remove dtu=\"...\", or write kind=\"tiled\"",
                )
            };
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!("tile {} {cause}", tile.id)),
                node.place("dtu"),
                help,
            ));
        }
        if tile.accelerator.is_some() && (!tiled || tile.privileged || tile.harts > 1) {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "tile {} has an accelerator and no hart, but the platform is bare, the kernel runs on it, or it has two harts",
                    tile.id
                )),
                node.place("accelerator"),
                "remove accelerator=\"...\", or give the kernel another tile",
            ));
        }
        if tile.network_card.is_some() && tile.accelerator.is_some() {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "tile {} has a network card, but an accelerator in place of the hart that would drive it",
                    tile.id
                )),
                node.place("network-card"),
                "remove one of them",
            ));
        }
        lines(platform, tile, root, errors);
    }
    for node in root.all("network-card") {
        let queue = node.integer("queue");
        if !queue.is_power_of_two() {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!("a queue cannot have {queue} entries")),
                node.place("queue"),
                format!(
                    "write a power of two, such as {}",
                    queue.next_power_of_two().min(1024)
                ),
            ));
        }
    }
    if tiled && platform.kernel_tile().is_none() {
        errors.push(Diagnostic::new(
            Problem::NoKernelTile {
                platform: platform.name.clone(),
            },
            &root.span,
            "write privileged=\"true\" at the <tile> for the kernel",
        ));
    }
    let mut privileged = root.all("tile").filter(|node| node.boolean("privileged"));
    if let (Some(first), Some(second)) = (privileged.next(), privileged.next()) {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "tiles {} and {} are both privileged",
                first.integer("id"),
                second.integer("id")
            )),
            second.place("privileged"),
            "there is one kernel: keep privileged=\"true\" at one tile",
        ));
    }
}

/// The caches of a tile pass whole lines to each other, and a line travels in one packet. The errors name parts, not
/// tiles, so that eight equal tiles give one error.
fn lines(platform: &Platform, tile: &Tile, root: &Node, errors: &mut Vec<Diagnostic>) {
    let place = |kind: &str, name: &str, attribute: &str| {
        let found = root.all(kind).find(|node| node.text("name") == name);
        found.map_or_else(|| root.span.clone(), |node| node.place(attribute).clone())
    };
    let Some(first) = &tile.l1d else { return };
    let line = first.line;
    for cache in [&tile.l1i, &tile.l2].into_iter().flatten() {
        // A line that is not a power of two is a separate error.
        if cache.line != line && cache.line.is_power_of_two() && line.is_power_of_two() {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "caches `{}` and `{}` are in one tile, but have lines of {line} and {} bytes",
                    first.name, cache.name, cache.line
                )),
                &place("cache", &cache.name, "line"),
                "use caches with lines of equal size in a tile",
            ));
        }
    }
    let own = [
        (&tile.l1i, Level::Instructions),
        (&tile.l1d, Level::Data),
        (&tile.l2, Level::Second),
    ];
    let own = own
        .into_iter()
        .filter_map(|(cache, level)| Some((cache.as_ref()?, level)));
    let cores = tile.cluster.iter().flat_map(|cluster| &cluster.cores);
    let of_cores =
        cores.flat_map(|core| [(&core.l1i, Level::Instructions), (&core.l1d, Level::Data)]);
    let mut told = BTreeSet::new();
    for (cache, level) in own.chain(of_cores) {
        // Several harts may have caches of one kind.
        if !told.insert((&cache.name, level)) {
            continue;
        }
        let kind = cache.prefetcher.as_ref().map(|prefetcher| prefetcher.kind);
        let cause = match (level, kind, &tile.cluster) {
            (_, None | Some(PrefetcherKind::Off), _) => continue,
            (Level::Instructions, ..) => "is a tile's `l1i`; instruction caches have no prefetcher",
            (Level::Second, Some(PrefetcherKind::Stride), Some(_)) => {
                "is the second level of a cluster, whose requests carry no program counter, so only kind=\"stream\" works there"
            }
            _ => continue,
        };
        let help = match level {
            Level::Second => "write kind=\"stream\", or kind=\"off\"",
            _ => "write a cache without <prefetcher> for it, or kind=\"off\"",
        };
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!("cache `{}` {cause}", cache.name)),
            &place("cache", &cache.name, "name"),
            help,
        ));
    }
    if line > platform.network.chunk {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "cache `{}`: a line of {line} bytes does not fit a chunk of the network of {}",
                first.name, platform.network.chunk
            )),
            &place("cache", &first.name, "line"),
            "use shorter lines or larger chunks",
        ));
    }
    if let Some(dtu) = &tile.dtu
        && dtu.block > line
    {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "dtu `{}`: a block of {} bytes is larger than a cache line of {line}",
                dtu.name, dtu.block
            )),
            &place("dtu", &dtu.name, "block"),
            format!("use a block of at most {line} bytes"),
        ));
    }
}

fn memories(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    if platform.memories.is_empty() && platform.kind != PlatformKind::Mesh {
        errors.push(Diagnostic::new(
            Problem::MissingElement {
                element: "memory".into(),
                parent: "platform".into(),
            },
            &root.span,
            "add a <memory .../> (a memory tile)",
        ));
    }
    for node in root.all("memory") {
        let size = node.size("size");
        if !size.0.is_multiple_of(PAGE) {
            errors.push(Diagnostic::new(
                Problem::Geometry {
                    what: format!("memory {}", node.integer("id")),
                    cause: format!("{size} is not a whole number of pages"),
                },
                node.place("size"),
                format!("write a multiple of {}", Size(PAGE)),
            ));
        }
    }
    for (node, dram) in root
        .all("dram")
        .filter_map(|node| Some((node, node.child("controller")?)))
    {
        controller(root, node, dram, errors);
    }
    for node in root.all("dram") {
        let (length, interval) = (node.integer("refresh"), node.integer("refresh-interval"));
        if interval != 0 && length >= interval {
            errors.push(Diagnostic::new(
                Problem::Geometry {
                    what: format!("dram `{}`", node.text("name")),
                    cause: format!(
                        "a refresh of {length} cycles every {interval} cycles leaves no time for accesses"
                    ),
                },
                node.place("refresh"),
                format!("write less than {interval}, or refresh-interval=\"0\" for none"),
            ));
        }
    }
}

fn routers(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let (routers, single) = match platform.network.topology {
        Topology::Crossbar => return,
        Topology::StarMesh { columns, rows } => (u64::from(columns) * u64::from(rows), false),
        Topology::Mesh { columns, rows } => (u64::from(columns) * u64::from(rows), true),
    };
    // External memory is at the edge of a mesh of local memories, next to a tile.
    let beside = platform.kind == PlatformKind::Mesh;
    let mut used = Vec::new();
    let all = root.all("tile").chain(root.all("engine"));
    let all = all
        .chain(root.all("peripheral"))
        .chain(root.child("doorbells"));
    for node in all.chain(root.all("memory")) {
        let shares = beside && node.rule.name == "memory";
        for (id, router) in numbers(node) {
            let router = u64::from(router);
            if router >= routers {
                errors.push(Diagnostic::new(
                    Problem::Unknown {
                        kind: "router",
                        name: router.to_string(),
                    },
                    node.place("router"),
                    format!("the network has routers 0 to {}", routers - 1),
                ));
                break;
            }
            if single && !shares && used.contains(&router) {
                errors.push(Diagnostic::new(
                    Problem::Inconsistent(format!(
                        "tile {id} shares router {router} with another tile"
                    )),
                    node.place("router"),
                    "a mesh has one tile at each router; use topology=\"star-mesh\" for several",
                ));
                break;
            }
            used.push(router);
        }
    }
}

/// The rules of a controller.
fn controller(root: &Node, dram: &Node, node: &Node, errors: &mut Vec<Diagnostic>) {
    let what = || format!("the controller of dram `{}`", dram.text("name"));
    let mut refuse = |attribute: &Node, name, cause: String, help: String| {
        let problem = Problem::Geometry {
            what: what(),
            cause,
        };
        errors.push(Diagnostic::new(problem, attribute.place(name), help));
    };
    if dram.integer("frontend") == 0 {
        let cause = "requests must reach its queue before a command is chosen".into();
        let help = "write frontend=\"1\" or more".into();
        refuse(dram, "frontend", cause, help);
    }
    let channels = node.integer("channels");
    if !channels.is_power_of_two() {
        let cause = format!("channels is {channels}, which is not a power of two");
        let help = format!("the nearest are {}", neighbours(channels));
        refuse(node, "channels", cause, help);
    }
    let size = node.integer("write-queue");
    let (high, low) = (node.integer("write-high"), node.integer("write-low"));
    if size > 0 && node.text("policy") == "slots" {
        let cause = "policy `slots` serves reads and writes from one queue, so it cannot have a write queue".into();
        let help = "remove write-queue, or choose another policy".into();
        refuse(node, "write-queue", cause, help);
    } else if size > 0 && !(low < high && high <= size) {
        let cause =
            format!("a write queue of {size} bursts cannot be drained from {high} to {low}");
        let help = format!("write-low must be less than write-high, and write-high at most {size}");
        refuse(node, "write-high", cause, help);
    }
    if node.text("turns") == "hart" {
        let clusters = root.all("tile");
        let mut clusters = clusters.filter(|tile| tile.maybe_text("cluster").is_some());
        if node.text("policy") != "slots" {
            let cause = "only policy `slots` serves in turns".into();
            let help = "remove turns, or write policy=\"slots\"".into();
            refuse(node, "turns", cause, help);
        } else if clusters.next().is_none() {
            let cause = "turns by hart are for the harts of a cluster, and no tile has one".into();
            let help = "remove turns, or add a <cluster>".into();
            refuse(node, "turns", cause, help);
        }
    }
    if node.integer("bandwidth-blocks") > 0 {
        let mut clusters = root.all("cluster");
        if node.text("policy") != "slots" {
            let cause =
                "a bandwidth controller gives slots to shares, and only policy `slots` has slots"
                    .into();
            let help = "remove bandwidth-blocks, or write policy=\"slots\"".into();
            refuse(node, "bandwidth-blocks", cause, help);
        } else if !clusters.any(|cluster| cluster.child("capacity").is_some()) {
            let cause = "a bandwidth controller serves RCIDs, but no hart has one, because no <cluster> has a <capacity>".into();
            let help = "remove bandwidth-blocks, or add a <capacity>".into();
            refuse(node, "bandwidth-blocks", cause, help);
        }
        if node.text("turns") == "hart" {
            let cause =
                "a bandwidth controller gives shares to RCIDs instead of turns to tiles or harts"
                    .into();
            let help = "remove turns, or bandwidth-blocks".into();
            refuse(node, "turns", cause, help);
        }
    }
    // A number that is not a power of two is a separate error, so nothing follows from it.
    let parts = [channels, dram.integer("banks"), dram.size("row").0];
    let whole = match parts.iter().all(|one| one.is_power_of_two()) {
        true => parts.iter().product(),
        false => 0,
    };
    let name = dram.text("name");
    for memory in root
        .all("memory")
        .filter(|memory| memory.text("dram") == name)
    {
        let size = memory.size("size");
        if whole > 0 && !size.0.is_multiple_of(whole) {
            let cause =
                format!("{size} is not a whole number of rows in every bank of every channel");
            let help = format!("write a multiple of {}", Size(whole));
            refuse(memory, "size", cause, help);
        }
    }
}
