//! Verdicts that were not sound once, each with its smallest case, by hand.

mod tables;

use bulkhead_analysis::plan::repair::{Number, repaired, repairs};
use bulkhead_analysis::plan::{Kind, Plan, plan};
use bulkhead_model::load_tasks_text;
use bulkhead_model::tasks::TaskSystem;

fn load(inside: &str) -> TaskSystem {
    let text = format!("<task-system name=\"s\">{inside}</task-system>");
    load_tasks_text("case", &text, &Default::default())
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn judged(inside: &str) -> Plan {
    plan(&load(inside)).unwrap()
}

/// Bounds of tasks in microseconds, and whether everything holds.
fn bounds(inside: &str) -> (Vec<Option<f64>>, bool) {
    let plan = judged(inside);
    let tasks = plan
        .constraints
        .iter()
        .filter(|c| matches!(c.kind, Kind::Response | Kind::Tardiness));
    let bounds = tasks
        .map(|c| c.bound.map(|bound| bound as f64 / 1000.0))
        .collect();
    (bounds, plan.schedulable)
}

/// 1000 accesses of 100 ns each spend the budget of 1 ms in 100 us, so a task that comes then finds the processor stalled for 900 us, and
/// needs 200 us more, whether it touches the memory or not.
#[test]
fn a_stall_meets_who_makes_no_access() {
    let system = |deadline: &str| {
        format!(
            "<processors count=\"1\" policy=\"fixed-priority\"/><memguard period=\"1ms\" access=\"100ns\"/>\
             <share core=\"0\" budget=\"1000\"/>\
             <task name=\"urgent\" period=\"10ms\" deadline=\"{deadline}\" cost=\"200us\" priority=\"1\" core=\"0\"/>\
             <task name=\"streaming\" period=\"100ms\" cost=\"3ms\" accesses=\"20000\" priority=\"2\" core=\"0\"/>"
        )
    };
    let (found, holds) = bounds(&system("500us"));
    assert_eq!((found[0], holds), (Some(1100.0), false));
    // 3 ms, one stall of another task and 20 of its own, and 200 us in each of the three periods of the urgent task.
    assert_eq!(found[1], Some(3000.0 + 21.0 * 900.0 + 3.0 * 200.0));
    assert!(bounds(&system("1100us")).1);
    // The same under earliest deadline first and without preemption.
    for policy in ["edf", "non-preemptive"] {
        let text = system("1ms").replace("fixed-priority", policy);
        let text = match policy {
            "edf" => text
                .replace(" priority=\"1\"", "")
                .replace(" priority=\"2\"", ""),
            _ => text,
        };
        let (found, holds) = bounds(&text);
        assert!(!holds && found[0] >= Some(1100.0), "{policy}: {found:?}");
    }
    // Nobody touches the memory: nobody is stalled.
    let idle = system("500us").replace(" accesses=\"20000\"", "");
    assert_eq!(bounds(&idle).0[0], Some(200.0));
}

/// A section of 100 us of a less urgent task makes 50 of its accesses at most (and one that began before): each may cost 900 us / 1000 of a
/// stall, in addition to the one in progress.
#[test]
fn a_section_stalls_with_its_accesses() {
    let (found, _) = bounds(
        "<processors count=\"1\" policy=\"fixed-priority\"/><memguard period=\"1ms\" access=\"2us\"/>\
         <share core=\"0\" budget=\"50\"/>\
         <task name=\"urgent\" period=\"10ms\" cost=\"200us\" priority=\"1\" core=\"0\"><section resource=\"r\" length=\"10us\"/></task>\
         <task name=\"slow\" period=\"1s\" cost=\"3ms\" accesses=\"1000\" priority=\"2\" core=\"0\"><section resource=\"r\" length=\"100us\"/></task>",
    );
    // 900 first, 100 and 51 * 900 / 50, its own 200.
    assert_eq!(found[0], Some(900.0 + 100.0 + 918.0 + 200.0));
}

/// The urgent task preempts the other one in its section of 17 and is refused its own: the kernel goes back, and once more to it, 2
/// each, which the other one waits for as well. By hand, in us: (2 + 9 + 2 + 4) of the urgent, 2 + 36 + 2 of its own.
#[test]
fn a_refused_section_costs_two_decisions() {
    let (found, _) = bounds(
        "<processors count=\"1\" policy=\"fixed-priority\"/><overheads schedule=\"2us\"/>\
         <task name=\"urgent\" period=\"200us\" cost=\"9us\" priority=\"1\" core=\"0\"><section resource=\"r\" length=\"3us\"/></task>\
         <task name=\"other\" period=\"200us\" cost=\"36us\" priority=\"2\" core=\"0\"><section resource=\"r\" length=\"17us\"/></task>",
    );
    // Each may be refused: the bound of the lower one counts it for both.
    assert_eq!(found, [Some(17.0 + 17.0), Some(17.0 + 44.0)]);
}

/// A decision of 2 for the lowest task delays the others, so that the highest one, which cannot preempt the middle one, comes once more
/// before that starts: 2, twice 2 + 5 + 2, a decision of 2 and 3: 25 less the moment after which they came.
#[test]
fn a_decision_for_a_lower_task_delays_a_start() {
    let (found, _) = bounds(
        "<processors count=\"1\" policy=\"threshold\"/><overheads schedule=\"2us\"/>\
         <task name=\"high\" period=\"10us\" cost=\"5us\" priority=\"1\" threshold=\"1\" core=\"0\"/>\
         <task name=\"middle\" period=\"1ms\" cost=\"3us\" priority=\"2\" threshold=\"1\" core=\"0\"/>\
         <task name=\"low\" period=\"1ms\" cost=\"1us\" priority=\"3\" threshold=\"3\" core=\"0\"/>",
    );
    assert!(found[1] >= Some(25.0), "{found:?}");
}

/// Two tasks of 10 ms in slices of 1 ms take turns twenty times, and each turn begins with a decision of 100 us.
#[test]
fn every_slice_begins_with_a_decision() {
    let system = |deadline: &str| {
        let task = |name: &str| {
            format!(
                "<task name=\"{name}\" period=\"100ms\" deadline=\"{deadline}\" cost=\"10ms\" core=\"0\"/>"
            )
        };
        format!(
            "<processors count=\"1\" policy=\"time-slice\" slice=\"1ms\"/><overheads schedule=\"100us\"/>{}{}",
            task("a"),
            task("b")
        )
    };
    assert_eq!(bounds(&system("21500us")), (vec![Some(22_000.0); 2], false));
    assert!(bounds(&system("22ms")).1);
}

/// A quota of half a slice ends turns early: 1 ms in a slice of 1 ms, but 500 us in each 2 ms, needs two turns.
#[test]
fn a_quota_that_is_used_up_ends_a_turn() {
    let (found, _) = bounds(
        "<processors count=\"1\" policy=\"time-slice\" slice=\"1ms\"/>\
         <task name=\"a\" period=\"100ms\" cost=\"1ms\" core=\"0\"><cpu quota=\"500us\" period=\"2ms\"/></task>\
         <task name=\"b\" period=\"100ms\" cost=\"10ms\" core=\"0\"/>",
    );
    // At worst: a little is left, so it runs and is stopped, waits 1.5 ms, gets a turn behind a slice, is stopped again ...
    assert!(
        found[0] >= Some(1000.0 + 2.0 * 1500.0 + 2.0 * 1000.0),
        "{found:?}"
    );
}

/// The less urgent task comes every 100 us, and each of its releases takes 10 us from the running task.
#[test]
fn releases_of_the_less_urgent_hold_up_the_urgent() {
    let system = |policy: &str, priority: [&str; 2]| {
        format!(
            "<processors count=\"1\" policy=\"{policy}\"/><overheads release=\"10us\"/>\
             <task name=\"urgent\" period=\"10ms\" deadline=\"1ms\" cost=\"900us\"{} core=\"0\"/>\
             <task name=\"often\" period=\"100us\" deadline=\"100ms\" cost=\"5us\"{} core=\"0\"/>",
            priority[0], priority[1]
        )
    };
    // 900 and its release, and 10 of each 100: 910 + 10 n with n = ceil(w / 100): 1020.
    let fixed = system("fixed-priority", [" priority=\"1\"", " priority=\"2\""]);
    let (found, holds) = bounds(&fixed);
    assert_eq!((found[0], holds), (Some(1020.0), false));
    let (found, holds) = bounds(&system("edf", ["", ""]));
    assert_eq!((found[0], holds), (Some(1020.0), false));
    let wide = system("fixed-priority", [" priority=\"1\"", " priority=\"2\""]);
    let wide = wide.replace("deadline=\"1ms\"", "deadline=\"1020us\"");
    assert!(bounds(&wide).1);
}

/// (1, 2) up to 1 late and (1, 2) with deadline 3 fill the processor; the second responds within 3.
#[test]
fn jitter_on_a_full_processor_has_a_bound() {
    let (found, holds) = bounds(
        "<processors count=\"1\" policy=\"fixed-priority\"/>\
         <task name=\"late\" period=\"2us\" cost=\"1us\" jitter=\"1us\" priority=\"1\" core=\"0\"/>\
         <task name=\"second\" period=\"2us\" deadline=\"3us\" cost=\"1us\" priority=\"2\" core=\"0\"/>",
    );
    assert_eq!((found, holds), (vec![Some(2.0), Some(3.0)], true));
}

/// A deadline counts from the arrival: 1 us of jitter and 1 us of cost make a response of 2 us.
#[test]
fn a_deadline_counts_from_the_arrival() {
    let system = |deadline: &str| {
        format!(
            "<processors count=\"1\" policy=\"fixed-priority\"/>\
             <task name=\"late\" period=\"10us\" deadline=\"{deadline}\" cost=\"1us\" jitter=\"1us\" core=\"0\"/>"
        )
    };
    assert!(bounds(&system("2us")).1);
    assert!(!bounds(&system("1999ns")).1);
}

/// What fails under policies of all processors, and in three phases, says by how much.
#[test]
fn failures_have_numbers() {
    let task = |name: &str, cost: u64, deadline: u64, priority: &str| {
        format!(
            "<task name=\"{name}\" period=\"20us\" deadline=\"{deadline}us\" cost=\"{cost}us\"{priority}/>"
        )
    };
    let three = |policy: &str, priorities: [&str; 3]| {
        format!(
            "<processors count=\"2\" policy=\"{policy}\"/>{}{}{}",
            task("a", 4, 4, priorities[0]),
            task("b", 4, 4, priorities[1]),
            task("c", 4, 6, priorities[2])
        )
    };
    let fixed = three(
        "global-fixed-priority",
        [" priority=\"1\"", " priority=\"2\"", " priority=\"3\""],
    );
    // The third waits for one of the others: 8.
    assert_eq!(
        bounds(&fixed),
        (vec![Some(4.0), Some(4.0), Some(8.0)], false)
    );
    let plan = judged(&three("global-edf", [""; 3]));
    let failed = plan.failures();
    // Densities 1, 1 and 2/3 against 2 - 1.
    let sum = failed
        .iter()
        .find(|c| c.subject == "densities of all tasks")
        .unwrap();
    assert_eq!((sum.bound, sum.limit), (Some(2_666_667), Some(1_000_000)));
    let (found, holds) = bounds(
        "<processors count=\"1\" policy=\"three-phase\"/><tdma overhead=\"1us\"/><share core=\"0\" slot=\"3us\"/>\
         <task name=\"a\" period=\"400us\" deadline=\"30us\" cost=\"20us\" load=\"4us\" unload=\"4us\" priority=\"1\" core=\"0\"/>",
    );
    assert!(!holds && found[0] > Some(30.0), "{found:?}");
}

/// Level C is asked for 169 % of a processor: no bound exists, and that is said; the slots that a plan chose are shown.
#[test]
fn what_is_missing_is_said() {
    let plan = judged(
        "<processors count=\"1\" policy=\"mc2\"/>\
         <task name=\"x\" period=\"100ms\" cost=\"85ms\"/><task name=\"y\" period=\"100ms\" cost=\"84ms\"/>",
    );
    let late = plan
        .constraints
        .iter()
        .find(|c| c.kind == Kind::Tardiness)
        .unwrap();
    assert_eq!(
        late.note.as_deref(),
        Some("no bound exists: the load of all processors, level C is 169 % of 100 %")
    );
    let plan = judged(
        "<processors count=\"2\" policy=\"three-phase\"/><tdma overhead=\"1us\"/>\
         <task name=\"a\" period=\"4ms\" cost=\"20us\" load=\"4us\" core=\"0\"/><task name=\"b\" period=\"4ms\" cost=\"20us\" load=\"4us\" core=\"1\"/>",
    );
    let slots = plan.choices.iter().find(|c| c.what == "slots").unwrap();
    assert!(
        slots.how.contains("for each of processors 0, 1"),
        "{}",
        slots.how
    );
}

/// Level C is asked for 169 % and has 100 %; what it takes the task of level A for is 69 % of that, so 69 of 100 ms less of this
/// estimate alone repair it, and neither the estimate of level A nor the task of level C need change.
#[test]
fn the_least_repair_of_an_overloaded_level_is_its_own_estimate() {
    let text = "<task-system name=\"s\"><processors count=\"1\" policy=\"mc2\" arrivals=\"periodic\"/>\
         <task name=\"a\" period=\"100ms\" criticality=\"A\"><cost level=\"A\" time=\"95ms\"/>\
         <cost level=\"B\" time=\"92ms\"/><cost level=\"C\" time=\"90ms\"/></task>\
         <task name=\"c\" period=\"100ms\" cost=\"79ms\"/></task-system>";
    let system = load_tasks_text("case", text, &Default::default()).unwrap();
    let judge = plan;
    let plan = judge(&system).unwrap();
    let note = plan.constraints.iter().find_map(|c| c.note.clone());
    assert!(note.is_some_and(|note| note.contains("169 % of 100 %")));
    let all = repairs(&system, &plan);
    let found = |number: Number, subject: &str| {
        let repair = all
            .iter()
            .find(|r| r.number == number && r.subject == subject);
        repair.map(|repair| (repair.from, repair.to))
    };
    let level_c = found(Number::Estimate, "a at level C");
    assert_eq!(level_c, Some((90_000_000, 21_000_000)), "{all:#?}");
    // The estimate of level B decides nothing, and a cut of all estimates is a larger change.
    assert_eq!(found(Number::Estimate, "a at level B"), None);
    assert_eq!(found(Number::Cost, "a"), Some((95_000_000, 21_000_000)));
    let least = all
        .iter()
        .find(|repair| repair.subject.starts_with('a'))
        .unwrap();
    assert_eq!(least.number, Number::Estimate);
    // With it everything holds; with a nanosecond more it does not.
    let repair = all.iter().find(|r| r.number == Number::Estimate).unwrap();
    let holds = |value| {
        let changed = repaired(&system, repair, value).unwrap();
        judge(&changed).unwrap().schedulable
    };
    assert!(holds(repair.to) && !holds(repair.to + 1));
}

/// Too late by 2 us: less jitter repairs it, and so does a shorter section of the other task where that is what blocks.
#[test]
fn repairs_know_more_than_costs() {
    let found = |inside: &str| {
        let text = format!("<task-system name=\"s\">{inside}</task-system>");
        let system = load_tasks_text("case", &text, &Default::default()).unwrap();
        let plan = plan(&system).unwrap();
        assert!(!plan.schedulable);
        let all = repairs(&system, &plan);
        all.into_iter()
            .map(|repair| (repair.number, repair.subject, repair.to))
            .collect::<Vec<_>>()
    };
    let jitter = found(
        "<processors count=\"1\" policy=\"fixed-priority\"/>\
         <task name=\"a\" period=\"10us\" deadline=\"6us\" cost=\"5us\" jitter=\"3us\" priority=\"1\" core=\"0\"/>",
    );
    assert!(
        jitter.contains(&(Number::Jitter, "a".to_owned(), 1000)),
        "{jitter:?}"
    );
    let sections = found(
        "<processors count=\"1\" policy=\"fixed-priority\"/><overheads schedule=\"0ns\"/>\
         <task name=\"a\" period=\"100us\" deadline=\"9us\" cost=\"5us\" priority=\"1\" core=\"0\"><section resource=\"r\" length=\"1us\"/></task>\
         <task name=\"b\" period=\"100us\" cost=\"8us\" priority=\"2\" core=\"0\"><section resource=\"r\" length=\"6us\"/></task>",
    );
    assert!(
        sections.contains(&(Number::Sections, "b".to_owned(), 4000)),
        "{sections:?}"
    );
    let overhead = found(
        "<processors count=\"1\" policy=\"fixed-priority\"/><overheads schedule=\"2us\"/>\
         <task name=\"a\" period=\"100us\" deadline=\"8us\" cost=\"5us\" priority=\"1\" core=\"0\"/>",
    );
    assert!(
        overhead.contains(&(Number::Overhead, "schedule".to_owned(), 1500)),
        "{overhead:?}"
    );
}

/// Each holds the bus for 6 of 10 ms: wherever they are, one of them waits 6 ms for the other, and 12 are too many. A resource is one of a
/// single processor, so they stay together even where they do not fit.
#[test]
fn those_who_share_a_resource_share_a_processor() {
    let task = |name: &str, sections: &[&str]| {
        let held = sections
            .iter()
            .map(|r| format!("<section resource=\"{r}\" length=\"6ms\"/>"));
        format!(
            "<task name=\"{name}\" period=\"10ms\" cost=\"6ms\">{}</task>",
            held.collect::<String>()
        )
    };
    let processors = "<processors count=\"2\" policy=\"fixed-priority\"/>";
    let two = judged(&format!(
        "{processors}{}{}",
        task("a", &["bus"]),
        task("b", &["bus"])
    ));
    assert!(!two.schedulable);
    assert_eq!(two.system.tasks[0].core, two.system.tasks[1].core);
    // The third one holds what each of the others holds, and those are apart: no processor is right, and that is said.
    let placed = task("a", &["bus"]).replace("cost=", "core=\"0\" cost=");
    let other = task("b", &["dma"]).replace("cost=", "core=\"1\" cost=");
    let three = judged(&format!(
        "{processors}{placed}{other}{}",
        task("c", &["bus", "dma"])
    ));
    let failed: Vec<_> = three
        .constraints
        .iter()
        .filter(|c| c.kind == Kind::Section)
        .collect();
    assert_eq!(failed.len(), 1);
    assert!(!failed[0].holds() && !three.schedulable);
}

/// Tests that also bound late tasks end at the period, and what rests on such a bound has none either: it is said.
#[test]
fn a_test_that_ends_says_where() {
    let notes = |inside: &str| -> Vec<Option<String>> {
        let responses = judged(inside).constraints.into_iter();
        let responses = responses.filter(|one| one.kind == Kind::Response);
        responses.map(|one| one.note).collect()
    };
    let task = |name: &str, period, cost| {
        format!("<task name=\"{name}\" period=\"{period}ms\" cost=\"{cost}ms\"/>")
    };
    let all = [("a", 10, 6), ("b", 10, 6), ("c", 20, 14), ("d", 40, 2)];
    let all = all.map(|(name, period, cost)| task(name, period, cost));
    let policy = "<processors count=\"2\" policy=\"global-fixed-priority\"/>";
    let ends = |period| {
        Some(format!(
            "more than its period of {period}ms, at which the test ends"
        ))
    };
    let rests = Some("it depends on `c`, which has no bound".to_owned());
    let found = notes(&(policy.to_owned() + &all.concat()));
    assert_eq!(found, [None, None, ends(20), rests]);
    let phases = "<processors count=\"1\" policy=\"three-phase\"/><tdma overhead=\"0ns\"/><share core=\"0\" slot=\"100us\"/>";
    let tasks = [("a", 10, 3), ("b", 30, 20)];
    let tasks = tasks.map(|(name, period, cost)| task(name, period, cost));
    assert_eq!(
        notes(&(phases.to_owned() + &tasks.concat())),
        [ends(10), None]
    );
}

/// A longer period helps only until another task goes first: (5, 7, D=6) beside (7, 14, D=13) passes with periods from 12 to 14.
#[test]
fn the_repair_of_a_period_stops_where_priorities_change() {
    let system = load(
        "<processors count=\"1\" policy=\"rate-monotonic\"/>\
         <task name=\"t0\" period=\"7ns\" deadline=\"6ns\" cost=\"5ns\"/><task name=\"t1\" period=\"14ns\" deadline=\"13ns\" cost=\"7ns\"/>",
    );
    let all = repairs(&system, &plan(&system).unwrap());
    let mut periods = all.iter().filter(|one| one.number == Number::Period);
    let longer = periods.find(|one| one.subject == "t0");
    assert_eq!(longer.map(|one| one.to), Some(12));
}

/// Where a deadline is the period, a longer period moves both; the repair says so, because the file may give the deadline.
#[test]
fn the_repair_of_a_period_names_the_deadline() {
    let file = |deadline: &str| {
        format!(
            "<processors policy=\"edf\"/><task name=\"a\" period=\"10ms\"{deadline} cost=\"6ms\"/>\
             <task name=\"b\" period=\"20ms\" cost=\"9ms\"/>"
        )
    };
    for (deadline, moves) in [
        ("", true),
        (" deadline=\"10ms\"", true),
        (" deadline=\"9ms\"", false),
    ] {
        let failing = judged(&file(deadline));
        let text = format!("<task-system name=\"s\">{}</task-system>", file(deadline));
        let system = load_tasks_text("case", &text, &Default::default()).unwrap();
        let found = repairs(&system, &failing);
        let period = found
            .iter()
            .find(|r| r.number == Number::Period && r.subject == "a");
        assert_eq!(period.map(|r| r.with_deadline), Some(moves), "{deadline}");
    }
}

/// 20 000 accesses of 100 ns take 2 ms, and the cost, which contains them, is 1 ms.
#[test]
fn accesses_that_a_cost_cannot_contain_are_noted() {
    let notes = |cost: &str| {
        judged(&format!(
            "<processors count=\"1\" policy=\"fixed-priority\"/><memguard period=\"1ms\" access=\"100ns\"/>\
             <share core=\"0\" budget=\"1000\"/>\
             <task name=\"a\" period=\"100ms\" cost=\"{cost}\" accesses=\"20000\" core=\"0\"/>"
        ))
        .notes
    };
    assert!(notes("2ms").is_empty());
    let [note] = &notes("1ms")[..] else {
        panic!("one note")
    };
    assert!(
        note.contains("the memory accesses of a take longer than its cost"),
        "{note}"
    );
}

fn judged_system(inside: &str) -> bulkhead_analysis::plan::system::Verdict {
    let text = format!("<system name=\"s\" platform=\"tiled-gem5\">{inside}</system>");
    let system = bulkhead_model::load_system_text("case", &text, &Default::default());
    let system = system.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    bulkhead_analysis::plan::system::judge(&system).unwrap()
}

/// Without a budget it comes after all who have one: it is judged or named, never silently left out.
#[test]
fn a_task_that_comes_last_is_named() {
    let named = |a: &str| {
        let verdict = judged_system(&format!(
            "<tilemux tile=\"6\" policy=\"realtime\"/><domain name=\"d\">\
             <app name=\"a\" tile=\"6\" program=\"p\">{a}<task period=\"10ms\" cost=\"9ms\"/></app>\
             <app name=\"c\" tile=\"6\" program=\"p\"><task period=\"10ms\" cost=\"5ms\"/></app></domain>"
        ));
        let names: Vec<String> = verdict
            .unjudged
            .iter()
            .map(|one| one.what.clone())
            .collect();
        let because = verdict
            .unjudged
            .iter()
            .all(|one| one.because.contains("it runs last"));
        (names, because, verdict.all().count())
    };
    let quota = "<cpu quota=\"9500us\" period=\"10ms\"/>";
    assert_eq!(named(quota), (vec!["task c".to_owned()], true, 2));
    let none = ["task a", "task c"].map(str::to_owned).to_vec();
    assert_eq!(named(""), (none, true, 0));
}

/// Alone on its tile, a job of 1 ms with a quota of 1 ms: its switches are taken from the quota, so its end waits for the next period.
#[test]
fn a_response_holds_only_if_the_quota_pays_for_it() {
    let responses = |quota: &str, deadline: &str| {
        let verdict = judged_system(&format!(
            "<tilemux tile=\"6\" policy=\"realtime\"/><domain name=\"d\"><app name=\"a\" tile=\"6\" program=\"p\">\
             <cpu quota=\"{quota}\" period=\"5ms\"/><task period=\"5ms\" cost=\"1ms\" deadline=\"{deadline}\"/></app></domain>"
        ));
        let of = |kind| {
            let mut all = verdict.all().filter(move |one| one.kind == kind);
            let one = all.next().expect("judged");
            (one.bound, one.holds())
        };
        let plans = verdict.tasks.iter().all(|plan| plan.schedulable);
        (of(Kind::Response), of(Kind::Quota), plans)
    };
    let (response, quota, schedulable) = responses("1ms", "4ms");
    assert!(quota.0 > Some(1_000_000) && !quota.1, "{quota:?}");
    assert_eq!((response, schedulable), ((None, false), false));
    // Where the quota pays, the response contains the switches.
    let (response, quota, schedulable) = responses("1100us", "4ms");
    assert_eq!((response, schedulable), (quota, true));
    assert!(response.0 > Some(1_000_000), "{response:?}");
    let (response, _, schedulable) = responses("1100us", "1000001ns");
    assert!(!response.1 && !schedulable, "{response:?}");
}

/// What lies on the way of a flow from an application to itself over others is not in its own job.
#[test]
fn a_flow_that_comes_back_over_others_is_not_one_job() {
    let app = |name: &str, tile: u8, to: &str| {
        let gate = match to {
            "" => String::new(),
            to => format!("<sgate name=\"to\" to=\"{to}\"/>"),
        };
        format!(
            "<app name=\"{name}\" tile=\"{tile}\" program=\"p\"><rgate name=\"in\"/>{gate}\
             <task period=\"1ms\" cost=\"90us\"/></app>"
        )
    };
    let judged = |back: &str| {
        judged_system(&format!(
            "<domain name=\"d\">{}{}</domain><flow name=\"f\" from=\"a\" to=\"a\" deadline=\"500us\"/>",
            app("a", 2, "b"),
            app("b", 3, back)
        ))
    };
    let (there, round) = (judged(""), judged("a"));
    assert!(there.unjudged.is_empty(), "{:?}", there.unjudged);
    assert_eq!(round.unjudged.len(), 1);
    assert!(round.unjudged[0].because.contains("leads from there back"));
}

/// Two sensors and one actuator that works for 400 us on each message: the flow of one may find it at work for two messages of the other, so
/// 415 us is no bound for it.
#[test]
fn a_flow_into_a_server_of_others_waits_for_them() {
    let app = |name: &str, tile: u8, cost: &str, gate: &str| {
        format!(
            "<app name=\"{name}\" tile=\"{tile}\" program=\"p\"><rgate name=\"in\"/>{gate}\
             <task period=\"10ms\" cost=\"{cost}\"/></app>"
        )
    };
    let bound = |to: &str| {
        let verdict = judged_system(&format!(
            "<domain name=\"d\">{}{}{}{}</domain><flow name=\"f\" from=\"l\" to=\"r\" deadline=\"600us\"/>",
            app("l", 2, "5us", "<sgate name=\"to\" to=\"r\"/>"),
            app("m", 3, "5us", &format!("<sgate name=\"to\" to=\"{to}\"/>")),
            app("r", 4, "400us", ""),
            app("s", 5, "400us", "")
        ));
        assert!(verdict.unjudged.is_empty(), "{:?}", verdict.unjudged);
        let flow = verdict.constraints.iter().find(|one| one.subject == "f");
        let flow = flow.expect("judged").clone();
        (flow.holds(), flow.bound.expect("finite"))
    };
    let (tree, apart) = (bound("r"), bound("s"));
    assert!(apart.0 && apart.1 < 500_000, "{apart:?}");
    assert!(
        !tree.0 && (1_200_000..1_300_000).contains(&tree.1),
        "{tree:?}"
    );
}

/// Where a memory serves in any order and a tile has no limit, no flow has a bound: that is a reason, not a mistake of the description.
#[test]
fn a_flow_without_a_bound_is_not_judged() {
    let options = bulkhead_model::LoadOptions::default();
    let system =
        bulkhead_model::load_system("memory-policies", &options).expect("is in the catalog");
    for run in system.runs() {
        let verdict = bulkhead_analysis::plan::system::judge(run).expect("is judged");
        let of_flow = verdict.unjudged.iter().find(|one| one.what == "flow loop");
        let why = of_flow.map_or("", |one| &one.because);
        assert!(!why.is_empty(), "{:?}", run.variant);
    }
}

/// The longest times that a description may name: a job of 52 days, and two decisions of a second. A cost above what the tests count has no
/// bound; it was once cut to what they count, which held.
#[test]
fn a_cost_beyond_what_the_tests_count_does_not_hold() {
    let longest = "4503599627370496ns";
    for policy in ["fixed-priority", "edf", "non-preemptive", "global-edf"] {
        let system = |overheads: &str| {
            format!(
                "<processors count=\"1\" policy=\"{policy}\"/>{overheads}<task name=\"t\" period=\"{longest}\" cost=\"{longest}\"/>"
            )
        };
        assert!(bounds(&system("")).1, "{policy}");
        let (found, holds) = bounds(&system("<overheads schedule=\"1s\"/>"));
        assert_eq!((found, holds), (vec![None], false), "{policy}");
    }
}

/// Global EDF knows that both tasks are in time, but no response. So each is done within its deadline of 10 ms, and a message, read a period
/// later at the latest, within 30 ms.
#[test]
fn whoever_is_in_time_is_done_by_the_deadline() {
    let plan = judged(
        "<processors count=\"2\" policy=\"global-edf\" arrivals=\"periodic\"/>\
         <task name=\"a\" period=\"10ms\" cost=\"1ms\"/><task name=\"b\" period=\"10ms\" cost=\"1ms\"/>\
         <channel name=\"c\" from=\"a\" to=\"b\" deadline=\"30ms\"/>",
    );
    let channel = plan.constraints.iter().find(|c| c.kind == Kind::Channel);
    let channel = channel.expect("judged");
    assert_eq!((channel.bound, channel.holds()), (Some(30_000_000), true));
    assert!(plan.schedulable);
}

/// The writer has more to do than there is time, so nothing is known of its channel, of which nothing is asked: it must not be called good.
#[test]
fn a_channel_of_which_nothing_is_known_does_not_hold() {
    let system = |deadline: &str| {
        judged(&format!(
            "<processors count=\"1\" policy=\"fixed-priority\" arrivals=\"periodic\"/>\
             <task name=\"b\" period=\"10ms\" cost=\"6ms\" priority=\"1\"/><task name=\"a\" period=\"10ms\" cost=\"6ms\" priority=\"2\"/>\
             <channel name=\"c\" from=\"a\" to=\"b\" {deadline}/><flow name=\"f\" from=\"a\" to=\"b\" {deadline}/>"
        ))
    };
    let of = |plan: &Plan| -> Vec<bool> {
        let all = plan.constraints.iter();
        let all = all.filter(|c| matches!(c.kind, Kind::Channel | Kind::Flow));
        all.map(|c| c.holds()).collect()
    };
    assert_eq!(of(&system("")), []);
    assert_eq!(of(&system("deadline=\"1s\"")), [false, false]);
}

/// A sporadic reader may never come, and then nothing is ever read: neither a channel nor a flow through it nor a device's buffer has a bound.
#[test]
fn data_has_a_bound_only_if_its_reader_comes() {
    let plan = |arrivals: &str, more: &str| {
        judged(&format!(
            "<processors count=\"1\" policy=\"fixed-priority\" {arrivals}/>\
             <task name=\"a\" period=\"10ms\" cost=\"1ms\"/><task name=\"b\" period=\"10ms\" cost=\"1ms\"/>{more}"
        ))
    };
    let channel = "<channel name=\"c\" from=\"a\" to=\"b\" deadline=\"50ms\"/>\
                   <flow name=\"f\" from=\"a\" to=\"b\" deadline=\"50ms\"/>\
                   <device name=\"d\" task=\"b\" rate=\"1kB/s\" buffer=\"1kB\"/>";
    let of = |plan: &Plan| -> Vec<(Kind, bool, bool)> {
        let all = plan.constraints.iter();
        let all = all.filter(|c| matches!(c.kind, Kind::Channel | Kind::Flow | Kind::Buffer));
        all.map(|c| (c.kind, c.bound.is_some(), c.holds()))
            .collect()
    };
    let kinds = [Kind::Channel, Kind::Flow, Kind::Buffer];
    let any = plan("", channel);
    assert_eq!(of(&any), kinds.map(|kind| (kind, false, false)));
    assert_eq!(any.notes.len(), 1);
    assert!(
        any.notes[0].starts_with("channels, queues, buffers and flows that b reads have no bound"),
        "{:?}",
        any.notes
    );
    let periodic = plan("arrivals=\"periodic\"", channel);
    assert_eq!(of(&periodic), kinds.map(|kind| (kind, true, true)));
    assert!(periodic.notes.is_empty());
    assert!(plan("", "").notes.is_empty());
}

/// Ten accesses of 64 bytes in each millisecond are 640 000 bytes a second. A limit below that makes every job wait longer than the one before; one
/// above it makes jobs wait for tokens, which the bound of a response does not count.
#[test]
fn a_task_whose_accesses_wait_for_tokens_does_not_hold() {
    let system = |limit: &str| {
        judged_system(&format!(
            "<domain name=\"d\"><app name=\"a\" tile=\"2\" program=\"p\">{limit}<task period=\"1ms\" cost=\"20us\" accesses=\"10\"/></app></domain>"
        ))
    };
    let free = system("");
    assert!(
        free.all().all(|one| one.holds()) && free.all().count() == 1,
        "{free:?}"
    );
    let poor = system("<limit noc=\"639kB/s\" burst=\"4KiB\"/>");
    let one = poor.all().next().expect("judged");
    assert_eq!((one.bound, one.holds()), (None, false));
    assert_eq!(
        one.note.as_deref(),
        Some("its <limit> pays for 9 of its 10 accesses in a period")
    );
    let rich = system("<limit noc=\"640kB/s\" burst=\"4KiB\"/>");
    assert_eq!(rich.all().count(), 0, "{rich:?}");
    assert_eq!(rich.unjudged[0].what, "task a");
}
