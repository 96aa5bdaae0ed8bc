//! Pieces of a pipe's region: which one is next, and whether a place is in the region.
//!
//! Why it exists: neither end trusts the other, and counting ensures that no piece is overwritten before it has been read. What
//! it deliberately does not know: messages and transfers.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Where a piece is in the region, according to the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Place {
    /// The first byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl Place {
    /// Whether it is a piece of a region of this many bytes: not empty, and entirely inside.
    pub fn is_within(&self, region: u64) -> bool {
        let end = self.offset.checked_add(self.length);
        self.length > 0 && end.is_some_and(|end| end <= region)
    }
}

/// The pieces of a region, used in turn: one more than messages can be unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    size: u64,
    count: u64,
    next: u64,
}

impl Pieces {
    /// Divides a region of this many bytes for a writer with this many credits; pieces begin at pages of this many bytes. Returns
    /// `None` if there is not a page for each piece.
    pub fn new(region: u64, credits: u64, page: u64) -> Option<Self> {
        let count = credits.checked_add(1)?;
        let size = region / page / count * page;
        let next = 0;
        (size > 0).then_some(Self { size, count, next })
    }

    /// Bytes of a piece.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The place of the next piece, of which `length` bytes are used.
    pub fn take(&mut self, length: u64) -> Place {
        let offset = self.next * self.size;
        self.next = if self.next + 1 == self.count {
            0
        } else {
            self.next + 1
        };
        Place { offset, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseResult;
    use std::collections::VecDeque;
    use std::vec;
    use std::vec::Vec;

    fn credit() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..8, any::<u64>()]
    }

    /// A writer that writes the next piece before it knows whether it can send, and a reader of any speed: the reader gets
    /// exactly the written bytes, in order.
    fn honest(steps: Vec<(bool, usize)>, credits: u64, pages: u64) -> TestCaseResult {
        let region = pages * 16;
        let Some(mut pieces) = Pieces::new(region, credits, 16) else {
            prop_assert!(pages < credits + 1);
            return Ok(());
        };
        let mut memory = vec![0u8; region as usize];
        let mut sent: VecDeque<(Place, Vec<u8>)> = VecDeque::new();
        let mut held: Option<(Place, Vec<u8>)> = None;
        let mut mark = 0u8;
        for (writes, length) in steps {
            if writes && held.is_none() {
                mark = mark.wrapping_add(1);
                let data = vec![mark; length.min(pieces.size() as usize)];
                let place = pieces.take(data.len() as u64);
                prop_assert!(place.is_within(region));
                memory[place.offset as usize..][..data.len()].copy_from_slice(&data);
                held = Some((place, data));
            } else if !writes && let Some((place, data)) = sent.pop_front() {
                // The answer brings the credit back.
                prop_assert_eq!(&memory[place.offset as usize..][..data.len()], &data[..]);
            }
            if (sent.len() as u64) < credits {
                sent.extend(held.take());
            }
        }
        Ok(())
    }

    /// Whenever the reader answers, and whether or not it has read, the writer stays inside the region, and no two of any
    /// `credits + 1` consecutive pieces overlap. So such a reader loses bytes of this stream and nothing else.
    fn wayward(lengths: Vec<u64>, region: u64, credits: u64, page: u64) -> TestCaseResult {
        let Some(mut pieces) = Pieces::new(region, credits, page) else {
            prop_assert!(u128::from(region / page) < u128::from(credits) + 1);
            return Ok(());
        };
        let mut last: VecDeque<Place> = VecDeque::new();
        for length in lengths {
            let place = pieces.take(1 + length % pieces.size());
            prop_assert!(place.is_within(region), "{:?} of {}", place, region);
            let apart = |other: &Place| {
                place.offset + place.length <= other.offset
                    || other.offset + other.length <= place.offset
            };
            prop_assert!(last.iter().all(apart), "{:?} and {:?}", place, last);
            last.push_back(place);
            if last.len() as u64 > credits {
                last.pop_front();
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn no_piece_is_overwritten_before_it_was_read(
            steps in prop::collection::vec((any::<bool>(), 1usize..64), 0..200), credits in 1u64..6, pages in 1u64..40,
        ) {
            honest(steps, credits, pages)?;
        }

        #[test]
        fn whatever_the_reader_answers_the_writer_stays_inside(
            lengths in prop::collection::vec(any::<u64>(), 1..60), region in 0u64..2000, credits in credit(), page in 1u64..40,
        ) {
            wayward(lengths, region, credits, page)?;
        }

        #[test]
        fn any_place_is_within_or_not(offset in prop_oneof![0u64..100, any::<u64>()], length in prop_oneof![0u64..100, any::<u64>()], region in 0u64..150) {
            let whole = u128::from(offset) + u128::from(length);
            let expected = length > 0 && whole <= u128::from(region);
            prop_assert_eq!(Place { offset, length }.is_within(region), expected);
        }
    }

    #[test]
    fn guided_pipes() {
        bulkhead_fuzz::target("pipes", |bytes| {
            let (credits, pages) = bytes.draw(&(1u64..6, 1u64..40));
            let (region, wide, page) = bytes.draw(&(0u64..2000, credit(), 1u64..40));
            let steps = bytes.story(&(any::<bool>(), 1usize..64), 200);
            let lengths = steps.iter().map(|(_, length)| *length as u64).collect();
            honest(steps, credits, pages)?;
            wayward(lengths, region, wide, page)
        });
    }
}
