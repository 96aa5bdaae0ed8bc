//! A memory controller with its DRAM: banks with open rows, a data bus, refresh.
//!
//! Why it exists: a good part of the interference between tiles depends on whether a neighbour's row, bank or burst is in the way.
//! Requests are served first come, first served. Because that order is known at arrival, the whole schedule of a request is
//! computed then, and no further event is needed until its data is complete. Rows stay open after an access. Addresses are divided
//! as row : bank : column, so a row's worth of consecutive bytes is in one bank. What it deliberately does not know: networks,
//! tiles, and the bytes stored.
//!
//! Parameters and their meaning follow the JEDEC DDR3 standard (JESD79-3): tCL, tRCD, tRP, tWR, tREFI, tRFC; a column access may
//! follow the previous one of its bank after the latter's burst. Constraints between banks (tRRD, tFAW), tRAS and bus turn-around
//! are not modelled.

pub mod bandwidth;
pub mod banks;
mod channel;
pub mod controller;
pub mod map;
mod tile;

pub use tile::MemoryController;

use crate::config::DramConfig;
use crate::ledger::{Ledger, Resource};
use crate::noc::Account;
use crate::types::{Owner, Tick, TileId, align};
use std::collections::VecDeque;

/// Statistics of a memory tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramStatistics {
    /// Requests read.
    pub reads: u64,
    /// Requests written.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bursts that found their row open.
    pub row_hits: u64,
    /// Bursts that found their bank closed.
    pub row_misses: u64,
    /// Bursts that found another row open.
    pub row_conflicts: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// Ticks in which the data bus moved data.
    pub bus_busy: Tick,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    owner: Owner,
    end: Tick,
}

/// The owners of a resource and the ends of their reservations, in time order.
#[derive(Clone, Debug, Default)]
struct Schedule {
    held: VecDeque<Held>,
    free_at: Tick,
}

impl Schedule {
    fn prune(&mut self, now: Tick) {
        while self.held.front().is_some_and(|h| h.end <= now) {
            self.held.pop_front();
        }
    }

    fn reserve(&mut self, owner: Owner, end: Tick) {
        match self.held.back_mut() {
            Some(last) if last.owner == owner => last.end = end,
            _ => self.held.push_back(Held { owner, end }),
        }
        self.free_at = end;
    }

    /// Charges the wait `from..until` to the owners that hold the resource meanwhile. A gap before a reservation belongs to it,
    /// because all later requests wait for that earlier one.
    fn book(
        &self,
        ledger: &mut Ledger,
        account: &mut Account,
        victim: Owner,
        resource: Resource,
        from: Tick,
        until: Tick,
    ) {
        let mut at = from;
        let mut last = victim;
        for h in &self.held {
            if at >= until {
                return;
            }
            last = h.owner;
            if h.end > at {
                let end = h.end.min(until);
                ledger.wait(account, victim, h.owner, resource, end - at);
                at = end;
            }
        }
        if at < until {
            ledger.wait(account, victim, last, resource, until - at);
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Bank {
    open: Option<(u64, Owner)>,
    /// Column accesses. Free when the next one may begin.
    columns: Schedule,
    /// Earliest moment of a precharge, and whose access set it.
    closes: Option<(Tick, Owner)>,
}

/// What a due refresh waits for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// The data on the bus.
    Bus,
    /// A column access of a bank.
    Columns(usize),
    /// A bank whose row may not be closed earlier.
    Row(usize, Owner),
}

/// Work of a bank for a request. For tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankActivity {
    /// The bank.
    pub bank: u16,
    /// The owner of the request.
    pub owner: Owner,
    /// First command to the bank.
    pub start: Tick,
    /// End of its data.
    pub end: Tick,
}

/// A memory controller with one channel.
#[derive(Clone, Debug)]
pub struct Dram {
    config: DramConfig,
    tile: TileId,
    banks: Vec<Bank>,
    bus: Schedule,
    next_refresh: Tick,
    /// What the last refresh had to wait for, and until when.
    refreshed_after: Option<(Before, Tick)>,
    refreshed_until: Tick,
    statistics: DramStatistics,
}

impl Dram {
    /// The controller of memory tile `tile`. All banks are closed, and the first refresh is due after one interval.
    pub fn new(config: &DramConfig, tile: TileId) -> Self {
        let interval = config.refresh_interval * config.cycle;
        Self {
            config: config.clone(),
            tile,
            banks: vec![Bank::default(); config.banks as usize],
            bus: Schedule::default(),
            next_refresh: if interval == 0 { Tick::MAX } else { interval },
            refreshed_after: None,
            refreshed_until: 0,
            statistics: DramStatistics::default(),
        }
    }

    /// Statistics so far.
    pub fn statistics(&self) -> &DramStatistics {
        &self.statistics
    }

    /// Ticks for which a burst occupies the data bus: two beats per cycle.
    fn burst_ticks(&self) -> Tick {
        (self.config.burst as u64).div_ceil(2 * self.config.bus as u64) * self.config.cycle
    }

    fn refresh(&mut self, moment: Tick) {
        while self.next_refresh <= moment {
            // All banks must be precharged first, so a refresh waits for requests accepted before it was due.
            let mut start = align(self.next_refresh, self.config.cycle);
            self.refreshed_after = None;
            let mut after = |before, until| {
                if until > start {
                    start = until;
                    self.refreshed_after = Some((before, until));
                }
            };
            after(Before::Bus, self.bus.free_at);
            let mut open = false;
            for (index, bank) in self.banks.iter().enumerate() {
                if let Some((closes, owner)) = bank.closes {
                    after(Before::Row(index, owner), closes);
                }
                after(Before::Columns(index), bank.columns.free_at);
                open |= bank.open.is_some();
            }
            if open {
                start += self.config.precharge * self.config.cycle;
            }
            self.refreshed_until = start + self.config.refresh * self.config.cycle;
            for bank in &mut self.banks {
                bank.open = None;
            }
            self.next_refresh += self.config.refresh_interval * self.config.cycle;
            self.statistics.refreshes += 1;
        }
    }

    /// Takes a request that arrives at `now`, and returns when its last byte is transferred. Accounts for the whole time; `observe`
    /// receives each bank's work.
    #[allow(clippy::too_many_arguments)]
    pub fn access(
        &mut self,
        now: Tick,
        address: u64,
        bytes: u32,
        write: bool,
        owner: Owner,
        account: &mut Account,
        ledger: &mut Ledger,
        mut observe: Option<&mut dyn FnMut(BankActivity)>,
    ) -> Tick {
        let cycle = self.config.cycle;
        let burst = self.config.burst as u64;
        let burst_ticks = self.burst_ticks();
        if write {
            self.statistics.writes += 1;
            self.statistics.written_bytes += bytes as u64;
        } else {
            self.statistics.reads += 1;
            self.statistics.read_bytes += bytes as u64;
        }
        // `at`: everything before it has been accounted for.
        let ready = align(now, cycle) + self.config.frontend * cycle;
        account.service += ready - now;
        let mut at = ready;
        let first = address / burst;
        let last = (address + bytes.max(1) as u64 - 1) / burst;
        for line in first..=last {
            at = self.burst(
                ready,
                at,
                line * burst,
                write,
                owner,
                account,
                ledger,
                &mut observe,
                burst_ticks,
            );
        }
        at
    }

    /// Books the wait from `at` until the last refresh could begin to the owners that it had to wait for. Returns the end of that wait.
    fn book_before_refresh(
        &self,
        ledger: &mut Ledger,
        account: &mut Account,
        victim: Owner,
        at: Tick,
    ) -> Tick {
        let memory = self.tile;
        let bank_resource = |bank: usize| Resource::DramBank {
            memory,
            bank: bank as u16,
        };
        match self.refreshed_after {
            Some((before, until)) if until > at => {
                match before {
                    Before::Bus => {
                        let bus = Resource::DramBus(memory);
                        self.bus.book(ledger, account, victim, bus, at, until);
                    }
                    Before::Columns(bank) => {
                        let columns = &self.banks[bank].columns;
                        columns.book(ledger, account, victim, bank_resource(bank), at, until);
                    }
                    Before::Row(bank, owner) => {
                        ledger.wait(account, victim, owner, bank_resource(bank), until - at);
                    }
                }
                until
            }
            _ => at,
        }
    }

    /// One burst of a request that has been ready since `ready`. Time is accounted for up to `at`.
    #[allow(clippy::too_many_arguments)]
    fn burst(
        &mut self,
        ready: Tick,
        mut at: Tick,
        address: u64,
        write: bool,
        owner: Owner,
        account: &mut Account,
        ledger: &mut Ledger,
        observe: &mut Option<&mut dyn FnMut(BankActivity)>,
        burst_ticks: Tick,
    ) -> Tick {
        let cycle = self.config.cycle;
        let index = ((address / self.config.row) % self.config.banks as u64) as usize;
        let row = address / self.config.row / self.config.banks as u64;
        let bank_resource = Resource::DramBank {
            memory: self.tile,
            bank: index as u16,
        };
        // The commands of the second and later bursts are issued while the first ones transfer: `command` may lie before `at`, and
        // only the part after `at` costs the request time.
        let mut command = ready;
        self.banks[index].columns.prune(ready);
        self.bus.prune(ready);
        let free = self.banks[index].columns.free_at;
        if free > command {
            if free > at {
                let bank = &self.banks[index];
                bank.columns
                    .book(ledger, account, owner, bank_resource, at, free);
                at = free;
            }
            command = free;
        }
        self.refresh(command);
        if self.refreshed_until > command {
            command = self.refreshed_until;
            if command > at {
                at = self.book_before_refresh(ledger, account, owner, at);
                ledger.wait(
                    account,
                    owner,
                    owner,
                    Resource::Refresh(self.tile),
                    command - at,
                );
                at = command;
            }
        }
        let start = command;
        match self.banks[index].open {
            Some((open, _)) if open == row => self.statistics.row_hits += 1,
            None => {
                self.statistics.row_misses += 1;
                command += self.config.activate * cycle;
                // A bank that opens while earlier bursts transfer costs the request nothing.
                account.service += command.saturating_sub(at);
                at = at.max(command);
            }
            Some((_, opener)) => {
                self.statistics.row_conflicts += 1;
                let closes = self.banks[index].closes.map_or(0, |(closes, _)| closes);
                command =
                    command.max(closes) + (self.config.precharge + self.config.activate) * cycle;
                if command > at {
                    ledger.wait(
                        account,
                        owner,
                        opener,
                        Resource::DramRow(self.tile),
                        command - at,
                    );
                    at = command;
                }
            }
        }
        if self.banks[index].open.is_none_or(|(open, _)| open != row) {
            self.banks[index].open = Some((row, owner));
        }
        // Column access: data follows after tCL, when the bus is free.
        let data = command + self.config.cas * cycle;
        let bus_at = self.bus.free_at;
        let data_start = data.max(bus_at);
        if data > at {
            account.service += data - at;
            at = data;
        }
        if data_start > at {
            self.bus.book(
                ledger,
                account,
                owner,
                Resource::DramBus(self.tile),
                at,
                data_start,
            );
            at = data_start;
        }
        let end = data_start + burst_ticks;
        account.service += end - at;
        self.bus.reserve(owner, end);
        self.statistics.bus_busy += burst_ticks;
        let bank = &mut self.banks[index];
        bank.columns
            .reserve(owner, data_start - self.config.cas * cycle + burst_ticks);
        let recovered = end
            + if write {
                self.config.write_recovery * cycle
            } else {
                0
            };
        if bank.closes.is_none_or(|(closes, _)| recovered > closes) {
            bank.closes = Some((recovered, owner));
        }
        if let Some(observe) = observe {
            observe(BankActivity {
                bank: index as u16,
                owner,
                start,
                end,
            });
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Owner = Owner::new(0, 0);
    const B: Owner = Owner::new(1, 0);

    /// 5 ticks per cycle; cas 11, activate 12, precharge 13, recovery 14, burst 64 B over 8 B at two beats: 4 cycles.
    fn config() -> DramConfig {
        DramConfig {
            cycle: 5,
            banks: 8,
            row: 8192,
            bus: 8,
            burst: 64,
            cas: 11,
            activate: 12,
            precharge: 13,
            write_recovery: 14,
            refresh_interval: 0,
            refresh: 100,
            frontend: 10,
            controller: None,
            bandwidth: None,
            shares: Vec::new(),
        }
    }

    struct Bench {
        dram: Dram,
        ledger: Ledger,
    }

    impl Bench {
        fn new(config: &DramConfig) -> Self {
            Self {
                dram: Dram::new(config, 9),
                ledger: Ledger::new(),
            }
        }
        fn access(
            &mut self,
            now: Tick,
            address: u64,
            bytes: u32,
            write: bool,
            owner: Owner,
        ) -> Tick {
            let mut account = Account::new(now);
            let end = self.dram.access(
                now,
                address,
                bytes,
                write,
                owner,
                &mut account,
                &mut self.ledger,
                None,
            );
            assert_eq!(account.accounted(), end);
            end
        }
        fn booked(&self, victim: Owner, culprit: Owner, resource: Resource) -> Tick {
            self.ledger
                .bookings()
                .iter()
                .filter(|b| b.victim == victim && b.culprit == culprit && b.resource == resource)
                .map(|b| b.ticks)
                .sum()
        }
    }

    #[test]
    fn row_miss_hit_and_conflict() {
        let mut b = Bench::new(&config());
        // Closed bank: frontend 10 + activate 12 + cas 11 + burst 4 = 37 cycles of 5 ticks = 185.
        assert_eq!(b.access(0, 0, 64, false, A), 185);
        // Open row: 10 + 11 + 4 = 25 cycles = 125.
        assert_eq!(b.access(1000, 64, 64, false, A), 1125);
        // Another row of the same bank (8 banks x 8192 bytes further): 10 + 13 + 12 + 11 + 4 = 50 cycles = 250. The precharge and
        // activation, 25 cycles, are charged to the owner that opened the row.
        assert_eq!(b.access(2000, 65536, 64, false, B), 2250);
        assert_eq!(b.booked(B, A, Resource::DramRow(9)), 125);
        // Another bank, which is closed: 185 again, and no request waits.
        assert_eq!(b.access(3000, 8192, 64, false, B), 3185);
        assert_eq!(b.ledger.totals(), [(B, 125)]);
        let s = b.dram.statistics();
        assert_eq!((s.row_hits, s.row_misses, s.row_conflicts), (1, 2, 1));
    }

    #[test]
    fn arrival_between_clock_edges_waits_for_the_edge() {
        let mut b = Bench::new(&config());
        // Edge at 5: 5 + 185.
        assert_eq!(b.access(1, 0, 64, false, A), 190);
    }

    #[test]
    fn write_recovery_delays_the_precharge() {
        let mut b = Bench::new(&config());
        // Row miss: data ends at 185; precharge not before 185 + 14 * 5 = 255.
        assert_eq!(b.access(0, 0, 64, true, A), 185);
        // Arrives at 150, ready at 200, waits for the precharge until 255, then 13 + 12 + 11 + 4 = 40 cycles = 200.
        assert_eq!(b.access(150, 65536, 64, false, B), 455);
        // Everything between ready (200) and the column access (255 + 125) is charged to the opener: 180.
        assert_eq!(b.booked(B, A, Resource::DramRow(9)), 180);
    }

    #[test]
    fn bursts_of_a_chunk_follow_each_other_on_the_bus() {
        let mut b = Bench::new(&config());
        // 512 bytes: 8 bursts of 4 cycles after the first data: 10 + 12 + 11 + 32 = 65 cycles = 325.
        assert_eq!(b.access(0, 0, 512, false, A), 325);
        assert_eq!(b.dram.statistics().bus_busy, 160);
        assert!(b.ledger.totals().is_empty());
    }

    #[test]
    fn data_bus_is_shared_by_banks() {
        let mut b = Bench::new(&config());
        // A's chunk (row miss) has the bus from (10+12+11)*5 = 165 to 325.
        b.access(0, 0, 512, false, A);
        // B's burst in another bank could also start its data at 165, but waits for the bus: 160 ticks.
        assert_eq!(b.access(0, 8192, 64, false, B), 345);
        assert_eq!(b.booked(B, A, Resource::DramBus(9)), 160);
    }

    #[test]
    fn a_bank_takes_one_column_access_a_burst() {
        let mut b = Bench::new(&config());
        b.access(0, 0, 64, false, A);
        // Same row, same moment: B is ready at 50; A's column access is at 50 + 60 = 110 and the next may begin at 130.
        // Data 130 + 55 = 185 to 205. B waits 80 ticks for the bank.
        assert_eq!(b.access(0, 64, 64, false, B), 205);
        assert_eq!(
            b.booked(B, A, Resource::DramBank { memory: 9, bank: 0 }),
            80
        );
    }

    #[test]
    fn refresh_closes_rows_and_takes_its_time() {
        let mut c = config();
        c.refresh_interval = 1000;
        let mut b = Bench::new(&c);
        b.access(0, 0, 64, false, A);
        // Due at 5000; a row is open: precharge 65, refresh 500: until 5565. Ready at 5050 waits 515 ticks, then finds
        // the bank closed: (12 + 11 + 4) * 5 = 135.
        assert_eq!(b.access(5000, 0, 64, false, A), 5700);
        assert_eq!(b.booked(A, A, Resource::Refresh(9)), 515);
        // After a long idle time, refreshes at 10000 .. 95000 are over before the one at 100000, which is due when the request
        // arrives at 99990 -> ready 100040: closed banks, until 100500; then 135. The one at 10000 precharges first; the later ones
        // find all banks closed.
        assert_eq!(b.access(99_990, 0, 64, false, A), 100_635);
        assert_eq!(b.dram.statistics().refreshes, 20);
    }

    #[test]
    fn a_wait_for_others_before_a_refresh_is_theirs() {
        let mut c = config();
        c.refresh_interval = 1000;
        let mut b = Bench::new(&c);
        // A writes: ready at 4950, data until 4950 + (12 + 11 + 4) * 5 = 5085, recovered 70 later. So the refresh that is due at 5000 begins
        // at 5155 with the precharge, 65, and ends 500 later.
        b.access(4900, 0, 64, true, A);
        // B wants another bank: ready at 5050.
        assert_eq!(b.access(5000, 8192, 64, false, B), 5720 + 135);
        let bank = Resource::DramBank { memory: 9, bank: 0 };
        assert_eq!(b.booked(B, A, bank), 5155 - 5050);
        assert_eq!(b.booked(B, B, Resource::Refresh(9)), 65 + 500);
    }

    proptest! {
        #[test]
        fn every_tick_is_accounted_for(requests in prop::collection::vec((0u64..300, 0u64..1 << 18, 1u32..=512, any::<bool>(), 0u16..4), 1..80)) {
            let mut c = config();
            c.refresh_interval = 2000;
            let mut b = Bench::new(&c);
            let mut now = 0;
            let mut end = 0;
            let mut waited = 0;
            for (gap, address, bytes, write, tile) in requests {
                now += gap;
                let mut account = Account::new(now);
                let owner = Owner::new(tile, 0);
                let done = b.dram.access(now, address, bytes, write, owner, &mut account, &mut b.ledger, None);
                prop_assert_eq!(account.accounted(), done);
                // The bus is granted in order of arrival, so ends never go back.
                prop_assert!(done > end);
                end = done;
                waited += account.waited;
            }
            prop_assert_eq!(b.ledger.totals().iter().map(|t| t.1).sum::<u64>(), waited);
        }
    }
}
