//! What a machine has counted, and the digest of a run.
//!
//! Why it exists: reports and tests compare runs. It does not know how a machine runs.

use super::Machine;
use crate::beside::BesidePart;
use crate::config::TileConfig;
use crate::statistics::{CacheReport, HartReport, LinkReport, MemoryReport, Statistics};
use sha2::{Digest, Sha256};

impl Machine {
    /// All counters.
    pub fn statistics(&self) -> Statistics {
        let mut caches = Vec::new();
        for tile in &self.tiles {
            for (level, owner, counters) in tile.caches().statistics() {
                caches.push(CacheReport {
                    level,
                    owner,
                    counters,
                });
            }
        }
        caches.extend(self.cluster_caches());
        caches.sort_by_key(|c| (c.owner.tile, c.level, c.owner.activity));
        let mut harts: Vec<HartReport> = self
            .tiles
            .iter()
            .zip(self.single())
            .map(|(tile, config)| HartReport {
                tile: tile.id(),
                cycle: config.hart.ticks_per_cycle,
                counters: *tile.hart().statistics(),
            })
            .collect();
        for (tile, config) in self.tiles.iter().zip(self.single()) {
            harts.extend(tile.second_hart().map(|hart| HartReport {
                tile: tile.id(),
                cycle: config.hart.ticks_per_cycle,
                counters: *hart.statistics(),
            }));
        }
        harts.extend(self.mesh.harts(&self.config));
        harts.extend(self.cluster_harts());
        harts.sort_by_key(|h| h.tile);
        let mut memories: Vec<MemoryReport> = self
            .fabric
            .memories
            .iter()
            .map(|m| MemoryReport {
                tile: m.id,
                counters: m.dram.statistics(),
            })
            .collect();
        memories.sort_by_key(|m| m.tile);
        let links = self
            .fabric
            .network
            .links()
            .enumerate()
            .map(|(i, (shape, plane, counters))| LinkReport {
                link: i as u16,
                from: shape.from,
                to: shape.to,
                plane,
                counters: *counters,
            })
            .collect();
        Statistics {
            ticks: self.now,
            markers_lost: self.tiles.iter().map(|t| t.markers_lost()).sum::<u64>()
                + self
                    .mesh
                    .tiles
                    .iter()
                    .map(|t| t.markers_lost())
                    .sum::<u64>()
                + self
                    .parts
                    .clusters
                    .iter()
                    .map(|c| c.markers_lost())
                    .sum::<u64>(),
            harts,
            caches,
            memories,
            links,
        }
    }

    /// The configuration of each tile with one hart's caches, in the order of the tiles.
    fn single(&self) -> impl Iterator<Item = &TileConfig> {
        let all = self.config.tiles.iter();
        all.filter(|tile| tile.cluster.is_none())
    }

    /// SHA-256 over statistics, ledger, latencies, markers, consoles and, if there is an observer, its trace. Equal runs
    /// have equal digests on every host.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut add = |text: String| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        add(format!("{:?}", self.statistics()));
        add(format!("{:?}", self.fabric.ledger.bookings()));
        add(format!("{:?}", self.fabric.ledger.latencies()));
        // Without the addresses of their instructions: where code lies is not what happened.
        let markers = self.markers().into_iter().map(|m| {
            format!(
                "Marker {{ tick: {}, tile: {}, activity: {}, kind: {}, value: {} }}",
                m.tick, m.tile, m.activity, m.kind, m.value
            )
        });
        add(format!("[{}]", markers.collect::<Vec<String>>().join(", ")));
        for tile in &self.tiles {
            add(format!("{:?}", tile.uart().map(|u| u.output())));
            if let Some(memories) = tile.coupled_statistics() {
                add(format!("{memories:?}"));
            }
            if let Some(card) = tile.card() {
                add(format!("{:?}", card.counters));
            }
        }
        self.mesh.observations().for_each(&mut add);
        for cluster in &self.parts.clusters {
            add(format!("{:?}", cluster.uart().map(|u| u.output())));
        }
        for statistics in self.parts.engines.iter().filter_map(BesidePart::statistics) {
            add(format!("{statistics:?}"));
        }
        if let Some(observer) = &self.fabric.observer {
            hash.update(observer.bytes());
        }
        hash.finalize().into()
    }
}
