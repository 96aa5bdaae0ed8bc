//! The prefetcher of a cluster's second level.
//!
//! Why it exists: the requests of each hart train a separate table, so no hart changes the predictions for another one. Requests that miss,
//! and first uses of lines that were fetched ahead, train the table. Fetches of the predicted lines begin at once, in the hart's name and
//! with the identifiers of the request, or are dropped ([`Directory::fetch_ahead`]). What it deliberately does not know: patterns
//! ([`Prefetcher`]), and whose lines may leave.
//!
//! The hart learns what was fetched for it with the next answer to one of its requests, so its counters change at a moment that does not
//! depend on windows.

use super::Directory;
use super::directory::{Fill, Foreseeing, Presence};
use super::messages::{Ask, Down, Foreseen, Port, Request};
use super::second_level::SecondLevel;
use crate::cache::{Foresight, PrefetcherRequest};
use crate::config::CacheConfig;
use crate::hart::QosIds;
use crate::ledger::Ledger;
use crate::noc::Account;
use crate::types::Tick;

/// The lines foreseen for a hart.
#[derive(Debug)]
struct OfHart {
    foresight: Foresight,
    /// The counts that the hart has not been told yet.
    untold: Foreseen,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Ahead {
    harts: Vec<OfHart>,
}

/// A request that trains.
#[derive(Clone, Copy, Debug)]
struct Trainer {
    port: Port,
    line: u64,
    ids: QosIds,
    what: Fill,
}

impl Ahead {
    /// The prefetcher of a second level for this many harts, if it has one.
    pub fn of(l2: &CacheConfig, harts: usize) -> Option<Box<Self>> {
        let config = l2.prefetcher.as_ref()?;
        let hart = |_| OfHart {
            foresight: Foresight::new(config, l2.line),
            untold: Foreseen::default(),
        };
        Some(Box::new(Self {
            harts: (0..harts).map(hart).collect(),
        }))
    }

    /// A line is requested. Returns whether this is the first use of a line that was fetched ahead, if it is not `Absent`.
    fn uses(&mut self, line: u64, presence: Presence) -> bool {
        let mut harts = self.harts.iter_mut();
        let Some(hart) = harts.find_map(|hart| hart.foresight.uses(line).then_some(hart)) else {
            return false;
        };
        // It may have left before anybody used it.
        let used = presence != Presence::Absent;
        hart.untold.used += u16::from(used);
        hart.untold.late += u16::from(presence == Presence::Coming);
        used
    }

    /// A request is looked up. Returns what it trains with, if it trains.
    fn looks(&mut self, ask: &Ask, directory: &Directory) -> Option<Trainer> {
        let what = match ask.request {
            Request::Read | Request::ReadAhead | Request::Write => Fill::Data,
            Request::Fetch => Fill::Instructions,
            Request::Manage(_) | Request::Reclaim(_) | Request::Ahead(_) => return None,
        };
        let (line, presence) = (ask.line, directory.presence(ask.line));
        let trains = self.uses(line, presence) || presence == Presence::Absent;
        trains.then_some(Trainer {
            port: ask.port,
            line,
            ids: ask.ids,
            what,
        })
    }
}

impl SecondLevel {
    /// A request has been looked up.
    #[inline]
    pub(super) fn found(&mut self, now: Tick, ask: Ask, ledger: &mut Ledger) {
        match self.ahead.take() {
            None => self.directory.ask(now, ask, ledger),
            Some(mut ahead) => {
                let trainer = ahead.looks(&ask, &self.directory);
                self.directory.ask(now, ask, ledger);
                if let Some(trainer) = trainer {
                    self.train(now, trainer, &mut ahead, ledger);
                }
                self.ahead = Some(ahead);
            }
        }
    }

    /// Fetches the lines that its hart's table names after a request.
    fn train(&mut self, now: Tick, by: Trainer, ahead: &mut Ahead, ledger: &mut Ledger) {
        let hart = &mut ahead.harts[usize::from(by.port)];
        // A request does not say which instruction makes it, so only streams are possible.
        let request = PrefetcherRequest {
            address: by.line,
            pc: 0,
        };
        let wanted = hart.foresight.observe(request);
        for (index, &line) in wanted.iter().enumerate() {
            if self.map.find(line).is_none() {
                continue;
            }
            let ask = Ask {
                port: by.port,
                line,
                request: Request::Ahead(by.what),
                ids: by.ids,
                account: Account::new(now),
            };
            match self.directory.fetch_ahead(now, ask, ledger) {
                Foreseeing::Known => {}
                Foreseeing::Begun => {
                    hart.untold.fetched += 1;
                    hart.foresight.fetches(line);
                }
                Foreseeing::Dropped => {
                    hart.foresight.not_fetched(wanted.len() - index);
                    break;
                }
            }
        }
    }

    /// Answers that leave now report what was fetched for their hart.
    #[inline]
    pub(super) fn tell_foreseen(&mut self) {
        let Some(ahead) = &mut self.ahead else {
            return;
        };
        for (port, down) in &mut self.directory.out {
            if let Down::Grant { looked, .. } | Down::Instructions { looked, .. } = down {
                let untold = &mut ahead.harts[usize::from(*port)].untold;
                looked.ahead = std::mem::take(untold);
            }
        }
    }
}
