//! A trace in which activities have names.
//!
//! Why it exists: names become known while the machine runs, and a trace is written at the same time. What it deliberately does not know:
//! how names become known, and what a trace looks like.

use crate::names::Naming;
use bulkhead_machine::device::network::{Fate, Frame};
use bulkhead_machine::dram::BankActivity;
use bulkhead_machine::dtu::Observation;
use bulkhead_machine::noc::LinkActivity;
use bulkhead_machine::observe::{HartState, Marker, Missing, Observer};
use bulkhead_machine::trace::Tracer;
use bulkhead_machine::types::{Owner, Tick, TileId};

/// Listens to markers and forwards everything.
pub struct NamedTracer {
    /// Knows the names of activities.
    pub naming: Box<dyn Naming>,
    /// Writes the trace.
    pub tracer: Tracer,
}

impl Observer for NamedTracer {
    fn unit(&mut self, at: Tick, tile: TileId, observation: &Observation) {
        self.tracer.unit(at, tile, observation);
    }

    fn link(&mut self, activity: &LinkActivity) {
        self.tracer.link(activity);
    }

    fn bank(&mut self, memory: TileId, activity: &BankActivity) {
        self.tracer.bank(memory, activity);
    }

    fn hart(&mut self, at: Tick, hart: (TileId, usize), state: HartState) {
        self.tracer.hart(at, hart, state);
    }

    fn activity(&mut self, at: Tick, owner: Owner) {
        self.tracer.activity(at, owner);
    }

    fn marker(&mut self, marker: &Marker) {
        if let Some((owner, name)) = self.naming.hear(marker.tile, marker.kind, marker.value) {
            self.tracer.name_activity(owner, &name);
        }
        self.tracer.marker(marker);
    }

    fn frame(&mut self, at: Tick, tile: TileId, frame: &Frame, fate: Fate) {
        self.tracer.frame(at, tile, frame, fate);
    }

    fn stopped(&mut self, at: Tick) {
        self.tracer.stopped(at);
    }

    fn missing(&self) -> Missing {
        self.tracer.missing()
    }

    fn bytes(&self) -> Vec<u8> {
        self.tracer.bytes()
    }
}
