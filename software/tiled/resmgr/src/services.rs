//! Services across the tree of managers: which are available, which have come back, and which will never exist.
//!
//! Why it exists: a client may be below another manager than its service, and neither manager can reach both. So each manager learns of
//! every service that crosses its border from the manager above ([`Syscall::Tell`]) or from a subordinate one ([`Syscall::Report`]), does
//! what its own applications need, and passes the news on. What it deliberately does not know: when applications start.
//!
//! A manager believes a subordinate only as far as that manager's part of the description allows: a service comes back as often as it says
//! there, and a service that is over stays over. So the work that a subordinate can cause is bounded, whatever it reports.

use crate::calls::{Failure, call};
use crate::connect;
use crate::world::{FAILED, Known, World};
use alloc::format;
use alloc::string::String;
use bulkhead_abi::news::{News, Standing};
use bulkhead_abi::syscall::{
    REPORT_DONE, SEL_ACTIVITY, SEL_OFFERED, SEL_SHARED, SHARED_MAX, Syscall,
};
use bulkhead_lib::{println, time};
use bulkhead_resmgr::description::{ImportKind, SendGate, Source, Subsystem};
use bulkhead_resmgr::progress::Phase;
use bulkhead_resmgr::quantity::Duration;

/// Exit code of a manager that could not start its applications.
pub const NOT_STARTED: u64 = 2;

/// How often an application may offer services after each of its starts. Usually it offers each service once.
const OFFERS: u32 = 64;

impl World<'_> {
    fn known(&self, source: Source) -> Option<Known> {
        self.known.get(&source).copied()
    }

    /// Whether a report about a service is news.
    fn is_new(&self, source: Source, news: News) -> bool {
        self.known(source)
            .is_none_or(|known| known.is_followed_by(news))
    }

    /// Whether a service is available.
    pub(crate) fn is_offered(&self, source: Source) -> bool {
        let known = self.known(source);
        known.is_some_and(|known| known.news.standing == Standing::Offered)
    }

    /// Where this manager holds an available service.
    pub(crate) fn service(&self, source: Source) -> Option<u16> {
        let known = self.known(source).filter(|_| self.is_offered(source));
        known?.selector
    }

    /// Schedules an application to get all available services that it uses.
    pub(crate) fn give_known(&mut self, index: usize) {
        for (number, gate) in self.system.apps[index].send.iter().enumerate() {
            if connect::wants(gate) && self.service(gate.to.into()).is_some() {
                self.states[index].progress.serve(number);
            }
        }
    }

    /// Reports the state of an application of this manager.
    pub(crate) fn tell_of(&mut self, index: usize, standing: Standing) {
        let restarts = self.states[index].restarts;
        for source in self.system.apps[index].sources(index) {
            self.announce(source, News { restarts, standing }, None);
        }
    }

    /// An application offers a service.
    pub fn offered(&mut self, activity: u16, selector: u16) {
        let Some(server) = self.application(activity) else {
            return;
        };
        let app = &self.system.apps[server];
        // An application without a receive gate serves no client.
        let number = selector.checked_sub(SEL_OFFERED);
        let number = number.filter(|_| !app.receive.is_empty());
        let mut sources = app.sources(server);
        let source = number.and_then(|number| sources.nth(number.into()));
        let (Some(service), Some(source)) = (number, source) else {
            if !core::mem::replace(&mut self.states[server].has_lied, true) {
                println!("`{}` offers a service that it does not have", app.name);
            }
            return;
        };
        // Taking a service is work of this manager, and this manager's calls come first: nobody may cause it without bound.
        let state = &mut self.states[server];
        if state.offers >= OFFERS {
            if !core::mem::replace(&mut state.has_lied, true) {
                println!("`{}` has offered services {OFFERS} times", app.name);
            }
            return;
        }
        state.offers += 1;
        let news = News {
            restarts: self.states[server].restarts,
            standing: Standing::Offered,
        };
        // An application offers what it likes; if the offer cannot be taken, its clients find no service.
        match self.fetch(source, self.drafts[server].selector, SEL_OFFERED + service) {
            Ok(selector) => self.announce(source, news, Some(selector)),
            Err(failure) => {
                if !core::mem::replace(&mut self.states[server].has_lied, true) {
                    println!("the service of `{}`: {failure}", app.name);
                }
            }
        }
    }

    /// Takes a service of something that this manager started; returns where this manager holds it.
    fn fetch(&mut self, source: Source, activity: u16, from: u16) -> Result<u16, Failure> {
        let target = match self.places.get(&source) {
            Some(place) => *place,
            None => {
                let place = self.selectors.next()?;
                self.places.insert(source, place);
                place
            }
        };
        connect::take(activity, from, target).map(|()| target)
    }

    /// Passes news to everything below this manager that depends on the service, and to the neighbouring managers.
    fn announce(&mut self, source: Source, news: News, selector: Option<u16>) {
        if !self.is_new(source, news) {
            return;
        }
        let before = self.known(source);
        let selector = selector.or(before.and_then(|known| known.selector));
        let at = time::now();
        self.known.insert(source, Known { news, selector, at });
        let is_back = news.restarts > before.map_or(0, |known| known.news.restarts);
        let there = selector.filter(|_| news.standing == Standing::Offered);
        for (client, app) in self.system.apps.iter().enumerate() {
            let is_itself = matches!(source, Source::App { app, .. } if app == client);
            let progress = &mut self.states[client].progress;
            let gates = app.send.iter().enumerate();
            for (number, gate) in gates.filter(|(_, gate)| Source::from(gate.to) == source) {
                if is_back && !is_itself {
                    progress.reconnect(number);
                }
                if there.is_some() && connect::wants(gate) {
                    progress.serve(number);
                }
            }
        }
        self.unsaid.insert(source, 0);
        // While everything starts, no events are handled in between.
        while self.began.is_none() && self.say_one() {}
        if news.standing.is_final() {
            return;
        }
        for (app, state) in self.system.apps.iter().zip(&mut self.states) {
            let mut gates = app.send.iter();
            if self.began.is_some() && gates.any(|gate| Source::from(gate.to) == source) {
                state.progress.wake();
            }
        }
    }

    /// The gate of an application whose patience ends first, and when it ends.
    ///
    /// The wait for an application of this manager starts when that application runs; before that, it waits itself, and that wait ends.
    /// About all others this manager knows only what it is told, so their time starts again with each report, and there are few reports.
    fn patience(&self, client: usize) -> Option<(u64, &SendGate)> {
        let began = self.began?;
        let gates = self.system.apps[client].send.iter();
        let missing = gates.zip(&self.drafts[client].ends).filter(|(gate, end)| {
            let waits = gate.session && self.states[client].restarts == 0;
            end.is_none() || waits && !self.is_offered(gate.to.into())
        });
        let ends = missing.filter_map(|(gate, _)| {
            let source = gate.to.into();
            let since = match (source, self.known(source)) {
                (_, Some(known)) if known.news.standing == Standing::Runs => known.at,
                (Source::App { .. }, _) => return None,
                (_, known) => known.map_or(0, |known| known.at),
            };
            Some((since.max(began).saturating_add(gate.patience), gate))
        });
        ends.min_by_key(|(end, _)| *end)
    }

    /// The application waiting for its start, and the gate, whose patience ends first of all.
    fn most_impatient(&self) -> Option<(u64, usize, &SendGate)> {
        let waits = |phase| matches!(phase, Phase::Waits(_));
        let waiting = (0..self.states.len()).filter(|c| waits(self.states[*c].progress.phase));
        let ends = waiting.filter_map(|c| self.patience(c).map(|(end, gate)| (end, c, gate)));
        ends.min_by_key(|(end, ..)| *end)
    }

    /// When the patience of the most impatient application that waits for its start ends, in nanoseconds since reset.
    pub fn patience_ends(&self) -> Option<u64> {
        self.most_impatient().map(|(end, ..)| end)
    }

    /// Gives up one application that has waited long enough, if there is one.
    pub fn expire(&mut self) {
        let now = time::now();
        if let Some((_, client, gate)) = self.most_impatient().filter(|(end, ..)| *end <= now) {
            println!(
                "`{}` is not started: it waited {} for {}",
                self.system.apps[client].name,
                Duration(gate.patience),
                self.missing(gate)
            );
            self.give_up(client, Standing::NotStarted);
        }
    }

    /// What is missing behind a gate, and the known reason.
    fn missing(&self, gate: &SendGate) -> String {
        let of = &gate.receiver;
        let what = match (gate.session, &gate.service) {
            (true, Some(service)) => format!("the service `{service}` of `{of}`"),
            (true, None) => format!("the service of `{of}`"),
            (false, _) => format!("the gates of `{of}`"),
        };
        let why = match self.known(gate.to.into()).map(|known| known.news.standing) {
            Some(Standing::Runs) => "which runs but has not offered it",
            Some(_) => "which has not been started",
            None => "of which its manager has said nothing",
        };
        format!("{what}, {why}")
    }

    /// A service is gone for good: an application that waits for it is not started, and a running one stops waiting for it.
    fn lost_to(&mut self, client: usize, source: Source, news: News) {
        let app = &self.system.apps[client];
        let progress = &self.states[client].progress;
        let mut gates = app.send.iter().zip(&self.drafts[client].ends);
        let gate = gates.find(|(gate, end)| {
            let matters = gate.session || end.is_none();
            matters && Source::from(gate.to) == source
        });
        let Some((gate, _)) = gate.filter(|_| progress.is_there()) else {
            return;
        };
        if progress.phase == Phase::Runs {
            return connect::bury(app, &self.drafts[client], source);
        }
        let what = match gate.session {
            true => "there is no service",
            false => "nobody receives at",
        };
        println!(
            "`{}` is not started: {what} `{}`: {}",
            app.name,
            gate.receiver,
            reason(news)
        );
        self.give_up(client, Standing::NotStarted);
    }

    /// An application that was absent when a receiver of its gates was lost does not wait for that receiver.
    pub(crate) fn give_up_on_the_dead(&mut self, client: usize) {
        let gates = self.system.apps[client].send.iter();
        let missing = gates
            .zip(&self.drafts[client].ends)
            .filter(|g| g.1.is_none());
        let mut dead = missing.filter_map(|(gate, _)| {
            let known = self.known(gate.to.into())?;
            known
                .news
                .standing
                .is_final()
                .then_some((gate.to.into(), known.news))
        });
        if let Some((source, news)) = dead.next() {
            self.lost_to(client, source, news);
        }
    }

    /// Whether any news has not been passed on yet.
    pub(crate) fn has_words(&self) -> bool {
        !self.unsaid.is_empty()
    }

    /// Tells one of those concerned the news of a service: a neighbouring manager or, if the service is gone for good, an application. So
    /// a more important application waits for a call or two, however many are concerned. Returns whether there was any news.
    pub(crate) fn say_one(&mut self) -> bool {
        let Some((source, told)) = self.unsaid.iter().next().map(|(s, told)| (*s, *told)) else {
            return false;
        };
        let whom = hearers(self.system, source).nth(told);
        match (whom, self.known(source)) {
            (Some(whom), Some(known)) => {
                self.unsaid.insert(source, told + 1);
                self.say(whom, source, known);
            }
            _ => drop(self.unsaid.remove(&source)),
        }
        true
    }

    /// Tells the news to one of those concerned.
    fn say(&mut self, whom: Hearer, source: Source, Known { news, selector, .. }: Known) {
        let service = selector.filter(|_| news.standing == Standing::Offered);
        match whom {
            // Tells a manager below about an import.
            Hearer::Below {
                place,
                number,
                session,
            } => {
                let activity = self.below[place].draft.selector;
                // A manager that has ended, or does not listen, harms only its own applications.
                let given = match service {
                    Some(service) if session => {
                        connect::give(activity, service, SEL_SHARED + number)
                    }
                    _ => Ok(()),
                };
                if given.is_ok() {
                    let value = news.about(number);
                    let _ = call("tell", &Syscall::Tell { activity, value });
                }
            }
            // Tells the manager above about a service that it knows.
            Hearer::Above(number) => {
                if let Some(service) = service
                    && let Err(failure) = connect::give(SEL_ACTIVITY, service, SEL_SHARED + number)
                {
                    let name = self.name_of(source);
                    println!("the service of `{name}` is not passed on: {failure}");
                    return;
                }
                let value = news.about(number);
                let _ = call("report", &Syscall::Report { value });
            }
            Hearer::Client(client) if news.standing.is_final() => {
                self.lost_to(client, source, news);
            }
            Hearer::Client(_) => {}
        }
    }

    /// The name of the application below this manager that provides a service.
    fn name_of(&self, source: Source) -> &str {
        match source {
            Source::App { app, .. } => &self.system.apps[app].name,
            Source::Export(export) => &self.system.exports[export].app,
            // About imports this manager only gets reports.
            Source::Import(_) => "",
        }
    }

    /// Tells the manager above that all foreground applications have ended.
    pub fn say_done(&self) {
        let value = REPORT_DONE | self.code;
        let _ = call("report", &Syscall::Report { value });
    }

    /// Handles news from the manager above about an import.
    pub fn told(&mut self, word: u64) {
        let Some((number, news)) = News::from_word(word).filter(|(n, _)| *n < SHARED_MAX) else {
            return;
        };
        let source = Source::Import(connect::IMPORTS + number);
        self.announce(source, news, Some(SEL_SHARED + number));
    }

    /// Handles a report from a manager below.
    pub fn reported(&mut self, activity: u16, word: u64) {
        let place = self.below.iter().position(|b| b.draft.activity == activity);
        let Some(place) = place else { return };
        if let Some((number, news)) = News::from_word(word) {
            return self.heard(place, number, news);
        }
        let below = &mut self.below[place];
        if word & REPORT_DONE == 0 || below.phase == Phase::Over {
            return;
        }
        below.phase = Phase::Over;
        // Only a foreground application can have failed; what background ones report about themselves does not matter to the system.
        let code = word & 0xff;
        if below.foreground && code != 0 {
            self.code = FAILED;
        }
        if code == NOT_STARTED {
            self.manager_gone(place, false);
        }
    }

    /// Handles news from a manager below about its exports.
    fn heard(&mut self, place: usize, number: u16, news: News) {
        let manager = &self.system.managers[place];
        let Some(import) = manager.imports.get(usize::from(number)) else {
            return;
        };
        let ImportKind::Receive(export) = import.kind else {
            return;
        };
        let source = Source::Export(export);
        let mut inner = manager.inner.iter();
        let app = inner.find(|app| app.name == import.app);
        let is_allowed = app.is_some_and(|app| news.restarts <= app.restarts);
        if !is_allowed || !self.is_new(source, news) {
            return;
        }
        if news.standing != Standing::Offered {
            return self.announce(source, news, None);
        }
        // Whatever it claims to offer: if there is nothing, its clients find nothing.
        let below = self.below[place].draft.selector;
        let taken = self.fetch(source, below, SEL_SHARED + number);
        match taken {
            Ok(target) => self.announce(source, news, Some(target)),
            // It may claim this as often as it likes.
            Err(failure) => {
                if !core::mem::replace(&mut self.below[place].has_lied, true) {
                    println!("the service of `{}`: {failure}", import.app);
                }
            }
        }
    }

    /// A manager below is gone, or did not start its applications: services that it has not offered will never exist.
    pub(crate) fn manager_gone(&mut self, place: usize, all: bool) {
        for import in &self.system.managers[place].imports {
            let ImportKind::Receive(export) = import.kind else {
                continue;
            };
            let source = Source::Export(export);
            if all || !self.is_offered(source) {
                let restarts = self.known(source).map_or(0, |known| known.news.restarts);
                let standing = Standing::ManagerGone;
                self.announce(source, News { restarts, standing }, None);
            }
        }
    }
}

/// A party that must be told about a service.
enum Hearer {
    /// A manager below: its place, the number of the import, and whether that is a session.
    Below {
        place: usize,
        number: u16,
        session: bool,
    },
    /// The manager above, which knows the service by this number.
    Above(u16),
    /// An application that sends to it.
    Client(usize),
}

/// All parties that must be told about a service, in order.
fn hearers(system: &Subsystem, source: Source) -> impl Iterator<Item = Hearer> {
    let short = |number: usize| u16::try_from(number).ok().filter(|n| *n < SHARED_MAX);
    let managers = system.managers.iter().enumerate();
    let below = managers.flat_map(move |(place, manager)| {
        let imports = manager.imports.iter().enumerate();
        imports.filter_map(move |(number, import)| match import.kind {
            ImportKind::Send { to, session, .. } if Source::from(to) == source => short(number)
                .map(|number| Hearer::Below {
                    place,
                    number,
                    session,
                }),
            _ => None,
        })
    });
    let offers = system.offers.iter().filter(move |o| o.1 == source);
    let above = offers.filter_map(move |(number, _)| short(*number).map(Hearer::Above));
    let apps = system.apps.iter().enumerate();
    let clients = apps.filter(move |(_, app)| {
        let mut gates = app.send.iter();
        gates.any(|gate| Source::from(gate.to) == source)
    });
    below
        .chain(above)
        .chain(clients.map(|(client, _)| Hearer::Client(client)))
}

/// Why the service will never exist.
fn reason(news: News) -> String {
    match (news.standing, news.restarts) {
        (Standing::Ended, _) => "it has ended".into(),
        (Standing::Failed, 0) => "it failed".into(),
        (Standing::Failed, restarts) => {
            format!("it failed, and was started again {restarts} times")
        }
        (Standing::NotStarted, _) => "it was not started itself".into(),
        _ => "its manager is gone".into(),
    }
}
