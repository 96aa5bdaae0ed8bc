//! Records of ports and queues, and rings, that another core has overwritten: their user stays in the window of the record's core,
//! does not itself fail, and never waits longer than it was told to.
//!
//! Why it exists: writers follow a record with their own rights, and a reader of a ring runs on the host. What it deliberately does not know:
//! orders of accesses (`orders`).

use crate::port::{self, Caller, Failure, Memory};
use crate::queue::{self, Any};
use crate::{ring, tagged};
use bulkhead_abi::memory_map::TILE_WINDOW_SHIFT;
use bulkhead_abi::one_shot::port::{CLOSED, INITIALISED, LOCK, QUEUE, SLOTS_SHIFT, STATE};
use bulkhead_abi::one_shot::port::{DATA_SHIFT, WAITING_SHIFT};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;

const WINDOW: u64 = 1 << TILE_WINDOW_SHIFT;
/// In the window of the third core.
const RECORD: u64 = 2 * WINDOW + 0x4000;

/// A chip on which each access must be in the record's window.
#[derive(Default)]
struct Windows {
    bytes: BTreeMap<u64, u8>,
    accesses: usize,
}

/// An access outside of the record's window.
#[derive(Debug, PartialEq)]
struct Outside(u64, usize);

impl Windows {
    fn at(&mut self, address: u64, length: usize) -> Result<(), Outside> {
        self.accesses += 1;
        let end = address.checked_add(length as u64);
        let own = RECORD & !(WINDOW - 1)..=(RECORD & !(WINDOW - 1)) + WINDOW;
        match own.contains(&address) && end.is_some_and(|end| own.contains(&end)) {
            true => Ok(()),
            false => Err(Outside(address, length)),
        }
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            self.bytes.insert(address + index as u64, *byte);
        }
    }

    fn word<const N: usize>(&mut self, address: u64) -> Result<[u8; N], Outside> {
        let mut word = [0; N];
        self.copy_from(address, &mut word)?;
        Ok(word)
    }
}

impl Memory for Windows {
    type Error = Outside;

    fn load(&mut self, address: u64) -> Result<u32, Outside> {
        self.word(address).map(u32::from_le_bytes)
    }
    fn load_double(&mut self, address: u64) -> Result<u64, Outside> {
        self.word(address).map(u64::from_le_bytes)
    }
    fn store(&mut self, address: u64, value: u32) -> Result<(), Outside> {
        self.copy_to(address, &value.to_le_bytes())
    }
    fn store_double(&mut self, address: u64, value: u64) -> Result<(), Outside> {
        self.copy_to(address, &value.to_le_bytes())
    }
    fn swap(&mut self, address: u64, value: u32) -> Result<u32, Outside> {
        let old = self.load(address)?;
        self.store(address, value)?;
        Ok(old)
    }
    fn order(&mut self) -> Result<(), Outside> {
        Ok(())
    }
    fn copy_to(&mut self, address: u64, bytes: &[u8]) -> Result<(), Outside> {
        self.at(address, bytes.len())?;
        self.put(address, bytes);
        Ok(())
    }
    fn copy_from(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Outside> {
        self.at(address, bytes.len())?;
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = address + index as u64;
            *byte = self.bytes.get(&at).copied().unwrap_or(0);
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Another core stores this many bytes of a word at an offset from the record.
    Overwrites(u64, usize, u64),
    Write(usize),
    Read(usize),
    Tagged(usize, bool),
    News,
    Close,
    Initialise(u64, u32, u16),
}

fn step() -> impl Strategy<Value = Step> {
    let size = || prop_oneof![8 => 0usize..40, 2 => 0usize..300, 1 => Just(4096usize)];
    // Likely kinds, sizes and places, also at the end of what a record can say.
    let place = prop_oneof![0u64..0x1000, 0xFFF0u64..0x1_0000];
    let kind = prop_oneof![
        2 => Just(INITIALISED),
        4 => (0u64..0x8000).prop_map(|slots| slots << SLOTS_SHIFT),
        1 => any::<u64>(),
    ];
    let bytes = prop_oneof![6 => 0u64..40, 2 => any::<u32>().prop_map(u64::from)];
    let state =
        (kind, bytes, place).prop_map(|(kind, size, place)| kind | size | place << DATA_SHIFT);
    let positions =
        (0u64..12, 0u64..12).prop_map(|(first, waiting)| first | waiting << WAITING_SHIFT);
    prop_oneof![
        6 => state.prop_map(|word| Step::Overwrites(STATE, 8, word)),
        3 => prop_oneof![2 => positions, 1 => any::<u64>()].prop_map(|word| Step::Overwrites(QUEUE, 4, word)),
        2 => prop_oneof![6 => Just(0u64), 1 => Just(1), 1 => Just(u64::from(CLOSED)), 1 => any::<u64>()].prop_map(|word| Step::Overwrites(LOCK, 4, word)),
        1 => (0u64..64, any::<u64>()).prop_map(|(at, word)| Step::Overwrites(at, 1, word)),
        6 => size().prop_map(Step::Write),
        6 => size().prop_map(Step::Read),
        3 => (size(), any::<bool>()).prop_map(|(size, takes)| Step::Tagged(size, takes)),
        1 => Just(Step::News),
        1 => Just(Step::Close),
        1 => (0u64..WINDOW + 64, any::<u32>(), any::<u16>()).prop_map(|(at, size, slots)| Step::Initialise(at, size % 5000, slots % 300)),
    ]
}

/// What another core may do with a record, and what everybody else does then.
fn story(steps: Vec<Step>) -> TestCaseResult {
    const PATIENCE: u32 = 3;
    let caller = Caller {
        core: 1,
        patience: PATIENCE,
    };
    let mut chip = Windows::default();
    for step in steps {
        chip.accesses = 0;
        let found = queue::any(&mut chip, RECORD);
        prop_assert!(!matches!(found, Err(Failure::Memory(_))), "{:?}", found);
        let found = found.ok().flatten();
        let done = match &step {
            Step::Overwrites(at, length, word) => {
                chip.put(RECORD + at, &word.to_le_bytes()[..*length]);
                Ok(())
            }
            Step::Write(size) => match found {
                Some(Any::Sampling(found)) => {
                    port::write(&mut chip, &found, caller, &vec![7; *size])
                }
                Some(Any::Queue(found)) => {
                    // An item of the size that the record gives, if that is a valid size.
                    let size = if found.size() < 5000 {
                        found.size() as usize
                    } else {
                        *size
                    };
                    queue::put(&mut chip, &found, caller, &vec![7; size])
                }
                None => Ok(()),
            },
            Step::Read(size) => match found {
                Some(Any::Sampling(found)) => {
                    port::read(&mut chip, &found, caller, &mut vec![0; *size]).map(drop)
                }
                Some(Any::Queue(found)) => {
                    let size = if found.size() < 5000 {
                        found.size() as usize
                    } else {
                        *size
                    };
                    queue::take(&mut chip, &found, caller, &mut vec![0; size]).map(drop)
                }
                None => Ok(()),
            },
            Step::Tagged(size, takes) => match found {
                Some(Any::Sampling(found)) if *takes => {
                    tagged::take(&mut chip, &found, caller, |_| true, &mut vec![0; *size]).map(drop)
                }
                Some(Any::Sampling(found)) => {
                    tagged::write(&mut chip, &found, caller, 9, &vec![7; *size])
                }
                _ => Ok(()),
            },
            Step::News => match found {
                Some(Any::Sampling(found)) => port::has_news(&mut chip, &found).map(drop),
                Some(Any::Queue(found)) => queue::waiting(&mut chip, &found).map(drop),
                None => Ok(()),
            },
            Step::Close => port::close(&mut chip, RECORD, caller).map(drop),
            Step::Initialise(at, size, slots) => {
                let own = ((RECORD & !(WINDOW - 1)) + at, *size);
                queue::initialise(&mut chip, RECORD, caller, own, *slots).map(drop)
            }
        };
        prop_assert!(
            !matches!(done, Err(Failure::Memory(_))),
            "{:?} of {:?}: {:?}",
            step,
            found,
            done
        );
        prop_assert!(
            chip.accesses <= PATIENCE as usize + 10,
            "{:?} made {} accesses",
            step,
            chip.accesses
        );
    }
    Ok(())
}

/// Any bytes as a ring: its readers find lines that are inside, as many as it says, or nothing.
fn any_ring(bytes: &[u8]) -> TestCaseResult {
    let Some((state, area)) = bytes.split_first_chunk::<8>() else {
        return Ok(());
    };
    let state = u64::from_le_bytes(*state);
    let mut length = 0;
    let mut count = 0;
    let walked = ring::walk(state, area, |_, line| {
        length += line.len() + 1;
        count += 1;
    });
    prop_assert!(length <= area.len(), "{} bytes in {}", length, area.len());
    prop_assert!(walked.is_none_or(|lines| lines == count));
    Ok(())
}

proptest! {
    #[test]
    fn nobody_leaves_the_window_of_a_record_that_was_overwritten(steps in prop::collection::vec(step(), 1..60)) {
        story(steps)?;
    }

    #[test]
    fn any_bytes_are_a_ring_or_none(state in any::<[u8; 4]>(), area in prop::collection::vec(0u8..6, 0..40)) {
        let [oldest, next, lines, written] = state;
        let state = [oldest % 42, 0, next % 42, 0, lines % 20, 0, written, 0];
        any_ring(&[&state, &area[..]].concat())?;
    }
}

#[test]
fn guided_records() {
    bulkhead_fuzz::target("records", |bytes| story(bytes.story(&step(), 60)));
}

#[test]
fn guided_rings() {
    bulkhead_fuzz::text("rings", any_ring);
}
