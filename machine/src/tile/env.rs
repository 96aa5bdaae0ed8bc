//! The tile as its data transfer unit sees it.

use super::memory::Port;
use super::{Below, FROM_UNIT, Local, Signal, TileEvent};
use crate::cache::hierarchy::{Management, Outcome};
use crate::cache::{Hierarchy, Waiter};
use crate::dtu::{Alarm, DtuEvent, DtuResource, Env, Later, LocalFault, LocalTiming, Observation};
use crate::fabric::Fabric;
use crate::hart::InterruptLine;
use crate::ledger::Resource;
use crate::local_token::LocalToken;
use crate::noc::Packet;
use crate::types::{Block, Owner, Tick};

pub(super) struct TileEnv<'a> {
    pub caches: &'a mut Hierarchy,
    pub local: &'a mut Local,
    pub fabric: &'a mut Fabric,
}

impl Env for TileEnv<'_> {
    fn now(&self) -> Tick {
        self.local.now
    }

    fn schedule(&mut self, at: Tick, event: DtuEvent) {
        let now = self.local.now;
        assert!(
            at >= now,
            "tile {}: {event:?} at {now} for {at}",
            self.local.id
        );
        self.local.queue.push(at, FROM_UNIT, TileEvent::Unit(event));
    }

    fn set_alarm(&mut self, alarm: Alarm, at: Tick) {
        let now = self.local.now;
        assert!(
            at >= now,
            "tile {}: {alarm:?} at {now} for {at}",
            self.local.id
        );
        self.local.alarms.set(alarm, at);
    }

    fn send(&mut self, mut packet: Packet) {
        // Time that the unit did not account for was its own work.
        let now = self.local.now;
        let accounted = packet.account.accounted();
        assert!(
            accounted <= now,
            "accounted for until {accounted} at {now}: {packet:?}"
        );
        packet.account.service += now - accounted;
        self.local.send(now, packet, self.fabric);
    }

    fn local_access(
        &mut self,
        physical: u64,
        block: Block<'_>,
        owner: Owner,
        token: LocalToken,
    ) -> Result<LocalTiming, LocalFault> {
        let mut port = Port {
            unit: None,
            caches: self.caches,
            local: self.local,
            fabric: self.fabric,
        };
        let at = port.access(physical, block, owner, token)?;
        Ok(at.map_or(LocalTiming::Pending, LocalTiming::Ready))
    }

    fn local_forget(&mut self, token: LocalToken) {
        self.caches.forget(token);
    }

    fn line(&self) -> u64 {
        self.local.line.into()
    }

    fn local_write_back(
        &mut self,
        line: u64,
        owner: Owner,
        token: LocalToken,
    ) -> Result<LocalTiming, Later> {
        let now = self.local.now;
        let line = self.local.name(line);
        let mut lower = Below {
            unit: None,
            local: self.local,
            fabric: self.fabric,
        };
        let (what, waiter) = (
            Management::Flush,
            Waiter::Unit {
                token,
                write: false,
            },
        );
        match self
            .caches
            .manage(now, line, what, owner, waiter, &mut lower)
        {
            Ok(Outcome::Hit) => Ok(LocalTiming::Ready(now)),
            Ok(Outcome::Ready(at)) => Ok(LocalTiming::Ready(at)),
            Ok(Outcome::Pending(_)) => Ok(LocalTiming::Pending),
            Err(_) => Err(Later),
        }
    }

    fn interrupt(&mut self, level: bool) {
        let signal = Signal::Line(InterruptLine::External, level);
        self.local.signals.push(signal);
    }

    fn interrupt_pending(&self) -> bool {
        // The tile checks after every action of the unit and tells it (`Dtu::interrupted`); it is not known
        // before that.
        false
    }

    fn wake_hart(&mut self) {
        self.local.signals.push(Signal::Wake);
    }

    fn start_hart(&mut self, pc: u64) {
        self.local.signals.push(Signal::Start(pc));
    }

    fn start_second(&mut self, pc: u64) -> bool {
        if self.local.second_hart {
            self.local.signals.push(Signal::StartSecond(pc));
        }
        self.local.second_hart
    }

    fn interrupt_second(&mut self, level: bool) {
        let signal = Signal::Second(InterruptLine::External, level);
        self.local.signals.push(signal);
    }

    fn stop_hart(&mut self) {
        self.local.signals.push(Signal::Stop);
    }

    fn observe(&mut self, observation: Observation) {
        if let Observation::Wait {
            victim,
            culprit,
            resource,
            from,
            until,
        } = observation
        {
            let resource = match resource {
                DtuResource::Bucket => Resource::Bucket,
                DtuResource::DtuReceive => Resource::DtuBusy,
            };
            assert!(from <= until, "{observation:?}");
            self.fabric
                .ledger
                .book(victim, culprit, resource, until - from);
        }
        if let Observation::Unfetched(wait) = &observation {
            self.fabric.ledger.unfetched(wait);
        }
        if let Some(observer) = &mut self.fabric.observer {
            observer.unit(self.local.now, self.local.id, &observation);
            if let Observation::ActivityChanged { to, .. } = observation {
                let owner = Owner::new(self.local.id, to);
                observer.activity(self.local.now, owner);
            }
        }
    }
}
