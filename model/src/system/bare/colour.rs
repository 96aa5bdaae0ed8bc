//! Programs in a memory behind an address translator.
//!
//! Why it exists: such a program has one colour: one value of the bits that the translator drops. Without page tables it is contiguous up to the
//! lowest of these bits; a larger memory has several ranges. What it deliberately does not know: which bits a cache uses.

use super::Placed;
use super::check::wrong;
use crate::error::Diagnostic;
use crate::node::Node;
use crate::platform::{Memory, Platform};

/// The colour of a program in a memory; 0 without a translator. `None`: something is wrong, and `errors` says what.
pub(super) fn of(
    platform: &Platform,
    (node, memory): (&Node, &Memory),
    errors: &mut Vec<Diagnostic>,
) -> Option<u64> {
    let last = memory.colours() - 1;
    let given = node.maybe_integer("colour");
    let (attribute, cause, help) = match (memory.dropped, given) {
        (0, None) => return Some(0),
        (0, Some(_)) => {
            let with = platform.memories.iter().filter(|one| one.dropped != 0);
            let with: Vec<String> = with.map(|one| one.id.to_string()).collect();
            (
                "colour",
                format!("memory {} has no address translator", memory.id),
                match with.is_empty() {
                    true => "remove it: no memory of the platform has one".to_owned(),
                    false => format!(
                        "remove it, or name a memory that has one: {}",
                        with.join(", ")
                    ),
                },
            )
        }
        (_, Some(_)) if node.gives("at") => (
            "colour",
            "the program has both an address and a colour".to_owned(),
            "keep one of them: the address determines the colour".to_owned(),
        ),
        (_, Some(colour)) if colour <= last => return Some(colour),
        (_, Some(colour)) => (
            "colour",
            format!("memory {} has no colour {colour}", memory.id),
            format!("colours are numbered from 0 to {last}"),
        ),
        // The address says it (`place::within`).
        (_, None) if node.gives("at") => return Some(0),
        (_, None) => (
            "memory-tile",
            format!(
                "memory {} is behind an address translator, and the program has no colour",
                memory.id
            ),
            format!("write colour=\"0\", or another one up to {last}"),
        ),
    };
    errors.push(wrong(cause, node.place(attribute), help));
    None
}

/// Where a range that must not begin at `start` may begin next. A range that fits within contiguous bytes lies within them; a longer one
/// begins with them.
pub(super) fn moved(memory: &Memory, start: u64, size: u64) -> Option<u64> {
    let chunk = memory.contiguous();
    let within = start % chunk;
    let fits = match size <= chunk {
        true => within + size <= chunk,
        false => within == 0,
    };
    (!fits && memory.dropped != 0).then(|| (start + 1).next_multiple_of(chunk))
}

/// Puts a program at the bytes from `start` on, under a colour. Its memory has `size` bytes.
pub(super) fn put(placed: &mut Placed, memory: &Memory, base: u64, start: u64, colour: u64) {
    let (size, chunk) = (placed.size, memory.contiguous());
    placed.offset = memory.name(start, colour);
    placed.base = base + placed.offset;
    if memory.dropped == 0 {
        return;
    }
    placed.size = size.min(chunk);
    let mut from = placed.size;
    while from < size {
        let bytes = (size - from).min(chunk);
        placed
            .more
            .push((base + memory.name(start + from, colour), bytes));
        from += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadOptions, load_system_text};

    /// Bits 15 and 16 are dropped: twice what the paper has, because a program has at least 16 KiB.
    const CHUNK: u64 = 32 << 10;

    fn placed(apps: &str) -> Result<Vec<Placed>, String> {
        let text = format!(
            "<system name=\"s\" paradigm=\"bare\" platform=\"zcu102\"><domain name=\"d\">{apps}</domain></system>"
        );
        let options = LoadOptions {
            overrides: vec!["platform/memory[9]@dropped-bits=15 16".to_owned()],
            ..LoadOptions::default()
        };
        let system = load_system_text("s.xml", &text, &options);
        let system = system.map_err(|error| format!("{error:?}"))?;
        Ok(system.bare.expect("bare").programs)
    }

    fn app(name: &str, hart: u32, rest: &str) -> String {
        format!("<app name=\"{name}\" harts=\"{hart}\" program=\"p.elf\" {rest}/>")
    }

    #[test]
    fn programs_have_one_colour_and_bytes_of_their_own() {
        let inside = |colour: u32, kib: u32| {
            format!("memory-tile=\"9\" colour=\"{colour}\" memory=\"{kib}KiB\"")
        };
        let all = [
            app("a", 0, &inside(1, 16)),
            app("b", 1, &inside(1, 24)),
            app("c", 2, &inside(3, 80)),
            app("d", 3, &inside(0, 16)),
        ];
        let all = placed(&all.concat()).expect("valid");
        let base = 0xA000_0000;
        // The second one does not fit behind the first one, and the third one begins with a chunk; the last one fills a hole.
        let places: Vec<_> = all.iter().map(|one| (one.base, one.size)).collect();
        let named = |chunk: u64, colour: u64| base + 4 * CHUNK * chunk + CHUNK * colour;
        assert_eq!(
            places,
            [
                (named(0, 1), 0x4000),
                (named(1, 1), 0x6000),
                (named(2, 3), CHUNK),
                (named(0, 0) + 0x4000, 0x4000),
            ]
        );
        assert_eq!(all[2].more, [(named(3, 3), CHUNK), (named(4, 3), 0x4000)]);
        for one in &all {
            assert_eq!(one.base, base + one.offset);
        }
    }

    #[test]
    fn the_same_bytes_under_another_name_are_refused() {
        let at = |address: u64| format!("memory-tile=\"9\" at=\"{address:#x}\" memory=\"16KiB\"");
        let second =
            |address: u64| format!("memory-tile=\"11\" at=\"{address:#x}\" memory=\"16KiB\"");
        let base = 0xA000_0000;
        for (other, valid) in [
            (at(base), false),
            (at(base + 0x1_0000), false),
            (at(base + 0x1_C000), true),
            // Through the second port, bytes have the addresses that they have behind the translator.
            (second(0xE000_0000), false),
            (second(0xE000_4000), true),
        ] {
            let first = app("a", 0, &at(base + 0x8000));
            let found = placed(&(first + &app("b", 1, &other)));
            assert_eq!(found.is_ok(), valid, "{other}: {found:?}");
        }
    }
}
