//! The interrupt hart: what the second hart of a tile does, and what the two tell each other.
//!
//! Why it exists: a message for an activity that is not running has to interrupt a hart. The second hart takes it and
//! interrupts the first one only if whoever waits for the message is at least as urgent as the one that runs there
//! (m3-rtas24, section III-B2). What it deliberately does not know: activities beyond what the first hart wrote down
//! here; it changes nothing of TileMux.
//!
//! Nothing is lost: the first hart writes down for whom an activity waits before the unit gets another current activity, and
//! looks at what came after every such change.

use bulkhead_abi::dtu::{CORE_REQUEST, CoreRequest, NO_ENDPOINT, TILEMUX_ACTIVITY};
use bulkhead_abi::marker::Since;
use bulkhead_hal::{csr, device, dtu, marker};
use bulkhead_tilemux::mux::ACTIVITIES;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Nobody waits in this place.
const NOBODY: u64 = u64::MAX;

/// What both harts see.
pub struct Board {
    /// For each place: number of the activity, urgency and endpoint, 16 bits each, if it waits.
    waiting: [AtomicU64; ACTIVITIES],
    /// Urgency of the activity that runs; 0 if none does.
    running: AtomicU8,
    /// Places whose wait is over, as bits.
    woken: AtomicU32,
    /// The kernel sent a request or an answer.
    requests: AtomicBool,
}

/// The tile's.
pub static BOARD: Board = Board {
    waiting: [const { AtomicU64::new(NOBODY) }; ACTIVITIES],
    running: AtomicU8::new(0),
    woken: AtomicU32::new(0),
    requests: AtomicBool::new(false),
};

impl Board {
    /// First hart: the activity in a place waits for a message.
    pub fn waits(&self, place: usize, id: u16, urgency: u8, endpoint: u16) {
        let entry = u64::from(id) << 32 | u64::from(urgency) << 16 | u64::from(endpoint);
        self.waiting[place].store(entry, Ordering::SeqCst);
    }

    /// First hart: the activity in a place runs. Returns whether it is less urgent than the one before: then the second hart
    /// may have kept something from the first one that it must know now.
    pub fn runs(&self, place: usize, urgency: u8) -> bool {
        self.waiting[place].store(NOBODY, Ordering::SeqCst);
        urgency < self.running.swap(urgency, Ordering::SeqCst)
    }

    /// First hart: nobody runs.
    pub fn rests(&self) {
        self.running.store(0, Ordering::SeqCst);
    }

    /// First hart: whether there is something to take.
    pub fn has_news(&self) -> bool {
        self.woken.load(Ordering::SeqCst) != 0 || self.requests.load(Ordering::SeqCst)
    }

    /// First hart: takes the places whose wait is over, as bits, and whether the kernel sent something.
    pub fn take(&self) -> (u32, bool) {
        device::set_software_interrupt(false);
        let woken = self.woken.swap(0, Ordering::SeqCst);
        (woken, self.requests.swap(false, Ordering::SeqCst))
    }

    /// Second hart: a message was announced. Returns whether the first hart must know now.
    fn announce(&self, activity: u16, endpoint: u16) -> bool {
        if activity == TILEMUX_ACTIVITY {
            self.requests.store(true, Ordering::SeqCst);
            return true;
        }
        for (place, entry) in self.waiting.iter().enumerate() {
            let entry = entry.load(Ordering::SeqCst);
            let (id, urgency, wanted) = ((entry >> 32) as u16, (entry >> 16) as u8, entry as u16);
            if entry != NOBODY && id == activity && (wanted == endpoint || wanted == NO_ENDPOINT) {
                // The first hart may hear of it much later.
                let moment = Since::NOW;
                marker::mux_ready(Since { activity, moment }.pack());
                self.woken.fetch_or(1 << place, Ordering::SeqCst);
                return urgency >= self.running.load(Ordering::SeqCst);
            }
        }
        false
    }
}

/// The second hart's life.
pub extern "C" fn serve() -> ! {
    csr::set_mie(csr::EXTERNAL);
    loop {
        let request = CoreRequest(dtu::read(CORE_REQUEST));
        if !request.is_valid() {
            csr::wait_for_interrupt();
            continue;
        }
        dtu::write(CORE_REQUEST, 0);
        if BOARD.announce(request.activity(), request.endpoint()) {
            device::set_software_interrupt(true);
        }
    }
}
