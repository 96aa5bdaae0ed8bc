//! A memory tile's controller, and the packets that wait for its answers.
//!
//! Why it exists: the network delivers packets and expects answers, but a controller answers later and out of order.
//! What it deliberately does not know: routes, and the bytes stored.

use super::controller::{Controller, Request, Turns};
use super::{BankActivity, DramStatistics};
use crate::config::DramConfig;
use crate::hart::RemoteOperation;
use crate::ledger::Ledger;
use crate::noc::{Account, Packet, PacketKind};
use crate::types::{Owner, Tick, TileId};
use rustc_hash::FxHashMap;

/// An answer, its moment and its account.
pub type Answer = (Tick, Box<Packet>, Account, PacketKind);

/// A controller and its outstanding requests.
#[derive(Debug)]
pub struct MemoryController {
    controller: Controller<u64>,
    /// The tiles whose harts have turns of their own.
    clusters: Vec<TileId>,
    /// A bandwidth controller limits requesters, by their RCIDs.
    limited: bool,
    /// The packets and their answers, by number.
    answers: FxHashMap<u64, (Box<Packet>, PacketKind)>,
    pushed: u64,
}

impl MemoryController {
    /// The controller that a configuration asks for. `clusters`: the tiles whose requests are owned by their harts.
    pub fn new(config: &DramConfig, tile: TileId, clusters: &[TileId]) -> Self {
        let mut controller = Controller::new(config.controller, tile);
        if let Some(bandwidth) = &config.bandwidth {
            controller.limit(bandwidth, &config.shares);
        }
        Self {
            controller,
            limited: config.bandwidth.is_some(),
            clusters: match config.controller.turns {
                Turns::Tile => Vec::new(),
                Turns::Hart => clusters.to_vec(),
            },
            answers: FxHashMap::default(),
            pushed: 0,
        }
    }

    /// Statistics so far.
    pub fn statistics(&self) -> DramStatistics {
        self.controller.statistics()
    }

    /// When the next decision is due.
    pub fn next_time(&self) -> Tick {
        self.controller.next_time()
    }

    /// Takes an access that arrives at `now`, and keeps its packet until it is served. `answer`: what the packet becomes then.
    pub fn access(
        &mut self,
        now: Tick,
        (address, bytes, write): (u64, u32, bool),
        packet: Box<Packet>,
        answer: PacketKind,
    ) {
        let (owner, ids, account) = (packet.owner, packet.ids, packet.account);
        self.pushed += 1;
        self.answers.insert(self.pushed, (packet, answer));
        // Elsewhere, an owner's activity is not a part of the hardware, and software chooses how many there are.
        let requester = match self.clusters.contains(&owner.tile) {
            _ if self.limited => Owner::new(0, ids.rcid),
            true => owner,
            false => Owner::new(owner.tile, 0),
        };
        self.controller.passes(ids, bytes, write);
        let request = Request {
            token: self.pushed,
            address,
            bytes,
            write,
            owner,
            requester,
        };
        self.controller.push(now, request, account);
    }

    /// A hart accesses a register of the bandwidth controller. Returns what a load reads, and 0 for a store.
    ///
    /// # Panics
    /// If there is no such controller, which is an error in the machine.
    pub fn register(&mut self, now: Tick, at: (u64, u8), operation: RemoteOperation) -> u64 {
        self.controller.register(now, at, operation)
    }

    /// Makes the next decision.
    ///
    /// # Panics
    /// If no decision is due.
    pub fn step(&mut self, ledger: &mut Ledger, observe: Option<&mut dyn FnMut(BankActivity)>) {
        self.controller.step(ledger, observe);
    }

    /// The answers that became ready since the last call, in the order of the decisions.
    pub fn answers(&mut self) -> Vec<Answer> {
        let answers = &mut self.answers;
        let served = self.controller.take_served();
        served
            .map(|served| match answers.remove(&served.token) {
                Some((packet, kind)) => (served.at, packet, served.account, kind),
                None => panic!("an answer without a question: {served:?}"),
            })
            .collect()
    }
}
