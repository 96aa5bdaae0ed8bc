//! Figure of programs beside all other harts of their cluster, with nothing of their own, with ways, with banks, and with both.
//!
//! Why it exists: mc2-rts20 gives each core ways of the second level and a bank of memory, and shows what the bank is worth to a program that copies a
//! camera's frames (Section 5.2). What it deliberately does not know: see the parent module.
//!
//! Fixed before the first run, with the reasons on the book's page: the chain is over an eighth of the second level, as elsewhere, for 16 times as many loads,
//! as by colour; a frame has 640 by 480 pixels of two bytes; rivals copy twice the second level; a program's own ways are a quarter of all.

use super::{Chip, Draft, Part, Run, Unit, chase};
use bulkhead_report::measure::Figure;

/// The program that copies frames.
const FRAMES: &str = "memory/frames";
/// Bytes of a frame of mc2-rts20.
const FRAME: u64 = 640 * 480 * 2;
/// Copies of a frame.
const COPIES: u64 = 8;
/// Loads of the chain, relative to other figures.
const LONGER: u64 = 16;

/// What the program and its rivals have of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    name: &'static str,
    rivals: bool,
    /// The program has a quarter of the ways, the rivals the others.
    ways: bool,
    banks: Banks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Banks {
    /// All is in one.
    One,
    /// Each hart has one, but the first rival is where the program's data is.
    Beside,
    /// Each hart has one, with all its data.
    Each,
}

const CASES: [Case; 6] = [
    case("alone", false, true, Banks::Each),
    case("nothing", true, false, Banks::One),
    case("banks", true, false, Banks::Each),
    case("ways", true, true, Banks::One),
    case("one in bank", true, true, Banks::Beside),
    case("ways, banks", true, true, Banks::Each),
];

const fn case(name: &'static str, rivals: bool, ways: bool, banks: Banks) -> Case {
    Case {
        name,
        rivals,
        ways,
        banks,
    }
}

impl Chip<'_> {
    /// All cases of a chain and of frames, relative to the last case.
    pub(super) fn isolation(&self) -> Option<Draft> {
        let harts = self.tile.cluster.as_ref()?.harts;
        let ways = self.tile.l2.as_ref()?.ways;
        let memory = self.platform.memories.first()?;
        let bank = memory.dram.bank_bytes(memory.size.0)?;
        let base = self.platform.memory_base(memory.id)?;
        // A bank for each hart, and one more; ways for the program and for its rivals.
        if harts < 2 || memory.dram.banks <= harts || ways < 2 {
            return None;
        }
        let own = (ways / 4).max(1);
        let free = u64::from(harts);
        let beside = |mut victim: Part, shared: u64, case: Case| {
            victim.bank = Some(0);
            victim.ways = case.ways.then_some((0, own));
            let rivals = (1..harts).filter(|_| case.rivals).map(|hart| Part {
                bank: Some(match case.banks {
                    Banks::One => 0,
                    Banks::Beside if hart == 1 => shared,
                    _ => u64::from(hart),
                }),
                ways: case.ways.then_some((own, ways - own)),
                ..self.rival(hart)
            });
            std::iter::once(victim).chain(rivals).collect::<Vec<Part>>()
        };
        let chain = |case: Case| {
            let loads = LONGER * self.loads;
            beside(chase(self.last / 8, self.stride, loads), 0, case)
        };
        let frame = FRAME.min(self.largest);
        let frames = |case: Case| {
            let buffer = match case.banks {
                Banks::Beside => free,
                Banks::One | Banks::Each => 0,
            };
            let victim = Part {
                program: Some(FRAMES),
                arguments: vec![
                    ("bytes", frame.to_string()),
                    ("buffer", format!("{:x}", base + buffer * bank + bank / 2)),
                    ("frames", COPIES.to_string()),
                ],
                bytes: frame,
                ..Part::default()
            };
            beside(victim, free, case)
        };
        let [.., last] = CASES;
        let curve = |name: String, parts: &dyn Fn(Case) -> Vec<Part>| {
            let runs = (1u32..).zip(CASES).map(|(x, case)| Run {
                parts: parts(case),
                against: parts(last),
                unit: Unit::Relative,
                x: x.into(),
                ..Run::default()
            });
            (name, runs.collect())
        };
        Some(Draft {
            figure: Figure {
                id: "isolation".to_owned(),
                title: "With and without ways and banks of its own".to_owned(),
                about: format!(
                    "A chain over {} KiB, and copies of a frame of {} bytes from a device's buffer, alone and beside {} harts that copy {} KiB each, relative to the last case. Own ways are {own} of {ways}. Nothing: all share all ways and one bank. One in bank: ways of its own, and only one rival is in the bank of the chain, or of the buffer.",
                    (self.last / 8) >> 10,
                    frame,
                    harts - 1,
                    (2 * self.last).min(self.largest) >> 10
                ),
                x: "what the program has of its own".to_owned(),
                y: "times as long as with ways and banks".to_owned(),
                cases: CASES.map(|case| case.name.to_owned()).into(),
                ..Figure::default()
            },
            curves: vec![
                curve("chain in the second level".to_owned(), &chain),
                curve("copies of a frame".to_owned(), &frames),
            ],
        })
    }
}
