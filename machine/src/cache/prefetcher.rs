//! Which lines a cache fetches ahead by itself.
//!
//! Why it exists: it sees the requests that train it, and predicts the lines that will be needed next. What it deliberately does not know:
//! whether those lines are fetched, and what that costs ([`super::hierarchy`]).
//!
//! Streams: requests for lines at equal distances, ascending or descending, whichever instructions make them, as the data caches of Arm's cores
//! recognise them (Cortex-A9 technical reference manual, DDI 0388I, section 7.6.2). Strides: the requests of one instruction, as in gem5's
//! `StridePrefetcher` (Fu, Patel and Janssens, MICRO 25, 1992), with the least recently used instruction replaced.

use crate::config::{PrefetcherConfig, PrefetcherKind};

/// A request that trains a prefetcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The address that it asks for.
    pub address: u64,
    /// The instruction that asks.
    pub pc: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// When a request last belonged to the stream; 0: there is no stream.
    used: u64,
    /// Number of the last line.
    last: u64,
    /// Lines from one request to the next; 0: not known yet.
    stride: i64,
    /// Number of requests at this distance.
    seen: u32,
    /// Strides ahead of the last request up to which lines were named.
    named: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Instruction {
    /// 0: none.
    used: u64,
    pc: u64,
    last: u64,
    stride: i64,
    confidence: u32,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Prefetcher {
    config: PrefetcherConfig,
    line_shift: u32,
    streams: Vec<Stream>,
    instructions: Vec<Instruction>,
    clock: u64,
    /// Addresses of the lines expected after the last request.
    next: Vec<u64>,
}

impl Prefetcher {
    /// An untrained prefetcher, of a valid configuration, for lines of this many bytes.
    pub fn new(config: &PrefetcherConfig, line: u32) -> Self {
        let (streams, entries) = match config.kind {
            PrefetcherKind::Stream { streams, .. } => (streams as usize, 0),
            PrefetcherKind::Stride { entries, .. } => (0, entries as usize),
        };
        Self {
            config: config.clone(),
            line_shift: line.trailing_zeros(),
            streams: vec![Stream::default(); streams],
            instructions: vec![Instruction::default(); entries],
            clock: 0,
            next: Vec::new(),
        }
    }

    /// Learns from a request, and names the addresses of the lines that it expects next, the nearest first.
    pub fn observe(&mut self, request: Request) -> &[u64] {
        self.clock += 1;
        self.next.clear();
        match self.config.kind {
            PrefetcherKind::Stream {
                stride,
                training,
                distance,
                ..
            } => self.follow(
                request.address >> self.line_shift,
                stride,
                training,
                distance,
            ),
            PrefetcherKind::Stride {
                ways,
                bits,
                initial,
                threshold,
                ..
            } => self.learn(request, ways as usize, bits, (initial, threshold)),
        }
        &self.next
    }

    /// This many of the lines that were named last were not fetched: a stream names them again.
    pub fn not_fetched(&mut self, lines: usize) {
        let last = self.streams.iter_mut().max_by_key(|stream| stream.used);
        if let Some(stream) = last {
            stream.named -= lines as u32;
        }
    }

    /// Whether two lines, by number, are in one page.
    fn together(&self, one: u64, other: u64) -> bool {
        let shift = self.config.page.trailing_zeros() - self.line_shift;
        one >> shift == other >> shift
    }

    fn follow(&mut self, line: u64, longest: u32, training: u32, distance: u32) {
        let mut known = self.streams.iter().filter(|stream| stream.used > 0);
        if known.any(|stream| stream.last == line) {
            return;
        }
        let clock = self.clock;
        let near = |stream: &Stream| stream.used > 0 && self.together(stream.last, line);
        let ahead = |stream: &Stream| line.wrapping_sub(stream.last) as i64;
        let continues =
            |stream: &Stream| near(stream) && stream.stride != 0 && ahead(stream) == stream.stride;
        let begins =
            |stream: &Stream| near(stream) && ahead(stream).unsigned_abs() <= longest.into();
        let all = || self.streams.iter().enumerate();
        let nearest = || {
            let near = all().filter(|(_, stream)| begins(stream));
            near.min_by_key(|(index, stream)| (ahead(stream).unsigned_abs(), *index))
        };
        let (index, mut stream) = if let Some((index, known)) = all().find(|(_, s)| continues(s)) {
            let seen = (known.seen + 1).min(training);
            let named = known.named.saturating_sub(1);
            let stream = Stream {
                seen,
                named,
                ..*known
            };
            (index, stream)
        } else if let Some((index, known)) = nearest() {
            let stream = Stream {
                stride: ahead(known),
                seen: 2,
                ..Stream::default()
            };
            (index, stream)
        } else {
            let oldest = all().min_by_key(|(index, stream)| (stream.used, *index));
            let (index, _) = oldest.expect("it follows at least one");
            let stream = Stream {
                seen: 1,
                ..Stream::default()
            };
            (index, stream)
        };
        (stream.used, stream.last) = (clock, line);
        if stream.seen == training {
            for _ in 0..self.config.degree {
                let steps = i64::from(stream.named + 1);
                let wanted = line.wrapping_add_signed(stream.stride * steps);
                if stream.named == distance || !self.together(line, wanted) {
                    break;
                }
                self.next.push(wanted << self.line_shift);
                stream.named += 1;
            }
        }
        self.streams[index] = stream;
    }

    fn learn(
        &mut self,
        request: Request,
        ways: usize,
        bits: u32,
        (initial, threshold): (u32, u32),
    ) {
        let sets = self.instructions.len() / ways;
        // Instructions are at even addresses.
        let number = request.pc >> 1;
        let set = (number ^ number >> sets.trailing_zeros()) as usize & (sets - 1);
        let places = set * ways..(set + 1) * ways;
        let clock = self.clock;
        let among = &mut self.instructions[places];
        let Some(known) = among
            .iter_mut()
            .find(|entry| entry.used > 0 && entry.pc == request.pc)
        else {
            let oldest = among.iter_mut().min_by_key(|entry| entry.used);
            *oldest.expect("a set has ways") = Instruction {
                used: clock,
                pc: request.pc,
                last: request.address,
                stride: 0,
                confidence: initial,
            };
            return;
        };
        let most = (1u32 << bits) - 1;
        let confident = |confidence: u32| 100 * confidence >= threshold * most;
        let stride = request.address.wrapping_sub(known.last) as i64;
        if stride != 0 && stride == known.stride {
            known.confidence = (known.confidence + 1).min(most);
        } else {
            known.confidence = known.confidence.saturating_sub(1);
            if !confident(known.confidence) {
                known.stride = stride;
            }
        }
        (known.used, known.last) = (clock, request.address);
        if !confident(known.confidence) || stride == 0 {
            return;
        }
        let line = 1i64 << self.line_shift;
        let step = if stride.abs() < line {
            line * stride.signum()
        } else {
            stride
        };
        let here = request.address >> self.line_shift;
        for steps in 1..=i64::from(self.config.degree) {
            let wanted = request.address.wrapping_add_signed(step * steps) >> self.line_shift;
            if !self.together(here, wanted) {
                break;
            }
            self.next.push(wanted << self.line_shift);
        }
    }
}

#[cfg(test)]
#[path = "prefetcher_tests.rs"]
mod tests;
