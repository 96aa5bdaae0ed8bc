//! What a streaming unit keeps for each client: an activity, its gates, and the job that it works on.
//!
//! What it deliberately does not know: when anything is done.

use super::Ports;
use super::stream::Stream;
use bulkhead_abi::accelerator::{INPUT, NEXT, OUTPUT, Request};
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::environment::{
    ENVIRONMENT_BASE, ENVIRONMENT_MAGIC, ENVIRONMENT_SIZE, Environment, GateEntry, GateKind,
};
use bulkhead_abi::words;
use zerocopy::FromBytes;

/// A page or more that the kernel mapped.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    pub address: u64,
    pub physical: u64,
    pub pages: u64,
}

/// A receive endpoint and its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inbox {
    pub endpoint: u16,
    /// Tile-physical.
    pub buffer: u64,
}

/// The gates of a context.
#[derive(Clone, Copy, Debug)]
pub struct Gates {
    pub requests: Inbox,
    pub replies: Option<Inbox>,
    pub input: u16,
    pub output: Option<u16>,
    pub next: Option<u16>,
    /// The page through which its data passes: virtual and tile-physical address.
    pub data: (u64, u64),
    /// The page for its own messages.
    pub messages: (u64, u64),
}

/// A request that is being worked on.
#[derive(Clone, Debug)]
pub struct Job {
    pub request: Request,
    /// Offset of its message in the buffer.
    pub message: u32,
    pub read: u64,
    /// Results that were written already.
    pub written: u64,
    /// Results that are not written yet.
    pub out: Vec<u8>,
    /// All input went through the stream, and what was inside came out.
    pub drained: bool,
    /// Pieces for the next unit that could not be sent yet.
    pub forward: Option<Request>,
    /// Pieces that the next unit has not answered.
    pub unanswered: u32,
    pub status: u64,
    /// Checksum that the units behind reported.
    pub behind: u64,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Context {
    pub activity: u16,
    pub bucket: u8,
    pub mappings: Vec<Mapping>,
    pub gates: Option<Gates>,
    pub stream: Option<Stream>,
    /// Where the results of the stream begin in `output`.
    pub base: u64,
    pub job: Option<Job>,
    /// There may be messages that were not looked at.
    pub news: bool,
    /// Unread messages that it cannot do anything with now.
    pub quiet: u16,
}

impl Context {
    pub fn new(activity: u16) -> Self {
        Self {
            activity,
            bucket: 0,
            mappings: Vec::new(),
            gates: None,
            stream: None,
            base: 0,
            job: None,
            news: false,
            quiet: 0,
        }
    }

    /// Tile-physical address of a virtual one.
    fn physical(&self, address: u64) -> Option<u64> {
        self.mappings.iter().rev().find_map(|m| {
            let offset = address.checked_sub(m.address)?;
            (offset < m.pages.checked_mul(4096)?).then(|| m.physical.wrapping_add(offset))
        })
    }

    /// Finds the gates in the environment page; nothing if some that it cannot do without are missing.
    pub fn gates_of(&self, ports: &mut dyn Ports) -> Option<Gates> {
        let mut page = vec![0; ENVIRONMENT_SIZE];
        let at = self.physical(ENVIRONMENT_BASE)?;
        ports.load(at, &mut page).then_some(())?;
        let (environment, rest) = Environment::read_from_prefix(&page).ok()?;
        (environment.magic == ENVIRONMENT_MAGIC && environment.heap_size >= 2 * 4096)
            .then_some(())?;
        let (entries, _) =
            <[GateEntry]>::ref_from_prefix_with_elems(rest, environment.gates.into()).ok()?;
        let find = |kind: GateKind, name: Option<&str>| {
            entries.iter().find(|entry| {
                entry.kind == kind as u32
                    && name.is_none_or(|name| words::text(&entry.name) == name)
            })
        };
        let requests = find(GateKind::Receive, None)?;
        let page_at = |number: u64| {
            let address = environment.heap_start + 4096 * number;
            Some((address, self.physical(address)?))
        };
        let replies = (environment.call_reply != NO_ENDPOINT)
            .then_some(())
            .and_then(|()| {
                Some(Inbox {
                    endpoint: environment.call_reply,
                    buffer: self.physical(environment.call_buffer)?,
                })
            });
        Some(Gates {
            requests: Inbox {
                endpoint: requests.endpoint,
                buffer: self.physical(requests.buffer)?,
            },
            replies,
            input: find(GateKind::Memory, Some(INPUT))?.endpoint,
            output: find(GateKind::Memory, Some(OUTPUT)).map(|gate| gate.endpoint),
            next: replies.and(find(GateKind::Send, Some(NEXT)).map(|gate| gate.endpoint)),
            data: page_at(0)?,
            messages: page_at(1)?,
        })
    }
}
