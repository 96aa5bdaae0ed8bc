//! The cost of a memory access, for each kind of controller.
//!
//! Why it exists: there are many constraints between DRAM commands, and their worst case depends on the policy. It knows one memory's
//! parameters; the scenario knows the memory's other users.
//!
//! **Constraints.** Let `row` be the longest from one column access to the next, if that needs another row: the last
//! access ends (tRTP, or tCWL + burst + tWR) or tRAS passes, the row is closed (tRP), activations before it use up the four of their
//! window, the row is opened (tRCD), and each of the three commands finds the command bus taken once by a younger
//! request (what else such a command costs is its request's own). When its bank lets a row be opened, all activations of others
//! are past, and each is tRRD after the one before: so the window costs tFAW - 3 tRRD, or tRRD. Where younger requests are waited for, one that has just come may
//! spend all of its front end meanwhile, if that takes longer than the row has to stay open. Let `turn` be the longest from one column
//! access to the next in an open row: the burst, or the turn-around of the bus.
//! - `fcfs`: columns are accessed in order of arrival, so nobody comes between the bursts of an access, and the oldest request's commands go
//!   first. Rows are closed and opened for the oldest request of a bank; so when an access is the oldest, all column accesses of its bank are past,
//!   and each open row has had tRCD of its tRAS then. An access begins when all before it have left their rows, that is, when these may be
//!   closed and the bus has turned; it opens its row, and moves its bursts. If it has rows in two banks, both are opened at the same time, and the
//!   second one waits for the activation of the first one, and for its commands.
//! - `fr-fcfs`: columns of others may come between its bursts: `turn` for each but the first of a row. From when nothing older is left until it
//!   is served, at most `cap` bursts pass that hits of its bank or the bus let pass; until each of them, the longer of `turn` and the
//!   last access of the bank to its precharge goes by, and `turn`. Bursts that pass while its row is closed and opened cost nothing else.
//! - any policy with a write queue: each burst takes `row + turn`, whatever was moved before it. See below.
//! - `slots`: each burst takes one slot, in turns of the tiles.
//!
//! **Write queues.** Reads and drained writes come in turns. While reads wait, a drain moves at most as many bursts as the queue holds (`s`), and the
//! next one begins only when as many bursts of the oldest read as it moved, `s` at most, have followed.
//! - A read comes when `n` bursts of older reads and of itself are left. All drains but the last are followed by as many of those bursts, so
//!   all of them together move at most `n + s`.
//! - A write waits until there is room: until the posted bursts (`s`, or one write that is longer) and the older waiting ones, `b` in all,
//!   are drained. Meanwhile every drain moves `s` (or no read waits), and `s` bursts of the oldest reads follow each, and one that was
//!   under way when the write came: at most `b + s`, each with the bursts that may pass it.
//! - A write that comes can begin a drain just before the oldest read would have moved its burst, and its row must be opened again
//!   afterwards: `row + turn` more for each such drain. While reads wait, it moves at least from the high to the low mark (or from where
//!   the longest write finds no room). A read that comes can end a drain in the same way if that has moved `s` bursts.

use super::scenario::{Arbitration, Outage, Step, Ticks};
use bulkhead_abi::dtu::CHUNK_MAX;
use bulkhead_model::platform::{Controller, Dram, MemoryPolicy, Spread, Turns, WriteQueue};

/// A memory's parameters, in ticks.
pub struct MemoryTiming<'a> {
    dram: &'a Dram,
    cycle: Ticks,
}

/// An access: the time until the memory is asked, its steps there, and its minimum total time.
pub struct MemoryAccess {
    /// Longest time before it reaches the queue.
    pub front: Ticks,
    /// Least of that.
    pub front_least: Ticks,
    /// Its step at the memory, without the resource's number.
    pub steps: Vec<Step>,
    /// Least time at the memory.
    pub least: Ticks,
}

impl<'a> MemoryTiming<'a> {
    /// For a memory whose clock has `cycle` ticks.
    pub fn new(dram: &'a Dram, cycle: Ticks) -> Self {
        Self { dram, cycle }
    }

    fn ticks(&self, cycles: u32) -> Ticks {
        u64::from(cycles) * self.cycle
    }

    fn burst(&self) -> Ticks {
        let bytes = u64::from(self.dram.burst).max(1);
        bytes.div_ceil(2 * u64::from(self.dram.bus).max(1)).max(1) * self.cycle
    }

    /// Order of service.
    pub fn arbitration(&self) -> Arbitration {
        let controller = &self.dram.controller;
        match (controller.policy, controller.write_queue) {
            (MemoryPolicy::Slots, _) => Arbitration::RoundRobin,
            (_, Some(queue)) => Arbitration::Turns {
                least: self.drained(queue),
            },
            (MemoryPolicy::FrFcfs { .. }, None) => Arbitration::LimitedPassing,
            (MemoryPolicy::Fcfs, None) => Arbitration::ArrivalOrder,
        }
    }

    /// Whether answers come in the order of arrival: nobody is passed, and there is one data bus.
    pub fn answers_in_order(&self) -> bool {
        in_order(&self.dram.controller) && self.dram.channels() == 1
    }

    /// Bursts of the longest access.
    fn longest(&self) -> u64 {
        CHUNK_MAX as u64 / u64::from(self.dram.burst).max(1) + 1
    }

    /// Bursts that may be posted at one time: an access larger than the queue has the queue to itself.
    fn posted(&self, queue: WriteQueue) -> u64 {
        u64::from(queue.size).max(self.longest())
    }

    /// Bursts that a drain which begins while reads wait moves at least.
    fn drained(&self, queue: WriteQueue) -> u64 {
        let no_room = (u64::from(queue.size) + 1).saturating_sub(self.longest());
        let from = u64::from(queue.high).min(no_room);
        from.saturating_sub(queue.low.into()).max(1)
    }

    /// The time for `work` of drained writes, including the rows that are opened in vain where drains begin and end.
    fn in_turns(&self, queue: WriteQueue, work: Ticks) -> Ticks {
        work + (2 * work).div_ceil(self.drained(queue))
    }

    /// Maximum work that was acknowledged before it was done.
    pub fn backlog(&self) -> Ticks {
        let controller = &self.dram.controller;
        controller.write_queue.map_or(0, |queue| {
            let each = self.row(controller) + self.turn(controller);
            self.in_turns(queue, self.posted(queue) * each) + 2 * each
        })
    }

    /// The time that a write queue spends on others before an access, whatever is in progress: before a read, a row that is opened in vain;
    /// before a write that finds no room, the reads between the drains of a full queue, and those of a drain in progress. (The full queue
    /// itself is the resource's backlog.)
    fn queued(&self, controller: &Controller, write: bool) -> Ticks {
        let Some(queue) = controller.write_queue else {
            return 0;
        };
        let each = self.row(controller) + self.turn(controller);
        match write {
            false => each,
            true => 2 * self.posted(queue) * (each + self.passed(controller)),
        }
    }

    /// How long a row may have to stay open, from its last column access or from its opening. Where an access may have to wait for younger
    /// requests, at least the front end of a request that has just come.
    fn left(&self, controller: &Controller) -> Ticks {
        let left = self
            .closes(controller, true)
            .max(self.closes(controller, false));
        left.max(self.ticks(controller.row_active.max(self.dram.frontend + 1)))
    }

    /// From an access of a column to the precharge, apart from tRAS.
    fn closes(&self, controller: &Controller, write: bool) -> Ticks {
        match write {
            true => self.ticks(controller.write_cas + self.dram.write_recovery) + self.burst(),
            false => self.ticks(controller.read_to_precharge),
        }
    }

    /// What the activations before one cost it, from when its bank would let it go.
    fn activations(&self, controller: &Controller) -> u32 {
        let gap = controller.activate_gap;
        let window = i64::from(controller.four_activates) - 3 * i64::from(gap);
        u32::try_from(window).map_or(gap, |window| window.max(gap))
    }

    /// From one column access to the next that needs another row.
    fn row(&self, controller: &Controller) -> Ticks {
        self.left(controller) + self.opens(controller) + self.ticks(3)
    }

    /// From when a row may be closed to the first access of another one, if no command of others is in the way.
    fn opens(&self, controller: &Controller) -> Ticks {
        let gaps = self.activations(controller);
        self.ticks(self.dram.precharge + gaps + self.dram.activate)
    }

    /// In order of arrival: an access of so many bursts in so many rows, which may be opened at the same time or not. It begins when the access
    /// before it has left its row, and ends when it has left its own: time until its last column access, from there until the row may be closed or
    /// the bus has turned, and the longest of these for any access.
    fn in_turn(&self, (rows, bursts): (u64, u64), side_by_side: bool, write: bool) -> [Ticks; 3] {
        let controller = &self.dram.controller;
        let opens = self.opens(controller);
        let before_column = controller.row_active.min(self.dram.activate);
        let active = self.ticks(controller.row_active - before_column);
        let turned = self.turn(controller).saturating_sub(opens);
        let leaves = |write| self.closes(controller, write).max(active).max(turned);
        let gap = self.gap(controller);
        let first = match side_by_side {
            true => opens + self.ticks(self.activations(controller) + 3) + (bursts - 1) * gap,
            false => rows * opens + (rows - 1) * leaves(write) + (bursts - rows) * gap,
        };
        [first, leaves(write), leaves(true).max(leaves(false))]
    }

    /// Between two bursts in one row, if the data bus need not turn.
    fn gap(&self, controller: &Controller) -> Ticks {
        self.burst().max(self.ticks(controller.column_gap))
    }

    /// The cost of the bursts that may pass the oldest access.
    fn passed(&self, controller: &Controller) -> Ticks {
        let turn = self.turn(controller);
        let each = self.left(controller).max(turn) + turn;
        u64::from(cap(controller).unwrap_or(0)) * each
    }

    /// From one column access to the next in an open row.
    fn turn(&self, controller: &Controller) -> Ticks {
        let to_read = self.ticks(controller.write_cas + controller.write_to_read) + self.burst();
        let to_write = (self.ticks(self.dram.cas + controller.read_to_write) + self.burst())
            .saturating_sub(self.ticks(controller.write_cas));
        to_read.max(to_write).max(self.gap(controller)) + self.cycle
    }

    /// Whether an access of `bytes` has at most two rows, which are in two banks, the policy sees both, and row commands find room between columns.
    /// Then they are opened at the same time.
    fn side_by_side(&self, bytes: u64) -> bool {
        let controller = &self.dram.controller;
        let neighbours = self.dram.banks > 1 && bytes <= self.dram.row.0;
        let plain = controller.bank_map == Spread::Row && !controller.xor;
        let seen = controller.channels == 1 && controller.queue > 1;
        neighbours && plain && seen && self.gap(controller) >= 2 * self.cycle
    }

    /// Length of a slot: any following burst has its whole time, in any bank.
    fn slot(&self, controller: &Controller) -> Ticks {
        let t = |cycles| self.ticks(cycles);
        let bank = |after: Ticks| {
            t(controller.row_active).max(t(self.dram.activate) + after) + t(self.dram.precharge)
        };
        let written = t(controller.write_cas + self.dram.write_recovery) + self.burst();
        let four = u64::from(controller.four_activates).div_ceil(4) * self.cycle;
        [
            bank(t(controller.read_to_precharge)),
            bank(written),
            self.turn(controller) - self.cycle,
            t(controller.activate_gap),
            four,
            self.cycle,
        ]
        .into_iter()
        .fold(0, Ticks::max)
    }

    /// Slots of a window, where a bandwidth controller gives them to identifiers.
    pub fn blocks(&self) -> Option<u32> {
        self.dram.controller.bandwidth_blocks
    }

    /// Slots of a window that may be reserved, where a bandwidth controller gives them to identifiers: what refreshes and the last slot of the
    /// window before leave. `None`: nothing is left, or there is no such controller.
    pub fn reservable(&self) -> Option<u64> {
        let controller = &self.dram.controller;
        let blocks = u64::from(controller.bandwidth_blocks?);
        let slot = self.slot(controller);
        let refreshes = match self.ticks(self.dram.refresh_interval) {
            0 => 0,
            interval => blocks * slot / interval + 1,
        };
        // A refresh waits for the slot before it, and moves those behind it.
        let each = self.ticks(self.dram.refresh).div_ceil(slot) + 1;
        let left = blocks.checked_sub(refreshes * each + 1);
        left.filter(|left| *left > 0)
    }

    /// The length of a slot, and the least distance between two answers, where one channel serves harts in turn, or by their shares.
    pub fn slots_of_harts(&self) -> Option<(Ticks, Ticks)> {
        let controller = &self.dram.controller;
        let harts = controller.turns == Turns::Hart || controller.bandwidth_blocks.is_some();
        if controller.policy != MemoryPolicy::Slots || !harts {
            return None;
        }
        let slot = self.slot(controller);
        let difference = self.dram.cas.abs_diff(controller.write_cas);
        Some((slot, slot.saturating_sub(self.ticks(difference))))
    }

    /// The cost of `bytes`; `line`: they are a cache line, which is aligned. `input`: the tile's number.
    pub fn access(&self, bytes: u64, write: bool, line: bool, input: u16) -> MemoryAccess {
        let dram = self.dram;
        let burst_bytes = u64::from(dram.burst).max(1);
        // An access that is not aligned may touch one burst more.
        let aligned = bytes.div_ceil(burst_bytes);
        let bursts = if line {
            aligned
        } else {
            (bytes - 1).div_ceil(burst_bytes) + 1
        };
        let burst = self.burst();
        let step = |occupancy, tail, latency| Step {
            resource: None,
            input: 0,
            occupancy,
            passed: 0,
            queued: 0,
            tail,
            elsewhere: false,
            latency,
        };
        // At best, the channels share the bursts.
        let shared = aligned.div_ceil(u64::from(dram.channels()));
        let cas = if write {
            dram.controller.write_cas
        } else {
            dram.cas
        };
        let controller = &dram.controller;
        let (steps, least) = match controller.policy {
            MemoryPolicy::Slots => {
                let slot = self.slot(controller);
                let last = self.ticks(dram.activate + cas) + burst;
                let least = (shared - 1) * slot + last;
                let mut steps = vec![step(slot, 0, slot); bursts as usize];
                for (k, step) in steps.iter_mut().enumerate() {
                    step.input = input;
                    if k + 1 == bursts as usize {
                        step.latency = last;
                        step.tail = slot.saturating_sub(last);
                    }
                }
                (steps, least)
            }
            MemoryPolicy::Fcfs | MemoryPolicy::FrFcfs { .. } => {
                let rows = match (controller.write_queue.is_some(), controller.bank_map) {
                    (true, _) | (_, Spread::Burst) => bursts,
                    _ if controller.channels > 1 && controller.channel_map == Spread::Burst => {
                        bursts
                    }
                    // Rows are powers of two, and not smaller than a burst.
                    _ => bursts.min((bytes - 1) / dram.row.0.max(1) + 2),
                };
                let data = self.ticks(cas) + burst;
                // An access that is acknowledged at once, or answered from the write queue, need not reach the banks.
                let least = match controller.write_queue {
                    Some(_) => 0,
                    None => self.ticks(cas) + shared * burst,
                };
                let mut all = if in_order(controller) {
                    let apart = rows > 1 && self.side_by_side(bytes);
                    let [moved, left, most] = self.in_turn((rows, bursts), apart, write);
                    // The source may go on before its row, or that of an older access, may be closed.
                    step(moved + left, most.saturating_sub(data), moved + data)
                } else {
                    let each = self.row(controller) + self.turn(controller);
                    let gap = match cap(controller) {
                        Some(_) => self.turn(controller),
                        None => self.gap(controller) + self.cycle,
                    };
                    let moved = rows * each + (bursts - rows) * gap;
                    let occupancy = match controller.write_queue {
                        Some(queue) if write => self.in_turns(queue, moved),
                        _ => moved,
                    };
                    step(occupancy, 0, occupancy + data)
                };
                all.passed = rows * self.passed(controller);
                all.queued = self.queued(controller, write);
                // Reads and writes have a queue each.
                all.input = u16::from(write && controller.write_queue.is_some());
                (vec![all], least)
            }
        };
        let front_least = self.ticks(dram.frontend);
        MemoryAccess {
            front: front_least + self.cycle - 1,
            front_least,
            steps,
            least,
        }
    }

    /// Refreshes.
    pub fn refresh(&self) -> Option<Outage> {
        let dram = self.dram;
        let controller = &dram.controller;
        let (access, open) = match controller.policy {
            // No slot begins between the moment at which a refresh is due and its end, and each slot opens its own row.
            MemoryPolicy::Slots => (self.slot(controller), 0),
            // Commands end when a refresh is due; an interrupted access reopens its row.
            MemoryPolicy::Fcfs | MemoryPolicy::FrFcfs { .. } => {
                let row = self.row(controller) + self.turn(controller);
                (row, row)
            }
        };
        (dram.refresh_interval > 0).then(|| Outage {
            period: self.ticks(dram.refresh_interval),
            // It lets the access in progress end, and may fall within the access being examined.
            jitter: 2 * access,
            // All rows are closed; an interrupted access reopens its row.
            duration: open + self.ticks(dram.refresh) + self.cycle,
        })
    }
}

/// Whether columns are accessed in the order of arrival, and nobody is waited for who came later.
fn in_order(controller: &Controller) -> bool {
    controller.policy == MemoryPolicy::Fcfs && controller.write_queue.is_none()
}

/// How many bursts may pass the oldest access under first-ready scheduling.
fn cap(controller: &Controller) -> Option<u32> {
    match controller.policy {
        MemoryPolicy::FrFcfs { cap } => Some(cap),
        MemoryPolicy::Fcfs | MemoryPolicy::Slots => None,
    }
}
