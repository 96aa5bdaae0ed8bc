//! Placements against exhaustive search, and by hand.

use super::*;
use bulkhead_model::{LoadOptions, load_system_text};
use proptest::prelude::*;

fn load(text: &str) -> System {
    let options = LoadOptions {
        open: true,
        ..LoadOptions::default()
    };
    load_system_text("open", text, &options).expect("valid")
}

fn task(name: usize, period: u64, cost: u64, more: &str) -> String {
    format!(
        r#"<task name="t{name}" program="p::T" priority="{}" period="{period}ms" cost="{cost}us" {more}/>"#,
        name + 1
    )
}

fn system(parts: &str) -> System {
    load(&format!(
        r#"<system name="s" paradigm="one-shot" platform="epiphany3">{parts}</system>"#
    ))
}

/// The best of all placements, tried one by one, by the requested criterion; `None` if no placement holds.
fn exhaustive(system: &System, aim: Aim, cores: &[u16]) -> Option<u64> {
    let one_shot = system.one_shot.as_ref().expect("it is one");
    let priorities = by_deadline(one_shot);
    let case = Case::new(one_shot, &system.platform, priorities.as_deref());
    let count = one_shot.programs.len();
    let all = cores.len().pow(count as u32);
    let each = (0..all).map(|number| {
        let digit = |task: usize| cores[number / cores.len().pow(task as u32) % cores.len()];
        let placed: Vec<Option<u16>> = (0..count).map(|task| Some(digit(task))).collect();
        case.worth(&placed, aim)
    });
    let best = each.min()?;
    best.is_good().then_some(best.asked())
}

fn asked(system: &System, aim: Aim, placement: &Placement) -> Option<u64> {
    let one_shot = system.one_shot.as_ref().expect("it is one");
    let case = Case::new(one_shot, &system.platform, placement.priorities.as_deref());
    let cores: Vec<Option<u16>> = placement.cores.iter().copied().map(Some).collect();
    let worth = case.worth(&cores, aim);
    assert_eq!(worth.is_good(), placement.broken.is_empty());
    worth.is_good().then_some(worth.asked())
}

/// Where nobody knows what tasks take, they get cores, and nothing is said to be the best.
#[test]
fn what_is_not_known_is_no_best_placement() {
    let [known, mut unknown] = [(); 2].map(|()| system(&task(0, 2, 10, "")));
    unknown.platform.network.credits = Some(2);
    let [known, unknown] = [known, unknown].map(|system| place(&system, &Wish::default()).unwrap());
    assert!(known.is_best && known.choices[0].how.contains("no placement is better"));
    assert!(!unknown.is_best && unknown.broken.is_empty());
    let how = &unknown.choices[0].how;
    assert!(how.ends_with("as far as they could be judged"), "{how}");
}

/// By hand: two tasks of 1.2 ms per 2 ms need a core each; beside each of them there is room for one of 0.4 ms, but not for both.
#[test]
fn the_fewest_cores_by_hand() {
    let parts = [1200, 1200, 400, 400].into_iter().enumerate();
    let parts: String = parts.map(|(i, cost)| task(i, 2, cost, "")).collect();
    let system = system(&parts);
    let placement = place(&system, &Wish::default()).unwrap();
    assert!(placement.is_best && placement.broken.is_empty());
    let mut used = placement.cores.clone();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 2, "{placement:?}");
    assert_ne!(placement.cores[2], placement.cores[3]);
}

/// A task with a core keeps it, and no task goes where the wish forbids.
#[test]
fn what_is_given_stays() {
    let parts = [
        task(0, 1, 100, r#"core="7""#),
        task(1, 1, 100, ""),
        task(2, 1, 850, ""),
    ];
    let system = system(&parts.concat());
    let wish = Wish {
        cores: Some((2, 3)),
        ..Wish::default()
    };
    let placement = place(&system, &wish).unwrap();
    assert_eq!(placement.cores[0], 7);
    assert!(
        placement.cores[1..]
            .iter()
            .all(|core| (2..=3).contains(core))
    );
    let nowhere = Wish {
        cores: Some((16, 20)),
        ..Wish::default()
    };
    assert!(place(&system, &nowhere).is_err());
}

/// Without time to judge anything, tasks are spread, and the result says that the search was incomplete.
#[test]
fn without_any_search_tasks_are_spread() {
    let parts: String = (0..4).map(|i| task(i, 10, 10, "")).collect();
    let wish = Wish {
        cores: Some((0, 3)),
        ..Wish::default()
    };
    let placement = place_within(&system(&parts), &wish, 0, 0).unwrap();
    assert_eq!(placement.cores, [0, 1, 2, 3]);
    assert!(!placement.is_best && placement.broken.is_empty());
    assert!(placement.choices[0].how.contains("not all were"));
}

/// With guards, one more core for a domain is one less rival, so a part of a placement may be worse than the whole.
#[test]
fn with_guards_no_placement_is_called_the_best() {
    let parts: String = (0..2).map(|i| task(i, 10, 10, "")).collect();
    let text =
        format!(r#"<system name="s" paradigm="one-shot" platform="epiphany3">{parts}</system>"#);
    let options = LoadOptions {
        open: true,
        overrides: vec!["platform/local-memory[sram]@guard=64".to_owned()],
        ..LoadOptions::default()
    };
    let guarded = load_system_text("guarded", &text, &options).expect("valid");
    let placement = place(&guarded, &Wish::default()).unwrap();
    assert!(placement.broken.is_empty() && !placement.is_best);
    assert!(place(&system(&parts), &Wish::default()).unwrap().is_best);
}

/// Two domains never share a core, a core owns at most sixteen ports, and memory is limited.
#[test]
fn limits_of_cores_hold() {
    let of_domains = [
        task(0, 10, 10, r#"domain="a""#),
        task(1, 10, 10, r#"domain="b""#),
    ];
    let placement = place(&system(&of_domains.concat()), &Wish::default()).unwrap();
    assert_ne!(placement.cores[0], placement.cores[1]);
    let large = [
        task(0, 10, 10, r#"image="15KiB""#),
        task(1, 10, 10, r#"image="15KiB""#),
    ];
    let placement = place(&system(&large.concat()), &Wish::default()).unwrap();
    assert_ne!(placement.cores[0], placement.cores[1]);
    let mut parts: String = (0..3).map(|i| task(i, 10, 10, "")).collect();
    for (number, reader) in (0..17).zip([1, 2].into_iter().cycle()) {
        parts += &format!(r#"<channel name="c{number}" from="t0" to="t{reader}" size="8B"/>"#);
    }
    let placement = place(&system(&parts), &Wish::default()).unwrap();
    assert!(placement.broken.is_empty());
    assert_ne!(placement.cores[1], placement.cores[2]);
    // A task that is too large for any core.
    let huge = place(
        &system(&task(0, 10, 10, r#"image="32KiB""#)),
        &Wish::default(),
    )
    .unwrap();
    assert!(huge.is_best);
    assert!(
        huge.broken[0].contains("bytes of 32768"),
        "{:?}",
        huge.broken
    );
}

/// A plan's output is a complete description that holds by itself; nothing is chosen twice.
#[test]
fn what_a_plan_writes_passes_by_itself() {
    let text = r#"<system name="open" paradigm="one-shot" platform="epiphany3">
        <task name="a" program="p::A" period="10ms" cost="10us"/>
        <task name="b" program="p::B" period="1ms" cost="10us"/>
        <task name="c" program="p::C" core="9" period="2ms" cost="900us"/>
        <channel name="x" from="a" to="b" size="16B"/>
        <flow name="f" from="a" to="b" deadline="4ms"/>
        <variant name="small"/>
        <variant name="large"><set path="channel[x]@size" value="4KiB"/></variant></system>"#;
    let name = format!("bulkhead-cores-{}.xml", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let wish = Wish {
        aim: Aim::Latency,
        cores: None,
    };
    let placed = planned(&path, &[], &wish).unwrap().unwrap();
    let written = completed(&path, &[], &placed).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(placed.plan.schedulable);
    let system = load_system_text("planned", &written, &LoadOptions::default()).expect("valid");
    assert_eq!(system.variants.len(), 2);
    let again = place(&system, &wish).unwrap();
    assert!(again.choices.is_empty() && again.broken.is_empty());
    let planned = placed.plan.system.tasks.iter().map(|task| task.core);
    let written = again.cores.iter().map(|core| Some(u32::from(*core)));
    assert!(planned.eq(written));
}

/// Each task of another domain than the first one of its core counted, so a core broke more limits without its first task, and the search could
/// skip what was best.
#[test]
fn two_domains_on_a_core_count_once() {
    let domains = ["", r#"domain="other""#, "", ""];
    let tasks = domains.iter().enumerate();
    let text: String = tasks
        .map(|(number, domain)| task(number, 1, 50, domain))
        .collect();
    let system = system(&text);
    let one_shot = system.one_shot.as_ref().expect("it is one");
    let case = Case::new(one_shot, &system.platform, None);
    let broken = |cores: [Option<u16>; 4]| case.broken(&cores);
    let all = broken([Some(1); 4]);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(broken([None, Some(1), Some(1), Some(1)]), all);
}

fn random() -> impl Strategy<Value = String> {
    let tasks = prop::collection::vec((1u64..=8, 5u64..45, 0usize..6), 2..=4);
    let channels = prop::collection::vec((0usize..4, 0usize..4, 1u64..40, any::<bool>()), 0..4);
    (tasks, channels, 2u64..14).prop_map(|(tasks, channels, deadline)| {
        let mut text = String::new();
        for (number, &(period, percent, kind)) in tasks.iter().enumerate() {
            let more = match kind {
                0 => r#"image="12KiB""#,
                1 => r#"domain="other""#,
                _ => "",
            };
            text += &task(number, period, period * percent * 10, more);
        }
        let (mut flow, mut read) = (None, Vec::new());
        for (number, &(from, to, size, queue)) in channels.iter().enumerate() {
            let (from, to) = (from % tasks.len(), to % tasks.len());
            // One writer per reader, so one chain per flow.
            if from >= to || read.contains(&to) {
                continue;
            }
            read.push(to);
            let kind = if queue {
                r#"kind="queue" slots="9""#
            } else {
                ""
            };
            text += &format!(
                r#"<channel name="c{number}" from="t{from}" to="t{to}" size="{size}B" {kind}/>"#
            );
            flow = flow.or(Some((from, to)));
        }
        if let Some((from, to)) = flow {
            text +=
                &format!(r#"<flow name="f" from="t{from}" to="t{to}" deadline="{deadline}ms"/>"#);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Where a search completes, nothing is better; where it has not even begun, nothing is more than twice as good.
    #[test]
    fn nothing_is_better(parts in random(), shortest in any::<bool>()) {
        let system = system(&parts);
        let aim = if shortest { Aim::Latency } else { Aim::Cores };
        let wish = Wish { aim, cores: Some((0, 2)) };
        let best = exhaustive(&system, aim, &[0, 1, 2]);
        let through = place(&system, &wish).unwrap();
        prop_assert!(through.is_best, "{:?}", through.choices);
        prop_assert_eq!(asked(&system, aim, &through), best);
        let quick = place_within(&system, &wish, STEPS, 0).unwrap();
        prop_assert!(!quick.is_best || through.cores == quick.cores || best.is_none());
        if let (Some(quick), Some(best)) = (asked(&system, aim, &quick), best) {
            prop_assert!(quick >= best && quick <= 2 * best, "{} of {}", quick, best);
        }
    }

    /// Removing a task or more never makes the result worse; that is why parts may be skipped.
    #[test]
    fn a_part_is_never_worse(parts in random(), places in prop::collection::vec(0u16..3, 4), without in 0usize..4) {
        let system = system(&parts);
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let case = Case::new(one_shot, &system.platform, None);
        let all: Vec<Option<u16>> = places[..one_shot.programs.len()].iter().copied().map(Some).collect();
        let mut part = all.clone();
        part[without % all.len()] = None;
        for aim in [Aim::Cores, Aim::Latency] {
            prop_assert!(case.worth(&part, aim) <= case.worth(&all, aim));
        }
    }
}
