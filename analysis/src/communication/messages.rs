//! Messages of a described system: what a message takes, what others meet of it, and what it costs at both ends.
//!
//! Why it exists: a message passes caches twice, once at each end, through a port that it shares with whatever else the unit does there.
//! It deliberately knows nothing of how waits are bounded, nor of memory accesses beyond how long a miss takes.

use super::bound::{Bound, Stage, Work, transaction_bound};
use super::chip::Chip;
use super::scenario::{Source, Step, Ticks, TransactionId};
use super::system::{Kind, SystemBounds, SystemError, blocks};
use bulkhead_abi::dtu::CHUNK_MAX;
use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_abi::syscall::SYSCALL_SLOT;
use bulkhead_model::platform::Cache;

impl SystemBounds<'_> {
    /// The bound of a message, from when its tokens are there to the acknowledgement: with the reads of its local memory before, and
    /// with the receiver's caches missing every block. At each end the port to the caches may first serve the other part of
    /// the unit: at the sender a message that arrives, before each packet; at the receiver the chunks of its command.
    ///
    /// # Errors
    /// [`SystemError`] if there is no gate between the applications.
    pub fn message(&self, from: usize, to: usize, payload: u64) -> Result<Bound, SystemError> {
        let received = self.received(self.tile_of(to)?, payload)?;
        let reads = (self.id(to, Kind::LineRead)?, received);
        self.sent(from, Kind::Message(to), payload, vec![reads], 0)
    }

    /// The bound of a message of one packet to the kernel, as [`SystemBounds::message`] bounds one to an application. What the
    /// kernel does then is not in it.
    ///
    /// # Errors
    /// [`SystemError`] if there is no such application.
    pub fn call(&self, from: usize) -> Result<Bound, SystemError> {
        let payload = u64::from(SYSCALL_SLOT) - HEADER_SIZE as u64;
        // The kernel's tile is no source of its own: its misses wait, and nothing else.
        let received = self.received(self.system.kernel_tile, payload)?;
        let compute = received.saturating_mul(self.kernel_line);
        self.sent(from, Kind::Call, payload, Vec::new(), compute)
    }

    /// The maximum that the kernel's tile and the way back add to a call, beyond the caller's own work: the kernel's unit misses in its
    /// caches for the call and for the answer, and the answer waits on its way and where it is stored.
    ///
    /// # Errors
    /// [`SystemError`] if there is no such application.
    pub fn answer(&self, to: usize) -> Result<Ticks, SystemError> {
        let chip = Chip::new(&self.system.platform);
        let (own, kernel) = (self.tile_of(to)?, self.system.kernel_tile);
        let payload = u64::from(SYSCALL_SLOT) - HEADER_SIZE as u64;
        let misses = self.received(kernel, payload)?
            + self.rounds(kernel, self.largest(kernel))?
            + self.rounds(kernel, SYSCALL_SLOT.into())?;
        let mut scenario = self.scenario.clone();
        scenario.sources.push(Source {
            name: "kernel".to_owned(),
            tile: kernel,
            regulator: None,
            classes: vec![chip.message(kernel, own, payload, self.store(&chip, own, payload)?)?],
        });
        let id = TransactionId {
            source: scenario.sources.len() - 1,
            class: 0,
        };
        let way = transaction_bound(&scenario, id)?.path;
        let stored = self.received(own, payload)?;
        let stored = stored.saturating_mul(self.transaction(to, Kind::LineRead)?.path);
        let misses = misses.saturating_mul(self.kernel_line);
        Ok(way.saturating_add(stored).saturating_add(misses))
    }

    /// A message and what it needs besides.
    fn sent(
        &self,
        from: usize,
        kind: Kind,
        payload: u64,
        mut transactions: Vec<(TransactionId, u64)>,
        compute: Ticks,
    ) -> Result<Bound, SystemError> {
        let message = self.id(from, kind)?;
        let tile = self.tile_of(from)?;
        // Each packet's blocks, behind those of a message that arrives.
        let largest = self.rounds(tile, self.largest(tile))?;
        let mut left = payload + HEADER_SIZE as u64;
        let mut reads = 0;
        while left > 0 {
            let packet = left.min(CHUNK_MAX as u64);
            reads += largest + self.rounds(tile, packet)?;
            left -= packet;
        }
        transactions.push((self.id(from, Kind::LineRead)?, reads));
        transactions.push((message, 1));
        let work = Work {
            stages: vec![Stage {
                name: String::new(),
                compute,
                transactions,
                measured: false,
            }],
            covers_sources: false,
        };
        let mut bound = self.bound(&work)?.bound;
        // Only its packets ask for tokens; what local memory costs is taken on credit.
        bound.own_bucket = self.bound(&Work::of(message, 1))?.bound.own_bucket;
        Ok(bound)
    }

    /// Bytes of the largest message that may arrive at a tile or leave it, replies, calls and answers of the kernel included.
    fn largest(&self, tile: u16) -> u64 {
        let slots = self.system.apps.iter().flat_map(|sender| {
            sender.sgates.iter().filter_map(move |gate| {
                let receiver = self.system.apps.get(gate.to)?;
                let slot = receiver.rgates.get(gate.gate)?.slot_size;
                let here = [sender.tile, receiver.tile].contains(&tile);
                here.then_some(u64::from(slot))
            })
        });
        slots.fold(SYSCALL_SLOT.into(), u64::max)
    }

    /// Sequential misses for a message of `payload` bytes at its receiver, where the port to the caches may first serve the chunks of a
    /// command.
    fn received(&self, tile: u16, payload: u64) -> Result<u64, SystemError> {
        let chip = Chip::new(&self.system.platform);
        let chunks = u64::from(chip.dtu(tile)?.outstanding.max(1));
        let chunk = CHUNK_MAX as u64;
        let mut here = self.system.apps.iter().filter(|app| app.tile == tile);
        let transfers = tile == self.system.kernel_tile || here.any(|app| !app.mgates.is_empty());
        // Without memory gates a command is a message.
        let (chunks, chunk) = match self.largest(tile) {
            largest if !transfers => (chunks.min(largest.div_ceil(chunk)), chunk.min(largest)),
            _ => (chunks, chunk),
        };
        let before = chunks.saturating_mul(self.rounds(tile, chunk)?);
        Ok(before + self.rounds(tile, payload + HEADER_SIZE as u64)?)
    }

    /// Sequential misses until the unit of a tile has `bytes` of local memory, wherever they lie. Through the first level its miss
    /// registers are also the hart's, so that a block may have to wait for a miss of the hart.
    fn rounds(&self, tile: u16, bytes: u64) -> Result<u64, SystemError> {
        let chip = Chip::new(&self.system.platform);
        let dtu = chip.dtu(tile)?;
        let waits = 1 + u64::from(dtu.first_level && chip.tile(tile)?.l2.is_some());
        let blocks = bytes.div_ceil(u64::from(dtu.block).max(1)) + 1;
        Ok(waits * blocks.div_ceil(u64::from(dtu.parallel).max(1)))
    }

    /// Messages along gates, replies against them, system calls. They come last because storing a message may miss in the
    /// receiver's caches, and that costs what the lines of the receiver cost.
    pub(super) fn add_messages(&mut self, chip: &Chip) -> Result<(), SystemError> {
        let mut ways: Vec<(usize, Option<usize>, u16, u64)> = Vec::new();
        for (from, app) in self.system.apps.iter().enumerate() {
            for gate in &app.sgates {
                let receiver = self
                    .system
                    .apps
                    .get(gate.to)
                    .ok_or(SystemError::NoApp(gate.to))?;
                let slot = receiver
                    .rgates
                    .get(gate.gate)
                    .map_or(0, |g| u64::from(g.slot_size));
                ways.push((from, Some(gate.to), receiver.tile, slot));
                ways.push((gate.to, Some(from), app.tile, slot));
            }
            ways.push((from, None, self.system.kernel_tile, SYSCALL_SLOT.into()));
        }
        let mut classes = Vec::new();
        for (from, to, tile, slot) in ways {
            let payload = slot.saturating_sub(HEADER_SIZE as u64).max(1);
            let own = self.system.apps[from].tile;
            let (hit, missing) = self.store(chip, tile, payload)?;
            let message = chip.message(own, tile, payload, (hit, missing))?;
            let wire = payload + HEADER_SIZE as u64;
            let most = wire.min(CHUNK_MAX as u64);
            let mut packets = Vec::new();
            for size in chip.sizes(own, most)? {
                // All packets of a message but the last are full.
                let slots = match size.1 == most {
                    true => wire.div_ceil(CHUNK_MAX as u64),
                    false => 1,
                };
                let payload = size.1.saturating_sub(HEADER_SIZE as u64).max(1);
                let (_, missing) = self.store(chip, tile, payload)?;
                let count = u32::try_from(slots).unwrap_or(u32::MAX);
                let mut class = chip.packets(own, tile, size, missing, count)?;
                if let Some(to) = to
                    && self.system.apps[to].limit.is_some()
                {
                    // What storing it moves at its receiver is not paid by the receiver's bucket.
                    class.steps.extend(self.stored(chip, to, payload)?);
                }
                let demanded = if size.1 == most { slots } else { 0 };
                packets.push((class, demanded));
                if self.shares(own) && demanded > 1 {
                    // The packets of a message that left before TileMux aborted it at a switch continue, and the next command may begin.
                    let mut left = chip.packets(own, tile, size, 0, count - 1)?;
                    left.pool = None;
                    left.name.push_str(" that was aborted");
                    packets.push((left, slots - 1));
                }
            }
            classes.push((from, to, message, packets));
        }
        for (from, to, message, packets) in classes {
            let list = &mut self.scenario.sources[from].classes;
            let kind = to.map_or(Kind::Call, Kind::Message);
            // If several gates lead to one application, the one with the largest slots counts.
            let known = self.kinds[from].entry(kind).or_insert(list.len());
            let longer = list
                .get(*known)
                .is_some_and(|old| old.uncontended() < message.uncontended());
            if longer {
                *known = list.len();
            }
            list.push(message);
            for (class, count) in packets {
                self.parts[from].insert(list.len(), (kind, count));
                list.push(class);
            }
        }
        for app in 0..self.system.apps.len() {
            self.apply_demand(app);
        }
        Ok(())
    }

    /// The work that others wait for because a message is stored at an application: all of its blocks are read and push out two others
    /// each. Its own time for that is [`Self::store`].
    fn stored(&self, chip: &Chip, to: usize, payload: u64) -> Result<Vec<Step>, SystemError> {
        let app = &self.system.apps[to];
        let block = u64::from(chip.dtu(app.tile)?.block);
        let count = blocks(payload, block);
        let read = chip.line_read(app.tile, app.memory_tile)?;
        let write = chip.line_write(app.tile, app.memory_tile)?;
        let mut steps = Vec::new();
        for (class, count) in [(read, count), (write, 2 * count)] {
            let contended = class.steps.into_iter().filter(|s| s.resource.is_some());
            steps.extend(contended.map(|step| Step {
                occupancy: step.occupancy.saturating_mul(count),
                latency: 0,
                elsewhere: true,
                ..step
            }));
        }
        Ok(steps)
    }

    /// Ticks to store a message of one packet at `tile`: with every block in the caches, and with every block missing.
    fn store(&self, chip: &Chip, tile: u16, payload: u64) -> Result<(Ticks, Ticks), SystemError> {
        let dtu = chip.dtu(tile)?;
        let latency = |cache: &Option<Cache>| cache.as_ref().map(|c| u64::from(c.latency));
        let part = chip.tile(tile)?;
        let (first, second) = (latency(&part.l1d), latency(&part.l2));
        // Through the first level: its lookup comes before that of the second.
        let hit = match second {
            Some(second) if dtu.first_level => first.unwrap_or(0) + second,
            Some(second) => second,
            None => 1,
        };
        let cycle = chip.cycle(chip.tile(tile)?.pipeline.clock.frequency.0);
        let rounds = blocks(payload, u64::from(dtu.block)).div_ceil(u64::from(dtu.parallel).max(1));
        let waits = self.received(tile, payload)?;
        let miss = match self.system.apps.iter().position(|a| a.tile == tile) {
            Some(app) => self.transaction(app, Kind::LineRead)?.path,
            None if tile == self.system.kernel_tile => self.kernel_line,
            None => 0,
        };
        let hits = rounds.saturating_mul((hit + 1) * cycle);
        let misses = waits.saturating_mul(miss);
        Ok((hits, hits.saturating_add(misses)))
    }
}
