//! The order in which DMA engines' writes appear; and no result depends on windows, visits, numbers, or tiles that share nothing.

use crate::common::dma::*;
use crate::common::*;
use bulkhead_abi::dma::*;
use bulkhead_abi::memory_map::{EXTERNAL_MEMORY, MEMORY_BASE};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::types::{Tick, TileId};

/// The sign that tells a reader that the data has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// The descriptor's flag, in the reader's memory.
    Flag,
    /// The channel's status, which the hart beside the engine reads.
    Status,
    /// The channel's interrupt, which the hart beside the engine waits for.
    Interrupt,
}

const ELEMENTS: u32 = 24;

/// Tile 0's engine copies nonzero words to a place; the reader that sees the sign reads the last and the first of them there. Returns the
/// tick at which it saw the sign. Asserts that the data had arrived.
struct Copy {
    config: PlatformConfig,
    /// Rounds before the start.
    rounds: i32,
    sign: Sign,
    /// Where the data go.
    to: u64,
    reading: TileId,
    third: TileId,
    names: fn(TileId) -> TileId,
}

impl Copy {
    fn new(rounds: i32, sign: Sign, to: u64) -> Self {
        Self {
            config: {
                let mut config = with_dma(2, 2);
                // Every second run waits for credits.
                config.network.credits = (rounds % 2 == 0).then_some(1);
                config
            },
            rounds,
            sign,
            to,
            reading: 1,
            third: 2,
            names: |tile| tile,
        }
    }

    fn seen(&self, run: impl FnOnce(&mut Machine)) -> Vec<Tick> {
        let mut machine = Machine::new(&self.config).expect("valid");
        let mover = (self.names)(0);
        let reader = match self.sign {
            Sign::Flag => (self.names)(self.reading),
            Sign::Status | Sign::Interrupt => mover,
        };
        let flag = window(1, 0) + DATA + 0x800;
        let data: Vec<u64> = (1..=u64::from(ELEMENTS)).collect();
        load_words(&mut machine, mover, MEMORY_BASE + DATA, &data);
        let mut words = contiguous(3, MEMORY_BASE + DATA, self.to, ELEMENTS);
        words[0] |= 1 << 32 | INTERRUPT_AT_END;
        if self.sign == Sign::Flag {
            words[FLAG as usize / 8] = flag;
        }
        let check = |p: &mut Program| {
            p.marker(ZERO, BEFORE);
            // fence r,r, then the last and the first word.
            p.word(0x0220_000f).li(S1, self.to);
            p.ld(24, S1, 8 * (u64::from(ELEMENTS) - 1)).ld(25, S1, 0);
            p.addi(24, 24, -(ELEMENTS as i32))
                .addi(25, 25, -1)
                .or(24, 24, 25);
            p.marker(24, SEEN).word(WFI).spin();
        };
        let mut p = Program::default();
        p.describe(0, &words).addi(S2, ZERO, START as i32);
        p.li(T0, 1 << 11).csr(1, 0x304, T0);
        p.addi(T2, ZERO, self.rounds);
        let wait = p.here();
        p.addi(T2, T2, -1).branch(1, T2, ZERO, wait);
        p.sd(S2, S0, CONTROL);
        match self.sign {
            Sign::Flag => {
                p.word(WFI).spin();
            }
            Sign::Status => {
                let look = p.here();
                p.ld(T0, S0, STATUS).addi(T1, ZERO, State::Done as i32);
                p.branch(1, T0, T1, look);
                check(&mut p);
            }
            Sign::Interrupt => {
                p.word(WFI);
                check(&mut p);
            }
        }
        p.start(&mut machine, mover);
        if self.sign == Sign::Flag {
            let mut p = Program::default();
            p.li(S0, flag);
            let look = p.here();
            p.ld(T0, S0, 0).branch(0, T0, ZERO, look);
            check(&mut p);
            p.start(&mut machine, reader);
        }
        // A third tile uses the same links and memories.
        let mut p = Program::default();
        p.li(S0, window(1, 0) + DATA + 0x1000).addi(T2, ZERO, 500);
        let again = p.here();
        p.sd(T2, S0, 0).ld(T0, S0, 0);
        p.addi(T2, T2, -1)
            .branch(1, T2, ZERO, again)
            .word(WFI)
            .spin();
        p.start(&mut machine, (self.names)(self.third));
        run(&mut machine);
        let markers = machine.markers();
        let at_end = markers.iter().find(|m| u32::from(m.kind) == SEEN);
        let at_end =
            at_end.unwrap_or_else(|| panic!("nothing was seen: {:?} {}", self.sign, self.rounds));
        assert_eq!(
            at_end.value, 0,
            "data come before the sign: {:?} {:#x} {}",
            self.sign, self.to, self.rounds
        );
        let mut ticks: Vec<Tick> = markers.iter().map(|m| m.tick).collect();
        ticks.push(machine.dma((self.names)(0)).unwrap().waited);
        ticks
    }
}

const END: Tick = 20_000;

fn at_once(machine: &mut Machine) {
    machine.run(RunLimit { ticks: END }, None);
}

const SIGNS: [Sign; 3] = [Sign::Flag, Sign::Status, Sign::Interrupt];

/// The engine's own memory, the reader's, another one, and external memory.
fn places() -> [u64; 4] {
    [
        window(0, 0) + DATA + 0x1800,
        window(1, 0) + DATA,
        window(1, 1) + DATA,
        EXTERNAL_MEMORY + 0x400,
    ]
}

#[test]
fn whoever_sees_the_end_sees_the_data() {
    for rounds in 1..40 {
        for sign in SIGNS {
            for to in places() {
                Copy::new(rounds, sign, to).seen(at_once);
            }
        }
    }
}

#[test]
fn the_length_of_a_window_changes_nothing() {
    for (rounds, sign) in (1..9).zip(SIGNS.into_iter().cycle()) {
        for to in places() {
            let copy = Copy::new(rounds, sign, to);
            let whole = copy.seen(at_once);
            let pieces = copy.seen(|machine| {
                let mut length = 1;
                while machine.now() < END {
                    length = length * 5 % 97;
                    let ticks = (machine.now() + length).min(END);
                    if machine.run(RunLimit { ticks }, None) != Outcome::Limit {
                        break;
                    }
                }
            });
            assert_eq!(whole, pieces, "{rounds} {sign:?} {to:#x}");
        }
    }
}

#[test]
fn the_order_of_visits_and_the_numbers_of_tiles_change_nothing() {
    for (rounds, sign) in (1..9).zip(SIGNS.into_iter().cycle()) {
        let copy = Copy::new(rounds, sign, window(1, 1) + DATA);
        let expected = copy.seen(at_once);
        for order in [[1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]] {
            let mut copy = Copy::new(rounds, sign, window(1, 1) + DATA);
            let tiles = &copy.config.tiles;
            copy.config.tiles = order.map(|i| tiles[i].clone()).to_vec();
            assert_eq!(copy.seen(at_once), expected, "{order:?}");
        }
        let mut renamed = Copy::new(rounds, sign, window(1, 1) + DATA);
        for tile in &mut renamed.config.tiles {
            tile.id = 100 - tile.id;
        }
        renamed.names = |tile| 100 - tile;
        assert_eq!(renamed.seen(at_once), expected);
    }
}

#[test]
fn idle_tiles_change_nothing() {
    // The same three tiles among 4 and among 256.
    let few = Copy::new(5, Sign::Flag, window(1, 1) + DATA);
    let expected = few.seen(at_once);
    let mut many = Copy::new(5, Sign::Flag, window(1, 1) + DATA);
    many.config = with_dma(16, 16);
    many.names = |tile| if tile < 2 { tile } else { 16 };
    assert_eq!(many.seen(at_once), expected);
}
