//! What adversaries do: plans, a library of them, and a seeded search for worse ones.
//!
//! Why it exists: an attacker can do anything that its rights allow. The system's own programs come first, unchanged; then single attacks
//! and the adversaries of the catalog (`catalogue`); then combinations of phases. What it deliberately does not know: how a plan is carried
//! out (`workloads/adversary/src/attacker.rs`), and what it does to others.

use crate::tiled::catalogue::Catalogued;
use serde::Serialize;

/// Phases of a plan.
pub const PHASES: usize = 4;
/// A moment that never comes: an application that is to begin then stays asleep.
pub const NEVER: u32 = u32::MAX;

/// Names of the kinds of attack, in the order of their numbers.
pub const KINDS: [&str; 24] = [
    "sleep",
    "compute",
    "memory reads",
    "memory writes",
    "memory copies",
    "transfers from memory",
    "transfers to memory",
    "messages",
    "system calls",
    "calls to TileMux",
    "random commands to the unit",
    "timers and wake-ups",
    "answers to every message",
    "copies from one half of the memory to the other",
    "children that come and go",
    "shares of the processor and priorities that nobody gave",
    "answers to endpoints that others use",
    "names of files that look like others",
    "revocations of many endpoints",
    "services offered until there is no room",
    "creations that fail half-way",
    "crowds at semaphores",
    "pagers and pages that may only be read",
    "frames over the cable",
];
/// The kind of attack that only the holder of a network card can mount: the last one.
const FRAMES: u8 = KINDS.len() as u8 - 1;

/// One phase of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Phase {
    /// Index into [`KINDS`].
    pub kind: u8,
    /// Stride, size or sort, depending on the kind.
    pub strength: u8,
    /// Length in microseconds.
    pub microseconds: u16,
}

/// The plan of one application: four phases, repeated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Plan {
    /// Seed of its random numbers.
    pub seed: u32,
    /// The phases.
    pub phases: [Phase; PHASES],
}

impl Plan {
    /// The same action all the time.
    pub fn only(kind: u8, strength: u8) -> Self {
        let phase = Phase {
            kind,
            strength,
            microseconds: 1000,
        };
        Self {
            seed: 1,
            phases: [phase; PHASES],
        }
    }

    /// The same with or without a network card: without one, it sleeps where it would send frames.
    fn within(&self, card: bool) -> Self {
        let mut plan = self.clone();
        for phase in plan.phases.iter_mut().filter(|p| p.kind == FRAMES && !card) {
            (phase.kind, phase.strength) = (0, 0);
        }
        plan
    }

    /// The argument for the adversary, which starts at `microseconds`.
    pub fn text(&self, microseconds: u32) -> String {
        let mut text = letters(microseconds.into(), 8) + &letters(self.seed.into(), 8);
        for phase in &self.phases {
            text += &letters(phase.kind.into(), 2);
            text += &letters(phase.strength.into(), 2);
            text += &letters(phase.microseconds.into(), 4);
        }
        text
    }

    /// For readers.
    pub fn describe(&self) -> String {
        let name = |phase: &Phase| KINDS.get(usize::from(phase.kind)).copied().unwrap_or("?");
        if self.phases.iter().all(|p| *p == self.phases[0]) {
            return format!("{} ({})", name(&self.phases[0]), self.phases[0].strength);
        }
        let parts: Vec<String> = self
            .phases
            .iter()
            .map(|p| format!("{} ({}) for {} us", name(p), p.strength, p.microseconds))
            .collect();
        parts.join(", ")
    }
}

/// A number as letters `a` to `p`, four bits each, so that every plan takes the same path through every parser.
fn letters(value: u64, count: usize) -> String {
    (0..count)
        .rev()
        .map(|digit| char::from(b'a' + (value >> (4 * digit) & 15) as u8))
        .collect()
}

/// The action of one application during an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// The adversary carries out a plan.
    Plan(Plan),
    /// Its own program runs, unchanged.
    Own,
    /// A program of the catalog runs.
    Program(&'static Catalogued),
}

impl Act {
    /// Nothing.
    pub fn sleep() -> Self {
        Self::Plan(Plan::only(0, 0))
    }

    /// A description for readers. `own` is the application's own program.
    pub fn describe(&self, own: &str) -> String {
        match self {
            Self::Plan(plan) => plan.describe(),
            Self::Own => format!("its own program {own}"),
            Self::Program(program) => format!("the program {}", program.program),
        }
    }

    /// The argument that reproduces it, if the adversary takes one.
    pub fn text(&self, microseconds: u32) -> String {
        match self {
            Self::Plan(plan) => plan.text(microseconds),
            Self::Own | Self::Program(_) => String::new(),
        }
    }

    /// Like [`Plan::within`]; one application's own program tells nothing about another's.
    fn within(&self, card: bool) -> Self {
        match self {
            Self::Plan(plan) => Self::Plan(plan.within(card)),
            other => other.clone(),
        }
    }
}

/// An attack: its name, and what each application of the other domains does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attack {
    /// Name.
    pub name: String,
    /// In the order of the attackers.
    pub acts: Vec<Act>,
}

impl Attack {
    /// Whether a plan makes an attacker send frames over a cable.
    pub fn sends_frames(&self) -> bool {
        let plans = self.acts.iter().filter_map(|act| match act {
            Act::Plan(plan) => Some(plan),
            _ => None,
        });
        let mut phases = plans.flat_map(|plan| &plan.phases);
        phases.any(|phase| phase.kind == FRAMES)
    }

    /// Whether all attackers are the adversary, which waits for the moment of the attack by itself. Other programs are held back until then
    /// ([`crate::tiled::held`]), so the system starts the same way with them.
    pub fn waits(&self) -> bool {
        self.acts.iter().all(|act| matches!(act, Act::Plan(_)))
    }
}

/// Attacks that are always tried: all attackers do the same. `cards` says for each attacker whether it has a network card. If any has one,
/// attacks over the cable come last, and the other attackers sleep during them, so that the cause of an effect is known.
pub fn library(cards: &[bool]) -> Vec<Attack> {
    let all = [
        ("compute", 1, 0),
        ("memory reads", 2, 1),
        ("memory writes", 3, 1),
        ("memory copies", 4, 1),
        // A stride of one row: each access opens a new row.
        ("memory writes, one for each row", 3, 128),
        ("transfers from memory", 5, 6),
        ("transfers to memory", 6, 6),
        ("small messages", 7, 0),
        ("large messages", 7, 8),
        ("system calls", 8, 0),
        ("yields", 9, 0),
        ("waits", 9, 2),
        ("console output", 9, 3),
        ("random commands to the unit", 10, 0),
        ("timers and wake-ups", 11, 0),
        ("answers to every message", 12, 0),
        ("copies of half the memory", 13, 0),
        ("children that are stopped before they start", 14, 0),
        ("children that are stopped while they run", 14, 1),
        ("children that end, and fault", 14, 3),
        ("processor time in huge periods", 15, 0),
        ("calls of children of the highest priority", 15, 5),
        ("answers to endpoints given up", 16, 0),
        ("answers to endpoints taken over", 16, 4),
        ("names of files", 17, 1),
        ("revocations of 128 endpoints", 18, 4),
        ("revocations of a chain of endpoints", 18, 11),
        ("services that are kept", 19, 0),
        ("services that come and go", 19, 1),
        ("creations that fail half-way", 20, 3),
        ("crowds at a semaphore", 21, 0),
        ("pagers over pages in use", 22, 2),
    ];
    all.into_iter()
        .map(|(name, kind, strength)| Attack {
            name: name.to_owned(),
            acts: vec![Act::Plan(Plan::only(kind, strength)); cards.len()],
        })
        .chain(over_cables(cards))
        .collect()
}

/// Attacks over cables. The strength is the sort of frame (`workloads/adversary/src/frames.rs`), without a pause.
fn over_cables(cards: &[bool]) -> impl Iterator<Item = Attack> {
    let all = [
        ("small frames", 0, None),
        ("large frames", 1, None),
        ("requests for addresses", 2, None),
        ("small datagrams", 3, None),
        ("large datagrams", 4, None),
        ("openings of streams", 5, None),
        ("large echo requests", 6, None),
        ("frames and memory writes", 7, Some((3, 1))),
    ];
    let some = cards.contains(&true);
    let cards = cards.to_vec();
    let attack = move |(name, strength, others): (&str, u8, Option<(u8, u8)>)| Attack {
        name: name.to_owned(),
        acts: cards
            .iter()
            .map(|card| match (card, others) {
                (true, _) => Act::Plan(Plan::only(FRAMES, strength)),
                (false, Some((kind, strength))) => Act::Plan(Plan::only(kind, strength)),
                (false, None) => Act::sleep(),
            })
            .collect(),
    };
    all.into_iter().filter(move |_| some).map(attack)
}

/// Random numbers of a named stream: equal names and seeds give equal numbers.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream `name` of `seed`.
    pub fn new(name: &str, seed: u64) -> Self {
        // FNV-1a (Fowler, Noll, Vo) spreads the name over the state.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// SplitMix64 (Steele, Lea, Flood: OOPSLA 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn phase(&mut self, card: bool) -> Phase {
        let kinds = if card { FRAMES + 1 } else { FRAMES };
        Phase {
            kind: self.below(kinds.into()) as u8,
            strength: match self.below(3) {
                0 => 1,
                1 => self.below(16) as u8,
                _ => self.below(256) as u8,
            },
            microseconds: 1 << self.below(11),
        }
    }

    fn plan(&mut self, card: bool) -> Plan {
        Plan {
            seed: self.next() as u32,
            phases: std::array::from_fn(|_| self.phase(card)),
        }
    }

    /// A random attack by attackers with and without network cards.
    pub fn attack(&mut self, name: String, cards: &[bool]) -> Attack {
        Attack {
            name,
            acts: cards
                .iter()
                .map(|card| Act::Plan(self.plan(*card)))
                .collect(),
        }
    }

    /// `attack` with one plan or one phase changed. Where it changes, a plan replaces a program.
    pub fn mutate(&mut self, name: String, attack: &Attack, cards: &[bool]) -> Attack {
        let mut acts = attack.acts.clone();
        if !acts.is_empty() {
            let at = self.below(acts.len() as u64) as usize;
            match self.below(3) {
                0 => acts[at] = Act::Plan(self.plan(cards[at])),
                1 => {
                    let phase = self.below(PHASES as u64) as usize;
                    match &mut acts[at] {
                        Act::Plan(plan) => plan.phases[phase] = self.phase(cards[at]),
                        other => *other = Act::Plan(self.plan(cards[at])),
                    }
                }
                // A plan that works for one attacker may work for all.
                _ => acts = cards.iter().map(|card| acts[at].within(*card)).collect(),
            }
        }
        Attack { name, acts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_one_length_and_are_letters() {
        let mut stream = Stream::new("test", 3);
        for _ in 0..200 {
            let attack = stream.attack(String::new(), &[false, true, false]);
            for act in attack.acts {
                let text = act.text(NEVER);
                assert_eq!(text.len(), 48);
                assert!(text.bytes().all(|b| (b'a'..=b'p').contains(&b)), "{text}");
            }
        }
    }

    #[test]
    fn a_plan_is_written_as_the_adversary_reads_it() {
        let mut plan = Plan::only(4, 0x1f);
        plan.seed = 2;
        plan.phases[3].microseconds = 0xffff;
        // 16 us: hexadecimal 10; kind 4, strength 1f, 1000 us: 3e8.
        assert_eq!(
            plan.text(16),
            "aaaaaabaaaaaaaacaebpadoiaebpadoiaebpadoiaebppppp"
        );
    }

    #[test]
    fn streams_are_apart_and_repeat() {
        let numbers = |name, seed| Stream::new(name, seed).attack(String::new(), &[false; 4]);
        assert_eq!(numbers("a", 1), numbers("a", 1));
        assert_ne!(numbers("a", 1), numbers("a", 2));
        assert_ne!(numbers("a", 1), numbers("b", 1));
    }

    #[test]
    fn only_who_has_a_card_sends_frames() {
        let sends = |act: &Act| {
            let alone = Attack {
                name: String::new(),
                acts: vec![act.clone()],
            };
            alone.sends_frames()
        };
        let cards = [true, false, true];
        let mut stream = Stream::new("cards", 1);
        let mut attack = stream.attack(String::new(), &cards);
        let (mut some, mut all) = (0, library(&cards));
        for _ in 0..500 {
            attack = stream.mutate(String::new(), &attack, &cards);
            some += usize::from(sends(&attack.acts[0]));
            all.push(attack.clone());
        }
        assert!(some > 20, "{some}");
        assert!(all.iter().all(|attack| !sends(&attack.acts[1])));
        // Without a card there are no frame attacks, and the random numbers drawn are the same as when no attacker has one.
        let without = library(&[false; 2]);
        assert_eq!(without.len() + 8, all.len() - 500);
        assert!(without.iter().all(|attack| !attack.acts.iter().any(sends)));
        let drawn = Stream::new("control", 1).attack(String::new(), &[false]);
        assert_eq!(
            drawn.acts[0].text(0),
            "aaaaaaaacjanpjabaoabaaacakdpaaacaiofaaaeaaaoaaca"
        );
    }
}
