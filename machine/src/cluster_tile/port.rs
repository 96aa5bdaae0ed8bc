//! A hart of a cluster with its first level: when messages take effect, and how long a reservation holds its line.
//!
//! Why it exists: [`FirstLevel`] knows no times, and [`Hart`] no caches. Messages from the second level, timers and interrupts take
//! effect in the order of their moments, between the hart's own accesses. What it deliberately does not know: other harts.

use super::bus::ClusterBus;
use super::devices::{Devices, Effect};
use super::messages::{Down, Looked, Port, Reply};
use super::queue::Queue;
use super::second_level::SecondLevel;
use super::{Directory, FirstLevel};
use crate::cache::HeldLine;
use crate::config::{ClusterConfig, TileConfig};
use crate::fabric::Fabric;
use crate::hart::{CacheEvents, Hart, InterruptLine, LineBytes, Stop};
use crate::ledger::{Ledger, Resource};
use crate::noc::{Account, Transaction};
use crate::observe::{HartState, Marker};
use crate::tile::End;
use crate::types::{Owner, Tick, align, later};

/// An event that comes to a hart or its first level.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A message of the second level.
    Down(Down),
    /// The answer of a DMA engine to an access with this token.
    Answer(u32, u64),
    /// A reservation that a probe waits for may have ended.
    Release,
    /// A device that another hart has written.
    Device(Effect),
}

/// Sources of one tick, in their order.
pub(super) const FROM_SECOND_LEVEL: u32 = 0;
pub(super) const FROM_RESERVATION: u32 = 1;
pub(super) const FROM_DEVICE: u32 = 2;

/// A probe that a reservation holds off.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    line: u64,
    keep: bool,
    by: Owner,
    since: Tick,
    /// The reservation holds the line no longer than this.
    until: Tick,
}

/// No line: addresses of lines are multiples of their length.
const NO_LINE: u64 = 1;

/// Everything in a port except its hart.
pub(super) struct Side {
    pub port: Port,
    pub owner: Owner,
    pub first: FirstLevel,
    pub inbox: Queue<Inbound>,
    /// When the hart's timer interrupt is due. It is not in the queue, so that a program that writes the register again and again does
    /// not fill it.
    pub timer_at: Tick,
    /// The time of the last event.
    pub now: Tick,
    /// The time of the hart's last access to data.
    pub access: Tick,
    /// Nothing that the hart has sent since it began to run can come back before this tick, and no hart that it has woken acts before it.
    pub limit: Tick,
    /// Effects of the hart's own accesses to devices on itself, and when.
    pub signals: Vec<(Tick, Effect)>,
    /// Effects of the hart on other harts through devices: their ports, and when it reaches them.
    pub others: Vec<(usize, Tick, Effect)>,
    /// The hart must return at the end of its block.
    pub recall: bool,
    /// An access that has hit has let lines be fetched ahead, and the hart was not told.
    pub fetched_ahead: bool,
    /// When the hart has reserved its line.
    pub reserved_at: Tick,
    /// How often the hart has reserved a line.
    pub reservations: u64,
    /// Ticks for which a reservation holds its line.
    hold: Tick,
    waiting: Option<Waiting>,
    /// The line of the probe that waits, or [`NO_LINE`].
    pub wanted: u64,
    /// The line of the host's word, or [`NO_LINE`].
    pub host_line: u64,
    /// Events at the second level, counted when its answers come.
    counted: CacheEvents,
    /// Ticks of a cycle of the hart.
    pub cycle: Tick,
    line: u64,
    pub markers: Vec<Marker>,
    pub markers_lost: u64,
}

/// See the module's documentation.
pub(super) struct HartPort {
    pub hart: Hart,
    pub side: Side,
    pub started: bool,
    runnable: bool,
    /// The next moment at which the hart acts, as [`HartPort::hart_time`] finds it.
    at: Tick,
    /// The hart waits with a device access until no other hart can access devices before it.
    at_device: bool,
    state: HartState,
}

/// A line as the hart uses it.
struct Using<'a, 'b> {
    line: &'a mut HeldLine<'b>,
    reserves: bool,
}

impl LineBytes for Using<'_, '_> {
    fn read(&mut self, offset: u64, bytes: u8) -> u64 {
        self.line.bytes.read(offset, bytes)
    }

    fn write(&mut self, offset: u64, bytes: u8, value: u64) {
        self.line.bytes.write(offset, bytes, value);
        self.line.written = true;
    }

    fn reserve(&mut self, _: u64) {
        self.line.reserved[0] = true;
        self.reserves = true;
    }

    fn take_reservation(&mut self, _: u64) -> Option<bool> {
        Some(std::mem::take(&mut self.line.reserved[0]))
    }
}

impl Side {
    /// The next moment at which something comes.
    #[inline]
    pub fn next_event(&self) -> Tick {
        self.inbox.next_time().min(self.timer_at)
    }

    /// Sends the messages of the first level.
    pub fn leave(&mut self, now: Tick, second: &mut SecondLevel) {
        let out = &mut self.first.out;
        if out.replies.is_empty() && out.asks.is_empty() {
            return;
        }
        let mut reach = second.request_reach();
        if !out.replies.is_empty() {
            reach = second.reply_reach();
            for reply in out.replies.drain(..) {
                second.reply(now, self.port, reply);
            }
        }
        for ask in out.asks.drain(..) {
            // A prefetcher asks for one line in each cycle.
            second.request(ask.account.accounted(), ask);
        }
        self.limit = self.limit.min(now + reach);
    }

    /// A message has arrived. `account` is continued up to now.
    fn complete(&self, now: Tick, account: &Account, ledger: &mut Ledger) {
        ledger.complete(self.owner, Transaction::CacheRead, account, now);
    }

    /// The second level has answered a request.
    fn looked(&mut self, looked: Looked) {
        let counted = &mut self.counted;
        counted.second_accesses += 1;
        counted.second_misses += u64::from(looked.missed);
        counted.second_refills += u64::from(looked.missed);
        counted.second_write_backs += u64::from(looked.wrote_back);
        counted.second_prefetches += u64::from(looked.ahead.fetched);
        counted.second_prefetches_used += u64::from(looked.ahead.used);
        counted.second_prefetches_late += u64::from(looked.ahead.late);
    }

    /// Event counts of the caches for the hart, up to now.
    pub fn events(&self) -> CacheEvents {
        let (fetch_refills, data_refills, data_write_backs) = self.first.traffic();
        CacheEvents {
            fetch_refills,
            data_refills,
            data_write_backs,
            data_prefetches: self.first.fetched_ahead(),
            ..self.counted
        }
    }

    /// A device does something to another hart, which may sleep and act from then on.
    pub fn affects(&mut self, port: usize, at: Tick, effect: Effect) {
        self.limit = self.limit.min(at);
        self.others.push((port, at, effect));
    }

    /// Whether the hart's reservation still holds off probes of this line.
    fn holds(&self, line: u64, now: Tick) -> bool {
        now < self.reserved_at + self.hold && self.first.is_reserved(line)
    }

    /// A reservation has ended: the probe that waits for it must be answered, now.
    pub fn release(&mut self, now: Tick) {
        if self.waiting.is_some() {
            let at = align(now, self.cycle);
            self.inbox.push(at, FROM_RESERVATION, Inbound::Release);
        }
    }
}

impl HartPort {
    /// A halted hart with empty caches. `None`: the tile has none.
    pub fn new(config: &TileConfig, cluster: &ClusterConfig, port: Port) -> Option<Self> {
        let core = cluster.core(config, port.into())?;
        let (l1i, l1d) = (core.l1i, core.l1d);
        let owner = Owner::new(config.id, port.into());
        let mut hart = Hart::new(core.hart, cluster.harts[usize::from(port)].into());
        hart.set_memory_types();
        if let Some(range) = cluster.qos(port.into()) {
            hart.set_qos(range);
        }
        hart.set_data_sets((l1d.size / (u64::from(l1d.ways) * u64::from(l1d.line))) as u32);
        Some(Self {
            hart,
            side: Side {
                port,
                owner,
                first: FirstLevel::new(port, owner, l1i, l1d),
                inbox: Queue::new(),
                timer_at: Tick::MAX,
                now: 0,
                access: 0,
                limit: Tick::MAX,
                signals: Vec::new(),
                others: Vec::new(),
                recall: false,
                fetched_ahead: false,
                reserved_at: 0,
                reservations: 0,
                hold: cluster.hold * core.hart.ticks_per_cycle,
                waiting: None,
                wanted: NO_LINE,
                host_line: NO_LINE,
                counted: CacheEvents::default(),
                cycle: core.hart.ticks_per_cycle,
                line: l1d.line.into(),
                markers: Vec::new(),
                markers_lost: 0,
            },
            started: false,
            runnable: false,
            at: Tick::MAX,
            at_device: false,
            state: HartState::Halted,
        })
    }

    /// Sets the address of the host's word, which is eight bytes in one line.
    pub fn set_tohost(&mut self, physical: u64) {
        self.side.host_line = physical & !(self.side.line - 1);
    }

    /// Starts the hart at `pc` with `a0` and `a1`.
    pub fn start(&mut self, at: Tick, pc: u64, a0: u64, a1: u64) {
        self.hart.reset(pc, at);
        self.side.first.ids = self.hart.qos_ids();
        self.hart.set_register(10, a0);
        self.hart.set_register(11, a1);
        (self.runnable, self.started) = (true, true);
        self.at = self.hart_time();
    }

    /// The hart, if it was started, abandons its current work or wait and continues at `pc`, not before `at`.
    pub fn divert(&mut self, at: Tick, pc: u64) {
        self.hart.divert(pc, at);
        self.runnable |= self.started;
        self.at = self.hart_time();
    }

    /// The next moment at which the hart acts.
    #[inline]
    fn hart_time(&self) -> Tick {
        match self.runnable {
            true => self.hart.time(),
            false => Tick::MAX,
        }
    }

    /// The next moment at which something happens here, except for what others send from now on.
    #[inline]
    pub fn next_time(&self) -> Tick {
        debug_assert_eq!(self.at, self.hart_time(), "the hart has acted elsewhere");
        self.at.min(self.side.next_event())
    }

    /// A moment before which nothing that happens here reaches another hart.
    #[inline]
    pub fn reaches(&self, second: &SecondLevel) -> Tick {
        // The hart itself sends requests; but the end of a reservation releases the answer to a probe.
        let own = match self.side.waiting {
            None => second.request_reach(),
            Some(_) => second.reply_reach(),
        };
        let events = later(self.side.next_event(), second.reply_reach());
        later(self.at, own).min(events)
    }

    /// Takes everything before `horizon`; devices are accessed before `devices_until` only. Returns whether there was something.
    pub fn run(
        &mut self,
        horizon: Tick,
        devices_until: Tick,
        second: &mut SecondLevel,
        devices: &mut Devices,
        fabric: &mut Fabric,
    ) -> bool {
        let mut acted = false;
        self.side.limit = Tick::MAX;
        loop {
            let event = self.side.next_event();
            let end = horizon.min(self.side.limit);
            let ended = devices
                .end
                .is_some_and(|(_, port, _)| port == self.side.port);
            let time = self.at;
            if ended || time.min(event) >= end {
                return acted;
            }
            if event <= time {
                self.take_event(second, devices, fabric);
            } else if self.at_device && time >= devices_until {
                return acted;
            } else {
                let mut bus = ClusterBus {
                    side: &mut self.side,
                    second,
                    devices,
                    fabric,
                    devices_until,
                };
                // What made it runnable need not end its wait.
                let wakes = self.state != HartState::Running && self.hart.is_awake(&bus);
                let since = self.hart.time();
                let stop = self.hart.run(&mut bus, event.min(end));
                if wakes {
                    self.report(since, HartState::Running, fabric);
                }
                self.stopped(stop, devices, fabric);
            }
            self.at = self.hart_time();
            acted = true;
        }
    }

    /// The hart has run until it stopped.
    fn stopped(&mut self, stop: Stop, devices: &mut Devices, fabric: &mut Fabric) {
        self.at_device = stop == Stop::Device;
        let state = match stop {
            Stop::Horizon | Stop::Device => HartState::Running,
            Stop::Pending(_) => {
                self.runnable = false;
                HartState::Running
            }
            Stop::WaitForInterrupt => {
                self.runnable = false;
                HartState::Idle
            }
            Stop::Halted => {
                self.runnable = false;
                HartState::Halted
            }
            Stop::Unhandled(trap) => {
                self.runnable = false;
                let (at, port) = (self.hart.time(), self.side.port);
                devices.finish(at, port, End::Unhandled(trap));
                HartState::Halted
            }
            stop @ (Stop::Tokens | Stop::Sleep) => {
                panic!("nothing regulates a hart of a cluster or lets it sleep: {stop:?}")
            }
        };
        self.report(self.hart.time(), state, fabric);
        self.side.recall = false;
        if !self.side.signals.is_empty() {
            for (at, effect) in std::mem::take(&mut self.side.signals) {
                self.affect(at, effect);
            }
        }
    }

    fn report(&mut self, at: Tick, state: HartState, fabric: &mut Fabric) {
        if self.state != state {
            self.state = state;
            if let Some(observer) = &mut fabric.observer {
                let hart = (self.side.owner.tile, usize::from(self.side.port));
                observer.hart(at, hart, state);
            }
        }
    }

    /// A device does something to the hart.
    fn affect(&mut self, now: Tick, effect: Effect) {
        let at = align(now, self.side.cycle);
        let (line, level) = match effect {
            Effect::Software(level) => (InterruptLine::Software, level),
            Effect::Timer(due) => {
                let level = due <= now;
                self.side.timer_at = if level { Tick::MAX } else { due };
                (InterruptLine::Timer, level)
            }
            Effect::External {
                supervisor: false,
                level,
            } => (InterruptLine::External, level),
            Effect::External {
                supervisor: true,
                level,
            } => (InterruptLine::SupervisorExternal, level),
        };
        self.hart.set_interrupt(line, level, at);
        // A hart that was never started has no interrupts.
        self.runnable = self.started;
    }

    fn take_event(&mut self, second: &mut SecondLevel, devices: &mut Devices, fabric: &mut Fabric) {
        // Among events of one tick, the timer comes first.
        if self.side.timer_at <= self.side.inbox.next_time() {
            self.side.now = self.side.timer_at;
            return self.affect(self.side.now, Effect::Timer(self.side.now));
        }
        let (now, inbound) = self.side.inbox.pop().expect("something comes");
        self.side.now = now;
        match inbound {
            Inbound::Device(effect) => return self.affect(now, effect),
            Inbound::Answer(token, value) => {
                self.hart.complete_remote(token, now, value);
                self.runnable = self.started;
                return;
            }
            Inbound::Release => {}
            Inbound::Down(down) => self.down(now, down, second, devices, &mut fabric.ledger),
        }
        self.answer_waiting(now, second);
        self.side.leave(now, second);
    }

    fn down(
        &mut self,
        now: Tick,
        down: Down,
        second: &mut SecondLevel,
        devices: &mut Devices,
        ledger: &mut Ledger,
    ) {
        let directory = &mut second.directory;
        match down {
            Down::Probe { line, keep, by } => self.probe(now, line, (keep, by), directory),
            Down::Grant {
                line,
                exclusive,
                looked,
                mut account,
            } => {
                if let Some(culprit) = self.side.first.culprit(line) {
                    let cost = std::mem::take(&mut account.service);
                    let owner = self.side.owner;
                    let resource = Resource::Coherence(owner.tile);
                    ledger.wait(&mut account, owner, culprit, resource, cost);
                }
                self.side.complete(now, &account, ledger);
                self.side.looked(looked);
                let token = self.side.first.grant(now, line, exclusive, directory);
                match token {
                    Some(token) => self.use_line(now, line, token, devices),
                    // It has pushed out another line, and is asked for again or was fetched ahead.
                    None => self.hart.forget_lines(),
                }
            }
            Down::Instructions {
                line,
                looked,
                account,
            } => {
                self.side.complete(now, &account, ledger);
                self.side.looked(looked);
                let token = self.side.first.instructions(now, line, directory);
                self.completed(now, token);
            }
            Down::Dropped { line, account } => {
                self.side.complete(now, &account, ledger);
                self.side.looked(Looked::default());
                self.side.first.dropped(now, line);
            }
            Down::Managed { line, account } => {
                self.side.complete(now, &account, ledger);
                let token = self.side.first.managed(now, line);
                self.completed(now, token);
            }
        }
    }

    fn completed(&mut self, now: Tick, token: u32) {
        self.hart.complete(token, now, None);
        self.runnable = self.started;
    }

    /// The hart performs what waits for a line that has come.
    fn use_line(&mut self, now: Tick, line: u64, token: u32, devices: &mut Devices) {
        let (hart, side) = (&mut self.hart, &mut self.side);
        let mut reserves = false;
        side.first.hold(line, |held| {
            let mut using = Using {
                line: held,
                reserves,
            };
            hart.take_line(token, line, &mut using);
            reserves = using.reserves;
        });
        if reserves {
            side.reserved_at = now;
            side.reservations += 1;
        }
        self.completed(now, token);
        if line == self.side.host_line {
            self.look_at_host(now, devices);
        }
    }

    /// The line of the host's word has come, and perhaps a store with it.
    #[cold]
    fn look_at_host(&mut self, now: Tick, devices: &mut Devices) {
        let side = &mut self.side;
        let word = devices.htif.word();
        let (line, offset) = (side.host_line, (word & (side.line - 1)) as usize);
        let Some(bytes) = side.first.modified(line) else {
            return;
        };
        let mut value = [0; 8];
        value.copy_from_slice(&bytes[offset..offset + 8]);
        let value = u64::from_le_bytes(value);
        if devices.stored_to_host(now, side.port, value) {
            side.first.poke(line, offset, &[0; 8]);
        }
    }

    /// The second level wants a line.
    fn probe(
        &mut self,
        now: Tick,
        line: u64,
        (keep, by): (bool, Owner),
        directory: &mut Directory,
    ) {
        let side = &mut self.side;
        if !side.holds(line, now) {
            let reply = side.first.probe(line, keep, by, directory);
            side.first.out.replies.push(reply);
            return self.forget(line);
        }
        assert!(
            side.waiting.is_none(),
            "two probes wait for one reservation"
        );
        let until = side.reserved_at + side.hold;
        side.waiting = Some(Waiting {
            line,
            keep,
            by,
            since: now,
            until,
        });
        // The hart must ask for every access to the line: one that ends the reservation lets the probe go on.
        side.wanted = line;
        side.inbox.push(until, FROM_RESERVATION, Inbound::Release);
        self.forget(line);
    }

    /// Answers the probe that waits, if nothing holds it off.
    fn answer_waiting(&mut self, now: Tick, second: &mut SecondLevel) {
        let side = &mut self.side;
        let Some(waiting) = side.waiting else { return };
        if now < waiting.until && side.first.is_reserved(waiting.line) {
            return;
        }
        (side.waiting, side.wanted) = (None, NO_LINE);
        let mut reply = side.first.probe(
            waiting.line,
            waiting.keep,
            waiting.by,
            &mut second.directory,
        );
        if let Reply::Answer { held, .. } = &mut reply {
            *held = now - waiting.since;
        }
        side.first.out.replies.push(reply);
        self.forget(waiting.line);
    }

    /// The hart must ask again for a line.
    fn forget(&mut self, line: u64) {
        let end = line / self.side.line % 16;
        self.hart.forget_some_lines(1 << end, false);
    }
}
