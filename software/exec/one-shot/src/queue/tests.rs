//! Queues under every order of accesses ([`crate::orders`]), and against a plain queue.

use super::*;
use crate::orders::{Action, Bytes, Later, Plain, SIZE, Turn, explore, load, store};
use bulkhead_abi::one_shot::PORT_SIZE;
use bulkhead_abi::one_shot::port::{DATA_SHIFT, DATA_UNIT};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};

const RECORD: u64 = 0;
const DATA: u64 = PORT_SIZE;
const ITEM: usize = 8;

/// What an agent does, and its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Outcome {
    Initialised(bool),
    NoQueue,
    Put(u8),
    Taken(u8),
    Empty,
    Full(u8),
    Locked,
}

fn caller(core: u32) -> Caller {
    Caller { core, patience: 2 }
}

/// Any outcome that no test expects is a bug in the queue.
fn failed<O>(failure: Failure<Later>, told: impl FnOnce(Failure<Later>) -> O) -> Result<O, Later> {
    match failure {
        Failure::Memory(later) => Err(later),
        other => Ok(told(other)),
    }
}

fn found(turn: &mut Turn<'_>) -> Result<Option<Queue>, Later> {
    get(turn, RECORD).or_else(|failure| failed(failure, |other| panic!("{other:?}")))
}

fn puts(value: u8) -> impl Fn(u32, &mut Turn<'_>) -> Result<Outcome, Later> {
    move |number, turn| {
        let Some(queue) = found(turn)? else {
            return Ok(Outcome::NoQueue);
        };
        let put = put(turn, &queue, caller(number), &[value; ITEM]);
        put.map(|()| Outcome::Put(value)).or_else(|failure| {
            failed(failure, |other| match other {
                Failure::Full => Outcome::Full(value),
                Failure::Locked { .. } => Outcome::Locked,
                other => panic!("{other:?}"),
            })
        })
    }
}

fn takes(number: u32, turn: &mut Turn<'_>) -> Result<Outcome, Later> {
    let Some(queue) = found(turn)? else {
        return Ok(Outcome::NoQueue);
    };
    let mut room = [0xEE; ITEM];
    let taken = take(turn, &queue, caller(number), &mut room);
    let outcome = taken.map(|is_there| match is_there {
        true => {
            assert!(
                room.iter().all(|byte| *byte == room[0]),
                "half an item: {room:?}"
            );
            Outcome::Taken(room[0])
        }
        false => Outcome::Empty,
    });
    outcome.or_else(|failure| {
        failed(failure, |other| match other {
            Failure::Locked { .. } => Outcome::Locked,
            other => panic!("{other:?}"),
        })
    })
}

fn initialises(number: u32, turn: &mut Turn<'_>) -> Result<Outcome, Later> {
    let own = (DATA, ITEM as u32);
    initialise(turn, RECORD, caller(number), own, 2)
        .map(|queue| Outcome::Initialised(queue.is_some()))
        .or_else(|failure| {
            failed(failure, |other| match other {
                Failure::Locked { .. } => Outcome::Locked,
                other => panic!("{other:?}"),
            })
        })
}

/// A queue with this many places, whose oldest item is at a place, with these items.
fn queue(slots: u64, first: u64, items: &[u8]) -> Bytes {
    let mut memory = [0; SIZE];
    let state = ITEM as u64 | slots << SLOTS_SHIFT | (DATA / DATA_UNIT) << DATA_SHIFT;
    store(&mut memory, (RECORD + STATE, 8, state));
    let word = first | (items.len() as u64) << WAITING_SHIFT;
    store(&mut memory, (RECORD + QUEUE, 4, word));
    for (place, item) in items.iter().enumerate() {
        let at = DATA + (first + place as u64) % slots * ITEM as u64;
        memory[at as usize..at as usize + ITEM].fill(*item);
    }
    memory
}

/// The items in memory at the end, the oldest first.
fn left(memory: &Bytes) -> Vec<u8> {
    let slots = load(memory, RECORD + STATE, 8) >> SLOTS_SHIFT & 0x7FFF;
    let word = load(memory, RECORD + QUEUE, 4);
    let (first, waiting) = (word & 0xFFFF, word >> WAITING_SHIFT);
    assert!(first < slots && waiting <= slots);
    (0..waiting)
        .map(|place| {
            let at = (DATA + (first + place) % slots * ITEM as u64) as usize;
            assert!(memory[at..at + ITEM].iter().all(|byte| *byte == memory[at]));
            memory[at]
        })
        .collect()
}

/// Every end is one that the agents could have reached had each performed its operation atomically, in some order: nothing is lost or
/// duplicated, and order is kept. An agent that ran out of attempts did nothing. `before`: the items that wait.
fn is_serial(slots: usize, before: &[u8], outcomes: &[Outcome], after: &[u8]) -> bool {
    fn tries(slots: usize, model: &VecDeque<u8>, rest: &[Outcome], after: &[u8]) -> bool {
        if rest.is_empty() {
            return model.iter().eq(after);
        }
        (0..rest.len()).any(|index| {
            let mut model = model.clone();
            let is_so = match rest[index] {
                Outcome::Put(value) => {
                    model.push_back(value);
                    model.len() <= slots
                }
                Outcome::Taken(value) => model.pop_front() == Some(value),
                Outcome::Empty => model.is_empty(),
                Outcome::Full(_) => model.len() == slots,
                _ => true,
            };
            let others = [&rest[..index], &rest[index + 1..]].concat();
            is_so && tries(slots, &model, &others, after)
        })
    }
    tries(slots, &before.iter().copied().collect(), outcomes, after)
}

fn check(
    slots: u64,
    first: u64,
    items: &[u8],
    actions: &[Action<'_, Outcome>],
) -> HashSet<Vec<Outcome>> {
    let ends = explore(queue(slots, first, items), actions);
    for (outcomes, memory) in &ends {
        let after = left(memory);
        assert!(
            is_serial(slots as usize, items, outcomes, &after),
            "{outcomes:?} leave {after:?}"
        );
    }
    ends.into_iter().map(|(outcomes, _)| outcomes).collect()
}

#[test]
fn two_writers_and_a_reader_in_every_order() {
    let (one, two) = (puts(1), puts(2));
    let all = check(2, 1, &[7], &[&one, &two, &takes]);
    // The last place is at the end of the data, the next one at its beginning; both orders of the writers occur, and so does a full queue.
    assert!(all.contains(&vec![Outcome::Put(1), Outcome::Put(2), Outcome::Taken(7)]));
    assert!(all.contains(&vec![Outcome::Full(1), Outcome::Put(2), Outcome::Taken(7)]));
    let full = check(1, 0, &[7], &[&one, &two, &takes]);
    assert!(full.contains(&vec![Outcome::Full(1), Outcome::Full(2), Outcome::Taken(7)]));
    assert!(full.contains(&vec![Outcome::Full(1), Outcome::Put(2), Outcome::Taken(7)]));
    let empty = check(3, 2, &[], &[&one, &two, &takes]);
    for taken in [Outcome::Taken(1), Outcome::Taken(2), Outcome::Empty] {
        assert!(empty.contains(&vec![Outcome::Put(1), Outcome::Put(2), taken]));
    }
}

#[test]
fn two_readers_never_take_the_same_item() {
    let one = puts(1);
    let all = check(2, 0, &[7, 8], &[&takes, &takes]);
    assert!(all.contains(&vec![Outcome::Taken(7), Outcome::Taken(8)]));
    check(2, 1, &[7], &[&takes, &takes, &one]);
}

/// A writer whose items come one after the other, and a reader that takes twice: order is kept within the operations of an agent, too.
#[test]
fn the_items_of_a_writer_keep_their_order() {
    let writes =
        |number: u32, turn: &mut Turn<'_>| Ok(vec![puts(1)(number, turn)?, puts(2)(number, turn)?]);
    let reads =
        |number: u32, turn: &mut Turn<'_>| Ok(vec![takes(number, turn)?, takes(number, turn)?]);
    let ends = explore(queue(2, 1, &[]), &[&writes, &reads]);
    for (outcomes, memory) in &ends {
        let put = outcomes[0].iter().filter_map(|one| match one {
            Outcome::Put(value) => Some(*value),
            _ => None,
        });
        let taken = outcomes[1].iter().filter_map(|one| match one {
            Outcome::Taken(value) => Some(*value),
            _ => None,
        });
        let all: Vec<u8> = taken.chain(left(memory)).collect();
        assert_eq!(all, put.collect::<Vec<u8>>(), "{outcomes:?}");
    }
    let both = vec![Outcome::Taken(1), Outcome::Taken(2)];
    assert!(ends.iter().any(|(outcomes, _)| outcomes[1] == both));
}

#[test]
fn a_queue_is_initialised_once_and_nobody_sees_half_of_it() {
    let one = puts(3);
    let ends = explore([0; SIZE], &[&initialises, &initialises, &one]);
    for (outcomes, memory) in &ends {
        let made = outcomes
            .iter()
            .filter(|one| **one == Outcome::Initialised(true));
        assert_eq!(made.count(), 1, "{outcomes:?}");
        let expected: &[u8] = if outcomes[2] == Outcome::Put(3) {
            &[3]
        } else {
            &[]
        };
        assert_eq!(left(memory), expected, "{outcomes:?}");
    }
}

#[test]
fn kinds_sizes_and_numbers_of_places_are_looked_at() {
    let mut chip = Plain([0; SIZE]);
    let own = (DATA, 12);
    for slots in [0, SLOTS_MAX + 1] {
        assert_eq!(
            initialise(&mut chip, RECORD, caller(1), own, slots),
            Ok(None)
        );
    }
    assert_eq!(get(&mut chip, RECORD), Ok(None));
    let made = initialise(&mut chip, RECORD, caller(1), own, 3)
        .expect("free")
        .expect("new");
    assert_eq!((made.size(), made.slots(), made.data()), (12, 3, DATA));
    assert_eq!(get(&mut chip, RECORD), Ok(Some(made)));
    // It is not a sampling port, and vice versa.
    assert_eq!(crate::port::get(&mut chip, RECORD), Ok(None));
    assert_eq!(initialise(&mut chip, RECORD, caller(1), own, 3), Ok(None));
    for size in [11, 13] {
        assert_eq!(
            put(&mut chip, &made, caller(1), &[1; 16][..size]),
            Err(Failure::Size)
        );
        assert_eq!(
            take(&mut chip, &made, caller(1), &mut [0; 16][..size]),
            Err(Failure::Size)
        );
    }
    let mut other = Plain([0; SIZE]);
    crate::port::initialise(&mut other, RECORD, caller(1), own)
        .expect("free")
        .expect("new");
    assert_eq!(get(&mut other, RECORD), Ok(None));
}

/// A record that another core has written to names places in other cores' windows: 32 767 items of 64 bytes from 512 KiB on are 2.5 MiB long.
#[test]
fn a_queue_that_leaves_its_core_is_refused() {
    let last = (1 << 19) - 8;
    for (data, size, slots, is_inside) in [
        (last, 64, u64::from(SLOTS_MAX), false),
        (last, u64::from(u32::MAX), 1, false),
        (last, 8, 1000, true),
        (0, 32, u64::from(SLOTS_MAX), true),
        (0, 40, u64::from(SLOTS_MAX), false),
    ] {
        let mut chip = Plain([0; SIZE]);
        let state = slots << SLOTS_SHIFT | size | data / DATA_UNIT << DATA_SHIFT;
        store(&mut chip.0, (RECORD + STATE, 8, state));
        let found = get(&mut chip, RECORD).map(|queue| queue.is_some());
        let expected = if is_inside {
            Ok(true)
        } else {
            Err(Failure::Size)
        };
        assert_eq!(found, expected, "{data:#x} {size} {slots}");
    }
    let mut chip = Plain([0; SIZE]);
    let made = initialise(&mut chip, RECORD, caller(0), (last, 64), SLOTS_MAX);
    assert_eq!(made, Err(Failure::Size));
    assert_eq!(chip.0, [0; SIZE]);
}

/// Whatever a record says, accesses stay within the places, and every wait for a lock ends.
#[test]
fn a_record_that_was_written_over_leads_to_no_other_memory() {
    let mut chip = Plain(queue(2, 0, &[]));
    let made = get(&mut chip, RECORD).expect("works").expect("is there");
    for word in [0x0000_FFFF, 0x0001_FFFE, 0xFFFF_FFFF, 0x0001_0002] {
        store(&mut chip.0, (RECORD + QUEUE, 4, word));
        let _ = take(&mut chip, &made, caller(1), &mut [0; ITEM]);
        store(&mut chip.0, (RECORD + QUEUE, 4, word));
        let _ = put(&mut chip, &made, caller(1), &[0xAA; ITEM]);
        let end = DATA as usize + 2 * ITEM;
        assert!(chip.0[end..].iter().all(|byte| *byte == 0), "{word:x}");
    }
    store(&mut chip.0, (RECORD + LOCK, 4, 1));
    let locked = Err(Failure::Locked { holder: 1 });
    assert_eq!(put(&mut chip, &made, caller(1), &[1; ITEM]), locked);
}

proptest! {
    /// One operation after another: a plain queue with this many places.
    #[test]
    fn one_after_another_it_is_a_plain_queue(slots in 1u16..8, steps in prop::collection::vec(prop::option::of(0u8..255), 1..60)) {
        let mut chip = Plain([0; SIZE]);
        let own = (DATA, ITEM as u32);
        let made = initialise(&mut chip, RECORD, caller(0), own, slots).expect("free").expect("new");
        let mut model = VecDeque::new();
        for step in steps {
            match step {
                Some(value) if model.len() < usize::from(slots) => {
                    prop_assert_eq!(put(&mut chip, &made, caller(0), &[value; ITEM]), Ok(()));
                    model.push_back(value);
                }
                Some(value) => {
                    prop_assert_eq!(put(&mut chip, &made, caller(0), &[value; ITEM]), Err(Failure::Full));
                }
                None => {
                    let mut room = [0xEE; ITEM];
                    prop_assert_eq!(take(&mut chip, &made, caller(0), &mut room), Ok(!model.is_empty()));
                    prop_assert_eq!(room, [model.pop_front().unwrap_or(0xEE); ITEM]);
                }
            }
            prop_assert_eq!(waiting(&mut chip, &made), Ok(model.len() as u32));
        }
    }
}
