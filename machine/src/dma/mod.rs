//! A DMA engine: it moves data between memories while the hart does other work.
//!
//! Why it exists: a hart that copies cannot compute, and blocks of data have strides. The engine has channels with their own registers
//! ([`bulkhead_abi::dma`]) and two sides: one channel at a time begins a read and one a write, and an access keeps its side for as many
//! cycles as its data need. Channels take turns; a wait is charged to the owners of the channels that had the turns. What it deliberately
//! does not know: which memory an address is in, and what an access costs there; the component that holds the engine forwards its accesses.

mod channel;
mod descriptor;

pub use channel::{Access, Data, Failure, Side};

use crate::config::dma::DmaConfig;
use crate::ledger::{Ledger, Resource};
use crate::noc::Account;
use crate::types::{Owner, Tick, TileId, align};
use bulkhead_abi::dma::{
    CHANNEL_SIZE, COMPLETED, CONTROL, DESCRIPTOR, DESCRIPTOR_SIZE, ERROR_ADDRESS, FIRST_CHANNEL,
    INTERRUPT, REGISTERS_END, START, START_CHAIN, STATUS, STOP, State,
};
use channel::{Channel, NUMBERS};

/// Statistics of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DmaStatistics {
    /// Reads begun, words of descriptors included.
    pub reads: u64,
    /// Writes that it began.
    pub writes: u64,
    /// Ticks for which channels waited for turns of others.
    pub waited: Tick,
    /// Transfers that ended with an error.
    pub errors: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Dma {
    tile: TileId,
    cycle: Tick,
    channels: Vec<Channel>,
    /// Bytes that a side moves per cycle.
    width: u32,
    /// The channel that is asked first, by side.
    turn: [usize; 2],
    /// The channel that has the side, and until when.
    held: [(usize, Tick); 2],
    /// Channels that have begun to ask for an interrupt since this was last read, one bit each.
    raised: u8,
    /// The next step.
    next: Tick,
    statistics: DmaStatistics,
}

/// The owner of a channel's requests: the hart is activity 0 of its tile, and the channels follow.
pub fn owner(tile: TileId, channel: u16) -> Owner {
    Owner::new(tile, 1 + channel)
}

/// The tag of an access: the element's number in the low bits, then the channel.
const NUMBER_BITS: u32 = NUMBERS.count_ones();

/// Whether an access to the registers of an engine with this many channels has a target.
pub fn is_register(channels: u32, offset: u64, bytes: u8) -> bool {
    find(channels as usize, offset, bytes).is_some()
}

/// The channel of an access to the register page, and the offset there.
fn find(channels: usize, offset: u64, bytes: u8) -> Option<(usize, u64)> {
    let place = offset.checked_sub(FIRST_CHANNEL)?;
    let (channel, register) = (place / CHANNEL_SIZE, place % CHANNEL_SIZE);
    let exists = channel < channels as u64 && register < REGISTERS_END;
    (exists && bytes == 8 && register.is_multiple_of(8)).then_some((channel as usize, register))
}

impl Dma {
    /// An engine at rest.
    pub fn new(config: &DmaConfig, tile: TileId) -> Self {
        let startup = config.startup * config.cycle;
        let channels = 0..config.channels as u16;
        Self {
            tile,
            cycle: config.cycle,
            channels: channels
                .map(|channel| {
                    let owner = owner(tile, channel);
                    Channel::new(owner, config.outstanding, config.burst, startup)
                })
                .collect(),
            width: config.width,
            turn: [0; 2],
            held: [(0, 0); 2],
            raised: 0,
            next: Tick::MAX,
            statistics: DmaStatistics::default(),
        }
    }

    /// Its statistics.
    pub fn statistics(&self) -> &DmaStatistics {
        &self.statistics
    }

    /// The next moment at which the engine does something.
    pub fn next_time(&self) -> Tick {
        self.next
    }

    /// A channel asks for an interrupt.
    pub fn interrupt(&self) -> bool {
        self.channels.iter().any(|channel| channel.interrupt)
    }

    /// A channel that has begun to ask for an interrupt, each once, with its owner.
    pub fn take_raised(&mut self) -> Option<(u16, Owner)> {
        let number = self.raised.trailing_zeros() as usize;
        let channel = self.channels.get(number)?;
        self.raised &= !(1 << number);
        Some((number as u16, channel.owner))
    }

    /// Reads a register; `None` if there is none.
    pub fn read(&self, offset: u64, bytes: u8) -> Option<u64> {
        let (channel, register) = find(self.channels.len(), offset, bytes)?;
        let channel = &self.channels[channel];
        Some(match register {
            ..DESCRIPTOR_SIZE => channel.word(register as usize / 8),
            STATUS => {
                let (state, cause) = channel.status();
                state as u64 | (cause as u64) << 8
            }
            ERROR_ADDRESS => channel.error_address(),
            INTERRUPT => channel.interrupt.into(),
            COMPLETED => channel.completed(),
            DESCRIPTOR => channel.descriptor(),
            _ => 0,
        })
    }

    /// Writes a register; `None` if there is none.
    pub fn write(&mut self, now: Tick, offset: u64, bytes: u8, value: u64) -> Option<()> {
        let (channel, register) = find(self.channels.len(), offset, bytes)?;
        let until = self.until();
        let channel = &mut self.channels[channel];
        match register {
            ..DESCRIPTOR_SIZE => channel.set_word(register as usize / 8, value),
            CONTROL => {
                let edge = align(now, self.cycle);
                match value {
                    START => channel.start(edge, false),
                    START_CHAIN => channel.start(edge, true),
                    STOP => channel.stop(),
                    _ => {}
                }
                // In the next cycle at the earliest.
                let next = channel.next_time(edge, until).max(edge + self.cycle);
                self.next = self.next.min(next);
            }
            INTERRUPT if value & 1 != 0 => channel.interrupt = false,
            _ => {}
        }
        Some(())
    }

    /// Begins a step at an edge of the clock: finished elements leave, and channels continue.
    pub fn advance(&mut self, now: Tick) {
        for (number, channel) in self.channels.iter_mut().enumerate() {
            let (was, asked) = (channel.status().0, channel.interrupt);
            channel.advance(now);
            if channel.interrupt && !asked {
                self.raised |= 1 << number;
            }
            let is = channel.status().0;
            self.statistics.errors += u64::from(was != is && is == State::Error);
        }
    }

    /// Until when each side is held.
    fn until(&self) -> [Tick; 2] {
        self.held.map(|(_, until)| until)
    }

    /// Every channel that wants a turn at a side, and does not wait yet, waits for the rest of the present turn.
    fn wait_for_rest(&mut self, side: Side, now: Tick) {
        let (holder, until) = self.held[side as usize];
        let owner = self.channels[holder].owner;
        for (i, other) in self.channels.iter_mut().enumerate() {
            if i != holder && other.wants(side) <= now && !other.is_waiting(side) {
                other.wait(side, now, owner, until - now);
            }
        }
    }

    /// The access that a side begins now, if a channel wants one: the channel's owner, the tag, and the account.
    pub fn begin(
        &mut self,
        side: Side,
        now: Tick,
        ledger: &mut Ledger,
    ) -> Option<(Owner, u32, Account, Access)> {
        if now < self.held[side as usize].1 {
            self.wait_for_rest(side, now);
            return None;
        }
        let count = self.channels.len();
        let first = self.turn[side as usize];
        let mut order = (0..count).map(|i| (first + i) % count);
        let chosen = order.find(|i| self.channels[*i].wants(side) <= now)?;
        self.turn[side as usize] = (chosen + 1) % count;
        let channel = &mut self.channels[chosen];
        let owner = channel.owner;
        let account = channel.account(side, now, Resource::DmaEngine(self.tile), ledger);
        self.statistics.waited += account.waited;
        match side {
            Side::Read => self.statistics.reads += 1,
            Side::Write => self.statistics.writes += 1,
        }
        let access = channel.take(side);
        let beats = access.bytes.div_ceil(self.width).max(1);
        let turn = Tick::from(beats) * self.cycle;
        self.held[side as usize] = (chosen, now + turn);
        for (i, other) in self.channels.iter_mut().enumerate() {
            if i != chosen && other.wants(side) <= now {
                other.wait(side, now, owner, turn);
            }
        }
        let number = access.number & NUMBERS;
        Some((
            owner,
            (chosen as u32) << NUMBER_BITS | number,
            account,
            access,
        ))
    }

    /// The answer to an access. The engine takes it at the next edge of its clock.
    pub fn answer(&mut self, now: Tick, tag: u32, data: Result<Data, Failure>) {
        let edge = align(now, self.cycle);
        let channel = &mut self.channels[(tag >> NUMBER_BITS) as usize];
        channel.answer(tag & NUMBERS, edge, data);
        self.next = self.next.min(edge);
    }

    /// Ends the step and computes the next one.
    pub fn end_step(&mut self, now: Tick) {
        let until = self.until();
        let channels = self.channels.iter();
        let next = channels.map(|channel| channel.next_time(now, until)).min();
        // An access that is possible now gets its turn in the next cycle.
        self.next = next.unwrap_or(Tick::MAX).max(now + self.cycle);
    }
}
