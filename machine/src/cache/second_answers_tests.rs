//! The one piece for a hit of the second level, beside the path for all misses.

use super::*;

impl Bench {
    /// The same access, without the one piece for a hit of the second level.
    fn data_in_parts(&mut self, now: Tick, address: u64, write: bool, owner: Owner) -> Outcome {
        let below = &mut self.below;
        let near = self.tile.data_hit(now, address, write);
        let outcome =
            near.unwrap_or_else(|| self.tile.data_miss(now, address, write, owner, below));
        self.settle(now);
        outcome
    }
}

proptest::proptest! {
    #[test]
    fn a_hit_of_the_second_level_is_the_same_in_one_piece_and_in_parts(
        accesses in proptest::collection::vec((0u64..50, 0u64..80, 0u8..8), 1..400)
    ) {
        let (mut one, mut parts, mut now) = (Bench::new(), Bench::new(), 0);
        for (wait, line, kind) in accesses {
            now += wait;
            let (write, owner) = (kind & 1 != 0, if kind & 2 != 0 { A } else { B });
            let outcome = one.data(now, line * 64, write, owner);
            assert_eq!(outcome, parts.data_in_parts(now, line * 64, write, owner));
            if kind & 4 != 0 && !one.below.reads.is_empty() {
                now += 100;
                assert_eq!(one.complete(now), parts.complete(now));
            }
        }
        assert_eq!(one.tile.statistics(), parts.tile.statistics());
        assert_eq!((one.done, one.below.reads), (parts.done, parts.below.reads));
        assert_eq!(one.below.writes, parts.below.writes);
        assert_eq!(format!("{:?}", one.below.ledger), format!("{:?}", parts.below.ledger));
    }
}
