//! The tiled OS on harts that work out of order: what it computes is what it computes in order; requests keep to their bounds; and every
//! wait is booked.

use bulkhead_machine::ledger::{Level, Resource};
use bulkhead_machine::machine::Machine;
use bulkhead_machine::types::{Owner, Tick};
use bulkhead_report::result::{FlowResult, RunResult, VariantResult};
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{self, Finished, Options};
use bulkhead_runner::session::Strike;
use bulkhead_system_tests::boot_text;
use bulkhead_system_tests::whole::finished;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A chip in order, and the same out of order.
const CHIPS: [(&str, &str); 2] = [
    ("tiled-2ghz", "tiled-2ghz-ooo"),
    ("tiled-star", "tiled-star-ooo"),
];

/// Lines of a console by their speaker, each in order, up to a first comma: what follows are times. How lines of several speakers mix is a
/// matter of time, too.
fn said(console: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in console.lines() {
        let speaker = line.split([' ', ':']).next().unwrap_or_default();
        let text = line.split(',').next().unwrap_or_default();
        all.entry(speaker).or_default().push(text);
    }
    // The kernel speaks about all tiles, in the order of time.
    if let Some(kernel) = all.get_mut("kernel") {
        kernel.sort_unstable();
    }
    all
}

/// Values that each application reported, in its order.
fn checks(variant: &VariantResult) -> BTreeMap<&str, Vec<u64>> {
    let mut all: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for check in &variant.checks {
        all.entry(&check.application).or_default().push(check.value);
    }
    all
}

/// No request took longer than its bound. Returns how many kinds have one.
fn requests_keep_their_bounds(result: &RunResult) -> usize {
    let variants = result.variants.iter();
    let requests = variants.flat_map(|variant| &variant.requests);
    let bounded = requests.filter_map(|one| Some((one, one.bound.as_ref()?.ticks)));
    let bounded: Vec<_> = bounded.collect();
    for (one, bound) in &bounded {
        assert!(
            one.worst <= *bound,
            "{} of {}: {} of {bound} ticks",
            one.kind,
            one.application,
            one.worst
        );
    }
    bounded.len()
}

/// Samples of the loop.
const SAMPLES: u64 = 20;

fn on(platform: &str) -> Finished {
    let overrides = [
        format!("@platform={platform}"),
        // The slower chip needs more time to start.
        "@duration=200ms".to_owned(),
        format!("sensor/argument[samples]@value={SAMPLES}"),
    ];
    let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
    finished("quickstart", &overrides, false)
}

#[test]
fn the_quickstart_says_the_same_in_order_and_out_of_order() {
    for (inorder, interval) in CHIPS {
        let (first, second) = (on(inorder), on(interval));
        assert_ne!(
            first.result.variants[0].digest,
            second.result.variants[0].digest
        );
        for (one, other) in first.consoles.iter().zip(&second.consoles) {
            assert_eq!(said(one), said(other), "{interval}");
        }
        let variants = first.result.variants.iter().zip(&second.result.variants);
        for (one, other) in variants {
            let name = &one.name;
            assert!(one.incidents.is_empty(), "{name}: {:?}", one.incidents);
            assert!(other.incidents.is_empty(), "{name}: {:?}", other.incidents);
            assert_eq!(one.end, other.end, "{interval}, {name}");
            assert!(!checks(one).is_empty());
            assert_eq!(checks(one), checks(other), "{interval}, {name}");
            let (one, other) = (&one.flows[0], &other.flows[0]);
            // All samples, in the same order.
            let numbers =
                |flow: &FlowResult| flow.samples.iter().map(|s| s.number).collect::<Vec<u64>>();
            assert_eq!(numbers(one), numbers(other), "{interval}, {name}");
            assert_eq!(other.latency.count, SAMPLES);
            assert_eq!((other.lost, other.open, other.doubled), (0, 0, 0));
            let why = other.unbounded.as_deref().unwrap_or_default();
            assert!(why.contains("works out of order"), "{why:?}");
            println!(
                "{interval}, {name}: worst loop {} ticks, {} in order",
                other.latency.max, one.latency.max
            );
        }
        let bounded = [&first, &second].map(|one| requests_keep_their_bounds(&one.result));
        println!(
            "{interval}: kinds of requests with bounds, in order and out of order: {bounded:?}"
        );
        assert!(bounded.iter().all(|kinds| *kinds > 10), "{bounded:?}");
        // What is kept in order is kept out of order.
        assert!(
            first.code() != 0 || second.code() == 0,
            "{:?}",
            second.result.verdict
        );
    }
}

/// Copies, transfers and messages, all at once and finite; the last application waits for ever, so the run has an end at which nothing is
/// under way.
const BUSY: &str = r#"<system name="busy" platform="PLATFORM" duration="DURATION" manager-tile="1">
  <domain name="d">
    <app name="copy-1" tile="2" program="bandwidth/memory" memory="4MiB"><argument name="runs" value="6"/></app>
    <app name="copy-2" tile="3" program="bandwidth/memory" memory="4MiB"><argument name="runs" value="6"/></app>
    <app name="transfers" tile="4" program="bandwidth/transfers"><argument name="runs" value="4"/><mgate name="region" size="8KiB"/></app>
    <app name="ping" tile="5" program="latency/ping"><argument name="runs" value="50"/><sgate name="pong" to="pong" credits="1"/></app>
    <app name="pong" tile="6" program="latency/pong"><rgate name="input" slots="1" slot-size="64B"/></app>
  </domain>
</system>"#;

/// What an owner's requests waited.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// As booked, but for the next field.
    booked: Tick,
    /// As booked before a request is known to go to memory: for a miss register, and for lines that others have evicted from a first level.
    /// It is in an account if the line comes from memory by this request, and not if it comes from the second level or with another one.
    before: Tick,
    /// As in the accounts of its requests.
    accounts: Tick,
}

fn waits(machine: &Machine) -> BTreeMap<Owner, Waits> {
    let mut all: BTreeMap<Owner, Waits> = BTreeMap::new();
    for booking in machine.ledger().bookings() {
        let waits = all.entry(booking.victim).or_default();
        match booking.resource {
            Resource::Mshr(_) | Resource::CacheSet(Level::L1i | Level::L1d) => {
                waits.before += booking.ticks;
            }
            // Tokens are waited for before there is a request; the others are waits of activities.
            Resource::Bucket
            | Resource::Processor
            | Resource::ProcessorBudget
            | Resource::Service(_)
            | Resource::DeviceService(_) => {}
            _ => waits.booked += booking.ticks,
        }
    }
    for latency in machine.ledger().latencies() {
        all.entry(latency.owner).or_default().accounts += latency.waited;
    }
    all
}

#[test]
fn every_wait_is_booked() {
    for (inorder, interval) in CHIPS {
        for platform in [inorder, interval] {
            let (at, duration) = match inorder {
                "tiled-2ghz" => (18_000_000, "20ms"),
                _ => (190_000_000, "200ms"),
            };
            let text = BUSY.replace("PLATFORM", platform);
            let options = Options {
                system: "busy".into(),
                text: Some(text.replace("DURATION", duration)),
                ..Options::default()
            };
            let seen = Mutex::new(BTreeMap::new());
            let deed = |machine: &mut Machine| *seen.lock().unwrap() = waits(machine);
            let strike = Strike { at, deed: &deed };
            let finished = run::struck(&options, strike, &Silent).unwrap_or_else(|e| panic!("{e}"));
            let variant = &finished.result.variants[0];
            // All but `pong` are done before the books are read.
            let spans = variant.spans.iter();
            let spans: Vec<_> = spans
                .map(|s| (s.application.as_str(), s.latency.count))
                .collect();
            assert_eq!(spans.len(), 4, "{platform}: {spans:?}");
            let last = variant.spans.iter().flat_map(|span| &span.samples);
            let last = last.map(|s| s.begin + s.latency).max().unwrap_or_default();
            let read =
                u128::from(at) * u128::from(finished.result.ticks_per_second) / 1_000_000_000;
            assert!(
                u128::from(last) < read,
                "{platform}: {last} of {read} ticks"
            );
            let seen = seen.into_inner().unwrap();
            let booked: Tick = seen.values().map(|waits| waits.booked).sum();
            let before: Tick = seen.values().map(|waits| waits.before).sum();
            println!("{platform}: {booked} ticks booked, {before} before requests");
            assert!(booked > 100_000, "{platform}: {booked}");
            let wrong: Vec<_> = seen
                .iter()
                .filter(|(_, waits)| {
                    let (least, most) = (waits.booked, waits.booked + waits.before);
                    !(least..=most).contains(&waits.accounts)
                })
                .collect();
            assert!(wrong.is_empty(), "{platform}: {wrong:?}");
        }
    }
}

/// A pager takes pages back through caches, and a manager hands the same memory to one child after the other: the parts of the OS that
/// order memory with fences, cache management and the unit's commands.
#[test]
fn pages_come_back_through_the_caches_of_out_of_order_harts() {
    let text = r#"<system name="pages" platform="PLATFORM" duration="DURATION" manager-tile="1"><domain name="d">
  <app name="files" tile="2" program="tiled/files" memory="1MiB" background="true"><argument name="limit" value="1ms"/>
    <rgate name="priority-0" slots="8" slot-size="320B"/><mgate name="disk" size="2MiB"/></app>
  <app name="pager" tile="3" program="tiled/pager" background="true"><argument name="pages" value="24"/>
    <rgate name="faults" slots="4" slot-size="64B"/><rgate name="requests" slots="4" slot-size="320B"/><sgate name="files" to="files"/></app>
  <app name="client" tile="4" program="paging/churn" memory="512KiB" pager="pager"><sgate name="files" to="files"/><sgate name="pager" to="pager" gate="requests"/></app>
</domain></system>"#;
    for (inorder, interval) in CHIPS {
        let duration = match inorder {
            "tiled-2ghz" => "120ms",
            _ => "4s",
        };
        let [one, other] = [inorder, interval].map(|platform| {
            let text = text.replace("PLATFORM", platform);
            boot_text(&text.replace("DURATION", duration), &[]).remove(0)
        });
        assert_eq!(one.code, Some(0), "{inorder}: {}", one.console);
        assert_eq!(other.code, Some(0), "{interval}: {}", other.console);
        assert_eq!(said(&one.console), said(&other.console), "{interval}");
    }
}
