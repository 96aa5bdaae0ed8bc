//! Timelines of cores of the one-shot RTOS: markers with their ticks, and where two of them diverge.
//!
//! Why it exists: the first difference between a run alone and a run under attack shows what the attack did: on which core, in which job of
//! which task, and when. What it deliberately does not know: runs, and verdicts.

use bulkhead_abi::marker::MarkerKind;
use bulkhead_abi::one_shot::marker;
use bulkhead_model::System;
use bulkhead_report::audit::result::Difference;
use bulkhead_runner::measure::MarkerEvent;
use std::collections::BTreeSet;

/// The ends of jobs: core and number of the task, and when.
pub fn ends(markers: &[MarkerEvent]) -> impl Iterator<Item = ((u16, u64), u64)> + '_ {
    let mut running = std::collections::BTreeMap::new();
    markers.iter().filter_map(move |one| {
        match one.kind {
            marker::BEGIN => {
                running.insert(one.tile, one.value);
            }
            marker::END => {
                let task = running.remove(&one.tile)?;
                return Some(((one.tile, task), one.at));
            }
            _ => {}
        }
        None
    })
}

/// The first moment at which the markers of some core differ; `None` if they never do.
pub fn difference(
    system: &System,
    beside: &str,
    (alone, attacked): (&[MarkerEvent], &[MarkerEvent]),
) -> Option<Difference> {
    let cores: BTreeSet<u16> = alone.iter().chain(attacked).map(|one| one.tile).collect();
    let of_core = |core: u16| {
        let own = |all: &[MarkerEvent]| -> Vec<MarkerEvent> {
            all.iter().copied().filter(|one| one.tile == core).collect()
        };
        let (before, now) = (own(alone), own(attacked));
        let same = |(a, b): (&MarkerEvent, &MarkerEvent)| {
            (a.at, a.kind, a.value) == (b.at, b.kind, b.value)
        };
        let mut both = before.iter().zip(&now);
        let at = match both.position(|pair| !same(pair)) {
            Some(at) => at,
            None if before.len() == now.len() => return None,
            None => before.len().min(now.len()),
        };
        let moment = |all: &[MarkerEvent]| all.get(at).map(|one| one.at);
        let text = |all: &[MarkerEvent]| match all.get(at) {
            Some(_) => said(system, core, &all[..=at]),
            None => "nothing more happens".to_owned(),
        };
        let difference = Difference {
            beside: beside.to_owned(),
            tile: core,
            event: at as u64,
            alone_at: moment(&before),
            alone: text(&before),
            attacked_at: moment(&now),
            attacked: text(&now),
        };
        let first = moment(&before).into_iter().chain(moment(&now)).min();
        Some((first?, difference))
    };
    let all = cores.into_iter().filter_map(of_core);
    let first = all.min_by_key(|(at, difference)| (*at, difference.tile));
    first.map(|(_, difference)| difference)
}

/// The last of a core's events in words: `job 12 of consumer ends`.
fn said(system: &System, core: u16, events: &[MarkerEvent]) -> String {
    let (Some(last), Some(one_shot)) = (events.last(), &system.one_shot) else {
        return String::new();
    };
    let here = one_shot.on_core(core);
    let name = |number: u64| {
        let task = usize::try_from(number).ok().and_then(|at| here.get(at));
        let none = if one_shot.host == Some(core) {
            "the host's task"
        } else {
            "no task"
        };
        task.map_or(none, |&task| &one_shot.tasks.tasks[task].name)
    };
    let begun = events.iter().rev().find(|one| one.kind == marker::BEGIN);
    let job = |number: u64| {
        let is_begin = |one: &&MarkerEvent| one.kind == marker::BEGIN && one.value == number;
        let jobs = events.iter().filter(is_begin).count();
        format!("job {jobs} of {}", name(number))
    };
    let running = || begun.map_or("no job".to_owned(), |begin| job(begin.value));
    let port = || {
        let (core, index) = (last.value & 0xFFFF, last.value >> 16);
        format!("port {index} of core number {core:#x}")
    };
    match last.kind {
        marker::RELEASE | marker::EVENT => {
            let released = (0..64).filter(|number| last.value >> number & 1 == 1);
            let names: Vec<&str> = released.map(name).collect();
            format!("{} is released", names.join(", "))
        }
        marker::BEGIN => format!("{} begins", job(last.value & 0xFF)),
        marker::END => format!("{} ends", running()),
        marker::OVERRUN => format!("{} is over its budget", job(last.value)),
        marker::STOPPED => format!("{} stops for good", name(last.value)),
        marker::PUT => format!("{} begins to write {}", running(), port()),
        marker::PUT_DONE => format!("{} has written {}", running(), port()),
        marker::TAKE => format!("{} begins to read {}", running(), port()),
        marker::TAKEN => format!("{} has read {}", running(), port()),
        marker::FULL => format!("{} finds no place in {}", running(), port()),
        kind if kind == MarkerKind::FlowBegin as u16 => {
            format!("{} begins flow number {}", running(), last.value)
        }
        kind if kind == MarkerKind::FlowEnd as u16 => {
            format!("{} ends flow number {}", running(), last.value)
        }
        kind => format!("{} marks {} with kind {kind:#x}", running(), last.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    fn event(at: u64, tile: u16, kind: u16, value: u64) -> MarkerEvent {
        MarkerEvent {
            at,
            tile,
            activity: 0,
            kind,
            value,
            pc: 0,
        }
    }

    #[test]
    fn the_first_difference_is_in_words() {
        let system = load_system("oneshot/queue", &LoadOptions::default()).expect("valid");
        let alone = [
            event(10, 0, marker::BEGIN, 0),
            event(12, 9, marker::BEGIN, 1),
            event(20, 0, marker::END, 0),
            event(30, 9, marker::END, 1),
            event(40, 9, marker::BEGIN, 1),
        ];
        assert_eq!(difference(&system, "x", (&alone, &alone)), None);
        let mut later = alone;
        later[3].at = 33;
        later[2].at = 35;
        let found = difference(&system, "x", (&alone, &later)).expect("two differ");
        // The event that would have come first counts.
        assert_eq!((found.tile, found.event, found.alone_at), (0, 1, Some(20)));
        assert_eq!(found.alone, "job 1 of sensor ends");
        assert_eq!(found.attacked, "job 1 of sensor ends");
        let found = difference(&system, "x", (&alone, &alone[..4])).expect("one is missing");
        assert_eq!((found.tile, found.attacked_at), (9, None));
        assert_eq!(found.alone, "job 2 of keeper begins");
        assert_eq!(found.attacked, "nothing more happens");
        let ends: Vec<_> = ends(&alone).collect();
        assert_eq!(ends, [((0, 0), 20), ((9, 1), 30)]);
    }
}
