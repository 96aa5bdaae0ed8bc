//! What a figure needs of a platform.
//!
//! Why it exists: who asks a platform for a figure that it cannot have wants to know why. What it deliberately does not know: how a figure finds out whether a
//! platform has it; a test compares this list with all figures of all platforms.

use bulkhead_runner::error::Error;

/// In the words of a platform file.
const CACHE: &str = "caches, and no mesh of local memories";
const MESH: &str = "a mesh of tiles with local memories";
const RIVALS: &str = "a cluster of several harts, with a second level";
const SEVERAL: &str = "several tiles (kind bare)";

/// Every figure, and what it needs.
pub(super) const NEEDS: [(&str, &str); 22] = [
    ("latency", CACHE),
    ("rows", CACHE),
    ("parallel", CACHE),
    ("bandwidth", CACHE),
    ("ipc", CACHE),
    ("loads", CACHE),
    ("streams", CACHE),
    ("rivals-cache", RIVALS),
    ("rivals-memory", "a cluster, and a memory"),
    (
        "rivals-colours",
        "a cluster of several harts, whose second level has a page of sets for each of them",
    ),
    (
        "rivals-translator",
        "a cluster of several harts, and a memory behind an address translator that drops the highest bits of the second level's sets",
    ),
    (
        "isolation",
        "a cluster of several harts, whose second level has several ways, and a first memory with more banks than harts, each of which is one range (bank-map=\"block\", one channel, no xor)",
    ),
    ("tiles", SEVERAL),
    (
        "memories",
        "several memories, and a first tile with several harts and a second level",
    ),
    ("beside-all", SEVERAL),
    (
        "slowdown",
        "several tiles (kind bare), and a prefetcher that is off",
    ),
    (
        "slowdown-in-order",
        "several tiles (kind bare), and a prefetcher that is off",
    ),
    ("dma", "a DMA engine beside the tiles, and several memories"),
    ("coupled", "a tile with tightly coupled memories"),
    ("hops", MESH),
    ("remote", MESH),
    (
        "ports",
        "a mesh of at least 4 by 4 tiles with local memories, in the order of their routers",
    ),
];

/// The error of a figure that a platform does not have.
pub(super) fn missing(platform: &str, figure: &str, known: &[String]) -> Error {
    let known = format!("it has {}", known.join(", "));
    match NEEDS.iter().find(|one| one.0 == figure) {
        Some((_, needs)) => Error::input(
            format!("{platform} has no figure `{figure}`, which needs {needs}"),
            known,
        ),
        None => Error::input(
            format!("there is no figure `{figure}`"),
            format!("{platform}: {known}"),
        ),
    }
}
