//! The hart's only window to the rest of the machine.
//!
//! A tile implements [`Bus`]; tests implement it with flat memory. A hart first asks when a line will be available ([`Bus::data`]) and then
//! uses the bytes at its place ([`Bus::place`]); a line that arrives later is delivered by [`Hart::complete`](super::Hart::complete). The
//! hart knows nothing of caches, networks or devices behind this trait; it knows only that a first-level hit costs what its static schedule
//! assumed.

use super::qos::QosIds;
use super::user_trap::UserTrap;
use crate::types::Tick;

/// When a memory access takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// A first-level hit: exactly what the static schedule assumed.
    Hit,
    /// The data arrives at this tick (a second-level hit, or a line that is already on its way). For a fetch: the instructions may
    /// issue from this tick on.
    Ready(Tick),
    /// Like [`Timing::Ready`], but the hart must ask again at the next access to this line, and look at [`Bus::limit`]. After the other
    /// answers it need not ask again while it uses no other line: from the time of arrival on, such an access is a hit.
    ReadyOnce(Tick),
    /// `Hart::complete` will report the completion with this token. A token may be reused after its completion.
    Pending(u32),
}

/// The purpose of an access to the data side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load.
    Load,
    /// A store; the hart holds it in its store buffer until it completes.
    Store,
    /// An atomic memory operation, load-reserved or store-conditional: needs the line for writing.
    Atomic,
    /// A read (or an accessed/dirty update) of a page-table entry by the hardware walker.
    Walk,
}

/// The effect of a cache-management operation on a line, in all caches of the tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Management {
    /// Removes the line; its contents are lost.
    Invalidate,
    /// Writes the line to memory if it is dirty.
    Clean,
    /// Writes the line to memory if it is dirty, and removes it.
    Flush,
}

/// The answer to a cache-management operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Managed {
    /// The operation has been performed and completes at this time.
    At(Timing),
    /// The operation has not been performed because the line is in transit. The hart must ask again when this token completes.
    After(u32),
}

/// The access failed: nothing answers there, or the tile may not access it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("bus access fault")]
pub struct BusFault;

/// A request to a memory behind a network, which performs the operation when it serves the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteOperation {
    /// Reads.
    Load,
    /// Writes the low bytes of a value.
    Store(u64),
    /// Reads, and reserves the eight bytes around the address for the requesting tile.
    Reserve,
    /// Writes if the reservation still exists. The answer is 0 if it did.
    Conditional(u64),
    /// Reads, and writes the result of an atomic operation (its funct5) on the old value and the operand.
    Modify(u8, u64),
}

impl RemoteOperation {
    /// Whether no instruction waits for a result: a store is posted.
    pub const fn is_posted(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// Turns that it needs at the port of a memory: a read and a write in one step are two.
    pub const fn turns(&self) -> u64 {
        match self {
            Self::Conditional(_) | Self::Modify(..) => 2,
            _ => 1,
        }
    }
}

/// The result of a device read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceRead {
    /// The value, in the low bits.
    pub value: u64,
    /// Ticks beyond the hart's own cost of an uncached access (`HartConfig::mmio`).
    pub extra: Tick,
}

/// The result of a device write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceWrite {
    /// Ticks beyond the hart's own cost of an uncached access (`HartConfig::mmio`).
    pub extra: Tick,
    /// The device asks the hart to sleep after this instruction, until `Hart::wake` or an enabled interrupt.
    pub sleep: bool,
}

/// Event counts of the caches for a hart, up to the hart's current time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheEvents {
    /// Lines that entered the first-level instruction cache.
    pub fetch_refills: u64,
    /// Lines that entered the first-level data cache.
    pub data_refills: u64,
    /// Modified lines that left the first-level data cache.
    pub data_write_backs: u64,
    /// Requests looked up by the second level.
    pub second_accesses: u64,
    /// Second-level requests that missed.
    pub second_misses: u64,
    /// Lines that entered the second level.
    pub second_refills: u64,
    /// Modified lines that the second level wrote to memory to make room.
    pub second_write_backs: u64,
    /// Lines that the first-level data cache fetched ahead.
    pub data_prefetches: u64,
    /// Lines that the second level fetched ahead.
    pub second_prefetches: u64,
    /// Those among them that a request has used.
    pub second_prefetches_used: u64,
    /// Those of these that had not arrived when the first request came.
    pub second_prefetches_late: u64,
}

/// The location of a byte of a line, which only the bus interprets. The bytes of a line have consecutive places.
pub type Place = u64;

/// The interface of the hart to its tile. All addresses are physical addresses of the tile; sizes are 1, 2, 4 or 8 bytes and functional
/// accesses are naturally aligned or lie within one page.
pub trait Bus {
    /// The hart must ask before every access to the data side, loads included, and each access must be before the horizon. The memory ports
    /// are contended, so the hart may not remember any line.
    const EVERY_ACCESS: bool = false;
    /// Lines may be taken away at any moment because caches are coherent; loads and walks are therefore also performed only before the
    /// horizon.
    const COHERENT: bool = false;
    /// Harts of other tiles may use the same decoded blocks ([`Hart::run_shared`](super::Hart::run_shared)).
    const SHARES_BLOCKS: bool = false;
    /// Timing of the fetch of the instruction line that contains `physical`, wanted at `now`.
    fn fetch(&mut self, now: Tick, physical: u64) -> Timing;
    /// A fetch, if its line is the one used last in its set and nothing is on its way: it hits. False: nothing has happened, and the hart
    /// must call [`Bus::fetch`].
    #[inline]
    fn fetch_recent(&mut self, now: Tick, physical: u64) -> bool {
        let _ = (now, physical);
        false
    }
    /// A fetch of a line that [`Bus::fetch_recent`] found, if the hart has only fetched such lines since. False: someone else has used the
    /// caches, and nothing has happened; the hart must call one of the others.
    #[inline]
    fn fetch_again(&mut self, _physical: u64) -> bool {
        false
    }
    /// Timing of one data access that lies within one cache line.
    fn data(&mut self, now: Tick, physical: u64, access: Access) -> Timing;
    /// Whether accesses may have to wait for tokens of a bandwidth regulator, so that the hart must ask [`Bus::admit`].
    #[inline]
    fn regulates(&self) -> bool {
        false
    }
    /// Whether an access may be made now; `user`: not in machine mode. Until it is admitted, nothing has left the tile, so the hart may
    /// [withdraw](Bus::withdraw) the access and do something else.
    ///
    /// # Errors
    /// When to ask again, after `now`.
    fn admit(&mut self, now: Tick, physical: u64, fetch: bool, user: bool) -> Result<(), Tick> {
        let _ = (now, physical, fetch, user);
        Ok(())
    }
    /// Whether the hart may continue in user mode: the activity that it runs must owe no tokens.
    ///
    /// # Errors
    /// When to ask again, after `now`.
    fn solvent(&mut self, now: Tick) -> Result<(), Tick> {
        let _ = now;
        Ok(())
    }
    /// The hart has withdrawn the access that waited in [`Bus::admit`], or its wait in [`Bus::solvent`].
    fn withdraw(&mut self, now: Tick) {
        let _ = now;
    }
    /// Reads instructions where memory is flat: little endian, zero-extended.
    fn read(&mut self, physical: u64, bytes: u8) -> Result<u64, BusFault>;
    /// Whether lines hold data. If so, instructions are read from a fetched line ([`Bus::instruction_line`]), never from memory
    /// ([`Bus::read`]), and a reservation belongs to a line.
    fn lines_hold_data(&self) -> bool {
        false
    }
    /// Copies the bytes of the instruction line at `line`. Returns false if the line must be fetched first.
    fn instruction_line(&mut self, line: u64, bytes: &mut [u8]) -> bool {
        let _ = (line, bytes);
        false
    }
    /// Later fetches see the hart's earlier stores.
    fn empty_instruction_cache(&mut self) {}
    /// Performs a cache-management operation on the line at `line`. No access of the hart is waiting for this line. If memory is flat,
    /// there is nothing to do.
    fn manage(&mut self, now: Tick, line: u64, what: Management) -> Managed {
        let _ = (now, line, what);
        Managed::At(Timing::Hit)
    }
    /// Fetches the line at `line` ahead of use, for instructions or data, or does nothing.
    fn prefetch(&mut self, now: Tick, line: u64, fetch: bool) {
        let _ = (now, line, fetch);
    }
    /// The instruction that makes the next accesses, for prefetchers.
    #[inline]
    fn instruction(&mut self, pc: u64) {
        let _ = pc;
    }
    /// Whether the caches have fetched lines ahead since the last call: what the hart knows of lines is out of date, and its horizon may be
    /// nearer.
    #[inline]
    fn fetched_ahead(&mut self) -> bool {
        false
    }
    /// The name of the line at `line`. An arriving line is identified by this name ([`Hart::take_line`](super::Hart::take_line)). Two
    /// addresses may name the same line.
    #[inline]
    fn line_name(&self, line: u64) -> u64 {
        line
    }
    /// A load-reserved reads the line of `physical`, which is present.
    fn reserve(&mut self, physical: u64) {
        let _ = physical;
    }
    /// Ends the reservation. Returns whether it was still valid for the line of `physical`; `None` if memory is flat, because the
    /// value decides there.
    fn take_reservation(&mut self, physical: u64) -> Option<bool> {
        let _ = physical;
        None
    }
    /// Whether the byte at `physical` is at `place`. Used to check what the hart remembers.
    fn is_at(&self, physical: u64, place: Place) -> bool {
        let _ = (physical, place);
        true
    }
    /// Whether memory answers an access to these bytes, which lie within a page. Constant within an epoch.
    fn allows(&self, physical: u64, bytes: u64, write: bool) -> bool;
    /// Whether the hart may remember the line of an access that it has asked for. If not, it asks before every access to the line, because
    /// others use the same port.
    #[inline]
    fn remembers(&self, physical: u64) -> bool {
        let _ = physical;
        true
    }
    /// Whether the hart may use a line again, without asking, that is not the one that it used last in its set. It tells the bus later
    /// ([`Bus::again`]).
    #[inline]
    fn lines_in_turn(&self) -> bool {
        false
    }
    /// The hart has used a line again without asking: the order of use changes, and `times` such uses are counted, of this line and others.
    /// `place` is that of the byte at `physical`.
    fn again(&mut self, physical: u64, place: Place, times: u64) {
        panic!(
            "a bus that must be asked is told of {times} uses of {physical:#x} at {place:#x} without asking"
        )
    }
    /// The place of a byte in the line that the last [`Bus::data`] found, or that has arrived since.
    fn place(&self, physical: u64, write: bool) -> Place;
    /// Reads bytes at a place.
    fn read_place(&mut self, place: Place, bytes: u8) -> u64;
    /// Writes the low `bytes` of `value` at a place.
    fn write_place(&mut self, place: Place, bytes: u8, value: u64);
    /// A store to a line that the hart has asked for. Stores to lines known to be dirty bypass this function.
    fn store(&mut self, _now: Tick, _physical: u64, place: Place, bytes: u8, value: u64) {
        self.write_place(place, bytes, value);
    }
    /// Devices may be accessed only before this moment, in addition to the horizon, so that harts sharing devices access them in time
    /// order.
    #[inline]
    fn device_horizon(&self) -> Tick {
        Tick::MAX
    }
    /// Whether a device answers here. The answer is the same for the whole 4 KiB page, and constant within an epoch.
    fn is_device(&self, physical: u64) -> bool;
    /// Reads a device register at `now`; every earlier event has happened.
    fn device_read(&mut self, now: Tick, physical: u64, bytes: u8) -> Result<DeviceRead, BusFault>;
    /// Writes a device register at `now`.
    fn device_write(
        &mut self,
        now: Tick,
        physical: u64,
        bytes: u8,
        value: u64,
    ) -> Result<DeviceWrite, BusFault>;
    /// Whether an access goes to a memory (or, if it is not `atomic`, to a register) behind a network. Such a page counts as a
    /// device page, but the answer comes later ([`Hart::complete_remote`](super::Hart::complete_remote)).
    #[inline]
    fn is_remote(&self, physical: u64, atomic: bool) -> bool {
        let _ = (physical, atomic);
        false
    }
    /// From now on, requests carry these identifiers (`srmcfg`).
    fn identify(&mut self, ids: QosIds) {
        let _ = ids;
    }
    /// Sends a request to a memory behind a network. Returns the token of the answer.
    ///
    /// # Errors
    /// Nothing answers at this address.
    fn remote(
        &mut self,
        now: Tick,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Result<u32, BusFault> {
        let _ = (now, physical, bytes, operation);
        Err(BusFault)
    }
    /// A number that changes when the physical map or the tile's rights change: the hart then drops translations and decoded
    /// blocks. It may change only while the hart does not run, or in a device access.
    fn epoch(&self) -> u32;
    /// Event counts of the caches for the hart. They change with the hart's own accesses and when lines arrive, so never before the hart's
    /// current time.
    fn cache_events(&self) -> CacheEvents {
        CacheEvents::default()
    }
    /// The value of `mtime` at this tick.
    fn timer(&self, now: Tick) -> u64;
    /// A horizon that the hart's own actions brought nearer: an answer to a request, an event of a device it wrote, or an interrupt may
    /// arrive at or after this tick. The hart asks again after every [`Timing::Pending`] and every device access, and starts no block at or
    /// after the earlier of this tick and the horizon of `Hart::run`.
    fn limit(&self) -> Tick {
        Tick::MAX
    }
    /// The software executed a marker hint (`slti x0, rs1, kind`) at the address `pc`, in machine mode or not. Must not change anything that software
    /// can see.
    fn marker(&mut self, now: Tick, pc: u64, kind: u16, value: u64, machine_mode: bool);
    /// Software in machine mode has just reported that the program of `trap` crashed. `stores` are the hart's stores that have not
    /// reached memory: physical address, bytes and value. Must not change anything that software can see.
    fn crashed(&mut self, _now: Tick, _trap: &UserTrap, _stores: &[(u64, u8, u64)]) {}
}
