//! Admission of applications that share a tile with fixed priorities: whether everybody gets what his quota promises, in time.
//!
//! Why it exists: budgets that TileMux enforces are worth something only if all of them fit. What it deliberately does not
//! know: what applications do; an application is its quota, however it behaves.
//!
//! # Method and assumptions
//! TileMux gives a budget back one period after the work that used it was released (a sporadic server), so an application
//! with quota *C* and period *T* disturbs those below no more than a sporadic task (*C*, *T*) does, and a job that needs at
//! most *C* is done within that task's response time ([`fixed_priority`]). To each budget two switches are added, and one
//! switch that cannot be interrupted blocks everybody. A switch is at most [`SWITCH_CYCLES`] with everything in the tile's
//! caches, and [`SWITCH_LINES`] lines from memory otherwise, which wait for nobody else: traffic of other tiles, which
//! token buckets bound, is not counted.
//!
//! TileMux charges a switch to whom it switches to. So a job of cost *c* needs *c* of its quota, a switch for its begin, one
//! for each time that somebody more urgent displaces it, one for each turn that it gives to equals, and the interrupts that hit it;
//! if that is more than its budget it waits for the next one. Others are taken to begin their budget once in its period, or, if
//! they have a `<task>`, with each of its jobs. **An application that wakes up more often than that costs those below it a switch
//! each time**, out of their budgets; its own budget pays for the switch to itself only, and nothing here bounds how often.
//!
//! All that is below a manager counts as what its tile capability grants (`System::time_below`), at the highest priority that it
//! grants: whatever the manager makes of it, children of children included, the kernel lets them demand no more than that in any
//! window (`abi::time`). It may divide its time into budgets of [`LEAST_BUDGET`], with two switches each. To those below
//! a manager, what others below it were given counts in the same way, and what nobody was given counts as one more. Children without
//! a budget come last, like all that have none.
//!
//! A message for a less urgent application interrupts who runs, unless the tile has a second hart. Such applications do not run
//! and give no credit back until the more urgent ones wait, so as many messages come as their gates' senders have credits, and
//! no more than the gates have slots; each costs [`INTERRUPT_CYCLES`]. Messages for applications that are less urgent than some
//! and more urgent than others are counted for the former only.
//!
//! A hart leaves an application whose access waits for its token bucket, but not one that waits for data: whoever is released while
//! somebody less urgent runs waits for the accesses under way, as many as the hart's buffers hold, one after the other. TileMux
//! borrows the tokens of a switch ([`PRIVILEGED_CREDIT`](bulkhead_abi::dtu::PRIVILEGED_CREDIT)); what it may need beyond that
//! passes the bucket of who runs.

use crate::communication::{Chip, ChipError, local_chunks};
use crate::schedulability::fixed_priority;
use crate::schedulability::task::{Task, TaskError};
use bulkhead_abi::time::LEAST_BUDGET;
use bulkhead_model::System;
use bulkhead_model::system::time::Holder;
use bulkhead_model::system::{App, Cpu, TilePolicy};
use bulkhead_model::units::Time;
use serde::Serialize;
use thiserror::Error;

/// Cycles of a switch that finds everything in the caches, at most; `docs/promises.md` has the measured value.
pub const SWITCH_CYCLES: u64 = 1500;
/// Cache lines of TileMux and of an application's registers that a switch touches, at most.
pub const SWITCH_LINES: u64 = 96;
/// Cycles of an interrupt by a message for somebody less urgent, at most; `docs/promises.md` has the measured value.
pub const INTERRUPT_CYCLES: u64 = 400;

/// Why nothing can be said.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AdmissionError {
    /// The hardware does not fit the description.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// A quota or period is out of the test's range.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// What one application was promised. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// Name of the application, or `below MANAGER` for all that is below a manager with a `<cpu>`.
    pub app: String,
    /// Greater is more urgent.
    pub priority: u8,
    /// Its quota.
    pub budget: u64,
    /// The quota's period.
    pub period: u64,
    /// When a job must be done: the task's deadline, or the quota's period.
    pub deadline: u64,
    /// Interrupts by messages for less urgent applications at most while a job is not done.
    pub interrupts: u64,
    /// When a job is done at worst; none if there is no bound.
    pub response: Option<u64>,
    /// What a job takes of its quota at most: its cost, switches to it, and interrupts that hit it.
    pub charged: u64,
    /// The quota does not pay for the task: what its jobs take in a period of the quota.
    pub unpaid: Option<u64>,
}

impl Reservation {
    /// Whether the promise holds.
    pub fn holds(&self) -> bool {
        self.unpaid.is_none()
            && self
                .response
                .is_some_and(|response| response <= self.deadline)
    }
}

/// A tile with fixed priorities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TileAdmission {
    /// The tile.
    pub tile: u16,
    /// A switch at most, in nanoseconds.
    pub switch: u64,
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

/// A switch on a tile at most, in nanoseconds.
///
/// # Errors
/// [`AdmissionError::Chip`] if the tile does not exist.
pub fn switch(system: &System, chip: &Chip, tile: u16) -> Result<u64, AdmissionError> {
    // TileMux lies in the first memory tile.
    let memory = system.platform.memories.first().map_or(0, |m| m.id);
    let line = chip.line_read(tile, memory)?.uncontended();
    let found = chip.tile(tile)?;
    let cycle = chip.cycle(found.pipeline.clock.frequency.0);
    let second = found.l2.as_ref().map_or(0, |l2| u64::from(l2.latency)) * cycle;
    let ticks =
        u128::from(SWITCH_CYCLES * cycle) + u128::from(SWITCH_LINES) * (line + u128::from(second));
    let per_second = u128::from(chip.ticks_per_second());
    Ok((ticks * 1_000_000_000).div_ceil(per_second) as u64)
}

/// Messages that can interrupt an application of this priority on a tile before it waits.
fn interrupts(system: &System, tile: u16, harts: u32, priority: u8) -> u64 {
    if harts > 1 {
        return 0;
    }
    let less_urgent = |app: &App| app.tile == tile && app.cpu.is_none_or(|c| c.priority < priority);
    let apps = || {
        let apps = system.apps.iter().enumerate();
        apps.filter(|(_, app)| less_urgent(app))
    };
    // Answers to what they asked others, and the kernel.
    let answers = apps().map(|(_, app)| {
        let credits = app.sgates.iter().map(|gate| u64::from(gate.credits.max(1)));
        1 + credits.sum::<u64>()
    });
    let gates = apps().flat_map(|(index, app)| {
        let gates = app.rgates.iter().enumerate();
        gates.map(move |(number, gate)| (index, number, u64::from(gate.slots)))
    });
    let messages = gates
        .map(|(app, gate, slots)| {
            let senders = system.apps.iter().flat_map(|sender| &sender.sgates);
            senders
                .filter(|sgate| (sgate.to, sgate.gate) == (app, gate))
                .map(|sgate| match sgate.credits {
                    0 => slots,
                    credits => credits.into(),
                })
                .sum::<u64>()
                .min(slots)
        })
        .sum::<u64>();
    messages + answers.sum::<u64>()
}

/// Nanoseconds until the hart has left an application, for the slowest one that is less urgent.
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
}

impl Share<'_> {
    /// Everybody below a manager who was promised something: applications, and managers with a `<cpu>` of their own.
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

    /// How often an application begins to use its budget in a period of it: with each job, and again where a job may need more than
    /// one budget.
    fn begins(&self, app: usize, cpu: Cpu) -> u64 {
        let Some(task) = &self.system.apps[app].task else {
            return 1;
        };
        let distance = task.period.0.saturating_sub(task.jitter.0).max(1);
        let cost = task.cost.map_or(0, |cost| cost.nanoseconds());
        let again = cost.saturating_add(2 * self.switch) > cpu.budget.nanoseconds();
        cpu.period.0.div_ceil(distance).max(1) + u64::from(again)
    }

    /// What a budget demands of the processor, if it begins so often in its period.
    fn task(&self, cpu: Cpu, begins: u64) -> Task {
        let switches = self.switch.saturating_mul(2).saturating_mul(begins);
        let period = cpu.period.nanoseconds();
        Task {
            cost: cpu.budget.nanoseconds().saturating_add(switches),
            period,
            deadline: period,
            jitter: 0,
            blocking: 0,
        }
    }

    /// The same of what may be divided further, and into how many pieces.
    fn divided(&self, cpu: Cpu) -> (Task, u64) {
        let pieces = cpu.budget.nanoseconds() / LEAST_BUDGET;
        (self.task(cpu, pieces), pieces)
    }

    /// Adds what others than `whom` may demand, who are not less urgent, of what a manager has, and how often they begin in a period.
    fn others(&self, manager: usize, whom: Holder, priority: u8, tasks: &mut Vec<(Task, u64)>) {
        let is_inside = |below: usize| match whom {
            Holder::App(app) => self.system.is_within(self.system.manager_of(app), below),
            // Of what itself has, a manager is not disturbed.
            Holder::Manager(other) => other != below && self.system.is_within(other, below),
        };
        for (holder, cpu) in self.system.times_of(manager, self.tile) {
            match holder {
                holder if holder == whom => {}
                Holder::Manager(below) if is_inside(below) => {
                    self.others(below, whom, priority, tasks);
                    self.rest(below, cpu, priority, tasks);
                }
                _ if cpu.priority < priority => {}
                Holder::App(app) => tasks.push((self.task(cpu, 1), self.begins(app, cpu))),
                Holder::Manager(_) => tasks.push(self.divided(cpu)),
            }
        }
    }

    /// Adds what a manager has left, which it may give to anybody.
    fn rest(&self, manager: usize, cpu: Cpu, priority: u8, tasks: &mut Vec<(Task, u64)>) {
        let period = cpu.period.nanoseconds();
        let taken = self.system.time_taken(manager, self.tile, period);
        let left = cpu.budget.nanoseconds().saturating_sub(taken);
        if cpu.priority >= priority && left >= LEAST_BUDGET {
            let budget = Time(left.saturating_mul(1000));
            tasks.push(self.divided(Cpu { budget, ..cpu }));
        }
    }
}

/// What a job takes of its quota besides switches.
struct Job {
    cost: u64,
    /// Minimum inter-arrival time of jobs.
    distance: Time,
    /// Interrupts by messages, altogether.
    interrupts: u64,
    /// Length of a turn, if it has equals.
    turn: Option<u64>,
}

impl Share<'_> {
    /// What a job is charged at most, and how long it waits for budgets; `chunk`: when one budget is used up at worst. No wait: the
    /// quota does not pay for the jobs.
    fn charged(
        &self,
        job: &Job,
        cpu: Cpu,
        chunk: u64,
        others: &[(Task, u64)],
    ) -> (u64, Option<Time>) {
        let own = job.cost.saturating_add(job.interrupts);
        // A turn begins with a switch.
        let turns = match job.turn {
            Some(turn) if turn > self.switch => own / (turn - self.switch),
            Some(_) => return (u64::MAX, None),
            None => 0,
        };
        let mut window = chunk;
        loop {
            // Once more for work that a budget was too short for.
            let displaced = others.iter().fold(0u64, |sum, (task, begins)| {
                let periods = window / task.period.max(1) + 2;
                sum.saturating_add(periods.saturating_mul(*begins))
            });
            // It begins again with each budget.
            let budgets = window / cpu.period.nanoseconds().max(1) + 1;
            let switches = displaced.saturating_add(turns).saturating_add(budgets);
            let charged = own.saturating_add(switches.saturating_mul(self.switch));
            let waits = cpu.waits(Time(charged.saturating_mul(1000)), job.distance);
            let Some(wait) = waits else {
                return (charged, None);
            };
            // Longer waits meet more of the others; where that has no end, the quota does not pay.
            let longer = chunk.saturating_add(wait.nanoseconds());
            if longer <= window {
                return (charged, Some(wait));
            }
            window = longer;
        }
    }
}

/// Whether somebody else on the tile is as urgent.
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
    let found = chip.tile(tile)?;
    let (hertz, harts) = (found.pipeline.clock.frequency.0, found.harts);
    let interrupt = (INTERRUPT_CYCLES * 1_000_000_000).div_ceil(hertz.max(1));
    let share = Share {
        system,
        tile,
        switch,
    };
    let mut all = share.holders(0);
    all.sort_by_key(|(_, cpu)| std::cmp::Reverse(cpu.priority));
    let mut reservations = Vec::new();
    for &(holder, cpu) in &all {
        let mut others = Vec::new();
        share.others(0, holder, cpu.priority, &mut others);
        let mut tasks: Vec<Task> = others.iter().map(|(task, _)| *task).collect();
        let mut own = share.task(cpu, 1);
        own.blocking = switch;
        tasks.push(own);
        let interrupts = interrupts(system, tile, harts, cpu.priority);
        let leave = leave(system, chip, tile, cpu.priority)?;
        if let Some(own) = tasks.last_mut() {
            own.blocking += interrupts * interrupt + leave;
        }
        let responses = fixed_priority::response_times(&tasks)?;
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
        // A job that needs several budgets waits between them. Without a task it is its own quota.
        let distance = given.map_or(cpu.period, |task| {
            Time(task.period.0.saturating_sub(task.jitter.0))
        });
        let job = Job {
            cost,
            distance,
            interrupts: interrupts * interrupt,
            turn: has_equals(&all, holder, cpu).then(|| slice(system, tile)),
        };
        let (charged, waits) = match (given.and_then(|task| task.cost), chunk) {
            (Some(_), Some(chunk)) => share.charged(&job, cpu, chunk, &others),
            _ => (cost, Some(Time(0))),
        };
        // What its jobs need in a period of the quota.
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
            interrupts,
            charged,
            response: chunk.and_then(|chunk| chunk.checked_add(waits?.nanoseconds())),
            unpaid: waits.is_none().then_some(needed),
        });
    }
    Ok(TileAdmission {
        tile,
        switch,
        reservations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    fn load(apps: &str) -> System {
        let folder =
            std::env::temp_dir().join(format!("bulkhead-admission-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let hash = apps
            .bytes()
            .fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
        let path = folder.join(format!("{hash:x}.xml"));
        let text = format!(
            "<system name=\"s\" platform=\"tiled-gem5\"><domain name=\"d\">{apps}</domain>\
             <tilemux tile=\"2\" policy=\"realtime\"/></system>"
        );
        std::fs::write(&path, text).unwrap();
        let system = load_system(&path, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        std::fs::remove_file(&path).unwrap();
        system
    }

    fn app(name: &str, cpu: &str, task: &str) -> String {
        format!("<app name=\"{name}\" tile=\"2\" program=\"p\"><cpu {cpu}/>{task}</app>")
    }

    #[test]
    fn without_priorities_there_is_nothing_to_admit() {
        let system = load_system("quickstart", &LoadOptions::default()).unwrap();
        assert_eq!(tiles(&system), Ok(vec![]));
    }

    /// 1 of 4 ms, 2 of 6 ms, 3 of 12 ms respond within 1, 3 and 10 ms (1 + 2 + 1 + 1 + 2 + 3 by hand), and some switches.
    #[test]
    fn response_times_are_those_of_the_test_and_some_switches() {
        let text = app("a", "quota=\"1ms\" period=\"4ms\"", "")
            + &app("b", "quota=\"2ms\" period=\"6ms\"", "")
            + &app("c", "quota=\"3ms\" period=\"12ms\"", "");
        let found = tiles(&load(&text)).unwrap();
        let [tile] = &found[..] else {
            panic!("one tile")
        };
        assert_eq!(tile.tile, 2);
        let names: Vec<_> = tile
            .reservations
            .iter()
            .map(|r| (r.app.as_str(), r.priority))
            .collect();
        assert_eq!(names, [("a", 3), ("b", 2), ("c", 1)]);
        assert!(tile.switch < 20_000, "{}", tile.switch);
        for (reservation, plain) in tile.reservations.iter().zip([1, 3, 10]) {
            let extra = reservation.response.unwrap() - plain * 1_000_000;
            assert!(extra > 0 && extra < 20 * tile.switch, "{reservation:?}");
            assert!(reservation.holds());
        }
    }

    #[test]
    fn messages_and_buckets_of_the_less_urgent_hold_up_the_urgent() {
        let response = |inside: &str| {
            let text = format!(
                "<app name=\"a\" tile=\"2\" program=\"p\"><cpu quota=\"1ms\" period=\"4ms\" priority=\"2\"/></app>\
                 <app name=\"b\" tile=\"2\" program=\"p\"><rgate name=\"in\" slots=\"8\"/>{inside}</app>\
                 <app name=\"c\" tile=\"3\" program=\"p\"><sgate name=\"s\" to=\"b\" credits=\"CREDITS\"/></app>"
            );
            let credits = if inside.contains("limit") {
                "1"
            } else {
                "unlimited"
            };
            let found = tiles(&load(&text.replace("CREDITS", credits))).unwrap();
            found[0].reservations[0].clone()
        };
        let (open, limited) = (response(""), response("<limit noc=\"8MiB/s\"/>"));
        // Eight slots, or one credit; each time the kernel's answer.
        assert_eq!((open.interrupts, limited.interrupts), (9, 2));
        // The bucket makes no difference, as TileMux borrows: 7 interrupts of 400 cycles at 2 GHz less.
        let difference = open.response.unwrap() - limited.response.unwrap();
        assert_eq!(difference, 7 * 200);
        // 50 accesses under way, each some 60 ns by itself.
        let alone = load(
            "<app name=\"a\" tile=\"2\" program=\"p\"><cpu quota=\"1ms\" period=\"4ms\" priority=\"2\"/></app>",
        );
        let alone = tiles(&alone).unwrap()[0].reservations[0].response.unwrap();
        let leave = open.response.unwrap() - 9 * 200 - alone;
        assert!((2_000..10_000).contains(&leave), "{leave}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let text = app("a", "quota=\"5ms\" period=\"10ms\" priority=\"9\"", "")
            + &app(
                "b",
                "quota=\"2ms\" period=\"10ms\" priority=\"3\"",
                "<task period=\"10ms\" deadline=\"6ms\"/>",
            );
        let found = tiles(&load(&text)).unwrap();
        let holds: Vec<_> = found[0]
            .reservations
            .iter()
            .map(Reservation::holds)
            .collect();
        assert_eq!(holds, [true, false]);
        // A job of 3 ms at 1 ms in each 2 ms waits for two more periods; three jobs in a period are more than the quota.
        let slow = "<task period=\"20ms\" deadline=\"6ms\" cost=\"3ms\"/>";
        let often = "<task period=\"3ms\" cost=\"1ms\"/>";
        let text = app("slow", "quota=\"1ms\" period=\"2ms\"", slow)
            + &app("often", "quota=\"2ms\" period=\"9ms\"", often);
        let found = tiles(&load(&text)).unwrap();
        let find = |name: &str| {
            found[0]
                .reservations
                .iter()
                .find(|r| r.app == name)
                .unwrap()
                .clone()
        };
        // 2 ms in each 15 ms need more than 1 ms in each 10 ms, although two budgets are there within each deadline.
        let greedy = "<task period=\"15ms\" cost=\"2ms\"/>";
        let refused = tiles(&load(&app(
            "greedy",
            "quota=\"1ms\" period=\"10ms\"",
            greedy,
        )))
        .unwrap();
        assert!(!refused[0].reservations[0].holds());
        // And a switch for each job: (2 ms + 10 662 ns) * 10 / 15.
        assert_eq!(refused[0].switch, 10_662);
        assert_eq!(refused[0].reservations[0].unpaid, Some(1_340_442));
        assert!(find("slow").response.unwrap() > 5_000_000);
        // Three jobs, each with its switch and the interrupt by an answer for the other one.
        assert_eq!(find("often").unpaid, Some(3 * (1_000_000 + 10_662 + 200)));
        assert!(!find("often").holds());
    }
}
