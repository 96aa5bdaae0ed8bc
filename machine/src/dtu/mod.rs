//! The data transfer unit: messages, memory transfers, protection windows and token buckets of one tile.
//!
//! Why it exists: the unit is the only way out of a tile, so it is where isolation and regulation are enforced. Everything that software
//! sees follows `abi::dtu`. The unit knows nothing of caches, network queues or the hart: it is driven by events and asks its tile for
//! everything else through [`Env`].

mod bucket;
mod command;
mod device;
mod endpoints;
mod env;
mod local;
mod prepare;
mod receive;
mod registers;
#[cfg(test)]
mod tests;
mod tlb;
mod transfer;
mod unfetched;
mod write_back;

pub use bucket::{Bucket, Waiter};
pub use device::DeviceGrant;
pub use endpoints::Way;
pub use env::*;

use crate::config::DtuConfig;
use crate::ledger::Unfetched;
use crate::local_token::LocalToken;
use crate::noc::packet::{Packet, PacketKind};
use crate::types::{Owner, Tick, TileId};
use bulkhead_abi::dtu::{
    AWAITED_COUNT, CurrentActivity, DtuError, Endpoint, FEATURE_PRIVILEGED, TILEMUX_ACTIVITY,
    TLB_READ, TLB_WRITE,
};
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};
use command::Running;
use endpoints::EndpointFile;
use local::{Finished, JobId, LocalPort};
use receive::ReceiveUnit;
use std::collections::BTreeMap;
use std::sync::Arc;
use tlb::Tlb;
use unfetched::Requests;
use write_back::WriteBack;

/// [`Dtu::rights`] of a unit that leads anywhere: endpoints never change so often.
pub const ANY: u64 = u64::MAX;

/// The unit of one tile.
#[derive(Clone, Debug)]
pub struct Dtu {
    config: DtuConfig,
    tile: TileId,
    ticks_per_second: u64,
    kinds: Arc<[TileKind]>,

    endpoints: EndpointFile,
    buckets: Vec<Bucket>,
    /// For each bucket, bytes whose tokens the hart has taken and that have not left yet.
    paid: Vec<u64>,
    /// Bucket bits of activities that have been current.
    bucket_bits: BTreeMap<u16, u8>,
    /// The bucket of the current activity regulates.
    regulates: bool,
    /// Bytes that machine mode may borrow.
    borrowed: u32,
    tlb: Tlb,
    local: LocalPort,
    receive: ReceiveUnit,
    requests: Requests,
    /// The activity on whose behalf the kernel sends its next request.
    asks_for: Option<Owner>,
    /// The activity on whose behalf TileMux received its last request.
    asked_by: Option<Owner>,
    write_back: Option<WriteBack>,

    /// The value of the command register as read.
    command: u64,
    address: u64,
    size: u64,
    argument: u64,
    running: Option<Running>,
    /// Number of the last command.
    serial: u32,

    activity: u16,
    urgency: u8,
    current_bucket: u8,
    privileged_argument: u64,
    privileged_argument2: u64,
    privileged_error: DtuError,
    core_request: u64,
    /// Where the search for the next core request begins.
    announced: u16,
    /// The messages that may interrupt; `None`: all.
    awaited: Option<[registers::Wait; AWAITED_COUNT]>,
    timer_expired: bool,
    interrupt: bool,
    /// The second hart has been started and receives the core requests.
    split: bool,
    /// The second hart's interrupt line.
    second_interrupt: bool,

    features: u64,
    external_argument: u64,
    /// Counts changes of the protection windows.
    epoch: u32,
    /// The registers of the tile's device from [`bulkhead_abi::dtu::DEVICE_ADDRESS`] on.
    device: [u64; 4],
    /// Counts how often the device has been given to an activity.
    device_epoch: u32,
}

impl Dtu {
    /// A unit after reset: no endpoints, no features except possibly the privilege, no regulation, and [`TILEMUX_ACTIVITY`] current.
    /// `kinds` gives the kind of every tile number.
    pub fn new(
        config: &DtuConfig,
        tile: TileId,
        ticks_per_second: u64,
        kinds: Arc<[TileKind]>,
        privileged: bool,
    ) -> Self {
        let bucket = Bucket::new(config.refill * config.cycle, ticks_per_second);
        Self {
            tile,
            ticks_per_second: ticks_per_second.max(1),
            kinds,
            endpoints: EndpointFile::new(config.endpoints),
            buckets: vec![bucket; config.buckets.into()],
            paid: vec![0; config.buckets.into()],
            bucket_bits: BTreeMap::new(),
            regulates: false,
            borrowed: 0,
            tlb: Tlb::new(config.tlb_entries),
            local: LocalPort::new(config.block, config.parallel),
            receive: ReceiveUnit::default(),
            requests: Requests::new(tile),
            asks_for: None,
            asked_by: None,
            write_back: None,
            command: 0,
            address: 0,
            size: 0,
            argument: 0,
            running: None,
            serial: 0,
            activity: TILEMUX_ACTIVITY,
            urgency: 0,
            current_bucket: 0,
            privileged_argument: 0,
            privileged_argument2: 0,
            privileged_error: DtuError::None,
            core_request: 0,
            announced: 0,
            awaited: None,
            timer_expired: false,
            interrupt: false,
            split: false,
            second_interrupt: false,
            features: if privileged { FEATURE_PRIVILEGED } else { 0 },
            external_argument: 0,
            epoch: 0,
            device: [0; 4],
            device_epoch: 0,
            config: config.clone(),
        }
    }

    /// Configures an endpoint as the chip's boot ROM does, without timing. Numbers outside the file are ignored.
    pub fn set_endpoint(&mut self, index: u16, endpoint: Endpoint) {
        self.endpoints.set(index, endpoint);
        self.requests.drop_all(index);
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Reports which requests have waited here up to now.
    pub fn settle_requests(&mut self, now: Tick, tell: &mut dyn FnMut(Unfetched)) {
        self.requests.settle(now, tell);
    }

    /// Ticks for which requests have waited here until now. [`Self::settle_requests`] was called for the same moment.
    pub fn requests_waited(&self, now: Tick) -> Tick {
        self.requests.waited(now)
    }

    /// Restarts the waits of requests at this moment, up to which they have been reported.
    pub fn forget_requests(&mut self, now: Tick) {
        self.requests.forget(now);
    }

    /// The kernel says on whose behalf it sends its next request. No other software may name activities of other tiles, so this has no
    /// effect unless the unit is privileged.
    pub fn asks_for(&mut self, asker: Option<Owner>) {
        if self.is_privileged() {
            self.asks_for = asker;
        }
    }

    /// The activity on whose behalf the kernel sent the last request to this tile's TileMux, if known. Answers once per request.
    pub fn take_asker(&mut self) -> Option<Owner> {
        self.asked_by.take()
    }

    /// An endpoint as it is now; invalid outside the file.
    pub fn endpoint(&self, index: u16) -> Endpoint {
        self.endpoints.get(index)
    }

    /// Number of endpoints.
    pub fn endpoint_count(&self) -> u16 {
        self.endpoints.len()
    }

    /// Configures a token bucket as the chip's boot ROM does. Numbers that do not exist are ignored.
    pub fn set_bucket(&mut self, now: Tick, index: u8, rate: u64, amount: u64, limit: u64) {
        let greatest = self.config.bucket_limit;
        if let Some(bucket) = self.buckets.get_mut(usize::from(index)) {
            bucket.set_rate(now, rate);
            bucket.set_amount(now, amount.min(greatest));
            bucket.set_limit(now, limit.min(greatest));
        }
        self.note_regulation();
    }

    /// An event that the unit asked for has occurred.
    pub fn event<E: Env>(&mut self, env: &mut E, event: DtuEvent) {
        match event {
            DtuEvent::Command(serial) => self.command_started(env, serial),
            DtuEvent::Local(token) => {
                if !self.line_written(env, token) {
                    let done = self.local.block_done(token);
                    return self.after_block(env, done);
                }
            }
            DtuEvent::Receive => self.place_message(env),
            DtuEvent::Due(Alarm::Release) => self.released(env),
            DtuEvent::Due(Alarm::Timer) => {
                self.timer_expired = true;
                self.update_interrupt(env);
            }
            DtuEvent::Due(Alarm::Awaited) => {
                self.await_delay(env);
                self.request_core(env);
            }
            DtuEvent::Due(Alarm::Sleep) => self.end_sleep(env, DtuError::Woken),
        }
        self.pump(env);
    }

    /// A packet for the unit arrived. Cache traffic does not come here.
    pub fn packet<E: Env>(&mut self, env: &mut E, packet: Packet) {
        match packet.kind {
            PacketKind::Message { .. } => self.message_packet(env, packet),
            PacketKind::ReadRequest { .. } | PacketKind::WriteRequest { .. } => {
                self.register_request(env, &packet);
            }
            PacketKind::ReadResponse { .. }
            | PacketKind::WriteResponse { .. }
            | PacketKind::MessageResponse { .. } => self.response(env, packet.tag, packet.kind),
            PacketKind::Remote { .. }
            | PacketKind::AtomicWrite { .. }
            | PacketKind::Interrupt { .. }
            | PacketKind::Coherent { .. }
            | PacketKind::Grant { .. }
            | PacketKind::Managed
            | PacketKind::Wanted { .. }
            | PacketKind::Surrendered { .. }
            | PacketKind::Stored
            | PacketKind::RemoteAnswer { .. } => {
                panic!(
                    "a tile with a unit has no local memory and no interrupt controller, and got {packet:?}"
                )
            }
        }
        self.pump(env);
    }

    /// An interrupt woke the hart: a running sleep command ends.
    pub fn interrupted<E: Env>(&mut self, env: &mut E) {
        self.end_sleep(env, DtuError::Woken);
        self.pump(env);
    }

    /// A pending local access is done, with the bytes of a read; none if it was refused when its line arrived.
    pub fn local_done<E: Env>(&mut self, env: &mut E, token: LocalToken, bytes: Option<&[u8]>) {
        if self.line_written(env, token) {
            return self.pump(env);
        }
        let done = self.local.arrived(token, bytes);
        self.after_block(env, done);
    }

    fn after_block<E: Env>(&mut self, env: &mut E, done: Option<Finished>) {
        if let Some(job) = done {
            self.job_done(env, job);
        }
        self.pump(env);
    }

    /// Starts as many local accesses as possible.
    fn pump<E: Env>(&mut self, env: &mut E) {
        self.look_at_storing(env);
        while let Some(job) = self.local.pump(env) {
            self.job_done(env, job);
        }
    }

    fn job_done<E: Env>(&mut self, env: &mut E, job: Finished) {
        match job.id {
            JobId::Chunk { command, index } => self.chunk_done(env, (command, index), job),
            JobId::Receive => self.message_stored(env, job.refused),
        }
    }

    /// Translates a tile-physical address to the tile behind the protection window and the address there. That tile is always a memory
    /// tile.
    ///
    /// # Errors
    /// If no window covers the address, or its rights do not allow the access.
    pub fn translate_window(
        &self,
        physical: u64,
        write: bool,
    ) -> Result<(TileId, u64), ProtectionFault> {
        let fault = ProtectionFault { physical, write };
        let relative = physical.checked_sub(MEMORY_BASE).ok_or(fault)?;
        let (window, offset) = (relative / PMP_WINDOW_SIZE, relative % PMP_WINDOW_SIZE);
        if window >= PMP_WINDOWS {
            return Err(fault);
        }
        let Endpoint::Memory(memory) = self.endpoints.get(window as u16) else {
            return Err(fault);
        };
        let needed = if write { TLB_WRITE } else { TLB_READ };
        let address = memory.base.checked_add(offset);
        match address {
            Some(address)
                if offset < memory.size
                    && u64::from(memory.rights) & needed != 0
                    && self.kind(memory.target_tile) == TileKind::Memory =>
            {
                Ok((memory.target_tile, address))
            }
            _ => Err(fault),
        }
    }

    /// Whether the whole range is in one window that allows the access.
    fn check_local(&self, physical: u64, bytes: u64, write: bool) -> Result<(), ProtectionFault> {
        let fault = ProtectionFault { physical, write };
        let last = physical.checked_add(bytes.max(1) - 1).ok_or(fault)?;
        let (first_tile, first) = self.translate_window(physical, write)?;
        let (last_tile, end) = self.translate_window(last, write)?;
        // Windows could be configured so that the ends fit but the middle does not.
        let same =
            (physical - MEMORY_BASE) / PMP_WINDOW_SIZE == (last - MEMORY_BASE) / PMP_WINDOW_SIZE;
        if same && first_tile == last_tile && end.checked_sub(first) == Some(last - physical) {
            Ok(())
        } else {
            Err(fault)
        }
    }

    /// Changes whenever [`Self::leads_to`] changes. A privileged unit leads anywhere, whatever its own software writes to its endpoints.
    pub fn rights(&self) -> u64 {
        match self.is_privileged() {
            true => ANY,
            false => self.endpoints.led_elsewhere(),
        }
    }

    /// The ways that the unit can send something of its own accord, one for each endpoint that leads to a tile. `None`: to any, because its own software
    /// may write the endpoints.
    pub fn leads_to(&self) -> Option<impl Iterator<Item = Way>> {
        (!self.is_privileged()).then(|| self.endpoints.targets())
    }

    /// Its own software may write its endpoints.
    fn is_privileged(&self) -> bool {
        self.features & FEATURE_PRIVILEGED != 0
    }

    fn kind(&self, tile: TileId) -> TileKind {
        self.kinds
            .get(usize::from(tile))
            .copied()
            .unwrap_or_default()
    }

    /// Changes whenever the windows change: everything derived from them must then be dropped.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether an access of the hart can be held back, because the bucket of the current activity regulates.
    #[inline]
    pub fn regulates(&self) -> bool {
        self.regulates
    }

    /// Must be called after a change of a bucket or of the current activity.
    fn note_regulation(&mut self) {
        let current = self.bucket_index(self.current_bucket);
        self.regulates = current.is_some_and(|index| self.buckets[index].regulates());
    }

    /// The hart asks for the tokens of an access of the current activity that will send `bytes` bytes out of the tile. The tokens are
    /// taken now, so the next `bytes` that leave are already paid for ([`Dtu::pay`]).
    ///
    /// # Errors
    /// When to ask again; until then the access waits in line, unless it is [withdrawn](Dtu::withdraw).
    pub fn ask(&mut self, now: Tick, bytes: u32) -> Result<(), Tick> {
        let Some(index) = self.bucket_index(self.current_bucket) else {
            return Ok(());
        };
        self.buckets[index].ask(now, Waiter::Hart, bytes)?;
        if self.buckets[index].regulates() {
            self.paid[index] += u64::from(bytes);
        }
        Ok(())
    }

    /// The hart no longer waits.
    pub fn withdraw(&mut self) {
        if let Some(index) = self.bucket_index(self.current_bucket) {
            self.buckets[index].withdraw(Waiter::Hart);
        }
    }

    /// Sets how many bytes machine mode may borrow, as the chip's boot ROM does.
    pub fn set_borrowed(&mut self, bytes: u32) {
        self.borrowed = bytes;
    }

    /// Whether the current activity owes its bucket nothing or, in machine mode, no more than machine mode may borrow. If so, takes tokens
    /// for `bytes` that will leave the tile, as [`Dtu::ask`] does, even if they are not available.
    ///
    /// # Errors
    /// When to ask again.
    pub fn solvent(&mut self, now: Tick, machine: bool, bytes: u32) -> Result<(), Tick> {
        let Some(index) = self.bucket_index(self.current_bucket) else {
            return Ok(());
        };
        let credit = if machine { self.borrowed } else { 0 };
        let bucket = &mut self.buckets[index];
        bucket.solvent(now, credit)?;
        if bucket.regulates() {
            bucket.take(now, bytes);
            self.paid[index] += u64::from(bytes);
        }
        Ok(())
    }

    /// A cache line leaves the tile on behalf of `owner`, paid for earlier or on credit. Work that another tile causes here (a message
    /// being stored) was paid for there.
    pub fn pay(&mut self, now: Tick, owner: Owner, bytes: u32) {
        let Some(index) = self.bucket_of(owner) else {
            return;
        };
        let before = self.paid[index].min(bytes.into());
        self.paid[index] -= before;
        self.buckets[index].take(now, bytes - before as u32);
    }

    /// Bytes in the token bucket of an owner, if it regulates. For traces.
    pub fn bucket_level(&mut self, now: Tick, owner: Owner) -> Option<(u8, i64)> {
        let index = self.bucket_of(owner)?;
        let bucket = &mut self.buckets[index];
        bucket
            .regulates()
            .then(|| (index as u8, bucket.amount(now)))
    }

    /// The bucket that an activity of this tile had when it was last current.
    fn bucket_of(&self, owner: Owner) -> Option<usize> {
        if owner.tile != self.tile {
            return None;
        }
        let bits = if owner.activity == self.activity {
            self.current_bucket
        } else {
            *self.bucket_bits.get(&owner.activity)?
        };
        self.bucket_index(bits)
    }

    /// The bucket that these bits select. On a unit with fewer buckets they wrap around, so no choice of bits escapes regulation.
    fn bucket_index(&self, bits: u8) -> Option<usize> {
        usize::from(bits).checked_rem(self.buckets.len())
    }

    /// A chunk of a command asks for its tokens.
    fn ask_chunk<E: Env>(&mut self, env: &mut E, bits: u8, bytes: u32) -> Result<(), Tick> {
        let now = env.now();
        let Some(index) = self.bucket_index(bits) else {
            return Ok(());
        };
        let outcome = self.buckets[index].ask(now, Waiter::Unit, bytes);
        self.observe_bucket(env, index as u8);
        outcome
    }

    /// A chunk no longer waits.
    fn withdraw_chunk(&mut self, bits: u8) {
        if let Some(index) = self.bucket_index(bits) {
            self.buckets[index].withdraw(Waiter::Unit);
        }
    }

    fn observe_bucket<E: Env>(&mut self, env: &mut E, index: u8) {
        let now = env.now();
        let bucket = &mut self.buckets[usize::from(index)];
        if bucket.regulates() {
            let bytes = bucket.amount(now);
            env.observe(Observation::BucketLevel {
                bucket: index,
                bytes,
            });
        }
    }

    /// Converts nanoseconds to ticks, rounded up.
    fn ticks(&self, nanoseconds: u64) -> Tick {
        let ticks = u128::from(nanoseconds) * u128::from(self.ticks_per_second);
        u64::try_from(ticks.div_ceil(1_000_000_000)).unwrap_or(Tick::MAX)
    }

    /// The tile and its current activity.
    pub fn current_owner(&self) -> Owner {
        Owner::new(self.tile, self.activity)
    }

    /// The register of the current activity as TileMux reads it, without the message count.
    pub fn current(&self) -> CurrentActivity {
        CurrentActivity::new(self.activity, 0, self.current_bucket)
    }

    /// Whether a sleep command runs.
    pub fn is_sleeping(&self) -> bool {
        self.sleeping().is_some()
    }
}
