//! Compares bounds with observations.
//!
//! Why it exists: a bound that is never compared is decoration. What it deliberately does not know: how a bound is computed
//! (`bulkhead_analysis`), and how an observation was made.

use crate::collect;
use crate::tiled::alone::{Alone, Job};
use crate::tiled::lonely::Missing;
use crate::tiled::requests::{self, converted};
use bulkhead_abi::dtu::CHUNK_MAX;
use bulkhead_analysis::communication::{Profile, SystemBounds, out_of_order, sent_from_outside};
use bulkhead_model::System;
use bulkhead_model::system::Flow;
use bulkhead_report::format::span;
use bulkhead_report::result::{Bound, FlowResult, VariantResult};

/// Indices of the applications of a flow, in flow order. Each appears once, however often the flow visits it: what it did alone was
/// measured once, for the whole flow.
pub fn members(system: &System, flow: &FlowResult) -> Vec<usize> {
    indices(system, &flow.from, &flow.through, &flow.to)
}

/// The same for a flow that has not been measured yet.
pub fn members_of(system: &System, flow: &Flow) -> Vec<usize> {
    let name = |app: usize| system.apps.get(app).map_or("", |app| app.name.as_str());
    let through = collect::through(system, flow.from, flow.to);
    indices(system, name(flow.from), &through, name(flow.to))
}

fn indices(system: &System, from: &str, through: &[String], to: &str) -> Vec<usize> {
    let names = std::iter::once(from)
        .chain(through.iter().map(String::as_str))
        .chain([to]);
    let mut all = Vec::new();
    for app in names.filter_map(|name| system.apps.iter().position(|app| app.name == name)) {
        if !all.contains(&app) {
            all.push(app);
        }
    }
    all
}

/// Whether only the applications of the flow are present, so that the measurement is undisturbed.
pub fn is_alone(system: &System, members: &[usize]) -> bool {
    (0..system.apps.len()).all(|index| members.contains(&index))
}

/// Whether any application shares its tile: a flow through it then also waits for the processor, which these bounds do not cover.
pub fn shares_a_tile(system: &System, members: &[usize]) -> bool {
    let tiles = system.apps.iter().enumerate();
    members.iter().any(|&member| {
        let own = system.apps.get(member).map(|app| app.tile);
        let mut others = tiles.clone().filter(|(index, _)| *index != member);
        others.any(|(_, app)| Some(app.tile) == own)
    })
}

/// Adds bounds to a variant. `missing`: flows that could not be measured alone.
pub fn add(system: &System, variant: &mut VariantResult, alone: &[Alone], missing: &[Missing]) {
    requests::add(system, &mut variant.requests);
    for flow in &mut variant.flows {
        let apps = members(system, flow);
        let known = alone.iter().find(|known| known.is_of(system, &flow.name));
        let bound = match (obstacle(system, &apps), known) {
            (Some(why), _) => Err(why),
            (None, Some(known)) => flow_bound(system, &apps, known),
            (None, None) => {
                let mut missing = missing.iter();
                let why =
                    missing.find(|one| one.flow == flow.name && one.platform == system.platform);
                Err(why.map_or_else(
                    || {
                        "its applications were not measured alone: this run made no additional runs"
                            .to_owned()
                    },
                    |missing| missing.why.clone(),
                ))
            }
        };
        match bound {
            Ok(bound) => flow.bound = Some(bound),
            Err(why) => flow.unbounded = Some(why),
        }
    }
}

/// The obstacle that keeps a flow of these applications from having a bound.
pub fn obstacle(system: &System, members: &[usize]) -> Option<String> {
    if shares_a_tile(system, members) {
        return Some(
            "its applications share tiles with others, and waits for a processor are not in these bounds; on tiles of their own they would be judged"
                .to_owned(),
        );
    }
    if let Some(why) = out_of_order(system, members) {
        return Some(why);
    }
    let name = |app: usize| system.apps.get(app).map_or("", |app| app.name.as_str());
    for (from, app) in system.apps.iter().enumerate() {
        let inside = members.contains(&from);
        let mut gates = app.sgates.iter();
        if let (true, Some(gate)) = (inside, gates.find(|gate| !members.contains(&gate.to))) {
            return Some(format!(
                "`{}` asks `{}`, whose work for others has no bound here; only flows whose applications ask no other application are judged",
                app.name,
                name(gate.to)
            ));
        }
        if let (true, Some(pager)) = (inside, app.pager.filter(|pager| !members.contains(pager))) {
            return Some(format!(
                "`{}` gets its pages from `{}`, whose work for others is not bounded here; with pages from the start it would be judged",
                app.name,
                name(pager)
            ));
        }
    }
    sent_from_outside(system, members)
}

/// The bound of a flow whose applications did this alone.
///
/// # Errors
/// Why there is no bound.
pub fn flow_bound(system: &System, apps: &[usize], alone: &Alone) -> Result<Bound, String> {
    let of = |worst: u64, jobs: &[Job]| {
        let profiles = profiles(system, apps, worst, jobs);
        let bounds = SystemBounds::new(system, &profiles).map_err(|error| error.to_string())?;
        let bound = bounds.flow(apps, 0).map_err(|error| error.to_string())?;
        Ok::<_, String>(bound.bound)
    };
    let per_second = system.platform.ticks_per_second();
    let rest = alone.rest.as_ref();
    let rest = rest.ok_or("it had no sample alone on its chip, so it is not known whether its applications rest before each sample")?;
    if alone.count > 1 {
        let longer = of(rest.busy, &rest.jobs)?.whole().saturating_sub(rest.busy);
        if longer > rest.shortest {
            let time = |ticks: u64| span(ticks as f64 * 1e6 / per_second.max(1) as f64);
            return Err(format!(
                "what a sample causes in all may take {} longer beside others, and alone its applications rest for {} before the next \
                 sample: the work of several samples may pile up",
                time(longer),
                time(rest.shortest)
            ));
        }
    }
    let bound = of(alone.worst, &alone.jobs)?;
    let covers = format!(
        "the whole flow, of samples that begin when a first one has gone through: its worst latency alone, as measured, and what all \
         requests of a job may wait for others, as analysed; {}",
        alone.assumed(per_second)
    );
    let mut found = converted(&bound, bound.whole(), &covers).0;
    found.method = format!("measured alone + analysed interference: {}", found.method);
    Ok(found)
}

/// The work of a flow's applications. Their whole time was measured at once and is assigned to the first stage.
fn profiles(system: &System, apps: &[usize], worst: u64, jobs: &[Job]) -> Vec<Profile> {
    let profile = |(position, &app): (usize, &usize)| {
        let job = jobs.iter().find(|job| job.app == app);
        let job = job.copied().unwrap_or_default();
        Profile {
            app,
            compute: if position == 0 { worst } else { 0 },
            compute_includes_network: true,
            line_reads: job.line_reads,
            line_writes: job.line_writes,
            dma_read: job.chunks_read * CHUNK_MAX as u64,
            dma_written: job.chunks_written * CHUNK_MAX as u64,
            // Replies against the direction of the flow return credits, and nothing in it waits for them.
            messages: apps
                .get(position + 1)
                .copied()
                .into_iter()
                .chain(to_itself(system, app))
                .map(|to| (to, message_bytes(system, app, to)))
                .collect(),
            calls: 0,
        }
    };
    apps.iter().enumerate().map(profile).collect()
}

/// The application, if it has a send gate to itself.
fn to_itself(system: &System, app: usize) -> Option<usize> {
    let mut gates = system.apps[app].sgates.iter();
    gates.any(|gate| gate.to == app).then_some(app)
}

/// Maximum payload: a slot of the receiver without the header.
pub fn message_bytes(system: &System, from: usize, to: usize) -> u64 {
    system.apps[from]
        .sgates
        .iter()
        .filter(|gate| gate.to == to)
        .filter_map(|gate| system.apps[to].rgates.get(gate.gate))
        .map(|gate| {
            u64::from(gate.slot_size).saturating_sub(bulkhead_abi::message::HEADER_SIZE as u64)
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiled::alone::Rest;
    use bulkhead_model::{LoadOptions, load_system};
    use bulkhead_report::distribution::distribution;
    use bulkhead_report::result::Sample;

    fn variant(name: &str) -> System {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut all = system.variants.into_iter();
        all.find(|one| one.variant.as_deref() == Some(name))
            .expect("there")
    }

    fn flow(latencies: &[u64]) -> FlowResult {
        FlowResult {
            name: "loop".to_owned(),
            from: "sensor".to_owned(),
            to: "actuator".to_owned(),
            through: vec!["controller".to_owned()],
            deadline: Some(1000),
            misses: latencies.iter().filter(|&&l| l > 1000).count() as u64,
            lost: 0,
            open: 0,
            doubled: 0,
            latency: distribution(latencies.iter().copied()),
            samples: vec![Sample {
                number: 1,
                begin: 150,
                latency: latencies[0],
            }],
            bound: None,
            unbounded: None,
        }
    }

    #[test]
    fn who_is_alone_is_measured_undisturbed() {
        for (name, alone) in [
            ("alone", true),
            ("unregulated", false),
            ("regulated", false),
        ] {
            let system = variant(name);
            let members = members(&system, &flow(&[1]));
            assert_eq!(members.len(), 3, "{name}");
            assert_eq!(is_alone(&system, &members), alone, "{name}");
        }
    }

    /// By hand: the latency alone, plus what another application may add to 10 of its lines.
    #[test]
    fn a_flow_of_one_application_keeps_what_was_measured() {
        let text = "<system name='s' platform='tiled-gem5'><domain name='d'><app name='l' tile='2' program='p'>\
                    <task period='1ms'/></app></domain><domain name='n'><app name='hog' tile='5' program='p'>\
                    <limit noc='8MiB/s'/></app></domain><flow name='f' from='l' to='l' deadline='400us'/></system>";
        let system = bulkhead_model::load_system_text("s", text, &LoadOptions::default());
        let system = system.expect("valid");
        let apps = members_of(&system, &system.flows[0]);
        assert_eq!(apps, [0], "once, though it is the begin and the end");
        let bound = |worst, line_reads| {
            let job = Job {
                app: 0,
                line_reads,
                ..Job::default()
            };
            let alone = Alone {
                flow: "f".to_owned(),
                platform: system.platform.clone(),
                worst,
                jobs: vec![job],
                count: 2,
                time: 100_000,
                rest: Some(Rest {
                    busy: worst,
                    jobs: vec![job],
                    shortest: 3_000_000,
                }),
            };
            flow_bound(&system, &apps, &alone).expect("finite").ticks
        };
        assert_eq!(bound(360_000, 0), 360_000);
        assert!(bound(360_000, 10) > 360_000);
        assert!(bound(360_000, 20) > bound(360_000, 10));
    }

    #[test]
    fn limits_tighten_the_bound_of_a_flow() {
        let known = |app| Job {
            app,
            line_reads: 10,
            line_writes: 2,
            ..Job::default()
        };
        let resting = |name: &str, shortest| {
            let system = variant(name);
            let apps = members(&system, &flow(&[1]));
            let alone = Alone {
                flow: "loop".to_owned(),
                platform: system.platform.clone(),
                worst: 30_000,
                jobs: apps.iter().map(|&app| known(app)).collect(),
                count: 50,
                time: 100_000,
                rest: Some(Rest {
                    busy: 30_000,
                    jobs: apps.iter().map(|&app| known(app)).collect(),
                    shortest,
                }),
            };
            flow_bound(&system, &apps, &alone)
                .ok()
                .map(|bound| bound.ticks)
        };
        let bound = |name: &str| resting(name, u64::MAX);
        let (alone, regulated) = (
            bound("alone").expect("finite"),
            bound("regulated").expect("finite"),
        );
        assert!(alone >= 30_000, "the measured latency is inside: {alone}");
        assert!(
            regulated > alone,
            "others cost something: {regulated} > {alone}"
        );
        assert!(bound("unregulated").is_none_or(|loose| loose > regulated));
        // By hand: the idle time between two samples must cover the added time of a job.
        let longer = regulated - 30_000;
        assert_eq!(resting("regulated", longer), Some(regulated));
        assert_eq!(resting("regulated", longer - 1), None);
    }
}
