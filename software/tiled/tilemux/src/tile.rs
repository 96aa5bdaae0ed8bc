//! The tile's unit as TileMux uses it.
//!
//! Why it exists: this file tracks the present owner of the unit's command registers. What it deliberately does not know: which
//! activity runs next.
//!
//! While TileMux sends or receives, it is itself the current activity ([`TILEMUX_ACTIVITY`]), with bucket 0; the unit does not
//! translate its addresses.

use crate::arch;
use bulkhead_abi::dtu::{
    Awaited, CORE_REQUEST, CoreRequest, CurrentActivity, DtuError, Endpoint, IDLE_ACTIVITY,
    NO_ENDPOINT, TILEMUX_ACTIVITY, TIMER_EXPIRED,
};
use bulkhead_abi::pager::FAULT_WORDS;
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{
    NOTIFY_ENDPOINT, PRINT_ENDPOINT, PRINT_HEAD, PRINT_REPLY, PRINT_TEXT, REQUEST_ENDPOINT,
    Request, TILEMUX_BUFFER, TILEMUX_PRINT_BUFFER, TileMuxError, encode_print, encode_stopped,
};
use bulkhead_hal::csr;
use bulkhead_hal::dtu::{self, SavedCommand};
use bulkhead_hal::paging::{PAGE, Pool, TableMemory};
use bulkhead_tilemux::mux::{ACTIVITIES, Access, Machine, Registers};
use zerocopy::IntoBytes;

/// The owner of the unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    TileMux,
    Nobody,
    /// The activity in this place.
    Place(usize),
}

/// The tile's unit.
pub struct Tile {
    /// Command registers of activities that do not run.
    commands: [SavedCommand; ACTIVITIES],
    holder: Holder,
    /// The timer's moment.
    timer: Option<u64>,
    /// Faults that pagers have not answered.
    asked: u32,
    /// There may be requests of the kernel.
    pub requests: bool,
    /// A request that is carried out in pieces, and its offset.
    pub kept: Option<(u32, Option<Request>)>,
    /// There may be answers of pagers.
    pub answers: bool,
    /// From when on the next request is announced; none if the last one was.
    listens: Option<u64>,
    /// The pages that hold no page table.
    tables: Pool,
    /// Bytes of a line.
    line: u64,
}

impl Tile {
    /// TileMux takes the unit.
    pub fn new(line: u64) -> Self {
        dtu::exchange_activity(CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0));
        dtu::invalidate_translations();
        Self {
            commands: [SavedCommand::default(); ACTIVITIES],
            holder: Holder::TileMux,
            timer: None,
            asked: 0,
            requests: false,
            kept: None,
            answers: false,
            listens: None,
            tables: Pool::default(),
            line,
        }
    }

    /// The next request of the kernel interrupts any activity, but not before this moment.
    pub fn listen(&mut self, now: u64, from: u64) {
        if self.listens != Some(from) {
            let next = Awaited::new(TILEMUX_ACTIVITY, REQUEST_ENDPOINT, u8::MAX);
            dtu::set_awaited(ACTIVITIES, next.after(from.saturating_sub(now)));
            self.listens = Some(from);
        }
    }

    /// A pager's answer interrupts a running activity that is not more urgent than the one that waits for it.
    pub fn hear_pager(&self, place: usize, urgency: u8) {
        hear(place, TILEMUX_ACTIVITY, urgency, PRINT_REPLY);
    }

    /// Changes the holder. Returns whether the activity that leaves has messages, which were not announced.
    fn change(&mut self, registers: Registers, holder: Holder, to: CurrentActivity) -> bool {
        if let Holder::Place(place) = self.holder {
            self.commands[place] = match registers {
                Registers::Kept => dtu::save_command(),
                Registers::Dropped => {
                    dtu::end_command();
                    SavedCommand::default()
                }
            };
        }
        if let Holder::Place(place) = holder {
            dtu::restore_command(&self.commands[place]);
        }
        let old = dtu::exchange_activity(to);
        let some = old.messages() != 0;
        match core::mem::replace(&mut self.holder, holder) {
            Holder::TileMux => {
                self.requests = self.kept.is_some() || some && unread(REQUEST_ENDPOINT);
                self.answers = some && self.asked > 0 && unread(PRINT_REPLY);
                false
            }
            Holder::Place(_) => some,
            Holder::Nobody => false,
        }
    }

    /// TileMux takes the unit.
    pub fn take(&mut self, registers: Registers) {
        if self.holder != Holder::TileMux {
            let own = CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0).with_urgency(u8::MAX);
            self.change(registers, Holder::TileMux, own);
        }
    }

    /// Gives the unit to an activity. Returns whether the one that leaves has messages.
    #[must_use]
    pub fn give(
        &mut self,
        registers: Registers,
        place: usize,
        (id, bucket, urgency): (u16, u8, u8),
    ) -> bool {
        if self.holder == Holder::Place(place) {
            return false;
        }
        let next = CurrentActivity::new(id, 0, bucket).with_urgency(urgency);
        self.change(registers, Holder::Place(place), next)
    }

    /// No activity needs the unit. Returns whether the one that leaves has messages.
    #[must_use]
    pub fn rest(&mut self, registers: Registers) -> bool {
        if self.holder == Holder::Nobody {
            return false;
        }
        let nobody = CurrentActivity::new(IDLE_ACTIVITY, 0, 0);
        self.change(registers, Holder::Nobody, nobody)
    }

    /// A new activity starts in this place.
    pub fn forget(&mut self, place: usize) {
        self.commands[place] = SavedCommand::default();
    }

    /// The activity and endpoint of a message for an activity that does not run.
    pub fn take_announcement(&mut self) -> Option<(u16, u16)> {
        let request = CoreRequest(dtu::read(CORE_REQUEST));
        request.is_valid().then(|| {
            dtu::write(CORE_REQUEST, 0);
            let (activity, endpoint) = (request.activity(), request.endpoint());
            match (activity, endpoint) {
                (TILEMUX_ACTIVITY, REQUEST_ENDPOINT) => {
                    (self.requests, self.listens) = (true, None)
                }
                (TILEMUX_ACTIVITY, _) => self.answers = true,
                _ => {}
            }
            (activity, endpoint)
        })
    }

    /// Acknowledges the timer if it has expired.
    pub fn take_timer(&mut self) -> bool {
        // If it is not armed, it cannot have expired.
        let expired = self.timer.is_some() && dtu::read(TIMER_EXPIRED) != 0;
        if expired {
            dtu::write(TIMER_EXPIRED, 0);
            self.timer = None;
        }
        expired
    }

    /// Arms the timer for a moment, or disarms it.
    pub fn set_timer(&mut self, moment: Option<u64>) {
        if moment == self.timer {
            return;
        }
        self.timer = moment;
        match moment {
            None => {
                dtu::set_timer(0);
                // It may have expired meanwhile, and nothing would check that.
                dtu::write(TIMER_EXPIRED, 0);
            }
            Some(moment) => dtu::set_timer(moment.saturating_sub(dtu::time()).max(1)),
        }
    }

    /// The next request of the kernel, if it is one, and its offset.
    pub fn fetch_request(&mut self) -> Option<(u32, Option<Request>)> {
        if self.kept.is_some() {
            return self.kept.take();
        }
        let offset = dtu::fetch(REQUEST_ENDPOINT).ok().flatten()?;
        let words = arch::message_words(TILEMUX_BUFFER + u64::from(offset));
        Some((offset, Request::decode(words.as_slice())))
    }

    /// Answers a request.
    pub fn answer(&mut self, offset: u32, error: Option<TileMuxError>) {
        let code = error.unwrap_or(TileMuxError::None) as u64;
        let data = arch::out(&code.to_le_bytes());
        if dtu::reply(REQUEST_ENDPOINT, offset, data).is_err() {
            // Without an answer the kernel would wait until it gives up the tile; the error cannot be reported to anyone.
            panic!("a request cannot be answered");
        }
    }

    /// Tells the kernel that an activity stopped. Returns false if the kernel has no slot for that: other tiles report ends at the same
    /// moment, and until an important caller's revocation is done, the kernel takes no notifications.
    pub fn notify(&mut self, activity: u16, cause: StopCause) -> bool {
        let data = arch::out(encode_stopped(activity, cause).as_bytes());
        dtu::send(NOTIFY_ENDPOINT, data, NO_ENDPOINT, 0) != Err(DtuError::NoSpace)
    }

    /// The next answer of a pager: the activity that it is for, and its word. On the way, frees the slots of the kernel's answers
    /// to text; these brought the credit, and their content has no meaning.
    pub fn take_answer(&mut self) -> Option<(u16, u64)> {
        while let Ok(Some(offset)) = dtu::fetch(PRINT_REPLY) {
            let address = TILEMUX_PRINT_BUFFER + u64::from(offset);
            let (label, words) = (arch::message_label(address), arch::message_words(address));
            let _ = dtu::acknowledge(PRINT_REPLY, offset);
            if label != 0 {
                self.asked = self.asked.saturating_sub(1);
                let word = words.as_slice().first().copied();
                return Some((label as u16, word.unwrap_or(u64::MAX)));
            }
        }
        None
    }

    /// Reports a fault of an activity to a pager.
    pub fn ask_pager(&mut self, to: u16, id: u16, fault: (u64, Access)) -> Result<(), DtuError> {
        let words: [u64; FAULT_WORDS] = [fault.0, fault.1 as u64];
        let sent = dtu::send(to, arch::out(words.as_bytes()), PRINT_REPLY, id.into());
        self.asked += u32::from(sent.is_ok());
        sent
    }

    /// Sends an activity's text to the kernel. False if earlier text has not been printed.
    pub fn print(&mut self, activity: u16, text: &[u8; PRINT_TEXT], length: usize) -> bool {
        let message = encode_print(activity, text);
        let message = arch::out(&message[..PRINT_HEAD + length]);
        let sent = dtu::send(PRINT_ENDPOINT, message, PRINT_REPLY, 0);
        !matches!(sent, Err(DtuError::NoCredits | DtuError::NoSpace))
    }
}

/// The next message for an endpoint of an activity interrupts a running activity that is not more urgent. Other messages do not.
pub fn hear(index: usize, id: u16, urgency: u8, endpoint: u16) {
    dtu::set_awaited(index, Awaited::new(id, endpoint, urgency));
}

/// Whether an endpoint leads to a receiver.
pub fn leads_somewhere(endpoint: u16) -> bool {
    matches!(dtu::endpoint(endpoint), Endpoint::Send(_))
}

/// Whether an endpoint has unread messages.
pub fn unread(endpoint: u16) -> bool {
    matches!(dtu::endpoint(endpoint), Endpoint::Receive(r) if r.unread != 0)
}

impl TableMemory for Tile {
    fn read(&self, physical: u64) -> u64 {
        arch::read_word(physical)
    }

    fn write(&mut self, physical: u64, value: u64) {
        arch::write_word(physical, value);
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.tables
    }

    fn left(&mut self, page: u64) {
        (page..page + PAGE)
            .step_by(self.line as usize)
            .for_each(csr::write_back);
    }
}

impl Machine for Tile {
    fn has_message(&self, activity: u16, endpoint: u16) -> bool {
        if dtu::current_activity().messages() == 0 {
            return false;
        }
        if endpoint == NO_ENDPOINT {
            return true;
        }
        matches!(dtu::endpoint(endpoint), Endpoint::Receive(r) if r.activity == activity && r.unread != 0)
    }

    fn insert_translation(&mut self, activity: u16, page: u64, physical: u64, rights: u64) {
        dtu::insert_translation(activity, page, physical, rights);
    }

    fn forget_translations(&mut self) {
        dtu::invalidate_translations();
    }

    fn write_half(&mut self, physical: u64, value: u32) {
        arch::write_half(physical, value);
    }
}
