//! A streaming unit's state for each client: an activity, its gates, and its current job.
//!
//! What it deliberately does not know: when anything is done.

use super::files::{Call, Calls};
use super::job::Job;
use super::stream::Stream;
use super::{Later, Ports, Side};
use bulkhead_abi::accelerator::{FILES, INPUT, NEXT, OUTPUT, REGION, REQUESTS, WIDTH};
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::environment::{
    ArgumentEntry, ENVIRONMENT_BASE, ENVIRONMENT_MAGIC, ENVIRONMENT_SIZE, Environment, GateEntry,
    GateKind,
};
use bulkhead_abi::file::PATH;
use bulkhead_abi::message::HEADER_SIZE;
use bulkhead_abi::words;
use zerocopy::FromBytes;

/// Pages of a client's heap that the unit uses: two for input, one for output, one for messages.
pub const PAGES: usize = 4;

/// One or more pages mapped by the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    pub address: u64,
    pub physical: u64,
    pub pages: u64,
}

/// A page of the client's memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page {
    pub address: u64,
    /// Tile-physical.
    pub physical: u64,
}

/// A receive endpoint and its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inbox {
    pub endpoint: u16,
    /// Tile-physical.
    pub buffer: u64,
    /// There may be messages that have not been examined.
    pub fresh: bool,
}

/// Where a stream comes from. The path of a file is kept separately.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    Memory { endpoint: u16, bytes: u64 },
    Pipe(Inbox),
    File,
}

/// Where a stream goes. The path of a file is kept separately.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    Nothing,
    Memory(u16),
    /// Bytes that a message carries.
    Pipe {
        endpoint: u16,
        piece: u64,
    },
    File,
}

/// Memory that holds the pieces of a pipe, as used by `lib::pipe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub endpoint: u16,
    pub bytes: u64,
}

/// Memory that holds results until the reader of a pipe has taken them: a region in pieces of whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    pub endpoint: u16,
    /// Bytes of a piece.
    pub piece: u64,
    pub pieces: u64,
}

/// Paths of the input file and the output file; zeros if there is none.
pub type Paths = [[u8; PATH]; 2];

/// The gates of a context.
#[derive(Clone, Copy, Debug)]
pub struct Gates {
    pub requests: Option<Inbox>,
    /// For answers to everything that it sends.
    pub answers: Option<Inbox>,
    /// System calls: the gate they go to, and where their answers arrive.
    pub kernel: (u16, Inbox),
    /// The file service: the gate, and the selector of the service.
    pub files: Option<(u16, u16)>,
    pub input: Input,
    pub output: Output,
    /// Memory for the pieces of the input pipe, and for those of the output pipe.
    pub regions: (Option<Region>, Option<Store>),
    pub next: Option<u16>,
    /// Bytes of a row, for work without a request.
    pub width: u64,
    pub pages: [Page; PAGES],
}

impl Gates {
    /// The page for its own messages.
    pub const fn messages(&self) -> Page {
        self.pages[3]
    }

    /// The page for results on their way out.
    pub const fn out(&self) -> Page {
        self.pages[2]
    }

    /// The inboxes.
    pub fn inboxes(&mut self) -> impl Iterator<Item = &mut Inbox> {
        let pipe = match &mut self.input {
            Input::Pipe(inbox) => Some(inbox),
            _ => None,
        };
        let own = [self.requests.as_mut(), self.answers.as_mut(), pipe];
        own.into_iter().flatten().chain([&mut self.kernel.1])
    }
}

/// A client.
#[derive(Clone, Debug)]
pub struct Context {
    pub activity: u16,
    pub bucket: u8,
    pub mappings: Vec<Mapping>,
    pub gates: Option<Gates>,
    pub paths: Paths,
    pub stream: Option<Stream>,
    /// Where the results of the stream begin in `output`.
    pub base: u64,
    pub job: Option<Job>,
    /// Unread messages at the last check.
    seen: u16,
    pub calls: Calls,
    /// Unanswered messages to the next unit or into a pipe.
    pub under_way: u32,
    /// The piece of the output pipe's region that is filled next.
    pub store: u64,
    /// No credits are left; only an answer brings one back.
    pub blocked: bool,
    /// Something that it may be waiting for will never come.
    pub woken: bool,
    /// The data of its input pipe may never come.
    pub forsaken: bool,
    /// The data will not come: the input pipe no longer has a writer.
    pub cut_off: bool,
    /// The client must end with this code.
    pub over: Option<u64>,
}

impl Context {
    pub fn new(activity: u16) -> Self {
        Self {
            activity,
            bucket: 0,
            mappings: Vec::new(),
            gates: None,
            paths: [[0; PATH]; 2],
            stream: None,
            base: 0,
            job: None,
            seen: 0,
            calls: Calls::default(),
            under_way: 0,
            store: 0,
            blocked: false,
            woken: false,
            forsaken: false,
            cut_off: false,
            over: None,
        }
    }

    /// The client has this many unread messages.
    pub fn count(&mut self, messages: u16) {
        if messages > self.seen {
            self.note();
        }
        self.seen = messages;
    }

    /// There may be messages.
    pub fn note(&mut self) {
        if let Some(gates) = &mut self.gates {
            gates.inboxes().for_each(|inbox| inbox.fresh = true);
        }
    }

    /// A message was fetched.
    pub fn took(&mut self) {
        // Messages of other clients may have been fetched since the count was read.
        self.seen = self.seen.saturating_sub(1);
    }

    /// The endpoint of this inbox is empty.
    pub fn nothing_at(&mut self, endpoint: u16) {
        if let Some(gates) = &mut self.gates {
            let mut inboxes = gates.inboxes();
            if let Some(inbox) = inboxes.find(|inbox| inbox.endpoint == endpoint) {
                inbox.fresh = false;
            }
        }
    }

    /// The call that the client waits for.
    pub fn awaited(&self) -> Option<Call> {
        self.calls.outstanding.map(|(call, _)| call)
    }

    /// Translates a virtual address to a tile-physical one.
    pub fn physical(&self, address: u64) -> Option<u64> {
        self.mappings.iter().rev().find_map(|m| {
            let offset = address.checked_sub(m.address)?;
            (offset < m.pages.checked_mul(4096)?).then(|| m.physical.wrapping_add(offset))
        })
    }

    /// Finds the gates in the environment page. Returns nothing if a required gate is missing.
    ///
    /// # Errors
    /// The page has not arrived yet.
    pub fn gates_of(&self, ports: &mut dyn Ports) -> Result<Option<(Gates, Paths)>, Later> {
        let mut page = vec![0; ENVIRONMENT_SIZE];
        let Some(at) = self.physical(ENVIRONMENT_BASE) else {
            return Ok(None);
        };
        let there = ports.load(Side::Command, at, &mut page)?;
        Ok(there.then(|| self.gates_in(&page)).flatten())
    }

    fn gates_in(&self, page: &[u8]) -> Option<(Gates, Paths)> {
        let (environment, rest) = Environment::read_from_prefix(page).ok()?;
        (environment.magic == ENVIRONMENT_MAGIC
            && environment.heap_size >= 4096 * (PAGES as u64 + 1))
            .then_some(())?;
        let (entries, rest) =
            <[GateEntry]>::ref_from_prefix_with_elems(rest, environment.gates.into()).ok()?;
        let (arguments, _) =
            <[ArgumentEntry]>::ref_from_prefix_with_elems(rest, environment.arguments.into())
                .ok()?;
        let find = |kind: GateKind, name: &str| {
            let is = |e: &&GateEntry| e.kind == kind as u32 && words::text(&e.name) == name;
            entries.iter().find(is)
        };
        let argument = |name: &str| {
            let is = |a: &&ArgumentEntry| words::text(&a.name) == name;
            arguments.iter().find(is).map(|a| words::text(&a.value))
        };
        let path = |name: &str| {
            let text = argument(name)?.as_bytes();
            let mut path = [0; PATH];
            path.get_mut(..text.len())?.copy_from_slice(text);
            Some(path)
        };
        let inbox = |endpoint: u16, buffer: u64| {
            (endpoint != NO_ENDPOINT).then_some(())?;
            Some(Inbox {
                endpoint,
                buffer: self.physical(buffer)?,
                fresh: true,
            })
        };
        let receive = |name: &str| {
            find(GateKind::Receive, name).and_then(|gate| inbox(gate.endpoint, gate.buffer))
        };
        let paths = [path(INPUT), path(OUTPUT)];
        let answers = inbox(environment.call_reply, environment.call_buffer);
        // A gate whose messages cannot be answered is useless.
        let send = |name: &str| answers.and(find(GateKind::Send, name));
        let input = match (paths[0], find(GateKind::Memory, INPUT), receive(INPUT)) {
            (Some(_), _, _) => Input::File,
            (_, Some(gate), _) => Input::Memory {
                endpoint: gate.endpoint,
                bytes: gate.size,
            },
            (_, _, inbox) => Input::Pipe(inbox?),
        };
        let output = match (paths[1], find(GateKind::Memory, OUTPUT), send(OUTPUT)) {
            (Some(_), _, _) => Output::File,
            (_, Some(gate), _) => Output::Memory(gate.endpoint),
            (_, _, Some(gate)) => Output::Pipe {
                endpoint: gate.endpoint,
                piece: u64::from(gate.slot_size).checked_sub(HEADER_SIZE as u64)?,
            },
            _ => Output::Nothing,
        };
        let region = |name: &str| {
            let gate = find(GateKind::Memory, &format!("{name}{REGION}"))?;
            let (endpoint, bytes) = (gate.endpoint, gate.size);
            Some(Region { endpoint, bytes })
        };
        let store = match (output, region(OUTPUT), send(OUTPUT)) {
            (Output::Pipe { .. }, Some(region), Some(gate)) => {
                // One piece more than the maximum number of outstanding messages, each of whole pages.
                let pieces = gate.size.checked_add(1)?;
                let piece = region.bytes / 4096 / pieces * 4096;
                (piece > 0).then_some(())?;
                Some(Store {
                    endpoint: region.endpoint,
                    piece,
                    pieces,
                })
            }
            _ => None,
        };
        let files = send(FILES).map(|gate| (gate.endpoint, gate.rights as u16));
        let needs_files = paths != [None; 2];
        (!needs_files || files.is_some()).then_some(())?;
        // The first whole page: the heap need not begin at a page boundary.
        let first = environment.heap_start.next_multiple_of(4096);
        let mut pages = [Page::default(); PAGES];
        for (page, address) in pages.iter_mut().zip((first..).step_by(4096)) {
            *page = Page {
                address,
                physical: self.physical(address)?,
            };
        }
        // Without a kernel there are no system calls; the place does not exist then, and nothing needs it.
        let kernel = inbox(environment.syscall_reply, environment.syscall_buffer);
        let kernel = kernel.or((!needs_files).then_some(Inbox {
            endpoint: NO_ENDPOINT,
            buffer: 0,
            fresh: false,
        }))?;
        let gates = Gates {
            requests: receive(REQUESTS),
            answers,
            kernel: (environment.syscall_send, kernel),
            files,
            input,
            output,
            regions: (region(INPUT), store),
            next: send(NEXT).map(|gate| gate.endpoint),
            width: argument(WIDTH).and_then(|w| w.parse().ok()).unwrap_or(1),
            pages,
        };
        Some((gates, paths.map(|path| path.unwrap_or([0; PATH]))))
    }
}
