//! A chip whose only processing tile is a cluster: the order in which cluster and fabric act.
//!
//! Why it exists: the cluster acts up to the earliest moment at which memory may answer, and memory acts up to the earliest moment
//! at which the cluster may ask. What it deliberately does not know: harts and caches.

use super::{Machine, MachineError, Outcome};
use crate::cluster_tile::ClusterTile;
use crate::hart::Hart;
use crate::statistics::{CacheReport, HartReport};
use crate::types::{Tick, TileId, later};

impl Machine {
    /// The cluster, if it is this tile.
    pub(super) fn cluster(&self, id: TileId) -> Option<&ClusterTile> {
        self.cluster.as_ref().filter(|cluster| cluster.id() == id)
    }

    /// The same, to change it.
    pub(super) fn cluster_mut(&mut self, id: TileId) -> Option<&mut ClusterTile> {
        self.cluster.as_mut().filter(|cluster| cluster.id() == id)
    }

    /// The hart at a port of a tile's cluster.
    ///
    /// # Errors
    /// If there is no such hart.
    pub fn cluster_hart(&self, tile: TileId, port: usize) -> Result<&Hart, MachineError> {
        let hart = self.cluster(tile).and_then(|cluster| cluster.hart(port));
        hart.ok_or(MachineError::NoTile(tile))
    }

    /// Starts the hart at a port of a tile's cluster at `pc` in machine mode, with these values in `a0` and `a1`.
    ///
    /// # Errors
    /// If there is no such hart.
    pub fn start_cluster_hart(
        &mut self,
        (tile, port): (TileId, usize),
        pc: u64,
        a0: u64,
        a1: u64,
    ) -> Result<(), MachineError> {
        let now = self.now;
        let cluster = self.cluster_mut(tile);
        match cluster.is_some_and(|cluster| cluster.start(port, now, pc, a0, a1)) {
            true => Ok(()),
            false => Err(MachineError::NoTile(tile)),
        }
    }

    /// Makes the host visit the harts of the cluster in reverse order.
    #[cfg(test)]
    pub(crate) fn visit_harts_backwards(&mut self, backwards: bool) {
        let cluster = self.cluster.as_mut().expect("a cluster");
        cluster.backwards = backwards;
    }

    /// What the caches of the cluster did.
    pub(super) fn cluster_caches(&self) -> impl Iterator<Item = CacheReport> {
        let all = self.cluster.iter().flat_map(ClusterTile::statistics);
        all.map(|(level, owner, counters)| CacheReport {
            level,
            owner,
            counters,
        })
    }

    /// What the harts of the cluster counted, by port.
    pub(super) fn cluster_harts(&self) -> impl Iterator<Item = HartReport> {
        let cycle = self
            .config
            .cluster()
            .map(|(tile, _)| tile.hart.ticks_per_cycle);
        let clusters = self.cluster.iter().zip(cycle);
        clusters.flat_map(|(cluster, cycle)| {
            cluster.harts().map(move |hart| HartReport {
                tile: cluster.id(),
                cycle,
                counters: *hart.statistics(),
            })
        })
    }

    /// A window of time on a chip with a cluster.
    pub(super) fn cluster_window(&mut self, limit: Tick) -> Option<Outcome> {
        let (cluster, fabric) = (self.cluster.as_mut()?, &mut self.fabric);
        // When a hart has ended the run, the others advance to that point and no further.
        let end = cluster.end().map(|(at, _)| at + 1);
        let limit = end.map_or(limit, |end| limit.min(end));
        let mut first = cluster.next_time();
        let mut packet = cluster.next_packet();
        // The fabric goes first; it may be ahead of the cluster by the entry lookahead.
        loop {
            let next = fabric.next_time();
            if next >= later(packet, self.entry) || next >= limit {
                break;
            }
            let Some(delivery) = fabric.step() else {
                continue;
            };
            let at = delivery.at;
            cluster.deliver(at, delivery.packet);
            (first, packet) = (first.min(at), packet.min(at));
        }
        let next = fabric.next_time();
        if first >= limit && next >= limit {
            if end == Some(limit) {
                return self.ended();
            }
            if first == Tick::MAX && next == Tick::MAX {
                return Some(Outcome::Idle { at: self.now });
            }
            self.now = self.now.max(limit);
            return Some(Outcome::Limit);
        }
        let arrival = match fabric.may_arrive(0) {
            true => later(next, self.exit),
            false => Tick::MAX,
        };
        cluster.run(arrival, limit, fabric);
        if first != Tick::MAX {
            self.now = self.now.max(first);
        }
        None
    }
}
