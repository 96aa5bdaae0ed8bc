//! A tile whose applications have quotas and priorities, as TileMux serves them: sporadic servers with switches.
//!
//! Event by event, in nanoseconds. A switch comes before each run, and nothing interrupts it. An application that
//! begins while nobody or a less urgent one runs pays for the switch to it. One that ends pays for the switch to a less or equally urgent
//! one, or to none. A budget comes back one period after the work that used it was released; a switch that begins may overrun it. Equals take turns
//! of a slice. Applications without a budget fill whatever is left. A message interrupts whoever is not more urgent than its receiver, at
//! the receiver's cost, once until the receiver runs. An application with a `<task>` has jobs of its
//! cost, as often as they may come. One without does what it can: it loops for ever, has half a budget's work once in its period, or
//! sleeps and wakes up as often as it can, with a little work each time.

use bulkhead_analysis::admission::{self, RECEIVED_CYCLES};
use bulkhead_model::{LoadOptions, System, load_system_text};
use std::fmt::Write;

use crate::measure::Known;
use crate::random::Random;

const US: u64 = 1000;

/// One application while it runs.
struct App {
    period: u64,
    priority: u8,
    /// Cost of a job and minimum inter-arrival time of jobs.
    job: (u64, u64),
    /// Refills that are on their way or there: when, how much.
    refills: Vec<(u64, u64)>,
    /// Jobs that are there: release, work left.
    jobs: Vec<(u64, u64)>,
    next: u64,
    /// Since when the present work counts.
    release: u64,
    slice: u64,
    /// Sleeps so long after each job at most, and has no other jobs.
    sleeps: Option<u64>,
    /// A message came for it since it ran.
    came: bool,
}

impl App {
    /// What it may use now without a pause.
    fn there(&self, now: u64) -> u64 {
        let there = self.refills.iter().filter(|r| r.0 <= now);
        there.map(|r| r.1).sum()
    }

    fn is_ready(&self, now: u64) -> bool {
        !self.jobs.is_empty() && self.there(now) > 0
    }

    /// Takes time away; it comes back a period after the work was released, or after it was there, whichever is later.
    fn charge(&mut self, now: u64, mut time: u64) {
        self.refills.sort_unstable();
        let mut back = Vec::new();
        for refill in &mut self.refills {
            let used = refill.1.min(time);
            refill.1 -= used;
            time -= used;
            if used > 0 {
                back.push((refill.0.max(self.release) + self.period, used));
            }
        }
        self.refills.retain(|r| r.1 > 0);
        self.refills.extend(back);
        if self.there(now) == 0 {
            let next = self.refills.iter().map(|r| r.0).min();
            self.release = self.release.max(next.unwrap_or(now));
        }
    }
}

struct Tile<'a> {
    apps: Vec<App>,
    worst: Vec<u64>,
    running: Option<usize>,
    switch: u64,
    slice: u64,
    now: u64,
    random: &'a mut Random,
}

impl Tile<'_> {
    /// Jobs that have come by now.
    fn arrive(&mut self) {
        for app in &mut self.apps {
            while app.next <= self.now {
                if app.jobs.is_empty() {
                    app.release = app.next;
                    // What is not there yet counts from when it is.
                    if app.there(app.next) == 0 {
                        let next = app.refills.iter().map(|r| r.0).min();
                        app.release = app.release.max(next.unwrap_or(0));
                    }
                    app.slice = self.slice;
                }
                let (cost, distance) = app.job;
                app.jobs.push((app.next, cost));
                let lazy = self.random.one_in(6);
                app.next = match app.sleeps {
                    Some(_) => u64::MAX,
                    None if lazy => app.next + distance + self.random.below(distance),
                    None => app.next + distance,
                };
            }
        }
    }

    fn chosen(&self) -> Option<usize> {
        let ready = (0..self.apps.len()).filter(|&i| self.apps[i].is_ready(self.now));
        let best = ready.clone().map(|i| self.apps[i].priority).max()?;
        let equals: Vec<usize> = ready.filter(|&i| self.apps[i].priority == best).collect();
        // Whoever runs goes on while its slice lasts; then the next one in turn.
        let current = self.running.filter(|i| equals.contains(i));
        match current {
            Some(i) if self.apps[i].slice > 0 || equals.len() == 1 => Some(i),
            Some(i) => equals
                .iter()
                .copied()
                .find(|&o| o > i)
                .or(equals.first().copied()),
            None => equals.first().copied(),
        }
    }

    /// When something may change: an arrival or a refill.
    fn change(&self) -> u64 {
        let arrivals = self.apps.iter().map(|app| app.next);
        let refills = self
            .apps
            .iter()
            .flat_map(|app| app.refills.iter().map(|r| r.0));
        let later = arrivals.chain(refills).filter(|&at| at > self.now);
        later.min().unwrap_or(u64::MAX)
    }

    /// The hart goes to somebody, or to nobody with a budget.
    fn switch_to(&mut self, next: Option<usize>) {
        let switch = match self.random.one_in(3) {
            true => self.random.between(self.switch / 2, self.switch),
            false => self.switch,
        };
        let from = self.now;
        self.now += switch;
        let begins = match (self.running, next) {
            (Some(previous), Some(next)) => self.apps[next].priority > self.apps[previous].priority,
            (previous, _) => previous.is_none(),
        };
        let payer = if begins { next } else { self.running };
        if let Some(payer) = payer {
            self.apps[payer].charge(from, switch);
        }
        self.running = next;
        if let Some(next) = next {
            let next = &mut self.apps[next];
            // The way to it is part of its turn.
            let turn = if next.slice == 0 {
                self.slice
            } else {
                next.slice
            };
            let begun = if begins { switch } else { 0 };
            next.slice = turn.saturating_sub(begun).max(1);
            next.came = false;
        }
    }

    /// A message for somebody who does not run and is not less urgent than the one that does. False if there is none.
    fn receive(&mut self, running: usize, cost: u64) -> bool {
        let priority = self.apps[running].priority;
        let others = self.apps.iter_mut().enumerate();
        let mut others = others
            .filter(|(index, app)| *index != running && app.priority >= priority && !app.came);
        let Some((_, receiver)) = others.next() else {
            return false;
        };
        receiver.came = true;
        if receiver.jobs.is_empty() {
            // It waits, so this belongs to no work.
            receiver.release = self.now;
        }
        receiver.charge(self.now, cost);
        self.now += cost;
        true
    }

    fn follow(&mut self, end: u64, received: u64) {
        while self.now < end {
            self.arrive();
            let Some(index) = self.chosen() else {
                if self.running.is_some() {
                    // Somebody without a budget is switched to, and runs.
                    self.switch_to(None);
                    continue;
                }
                self.now = self.now.max(self.change().min(end));
                continue;
            };
            if self.running != Some(index) {
                self.switch_to(Some(index));
                // Who has used up all on the way must wait again.
                continue;
            }
            if self.random.one_in(4) && self.receive(index, received) {
                continue;
            }
            let change = self.change();
            let app = &mut self.apps[index];
            let left = app.jobs[0].1;
            let slice = app.slice.max(1);
            let run = left
                .min(app.there(self.now))
                .min(change - self.now)
                .min(if app.slice == 0 { u64::MAX } else { slice });
            self.now += run;
            app.charge(self.now, run);
            app.slice = app.slice.saturating_sub(run);
            app.jobs[0].1 -= run;
            if app.jobs[0].1 == 0 {
                let (released, _) = app.jobs.remove(0);
                self.worst[index] = self.worst[index].max(self.now - released);
                if let Some(sleeps) = app.sleeps {
                    app.next = self.now + 1 + self.random.below(sleeps);
                }
                if let Some(next) = app.jobs.first() {
                    app.release = next.0.max(app.release);
                }
            }
        }
        for (app, worst) in self.apps.iter().zip(&mut self.worst) {
            for job in &app.jobs {
                *worst = end.saturating_sub(job.0).max(*worst);
            }
        }
    }
}

fn described(random: &mut Random) -> String {
    let mut text = "<system name=\"s\" platform=\"tiled-gem5\"><domain name=\"d\">".to_owned();
    let count = random.between(2, 4);
    let mut left = 85;
    let mut senders = String::new();
    for number in 0..count {
        let period = random.of_list(&[1000, 1500, 2000, 3000, 4000, 6000]) * US;
        let share = random.between(5, (left / 2).max(6));
        left -= share.min(left);
        let budget = (period * share / 100).max(60 * US);
        let priority = random.between(1, 3);
        let task = match random.below(3) {
            0 => String::new(),
            kind => {
                // One budget a job, or several.
                let budgets = if kind == 1 { 1 } else { random.between(1, 3) };
                let distance = period * budgets;
                let room = random.between(1, 30) * 5 * US;
                let cost = (budget * budgets).saturating_sub(room).max(10 * US);
                format!(
                    "<task period=\"{distance}ns\" deadline=\"{distance}ns\" cost=\"{cost}ns\"/>"
                )
            }
        };
        let mut gate = String::new();
        if random.one_in(2) {
            let slots = random.of_list(&[1, 4, 8]);
            gate = format!("<rgate name=\"in\" slots=\"{slots}\"/>");
            write!(
                senders,
                "<sgate name=\"o{number}\" to=\"a{number}\" credits=\"unlimited\"/>"
            )
            .expect("a string");
        }
        write!(
            text,
            "<app name=\"a{number}\" tile=\"2\" program=\"p\"><cpu quota=\"{budget}ns\" period=\"{period}ns\" priority=\"{priority}\"/>{task}{gate}</app>"
        )
        .expect("a string");
    }
    let slots = random.of_list(&[1, 2, 4, 8]);
    let slice = random.of_list(&[100, 300, 1000]);
    write!(
        text,
        "<app name=\"rest\" tile=\"2\" program=\"p\"><rgate name=\"in\" slots=\"{slots}\"/></app>\
         <app name=\"away\" tile=\"3\" program=\"p\"><sgate name=\"out\" to=\"rest\" credits=\"unlimited\"/>{senders}</app></domain>\
         <tilemux tile=\"2\" policy=\"realtime\" slice=\"{slice}us\"/></system>"
    )
    .expect("a string");
    text
}

fn apps(system: &System, random: &mut Random) -> Vec<App> {
    let own = system.apps.iter().filter_map(|app| Some((app, app.cpu?)));
    own.map(|(app, cpu)| {
        let budget = cpu.budget.nanoseconds();
        let task = app.task.as_ref();
        let job = task.and_then(|task| Some((task.cost?.nanoseconds(), task.period.nanoseconds())));
        let endless = (1 << 50, 1 << 50);
        let half = (budget / 2, cpu.period.nanoseconds());
        let little = (random.between(1, 3 * US), 0);
        let kind = if job.is_some() { 3 } else { random.below(3) };
        let job = job.unwrap_or_else(|| [endless, half, little][kind as usize]);
        App {
            period: cpu.period.nanoseconds(),
            priority: cpu.priority,
            job,
            refills: vec![(0, budget)],
            jobs: Vec::new(),
            next: random.of_list(&[0, 0, 1]) * random.below(cpu.period.nanoseconds()),
            release: 0,
            slice: 0,
            sleeps: (kind == 2).then(|| random.of_list(&[1, 10, 50]) * US),
            came: false,
        }
    })
    .collect()
}

/// One random tile: the response of everybody who has a `<task>`, against what `check` says.
pub fn one(random: &mut Random) -> Result<Known, String> {
    let text = described(random);
    let system = load_system_text("s", &text, &LoadOptions::default());
    let system = system.map_err(|error| format!("{error}\n{text}"))?;
    let tiles = admission::tiles(&system).map_err(|error| error.to_string())?;
    let [tile] = &tiles[..] else {
        return Err(format!("one tile shares: {tiles:?}"));
    };
    let found = system.platform.tile(2).expect("the tile");
    let hertz = found.pipeline.clock.frequency.0;
    let received = RECEIVED_CYCLES * 1_000_000_000 / hertz;
    let slice = system.tilemux.iter().find(|mux| mux.tile == 2);
    let slice = slice.map_or(1_000_000, |mux| mux.slice.nanoseconds());
    let mut worst = vec![0; system.apps.len()];
    for _ in 0..12 {
        let apps = apps(&system, random);
        let mut tile = Tile {
            worst: vec![0; apps.len()],
            apps,
            running: None,
            switch: tile.switch,
            slice,
            now: 0,
            random,
        };
        // Who sleeps and wakes all the time makes many events.
        let sleepers = tile.apps.iter().any(|app| app.sleeps.is_some());
        let end = if sleepers { 15_000 } else { 60_000 };
        tile.follow(end * US, received);
        for (worst, one) in worst.iter_mut().zip(&tile.worst) {
            *worst = (*one).max(*worst);
        }
    }
    let mut known = Known::default();
    let own = system.apps.iter().filter(|app| app.cpu.is_some());
    for (app, worst) in own.zip(worst) {
        if app.task.is_none() {
            continue;
        }
        let said = tile.reservations.iter().find(|one| one.app == app.name);
        let said = said.ok_or_else(|| format!("nothing is said of {}", app.name))?;
        known
            .compare(&app.name, said.response, worst)
            .map_err(|why| format!("{why}\n{text}\n{tile:?}"))?;
    }
    Ok(known)
}
