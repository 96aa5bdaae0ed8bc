//! Flows of descriptions whose applications also work for others: worked examples, and a simulation of their queues.
//!
//! The simulation knows neither network nor formulas: applications without senders have jobs at random moments, each job sends one message
//! through each gate at any moment of its work, and a receiver takes the messages of one gate in order, and gates in any order. So it shows
//! less than a bound that counts a network, and more than a bound that forgets work. 150 systems in every test, more with
//! `BULKHEAD_SYSTEMS`.

use bulkhead_analysis::plan::system::complete;
use bulkhead_analysis::plan::system::{Verdict, judge};
use bulkhead_analysis::plan::{Constraint, Kind};
use bulkhead_model::tasks::Task;
use bulkhead_model::units::Time;
use bulkhead_model::{LoadOptions, System, load_system, load_system_text};
use bulkhead_random::Random;
use std::collections::BTreeMap;
use std::fmt::Write;

const US: u64 = 1000;
const MS: u64 = 1000 * US;

fn judged(apps: &str, flow: &str) -> Verdict {
    let text = format!(
        "<system name='s' platform='tiled-gem5'><domain name='d'>{apps}</domain>{flow}</system>"
    );
    let system = load_system_text("s", &text, &LoadOptions::default());
    let system = system.unwrap_or_else(|error| panic!("{error}\n{text}"));
    judge(&system).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn flow_of(verdict: &Verdict) -> &Constraint {
    let mut flows = verdict.constraints.iter();
    let found = flows.find(|one| one.kind == Kind::Flow);
    found.unwrap_or_else(|| panic!("judged: {:?}", verdict.unjudged))
}

fn bound(apps: &str, flow: &str) -> Option<u64> {
    flow_of(&judged(apps, flow)).bound
}

const FLOW: &str = "<flow name='f' from='a' to='z' deadline='900us'/>";

/// Why the flow was not judged.
fn unjudged(verdict: &Verdict) -> &str {
    let mut all = verdict.unjudged.iter();
    let flow = all.find(|one| one.what == "flow f");
    &flow.expect("not judged").because
}

/// 64 KiB at 1 MiB/s take 62.5 ms, whatever else is there.
#[test]
fn a_flow_waits_for_the_tokens_of_its_own_applications() {
    let apps = |limit: &str| {
        format!(
            "<app name='a' tile='2' program='p'><task period='100ms' cost='10us' accesses='10'/><sgate name='o' to='z'/>\
             <mgate name='frame' size='64KiB' rights='r'/>{limit}</app>\
             <app name='z' tile='3' program='p'><task period='100ms' cost='20us' accesses='10'/><rgate name='i'/></app>"
        )
    };
    let limit = "<limit noc='1MiB/s' burst='1KiB'/>";
    let limited = bound(&apps(limit), FLOW).expect("a bound");
    assert!(limited > 62 * MS, "{limited}");
    assert!(bound(&apps(""), FLOW).expect("a bound") < MS);
}

/// A message every millisecond, and two milliseconds of work for each: no wait is long enough.
#[test]
fn who_gets_more_than_it_can_do_has_no_bound() {
    let apps = |cost: &str, own: &str| {
        format!(
            "<app name='a' tile='2' program='p'><task period='1ms' cost='10us'/><sgate name='o' to='m'/></app>\
             <app name='m' tile='3' program='p'><task period='{own}' cost='{cost}'/><rgate name='i'/><sgate name='o' to='z'/></app>\
             <app name='z' tile='4' program='p'><task period='5ms' cost='10us'/><rgate name='i'/></app>"
        )
    };
    assert_eq!(bound(&apps("2ms", "5ms"), FLOW), None);
    // Whatever its own period says, there is a message every millisecond.
    let (often, seldom) = (
        bound(&apps("200us", "1ms"), FLOW),
        bound(&apps("200us", "5ms"), FLOW),
    );
    assert!(often.is_some() && seldom >= often, "{often:?}, {seldom:?}");
}

/// Two sensors, one actuator: when the message of one arrives, the actuator may be working for the other.
#[test]
fn who_also_works_for_others_is_judged_with_that_work() {
    let apps = |task: &str| {
        format!(
            "<app name='a' tile='2' program='p'><task period='1ms' cost='10us'/><sgate name='o' to='z'/></app>\
             <app name='b' tile='3' program='p'>{task}<sgate name='o' to='z'/></app>\
             <app name='z' tile='4' program='p'><task period='1ms' cost='100us'/><rgate name='i' slots='4'/></app>"
        )
    };
    let alone = bound(
        "<app name='a' tile='2' program='p'><task period='1ms' cost='10us'/><sgate name='o' to='z'/></app>\
         <app name='z' tile='4' program='p'><task period='1ms' cost='100us'/><rgate name='i' slots='4'/></app>",
        FLOW,
    );
    let alone = alone.expect("a bound");
    // Each job begins with a switch of TileMux.
    assert!((110 * US..150 * US).contains(&alone), "{alone}");
    // A sender with a period of 10 ms has at worst two jobs: one at the end of its period, the next at the beginning.
    let seldom = bound(&apps("<task period='10ms' cost='10us'/>"), FLOW).expect("a bound");
    assert!(
        (alone + 200 * US..alone + 240 * US).contains(&seldom),
        "{seldom}"
    );
    // A sender that is done 500 us after its arrival sends once in the 210 us.
    let prompt = "<task period='10ms' deadline='500us' cost='10us'/>";
    let prompt = bound(&apps(prompt), FLOW).expect("a bound");
    assert!(
        (alone + 100 * US..alone + 125 * US).contains(&prompt),
        "{prompt}"
    );
    // Four a millisecond leave room, ten do not.
    assert!(bound(&apps("<task period='250us' cost='10us'/>"), FLOW).is_some());
    assert_eq!(
        bound(&apps("<task period='100us' cost='10us'/>"), FLOW),
        None
    );
    // Nothing is known of one without a cost.
    let verdict = judged(&apps("<task period='10ms'/>"), FLOW);
    let why = unjudged(&verdict);
    assert_eq!(
        why,
        "`b` may send to `z`, and it has no <task> with a cost, or shares its tile"
    );
    let fed = apps("<task period='10ms' cost='10us'/><rgate name='i'/>")
        + "<app name='c' tile='5' program='p'><task period='10ms' cost='10us'/><sgate name='o' to='b'/></app>";
    let verdict = judged(&fed, FLOW);
    let why = unjudged(&verdict);
    assert!(why.contains("it gets messages itself"), "{why}");
}

/// A missing page is provided by an application that also works for others.
#[test]
fn who_gets_pages_from_a_pager_is_not_judged() {
    let verdict = judged(
        "<app name='pages' tile='5' program='p'><rgate name='faults' slots='4' slot-size='64B'/></app>\
         <app name='a' tile='2' program='p'><task period='1ms' cost='10us'/><sgate name='o' to='z'/></app>\
         <app name='z' tile='4' program='p' pager='pages'><task period='1ms' cost='100us'/><rgate name='i'/></app>",
        FLOW,
    );
    let why = unjudged(&verdict);
    assert_eq!(
        why,
        "`z` gets its pages from `pages`, whose work for others is not bounded here; with pages from the start it would be judged"
    );
}

/// What runs on the other chip also has promises.
#[test]
fn the_peer_is_judged() {
    let options = LoadOptions::default();
    let mut system = load_system("network/two-chips", &options).expect("in the catalog");
    let whole = |system: &System| complete::runs(system).expect("judged");
    let before = whole(&system).len();
    let peer = system.peer.as_mut().expect("a peer");
    let app = &mut peer.system.apps[0];
    app.task = Some(Task::new(
        &app.name,
        Time(2_000_000_000),
        Time(1_000_000_000),
    ));
    let name = peer.name.clone();
    let runs = whole(&system);
    assert_eq!(runs.len(), before);
    let run = runs.iter().find(|run| run.variant == name).expect("judged");
    assert!(run.verdict.all().any(|one| !one.holds()), "{run:?}");
}

/// One message through each gate in each job: two gates to one application are two jobs.
#[test]
fn each_gate_brings_a_job() {
    let bound = |gates: &str| {
        let apps = format!(
            "<app name='a' tile='2' program='p'><task period='1ms' cost='10us'/>{gates}</app>\
             <app name='z' tile='4' program='p'><task period='1ms' cost='100us'/><rgate name='i'/><rgate name='j'/></app>"
        );
        bound(&apps, FLOW).expect("a bound")
    };
    let one = bound("<sgate name='o' to='z' gate='i'/>");
    let two = bound("<sgate name='o' to='z' gate='i'/><sgate name='u' to='z' gate='j'/>");
    assert!(
        (one + 100 * US..one + 125 * US).contains(&two),
        "{one}, {two}"
    );
}

/// An application of the simulation.
struct App {
    cost: u64,
    /// Period and jitter of who begins by itself.
    begins: Option<(u64, u64)>,
    /// To whom it sends.
    to: Vec<usize>,
}

/// A message: when it arrives, its sender, and the arrival that caused it.
type Message = (u64, usize, (usize, u64));

struct Drawn {
    text: String,
    flow: String,
    apps: Vec<App>,
    /// The applications on the path come first.
    way: usize,
}

fn drawn(random: &mut Random) -> Drawn {
    let way = 2 + random.below(2) as usize;
    let mut between = |from: u64, to: u64| from + random.below(to - from + 1);
    let mut apps: Vec<App> = Vec::new();
    for at in 0..way {
        let begins = (at == 0).then(|| (between(2, 8) * 250 * US, between(0, 2) * 100 * US));
        let to = if at + 1 < way {
            vec![at + 1]
        } else {
            Vec::new()
        };
        apps.push(App {
            cost: between(10, 400) * US,
            begins,
            to,
        });
    }
    for _ in 0..between(0, 6 - way as u64) {
        let to = between(0, way as u64 - 1) as usize;
        let begins = Some((between(2, 20) * 500 * US, between(0, 3) * 50 * US));
        apps.push(App {
            cost: between(5, 100) * US,
            begins,
            to: vec![to],
        });
    }
    let mut text = String::new();
    for (at, app) in apps.iter().enumerate() {
        let (period, jitter) = app
            .begins
            .unwrap_or((apps[0].begins.expect("it begins").0, 0));
        let deadline = match app.begins {
            // As late as a job alone may be.
            Some(_) => (app.cost + jitter + 20 * US).min(period),
            None => period,
        };
        write!(
            text,
            "<app name='a{at}' tile='{}' program='p'><task period='{period}ns' deadline='{deadline}ns' jitter='{jitter}ns' cost='{}ns'/>",
            at + 2,
            app.cost
        )
        .expect("a string");
        if apps.iter().any(|other| other.to.contains(&at)) {
            text += "<rgate name='i' slots='16'/>";
        }
        for to in &app.to {
            write!(text, "<sgate name='to{to}' to='a{to}' credits='1'/>").expect("a string");
        }
        text += "</app>";
    }
    let flow = format!(
        "<flow name='f' from='a0' to='a{}' deadline='900us'/>",
        way - 1
    );
    Drawn {
        text,
        flow,
        apps,
        way,
    }
}

/// The work of one application on its messages, and on its own arrivals: what it sends, with the moment.
fn work(
    at: usize,
    app: &App,
    mut messages: Vec<Message>,
    random: &mut Random,
) -> Vec<(u64, u64, (usize, u64))> {
    if let Some((period, jitter)) = app.begins {
        let mut now = random.below(period);
        for number in 0..60 {
            let late = random.below(3) * jitter / 2;
            messages.push((now + late, at, (at, number)));
            let lazy = if random.chance(20) {
                random.below(period)
            } else {
                0
            };
            now += period + lazy;
        }
    }
    messages.sort_unstable();
    let mut done = Vec::new();
    let mut now = 0;
    while !messages.is_empty() {
        now = now.max(messages[0].0);
        let there = messages.iter().take_while(|one| one.0 <= now);
        // The first of each gate.
        let mut heads: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, message) in there.enumerate() {
            heads.entry(message.1).or_insert(index);
        }
        let heads: Vec<usize> = heads.into_values().collect();
        // Samples of the flow last, often.
        let mut others = heads
            .iter()
            .copied()
            .filter(|&head| messages[head].2.0 != 0);
        let chosen = match others.next_back() {
            Some(other) if random.chance(70) => other,
            _ => heads[random.below(heads.len() as u64) as usize],
        };
        let (_, _, origin) = messages.remove(chosen);
        let cost = if random.chance(70) {
            app.cost
        } else {
            app.cost / 2
        };
        let sent = if random.chance(70) {
            now + cost
        } else {
            now + random.below(cost + 1)
        };
        now += cost;
        done.push((sent, now, origin));
    }
    done
}

/// The longest time of a sample, from its arrival (before its jitter) to the end of the path.
fn seen(drawn: &Drawn, random: &mut Random) -> u64 {
    let apps = &drawn.apps;
    let mut messages: Vec<Vec<Message>> = vec![Vec::new(); apps.len()];
    let mut arrived: BTreeMap<u64, u64> = BTreeMap::new();
    let mut worst = 0;
    // Senders come before receivers: others, then the path.
    for at in (drawn.way..apps.len()).chain(0..drawn.way) {
        let mut own = std::mem::take(&mut messages[at]);
        let mut app = App {
            cost: apps[at].cost,
            begins: apps[at].begins,
            to: apps[at].to.clone(),
        };
        if at == 0
            && let Some((period, jitter)) = app.begins.take()
        {
            // The flow's arrivals are remembered.
            let mut now = 200 * US;
            for number in 0..60 {
                arrived.insert(number, now);
                own.push((now + random.below(3) * jitter / 2, 0, (0, number)));
                now += period
                    + if random.chance(20) {
                        random.below(period)
                    } else {
                        0
                    };
            }
        }
        for (sent, end, origin) in work(at, &app, own, random) {
            for &to in &app.to {
                messages[to].push((sent, at, origin));
            }
            if at + 1 == drawn.way && origin.0 == 0 {
                worst = worst.max(end - arrived[&origin.1]);
            }
        }
    }
    worst
}

#[test]
fn no_queue_is_longer_than_its_bound() {
    let systems = std::env::var("BULKHEAD_SYSTEMS").ok();
    let systems = systems
        .and_then(|text| text.parse().ok())
        .unwrap_or(150_u64);
    let mut ratios = Vec::new();
    for number in 0..systems {
        let mut random = Random::new(number + 1);
        let drawn = drawn(&mut random);
        let Some(bound) = bound(&drawn.text, &drawn.flow) else {
            continue;
        };
        let worst = (0..12)
            .map(|_| seen(&drawn, &mut random))
            .max()
            .unwrap_or(0);
        assert!(
            worst <= bound,
            "system {number}: {worst} was seen, the bound is {bound}\n{}",
            drawn.text
        );
        ratios.push(bound as f64 / worst as f64);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!(
        "{} of {systems} flows have a bound, median bound / seen {median:.2}",
        ratios.len()
    );
    assert!(ratios.len() as u64 * 2 > systems, "silence is no soundness");
}
