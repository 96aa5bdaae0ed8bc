//! A manager beside a kernel that refuses any one call: a refusal concerns one group of applications, and a message that the manager does not
//! believe changes nothing.
//!
//! The state is the text of everything that the manager keeps, by applications. Left out: the number of selectors that it has given out and
//! never takes back; the modules, which only its start opens; and whether a sender was already reported for a lie.

use crate::draft::{Draft, Receiver};
use crate::kernel::{self, Fault};
use crate::time;
use crate::world::{Below, State, World};
use bulkhead_abi::environment::Environment;
use bulkhead_abi::news::{News, Standing};
use bulkhead_abi::syscall::{
    REPORT_DONE, SEL_FREE, SEL_OFFERED, SEL_SESSIONS, StopCause, SyscallError,
};
use bulkhead_resmgr::description::{ImportKind, Subsystem, part, read};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// Five groups that have nothing to do with each other.
const TEXT: &str = r#"<system name="x" platform="p">
  <domain name="a" criticality="A">
    <app name="controller" tile="2" program="p" memory="262144B" memory-tile="8"><service restarts="2"/>
      <rgate name="input" slots="4" slot-size="256B"/></app>
    <app name="sensor" tile="3" program="p" memory="262144B" memory-tile="8"><service restarts="1"/>
      <sgate name="controller" to="controller" gate="input" credits="2" label="7" patience="50000000000ns"/></app>
  </domain>
  <domain name="b" criticality="B">
    <app name="store" tile="4" program="p" memory="262144B" memory-tile="8" background="true"><service restarts="3"/>
      <rgate name="priority-0" slots="2" slot-size="64B"/><mgate name="disk" size="8192B" rights="rw" memory-tile="8"/></app>
    <app name="reader" tile="5" program="p" memory="262144B" memory-tile="8"><service restarts="2"/>
      <session name="s" to="store" priority="0" credits="1" label="0" patience="50000000000ns"/></app>
  </domain>
  <domain name="c" criticality="D">
    <app name="pages" tile="6" program="p" memory="262144B" memory-tile="8" background="true"><service restarts="2"/>
      <rgate name="faults" slots="2" slot-size="64B"/></app>
    <app name="paged" tile="7" program="p" memory="262144B" memory-tile="8" pager="pages"><service restarts="2"/></app>
    <app name="alone" tile="9" program="p" memory="262144B" memory-tile="8" heap="lazy"><service restarts="3"/>
      <limit noc="8388608B/s" burst="4096B" kernel-memory="8192B"/></app>
    <app name="far" tile="10" program="p" memory="262144B" memory-tile="8">
      <sgate name="deep" to="deep" gate="input" credits="1" label="1" patience="50000000000ns"/></app>
  </domain>
  <manager name="sub" tile="11" program="tiled/resmgr" memory="2097152B"><limit kernel-memory="20480B"/>
    <domain name="e"><app name="deep" tile="12" program="p" memory="262144B" memory-tile="8"><service restarts="2"/>
      <rgate name="input" slots="2" slot-size="64B"/></app>
      <app name="low" tile="13" program="p" memory="262144B" memory-tile="8"><service restarts="1"/>
      <session name="s" to="store" priority="0" credits="1" label="1" patience="50000000000ns"/></app>
      <app name="lone" tile="14" program="p" memory="262144B" memory-tile="8"><service restarts="2"/>
      <rgate name="priority-0" slots="2" slot-size="64B"/></app></domain>
  </manager>
</system>"#;

/// A manager's part of the description, and the groups of its applications that have something to do with each other.
struct Scene {
    system: Subsystem,
    is_root: bool,
    /// The group of each application, in the order of the description; then that of the manager below.
    groups: &'static [usize],
    count: usize,
    life: Vec<Event>,
}

fn described(text: &str) -> Subsystem {
    read(text).unwrap_or_else(|mistake| panic!("{mistake}"))
}

/// The root manager. The store serves an application below the other manager.
fn root() -> Scene {
    Scene {
        system: described(TEXT),
        is_root: true,
        groups: &[0, 0, 1, 1, 2, 2, 3, 1, 1],
        count: 4,
        life: life(),
    }
}

/// The manager below it, with what the root manager would give it.
fn below() -> Scene {
    let above = described(TEXT);
    let manager = &above.managers[0];
    let modules: Vec<u16> = (0..manager.modules.len() as u16)
        .map(|m| SEL_FREE + m)
        .collect();
    let imports: Vec<u16> = (0..manager.imports.len() as u16)
        .map(|i| SEL_SESSIONS + i)
        .collect();
    Scene {
        system: described(&part(manager, &modules, &imports)),
        is_root: false,
        groups: &[0, 1, 2],
        count: 3,
        life: life_below(),
    }
}

fn of_draft(draft: &Draft) -> String {
    let Draft {
        activity,
        selector,
        memory,
        name,
        tile,
        tile_number,
        purse,
        priority,
        program,
        image,
        layout,
        header,
        gates,
        answers,
        receivers,
        pool,
        pool_at,
        faults,
        told,
        send,
        ends,
        quotas,
        memories,
        pieces,
        modules,
        lost,
    } = draft;
    let receivers = answers.iter().chain(receivers.iter());
    let receivers: Vec<_> = receivers
        .map(
            |Receiver {
                 gate,
                 slots,
                 slot_size,
             }| (gate, slots, slot_size),
        )
        .collect();
    let parts = (
        activity,
        selector,
        memory,
        &name.0,
        tile,
        tile_number,
        purse,
        priority,
        program,
    );
    let contents = (
        image, layout, header, gates, receivers, pool, pool_at, faults,
    );
    let rest = (
        &**told,
        &**send,
        &**ends,
        &**quotas,
        &**memories,
        &**pieces,
        &**modules,
        lost,
    );
    format!("{parts:?} {contents:?} {rest:?}")
}

/// The same without the numbers of selectors and activities. If a manager gives up an application at its start, later applications get other
/// selectors, which are only names.
fn shape(draft: &Draft) -> String {
    let header = Environment {
        activity: 0,
        ..draft.header
    };
    let receivers = draft.answers.iter().chain(draft.receivers.iter());
    let receivers: Vec<_> = receivers.map(|r| (r.slots, r.slot_size)).collect();
    let pool = (draft.pool.is_some(), draft.pool_at.is_some());
    let faults = draft.faults.map(|(_, generation)| generation);
    let memories: Vec<u64> = draft.memories.iter().map(|memory| memory.2).collect();
    let parts = (
        &draft.name.0,
        draft.tile_number,
        draft.priority,
        &draft.program,
    );
    let rest = (&**draft.told, draft.send.len(), &**draft.ends, memories);
    let lost = draft.lost.is_some();
    let gates = &*draft.gates;
    format!("{parts:?} {header:?} {gates:?} {receivers:?} {pool:?} {faults:?} {rest:?} {lost}")
}

fn of_state(state: &State) -> String {
    let State {
        progress,
        restarts,
        is_unsaid,
        filling,
        has_lied: _,
        offers,
        orphan,
    } = state;
    format!(
        "{progress:?} {restarts} {is_unsaid} {} {offers} {orphan:?}",
        filling.is_some()
    )
}

/// The whole state: that of each group, and what the manager knows about services.
fn digest(scene: &Scene, world: &World, of_draft: fn(&Draft) -> String) -> (Vec<String>, String) {
    let World {
        system: _,
        drafts,
        states,
        below,
        selectors: _,
        modules: _,
        known,
        unsaid,
        places,
        began,
        code,
    } = world;
    let mut groups = vec![String::new(); scene.count];
    for (index, (draft, state)) in drafts.iter().zip(states.iter()).enumerate() {
        groups[scene.groups[index]] += &format!("{}\n{}\n", of_draft(draft), of_state(state));
    }
    for Below {
        draft,
        name,
        foreground,
        phase,
        has_lied: _,
    } in below.iter()
    {
        groups[scene.groups[states.len()]] +=
            &format!("{}\n{name} {foreground} {phase:?}\n", of_draft(draft));
    }
    let rest = format!(
        "{:?} {:?} {:?} {began:?} {code}",
        **known, **unsaid, **places
    );
    (groups, rest)
}

/// What happens to a manager.
#[derive(Clone, Debug)]
enum Event {
    /// An application stops, if it is alive.
    Stops(usize, StopCause),
    /// The sender at this place (an application, the manager below, or nobody) says that it offers what a selector names.
    Offers(usize, u16),
    /// The sender at this place reports a word.
    Reports(usize, u64),
    /// The manager above says a word.
    Hears(u64),
    /// The manager works for this many turns.
    Works(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let cause = prop_oneof![
        Just(StopCause::Exit(0)),
        Just(StopCause::Exit(1)),
        Just(StopCause::Panic),
        Just(StopCause::TileLost)
    ];
    let selector =
        prop_oneof![6 => Just(SEL_OFFERED), 1 => SEL_OFFERED..SEL_OFFERED + 3, 1 => any::<u16>()];
    let standing = prop::sample::select(Standing::ALL.to_vec());
    let news = (0u16..3, 0u32..5, standing)
        .prop_map(|(import, restarts, standing)| news(import, restarts, standing));
    let word = || prop_oneof![6 => news.clone(), 1 => (0u64..4).prop_map(|code| REPORT_DONE | code), 1 => any::<u64>()];
    prop_oneof![
        4 => (0usize..9, cause).prop_map(|(index, cause)| Event::Stops(index, cause)),
        3 => (0usize..11, selector).prop_map(|(index, selector)| Event::Offers(index, selector)),
        3 => (prop_oneof![6 => Just(8usize), 1 => 0usize..11], word()).prop_map(|(index, word)| Event::Reports(index, word)),
        1 => word().prop_map(Event::Hears),
        3 => prop_oneof![Just(1000usize), 0usize..40].prop_map(Event::Works),
    ]
}

/// The selector and the activity at a place: applications come first, then the manager below, then nobody.
fn activity(world: &World, place: usize) -> (u16, u16) {
    let drafts = world
        .drafts
        .iter()
        .chain(world.below.iter().map(|below| &below.draft));
    let draft = drafts.take(place + 1).nth(place);
    draft.map_or((u16::MAX, 60_000 + place as u16), |draft| {
        (draft.selector, draft.activity)
    })
}

/// Whether the description alone shows that the manager must not believe an event: services that an application does not have, and news about
/// imports that the manager below does not offer, or that its part does not allow.
fn is_lie(system: &Subsystem, event: &Event) -> bool {
    match *event {
        Event::Offers(place, selector) => {
            let app = system.apps.get(place);
            let has = |app: &bulkhead_resmgr::description::App| {
                let number = selector.checked_sub(SEL_OFFERED).map(usize::from);
                !app.receive.is_empty() && number.is_some_and(|number| number < app.services.len())
            };
            !app.is_some_and(has)
        }
        Event::Reports(place, word) if system.managers.len() == 1 && place == system.apps.len() => {
            match News::from_word(word) {
                None => word & REPORT_DONE == 0,
                Some((number, news)) => {
                    let import = system.managers[0].imports.get(usize::from(number));
                    let is_there =
                        import.is_some_and(|import| matches!(import.kind, ImportKind::Receive(_)));
                    !is_there || news.restarts > 2
                }
            }
        }
        Event::Reports(..) => true,
        Event::Hears(word) => News::from_word(word).is_none(),
        _ => false,
    }
}

/// Works until nothing is left to do, or for this many turns.
fn work(world: &mut World, turns: usize) {
    for turn in 0..turns {
        for activity in kernel::with(|kernel| std::mem::take(&mut kernel.stopped)) {
            world.stopped(activity, StopCause::Killed);
        }
        if !world.has_work() {
            return;
        }
        assert!(turn < 5000, "there is no end of the manager's work");
        world.go_on();
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
struct End {
    /// The state of each group at the end, or why the system did not start.
    groups: Result<Vec<String>, String>,
    /// Calls and transfers of the start, and of the whole run.
    start: (usize, usize),
    all: (usize, usize),
    has_failed: bool,
}

fn used() -> (usize, usize) {
    kernel::with(|kernel| (kernel.calls, kernel.transfers))
}

/// Runs a manager: its start, and then these events.
fn run(scene: &Scene, events: &[Event], fault: Option<Fault>) -> End {
    kernel::reset(fault);
    let world = World::start(&scene.system, scene.is_root);
    let start = used();
    let groups = match world {
        Err(failure) => Err(failure.to_string()),
        Ok(mut world) => {
            work(&mut world, 10_000);
            for (number, event) in events.iter().enumerate() {
                // The clock of each event does not depend on how long the manager waited before.
                time::set((number as u64 + 1) * 1_000_000_000);
                live(scene, &mut world, event);
            }
            work(&mut world, 10_000);
            Ok(digest(scene, &world, shape).0)
        }
    };
    let has_failed = kernel::with(|kernel| kernel.has_failed);
    End {
        groups,
        start,
        all: used(),
        has_failed,
    }
}

fn live(scene: &Scene, world: &mut World, event: &Event) {
    let before = (digest(scene, world, of_draft), used());
    match *event {
        Event::Stops(place, cause) => {
            let (selector, activity) = activity(world, place);
            if kernel::with(|kernel| kernel.alive.remove(&selector)).is_some() {
                world.stopped(activity, cause);
            }
        }
        Event::Offers(place, selector) => {
            let (_, activity) = activity(world, place);
            world.offered(activity, selector);
        }
        Event::Reports(place, word) => {
            let (_, activity) = activity(world, place);
            world.reported(activity, word);
        }
        // The root manager has no manager above it.
        Event::Hears(_) if scene.is_root => {}
        Event::Hears(word) => world.told(word),
        Event::Works(turns) => work(world, turns),
    }
    if is_lie(&scene.system, event) {
        assert!(
            before == (digest(scene, world, of_draft), used()),
            "{event:?} is no news, and changed something"
        );
    }
}

/// Checks what one fault does: it stops the whole start with its reason, or it concerns one group.
fn concerns_one(scene: &Scene, events: &[Event], without: &End, fault: Fault) -> TestCaseResult {
    let with = run(scene, events, Some(fault));
    prop_assert!(with.has_failed, "{:?} did not happen", fault);
    let expected = without.groups.as_ref().expect("it starts");
    match &with.groups {
        Err(why) => {
            let (number, of_start) = match fault {
                Fault::Call(number, _) => (number, without.start.0),
                Fault::Transfer(number) => (number, without.start.1),
            };
            prop_assert!(
                number < of_start,
                "{:?} stopped what had started: {}",
                fault,
                why
            );
            let reasons = ["kernel", "transfer", "module"];
            prop_assert!(
                reasons.iter().any(|reason| why.contains(reason)),
                "{:?}: {}",
                fault,
                why
            );
        }
        Ok(groups) => {
            let differs = |(group, (a, b)): (usize, (&String, &String))| (a != b).then_some(group);
            let all = groups.iter().zip(expected).enumerate();
            let differ: Vec<usize> = all.filter_map(differs).collect();
            prop_assert!(
                differ.len() <= 1,
                "{:?} concerns the groups {:?}",
                fault,
                differ
            );
        }
    }
    Ok(())
}

/// Errors of different kinds: nothing is left, the activity has ended, and its tile was lost.
const ERRORS: [SyscallError; 4] = [
    SyscallError::NoKernelMemory,
    SyscallError::NoActivity,
    SyscallError::Refused,
    SyscallError::TileLost,
];

fn news(import: u16, restarts: u32, standing: Standing) -> u64 {
    News { restarts, standing }.about(import)
}

/// A life with everything in it: services come, applications and a pager fail and are started again, and the manager below speaks.
fn life() -> Vec<Event> {
    vec![
        Event::Offers(2, SEL_OFFERED),
        Event::Works(1000),
        Event::Reports(8, news(0, 0, Standing::Runs)),
        Event::Stops(0, StopCause::Panic),
        Event::Works(3),
        Event::Stops(2, StopCause::Exit(3)),
        Event::Works(1000),
        Event::Offers(2, SEL_OFFERED),
        Event::Stops(4, StopCause::Panic),
        Event::Works(1000),
        Event::Stops(6, StopCause::OutOfMemory),
        Event::Works(1000),
        Event::Reports(8, news(0, 1, Standing::Starts)),
        Event::Works(1000),
        Event::Stops(3, StopCause::Exit(0)),
        Event::Reports(8, REPORT_DONE),
    ]
}

/// A service from above comes and comes back, and applications fail.
fn life_below() -> Vec<Event> {
    vec![
        Event::Hears(news(1, 0, Standing::Runs)),
        Event::Hears(news(1, 0, Standing::Offered)),
        Event::Hears(news(0, 0, Standing::Offered)),
        Event::Works(1000),
        Event::Stops(0, StopCause::Panic),
        Event::Offers(2, SEL_OFFERED),
        Event::Works(2),
        Event::Hears(news(1, 1, Standing::Offered)),
        Event::Hears(news(0, 1, Standing::Offered)),
        Event::Stops(2, StopCause::Exit(2)),
        Event::Works(1000),
        Event::Stops(1, StopCause::Panic),
        Event::Works(1000),
        Event::Hears(news(1, 2, Standing::Ended)),
        Event::Hears(news(0, 2, Standing::ManagerGone)),
        Event::Works(1000),
    ]
}

/// Each call and each transfer of a whole life is refused once.
#[test]
fn a_refusal_concerns_one_group() {
    // Starting everything takes this many calls, and each application that comes back needs about ten.
    for (scene, least) in [(root(), (200, 50)), (below(), (60, 40))] {
        let without = run(&scene, &scene.life, None);
        assert!(without.groups.is_ok() && !without.has_failed);
        let (calls, transfers) = without.all;
        let later = calls - without.start.0;
        assert!(
            without.start.0 > least.0 && later > least.1,
            "{calls}, {later}"
        );
        let calls = (0..calls).flat_map(|call| ERRORS.map(|error| Fault::Call(call, error)));
        let (mut stopped, mut count) = (0, 0);
        for fault in calls.chain((0..transfers).map(Fault::Transfer)) {
            concerns_one(&scene, &scene.life, &without, fault)
                .unwrap_or_else(|why| panic!("{why}"));
            stopped += usize::from(run(&scene, &[], Some(fault)).groups.is_err());
            count += 1;
        }
        println!("{count} faults, of which {stopped} stop the start");
        assert!(stopped > 0);
    }
}

/// The manager is told what it must not believe.
#[test]
fn lies_change_nothing() {
    kernel::reset(None);
    let scene = root();
    let mut world = World::start(&scene.system, true).unwrap_or_else(|failure| panic!("{failure}"));
    work(&mut world, 10_000);
    let lies = [
        Event::Offers(1, SEL_OFFERED),
        Event::Offers(2, SEL_OFFERED - 1),
        Event::Offers(2, SEL_OFFERED + 1),
        Event::Offers(8, SEL_OFFERED),
        Event::Offers(10, SEL_OFFERED),
        Event::Reports(8, news(0, 3, Standing::Offered)),
        Event::Reports(8, news(7, 0, Standing::Offered)),
        Event::Reports(8, 77),
        Event::Reports(3, REPORT_DONE | 1),
        Event::Reports(10, REPORT_DONE | 1),
    ];
    for lie in lies {
        assert!(is_lie(&scene.system, &lie), "{lie:?}");
        live(&scene, &mut world, &lie);
    }
    // What has ended stays ended, and old news is ignored.
    let over = news(0, 2, Standing::Ended);
    live(&scene, &mut world, &Event::Reports(8, over));
    work(&mut world, 10_000);
    let before = digest(&scene, &world, of_draft);
    for restarts in 0..3 {
        let old = news(0, restarts, Standing::Offered);
        live(&scene, &mut world, &Event::Reports(8, old));
    }
    assert!(before == digest(&scene, &world, of_draft));
}

/// A life of random events; one call or transfer in it is refused.
///
/// If an event comes while work is left, each application has come only as far as the work done for it, and an application that is given up
/// needs no work. So the other groups end in the same way only if all work is done before each next event. Any other life must end, and must
/// believe no lies.
fn story(scene: &Scene, events: Vec<Event>, place: u16, error: usize) -> TestCaseResult {
    let fault = |(calls, transfers): (usize, usize)| {
        let place = usize::from(place) % (calls + transfers);
        match place.checked_sub(calls) {
            None => Fault::Call(place, ERRORS[error % ERRORS.len()]),
            Some(transfer) => Fault::Transfer(transfer),
        }
    };
    let all = run(scene, &events, None).all;
    prop_assert!(run(scene, &events, Some(fault(all))).has_failed);
    let calm = events.into_iter();
    let calm: Vec<Event> = calm
        .flat_map(|event| [event, Event::Works(10_000)])
        .collect();
    let without = run(scene, &calm, None);
    concerns_one(scene, &calm, &without, fault(without.all))
}

/// Each case is four lives, so there are fewer by default.
fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(64),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_refusal_in_any_life_concerns_one_group(
        events in prop::collection::vec(event(), 0..40), place in any::<u16>(), error in 0usize..4, is_root in any::<bool>(),
    ) {
        let scene = if is_root { root() } else { below() };
        story(&scene, events, place, error)?;
    }
}

#[test]
fn guided_manager() {
    let (root, below) = (root(), below());
    bulkhead_fuzz::target("manager", |bytes| {
        let (place, error, is_root) = bytes.draw(&(any::<u16>(), 0usize..4, any::<bool>()));
        let scene = if is_root { &root } else { &below };
        story(scene, bytes.story(&event(), 40), place, error)
    });
}
