//! The home agent of a memory: the order in which coherent clusters and devices get its lines (decision record 0006).
//!
//! Why it exists: each cluster keeps its first levels coherent by itself; between clusters, something must decide who has a line. A home
//! has at most one transaction for each line. It asks every other coherent cluster for the line, takes modified bytes, and only then lets
//! memory answer; requests for a line that is busy wait in the order of arrival. It keeps no state of a line between transactions, like an
//! interconnect without a snoop filter (Arm CoreLink CCI-400). What it deliberately does not know: times, bytes, and what clusters do
//! inside.
//!
//! A coherent device (a peripheral or a DMA engine) asks as a cluster does, but keeps no copy: clusters share a line that it reads, and give
//! up a line that it writes. If it writes the whole line, they drop what they have, because nothing of it stays (CHI: WriteUniqueFull and
//! MakeInvalid).
//!
//! Who can fill it: a cluster has at most one request here for each transaction of its second level. A peripheral has at most
//! `outstanding` requests, and an engine as many for each channel. Each request waits for one turn of each other request for the same
//! line.

use crate::ledger::{Ledger, Resource, Transaction as Kind};
use crate::noc::{Packet, PacketKind, Surrender, Want};
use crate::types::{Line, Owner, Tick, TileId};
use std::collections::VecDeque;

/// An order of a home.
#[derive(Debug)]
pub enum Order {
    /// Ask a cluster for a line.
    Ask {
        /// The cluster.
        cluster: TileId,
        /// The line, as all clusters number it.
        tag: u32,
        /// How the cluster must treat the line.
        surrender: Surrender,
        /// The hart for which the line is wanted.
        owner: Owner,
    },
    /// All other clusters have answered: memory may answer this request. The line is busy until [`Home::left`].
    Serve {
        /// The request.
        request: Box<Packet>,
        /// No other cluster has the line.
        alone: bool,
        /// Another cluster has just given its bytes.
        given: bool,
    },
}

#[derive(Debug)]
struct Transaction {
    /// The line.
    tag: u32,
    /// The part that wants it, and the tag of its request.
    requester: (TileId, u32),
    owner: Owner,
    /// `None`: memory serves it.
    request: Option<Box<Packet>>,
    /// Clusters that have not answered.
    asked: usize,
    kept: bool,
    given: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Home {
    memory: TileId,
    clusters: Vec<TileId>,
    /// Bytes of a line of these clusters.
    pub line: u32,
    transactions: Vec<Transaction>,
    waiting: VecDeque<Box<Packet>>,
    /// The caller takes them, in their order.
    pub orders: Vec<Order>,
}

impl Home {
    /// The home of a memory tile, for these coherent clusters and the size of their lines. It asks the clusters in this order.
    pub fn new(memory: TileId, clusters: &[TileId], line: u32) -> Self {
        Self {
            memory,
            clusters: clusters.to_vec(),
            line,
            transactions: Vec::new(),
            waiting: VecDeque::new(),
            orders: Vec::new(),
        }
    }

    /// Whether a tile is one of the coherent clusters.
    pub fn serves(&self, tile: TileId) -> bool {
        self.clusters.contains(&tile)
    }

    /// Nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.transactions.is_empty() && self.waiting.is_empty()
    }

    fn find(&self, tag: u32) -> Option<usize> {
        self.transactions.iter().position(|t| t.tag == tag)
    }

    /// The line that a request names, and what it wants to do with the line.
    fn wanted(request: &Packet) -> (u32, Want) {
        match request.kind {
            PacketKind::Coherent { line, want, .. } => (line, want),
            _ => panic!("a home serves coherent clusters and devices, not {request:?}"),
        }
    }

    /// How clusters must treat the line of a request. A device that writes the whole line needs none of its bytes.
    fn surrender(&self, request: &Packet) -> Surrender {
        match request.kind {
            PacketKind::Coherent {
                want: Want::Put,
                bytes,
                address,
                ..
            } if bytes == self.line && address.is_multiple_of(bytes.into()) => Surrender::Discard,
            _ => Self::wanted(request).1.surrender(),
        }
    }

    /// What a device writes to a whole line, while clusters drop what they have of it: nobody has newer bytes.
    pub fn replaces(&self, tag: u32) -> Option<&Line> {
        let transaction = &self.transactions[self.find(tag)?];
        let request = transaction.request.as_ref()?;
        let written = matches!(
            request.kind,
            PacketKind::Coherent {
                want: Want::Put,
                ..
            }
        );
        let whole = written && self.surrender(request) == Surrender::Discard;
        request.line.as_ref().filter(|_| whole)
    }

    /// A request of a cluster or of a device ([`PacketKind::Coherent`]) has arrived.
    pub fn ask(&mut self, request: Box<Packet>) {
        match self.find(Self::wanted(&request).0) {
            Some(_) => self.waiting.push_back(request),
            None => self.begin(request),
        }
    }

    fn begin(&mut self, request: Box<Packet>) {
        let (tag, _) = Self::wanted(&request);
        let surrender = self.surrender(&request);
        let owner = request.owner;
        let requester = (request.source, request.tag);
        let others = self.clusters.iter().filter(|id| **id != request.source);
        let before = self.orders.len();
        self.orders.extend(others.map(|cluster| Order::Ask {
            cluster: *cluster,
            tag,
            surrender,
            owner,
        }));
        self.transactions.push(Transaction {
            tag,
            requester,
            owner,
            request: Some(request),
            asked: self.orders.len() - before,
            kept: false,
            given: false,
        });
        self.serve(self.transactions.len() - 1);
    }

    /// Lets memory answer, if all clusters have.
    fn serve(&mut self, at: usize) {
        let transaction = &mut self.transactions[at];
        if transaction.asked == 0 {
            let request = transaction.request.take();
            self.orders.push(Order::Serve {
                request: request.expect("it is served once"),
                alone: !transaction.kept,
                given: transaction.given,
            });
        }
    }

    /// A cluster has answered ([`PacketKind::Surrendered`]). Its bytes are in memory.
    pub fn answered(&mut self, now: Tick, answer: &Packet, ledger: &mut Ledger) {
        let PacketKind::Surrendered { kept, bytes, .. } = answer.kind else {
            panic!("a cluster answers a home with {answer:?}");
        };
        let at = self.find(answer.tag);
        let at = at.unwrap_or_else(|| panic!("no cluster was asked: {answer:?}"));
        let transaction = &mut self.transactions[at];
        transaction.asked -= 1;
        transaction.kept |= kept;
        transaction.given |= bytes != 0;
        match (&mut transaction.request, transaction.asked) {
            // The request has waited for the last answer, and its time is that of this question.
            (Some(request), 0) => {
                request.account.service += answer.account.service;
                request.account.waited += answer.account.waited;
            }
            _ => ledger.complete(answer.owner, Kind::Probe, &answer.account, now),
        }
        self.serve(at);
    }

    /// The answer to this request leaves: anything that is sent to its cluster from now on arrives after the answer.
    pub fn left(&mut self, now: Tick, requester: (TileId, u32), ledger: &mut Ledger) {
        let mut all = self.transactions.iter();
        let at = all.position(|t| t.requester == requester && t.request.is_none());
        let at = at.unwrap_or_else(|| panic!("{requester:?} is not served: {self:?}"));
        let Transaction {
            tag,
            owner: culprit,
            ..
        } = self.transactions.remove(at);
        let resource = Resource::Home(self.memory);
        let about = |request: &Packet| Self::wanted(request).0 == tag;
        for waiting in self.waiting.iter_mut().filter(|w| about(w)) {
            let (victim, account) = (waiting.owner, &mut waiting.account);
            let waited = now - account.accounted();
            ledger.wait(account, victim, culprit, resource, waited);
        }
        let next = self.waiting.iter().position(|w| about(w));
        if let Some(next) = next.and_then(|next| self.waiting.remove(next)) {
            self.begin(next);
        }
    }
}
