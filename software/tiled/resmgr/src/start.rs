//! Starts all applications and the managers below, in order, and some of them again.
//!
//! Why it exists: no application runs before all of its gates are there, no client before its services. What it deliberately
//! does not know: what an application is made of.

use crate::calls::{self, Failure, kind_of};
use crate::connect::{self, Regions};
use crate::create::{self, Draft};
use crate::gates::Selectors;
use crate::{load, pagers, tiles};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::syscall::{
    ObjectKind, REPORT_DONE, REPORT_SERVICES, SEL_ACTIVITY, SEL_DESCRIPTION, SEL_MODULES,
    SEL_SHARED, SHARED_MAX, StopCause, Syscall,
};
use bulkhead_lib::println;
use bulkhead_loader::layout::Layout;
use bulkhead_resmgr::description::{App, ImportKind, Source, Subsystem, Target, part};

/// How far an application or manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits for a service.
    Waits,
    /// It runs.
    Runs,
    /// It has ended, or never will run.
    Over,
}

/// A manager below.
struct Below {
    draft: Draft,
    name: String,
    foreground: bool,
    phase: Phase,
    /// A bit for each of its imports whose service it has offered.
    offered: u64,
}

/// An application.
struct State {
    phase: Phase,
    /// How often it was started again.
    restarts: u32,
}

/// Everything that a manager has started.
pub struct World<'a> {
    system: &'a Subsystem,
    drafts: Vec<Draft>,
    states: Vec<State>,
    below: Vec<Below>,
    selectors: Selectors,
    /// Services that are there.
    services: BTreeSet<Source>,
    /// What this manager has said: a bit for each service that it offers to the one above, and whether it is done.
    said: u64,
    /// The exit code so far: 3 once something in the foreground has failed.
    pub code: u64,
}

/// Exit code of a manager one of whose applications failed.
const FAILED: u64 = 3;

impl<'a> World<'a> {
    /// Starts everything.
    ///
    /// # Errors
    /// The first failure.
    pub fn start(system: &'a Subsystem) -> Result<Self, Failure> {
        let mut selectors = Selectors::new();
        let first_memory = match kind_of(SEL_MODULES) {
            Some((ObjectKind::Memory, [_, _, tile])) => tile as u16,
            _ => 0,
        };
        let windows = tiles::configure(system, first_memory, &mut selectors)?;
        let mut drafts = Vec::new();
        for app in &system.apps {
            drafts.push(create::application(app, &windows, &mut selectors)?);
        }
        pagers::connect(system, &mut drafts, &mut selectors)?;
        let exports = connect::exports(system, &mut selectors)?;
        let mut below = Vec::new();
        for manager in &system.managers {
            let draft = create::below(manager, &windows, first_memory, &mut selectors)?;
            connect::introduce(
                manager,
                &drafts,
                &exports,
                draft.selector,
                &mut selectors,
                |text, s| {
                    let window = windows[&(manager.tile, first_memory)];
                    let memory = s.cut(window, text.len() as u64 + 1)?;
                    load::write_memory(memory, &text)?;
                    connect::give(draft.selector, memory, SEL_DESCRIPTION)
                },
                part,
            )?;
            create::fill(&draft, &manager.name, &[], false)?;
            create::run(&draft)?;
            below.push(Below {
                name: manager.name.clone(),
                draft,
                foreground: manager.foreground(),
                phase: Phase::Runs,
                offered: 0,
            });
        }
        let states = system.apps.iter().map(|_| State {
            phase: Phase::Waits,
            restarts: 0,
        });
        let mut world = Self {
            system,
            states: states.collect(),
            drafts,
            below,
            selectors,
            services: BTreeSet::new(),
            said: 0,
            code: 0,
        };
        let mut regions = Regions::new();
        // Nobody waits for those who wait for a manager below.
        for dependent in [false, true] {
            let is_now = |app: &&(usize, &App)| depends(app.1) == dependent;
            let apps: Vec<(usize, &App)> = system.apps.iter().enumerate().collect();
            for (index, app) in apps.iter().filter(is_now) {
                let connected = connect::connect(
                    (&system.apps, *index),
                    &mut world.drafts,
                    &exports,
                    &mut regions,
                    &mut world.selectors,
                );
                match connected {
                    Err(failure) if dependent => {
                        println!("`{}` is not started: {failure}", app.name);
                        world.give_up(*index);
                    }
                    other => other?,
                }
            }
            for (index, app) in apps.iter().filter(is_now) {
                if world.states[*index].phase != Phase::Over {
                    create::fill(&world.drafts[*index], &app.name, &app.arguments, app.lazy)?;
                }
            }
            // What runs in the background first: what the others measure shall not see it start.
            for foreground in [false, true] {
                for (index, app) in apps.iter().filter(is_now) {
                    if app.foreground == foreground {
                        world.run_if_ready(*index)?;
                    }
                }
            }
        }
        Ok(world)
    }

    /// Says what was used at most of the quotas that the description bounds.
    pub fn print_quotas(&self) {
        for (app, draft) in self.system.apps.iter().zip(&self.drafts) {
            let used = calls::tile_used(draft.tile).unwrap_or_default();
            let kernel = app
                .kernel_memory
                .and_then(|_| calls::purse_used(draft.purse));
            let all = [
                ("endpoints", app.endpoints.map(|limit| (used[0], limit))),
                ("page-tables", app.tables.map(|limit| (used[1], limit))),
                ("kernel-memory", kernel.zip(app.kernel_memory)),
            ];
            for (quota, (used, limit)) in all.into_iter().filter_map(|(n, q)| Some((n, q?))) {
                println!("quota of `{}`: {quota} {used} of {limit}", app.name);
            }
        }
        for (below, manager) in self.below.iter().zip(&self.system.managers) {
            for (tile, selector) in &below.draft.quotas {
                let Some(limit) = manager.limits.iter().find(|limit| limit.tile == *tile) else {
                    continue;
                };
                let used = calls::tile_used(*selector).unwrap_or_default();
                let all = [
                    ("endpoints", limit.endpoints),
                    ("page-tables", limit.tables),
                ];
                for ((quota, limit), used) in all.into_iter().zip(used) {
                    if let Some(limit) = limit {
                        println!(
                            "quota of `{}`: {quota}@{tile} {used} of {limit}",
                            below.name
                        );
                    }
                }
            }
            if let Some(used) = calls::purse_used(below.draft.purse) {
                let limit = manager.kernel_memory;
                println!("quota of `{}`: kernel-memory {used} of {limit}", below.name);
            }
        }
    }

    /// Whether something in the foreground has not ended.
    pub fn is_busy(&self) -> bool {
        let apps = self.states.iter().zip(&self.system.apps);
        let mut apps = apps.map(|(state, app)| (state.phase, app.foreground));
        let mut below = self.below.iter().map(|b| (b.phase, b.foreground));
        let is_busy = |(phase, foreground)| foreground && phase != Phase::Over;
        apps.any(is_busy) || below.any(is_busy)
    }

    /// The services that an application waits for before it starts.
    fn services(app: &App) -> impl Iterator<Item = Source> {
        let sessions = app.send.iter().filter(|gate| gate.session);
        sessions.map(|gate| gate.to.into())
    }

    /// Runs an application for the first time if its services are there.
    fn run_if_ready(&mut self, index: usize) -> Result<(), Failure> {
        let mut services = Self::services(&self.system.apps[index]);
        let is_ready = services.all(|service| self.services.contains(&service));
        if self.states[index].phase == Phase::Waits && is_ready {
            create::run(&self.drafts[index])?;
            self.states[index].phase = Phase::Runs;
        }
        Ok(())
    }

    /// An application will not run any more, or never.
    fn give_up(&mut self, index: usize) {
        if self.system.apps[index].foreground {
            self.code = FAILED;
        }
        self.over(index);
    }

    /// An application has ended.
    fn over(&mut self, index: usize) {
        self.states[index].phase = Phase::Over;
        self.lost(Source::App(index), &self.system.apps[index].name);
    }

    /// A service is gone for good: who waits for it, waits in vain.
    fn lost(&mut self, service: Source, name: &str) {
        self.services.remove(&service);
        for client in 0..self.states.len() {
            let app = &self.system.apps[client];
            let mut wanted = Self::services(app);
            if self.states[client].phase == Phase::Waits && wanted.any(|s| s == service) {
                println!(
                    "`{}` is not started: there is no service `{name}`",
                    app.name
                );
                self.give_up(client);
            }
        }
    }

    /// An application offers a service.
    pub fn offered(&mut self, activity: u16, service: u16) -> Result<(), Failure> {
        let Some(server) = self.application(activity) else {
            return Ok(());
        };
        // What it offers is its own affair; if it cannot be taken, its clients find no service.
        match connect::obtain(&self.drafts[server], server, service) {
            Ok(selector) => self.share(Source::App(server), selector),
            Err(failure) => {
                println!(
                    "the service of `{}`: {failure}",
                    self.system.apps[server].name
                );
                Ok(())
            }
        }
    }

    /// A service is there, under this selector: all who may have it get it.
    fn share(&mut self, source: Source, service: u16) -> Result<(), Failure> {
        for (client, app) in self.system.apps.iter().enumerate() {
            if self.states[client].phase != Phase::Over {
                connect::give_service(app, &self.drafts[client], source, service);
            }
        }
        for (below, manager) in self.below.iter().zip(&self.system.managers) {
            for (number, import) in manager.imports.iter().enumerate() {
                let wanted = match import.kind {
                    ImportKind::Send { to, session, .. } => session && Source::from(to) == source,
                    ImportKind::Receive(_) => false,
                };
                // A manager that has ended, or does not listen, harms only what is below it.
                if wanted && number < usize::from(SHARED_MAX) {
                    let number = number as u16;
                    let activity = below.draft.selector;
                    let value = u64::from(number);
                    if connect::give(activity, service, SEL_SHARED + number).is_ok() {
                        let _ = calls::call("tell", &Syscall::Tell { activity, value });
                    }
                }
            }
        }
        let offers = self.system.offers.iter();
        for (number, _) in offers.filter(|(_, offer)| *offer == source) {
            let number = *number as u16;
            if number < SHARED_MAX {
                connect::give(SEL_ACTIVITY, service, SEL_SHARED + number)?;
                self.say(1 << (REPORT_SERVICES + u32::from(number)));
            }
        }
        self.services.insert(source);
        for client in 0..self.states.len() {
            self.run_if_ready(client)?;
        }
        Ok(())
    }

    /// Tells the manager above what is new, with all that was said before: it may not have heard it.
    fn say(&mut self, news: u64) {
        self.said |= news;
        let value = self.said;
        let _ = calls::call("report", &Syscall::Report { value });
    }

    /// Tells the manager above that all that were to end have ended.
    pub fn say_done(&mut self) {
        self.say(REPORT_DONE | self.code);
    }

    /// The manager above says that the service behind an import is there.
    pub fn told(&mut self, number: u64) -> Result<(), Failure> {
        let Some(number) = u16::try_from(number).ok().filter(|n| *n < SHARED_MAX) else {
            return Ok(());
        };
        let source = Source::Import(connect::IMPORTS + number);
        self.share(source, SEL_SHARED + number)
    }

    fn application(&self, activity: u16) -> Option<usize> {
        self.drafts.iter().position(|d| d.activity == activity)
    }

    /// Something that was started has stopped.
    pub fn stopped(&mut self, activity: u16, cause: StopCause) {
        if let Some(index) = self.application(activity) {
            let draft = &self.drafts[index];
            explain(
                activity,
                &self.system.apps[index].name,
                &draft.layout,
                cause,
            );
            if self.states[index].phase == Phase::Over {
                return;
            }
            match cause {
                StopCause::Exit(0) => self.over(index),
                _ => self.restart(index),
            }
        } else if let Some(below) = self.below.iter_mut().find(|b| b.draft.activity == activity) {
            explain(activity, &below.name, &below.draft.layout, cause);
            let was = core::mem::replace(&mut below.phase, Phase::Over);
            if was != Phase::Over && below.foreground && cause != StopCause::Exit(0) {
                self.code = FAILED;
            }
            let place = self.below.iter().position(|b| b.draft.activity == activity);
            for import in place
                .into_iter()
                .flat_map(|place| &self.system.managers[place].imports)
            {
                if let ImportKind::Receive(export) = import.kind {
                    self.lost(Source::Export(export), &import.app);
                }
            }
        }
    }

    /// A manager below says something.
    pub fn reported(&mut self, activity: u16, value: u64) {
        let place = self.below.iter().position(|b| b.draft.activity == activity);
        let Some(place) = place else { return };
        let below = &mut self.below[place];
        if value & REPORT_DONE != 0 && below.phase != Phase::Over {
            below.phase = Phase::Over;
            // Only who had to end can have failed; what others say of themselves is nothing to the system.
            if below.foreground && value & 0xff != 0 {
                self.code = FAILED;
            }
        }
        let news = (value >> REPORT_SERVICES) & !below.offered;
        below.offered |= news;
        for (number, import) in self.system.managers[place].imports.iter().enumerate() {
            let ImportKind::Receive(export) = import.kind else {
                continue;
            };
            if news >> number & 1 == 0 {
                continue;
            }
            // Whatever it says it offers: if there is nothing, its clients wait in vain.
            let done = self.selectors.next().and_then(|target| {
                let source = SEL_SHARED + number as u16;
                connect::take(self.below[place].draft.selector, source, target)?;
                self.share(Source::Export(export), target)
            });
            if let Err(failure) = done {
                println!("the service of `{}`: {failure}", import.app);
            }
        }
    }

    /// Starts an application again if the description says so; it keeps memory, gates and quotas.
    fn restart(&mut self, index: usize) {
        let app = &self.system.apps[index];
        self.services.remove(&Source::App(index));
        if self.states[index].restarts >= app.restarts {
            return self.give_up(index);
        }
        self.states[index].restarts += 1;
        let again = self.states[index].restarts;
        match self.appear_again(index) {
            Ok(()) => println!(
                "`{}` is started again ({again} of {})",
                app.name, app.restarts
            ),
            Err(failure) => {
                println!("`{}` is not started again: {failure}", app.name);
                self.give_up(index);
            }
        }
    }

    fn appear_again(&mut self, index: usize) -> Result<(), Failure> {
        let app = &self.system.apps[index];
        create::appear(&mut self.drafts[index], Some(app))?;
        connect::attach(app, &mut self.drafts[index])?;
        // Who sends to it has lost the endpoints that led to the old activity.
        for client in 0..self.drafts.len() {
            if client != index && self.states[client].phase != Phase::Over {
                let sender = &self.system.apps[client];
                connect::reattach(sender, &self.drafts[client], index)?;
            }
        }
        create::fill(&self.drafts[index], &app.name, &app.arguments, app.lazy)?;
        create::run(&self.drafts[index])
    }
}

/// Whether an application sends to somebody below a manager, and so depends on what that manager does.
fn depends(app: &App) -> bool {
    let mut gates = app.send.iter();
    gates.any(|gate| matches!(gate.to, Target::Export(_)))
}

/// Says what only the manager knows: that a fault was a stack that ran over.
fn explain(activity: u16, name: &str, layout: &Layout, cause: StopCause) {
    if let StopCause::Fault { value, .. } = cause
        && layout.is_stack_overflow(value)
    {
        println!("activity {activity} ({name}): stack overflow");
    }
}
