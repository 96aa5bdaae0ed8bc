//! Turns what the machine saw into what a user wants to know about one variant.
//!
//! What it deliberately does not know: bounds (see `bounds`), and how the machine was run.

use crate::measure::lives::Unended;
use crate::measure::{Lives, MarkerEvent, Released, pair};
use crate::names::Names;
use bulkhead_abi::marker::MarkerKind;
use bulkhead_machine::ledger::{Ledger, Resource};
use bulkhead_machine::noc::{Node, Transaction};
use bulkhead_machine::statistics::Statistics;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::system::App;
use bulkhead_model::units::Time;
use bulkhead_report::distribution::distribution;
use bulkhead_report::result::{
    Check, FlowResult, Interference, LinkEnd, LinkResult, RequestResult, Sample, SpanResult,
    TaskResult, Traffic,
};
use std::collections::{BTreeMap, BTreeSet};

/// Ticks of a time.
pub fn ticks(time: Time, ticks_per_second: u64) -> u64 {
    (u128::from(time.0) * u128::from(ticks_per_second) / 1_000_000_000_000)
        .try_into()
        .unwrap_or(u64::MAX)
}

pub(crate) fn of_kind(
    markers: &[MarkerEvent],
    kind: MarkerKind,
) -> impl Iterator<Item = MarkerEvent> + '_ {
    markers
        .iter()
        .filter(move |marker| marker.kind == kind as u16)
        .copied()
}

/// Latencies of every flow of the system.
pub fn flows(
    system: &System,
    names: &Names,
    markers: &[MarkerEvent],
    lives: &Lives,
) -> Vec<FlowResult> {
    let ticks_per_second = system.platform.ticks_per_second();
    let belongs = |marker: &MarkerEvent, app: usize| {
        names.owner(Owner::new(marker.tile, marker.activity)) == system.apps[app].name
    };
    system
        .flows
        .iter()
        .map(|flow| {
            let begins = of_kind(markers, MarkerKind::FlowBegin).filter(|m| belongs(m, flow.from));
            let ends = of_kind(markers, MarkerKind::FlowEnd).filter(|m| belongs(m, flow.to));
            let deadline = flow
                .deadline
                .map(|deadline| ticks(deadline, ticks_per_second));
            // A sample that began less than its deadline (or a millisecond) before the end may still have arrived.
            let grace = deadline.unwrap_or(ticks_per_second / 1000);
            let pairs = pair(begins, ends, 0);
            let to = &system.apps[flow.to].name;
            let unended = pairs.open.iter();
            let unended = unended.map(|(_, begin)| lives.unended_for(to, *begin, grace));
            let lost = unended.filter(|one| *one == Unended::Late).count() as u64;
            let late = |sample: &Sample| deadline.is_some_and(|deadline| sample.latency > deadline);
            FlowResult {
                name: flow.name.clone(),
                from: system.apps[flow.from].name.clone(),
                to: system.apps[flow.to].name.clone(),
                through: through(system, flow.from, flow.to),
                deadline,
                misses: pairs.samples.iter().filter(|s| late(s)).count() as u64 + lost,
                lost,
                open: pairs.open.len() as u64 - lost,
                doubled: pairs.doubled,
                latency: distribution(pairs.samples.iter().map(|s| s.latency)),
                samples: pairs.samples,
                bound: None,
                unbounded: None,
            }
        })
        .collect()
}

/// Why the samples of a flow say nothing: other work may have ended there under the same numbers.
pub fn doubled(flow: &FlowResult) -> Option<String> {
    (flow.doubled > 0).then(|| {
        format!(
            "{} of its samples have numbers that ended at `{}` more often than they began at `{}`, so it is not clear which end belongs to which begin: \
             give every sample that ends there a number of its own",
            flow.doubled, flow.to, flow.from
        )
    })
}

/// Applications along the gates from one application to another, without the two ends; the shortest path.
pub fn through(system: &System, from: usize, to: usize) -> Vec<String> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::from([(from, from)]);
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for gate in &system.apps[at].sgates {
            before.entry(gate.to).or_insert_with(|| {
                queue.push_back(gate.to);
                at
            });
        }
    }
    let mut way = Vec::new();
    let mut at = to;
    while let Some(&previous) = before.get(&at) {
        if previous == from {
            break;
        }
        way.push(system.apps[previous].name.clone());
        at = previous;
    }
    way.reverse();
    way
}

/// Spans by application, in the order of the applications. Where an application marks `MeasureBegin` and `MeasureEnd`, only spans
/// between them count.
pub fn spans(system: &System, names: &Names, markers: &[MarkerEvent], end: u64) -> Vec<SpanResult> {
    let mut by_app: BTreeMap<String, Vec<MarkerEvent>> = BTreeMap::new();
    for marker in markers {
        let owner = Owner::new(marker.tile, marker.activity);
        by_app.entry(names.owner(owner)).or_default().push(*marker);
    }
    system
        .apps
        .iter()
        .filter_map(|app| {
            let own = by_app.get(&app.name)?;
            let first = of_kind(own, MarkerKind::MeasureBegin)
                .next()
                .map_or(0, |m| m.at);
            let last = of_kind(own, MarkerKind::MeasureEnd)
                .next()
                .map_or(u64::MAX, |m| m.at);
            let mut samples = pair(
                of_kind(own, MarkerKind::SpanBegin),
                of_kind(own, MarkerKind::SpanEnd),
                end,
            )
            .samples;
            samples.retain(|sample| sample.begin >= first && sample.begin <= last);
            (!samples.is_empty()).then(|| SpanResult {
                application: app.name.clone(),
                latency: distribution(samples.iter().map(|s| s.latency)),
                samples,
            })
        })
        .collect()
}

/// The ledger by names, the worst entry of each victim first.
pub fn interference(names: &Names, ledger: &Ledger) -> Vec<Interference> {
    let mut sums: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    for booking in ledger.bookings() {
        let victim = names.owner(booking.victim);
        let culprit = match booking.resource {
            // Only the hardware, or the victim's own budget, is to blame.
            Resource::Refresh(_) => "refresh".to_owned(),
            Resource::Bucket | Resource::Bandwidth(_) | Resource::ProcessorBudget => {
                "own limit".to_owned()
            }
            Resource::DeviceService(server) => format!("device of {}", names.owner(server)),
            _ => names.owner(booking.culprit),
        };
        let key = (victim, culprit, group(names, booking.resource));
        *sums.entry(key).or_default() += booking.ticks;
    }
    let mut all: Vec<Interference> = sums
        .into_iter()
        .map(|((victim, culprit, resource), ticks)| Interference {
            victim,
            culprit,
            resource,
            ticks,
        })
        .collect();
    all.sort_by(|a, b| {
        (&a.victim, b.ticks, &a.culprit, &a.resource).cmp(&(
            &b.victim,
            a.ticks,
            &b.culprit,
            &b.resource,
        ))
    });
    all
}

/// What crossed the links: every owner's bytes, by name.
pub fn links(
    names: &Names,
    statistics: &Statistics,
    carried: &[Vec<(Owner, u64)>],
) -> Vec<LinkResult> {
    let end = |node| match node {
        Node::Tile(tile) => LinkEnd::Tile(tile),
        Node::Router(router) => LinkEnd::Router(router),
    };
    let used = statistics.links.iter().zip(carried);
    let used = used.filter(|(link, _)| link.counters.packets > 0);
    used.map(|(link, carried)| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (owner, bytes) in carried {
            *sums.entry(names.owner(*owner)).or_default() += bytes;
        }
        let mut traffic: Vec<Traffic> = sums
            .into_iter()
            .map(|(application, bytes)| Traffic { application, bytes })
            .collect();
        // Names are already in order.
        traffic.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        LinkResult {
            from: end(link.from),
            to: end(link.to),
            channel: u8::from(link.plane > 0),
            busy: link.counters.busy,
            traffic,
        }
    })
    .collect()
}

/// Groups resources of a kind: a table of every bank and link would hide the culprit.
pub fn group(names: &Names, resource: Resource) -> String {
    match resource {
        Resource::Service(server) | Resource::DeviceService(server) => {
            format!("service {}", names.owner(server))
        }
        Resource::Link(_) => "network links".to_owned(),
        Resource::InputBuffer(_) => "network buffers".to_owned(),
        Resource::DramBank { memory, .. } => format!("memory {memory} banks"),
        Resource::LocalMemory { tile, .. } => format!("local memory of tile {tile}"),
        other => other.to_string(),
    }
}

/// Worst latencies of the applications' requests. Until a request has a miss register of its own tile, the tile's earlier requests are served, whose latencies are here, too.
pub fn requests(system: &System, names: &Names, ledger: &Ledger) -> Vec<RequestResult> {
    let mut all: BTreeMap<(usize, Transaction), (u64, u64)> = BTreeMap::new();
    for latency in ledger.latencies() {
        let name = names.owner(latency.owner);
        // A unit works for its application also while TileMux or no activity runs.
        let name = name.trim_end_matches(" (TileMux)");
        if let Some(app) = system.apps.iter().position(|app| app.name == name) {
            let entry = all.entry((app, latency.transaction)).or_default();
            entry.0 += latency.total.count();
            entry.1 = entry.1.max(latency.longest);
        }
    }
    all.into_iter()
        .filter_map(|((app, transaction), (count, worst))| {
            Some(RequestResult {
                application: system.apps[app].name.clone(),
                kind: kind(transaction)?.to_owned(),
                to: target(&system.apps[app], transaction),
                count,
                worst,
                bound: None,
                lumped: None,
                tokens: None,
                unbounded: None,
            })
        })
        .collect()
}

/// Where transactions of an application go.
pub fn target(app: &App, transaction: Transaction) -> String {
    match transaction {
        Transaction::Message => "its receivers".to_owned(),
        _ => format!("memory {}", app.memory_tile),
    }
}

/// What users call a transaction; `None` for the kernel's own.
pub fn kind(transaction: Transaction) -> Option<&'static str> {
    match transaction {
        Transaction::CacheRead => Some("cache miss"),
        Transaction::CacheWrite => Some("write-back"),
        Transaction::DmaRead => Some("transfer chunk, read"),
        Transaction::DmaWrite => Some("transfer chunk, write"),
        Transaction::Message => Some("message"),
        Transaction::RemoteLoad => Some("remote load"),
        Transaction::RemoteStore => Some("remote store"),
        Transaction::RemoteAtomic => Some("remote atomic"),
        Transaction::Interrupt => Some("interrupt"),
        Transaction::Probe => Some("probe of another cluster"),
        Transaction::Register => None,
    }
}

/// Jobs of each application with a `<task>`. A job counts as missed once, however many indications there are.
pub fn tasks(
    system: &System,
    names: &Names,
    markers: &[MarkerEvent],
    lives: &Lives,
) -> Vec<TaskResult> {
    let per_second = system.platform.ticks_per_second();
    let one = |app: &App| {
        let task = app.task.as_ref()?;
        let deadline = ticks(task.deadline, per_second);
        // A restarted program begins with its first job again.
        let mut activities: BTreeMap<Owner, Vec<MarkerEvent>> = BTreeMap::new();
        for marker in markers {
            let owner = Owner::new(marker.tile, marker.activity);
            if names.owner(owner) == app.name {
                activities.entry(owner).or_default().push(*marker);
            }
        }
        let mut result = TaskResult {
            application: app.name.clone(),
            deadline,
            allowed: task.misses,
            jobs: 0,
            misses: 0,
            open: 0,
            missing: 0,
            worst: None,
            begin: None,
        };
        let mut first = None;
        for (owner, own) in &activities {
            let released = Released::of(own, per_second, lives.over(*owner));
            let earliest = released.all.iter().map(|one| one.at).min();
            first = first.into_iter().chain(earliest).min();
            add_jobs(&mut result, own, released, |begin| {
                lives.unended(*owner, begin, deadline)
            });
        }
        // A background application exists until the end. A job may be late by its jitter, and one period has begun at the end.
        if let (true, Some(first)) = (app.background, first) {
            let period = ticks(task.period, per_second).max(1);
            let time = lives.over_for(&app.name).saturating_sub(first);
            let expected = time.saturating_sub(ticks(task.jitter, per_second)) / period;
            result.missing = expected.saturating_sub(result.jobs);
        }
        Some(result)
    };
    system.apps.iter().filter_map(one).collect()
}

/// Adds the jobs of an activity, from its markers. `unended`: the verdict on a job that was released at that time and never
/// completed.
fn add_jobs(
    result: &mut TaskResult,
    markers: &[MarkerEvent],
    released: Released,
    unended: impl Fn(u64) -> Unended,
) {
    let releases = released.all;
    result.begin = result.begin.max(released.begin);
    let pairs = pair(
        releases.iter().copied(),
        of_kind(markers, MarkerKind::JobComplete),
        0,
    );
    // By number of the job: what the markers show, and what the application says.
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    let mut said: BTreeMap<u64, u64> = BTreeMap::new();
    for miss in of_kind(markers, MarkerKind::DeadlineMiss) {
        *said.entry(miss.value).or_default() += 1;
    }
    for job in pairs.samples.iter() {
        if job.latency > result.deadline {
            *seen.entry(job.number).or_default() += 1;
        }
    }
    for (number, begin) in pairs.open {
        match unended(begin) {
            Unended::Late => *seen.entry(number).or_default() += 1,
            // It may already have reported that it is late.
            Unended::Open if !said.contains_key(&number) => result.open += 1,
            Unended::Open => {}
        }
    }
    let jobs: BTreeSet<u64> = seen.keys().chain(said.keys()).copied().collect();
    let of = |all: &BTreeMap<u64, u64>, job| all.get(job).copied().unwrap_or(0);
    let missed = jobs.iter().map(|job| of(&seen, job).max(of(&said, job)));
    result.misses += missed.sum::<u64>();
    result.jobs += releases.len() as u64;
    let worst = pairs.samples.iter().map(|job| job.latency).max();
    result.worst = result.worst.max(worst);
}

/// A marker in words.
pub fn marker_words(marker: &MarkerEvent) -> String {
    let what = match MarkerKind::from_code(marker.kind) {
        Some(MarkerKind::FlowBegin) => "begin of flow",
        Some(MarkerKind::FlowEnd) => "end of flow",
        Some(MarkerKind::SpanBegin) => "begin of span",
        Some(MarkerKind::SpanEnd) => "end of span",
        Some(MarkerKind::JobDue) => "waits for the release at nanosecond",
        Some(MarkerKind::JobRelease) => "begin of job",
        Some(MarkerKind::JobComplete) => "completion of job",
        Some(MarkerKind::DeadlineMiss) => "missed deadline of job",
        Some(MarkerKind::MeasureBegin) => "begin of measurement",
        Some(MarkerKind::MeasureEnd) => "end of measurement",
        Some(MarkerKind::ActivityFault) => "fault",
        Some(MarkerKind::Check) => "check value",
        Some(MarkerKind::HeapRefused) => "heap without a block of bytes",
        Some(MarkerKind::ActivityBegins) => "begin of activity",
        Some(MarkerKind::ActivityName) => "name of activity",
        Some(
            MarkerKind::MuxEnters
            | MarkerKind::MuxInterrupts
            | MarkerKind::MuxLeaves
            | MarkerKind::MuxRuns
            | MarkerKind::MuxMember
            | MarkerKind::MuxReady
            | MarkerKind::MuxBudget
            | MarkerKind::MuxWorks
            | MarkerKind::KernelAsks,
        ) => "schedule of a tile",
        None => return format!("{:#x} with {}", marker.kind, marker.value),
    };
    format!("{what} {}", marker.value)
}

/// Check values, in time order.
pub fn checks(names: &Names, markers: &[MarkerEvent]) -> Vec<Check> {
    of_kind(markers, MarkerKind::Check)
        .map(|marker| Check {
            application: names.owner(Owner::new(marker.tile, marker.activity)),
            value: marker.value,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::lives::{End, Ending};
    use bulkhead_machine::noc::LinkStatistics;
    use bulkhead_machine::statistics::LinkReport;
    use bulkhead_model::{LoadOptions, load_system};

    fn system() -> System {
        load_system("quickstart", &LoadOptions::default()).expect("valid")
    }

    fn names_of(system: &System) -> Names {
        crate::tiled::names::of(system, &crate::tiled::names::all_as(system, 1))
    }

    fn marker(at: u64, tile: u16, kind: MarkerKind, value: u64) -> MarkerEvent {
        MarkerEvent {
            at,
            tile,
            activity: 1,
            kind: kind as u16,
            value,
            pc: 0,
        }
    }

    #[test]
    fn a_flow_passes_the_controller() {
        let system = system();
        let flow = &system.flows[0];
        assert_eq!(through(&system, flow.from, flow.to), ["controller"]);
    }

    #[test]
    fn late_and_lost_samples_are_misses() {
        let system = system();
        let names = names_of(&system);
        let deadline = ticks(Time(400_000_000), system.platform.ticks_per_second());
        let markers = [
            marker(0, 2, MarkerKind::FlowBegin, 1),
            marker(0, 2, MarkerKind::FlowBegin, 2),
            marker(0, 2, MarkerKind::FlowBegin, 3),
            marker(deadline, 4, MarkerKind::FlowEnd, 1),
            marker(deadline + 1, 4, MarkerKind::FlowEnd, 2),
            // The controller ends nothing of this flow.
            marker(5, 3, MarkerKind::FlowEnd, 3),
        ];
        let flows = flows(&system, &names, &markers, &Lives::until(deadline * 10));
        assert_eq!(
            (flows[0].latency.count, flows[0].misses, flows[0].lost),
            (2, 2, 1)
        );
    }

    #[test]
    fn a_job_is_late_in_four_ways_and_counts_once() {
        let system = system();
        let names = names_of(&system);
        let deadline = ticks(Time(400_000_000), system.platform.ticks_per_second());
        use MarkerKind::{DeadlineMiss, JobComplete, JobRelease};
        let job = |number: u64, at: u64, length: u64| {
            [
                marker(at, 2, JobRelease, number),
                marker(at + length, 2, JobComplete, number),
            ]
        };
        let end = deadline * 100;
        let mut markers = Vec::new();
        // In time to the tick; late; late by its own account as well, which is the same job; late only by its own account, because
        // it was released before it ran.
        markers.extend(job(1, 0, deadline));
        markers.extend(job(2, deadline * 3, deadline + 1));
        markers.extend(job(3, deadline * 6, deadline + 1));
        markers.push(marker(deadline * 8, 2, DeadlineMiss, 3));
        markers.extend(job(4, deadline * 9, 5));
        markers.push(marker(deadline * 10, 2, DeadlineMiss, 4));
        // One never completes, and one may still complete in time.
        markers.push(marker(deadline * 20, 2, JobRelease, 5));
        markers.push(marker(end - 5, 2, JobRelease, 6));
        // Another application's markers count only for that application.
        markers.push(marker(end - 4, 3, DeadlineMiss, 6));
        let tasks = tasks(&system, &names, &markers, &Lives::until(end));
        assert_eq!(tasks.len(), 1);
        let sensor = &tasks[0];
        assert_eq!(
            (
                sensor.jobs,
                sensor.misses,
                sensor.open,
                sensor.worst,
                sensor.deadline
            ),
            (6, 4, 1, Some(deadline + 1), deadline)
        );
    }

    /// The response of a job that waited for the hart begins at its release, and a job that never got the hart is late, too.
    #[test]
    fn a_wait_for_the_hart_is_a_part_of_the_response() {
        let system = system();
        let names = names_of(&system);
        let per_second = system.platform.ticks_per_second();
        let deadline = ticks(Time(400_000_000), per_second);
        let due = |at: u64, nanoseconds: u64| marker(at, 2, MarkerKind::JobDue, nanoseconds);
        let markers = [
            due(1, 1_000_000),
            marker(
                ticks(Time(1_300_000_000), per_second),
                2,
                MarkerKind::JobRelease,
                1,
            ),
            marker(
                ticks(Time(1_500_000_000), per_second),
                2,
                MarkerKind::JobComplete,
                1,
            ),
            due(ticks(Time(1_600_000_000), per_second), 2_000_000),
        ];
        let found = |end: u64| {
            let lives = Lives::until(ticks(Time(end * 1_000_000), per_second));
            let task = tasks(&system, &names, &markers, &lives).remove(0);
            let begin = task.begin.map(|begin| begin * 1_000_000 / per_second);
            assert_eq!(task.worst, Some(ticks(Time(500_000_000), per_second)));
            (task.jobs, task.misses, task.open, begin)
        };
        assert!(deadline < ticks(Time(500_000_000), per_second));
        // Before, at, and after the release of the second job, within its deadline and beyond; in microseconds.
        assert_eq!(found(2000), (1, 1, 0, Some(300)));
        assert_eq!(found(2200), (2, 1, 1, Some(300)));
        assert_eq!(found(3000), (2, 2, 0, Some(1000)));
    }

    /// The smallest case of each way in which a job or a sample can be in progress when the run ends.
    #[test]
    fn what_a_program_that_is_gone_began_is_late_and_what_a_living_one_began_is_open() {
        let system = system();
        let names = names_of(&system);
        let deadline = ticks(Time(400_000_000), system.platform.ticks_per_second());
        let end = deadline * 10;
        let markers = [
            marker(end - 5, 2, MarkerKind::JobRelease, 1),
            marker(end - 5, 2, MarkerKind::FlowBegin, 1),
        ];
        let (sensor, actuator) = (Owner::new(2, 1), Owner::new(4, 1));
        let under_way = |ended: &[(Owner, Ending)]| {
            let mut lives = Lives::until(end);
            lives.begins("actuator", actuator);
            for (who, how) in ended {
                lives.ends(
                    *who,
                    End {
                        at: end - 1,
                        how: *how,
                    },
                );
            }
            let task = tasks(&system, &names, &markers, &lives).remove(0);
            let flow = flows(&system, &names, &markers, &lives).remove(0);
            [(task.misses, task.open), (flow.misses, flow.open)]
        };
        let (late, open) = ((1, 0), (0, 1));
        assert_eq!(under_way(&[]), [open, open]);
        assert_eq!(under_way(&[(sensor, Ending::Gone)]), [late, open]);
        assert_eq!(under_way(&[(actuator, Ending::Gone)]), [open, late]);
        let over = [(sensor, Ending::Over), (actuator, Ending::Over)];
        assert_eq!(under_way(&over), [open, open]);
    }

    /// Each life of a program numbers its jobs from 1.
    #[test]
    fn a_program_that_is_started_again_completes_its_own_jobs() {
        let system = system();
        let begun = [1, 2].map(|number| crate::tiled::names::all_as(&system, number));
        let names = crate::tiled::names::of(&system, &begun.concat());
        let deadline = ticks(Time(400_000_000), system.platform.ticks_per_second());
        use MarkerKind::{JobComplete, JobRelease};
        let again = |one: MarkerEvent| MarkerEvent { activity: 2, ..one };
        let markers = [
            marker(10, 2, JobRelease, 1),
            marker(20, 2, JobComplete, 1),
            marker(30, 2, JobRelease, 2),
            again(marker(deadline * 5, 2, JobRelease, 1)),
            again(marker(deadline * 5 + 7, 2, JobComplete, 1)),
        ];
        let found = tasks(&system, &names, &markers, &Lives::until(deadline * 10));
        assert_eq!((found[0].misses, found[0].worst), (1, Some(10)));
    }

    #[test]
    fn periods_without_a_job_are_counted_in_the_background() {
        let mut system = system();
        let names = names_of(&system);
        let period = ticks(Time(1_000_000_000), system.platform.ticks_per_second());
        let release = |number: u64| {
            let at = period / 2 + number * period;
            marker(at, 2, MarkerKind::JobRelease, number)
        };
        let all: Vec<MarkerEvent> = (0..20).map(release).collect();
        let sensor = system.apps.iter().position(|app| app.name == "sensor");
        for (background, counts) in [(false, [0, 0]), (true, [18, 0])] {
            system.apps[sensor.expect("there")].background = background;
            let lives = Lives::until(period * 20);
            let of = |markers| tasks(&system, &names, markers, &lives)[0].missing;
            assert_eq!([of(&all[..1]), of(&all)], counts);
        }
    }

    #[test]
    fn warm_up_does_not_count() {
        let system = system();
        let names = names_of(&system);
        let markers = [
            marker(0, 5, MarkerKind::SpanBegin, 0),
            marker(90, 5, MarkerKind::SpanEnd, 0),
            marker(100, 5, MarkerKind::MeasureBegin, 0),
            marker(110, 5, MarkerKind::SpanBegin, 1),
            marker(117, 5, MarkerKind::SpanEnd, 1),
        ];
        let spans = spans(&system, &names, &markers, 1000);
        assert_eq!(spans[0].application, "hog-1");
        assert_eq!((spans[0].latency.count, spans[0].latency.max), (1, 7));
    }

    #[test]
    fn bytes_of_links_are_summed_by_name() {
        let system = system();
        let names = names_of(&system);
        let link = |from, to, packets| LinkReport {
            link: 0,
            from,
            to,
            plane: 0,
            counters: LinkStatistics {
                packets,
                busy: 40,
                ..LinkStatistics::default()
            },
        };
        let (tile, router) = (Node::Tile(5), Node::Router(0));
        let statistics = Statistics {
            links: vec![link(tile, router, 3), link(router, tile, 0)],
            ..Statistics::default()
        };
        let (sensor, hog) = (Owner::new(2, 1), Owner::new(5, 1));
        let carried = [vec![(sensor, 80), (hog, 640)], Vec::new()];
        let links = links(&names, &statistics, &carried);
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].from.to_string(), "tile 5");
        let traffic: Vec<_> = links[0].traffic.iter().collect();
        assert_eq!(
            (traffic[0].application.as_str(), traffic[0].bytes),
            ("hog-1", 640)
        );
        assert_eq!(
            (traffic[1].application.as_str(), traffic[1].bytes),
            ("sensor", 80)
        );
    }

    #[test]
    fn waits_are_summed_by_name() {
        let system = system();
        let names = names_of(&system);
        let mut ledger = Ledger::new();
        let (victim, hog) = (Owner::new(2, 1), Owner::new(5, 1));
        ledger.book(victim, hog, Resource::Link(3), 5);
        ledger.book(victim, hog, Resource::Link(4), 6);
        ledger.book(victim, victim, Resource::Bucket, 7);
        let got: Vec<_> = interference(&names, &ledger)
            .into_iter()
            .map(|i| (i.victim, i.culprit, i.resource, i.ticks))
            .collect();
        let text = |s: &str| s.to_owned();
        assert_eq!(
            got,
            [
                (text("sensor"), text("hog-1"), text("network links"), 11),
                (text("sensor"), text("own limit"), text("token bucket"), 7),
            ]
        );
    }
}
