//! What clients see in their pages, compared with ordinary memory.

use super::*;
use bulkhead_common::payer::PaidList;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const HEAP: Range = Range {
    start: 0x1002_0000,
    pages: 20,
};
const AREA: Range = Range {
    start: 0x1020_0000,
    pages: 8,
};
use PagerAccess::{Execute, Read, Write};

fn pages(limits: &[u64], shared: u64) -> Pages {
    let clients = limits.iter().map(|limit| Client::new(HEAP, AREA, *limit));
    Pages::new(clients.collect(), shared)
}

#[test]
fn a_heap_page_is_given_once() {
    let mut all = pages(&[3], 0);
    let at = HEAP.start + 5 * PAGE;
    let first = Given {
        taken: PaidList::default(),
        address: at,
        place: Place::Own(0),
        pages: 1,
        fill: Fill::Zeros(1),
        writable: true,
    };
    assert_eq!(all.fault(0, at + 77, Write, 1), Ok(first));
    assert_eq!(all.fault(0, at, Read, 1), Err(Refusal::Given));
    // The pages after it come, too, but not the one that is there already, and no more than the limit.
    let client = all.client(0).unwrap();
    assert_eq!(client.wants_zeros(1), Some(1));
    client.zeroed(1);
    assert_eq!(client.wants_zeros(1), None);
    let before = all.fault(0, at - 2 * PAGE, Read, 4).unwrap();
    assert_eq!((before.place, before.pages), (Place::Own(1), 2));
    assert_eq!(before.fill, Fill::Zeros(2));
    assert_eq!(all.client(0).unwrap().count(), (3, 0));
    let none = Err(Refusal::NoQuota);
    assert_eq!(all.fault(0, HEAP.start, Read, 1), none);
    // Pages that were given back can be had again, and the page holds zeros.
    assert_eq!(all.give_back(0, at - PAGE, 2), Ok(()));
    let again = all.fault(0, at, Read, 1).unwrap();
    assert_eq!(again.fill, Fill::Zeros(1));
}

#[test]
fn nothing_is_beside_heap_and_files() {
    let mut all = pages(&[100], 0);
    let end = HEAP.start + HEAP.pages * PAGE;
    let none = Err(Refusal::NotThere);
    for address in [0, HEAP.start - 1, end, AREA.start, u64::MAX] {
        assert_eq!(all.fault(0, address, Read, 1), none, "{address:#x}");
    }
    assert_eq!(all.fault(0, HEAP.start, Execute, 1), none);
    assert_eq!(all.fault(1, HEAP.start, Read, 1), none);
    let client = all.client(0).unwrap();
    assert_eq!(client.place(3 * PAGE - 1, 0), Some(AREA.start));
    assert_eq!(client.place(0, 1), Some(AREA.start + 3 * PAGE));
    assert_eq!(client.place(5 * PAGE, 2), None);
    assert_eq!(client.place(u64::MAX, 2), None);
    let second = all.fault(0, AREA.start + PAGE + 9, Read, 8).unwrap();
    assert_eq!((second.address, second.pages), (AREA.start + PAGE, 2));
    let offset = PAGE;
    assert_eq!(second.fill, Fill::File { file: 0, offset });
    assert!(!second.writable);
    assert_eq!(all.fault(0, AREA.start + 4 * PAGE, Read, 1), none);
    for (address, pages) in [
        (HEAP.start, 21),
        (HEAP.start, 0),
        (HEAP.start + 1, 1),
        (AREA.start, u64::MAX),
        (0, 1),
    ] {
        let refused = all.give_back(0, address, pages);
        assert_eq!(refused, Err(Refusal::NotThere), "{address:#x} {pages}");
    }
}

#[test]
fn the_oldest_unchanged_page_of_a_file_goes_first() {
    let mut all = pages(&[2], 0);
    all.client(0).unwrap().place(4 * PAGE, 0).unwrap();
    let at = |page: u64| AREA.start + page * PAGE;
    for page in 0..2 {
        let given = all.fault(0, at(page), Read, 1).unwrap();
        assert_eq!((given.place, &given.taken[..]), (Place::Own(page), &[][..]));
    }
    // The first page is written, and stays.
    let written = all.fault(0, at(0), Write, 1).unwrap();
    assert_eq!((written.fill, written.writable), (Fill::Nothing, true));
    let third = all.fault(0, at(2), Read, 4).unwrap();
    assert_eq!(third.taken[..], [(0, at(1))]);
    assert_eq!((third.place, third.pages), (Place::Own(1), 1));
    // A heap page takes the frame of the other; then nothing is left to take back.
    let heap = all.fault(0, HEAP.start, Read, 1).unwrap();
    assert_eq!(
        (&heap.taken[..], heap.fill),
        (&[(0, at(2))][..], Fill::Zeros(1))
    );
    assert_eq!(all.fault(0, at(1), Read, 1), Err(Refusal::NoQuota));
}

#[test]
fn unchanged_pages_are_shared_until_somebody_writes() {
    let mut all = pages(&[4, 4], 1);
    for client in 0..2 {
        all.client(client).unwrap().place(2 * PAGE, 7).unwrap();
    }
    let first = all.fault(0, AREA.start, Read, 1).unwrap();
    assert_eq!(first.fill, Fill::File { file: 7, offset: 0 });
    let second = all.fault(1, AREA.start, Read, 1).unwrap();
    assert_eq!(
        (second.place, second.fill),
        (Place::Shared(0), Fill::Nothing)
    );
    assert!(!first.writable && !second.writable);
    assert_eq!((all.shares(0), all.shares(1)), (1, 1));
    let copy = all.fault(1, AREA.start, Write, 1).unwrap();
    assert_eq!((copy.place, copy.fill), (Place::Own(0), Fill::Copy(0)));
    assert!(copy.writable);
    assert_eq!((all.shares(0), all.shares(1)), (1, 0));
    // The next page needs the only frame; its user loses it.
    let other = all.fault(1, AREA.start + PAGE, Read, 1).unwrap();
    assert_eq!(other.taken[..], [(0, AREA.start)]);
    // If its file cannot be read, nobody gets the frame's old contents.
    all.failed(1, &other);
    for client in [0, 1] {
        assert_eq!(all.shares(client), 0);
        let again = all.fault(client, AREA.start + PAGE, Read, 1).unwrap();
        let offset = PAGE;
        assert_eq!(again.fill, Fill::File { file: 7, offset });
        all.failed(client, &again);
    }
}

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Does {
    Reads,
    Writes(u8),
    GivesBack(u64),
    Prepares,
    /// Its page is in a file that cannot be read now: it asks again later.
    Fails(bool),
    Restarts,
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        8 => Just(Does::Reads),
        6 => any::<u8>().prop_map(Does::Writes),
        2 => (1u64..4).prop_map(Does::GivesBack),
        2 => Just(Does::Prepares),
        3 => any::<bool>().prop_map(Does::Fails),
        1 => Just(Does::Restarts),
    ]
}

/// The content of a page of a file.
fn of_file(file: usize, page: u64) -> u64 {
    1000 + file as u64 * 100 + page
}

/// Frames with a word each, and what is mapped where.
struct Memory {
    own: Vec<Vec<u64>>,
    shared: Vec<u64>,
    mapped: Vec<BTreeMap<u64, (Place, bool)>>,
}

impl Memory {
    fn frame(&mut self, client: usize, place: Place) -> &mut u64 {
        match place {
            Place::Own(frame) => &mut self.own[client][frame as usize],
            Place::Shared(frame) => &mut self.shared[frame as usize],
        }
    }

    /// Does what the pager's program does with a decision.
    fn carry_out(&mut self, client: usize, given: &Given) {
        for (other, address) in &given.taken {
            assert!(self.mapped[*other].remove(address).is_some());
        }
        for next in 0..given.pages {
            let place = match given.place {
                Place::Own(frame) => Place::Own(frame + next),
                shared => shared,
            };
            let word = match given.fill {
                Fill::Nothing => *self.frame(client, place),
                Fill::Zeros(mask) if mask >> next & 1 == 0 => *self.frame(client, place),
                Fill::Zeros(_) => 0,
                Fill::File { file, offset } => of_file(file, offset / PAGE + next),
                Fill::Copy(frame) => self.shared[frame as usize],
            };
            *self.frame(client, place) = word;
            let at = given.address + next * PAGE;
            self.mapped[client].insert(at, (place, given.writable));
        }
    }
}

proptest! {
    /// Two clients with two files (both clients have the second one), few frames, and all operations: each client sees what it
    /// would see in memory of its own.
    #[test]
    fn everybody_sees_what_it_wrote_and_what_the_files_hold(
        limits in [1u64..12, 1u64..12], shared in 0u64..4, most in 0u64..5,
        steps in proptest::collection::vec((0usize..2, 0u64..28, does()), 0..120),
    ) {
        let mut all = pages(&limits, shared);
        let mut memory = Memory {
            own: limits.iter().map(|limit| vec![u64::MAX; *limit as usize]).collect(),
            shared: vec![u64::MAX; shared as usize],
            mapped: vec![BTreeMap::new(); 2],
        };
        let place = |all: &mut Pages, client: usize| {
            let client_of = all.client(client).unwrap();
            client_of.place(3 * PAGE, client).unwrap();
            client_of.place(4 * PAGE, 2).unwrap();
        };
        (0..2).for_each(|client| place(&mut all, client));
        let mut plain: [BTreeMap<u64, u64>; 2] = Default::default();
        for (client, page, does) in steps {
            let in_area = page.checked_sub(HEAP.pages);
            let address = match in_area {
                None => HEAP.start + page * PAGE,
                Some(page) => AREA.start + page * PAGE,
            };
            // The contents of the page in ordinary memory before the first write.
            let fresh = match in_area {
                None => Some(0),
                Some(page @ 0..3) => Some(of_file(client, page)),
                Some(page @ 3..7) => Some(of_file(2, page - 3)),
                Some(_) => None,
            };
            match does {
                Does::Reads | Does::Writes(_) => {
                    let access = if matches!(does, Does::Reads) { Read } else { Write };
                    let there = memory.mapped[client].get(&address).copied();
                    let right = there.is_some_and(|(_, writable)| writable || access == Read);
                    if !right {
                        match all.fault(client, address, access, most) {
                            Ok(given) => {
                                prop_assert!(given.pages <= most.max(1) && given.address == address);
                                memory.carry_out(client, &given);
                            }
                            Err(Refusal::NotThere) => {
                                prop_assert_eq!(fresh, None);
                                continue;
                            }
                            Err(Refusal::NoQuota) => {
                                // All of its pages were changed.
                                let own = memory.mapped[client].values().filter(|(p, _)| matches!(p, Place::Own(_)));
                                let changed = own.clone().filter(|(_, writable)| *writable).count();
                                prop_assert_eq!(changed as u64, limits[client]);
                                continue;
                            }
                            Err(other) => prop_assert!(false, "{:?}", other),
                        }
                    }
                    let (place, writable) = memory.mapped[client][&address];
                    prop_assert!(writable || access == Read);
                    let seen = *memory.frame(client, place);
                    let expected = plain[client].get(&address).copied().or(fresh);
                    prop_assert_eq!(Some(seen), expected);
                    if let Does::Writes(value) = does {
                        *memory.frame(client, place) = value.into();
                        plain[client].insert(address, value.into());
                    }
                }
                Does::GivesBack(count) => {
                    let end = if in_area.is_none() { HEAP.pages } else { HEAP.pages + AREA.pages };
                    let done = all.give_back(client, address, count);
                    // The heap and the area are two ranges.
                    prop_assert_eq!(done.is_ok(), page + count <= end);
                    if done.is_ok() {
                        for next in 0..count {
                            memory.mapped[client].remove(&(address + next * PAGE));
                            plain[client].remove(&(address + next * PAGE));
                        }
                    }
                }
                Does::Prepares => {
                    if let Some(frame) = all.client(client).unwrap().wants_zeros(most.max(1)) {
                        memory.own[client][frame as usize] = 0;
                        all.client(client).unwrap().zeroed(frame);
                    }
                }
                Does::Fails(write) => {
                    let access = if write { Write } else { Read };
                    if !memory.mapped[client].contains_key(&address)
                        && let Ok(given) = all.fault(client, address, access, most)
                    {
                        if matches!(given.fill, Fill::File { .. }) {
                            for (other, address) in &given.taken {
                                prop_assert!(memory.mapped[*other].remove(address).is_some());
                            }
                            all.failed(client, &given);
                        } else {
                            memory.carry_out(client, &given);
                        }
                    }
                }
                Does::Restarts => {
                    all.reset(client);
                    place(&mut all, client);
                    memory.mapped[client].clear();
                    plain[client].clear();
                }
            }
            // No frame of a pool is in two places, nobody writes what others see, and the counts are right.
            for (client, limit) in limits.iter().enumerate() {
                let mut frames = BTreeSet::new();
                for (place, writable) in memory.mapped[client].values() {
                    match place {
                        Place::Own(frame) => prop_assert!(frames.insert(*frame)),
                        Place::Shared(_) => prop_assert!(!writable),
                    }
                }
                let (given, left) = all.client(client).unwrap().count();
                prop_assert_eq!((given, given + left), (frames.len() as u64, *limit));
            }
        }
    }
}
