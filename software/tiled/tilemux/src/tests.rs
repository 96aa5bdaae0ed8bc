//! The decisions of TileMux on a tile that only records.

mod refusals;

use crate::mux::{Access, Entry, Machine, Mux, Witness, panic_cause};
use bulkhead_abi::dtu::{NO_ENDPOINT, TLB_READ, TLB_WRITE};
use bulkhead_abi::environment::{ENVIRONMENT_BASE, SHARED_OFFSET};
use bulkhead_abi::memory_map::DTU_BASE;
use bulkhead_abi::syscall::{MAP_LAZY, StopCause};
use bulkhead_abi::tilemux::{REQUEST_PIECES, Request, TileMuxError, table_pages};
use bulkhead_exec::tile::{Cost, Decision, Policy};
use bulkhead_hal::paging::{PAGE, Pool, TableMemory, give};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SLICE: u64 = 1000;
/// Pages for page tables.
const TABLES: u64 = 200;

#[derive(Debug)]
pub struct Tile {
    pub memory: BTreeMap<u64, u64>,
    tables: Pool,
    halves: BTreeMap<u64, u32>,
    translations: Vec<(u16, u64, u64, u64)>,
    unread: Vec<(u16, u16)>,
}

/// A tile with pages for page tables.
impl Default for Tile {
    fn default() -> Self {
        let mut tile = Self {
            memory: BTreeMap::new(),
            tables: Pool::default(),
            halves: BTreeMap::new(),
            translations: Vec::new(),
            unread: Vec::new(),
        };
        give(&mut tile, 0x8800_0000, TABLES).unwrap();
        tile
    }
}

impl Tile {
    /// Everything except the memory, as text.
    pub fn seen(&self) -> String {
        let seen = (&self.tables, &self.halves, &self.translations, &self.unread);
        format!("{seen:?}")
    }
}

impl TableMemory for Tile {
    fn read(&self, physical: u64) -> u64 {
        self.memory.get(&physical).copied().unwrap_or(0)
    }
    fn write(&mut self, physical: u64, value: u64) {
        self.memory.insert(physical, value);
    }
    fn pool(&mut self) -> &mut Pool {
        &mut self.tables
    }
}

impl Machine for Tile {
    fn has_message(&self, activity: u16, endpoint: u16) -> bool {
        let mut unread = self.unread.iter();
        unread.any(|(a, e)| *a == activity && (*e == endpoint || endpoint == NO_ENDPOINT))
    }
    fn insert_translation(&mut self, activity: u16, page: u64, physical: u64, rights: u64) {
        self.translations.push((activity, page, physical, rights));
    }
    fn forget_translations(&mut self) {
        self.translations.clear();
    }
    fn write_half(&mut self, physical: u64, value: u32) {
        self.halves.insert(physical, value);
    }
}

/// Carries out a request in all its pieces, as TileMux does.
pub fn done<W: Witness>(
    mux: &mut Mux<W>,
    tile: &mut Tile,
    request: Request,
    now: u64,
) -> Result<Option<(u16, Entry)>, TileMuxError> {
    // The ranges in tests are longer than the kernel allows.
    for _ in 0..REQUEST_PIECES + 4 {
        let answer = mux.request(tile, request, now);
        if answer != Err(TileMuxError::Again) {
            return answer;
        }
    }
    panic!("{request:?} has no end")
}

fn region(id: u16) -> u64 {
    0x8010_0000 + u64::from(id) * 0x10_0000
}

/// Creates, maps and starts an activity: environment read-only, one writable page, one of code.
fn start(mux: &mut Mux, tile: &mut Tile, id: u16) {
    let create = Request::Create {
        activity: id,
        table_pages: table_pages(0x1_0000),
    };
    assert_eq!(done(mux, tile, create, 0), Ok(None));
    for (page, rights) in [(0, 1), (1, 3), (2, 5)] {
        let map = Request::Map {
            activity: id,
            address: ENVIRONMENT_BASE + page * 4096,
            physical: region(id) + page * 4096,
            pages: 1,
            rights,
        };
        assert_eq!(done(mux, tile, map, 0), Ok(None));
    }
    let begin = Request::Start {
        activity: id,
        entry: 0x1000_2000,
        stack: 0x1000_2000,
    };
    let (started, entry) = done(mux, tile, begin, 0).unwrap().unwrap();
    assert_eq!(
        (started, entry.entry, entry.stack),
        (id, 0x1000_2000, 0x1000_2000)
    );
}

#[test]
fn alone_nobody_is_interrupted() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    assert_eq!(mux.decide(0), Decision::Idle { until: None });
    start(&mut mux, &mut tile, 1);
    assert_eq!(
        mux.decide(0),
        Decision::Run {
            member: 0,
            until: None
        }
    );
    assert_eq!(tile.halves[&(region(1) + SHARED_OFFSET)], 0);
}

#[test]
fn sharing_is_told_to_everybody_and_ends() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    start(&mut mux, &mut tile, 1);
    start(&mut mux, &mut tile, 2);
    for id in [1, 2] {
        assert_eq!(tile.halves[&(region(id) + SHARED_OFFSET)], 1);
    }
    assert_eq!(
        mux.decide(0),
        Decision::Run {
            member: 0,
            until: Some(SLICE)
        }
    );
    mux.charge(0, Cost::Run, 0, SLICE);
    assert_eq!(
        mux.decide(SLICE),
        Decision::Run {
            member: 1,
            until: Some(2 * SLICE)
        }
    );
    mux.remove(&mut tile, 2);
    assert_eq!(tile.halves[&(region(1) + SHARED_OFFSET)], 0);
    assert_eq!(
        mux.decide(SLICE),
        Decision::Run {
            member: 0,
            until: None
        }
    );
    assert!(mux.place(2).is_none());
}

#[test]
fn waiting_ends_by_message_or_time() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    start(&mut mux, &mut tile, 1);
    mux.wait(&tile, 0, 20, 500, 0);
    assert_eq!(mux.decide(0), Decision::Idle { until: Some(500) });
    assert!(!mux.message(0, 21, || 0));
    assert_eq!(mux.decide(0), Decision::Idle { until: Some(500) });
    assert!(mux.message(0, 20, || 0));
    assert_eq!(
        mux.decide(0),
        Decision::Run {
            member: 0,
            until: None
        }
    );
    mux.wait(&tile, 0, 20, 500, 0);
    assert_eq!(
        mux.decide(500),
        Decision::Run {
            member: 0,
            until: None
        }
    );
    // An activity does not wait for a message that is there, or for a moment that has passed.
    tile.unread.push((1, 20));
    mux.wait(&tile, 0, NO_ENDPOINT, 0, 500);
    assert_eq!(
        mux.decide(500),
        Decision::Run {
            member: 0,
            until: None
        }
    );
    mux.wait(&tile, 0, 22, 400, 500);
    assert_eq!(
        mux.decide(500),
        Decision::Run {
            member: 0,
            until: None
        }
    );
    mux.wait(&tile, 0, 22, 0, 500);
    assert_eq!(mux.decide(500), Decision::Idle { until: None });
}

#[test]
fn the_unit_gets_only_what_the_activity_may_use() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    start(&mut mux, &mut tile, 1);
    let page = |n: u64| ENVIRONMENT_BASE + n * 4096;
    assert!(mux.translate(&mut tile, 1, page(0) + 77, TLB_READ));
    assert!(!mux.translate(&mut tile, 1, page(0), TLB_WRITE));
    assert!(mux.translate(&mut tile, 1, page(1), TLB_READ | TLB_WRITE));
    assert!(!mux.translate(&mut tile, 1, page(3), TLB_READ));
    assert!(!mux.translate(&mut tile, 1, DTU_BASE, TLB_READ));
    assert!(!mux.translate(&mut tile, 1, u64::MAX, TLB_READ));
    assert!(!mux.translate(&mut tile, 2, page(0), TLB_READ));
    let rights = TLB_READ | TLB_WRITE;
    let expected = [
        (1, page(0), region(1), TLB_READ),
        (1, page(1), region(1) + 4096, rights),
    ];
    assert_eq!(tile.translations, expected);
    assert_eq!(mux.readable(&tile, 1, page(1) + 5), Some(region(1) + 4101));
    assert_eq!(mux.readable(&tile, 1, DTU_BASE), None);
    assert_eq!(mux.readable(&tile, 1, 0x8000_0000), None);
}

#[test]
fn lazy_pages_are_mapped_when_they_are_used() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    let create = Request::Create {
        activity: 1,
        table_pages: table_pages(0x1_0000),
    };
    assert_eq!(done(&mut mux, &mut tile, create, 0), Ok(None));
    let base = ENVIRONMENT_BASE + 0x8000;
    let map = |address, pages, rights| Request::Map {
        activity: 1,
        address,
        physical: region(1) + 0x8000,
        pages,
        rights,
    };
    for wrong in [
        map(base, 0, 11),
        map(base + 1, 4, 11),
        map(u64::MAX - 4095, 1, 11),
        map(base, 4, 8),
    ] {
        assert_eq!(
            done(&mut mux, &mut tile, wrong, 0),
            Err(TileMuxError::BadRequest)
        );
    }
    assert_eq!(done(&mut mux, &mut tile, map(base, 4, 11), 0), Ok(None));
    // One region for each activity.
    assert_eq!(
        done(&mut mux, &mut tile, map(base + 0x10_000, 4, 11), 0),
        Err(TileMuxError::BadRequest)
    );
    let found = |mux: &Mux, tile: &Tile, page: u64| mux.readable(tile, 1, base + page * 4096);
    assert_eq!(found(&mux, &tile, 1), None);
    assert!(!mux.fault(&mut tile, 0, base - 1, Access::Read));
    assert!(!mux.fault(&mut tile, 0, base + 4 * 4096, Access::Read));
    assert!(!mux.fault(&mut tile, 0, base, Access::Execute));
    assert!(!mux.fault(&mut tile, 1, base, Access::Read));
    // One table per trap, so a more urgent activity can come in between.
    for mapped in [None, Some(region(1) + 0x9000)] {
        assert!(mux.fault(&mut tile, 0, base + 4096 + 5, Access::Write));
        assert_eq!(found(&mux, &tile, 1), mapped);
    }
    assert_eq!(found(&mux, &tile, 0), None);
    // A second fault at a mapped page is a real one.
    assert!(!mux.fault(&mut tile, 0, base + 4096, Access::Write));
    // The unit's first use maps a page, too.
    assert!(mux.translate(&mut tile, 1, base + 3 * 4096, TLB_WRITE));
    assert_eq!(found(&mux, &tile, 3), Some(region(1) + 0xB000));
    assert_eq!(
        [12, 13, 15, 2].map(crate::mux::access_of_cause),
        [
            Some(Access::Execute),
            Some(Access::Read),
            Some(Access::Write),
            None
        ]
    );
}

#[test]
fn a_pager_gives_pages() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    let base = 0x1002_0000;
    let create = Request::Create {
        activity: 1,
        table_pages: table_pages(0x1_0000),
    };
    let set = |pages| Request::SetPager {
        activity: 1,
        endpoint: 33,
        address: base,
        pages,
        table_pages: table_pages(0x4000),
    };
    let map_as = |address, pages, rights| Request::MapPages {
        activity: 1,
        address,
        physical: region(3),
        pages,
        rights,
    };
    let map = |address, pages| map_as(address, pages, 3);
    let (read, write) = (Access::Read, Access::Write);
    assert_eq!(done(&mut mux, &mut tile, create, 0), Ok(None));
    let bad = Err(TileMuxError::BadRequest);
    assert_eq!(done(&mut mux, &mut tile, map(base, 1), 0), bad);
    assert_eq!(done(&mut mux, &mut tile, set(u64::MAX), 0), bad);
    assert_eq!(done(&mut mux, &mut tile, set(4), 0), Ok(None));
    assert_eq!(done(&mut mux, &mut tile, set(4), 0), bad);
    let start = Request::Start {
        activity: 1,
        entry: 0,
        stack: 0,
    };
    assert!(done(&mut mux, &mut tile, start, 0).is_ok());
    assert_eq!(mux.pager(&tile, 0, base - 1, read), None);
    assert_eq!(mux.pager(&tile, 0, base + 4 * 4096, read), None);
    let asked = Some((33, base + 4096));
    assert_eq!(mux.pager(&tile, 0, base + 4099, read), asked);
    // No activity runs until the page is mapped.
    let cause = StopCause::Fault {
        cause: 15,
        pc: 4,
        value: base,
    };
    mux.suspend(0, cause, 0);
    assert_eq!(mux.suspended(1), Some((0, 33, cause)));
    assert_eq!(mux.decide(5), Decision::Idle { until: None });
    assert!(!mux.message(0, 20, || 5));
    assert_eq!(mux.decide(5), Decision::Idle { until: None });
    assert_eq!(done(&mut mux, &mut tile, map(base + 4096, 4), 5), bad);
    assert_eq!(done(&mut mux, &mut tile, map(base + 4096, 1), 5), Ok(None));
    mux.wake(0, 6);
    assert_eq!(mux.suspended(1), None);
    assert!(matches!(mux.decide(6), Decision::Run { member: 0, .. }));
    // A fault at a mapped page is not for the pager, unless the page's rights do not allow the access.
    assert_eq!(mux.pager(&tile, 0, base + 4096, write), None);
    assert_eq!(mux.pager(&tile, 0, base + 4096, Access::Execute), asked);
    assert!(mux.translate(&mut tile, 1, base + 4096, TLB_WRITE));
    assert!(!mux.translate(&mut tile, 1, base, TLB_WRITE));
    // The pager maps it again, read-only, and takes it back; the unit forgets it each time.
    for (rights, asks) in [(1, [None, asked]), (0, [asked; 2])] {
        assert!(mux.translate(&mut tile, 1, base + 4096, TLB_READ));
        let request = map_as(base + 4096, 1, rights);
        assert_eq!(done(&mut mux, &mut tile, request, 7), Ok(None));
        assert!(tile.translations.is_empty());
        let found = [read, write].map(|access| mux.pager(&tile, 0, base + 4096, access));
        assert_eq!(found, asks);
        assert!(!mux.translate(&mut tile, 1, base + 4096, TLB_WRITE));
    }
    // A page that is not mapped need not be forgotten.
    assert_eq!(done(&mut mux, &mut tile, map_as(base, 4, 0), 8), Ok(None));
    assert_eq!(done(&mut mux, &mut tile, map_as(base, 4, 8), 8), bad);
}

#[test]
fn requests_are_checked() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    start(&mut mux, &mut tile, 1);
    let mut refused =
        |request, error| assert_eq!(done(&mut mux, &mut tile, request, 0), Err(error));
    let create = |activity, table_pages| Request::Create {
        activity,
        table_pages,
    };
    refused(create(1, 10), TileMuxError::WrongState);
    refused(create(2, 0), TileMuxError::NoTable);
    refused(create(2, 1), TileMuxError::NoTable);
    refused(create(2, TABLES), TileMuxError::NoTable);
    let map = |activity, rights| Request::Map {
        activity,
        address: 0,
        physical: 0,
        pages: 1,
        rights,
    };
    refused(map(1, 1), TileMuxError::WrongState);
    refused(map(9, 1), TileMuxError::NoActivity);
    refused(map(1, 2), TileMuxError::BadRequest);
    refused(
        Request::Start {
            activity: 1,
            entry: 0,
            stack: 0,
        },
        TileMuxError::WrongState,
    );
    refused(Request::Stop { activity: 9 }, TileMuxError::NoActivity);
    refused(
        Request::SetBudget {
            activity: 1,
            budget: 2,
            period: 1,
            priority: 0,
            start: 0,
        },
        TileMuxError::BadRequest,
    );
    refused(
        Request::SetBucket {
            activity: 9,
            bucket: 1,
        },
        TileMuxError::NoActivity,
    );
}

/// The page of the unit's registers is in every activity's address space, and no memory takes its place: evicting the lines of a page that
/// leaves there would be a trap of TileMux itself, and the end of its tile.
#[test]
fn nothing_takes_the_place_of_the_units_registers() {
    for (first, pages) in [(0, 1), (0, 2), (1, 1), (1, 64), (3, 4), (4, 4)] {
        let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
        let create = Request::Create {
            activity: 1,
            table_pages: 12,
        };
        let (address, physical) = (DTU_BASE - first * PAGE, region(1));
        let covers = first < pages;
        let map = |rights| Request::Map {
            activity: 1,
            address,
            physical,
            pages,
            rights,
        };
        let pager = Request::SetPager {
            activity: 1,
            endpoint: 30,
            address,
            pages,
            table_pages: 8,
        };
        assert_eq!(done(&mut mux, &mut tile, create, 0), Ok(None));
        for request in [map(3 | MAP_LAZY), map(3), pager] {
            let answer = done(&mut mux, &mut tile, request, 0);
            let expected = match covers {
                true => Err(TileMuxError::BadRequest),
                false => Ok(None),
            };
            assert_eq!(answer, expected, "{request:x?}");
        }
        let begin = Request::Start {
            activity: 1,
            entry: 0,
            stack: 0,
        };
        assert!(done(&mut mux, &mut tile, begin, 0).is_ok());
        let space = mux.at(0).unwrap().space;
        let found = space.translate(&tile, DTU_BASE).map(|found| found.0);
        assert_eq!(found, Some(DTU_BASE));
        // To show it other memory, the range must be set first.
        let show = Request::MapPages {
            activity: 1,
            address: DTU_BASE,
            physical,
            pages: 1,
            rights: 3,
        };
        let bad = Err(TileMuxError::BadRequest);
        assert_eq!(done(&mut mux, &mut tile, show, 0), bad);
    }
}

#[test]
fn there_is_room_for_sixteen() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    for id in 1..=16 {
        start(&mut mux, &mut tile, id);
    }
    let create = Request::Create {
        activity: 17,
        table_pages: 10,
    };
    assert_eq!(
        done(&mut mux, &mut tile, create, 0),
        Err(TileMuxError::Full)
    );
    mux.remove(&mut tile, 3);
    assert_eq!(done(&mut mux, &mut tile, create, 0), Ok(None));
}

/// A program that creates and ends children next to an application does not fragment the page tables that the application needs: when it
/// comes back, as many are there as were promised, wherever they are.
#[test]
fn children_split_no_page_tables_of_others() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    let create = |activity, table_pages| Request::Create {
        activity,
        table_pages,
    };
    // All pages except three: an application, and another program's fifteen children.
    let app = TABLES - 15 * 12 - 3;
    for (id, pages) in [(100, app)].into_iter().chain((1..16).map(|id| (id, 12))) {
        assert_eq!(done(&mut mux, &mut tile, create(id, pages), 0), Ok(None));
        let map = Request::Map {
            activity: id,
            address: ENVIRONMENT_BASE,
            physical: region(id),
            pages: 1,
            rights: 1,
        };
        assert_eq!(done(&mut mux, &mut tile, map, 0), Ok(None));
    }
    // The application and a child end, and another child comes, with pages of both.
    mux.remove(&mut tile, 100);
    mux.remove(&mut tile, 7);
    assert_eq!(done(&mut mux, &mut tile, create(8 + 16, 12), 0), Ok(None));
    assert_eq!(done(&mut mux, &mut tile, create(100, app), 0), Ok(None));
    // It can use all of them: 2 for the unit's page and the root are taken.
    for gib in 1..=(app - 3) / 2 {
        let map = Request::Map {
            activity: 100,
            address: gib << 30,
            physical: region(100),
            pages: 1,
            rights: 1,
        };
        assert_eq!(done(&mut mux, &mut tile, map, 0), Ok(None), "{gib}");
    }
    // Pages mapped for the others stay.
    for id in (1..16).filter(|id| *id != 7) {
        assert_eq!(mux.readable(&tile, id, ENVIRONMENT_BASE), Some(region(id)));
    }
}

/// The kernel has no slot for the end of an activity: the activity no longer runs, keeps its number and place, and goes when the kernel
/// knows or stops it.
#[test]
fn who_has_ended_keeps_its_place_until_the_kernel_knows() {
    for is_told in [false, true] {
        let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
        start(&mut mux, &mut tile, 1);
        start(&mut mux, &mut tile, 2);
        let cause = StopCause::Exit(3);
        mux.end(1, cause, 5);
        assert_eq!(mux.ended(), Some((1, cause)));
        let other = Decision::Run {
            member: 1,
            until: None,
        };
        assert_eq!(mux.decide(5), other);
        // Neither a message nor the kernel wakes it, and no other activity gets its number.
        assert!(!mux.message(0, 20, || 5));
        assert_eq!(mux.suspended(1), None);
        let wake = Request::Wake { activity: 1 };
        assert_eq!(done(&mut mux, &mut tile, wake, 6), Ok(None));
        assert_eq!(mux.decide(6), other);
        let create = Request::Create {
            activity: 1,
            table_pages: 8,
        };
        let wrong = Err(TileMuxError::WrongState);
        assert_eq!(done(&mut mux, &mut tile, create, 7), wrong);
        match is_told {
            true => mux.remove(&mut tile, 1),
            false => {
                let stop = Request::Stop { activity: 1 };
                assert_eq!(done(&mut mux, &mut tile, stop, 8), Ok(None));
            }
        }
        assert_eq!(mux.ended(), None);
        assert_eq!(done(&mut mux, &mut tile, create, 9), Ok(None));
    }
}

#[test]
fn budgets_let_others_run() {
    let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
    start(&mut mux, &mut tile, 1);
    let budget = Request::SetBudget {
        activity: 1,
        budget: 10_000,
        period: 100_000,
        priority: 0,
        start: 0,
    };
    assert_eq!(done(&mut mux, &mut tile, budget, 0), Ok(None));
    // Its sleep must not be charged, so it must sleep through TileMux.
    assert_eq!(tile.halves[&(region(1) + SHARED_OFFSET)], 1);
    assert_eq!(
        mux.decide(0),
        Decision::Run {
            member: 0,
            until: Some(10_000)
        }
    );
    mux.charge(0, Cost::Run, 0, 10_000);
    assert_eq!(
        mux.decide(10_000),
        Decision::Idle {
            until: Some(100_000)
        }
    );
    assert_eq!(
        mux.decide(100_000),
        Decision::Run {
            member: 0,
            until: Some(110_000)
        }
    );
}

#[test]
fn causes() {
    assert_eq!(panic_cause(0), StopCause::Panic);
    assert_eq!(panic_cause(1), StopCause::OutOfMemory);
}

proptest! {
    /// Whatever the kernel requests and applications do, a ready activity runs if there is one, and only living activities run.
    #[test]
    fn somebody_ready_runs(steps in proptest::collection::vec((0u8..6, 1u16..6, 0u64..2000), 1..100)) {
        let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
        let mut alive: BTreeMap<u16, bool> = BTreeMap::new();
        let mut now = 0;
        for (step, id, value) in steps {
            match step {
                0 => if let std::collections::btree_map::Entry::Vacant(place) = alive.entry(id) {
                    start(&mut mux, &mut tile, id);
                    place.insert(true);
                },
                1 => {
                    mux.remove(&mut tile, id);
                    alive.remove(&id);
                }
                2 => if alive.contains_key(&id) {
                    let place = mux.place(id).unwrap();
                    mux.wait(&tile, place, 20, 0, now);
                    alive.insert(id, false);
                },
                3 => {
                    if let Some(place) = mux.place(id) {
                        mux.message(place, 20, || now);
                    }
                    alive.entry(id).and_modify(|ready| *ready = true);
                }
                4 => {
                    if let Some(place) = mux.place(id) {
                        mux.give_way(place);
                    }
                }
                _ => {
                    let start = now;
                    now += value;
                    if let Decision::Run { member, .. } = mux.decide(now) {
                        mux.charge(member, Cost::Run, start, now);
                    }
                }
            }
            match mux.decide(now) {
                Decision::Run { member, until } => {
                    let id = mux.at(member).unwrap().id;
                    prop_assert_eq!(alive.get(&id), Some(&true));
                    prop_assert!(until.is_none_or(|until| until > now));
                    prop_assert_eq!(until.is_some(), alive.values().filter(|ready| **ready).count() > 1);
                }
                Decision::Idle { .. } => prop_assert!(alive.values().all(|ready| !ready)),
            }
        }
    }
}

/// A pager shows an activity read-only memory at the address of its environment: TileMux writes into the activity's own memory, or nowhere.
#[test]
fn tilemux_writes_only_into_memory_that_is_the_activitys_own() {
    let foreign = 0x8070_0000;
    // Whether the manager had mapped an environment of the activity's own before.
    for own in [false, true] {
        let (mut mux, mut tile) = (Mux::new(Policy::Throughput, SLICE, ()), Tile::default());
        start(&mut mux, &mut tile, 1);
        let mut requests = vec![
            Request::Create {
                activity: 2,
                table_pages: table_pages(0x1_0000),
            },
            Request::SetPager {
                activity: 2,
                endpoint: 30,
                address: ENVIRONMENT_BASE,
                pages: 1,
                table_pages: table_pages(4096),
            },
            Request::MapPages {
                activity: 2,
                address: ENVIRONMENT_BASE,
                physical: foreign,
                pages: 1,
                rights: 1,
            },
            Request::Start {
                activity: 2,
                entry: 0x1000_2000,
                stack: 0x1000_2000,
            },
        ];
        if own {
            let map = Request::Map {
                activity: 2,
                address: ENVIRONMENT_BASE,
                physical: region(2),
                pages: 1,
                rights: 1,
            };
            requests.insert(2, map);
        }
        for request in requests {
            assert!(done(&mut mux, &mut tile, request, 0).is_ok(), "{request:?}");
        }
        mux.remove(&mut tile, 1);
        let written: Vec<u64> = tile.halves.keys().copied().collect();
        let mut expected = vec![region(1) + SHARED_OFFSET];
        if own {
            expected.push(region(2) + SHARED_OFFSET);
        }
        assert_eq!(written, expected);
    }
}
