//! Cables: the fate of a frame between two network cards.
//!
//! Why it exists: a frame that has left a card arrives at the other end after the cable's delay. If the description says so, it may be
//! lost, arrive twice, or arrive later than the next one. Random decisions come from one seeded stream for each direction, so the n-th
//! frame of a direction always has the same fate. What it deliberately does not know: cards.

use crate::device::network::Frame;
use crate::types::{Tick, TileId};

/// Rates of faults are per million frames.
pub const MILLION: u32 = 1_000_000;

/// Faults of a cable, per million frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Frames that are lost.
    pub loss: u32,
    /// Frames that arrive twice.
    pub duplicate: u32,
    /// Frames that arrive later, by [`Faults::late`].
    pub reorder: u32,
    /// Delay of such a frame, in ticks.
    pub late: Tick,
}

impl Faults {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The invalid number.
    pub fn validate(&self) -> Result<(), String> {
        match [self.loss, self.duplicate, self.reorder]
            .iter()
            .all(|n| *n <= MILLION)
        {
            true => Ok(()),
            false => Err("no more than all frames can be lost, doubled or late".into()),
        }
    }
}

/// A cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CableConfig {
    /// The tile whose card is at one end.
    pub from: TileId,
    /// The tile at the other end; `None`: it is on another chip.
    pub to: Option<TileId>,
    /// Ticks from a frame's departure until its arrival.
    pub delay: Tick,
    /// Its faults.
    pub faults: Faults,
    /// Seed of the random decisions.
    pub seed: u64,
    /// Number of the direction that leaves `from`: 0, or 1 on the chip at a cable's other end.
    pub number: u64,
}

/// One direction of a cable.
#[derive(Clone, Debug)]
pub struct Direction {
    delay: Tick,
    faults: Faults,
    random: u64,
}

/// A frame in transit, and when it arrives.
pub type Arrival = (Tick, Frame);

impl Direction {
    /// The direction of a cable with this number, 0 or 1.
    pub fn new(config: &CableConfig, number: u64) -> Self {
        Self {
            delay: config.delay,
            faults: config.faults,
            random: config.seed.wrapping_mul(2).wrapping_add(number),
        }
    }

    /// Minimum ticks from one end to the other.
    pub fn delay(&self) -> Tick {
        self.delay
    }

    /// A number below a million. SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        ((u128::from(z) * u128::from(MILLION)) >> 64) as u32
    }

    /// A frame has left the card at `end`. Every frame takes three draws, so that one kind of fault does not change which frames suffer
    /// another.
    pub fn carry(&mut self, end: Tick, frame: Frame) -> Vec<Arrival> {
        let [lost, twice, late] = [
            (self.draw(), self.faults.loss),
            (self.draw(), self.faults.duplicate),
            (self.draw(), self.faults.reorder),
        ]
        .map(|(drawn, bound)| drawn < bound);
        let at = end.saturating_add(self.delay);
        let first = if late {
            at.saturating_add(self.faults.late)
        } else {
            at
        };
        match (lost, twice) {
            (true, _) => Vec::new(),
            (false, false) => vec![(first, frame)],
            (false, true) => vec![(first, frame.clone()), (at, frame)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cable(faults: Faults) -> Direction {
        let config = CableConfig {
            from: 0,
            to: None,
            delay: 100,
            faults,
            seed: 7,
            number: 0,
        };
        Direction::new(&config, 0)
    }

    #[test]
    fn a_good_cable_only_delays() {
        let mut cable = cable(Faults::default());
        for end in 0..1000 {
            let frame = Frame::from(vec![1, 2]);
            assert_eq!(cable.carry(end, frame.clone()), vec![(end + 100, frame)]);
        }
    }

    #[test]
    fn faults_come_as_often_as_wanted() {
        let faults = Faults {
            loss: 100_000,
            duplicate: 50_000,
            reorder: 200_000,
            late: 5,
        };
        let mut cable = cable(faults);
        let (mut lost, mut twice, mut late) = (0, 0, 0);
        for _ in 0..100_000 {
            let arrivals = cable.carry(0, Frame::default());
            match arrivals.len() {
                0 => lost += 1,
                n => {
                    twice += u32::from(n == 2);
                    late += u32::from(arrivals[0].0 == 105);
                }
            }
        }
        // Binomial: 10 % of 100 000 with a deviation of 95; of the 90 000 that arrive 5 % (65) and 20 % (120).
        assert!((9_500..10_500).contains(&lost), "{lost}");
        assert!((4_150..4_850).contains(&twice), "{twice}");
        assert!((17_400..18_600).contains(&late), "{late}");
    }

    #[test]
    fn a_seed_is_a_fate() {
        let faults = Faults {
            loss: 500_000,
            ..Faults::default()
        };
        let fate = |number: u64| {
            let config = CableConfig {
                from: 0,
                to: None,
                delay: 1,
                faults,
                seed: 3,
                number: 0,
            };
            let mut direction = Direction::new(&config, number);
            (0..64)
                .map(|_| direction.carry(0, Frame::default()).len())
                .collect::<Vec<_>>()
        };
        assert_eq!(fate(0), fate(0));
        assert_ne!(fate(0), fate(1));
    }
}
