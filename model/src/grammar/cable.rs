//! Cables between network cards, and between chips.
//!
//! Why it exists: see the parent module.

use super::Kind::{Integer, Name, Time};
use super::{ElementRule, default, maybe, optional, required};

/// A path or a file.
const TEXT: super::Kind = super::Kind::Text { max: 1000 };
const TILE: super::Kind = Integer { min: 0, max: 4095 };
/// A number out of a million.
const MILLIONTHS: super::Kind = Integer {
    min: 0,
    max: 1_000_000,
};
/// An element of `<system>`.
pub const CABLE: ElementRule = ElementRule {
    name: "cable",
    about: "Joins two network cards: both of this chip, or one of this chip and one of the peer's.",
    attributes: &[
        required("from", TILE, "A tile with a network card."),
        optional("to", TILE, "Another tile of this chip with a network card."),
        optional(
            "peer",
            TILE,
            "Instead of `to`: a tile of the peer's chip with a network card.",
        ),
        default(
            "delay",
            Time,
            "1us",
            "Time from a frame's departure to its arrival: 100ns to 1s.",
        ),
        default(
            "loss",
            MILLIONTHS,
            "0",
            "How many of a million frames are lost.",
        ),
        default(
            "duplicate",
            MILLIONTHS,
            "0",
            "How many of a million frames arrive twice.",
        ),
        default(
            "reorder",
            MILLIONTHS,
            "0",
            "How many of a million frames arrive late, so that others overtake them.",
        ),
        default("late", Time, "50us", "How late they are."),
        default(
            "seed",
            Integer {
                min: 0,
                max: u32::MAX as u64,
            },
            "1",
            "Random seed: the n-th frame of a direction always has the same fate.",
        ),
    ],
    children: &[],
};
/// An element of `<system>`.
pub const PEER: ElementRule = ElementRule {
    name: "peer",
    about: "Another chip with its own software that runs at the same time. Its results and its console follow those of this chip.",
    attributes: &[
        required("name", Name, "Its name."),
        optional(
            "system",
            TEXT,
            "A system of the catalog, or a file (`./other.xml`), without its variants; or put a <system> inside.",
        ),
    ],
    children: &[maybe("system")],
};
