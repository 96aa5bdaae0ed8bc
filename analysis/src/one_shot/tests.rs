//! Bounds by hand: interrupts, drifts, rounds, and what others add.

use super::*;
use crate::plan::one_shot::bounds;
use crate::plan::repair;
use crate::plan::{Constraint, Judgement, Plan};

/// By hand: ticks of 100, interrupts of 10. A job of 95 takes 105, so it touches a second tick and takes 115.
#[test]
fn a_job_touches_ticks_that_it_only_reaches_by_interrupts() {
    let interrupted = |job, tick, rings| {
        let interrupts = Interrupts {
            tick,
            rings,
            handlers: Vec::new(),
        };
        interrupts.job(job, 100).whole
    };
    assert_eq!(interrupted(50, 10, 0), 60);
    assert_eq!(interrupted(95, 10, 0), 115);
    assert_eq!(interrupted(0, 10, 0), 10);
    assert_eq!(interrupted(1, 100, 0), u64::MAX);
    // 3 rings per tick, and a job may touch one more tick than it has tick interrupts: 50 + 10 + 6, and 90 + 20 + 9.
    assert_eq!(interrupted(50, 10, 3), 66);
    assert_eq!(interrupted(90, 10, 3), 119);
}

/// By hand: 1 ms of a timer that is 100 ppm fast are 999 900.009 ns, of one that is 100 ppm slow 1 000 100.01 ns.
#[test]
fn a_fast_timer_has_shorter_periods() {
    let of = |drift| Drift(drift).shorten(1_000_000_000, 1000);
    assert_eq!(
        [of(0), of(100), of(-100)],
        [1_000_000_000, 999_900_000, 1_000_100_000]
    );
}

/// If a system runs for longer, what its clocks drift apart until then is twice in the transfer of a notified item, and once in that of a slice.
#[test]
fn an_error_of_clocks_is_in_the_transfer() {
    let of = |channels: &str, wait: &str, duration: &str| {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3-clocks" duration="{duration}">
            <task name="a" program="p::A" core="1" priority="1" period="5ms" cost="1us"{wait}/>
            <task name="b" program="p::B" core="3" priority="1" period="5ms" cost="1us"{wait}/>
            <task name="c" program="p::C" core="0" priority="1" period="5ms" cost="1us"/>{channels}</system>"#
        );
        let system = bulkhead_model::load_system_text("s", &text, &Default::default());
        let system = system.expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let errors = crate::one_shot_clocks::clock_bounds(one_shot, &system.platform);
        let both: u64 = errors
            .iter()
            .filter_map(|one| one.error.within())
            .map(|error| error.end.0)
            .sum();
        assert_eq!(errors.len(), 2);
        let transfer = bounds(one_shot, &system.platform).tasks.channels[0].transfer;
        (transfer.0, both)
    };
    let more = |channels: &str, wait: &str| {
        let (short, long) = (of(channels, wait, "100ms"), of(channels, wait, "300ms"));
        (long.0 - short.0, long.1 - short.1)
    };
    let told = r#"<channel name="x" from="a" to="b" size="8B" notify="true"/>"#;
    let (transfer, errors) = more(told, "");
    assert!(errors > 0);
    assert_eq!(transfer, 2 * errors);
    let section = r#"<channel name="x" from="a" to="b" size="8B"/><channel name="y" from="b" to="a" size="8B" answers="x"/>"#;
    let (transfer, errors) = more(section, r#" wait="1ms""#);
    assert_eq!(transfer, errors);
}

fn pair(size: u64, other: bool) -> Bounds {
    let more = r#"<task name="c" program="p::C" core="2" priority="1" period="1ms" cost="1us"/>
        <channel name="d" from="c" to="b" size="8B"/>"#;
    let text = format!(
        r#"<system name="s" paradigm="one-shot" platform="epiphany3">
        <task name="a" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>
        <task name="b" program="p::B" core="3" priority="1" period="1ms" cost="1us"/>
        <channel name="x" from="a" to="b" size="{size}B"/>{}</system>"#,
        if other { more } else { "" }
    );
    let system = bulkhead_model::load_system_text("s", &text, &Default::default());
    let system = system.expect("valid");
    bounds(
        system.one_shot.as_ref().expect("it is one"),
        &system.platform,
    )
}

/// A host at the end of the row reads at most 131 words of one core, twice. The link into core 3 carries the answers of no other core,
/// so each of its packets counts once for the write, and the reader's job has as many more accesses.
#[test]
fn a_host_core_counts_like_traffic_of_others() {
    let of = |host: &str| {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3"{host}>
            <task name="a" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>
            <task name="b" program="p::B" core="3" priority="1" period="1ms" cost="1us"/>
            <channel name="x" from="a" to="b" size="8B"/></system>"#
        );
        let system = bulkhead_model::load_system_text("s", &text, &Default::default());
        let system = system.expect("valid");
        bounds(
            system.one_shot.as_ref().expect("it is one"),
            &system.platform,
        )
    };
    // A turn of the memory: two cycles for a fetch of 16 bytes.
    const EACH: u64 = 2;
    let (alone, beside) = (of(""), of(r#" host="15""#));
    let more = beside.ports[0].write_wait - alone.ports[0].write_wait;
    // The memory's turns, and requests on the way that the write shares with the host's answers from cores 0 and 3.
    assert!((262 * EACH..262 * (EACH + 4 * 8)).contains(&more), "{more}");
    assert!(beside.jobs[1] >= alone.jobs[1] + 262 * EACH);
}

/// Three hops along the first row; a round of eight bytes takes 9 + 3 h = 18 cycles, measured (docs/reference/mesh.md).
#[test]
fn rounds_are_at_least_those_of_the_mesh() {
    let alone = pair(8, false);
    let port = alone.ports[0];
    assert_eq!(port.hops, 3);
    // Two answers, each with at most three edges and an access more than measured.
    let answers = port.write - port.read;
    assert!((2 * 18..=2 * 24).contains(&answers), "{answers}");
    assert!(pair(40, false).ports[0].write > port.write);
    // Another writer to the same memory, over the same last links, makes both wait longer.
    assert!(pair(8, true).ports[0].write_wait > port.write_wait);
}

/// A write of a large item keeps the lock for longer than the reader asks for it. Before, the read was said to wait for the write, and the flow had a bound.
#[test]
fn a_write_that_is_longer_than_the_reader_asks_leaves_items_without_a_bound() {
    let of = |kind: &str, bytes: u64| {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="a" program="p::A" core="1" priority="1" period="5ms" cost="1us"/>
            <task name="b" program="p::B" core="3" priority="1" period="5ms" cost="1us"/>
            <task name="c" program="p::C" core="7" priority="1" period="5ms" cost="1us"/>
            <channel name="x" from="a" to="b" size="{bytes}B" {kind}/>
            <channel name="y" from="b" to="c" size="8B"/>
            <flow name="all" from="a" to="c"/><flow name="end" from="b" to="c"/></system>"#
        );
        let system = bulkhead_model::load_system_text("s", &text, &Default::default());
        let system = system.expect("valid");
        let bounds = bounds(
            system.one_shot.as_ref().expect("it is one"),
            &system.platform,
        );
        let plan = crate::plan::plan(&bounds.tasks).expect("it can be judged");
        let known = |kind, name: &str| {
            let mut all = plan.constraints.iter();
            let found = all.find(|one| one.kind == kind && one.subject == name);
            found.is_some_and(|one| one.bound.is_some())
        };
        use crate::plan::Kind;
        assert!(
            ["a", "b", "c"]
                .iter()
                .all(|task| known(Kind::Response, task)),
            "{:?}",
            plan.constraints
        );
        assert!(known(Kind::Flow, "end"), "nothing of it waits for x");
        (bounds.fails[0].clone(), known(Kind::Flow, "all"))
    };
    for kind in ["", r#"kind="queue" slots="2""#] {
        assert_eq!(of(kind, 32), (None, true));
    }
    let (why, known) = of("", 1200);
    let why = why.expect("a reason");
    assert!(why.contains("the lock of the port x for"), "{why}");
    assert!(why.contains("but `b` asks for it"), "{why}");
    assert!(!known);
    // Here the reader has the lock for too long, too.
    let (why, known) = of(r#"kind="queue" slots="2""#, 4096);
    let why = why.expect("a reason");
    assert!(why.contains("but `a` asks for it"), "{why}");
    assert!(!known);
}

/// Two jobs of the other side may fall within an operation only if the first may end as late as the second one begins. Between them an interrupt may keep this side from
/// asking, so both have the lock before it. Here a neighbour of the one side keeps it waiting for nearly its period.
#[test]
fn a_late_task_has_the_lock_twice() {
    let of = |[writer, reader]: [u64; 2]| {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="a" program="p::A" core="0" priority="1" period="8ms" cost="9us"/>
            <task name="b" program="p::B" core="3" priority="1" period="8ms" cost="9us"/>
            <task name="c" program="p::C" core="0" priority="2" period="80ms" cost="{writer}us"/>
            <task name="d" program="p::D" core="3" priority="2" period="80ms" cost="{reader}us"/>
            <channel name="x" from="a" to="b" size="8B"/></system>"#
        );
        let system = bulkhead_model::load_system_text("s", &text, &Default::default());
        let system = system.expect("valid");
        let bounds = bounds(
            system.one_shot.as_ref().expect("it is one"),
            &system.platform,
        );
        assert_eq!((&bounds.unbounded, &bounds.fails[0]), (&None, &None));
        bounds.ports[0]
    };
    let (early, writer, reader) = (of([9, 9]), of([7990, 9]), of([9, 7990]));
    assert!(writer.read_wait >= early.read_wait + early.write);
    assert_eq!(
        writer.write_wait, early.write_wait,
        "it does not wait for itself"
    );
    assert!(reader.write_wait >= early.write_wait + early.read);
}

/// Bounds of a writer on core 0, its reader on core 5 beside another task there, and a task on core 10 alone. `handlers`: of the reader; `unstated`: cores.
fn with_handlers(handlers: &str, unstated: &[u16]) -> Bounds {
    let text = format!(
        r#"<system name="s" paradigm="one-shot" platform="epiphany3">
        <task name="writer" program="p::A" core="0" priority="1" period="10ms" cost="10us"/>
        <task name="reader" program="p::B" core="5" priority="1" period="2ms" cost="10us" {handlers}/>
        <task name="neighbour" program="p::B" core="5" priority="2" period="20ms" cost="2500us"/>
        <task name="alone" program="p::C" core="10" priority="1" period="5ms" cost="10us"/>
        <channel name="items" from="writer" to="reader" size="8B"/></system>"#
    );
    let system = bulkhead_model::load_system_text("s", &text, &Default::default());
    let mut system = system.expect("valid");
    let one_shot = system.one_shot.as_mut().expect("it is one");
    one_shot.unstated.extend(unstated);
    bounds(one_shot, &system.platform)
}

/// What is known of the response of each task.
fn responses_of(plan: &Plan) -> Vec<Constraint> {
    let all = plan.constraints.iter();
    let responses = all.filter(|one| one.kind == crate::plan::Kind::Response);
    responses.cloned().collect()
}

/// The response of each task in nanoseconds.
fn responses(bounds: &Bounds) -> Vec<Option<u64>> {
    let plan = crate::plan::plan(&bounds.tasks).expect("it can be judged");
    let of = |name: &str| {
        let mut all = plan.constraints.iter();
        let found = all.find(|one| one.kind == crate::plan::Kind::Response && one.subject == name);
        found.and_then(|one| one.bound)
    };
    bounds.tasks.tasks.iter().map(|one| of(&one.name)).collect()
}

/// Nothing bounds what such a core does, nor whoever shares a port with it. All others keep their bounds.
#[test]
fn a_core_with_handlers_that_nobody_states_has_no_bound() {
    let none = with_handlers("", &[]);
    for core in [0, 5] {
        let bounds = with_handlers("", &[core]);
        assert_eq!(bounds.unbounded, None);
        let alone = *responses(&none).last().expect("four");
        assert_eq!(responses(&bounds), [None, None, None, alone]);
        let why = format!("core {core} sets timing events, and no task of it states");
        let said = bounds.lost.iter().take(3).flatten();
        assert_eq!(said.filter(|one| one.why().contains(&why)).count(), 3);
        assert_eq!(bounds.lost[3], None);
        assert!(bounds.beside().contains(&why), "{}", bounds.beside());
        assert!(bounds.fails_on(&[0]).is_some_and(|one| one.contains(&why)));
        // Nobody knows whether they are in time, and there is nothing to repair.
        let plan = crate::plan::plan(&bounds.tasks).expect("it can be judged");
        let [unknown @ .., alone] = &responses_of(&plan)[..] else {
            panic!("four tasks");
        };
        for one in unknown {
            assert_eq!((one.bound, one.judgement), (None, Judgement::NotJudged));
            assert!(one.note.as_ref().is_some_and(|note| note.contains(&why)));
        }
        assert!(alone.holds() && plan.schedulable);
        assert_eq!(repair::repairs(&bounds.tasks, &plan), []);
        // The kernel watches budgets all the same; more operations of whoever may be late count.
        let mut budgets = bounds.jobs.iter().zip(&none.jobs);
        assert!(budgets.all(|(now, before)| (*before..before + 1000).contains(now)));
    }
    let other = with_handlers("", &[10]);
    assert_eq!(responses(&other)[..3], responses(&none)[..3]);
}

/// By hand: handlers of 6000 cycles every 2 ms. A job of 2.5 ms may meet two such ticks, and the tick before it a third.
#[test]
fn stated_handlers_are_in_responses_and_locks_and_not_in_budgets() {
    let none = with_handlers("", &[]);
    let stated = with_handlers(r#"handlers="10us" handlers-apart="2ms""#, &[5]);
    assert_eq!(stated.lost.iter().flatten().count(), 0);
    let cost = |bounds: &Bounds, task: usize| bounds.tasks.tasks[task].cost.expect("one").0;
    let more = |task: usize| cost(&stated, task) - cost(&none, task);
    const MICROSECOND: u64 = 1_000_000;
    // And the writer asks more often for the lock in the memory of this core.
    assert!((30..40).contains(&(more(2) / MICROSECOND)), "{}", more(2));
    let asks = stated.jobs[2] - none.jobs[2];
    // Both are rounded to whole nanoseconds.
    let by_hand = asks * MICROSECOND / 600 + 30 * MICROSECOND;
    assert!(more(2).abs_diff(by_hand) <= 1000);
    // The writer may find the lock taken, and its owner in a handler.
    assert!(more(0) >= 10 * MICROSECOND, "{}", more(0));
    assert!(stated.jobs[0] >= none.jobs[0] + 6000);
    assert_eq!(more(3), 0);
    // A tick's whole time.
    let long = with_handlers(r#"handlers="1ms""#, &[5]);
    let why = "on core 5, handlers of timing events may take 600000 cycles in one tick of 600000";
    assert!(
        long.lost[0]
            .as_ref()
            .is_some_and(|one| one.why().contains(why))
    );
    // That is known, so whatever is there fails, with the reason; and another cost repairs nothing.
    let plan = crate::plan::plan(&long.tasks).expect("it can be judged");
    let [late @ .., alone] = &responses_of(&plan)[..] else {
        panic!("four tasks");
    };
    for one in late {
        assert_eq!((one.bound, one.judgement), (None, Judgement::Failed));
        assert!(one.note.as_ref().is_some_and(|note| note.contains(why)));
    }
    assert!(alone.holds() && !plan.schedulable);
    assert_eq!(repair::repairs(&long.tasks, &plan), []);
    let named = repair::without_time(&long.tasks);
    assert_eq!(named, ["writer", "reader", "neighbour"]);
    assert_eq!(long.lost[3], None);
    assert_eq!(responses(&long)[3], responses(&none)[3]);
}

/// Core 0 gives all others the time. If it is slow, whoever compares clocks with it has no bound; two tasks of one core, and whoever asks no clock, keep theirs.
#[test]
fn tasks_that_compare_clocks_are_lost_with_their_master() {
    let lost = |channel: &str, is_slow: bool| {
        // A job that hands out slices waits for their results.
        let wait = match channel.contains("answers") {
            true => r#"wait="1ms""#,
            false => "",
        };
        let task = |name: &str, core: u16, priority: u8, more: &str| {
            format!(
                r#"<task name="{name}" program="p::A" core="{core}" priority="{priority}" period="5ms" cost="1us" {more}/>"#
            )
        };
        let tasks = [
            task("time", 0, 1, ""),
            task("a", 1, 1, wait),
            task("b", 2, 1, wait),
            task("c", 1, 2, ""),
            task("alone", 3, 1, ""),
        ];
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3-clocks" duration="10ms">{}{channel}</system>"#,
            tasks.concat()
        );
        let system = bulkhead_model::load_system_text("s", &text, &Default::default());
        let system = system.unwrap_or_else(|errors| panic!("{errors}"));
        let mut platform = system.platform.clone();
        if is_slow {
            platform.tiles[0].pipeline.branch_penalty = 4;
        }
        let found = bounds(system.one_shot.as_ref().expect("it is one"), &platform);
        assert_eq!(found.unbounded, None);
        found.lost
    };
    let notified = r#"<channel name="x" from="a" to="b" size="8B" notify="true"/>"#;
    let section = r#"<channel name="x" from="a" to="b" size="8B"/><channel name="y" from="b" to="a" size="8B" answers="x"/>"#;
    let sampled = r#"<channel name="x" from="a" to="b" size="8B"/>"#;
    let of_one_core = r#"<channel name="x" from="a" to="c" size="8B" notify="true"/>"#;
    for channel in [notified, section, sampled, of_one_core] {
        assert!(
            lost(channel, false).iter().all(Option::is_none),
            "{channel}"
        );
        let lost = lost(channel, true);
        let own = lost[0].as_ref().expect("it is slow").why();
        assert!(own.contains("on core 0, pipeline"), "{own}");
        assert_eq!(lost[4], None);
        let compares = channel == notified || channel == section;
        for (task, lost) in lost.iter().enumerate().take(4).skip(1) {
            let why = lost.as_ref().map_or("none", Unbounded::why);
            let core = if task == 2 { 2 } else { 1 };
            let said = format!("core {core} compares its clock with others: ");
            match compares {
                true => assert!(
                    why.starts_with(&said) && why.contains("branch-penalty"),
                    "{why}"
                ),
                false => assert_eq!(why, "none", "{channel}"),
            }
        }
    }
}
