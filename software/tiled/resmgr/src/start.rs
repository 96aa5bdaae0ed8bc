//! Starts all applications and subordinate managers in order, and restarts some of them.
//!
//! Why it exists: no application runs before all of its gates exist, and no client before its services. What it deliberately does not
//! know: what an application is made of.

use crate::calls::{self, Failure, kind_of};
use crate::connect::{self, Made};
use crate::create;
use crate::gates::Selectors;
use crate::load::{self, Filling, Modules};
use crate::world::{Below, FAILED, State, World};
use crate::{pagers, tiles};
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::news::Standing;
use bulkhead_abi::syscall::{ObjectKind, SEL_DESCRIPTION, SEL_MODULES, StopCause, Syscall};
use bulkhead_lib::common::payer::Paid;
use bulkhead_lib::{environment, println, time};
use bulkhead_loader::layout::Layout;
use bulkhead_resmgr::description::{App, Source, Subsystem, Target};
use bulkhead_resmgr::progress::{Part, Phase, Place, Progress, Work, turn};

impl<'a> World<'a> {
    /// Starts everything.
    ///
    /// # Errors
    /// The first failure.
    pub fn start(system: &'a Subsystem, is_root: bool) -> Result<Self, Failure> {
        let mut selectors = Selectors::new(system.modules.len() as u16);
        let mut modules = Modules::new(&system.modules, is_root);
        // Descriptions and boot modules are in the first memory tile.
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
        for (manager, mut draft) in system.managers.iter().zip(managers) {
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
            if draft.lost.is_none() {
                let ran =
                    connect::introduce(manager, &draft, &made, &mut regions, &mut selectors, write)
                        .and_then(|()| create::fill(&draft, &manager.name, &modules))
                        .and_then(|()| create::run(&draft));
                draft.survive(ran).map_err(Failure::by(&manager.name))?;
            }
            below.push(Below {
                name: manager.name.as_str().into(),
                foreground: manager.foreground(),
                phase: match draft.lost {
                    None => Phase::Runs,
                    Some(_) => Phase::Over,
                },
                draft,
                has_lied: false,
            });
        }
        let states = system.apps.iter().map(|_| State {
            progress: Progress::new(Phase::Waits(Place::first(Part::Send))),
            restarts: 0,
            is_unsaid: false,
            filling: None,
            has_lied: false,
            offers: 0,
            orphan: None,
        });
        let mut world = Self {
            system,
            states: states.collect(),
            drafts: drafts.into(),
            below: below.into(),
            selectors,
            modules,
            known: Paid::default(),
            unsaid: Paid::default(),
            places: Paid::default(),
            began: None,
            code: 0,
        };
        // Their gates exist: senders from outside can be connected.
        for (_, source) in &system.offers {
            if let Source::App { app, .. } = source {
                world.tell_of(*app, Standing::Starts);
            }
        }
        // Applications that wait for a manager below come last and hold up no others.
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
                .and_then(|()| world.begin(*index))
                .map_err(Failure::by(&app.name))?;
            }
            for (index, app) in apps.iter().filter(is_now) {
                let filled = world.come(*index, Some(Part::Run));
                filled.map_err(Failure::by(&app.name))?;
            }
            // Background applications come first: measurements of the others must not see them start.
            for foreground in [false, true] {
                for (index, app) in apps.iter().filter(is_now) {
                    if app.foreground == foreground {
                        let ready = world.come(*index, None);
                        ready.map_err(Failure::by(&app.name))?;
                    }
                }
            }
        }
        world.give_up_the_lost();
        world.began = Some(time::now());
        Ok(world)
    }

    /// Prints the highest use of each quota that the description bounds.
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

    /// Whether the description has anything in the foreground.
    pub fn has_foreground(&self) -> bool {
        let mut apps = self.system.apps.iter();
        apps.any(|app| app.foreground) || self.below.iter().any(|below| below.foreground)
    }

    /// Whether something in the foreground has not ended.
    pub fn is_busy(&self) -> bool {
        let apps = self.states.iter().zip(&self.system.apps);
        let mut apps = apps.map(|(state, app)| (state.progress.phase, app.foreground));
        let mut below = self.below.iter().map(|b| (b.phase, b.foreground));
        let is_busy = |(phase, foreground)| foreground && phase != Phase::Over;
        apps.any(is_busy) || below.any(is_busy)
    }

    /// The services that an application waits for before it starts.
    pub(crate) fn services(app: &App) -> impl Iterator<Item = Source> {
        let sessions = app.send.iter().filter(|gate| gate.session);
        sessions.map(|gate| gate.to.into())
    }

    /// The number of pieces that a part of an application's start has.
    fn pieces(&self, index: usize, part: Part) -> usize {
        let (app, draft) = (&self.system.apps[index], &self.drafts[index]);
        match part {
            Part::Create | Part::Tell | Part::Run => 1,
            Part::Receive => draft.receives(),
            Part::Device => app.device.into(),
            Part::Pager if app.pager.is_some() => pagers::PIECES,
            Part::Pager => 0,
            Part::Send => draft.send.len(),
            Part::Memory => draft.memories.len(),
            Part::Fill => draft.pieces(app.lazy).count(),
        }
    }

    /// The activity of an application and all of its gates exist; its start begins.
    fn begin(&mut self, index: usize) -> Result<(), Failure> {
        if self.drafts[index].lost.is_some() {
            self.enter(index, Phase::Over);
            return Ok(());
        }
        let first = Place::first(Part::Send).found(|part| self.pieces(index, part));
        self.states[index].progress.phase = Phase::Comes(first);
        self.come(index, Some(Part::Fill))
    }

    /// Continues the first start of an application, like [`Self::advance`]. If its tile is lost meanwhile, only this application is
    /// given up.
    fn come(&mut self, index: usize, until: Option<Part>) -> Result<(), Failure> {
        let advanced = self.advance(index, until);
        self.drafts[index].survive(advanced)?;
        if self.drafts[index].lost.is_some() {
            self.enter(index, Phase::Over);
        }
        Ok(())
    }

    /// An application that was lost before its start never runs: reports it and tells those that wait for it.
    fn give_up_the_lost(&mut self) {
        for index in 0..self.drafts.len() {
            if let Some(failure) = self.drafts[index].lost.take() {
                println!(
                    "`{}` is not started: {failure}",
                    self.system.apps[index].name
                );
                self.give_up(index, Standing::NotStarted);
            }
        }
        for place in 0..self.below.len() {
            let below = &mut self.below[place];
            if let Some(failure) = below.draft.lost.take() {
                println!("`{}` is not started: {failure}", below.name);
                if below.foreground {
                    self.code = FAILED;
                }
                self.manager_gone(place, true);
            }
        }
    }

    /// Continues the start of an application up to a part, or until it runs, unless something holds it up.
    fn advance(&mut self, index: usize, until: Option<Part>) -> Result<(), Failure> {
        while let Phase::Comes(place) = self.states[index].progress.phase
            && until.is_none_or(|part| place.part < part)
        {
            self.take(index, place)?;
        }
        Ok(())
    }

    /// Does one piece of an application's start.
    fn take(&mut self, index: usize, place: Place) -> Result<(), Failure> {
        let app = &self.system.apps[index];
        let (draft, state) = (&mut self.drafts[index], &mut self.states[index]);
        let number = place.number;
        match place.part {
            Part::Create => {
                state.restarts += 1;
                create::begin(draft, Some(app))?;
                (state.offers, state.is_unsaid) = (0, true);
            }
            Part::Receive => create::receive(draft, Some(app), number)?,
            Part::Device => create::give_device(draft)?,
            Part::Pager => {
                let piece = (index, number);
                pagers::introduce(self.system, &mut self.drafts, piece, &mut self.selectors)?;
            }
            Part::Tell | Part::Run => {}
            Part::Send => connect::attach(draft, number)?,
            Part::Memory => connect::attach_memory(app, draft, number)?,
            Part::Fill => self.fill(index, number)?,
        }
        let next = place.after(|part| self.pieces(index, part));
        self.states[index].progress.phase = match place.part {
            Part::Send if next.part != Part::Send => {
                match connect::tell_of_gates(app, &mut self.drafts[index])? {
                    true => Phase::Comes(next),
                    false => Phase::Waits(Place::first(Part::Send)),
                }
            }
            Part::Run if !self.is_ready(index) => Phase::Waits(place),
            Part::Run => {
                create::run(&self.drafts[index])?;
                Phase::Runs
            }
            _ => Phase::Comes(next),
        };
        match (place.part, self.states[index].progress.phase) {
            // The new activity learns of services, and its senders have lost the endpoints that led to the old one.
            (Part::Create, _) => self.give_known(index),
            (Part::Tell, _) => self.tell_of(index, Standing::Starts),
            (Part::Run, Phase::Runs) if !app.services.is_empty() => {
                self.tell_of(index, Standing::Runs);
            }
            (Part::Send, Phase::Waits(_)) => self.give_up_on_the_dead(index),
            _ => {}
        }
        if matches!(
            self.states[index].progress.phase,
            Phase::Waits(_) | Phase::Runs
        ) {
            self.is_back(index);
        }
        Ok(())
    }

    /// Whether the services of an application are available; a restarted application does not wait for them.
    fn is_ready(&self, index: usize) -> bool {
        let mut services = Self::services(&self.system.apps[index]);
        self.states[index].restarts > 0 || services.all(|service| self.is_offered(service))
    }

    /// A restarted application runs, or waits for others.
    fn is_back(&mut self, index: usize) {
        let (app, state) = (&self.system.apps[index], &mut self.states[index]);
        if !core::mem::take(&mut state.is_unsaid) {
            return;
        }
        println!(
            "`{}` is started again ({} of {})",
            app.name, state.restarts, app.restarts
        );
        for client in pagers::clients(self.system, index) {
            if self.states[client].progress.phase == Phase::Paused {
                self.restart(client);
            }
        }
    }

    /// An application will not run again, or will never run.
    pub(crate) fn give_up(&mut self, index: usize, standing: Standing) {
        if self.system.apps[index].foreground {
            self.code = FAILED;
        }
        self.over(index, standing);
    }

    /// An application has ended, or will never run.
    fn over(&mut self, index: usize, standing: Standing) {
        self.enter(index, Phase::Over);
        self.tell_of(index, standing);
    }

    /// An application whose pager has ended, together with that pager: it must be stopped, or it waits in vain for the pager's return.
    fn orphan(&self) -> Option<(usize, usize)> {
        let phase = |index: usize| self.states[index].progress.phase;
        let mut states = self.states.iter().enumerate();
        states.find_map(|(client, state)| {
            let waits = phase(client) == Phase::Paused;
            let (pager, _) = match waits || state.orphan.is_some() {
                true => pagers::of(self.system, client)?,
                false => return None,
            };
            let is_over = state.orphan.is_some() || phase(pager) == Phase::Over;
            is_over.then_some((client, pager))
        })
    }

    /// Ends one application whose pager has ended. Returns whether there was one.
    fn end_orphan(&mut self) -> bool {
        let Some((client, pager)) = self.orphan() else {
            return false;
        };
        let apps = &self.system.apps;
        let (name, pager) = (&apps[client].name, &apps[pager].name);
        let (draft, state) = (&self.drafts[client], &mut self.states[client]);
        let Some(orphan) = state.orphan.take() else {
            println!("`{name}` is not started again: its pager `{pager}` has ended");
            self.give_up(client, Standing::Failed);
            return true;
        };
        println!("`{name}` ends: its pager `{pager}` has ended");
        if state.progress.is_there() && draft.activity == orphan {
            let activity = draft.selector;
            // The kernel may have stopped it already.
            let _ = calls::call("stop a client", &Syscall::Stop { activity });
        }
        true
    }

    /// An application leaves its start for another phase.
    fn enter(&mut self, index: usize, phase: Phase) {
        let state = &mut self.states[index];
        state.progress = Progress::new(phase);
        if let Some(filling) = state.filling.take() {
            filling.abandon();
        }
    }

    /// Whether an application's activity exists.
    fn is_there(&self, index: usize) -> bool {
        kind_of(self.drafts[index].selector).is_some()
    }

    /// The clients of this pager have lost their pages with it: stops them.
    fn stop_clients(&mut self, index: usize) {
        for client in pagers::clients(self.system, index) {
            let (draft, state) = (&self.drafts[client], &mut self.states[client]);
            state.orphan = state.progress.is_there().then_some(draft.activity);
        }
    }

    /// Does one piece of filling an application's memory.
    fn fill(&mut self, index: usize, number: usize) -> Result<(), Failure> {
        let (app, draft) = (&self.system.apps[index], &self.drafts[index]);
        let filling = &mut self.states[index].filling;
        let mut pieces = draft.pieces(app.lazy).skip(number);
        if let Some(piece) = pieces.next() {
            let contents = draft.contents(&app.name, &app.arguments);
            let filling = filling.get_or_insert_with(Filling::new);
            filling.step(piece, &contents, &self.modules)?;
        }
        if pieces.next().is_none() {
            *filling = None;
        }
        Ok(())
    }

    pub(crate) fn application(&self, activity: u16) -> Option<usize> {
        self.drafts.iter().position(|d| d.activity == activity)
    }

    /// Something that this manager started has stopped.
    pub fn stopped(&mut self, activity: u16, cause: StopCause) {
        if let Some(index) = self.application(activity) {
            let draft = &self.drafts[index];
            explain(
                activity,
                &self.system.apps[index].name,
                &draft.layout,
                cause,
            );
            if self.states[index].progress.phase == Phase::Over {
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

    /// Prepares the restart of an application if the description allows one; it keeps memory, gates and quotas.
    fn restart(&mut self, index: usize) {
        let app = &self.system.apps[index];
        if self.states[index].restarts >= app.restarts {
            return self.give_up(index, Standing::Failed);
        }
        if let Some((pager, _)) = pagers::of(self.system, index)
            && !self.is_there(pager)
        {
            // If the pager has ended for good, this application is told.
            return self.enter(index, Phase::Paused);
        }
        self.enter(index, Phase::Comes(Place::BEGIN));
    }

    /// The application whose piece is next.
    fn turn(&self) -> Option<usize> {
        let apps = self.system.apps.iter().zip(&self.states);
        turn(apps.map(|(app, state)| (app.priority, state.restarts, &state.progress)))
    }

    /// Whether any application has work to be done, or any news must be passed on.
    pub fn has_work(&self) -> bool {
        self.turn().is_some() || !self.has_said_all()
    }

    /// Whether all news has been passed on, and no application is left whose pager has ended.
    pub fn has_said_all(&self) -> bool {
        !self.has_words() && self.orphan().is_none()
    }

    /// Does one piece of work, and then lets the manager handle events: a more important application may have failed. Nothing is more
    /// important than an application of the highest priority, so all pieces of those are done at once. One word of news, or the end of
    /// one application whose pager has ended, comes first: so these take turns with the starts, and each waits for one of the other
    /// kind.
    pub fn go_on(&mut self) {
        if !self.end_orphan() {
            self.say_one();
        }
        let highest = self.system.apps.iter().map(|app| app.priority).max();
        while let Some(index) = self.turn() {
            self.work(index);
            if Some(self.system.apps[index].priority) < highest {
                return;
            }
        }
    }

    /// Does one piece of work for an application.
    fn work(&mut self, index: usize) {
        let (app, draft) = (&self.system.apps[index], &self.drafts[index]);
        let progress = &mut self.states[index].progress;
        let Some(work) = progress.next() else { return };
        progress.done(work);
        match work {
            Work::Connect(gate) => {
                // A client that does not let others use its endpoints harms only itself.
                if let Err(failure) = connect::reattach(draft, gate) {
                    println!("`{}` is not connected again: {failure}", app.name);
                }
            }
            Work::Give(gate) => {
                if let Some(service) = self.service(app.send[gate].to.into()) {
                    connect::give_service(draft, gate, service);
                }
            }
            Work::Piece(place) => {
                if let Err(failure) = self.take(index, place) {
                    self.stuck(index, place, &failure);
                }
            }
        }
    }

    /// A piece failed.
    fn stuck(&mut self, index: usize, place: Place, failure: &Failure) {
        let pager = pagers::of(self.system, index);
        let is_pager_gone = || pager.is_some_and(|(pager, _)| !self.is_there(pager));
        if place != Place::BEGIN && (!self.is_there(index) || is_pager_gone()) {
            // The event of its end, or of its pager's end, has not been handled yet.
            self.states[index].progress.phase = Phase::Waits(place);
            return;
        }
        let (again, standing) = match self.states[index].restarts {
            0 => ("", Standing::NotStarted),
            _ => (" again", Standing::Failed),
        };
        let name = &self.system.apps[index].name;
        println!("`{name}` is not started{again}: {failure}");
        self.give_up(index, standing);
    }
}

/// Whether an application sends to one below another manager, and so depends on that manager.
fn depends(app: &App) -> bool {
    let mut gates = app.send.iter();
    gates.any(|gate| matches!(gate.to, Target::Export(_)))
}

/// Adds what only the manager knows: that a fault was a stack overflow.
fn explain(activity: u16, name: &str, layout: &Layout, cause: StopCause) {
    if let StopCause::Fault { value, .. } = cause
        && layout.is_stack_overflow(value)
    {
        println!("activity {activity} ({name}): stack overflow");
    }
}
