//! What a program on a hart of a cluster waits for where memory serves the harts in turn (`policy="slots"`, `turns="hart"`), or by their shares
//! (`bandwidth-blocks`).
//!
//! Why it exists: [`super::cluster`] counts what all others have under way before each request, because a queue in order of arrival may be
//! full of it. Where each hart has a turn, only one slot of each other hart goes before an access, so the bound needs no such product.
//! What it deliberately does not know: programs, and how an alone run was made.
//!
//! # The bound
//! It holds for the programs that [`super::cluster`] names. `T` is the longest time of a job, `m` what it took alone, `Q` its requests that left
//! the first level, `R` those that went to memory, `W` the lines that it wrote there. `o` is how long a request has its bank, `s` a slot, `b` the
//! slots of a line, `n` the other harts with programs. A chain of computation and accesses decides when the job ends, and the same chain took at
//! most `m` alone. So `T` is at most `m` and what each access of the job can wait, and can itself take, longer than alone ([`Parts`]):
//! - **banks**: a request is served in order of arrival, so it has at most the requests ahead of it that the first levels of the others
//!   have under way, `u` for each: miss registers of the data cache, and two fetches. `A` times the sum of `u o`. (All may be at one bank.)
//!   `A` of the `Q` requests can be in one chain with their arrivals at the bank ([below](#requests-in-one-chain)).
//! - **own requests at banks**: beside others, the chain may wait for a request of its own hart that is not in the chain, and for each one once:
//!   `Q o`. If requests came to the banks in the order of the run alone ([`ClusterJob::came_ordered`]), each has the same own one before it there as alone, so the wait for
//!   that one is a link of the chain, too, and adds nothing. But then the chain may have each request at its bank, so others count `Q` times instead of `A` times.
//!   The least of both sums counts.
//! - **turns**: when an access is ready at memory, a slot of at most one other hart is in progress, and that hart has been served after
//!   this one. From then on, every other hart that goes first has been served longer ago than this one, and after that it has not. So one
//!   slot of each other hart goes before each burst, the one in progress included, whatever is in their queues: `(R + W) b n s`.
//!   Where memory serves by shares, [`super::shares`] counts what goes before them instead. Devices and engines have no identifier there,
//!   so all of them are one requester with the share of RCID 0.
//! - **own accesses at memory**: accesses of one hart have one queue. If they left the second level in the order of the run alone
//!   ([`ClusterJob::ordered`]), each has the same one before it on the link and in the queue as alone. Then these waits are links of the chain, and what
//!   they take alone is in `m`: they add nothing, nor do own packets on the link. Otherwise, as at the banks, the chain waits for each that is not in the chain once.
//!   A hart with one miss register has one read at memory at a time: reads of the chain wait for writes only, and writes for at most one read each:
//!   `(W + min(R, W)) b s`. With more registers `(R + W) b s`.
//! - **link to memory**: everything of the cluster takes it in order. What is transmitted within `T` and delays the chain either has its
//!   first slot within `T`, and there are at most `T / s + 1` slots; or it is still under way at the end of `T`. For each other hart, these
//!   are `r` reads and `2 r + d` writes (below). The links behind the first one have the same packets in the same order and distance, so
//!   nobody waits there. Own packets are among those with a slot within `T`: as accesses of one hart have one queue, what delays the chain
//!   is served before it. All own reads but a few at both ends (`e`, [`ClusterJob::outside`]) have one of these slots, and their packets
//!   are short: `R - e` slots transmit no line. If fewer reads than `R` went to memory, this counts too few packets, but the turns of those
//!   that did not are longer (a packet is shorter than a slot, else [`ClusterError::Links`]), so the sum is still a bound. With accesses in the order
//!   of alone, own packets delay nobody in the chain, and the slots of own writes are no slots of others, either, but for `2 r + d` at each end.
//!   Besides, a packet has at most those ahead that others have under way: `R + W` times the `r` reads and `2 r + d` writes of each, and own
//!   packets once. The least of both counts; beside devices, only the first one.
//!   With turns, link and memory together have [a third count](#turns-and-link-together).
//! - **link from memory**: answers leave memory in the order of slots, at least `s` less the difference of the latencies of reads and writes apart. A
//!   packet with a line takes no longer (otherwise [`ClusterError::Links`]), so nobody waits.
//! - **miss registers**: if each hart has its own, nobody waits for those of others. If all share them, all others that are under way may
//!   take one before a request that misses. If `g` of them must give theirs up before it gets one and there are `r`, it waits `ceil(g / r)`
//!   times the longest that another hart's read holds one: its way, its turns behind everything that its hart has under way, and the recall
//!   of the line that it replaces. If the hart has `k` reads at memory, these, the write-backs of the `k - 1` others (that of a read follows
//!   it), those of `r` fills that are over, and operations of cache management have slots up to its own. These use what miss registers of the first level
//!   the reads leave, of which two may be fetches: `d - (k - 2)` operations. The worst `k` counts ([`UnderWay::ahead`]).
//! - **own requests that pass older ones** cost what [they take](#requests-that-pass-older-ones).
//! - **refresh**: no slot begins from when a refresh is due to its end; as often as refreshes fit `T`.
//! - **clocks**: the edges that messages and packets may meet, at most one cycle less a tick each.
//! - **reservations**: a line of the hart's own that must go, for a read or an operation, waits for the hart's reservation. Each load-reserved holds its line once.
//!
//! # Beside devices and DMA engines
//! [`super::beside`] says what passes the links then. Let `p` devices and engines be at work, each a requester of its own at memory, whatever
//! its channels are.
//! - **turns**: `n + p` instead of `n`: one slot of each goes before each burst. This holds for a long access, too, which has a slot for each
//!   of its bursts and gives its turn away after each.
//! - **links to memory**: let a packet of the chain come to the cluster's link at `a`, let `h` be the way from one link to the next, and let
//!   `g` be when the router's link to memory takes it. It has waited `g - a - h`. At every moment of `a + h` to `g`, the second link
//!   transmits, or `h` earlier the first one transmits an access to registers. For if the second link is idle, the packet is not there, so
//!   the first one is busy `h` earlier; with a packet to memory, the second link would have had that packet `h` after its start, and
//!   would be busy for as long. So what the second link transmits meanwhile counts once, although there are two links, and these
//!   stretches of the chain do not overlap. It is as without devices: a packet with its first slot within `T`, of which there are `T / s + 1`,
//!   or under way at the end, at most [`Accesses::under_way`] of each device. A device's packet that is not longer than that of a line counts as a
//!   line. There are at most `y` longer ones within `T`: the slots, or what the device's rate admits; each counts with its excess. As a
//!   device's packet may have one slot only, each slot may be the first one of a packet, even if lines have several.
//! - **accesses to registers** take the first link in order with everything else of the cluster. Those ahead of a packet are under way when
//!   it comes: at most [`Rivals::reaching`] of all others, before each access of the job.
//! - **link from memory**: answers of devices must not take longer than the distance of two answers, either.
//! - **link to the cluster**: it takes inputs in turn: answers of memory, and packets of each device, engine, and tile whose memories others
//!   access. Let `l` be the time of an answer and `f` the sum of one packet of each of these. Answers come at least `l + f` apart (else [`ClusterError::Links`]). So if one waited for `f`
//!   at most, it has passed when the next one comes, which finds its input empty. Then it waits for the rest of a packet in progress
//!   and one of each further input: at most `f`. Answers of writes are shorter and no nearer.
//!
//! # Requests in one chain
//! A chain meets a request at the bank only if it comes there with it. Beside others, a request goes on when what it waits for has been answered, and there are two
//! kinds of this:
//! - an operand, the same line, or an earlier access in the same queue: the same answer is before it in the run alone, too;
//! - a miss register. Then requests hold all of them, and each of these is a link for an upper bound, because the first answer lets it go on, and so it waits for none of
//!   them longer than until that one's answer. In the run alone, some of these had been answered before the request came to its bank, because otherwise no register was
//!   free for it there. The chain goes on with such a one.
//!
//! So the chain can be chosen such that in the run alone, some request of the hart was answered between the arrivals of any two successive requests of it. Requests that are
//! under way together are alternatives: a chain has one of them. `A` is the largest number of requests of a job that are apart like this ([`ClusterJob::apart`]).
//!
//! # Requests that pass older ones
//! Those that hold the registers need not be older. A request of the hart that waits for its line (a write-back of it, or another own request for it), for its place, or for a
//! register of the first level, lets younger ones pass, which may take the register of the second level that it needs then.
//! - **A register of the first level** goes to the oldest that can use it. One that waits for its line there waits for an operation of cache management, whose register it gets.
//!   So nobody waits for a younger one.
//! - **A register of the second level** is held from when a read leaves for memory. If reads leave in the order of the run alone ([`ClusterJob::reads_ordered`]), those that hold
//!   the registers left before the request in the run alone, too, whatever their age, and one of them was answered before it left; so what the last section says holds. Otherwise
//!   a read may wait for one that follows it in the run alone. Let it lack nothing but the register from `t` on. The other one has had the register since before `t`. The
//!   chain goes on with what ended the wait before `t`, and has lost at most the other one's time: that of a read, beside waits which are counted for it as for each
//!   access. What the chain loses to one other read does not overlap, so all of this is at most `R` reads. (Registers that all share need nothing more: whoever holds
//!   one is among the `g` that must give one up.)
//! - **A place** is like a register: all that keep the places of the set are links for an upper bound. Without a register, only operations of cache
//!   management keep one, so with `r` registers nobody waits if the hart fills at least `d + r` ways. With fewer, an
//!   operation may begin while an older request waits for a register, and then keep its place. If it writes, it leaves before the request, as alone, or the order shows it.
//!   Otherwise it asks the first level for its line, at most. So each operation counts once with this, and with a wait for a shared register, because that may be taken meanwhile.
//!   If the order is not that of alone, each write counts once, too.
//!
//! # Turns and link together
//! An access that waits for one slot of each other hart meets few packets on the link, because most of these harts had nothing there before. Let `w` be the packet
//! of a line, and let `n` other harts take turns, with slots that are longer than `w` and one for each line. Consider an access of the chain that finds no access of its own hart
//! on the link or in memory, in service included, when it comes to the link at `a`. (With one register, these are all reads but those that find a write: each write is found by at most one,
//! because that one is served behind it, and but for those at the ends of the job, `e`. With more registers, there may be none.) It is at memory at `b` and served at `c`; packets take the same way from the
//! end of the link to memory, so times on the link are meant as times at memory. Let `g` be the end of the last slot of its own hart.
//!
//! Let `t` be the start of the last slot before `b` of a hart that has had another one since `g`. Slots from then to `c` belong to harts that have had none since `g`, at most one to each; let there be
//! `k`, so `k < n`. At `t` none of these `k` had an access at memory, because it would have gone first. So what they send comes after `t`, and of all packets before the access, only those of the
//! `n - k` other harts end on the link before `t`, and one more may be in progress. From `t` to `c` there are `1 + k` slots, and refreshes. If memory is idle after `t`, it is empty, so everything comes after that; as packets are shorter than slots, the link was
//! idle, too, but for a packet in progress, and at most `n` slots follow. If there is no such `t`, at most `n` slots are between `g` and `c`, and `g` is before `a`. So turn and link cost, together, at most
//! - `n s`, `w` for the packet in progress, and instead of `n - 1 - k` of these slots, the packets of the `n - k` harts that end before `t`:
//! - at most `n - k` times the most that one hart has under way (`l` ticks on the link);
//! - in all accesses together, no more than the slots of others within `T`, without the `k` slots of each such access: these serve packets that ended later. They also end after all earlier
//!   accesses of the hart were served, so they are in no link's wait of these, either. And what is under way at the end.
//!
//! All other accesses cost `n s` for turns, and packets before them: at most `n l`, and they are among the slots, too. (If such an access also spares the slots of the `k`, that is less: `(k - 1) w`. With one
//! other hart, `w` counts for it, too.) The sum is largest for some total of all `k`: both limits are straight lines in it, so it is at an end or where these meet ([`Rivals::together`]).
//!
//! # How many writes of a hart are under way
//! Let `w` be the oldest write-back of the hart that is not served and whose fill is over. When `w` left the second level, its fill still held a
//! register. A fill of this hart that began later has its read behind `w` in the hart's queue at memory, and on the link before, so it is not over.
//! So the write-backs whose fills are over belong to fills that held a register at that moment, at most `r`, and the others to
//! fills that hold one now. Each operation of cache management writes at most one line, and has a miss register `d` of the first level. A write takes the
//! turn of the hart whose fill or operation sends it, so lines that others stored to never take turns of the victim.

use super::beside::{Accesses, Part};
use super::bound::{Bound, Method, ResourceWait};
use super::cluster::{ClusterError, ClusterJob};
use super::interference::{least_window, outages};
use super::scenario::{CommunicationError, Outage, Ticks};
use super::shares::Shares;

/// The requests that a hart can have under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnderWay {
    /// Data requests, as many as its data cache has miss registers.
    pub data: u64,
    /// These and its fetches.
    pub all: u64,
    /// Miss registers of the second level that it can have.
    pub registers: u64,
    /// The longest for which its first level keeps a line that is recalled.
    pub recall: Ticks,
}

/// Times of the chip, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// How long a request has its bank.
    pub bank: Ticks,
    /// A slot.
    pub slot: Ticks,
    /// Slots of a line.
    pub bursts: u64,
    /// Packets of a read's request, and of a line that is written.
    pub packets: [Ticks; 2],
    /// The longest packet of an access to a register.
    pub register: Ticks,
    /// The amount by which a request, a read and a write can exceed the least that they take.
    pub excess: [Ticks; 3],
    /// Maximum time of a read that waits for nobody.
    pub read: Ticks,
    /// The same of a write.
    pub write: Ticks,
    /// How long a reservation holds its line.
    pub hold: Ticks,
    /// Refreshes.
    pub refresh: Option<Outage>,
}

/// How memory chooses whom it serves in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The hart that was served least recently.
    Turns,
    /// By shares: first that of the program's hart, then those of the others in their order, then that of all devices.
    Shares(Shares),
}

/// A cluster as one of its programs meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rivals {
    /// The program's hart.
    pub own: UnderWay,
    /// The ways that it fills.
    pub ways: u64,
    /// The harts of the others.
    pub others: Vec<UnderWay>,
    /// Miss registers of the second level, if all share them.
    pub shared: Option<u64>,
    pub times: Times,
    pub order: Order,
    /// Devices and engines at work.
    pub beside: Vec<Part>,
    /// Accesses to registers that others can have under way.
    pub reaching: u64,
}

/// Parts of the bound, in their order in the module's documentation. Numbers name them in tests.
pub(super) const PARTS: [&str; 13] = [
    "banks of the second level",
    "own requests at banks",
    "slots of others in memory",
    "own accesses at memory",
    "link to memory",
    "miss registers",
    "refresh",
    "edges of clocks",
    "own reservations",
    "packets of devices on the link to memory",
    "accesses to registers on the link to memory",
    "packets of devices on the link from memory",
    "own requests that pass older ones",
];

impl UnderWay {
    /// The most accesses of this hart that memory serves from when a read of it is sent to when that is served, if all share the registers.
    fn ahead(&self) -> u64 {
        let fetches = self.all - self.data;
        let reads = 1..=self.registers.max(1).min(self.all);
        let all = reads.map(|reads| {
            let managed = self.data - reads.saturating_sub(fetches).min(self.data);
            // Its own write-back follows it.
            reads + (reads - 1) + self.registers + managed
        });
        all.max().unwrap_or(0)
    }
}

impl Rivals {
    /// The longest time of a job that did this alone.
    pub fn job(&self, job: &ClusterJob) -> Result<Bound, ClusterError> {
        self.without(job, None)
    }

    /// The same without the part of this number, for tests that show why the part is needed.
    pub fn without(&self, job: &ClusterJob, part: Option<usize>) -> Result<Bound, ClusterError> {
        let counts = |window: u128| -> [u128; PARTS.len()] {
            let mut all = self.parts(job, window);
            if let Some(part) = part {
                all[part] = 0;
            }
            all
        };
        let sum = |window: u128| {
            let all = counts(window);
            all.iter()
                .fold(u128::from(job.time), |sum, one| sum.saturating_add(*one))
        };
        // Beyond 64 bits there is no answer anyway.
        let window = least_window(u64::MAX.into(), sum).ok_or(match self.order {
            Order::Turns => ClusterError::Links,
            Order::Shares(_) => ClusterError::NoTimeLeft,
        })?;
        let method = match self.order {
            Order::Turns => Method::Turns,
            Order::Shares(_) => Method::Shares,
        };
        let fit = |ticks: u128| Ticks::try_from(ticks).map_err(|_| CommunicationError::TooLarge);
        let mut breakdown = Vec::new();
        for (name, wait) in PARTS.iter().zip(counts(window)) {
            breakdown.push(ResourceWait {
                resource: (*name).to_owned(),
                wait: fit(wait)?,
                method,
            });
        }
        Ok(Bound {
            path: fit(window)?,
            lumped: None,
            uncontended: job.time,
            own_bucket: 0,
            breakdown,
            method,
        })
    }

    /// The value of each part in a window of this length.
    fn parts(&self, job: &ClusterJob, window: u128) -> [u128; PARTS.len()] {
        let Times {
            bank,
            slot,
            bursts,
            register,
            excess,
            hold,
            ..
        } = self.times;
        let [bank, slot, bursts, register, hold] =
            [bank, slot, bursts, register, hold].map(u128::from);
        let [requests, reads, writes, managed, reservations] = [
            job.requests,
            job.reads,
            job.writes,
            job.managed,
            job.reservations,
        ]
        .map(u128::from);
        let waiting: u128 = self.others.iter().map(|one| u128::from(one.all)).sum();
        let queued = match self.own.registers {
            _ if job.ordered => 0,
            0 | 1 => writes + reads.min(writes),
            _ => reads + writes,
        };
        let mut at_banks = [requests.min(job.apart.into()) * waiting, requests];
        if job.came_ordered && requests * waiting < at_banks[0] + at_banks[1] {
            at_banks = [requests * waiting, 0];
        }
        let clocks = [requests, reads, writes].into_iter().zip(excess);
        let at_memory = reads + writes > 0;
        let when = |there: bool, ticks: u128| if there { ticks } else { 0 };
        [
            at_banks[0] * bank,
            at_banks[1] * bank,
            self.before(0, (reads + writes) * bursts, window),
            queued * bursts * slot,
            when(at_memory, self.link(window, job)),
            reads * self.register(),
            when(at_memory, outages(self.times.refresh.as_ref(), window)),
            clocks.map(|(count, each)| count * u128::from(each)).sum(),
            (reads + managed).min(reservations) * hold,
            when(at_memory, self.devices(window)),
            (reads + writes) * u128::from(self.reaching) * register,
            (reads + writes) * self.back(),
            self.passed(job),
        ]
    }

    /// What own requests cost that pass older ones and then have their register or their place.
    fn passed(&self, job: &ClusterJob) -> u128 {
        let Times { read, write, .. } = self.times;
        let [reads, writes, managed] = [job.reads, job.writes, job.managed].map(u128::from);
        let own = &self.own;
        let mut passed = 0;
        if !job.reads_ordered && own.registers < own.all && self.register() == 0 {
            passed += reads * u128::from(read);
        }
        if managed > 0 && self.ways < own.data + own.registers {
            let recall = own.recall.saturating_sub(self.times.hold);
            passed += managed * (u128::from(recall) + self.register());
            passed += if job.ordered {
                0
            } else {
                writes * u128::from(write)
            };
        }
        passed
    }

    /// Others that have slots of their own in memory.
    fn requesters(&self) -> u128 {
        (self.others.len() + self.accesses().count()) as u128
    }

    /// The accesses of devices and engines to memory.
    fn accesses(&self) -> impl Iterator<Item = &Accesses> {
        self.beside.iter().filter_map(|part| part.accesses.as_ref())
    }

    /// One packet of each device to the cluster.
    fn back(&self) -> u128 {
        self.beside.iter().map(|part| u128::from(part.back)).sum()
    }

    /// Slots that begin within a window.
    fn slots(&self, window: u128) -> u128 {
        window / u128::from(self.times.slot.max(1)) + 1
    }

    /// What packets of devices cost on the link to memory beyond those that count as a line.
    fn devices(&self, window: u128) -> u128 {
        let line = self.times.packets.into_iter().max().unwrap_or(0);
        let each = self.accesses().map(|accesses| {
            let left = u128::from(accesses.under_way) * u128::from(accesses.longest);
            let slots = self.slots(window);
            let long = accesses.long(window).map_or(slots, |long| long.min(slots));
            left + long * u128::from(accesses.longest.saturating_sub(line))
        });
        each.sum()
    }

    /// Slots of others before this many slots of the program's hart (0) or of another one, in a job of this length.
    fn before(&self, who: usize, slots: u128, window: u128) -> u128 {
        match &self.order {
            Order::Turns => slots * self.requesters() * u128::from(self.times.slot),
            Order::Shares(shares) => shares.before(who, slots, window, self.times.slot),
        }
    }

    /// Packets that pass the first link within a window.
    fn link(&self, window: u128, job: &ClusterJob) -> u128 {
        let [read, write] = self.times.packets.map(u128::from);
        let slots = self.slots(window);
        let served = match u128::from(self.times.bursts) {
            _ if self.accesses().next().is_some() => slots,
            0 | 1 => slots,
            // The first slots of lines of different harts may follow each other.
            bursts => slots.div_ceil(bursts) + 1 + self.others.len() as u128,
        };
        let left = self.others.iter().map(|one| self.packets(one));
        // Otherwise, no turn would pay for a read that was counted but does not exist.
        let mut inside = job.reads.saturating_sub(job.outside);
        let [mut own_read, mut own_write] = [read, write];
        if job.ordered && self.beside.is_empty() {
            let under_way = 2 * self.own.registers + self.own.data;
            inside += job.writes.saturating_sub(job.outside + 2 * under_way);
            [own_read, own_write] = [0, 0];
        }
        let pays = match &self.order {
            Order::Turns => self.requesters() > 0,
            Order::Shares(shares) => shares.pays(0),
        };
        let own = match pays {
            false => 0,
            true => served.min(inside.into()),
        };
        let left = left.sum::<u128>();
        let own_reads = u128::from(job.reads) * own_read;
        let within = (served - own) * read.max(write) + own_reads + left;
        let turn = u128::from(self.times.slot * self.times.bursts);
        if !self.beside.is_empty() || read.max(write) >= turn {
            return within;
        }
        // Before each access, what others have under way.
        let [reads, writes] = [job.reads, job.writes].map(u128::from);
        let within = within.min((reads + writes) * left + own_reads + writes * own_write);
        match self.times.bursts {
            0 | 1 => {
                let together = self.together(served - own, writes * own_write, job);
                within.min(together.saturating_add(own_reads))
            }
            _ => within,
        }
    }

    /// What one hart has under way takes so long on the link.
    fn packets(&self, one: &UnderWay) -> u128 {
        let [read, write] = self.times.packets.map(u128::from);
        let registers = u128::from(one.registers);
        registers * read + (2 * registers + u128::from(one.data)) * write
    }

    /// The most that the link costs beyond the slot of each other hart before each access, where both are counted together: packets of others that are among
    /// this many slots. `written`: lines of the hart itself, which are among the slots, too.
    fn together(&self, slots: u128, written: u128, job: &ClusterJob) -> u128 {
        let line = self.times.packets.into_iter().max().unwrap_or(0);
        let [line, slot] = [line, self.times.slot].map(i128::from);
        if self.order != Order::Turns || self.others.is_empty() {
            return u128::MAX;
        }
        let fit = |count: u128| i128::try_from(count).unwrap_or(i128::MAX);
        let harts = self.others.len() as i128;
        let each = || self.others.iter().map(|one| fit(self.packets(one)));
        let (most, left) = (each().max().unwrap_or(0), each().sum::<i128>());
        let [slots, written] = [slots, written].map(fit);
        let [reads, writes, outside] = [job.reads, job.writes, job.outside].map(i128::from);
        let all = reads + writes;
        let found = match self.own.registers {
            0 | 1 => all.min(writes + reads.min(writes) + outside),
            _ => all,
        };
        let alone = all - found;
        // Packets in progress, by the first limit and by the second one.
        let begun = if harts == 1 { all } else { alone };
        let within = |spared: i128| line * (begun + (slots - spared).max(0)) + left;
        let under_way = |spared: i128| line * all + most * (harts * all - spared) + written;
        let end = (harts - 1) * alone;
        let cost = |spared: i128| within(spared).min(under_way(spared)) - slot * (end - spared);
        // Where the limits meet, before the slots are used up and behind.
        let apart = under_way(0) - line * begun - left;
        let meet = [
            (apart - line * slots).checked_div(most - line),
            apart.checked_div(most),
        ];
        let meet = meet.into_iter().flatten().flat_map(|at| [at, at + 1]);
        let all = meet.chain([0, slots, end]).map(|at| cost(at.clamp(0, end)));
        all.max().unwrap_or(0).max(0) as u128
    }

    /// The longest wait for a miss register of others.
    fn register(&self) -> u128 {
        let Some(registers) = self.shared.filter(|_| !self.others.is_empty()) else {
            return 0;
        };
        let registers = u128::from(registers.max(1));
        let harts = || std::iter::once(&self.own).chain(&self.others);
        let under_way: u128 = harts().map(|one| u128::from(one.all)).sum();
        let give_up = under_way.saturating_sub(registers);
        if give_up == 0 {
            return 0;
        }
        let [slot, bursts] = [self.times.slot, self.times.bursts].map(u128::from);
        let writes = |one: &UnderWay| u128::from(2 * one.registers + one.data);
        let on_link: u128 = harts().map(|one| self.packets(one)).sum();
        // One packet of each device goes before each packet of the cluster, and before each answer.
        let packets: u128 = harts()
            .map(|one| u128::from(one.registers) + writes(one))
            .sum();
        let longest = self.accesses().map(|accesses| accesses.longest);
        let devices = packets * longest.map(u128::from).sum::<u128>() + self.back();
        let on_link =
            on_link + devices + u128::from(self.reaching) * u128::from(self.times.register);
        let held = |(who, one): (usize, &UnderWay)| {
            let ahead = u128::from(one.ahead()) * bursts;
            let whole = u128::from(self.times.read) + on_link + ahead * slot;
            let answered = least_window(u64::MAX.into(), |window| {
                let turns = self.before(who, ahead, window);
                whole + turns + outages(self.times.refresh.as_ref(), window)
            });
            answered
                .unwrap_or(u128::from(u64::MAX))
                .max(one.recall.into())
        };
        let held = harts().enumerate().map(held).max().unwrap_or(0);
        give_up.div_ceil(registers) * held
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
