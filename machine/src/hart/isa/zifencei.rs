//! Instruction-fetch fence (Zifencei): decoded blocks are dropped.

use super::field::*;
use super::{Kind, Op, SINK};

/// Decodes FENCE.I; its reserved fields are ignored, as the specification asks.
pub fn decode(word: u32) -> Option<Op> {
    (funct3(word) == 1).then(|| Op::new(Kind::FenceI, SINK as u32, 0, 0, 0))
}
