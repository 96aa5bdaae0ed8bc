//! Hostile clients of a pager: invalid addresses, sizes and numbers, and clients that want all the frames.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeSet;

const HEAP: Range = Range {
    start: 0x1002_0000,
    pages: 6,
};
const AREA: Range = Range {
    start: 0x1020_0000,
    pages: 40,
};

fn pages(clients: usize, limit: u64, shared: u64) -> Pages {
    let clients = (0..clients).map(|_| Client::new(HEAP, AREA, limit));
    Pages::new(clients.collect(), shared)
}

/// The whole state.
fn digest(all: &Pages) -> String {
    format!("{all:?}")
}

#[derive(Clone, Debug)]
enum Step {
    Fault(usize, u64, PagerAccess, u64),
    GiveBack(usize, u64, u64),
    Place(usize, u64, usize),
    Reset(usize),
    Keeps(usize),
}

fn address() -> impl Strategy<Value = u64> {
    let near =
        |range: Range| (0..range.pages + 2).prop_map(move |page| range.start - PAGE + page * PAGE);
    prop_oneof![
        6 => near(HEAP), 12 => near(AREA), 1 => any::<u64>(),
        1 => (0u64..3).prop_map(|n| u64::MAX - n * PAGE),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    use PagerAccess::{Execute, Read, Write};
    let access = prop::sample::select([Read, Read, Write, Execute].to_vec());
    let count = || prop_oneof![4 => 0u64..5, 1 => any::<u64>()];
    // One client more than exists.
    let client = || 0usize..4;
    prop_oneof![
        10 => (client(), address(), access, count()).prop_map(|(c, a, x, n)| Step::Fault(c, a, x, n)),
        2 => (client(), address(), count()).prop_map(|(c, a, n)| Step::GiveBack(c, a, n)),
        4 => (client(), prop_oneof![6 => 0u64..50_000, 1 => any::<u64>()], 0usize..5).prop_map(|(c, b, f)| Step::Place(c, b, f)),
        1 => client().prop_map(Step::Reset),
        1 => (0usize..6).prop_map(Step::Keeps),
    ]
}

/// No request brings the pager down, maps a page outside heap and area, or gives a client more than its limit. No two clients
/// get the same frame, because their pools are separate, and a client from which a page is taken had that page.
fn story(steps: Vec<Step>, limit: u64, shared: u64) -> TestCaseResult {
    let mut all = pages(3, limit, shared);
    let mut shown: BTreeSet<(usize, u64)> = BTreeSet::new();
    for step in steps {
        let before = digest(&all);
        match step {
            Step::Fault(client, address, access, most) => {
                let Ok(given) = all.fault(client, address, access, most) else {
                    // The pager checks a request before the request changes the state.
                    prop_assert_eq!(before, digest(&all));
                    continue;
                };
                prop_assert!(client < 3 && given.pages >= 1 && given.pages <= most.clamp(1, 64));
                for (other, address) in &given.taken {
                    prop_assert!(shown.remove(&(*other, *address)), "{:?}", given);
                }
                for next in 0..given.pages {
                    let at = given.address + next * PAGE;
                    let is_in =
                        |range: &Range| at >= range.start && at < range.start + range.pages * PAGE;
                    prop_assert!(is_in(&HEAP) || is_in(&AREA));
                    shown.insert((client, at));
                }
                match given.place {
                    Place::Own(frame) => prop_assert!(frame + given.pages <= limit),
                    Place::Shared(frame) => prop_assert!(frame < shared && !given.writable),
                }
            }
            Step::GiveBack(client, address, pages) => {
                if all.give_back(client, address, pages).is_ok() {
                    for next in 0..pages {
                        shown.remove(&(client, address + next * PAGE));
                    }
                } else {
                    prop_assert_eq!(before, digest(&all));
                }
            }
            Step::Place(client, bytes, file) => {
                let Some(client) = all.client(client) else {
                    continue;
                };
                if let Some(at) = client.place(bytes, file) {
                    let pages = bytes.div_ceil(PAGE).max(1);
                    prop_assert!(
                        at >= AREA.start && at + pages * PAGE <= AREA.start + AREA.pages * PAGE
                    );
                } else {
                    prop_assert_eq!(before, digest(&all));
                }
            }
            Step::Reset(client) => {
                all.reset(client);
                shown.retain(|(of, _)| *of != client);
            }
            Step::Keeps(file) => {
                all.keeps(file);
            }
        }
        for client in 0..3 {
            let (given, left) = all.client(client).map(|c| c.count()).unwrap_or_default();
            prop_assert_eq!(given + left, limit);
            let mine = shown.iter().filter(|(of, _)| *of == client).count() as u64;
            // A file that was placed twice may show one frame in two places.
            prop_assert!(mine >= given + all.shares(client));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn hostile_requests(steps in prop::collection::vec(step(), 0..150), limit in 0u64..5, shared in 0u64..5) {
            story(steps, limit, shared)?;
        }

    /// A client that has changed all the pages that it may have is refused, and the records of its pages stay.
    #[test]
    fn who_has_all_he_may_have_is_refused_and_nothing_else(pages_ in 1u64..4) {
        let mut all = pages(1, pages_, 0);
        let at = all.client(0).and_then(|c| c.place(8 * PAGE, 0)).unwrap();
        for page in 0..pages_ {
            for access in [PagerAccess::Read, PagerAccess::Write] {
                prop_assert!(all.fault(0, at + page * PAGE, access, 1).is_ok());
            }
        }
        let before = digest(&all);
        for address in [at + 7 * PAGE, HEAP.start] {
            let refused = all.fault(0, address, PagerAccess::Write, 4);
            prop_assert_eq!(refused, Err(Refusal::NoQuota));
        }
        prop_assert_eq!(before, digest(&all));
    }

    /// A client that reads one page after the other takes no shared page from a client that has no more than its part.
    #[test]
    fn shared_frames_stay_with_who_has_few(frames in 2u64..9, mine in 1u64..5, reads in prop::collection::vec((1usize..3, 0u64..30), 0..200)) {
        let mut all = pages(3, 4, frames);
        let mine = mine.min(frames / 3);
        for client in 0..3 {
            let at = all.client(client).and_then(|c| c.place(30 * PAGE, client));
            prop_assert_eq!(at, Some(AREA.start));
        }
        for page in 0..mine {
            prop_assert!(all.fault(0, AREA.start + page * PAGE, PagerAccess::Read, 1).is_ok());
        }
        for (client, page) in reads {
            if let Ok(given) = all.fault(client, AREA.start + page * PAGE, PagerAccess::Read, 1) {
                prop_assert!(given.taken.iter().all(|(of, _)| *of != 0), "{:?}", given);
            }
        }
        prop_assert_eq!(all.shares(0), mine);
    }
}

#[test]
fn guided_pager() {
    bulkhead_fuzz::target("pager", |bytes| {
        let (limit, shared) = bytes.draw(&(0u64..5, 0u64..5));
        story(bytes.story(&step(), 150), limit, shared)
    });
}
