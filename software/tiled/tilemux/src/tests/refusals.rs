//! A request is checked before it changes anything, and a witness of changes sees all of them.

use crate::mux::{Access, Mux, Witness};
use crate::tests::{Tile, done};
use bulkhead_abi::dtu::{NO_ENDPOINT, TLB_READ, TLB_WRITE};
use bulkhead_abi::environment::ENVIRONMENT_BASE;
use bulkhead_abi::marker::{MarkerKind, Since};
use bulkhead_abi::syscall::{MAP_LAZY, StopCause};
use bulkhead_abi::tilemux::Request;
use bulkhead_exec::tile::{Cost, Decision, Policy};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;

/// The witnessed state: from when each activity is ready, and from when its budget lets it run.
#[derive(Debug, Default)]
struct Heard {
    members: BTreeMap<u16, (u64, u64)>,
    now: u64,
}

impl Witness for Heard {
    fn tell(&mut self, kind: MarkerKind, since: Since) {
        let Since { activity, moment } = since;
        if kind == MarkerKind::MuxMember {
            self.members.remove(&activity);
            if moment != Since::NEVER {
                self.members.insert(activity, (Since::NEVER, 0));
            }
            return;
        }
        let member = self.members.get_mut(&activity);
        let member = member.expect("it was said that it is there");
        match kind {
            MarkerKind::MuxReady => member.0 = moment.max(self.now),
            MarkerKind::MuxBudget => member.1 = moment,
            other => panic!("{other:?} is nothing of a witness"),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Request(Request),
    Wait(u16, u16, u64),
    Message(u16, u16),
    Fault(u16, u64),
    Translate(u16, u64, u64),
    Suspend(u16),
    Wake(u16),
    Run(u64),
}

/// Addresses and counts of pages: sensible, at an edge, or any.
fn pages() -> impl Strategy<Value = (u64, u64)> {
    let address = prop_oneof![
        8 => (0u64..12).prop_map(|page| ENVIRONMENT_BASE + page * 4096),
        4 => (0u64..6).prop_map(|span| ENVIRONMENT_BASE + (span << 21) - 4096),
        2 => (0u64..4).prop_map(|top| (top << 30) - 4096 * (top.min(1))),
        1 => any::<u64>(),
    ];
    let count = prop_oneof![10 => 0u64..6, 2 => 500u64..1100, 1 => any::<u64>()];
    (address, count)
}

fn request() -> impl Strategy<Value = Request> {
    let id = || prop_oneof![20 => 1u16..6, 1 => any::<u16>()];
    let physical = || prop_oneof![10 => (0u64..64).prop_map(|page| 0x8100_0000 + page * 4096), 1 => any::<u64>()];
    let rights =
        || prop_oneof![10 => 1u8..8, 3 => (1u8..8).prop_map(|r| r | MAP_LAZY), 1 => any::<u8>()];
    let few = || prop_oneof![10 => 0u64..8, 1 => any::<u64>()];
    prop_oneof![
        3 => (id(), few()).prop_map(|(activity, table_pages)| Request::Create { activity, table_pages }),
        4 => (id(), pages(), physical(), rights()).prop_map(|(activity, (address, pages), physical, rights)| Request::Map {
            activity, address, physical, pages, rights,
        }),
        1 => (id(), any::<u8>()).prop_map(|(activity, bucket)| Request::SetBucket { activity, bucket }),
        2 => (id(), 0u64..4000, 0u64..6000, any::<u8>(), 0u64..5000).prop_map(|(activity, budget, period, priority, start)| Request::SetBudget {
            activity, budget, period, priority, start,
        }),
        3 => id().prop_map(|activity| Request::Start { activity, entry: ENVIRONMENT_BASE, stack: ENVIRONMENT_BASE }),
        1 => id().prop_map(|activity| Request::Wake { activity }),
        1 => id().prop_map(|activity| Request::Stop { activity }),
        2 => (id(), any::<u16>(), pages(), few()).prop_map(|(activity, endpoint, (address, pages), table_pages)| Request::SetPager {
            activity, endpoint, address, pages, table_pages,
        }),
        1 => (id(), any::<u8>(), few()).prop_map(|(activity, place, pages)| Request::Tables {
            activity, physical: 0x9000_0000 + u64::from(place) * 0x800, pages,
        }),
        4 => (id(), pages(), physical(), 0u8..9).prop_map(|(activity, (address, pages), physical, rights)| Request::MapPages {
            activity, address, physical, pages, rights,
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let endpoint = || prop_oneof![Just(NO_ENDPOINT), 20u16..22];
    prop_oneof![
        12 => request().prop_map(Step::Request),
        3 => (1u16..6, endpoint(), prop_oneof![Just(0u64), 0u64..9000]).prop_map(|(id, e, t)| Step::Wait(id, e, t)),
        2 => (1u16..6, 20u16..22).prop_map(|(id, e)| Step::Message(id, e)),
        2 => (1u16..6, pages()).prop_map(|(id, (address, _))| Step::Fault(id, address)),
        4 => (1u16..6, pages(), 1u64..4).prop_map(|(id, (address, _), rights)| Step::Translate(id, address, rights)),
        1 => (1u16..6).prop_map(Step::Suspend),
        1 => (1u16..6).prop_map(Step::Wake),
        4 => (0u64..2000).prop_map(Step::Run),
    ]
}

/// Zero words count as absent.
fn digest(mux: &Mux<Heard>, tile: &Tile) -> String {
    let used: BTreeMap<_, _> = tile.memory.iter().filter(|(_, word)| **word != 0).collect();
    let (memory, heard) = (format!("{used:x?}"), format!("{mux:?}"));
    format!("{memory}\n{heard}\n{}", tile.seen())
}

/// Whether a page that the unit uses for an activity belongs to that activity, with these rights.
fn is_true<W: Witness>(
    mux: &Mux<W>,
    tile: &Tile,
    (id, page, physical, rights): (u16, u64, u64, u64),
) -> bool {
    let space = mux
        .place(id)
        .and_then(|place| mux.at(place))
        .map(|activity| activity.space);
    let there = space.and_then(|space| space.translate(tile, page));
    there.is_some_and(|(at, allowed)| {
        let read = allowed.read || rights & TLB_READ == 0;
        let write = allowed.write || rights & TLB_WRITE == 0;
        at == physical && read && write
    })
}

/// A page from a pager ends in every possible way, and no translation is left, whichever activity then has the number.
#[test]
fn translations_end_with_what_they_lead_to() {
    let base = 0x3000_0000;
    let map = |physical, rights| Request::MapPages {
        activity: 1,
        address: base,
        physical,
        pages: 1,
        rights,
    };
    let (first, second) = (0x8100_0000, 0x8200_0000);
    let stop = Request::Stop { activity: 1 };
    let ends: [(&str, &[Request]); 5] = [
        ("taken back", &[map(first, 0)]),
        ("another page", &[map(second, 3)]),
        ("only to read", &[map(first, 1)]),
        ("stopped", &[stop]),
        ("taken back, stopped", &[map(first, 0), stop]),
    ];
    for (how, requests) in ends {
        let (mut mux, mut tile) = (Mux::new(Policy::Throughput, 1000, ()), Tile::default());
        for id in [1, 2] {
            let create = Request::Create {
                activity: id,
                table_pages: 8,
            };
            let paged = Request::SetPager {
                activity: id,
                endpoint: 30,
                address: base,
                pages: 4,
                table_pages: 8,
            };
            for request in [create, paged] {
                done(&mut mux, &mut tile, request, 0).unwrap();
            }
        }
        done(&mut mux, &mut tile, map(first, 3), 0).unwrap();
        assert!(mux.translate(&mut tile, 1, base, TLB_READ | TLB_WRITE));
        assert!(!mux.translate(&mut tile, 2, base, TLB_READ));
        for request in requests {
            done(&mut mux, &mut tile, *request, 0).unwrap();
        }
        let left = |mux: &Mux, tile: &Tile| {
            let mut all = tile.translations.iter();
            all.any(|known| !is_true(mux, tile, *known))
        };
        assert!(!left(&mux, &tile), "{how}");
        let is_second = requests.contains(&map(second, 3));
        let writes = mux.translate(&mut tile, 1, base, TLB_WRITE);
        assert_eq!(writes, is_second, "{how}");
        // Another activity has the number.
        if mux.place(1).is_none() {
            let create = Request::Create {
                activity: 1,
                table_pages: 8,
            };
            done(&mut mux, &mut tile, create, 0).unwrap();
            assert!(!left(&mux, &tile), "{how}");
            assert!(!mux.translate(&mut tile, 1, base, TLB_READ), "{how}");
        }
    }
}

/// Requests of the kernel, faults, messages and time, in any order.
fn story(steps: Vec<Step>, realtime: bool) -> TestCaseResult {
    let policy = if realtime {
        Policy::Realtime
    } else {
        Policy::Throughput
    };
    let mut mux = Mux::new(policy, 1000, Heard::default());
    let mut tile = Tile::default();
    let mut now = 1;
    for (index, step) in steps.into_iter().enumerate() {
        mux.witness.now = now;
        match step {
            Step::Request(mut request) => {
                // The kernel gives no memory for tables twice.
                if let Request::Tables { physical, .. } = &mut request {
                    *physical += index as u64 * 0x10_0000;
                }
                let before = digest(&mux, &tile);
                if let Err(error) = done(&mut mux, &mut tile, request, now) {
                    prop_assert_eq!(
                        before,
                        digest(&mux, &tile),
                        "{:?} was refused: {:?}",
                        request,
                        error
                    );
                }
            }
            Step::Wait(id, endpoint, until) => {
                if let Some(place) = mux.place(id).filter(|place| mux.scheduler.is_ready(*place)) {
                    mux.wait(&tile, place, endpoint, until, now);
                }
            }
            Step::Message(id, endpoint) => {
                if let Some(place) = mux.place(id) {
                    mux.message(place, endpoint, || now);
                }
            }
            Step::Fault(id, address) => {
                if let Some(place) = mux.place(id) {
                    mux.fault(&mut tile, place, address, Access::Read);
                }
            }
            Step::Translate(id, address, rights) => {
                mux.translate(&mut tile, id, address, rights);
            }
            Step::Suspend(id) => {
                if let Some(place) = mux.place(id).filter(|place| mux.scheduler.is_ready(*place)) {
                    mux.suspend(place, StopCause::Panic, now);
                }
            }
            Step::Wake(id) => {
                if let Some((place, ..)) = mux.suspended(id) {
                    mux.wake(place, now);
                }
            }
            Step::Run(time) => {
                let end = now + time;
                if let Decision::Run { member, .. } = mux.decide(now) {
                    mux.witness.now = end;
                    mux.charge(member, Cost::Run, now, end);
                }
                now = end;
            }
        }
        mux.witness.now = now;
        // The unit knows no translation that is not in the page tables.
        for known in &tile.translations {
            prop_assert!(is_true(&mux, &tile, *known), "{:x?}", known);
        }
        // The running activity is ready and may run. If an activity may run, one runs.
        let chosen = match mux.decide(now) {
            Decision::Run { member, .. } => mux.at(member).map(|activity| activity.id),
            Decision::Idle { .. } => None,
        };
        let heard = &mux.witness;
        let may = |(ready, budget): &(u64, u64)| *ready <= now && *budget <= now;
        let can = heard.members.values().any(may);
        prop_assert_eq!(chosen.is_some(), can, "at {}: {:?}", now, heard);
        let heard = heard.members.clone();
        if let Some(chosen) = chosen {
            prop_assert!(may(&heard[&chosen]), "{} at {}: {:?}", chosen, now, heard);
        }
        for (id, (ready, _)) in heard {
            let place = mux.place(id).expect("it is there");
            prop_assert_eq!(
                mux.scheduler.is_ready(place),
                ready <= now,
                "{} at {}",
                id,
                now
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_refused_changes_nothing(
        steps in proptest::collection::vec(step(), 1..120), realtime in any::<bool>(),
    ) {
            story(steps, realtime)?;
        }
}

#[test]
fn guided_tilemux() {
    bulkhead_fuzz::target("tilemux", |bytes| {
        let realtime = bytes.draw(&any::<bool>());
        story(bytes.story(&step(), 120), realtime)
    });
}
