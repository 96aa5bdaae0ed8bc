//! Starts all applications and the managers below, in order, and some of them again.
//!
//! Why it exists: no application runs before all of its gates are there, no client before its services. What it deliberately
//! does not know: what an application is made of.

use crate::calls::{self, Failure, kind_of};
use crate::connect::{self, Made};
use crate::create::{self, Draft};
use crate::gates::Selectors;
use crate::load::Modules;
use crate::services::Known;
use crate::{load, pagers, tiles};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::syscall::{
    ObjectKind, SEL_DESCRIPTION, SEL_MODULES, Standing, StopCause, Syscall,
};
use bulkhead_lib::common::payer::{Fixed, Own, Paid};
use bulkhead_lib::{environment, println, time};
use bulkhead_loader::layout::Layout;
use bulkhead_resmgr::description::{App, Source, Subsystem, Target};
use core::cmp::Reverse;

/// How far an application or manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for a service.
    Waits,
    /// It runs.
    Runs,
    /// It has failed, and is to be started again.
    Failed,
    /// It has ended with its pager, and waits for that one to come back.
    Paused,
    /// It has ended, or never will run.
    Over,
}

/// A manager below.
pub struct Below {
    pub draft: Draft,
    name: Box<str>,
    pub foreground: bool,
    pub phase: Phase,
    /// It was said already that it offers what is not there.
    pub has_lied: bool,
}

/// An application.
pub struct State {
    /// How far it is.
    pub phase: Phase,
    /// How often it was started again.
    pub restarts: u32,
    /// Its gates lead to those to whom it sends.
    pub is_attached: bool,
    /// It is there again, but has not been filled and run.
    is_unfinished: bool,
    /// It was said already that what it offers is not one of its services: it may offer as often as it likes.
    pub has_lied: bool,
    /// How often it has offered something since it was started.
    pub offers: u32,
}

/// Everything that a manager has started.
pub struct World<'a> {
    pub(crate) system: &'a Subsystem,
    pub(crate) drafts: Fixed<Draft>,
    pub(crate) states: Fixed<State>,
    pub(crate) below: Fixed<Below>,
    pub(crate) selectors: Selectors,
    modules: Modules,
    /// What is known of applications that offer services, or receive.
    pub(crate) known: Paid<Own, BTreeMap<Source, Known>>,
    /// Where this manager takes services from whom it started: a selector each, however often they are offered.
    pub(crate) places: Paid<Own, BTreeMap<Source, u16>>,
    /// When all gates were there and whoever could be started was: nobody is started because of what others say before.
    pub(crate) began: Option<u64>,
    /// The exit code so far: 3 once something in the foreground has failed.
    pub code: u64,
}

/// Exit code of a manager one of whose applications failed.
pub const FAILED: u64 = 3;

impl<'a> World<'a> {
    /// Starts everything.
    ///
    /// # Errors
    /// The first failure.
    pub fn start(system: &'a Subsystem, is_root: bool) -> Result<Self, Failure> {
        let mut selectors = Selectors::new(system.modules.len() as u16);
        let mut modules = Modules::new(&system.modules, is_root);
        // Descriptions and boot modules lie in the first memory tile.
        let first = if is_root {
            SEL_MODULES
        } else {
            SEL_DESCRIPTION
        };
        let first_memory = match kind_of(first) {
            Some((ObjectKind::Memory, [_, _, tile])) => tile as u16,
            _ => 0,
        };
        let own_tile = is_root.then(|| environment().tile);
        let windows = tiles::configure(system, first_memory, own_tile, &mut selectors)?;
        let mut drafts = Vec::new();
        for app in &system.apps {
            let draft = create::application(app, &windows, &modules, &mut selectors);
            drafts.push(draft.map_err(Failure::by(&app.name))?);
        }
        pagers::connect(system, &mut drafts, &mut selectors)?;
        let exports = connect::exports(system, &mut selectors)?;
        let mut managers = Vec::new();
        for manager in &system.managers {
            let place = (&windows, first_memory);
            let draft = create::below(manager, place, &mut modules, &mut selectors);
            managers.push(draft.map_err(Failure::by(&manager.name))?);
        }
        let mut regions = connect::regions(system, &managers, &modules, &mut selectors)?;
        let mut below = Vec::new();
        for (manager, draft) in system.managers.iter().zip(managers) {
            let made = Made {
                apps: &system.apps,
                drafts: &drafts,
                exports: &exports,
                modules: &modules,
            };
            let write = |text: String, s: &mut Selectors| {
                let window = windows[&(manager.tile, first_memory)];
                let memory = s.cut(window, text.len() as u64 + 1)?;
                load::write_memory(memory, &text)?;
                connect::give(draft.selector, memory, SEL_DESCRIPTION)
            };
            connect::introduce(manager, &draft, &made, &mut regions, &mut selectors, write)
                .and_then(|()| create::fill(&draft, &manager.name, &[], false, &modules))
                .and_then(|()| create::run(&draft))
                .map_err(Failure::by(&manager.name))?;
            below.push(Below {
                name: manager.name.as_str().into(),
                draft,
                foreground: manager.foreground(),
                phase: Phase::Runs,
                has_lied: false,
            });
        }
        let states = system.apps.iter().map(|_| State {
            phase: Phase::Waits,
            restarts: 0,
            is_attached: false,
            is_unfinished: false,
            has_lied: false,
            offers: 0,
        });
        let mut world = Self {
            system,
            states: states.collect(),
            drafts: drafts.into(),
            below: below.into(),
            selectors,
            modules,
            known: Paid::default(),
            places: Paid::default(),
            began: None,
            code: 0,
        };
        // Their gates are there: who sends to them from outside can be connected.
        for (_, source) in &system.offers {
            if let Source::App { app, .. } = source {
                world.tell_of(*app, Standing::Starts);
            }
        }
        // Nobody waits for those who wait for a manager below.
        for dependent in [false, true] {
            let is_now = |app: &&(usize, &App)| depends(app.1) == dependent;
            let apps: Vec<(usize, &App)> = system.apps.iter().enumerate().collect();
            for (index, app) in apps.iter().filter(is_now) {
                connect::prepare(
                    (&system.apps, *index),
                    &mut world.drafts,
                    &exports,
                    &mut world.modules,
                    &mut regions,
                    &mut world.selectors,
                )
                .and_then(|()| pagers::share(system, &world.drafts, *index, &mut world.selectors))
                .and_then(|()| world.attach(*index))
                .map_err(Failure::by(&app.name))?;
            }
            for (index, app) in apps.iter().filter(is_now) {
                if world.states[*index].is_attached {
                    world.fill(*index).map_err(Failure::by(&app.name))?;
                }
            }
            // What runs in the background first: what the others measure shall not see it start.
            for foreground in [false, true] {
                for (index, app) in apps.iter().filter(is_now) {
                    if app.foreground == foreground {
                        let ready = world.run_if_ready(*index);
                        ready.map_err(Failure::by(&app.name))?;
                    }
                }
            }
        }
        world.began = Some(time::now());
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

    /// Whether anything of the description is in the foreground.
    pub fn has_foreground(&self) -> bool {
        let mut apps = self.system.apps.iter();
        apps.any(|app| app.foreground) || self.below.iter().any(|below| below.foreground)
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
    pub(crate) fn services(app: &App) -> impl Iterator<Item = Source> {
        let sessions = app.send.iter().filter(|gate| gate.session);
        sessions.map(|gate| gate.to.into())
    }

    /// Connects an application, if those to whom it sends are there.
    fn attach(&mut self, index: usize) -> Result<(), Failure> {
        let app = &self.system.apps[index];
        self.states[index].is_attached = connect::attach(app, &mut self.drafts[index])?;
        Ok(())
    }

    /// Starts an application that waits, if there is nothing any more that it waits for.
    pub(crate) fn start_if_possible(&mut self, index: usize) -> Result<(), Failure> {
        let state = &self.states[index];
        if state.phase == Phase::Waits && !state.is_attached {
            self.attach(index)?;
            if self.states[index].is_attached {
                self.fill(index)?;
            }
        }
        self.run_if_ready(index)
    }

    /// Runs an application if it is connected and its services are there; a restarted one does not wait for them.
    fn run_if_ready(&mut self, index: usize) -> Result<(), Failure> {
        let state = &self.states[index];
        let mut services = Self::services(&self.system.apps[index]);
        let is_ready = state.restarts > 0 || services.all(|service| self.is_offered(service));
        if state.phase == Phase::Waits && state.is_attached && is_ready {
            create::run(&self.drafts[index])?;
            self.states[index].phase = Phase::Runs;
            if !self.system.apps[index].services.is_empty() {
                self.tell_of(index, Standing::Runs);
            }
        }
        Ok(())
    }

    /// An application will not run any more, or never.
    pub(crate) fn give_up(&mut self, index: usize, standing: Standing) {
        if self.system.apps[index].foreground {
            self.code = FAILED;
        }
        self.over(index, standing);
    }

    /// An application has ended, or will never run.
    fn over(&mut self, index: usize, standing: Standing) {
        let system = self.system;
        self.states[index].phase = Phase::Over;
        self.tell_of(index, standing);
        for client in pagers::clients(system, index) {
            if self.states[client].phase == Phase::Paused {
                println!(
                    "`{}` is not started again: its pager `{}` has ended",
                    system.apps[client].name, system.apps[index].name
                );
                self.give_up(client, Standing::Failed);
            }
        }
    }

    /// Whether an application's activity is there.
    fn is_there(&self, index: usize) -> bool {
        kind_of(self.drafts[index].selector).is_some()
    }

    /// The pages of those whose pager this application was went with it: they end.
    fn stop_clients(&mut self, index: usize) {
        let name = &self.system.apps[index].name;
        for client in pagers::clients(self.system, index) {
            if matches!(self.states[client].phase, Phase::Waits | Phase::Runs) {
                println!(
                    "`{}` ends: its pager `{name}` has ended",
                    self.system.apps[client].name
                );
                let activity = self.drafts[client].selector;
                // The kernel may have stopped it already.
                let _ = calls::call("stop a client", &Syscall::Stop { activity });
            }
        }
    }

    /// Fills the memory of an application.
    fn fill(&self, index: usize) -> Result<(), Failure> {
        let app = &self.system.apps[index];
        create::fill(
            &self.drafts[index],
            &app.name,
            &app.arguments,
            app.lazy,
            &self.modules,
        )
    }

    pub(crate) fn application(&self, activity: u16) -> Option<usize> {
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
            self.stop_clients(index);
            match cause {
                StopCause::Exit(0) => self.over(index, Standing::Ended),
                _ => self.restart(index),
            }
        } else if let Some(below) = self.below.iter_mut().find(|b| b.draft.activity == activity) {
            explain(activity, &below.name, &below.draft.layout, cause);
            let was = core::mem::replace(&mut below.phase, Phase::Over);
            if was != Phase::Over && below.foreground && cause != StopCause::Exit(0) {
                self.code = FAILED;
            }
            let place = self.below.iter().position(|b| b.draft.activity == activity);
            if let Some(place) = place {
                self.manager_gone(place, true);
            }
        }
    }

    /// An application is to be started again if the description says so; it keeps memory, gates and quotas.
    fn restart(&mut self, index: usize) {
        let app = &self.system.apps[index];
        if self.states[index].restarts >= app.restarts {
            return self.give_up(index, Standing::Failed);
        }
        if let Some((pager, _)) = pagers::of(self.system, index)
            && !self.is_there(pager)
        {
            self.states[index].phase = Phase::Paused;
            if self.states[pager].phase == Phase::Over {
                self.over(pager, Standing::Failed);
            }
            return;
        }
        let state = &mut self.states[index];
        (state.phase, state.is_unfinished) = (Phase::Failed, false);
    }

    /// The application whose restart is to be begun or finished: the most important one, and of equals one that was begun.
    fn to_restart(&self) -> Option<usize> {
        let states = self.states.iter().enumerate();
        let open = states.filter(|(_, s)| s.phase == Phase::Failed || s.is_unfinished);
        let order = |(index, state): &(usize, &State)| {
            let priority = self.system.apps[*index].priority;
            (priority, state.is_unfinished, Reverse(*index))
        };
        open.max_by_key(order).map(|(index, _)| index)
    }

    /// Whether somebody is to be started again.
    pub fn is_restarting(&self) -> bool {
        self.to_restart().is_some()
    }

    /// Does one part of a restart. Between two parts, others are heard: somebody more important may have failed.
    pub fn go_on(&mut self) {
        let Some(index) = self.to_restart() else {
            return;
        };
        let done = match core::mem::take(&mut self.states[index].is_unfinished) {
            false => self.appear_again(index),
            true => self.finish(index),
        };
        if let Err(failure) = done {
            let name = &self.system.apps[index].name;
            println!("`{name}` is not started again: {failure}");
            self.give_up(index, Standing::Failed);
        }
    }

    /// An application that has appeared again gets its content, and runs if it can.
    fn finish(&mut self, index: usize) -> Result<(), Failure> {
        let (app, state) = (&self.system.apps[index], &self.states[index]);
        if state.phase == Phase::Over {
            return Ok(());
        }
        let again = state.restarts;
        self.start_if_possible(index)?;
        println!(
            "`{}` is started again ({again} of {})",
            app.name, app.restarts
        );
        for client in pagers::clients(self.system, index) {
            if self.states[client].phase == Phase::Paused {
                self.restart(client);
            }
        }
        Ok(())
    }

    fn appear_again(&mut self, index: usize) -> Result<(), Failure> {
        let app = &self.system.apps[index];
        self.states[index].restarts += 1;
        create::appear(&mut self.drafts[index], Some(app))?;
        pagers::introduce(self.system, &mut self.drafts, index, &mut self.selectors)?;
        self.give_known(index);
        let state = &mut self.states[index];
        (state.phase, state.is_attached) = (Phase::Waits, false);
        (state.offers, state.is_unfinished) = (0, true);
        // Who sends to it has lost the endpoints that led to the old activity. It runs when all hear it.
        self.tell_of(index, Standing::Starts);
        Ok(())
    }
}

/// Whether an application sends to another one below a manager, and so depends on what that manager does.
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
