//! A tile whose applications have quotas and priorities, as TileMux serves them: sporadic servers with switches.
//!
//! Event by event, in nanoseconds. A switch precedes each run, and nothing interrupts it. An application that begins while none or a less
//! urgent one runs pays for the switch to it. One that ends pays for the switch to a less or equally urgent one, or to none. A budget comes
//! back one period after the work that used it was released; a switch that begins may overrun it. Equals take turns of a slice. A budget
//! has at most eight pieces: one that is used in more pieces, or in tiny ones, comes back later as a whole. Kernel requests arrive as often
//! as permitted. Applications without a budget fill whatever is left. Nothing interrupts a call to TileMux. An application
//! with a budget may make it with the last of the budget, or just before another application comes; one without a budget may do the latter. A
//! message interrupts an application that is not more urgent than its receiver, at the receiver's cost, once until the receiver runs. An application with a `<task>` has jobs of its cost, as often as
//! permitted. One without does what it can: it loops forever, has half a budget's work once in its period, or sleeps and wakes up as often
//! as it can, with a little work each time.

use bulkhead_analysis::admission::{self, RECEIVED_CYCLES};
use bulkhead_analysis::communication::Chip;
use bulkhead_model::{LoadOptions, System, load_system_text};
use std::fmt::Write;

use crate::measure::Known;
use crate::random::Random;

const US: u64 = 1000;
/// The most pieces in which a budget comes back.
const PIECES: usize = 8;
/// A shorter piece comes back with the next one.
const CRUMB: u64 = 5 * US;

/// One application while it runs.
struct App {
    period: u64,
    priority: u8,
    /// Cost of a job and minimum inter-arrival time of jobs.
    job: (u64, u64),
    /// Refills, available or on their way: when, how much.
    refills: Vec<(u64, u64)>,
    /// Jobs that have arrived: release, remaining work.
    jobs: Vec<(u64, u64)>,
    next: u64,
    /// Since when the present work counts.
    release: u64,
    slice: u64,
    /// Maximum sleep after each job; it has no other jobs.
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

    /// A piece comes back then, after those already on their way; `in_use`: the first one is not used up.
    fn comes_back(&mut self, at: u64, time: u64, in_use: bool) {
        let count = self.refills.len();
        let Some(last) = self.refills.last_mut() else {
            return self.refills.push((at, time));
        };
        let later = at.max(last.0);
        let crumb = last.1 < CRUMB && (count > 1 || !in_use);
        if count == PIECES || last.0 == at || crumb {
            *last = (later, last.1 + time);
        } else {
            self.refills.push((later, time));
        }
    }

    /// Takes time away; it comes back a period after the work was released or after the time was available, whichever is later.
    fn charge(&mut self, now: u64, mut time: u64) {
        // Pieces that were available before the work was released are merged.
        while self.refills.len() > 1 && self.refills[1].0 <= self.release {
            self.refills[1].1 += self.refills[0].1;
            self.refills.remove(0);
        }
        while time > 0 && self.refills[0].1 > 0 {
            let (at, there) = self.refills[0];
            let used = there.min(time);
            time -= used;
            let in_use = used < there;
            match in_use {
                true => self.refills[0].1 -= used,
                false => {
                    self.refills.remove(0);
                }
            }
            self.comes_back(at.max(self.release) + self.period, used, in_use);
        }
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
    /// The longest call of an application to TileMux.
    call: u64,
    slice: u64,
    /// The duration of a kernel request, and the time after which another one may come while an application with a budget wants the hart.
    request: (u64, u64),
    /// Until then none does.
    calm: u64,
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
                    // A piece that is not available yet counts from the moment when it is.
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
        // The running application continues while its slice lasts; then the next one in turn.
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

    /// The hart goes to an application, or to none with a budget.
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

    /// A message for an application that does not run and is not less urgent than the running one. False if there is none.
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

    /// A request of the kernel, on nobody's account.
    fn ask(&mut self) {
        let (cost, distance) = self.request;
        self.now += cost;
        self.calm = self.now + distance;
    }

    fn follow(&mut self, end: u64, received: u64) {
        while self.now < end {
            self.arrive();
            let Some(index) = self.chosen() else {
                if self.running.is_some() {
                    // The hart switches to an application without a budget, which runs.
                    self.switch_to(None);
                    continue;
                }
                let change = self.change().min(end);
                // A request, or a call of an application without a budget, that begins just before another application comes.
                let begins = self.now.max(change - 1);
                match self.random.below(4) {
                    0 | 1 => {
                        self.now = begins;
                        self.ask();
                    }
                    2 => self.now = begins + self.call,
                    _ => {}
                }
                self.now = self.now.max(change);
                continue;
            };
            if self.calm <= self.now && self.random.one_in(2) {
                self.ask();
                continue;
            }
            if self.running != Some(index) {
                self.switch_to(Some(index));
                // A job that has used up its budget on the way must wait again.
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
                .min(
                    self.calm
                        .checked_sub(self.now)
                        .filter(|calm| *calm > 0)
                        .unwrap_or(u64::MAX),
                )
                .min(if app.slice == 0 { u64::MAX } else { slice });
            // The end of this run is a call, which is part of the job's work.
            let call = match self.random.one_in(3) {
                true => self.call.min(left - run),
                false => 0,
            };
            let run = run + call;
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

/// `many`: jobs of the first application share a budget, more of them than a budget has pieces.
fn described(random: &mut Random, many: bool) -> String {
    let mut text = "<system name=\"s\" platform=\"tiled-gem5\"><domain name=\"d\">".to_owned();
    let count = random.between(2, 4);
    let mut left = 85;
    let mut senders = String::new();
    for number in 0..count {
        let shared = many && number == 0;
        let period = match shared {
            // Each job begins a piece of the budget with two switches.
            true => random.of_list(&[24_000, 32_000, 48_000]) * US,
            false => random.of_list(&[1000, 1500, 2000, 3000, 4000, 6000]) * US,
        };
        let share = match shared {
            true => random.between(40, 70),
            false => random.between(5, (left / 2).max(6)),
        };
        left -= share.min(left);
        let budget = (period * share / 100).max(60 * US);
        let priority = random.between(1, 3);
        let task = match random.below(3) {
            _ if shared => {
                let jobs = random.between(8, 16);
                let distance = period / jobs;
                // About half of the budgets, with switches: up to where they may run out, and beyond.
                let each = budget / (2 * jobs + 1);
                let cost = each * random.between(2, 100) / 100;
                format!(
                    "<task period=\"{distance}ns\" deadline=\"{distance}ns\" cost=\"{cost}ns\"/>"
                )
            }
            0 => String::new(),
            kind => {
                // One budget per job, or several.
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

/// One random tile: compares the response of every application with a `<task>` with what `check` says.
pub fn one(random: &mut Random) -> Result<Known, String> {
    let text = described(random, false);
    judged(&text, random)
}

/// The same where more jobs share a budget than it has pieces.
pub fn many(random: &mut Random) -> Result<Known, String> {
    let text = described(random, true);
    judged(&text, random)
}

fn judged(text: &str, random: &mut Random) -> Result<Known, String> {
    let system = load_system_text("s", text, &LoadOptions::default());
    let system = system.map_err(|error| format!("{error}\n{text}"))?;
    let tiles = admission::tiles(&system).map_err(|error| error.to_string())?;
    let [tile] = &tiles[..] else {
        return Err(format!("one tile shares: {tiles:?}"));
    };
    let found = system.platform.tile(2).expect("the tile");
    let hertz = found.pipeline.clock.frequency.0;
    let received = RECEIVED_CYCLES * 1_000_000_000 / hertz;
    let requests = admission::requests(&system, &Chip::new(&system.platform), 2);
    let requests = requests.map_err(|error| error.to_string())?;
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
            call: tile.call,
            slice,
            request: (requests.cost, requests.period),
            calm: 0,
            now: 0,
            random,
        };
        // An activity that sleeps and wakes all the time makes many events.
        let sleepers = tile.apps.iter().any(|app| app.sleeps.is_some());
        let longest = tile.apps.iter().map(|app| app.period / US).max();
        let longest = longest.unwrap_or(0);
        let end = if sleepers {
            15_000.max(2 * longest)
        } else {
            60_000.max(8 * longest)
        };
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
