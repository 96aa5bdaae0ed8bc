//! Peripherals beside the tiles: storage, camera, streaming accelerator. One engine with three front ends.
//!
//! Why it exists: devices share memories and networks with programs, and delay them. All three move bytes between themselves and memory at
//! a limited rate ([`Transfer`], [`Pace`]). They differ in the source of their work: commands of software, or the camera's clock. A device
//! serves the program to which the description gives it: only that program's harts reach its registers, and only that program's memory is
//! in its windows. A command for any other memory is refused, and the device reports it. What it deliberately does not know: the network,
//! memories, the target of its interrupts.

pub mod content;
mod pace;
mod registers;
mod transfer;

pub use pace::Pace;

use crate::config::{PeripheralConfig, PeripheralKind};
use crate::dma::{Access, Data, DmaStatistics, Side};
use crate::noc::Account;
use crate::types::{Owner, Tick, align};
use bulkhead_abi::peripheral::{AT_END, AT_PACKET, AT_REFUSAL, Cause};
use std::collections::VecDeque;
use transfer::{From, Job, To, Transfer};

pub use registers::is_register;

/// The camera runs: its ring, and the packet that comes next.
#[derive(Clone, Copy, Debug)]
struct Running {
    ring: u64,
    slots: u64,
    /// Packets that have got a slot.
    taken: u64,
    next: (u32, u32),
    /// When that packet is ready.
    at: Tick,
    /// When its frame began.
    frame: Tick,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Peripheral {
    owner: Owner,
    cycle: Tick,
    startup: Tick,
    burst: u32,
    outstanding: usize,
    queue: usize,
    windows: Vec<(u64, u64)>,
    kind: PeripheralKind,
    /// Content of a storage device.
    content: Vec<u8>,
    /// Paces of reads and of writes.
    paces: [Pace; 2],
    ticks_per_second: u64,
    /// The accelerator computes up to here.
    computes_until: Tick,
    arguments: [u64; 3],
    enable: u64,
    interrupt: bool,
    raised: bool,
    waiting: VecDeque<Job>,
    transfer: Option<Transfer>,
    /// Number of the next piece.
    number: u32,
    running: Option<Running>,
    consumed: u64,
    completed: u64,
    refused: u64,
    overflows: u64,
    frames: u64,
    cause: Cause,
    culprit: u64,
    next: Tick,
    statistics: DmaStatistics,
}

impl Peripheral {
    /// At rest. All its requests belong to `owner`.
    pub fn new(config: &PeripheralConfig, owner: Owner, ticks_per_second: u64) -> Self {
        let pace = || Pace::new(config.rate, config.bucket, ticks_per_second);
        Self {
            owner,
            cycle: config.cycle,
            startup: config.startup * config.cycle,
            burst: config.burst,
            outstanding: config.outstanding as usize,
            queue: config.queue as usize,
            windows: config.windows.clone(),
            kind: config.kind,
            content: match config.kind {
                PeripheralKind::Storage { size, seed, .. } => content::seeded(seed, size),
                _ => Vec::new(),
            },
            paces: [pace(), pace()],
            ticks_per_second,
            computes_until: 0,
            arguments: [0; 3],
            enable: 0,
            interrupt: false,
            raised: false,
            waiting: VecDeque::new(),
            transfer: None,
            number: 0,
            running: None,
            consumed: 0,
            completed: 0,
            refused: 0,
            overflows: 0,
            frames: 0,
            cause: Cause::None,
            culprit: 0,
            next: Tick::MAX,
            statistics: DmaStatistics::default(),
        }
    }

    /// Its statistics.
    pub fn statistics(&self) -> &DmaStatistics {
        &self.statistics
    }

    /// The content of a storage device.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Writes the first bytes of a storage device's content. False: it has fewer bytes, or is not a storage device.
    pub fn load(&mut self, bytes: &[u8]) -> bool {
        let place = self.content.get_mut(..bytes.len());
        place.map(|place| place.copy_from_slice(bytes)).is_some()
    }

    /// The next moment at which it does something.
    pub fn next_time(&self) -> Tick {
        self.next
    }

    /// The owner of the device, if it has begun to ask for an interrupt since the last call.
    pub fn take_raised(&mut self) -> Option<(u16, Owner)> {
        std::mem::take(&mut self.raised).then_some((0, self.owner))
    }

    /// Something has happened that may be worth an interrupt.
    fn tell(&mut self, what: u64) {
        if self.enable & what != 0 && !self.interrupt {
            (self.interrupt, self.raised) = (true, true);
        }
    }

    /// A command does nothing.
    fn refuse(&mut self, cause: Cause, culprit: u64) {
        self.refused += 1;
        self.statistics.errors += 1;
        if self.cause == Cause::None {
            (self.cause, self.culprit) = (cause, culprit);
        }
        self.tell(AT_REFUSAL);
    }

    /// Work that is not finished.
    fn queued(&self) -> usize {
        self.waiting.len() + usize::from(self.transfer.is_some())
    }

    /// Packets of the camera that are there by now.
    fn expose(&mut self, now: Tick) {
        let PeripheralKind::Camera {
            period,
            lines,
            packet,
            gap,
            ..
        } = self.kind
        else {
            return;
        };
        while let Some(mut camera) = self.running.filter(|camera| camera.at <= now) {
            let (frame, line) = camera.next;
            let full = camera.taken - self.consumed >= camera.slots;
            let lost = full || self.queued() >= self.queue;
            if lost {
                self.overflows += 1;
            } else {
                let slot = camera.taken % camera.slots;
                camera.taken += 1;
                self.waiting.push_back(Job {
                    from: From::Packet(frame, line),
                    to: To::Memory(camera.ring + slot * u64::from(packet)),
                    bytes: packet.into(),
                });
            }
            let last = line + 1 == lines;
            (camera.next, camera.at) = match last {
                true => {
                    camera.frame += period;
                    ((frame.wrapping_add(1), 0), camera.frame)
                }
                false => ((frame, line + 1), camera.at + gap),
            };
            self.running = Some(camera);
            if lost {
                self.tell(AT_REFUSAL);
                self.frames += u64::from(last);
                if last {
                    self.tell(AT_END);
                }
            }
        }
    }

    /// A transfer has ended.
    fn ended(&mut self, job: Job) {
        self.completed += 1;
        match (job.from, self.kind) {
            (From::Packet(_, line), PeripheralKind::Camera { lines, .. }) => {
                self.tell(AT_PACKET);
                if line + 1 == lines {
                    self.frames += 1;
                    self.tell(AT_END);
                }
            }
            _ => self.tell(AT_END),
        }
    }

    /// Begins a step at an edge of the clock: what needs no access to memory.
    pub fn advance(&mut self, now: Tick) {
        self.expose(now);
        loop {
            let Some(transfer) = &mut self.transfer else {
                let Some(job) = self.waiting.pop_front() else {
                    return;
                };
                let from = now + self.startup;
                let (burst, most) = (self.burst, self.outstanding);
                self.transfer = Some(Transfer::new(job, from, burst, most, self.number));
                continue;
            };
            transfer.leave(now);
            if transfer.is_over() {
                let job = transfer.job;
                self.number = transfer.number();
                self.transfer = None;
                self.ended(job);
                continue;
            }
            self.make(now);
            if !self.keep(now) {
                return;
            }
        }
    }

    /// Pieces that the device itself has.
    fn make(&mut self, now: Tick) {
        let Some(transfer) = self.transfer.as_mut().filter(|one| one.from <= now) else {
            return;
        };
        loop {
            let (offset, bytes) = (transfer.offset(), transfer.next_bytes());
            if bytes == 0 {
                return;
            }
            let data = match (transfer.job.from, self.kind) {
                (From::Memory(_), _) => return,
                (From::Content(at), _) => {
                    let at = (at + offset) as usize;
                    self.content[at..at + bytes as usize].into()
                }
                (From::Packet(frame, line), PeripheralKind::Camera { seed, .. }) => {
                    content::packet(seed, (frame, line), offset, bytes)
                }
                (From::Packet(..), kind) => panic!("{kind:?} has no packets"),
                (From::Word(word), _) => content::repeated(word, bytes),
            };
            transfer.begin(now, Some(data));
        }
    }

    /// Pieces that stay in the device. Returns whether there were some.
    fn keep(&mut self, now: Tick) -> bool {
        let Some(transfer) = &mut self.transfer else {
            return false;
        };
        let To::Content(at) = transfer.job.to else {
            return false;
        };
        let mut kept = false;
        while transfer.ready().is_some_and(|(from, _)| from <= now) {
            let (_, offset, data) = transfer.write();
            let at = (at + offset) as usize;
            self.content[at..at + data.len()].copy_from_slice(&data);
            transfer.kept(now);
            kept = true;
        }
        kept
    }

    /// When a side wants to begin an access, not before `now`; [`Tick::MAX`]: not without an answer.
    fn wants(&self, side: Side, now: Tick) -> Tick {
        let Some(transfer) = &self.transfer else {
            return Tick::MAX;
        };
        let (from, bytes) = match (side, transfer.job.from, transfer.job.to) {
            (Side::Read, From::Memory(_), _) => (transfer.from, transfer.next_bytes()),
            (Side::Write, _, To::Memory(_)) => transfer.ready().unwrap_or((0, 0)),
            _ => (0, 0),
        };
        match bytes {
            0 => Tick::MAX,
            _ => align(
                self.paces[side as usize].when(from.max(now), bytes),
                self.cycle,
            ),
        }
    }

    /// The access that a side begins now, if it wants one: the owner, the tag, and the account.
    pub fn begin(&mut self, side: Side, now: Tick) -> Option<(Owner, u32, Account, Access)> {
        if self.wants(side, now) > now {
            return None;
        }
        let transfer = self.transfer.as_mut()?;
        let (number, address, bytes, data) = match (side, transfer.job.from, transfer.job.to) {
            (Side::Read, From::Memory(base), _) => {
                let bytes = transfer.next_bytes();
                let (number, offset) = transfer.begin(now, None);
                self.statistics.reads += 1;
                (number, base + offset, bytes, None)
            }
            (Side::Write, _, To::Memory(base)) => {
                let (number, offset, data) = transfer.write();
                self.statistics.writes += 1;
                (
                    number,
                    base + offset,
                    data.len() as u32,
                    Some(Data::Burst(data)),
                )
            }
            _ => return None,
        };
        self.paces[side as usize].take(now, bytes);
        let access = Access {
            number,
            address,
            bytes,
            data,
        };
        Some((self.owner, number, Account::new(now), access))
    }

    /// The answer to an access. The device takes it at the next edge of its clock.
    pub fn answer(&mut self, now: Tick, number: u32, data: Data) {
        let edge = align(now, self.cycle);
        let transfer = self.transfer.as_mut().expect("a transfer has asked");
        transfer.answer(
            number,
            edge,
            match data {
                Data::Burst(bytes) => Some(bytes),
                Data::Word(_) => None,
            },
        );
        while let Some((data, since)) = transfer.uncomputed() {
            let at = match self.kind {
                PeripheralKind::Accelerator { compute } => {
                    *data = content::computed(std::mem::take(data));
                    let needed = u128::from(data.len() as u64) * u128::from(self.ticks_per_second);
                    let needed = needed.div_ceil(compute.into()) as Tick;
                    self.computes_until = self.computes_until.max(since) + needed;
                    align(self.computes_until, self.cycle)
                }
                _ => since,
            };
            transfer.computed(at);
        }
        self.next = self.next.min(edge);
    }

    /// Ends the step and computes the next one.
    pub fn end_step(&mut self, now: Tick) {
        // Work that is possible now gets its turn in the next cycle.
        self.next = self.next_event(now).max(now + self.cycle);
    }

    /// When something happens here without an external answer.
    fn next_event(&self, now: Tick) -> Tick {
        let camera = self
            .running
            .map_or(Tick::MAX, |camera| align(camera.at, self.cycle));
        let work = match &self.transfer {
            None if self.waiting.is_empty() => Tick::MAX,
            None => now,
            Some(transfer) => {
                let makes = match transfer.job.from {
                    From::Memory(_) => Tick::MAX,
                    _ if transfer.next_bytes() == 0 => Tick::MAX,
                    _ => transfer.from,
                };
                let keeps = match (transfer.job.to, transfer.ready()) {
                    (To::Content(_), Some((from, _))) => from,
                    _ => Tick::MAX,
                };
                let leaves = transfer.leaves().unwrap_or(Tick::MAX);
                let sides = self
                    .wants(Side::Read, now)
                    .min(self.wants(Side::Write, now));
                makes.min(keeps).min(leaves).min(sides)
            }
        };
        camera.min(work)
    }
}
