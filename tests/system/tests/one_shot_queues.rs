//! Described queues with several writers: every item once, each writer's in order, overflow told to its writer, in every language; and within bounds.

use crate::one_shot_ada::has_gnat;
use crate::one_shot_systems::{described, draw, drawn, folder_with, holds, run};
use bulkhead_experiments::audit::{Options, audit, time};
use bulkhead_report::audit::result::Verdict;
use bulkhead_report::verdict::{Judgement, Promise};
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::Finished;
use std::fmt::Write;

/// The entries that the keeper on this core printed, by writer, in the order in which it took them.
fn entries(finished: &Finished, core: u16, writers: usize) -> Vec<Vec<u64>> {
    let prefix = format!("core {core}: entry ");
    let lines = finished.consoles[0].lines();
    let mut all = vec![Vec::new(); writers];
    for line in lines.filter_map(|line| line.strip_prefix(&prefix)) {
        let number: u64 = line.parse().expect("a number");
        all[(number / 1_000_000) as usize - 1].push(number % 1_000_000);
    }
    all
}

/// A writer's entries are there without a gap, from the first one on.
fn is_whole(entries: &[u64], least: usize) {
    let expected: Vec<u64> = (1..=entries.len() as u64).collect();
    assert_eq!(entries, expected);
    assert!(entries.len() >= least, "{entries:?}");
}

#[test]
fn two_writers_of_a_queue_lose_nothing_and_keep_their_order() {
    let finished = run("oneshot/log".as_ref(), &[]).expect("it runs");
    holds(&finished.result);
    let variant = &finished.result.variants[0];
    let [queue] = &variant.quotas[..] else {
        panic!("one queue: {:?}", variant.quotas);
    };
    assert_eq!((&*queue.of, queue.limit), ("entries", 6));
    assert!((1..=5).contains(&queue.used), "{queue:?}");
    let [first, second] = &entries(&finished, 5, 2)[..] else {
        panic!("two writers");
    };
    is_whole(first, 28);
    is_whole(second, 18);
    // Each writer has a row of its own, and the reader has one.
    let of = |kind: &str| {
        let requests = variant.requests.iter().filter(|one| one.kind == kind);
        let counts = requests.map(|one| (&*one.application, &*one.to, one.count));
        counts.collect::<Vec<_>>()
    };
    let [(one, port, made), (other, joined, more)] = of("write")[..] else {
        panic!("{:?}", of("write"));
    };
    assert_eq!(
        (one, port, other, joined),
        (
            "first",
            "port entries, 2 hops",
            "second",
            "port more, 2 hops"
        )
    );
    let [(reader, _, taken)] = of("read")[..] else {
        panic!("{:?}", of("read"));
    };
    assert_eq!(reader, "keeper");
    assert_eq!(taken as usize, first.len() + second.len());
    assert!(made + more >= taken && made + more <= taken + 2);
    let flows = variant.flows.iter();
    let flows: Vec<_> = flows
        .map(|one| (&*one.name, one.lost, one.misses))
        .collect();
    assert_eq!(flows, [("of-first", 0, 0), ("of-second", 0, 0)]);
}

/// Each writer is told of its own items, and what the reader gets of each is still in order.
fn overflows(finished: &Finished) {
    let variant = &finished.result.variants[0];
    let told = |core: u16| {
        let prefix = format!("core {core}: no place for entry ");
        let lines = finished.consoles[0].lines();
        let numbers = lines.filter_map(|line| line.strip_prefix(&prefix)?.parse().ok());
        numbers
            .map(|number: u64| number % 1_000_000)
            .collect::<Vec<u64>>()
    };
    let all = entries(finished, 5, 2);
    for (core, name, taken) in [(0, "first", &all[0]), (10, "second", &all[1])] {
        let lost = told(core);
        assert!(!lost.is_empty(), "{}", finished.consoles[0]);
        assert!(
            taken.is_sorted() && !taken.iter().any(|one| lost.contains(one)),
            "{taken:?} {lost:?}"
        );
        let incidents = variant
            .incidents
            .iter()
            .filter(|one| one.application == name);
        let incidents: Vec<&str> = incidents.map(|one| one.what.as_str()).collect();
        let what = format!(
            "{} items did not fit into the queue entries, which has 6 places; its writer got an error",
            lost.len()
        );
        assert_eq!(incidents, [what]);
    }
    assert_eq!(finished.code(), 4);
}

#[test]
fn each_writer_of_a_full_queue_is_told_of_its_own_items() {
    let slow = run("oneshot/log".as_ref(), &["task[keeper]@period=7ms"]).expect("it runs");
    overflows(&slow);
    let promises = slow.result.verdict.promises().iter();
    let queue = promises.filter(|one| one.what.starts_with("queue entries"));
    let queue: Vec<(Judgement, &str)> = queue.map(|one| (one.judgement, &*one.what)).collect();
    // As `check` says of the description.
    let slower =
        "queue entries: no bound within 6 places: the reader is slower than its writers together";
    assert_eq!(queue, [(Judgement::Failed, slower)]);
}

/// The same description with tasks of other languages: the same entries in the same order.
#[test]
fn writers_of_a_queue_in_each_language() {
    let text = |[first, second, keeper]: [&str; 3], period: u64| {
        format!(
            r#"<system name="languages" paradigm="one-shot" platform="epiphany3" duration="100ms">
            <task name="first" program="{first}" core="0" priority="1" period="4ms" cost="12us"/>
            <task name="second" program="{second}" core="10" priority="1" period="6ms" cost="12us"/>
            <task name="keeper" program="{keeper}" core="5" priority="1" period="{period}ms" cost="12us"/>
            <channel name="entries" from="first" to="keeper" size="24B" kind="queue" slots="6"/>
            <channel name="more" from="second" to="keeper" joins="entries"/></system>"#
        )
    };
    let rust = [
        "one-shot::several::First",
        "one-shot::several::Second",
        "one-shot::several::Keeper",
    ];
    let c = [
        "one-shot/several.c::first",
        "one-shot/several.c::second",
        "one-shot/several.c::keeper",
    ];
    let mut all = vec![rust, c, [rust[0], c[1], rust[2]]];
    if has_gnat() {
        let ada = [
            "one-shot/several.adb::First",
            "one-shot/several.adb::Second",
            "one-shot/several.adb::Keeper",
        ];
        all.extend([ada, [ada[0], c[1], rust[2]]]);
    }
    for programs in all {
        let (keeps_up, slow) = (text(programs, 2), text(programs, 9));
        let folder = folder_with(&[("fast.xml", &keeps_up), ("slow.xml", &slow)]);
        let fast = run(&folder.path().join("fast.xml"), &[]).expect("it runs");
        holds(&fast.result);
        let both = entries(&fast, 5, 2);
        is_whole(&both[0], 22);
        is_whole(&both[1], 14);
        overflows(&run(&folder.path().join("slow.xml"), &[]).expect("it runs"));
    }
}

/// Queues of two or three writers on cores drawn at random, beside a chain of sampling ports and other work: what is seen is within its bound, or there is a reason why
/// nothing is judged.
#[test]
fn queues_drawn_at_random_keep_their_bounds() {
    let (mut bounded, mut tightest) = (0, 0.0_f64);
    for seed in 1..=drawn(3) {
        let mut state = 1000 + seed;
        let mut text = format!(
            r#"<system name="drawn-{seed}" paradigm="one-shot" platform="epiphany3" duration="120ms">"#
        );
        let mut priorities = [0; 16];
        let mut task = |name: &str, program: &str, core: u64, period: u64, cost: u64| {
            priorities[core as usize] += 1;
            let priority = priorities[core as usize];
            let _ = write!(
                text,
                r#"<task name="{name}" program="one-shot::{program}" core="{core}" priority="{priority}" period="{period}ms" cost="{cost}us"/>"#
            );
        };
        let mut channels = String::new();
        let writers = 2 + seed % 2;
        task("keeper", "several::Keeper", draw(&mut state, 16), 1, 12);
        for (number, name) in ["First", "Second", "Third"]
            .iter()
            .enumerate()
            .take(writers as usize)
        {
            let period = 5 + draw(&mut state, 5);
            task(
                &format!("w{number}"),
                &format!("several::{name}"),
                draw(&mut state, 16),
                period,
                12,
            );
            let of_queue = match number {
                0 => r#"size="24B" kind="queue" slots="8""#,
                _ => r#"joins="c0""#,
            };
            let _ = write!(
                channels,
                r#"<channel name="c{number}" from="w{number}" to="keeper" {of_queue}/><flow name="f{number}" from="w{number}" to="keeper"/>"#
            );
        }
        for (place, kind) in ["Source", "Stage", "Sink"].iter().enumerate() {
            let period = if place == 0 { 25 } else { 1 };
            task(
                &format!("t{place}"),
                &format!("pipeline::{kind}"),
                draw(&mut state, 16),
                period,
                10,
            );
            if place > 0 {
                let _ = write!(
                    channels,
                    r#"<channel name="s{place}" from="t{}" to="t{place}" size="16B"/>"#,
                    place - 1
                );
            }
        }
        for number in 0..2 {
            let period = 5 + draw(&mut state, 5);
            task(
                &format!("other-{number}"),
                "pipeline::Other",
                draw(&mut state, 16),
                period,
                period * 41,
            );
        }
        let finished = described("drawn", &(text + &channels + "</system>")).expect("it runs");
        let result = &finished.result;
        let variant = &result.variants[0];
        let in_vain = |one: &&Promise| {
            let why = one.because.as_deref().unwrap_or_default();
            why.contains("an operation may fail")
        };
        if result.verdict.promises().iter().any(|one| in_vain(&one)) {
            // Whatever depends on an item of the queue has the reason; all else has its bound.
            let promises = result.verdict.promises().iter();
            let others: Vec<_> = promises.filter(|one| !in_vain(one)).collect();
            assert!(
                others.iter().all(|one| one.judgement == Judgement::Held),
                "{others:#?}"
            );
            assert!(variant.requests.iter().all(|one| one.bound.is_some()));
            println!("{seed}: an operation may fail");
        } else if variant.requests.iter().all(|one| one.bound.is_none()) {
            // The jobs themselves are counted; everything with a bound has the reason.
            let late = |what: &str| what.contains(" jobs late of ");
            let promises = result.verdict.promises().iter();
            let green = promises.filter(|one| one.judgement == Judgement::Held && !late(&one.what));
            assert_eq!(green.count(), 0);
            let why = variant.requests[0].unbounded.as_deref().expect("a reason");
            assert!(why.contains("the queue c0"), "{why}");
            println!("{seed}: {why}");
        } else {
            holds(result);
            bounded += 1;
        }
        for request in variant
            .requests
            .iter()
            .filter(|one| one.to.starts_with("port c"))
        {
            if let Some(bound) = &request.bound {
                tightest = tightest.max(request.worst as f64 / bound.ticks as f64);
            }
        }
        assert_eq!(variant.incidents, []);
    }
    println!(
        "{bounded} systems have bounds; an operation on a queue took at most {tightest:.3} of its bound"
    );
    assert!(bounded > 0);
}

/// A write of a large item keeps the lock for longer than its reader asks for it: here the read fails, and the item is read a period later, or never. So the flow has no
/// bound, nor has the number of items that wait. Operations and responses keep theirs, and so does a flow that does not use the port.
#[test]
fn a_reader_gives_up_while_a_large_item_is_written() {
    let folder = folder_with(&[(
        "tasks.c",
        r#"#include "bulkhead_oneshot.h"
/* Not aligned, so the kernel moves it byte by byte. */
struct item { uint64_t number; unsigned char bytes[ITEM + 1]; };
struct writer { bh_output items; bh_releases releases; struct item item; };
static bh_done send(struct writer *self, bh_job job)
{
    self->item.number++;
    for (int i = 0; i < 8; i++)
        self->item.bytes[1 + i] = self->item.number >> 8 * i;
    bh_flow_begin(self->item.number);
    (void)!bh_put(&self->items, self->item.bytes + 1, ITEM);
    return bh_next(&self->releases, job);
}
BH_TASK(writer, struct writer, send, {.items = BH_OUTPUT(0)})
struct reader { bh_input items; bh_releases releases; struct item item; };
static bh_done receive(struct reader *self, bh_job job)
{
    for (volatile int i = 0; i < 100; i++)
        ;
    /* Once it leaves an item there: with nothing to take, it would not ask for the lock. */
    int taken = self->item.number == 3 ? 0 : bh_take(&self->items, self->item.bytes + 1, ITEM);
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number |= (uint64_t)self->item.bytes[1 + i] << 8 * i;
    if (taken == BH_LOCKED)
        bh_print("in vain");
    if (taken > 0)
        bh_flow_end(number);
    self->item.number++;
    return bh_next(&self->releases, job);
}
BH_TASK(reader, struct reader, receive, {.items = BH_INPUT(0)})
struct other { bh_output numbers; bh_releases releases; uint64_t number; };
static bh_done count(struct other *self, bh_job job)
{
    uint64_t number = ++self->number << 32;
    bh_flow_begin(number);
    (void)!bh_put(&self->numbers, &number, sizeof number);
    return bh_next(&self->releases, job);
}
BH_TASK(other, struct other, count, {.numbers = BH_OUTPUT(0)})
struct last { bh_input numbers; bh_releases releases; };
static bh_done end(struct last *self, bh_job job)
{
    uint64_t number;
    if (bh_take(&self->numbers, &number, sizeof number) > 0)
        bh_flow_end(number);
    return bh_next(&self->releases, job);
}
BH_TASK(last, struct last, end, {.numbers = BH_INPUT(0)})
"#,
    )]);
    let of = |bytes: u64| {
        let source = std::fs::read_to_string(folder.path().join("tasks.c")).expect("it is there");
        let source = source.replace("ITEM", &bytes.to_string());
        std::fs::write(folder.path().join("items.c"), source).expect("it is written");
        let text = format!(
            r#"<system name="large" paradigm="one-shot" platform="epiphany3" duration="40ms">
            <task name="writer" program="items.c::writer" core="1" priority="1" period="4ms" cost="200us"/>
            <task name="reader" program="items.c::reader" core="3" priority="1" period="2ms" cost="200us"/>
            <task name="other" program="items.c::other" core="8" priority="1" period="2ms" cost="20us"/>
            <task name="last" program="items.c::last" core="12" priority="1" period="1ms" cost="20us"/>
            <channel name="items" from="writer" to="reader" size="{bytes}B" kind="queue" slots="2"/>
            <channel name="numbers" from="other" to="last" size="8B"/>
            <flow name="whole" from="writer" to="reader"/><flow name="rest" from="other" to="last"/></system>"#
        );
        let file = folder.path().join("large.xml");
        std::fs::write(&file, text).expect("it is written");
        run(&file, &[]).expect("it runs")
    };
    let small = of(32);
    holds(&small.result);
    assert!(!small.consoles[0].contains("in vain"));
    let large = of(6000);
    assert!(
        large.consoles[0].contains("core 3: in vain"),
        "{}",
        large.consoles[0]
    );
    let variant = &large.result.variants[0];
    assert!(variant.requests.iter().all(|one| one.bound.is_some()));
    let [whole, rest] = &variant.flows[..] else {
        panic!("two flows");
    };
    let why = whole.unbounded.as_deref().expect("a reason");
    assert!(
        why.contains("other cores may have the lock of the port items"),
        "{why}"
    );
    assert!(rest.bound.is_some(), "{:?}", rest.unbounded);
    let promises = large.result.verdict.promises().iter();
    let open: Vec<_> = promises
        .filter(|one| one.judgement != Judgement::Held)
        .collect();
    assert_eq!(open.len(), 2, "the flow and the queue: {open:#?}");
    for one in open {
        assert_eq!(
            (one.judgement, one.because.as_deref()),
            (Judgement::NotJudged, Some(why))
        );
    }
}

/// With guards, a hostile writer of the same queue can do two things to the other writers: keep the lock, and take all places. The audit finds both, and says why.
#[test]
fn a_hostile_writer_of_the_same_queue() {
    let text = r#"<system name="fellows" paradigm="one-shot" platform="epiphany3" duration="20ms">
        <task name="first" domain="own" program="one-shot::several::First" core="0" priority="1" period="1ms" cost="12us"/>
        <task name="keeper" domain="own" program="one-shot::several::Keeper" core="5" priority="1" period="1ms" cost="12us"/>
        <task name="second" domain="fellow" program="one-shot::several::Second" core="10" priority="1" period="2ms" cost="12us"/>
        <channel name="entries" from="first" to="keeper" size="24B" kind="queue" slots="6"/>
        <channel name="more" from="second" to="keeper" WHERE/></system>"#;
    let checked = |more: &str| {
        let folder = folder_with(&[("fellows.xml", &text.replace("WHERE", more))]);
        let options = Options {
            overrides: vec!["platform/local-memory[sram]@guard=64".to_owned()],
            domains: vec!["own".to_owned()],
            searches: 0,
            time: time("2ms").expect("a time"),
            attacks: ["locks held for ever", "queues filled"]
                .map(str::to_owned)
                .into(),
            ..Options::new(folder.path().join("fellows.xml"))
        };
        match audit(&options, &Silent) {
            Ok(mut finished) => finished.result.domains.remove(0),
            Err(error) => panic!("{error}"),
        }
    };
    let shared = checked(r#"joins="entries""#);
    assert_eq!(shared.ruling.verdict(), Verdict::Broken);
    let of = |name: &str| {
        let mut attacks = shared.attacks.iter();
        attacks.find(|one| one.name == name).expect("it was tried")
    };
    let locked = of("locks held for ever");
    assert!(
        locked
            .harm
            .iter()
            .any(|one| one.contains("the queue failed")),
        "{:?}",
        locked.harm
    );
    let filled = of("queues filled");
    assert!(
        filled
            .harm
            .iter()
            .any(|one| one.contains("no place for entry")),
        "{:?}",
        filled.harm
    );
    let why = "core 10 writes into the queue entries as first does: it may fill it";
    assert!(
        shared.reasons.iter().any(|one| one.contains(why)),
        "{:?}",
        shared.reasons
    );
    assert!(
        shared.requests.iter().all(|one| one.bound.is_none()),
        "a bound without an assumption"
    );
}
