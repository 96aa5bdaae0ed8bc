//! The kernel's data transfer unit: its channels, and the effects of decisions through it.
//!
//! Why it exists: everything that the kernel does to other tiles goes through its unit, by transfers to their registers.
//! What it deliberately does not know: decisions.
//!
//! The unit takes the kernel's addresses as they are, because it runs as [`TILEMUX_ACTIVITY`].

use crate::arch::{self, CALL_BYTES, CALL_SLOTS, Calls, PAGE};
use bulkhead_abi::dtu::{
    BORROWED, BUCKET_LIMIT, BUCKET_RATE, BUCKET_STRIDE, BUCKETS, Command, CurrentActivity,
    DEVICE_ADDRESS, DtuError, ENDPOINT_WORDS, EXTERNAL_ARGUMENT, EXTERNAL_COMMAND, Endpoint,
    ExternalOpcode, MESSAGE_MAX, MemoryEndpoint, NO_ENDPOINT, ReceiveEndpoint, SendEndpoint,
    TILEMUX_ACTIVITY, TLB_READ, TLB_WRITE, UNDER_WAY, external_command,
};
use bulkhead_abi::marker::Begins;
use bulkhead_abi::memory_map::{DTU_SIZE, PMP_WINDOWS};
use bulkhead_abi::syscall::{KERNEL_LABEL, PRIORITIES, SYSCALL_SLOT, SYSCALL_WORDS, StopCause};
use bulkhead_abi::tilemux::{
    PRINT_SLOT, REQUEST_ENDPOINT, REQUEST_SLOT, Request, TileMuxError, decode_print, decode_stopped,
};
use bulkhead_abi::words::{Aligned, Name, Words};
use bulkhead_common::payer::Fixed;
use bulkhead_hal::{dtu, marker};
use bulkhead_kernel::console::Lines;
use bulkhead_kernel::hardware::{Hardware, Region, Right};
use bulkhead_kernel::system::{Reply, System, Ticket};
use zerocopy::{FromBytes, IntoBytes};

/// Receive endpoints for system calls, one for each priority.
pub const SYSCALLS: [u16; PRIORITIES] = [FIRST, FIRST + 1, FIRST + 2];
const FIRST: u16 = PMP_WINDOWS as u16;
/// Receive endpoint for notifications of TileMux.
pub const NOTIFICATIONS: u16 = FIRST + PRIORITIES as u16;
/// Receive endpoint for text.
pub const PRINTS: u16 = NOTIFICATIONS + 1;
/// Receive endpoint for answers of TileMux.
const ANSWERS: u16 = NOTIFICATIONS + 2;
/// Receive endpoint for answers of servers.
const SERVERS: u16 = NOTIFICATIONS + 3;
/// Memory endpoint for whatever is to be read or written now.
const SCRATCH: u16 = NOTIFICATIONS + 4;
/// Send endpoint to whatever server is asked now.
const LINE: u16 = NOTIFICATIONS + 5;
/// Receive endpoint for calls whose slots were freed, and the right to reply to the one that is answered now.
const PARKED: u16 = NOTIFICATIONS + 6;
const PARKED_RIGHT: u16 = PARKED + 1;
/// Rights to reply to system calls.
const SYSCALL_REPLIES: u16 = PARKED + 2;
const SLOTS: u16 = 32;
/// Rights to reply to text.
const PRINT_REPLIES: u16 = SYSCALL_REPLIES + PRIORITIES as u16 * CALL_SLOTS;
/// Then, for each user tile, a memory endpoint to its registers and a send endpoint to its TileMux.
const TILES: u16 = PRINT_REPLIES + SLOTS;

/// The kernel's unit.
pub struct Unit {
    own_tile: u16,
    tiles: Fixed<u16>,
    buffers: arch::Buffers,
    console: Lines,
    /// The message whose text is being printed.
    printed: Option<u32>,
    /// Pieces of texts that were printed since it was said last that somebody stopped.
    pub said: usize,
}

impl Unit {
    /// Configures the kernel's own endpoints.
    pub fn new(own_tile: u16, tiles: impl Iterator<Item = u16>) -> (Self, Calls) {
        dtu::exchange_activity(CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0));
        let (buffers, calls) = arch::Buffers::take();
        let unit = Self {
            own_tile,
            tiles: tiles.collect(),
            buffers,
            console: Lines::default(),
            printed: None,
            said: 0,
        };
        let receive = |buffer: u64, slot_size, slots: u16, reply_endpoints| {
            Endpoint::Receive(ReceiveEndpoint {
                activity: TILEMUX_ACTIVITY,
                reply_endpoints,
                buffer,
                slot_size,
                slots: slots as u8,
                ..ReceiveEndpoint::default()
            })
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
        let prints = receive(buffers.prints, PRINT_SLOT, SLOTS, PRINT_REPLIES);
        dtu::set_endpoint(PRINTS, &prints);
        dtu::set_endpoint(
            ANSWERS,
            &receive(buffers.answers, REQUEST_SLOT, SLOTS, NO_ENDPOINT),
        );
        dtu::set_endpoint(
            SERVERS,
            &receive(buffers.servers, REQUEST_SLOT, SLOTS, NO_ENDPOINT),
        );
        for (index, &tile) in unit.tiles.iter().enumerate() {
            let registers = Endpoint::Memory(MemoryEndpoint {
                activity: TILEMUX_ACTIVITY,
                target_tile: tile,
                rights: (TLB_READ | TLB_WRITE) as u8,
                base: 0,
                size: DTU_SIZE,
            });
            dtu::set_endpoint(TILES + 2 * index as u16, &registers);
        }
        (unit, calls)
    }

    /// The channel for requests to a tile's TileMux.
    fn open_requests(&mut self, tile: u16) {
        let Some(endpoint) = self.endpoints_of(tile) else {
            return;
        };
        let requests = Endpoint::Send(SendEndpoint {
            activity: TILEMUX_ACTIVITY,
            target_tile: tile,
            target_endpoint: REQUEST_ENDPOINT,
            label: self.own_tile.into(),
            credits: 1,
            credits_max: 1,
            message_size: REQUEST_SLOT,
            credit_endpoint: NO_ENDPOINT,
            reply: false,
            epoch: 0,
        });
        dtu::set_endpoint(endpoint + 1, &requests);
    }

    /// First of the two endpoints of a tile.
    fn endpoints_of(&self, tile: u16) -> Option<u16> {
        let index = self.tiles.iter().position(|t| *t == tile)?;
        Some(TILES + 2 * index as u16)
    }

    /// The next notification of a TileMux: its tile, and which activity stopped, if that is what it says.
    #[inline(always)]
    pub fn notification(&mut self) -> Option<(u16, Option<(u16, StopCause)>)> {
        match has_unread(NOTIFICATIONS) {
            true => self.next_notification(),
            false => None,
        }
    }

    #[cold]
    fn next_notification(&mut self) -> Option<(u16, Option<(u16, StopCause)>)> {
        let offset = fetch_unread(NOTIFICATIONS)?;
        let (tile, payload) = self.buffers.message(self.buffers.notifications, offset);
        let mut words: Words<5> = Words::new();
        for chunk in payload.chunks_exact(8).take(5) {
            words.push(&[word(chunk)]);
        }
        check(dtu::acknowledge(NOTIFICATIONS, offset));
        Some((tile as u16, decode_stopped(words.as_slice())))
    }

    /// The next answer of a server: the number of the question, and the answer.
    #[inline(always)]
    pub fn server_answer(&mut self) -> Option<(u64, Words<SYSCALL_WORDS>)> {
        match has_unread(SERVERS) {
            true => self.next_server_answer(),
            false => None,
        }
    }

    #[cold]
    fn next_server_answer(&mut self) -> Option<(u64, Words<SYSCALL_WORDS>)> {
        let offset = fetch_unread(SERVERS)?;
        let (number, payload) = self.buffers.message(self.buffers.servers, offset);
        let words = words_of(payload);
        check(dtu::acknowledge(SERVERS, offset));
        Some((number, words))
    }

    /// Messages for the kernel that are not fetched yet, all in all, and a bit for each call among them, by priority.
    #[inline(always)]
    pub fn look(&self) -> (u32, [u32; PRIORITIES]) {
        // One after the other, and then their results: each takes as long as to wait for one.
        let all = dtu::current_activity();
        let calls = SYSCALLS.map(unread);
        (all.messages().into(), calls)
    }

    /// Whether there is a call of a priority.
    pub fn has_call(&self, level: usize) -> bool {
        has_unread(FIRST + level as u16)
    }

    /// Fetches the next system call of a priority: its offset, for [`Calls::message`] and [`reply`](Self::reply).
    #[inline(always)]
    pub fn call(&mut self, level: usize) -> Option<u32> {
        fetch_unread(FIRST + level as u16)
    }

    /// The next text: the offset for [`print`](Self::print).
    pub fn text(&mut self) -> Option<u32> {
        fetch(PRINTS)
    }

    /// Sleeps until a message comes or the clock shows `until`.
    pub fn sleep(&mut self, until: Option<u64>) {
        let timeout = match until {
            None => 0,
            Some(until) => match until.saturating_sub(dtu::time()) {
                0 => return,
                timeout => timeout,
            },
        };
        dtu::sleep(NO_ENDPOINT, timeout);
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

    /// Whether something is to be written to the console.
    pub fn is_printing(&self) -> bool {
        self.printed.is_some() || self.console.has_line()
    }

    /// Whether a line of the kernel's own can begin.
    pub fn can_say(&self) -> bool {
        !self.console.has_line()
    }

    /// Begins to print text.
    pub fn print(&mut self, system: &System, offset: u32) {
        let (tile, payload) = self.buffers.message(self.buffers.prints, offset);
        if let Some((activity, text)) = decode_print(payload) {
            // A tile can name its own activities only; what is long gone has no name any more.
            let tile = tile as u16;
            let writer = (tile, activity);
            match system.name_on(activity, tile) {
                Some(name) => self.console.text(writer, name, text),
                None => {
                    let name = format_args!("activity {activity} of tile {tile}");
                    self.console.text(writer, name, text)
                }
            }
        }
        self.printed = Some(offset);
    }

    /// Writes a piece of what is to be printed. When a text is there, its tile may send more.
    pub fn print_more(&mut self) {
        self.console.step(&mut arch::Console);
        if let Some(offset) = self.printed.filter(|_| !self.console.has_text()) {
            self.printed = None;
            let data = self.buffers.fill(&[0]);
            if dtu::reply(PRINTS, offset, data).is_err() {
                check(dtu::acknowledge(PRINTS, offset));
            }
        }
    }

    /// Begins a line of the kernel's own, never inside a line of others.
    pub fn say(&mut self, line: impl core::fmt::Display) {
        self.console.line(line);
    }

    /// Prints a line of the kernel's own at once, and all that was begun.
    pub fn line(&mut self, line: impl core::fmt::Display) {
        self.flush();
        self.say(line);
        self.flush();
    }

    /// Writes all that was begun.
    pub fn flush(&mut self) {
        while self.is_printing() {
            self.print_more();
        }
    }

    /// Writes registers of a tile's unit.
    fn registers(&mut self, tile: u16, offset: u64, values: &[u64]) {
        let Some(endpoint) = self.endpoints_of(tile) else {
            panic!("tile {tile} is no user tile")
        };
        let data = self.buffers.fill(values.as_bytes());
        check(dtu::write_memory(endpoint, offset, data));
    }

    /// Reads registers of a tile's unit; zeros where there is none.
    fn read_registers<const N: usize>(&mut self, tile: u16, offset: u64) -> [u64; N] {
        let mut words = [0; N];
        let Some(endpoint) = self.endpoints_of(tile) else {
            return words;
        };
        let page = self.buffers.page(size_of_val(&words));
        check(dtu::read_memory(endpoint, offset, page));
        for (value, bytes) in words.iter_mut().zip(page.chunks_exact(8)) {
            *value = word(bytes);
        }
        words
    }

    fn hart(&mut self, tile: u16, opcode: ExternalOpcode, argument: u64) {
        // The command stands behind its argument.
        const _: () = assert!(EXTERNAL_COMMAND == EXTERNAL_ARGUMENT + 8);
        let words = [argument, external_command(opcode, 0, 0)];
        self.registers(tile, EXTERNAL_ARGUMENT, &words);
    }

    fn select(&mut self, region: Region) {
        dtu::set_endpoint(
            SCRATCH,
            &Endpoint::Memory(MemoryEndpoint {
                activity: TILEMUX_ACTIVITY,
                target_tile: region.tile,
                rights: (TLB_READ | TLB_WRITE) as u8,
                base: region.base,
                size: region.size,
            }),
        );
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

    fn set_bucket(&mut self, tile: u16, bucket: u8, rate: u64, limit: u64) {
        let base = BUCKETS + u64::from(bucket) * BUCKET_STRIDE;
        // Rate, amount and limit stand in a row; the amount is cut to the limit at the next refill.
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
        // An earlier TileMux may have taken a credit with it.
        self.open_requests(tile);
        self.hart(tile, ExternalOpcode::StartHart, address);
    }

    fn stop_hart(&mut self, tile: u16) {
        self.hart(tile, ExternalOpcode::StopHart, 0);
    }

    fn ask(&mut self, to: (u16, u16), words: &[u64], label: u64) -> bool {
        dtu::set_endpoint(
            LINE,
            &Endpoint::Send(SendEndpoint {
                activity: TILEMUX_ACTIVITY,
                target_tile: to.0,
                target_endpoint: to.1,
                label: KERNEL_LABEL,
                credits: 1,
                credits_max: 1,
                message_size: MESSAGE_MAX as u16,
                credit_endpoint: NO_ENDPOINT,
                reply: false,
                epoch: 0,
            }),
        );
        let data = self.buffers.fill(words.as_bytes());
        dtu::send(LINE, data, SERVERS, label).is_ok()
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
        let parked = Endpoint::Receive(ReceiveEndpoint {
            activity: TILEMUX_ACTIVITY,
            reply_endpoints: PARKED_RIGHT,
            buffer: self.buffers.syscalls,
            slot_size: SYSCALL_SLOT,
            slots: 1,
            occupied: 1,
            ..ReceiveEndpoint::default()
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

    fn request(&mut self, tile: u16, request: Request, number: u64) -> bool {
        let Some(endpoint) = self.endpoints_of(tile) else {
            return false;
        };
        let data = self.buffers.fill(request.encode().as_slice().as_bytes());
        dtu::send(endpoint + 1, data, ANSWERS, number).is_ok()
    }

    fn answer(&mut self) -> Option<(u64, TileMuxError)> {
        let offset = fetch(ANSWERS)?;
        let (number, payload) = self.buffers.message(self.buffers.answers, offset);
        let code = payload.chunks_exact(8).next().map(word);
        check(dtu::acknowledge(ANSWERS, offset));
        let answer = code.and_then(TileMuxError::from_code);
        Some((number, answer.unwrap_or(TileMuxError::BadRequest)))
    }

    fn clear(&mut self, region: Region) {
        self.select(region);
        let mut done = 0;
        while done < region.size {
            let size = (region.size - done).min(PAGE as u64);
            let page = self.buffers.page(size as usize);
            page.fill(0);
            check(dtu::write_memory(SCRATCH, done, page));
            done += size;
        }
    }

    fn read(&mut self, region: Region, offset: u64, buffer: &mut [u8]) {
        self.select(region);
        let mut done = 0;
        while done < buffer.len() {
            let piece = (buffer.len() - done).min(PAGE);
            let page = self.buffers.page(piece);
            check(dtu::read_memory(SCRATCH, offset + done as u64, page));
            buffer[done..done + piece].copy_from_slice(page);
            done += piece;
        }
    }

    fn write(&mut self, region: Region, offset: u64, data: &[u8]) {
        self.select(region);
        let mut done = 0;
        for piece in data.chunks(PAGE) {
            let page = self.buffers.fill(piece);
            check(dtu::write_memory(SCRATCH, offset + done, page));
            done += piece.len() as u64;
        }
    }
}

/// A caller that is gone needs no answer.
#[cold]
#[inline(never)]
fn drop_call(endpoint: u16, offset: u32) {
    check(dtu::acknowledge(endpoint, offset));
}

/// The next message of one of the kernel's endpoints. A look at the register costs a tenth of the command, and mostly there is
/// nothing.
#[inline(always)]
fn fetch(endpoint: u16) -> Option<u32> {
    if !has_unread(endpoint) {
        return None;
    }
    fetch_unread(endpoint)
}

#[inline(always)]
fn has_unread(endpoint: u16) -> bool {
    unread(endpoint) != 0
}

/// One bit for each message of an endpoint that is not fetched yet.
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

fn words_of(payload: &[u8]) -> Words<SYSCALL_WORDS> {
    let mut words = Words::new();
    words.push(aligned_words(payload));
    words
}

/// The whole words of a message, at most as many as a request or an answer has. Slots are aligned, so there are some.
#[inline(always)]
fn aligned_words(payload: &[u8]) -> &[u64] {
    let length = payload.len().min(SYSCALL_WORDS * 8) & !7;
    <[u64]>::ref_from_bytes(&payload[..length]).unwrap_or_default()
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// The kernel's own channels are set up by itself; if they fail, nothing can go on.
fn check(result: Result<(), DtuError>) {
    if let Err(error) = result {
        panic!(
            "the kernel's unit: {error:?}, command {:#x}",
            Command(dtu::read(0)).0
        )
    }
}
