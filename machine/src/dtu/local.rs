//! The unit's port to the tile's caches: jobs cut into aligned blocks, a few blocks at a time.
//!
//! Why it exists: commands and the receive unit share one port, in the order of their requests. It moves no data and does
//! not know what a job is for.

use super::env::{DtuEvent, Env, LocalTiming};
use crate::types::{Owner, Tick};
use std::collections::VecDeque;

/// The requester of a local transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobId {
    /// A chunk of the command with this number.
    Chunk {
        /// Number of the command.
        command: u32,
        /// Index of the chunk.
        index: usize,
    },
    /// The message that the receive unit holds.
    Receive,
}

#[derive(Clone, Debug)]
struct Job {
    number: u64,
    id: JobId,
    next: u64,
    end: u64,
    write: bool,
    owner: Owner,
    in_flight: u32,
    cancelled: bool,
    asked: Tick,
    started: bool,
}

/// The port.
#[derive(Clone, Debug)]
pub struct LocalPort {
    block: u64,
    parallel: u32,
    jobs: VecDeque<Job>,
    /// Blocks under way: token and number of the job.
    in_flight: Vec<(u32, u64)>,
    next_token: u32,
    next_number: u64,
    /// The owner of the last block.
    last_owner: Option<Owner>,
    /// How long the last message waited for the port, since when, and for whom.
    waited: Option<(Tick, Tick, Owner)>,
}

impl LocalPort {
    /// A port that accesses `block` bytes at a time, `parallel` blocks at once (both at least 1).
    pub fn new(block: u32, parallel: u32) -> Self {
        Self {
            block: block.max(1).into(),
            parallel: parallel.max(1),
            jobs: VecDeque::new(),
            in_flight: Vec::new(),
            next_token: 0,
            next_number: 0,
            last_owner: None,
            waited: None,
        }
    }

    /// Adds a transfer of `bytes` (not 0) at `physical` at the moment `now`.
    pub fn start(
        &mut self,
        now: Tick,
        id: JobId,
        (physical, bytes): (u64, u64),
        write: bool,
        owner: Owner,
    ) {
        self.next_number += 1;
        self.jobs.push_back(Job {
            number: self.next_number,
            id,
            next: physical,
            end: physical + bytes,
            write,
            owner,
            in_flight: 0,
            cancelled: false,
            asked: now,
            started: false,
        });
    }

    /// Starts no further blocks for a command and forgets its jobs.
    pub fn cancel(&mut self, command: u32) {
        for job in &mut self.jobs {
            if matches!(job.id, JobId::Chunk { command: c, .. } if c == command) {
                job.next = job.end;
                job.cancelled = true;
            }
        }
        self.jobs.retain(|job| !job.cancelled || job.in_flight != 0);
    }

    /// Starts as many blocks as the port takes. A job that is done at once is given back, and then this is to be called again.
    pub fn pump<E: Env>(&mut self, env: &mut E) -> Option<JobId> {
        while self.in_flight.len() < self.parallel as usize {
            let job = self.jobs.iter_mut().find(|job| job.next < job.end)?;
            let end = (job.next / self.block + 1)
                .saturating_mul(self.block)
                .min(job.end);
            let (physical, bytes) = (job.next, (end - job.next) as u32);
            job.next = end;
            job.in_flight += 1;
            self.next_token = self.next_token.wrapping_add(1);
            let token = self.next_token;
            self.in_flight.push((token, job.number));
            let (write, owner) = (job.write, job.owner);
            if !std::mem::replace(&mut job.started, true) && job.id == JobId::Receive {
                let now = env.now();
                self.waited = self
                    .last_owner
                    .filter(|_| now > job.asked)
                    .map(|culprit| (job.asked, now, culprit));
            }
            self.last_owner = Some(owner);
            match env.local_access(physical, bytes, write, owner, token) {
                LocalTiming::Ready(at) if at <= env.now() => {
                    if let Some(done) = self.block_done(token) {
                        return Some(done);
                    }
                }
                LocalTiming::Ready(at) => env.schedule(at, DtuEvent::Local(token)),
                LocalTiming::Pending => {}
            }
        }
        None
    }

    /// The wait of the last message for the port: from, until, and whose blocks were before its own.
    pub fn take_wait(&mut self) -> Option<(Tick, Tick, Owner)> {
        self.waited.take()
    }

    /// A block is done: the job that this ends, if any. Tokens that are not under way are ignored.
    pub fn block_done(&mut self, token: u32) -> Option<JobId> {
        let position = self.in_flight.iter().position(|&(t, _)| t == token)?;
        let (_, number) = self.in_flight.remove(position);
        let position = self.jobs.iter().position(|job| job.number == number)?;
        let job = &mut self.jobs[position];
        job.in_flight -= 1;
        if job.in_flight != 0 || job.next < job.end {
            return None;
        }
        let job = self.jobs.remove(position)?;
        (!job.cancelled).then_some(job.id)
    }
}
