//! Bounds of described systems: a chip worked by hand, and the catalog's quickstart with and without regulation.

use bulkhead_analysis::communication::{
    Chip, FlowBound, Kind, Method, NetworkScenario, Profile, Source, SystemBounds, SystemError,
    TransactionId, transaction_bound,
};
use bulkhead_model::{LoadOptions, System, load_platform_text, load_system};

/// 1 GHz everywhere, so a cycle is a tick. Two tiles and a memory at a crossbar.
const CHIP: &str = r#"
<platform name="small" kind="bare">
  <clock name="core" frequency="1GHz"/>
  <timebase frequency="10MHz"/>
  <pipeline name="p" clock="core" model="inorder" load-to-use="2" multiply="4" divide="34" fp-add="4" fp-multiply="4"
      fp-fma="4" fp-divide="27" fp-sqrt="27" branch-penalty="3" jump-penalty="1" predictor-entries="512" return-stack="6"
      store-buffer="4" load-buffer="2" trap-entry="5" mmio="6" tlb-entries="32" l2-tlb-entries="128" l2-tlb-latency="2"
      page-walk="timed" hardware-ad="true"/>
  <cache name="l1" size="16KiB" ways="4" line="64B" latency="1" mshrs="2" replacement="lru"/>
  <dram name="d" clock="core" banks="8" row="8KiB" bus="8B" burst="64B" cas="11" activate="12" precharge="13"
      write-recovery="14" refresh-interval="0" refresh="0" frontend="5">
    <controller policy="fcfs" queue="32" page="open" channels="1" bank-map="row" xor="false"
        write-cas="8" row-active="28" read-to-precharge="6" column-gap="4" activate-gap="5" four-activates="24" write-to-read="6" read-to-write="2"/>
  </dram>
  <network topology="crossbar" clock="core" width="16B" link="1" router="2" interface="3" header="16B" chunk="512B"
      channels="shared"/>
  <tile id="0" pipeline="p" l1i="l1" l1d="l1" exit="true"/>
  <tile id="1" pipeline="p" l1i="l1" l1d="l1"/>
  <memory id="2" dram="d" size="16MiB"/>
</platform>"#;

/// A line read, alone. Request (16 bytes, 1 cycle on a link): interface 3, first link and router 1 + 2, last link
/// 1 (packet) + 1 + 3 (interface): 11. Memory: frontend 5, precharge 13, window of four activations 24 - 3 * 5 = 9, activate 12, column 11,
/// burst 64 / (2 * 8) = 4: 54. Response (80 bytes, 5 cycles): 3 + 3 + (5 + 1 + 3): 15. Together 80; at one tick a cycle nothing is lost to alignment.
///
/// The other tile has 2 + 2 miss registers. It can hold the link to the memory (1 cycle for each of 4 reads: one input,
/// round robin: 1 packet) and the memory: each read takes 13 + 9 + 12 until its column, and its row stays open for 28 - 12 more, so 50.
/// The victim may follow a write, whose row stays open for 8 + 4 + 14 = 26, 11 longer than its data take (11 + 4).
/// The memory's link (5 each, one input, so in order) adds no wait: what is ahead there was served for longer by the memory.
/// Without that, 4 * 5 more.
#[test]
fn a_small_chip_by_hand() {
    let platform = load_platform_text("small.xml", CHIP, &LoadOptions::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let chip = Chip::new(&platform);
    let read = chip.line_read(0, 2).unwrap();
    assert_eq!(read.uncontended(), 80);
    // Least: the same with an open row: 13 + 9 + 12 less.
    assert_eq!(read.least_round_trip, 80 - 34);
    let mut victim = read.clone();
    victim.outstanding = 1;
    let source = |name: &str, tile, classes| Source {
        name: name.into(),
        tile,
        regulator: None,
        classes,
    };
    let mut scenario = NetworkScenario {
        ticks_per_second: chip.ticks_per_second(),
        resources: chip.resources().to_vec(),
        sources: vec![
            source("victim", 0, vec![victim]),
            source("rival", 1, vec![chip.line_read(1, 2).unwrap()]),
        ],
        tandems: chip.tandems().to_vec(),
    };
    let id = TransactionId {
        source: 0,
        class: 0,
    };
    let bound = transaction_bound(&scenario, id).unwrap();
    assert_eq!(bound.uncontended, 80);
    assert_eq!(
        (bound.path, bound.method),
        (80 + 1 + 4 * 50 + 11, Method::Tandem)
    );
    scenario.tandems.clear();
    let apart = transaction_bound(&scenario, id).unwrap();
    assert_eq!(
        (apart.path, apart.method),
        (80 + 1 + 4 * 50 + 11 + 4 * 5, Method::Order)
    );
    assert!(chip.line_read(9, 2).is_err() && chip.line_read(0, 9).is_err());
    // A chunk of DMA, written: 512 bytes touch 9 bursts and two rows if not aligned. Both rows are opened at the same time: 34, 9 for the second
    // activation, and 3 commands. Then 8 * 4 to the last column, and 8 + 4 for its data: 5 + 46 + 32 + 12 = 95. Request of 528 bytes is 33 cycles:
    // 3 + 3 + (33 + 1 + 3); acknowledgement 11. Its row stays open for 26, 14 longer than its data take.
    let write = chip.dma(0, 2, 512, true, 8).unwrap();
    assert_eq!(write.uncontended(), 43 + 95 + 11);
    let step = write.steps.iter().find(|s| s.tail > 0).unwrap();
    assert_eq!((step.occupancy, step.tail), (46 + 32 + 26, 14));
}

fn quickstart() -> System {
    load_system("quickstart", &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn variant<'a>(system: &'a System, name: &str) -> &'a System {
    let found = system
        .variants
        .iter()
        .find(|v| v.variant.as_deref() == Some(name));
    found.expect("a variant of this name")
}

/// A job as small control programs have it: 20 lines read, 10 written back, one message to the next.
fn profiles(system: &System) -> Vec<Profile> {
    let next = |app: usize| system.apps[app].sgates.first().map(|g| (g.to, 16));
    (0..3)
        .map(|app| Profile {
            app,
            compute: 10_000,
            line_reads: 20,
            line_writes: 10,
            messages: next(app).into_iter().collect(),
            ..Profile::default()
        })
        .collect()
}

fn loop_bound(system: &System) -> FlowBound {
    let bounds = SystemBounds::new(system, &profiles(system)).unwrap();
    bounds.flow(&[0, 1, 2], 100).unwrap()
}

#[test]
fn regulation_lowers_the_bound_of_the_loop() {
    let system = quickstart();
    let [alone, unregulated, regulated] =
        ["alone", "unregulated", "regulated"].map(|name| loop_bound(variant(&system, name)).bound);
    assert!(alone.path < regulated.path && regulated.path < unregulated.path);
    // Three hogs of 8 MiB/s may have 4 KiB and what is outstanding at one time: tens of microseconds, not a millisecond.
    let microseconds =
        |b: &bulkhead_analysis::communication::Bound| b.picoseconds(4_000_000_000) / 1_000_000;
    assert!(microseconds(&regulated) < 100, "{regulated:?}");
    for bound in [&alone, &regulated, &unregulated] {
        assert!(bound.lumped.unwrap() >= bound.path);
        assert!(bound.uncontended < bound.path);
        let parts: u64 = bound.breakdown.iter().map(|r| r.wait).sum();
        assert_eq!(bound.uncontended + parts, bound.path);
    }
}

/// Out of order, a job may become longer than by what its accesses wait, and make more of them. The bound of a single request depends only
/// on what others may send.
#[test]
fn out_of_order_requests_have_bounds_and_flows_have_none() {
    let options = LoadOptions {
        overrides: vec!["@platform=tiled-2ghz-ooo".to_owned()],
        ..LoadOptions::default()
    };
    let system = load_system("quickstart", &options).unwrap_or_else(|e| panic!("{e}"));
    let system = variant(&system, "regulated");
    let bounds = SystemBounds::new(system, &profiles(system)).unwrap();
    let refused = bounds.flow(&[0, 1, 2], 100).unwrap_err();
    assert!(
        matches!(&refused, SystemError::OutOfOrder(why) if why.starts_with("`sensor` runs on a hart that works out of order")),
        "{refused}"
    );
    let request = bounds.transaction(0, Kind::LineRead).unwrap();
    assert!(request.uncontended < request.path, "{request:?}");
}

#[test]
fn without_profiles_everything_is_still_finite() {
    let system = quickstart();
    let bounds = SystemBounds::new(variant(&system, "unregulated"), &[]).unwrap();
    let read = bounds.transaction(0, Kind::LineRead).unwrap();
    assert!(
        read.path > read.uncontended && read.path < 1_000_000,
        "{read:?}"
    );
    let message = bounds.message(0, 1, 16).unwrap();
    assert!(message.path > bounds.transaction(0, Kind::Message(1)).unwrap().path);
}

#[test]
fn what_an_application_may_not_do_has_no_bound() {
    let system = quickstart();
    let bounds = SystemBounds::new(&system, &[]).unwrap();
    let hog = system
        .apps
        .iter()
        .position(|a| a.name == "hog-1")
        .expect("a hog");
    let error = bounds.transaction(hog, Kind::DmaRead).unwrap_err();
    assert_eq!(
        error.to_string(),
        "application hog-1 has no memory gate to read"
    );
    assert!(bounds.flow(&[0], 0).is_err(), "no profile");
    assert_eq!(
        bounds.transaction(99, Kind::LineRead).unwrap_err(),
        SystemError::NoApp(99)
    );
    let wrong = Profile {
        app: 77,
        ..Profile::default()
    };
    assert_eq!(
        SystemBounds::new(&system, &[wrong]).unwrap_err(),
        SystemError::NoApp(77)
    );
}

/// What a tile pair of `m3/interference-messages` did alone in a run of 160 messages of 2 KiB and their replies: a unit has one command at
/// a time, so none of them waits for another one, whatever the rivals are allowed.
#[test]
fn messages_of_one_unit_do_not_wait_for_each_other() {
    let system = load_system("m3/interference-messages", &LoadOptions::default()).unwrap();
    let system = variant(&system, "messages-transfers");
    let app = |name: &str| system.apps.iter().position(|a| a.name == name).unwrap();
    let (source, sink) = (app("foreground"), app("foreground-sink"));
    let measured = 282_402;
    let profile = |app, to, compute| Profile {
        app,
        compute,
        compute_includes_network: true,
        messages: vec![(to, 2016); 204],
        ..Profile::default()
    };
    let profiles = [profile(source, sink, measured), profile(sink, source, 0)];
    let bounds = SystemBounds::new(system, &profiles).unwrap();
    let bound = bounds.flow(&[source, sink], 0).unwrap().bound;
    let waits = bound.breakdown.iter();
    let received = waits.filter(|r| r.resource.starts_with("receive unit"));
    assert_eq!(received.map(|r| r.wait).sum::<u64>(), 0, "{bound:?}");
    assert!(
        measured < bound.path && bound.path < 3 * measured,
        "{bound:?}"
    );
}

/// A wait for tokens is told apart: with a limit, a request's bound is that without one (to a per cent, because windows are cut otherwise),
/// and the wait is beside it.
#[test]
fn the_wait_for_tokens_is_not_in_the_path() {
    let system = quickstart();
    let hog = |name: &str| {
        let system = variant(&system, name);
        let app = system.apps.iter().position(|a| a.name == "hog-1").unwrap();
        let bounds = SystemBounds::new(system, &[]).unwrap();
        bounds.transaction(app, Kind::LineRead).unwrap()
    };
    let (free, limited) = (hog("unregulated"), hog("regulated"));
    assert_eq!(free.own_bucket, 0);
    // A line takes 16 refills of 2000 ticks at 8 MiB a second.
    assert!(limited.own_bucket >= 16 * 2000, "{limited:?}");
    assert!(
        100 * limited.path <= 101 * free.path,
        "{limited:?} {free:?}"
    );
    assert_eq!(limited.whole(), limited.path + limited.own_bucket);
}
