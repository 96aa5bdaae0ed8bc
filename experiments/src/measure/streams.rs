//! The costs of streams (reader, writer, copy), and of a chain beside harts that copy, which follow from a platform's parameters.
//!
//! Why it exists: bandwidth and contention need more than the latency of a level: how many lines a hart has under way, how many instructions
//! a line costs, and how long an access occupies what all share. What it deliberately does not know: the machine, and what was measured.
//!
//! Three simplifications make the forms short, and each is a reason for deviations. A hart that executes in order waits for a line before it
//! computes on. Memory is either idle for an access, or so busy that each access waits for one of each other hart (the asymptotes of
//! operational analysis: Denning and Buzen, Computing Surveys 10(3), 1978). Rivals fill sets at random moments, at a steady rate.

use super::closed::{Costs, hits, hits_of, there};
use bulkhead_model::platform::{Cache, Memory, PrefetcherKind, Replacement};

/// What a hart does with the lines of a working set, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Loads every word.
    Read,
    /// Stores every word.
    Write,
    /// Loads every word of the first half, and stores it to the second half.
    Copy,
}

/// Words in a turn of each loop of `memory/measure`.
const TURN: f64 = 8.0;

impl Stream {
    /// Loads, stores and other instructions in a turn of the compiled program: pointers and the branch. A reader's words go nowhere.
    fn turn(self) -> (f64, f64, f64) {
        match self {
            Self::Read => (TURN, 0.0, 2.0),
            Self::Write => (0.0, TURN, 2.0),
            Self::Copy => (TURN, TURN, 4.0),
        }
    }

    /// Lines that are read into the caches and written back from there, for each line in order that misses (of a copy: for each pair).
    fn moved(self) -> (f64, f64) {
        match self {
            Self::Read => (1.0, 0.0),
            Self::Write => (1.0, 1.0),
            Self::Copy => (2.0, 1.0),
        }
    }
}

/// Harts that copy beside a chain, all in the same sets of the second level.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Harts.
    pub rivals: u32,
    /// Bytes of each rival's working set.
    pub bytes: u64,
    /// Bytes of one way of the sets.
    pub sets: u64,
}

/// Lines that a rival's copy moves through memory for each line that it waits for: half of them are written back.
const MOVED: f64 = 1.5;

impl Costs<'_> {
    /// Cycles of one of many independent loads, or stores, of eight bytes in the local memory of a tile `hops` away: the longest of the loop's own
    /// instructions, the interval at which the network takes reads, and the time there and back divided by the accesses under way.
    pub fn independent(&self, hops: u32, is_write: bool) -> Option<f64> {
        let pipeline = &self.tile.pipeline;
        let network = &self.platform.network;
        let (stream, under_way) = match is_write {
            true => (Stream::Write, pipeline.store_buffer),
            false => (Stream::Read, pipeline.load_buffer),
        };
        let interval = network.read_interval.filter(|_| !is_write).unwrap_or(0);
        let interval = f64::from(interval) * self.hertz() / network.clock.frequency.0 as f64;
        let window = self.remote(hops)? / f64::from(under_way.max(1));
        Some((self.issue(stream, 64) / TURN).max(interval).max(window))
    }

    /// Cycles to issue the instructions for one line of a stream (of a copy: for a pair of lines), if all of them hit.
    fn issue(&self, stream: Stream, line: u32) -> f64 {
        let (loads, stores, others) = stream.turn();
        let all = loads + stores + others;
        let pipeline = &self.tile.pipeline;
        let turn = match &pipeline.interval {
            Some(limits) => {
                let ports = (loads + stores) / f64::from(limits.memory_ports);
                ports.max(all / f64::from(limits.width))
            }
            None => all + f64::from(pipeline.jump_penalty),
        };
        turn * f64::from(line) / (8.0 * TURN)
    }

    /// Cycles for one line of a stream (of a copy: for a pair of lines) that a level serves after `cost` cycles, and `apart` cycles after
    /// the line before. The halves of a copy are in one bank, because its rows are taken in turn and half a set is a multiple of them.
    fn line(&self, stream: Stream, cache: &Cache, (cost, apart): (f64, f64)) -> f64 {
        let pipeline = &self.tile.pipeline;
        let words = f64::from(cache.line) / 8.0;
        let (loads, stores, others) = stream.turn();
        let issue = self.issue(stream, cache.line);
        let most = f64::from(self.overlap_of_misses());
        let buffers = [
            (loads, pipeline.load_buffer),
            (stores, pipeline.store_buffer),
        ];
        let used = buffers.into_iter().filter(|one| one.0 > 0.0);
        // Lines of loads, or of stores, that are under way at once; below one if the buffer has fewer entries than a line has words.
        let lines = used.map(|(_, entries)| (f64::from(entries) / words).min(most));
        match &pipeline.interval {
            None => {
                // While a line is on its way, the hart issues as many accesses to it as the buffer holds.
                let issued = |lines: f64| lines.min(1.0) * words;
                let wait = |lines: f64| cost / lines.floor().max(1.0) - issued(lines);
                let waits = lines.map(|lines| wait(lines).max(0.0));
                // Stores to a whole line wait in their buffer while the hart issues the loads of the next line, so one of the two waits is beside the other.
                match stream == Stream::Copy
                    && f64::from(pipeline.store_buffer) >= words
                    && most >= 2.0
                {
                    true => issue + waits.fold(0.0, f64::max) + (apart - issue).max(0.0),
                    false => issue + waits.sum::<f64>(),
                }
            }
            Some(limits) => {
                // Those of all turns that the window holds.
                let turns = f64::from(limits.window) / (loads + stores + others);
                let held = turns * TURN / words;
                let misses = lines.clone().count() as f64;
                let waits = lines.map(|lines| cost / lines.min(held).max(1.0));
                waits.fold(issue, f64::max).max(misses * cost / most)
            }
        }
    }

    /// Misses that a hart may have under way, of loads and stores together.
    fn overlap_of_misses(&self) -> u32 {
        let own = self.tile.l1d.as_ref().map_or(u32::MAX, |l1| l1.mshrs);
        let shared = self.tile.l2.as_ref().map_or(u32::MAX, |l2| l2.mshrs);
        own.min(shared)
    }

    /// Gigabytes in a second of a stream over `bytes`. Nothing if a cache fetches ahead.
    pub fn stream(&self, stream: Stream, bytes: u64) -> Option<f64> {
        let l1 = self.tile.l1d.as_ref()?;
        let mut caches = [Some(l1), self.tile.l2.as_ref()].into_iter().flatten();
        let ahead = |one: &Cache| one.prefetcher.as_ref().map(|one| one.kind);
        if caches.any(|one| ahead(one).is_some_and(|kind| kind != PrefetcherKind::Off)) {
            return None;
        }
        let memory = self.platform.memories.first()?;
        // Lines that are written back, and those of a copy's other half, close the row of a line that is read.
        let open = stream == Stream::Read;
        let far = self.refreshed(self.memory(open)?);
        let near = match (&self.tile.l2, self.second()) {
            (Some(l2), Some(cost)) => Some((hits(l2, bytes), cost)),
            _ => None,
        };
        let (reads, writes) = stream.moved();
        let missed = self
            .line(stream, l1, (far, self.pace(memory, l1.line, true)))
            .max(self.least(memory, l1.line, (reads, writes)));
        let below = match near {
            Some((share, cost)) => {
                share * self.line(stream, l1, (cost, 0.0)) + (1.0 - share) * missed
            }
            None => missed,
        };
        let first = hits(l1, bytes);
        let cycles = first * self.issue(stream, l1.line) + (1.0 - first) * below;
        let moved = match stream {
            Stream::Copy => 2 * l1.line,
            _ => l1.line,
        };
        Some(f64::from(moved) * self.hertz() / cycles / 1e9)
    }

    /// Minimum cycles for lines that are read and written, if they keep links and data bus busy.
    fn least(&self, memory: &Memory, line: u32, (reads, writes): (f64, f64)) -> f64 {
        let network = &self.platform.network;
        let link = |payload: u32| {
            let cycles = f64::from((payload + network.header).div_ceil(network.width));
            cycles * self.hertz() / network.clock.frequency.0 as f64
        };
        // Requests share a link with lines that are written, and acknowledgements one with lines that are read, where channels are shared.
        let there = reads * link(0) + writes * link(line);
        let back = reads * link(line) + writes * link(0);
        let (there, back) = match network.split_channels {
            false => (there, back),
            true => (writes * link(line), reads * link(line)),
        };
        there
            .max(back)
            .max((reads + writes) * self.bus(memory, line))
    }

    /// Cycles for which a line occupies a memory's data bus.
    fn bus(&self, memory: &Memory, line: u32) -> f64 {
        let dram = &memory.dram;
        let burst = dram.burst.div_ceil(2 * dram.bus) * line.div_ceil(dram.burst);
        let cycles = f64::from(burst) / f64::from(dram.channels());
        cycles * self.hertz() / dram.clock.frequency.0 as f64 / there(memory)
    }

    /// Minimum cycles between two lines in rows that are not open: of a bank, if all are in one bank, or of all banks in turn; of a link; of the
    /// data bus.
    fn pace(&self, memory: &Memory, line: u32, one_bank: bool) -> f64 {
        let dram = &memory.dram;
        let banks = if one_bank {
            1
        } else {
            dram.banks * dram.channels()
        };
        let row = f64::from(dram.controller.row_active + dram.precharge) * self.hertz()
            / dram.clock.frequency.0 as f64;
        let row = row / there(memory) / f64::from(banks);
        row.max(self.least(memory, line, (1.0, 0.0)))
    }

    /// A load that a memory serves while harts copy there, as long as without them or as long as one access of each of them takes.
    pub fn beside(&self, memory: &Memory, rivals: u32, one_bank: bool) -> Option<f64> {
        let alone = self.refreshed_of(memory, self.memory_of(memory, false)?);
        let line = self.last()?.line;
        let all = 1.0 + MOVED * f64::from(rivals);
        Some(alone.max(all * self.pace(memory, line, one_bank)))
    }

    /// A load of a chain over `bytes` whose lines are in the sets of a crowd. Between two uses of a line, its own chain's misses and the
    /// rivals' fills go to the same set. If replacement is random, each fill spares the line with the probability `1 - 1/ways`. If it follows the
    /// order of use, the line stays if at most as many lines came as its chain leaves ways; their number has a Poisson distribution, because
    /// the chain's order is random.
    pub fn crowded(&self, memory: &Memory, bytes: u64, crowd: Crowd) -> Option<f64> {
        let (l1, l2) = (self.tile.l1d.as_ref()?, self.tile.l2.as_ref()?);
        let near = self.second()?;
        let one_bank = memory.dram.bank_bytes(memory.size.0).is_some();
        let far = self.beside(memory, crowd.rivals, one_bank)?;
        let (sets, rivals) = (crowd.sets as f64, f64::from(crowd.rivals));
        let theirs = hits_of(l2, rivals * crowd.bytes as f64 / sets);
        let cost = theirs * near + (1.0 - theirs) * far;
        let apart = (1.0 - theirs) * self.pace(memory, l1.line, true);
        let pair = self.line(Stream::Copy, l1, (cost, apart));
        // Fills in a cycle, in each set.
        let rate = (2.0 * rivals * (1.0 - theirs) / pair).min(f64::from(l2.mshrs) / far);
        let rate = rate * f64::from(l2.line) / sets;
        let first = hits(l1, bytes);
        let own = bytes as f64 / sets;
        let lines = bytes as f64 / f64::from(l2.line);
        let load =
            |stay: f64| first * self.first() + (1.0 - first) * (stay * near + (1.0 - stay) * far);
        // From below: the chain begins beside its rivals, so none of its lines is there.
        let mut stay = 0.0f64;
        for _ in 0..10_000 {
            stay = stays(l2, own, stay, rate * lines * load(stay));
        }
        Some(load(stay))
    }
}

/// The share of a chain's lines that are still in the cache at their next use, if `lines` of the chain share a set, of which this share stays,
/// and others fill a set so many times in a round of the chain, on average.
fn stays(cache: &Cache, lines: f64, stay: f64, fills: f64) -> f64 {
    let ways = f64::from(cache.ways);
    match cache.replacement {
        Replacement::Random | Replacement::RandomAny => {
            let own = (lines - 1.0).max(0.0) * (1.0 - stay);
            (1.0 - 1.0 / ways).powf(own) * (-fills / ways).exp()
        }
        Replacement::Lru | Replacement::TreePlru => at_most(fills, ways - lines),
    }
}

/// The probability that a number with a Poisson distribution is at most `most`.
fn at_most(mean: f64, most: f64) -> f64 {
    if most < 0.0 {
        return 0.0;
    }
    let mut term = (-mean).exp();
    let mut sum = term;
    for k in 1..=most as u64 {
        term *= mean / k as f64;
        sum += term;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_that_of_poisson() {
        // e^-2 (1 + 2 + 2), by hand.
        assert!((at_most(2.0, 2.0) - 5.0 * (-2.0f64).exp()).abs() < 1e-12);
        assert_eq!(at_most(0.0, 0.0), 1.0);
        assert_eq!(at_most(0.5, -1.0), 0.0);
    }
}
