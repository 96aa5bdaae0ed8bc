//! A memory tile's controller. Either it fixes its schedule at arrival, or a policy decides it command by command.
//!
//! Why it exists: the network delivers packets and expects answers, but a controller with a queue answers later and out of order.
//! What it deliberately does not know: routes, and the bytes stored.

use super::controller::{Controller, Request, Turns};
use super::{BankActivity, Dram, DramStatistics};
use crate::config::DramConfig;
use crate::hart::{QosIds, RemoteOperation};
use crate::ledger::Ledger;
use crate::noc::{Account, Packet, PacketKind};
use crate::types::{Owner, Tick, TileId};
use rustc_hash::FxHashMap;

/// An answer, its moment and its account.
pub type Answer = (Tick, Box<Packet>, Account, PacketKind);

/// Outstanding requests of a controller with a queue.
#[derive(Debug)]
pub struct Queue {
    controller: Controller<u64>,
    /// The tiles whose harts have turns of their own.
    clusters: Vec<TileId>,
    /// A bandwidth controller limits requesters, by their RCIDs.
    limited: bool,
    /// The packets and their answers, by number.
    answers: FxHashMap<u64, (Box<Packet>, PacketKind)>,
    pushed: u64,
}

/// A controller.
#[derive(Debug)]
pub enum MemoryController {
    /// The whole schedule of a request is fixed when it arrives.
    Arrival(Box<Dram>),
    /// A policy chooses the commands.
    Queue(Box<Queue>),
}

impl MemoryController {
    /// The controller that a configuration asks for. `clusters`: the tiles whose requests are owned by their harts.
    pub fn new(config: &DramConfig, tile: TileId, clusters: &[TileId]) -> Self {
        match config.controller {
            None => Self::Arrival(Box::new(Dram::new(config, tile))),
            Some(controller) => Self::Queue(Box::new(Queue {
                controller: {
                    let mut queue = Controller::new(controller, tile);
                    if let Some(bandwidth) = &config.bandwidth {
                        queue.limit(bandwidth, &config.shares);
                    }
                    queue
                },
                limited: config.bandwidth.is_some(),
                clusters: match controller.turns {
                    Turns::Tile => Vec::new(),
                    Turns::Hart => clusters.to_vec(),
                },
                answers: FxHashMap::default(),
                pushed: 0,
            })),
        }
    }

    /// Statistics so far.
    pub fn statistics(&self) -> DramStatistics {
        match self {
            Self::Arrival(dram) => *dram.statistics(),
            Self::Queue(queue) => queue.controller.statistics(),
        }
    }

    /// When the next decision is due.
    pub fn next_time(&self) -> Tick {
        match self {
            Self::Arrival(_) => Tick::MAX,
            Self::Queue(queue) => queue.controller.next_time(),
        }
    }

    /// Takes an access that arrives at `now`. Returns its end if that is fixed at arrival; otherwise the packet must be
    /// [held](Self::hold) until its answer.
    #[allow(clippy::too_many_arguments)]
    pub fn access(
        &mut self,
        now: Tick,
        address: u64,
        bytes: u32,
        write: bool,
        (owner, ids): (Owner, QosIds),
        account: &mut Account,
        ledger: &mut Ledger,
        observe: Option<&mut dyn FnMut(BankActivity)>,
    ) -> Option<Tick> {
        match self {
            Self::Arrival(dram) => {
                let end = dram.access(now, address, bytes, write, owner, account, ledger, observe);
                Some(end)
            }
            Self::Queue(queue) => {
                queue.pushed += 1;
                // Elsewhere, an owner's activity is not a part of the hardware, and software chooses how many there are.
                let requester = match queue.clusters.contains(&owner.tile) {
                    _ if queue.limited => Owner::new(0, ids.rcid),
                    true => owner,
                    false => Owner::new(owner.tile, 0),
                };
                queue.controller.passes(ids, bytes, write);
                let request = Request {
                    token: queue.pushed,
                    address,
                    bytes,
                    write,
                    owner,
                    requester,
                };
                queue.controller.push(now, request, *account);
                None
            }
        }
    }

    /// A hart accesses a register of the bandwidth controller. Returns what a load reads, and 0 for a store.
    ///
    /// # Panics
    /// If there is no such controller, which is an error in the machine.
    pub fn register(&mut self, now: Tick, at: (u64, u8), operation: RemoteOperation) -> u64 {
        match self {
            Self::Queue(queue) => queue.controller.register(now, at, operation),
            Self::Arrival(dram) => panic!("no bandwidth controller is here: {dram:?}"),
        }
    }

    /// Keeps the packet of the last access, and its answer.
    ///
    /// # Panics
    /// If the controller fixes its schedule at arrival, which is an error in the machine.
    pub fn hold(&mut self, packet: Box<Packet>, kind: PacketKind) {
        let Self::Queue(queue) = self else {
            panic!("nothing is held where the end is fixed: {packet:?}");
        };
        queue.answers.insert(queue.pushed, (packet, kind));
    }

    /// Makes the next decision.
    ///
    /// # Panics
    /// If no decision is due.
    pub fn step(&mut self, ledger: &mut Ledger, observe: Option<&mut dyn FnMut(BankActivity)>) {
        match self {
            Self::Queue(queue) => queue.controller.step(ledger, observe),
            Self::Arrival(dram) => panic!("no decision is left: {dram:?}"),
        }
    }

    /// The answers that became ready since the last call, in the order of the decisions.
    pub fn answers(&mut self) -> Vec<Answer> {
        let Self::Queue(queue) = self else {
            return Vec::new();
        };
        let answers = &mut queue.answers;
        let served = queue.controller.take_served();
        served
            .map(|served| match answers.remove(&served.token) {
                Some((packet, kind)) => (served.at, packet, served.account, kind),
                None => panic!("an answer without a question: {served:?}"),
            })
            .collect()
    }
}
