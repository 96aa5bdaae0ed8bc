//! Traces of a cluster: each hart has a track, and its slices say when it ran and when it waited.
//!
//! Why it exists: a hart reports what it does from its port, where much makes it act that does not end its wait. What it deliberately does not know: the
//! encoding of traces, and names of programs.

use crate::common::*;
use bulkhead_abi::memory_map::{CLINT_BASE, EXIT_BASE};
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::trace::{TraceOptions, Tracer, proto};
use bulkhead_machine::types::Tick;
use prost::Message;
use std::collections::BTreeMap;

const SOFTWARE: i32 = 8;
const MIE: u32 = 0x304;
const LIMIT: Tick = 20_000_000;

/// Begins and ends of the slices of a hart, in nanoseconds.
type Slices = Vec<(u64, u64)>;

/// By the name of the track.
fn slices_of_harts(trace: &[u8]) -> BTreeMap<String, Slices> {
    let trace = proto::Trace::decode(trace).expect("decodes");
    let (mut tracks, mut slices) = (BTreeMap::new(), BTreeMap::<String, Slices>::new());
    for packet in &trace.packet {
        if let Some(track) = &packet.track_descriptor {
            tracks.insert(track.uuid, track.name.clone().expect("a name"));
        }
        let Some(event) = &packet.track_event else {
            continue;
        };
        let track = &tracks[&event.track_uuid];
        if !track.starts_with("hart") {
            continue;
        }
        let at = packet.timestamp.expect("a moment");
        let own = slices.entry(track.clone()).or_default();
        match event.r#type {
            Some(proto::SLICE_BEGIN) => own.push((at, at)),
            Some(proto::SLICE_END) => own.last_mut().expect("it has begun").1 = at,
            other => panic!("{track}: {other:?}"),
        }
    }
    slices
}

fn count(p: &mut Program, rounds: u64) {
    p.li(T2, rounds);
    let again = p.here();
    p.addi(T2, T2, -1).branch(1, T2, ZERO, again);
}

/// Counts, interrupts hart 1, counts again, and ends the run.
fn interrupts_and_ends() -> Program {
    let mut p = Program::default();
    p.li(S0, CLINT_BASE + 4).addi(S1, ZERO, 1);
    count(&mut p, 2000);
    p.sw(S1, S0, 0);
    count(&mut p, 2000);
    p.li(S0, EXIT_BASE).li(S1, 0x5555);
    p.sw(S1, S0, 0).spin();
    p
}

/// Counts and waits; and if an interrupt of this mask ends the wait, withdraws it, counts again and waits.
fn waits(mask: i32) -> Program {
    let mut p = Program::default();
    p.li(S0, CLINT_BASE + 4)
        .addi(T0, ZERO, mask)
        .csr(1, MIE, T0);
    count(&mut p, 100);
    p.word(WFI).sw(ZERO, S0, 0).word(FENCE);
    count(&mut p, 100);
    p.word(WFI).spin();
    p
}

/// Runs to the end in pieces of this length; its digest, its end, and its slices, if it is traced.
fn run(
    mut machine: Machine,
    piece: Tick,
    traced: bool,
) -> ([u8; 32], Tick, BTreeMap<String, Slices>) {
    if traced {
        let tracer = Tracer::new(machine.config(), TraceOptions::default());
        machine.set_observer(Some(Box::new(tracer)));
    }
    let mut until = piece;
    while machine.run(RunLimit { ticks: until }, None) == Outcome::Limit {
        until += piece;
        assert!(until <= 2 * LIMIT, "it does not end");
    }
    let bytes = machine.take_observer().map(|observer| observer.bytes());
    let slices = slices_of_harts(&bytes.unwrap_or_default());
    (machine.digest(), machine.now(), slices)
}

/// The slices of each hart follow each other from the start to the end of the run. A hart whose interrupt is not enabled waits in one slice, though the interrupt
/// makes it act; one whose interrupt is enabled runs twice. No trace changes a tick, and the length of a window changes nothing of it.
#[test]
fn slices_of_every_hart_add_up_to_the_run() {
    for pipeline in PIPELINES {
        let config = pipelined(cluster(4), pipeline);
        for (mask, expected) in [(0, 2), (SOFTWARE, 4)] {
            let mut ended = Program::default();
            ended.word(WFI).spin();
            let programs = [interrupts_and_ends(), waits(mask), ended];
            let machine = || {
                let mut machine = Machine::new(&config).expect("valid");
                for (port, program) in programs.iter().enumerate() {
                    start_port(&mut machine, port, program, 0x1_0000 * (port as u64 + 1));
                }
                machine
            };
            let (digest, end, nothing) = run(machine(), LIMIT, false);
            let (traced, _, slices) = run(machine(), LIMIT, true);
            assert_eq!((digest, nothing), (traced, BTreeMap::new()));
            assert_eq!(run(machine(), 7, true).2, slices, "{pipeline:?}");
            // The hart at the last port was never started.
            let counts = slices.iter().map(|(name, own)| (&name[..], own.len()));
            let wanted = [("hart 0", 1), ("hart 1", expected), ("hart 2", 2)];
            assert_eq!(counts.collect::<Vec<_>>(), wanted, "{slices:?}");
            let until = slices["hart 0"][0].1;
            let ticks = u128::from(end) * 1_000_000_000 / u128::from(config.ticks_per_second);
            assert_eq!(u128::from(until), ticks, "{slices:?}");
            for (name, own) in &slices {
                assert_eq!((own[0].0, own[own.len() - 1].1), (0, until), "{name}");
                let follow = own.windows(2).all(|two| two[0].1 == two[1].0);
                let last = own.iter().all(|(begin, end)| begin < end);
                assert!(follow && last, "{name}: {own:?}");
            }
            // It waits from its count on, until the interrupt comes in the middle of the run.
            let waited = slices["hart 1"][1];
            let middle = (until * 2 / 5..until * 3 / 5).contains(&waited.1);
            assert_eq!(middle, mask != 0, "{slices:?}");
            assert!(waited.0 < until / 5, "{slices:?}");
        }
    }
}
