//! Prefetchers of caches.

use super::TileConfig;

/// A prefetcher: it fetches lines ahead for a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefetcherConfig {
    /// How it finds what comes next.
    pub kind: PrefetcherKind,
    /// Lines that one request may cause: 1 to 64.
    pub degree: u32,
    /// Bytes, a power of two, at most 4096: nothing outside of the request's own block of this size is fetched, because its physical address is not known.
    pub page: u32,
}

/// How a prefetcher finds what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefetcherKind {
    /// Requests for lines at equal distances, whichever instructions make them.
    Stream {
        /// Streams that it follows at once: 1 to 64.
        streams: u32,
        /// Maximum distance of two requests of a stream, in lines: 1 to 64.
        stride: u32,
        /// Requests at equal distances that make a stream: 2 to 16.
        training: u32,
        /// Strides ahead of the last request up to which lines are fetched: 1 to 64.
        distance: u32,
    },
    /// Requests of one instruction at equal distances, as gem5's `StridePrefetcher` does.
    Stride {
        /// Instructions that it knows: 1 to 4096, a multiple of `ways`; the number of sets is a power of two.
        entries: u32,
        /// Ways of a set.
        ways: u32,
        /// Bits of a confidence counter: 1 to 8.
        bits: u32,
        /// Confidence of an instruction that is new.
        initial: u32,
        /// Least confidence at which lines are fetched, in percent of the maximum.
        threshold: u32,
    },
}

impl PrefetcherConfig {
    pub(super) fn validate(&self, line: u32) -> Result<(), String> {
        if !(1..=64).contains(&self.degree) {
            return Err("a prefetcher's degree must be 1 to 64".into());
        }
        if !self.page.is_power_of_two() || self.page < line || self.page > 4096 {
            return Err("a prefetcher's page must be a power of two from a line to 4096".into());
        }
        match self.kind {
            PrefetcherKind::Stream {
                streams,
                stride,
                training,
                distance,
            } => {
                let counts = [streams, stride, distance];
                if counts.iter().any(|count| !(1..=64).contains(count)) {
                    return Err("streams, stride and distance must be 1 to 64".into());
                }
                if !(2..=16).contains(&training) {
                    return Err("a stream's training must be 2 to 16".into());
                }
            }
            PrefetcherKind::Stride {
                entries,
                ways,
                bits,
                initial,
                threshold,
            } => {
                let fits = ways > 0 && entries <= 4096 && entries % ways.max(1) == 0;
                if !fits || !(entries / ways).is_power_of_two() {
                    return Err("a stride prefetcher's entries must be at most 4096, in a power of two of sets".into());
                }
                if !(1..=8).contains(&bits) || initial >= 1 << bits || threshold > 100 {
                    return Err("a stride prefetcher's confidence must have 1 to 8 bits, and its threshold is at most 100 %".into());
                }
            }
        }
        Ok(())
    }
}

/// Which caches of a cluster may have a prefetcher, and of which kind. The tile's own instruction cache was looked at before.
pub(super) fn validate_cluster(tile: &TileConfig) -> Result<(), String> {
    let cores = tile.cluster.iter().flat_map(|cluster| &cluster.cores);
    let mut cores = cores.flatten();
    if cores.any(|core| core.l1i.prefetcher.is_some()) {
        return Err("an instruction cache has no prefetcher".into());
    }
    let second = tile.l2.as_ref();
    let prefetcher = second.and_then(|cache| cache.prefetcher.as_ref());
    match prefetcher.map(|prefetcher| &prefetcher.kind) {
        Some(PrefetcherKind::Stride { .. }) => {
            Err("the l2 cache of a cluster follows streams only, because its requests carry no instruction".into())
        }
        _ => Ok(()),
    }
}
