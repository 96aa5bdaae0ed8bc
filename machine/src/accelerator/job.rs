//! What a client's job needs next.
//!
//! Why it exists: a job has two sides that run in parallel: pieces come in and results go out through the tile's data
//! transfer unit while another piece streams through the data path. This file says what the first side does next; the second
//! takes [`Job::pieces`] in their order. What it deliberately does not know: registers, and other clients.

use super::context::{Context, Gates, Inbox, Input, Output};
use super::files::{Call, Channel, End, OpenFile};
use super::stream::{Operation, Stream};
use crate::types::Tick;
use bulkhead_abi::accelerator::{Answer, BAD_REQUEST, CUT_OFF, PIECE, Request};
use bulkhead_abi::dtu::NO_ENDPOINT;
use std::collections::VecDeque;

/// Pieces in the unit at once: one streams through while the next one arrives.
const BUFFERS: usize = 2;
/// Bytes of results that the unit holds before the data path must wait.
const RESULTS: usize = 2 * PIECE as usize;

/// A piece that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Tile-physical address.
    pub at: u64,
    pub bytes: u64,
    /// The pipe message that brought it.
    pub message: Option<u32>,
}

/// A piece of a pipe in its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The rest of it: offset in the region, bytes.
    pub offset: u64,
    pub bytes: u64,
    /// The message that announced it, which is answered once everything has been read.
    pub message: u32,
}

/// A request in progress.
#[derive(Clone, Debug)]
pub struct Job {
    pub request: Request,
    /// Offset of its message in the buffer, if there was a request.
    pub message: Option<u32>,
    /// Maximum bytes still to be read. May exceed what is left if only the source knows its end.
    left: u64,
    /// Bytes that were read.
    pub read: u64,
    /// Input that has not streamed through yet, oldest first.
    pub pieces: VecDeque<Piece>,
    /// Pieces on their way in or in the data path.
    pub moving: usize,
    /// Page for the next piece.
    pub page: usize,
    /// The piece being read from the pipe's region.
    pub placed: Option<Placed>,
    /// Consumed messages of a pipe.
    pub used: Vec<u32>,
    /// Bytes of results in the region's piece that the reader of the pipe has not been told about.
    pub stored: u64,
    /// Results already written.
    pub written: u64,
    /// Results not written yet.
    pub out: Vec<u8>,
    /// All input has gone through the stream, and its remaining results have come out.
    pub drained: bool,
    /// A piece for the next unit that could not be sent yet.
    pub forward: Option<Request>,
    pub source: OpenFile,
    pub sink: OpenFile,
    /// The service knows the file's length.
    pub committed: bool,
    /// The reader of the pipe was told that this is the end.
    pub ended: bool,
    /// The writer of the input pipe will not announce the end.
    pub cut_off: bool,
    pub status: u64,
    /// Checksum reported by the following units.
    pub behind: u64,
}

/// A step for the data transfer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look for a request.
    FetchRequest(Inbox),
    /// Look for an answer of the kernel.
    FetchKernel(Inbox),
    /// Check for an answer of the kernel.
    FetchAnswer(Inbox),
    /// Check for any other answer.
    FetchPipe(Inbox),
    /// Check for data in a pipe.
    Use(Inbox, u32),
    /// Free the slot of such data.
    Read(u16, u64, u64, usize),
    /// Write results: endpoint, offset, bytes.
    Write(u16, u64, u64),
    /// Put results into a pipe: endpoint, bytes.
    Put(u16, u64),
    /// Put results into the region of a pipe: endpoint, offset, bytes.
    Store(u16, u64, u64),
    /// Tell the reader of a pipe where the results are: endpoint, offset, bytes.
    Place(u16, u64, u64),
    /// End a pipe.
    End(u16),
    /// Tell the next unit.
    Forward(u16, Request),
    /// Ask the kernel or a service.
    Call(Call),
    /// Find out whether a receiver still exists.
    Probe(u16),
    /// Answer a client.
    Answer(Inbox, u32, Answer),
    /// Tell the kernel that the client has ended, with this code.
    Exit(u64),
}

impl Job {
    /// For a request, or for work without one.
    pub fn new(request: Request, message: Option<u32>) -> Self {
        Self {
            request,
            message,
            left: request.bytes,
            read: 0,
            pieces: VecDeque::new(),
            moving: 0,
            page: 0,
            placed: None,
            used: Vec::new(),
            stored: 0,
            written: 0,
            out: Vec::new(),
            drained: false,
            forward: None,
            source: OpenFile::default(),
            sink: OpenFile::default(),
            committed: false,
            ended: false,
            cut_off: false,
            status: 0,
            behind: 0,
        }
    }

    /// The source has this many more bytes.
    pub fn limit(&mut self, bytes: u64) {
        self.left = self.left.min(bytes);
    }

    /// Bytes of its input, if its end is known.
    pub fn all(&self) -> Option<u64> {
        let all = self.read.checked_add(self.left)?;
        (all < u64::MAX / 2).then_some(all)
    }

    /// Counts an arrived part of the piece in the pipe's region, if that is what arrived.
    pub fn came_from_region(&mut self, bytes: u64) {
        if let Some(placed) = &mut self.placed {
            placed.offset += bytes;
            // The client on the other side of the pipe wrote how many there are.
            placed.bytes = placed.bytes.saturating_sub(bytes);
            if placed.bytes == 0 {
                self.used.push(placed.message);
                self.placed = None;
            }
        }
    }

    /// A piece came in.
    pub fn came(&mut self, piece: Piece) {
        self.moving -= usize::from(piece.message.is_none());
        self.read += piece.bytes;
        // A message of a pipe may have more than the job asked for.
        self.left = self.left.saturating_sub(piece.bytes);
        if self.status == 0 {
            self.pieces.push_back(piece);
        } else {
            self.used.extend(piece.message);
        }
    }

    /// There is a piece for the data path, and room for its results.
    pub fn can_stream(&self) -> bool {
        !self.pieces.is_empty() && self.out.len() < RESULTS
    }

    /// Bytes of results to be written at once.
    fn ready(&self, piece: u64) -> Option<u64> {
        let there = self.out.len() as u64;
        (there >= piece || self.drained && there > 0).then(|| there.min(piece))
    }

    /// Whole rows, so that the next unit can take them.
    fn rows(&self) -> u64 {
        match self.request.width {
            width @ 1..=PIECE => PIECE / width * width,
            _ => PIECE,
        }
    }
}

impl Context {
    /// A request has arrived, or there is work without one.
    pub fn take(
        &mut self,
        operation: Operation,
        row: u32,
        request: Option<Request>,
        message: Option<u32>,
    ) {
        let Some(gates) = self.gates else { return };
        let mut job = Job::new(request.unwrap_or_default(), message);
        // The pipe may have a writer again.
        self.forsaken |= std::mem::take(&mut self.cut_off);
        let begins = job.request.position == 0;
        if begins {
            self.base = job.request.output;
            self.stream = Stream::new(operation, job.request.width, row);
        }
        let endless = job.request
            == Request {
                bytes: u64::MAX,
                total: u64::MAX,
                ..job.request
            };
        let good = |stream: &Stream| {
            stream.position == job.request.position
                && match endless {
                    true => begins,
                    false => {
                        job.request.bytes.is_multiple_of(stream.granularity())
                            // The writer of a pipe decides where it ends.
                            && !matches!(gates.input, Input::Pipe(_))
                            && job
                                .request
                                .position
                                .checked_add(job.request.bytes)
                                .is_some_and(|end| end <= job.request.total)
                    }
                }
        };
        let good = request.is_some() && self.stream.as_ref().is_some_and(good);
        if let (true, Input::Memory { bytes, .. }) = (endless, gates.input) {
            job.limit(bytes.saturating_sub(job.request.input));
        }
        // Results of earlier pieces come first.
        if !begins && let Some(stream) = &self.stream {
            job.written = stream.results();
        }
        self.job = Some(job);
        if !good {
            self.fail(BAD_REQUEST);
            // The answer needs a stream of any kind.
            let idle = || Stream::new(Operation::Copy, 1, 1);
            self.stream = self.stream.take().or_else(idle);
        }
    }

    /// The job ends with this status; nothing more is read or written for it. What its pipe still brings is dropped.
    pub fn fail(&mut self, status: u64) {
        if let Some(job) = &mut self.job {
            if job.status == 0 {
                job.status = status;
            }
            job.out.clear();
            (job.forward, job.stored) = (None, 0);
            job.used
                .extend(job.placed.take().map(|placed| placed.message));
            let dropped = job.pieces.drain(..).filter_map(|piece| piece.message);
            job.used.extend(dropped);
            // The client may send another request, so the pipe must be read to its end; otherwise the client's end closes
            // the pipe.
            let pipe = |g: &Gates| matches!(g.input, Input::Pipe(_)) && g.requests.is_some();
            if !self.gates.as_ref().is_some_and(pipe) {
                job.left = 0;
            }
        }
    }

    /// A piece has gone through the stream.
    pub fn streamed(&mut self, piece: Piece, data: &[u8]) {
        let (Some(job), Some(stream)) = (&mut self.job, &mut self.stream) else {
            panic!("no job for {piece:?}: {:?}, {:?}", self.job, self.stream);
        };
        job.moving -= 1;
        job.used.extend(piece.message);
        if job.status == 0 {
            stream.push(data, &mut job.out);
        }
        self.drop_unwanted();
    }

    /// Without an output, results are dropped.
    fn drop_unwanted(&mut self) {
        if let (Some(job), Some(Output::Nothing)) = (&mut self.job, self.gates.map(|g| g.output)) {
            job.out.clear();
        }
    }

    /// The pipe reports its end.
    pub fn pipe_ended(&mut self, message: u32) {
        if let Some(job) = &mut self.job {
            job.left = 0;
            job.used.push(message);
        }
    }

    /// The pipe reports a piece in its region. The writer is not trusted to stay within the region.
    pub fn pipe_placed(&mut self, words: &[u64], message: u32) {
        let (&[offset, bytes, ..], Some(region)) = (words, self.gates.and_then(|g| g.regions.0))
        else {
            return self.pipe_broken(message);
        };
        let end = offset.checked_add(bytes);
        if bytes == 0 || end.is_none_or(|end| end > region.bytes) {
            return self.pipe_broken(message);
        }
        if let Some(job) = &mut self.job {
            match job.status {
                0 => {
                    job.placed = Some(Placed {
                        offset,
                        bytes,
                        message,
                    })
                }
                _ => job.used.push(message),
            }
        }
    }

    /// A message of the pipe makes no sense.
    pub fn pipe_broken(&mut self, message: u32) {
        self.fail(BAD_REQUEST);
        if let Some(job) = &mut self.job {
            job.used.push(message);
        }
    }

    /// The next step.
    pub fn next(&mut self, now: Tick) -> Option<Step> {
        let gates = self.gates?;
        if let Some(code) = self.over {
            return Some(Step::Exit(code));
        }
        if std::mem::take(&mut self.woken) {
            self.forsaken = matches!(gates.input, Input::Pipe(_));
            if let Some(endpoint) = self.depends(&gates) {
                return Some(Step::Probe(endpoint));
            }
        }
        if let (Some((call, _)), (_, inbox)) = (self.calls.outstanding, gates.kernel)
            && call.channel() == Channel::Kernel
            && inbox.fresh
        {
            return Some(Step::FetchKernel(inbox));
        }
        if let Some(inbox) = gates.answers.filter(|inbox| inbox.fresh) {
            return Some(Step::FetchAnswer(inbox));
        }
        if self.job.is_none() {
            return self.idle(&gates);
        }
        self.results(&gates, now)
            .or_else(|| self.input(&gates, now))
            .or_else(|| self.ahead(&gates, now))
            .or_else(|| self.finish(&gates, now))
    }

    /// The endpoint whose receiver it waits for.
    fn depends(&self, gates: &Gates) -> Option<u16> {
        let service = gates.files.map(|files| files.0);
        let awaited = self.awaited().filter(|c| c.channel() == Channel::Service);
        let behind = match gates.output {
            Output::Pipe { endpoint, .. } => Some(endpoint),
            _ => gates.next,
        };
        awaited
            .and(service)
            .or(behind.filter(|_| self.under_way > 0))
    }

    /// The probed client is gone.
    pub fn gone(&mut self, endpoint: u16) {
        if self
            .gates
            .and_then(|g| g.files)
            .is_some_and(|files| files.0 == endpoint)
        {
            return self.service_gone();
        }
        (self.under_way, self.blocked) = (0, false);
        self.fail(bulkhead_abi::dtu::DtuError::ReceiverGone as u64);
        if let Some(job) = &mut self.job {
            job.ended = true;
        }
    }

    /// Without a job.
    fn idle(&mut self, gates: &Gates) -> Option<Step> {
        match gates.requests {
            Some(inbox) => inbox.fresh.then_some(Step::FetchRequest(inbox)),
            None => None,
        }
    }

    /// A call, unless one is outstanding or it is too early.
    fn call(&self, now: Tick, call: Call) -> Option<Step> {
        let free = self.calls.outstanding.is_none() && now >= self.calls.not_before;
        free.then_some(Step::Call(call))
    }

    /// Something with results.
    fn results(&self, gates: &Gates, now: Tick) -> Option<Step> {
        let job = self.job.as_ref()?;
        if let (Some(piece), Some(next)) = (job.forward, gates.next) {
            return (!self.blocked).then_some(Step::Forward(next, piece));
        }
        if job.status != 0 {
            return None;
        }
        let at = self.base.saturating_add(job.written);
        match gates.output {
            Output::Nothing => None,
            Output::Memory(endpoint) => {
                let bytes = job.ready(job.rows())?;
                Some(Step::Write(
                    endpoint,
                    self.base.wrapping_add(job.written),
                    bytes,
                ))
            }
            Output::File => {
                let bytes = job.ready(PIECE)?;
                match job.sink.at(at) {
                    Some((endpoint, offset, left)) => {
                        Some(Step::Write(endpoint, offset, bytes.min(left)))
                    }
                    None => self.call(now, self.reach(End::Sink, &job.sink)),
                }
            }
            Output::Pipe { endpoint, .. } if let Some(store) = gates.regions.1 => {
                if self.blocked {
                    return None;
                }
                let offset = self.store * store.piece;
                let (full, left) = (job.stored == store.piece, store.piece - job.stored);
                if full || job.drained && job.out.is_empty() && job.stored > 0 {
                    return Some(Step::Place(endpoint, offset, job.stored));
                }
                let bytes = job.ready(PIECE.min(left))?;
                Some(Step::Store(store.endpoint, offset + job.stored, bytes))
            }
            Output::Pipe { endpoint, piece } => {
                let bytes = job.ready(piece.min(PIECE))?;
                (!self.blocked).then_some(Step::Put(endpoint, bytes))
            }
        }
    }

    /// Something with input.
    fn input(&mut self, gates: &Gates, now: Tick) -> Option<Step> {
        let job = self.job.as_mut()?;
        if let (Some(message), Input::Pipe(inbox)) = (job.used.first(), gates.input) {
            return Some(Step::Use(inbox, *message));
        }
        if job.left == 0 || job.pieces.len() + job.moving >= BUFFERS {
            return None;
        }
        let at = job.request.input.wrapping_add(job.read);
        let page = job.page;
        if let (Some(placed), Some(region)) = (job.placed, gates.regions.0) {
            let bytes = placed.bytes.min(PIECE);
            return Some(Step::Read(region.endpoint, placed.offset, bytes, page));
        }
        match gates.input {
            Input::Pipe(inbox) if inbox.fresh => Some(Step::FetchPipe(inbox)),
            Input::Pipe(_) if self.cut_off => {
                job.left = 0;
                job.cut_off = true;
                None
            }
            Input::Pipe(_) => {
                let free =
                    self.calls.outstanding.is_none() && gates.kernel.1.endpoint != NO_ENDPOINT;
                (free && std::mem::take(&mut self.forsaken)).then_some(Step::Call(Call::Senders))
            }
            Input::Memory { endpoint, .. } => {
                let row = self.stream.as_ref().map_or(1, Stream::granularity);
                let bytes = job.left.min((PIECE / row).max(1) * row);
                Some(Step::Read(endpoint, at, bytes, page))
            }
            Input::File => match job.source.at(at) {
                Some((endpoint, offset, left)) => {
                    let bytes = job.left.min(left).min(PIECE);
                    Some(Step::Read(endpoint, offset, bytes, page))
                }
                None => {
                    let job = self.job.as_ref()?;
                    self.call(now, self.reach(End::Source, &job.source))
                }
            },
        }
    }

    /// The next pieces of files, while there is nothing else to do.
    fn ahead(&self, gates: &Gates, now: Tick) -> Option<Step> {
        let job = self.job.as_ref().filter(|job| job.status == 0)?;
        let source = match gates.input {
            Input::File => self.reach_ahead(End::Source, &job.source),
            _ => None,
        };
        let sink = || match gates.output {
            Output::File => self.reach_ahead(End::Sink, &job.sink),
            _ => None,
        };
        self.call(now, source.or_else(sink)?)
    }

    /// The end of a job.
    fn finish(&mut self, gates: &Gates, now: Tick) -> Option<Step> {
        let job = self.job.as_mut()?;
        if job.left > 0 || job.moving > 0 || !job.pieces.is_empty() || job.placed.is_some() {
            return None;
        }
        if !job.drained {
            job.drained = true;
            // For a truncated stream, the results of what arrived are passed on, and nothing is made up.
            let whole = job.status == 0 && !job.cut_off;
            if let Some(stream) = self.stream.as_mut().filter(|_| whole) {
                if job.request.is_last() {
                    stream.finish(&mut job.out);
                }
                if !stream.is_whole() {
                    self.fail(BAD_REQUEST);
                }
            }
            self.drop_unwanted();
            return self.next(now);
        }
        let unwritten = !job.out.is_empty() || job.stored > 0;
        if unwritten && job.status == 0 || job.forward.is_some() {
            return None;
        }
        if job.cut_off && job.status == 0 {
            job.status = CUT_OFF;
            // Without requests the unit ends, too; the reader of its results learns that instead of an end.
            job.ended |= gates.requests.is_none();
        }
        let job = self.job.as_ref()?;
        let writes = matches!(gates.output, Output::File);
        // A file is created even if nothing is written to it.
        let unmade = job.status == 0 && writes && !job.committed;
        let ends = [(End::Source, &job.source), (End::Sink, &job.sink)];
        let call = match job.sink.is_open() {
            false if unmade => Some(self.reach(End::Sink, &job.sink)),
            true if unmade => Some(Call::Commit),
            _ => ends.iter().find_map(|(end, file)| self.leave(*end, file)),
        };
        if let Some(call) = call {
            return self.call(now, call);
        }
        match gates.output {
            Output::Pipe { endpoint, .. } if !job.ended => {
                return (!self.blocked).then_some(Step::End(endpoint));
            }
            _ if gates.next.is_some() && self.under_way > 0 => return None,
            _ => {}
        }
        let answer = Answer {
            status: job.status,
            bytes: job.read,
            checksum: self
                .stream
                .as_ref()
                .and_then(Stream::checksum)
                .unwrap_or(job.behind),
        };
        match (gates.requests, job.message) {
            (Some(inbox), Some(message)) => Some(Step::Answer(inbox, message, answer)),
            _ => {
                self.over = Some(answer.status);
                Some(Step::Exit(answer.status))
            }
        }
    }
}
