//! Admission of applications that share a tile with fixed priorities: whether each gets what its quota promises, in time.
//!
//! Why it exists: budgets that TileMux enforces are worth something only if all of them fit. What it deliberately does not
//! know: what applications do; an application is its quota, however it behaves.
//!
//! # Method and assumptions
//! TileMux gives a budget back one period after the work that used it was released (a sporadic server). So an application with quota *C*
//! and period *T* disturbs less urgent ones no more than a sporadic task (*C*, *T*) does, and a job that needs at most *C* is done within
//! that task's response time ([`fixed_priority`]). A switch *S* takes at most [`SWITCH_CYCLES`] with everything in the tile's caches, and
//! otherwise [`SWITCH_LINES`] lines from memory in addition. These lines are assumed to wait for no other traffic: that of other tiles,
//! which token buckets bound, is not counted.
//!
//! **Budgets contain the switches that they cause** (`exec::tile`). TileMux charges each switch to exactly one account. An application that
//! begins while a less urgent one, or none, has the hart pays for the switch to it, including the interrupt before it; an application that
//! gives the hart up to a less or equally urgent one, or to none, pays for that switch. Let *w* be a window in which an application *a* has
//! unfinished work. Each moment of *w* in which *a* does not make progress is of one of five kinds:
//! 1. another application that is not less urgent runs, or has a switch or an interrupt by its messages on its account. That is time of its
//!    budget, at most `ceil(w / T) * C`, plus one possible overrun: an application with any budget left may begin, so a budget may be
//!    overrun by a switch to the application, a switch from it, the interrupt by the message that it waits for, *m*, and a call to TileMux
//!    that it makes with its last budget, *k*, because TileMux ends no call early. An overrun is taken from the next refill, so it counts
//!    once in *w*, however often the application sleeps and wakes up: `2 S + m + k`, as blocking;
//! 2. a switch on *a*'s own account: two for each time that it begins to use a budget (the way there, the way back), and one for each turn
//!    that it gives to equals. Being displaced costs it nothing, because the other application pays for both ways;
//! 3. an interrupt by the message that *a* itself waits for: on its own account, *m* each time that it begins;
//! 4. a request of the kernel, on nobody's account (below);
//! 5. what began before: one call of a less urgent application to TileMux and the switch after it, which nothing can interrupt (*k* and *S*);
//!    and accesses of a less urgent application (below).
//!
//! The longest call *k* is a text of [`PRINT_TEXT`] bytes: TileMux translates the address of each byte and sends the text to the kernel. Its
//! message is assumed to wait for no other traffic, like the lines of a switch. A call that makes a page table touches more lines and takes
//! fewer cycles; the bound has the cycles of the one and the lines of the other. What TileMux does for answers of pagers that it finds on the
//! way counts as part of the faults that they answer.
//!
//! So a job of cost *c* needs *c* of its quota, two switches each time that it begins, one for each turn, and these interrupts; if that
//! exceeds its budget, it waits for the next one. A job that waits for others in its middle begins again, which is not counted. In an
//! earlier version, a switch was on the account of the application that it led to: an application that often slept and woke up took
//! switches from less urgent ones that no budget contained.
//!
//! A budget is in at most [`REFILLS`] pieces, and pieces below [`LEAST_RUN`] come back with the next one. A job that is the only one within
//! its budgets uses each in one piece. Where jobs share budgets and there may be more than [`REFILLS`] pieces, a piece may wait for the
//! last piece that was joined to it: it counts as back after two periods and an inter-arrival time of jobs, and a job may begin once for
//! each piece.
//!
//! If shared budgets never run out, no job waits for them, and the jobs are a sporadic task of their own below the same more urgent ones: a
//! job of cost *c* with its switches every *D*, with response time at most *R*. Let *t* be the first moment at which an unfinished job
//! finds no budget, and let *R* be at most *D*, so each piece of work is one job. Budget used up to *u* is back at `u + T`, or with the
//! last piece that was joined to it. Work released from `u + T` on joins nothing to a piece that began at *u*, because the seven pieces
//! before it are back by then and become one. So everything used before `t - 2 T - R` is back at *t*, except for less than [`LEAST_RUN`] in
//! each piece, and the rest was used by jobs released after `t - 2 T - 2 R`. If one budget pays for those, there is no such *t*.
//!
//! Everything below a manager counts as the time that its tile capability grants (`System::time_below`), at the highest priority that it
//! grants: whatever the manager derives from it, including children of children, the kernel lets them demand no more than that in any
//! window (`abi::time`). The manager may divide its time into budgets of [`LEAST_BUDGET`], with an overrun each. For applications below a
//! manager, the shares of others below it count in the same way, and the undivided rest counts as one more share. Children without a budget
//! come last, like all applications without one.
//!
//! A message interrupts the running application only if its receiver waits for it and is not less urgent, and only once for each wait: the
//! tile's unit or its second hart ensures that. So messages to less urgent applications take nothing from a more urgent one, however many
//! gates, senders and messages there are. The one message for a receiver that is not less urgent is on the receiver's account, with
//! [`RECEIVED_CYCLES`] (*m* above), because TileMux decides anew. The kernel's answers to printed texts interrupt nobody, and a pager's
//! answer interrupts like a message for the activity that waits for the page.
//!
//! **The kernel's requests** start, stop and wake activities and map pages; any application may cause them on any tile. TileMux carries
//! them out one at a time. One costs a switch, at most [`REQUEST_CYCLES`] and [`REQUEST_LINES`] more, because it maps at most
//! [`MAP_PAGES_MAX`](bulkhead_abi::syscall::MAP_PAGES_MAX) pages and makes at most one page table. (A request that needs more tables is
//! carried out in as many pieces, as if each were a request.) After each request, whichever application wanted the hart, the next one waits
//! until no application with a priority wants the hart, or until [`request_distance`] has passed: until then, the unit does not announce it
//! ([`Awaited::after`](bulkhead_abi::dtu::Awaited::after)). A request that came while TileMux had the unit is not announced; for this one
//! TileMux sets its timer. So a request takes one interrupt, that after which it is carried out, and all requests together take no more than
//! one sporadic task above all applications; a request that began before a job was released is the first of them, and counts as release
//! jitter of its own length. The same holds for the end of an activity for which the kernel had no room, which TileMux reports later. Each
//! pager's answer belongs to one fault of an application, which ran to cause it; answers that come while TileMux works anyway are part of
//! its work.
//!
//! The time that no clock reading of TileMux sees is not counted here and is on the running application's account: the saving and restoring
//! of registers around a trap (some 100 of a switch's 1000 cycles).
//!
//! A hart leaves an application whose access waits for its token bucket, but not one that waits for data: an application released while a
//! less urgent one runs waits for the outstanding accesses, as many as the hart's buffers hold, one at a time. TileMux borrows the tokens
//! of a switch ([`PRIVILEGED_CREDIT`](bulkhead_abi::dtu::PRIVILEGED_CREDIT)); any further accesses pass the bucket of the running
//! application.

use crate::communication::{Chip, ChipError, local_chunks};
use crate::judgement::Judgement;
use crate::schedulability::fixed_priority;
use crate::schedulability::task::{Task, TaskError};
use crate::tiled_kernel::unbounded;
use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_abi::tilemux::{PRINT_HEAD, PRINT_TEXT, request_distance};
use bulkhead_abi::time::LEAST_BUDGET;
use bulkhead_model::System;
use bulkhead_model::system::time::Holder;
use bulkhead_model::system::{Cpu, TilePolicy};
use bulkhead_model::units::Time;
use serde::Serialize;
use thiserror::Error;

/// Maximum cycles of a switch that finds everything in the caches; `docs/promises.md` has the measured value.
pub const SWITCH_CYCLES: u64 = 1500;
/// Maximum cache lines of TileMux and of an application's registers that a switch touches.
pub const SWITCH_LINES: u64 = 96;
/// Maximum cycles of an interrupt that changes nothing.
pub const INTERRUPT_CYCLES: u64 = 400;
/// Maximum cycles of an interrupt by a message for an activity that is not less urgent and does not begin.
pub const RECEIVED_CYCLES: u64 = 800;
/// Maximum cycles of a kernel request that finds everything in the caches, besides the way to TileMux and back.
pub const REQUEST_CYCLES: u64 = 6000;
/// Maximum cache lines that it touches: 64 for a page table that is cleared or a page that leaves, the entries of the pages, and TileMux's
/// own lines. A request that needs more page tables is carried out in pieces, each of which counts as a request.
pub const REQUEST_LINES: u64 = 128;
/// Maximum cycles of a call to TileMux that finds everything in the caches, without the switch after it and the path of its message. For each
/// byte of a text, TileMux looks for the activity in 16 places and reads a page table of three levels: at most 100 cycles. It needs 2000 more to
/// enter, to give the unit a command and to wait until the command has ended.
pub const CALL_CYCLES: u64 = 100 * PRINT_TEXT as u64 + 2000;
/// The most cache lines that a call touches: 64 of a page table that it clears, those of a text and its page tables, and TileMux's own.
pub const CALL_LINES: u64 = 128;
/// Maximum pieces of a budget (`exec::account`).
pub const REFILLS: u64 = 8;
/// Shorter pieces come back with the next one, in nanoseconds (`exec::tile`).
pub const LEAST_RUN: u64 = 5_000;

/// Why no answer is possible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AdmissionError {
    /// The hardware does not fit the description.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// A quota or period is out of the test's range.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// The promise to one application. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// Name of the application, or `below MANAGER` for everything below a manager with a `<cpu>`.
    pub app: String,
    /// Greater is more urgent.
    pub priority: u8,
    /// Its quota.
    pub budget: u64,
    /// The quota's period.
    pub period: u64,
    /// When a job must be done: the task's deadline, or the quota's period.
    pub deadline: u64,
    /// The worst-case completion of a job; `None` if there is no bound.
    pub response: Option<u64>,
    /// Maximum that a job takes from its quota: its cost, switches to it, and interrupts that hit it.
    pub charged: u64,
    /// The quota does not pay for the task: this is what its jobs need per period of the quota.
    pub unpaid: Option<u64>,
    /// Why nobody knows whether the promise holds, if so.
    pub unknown: Option<String>,
}

impl Reservation {
    /// It was judged, and holds.
    pub fn holds(&self) -> bool {
        self.judgement() == Judgement::Held
    }

    /// Whether the promise holds, if anybody knows.
    pub fn judgement(&self) -> Judgement {
        let in_time = |response| response <= self.deadline;
        match self.unknown {
            Some(_) => Judgement::NotJudged,
            None => Judgement::of(self.unpaid.is_none() && self.response.is_some_and(in_time)),
        }
    }
}

/// A tile with fixed priorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TileAdmission {
    /// The tile.
    pub tile: u16,
    /// Maximum duration of a switch, in nanoseconds.
    pub switch: u64,
    /// Maximum duration of a call to TileMux without the switch after it, in nanoseconds.
    pub call: u64,
    /// Applications with a quota, the most urgent first.
    pub reservations: Vec<Reservation>,
}

/// Judges every tile with fixed priorities.
///
/// # Errors
/// [`AdmissionError`].
pub fn tiles(system: &System) -> Result<Vec<TileAdmission>, AdmissionError> {
    let chip = Chip::new(&system.platform);
    let muxes = system.tilemux.iter();
    let realtime = muxes.filter(|mux| mux.policy == TilePolicy::Realtime);
    realtime.map(|mux| tile(system, &chip, mux.tile)).collect()
}

/// Maximum duration of a switch on a tile, in nanoseconds.
///
/// # Errors
/// [`AdmissionError::Chip`] if the tile does not exist.
pub fn switch(system: &System, chip: &Chip, tile: u16) -> Result<u64, AdmissionError> {
    work(system, chip, tile, (SWITCH_CYCLES, SWITCH_LINES))
}

/// Maximum duration of an application's call to TileMux on a tile, without the switch after it, in nanoseconds.
///
/// # Errors
/// [`AdmissionError::Chip`] if the tile or the kernel's tile does not exist.
pub fn call(system: &System, chip: &Chip, tile: u16) -> Result<u64, AdmissionError> {
    let work = work(system, chip, tile, (CALL_CYCLES, CALL_LINES))?;
    let payload = (PRINT_HEAD + PRINT_TEXT) as u64;
    // Each line of the message and of its header may miss when the kernel's unit stores it.
    let memory = system.platform.memories.first().map_or(0, |m| m.id);
    let line = chip.line_read(system.kernel_tile, memory)?.uncontended();
    let block = u64::from(chip.dtu(system.kernel_tile)?.block).max(1);
    let blocks = (payload + HEADER_SIZE as u64).div_ceil(block) + 1;
    let missing = u64::try_from(line * u128::from(blocks)).unwrap_or(u64::MAX);
    let way = chip.message(tile, system.kernel_tile, payload, (missing, missing))?;
    let per_second = u128::from(chip.ticks_per_second());
    let way = (way.uncontended() * 1_000_000_000).div_ceil(per_second);
    Ok(work.saturating_add(u64::try_from(way).unwrap_or(u64::MAX)))
}

/// The kernel's requests to the TileMux of a tile, as a task above all others.
///
/// # Errors
/// [`AdmissionError::Chip`] if the tile does not exist.
pub fn requests(system: &System, chip: &Chip, tile: u16) -> Result<Task, AdmissionError> {
    let cycles = SWITCH_CYCLES + REQUEST_CYCLES;
    let cost = work(system, chip, tile, (cycles, SWITCH_LINES + REQUEST_LINES))?;
    let period = request_distance(chip.tile(tile)?.pipeline.clock.frequency.0);
    Ok(Task {
        cost,
        period,
        deadline: period,
        jitter: cost,
        blocking: 0,
    })
}

/// Maximum nanoseconds of this many cycles and lines of TileMux on a tile.
fn work(
    system: &System,
    chip: &Chip,
    tile: u16,
    (cycles, lines): (u64, u64),
) -> Result<u64, AdmissionError> {
    // TileMux is in the first memory tile.
    let memory = system.platform.memories.first().map_or(0, |m| m.id);
    let line = chip.line_read(tile, memory)?.uncontended();
    let found = chip.tile(tile)?;
    let cycle = chip.cycle(found.pipeline.clock.frequency.0);
    let second = found.l2.as_ref().map_or(0, |l2| u64::from(l2.latency)) * cycle;
    let ticks = u128::from(cycles * cycle) + u128::from(lines) * (line + u128::from(second));
    let per_second = u128::from(chip.ticks_per_second());
    Ok((ticks * 1_000_000_000).div_ceil(per_second) as u64)
}

/// Nanoseconds until the hart has left an application, for the slowest less urgent one.
fn leave(system: &System, chip: &Chip, tile: u16, priority: u8) -> Result<u64, ChipError> {
    let mut most = 0;
    let apps = system.apps.iter();
    for app in apps.filter(|app| app.tile == tile && app.cpu.is_none_or(|c| c.priority < priority))
    {
        let ticks = chip.drain(tile, app.memory_tile)?;
        let under_way = (ticks * 1_000_000_000).div_ceil(chip.ticks_per_second().into());
        let under_way = u64::try_from(under_way).unwrap_or(u64::MAX);
        let paying = match app.limit {
            Some(limit) => {
                let beyond = chip.beyond_credit(tile, local_chunks(chip, app)?, SWITCH_LINES)?;
                beyond
                    .saturating_mul(1_000_000_000)
                    .div_ceil(limit.noc.0.max(1))
            }
            None => 0,
        };
        most = most.max(under_way.saturating_add(paying));
    }
    Ok(most)
}

/// How the processor time of a tile is divided.
struct Share<'a> {
    system: &'a System,
    tile: u16,
    /// A switch in nanoseconds.
    switch: u64,
    /// An interrupt by a message on its receiver's account, in nanoseconds.
    received: u64,
    /// A call to TileMux in nanoseconds.
    call: u64,
}

/// The demand of others on a processor.
#[derive(Default)]
struct Others {
    tasks: Vec<Task>,
    /// The total by which their budgets may be overrun, in nanoseconds.
    overrun: u64,
}

fn sporadic(cost: u64, cpu: Cpu) -> Task {
    let period = cpu.period.nanoseconds();
    Task {
        cost,
        period,
        deadline: period,
        jitter: 0,
        blocking: 0,
    }
}

impl Share<'_> {
    /// Everything below a manager with a promise: applications, and managers with their own `<cpu>`.
    fn holders(&self, manager: usize) -> Vec<(Holder, Cpu)> {
        let mut all = Vec::new();
        for (holder, cpu) in self.system.times_of(manager, self.tile) {
            match holder {
                Holder::App(_) => all.push((holder, cpu)),
                Holder::Manager(below) => {
                    if self.system.managers[below].cpu.is_some() {
                        all.push((holder, cpu));
                    }
                    all.extend(self.holders(below));
                }
            }
        }
        all
    }

    /// The most by which a budget may be overrun.
    fn overrun(&self) -> u64 {
        (2 * self.switch + self.received).saturating_add(self.call)
    }

    /// The demand of time that may be divided further: a piece ends with its owner, which then repays none of its overrun.
    fn divided(&self, cpu: Cpu) -> Task {
        let budget = cpu.budget.nanoseconds();
        let overruns = self.overrun().saturating_mul(budget / LEAST_BUDGET);
        sporadic(budget.saturating_add(overruns), cpu)
    }

    /// Adds the possible demand of others than `whom` that are not less urgent, from a manager's time.
    fn others(&self, manager: usize, whom: Holder, priority: u8, all: &mut Others) {
        let is_inside = |below: usize| match whom {
            Holder::App(app) => self.system.is_within(self.system.manager_of(app), below),
            // A manager is not disturbed by what is in its own share.
            Holder::Manager(other) => other != below && self.system.is_within(other, below),
        };
        for (holder, cpu) in self.system.times_of(manager, self.tile) {
            match holder {
                holder if holder == whom => {}
                Holder::Manager(below) if is_inside(below) => {
                    self.others(below, whom, priority, all);
                    self.rest(below, cpu, priority, all);
                }
                _ if cpu.priority < priority => {}
                Holder::App(_) => {
                    all.tasks.push(sporadic(cpu.budget.nanoseconds(), cpu));
                    all.overrun = all.overrun.saturating_add(self.overrun());
                }
                Holder::Manager(_) => all.tasks.push(self.divided(cpu)),
            }
        }
    }

    /// Adds a manager's remaining time, which it may give to any activity.
    fn rest(&self, manager: usize, cpu: Cpu, priority: u8, all: &mut Others) {
        let period = cpu.period.nanoseconds();
        let taken = self.system.time_taken(manager, self.tile, period);
        let left = cpu.budget.nanoseconds().saturating_sub(taken);
        if cpu.priority >= priority && left >= LEAST_BUDGET {
            let budget = Time(left.saturating_mul(1000));
            all.tasks.push(self.divided(Cpu { budget, ..cpu }));
        }
    }
}

/// The demand of a job on its quota besides switches. Times in nanoseconds.
struct Job {
    cost: u64,
    /// Minimum inter-arrival time of jobs.
    distance: Time,
    /// The interrupt by the message that it waits for.
    received: u64,
    /// Length of a turn, if it has equals.
    turn: Option<u64>,
}

impl Share<'_> {
    /// The maximum charge of a job, and how long it waits for budgets; `chunk`: when one budget is used up in the worst case. No wait: the
    /// quota does not pay for the jobs.
    fn charged(&self, job: &Job, cpu: Cpu, chunk: u64) -> (u64, Option<Time>) {
        // Messages that arrive before it first begins may arrive at any moment of the previous period.
        let own = job.cost.saturating_add(job.received);
        // A turn begins or ends with a switch.
        let turns = match job.turn {
            Some(turn) if turn > self.switch => own / (turn - self.switch),
            Some(_) => return (u64::MAX, None),
            None => 0,
        };
        let each = 2 * self.switch + job.received;
        let fixed = own.saturating_add(turns.saturating_mul(self.switch));
        let (budget, period) = (cpu.budget.nanoseconds(), cpu.period.nanoseconds().max(1));
        let distance = job.distance.nanoseconds().max(1);
        let time = |nanoseconds: u64| Time(nanoseconds.saturating_mul(1000));
        // Jobs that use each budget in one piece: each job, or each budget of one, finds it complete.
        let once = fixed.saturating_add(each);
        let jobs = period.div_ceil(distance);
        let shared = u128::from(once) * u128::from(jobs) + u128::from(LEAST_RUN);
        let short = jobs < REFILLS && shared <= u128::from(budget);
        if once <= budget && (short || period <= distance) {
            return (once, Some(Time(0)));
        }
        if cpu.waits(time(once), job.distance).is_none() {
            return (once, None);
        }
        let mut window = chunk;
        let mut in_pieces = false;
        loop {
            let begins = window / period + 1;
            let pieces = if in_pieces { REFILLS } else { 1 };
            let charged = begins.saturating_mul(pieces).saturating_mul(each);
            let charged = fixed.saturating_add(charged);
            let budgets = u128::from(charged).div_ceil(u128::from(budget.max(1)));
            if !in_pieces && budgets * u128::from(period) > u128::from(distance) {
                in_pieces = true;
                continue;
            }
            let server = match in_pieces {
                true => Cpu {
                    budget: time(budget.saturating_sub(LEAST_RUN)),
                    period: time(period.saturating_mul(2).saturating_add(distance)),
                    ..cpu
                },
                false => cpu,
            };
            let Some(wait) = server.waits(time(charged), job.distance) else {
                return (charged, None);
            };
            // Longer waits begin more budgets; if that does not converge, the quota does not pay.
            let longer = chunk.saturating_add(wait.nanoseconds());
            if longer <= window {
                return (charged, Some(wait));
            }
            window = longer;
        }
    }
}

impl Share<'_> {
    /// The charge of a job and the response of jobs that share budgets, if these never run out; `None` if they may. `others`: tasks above.
    fn unbroken(
        &self,
        job: &Job,
        cpu: Cpu,
        (others, blocking): (&[Task], u64),
    ) -> Result<Option<(u64, u64)>, AdmissionError> {
        let own = job.cost.saturating_add(job.received);
        // Turns of several jobs in a row count for each job as if it began one.
        let turns = match job.turn {
            Some(turn) if turn > self.switch => own.div_ceil(turn - self.switch),
            Some(_) => return Ok(None),
            None => 0,
        };
        let switches = turns.saturating_add(2).saturating_mul(self.switch);
        let cost = own.saturating_add(job.received).saturating_add(switches);
        let distance = job.distance.nanoseconds();
        if distance == 0 || cost > distance {
            return Ok(None);
        }
        let task = Task {
            cost,
            period: distance,
            deadline: distance,
            jitter: 0,
            blocking,
        };
        let tasks = [others, &[task]].concat();
        let responses = fixed_priority::response_times(&tasks)?;
        let response = responses.last().copied().flatten();
        let Some(response) = response.filter(|response| *response <= distance) else {
            return Ok(None);
        };
        let window = (cpu.period.nanoseconds().saturating_add(response)).saturating_mul(2);
        let used = u128::from(window / distance + 1) * u128::from(cost);
        let crumbs = u128::from(REFILLS * LEAST_RUN);
        let paid = used + crumbs <= u128::from(cpu.budget.nanoseconds());
        Ok(paid.then_some((cost, response)))
    }
}

/// Whether another holder on the tile is equally urgent.
fn has_equals(all: &[(Holder, Cpu)], whom: Holder, cpu: Cpu) -> bool {
    let mut others = all.iter().filter(|(holder, _)| *holder != whom);
    others.any(|(_, other)| other.priority == cpu.priority)
}

/// Length of a turn on a tile, in nanoseconds.
fn slice(system: &System, tile: u16) -> u64 {
    let mut muxes = system.tilemux.iter();
    let mux = muxes.find(|mux| mux.tile == tile);
    mux.map_or(0, |mux| mux.slice.nanoseconds())
}

fn tile(system: &System, chip: &Chip, tile: u16) -> Result<TileAdmission, AdmissionError> {
    let switch = switch(system, chip, tile)?;
    let call = call(system, chip, tile)?;
    let requests = requests(system, chip, tile)?;
    let unknown = unbounded(&system.platform, tile);
    let found = chip.tile(tile)?;
    let hertz = found.pipeline.clock.frequency.0;
    let share = Share {
        system,
        tile,
        switch,
        received: (RECEIVED_CYCLES * 1_000_000_000).div_ceil(hertz.max(1)),
        call,
    };
    let mut all = share.holders(0);
    all.sort_by_key(|(_, cpu)| std::cmp::Reverse(cpu.priority));
    let mut reservations = Vec::new();
    for &(holder, cpu) in &all {
        let mut others = Others::default();
        share.others(0, holder, cpu.priority, &mut others);
        let mut own = sporadic(cpu.budget.nanoseconds(), cpu);
        let under_way = leave(system, chip, tile, cpu.priority)?;
        own.blocking = switch.saturating_add(call).saturating_add(under_way);
        own.blocking = own.blocking.saturating_add(others.overrun);
        let mut tasks = others.tasks;
        tasks.extend([requests, own]);
        let responses = fixed_priority::response_times(&tasks)?;
        tasks.pop();
        let chunk = responses.last().copied().flatten();
        let (budget, period) = (cpu.budget.nanoseconds(), cpu.period.nanoseconds());
        let (name, given) = match holder {
            Holder::App(app) => (
                system.apps[app].name.clone(),
                system.apps[app].task.as_ref(),
            ),
            Holder::Manager(manager) => (format!("below {}", system.managers[manager].name), None),
        };
        let cost = given.and_then(|task| task.cost);
        let cost = cost.map_or(budget, |cost| cost.nanoseconds());
        // A job that needs several budgets waits between them. Without a task, the quota itself is the job.
        let distance = given.map_or(cpu.period, |task| {
            Time(task.period.0.saturating_sub(task.jitter.0))
        });
        let job = Job {
            cost,
            distance,
            received: match holder {
                Holder::App(_) => share.received,
                Holder::Manager(_) => 0,
            },
            turn: has_equals(&all, holder, cpu).then(|| slice(system, tile)),
        };
        let (charged, waits) = match (given.and_then(|task| task.cost), chunk) {
            (Some(_), Some(chunk)) => share.charged(&job, cpu, chunk),
            _ => (cost, Some(Time(0))),
        };
        let response = chunk.and_then(|chunk| chunk.checked_add(waits?.nanoseconds()));
        let shared = given.is_some_and(|task| task.cost.is_some()) && distance < cpu.period;
        let unbroken = match shared {
            true => share.unbroken(&job, cpu, (&tasks, own.blocking))?,
            false => None,
        };
        let (charged, response, paid) = match unbroken {
            Some((charged, least)) if response.is_none_or(|response| least < response) => {
                (charged, Some(least), true)
            }
            _ => (charged, response, waits.is_some()),
        };
        // A job is released this late after its arrival, from which its deadline counts.
        let jitter = given.map_or(0, |task| task.jitter.nanoseconds());
        // The need of its jobs per period of the quota.
        let needed = (u128::from(charged) * u128::from(period))
            .div_ceil(u128::from(distance.nanoseconds().max(1)));
        let needed = u64::try_from(needed)
            .unwrap_or(u64::MAX)
            .max(budget.saturating_add(1));
        reservations.push(Reservation {
            app: name,
            priority: cpu.priority,
            budget,
            period,
            deadline: given.map_or(period, |task| task.deadline.nanoseconds()),
            charged,
            response: response
                .filter(|_| unknown.is_none())
                .and_then(|response| response.checked_add(jitter)),
            unpaid: (!paid && unknown.is_none()).then_some(needed),
            unknown: unknown.clone(),
        });
    }
    Ok(TileAdmission {
        tile,
        switch,
        call,
        reservations,
    })
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
