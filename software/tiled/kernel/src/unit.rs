//! The kernel's data transfer unit: its channels, and the effects of decisions through it.
//!
//! Why it exists: everything that the kernel does to other tiles goes through its unit, by transfers to their registers.
//! What it deliberately does not know: decisions.
//!
//! The unit takes the kernel's addresses as they are, because it runs as [`TILEMUX_ACTIVITY`].

use crate::arch::{self, CALL_BYTES, CALL_SLOTS, Calls, GROUP_BYTES, PRINT_BYTES};
use alloc::vec::Vec;
use bulkhead_abi::boot::{KERNEL_ENDPOINTS, TILE_GROUP, kernel_endpoints};
use bulkhead_abi::dtu::{
    BORROWED, BUCKET_LIMIT, BUCKET_RATE, BUCKET_STRIDE, BUCKETS, Command, CurrentActivity,
    DEVICE_ADDRESS, DtuError, ENDPOINT_WORDS, EXTERNAL_ARGUMENT, EXTERNAL_COMMAND, Endpoint,
    ExternalOpcode, MESSAGE_MAX, NO_ENDPOINT, ReceiveEndpoint, SendEndpoint, TILEMUX_ACTIVITY,
    TLB_READ, TLB_WRITE, UNDER_WAY, WRITING_BACK, external_command,
};
use bulkhead_abi::marker::{Asker, Begins};
use bulkhead_abi::memory_map::{DTU_SIZE, PMP_WINDOWS};
use bulkhead_abi::syscall::{KERNEL_LABEL, PRIORITIES, SYSCALL_SLOT, SYSCALL_WORDS, StopCause};
use bulkhead_abi::tilemux::{
    PRINT_SLOT, REQUEST_ENDPOINT, REQUEST_SLOT, Request, TileMuxError, decode_print, decode_stopped,
};
use bulkhead_abi::words::{Aligned, Name, Words};
use bulkhead_common::payer::{Boot, Fixed, Paid, PaidList};
use bulkhead_hal::{dtu, marker};
use bulkhead_kernel::activity::Path;
use bulkhead_kernel::console::Lines;
use bulkhead_kernel::hardware::{Hardware, Region, Right};
use bulkhead_kernel::pending::Ticket;
use bulkhead_kernel::report::Stopped;
use bulkhead_kernel::system::{PATIENCE, Reply, System, memory_endpoint};
use core::fmt::Display;
use zerocopy::{FromBytes, IntoBytes};

/// Receive endpoints for system calls, one for each priority.
pub const SYSCALLS: [u16; PRIORITIES] = [FIRST, FIRST + 1, FIRST + 2];
const FIRST: u16 = PMP_WINDOWS as u16;
/// Receive endpoint for notifications of TileMux.
pub const NOTIFICATIONS: u16 = FIRST + PRIORITIES as u16;
/// Receive endpoint for answers of servers.
const SERVERS: u16 = NOTIFICATIONS + 1;
/// Memory endpoint for the region that is being read or written.
const SCRATCH: u16 = NOTIFICATIONS + 2;
/// Send endpoint to the server or TileMux that is being asked.
const LINE: u16 = NOTIFICATIONS + 3;
/// Receive endpoint for calls whose slots were freed, and the right to reply to the one that is answered now.
const PARKED: u16 = NOTIFICATIONS + 4;
const PARKED_RIGHT: u16 = PARKED + 1;
/// Memory endpoint to the registers of one tile.
const REGISTERS: u16 = PARKED + 2;
/// Rights to reply to system calls.
const SYSCALL_REPLIES: u16 = REGISTERS + 1;
const SLOTS: u16 = TILE_GROUP as u16;
/// Receive endpoints for text, one for each group of tiles. Then come as many for answers of TileMux, and the rights to reply to text.
pub const PRINTS: u16 = SYSCALL_REPLIES + PRIORITIES as u16 * CALL_SLOTS;
const _: () = assert!(PRINTS as usize == KERNEL_ENDPOINTS);

/// A text that has arrived and is not completely written: the priority of its writer, the group of its tile and the text's offset,
/// and the number of its written bytes.
type Text = (u8, (u16, u32), usize);

/// The kernel's unit.
pub struct Unit {
    /// User tiles.
    tiles: usize,
    /// The group of each of them, by its number.
    group_of: Fixed<u16>,
    /// The tile whose registers [`REGISTERS`] leads to; `u16::MAX`: none.
    registers_of: u16,
    /// The groups of tiles whose text, and whose answer, come next.
    turns: (u16, u16),
    buffers: arch::Buffers,
    console: Lines,
    /// The path of the next writer, or of an activity that has stopped.
    path: Path,
    /// The text that is being printed, and the next ones: at most one of each tile.
    printed: Option<Text>,
    texts: PaidList<Boot, Text>,
    /// Answers to text for which a TileMux had no room, each with the time until which it is retried, the group of the tile and the
    /// text's offset: at most one per tile.
    late: PaidList<Boot, (u64, (u16, u32))>,
    /// Pieces of texts that were printed since the last line about a stopped activity.
    pub said: usize,
}

impl Unit {
    /// Configures the kernel's own endpoints.
    ///
    /// # Panics
    /// If the unit has too few for all tiles; `check` accepts no such platform.
    pub fn new(endpoints: u32, tiles: impl Iterator<Item = u16>) -> (Self, Calls) {
        dtu::exchange_activity(CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0));
        let tiles: Vec<u16> = tiles.collect();
        let end = tiles.iter().max().map_or(0, |last| usize::from(*last) + 1);
        let mut group_of = alloc::vec![0; end];
        for (index, tile) in tiles.iter().enumerate() {
            group_of[usize::from(*tile)] = (index / TILE_GROUP) as u16;
        }
        let needed = kernel_endpoints(tiles.len());
        assert!(
            needed <= endpoints as usize,
            "the kernel's unit has {endpoints} endpoints, {needed} are needed"
        );
        let groups = tiles.len().div_ceil(TILE_GROUP);
        let (buffers, calls) = arch::Buffers::take(groups);
        let unit = Self {
            tiles: tiles.len(),
            group_of: group_of.into(),
            registers_of: u16::MAX,
            turns: (0, 0),
            buffers,
            console: Lines::default(),
            path: Path::NONE,
            printed: None,
            texts: Paid::new(Vec::with_capacity(tiles.len())),
            late: Paid::new(Vec::with_capacity(tiles.len())),
            said: 0,
        };
        let receive = |buffer: u64, slot_size, slots: u16, replies| -> Endpoint {
            let slots = (slot_size, slots as u8);
            ReceiveEndpoint::new(TILEMUX_ACTIVITY, buffer, slots, replies).into()
        };
        let buffers = &unit.buffers;
        for (level, endpoint) in SYSCALLS.into_iter().enumerate() {
            let buffer = buffers.syscalls + level as u64 * CALL_BYTES;
            let replies = SYSCALL_REPLIES + level as u16 * CALL_SLOTS;
            let calls = receive(buffer, SYSCALL_SLOT, CALL_SLOTS, replies);
            dtu::set_endpoint(endpoint, &calls);
        }
        let notifications = receive(buffers.notifications, REQUEST_SLOT, SLOTS, NO_ENDPOINT);
        dtu::set_endpoint(NOTIFICATIONS, &notifications);
        let servers = receive(buffers.servers, REQUEST_SLOT, SLOTS, NO_ENDPOINT);
        dtu::set_endpoint(SERVERS, &servers);
        let groups = groups as u16;
        for group in 0..groups {
            let buffer = unit.text_buffer(group);
            let replies = PRINTS + 2 * groups + group * SLOTS;
            let prints = receive(buffer, PRINT_SLOT, SLOTS, replies);
            dtu::set_endpoint(PRINTS + group, &prints);
            let answers = receive(buffer + PRINT_BYTES, REQUEST_SLOT, SLOTS, NO_ENDPOINT);
            dtu::set_endpoint(PRINTS + groups + group, &answers);
        }
        (unit, calls)
    }

    /// The most texts that may be waiting: any text that comes later was not printed before a stop.
    pub fn texts(&self) -> usize {
        usize::from(self.groups() * SLOTS)
    }

    fn groups(&self) -> u16 {
        self.tiles.div_ceil(TILE_GROUP) as u16
    }

    /// Where the unit stores text of a group of tiles; their answers follow it.
    fn text_buffer(&self, group: u16) -> u64 {
        self.buffers.groups + u64::from(group) * GROUP_BYTES
    }

    /// The next group, from `turn` on, with a message at its endpoint among those that begin with `first`.
    fn next_group(&self, first: u16, turn: u16) -> Option<u16> {
        let mut all = (turn..self.groups()).chain(0..turn);
        all.find(|group| has_unread(first + group))
    }

    /// Points [`REGISTERS`] at a tile's registers.
    fn reach(&mut self, tile: u16) {
        if self.registers_of != tile {
            self.registers_of = tile;
            let registers = Region {
                tile,
                base: 0,
                size: DTU_SIZE,
            };
            open(REGISTERS, registers);
        }
    }

    /// Sends over [`LINE`]. No earlier message through it is in transit, because a send ends when its message has arrived or cannot
    /// arrive. A reply to an earlier message brings no credit, because the endpoint was configured since.
    fn say(
        &mut self,
        (to, shares): ((u16, u16), u32),
        size: u16,
        words: &[u64],
        answer: (u16, u64),
    ) -> bool {
        let line = SendEndpoint::of_gate(TILEMUX_ACTIVITY, to, (KERNEL_LABEL, shares), size);
        dtu::set_endpoint(LINE, &Endpoint::Send(line));
        let data = self.buffers.fill(words.as_bytes());
        dtu::send(LINE, data, answer.0, answer.1).is_ok()
    }

    /// The next message of an endpoint with this buffer, if there is one: its label, and the value read from its words.
    #[inline(always)]
    fn take<T>(
        &mut self,
        endpoint: u16,
        buffer: u64,
        read: impl FnOnce(&[u64]) -> T,
    ) -> Option<(u64, T)> {
        if !has_unread(endpoint) {
            return None;
        }
        let offset = fetch_unread(endpoint)?;
        let (label, payload) = self.buffers.message(buffer, offset);
        let said = read(aligned_words(payload));
        check(dtu::acknowledge(endpoint, offset));
        Some((label, said))
    }

    /// The next notification of a TileMux: its tile, and which activity stopped, if the message is well-formed.
    #[inline(always)]
    pub fn notification(&mut self) -> Option<(u64, Option<(u16, StopCause)>)> {
        self.take(NOTIFICATIONS, self.buffers.notifications, decode_stopped)
    }

    /// The next answer of a server: the number of the question, and the answer.
    #[inline(always)]
    pub fn server_answer(&mut self) -> Option<(u64, Words<SYSCALL_WORDS>)> {
        self.take(SERVERS, self.buffers.servers, |words| {
            *Words::new().push(words)
        })
    }

    /// The unread bits of each kind of message from tiles and servers: notifications, answers of servers, answers of TileMuxes (all
    /// groups combined).
    #[inline(always)]
    pub fn arrived(&self) -> [u32; 3] {
        let first = PRINTS + self.groups();
        let answers = (first..first + self.groups()).fold(0, |all, one| all | unread(one));
        [unread(NOTIFICATIONS), unread(SERVERS), answers]
    }

    /// The number of all unfetched messages for the kernel, and a bit for each call among them, by priority.
    #[inline(always)]
    pub fn look(&self) -> (u32, [u32; PRIORITIES]) {
        // All reads are issued before their results are used, so together they take as long as one.
        let all = dtu::current_activity();
        let calls = self.calls();
        (all.messages().into(), calls)
    }

    /// A bit for each unfetched call, by priority.
    #[inline(always)]
    pub fn calls(&self) -> [u32; PRIORITIES] {
        SYSCALLS.map(unread)
    }

    /// Fetches the next system call of a priority: its offset, for [`Calls::message`] and [`reply`](Self::reply).
    #[inline(always)]
    pub fn call(&mut self, level: usize) -> Option<u32> {
        fetch_unread(FIRST + level as u16)
    }

    /// Takes in the next text that has arrived, if there is one. Each group of tiles has its turn.
    fn take_text(&mut self, system: &System) -> Option<()> {
        let group = self.next_group(PRINTS, self.turns.0)?;
        self.turns.0 = group + 1;
        let offset = fetch_unread(PRINTS + group)?;
        let (tile, payload) = self.buffers.message(self.text_buffer(group), offset);
        let writer = decode_print(payload).and_then(|(id, _)| system.on(id, tile as u16));
        self.line_up((writer.map_or(0, |a| a.priority), (group, offset), 0));
        Some(())
    }

    /// Puts a text after all texts that are as important.
    fn line_up(&mut self, text: Text) {
        let place = self.texts.partition_point(|other| other.0 >= text.0);
        self.texts.insert(place, text);
    }

    /// Sleeps until a message comes or the clock reaches `until`. Returns false if that time has passed.
    pub fn sleep(&mut self, until: Option<u64>) -> bool {
        let timeout = until.map(|until| until.saturating_sub(dtu::time()));
        if timeout != Some(0) {
            dtu::sleep(NO_ENDPOINT, timeout.unwrap_or(0));
        }
        timeout != Some(0)
    }

    /// Answers a system call.
    #[inline(always)]
    pub fn reply(&mut self, ticket: Ticket, reply: &Aligned<Reply>) {
        let data = reply.0.as_slice().as_bytes();
        let endpoint = FIRST + ticket.level as u16;
        if dtu::reply(endpoint, ticket.offset, data).is_err() {
            drop_call(endpoint, ticket.offset);
        }
    }

    /// Whether there is text to write to the console or to answer, apart from newly arrived text.
    #[inline(always)]
    pub fn is_printing(&self) -> bool {
        // One branch: every call passes here.
        let texts = self.texts.len() | self.late.len() != 0;
        self.printed.is_some() | texts | self.console.has_line()
    }

    fn is_writing(&self) -> bool {
        self.printed.is_some() || !self.texts.is_empty() || self.console.has_line()
    }

    /// Whether there is something to write to the console.
    pub fn has_text(&self) -> bool {
        self.is_printing() || self.next_group(PRINTS, 0).is_some()
    }

    /// Whether there is, or may be, text of an activity at least this important.
    pub fn has_text_of(&self, level: usize) -> bool {
        let mut texts = self.printed.iter().chain(self.texts.first());
        texts.any(|text| usize::from(text.0) >= level) || self.next_group(PRINTS, 0).is_some()
    }

    /// Whether a line of the kernel's own can begin.
    pub fn can_say(&self) -> bool {
        !self.console.has_line()
    }

    /// Begins or continues to print the first text, once the path of its writer is put together.
    fn print(&mut self, system: &System) {
        let (_, (group, offset), written) = self.texts[0];
        let buffer = self.text_buffer(group);
        let (tile, payload) = self.buffers.message(buffer, offset);
        if let Some((activity, text)) = decode_print(payload) {
            // A tile can name only its own activities; one that ended long ago has no name any more.
            let tile = tile as u16;
            let gone = format_args!("activity {activity} of tile {tile}");
            let name: &dyn Display = match system.on(activity, tile) {
                None => &gone,
                Some(_) if !system.add_path(&mut self.path, activity) => return,
                Some(_) => &self.path,
            };
            self.console.text((tile, activity), name, text, written);
        }
        self.printed = Some(self.texts.remove(0));
    }

    /// Takes in a text that has arrived, or writes a piece of the pending output.
    pub fn write(&mut self, system: &System) {
        if !self.can_say() || self.take_text(system).is_none() {
            self.print_more(system);
        }
    }

    /// Writes a piece of the most important text; texts of equal importance take turns after each line. Once a text is written, its
    /// tile may send more. An answer that found no room is tried again when nothing else is to be written.
    fn print_more(&mut self, system: &System) {
        if !self.is_writing() && !self.late.is_empty() {
            let (until, text) = self.late.remove(0);
            return self.answer_text(text, until);
        }
        if self.can_say() && self.printed.is_none() && !self.texts.is_empty() {
            return self.print(system);
        }
        self.console.step(&mut arch::Console);
        let Some((level, (group, offset), _)) = self.printed else {
            return;
        };
        if !self.console.has_text() {
            self.printed = None;
            self.answer_text((group, offset), dtu::time().saturating_add(PATIENCE));
        } else if !self.texts.is_empty()
            && let Some(written) = self.console.put_aside()
        {
            self.printed = None;
            self.line_up((level, (group, offset), written));
        }
    }

    /// Lets the tile of a text send more, now or later. A TileMux that makes no room before a moment gets no answer, and prints nothing
    /// any more.
    fn answer_text(&mut self, (group, offset): (u16, u32), until: u64) {
        let data = self.buffers.fill(&[0]);
        match dtu::reply(PRINTS + group, offset, data) {
            Ok(()) => {}
            Err(DtuError::NoSpace) if dtu::time() < until => {
                self.late.push((until, (group, offset)))
            }
            Err(_) => check(dtu::acknowledge(PRINTS + group, offset)),
        }
    }

    /// Begins the line about the next activity that stopped, once its path is put together.
    pub fn report(&mut self, system: &mut System) {
        if let Some((activity, cause)) = system.take_report(&mut self.path)
            && let Some(tile) = system.tile_of(activity)
        {
            self.said = 0;
            self.console.line(Stopped {
                activity,
                path: &self.path,
                tile: tile.id,
                cause,
            });
        }
    }

    /// Prints a line of the kernel's own at once, after all output that was begun. It is never inside a line of others.
    pub fn line(&mut self, system: &System, line: impl Display) {
        self.flush(system);
        self.console.line(line);
        self.flush(system);
    }

    /// Writes everything that has been taken in.
    pub fn flush(&mut self, system: &System) {
        while self.is_writing() {
            self.print_more(system);
        }
    }

    /// Writes registers of a tile's unit.
    fn registers(&mut self, tile: u16, offset: u64, values: &[u64]) {
        self.reach(tile);
        let data = self.buffers.fill(values.as_bytes());
        check(dtu::write_memory(REGISTERS, offset, data));
    }

    /// Reads registers of a tile's unit.
    fn read_registers<const N: usize>(&mut self, tile: u16, offset: u64) -> [u64; N] {
        let mut words = [0; N];
        self.reach(tile);
        let page = self.buffers.page(size_of_val(&words));
        check(dtu::read_memory(REGISTERS, offset, page));
        words.as_mut_bytes().copy_from_slice(page);
        words
    }

    fn hart(&mut self, tile: u16, opcode: ExternalOpcode, argument: u64) {
        let words = [argument, external_command(opcode, 0, 0)];
        self.registers(tile, EXTERNAL_ARGUMENT, &words);
    }
}

impl Hardware for Unit {
    fn set_endpoint(&mut self, tile: u16, endpoint: u16, value: Endpoint) {
        self.registers(tile, dtu::endpoint_offset(endpoint), &value.pack());
    }

    fn endpoint(&mut self, tile: u16, endpoint: u16) -> Endpoint {
        let words = self.read_registers::<ENDPOINT_WORDS>(tile, dtu::endpoint_offset(endpoint));
        Endpoint::unpack(words)
    }

    fn invalidate(&mut self, tile: u16, first: u16, count: u16) {
        let command = external_command(ExternalOpcode::InvalidateEndpoint, first, count);
        self.registers(tile, EXTERNAL_COMMAND, &[command]);
    }

    fn is_under_way(&mut self, tile: u16, endpoint: u16) -> bool {
        let [under_way] = self.read_registers(tile, UNDER_WAY);
        under_way == u64::from(endpoint)
    }

    fn write_back(&mut self, tile: u16, physical: u64, lines: u16) {
        let command = external_command(ExternalOpcode::WriteBack, 0, lines);
        self.registers(tile, EXTERNAL_ARGUMENT, &[physical, command]);
    }

    fn is_writing_back(&mut self, tile: u16) -> bool {
        self.read_registers(tile, WRITING_BACK) != [0]
    }

    fn set_bucket(&mut self, tile: u16, bucket: u8, rate: u64, limit: u64) {
        let base = BUCKETS + u64::from(bucket) * BUCKET_STRIDE;
        // Rate, amount and limit are adjacent; the amount is cut to the limit at the next refill.
        const _: () = assert!(BUCKET_LIMIT == BUCKET_RATE + 16);
        self.registers(tile, base + BUCKET_RATE, &[rate, limit, limit]);
    }

    fn announce(&mut self, begins: Begins, name: &Name) {
        marker::activity_begins(begins.pack());
        for word in name.to_words() {
            marker::activity_name(word);
        }
    }

    fn set_borrowed(&mut self, tile: u16, bytes: u64) {
        self.registers(tile, BORROWED, &[bytes]);
    }

    fn give_device(&mut self, tile: u16, owner: (u16, u16), memory: (u64, u64, u64)) {
        let (address, physical, size) = memory;
        let owner = u64::from(owner.0) | u64::from(owner.1) << 16;
        self.registers(tile, DEVICE_ADDRESS, &[address, physical, size, owner]);
    }

    fn start_hart(&mut self, tile: u16, address: u64) {
        self.hart(tile, ExternalOpcode::StartHart, address);
    }

    fn stop_hart(&mut self, tile: u16) {
        self.hart(tile, ExternalOpcode::StopHart, 0);
    }

    fn ask(&mut self, to: ((u16, u16), u32), words: &[u64], label: u64) -> bool {
        self.say(to, MESSAGE_MAX as u16, words, (SERVERS, label))
    }

    fn park(&mut self, level: usize, offset: u32) -> Right {
        let slot = (offset / u32::from(SYSCALL_SLOT)) as u16;
        let right = dtu::endpoint_offset(SYSCALL_REPLIES + level as u16 * CALL_SLOTS + slot);
        let right = core::array::from_fn(|word| dtu::read(right + 8 * word as u64));
        drop_call(FIRST + level as u16, offset);
        right
    }

    fn answer_parked(&mut self, right: Right, reply: &Reply) {
        // As if the call were in a slot.
        let buffer = self.buffers.syscalls;
        let parked = Endpoint::Receive(ReceiveEndpoint {
            occupied: 1,
            ..ReceiveEndpoint::new(TILEMUX_ACTIVITY, buffer, (SYSCALL_SLOT, 1), PARKED_RIGHT)
        });
        dtu::set_endpoint(PARKED, &parked);
        for (word, value) in right.into_iter().enumerate() {
            dtu::write(dtu::endpoint_offset(PARKED_RIGHT) + 8 * word as u64, value);
        }
        let data = self.buffers.fill(reply.as_slice().as_bytes());
        // A caller that is gone needs no answer.
        let _ = dtu::reply(PARKED, 0, data);
    }

    fn time(&mut self) -> u64 {
        dtu::time()
    }

    fn request(&mut self, tile: u16, request: Request, number: u64, asker: Option<Asker>) -> bool {
        let Some(group) = self.group_of.get(usize::from(tile)) else {
            return false;
        };
        let answers = PRINTS + self.groups() + group;
        let words = request.encode();
        let to = ((tile, REQUEST_ENDPOINT), 0);
        if let Some(asker) = asker {
            marker::kernel_asks(asker.pack());
        }
        self.say(to, REQUEST_SLOT, words.as_slice(), (answers, number)) || {
            // The next message is in nobody's name.
            marker::kernel_asks(0);
            false
        }
    }

    fn answer(&mut self) -> Option<(u64, TileMuxError)> {
        let first = PRINTS + self.groups();
        let group = self.next_group(first, self.turns.1)?;
        self.turns.1 = group + 1;
        let buffer = self.text_buffer(group) + PRINT_BYTES;
        self.take(first + group, buffer, |words| {
            let code = words.first().copied();
            let answer = code.and_then(TileMuxError::from_code);
            answer.unwrap_or(TileMuxError::BadRequest)
        })
    }

    fn clear(&mut self, region: Region) {
        open(SCRATCH, region);
        let page = self.buffers.page(region.size as usize);
        page.fill(0);
        check(dtu::write_memory(SCRATCH, 0, page));
    }

    fn read(&mut self, region: Region, offset: u64, buffer: &mut [u8]) {
        open(SCRATCH, region);
        let page = self.buffers.page(buffer.len());
        check(dtu::read_memory(SCRATCH, offset, page));
        buffer.copy_from_slice(page);
    }

    fn write(&mut self, region: Region, offset: u64, data: &[u8]) {
        open(SCRATCH, region);
        let page = self.buffers.fill(data);
        check(dtu::write_memory(SCRATCH, offset, page));
    }
}

// The command register follows its argument.
const _: () = assert!(EXTERNAL_COMMAND == EXTERNAL_ARGUMENT + 8);

/// Points a memory endpoint of the kernel at a region.
fn open(endpoint: u16, region: Region) {
    let rights = (TLB_READ | TLB_WRITE) as u8;
    let memory = memory_endpoint(TILEMUX_ACTIVITY, region, rights);
    dtu::set_endpoint(endpoint, &memory);
}

/// A caller that is gone needs no answer.
#[cold]
#[inline(never)]
fn drop_call(endpoint: u16, offset: u32) {
    check(dtu::acknowledge(endpoint, offset));
}

/// Whether a message has arrived. Reading the register costs a tenth of a fetch, and usually nothing has arrived.
#[inline(always)]
fn has_unread(endpoint: u16) -> bool {
    unread(endpoint) != 0
}

/// One bit for each message of an endpoint that has not been fetched.
#[inline(always)]
fn unread(endpoint: u16) -> u32 {
    (dtu::read(dtu::endpoint_offset(endpoint) + 3 * size_of::<u64>() as u64) >> 32) as u32
}

#[inline(always)]
fn fetch_unread(endpoint: u16) -> Option<u32> {
    match dtu::fetch(endpoint) {
        Ok(offset) => offset,
        Err(error) => broken(endpoint, error),
    }
}

#[cold]
#[inline(never)]
fn broken(endpoint: u16, error: DtuError) -> ! {
    panic!("endpoint {endpoint} of the kernel: {error:?}")
}

/// The whole words of a message, at most as many as a request or an answer has. Slots are aligned, so the words are aligned, too.
#[inline(always)]
fn aligned_words(payload: &[u8]) -> &[u64] {
    let length = payload.len().min(SYSCALL_WORDS * 8) & !7;
    <[u64]>::ref_from_bytes(&payload[..length]).unwrap_or_default()
}

/// The kernel sets up its own channels; if that fails, it cannot continue.
fn check(result: Result<(), DtuError>) {
    if let Err(error) = result {
        panic!(
            "the kernel's unit: {error:?}, command {:#x}",
            Command(dtu::read(0)).0
        )
    }
}
