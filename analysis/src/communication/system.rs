//! A described system as a scenario: what each application may send, and the bounds that a report shows.
//!
//! Why it exists: rights and limits are in the description. An application can cause only what its tile's caches, its gates and its token
//! bucket allow; whether it actually does so does not matter. Limits on periodic applications' behaviour, declared or measured, come as
//! [`Profile`]s.
//!
//! # Assumptions, which [`SystemBounds::assumptions`] repeats for the report
//! Start-up is over; kernel and resource managers only answer system calls, and their own traffic is not counted.

use super::bound::{Bound, FlowBound, Stage, Work, beside, transaction_bound};
use super::chip::{Chip, ChipError};
use super::scenario::{
    CommunicationError, Demand, NetworkScenario, Regulator, Source, Ticks, TransactionClass,
    TransactionId,
};
use super::tandem::{self, Joined};
use bulkhead_abi::dtu::CHUNK_MAX;
use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_model::System;
use bulkhead_model::platform::PipelineModel;
use bulkhead_model::system::App;
use std::collections::BTreeMap;
use thiserror::Error;

/// Maximum rounds until a flow's bound and the assumed end of its jobs agree.
const ROUNDS: u32 = 20;

/// The most that a periodic application does in each job, on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Index of the application in the system's list.
    pub app: usize,
    /// Ticks of a job without waiting for others.
    pub compute: Ticks,
    /// `compute` already contains the uncontended time of the transactions below (it was measured with them, alone). The lines below were
    /// then counted too, and include those that messages cost at both ends.
    pub compute_includes_network: bool,
    /// Cache lines read over the network.
    pub line_reads: u64,
    /// Cache lines written back.
    pub line_writes: u64,
    /// Bytes read by DMA.
    pub dma_read: u64,
    /// Bytes written by DMA.
    pub dma_written: u64,
    /// Messages: index of the receiving application and bytes of payload.
    pub messages: Vec<(usize, u64)>,
    /// Messages to the kernel.
    pub calls: u64,
}

/// Why there are no bounds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SystemError {
    /// The hardware does not fit the description.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// The scenario is wrong.
    #[error(transparent)]
    Communication(#[from] CommunicationError),
    /// An application that does not exist.
    #[error("there is no application {0}")]
    NoApp(usize),
    /// The application has no right to this transaction.
    #[error("application {app} has no {what}")]
    NoRight {
        /// Its name.
        app: String,
        /// The right that it would need.
        what: &'static str,
    },
    /// Jobs on harts that work out of order have no bound.
    #[error("{0}")]
    OutOfOrder(String),
}

/// A transaction of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A cache line read because of a miss.
    LineRead,
    /// A cache line written back.
    LineWrite,
    /// A chunk of at most 512 bytes read by DMA.
    DmaRead,
    /// A chunk of at most 512 bytes written by DMA.
    DmaWrite,
    /// A message or reply to this application.
    Message(usize),
    /// A message to the kernel: a system call, or a text.
    Call,
}

/// The scenario of a system, and bounds on it.
#[derive(Clone, Debug)]
pub struct SystemBounds<'a> {
    pub(super) system: &'a System,
    pub(super) scenario: NetworkScenario,
    /// The same with its tandems joined, once for all bounds.
    joined: Option<Joined>,
    /// Class of each kind, for each application.
    pub(super) kinds: Vec<BTreeMap<Kind, usize>>,
    profiles: BTreeMap<usize, Profile>,
    /// For each application: the classes that are parts of another kind of transaction, with that kind and the number of parts.
    pub(super) parts: Vec<BTreeMap<usize, (Kind, u64)>>,
    /// The most lines that the kernel's tile reads.
    pub(super) kernel_line: Ticks,
}

impl<'a> SystemBounds<'a> {
    /// The scenario of `system`. Applications with a profile that are periodic, or only serve periodic ones, are assumed to keep to it:
    /// they do what it lists in each period, and are done by the deadline.
    ///
    /// # Errors
    /// [`SystemError`] if a profile names something that does not exist.
    pub fn new(system: &'a System, profiles: &[Profile]) -> Result<Self, SystemError> {
        let chip = Chip::new(&system.platform);
        let profiles: BTreeMap<usize, Profile> =
            profiles.iter().map(|p| (p.app, p.clone())).collect();
        if let Some(&app) = profiles.keys().find(|&&a| a >= system.apps.len()) {
            return Err(SystemError::NoApp(app));
        }
        let mut bounds = Self {
            system,
            scenario: NetworkScenario {
                ticks_per_second: chip.ticks_per_second(),
                resources: chip.resources().to_vec(),
                sources: Vec::new(),
                tandems: chip.tandems().to_vec(),
            },
            joined: None,
            kinds: Vec::new(),
            parts: vec![BTreeMap::new(); system.apps.len()],
            profiles,
            kernel_line: 0,
        };
        for app in 0..system.apps.len() {
            bounds.add_app(&chip, app)?;
        }
        bounds.add_cards(&chip)?;
        bounds.kernel_line = bounds.line_of_kernel(&chip)?;
        // The cost of a message at its ends depends on bounds of everything else, and is added to it.
        bounds.join()?;
        bounds.add_messages(&chip)?;
        bounds.join()?;
        Ok(bounds)
    }

    /// Prepares the scenario in its present state for bounds.
    fn join(&mut self) -> Result<(), SystemError> {
        self.scenario.validate()?;
        self.joined = tandem::joined(&self.scenario);
        Ok(())
    }

    /// The bound of some work in the scenario.
    pub(super) fn bound(&self, work: &Work) -> Result<FlowBound, SystemError> {
        Ok(beside(&self.scenario, self.joined.as_ref(), work)?)
    }

    /// The same without the traffic of these applications: they do not run during the bounded work.
    pub fn without(mut self, apps: &[usize]) -> Self {
        for &app in apps {
            if let Some(source) = self.scenario.sources.get_mut(app) {
                source
                    .classes
                    .iter_mut()
                    .for_each(|class| class.steps.clear());
            }
        }
        self.joined = tandem::joined(&self.scenario);
        self
    }

    /// The scenario, for the caller's own bounds.
    pub fn scenario(&self) -> &NetworkScenario {
        &self.scenario
    }

    /// Ticks a second.
    pub fn ticks_per_second(&self) -> u64 {
        self.scenario.ticks_per_second
    }

    /// The bound of one transaction of an application, from the moment when it has its tokens to its end: the data of a line or chunk, the
    /// acknowledgement of a write or a message. It excludes a message's local memory accesses, which [`SystemBounds::message`] includes.
    ///
    /// # Errors
    /// [`SystemError`] if the application cannot do this.
    pub fn transaction(&self, app: usize, kind: Kind) -> Result<Bound, SystemError> {
        Ok(self.bound(&Work::of(self.id(app, kind)?, 1))?.bound)
    }

    /// The bound of a DMA transfer of `bytes`, as chunks in sequence.
    ///
    /// # Errors
    /// [`SystemError`] if the application cannot do this.
    pub fn transfer(&self, app: usize, bytes: u64, write: bool) -> Result<Bound, SystemError> {
        let kind = if write { Kind::DmaWrite } else { Kind::DmaRead };
        let chunks = bytes.div_ceil(CHUNK_MAX as u64);
        Ok(self.bound(&Work::of(self.id(app, kind)?, chunks))?.bound)
    }

    /// The bound of jobs of `apps` in sequence, each sending its messages: an end-to-end flow. Every application needs a profile that lists
    /// everything that its tile does meanwhile. `wake` ticks are added for each: the time from a message's arrival to the receiver's next
    /// instruction (polling distance, or leaving sleep). Where a profile's `compute` includes the network, the end-to-end latency measured
    /// alone may be in any one of the profiles.
    ///
    /// # Errors
    /// [`SystemError`] if an application has no profile, lacks the rights that it needs, or runs on a hart that works out of order.
    pub fn flow(&self, apps: &[usize], wake: Ticks) -> Result<FlowBound, SystemError> {
        let once: Vec<(usize, u64)> = apps.iter().map(|&app| (app, 1)).collect();
        self.flow_of_jobs(&once, wake)
    }

    /// The same where each application has this many jobs: the flow's own, and those for messages of others that may be there with it.
    ///
    /// # Errors
    /// As for [`SystemBounds::flow`].
    pub fn flow_of_jobs(
        &self,
        apps: &[(usize, u64)],
        wake: Ticks,
    ) -> Result<FlowBound, SystemError> {
        let members: Vec<usize> = apps.iter().map(|(app, _)| *app).collect();
        if let Some(why) = out_of_order(self.system, &members) {
            return Err(SystemError::OutOfOrder(why));
        }
        let mut stages = Vec::new();
        for &(app, jobs) in apps {
            let name = self.name(app)?;
            let profile = self.profiles.get(&app).ok_or(SystemError::NoRight {
                app: name.clone(),
                what: "profile",
            })?;
            let mut transactions = Vec::new();
            for (kind, count) in counts(profile) {
                transactions.push((self.id(app, kind)?, count));
            }
            if !profile.compute_includes_network {
                for &(to, payload) in &profile.messages {
                    transactions.extend(self.local_blocks(app, to, payload)?);
                }
            }
            for (_, count) in &mut transactions {
                *count = count.saturating_mul(jobs);
            }
            stages.push(Stage {
                name,
                compute: wake.saturating_add(profile.compute).saturating_mul(jobs),
                transactions,
                measured: profile.compute_includes_network,
            });
        }
        let work = Work {
            stages,
            covers_sources: true,
        };
        let (mut scenario, mut joined) = (self.scenario.clone(), self.joined.clone());
        let demands = |scenario: &mut NetworkScenario,
                       change: &dyn Fn(Demand) -> Option<Demand>| {
            for class in scenario.sources.iter_mut().flat_map(|s| &mut s.classes) {
                class.demand = class.demand.and_then(change);
            }
        };
        let mut each = |change: &dyn Fn(Demand) -> Option<Demand>| {
            demands(&mut scenario, change);
            if let Some(joined) = &mut joined {
                demands(&mut joined.scenario, change);
            }
            beside(&scenario, joined.as_ref(), &work)
        };
        // Jobs were assumed to be over by their deadlines. If the bound exceeds the deadlines, the jobs are assumed to last as long as the
        // bound, until both agree; if they never do, nothing is known about the end of jobs.
        let classes = self.scenario.sources.iter().flat_map(|s| &s.classes);
        let shortest = classes.filter_map(|c| c.demand).map(|d| d.jitter).min();
        let mut assumed = 0;
        for _ in 0..ROUNDS {
            let bound = each(&|demand| {
                let jitter = demand.jitter.max(assumed);
                Some(Demand { jitter, ..demand })
            })?;
            let whole = bound.bound.whole();
            if shortest.is_none_or(|shortest| whole <= shortest.max(assumed)) {
                return Ok(bound);
            }
            assumed = assumed.max(whole);
        }
        Ok(each(&|_| None)?)
    }

    /// Lines that a message of `payload` bytes may cost at both its ends, if neither buffer is in the caches.
    pub(super) fn local_blocks(
        &self,
        from: usize,
        to: usize,
        payload: u64,
    ) -> Result<Vec<(TransactionId, u64)>, SystemError> {
        let mut all = Vec::new();
        for app in [from, to] {
            all.push((
                self.id(app, Kind::LineRead)?,
                blocks(payload, self.block_of(self.tile_of(app)?)),
            ));
        }
        Ok(all)
    }

    pub(super) fn tile_of(&self, app: usize) -> Result<u16, SystemError> {
        let app = self.system.apps.get(app).ok_or(SystemError::NoApp(app));
        app.map(|app| app.tile)
    }

    /// The assumptions of the bounds, in sentences.
    pub fn assumptions(&self) -> Vec<String> {
        let mut all = vec![
            "start-up is over; the kernel and the resource managers only answer system calls"
                .to_string(),
        ];
        for (&app, profile) in &self.profiles {
            if let Some(task) = self.system.apps.get(app).and_then(|a| a.task.as_ref()) {
                all.push(format!(
                    "{} reads at most {} lines, writes {} lines and sends {} messages in each {}, and is done by its deadline",
                    self.system.apps[app].name,
                    profile.line_reads,
                    profile.line_writes,
                    profile.messages.len(),
                    task.period
                ));
            }
        }
        all
    }

    fn name(&self, app: usize) -> Result<String, SystemError> {
        Ok(self
            .system
            .apps
            .get(app)
            .ok_or(SystemError::NoApp(app))?
            .name
            .clone())
    }

    pub(super) fn id(&self, app: usize, kind: Kind) -> Result<TransactionId, SystemError> {
        let what = match kind {
            Kind::LineRead | Kind::LineWrite => "caches",
            Kind::DmaRead => "memory gate to read",
            Kind::DmaWrite => "memory gate to write",
            Kind::Message(_) => "gate to that application",
            Kind::Call => "way to the kernel",
        };
        let classes = self.kinds.get(app).ok_or(SystemError::NoApp(app))?;
        let class = *classes.get(&kind).ok_or(SystemError::NoRight {
            app: self.name(app)?,
            what,
        })?;
        Ok(TransactionId { source: app, class })
    }

    /// Whether activities share a tile.
    pub(super) fn shares(&self, tile: u16) -> bool {
        let apps = self.system.apps.iter().filter(|a| a.tile == tile);
        let managers = self.system.managers.iter().filter(|m| m.tile == tile);
        apps.count() + managers.count() > 1
    }

    /// The accesses to memory that one application may make.
    fn add_app(&mut self, chip: &Chip, index: usize) -> Result<(), SystemError> {
        let app = &self.system.apps[index];
        let (tile, memory) = (app.tile, app.memory_tile);
        let mut kinds = BTreeMap::new();
        let mut classes = Vec::new();
        let mut add = |kind: Option<Kind>, class: TransactionClass| {
            if let Some(kind) = kind {
                kinds.entry(kind).or_insert(classes.len());
            }
            classes.push(class);
        };
        add(Some(Kind::LineRead), chip.line_read(tile, memory)?);
        add(Some(Kind::LineWrite), chip.line_write(tile, memory)?);
        let mut ways: Vec<(u16, bool)> = Vec::new();
        for gate in &app.mgates {
            let rights = [(gate.read, false), (gate.write, true)];
            let allowed = rights.into_iter().filter(|(allowed, _)| *allowed);
            ways.extend(allowed.map(|(_, write)| (gate.memory_tile, write)));
        }
        ways.sort_unstable();
        ways.dedup();
        for (memory, write) in ways {
            let chunk = CHUNK_MAX as u64;
            for size in chip.sizes(tile, chunk)? {
                // Only the last chunk of a command may be small.
                let (slots, kind) = match (size.1 == chunk, write) {
                    (true, false) => (chip.dtu(tile)?.outstanding, Some(Kind::DmaRead)),
                    (true, true) => (chip.dtu(tile)?.outstanding, Some(Kind::DmaWrite)),
                    (false, _) => (1, None),
                };
                add(kind, chip.chunks(tile, memory, size, write, slots)?);
            }
        }
        let regulator = match app.limit {
            Some(limit) => {
                let dtu = chip.dtu(tile)?;
                let period = u64::from(dtu.refill) * chip.cycle(dtu.clock.frequency.0);
                Some(Regulator {
                    rate: limit.noc.0,
                    limit: limit.burst.0,
                    period,
                    credit: chip.credit(tile, local_chunks(chip, app)?, self.shares(tile))?,
                    // The accesses to memory that one application may make.
                    line: 2,
                })
            }
            None => None,
        };
        self.scenario.sources.push(Source {
            name: app.name.clone(),
            tile,
            regulator,
            classes,
        });
        self.kinds.push(kinds);
        self.apply_demand(index);
        Ok(())
    }

    /// Network cards with a driver, each a source of its own: a card has accesses outstanding for both directions, whichever application
    /// runs on its tile. Its link's rate bounds nothing here, because the driver chooses the number of descriptors per frame, and the card
    /// reads all of them.
    fn add_cards(&mut self, chip: &Chip) -> Result<(), SystemError> {
        for app in self.system.apps.iter().filter(|app| app.device) {
            let Some(card) = chip.tile(app.tile)?.network_card.as_ref() else {
                continue;
            };
            // Data of a frame that is sent and of one that is received, and descriptors of a third.
            let slots = card.parallel.saturating_mul(2).saturating_add(1);
            let mut read = chip.line_read(app.tile, app.memory_tile)?;
            read.outstanding = slots;
            // Its own accesses; where they pass the first level, they share that cache's registers, which are counted, too.
            read.pool = None;
            let write = chip.line_write(app.tile, app.memory_tile)?;
            let classes = vec![read, write];
            // The application that is current on the tile pays for it, and nobody pays while none is: then it is unregulated, otherwise it
            // goes before the application's own requests.
            for (index, other) in self.system.apps.iter().enumerate() {
                if other.tile == app.tile && other.limit.is_some() {
                    let own = &mut self.scenario.sources[index];
                    own.classes.extend(classes.iter().cloned());
                    if let Some(regulator) = &mut own.regulator {
                        regulator.line = u32::MAX;
                    }
                }
            }
            self.scenario.sources.push(Source {
                name: format!("network card of tile {}", app.tile),
                tile: app.tile,
                regulator: None,
                classes,
            });
        }
        Ok(())
    }

    /// The longest wait of the kernel's tile for a line, with everything that others may do.
    fn line_of_kernel(&self, chip: &Chip) -> Result<Ticks, SystemError> {
        let Some(memory) = self.system.platform.memories.first() else {
            return Ok(0);
        };
        let tile = self.system.kernel_tile;
        let mut scenario = self.scenario.clone();
        scenario.sources.push(Source {
            name: "kernel".to_owned(),
            tile,
            regulator: None,
            classes: vec![
                chip.line_read(tile, memory.id)?,
                chip.line_write(tile, memory.id)?,
            ],
        });
        let id = TransactionId {
            source: scenario.sources.len() - 1,
            class: 0,
        };
        Ok(transaction_bound(&scenario, id)?.path)
    }

    /// Bytes of a block in which the unit of a tile reads and writes local memory.
    pub(super) fn block_of(&self, tile: u16) -> u64 {
        let tile = self.system.platform.tile(tile);
        let unit = tile.and_then(|tile| tile.dtu.as_ref());
        unit.map_or(64, |unit| u64::from(unit.block))
    }

    /// Periods in which a profiled application has jobs: those of the periodic applications whose messages reach it, and its own. (Number of
    /// jobs, period, lateness) in ticks.
    fn releases(&self, app: usize) -> Option<(u64, Ticks, Ticks)> {
        if let Some(own) = &self.system.apps[app].task
            && self.has_sender(app)
        {
            // Messages may come more often than its own period.
            let mut all = Vec::new();
            let known = streams(self.system, app, &mut vec![app], &mut all);
            let all = if known { all.as_slice() } else { &[] };
            let tasks = all.iter().map(|&from| self.system.apps[from].task.as_ref());
            let tasks: Vec<_> = tasks.flatten().chain([own]).collect();
            return self.together(&tasks, (all.len() as u64).max(1));
        }
        let mut reached = vec![app];
        let mut next = 0;
        while let Some(&here) = reached.get(next) {
            next += 1;
            if self.system.apps[here].task.is_some() {
                continue;
            }
            for (from, other) in self.system.apps.iter().enumerate() {
                if other.sgates.iter().any(|g| g.to == here) && !reached.contains(&from) {
                    reached.push(from);
                }
            }
        }
        let tasks: Vec<_> = reached
            .iter()
            .filter_map(|&a| self.system.apps[a].task.as_ref())
            .collect();
        // One of them may send at any time, because it has no period.
        let free = reached.iter().any(|&a| {
            let unbounded = self.system.apps[a].task.is_none() && !self.profiles.contains_key(&a);
            unbounded || (self.system.apps[a].task.is_none() && !self.has_sender(a))
        });
        if free {
            return None;
        }
        self.together(&tasks, tasks.len() as u64)
    }

    /// This many jobs in the shortest of these tasks' periods, as late as the latest deadline.
    fn together(
        &self,
        tasks: &[&bulkhead_model::tasks::Task],
        jobs: u64,
    ) -> Option<(u64, Ticks, Ticks)> {
        let ticks = |picoseconds: u64| {
            let ticks = u128::from(picoseconds) * u128::from(self.scenario.ticks_per_second)
                / 1_000_000_000_000;
            u64::try_from(ticks).unwrap_or(u64::MAX)
        };
        let period = tasks.iter().map(|t| ticks(t.period.0)).min()?.max(1);
        let late = tasks
            .iter()
            .map(|t| ticks(t.deadline.0))
            .max()?
            .saturating_add(1);
        Some((jobs, period, late))
    }

    fn has_sender(&self, app: usize) -> bool {
        sends_to(self.system, app)
    }

    /// Limits the classes of a profiled periodic application to what its profile says.
    pub(super) fn apply_demand(&mut self, app: usize) {
        let (Some(profile), Some((jobs, period, jitter))) =
            (self.profiles.get(&app), self.releases(app))
        else {
            return;
        };
        let mut listed: BTreeMap<Kind, u64> = counts(profile).into_iter().collect();
        let tile = self.system.apps[app].tile;
        let unit = self.system.platform.tile(tile).and_then(|t| t.dtu.as_ref());
        let block = unit.map_or(64, |d| u64::from(d.block));
        // Messages that it sends and receives may miss in its caches.
        let own = profile.messages.iter().map(|&(_, payload)| payload);
        let others = self.profiles.values().flat_map(|p| &p.messages);
        let received = others.filter(|m| m.0 == app).map(|&(_, payload)| payload);
        let local: u64 = own
            .chain(received)
            .map(|payload| blocks(payload, block))
            .sum();
        if !profile.compute_includes_network {
            for kind in [Kind::LineRead, Kind::LineWrite] {
                *listed.entry(kind).or_default() += local;
            }
        }
        let numbered: BTreeMap<usize, Kind> =
            self.kinds[app].iter().map(|(k, &c)| (c, *k)).collect();
        for (index, class) in self.scenario.sources[app].classes.iter_mut().enumerate() {
            // The application does nothing that the profile does not list; at most one small chunk ends each listed transfer.
            let of = |kind: &Kind| listed.get(kind).copied().unwrap_or(0);
            let count = match (numbered.get(&index), self.parts[app].get(&index)) {
                (Some(kind), _) => of(kind),
                (None, Some((kind, each))) => of(kind).saturating_mul(*each),
                (None, None) => {
                    u64::from(profile.dma_read > 0) + u64::from(profile.dma_written > 0)
                }
            };
            class.demand = Some(Demand {
                count: count.saturating_mul(jobs),
                period,
                jitter,
            });
        }
    }
}

/// Maximum number of paths along which messages are followed back to their origin.
const WAYS_MAX: usize = 1000;

/// For each path along send gates to `app`, adds the application at which it begins. Returns false if such an application has no `<task>`,
/// messages return to a place already visited (`above`), or there are too many paths.
fn streams(system: &System, app: usize, above: &mut Vec<usize>, all: &mut Vec<usize>) -> bool {
    for (from, other) in system.apps.iter().enumerate() {
        let gates = other.sgates.iter().filter(|gate| gate.to == app).count();
        if gates == 0 {
            continue;
        }
        if above.contains(&from) || all.len() + gates > WAYS_MAX {
            return false;
        }
        let begins = !sends_to(system, from);
        if begins && other.task.is_none() {
            return false;
        }
        for _ in 0..gates {
            if begins {
                all.push(from);
                continue;
            }
            above.push(from);
            let known = streams(system, from, above, all);
            above.pop();
            if !known {
                return false;
            }
        }
    }
    true
}

/// Whether any application may send to this one.
pub(crate) fn sends_to(system: &System, app: usize) -> bool {
    let mut gates = system.apps.iter().flat_map(|other| &other.sgates);
    gates.any(|gate| gate.to == app)
}

/// Why a flow through `members` has no bound, if an application outside may send to one of them: a server may be busy with a message of others
/// when the flow's message comes, and nothing says how many there are.
pub fn sent_from_outside(system: &System, members: &[usize]) -> Option<String> {
    let outside = system.apps.iter().enumerate();
    let mut outside = outside.filter(|(from, _)| !members.contains(from));
    outside.find_map(|(_, app)| {
        let gate = app.sgates.iter().find(|gate| members.contains(&gate.to))?;
        let to = &system.apps.get(gate.to)?.name;
        let from = &app.name;
        Some(format!(
            "`{from}` may send to `{to}`, whose work on its messages is not bounded here; without that gate it would be judged"
        ))
    })
}

/// Why a flow through `members` has no bound, if one of them runs on a hart that works out of order. There, a delayed access changes which
/// instructions execute meanwhile (also on wrong paths), so a job may become longer than by what its accesses wait, and make more of them.
/// Bounds of single requests do not depend on that.
pub fn out_of_order(system: &System, members: &[usize]) -> Option<String> {
    let mut apps = members.iter().filter_map(|app| system.apps.get(*app));
    apps.find_map(|app| {
        let mut tiles = system.platform.tiles.iter();
        let tile = tiles.find(|tile| tile.id == app.tile)?;
        let works = tile.pipeline.model == PipelineModel::Interval;
        works.then(|| {
            format!(
                "`{}` runs on a hart that works out of order, so a longer wait may cost more than its length; with a pipeline of the model \
                 `inorder` it would be judged",
                app.name
            )
        })
    })
}

/// Chunks of an application for which its tile may move blocks before they are paid for: all chunks that a command has outstanding, and one
/// where it only has messages.
pub(crate) fn local_chunks(chip: &Chip, app: &App) -> Result<u32, ChipError> {
    Ok(match app.mgates.is_empty() {
        true => 1,
        false => chip.dtu(app.tile)?.outstanding.max(1),
    })
}

/// Transactions of a job.
fn counts(profile: &Profile) -> Vec<(Kind, u64)> {
    let chunks = |bytes: u64| bytes.div_ceil(CHUNK_MAX as u64);
    let mut all = BTreeMap::from([
        (Kind::LineRead, profile.line_reads),
        (Kind::LineWrite, profile.line_writes),
        (Kind::DmaRead, chunks(profile.dma_read)),
        (Kind::DmaWrite, chunks(profile.dma_written)),
    ]);
    for &(to, _) in &profile.messages {
        *all.entry(Kind::Message(to)).or_default() += 1;
    }
    *all.entry(Kind::Call).or_default() += profile.calls;
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Blocks that a message and its header touch, at any address.
pub(super) fn blocks(payload: u64, block: u64) -> u64 {
    (payload + HEADER_SIZE as u64).div_ceil(block.max(1)) + 1
}
