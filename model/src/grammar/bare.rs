//! What systems without a kernel add to shared elements.
//!
//! Why it exists: see the parent module.

use super::Kind::{Choice, Integer, Text};
use super::{AttributeRule, optional};

/// An attribute of `<app>`.
pub const HARTS: AttributeRule = optional(
    "harts",
    Text { max: 63 },
    "Only in a system without a kernel: the harts of its tile that run it, such as `0`, `0-3` or `0,2`; without it, all of them.",
);
/// An attribute of `<app>`.
pub const AT: AttributeRule = optional(
    "at",
    Text { max: 18 },
    "Only there: the address where its memory begins, such as `0x80200000`; without it, the first free one.",
);
/// An attribute of `<app>`.
pub const BANK: AttributeRule = optional(
    "bank",
    Integer { min: 0, max: 63 },
    "Only there, instead of `at`: the memory bank in which its memory is, if the memory does not interleave banks.",
);
/// An attribute of `<app>`.
pub const COLOUR: AttributeRule = optional(
    "colour",
    Integer { min: 0, max: 255 },
    "Only there: in a memory behind an address translator, the value of the dropped bits in the addresses of its memory.",
);
/// An attribute of `<app>`.
pub const TCM: AttributeRule = optional(
    "tcm",
    Choice(&["program", "stack"]),
    "Only there: the part of the program in the tightly coupled memories of its tile: the whole program with its stacks, or only its stacks.",
);
/// An attribute of `<app>`.
pub const RINGS: AttributeRule = optional(
    "rings",
    Text { max: 255 },
    "Only there: names of programs, separated by spaces, whose harts its harts may interrupt through the <doorbells> of the platform.",
);
/// An attribute of `<app>`.
pub const RESERVED: AttributeRule = optional(
    "reserved",
    Integer { min: 1, max: 65535 },
    "Only there, with `ways`: the slots of each window that each of its harts has before others when the machine starts, in each memory with `bandwidth-blocks`.",
);
/// An attribute of `<app>`.
pub const WEIGHT: AttributeRule = optional(
    "weight",
    Integer { min: 0, max: 255 },
    "Only there, with `ways`: the weight of each of its harts for the other slots there when the machine starts; 0: no other slots.",
);
/// An attribute of `<app>`.
pub const FILLS: AttributeRule = optional(
    "ways",
    Text { max: 7 },
    "Only there: the ways of the second level that fills for its harts may take, such as `0-3`; without it, the platform's <partition> applies.",
);
