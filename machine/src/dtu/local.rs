//! The unit's port to the tile's caches. It cuts jobs into aligned blocks and moves a few blocks at a time.
//!
//! Why it exists: commands and the receive unit share one port, in the order of their requests. The bytes of a job move block by
//! block, each when its line is present. The port does not know what a job is for.

use super::env::{DtuEvent, Env, LocalTiming};
use crate::local_token::{LocalToken, Part};
use crate::types::{Block, Owner, Tick};
use std::collections::VecDeque;
use std::ops::Range;

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

/// The data of a job.
#[derive(Clone, Debug)]
pub enum Moves {
    /// Reads this many bytes from memory.
    Read(u32),
    /// Writes these bytes to memory.
    Write(Box<[u8]>),
}

/// A finished job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The requester.
    pub id: JobId,
    /// The data that was read or written.
    pub data: Box<[u8]>,
    /// The job is incomplete because a window was closed.
    pub refused: bool,
}

#[derive(Clone, Debug)]
struct Job {
    number: u64,
    id: JobId,
    /// Tile-physical address of the data.
    start: u64,
    data: Box<[u8]>,
    /// Bytes whose accesses have begun.
    next: usize,
    write: bool,
    owner: Owner,
    in_flight: u32,
    cancelled: bool,
    refused: bool,
    asked: Tick,
    started: bool,
}

impl Job {
    /// All its accesses have begun, or no more will begin.
    fn is_begun(&self) -> bool {
        self.next == self.data.len() || self.cancelled || self.refused
    }
}

/// An outstanding block.
#[derive(Clone, Debug)]
struct InFlight {
    token: LocalToken,
    /// Number of its job.
    job: u64,
    /// Its part of the job's data.
    part: Range<usize>,
}

/// The port.
#[derive(Clone, Debug)]
pub struct LocalPort {
    block: u64,
    parallel: u32,
    jobs: VecDeque<Job>,
    /// Outstanding blocks.
    in_flight: Vec<InFlight>,
    last_token: u32,
    next_number: u64,
    /// The owner of the last block.
    last_owner: Option<Owner>,
    /// The last message's wait for the port: from, until, and the owner of the blocks ahead of it.
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
            last_token: 0,
            next_number: 0,
            last_owner: None,
            waited: None,
        }
    }

    /// A token for an access that does not belong to a job.
    pub fn token(&mut self) -> LocalToken {
        Part::Unit.token(&mut self.last_token)
    }

    /// Adds a transfer of at least one byte at `physical` at the moment `now`.
    pub fn start(&mut self, now: Tick, id: JobId, physical: u64, moves: Moves, owner: Owner) {
        self.next_number += 1;
        let write = matches!(moves, Moves::Write(_));
        let data = match moves {
            Moves::Read(bytes) => vec![0; bytes as usize].into(),
            Moves::Write(data) => data,
        };
        self.jobs.push_back(Job {
            number: self.next_number,
            id,
            start: physical,
            data,
            next: 0,
            write,
            owner,
            in_flight: 0,
            cancelled: false,
            refused: false,
            asked: now,
            started: false,
        });
    }

    /// Starts no further blocks for a command and forgets its jobs.
    pub fn cancel(&mut self, command: u32) {
        for job in &mut self.jobs {
            job.cancelled |= matches!(job.id, JobId::Chunk { command: c, .. } if c == command);
        }
        self.jobs.retain(|job| !job.cancelled || job.in_flight != 0);
    }

    /// Drops the message that is being stored: no more of it is written, not even by blocks that wait for their lines.
    pub fn drop_message<E: Env>(&mut self, env: &mut E) {
        let position = self.jobs.iter().position(|job| job.id == JobId::Receive);
        let Some(job) = position.and_then(|position| self.jobs.remove(position)) else {
            return;
        };
        self.in_flight.retain(|block| {
            let of_job = block.job == job.number;
            if of_job {
                env.local_forget(block.token);
            }
            !of_job
        });
    }

    /// Starts as many blocks as the port accepts. Returns a job that completes immediately; then this must be called again.
    pub fn pump<E: Env>(&mut self, env: &mut E) -> Option<Finished> {
        while self.in_flight.len() < self.parallel as usize {
            let job = self.jobs.iter_mut().find(|job| !job.is_begun())?;
            let physical = job.start + job.next as u64;
            let room = (self.block - physical % self.block) as usize;
            let part = job.next..job.data.len().min(job.next + room);
            job.next = part.end;
            job.in_flight += 1;
            let token = Part::Unit.token(&mut self.last_token);
            self.in_flight.push(InFlight {
                token,
                job: job.number,
                part: part.clone(),
            });
            let owner = job.owner;
            if !std::mem::replace(&mut job.started, true) && job.id == JobId::Receive {
                let now = env.now();
                self.waited = self
                    .last_owner
                    .filter(|_| now > job.asked)
                    .map(|culprit| (job.asked, now, culprit));
            }
            self.last_owner = Some(owner);
            let block = match job.write {
                true => Block::Write(&job.data[part]),
                false => Block::Read(&mut job.data[part]),
            };
            let timing = env.local_access(physical, block, owner, token);
            job.refused |= timing.is_err();
            let done = match timing {
                Ok(LocalTiming::Ready(at)) if at > env.now() => {
                    env.schedule(at, DtuEvent::Local(token));
                    None
                }
                Ok(LocalTiming::Pending) => None,
                Ok(LocalTiming::Ready(_)) | Err(_) => self.block_done(token),
            };
            if done.is_some() {
                return done;
            }
        }
        None
    }

    /// The line of a pending block has arrived, with the bytes of a read, or without bytes if the tile may no longer access it.
    /// Returns the job that this completes, if any.
    pub fn arrived(&mut self, token: LocalToken, bytes: Option<&[u8]>) -> Option<Finished> {
        let block = self.in_flight.iter().find(|block| block.token == token)?;
        let job = self.jobs.iter_mut().find(|job| job.number == block.job)?;
        match bytes {
            Some(bytes) if !job.write => job.data[block.part.clone()].copy_from_slice(bytes),
            Some(_) => {}
            None => job.refused = true,
        }
        self.block_done(token)
    }

    /// The last message's wait for the port: from, until, and the owner of the blocks ahead of it.
    pub fn take_wait(&mut self) -> Option<(Tick, Tick, Owner)> {
        self.waited.take()
    }

    /// A block is done. Returns the job that this completes, if any. Unknown tokens are ignored.
    pub fn block_done(&mut self, token: LocalToken) -> Option<Finished> {
        let mut blocks = self.in_flight.iter();
        let position = blocks.position(|block| block.token == token)?;
        let number = self.in_flight.remove(position).job;
        let position = self.jobs.iter().position(|job| job.number == number)?;
        let job = &mut self.jobs[position];
        job.in_flight -= 1;
        if job.in_flight != 0 || !job.is_begun() {
            return None;
        }
        let job = self.jobs.remove(position)?;
        (!job.cancelled).then_some(Finished {
            id: job.id,
            data: job.data,
            refused: job.refused,
        })
    }
}
