//! Sv39 translation and physical protection of the hart's accesses (privileged specification 20211203, sections 4.3
//! and 4.4).
//!
//! There are three layers: a *quick table*, the modelled first- and second-level TLBs, and the walker, whose reads cost time
//! through the bus. The quick table only makes the simulator fast: it holds a page only as long as the modelled TLB does. The
//! modelled TLBs replace in FIFO order, so they need not see hits in the quick table.

use super::Stop;
use super::bus::{Access, Bus, Timing};
use super::config::HartConfig;
use super::core::{Core, Exception, Exit, Privilege, Purpose};
use super::csr::{PBMTE, status};
use super::load_store_queue::LineBytes;
use super::pmp::Need;
use super::trap::cause;
use crate::types::Tick;

const QUICK: usize = 256;
/// Bit position of the context in a quick tag: above the 52 bits of a virtual page number.
const CONTEXT: u32 = 52;

const V: u64 = 1;
const R: u64 = 2;
const W: u64 = 4;
const X: u64 = 8;
const U: u64 = 16;
const G: u64 = 32;
const A: u64 = 64;
const D: u64 = 128;

#[derive(Clone, Copy)]
struct QuickEntry {
    tag: u64,
    /// Physical minus virtual address.
    delta: u64,
}

const EMPTY: QuickEntry = QuickEntry {
    tag: u64::MAX,
    delta: 0,
};

/// Bits 62 and 61 of a leaf entry (Svpbmt 1.0).
const PBMT: u64 = 3 << 61;
/// Reserved without Svpbmt and Svnapot.
const RESERVED: u64 = !0 << 54;

/// The memory type that a page-table entry gives a page (Svpbmt 1.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryType {
    /// The memory or device at the address decides.
    Pma,
    /// Not cached, weakly ordered (NC).
    Uncached,
    /// Not cached; accesses are made one at a time (IO).
    Ordered,
}

/// An entry of a modelled TLB.
#[derive(Clone, Copy, Debug)]
pub struct TlbEntry {
    /// Virtual address of the first byte.
    start: u64,
    /// Bytes minus one: 4 KiB, 2 MiB or 1 GiB.
    mask: u64,
    physical: u64,
    /// The low byte of the page-table entry.
    flags: u64,
    memory_type: MemoryType,
    asid: u16,
}

impl TlbEntry {
    fn covers(&self, address: u64, asid: u16) -> bool {
        address & !self.mask == self.start && (self.asid == asid || self.flags & G != 0)
    }
}

/// A walk. It reads one entry after another, each when its line has arrived.
#[derive(Clone, Debug)]
pub struct Walk {
    address: u64,
    need: Need,
    privilege: Privilege,
    /// The table to read next, and its level.
    table: u64,
    level: u32,
    /// Translation or cause of a fault, once it is known.
    outcome: Option<Result<TlbEntry, u64>>,
    offset: Tick,
    waiting: Option<u32>,
}

impl Walk {
    /// Address of the entry to read next.
    fn entry(&self) -> u64 {
        self.table + (self.address >> (12 + 9 * self.level) & 0x1ff) * 8
    }

    /// Whether the walk waits for this token.
    pub fn waits_for(&self, token: u32) -> bool {
        self.waiting == Some(token)
    }
}

/// Translation state of a hart.
#[derive(Clone)]
pub struct Mmu {
    /// By page and need, so that the entries of one page are together.
    quick: Box<[[QuickEntry; 3]; QUICK]>,
    /// Context bits for the tags: fetch, data.
    contexts: [u64; 2],
    /// Incremented to drop all quick entries at once.
    generation: u64,
    context_bits: [u64; 2],
    /// First-level TLBs: instructions, data. FIFO.
    first: [Vec<TlbEntry>; 2],
    victim: [usize; 2],
    first_size: usize,
    second: Vec<Option<TlbEntry>>,
}

impl Mmu {
    /// Empty TLBs.
    pub fn new(config: &HartConfig) -> Self {
        let second = config.l2_tlb_entries as usize;
        let mut mmu = Self {
            quick: Box::new([[EMPTY; 3]; QUICK]),
            contexts: [0; 2],
            generation: 0,
            context_bits: [0; 2],
            first: [Vec::new(), Vec::new()],
            victim: [0; 2],
            first_size: config.tlb_entries.max(4) as usize,
            second: vec![
                None;
                if second == 0 {
                    0
                } else {
                    second.next_power_of_two()
                }
            ],
        };
        mmu.set_contexts(3, 3, false, false);
        mmu
    }

    /// Sets the modes that the tags of quick entries encode.
    pub fn set_contexts(&mut self, fetch: u64, data: u64, sum: bool, mxr: bool) {
        self.context_bits = [fetch, data | (sum as u64) << 2 | (mxr as u64) << 3];
        self.contexts = self
            .context_bits
            .map(|bits| (bits | self.generation << 4) << CONTEXT);
    }

    /// Drops the quick entries, not the modelled TLBs.
    pub fn forget(&mut self) {
        self.generation += 1;
        // Eight bits of the tag are the generation; the last value is never used, so EMPTY matches nothing.
        if self.generation == 255 {
            self.generation = 0;
            self.quick.fill([EMPTY; 3]);
        }
        self.contexts = self
            .context_bits
            .map(|bits| (bits | self.generation << 4) << CONTEXT);
    }

    /// The physical address if the page is in the quick table.
    #[inline(always)]
    pub fn quick(&self, need: Need, address: u64) -> Option<u64> {
        let page = address >> 12;
        let entry = &self.quick[page as usize & (QUICK - 1)][need as usize];
        let context = self.contexts[(need as usize != Need::Execute as usize) as usize];
        (entry.tag == page | context).then(|| address.wrapping_add(entry.delta))
    }

    fn remember(&mut self, need: Need, address: u64, physical: u64) {
        let page = address >> 12;
        let context = self.contexts[(need != Need::Execute) as usize];
        self.quick[page as usize & (QUICK - 1)][need as usize] = QuickEntry {
            tag: page | context,
            delta: physical.wrapping_sub(address),
        };
    }

    fn find(&self, side: usize, address: u64, asid: u16) -> Option<TlbEntry> {
        self.first[side]
            .iter()
            .find(|entry| entry.covers(address, asid))
            .copied()
    }

    fn second_index(&self, address: u64) -> usize {
        (address >> 12) as usize & self.second.len().wrapping_sub(1)
    }

    fn find_second(&self, address: u64, asid: u16) -> Option<TlbEntry> {
        let entry = self.second.get(self.second_index(address))?.as_ref()?;
        entry.covers(address, asid).then_some(*entry)
    }

    fn insert(&mut self, side: usize, entry: TlbEntry) {
        let table = &mut self.first[side];
        // A walk for additional rights replaces the entry that lacked them.
        if let Some(old) = table
            .iter_mut()
            .find(|old| old.covers(entry.start, entry.asid))
        {
            *old = entry;
            self.forget();
        } else if table.len() < self.first_size {
            table.push(entry);
        } else {
            let victim = std::mem::replace(&mut table[self.victim[side]], entry);
            self.victim[side] = (self.victim[side] + 1) % self.first_size;
            if victim.mask == 0xfff {
                let index = (victim.start >> 12) as usize & (QUICK - 1);
                let tables = if side == 0 { 2..3 } else { 0..2 };
                self.quick[index][tables].fill(EMPTY);
            } else {
                self.forget();
            }
        }
    }

    fn insert_second(&mut self, address: u64, entry: TlbEntry) {
        let index = self.second_index(address);
        if let Some(place) = self.second.get_mut(index) {
            *place = Some(entry);
        }
    }

    /// SFENCE.VMA with its optional address and address space.
    pub fn fence(&mut self, address: Option<u64>, asid: Option<u16>) {
        let stale = |entry: &TlbEntry| {
            address.is_none_or(|address| address & !entry.mask == entry.start)
                && asid.is_none_or(|asid| asid == entry.asid && entry.flags & G == 0)
        };
        for (table, victim) in self.first.iter_mut().zip(&mut self.victim) {
            table.retain(|entry| !stale(entry));
            *victim = 0;
        }
        for entry in &mut self.second {
            if entry.as_ref().is_some_and(stale) {
                *entry = None;
            }
        }
        self.forget();
    }
}

fn page_fault(need: Need) -> u64 {
    match need {
        Need::Read => cause::LOAD_PAGE,
        Need::Write => cause::STORE_PAGE,
        Need::Execute => cause::FETCH_PAGE,
    }
}

/// The access fault for this kind of access.
pub fn access_fault(need: Need) -> u64 {
    match need {
        Need::Read => cause::LOAD_ACCESS,
        Need::Write => cause::STORE_ACCESS,
        Need::Execute => cause::FETCH_ACCESS,
    }
}

impl Core {
    /// Translates an access of `bytes` bytes that lies within one page, `offset` ticks after the start of the block. Spends the
    /// time of TLB misses. May suspend within a walk, and continues it when called again.
    pub fn translate<B: Bus>(
        &mut self,
        bus: &mut B,
        address: u64,
        bytes: u64,
        need: Need,
        offset: Tick,
    ) -> Result<u64, Exit> {
        let privilege = if need == Need::Execute {
            self.privilege
        } else {
            self.data_privilege()
        };
        let machine = privilege == Privilege::Machine;
        self.memory_type = MemoryType::Pma;
        let physical = if machine || self.csr.satp >> 60 == 0 {
            address
        } else {
            self.look_up(bus, address, need, privilege, offset)?
        };
        if !self.pmp.allows(physical, bytes, need, machine) {
            return Err(Exit::Trap(Exception {
                cause: access_fault(need),
                value: address,
            }));
        }
        let page = physical & !0xfff;
        if self.memory_type == MemoryType::Pma
            && self.pmp.uniform_page(physical)
            && !bus.is_device(page)
            && bus.allows(page, 0x1000, need == Need::Write)
        {
            self.mmu.remember(need, address, physical);
        }
        Ok(physical)
    }

    fn permitted(&self, flags: u64, need: Need, privilege: Privilege) -> bool {
        let user_page = flags & U != 0;
        let mode_ok = if privilege == Privilege::User {
            user_page
        } else {
            !user_page || (need != Need::Execute && self.csr.mstatus & status::SUM != 0)
        };
        mode_ok
            && match need {
                Need::Read => {
                    flags & R != 0 || (flags & X != 0 && self.csr.mstatus & status::MXR != 0)
                }
                Need::Write => flags & W != 0,
                Need::Execute => flags & X != 0,
            }
    }

    /// Whether [`Core::translate`] would take no time: there is no translation, or the first-level TLB has the page.
    pub fn translates_at_once(&self, address: u64, need: Need) -> bool {
        if self.mmu.quick(need, address).is_some() {
            return true;
        }
        let execute = need == Need::Execute;
        let privilege = match execute {
            true => self.privilege,
            false => self.data_privilege(),
        };
        let entry = || {
            let asid = (self.csr.satp >> 44) as u16;
            self.mmu.find(!execute as usize, address, asid)
        };
        privilege == Privilege::Machine
            || self.csr.satp >> 60 == 0
            || entry().is_some_and(|entry| self.usable(&entry, need, privilege))
    }

    /// Whether a TLB entry grants the right, without another look at the tables.
    fn usable(&self, entry: &TlbEntry, need: Need, privilege: Privilege) -> bool {
        self.permitted(entry.flags, need, privilege)
            && (need != Need::Write || entry.flags & D != 0)
    }

    /// Whether the page that was translated last is accessed past the caches. Such a page is not in the quick table.
    pub fn is_uncached(&self) -> bool {
        self.memory_type != MemoryType::Pma
    }

    /// The address that an entry gives, and the type of its memory.
    fn apply(&mut self, entry: &TlbEntry, address: u64) -> u64 {
        self.memory_type = entry.memory_type;
        entry.physical | (address & entry.mask)
    }

    fn look_up<B: Bus>(
        &mut self,
        bus: &mut B,
        address: u64,
        need: Need,
        privilege: Privilege,
        offset: Tick,
    ) -> Result<u64, Exit> {
        let asid = (self.csr.satp >> 44) as u16;
        let side = (need != Need::Execute) as usize;
        let page = address >> 12;
        if !self
            .walk
            .as_ref()
            .is_some_and(|walk| walk.address >> 12 == page && walk.need == need)
        {
            if let Some(entry) = self.mmu.find(side, address, asid)
                && self.usable(&entry, need, privilege)
            {
                return Ok(self.apply(&entry, address));
            }
            if side == 0 {
                self.statistics.fetch_tlb_misses += 1;
            } else {
                self.statistics.data_tlb_misses += 1;
            }
            if !self.mmu.second.is_empty() {
                self.base += self.costs.second_tlb;
                self.statistics.stall_translation += self.costs.second_tlb;
                if let Some(entry) = self.mmu.find_second(address, asid)
                    && self.usable(&entry, need, privilege)
                {
                    self.mmu.insert(side, entry);
                    return Ok(self.apply(&entry, address));
                }
            }
            self.statistics.walks += 1;
            self.walk = Some(self.start_walk(address, need, privilege, offset));
        }
        self.spend_walk(bus)?;
        let walk = self.walk.take();
        let outcome = walk.and_then(|walk| walk.outcome);
        match outcome.expect("a walk that is spent has an outcome") {
            Ok(entry) => {
                self.mmu.insert(side, entry);
                self.mmu.insert_second(address, entry);
                Ok(self.apply(&entry, address))
            }
            Err(cause) => Err(Exit::Trap(Exception {
                cause,
                value: address,
            })),
        }
    }

    /// Reads the walk's remaining entries in order and spends their time.
    fn spend_walk<B: Bus>(&mut self, bus: &mut B) -> Result<(), Exit> {
        let Some(mut walk) = self.walk.take() else {
            return Ok(());
        };
        while walk.outcome.is_none() {
            match self.read_entry(bus, &mut walk) {
                Ok((value, at)) => {
                    let entry = walk.entry();
                    let writable = |entry| bus.allows(entry, 8, true);
                    if let Some(value) = self.next_level(&mut walk, value, writable) {
                        let place = bus.place(entry, true);
                        bus.store(self.base + walk.offset, entry, place, 8, value);
                    }
                    self.statistics.stall_translation += self.delay_until(at, walk.offset);
                }
                Err(Exit::Trap(fault)) => walk.outcome = Some(Err(fault.cause)),
                Err(exit) => {
                    self.walk = Some(walk);
                    return Err(exit);
                }
            }
        }
        // The walk's reads went through the data cache, so the last line may no longer be there.
        self.forget_lines();
        self.walk = Some(walk);
        Ok(())
    }

    /// Reads the walk's next entry. Returns its value and when it arrives.
    fn read_entry<B: Bus>(&mut self, bus: &mut B, walk: &mut Walk) -> Result<(u64, Tick), Exit> {
        if let Some(token) = walk.waiting {
            return Err(Exit::Suspend(Stop::Pending(token)));
        }
        let entry = walk.entry();
        let readable = self.pmp.allows(entry, 8, Need::Read, false);
        if !readable || bus.is_device(entry) || !bus.allows(entry, 8, false) {
            return Err(Exit::Trap(Exception {
                cause: access_fault(walk.need),
                value: walk.address,
            }));
        }
        if B::COHERENT {
            self.before_store(walk.offset)?;
        }
        self.admit(bus, entry, Purpose::Walk, walk.offset)?;
        let now = self.base + walk.offset;
        self.settle(bus);
        let timing = bus.data(now, entry, Access::Walk);
        if bus.fetched_ahead() {
            self.forget_ahead(bus);
        }
        let at = match timing {
            Timing::Hit => now + self.costs.walk_hit,
            Timing::Ready(at) | Timing::ReadyOnce(at) => at,
            Timing::Pending(token) => {
                walk.waiting = Some(token);
                self.ask_limit(bus);
                return Err(Exit::Suspend(Stop::Pending(token)));
            }
        };
        if !self.late.is_empty() {
            self.perform_there(bus, now, entry);
        }
        let place = bus.place(entry, false);
        Ok((bus.read_place(place, 8), at))
    }

    /// The line that the walk waits for has arrived: reads its entry, and sets the accessed and dirty bits.
    pub fn walk_line<M: LineBytes + ?Sized>(&mut self, token: u32, bytes: &mut M) {
        if let Some(mut walk) = self.walk.take() {
            if walk.waits_for(token) {
                let offset = walk.entry() & !self.line_mask;
                let value = bytes.read(offset, 8);
                if let Some(value) = self.next_level(&mut walk, value, |_| true) {
                    bytes.write(offset, 8, value);
                }
            }
            self.walk = Some(walk);
        }
    }

    /// Reports the completion of a read to the walk.
    pub fn complete_walk(&mut self, token: u32, at: Tick) {
        if let Some(mut walk) = self.walk.take() {
            if walk.waits_for(token) {
                walk.waiting = None;
                self.statistics.stall_translation += self.delay_until(at, walk.offset);
            }
            self.walk = Some(walk);
        }
    }

    /// A walk of the tables (section 4.3.2), before its first read.
    fn start_walk(&self, address: u64, need: Need, privilege: Privilege, offset: Tick) -> Walk {
        let canonical = (address as i64) << 25 >> 25 == address as i64;
        Walk {
            address,
            need,
            privilege,
            table: (self.csr.satp & ((1 << 44) - 1)) << 12,
            level: 2,
            outcome: (!canonical).then_some(Err(page_fault(need))),
            offset,
            waiting: None,
        }
    }

    /// Follows an entry to the next table or to the outcome. Returns the new value of the entry, if it must be written.
    fn next_level(
        &self,
        walk: &mut Walk,
        entry: u64,
        writable: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let place = walk.entry();
        walk.outcome = Some(Err(page_fault(walk.need)));
        let (reserved, types) = match self.csr.menvcfg & PBMTE {
            0 => (RESERVED, 0),
            _ => (RESERVED & !PBMT, entry & PBMT),
        };
        if entry & V == 0 || entry & reserved != 0 || entry & (R | W) == W {
            return None;
        }
        let memory_type = match types >> 61 {
            0 => MemoryType::Pma,
            1 => MemoryType::Uncached,
            2 => MemoryType::Ordered,
            _ => return None,
        };
        let number = entry >> 10 & ((1 << 44) - 1);
        if entry & (R | W | X) == 0 {
            if entry & (D | A | U | PBMT) == 0 && walk.level > 0 {
                walk.table = number << 12;
                walk.level -= 1;
                walk.outcome = None;
            }
            return None;
        }
        let mask = (1u64 << (12 + 9 * walk.level)) - 1;
        if !self.permitted(entry, walk.need, walk.privilege) || (number << 12) & mask != 0 {
            return None;
        }
        let wanted = entry | A | if walk.need == Need::Write { D } else { 0 };
        let update = wanted != entry;
        if update && !self.hardware_ad {
            return None;
        }
        if update && !(self.pmp.allows(place, 8, Need::Write, false) && writable(place)) {
            walk.outcome = Some(Err(access_fault(walk.need)));
            return None;
        }
        walk.outcome = Some(Ok(TlbEntry {
            start: walk.address & !mask,
            mask,
            physical: number << 12,
            flags: wanted & 0xff,
            memory_type,
            asid: (self.csr.satp >> 44) as u16,
        }));
        update.then_some(wanted)
    }
}
