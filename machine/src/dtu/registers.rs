//! The register pages, who may read and write them, and the privileged and external commands.
//!
//! Why it exists: this is all that a hostile hart can touch, so every rule about it is in this file.
//!
//! - A hart reads everything; reading changes nothing.
//! - A hart writes the unprivileged and the privileged page. Nothing there grants a right on other tiles: commands are
//!   checked against endpoints, which it cannot write; the TLB and the current activity only decide which of the tile's
//!   own rights are used; the bucket bits choose among the buckets that the kernel configured.
//! - The external page and the endpoints accept writes from the hart only if the unit is privileged. They also accept writes from the
//!   network: a register request exists only if the kernel gave the sender a memory endpoint onto this tile.
//! - The first two pages are closed to the network: no tile commands another tile's unit or watches its activities.

use super::Dtu;
use super::env::{Alarm, Env, Observation, RegisterFault, WriteEffect};
use crate::noc::packet::{Packet, PacketKind};
use crate::types::Tick;
use bulkhead_abi::dtu::*;
use bulkhead_abi::memory_map::{DTU_SIZE, PMP_WINDOWS};

const PHYSICAL_PAGE: u64 = 0x0000_FFFF_FFFF_F000;
const AWAITED_END: u64 = AWAITED + 8 * AWAITED_COUNT as u64;

/// An `AWAITED` register.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    register: Awaited,
    /// When its delay is over.
    from: Tick,
}

impl Wait {
    /// Whether a message for an endpoint of an activity may interrupt now, as far as the register is concerned.
    fn covers(self, now: Tick, activity: u16, endpoint: u16) -> bool {
        self.from <= now && self.register.is_for(activity, endpoint)
    }
}

impl Dtu {
    fn check_width(offset: u64, bytes: u8) -> Result<(), RegisterFault> {
        if bytes == 8 && offset.is_multiple_of(8) && offset < DTU_SIZE {
            Ok(())
        } else {
            Err(RegisterFault { offset, bytes })
        }
    }

    /// A load of the tile's hart at `offset` in the unit.
    ///
    /// # Errors
    /// If the access is not 8 bytes wide and aligned, or outside the unit.
    pub fn read_register<E: Env>(
        &mut self,
        env: &mut E,
        offset: u64,
        bytes: u8,
    ) -> Result<u64, RegisterFault> {
        Self::check_width(offset, bytes)?;
        self.hart_is_awake(env);
        Ok(self.register(env, offset))
    }

    /// A load of the tile's second hart. It works like one of the first hart, but implies nothing about the first hart's sleep.
    ///
    /// # Errors
    /// As for [`Dtu::read_register`].
    pub fn read_register_second<E: Env>(
        &mut self,
        env: &mut E,
        offset: u64,
        bytes: u8,
    ) -> Result<u64, RegisterFault> {
        Self::check_width(offset, bytes)?;
        Ok(self.register(env, offset))
    }

    /// A store of the tile's second hart. It commands nothing in the unprivileged page: the only command unit belongs to the first
    /// hart, and only that hart sleeps.
    ///
    /// # Errors
    /// As for [`Dtu::write_register`].
    pub fn write_register_second<E: Env>(
        &mut self,
        env: &mut E,
        offset: u64,
        bytes: u8,
        value: u64,
    ) -> Result<(), RegisterFault> {
        Self::check_width(offset, bytes)?;
        if offset >= PRIVILEGED_PAGE {
            self.write(env, offset, value);
        }
        Ok(())
    }

    /// A store of the tile's hart at `offset` in the unit.
    ///
    /// # Errors
    /// If the access is not 8 bytes wide and aligned, or outside the unit.
    pub fn write_register<E: Env>(
        &mut self,
        env: &mut E,
        offset: u64,
        bytes: u8,
        value: u64,
    ) -> Result<WriteEffect, RegisterFault> {
        Self::check_width(offset, bytes)?;
        self.hart_is_awake(env);
        if offset == COMMAND {
            return Ok(self.start_command(env, value));
        }
        self.write(env, offset, value);
        Ok(WriteEffect::None)
    }

    fn write<E: Env>(&mut self, env: &mut E, offset: u64, value: u64) {
        match offset {
            ADDRESS => self.address = value,
            SIZE => self.size = value,
            ARGUMENT => self.argument = value,
            PRIVILEGED_COMMAND => self.privileged_command(env, value),
            PRIVILEGED_ARGUMENT => self.privileged_argument = value,
            PRIVILEGED_ARGUMENT2 => self.privileged_argument2 = value,
            CORE_REQUEST => {
                let request = CoreRequest(std::mem::take(&mut self.core_request));
                let (activity, endpoint) = (request.activity(), request.endpoint());
                let mut awaited = self.awaited.iter_mut().flatten();
                if request.is_valid()
                    && let Some(spent) =
                        awaited.find(|wait| wait.covers(env.now(), activity, endpoint))
                {
                    *spent = Wait::default();
                }
                self.request_core(env);
            }
            AWAITED..AWAITED_END => {
                let register = Awaited(value);
                // At most some two seconds later.
                let from = env.now() + self.ticks(register.delay());
                let awaited = self.awaited.get_or_insert_default();
                awaited[(offset - AWAITED) as usize / 8] = Wait { register, from };
                self.await_delay(env);
                self.look_again(env);
            }
            TIMER_EXPIRED => {
                self.timer_expired = false;
                self.update_interrupt(env);
            }
            _ if self.is_privileged() => {
                self.external_write(env, offset, value);
            }
            _ => {}
        }
        self.pump(env);
    }

    /// A hart that accesses registers is not asleep: something other than the unit woke it.
    fn hart_is_awake<E: Env>(&mut self, env: &mut E) {
        self.end_sleep(env, DtuError::Woken);
    }

    /// The value of a register; 0 if there is none.
    fn register<E: Env>(&mut self, env: &mut E, offset: u64) -> u64 {
        let now = env.now();
        match offset {
            COMMAND => self.command_register(),
            ADDRESS => self.address,
            SIZE => self.size,
            ARGUMENT => self.argument,
            TIME => {
                let nanoseconds = u128::from(now) * 1_000_000_000;
                (nanoseconds / u128::from(self.ticks_per_second)) as u64
            }
            CURRENT_ACTIVITY => self.current_activity().0,
            PRIVILEGED_COMMAND => (self.privileged_error as u64) << 24,
            PRIVILEGED_ARGUMENT => self.privileged_argument,
            PRIVILEGED_ARGUMENT2 => self.privileged_argument2,
            CORE_REQUEST => self.core_request,
            AWAITED..AWAITED_END => {
                let awaited = self.awaited.as_ref();
                awaited.map_or(0, |awaited| {
                    awaited[(offset - AWAITED) as usize / 8].register.0
                })
            }
            TIMER_EXPIRED => self.timer_expired.into(),
            FEATURES => self.features,
            EXTERNAL_ARGUMENT => self.external_argument,
            BORROWED => self.borrowed.into(),
            UNDER_WAY => self.under_way().into(),
            WRITING_BACK => self.write_back.is_some().into(),
            DEVICE_ADDRESS..=DEVICE_OWNER => self.device[(offset - DEVICE_ADDRESS) as usize / 8],
            _ => {
                if let Some((bucket, field)) = self.bucket_register(offset) {
                    let bucket = &mut self.buckets[bucket];
                    match field {
                        BUCKET_RATE => bucket.rate(),
                        BUCKET_AMOUNT => bucket.amount(now).max(0) as u64,
                        _ => bucket.limit(),
                    }
                } else if let Some((endpoint, word)) = self.endpoint_register(offset) {
                    self.endpoints.word(endpoint, word)
                } else {
                    0
                }
            }
        }
    }

    /// Bucket and field of a bucket register, if it exists.
    fn bucket_register(&self, offset: u64) -> Option<(usize, u64)> {
        let relative = offset.checked_sub(BUCKETS)?;
        let (bucket, field) = (relative / BUCKET_STRIDE, relative % BUCKET_STRIDE);
        let known = matches!(field, BUCKET_RATE | BUCKET_AMOUNT | BUCKET_LIMIT);
        (known && bucket < self.buckets.len() as u64).then_some((bucket as usize, field))
    }

    /// Endpoint and word of an endpoint register, if it exists.
    fn endpoint_register(&self, offset: u64) -> Option<(u16, usize)> {
        let relative = offset.checked_sub(ENDPOINTS)?;
        let (endpoint, word) = (relative / ENDPOINT_STRIDE, relative % ENDPOINT_STRIDE / 8);
        (endpoint < u64::from(self.endpoints.len())).then_some((endpoint as u16, word as usize))
    }

    /// Whether the kernel may write here.
    fn is_external(&self, offset: u64) -> bool {
        let device = matches!(offset, DEVICE_ADDRESS..=DEVICE_OWNER);
        matches!(
            offset,
            FEATURES | EXTERNAL_COMMAND | EXTERNAL_ARGUMENT | BORROWED
        ) || device
            || self.bucket_register(offset).is_some()
            || self.endpoint_register(offset).is_some()
    }

    /// Writes a register of the external page or of the endpoints; others are ignored. Returns the lines to write back: the first
    /// address, and how many.
    fn external_write<E: Env>(
        &mut self,
        env: &mut E,
        offset: u64,
        value: u64,
    ) -> Option<(u64, u16)> {
        let now = env.now();
        match offset {
            FEATURES => self.features = value & FEATURE_PRIVILEGED,
            BORROWED => self.borrowed = value.min(u32::MAX.into()) as u32,
            EXTERNAL_ARGUMENT => self.external_argument = value,
            EXTERNAL_COMMAND => return self.external_command(env, value),
            DEVICE_ADDRESS..=DEVICE_OWNER => {
                self.device[(offset - DEVICE_ADDRESS) as usize / 8] = value;
                if offset == DEVICE_OWNER {
                    self.device_epoch = self.device_epoch.wrapping_add(1);
                }
            }
            _ => {
                if let Some((bucket, field)) = self.bucket_register(offset) {
                    let greatest = self.config.bucket_limit;
                    let register = &mut self.buckets[bucket];
                    match field {
                        BUCKET_RATE => register.set_rate(now, value),
                        BUCKET_AMOUNT => register.set_amount(now, value.min(greatest)),
                        _ => register.set_limit(now, value.min(greatest)),
                    }
                    self.note_regulation();
                    self.observe_bucket(env, bucket as u8);
                } else if let Some((endpoint, word)) = self.endpoint_register(offset) {
                    self.endpoints.set_word(endpoint, word, value);
                    self.endpoint_changed(env, endpoint);
                }
            }
        }
        None
    }

    fn endpoint_changed<E: Env>(&mut self, env: &mut E, endpoint: u16) {
        let now = env.now();
        let mut tell = |wait| env.observe(Observation::Unfetched(wait));
        self.requests.configured(now, endpoint, &mut tell);
        if u64::from(endpoint) < PMP_WINDOWS {
            self.epoch = self.epoch.wrapping_add(1);
        }
        if self.sleeping() == Some(endpoint) {
            self.end_sleep(env, DtuError::InvalidEndpoint);
        }
    }

    fn external_command<E: Env>(&mut self, env: &mut E, value: u64) -> Option<(u64, u16)> {
        let (endpoint, count) = ((value >> 8) as u16, (value >> 24) as u16);
        match ExternalOpcode::from_code(value as u8) {
            Some(ExternalOpcode::InvalidateEndpoint) => {
                let end = endpoint.saturating_add(count);
                for endpoint in endpoint..end.min(self.endpoints.len()) {
                    self.endpoints.invalidate(endpoint);
                    self.endpoint_changed(env, endpoint);
                }
            }
            Some(ExternalOpcode::StartHart) => {
                self.reset_tile_state(env);
                env.start_hart(self.external_argument);
                self.request_core(env);
            }
            Some(ExternalOpcode::StopHart) => {
                self.reset_tile_state(env);
                env.stop_hart();
            }
            Some(ExternalOpcode::WriteBack) => return Some((self.external_argument, count)),
            Some(ExternalOpcode::Idle) | None => {}
        }
        None
    }

    /// Removes everything of the previous software except what is already in transit.
    fn reset_tile_state<E: Env>(&mut self, env: &mut E) {
        self.abort_command(env);
        self.tlb.clear();
        (self.address, self.size, self.argument) = (0, 0, 0);
        (self.privileged_argument, self.privileged_argument2) = (0, 0);
        self.privileged_error = DtuError::None;
        self.set_activity(env, TILEMUX_ACTIVITY, 0);
        self.bucket_bits.clear();
        env.set_alarm(Alarm::Timer, Tick::MAX);
        self.timer_expired = false;
        self.core_request = 0;
        (self.awaited, self.urgency) = (None, 0);
        env.set_alarm(Alarm::Awaited, Tick::MAX);
        self.update_interrupt(env);
        self.split = false;
    }

    fn privileged_command<E: Env>(&mut self, env: &mut E, value: u64) {
        let (first, second) = (self.privileged_argument, self.privileged_argument2);
        let activity = (second >> 48) as u16;
        self.privileged_error = DtuError::None;
        match PrivilegedOpcode::from_code(value as u8) {
            Some(PrivilegedOpcode::Idle) => {}
            Some(PrivilegedOpcode::ExchangeActivity) => {
                let new = CurrentActivity(first);
                self.privileged_argument = self.current_activity().0;
                self.set_activity(env, new.activity(), new.bucket());
                self.urgency = new.urgency();
                if self.awaited.is_some() {
                    self.look_again(env);
                }
            }
            Some(PrivilegedOpcode::InsertTlb) => {
                let rights = first & (TLB_READ | TLB_WRITE);
                self.tlb
                    .insert(activity, first, second & PHYSICAL_PAGE, rights);
            }
            Some(PrivilegedOpcode::InvalidatePage) => self.tlb.invalidate(activity, first),
            Some(PrivilegedOpcode::InvalidateTlb) => self.tlb.clear(),
            Some(PrivilegedOpcode::SetTimer) => {
                let at = match first {
                    0 => Tick::MAX,
                    _ => env.now().saturating_add(self.ticks(first)),
                };
                env.set_alarm(Alarm::Timer, at);
            }
            Some(PrivilegedOpcode::AbortCommand) => self.abort_command(env),
            Some(PrivilegedOpcode::StartSecond) => {
                if env.start_second(first) {
                    // The new hart's line is low; the old hart's falls if only a core request held it.
                    self.split = true;
                    self.second_interrupt = false;
                    self.update_interrupt(env);
                }
            }
            None => self.privileged_error = DtuError::UnknownCommand,
        }
    }

    /// The current activity with its unread messages, counted now.
    fn current_activity(&self) -> CurrentActivity {
        let unread = self.endpoints.unread_of(self.activity);
        CurrentActivity::new(self.activity, unread, self.current_bucket)
    }

    fn set_activity<E: Env>(&mut self, env: &mut E, activity: u16, bucket: u8) {
        let from = std::mem::replace(&mut self.activity, activity);
        self.bucket_bits.insert(from, self.current_bucket);
        self.current_bucket = bucket;
        self.note_regulation();
        self.endpoints.silence(activity);
        if from != activity {
            env.observe(Observation::ActivityChanged { from, to: activity });
        }
    }

    /// The set of activities that may interrupt has changed: messages announced but not acknowledged count as not announced.
    fn look_again<E: Env>(&mut self, env: &mut E) {
        let request = CoreRequest(std::mem::take(&mut self.core_request));
        if request.is_valid() && request.activity() != self.activity {
            self.endpoints.announce(request.endpoint());
        }
        self.request_core(env);
    }

    /// Sets the alarm to the end of the next delay.
    pub(super) fn await_delay<E: Env>(&mut self, env: &mut E) {
        let now = env.now();
        let all = self.awaited.iter().flatten().map(|wait| wait.from);
        let next = all.filter(|from| *from > now).min();
        env.set_alarm(Alarm::Awaited, next.unwrap_or(Tick::MAX));
    }

    /// Announces the next message for an activity that is not running and may interrupt, unless an announcement is pending.
    pub(super) fn request_core<E: Env>(&mut self, env: &mut E) {
        let (awaited, urgency, now) = (&self.awaited, self.urgency, env.now());
        let may_interrupt = |activity, endpoint| {
            awaited.as_ref().is_none_or(|all| {
                let mut all = all.iter();
                all.any(|wait| {
                    wait.covers(now, activity, endpoint) && wait.register.urgency() >= urgency
                })
            })
        };
        if !CoreRequest(self.core_request).is_valid()
            && let Some((endpoint, activity)) =
                self.endpoints
                    .next_announcement(self.announced, self.activity, may_interrupt)
        {
            self.announced = endpoint.wrapping_add(1);
            self.core_request = CoreRequest::new(activity, endpoint).0;
        }
        self.update_interrupt(env);
    }

    pub(super) fn update_interrupt<E: Env>(&mut self, env: &mut E) {
        let request = CoreRequest(self.core_request).is_valid();
        let second = self.split && request;
        if second != self.second_interrupt {
            self.second_interrupt = second;
            env.interrupt_second(second);
        }
        let level = request && !self.split || self.timer_expired;
        if level == self.interrupt {
            return;
        }
        self.interrupt = level;
        env.interrupt(level);
        env.observe(Observation::Interrupt { level });
        if level && env.interrupt_pending() {
            self.end_sleep(env, DtuError::Woken);
        }
    }

    /// Another tile's request for this unit's registers.
    pub(super) fn register_request<E: Env>(&mut self, env: &mut E, packet: &Packet) {
        let whole = |address: u64, bytes: usize| {
            address.is_multiple_of(8)
                && bytes != 0
                && bytes.is_multiple_of(8)
                && bytes <= CHUNK_MAX
                && address
                    .checked_add(bytes as u64)
                    .is_some_and(|end| end <= DTU_SIZE)
        };
        let kind = match &packet.kind {
            &PacketKind::ReadRequest { address, bytes } => {
                let readable = whole(address, bytes as usize) && address >= EXTERNAL_PAGE;
                let data = readable.then(|| {
                    (address..address + u64::from(bytes))
                        .step_by(8)
                        .flat_map(|offset| self.register(env, offset).to_le_bytes())
                        .collect()
                });
                PacketKind::ReadResponse {
                    error: data.is_none(),
                    data,
                    bytes,
                }
            }
            PacketKind::WriteRequest { address, data, .. } => {
                let data = data.as_deref().unwrap_or_default();
                let address = *address;
                let allowed = whole(address, data.len())
                    && (address..address + data.len() as u64)
                        .step_by(8)
                        .all(|offset| self.is_external(offset) || self.is_gap(offset));
                let mut error = !allowed;
                if allowed {
                    for (offset, word) in (address..).step_by(8).zip(data.as_chunks().0) {
                        let word = u64::from_le_bytes(*word);
                        if let Some(lines) = self.external_write(env, offset, word) {
                            error |= !self.begin_write_back(env, packet.owner, lines);
                        }
                    }
                }
                PacketKind::WriteResponse { error }
            }
            _ => return,
        };
        env.send(packet.response(kind));
    }

    /// The unused word of a bucket. A write to all buckets in one packet skips it.
    fn is_gap(&self, offset: u64) -> bool {
        (BUCKETS..BUCKETS + self.buckets.len() as u64 * BUCKET_STRIDE).contains(&offset)
    }
}
