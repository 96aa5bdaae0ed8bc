//! Address translators in front of memories: windows, names and rules.
//!
//! Why it exists: a memory behind a translator has a name for each of its bytes under each colour. What it deliberately does not know: which
//! bits a cache uses; what the rules are for, the machine says.

use super::{Memory, PAGE, Platform, PlatformKind};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::units::Size;
use bulkhead_abi::translator::{drop_bits, insert_bits};

/// Maximum bits that a translator drops.
const MOST: u32 = 8;

/// The bits that a `<memory>` names; [`check`] reports words that are not bits.
pub(super) fn bits(node: &Node) -> u64 {
    let text = node.maybe_text("dropped-bits").unwrap_or_default();
    let bits = text.split_whitespace().filter_map(bit);
    bits.fold(0, |all, bit| all | 1 << bit)
}

fn bit(text: &str) -> Option<u32> {
    text.parse().ok().filter(|bit| *bit < 32)
}

impl Memory {
    /// Bytes of the window in which it is found.
    pub fn window(&self) -> u64 {
        self.size.0 << self.dropped.count_ones()
    }

    /// Colours that its bytes may have: values of the dropped bits.
    pub fn colours(&self) -> u64 {
        1 << self.dropped.count_ones()
    }

    /// Bytes that are contiguous under every name; all of the memory without a translator.
    pub fn contiguous(&self) -> u64 {
        match self.dropped {
            0 => self.size.0,
            dropped => dropped & dropped.wrapping_neg(),
        }
    }

    /// The offset in the window of a byte under a colour.
    pub fn name(&self, byte: u64, colour: u64) -> u64 {
        insert_bits(byte, self.dropped, colour)
    }

    /// The byte at an offset in the window, and its colour there.
    pub fn byte(&self, offset: u64) -> (u64, u64) {
        let byte = drop_bits(offset, self.dropped);
        let mut colours = 0..self.colours();
        let colour = colours.find(|colour| self.name(byte, *colour) == offset);
        // Each name has one.
        (byte, colour.unwrap_or(0))
    }
}

/// Reports every rule broken by `platform`, read from `root`.
pub fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    for node in root.all("memory").filter(|node| node.gives("dropped-bits")) {
        let id = node.integer("id");
        let found = platform.memories.iter().find(|one| u64::from(one.id) == id);
        let broken = found.and_then(|memory| broken(platform, memory, node));
        errors.extend(broken.map(|(cause, help)| {
            let problem = Problem::Inconsistent(format!("memory {id}: {cause}"));
            Diagnostic::new(problem, node.place("dropped-bits"), help)
        }));
    }
}

/// The mistake in the translator of a memory, and its remedy.
fn broken(platform: &Platform, memory: &Memory, node: &Node) -> Option<(String, String)> {
    let text = node.text("dropped-bits");
    let mut words = text.split_whitespace();
    if let Some(word) = words.find(|word| bit(word).is_none()) {
        let cause = format!("`{word}` is not the number of an address bit");
        return Some((cause, "write numbers below 32, such as 14 15".into()));
    }
    if platform.kind != PlatformKind::Bare {
        let cause = "it has an address translator, but the platform is not bare";
        let help = "remove it, or write kind=\"bare\" at the platform";
        return Some((cause.into(), help.into()));
    }
    if !memory.second_port_of.is_empty() {
        let cause = "a second port cannot have an address translator";
        let help = "write dropped-bits=\"...\" at the memory that has the bytes";
        return Some((cause.into(), help.into()));
    }
    let (chunk, count) = (memory.contiguous(), memory.dropped.count_ones());
    if memory.dropped == 0 || count > MOST {
        let cause = format!("an address translator cannot drop {count} bits");
        return Some((cause, format!("write 1 to {MOST} bits")));
    }
    let bursts = platform.engines.iter().map(|one| u64::from(one.dma.burst));
    let least = bursts.fold(PAGE, u64::max);
    if chunk < least {
        let cause = format!("an address translator cannot drop bit {}", chunk.ilog2());
        return Some((
            cause,
            format!(
                "drop bits from {} on: a page and a burst stay whole",
                least.ilog2()
            ),
        ));
    }
    if !memory.size.0.is_multiple_of(chunk) || memory.window() <= memory.dropped {
        let cause = format!(
            "an address translator for {} cannot drop bits up to {}",
            memory.size,
            memory.dropped.ilog2()
        );
        let help = format!(
            "the memory must be a multiple of {}, and all dropped bits must be within its window of {}",
            Size(chunk),
            Size(memory.window())
        );
        return Some((cause, help));
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::{LoadOptions, load_platform};
    use std::path::Path;

    #[test]
    fn names_are_those_of_the_paper() {
        // mpsoc-ecrts19, Section 6.4: 8 MiB at 0xA0000000, bits 14 and 15.
        let options = LoadOptions {
            overrides: vec!["memory[9]@dropped-bits=14 15".to_owned()],
            ..LoadOptions::default()
        };
        let platform = load_platform(Path::new("zcu102"), &options).expect("valid");
        let memory = platform.memory(9).expect("it is there");
        assert_eq!(platform.memory_base(9), Some(0xA000_0000));
        assert_eq!((memory.window(), memory.colours()), (8 << 20, 4));
        assert_eq!(memory.byte(0x02_3456), (0x0_B456, 0));
        assert_eq!(memory.byte(0x02_F456), (0x0_B456, 3));
        assert_eq!(memory.name(0x0_B456, 3), 0x02_F456);
        // The memory behind it keeps its address.
        assert_eq!(platform.memory_base(10), Some(0xC000_0000));
    }
}
