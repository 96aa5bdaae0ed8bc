//! The tile's unit as TileMux uses it.
//!
//! Why it exists: who owns the unit's command registers at a moment is kept here. What it deliberately does not know: who
//! runs next.
//!
//! While TileMux sends or receives it is itself the current activity ([`TILEMUX_ACTIVITY`]), with bucket 0; the unit takes
//! its addresses as they are.

use crate::arch;
use bulkhead_abi::dtu::{
    CORE_REQUEST, CoreRequest, CurrentActivity, DtuError, Endpoint, IDLE_ACTIVITY, NO_ENDPOINT,
    TILEMUX_ACTIVITY, TIMER_EXPIRED,
};
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{
    NOTIFY_ENDPOINT, PRINT_ENDPOINT, PRINT_REPLY, REQUEST_ENDPOINT, Request, TILEMUX_BUFFER,
    TileMuxError, encode_stopped,
};
use bulkhead_hal::dtu::{self, SavedCommand};
use bulkhead_hal::paging::TableMemory;
use bulkhead_tilemux::mux::{ACTIVITIES, Machine};

/// The tile's unit.
pub struct Tile {
    /// Command registers of activities that do not run.
    commands: [SavedCommand; ACTIVITIES],
    /// Whether TileMux is the current activity.
    own: bool,
    /// The timer's moment.
    timer: Option<u64>,
    /// Unread messages of the activity that was the last to leave.
    unread: u16,
}

impl Tile {
    /// TileMux takes the unit.
    pub fn new() -> Self {
        dtu::exchange_activity(CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0));
        dtu::invalidate_translations();
        Self {
            commands: [SavedCommand::default(); ACTIVITIES],
            own: true,
            timer: None,
            unread: 0,
        }
    }

    /// Whether TileMux is the current activity.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Takes the unit from the activity in this place.
    pub fn leave(&mut self, place: usize) {
        self.commands[place] = dtu::save_command();
        let old = dtu::exchange_activity(CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0));
        self.unread = old.messages();
        self.own = true;
    }

    /// Gives the unit to an activity. False if a request of the kernel came since TileMux last looked: while it is the
    /// current activity itself, requests raise no interrupt, so the caller must look again.
    #[must_use]
    pub fn enter(&mut self, place: usize, id: u16, bucket: u8) -> bool {
        dtu::restore_command(&self.commands[place]);
        let old = dtu::exchange_activity(CurrentActivity::new(id, 0, bucket));
        self.own = false;
        old.messages() == 0 || !unread(REQUEST_ENDPOINT)
    }

    /// A new activity starts in this place.
    pub fn forget(&mut self, place: usize) {
        self.commands[place] = SavedCommand::default();
    }

    /// The activity and endpoint of a message that came for somebody who does not run.
    pub fn take_core_request(&mut self) -> Option<(u16, u16)> {
        let request = CoreRequest(dtu::read(CORE_REQUEST));
        request.is_valid().then(|| {
            dtu::write(CORE_REQUEST, 0);
            (request.activity(), request.endpoint())
        })
    }

    /// Acknowledges the timer if it has expired.
    pub fn take_timer(&mut self) {
        if dtu::read(TIMER_EXPIRED) != 0 {
            dtu::write(TIMER_EXPIRED, 0);
            self.timer = None;
        }
    }

    /// Arms the timer for a moment, or disarms it.
    pub fn set_timer(&mut self, moment: Option<u64>) {
        if moment == self.timer {
            return;
        }
        self.timer = moment;
        dtu::set_timer(match moment {
            None => 0,
            Some(moment) => moment.saturating_sub(dtu::time()).max(1),
        });
    }

    /// Nothing runs: waits for the next interrupt.
    pub fn idle(&mut self) {
        dtu::exchange_activity(CurrentActivity::new(IDLE_ACTIVITY, 0, 0));
        // A request that came since the last look is unread now and was announced to nobody.
        if !unread(REQUEST_ENDPOINT) {
            arch::wait_for_interrupt();
        }
        dtu::exchange_activity(CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0));
    }

    /// The next request of the kernel, if it is one, and its offset.
    pub fn fetch_request(&mut self) -> Option<(u32, Option<Request>)> {
        let offset = dtu::fetch(REQUEST_ENDPOINT).ok().flatten()?;
        let words = arch::message_words(TILEMUX_BUFFER + u64::from(offset));
        Some((offset, Request::decode(words.as_slice())))
    }

    /// Answers a request.
    pub fn answer(&mut self, offset: u32, error: Option<TileMuxError>) {
        let code = error.unwrap_or(TileMuxError::None) as u64;
        let data = arch::out(&code.to_le_bytes());
        if dtu::reply(REQUEST_ENDPOINT, offset, data).is_err() {
            // Without an answer the kernel would wait for ever; there is nobody to tell.
            panic!("a request cannot be answered");
        }
    }

    /// Tells the kernel that an activity stopped.
    pub fn notify(&mut self, activity: u16, cause: StopCause) {
        let mut bytes = [0; 40];
        for (place, word) in bytes
            .chunks_exact_mut(8)
            .zip(encode_stopped(activity, cause))
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let data = arch::out(&bytes);
        // The kernel takes notifications before everything else, so room comes soon.
        while dtu::send(NOTIFY_ENDPOINT, data, NO_ENDPOINT, 0) == Err(DtuError::NoSpace) {}
    }

    /// Frees the places of the kernel's answers to text. The credit came with them; their content says nothing.
    pub fn take_print_answer(&mut self) {
        while let Ok(Some(offset)) = dtu::fetch(PRINT_REPLY) {
            let _ = dtu::acknowledge(PRINT_REPLY, offset);
        }
    }

    /// Sends text to the kernel. False if earlier text has not been printed.
    pub fn print(&mut self, text: &[u8]) -> bool {
        self.take_print_answer();
        dtu::send(PRINT_ENDPOINT, arch::out(text), PRINT_REPLY, 0) != Err(DtuError::NoCredits)
    }
}

fn unread(endpoint: u16) -> bool {
    matches!(dtu::endpoint(endpoint), Endpoint::Receive(r) if r.unread != 0)
}

impl TableMemory for Tile {
    fn read(&self, physical: u64) -> u64 {
        arch::read_word(physical)
    }

    fn write(&mut self, physical: u64, value: u64) {
        arch::write_word(physical, value);
    }
}

impl Machine for Tile {
    fn has_message(&self, activity: u16, endpoint: u16) -> bool {
        if endpoint == NO_ENDPOINT {
            return self.unread != 0;
        }
        matches!(dtu::endpoint(endpoint), Endpoint::Receive(r) if r.activity == activity && r.unread != 0)
    }

    fn insert_translation(&mut self, activity: u16, page: u64, physical: u64, rights: u64) {
        dtu::insert_translation(activity, page, physical, rights);
    }

    fn write_half(&mut self, physical: u64, value: u32) {
        arch::write_half(physical, value);
    }
}
