//! The doorbells of a chip: which hart has rung which bell, and when a hart must be told.
//!
//! Why it exists: on chips with caches, a hart interrupts harts of other tiles by a store to a register across the network. Who rings, whom
//! a hart hears and what it has taken are kept here, in bits, so nothing fills and nothing is lost; and a hart that rings without a pause
//! costs the others no message. A hart is told by one message to its tile's interrupt controller. It is told again only after it has
//! written its own registers. What it deliberately does not know: how accesses come here, and how messages travel.

use crate::hart::RemoteOperation;
use crate::types::{Owner, TileId};
use bulkhead_abi::doorbell::{BELL, HEARD, RUNG};

/// The bell of a hart. Bit `h` is hart `h`.
#[derive(Clone, Copy, Debug, Default)]
struct Bell {
    /// Rings that the hart has not taken.
    rung: u64,
    /// Whose rings interrupt the hart.
    heard: u64,
    /// A message has left, and the hart has taken no ring since.
    told: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Doorbells {
    /// The harts, by number.
    harts: Vec<Owner>,
    bells: Vec<Bell>,
    /// The hart that must be told now, and the one whose access is the reason.
    raised: Option<(Owner, Owner)>,
}

/// A register, as an access means it.
#[derive(Clone, Copy, Debug)]
enum Register {
    Bell(usize),
    Rung,
    Heard,
}

fn register(harts: usize, offset: u64, bytes: u8) -> Option<Register> {
    let hart = offset.wrapping_sub(BELL) / 4;
    match (offset, bytes) {
        (RUNG, 8) => Some(Register::Rung),
        (HEARD, 8) => Some(Register::Heard),
        (_, 4) if offset.is_multiple_of(4) && hart < harts as u64 => {
            Some(Register::Bell(hart as usize))
        }
        _ => None,
    }
}

/// Whether doorbells of this many harts have a register for an access of a hart that may ring those in `may`.
pub fn is_register(harts: usize, may: u64, offset: u64, bytes: u8) -> bool {
    match register(harts, offset, bytes) {
        Some(Register::Bell(hart)) => may >> hart & 1 != 0,
        other => other.is_some(),
    }
}

impl Doorbells {
    /// Nobody has rung, and nobody hears anything.
    pub fn new(harts: Vec<Owner>) -> Self {
        Self {
            bells: vec![Bell::default(); harts.len()],
            harts,
            raised: None,
        }
    }

    fn number(&self, hart: Owner) -> usize {
        let found = self.harts.iter().position(|one| *one == hart);
        found.unwrap_or_else(|| panic!("{hart:?} is none of the harts {:?}", self.harts))
    }

    /// A hart reads or writes a register. `None`: there is no such register, or it has no such operation.
    pub fn access(
        &mut self,
        by: Owner,
        (offset, bytes): (u64, u8),
        operation: RemoteOperation,
    ) -> Option<u64> {
        let own = self.number(by);
        let register = register(self.harts.len(), offset, bytes)?;
        match operation {
            RemoteOperation::Load => Some(match register {
                Register::Bell(hart) => self.bells[hart].rung >> own & 1,
                Register::Rung => self.bells[own].rung,
                Register::Heard => self.bells[own].heard,
            }),
            RemoteOperation::Store(value) => {
                let changed = match register {
                    Register::Bell(hart) => {
                        self.bells[hart].rung |= (value & 1) << own;
                        hart
                    }
                    Register::Rung => {
                        let bell = &mut self.bells[own];
                        bell.rung &= !value;
                        bell.told = false;
                        own
                    }
                    Register::Heard => {
                        self.bells[own].heard = value;
                        own
                    }
                };
                let bell = &mut self.bells[changed];
                if bell.rung & bell.heard != 0 && !bell.told {
                    bell.told = true;
                    self.raised = Some((self.harts[changed], by));
                }
                Some(0)
            }
            _ => None,
        }
    }

    /// The hart that must be told because of the last access, and the hart that made this access.
    pub fn take_raised(&mut self) -> Option<(Owner, Owner)> {
        self.raised.take()
    }

    /// Whether a message may leave for a tile before a hart of that tile has made another access.
    pub fn may_tell(&self, tile: TileId) -> bool {
        let all = self.harts.iter().zip(&self.bells);
        let mut of_tile = all.filter(|(hart, _)| hart.tile == tile);
        of_tile.any(|(_, bell)| bell.heard != 0 && !bell.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::doorbell::bell;
    use proptest::prelude::*;

    const STORE: fn(u64) -> RemoteOperation = RemoteOperation::Store;

    fn three() -> Doorbells {
        Doorbells::new(vec![Owner::new(0, 0), Owner::new(0, 1), Owner::new(7, 0)])
    }

    fn store(bells: &mut Doorbells, by: usize, at: u64, value: u64) -> Option<usize> {
        let bytes = if at < RUNG { 4 } else { 8 };
        let by = bells.harts[by];
        bells
            .access(by, (at, bytes), STORE(value))
            .expect("a register");
        let (told, because) = bells.take_raised()?;
        assert_eq!(because, by);
        Some(bells.number(told))
    }

    fn load(bells: &mut Doorbells, by: usize, at: u64) -> u64 {
        let bytes = if at < RUNG { 4 } else { 8 };
        let by = bells.harts[by];
        let value = bells.access(by, (at, bytes), RemoteOperation::Load);
        value.expect("a register")
    }

    #[test]
    fn a_ring_is_kept_and_told_once() {
        let mut bells = three();
        assert_eq!(store(&mut bells, 2, HEARD, 0b011), None);
        assert_eq!(store(&mut bells, 0, bell(2), 0), None);
        assert_eq!(store(&mut bells, 0, bell(2), 1), Some(2));
        // Neither more rings of the same hart nor those of others are told again.
        assert_eq!(store(&mut bells, 0, bell(2), 1), None);
        assert_eq!(store(&mut bells, 1, bell(2), 3), None);
        assert_eq!(load(&mut bells, 2, RUNG), 0b011);
        assert_eq!(load(&mut bells, 0, bell(2)), 1);
        // What the hart leaves is told again at once.
        assert_eq!(store(&mut bells, 2, RUNG, 0b001), Some(2));
        assert_eq!(load(&mut bells, 0, bell(2)), 0);
        assert_eq!(load(&mut bells, 1, bell(2)), 1);
        assert_eq!(store(&mut bells, 2, RUNG, 0b010), None);
        assert_eq!(store(&mut bells, 0, bell(2), 1), Some(2));
    }

    #[test]
    fn who_is_not_heard_is_kept_until_the_hart_listens() {
        let mut bells = three();
        for _ in 0..3 {
            assert_eq!(store(&mut bells, 0, bell(1), 1), None);
        }
        assert!(!bells.may_tell(0));
        assert_eq!(store(&mut bells, 1, HEARD, 0b100), None);
        assert!(bells.may_tell(0) && !bells.may_tell(7));
        assert_eq!(store(&mut bells, 1, HEARD, 0b101), Some(1));
        assert!(!bells.may_tell(0));
        assert_eq!(store(&mut bells, 1, RUNG, !0), None);
        assert!(bells.may_tell(0));
    }

    #[test]
    fn registers_are_of_one_length_each() {
        let exists = |at, bytes| is_register(3, 0b101, at, bytes);
        assert!(exists(bell(0), 4) && exists(bell(2), 4) && exists(RUNG, 8) && exists(HEARD, 8));
        // Not allowed, not there, and other lengths.
        for (at, bytes) in [(4, 4), (12, 4), (0, 8), (2, 4), (RUNG, 4), (HEARD + 8, 8)] {
            assert!(!exists(at, bytes), "{at:#x} {bytes}");
        }
    }

    proptest! {
        /// A hart that takes what it reads never sleeps over a ring: whatever it hears and has not taken, it has been told of since it
        /// took something last.
        #[test]
        fn no_ring_is_lost(steps in prop::collection::vec((0usize..3, 0u8..3, 0u64..8), 0..80)) {
            let mut bells = three();
            let mut told = [false; 3];
            for (by, what, value) in steps {
                let at = [bell(value % 3), RUNG, HEARD][usize::from(what)];
                if at == RUNG {
                    told[by] = false;
                }
                let value = if what == 0 { 1 } else { value };
                if let Some(hart) = store(&mut bells, by, at, value) {
                    prop_assert!(!told[hart]);
                    told[hart] = true;
                }
                for (hart, told) in told.iter().enumerate() {
                    let due = load(&mut bells, hart, RUNG) & load(&mut bells, hart, HEARD) != 0;
                    prop_assert!(!due || *told, "hart {}", hart);
                }
            }
        }
    }
}
