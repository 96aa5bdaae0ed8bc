//! Commands of the unprivileged page: checks, chunks, token buckets, responses.
//!
//! Why it exists: one state machine moves all data that leaves a tile by command, so every chunk passes the same checks. A command
//! belongs to the activity that started it and keeps the rights and the bucket that the activity had at that moment. A command that
//! fails has no effect, except that a refused memory transfer may have moved some of its chunks.

use super::Dtu;
use super::env::{Alarm, DtuEvent, DtuResource, Env, Observation, WriteEffect};
use super::local::{Finished, JobId, Moves};
use super::transfer::{CHUNK_BITS, Chunk, Origin, Stage, Target, Transfer, flow};
use crate::noc::packet::{Packet, PacketKind, Transaction};
use crate::types::{Owner, Tick, align};
use bulkhead_abi::dtu::{
    Command, DtuError, NO_ENDPOINT, NO_MESSAGE, NO_TIMEOUT, Opcode, TILEMUX_ACTIVITY,
};
use bulkhead_abi::message::{FLAG_REPLY, HEADER_SIZE};

#[derive(Clone, Debug)]
enum Phase {
    /// Waits for the start-up latency.
    Start,
    Transfer(Box<Transfer>),
    /// The hart sleeps until there is a message for this endpoint, or for any endpoint.
    Sleep(u16),
}

/// The command that runs.
#[derive(Clone, Debug)]
pub(super) struct Running {
    serial: u32,
    pub(super) opcode: Opcode,
    pub(super) command: Command,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) argument: u64,
    pub(super) owner: Owner,
    bucket: u8,
    phase: Phase,
}

impl Running {
    fn transfer(&mut self) -> Option<&mut Transfer> {
        match &mut self.phase {
            Phase::Transfer(transfer) => Some(transfer),
            _ => None,
        }
    }
}

impl Dtu {
    /// A write to the command register.
    pub(super) fn start_command<E: Env>(&mut self, env: &mut E, value: u64) -> WriteEffect {
        if self.running.is_some() {
            // The running command continues; when it ends, it overwrites this error.
            self.command = with_error(self.command, DtuError::Busy);
            return WriteEffect::None;
        }
        self.command = value;
        let command = Command(value);
        let Some(opcode) = Opcode::from_code(command.opcode()) else {
            self.command = with_error(value & !0xFF, DtuError::UnknownCommand);
            return WriteEffect::None;
        };
        if opcode == Opcode::Idle {
            // TileMux restores an outcome that an activity has not read yet.
            return WriteEffect::None;
        }
        self.command = with_error(value, DtuError::None);
        self.serial = self.serial.wrapping_add(1) & (u32::MAX >> CHUNK_BITS);
        let owner = self.current_owner();
        self.running = Some(Running {
            serial: self.serial,
            opcode,
            command,
            address: self.address,
            size: self.size,
            argument: self.argument,
            owner,
            bucket: self.current_bucket,
            phase: Phase::Start,
        });
        env.observe(Observation::CommandBegin {
            opcode,
            endpoint: command.endpoint(),
            owner,
        });
        if opcode == Opcode::Sleep {
            return self.begin_sleep(env);
        }
        let looks_up = !matches!(opcode, Opcode::Fetch | Opcode::Acknowledge)
            && owner.activity != TILEMUX_ACTIVITY;
        let cycles = match opcode {
            Opcode::Send => self.config.send,
            Opcode::Reply => self.config.reply,
            Opcode::Read => self.config.read,
            Opcode::Write => self.config.write,
            Opcode::Fetch => self.config.fetch,
            _ => self.config.acknowledge,
        } + if looks_up { self.config.tlb_latency } else { 0 };
        let at = align(env.now(), self.config.cycle) + cycles * self.config.cycle;
        env.schedule(at, DtuEvent::Command(self.serial));
        WriteEffect::None
    }

    /// The value that the command register reads as.
    pub(super) fn command_register(&self) -> u64 {
        self.command
    }

    /// The start-up latency is over.
    pub(super) fn command_started<E: Env>(&mut self, env: &mut E, serial: u32) {
        let Some(run) = &self.running else { return };
        if run.serial != serial || !matches!(run.phase, Phase::Start) {
            return;
        }
        let (opcode, command, activity) = (run.opcode, run.command, run.owner.activity);
        let (endpoint, now) = (command.endpoint(), env.now());
        let outcome = match opcode {
            Opcode::Fetch => self.endpoints.fetch(endpoint, activity).map(|offset| {
                self.argument = offset.unwrap_or(NO_MESSAGE);
                if let Some(offset) = offset {
                    let mut tell = |wait| env.observe(Observation::Unfetched(wait));
                    let place = (endpoint, offset);
                    self.requests.fetched(now, place, &mut tell);
                }
                None
            }),
            Opcode::Acknowledge => {
                let offset = command.argument().into();
                let done = self.endpoints.acknowledge(endpoint, activity, offset);
                done.map(|()| {
                    let mut tell = |wait| env.observe(Observation::Unfetched(wait));
                    let place = (endpoint, offset);
                    self.requests.given_back(now, activity, place, &mut tell);
                    None
                })
            }
            Opcode::Send => self.prepare_send().map(Some),
            Opcode::Reply => self.prepare_reply().map(Some),
            _ => self.prepare_memory().map(Some),
        };
        match (outcome, &mut self.running) {
            (Ok(Some(transfer)), Some(run)) => {
                run.phase = Phase::Transfer(Box::new(transfer));
                self.advance(env);
            }
            (Ok(_), _) => self.finish(env, DtuError::None),
            (Err(error), _) => self.finish(env, error),
        }
    }

    /// Advances the running transfer as far as possible at this moment.
    pub(super) fn advance<E: Env>(&mut self, env: &mut E) {
        loop {
            let outstanding = self.config.outstanding.max(1);
            let Some(run) = &mut self.running else { return };
            let (serial, owner) = (run.serial, run.owner);
            let Some(transfer) = run.transfer() else {
                return;
            };
            if transfer.stop.is_some() {
                return self.check_end(env);
            }
            let inbound = transfer.inbound();
            // Local reads run ahead of the network, up to the limit.
            while !inbound && transfer.under_way() < outstanding {
                let physical = transfer.physical;
                let next = transfer.chunks.iter().position(|c| c.stage == Stage::Todo);
                let Some(index) = next else { break };
                let chunk = &mut transfer.chunks[index];
                chunk.stage = Stage::Local;
                let (at, moves) = (physical + chunk.offset, Moves::Read(chunk.bytes));
                let id = JobId::Chunk {
                    command: serial,
                    index,
                };
                self.local.start(env.now(), id, at, moves, owner);
            }
            // Chunks are charged in order, one at a time, so at most one waits for tokens.
            let next = transfer.chunks.iter().position(|chunk| {
                matches!(chunk.stage, Stage::Todo | Stage::Ready | Stage::Waiting)
                    || (chunk.stage == Stage::Local && !inbound)
            });
            let Some(index) = next else {
                return self.check_end(env);
            };
            match transfer.chunks[index].stage {
                Stage::Ready => {}
                Stage::Todo if inbound && transfer.under_way() < outstanding => {}
                _ => return,
            }
            transfer.asked = env.now();
            transfer.chunks[index].stage = Stage::Waiting;
            if !self.ask_and_emit(env) {
                return;
            }
        }
    }

    /// Asks for the tokens of the waiting chunk and sends it. False: it keeps waiting.
    fn ask_and_emit<E: Env>(&mut self, env: &mut E) -> bool {
        let Some(run) = &mut self.running else {
            return false;
        };
        let bucket = run.bucket;
        let Some(chunk) = run.transfer().and_then(|transfer| transfer.waiting()) else {
            return false;
        };
        let bytes = chunk.charged;
        match self.ask_chunk(env, bucket, bytes) {
            Ok(()) => {
                self.book_bucket(env);
                self.emit(env);
                true
            }
            Err(later) => {
                env.set_alarm(Alarm::Release, later);
                false
            }
        }
    }

    /// Records how long the chunk has waited for its tokens.
    fn book_bucket<E: Env>(&mut self, env: &mut E) {
        let Some(run) = &mut self.running else { return };
        let owner = run.owner;
        if let Some(from) = run.transfer().map(|transfer| transfer.asked)
            && from < env.now()
        {
            env.observe(Observation::Wait {
                victim: owner,
                culprit: owner,
                resource: DtuResource::Bucket,
                from,
                until: env.now(),
            });
        }
    }

    /// The token bucket may now admit the waiting chunk.
    pub(super) fn released<E: Env>(&mut self, env: &mut E) {
        let current = |run: &mut Running| run.transfer().is_some_and(|t| t.stop.is_none());
        if self.running.as_mut().is_some_and(current) && self.ask_and_emit(env) {
            self.advance(env);
        }
    }

    /// Sends the waiting chunk, if its endpoint is still the one that granted the right.
    fn emit<E: Env>(&mut self, env: &mut E) {
        let tile = self.tile;
        let Some(run) = &mut self.running else { return };
        let (serial, owner) = (run.serial, run.owner);
        let Some(transfer) = run.transfer() else {
            return;
        };
        let waiting = transfer
            .chunks
            .iter()
            .position(|c| c.stage == Stage::Waiting);
        let (Some(index), None) = (waiting, transfer.stop) else {
            return;
        };
        let valid = match &transfer.target {
            Target::Message {
                origin:
                    Origin::Send {
                        endpoint,
                        generation,
                    },
                ..
            }
            | Target::Memory {
                endpoint,
                generation,
                ..
            } => self.endpoints.generation(*endpoint) == *generation,
            Target::Message {
                origin: Origin::Reply(right),
                ..
            } => self.endpoints.is_current(right),
        };
        if !valid {
            transfer.stop = Some(DtuError::InvalidEndpoint);
            return;
        }
        let last = index + 1 == transfer.chunks.len();
        let destination = transfer.destination;
        let chunk = &mut transfer.chunks[index];
        chunk.stage = Stage::Network;
        let bytes_of = |chunk: &mut Chunk| {
            let missing =
                || panic!("tile {tile}: chunk {index} of command {serial} goes without its bytes");
            chunk.data.take().unwrap_or_else(missing)
        };
        let mut sent = None;
        let (transaction, kind) = match &transfer.target {
            Target::Message {
                endpoint,
                header,
                credit_endpoint,
                epoch,
                ..
            } => {
                if last {
                    sent = Some((header.flags & FLAG_REPLY != 0, header.length));
                } else {
                    chunk.stage = Stage::Done;
                }
                let kind = PacketKind::Message {
                    endpoint: *endpoint,
                    header: *header,
                    offset: chunk.offset as u16,
                    payload: bytes_of(chunk),
                    credit_endpoint: *credit_endpoint,
                    epoch: *epoch,
                };
                (Transaction::Message, kind)
            }
            Target::Memory {
                address,
                transaction,
                read,
                ..
            } => {
                let (address, bytes) = (address + chunk.offset, chunk.bytes);
                let kind = if *read {
                    PacketKind::ReadRequest { address, bytes }
                } else {
                    let data = Some(bytes_of(chunk));
                    PacketKind::WriteRequest {
                        address,
                        bytes,
                        data,
                    }
                };
                (*transaction, kind)
            }
        };
        let tag = serial << CHUNK_BITS | index as u32;
        // As for accesses of the hart, the wait for tokens came before the request and has been recorded.
        let now = env.now();
        let mut packet = Packet::request(now, tile, destination, owner, tag, transaction, kind);
        packet.asker = sent.and_then(|_| self.asks_for.take());
        env.send(packet);
        if let Some((reply, length)) = sent {
            env.observe(Observation::MessageSent {
                flow: flow(tile, tag),
                destination,
                bytes: u32::from(length) + HEADER_SIZE as u32,
                reply,
            });
        }
    }

    /// A local job of the command with this number, for the chunk with this index, is done.
    pub(super) fn chunk_done<E: Env>(
        &mut self,
        env: &mut E,
        (serial, index): (u32, usize),
        job: Finished,
    ) {
        let Some(run) = &mut self.running else { return };
        if run.serial != serial {
            return;
        }
        let Some(transfer) = run.transfer() else {
            return;
        };
        let inbound = transfer.inbound();
        let Some(chunk) = transfer.chunks.get_mut(index) else {
            return;
        };
        if inbound {
            chunk.stage = Stage::Done;
        } else {
            chunk.stage = Stage::Ready;
            chunk.data = Some(job.data);
        }
        if job.refused {
            transfer.stop.get_or_insert(DtuError::TargetRefused);
        }
        self.advance(env);
    }

    /// The response to one of this unit's requests. Other responses are ignored.
    pub(super) fn response<E: Env>(&mut self, env: &mut E, tag: u32, kind: PacketKind) {
        let Some(run) = &mut self.running else { return };
        let (serial, owner) = (run.serial, run.owner);
        // For a reply: the place of the message that it answers.
        let replied = (run.command.endpoint(), run.command.argument().into());
        let Some(transfer) = run.transfer() else {
            return;
        };
        let index = (tag & ((1 << CHUNK_BITS) - 1)) as usize;
        let Some(chunk) = transfer.chunks.get_mut(index) else {
            return;
        };
        if serial != tag >> CHUNK_BITS || chunk.stage != Stage::Network {
            return;
        }
        match (&transfer.target, kind) {
            (Target::Memory { read: true, .. }, PacketKind::ReadResponse { error, data, .. }) => {
                let data = data.filter(|data| !error && data.len() == chunk.bytes as usize);
                match data {
                    Some(data) if transfer.stop.is_none() => {
                        chunk.stage = Stage::Local;
                        let (at, moves) = (transfer.physical + chunk.offset, Moves::Write(data));
                        let id = JobId::Chunk {
                            command: serial,
                            index,
                        };
                        self.local.start(env.now(), id, at, moves, owner);
                    }
                    Some(_) => chunk.stage = Stage::Done,
                    None => {
                        chunk.stage = Stage::Done;
                        transfer.stop.get_or_insert(DtuError::TargetRefused);
                    }
                }
                self.advance(env);
            }
            (Target::Memory { read: false, .. }, PacketKind::WriteResponse { error }) => {
                chunk.stage = Stage::Done;
                if error {
                    transfer.stop.get_or_insert(DtuError::TargetRefused);
                }
                self.advance(env);
            }
            (Target::Message { origin, .. }, PacketKind::MessageResponse { error }) => {
                if index + 1 != transfer.chunks.len() {
                    return;
                }
                let error = DtuError::from_code(error).unwrap_or_else(|| {
                    panic!("an answer of a unit with the unknown error {error}")
                });
                if error == DtuError::None {
                    if let Origin::Reply(right) = *origin
                        && self.endpoints.is_current(&right)
                    {
                        self.endpoints.finish_reply(&right);
                        let now = env.now();
                        let mut tell = |wait| env.observe(Observation::Unfetched(wait));
                        let receiver = owner.activity;
                        self.requests.given_back(now, receiver, replied, &mut tell);
                    }
                    self.finish(env, error);
                } else {
                    self.undo(env, error);
                }
            }
            _ => {}
        }
    }

    /// The endpoint with an unanswered packet in transit, if the endpoint grants its user rights on another tile. Only the last
    /// part of a message is answered. Without it, which leaves only if the endpoint is unchanged, the other parts have no effect.
    pub(super) fn under_way(&self) -> u16 {
        let transfer = self.running.as_ref().and_then(|run| match &run.phase {
            Phase::Transfer(transfer) => Some(transfer.as_ref()),
            _ => None,
        });
        let awaited = |transfer: &&Transfer| {
            let mut chunks = transfer.chunks.iter();
            chunks.any(|chunk| chunk.stage == Stage::Network)
        };
        match transfer.filter(awaited).map(|transfer| &transfer.target) {
            Some(Target::Memory { endpoint, .. }) => *endpoint,
            Some(Target::Message {
                origin: Origin::Send { endpoint, .. },
                ..
            }) => *endpoint,
            _ => NO_ENDPOINT,
        }
    }

    /// Ends the transfer if no part of it is outstanding.
    fn check_end<E: Env>(&mut self, env: &mut E) {
        let Some(transfer) = self.running.as_mut().and_then(Running::transfer) else {
            return;
        };
        let inbound = transfer.inbound();
        match &transfer.target {
            Target::Message { .. } => {
                let sent = |c: &Chunk| matches!(c.stage, Stage::Network | Stage::Done);
                let complete = transfer.chunks.iter().all(sent);
                match transfer.stop {
                    // The receiver drops a message that remains incomplete.
                    Some(error) if !complete => self.undo(env, error),
                    _ => {}
                }
            }
            Target::Memory { .. } => {
                let busy = |chunk: &Chunk| {
                    chunk.stage == Stage::Network || (inbound && chunk.stage == Stage::Local)
                };
                if transfer.chunks.iter().any(busy) {
                    return;
                }
                let done = transfer.chunks.iter().all(|c| c.stage == Stage::Done);
                match transfer.stop {
                    Some(error) => self.finish(env, error),
                    None if done => self.finish(env, DtuError::None),
                    None => {}
                }
            }
        }
    }

    /// Ends a message that was not delivered: the credit comes back, and a right to reply is kept.
    fn undo<E: Env>(&mut self, env: &mut E, error: DtuError) {
        if let Some(transfer) = self.running.as_mut().and_then(Running::transfer)
            && let Target::Message {
                origin:
                    Origin::Send {
                        endpoint,
                        generation,
                    },
                ..
            } = transfer.target
        {
            self.endpoints.restore_credit(endpoint, generation);
        }
        self.finish(env, error);
    }

    fn finish<E: Env>(&mut self, env: &mut E, error: DtuError) {
        let Some(run) = self.running.take() else {
            return;
        };
        let alarm = match run.phase {
            Phase::Sleep(_) => Alarm::Sleep,
            Phase::Start | Phase::Transfer(_) => Alarm::Release,
        };
        env.set_alarm(alarm, Tick::MAX);
        self.local.cancel(run.serial);
        self.withdraw_chunk(run.bucket);
        self.command = with_error(run.command.0 & !0xFF, error);
        env.observe(Observation::CommandEnd {
            opcode: run.opcode,
            error,
        });
    }

    /// Aborts the running command: no further packet leaves. It still waits for the packets that have left.
    pub(super) fn abort_command<E: Env>(&mut self, env: &mut E) {
        let Some(run) = &mut self.running else { return };
        match &mut run.phase {
            Phase::Start => self.finish(env, DtuError::Aborted),
            Phase::Sleep(_) => self.end_sleep(env, DtuError::Aborted),
            Phase::Transfer(transfer) => {
                let waits = transfer.stop.is_none() && transfer.waiting().is_some();
                transfer.stop.get_or_insert(DtuError::Aborted);
                let bucket = run.bucket;
                if waits {
                    self.book_bucket(env);
                    self.withdraw_chunk(bucket);
                }
                self.check_end(env);
            }
        }
    }

    fn begin_sleep<E: Env>(&mut self, env: &mut E) -> WriteEffect {
        let Some(run) = &mut self.running else {
            return WriteEffect::None;
        };
        let (endpoint, activity, timeout) =
            (run.command.endpoint(), run.owner.activity, run.argument);
        run.phase = Phase::Sleep(endpoint);
        let unread = if endpoint == NO_ENDPOINT {
            Ok(self.endpoints.unread_of(activity) != 0)
        } else {
            self.endpoints
                .check_receive(endpoint, activity)
                .map(|()| self.endpoints.has_unread(endpoint))
        };
        match unread {
            Err(error) => self.finish(env, error),
            Ok(true) => self.finish(env, DtuError::None),
            Ok(false) if env.interrupt_pending() => self.finish(env, DtuError::Woken),
            Ok(false) => {
                if timeout != NO_TIMEOUT {
                    let at = env.now().saturating_add(self.ticks(timeout));
                    env.set_alarm(Alarm::Sleep, at);
                }
                let now = env.now();
                let mut tell = |wait| env.observe(Observation::Unfetched(wait));
                self.requests.sleeps(now, activity, &mut tell);
                return WriteEffect::Sleep;
            }
        }
        WriteEffect::None
    }

    /// Ends the sleep command, if one runs, and wakes the hart.
    pub(super) fn end_sleep<E: Env>(&mut self, env: &mut E, error: DtuError) {
        if self.sleeping().is_some() {
            self.finish(env, error);
            env.wake_hart();
        }
    }

    /// The endpoint that a running sleep command waits for.
    pub(crate) fn sleeping(&self) -> Option<u16> {
        match self.running.as_ref()?.phase {
            Phase::Sleep(endpoint) => Some(endpoint),
            _ => None,
        }
    }
}

fn with_error(command: u64, error: DtuError) -> u64 {
    command & !(0xFF << 24) | (error as u64) << 24
}
