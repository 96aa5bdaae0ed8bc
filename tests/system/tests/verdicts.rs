//! Runs that look green and are not: each case must say what happened, what failed and what nobody judged, and end with its code.

use bulkhead_abi::dtu::Endpoint;
use bulkhead_abi::memory_map::PMP_WINDOWS;
use bulkhead_experiments::audit::{Options, audit};
use bulkhead_experiments::reproduce::m3;
use bulkhead_machine::machine::{Machine, Outcome as Ended, RunLimit};
use bulkhead_report::book::Book;
use bulkhead_report::result::{End, IncidentKind};
use bulkhead_report::verdict::{Judgement, Outcome, Promise};
use bulkhead_report::{page, table};
use bulkhead_runner::c_programs;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::Finished;
use bulkhead_system_tests::whole::{finished, struck, system};

/// Runs a system that is written down here.
fn ran(text: &str, overrides: &[&str]) -> Finished {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("system.xml");
    std::fs::write(&path, text).expect("it can be written");
    finished(path, overrides, false)
}

fn failed(finished: &Finished) -> Vec<&Promise> {
    let all = finished.result.verdict.promises().iter();
    all.filter(|one| one.judgement == Judgement::Failed && !one.expected)
        .collect()
}

/// What table and page say before anything else.
fn heads(finished: &Finished) -> [String; 2] {
    let table = table::summary(&finished.result);
    let page = page::report(&finished.result, &[], &Book::default()).expect("draws");
    [table, page]
}

#[test]
fn a_foreground_program_that_loops_for_ever_has_not_finished() {
    never_finishes("adversary/spin");
}

#[test]
fn a_foreground_program_that_prints_for_ever_has_not_finished() {
    never_finishes("adversary/chatter");
}

#[test]
fn a_foreground_program_that_sleeps_for_ever_has_not_finished() {
    never_finishes("sharing/nap");
}

fn never_finishes(program: &str) {
    let text = r#"<system name="hang" platform="tiled-gem5" duration="8ms" manager-tile="1"><domain name="d">
  <app name="loops" tile="2" program="PROGRAM"/>
</domain></system>"#;
    let hung = ran(&text.replace("PROGRAM", program), &[]);
    assert_eq!(hung.code(), 4);
    let variant = &hung.result.variants[0];
    assert_eq!(variant.end, End::Duration);
    assert_eq!(variant.incidents.len(), 1, "{:?}", variant.incidents);
    let incident = &variant.incidents[0];
    assert_eq!(
        (incident.kind, incident.application.as_str(), incident.tile),
        (IncidentKind::Unfinished, "loops", 2)
    );
    assert!(
        incident
            .what
            .starts_with("has not finished after 8ms, the duration of the run; "),
        "{}",
        incident.what
    );
    for head in heads(&hung) {
        let happened = head.find("Happened:").expect("the head says it");
        let held = head.find("Held: ").expect("its requests kept their bounds");
        assert!(happened < held, "{head}");
        assert!(head.contains("has not finished after 8ms"), "{head}");
    }
}

#[test]
fn two_programs_that_wait_for_each_other_have_not_finished() {
    let text = r#"<system name="deadlock" platform="tiled-gem5" duration="8ms" manager-tile="1"><domain name="d">
  <app name="one" tile="2" program="control/controller"><rgate name="input"/><sgate name="actuator" to="two"/></app>
  <app name="two" tile="3" program="control/controller"><rgate name="input"/><sgate name="actuator" to="one"/></app>
</domain></system>"#;
    neither_finishes(text);
}

#[test]
fn two_c_programs_that_wait_for_each_other_have_not_finished() {
    if c_programs::compiler().is_none() {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
        return;
    }
    // Each reads before it writes.
    let text = r#"<system name="deadlock" platform="tiled-gem5" duration="8ms" manager-tile="1"><domain name="d">
  <app name="one" tile="2" program="c/relay"><rgate name="input"/><sgate name="output" to="two" gate="input"/></app>
  <app name="two" tile="3" program="c/relay"><rgate name="input"/><sgate name="output" to="one" gate="input"/></app>
</domain></system>"#;
    neither_finishes(text);
}

fn neither_finishes(text: &str) {
    let waiting = ran(text, &[]);
    assert_eq!(waiting.code(), 4);
    let incidents = &waiting.result.variants[0].incidents;
    let who: Vec<_> = incidents
        .iter()
        .map(|one| (one.kind, one.application.as_str()))
        .collect();
    let unfinished = IncidentKind::Unfinished;
    assert_eq!(who, [(unfinished, "one"), (unfinished, "two")]);
    for incident in incidents {
        let what = &incident.what;
        assert!(what.starts_with("has not finished "), "{what}");
    }
    for head in heads(&waiting) {
        assert!(head.contains("Happened:"), "{head}");
        assert!(head.contains("has not finished "), "{head}");
    }
}

/// Nobody waits for what is below a manager that does not do its work and ends.
#[test]
fn a_program_below_a_manager_that_ends_first_has_not_finished() {
    let text = r#"<system name="thief" platform="tiled-gem5" duration="20ms" manager-tile="1">
  <domain name="d"><app name="good" tile="2" program="bandwidth/compute"><argument name="runs" value="3"/></app></domain>
  <manager name="thief" tile="3" program="adversary/thief-manager"><domain name="lost">
    <app name="victim" tile="4" program="bandwidth/compute"><argument name="runs" value="3"/><task period="1ms"/></app>
  </domain></manager>
</system>"#;
    let over = ran(text, &[]);
    assert_eq!(over.result.variants[0].end, End::Exit { code: 0 });
    assert_eq!(over.code(), 4);
    let incidents = &over.result.variants[0].incidents;
    let who: Vec<_> = incidents
        .iter()
        .map(|one| (one.kind, one.application.as_str()))
        .collect();
    assert_eq!(who, [(IncidentKind::Unfinished, "victim")]);
}

#[test]
fn jobs_that_miss_their_deadline_fail_the_run() {
    // A job of the sensor takes about six microseconds; two warm up.
    let late = finished(system("loop"), &["sensor/task@deadline=1us"], false);
    let task = &late.result.variants[0].tasks[0];
    assert_eq!((task.jobs, task.misses), (12, 12), "{task:?}");
    assert_eq!(late.code(), 3, "{:?}", late.result.happened());
    let broken = failed(&late);
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!(broken[0].what, "task sensor: 12 of 12 jobs late, 0 allowed");
    for head in heads(&late) {
        let begin = head.find("FAILED: 1 promise").expect("the head says it");
        let table = head.find("Jobs of tasks").expect("the jobs are shown");
        assert!(begin < table);
    }
    // As many as allowed are no failure.
    let overrides = ["sensor/task@deadline=1us", "sensor/task@misses=12"];
    assert_eq!(finished(system("loop"), &overrides, false).code(), 0);
}

/// The simulator keeps a limited number of markers of each tile. A neighbour that takes all of them hides what a task does afterwards, but does not make it hold.
#[test]
fn a_task_whose_neighbour_marks_without_end_is_not_judged() {
    let text = |flood: &str| {
        format!(
            r#"<system name="flood" platform="tiled-gem5" duration="80ms" manager-tile="1">
  <domain name="control" criticality="A">
    <app name="task" tile="2" program="sharing/periodic"><argument name="jobs" value="40"/><argument name="iterations" value="1000"/><task period="1ms" deadline="900us"/></app>
  </domain>
  {flood}
  <tilemux tile="2" slice="200us"/>
</system>"#
        )
    };
    let judged = |run: &Finished| {
        let mut all = run.result.verdict.promises().iter();
        let task = all.find(|one| one.what.contains(" of 40 jobs late"));
        task.map(|one| one.judgement)
    };
    let alone = ran(&text(""), &[]);
    assert_eq!(
        judged(&alone),
        Some(Judgement::Held),
        "{:?}",
        alone.result.verdict
    );
    let flood = r#"<domain name="hostile" criticality="E"><app name="flood" tile="2" program="attack/marks" background="true"/></domain>"#;
    let beside = ran(&text(flood), &[]);
    assert_eq!(beside.code(), 4);
    let incidents = &beside.result.variants[0].incidents;
    let unseen = incidents
        .iter()
        .find(|one| one.kind == IncidentKind::Unseen);
    let unseen = unseen.expect("an incident");
    assert_eq!((unseen.application.as_str(), unseen.tile), ("flood", 2));
    let all = beside.result.verdict.promises().iter();
    let of_task =
        all.filter(|one| one.what.starts_with("task task: ") && one.what.contains(" jobs late"));
    let of_task: Vec<_> = of_task
        .map(|one| (one.judgement, one.because.as_deref()))
        .collect();
    assert!(
        matches!(of_task[..], [(Judgement::NotJudged, Some(why))] if why.starts_with("`flood` filled the room for markers of tile 2")),
        "{of_task:?}"
    );
}

#[test]
fn a_flows_deadline_counts_beside_somebody_without_a_limit() {
    let overrides = ["hog/limit@noc=none", "flow[loop]@deadline=5us"];
    let late = finished(system("loop"), &overrides, false);
    let flow = &late.result.variants[0].flows[0];
    assert!(flow.misses > 0);
    assert_eq!(late.code(), 3);
    let words: Vec<&str> = failed(&late).iter().map(|one| one.what.as_str()).collect();
    let missed = format!(
        "flow loop: {} late of {}, 0 allowed",
        flow.misses, flow.latency.count
    );
    assert!(words.contains(&missed.as_str()), "{words:?}");
}

#[test]
fn a_bound_above_the_deadline_fails_the_run_as_it_fails_the_audit() {
    let good = finished(system("loop"), &[], false);
    assert_eq!(good.code(), 0, "{:?}", failed(&good));
    let flow = &good.result.variants[0].flows[0];
    let bound = flow.bound.as_ref().expect("a bound").ticks;
    let middle = good.result.microseconds((flow.latency.max + bound) / 2);
    let deadline = format!("flow[loop]@deadline={}us", middle as u64);
    let bad = finished(system("loop"), &[&deadline], false);
    assert_eq!(bad.result.variants[0].flows[0].misses, 0);
    assert_eq!(bad.code(), 3);
    let broken = failed(&bad);
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(
        broken[0].what.starts_with("flow loop: bound of "),
        "{broken:?}"
    );
    let mut options = Options::new(system("loop"));
    options.overrides = vec![deadline];
    options.domains = vec!["control".to_owned()];
    options.searches = 0;
    options.time = bulkhead_experiments::audit::time("3ms").expect("a time");
    let audited = audit(&options, &Silent).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(audited.code(), 3, "{:?}", audited.result.domains[0].reasons);
}

/// A control loop on tiles 2 to 4.
fn control_loop(samples: u32) -> String {
    format!(
        r#"<domain name="control" criticality="A">
  <app name="sensor" tile="2" program="control/sensor"><argument name="samples" value="{samples}"/><task period="1ms" deadline="500us"/>
    <sgate name="controller" to="controller" credits="2"/><mgate name="frame" size="64KiB" rights="r"/></app>
  <app name="controller" tile="3" program="control/controller"><rgate name="input" slots="4" slot-size="256B"/>
    <sgate name="actuator" to="actuator" credits="2"/><mgate name="map" size="64KiB" rights="r"/></app>
  <app name="actuator" tile="4" program="control/actuator"><rgate name="input" slots="4" slot-size="256B"/>
    <mgate name="log" size="16KiB" rights="w"/></app>
</domain>
<domain name="hogs" criticality="D">
  <app name="hog" tile="5" program="adversary/memcpy" memory="4MiB" background="true"><limit noc="8MiB/s" burst="4KiB"/></app>
</domain>
<flow name="loop" from="sensor" to="actuator" deadline="500us"/>"#
    )
}

/// A flow inside the second chip is measured on that chip alone, and `run` and `audit` bound it with the same run. (It had no bound, and the
/// report said that it had not been measured alone.)
#[test]
fn a_flow_inside_the_second_chip_has_a_bound() {
    let (near, far) = (control_loop(12), control_loop(6));
    let text = format!(
        r#"<system name="near" platform="tiled-2ghz" duration="30ms" manager-tile="1">{near}
  <cable from="7" peer="7" delay="1us"/>
  <peer name="far"><system name="far" platform="tiled-2ghz" duration="30ms" manager-tile="1">{far}</system></peer>
</system>"#
    );
    let finished = ran(&text, &[]);
    assert_eq!(finished.code(), 0, "{:?}", failed(&finished));
    let chips = [
        &finished.result,
        finished.result.peer.as_ref().expect("two"),
    ];
    let bounds = chips.map(|chip| {
        let flow = &chip.variants[0].flows[0];
        let bound = flow.bound.as_ref();
        let bound = bound.unwrap_or_else(|| panic!("{}: {:?}", chip.system, flow.unbounded));
        assert!(flow.latency.count > 0 && flow.latency.max <= bound.ticks);
        assert_eq!(chip.added.len(), 1, "{:?}", chip.added);
        bound.ticks
    });
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("system.xml");
    std::fs::write(&path, text).expect("it can be written");
    let mut options = Options::new(path);
    options.domains = vec!["far/control".to_owned()];
    options.searches = 0;
    options.time = bulkhead_experiments::audit::time("4ms").expect("a time");
    let audited = audit(&options, &Silent).unwrap_or_else(|error| panic!("{error}"));
    let flow = &audited.result.domains[0].flows[0];
    let bound = flow.bound.as_ref();
    let bound = bound.unwrap_or_else(|| panic!("{:?}", flow.unbounded));
    assert_eq!(bound.ticks, bounds[1]);
    assert!(flow.alone <= bound.ticks && flow.attacked <= bound.ticks);
}

#[test]
fn a_task_whose_program_marks_nothing_is_not_judged() {
    let text = r#"<system name="mute" platform="tiled-gem5" duration="20ms" manager-tile="1"><domain name="d">
  <app name="mute" tile="2" program="latency/ping"><argument name="runs" value="10"/><task period="1ms"/><sgate name="pong" to="pong" credits="1"/></app>
  <app name="pong" tile="3" program="latency/pong" background="true"><rgate name="input" slots="1" slot-size="64B"/></app>
</domain></system>"#;
    let mute = ran(text, &[]);
    let all = mute.result.verdict.promises().iter();
    let mut tasks = all.filter(|one| one.what.starts_with("task mute"));
    let task = tasks.next().expect("a promise");
    assert_eq!(task.judgement, Judgement::NotJudged);
    let why = task.because.as_deref();
    assert_eq!(
        why,
        Some("its program marks no jobs: their releases and ends must be marked")
    );
    assert_ne!(mute.result.verdict.outcome(), Outcome::Failed);
}

/// A run of the loop in the middle of which the kernel stopped: it says so first, holds nothing, and ends with 4.
fn without_its_kernel(deed: &(dyn Fn(&mut Machine) + Sync), words: &str) {
    let good = finished(system("loop"), &[], false);
    let held = good.result.verdict.counts().held;
    assert!(held > 5, "{:?}", good.result.verdict);
    // The kernel is busy when the sensor ends; three jobs before that.
    let end = good.result.variants[0].ticks;
    let at = good.result.microseconds(end) as u64 * 1000 - 3_000_000;
    let stopped = struck(system("loop"), at, deed);
    assert_eq!(stopped.code(), 4, "{}", stopped.consoles[0]);
    let variant = &stopped.result.variants[0];
    // In the middle: much had been measured.
    assert!(variant.flows[0].latency.count > 3, "{:?}", variant.flows[0]);
    assert_eq!(variant.end, End::Exit { code: 2 });
    let of_kernel: Vec<_> = variant
        .incidents
        .iter()
        .filter(|one| one.kind == IncidentKind::KernelStopped)
        .collect();
    assert_eq!(of_kernel.len(), 1, "{:?}", variant.incidents);
    assert!(of_kernel[0].what.starts_with(words), "{of_kernel:?}");
    assert_eq!(stopped.result.verdict.counts().held, 0);
    for head in heads(&stopped) {
        let happened = head.find("Happened:").expect("the head says it");
        let said = head.find(words).expect("and what");
        let table = head.find("Flows").unwrap_or(head.len());
        assert!(happened < said && said < table, "{head}");
        assert!(!head.contains("Held: "), "{head}");
    }
}

#[test]
fn nothing_holds_beside_a_kernel_that_panicked() {
    // Its unit forgets the ways to other tiles, again and again, until the kernel needs one that it has just made.
    let forget = |machine: &mut Machine| {
        let step = machine.config().ticks_per_second / 10_000_000;
        let panicked = |machine: &Machine| {
            let said = machine.console(0).expect("the kernel's tile has one");
            String::from_utf8_lossy(said).contains("panicked")
        };
        while !panicked(machine) {
            let unit = machine.unit_mut(0).expect("the kernel's tile");
            for index in PMP_WINDOWS as u16..1024 {
                if matches!(unit.endpoint(index), Endpoint::Memory(_)) {
                    unit.set_endpoint(index, Endpoint::Invalid);
                }
            }
            let ticks = machine.now() + step;
            let outcome = machine.run(RunLimit { ticks }, None);
            assert_eq!(outcome, Ended::Limit, "it did not panic");
        }
    };
    without_its_kernel(&forget, "panicked at ");
}

#[test]
fn nothing_holds_beside_a_kernel_that_ran_into_a_trap() {
    let astray = |machine: &mut Machine| machine.divert_hart(0, 0).expect("the kernel");
    without_its_kernel(&astray, "trap that it does not handle: ");
}

#[test]
fn a_system_that_only_serves_runs_for_its_duration() {
    let far = finished("network/far", &["@duration=5ms"], false);
    let variant = &far.result.variants[0];
    assert!(variant.incidents.is_empty(), "{:?}", variant.incidents);
    assert!(matches!(variant.end, End::Duration | End::Idle));
    assert_eq!(far.code(), 0);
    // A server that stops is an incident all the same.
    let overrides = ["@duration=5ms", "echo/sgate[network]@name=nobody"];
    let broken = finished("network/far", &overrides, false);
    assert_eq!(broken.code(), 4, "{}", broken.consoles[0]);
    assert_eq!(broken.result.variants[0].incidents[0].application, "echo");
}

/// The smallest experiment beside a paper that measured something else: what fails here says where the book explains it.
#[test]
fn a_failing_claim_of_a_reproduction_fails_and_names_its_page() {
    let mut figures = m3::Figures::m3().expect("valid");
    for one in &mut figures.round_trips {
        one.steady *= 3;
    }
    let wanted = m3::Wanted {
        table1: true,
        quick: true,
        ..m3::Wanted::default()
    };
    let all = m3::against(&figures, wanted, &Silent).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(all.code(), 3);
    let explained = figures.explanations.iter();
    let mut explained = explained.filter(|one| one.of == "round-trip/tiled-star/steady");
    let page = &explained.next().expect("the book explains it").page;
    let verdict = all.verdict();
    let broken = verdict.promises().iter();
    let mut broken = broken.filter(|one| one.judgement == Judgement::Failed);
    let claim = broken.find(|one| one.what.starts_with("round trip on tiled-star: "));
    let why = claim.expect("the claim fails").because.as_deref();
    assert!(why.is_some_and(|why| why.ends_with(&format!("[{page}]"))));
    let report = m3::report(&all, &bulkhead_report::book::Book::default()).expect("draws");
    for head in [m3::summary(&all), report] {
        assert!(head.contains("FAILED: ") && head.contains(page), "{head}");
    }
}
