//! A service that lends a page to every client with a session, and takes it back in every possible way. What it writes into the page
//! afterwards is for nobody else.
//!
//! Gates: `priority-0` (receive). Operations: see `protocol::Lend`. A grant ends badly if its first argument says so: [`WITHDRAWS`] or
//! [`DIES`] while the kernel waits for the answer.
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{SEL_MEMORY, SEL_OFFERED};
use bulkhead_lib::common::message::Request;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::{lines, println, session};
use core::sync::atomic::{AtomicU64, Ordering};
use protocol::{DIES, Lend, SECRET, SHARED, WITHDRAWS};

bulkhead_lib::main!(main);

/// What is lent.
#[repr(C, align(4096))]
struct Page([AtomicU64; 512]);
static PAGE: Page = Page([const { AtomicU64::new(SECRET) }; 512]);

fn fill(value: u64) {
    PAGE.0
        .iter()
        .for_each(|word| word.store(value, Ordering::Relaxed));
}

fn main() -> u64 {
    Server::from_environment().run(&mut Lender {
        lent: None,
        sessions: 0,
    })
}

struct Lender {
    lent: Option<u16>,
    /// Number of open sessions: it may be told of a new one before it is told that the last one is closed.
    sessions: u32,
}

impl Lender {
    /// From now on the page is its own.
    fn take_back(&mut self) {
        if let Some(selector) = self.lent.take() {
            if let Err(status) = session::revoke(selector) {
                println!("cannot take back: {status}");
            }
            fill(SECRET);
        }
        // The contents of memory count, not those of this tile's caches.
        lines::write_back(&PAGE);
        let own = |word: &AtomicU64| word.load(Ordering::Relaxed) == SECRET;
        if !PAGE.0.iter().all(own) {
            println!("lost: somebody wrote into what was taken back");
        }
    }

    /// Withdraws the offer of its service.
    fn withdraw(&mut self) {
        let _ = session::revoke(SEL_OFFERED);
        self.take_back();
    }
}

impl Service for Lender {
    const SESSIONS: bool = true;

    fn estimate(&mut self, _: Client, _: u64, _: &[u8]) -> u64 {
        2000
    }

    fn grant(&mut self, _: u16, arguments: [u64; 3]) -> Result<(u16, [u64; 2]), Status> {
        self.take_back();
        let selector = session::selector()?;
        let offset = PAGE.0.as_ptr() as u64 - ENVIRONMENT_BASE;
        session::derive(SEL_MEMORY, selector, offset, 4096, 3)?;
        match arguments[0] {
            WITHDRAWS => self.withdraw(),
            DIES => panic!("in the middle of an answer"),
            _ => fill(SHARED),
        }
        lines::write_back(&PAGE);
        self.lent = Some(selector);
        Ok((selector, [0; 2]))
    }

    fn opened(&mut self, _: u16) {
        self.sessions += 1;
    }

    fn gone(&mut self, _: u16) {
        self.sessions = self.sessions.saturating_sub(1);
        if self.sessions == 0 {
            self.take_back();
        }
    }

    fn serve(&mut self, request: Incoming) {
        if request.operation() != Lend::OPERATION {
            return request.fail(Status::UnknownOperation);
        }
        match request.body() {
            Ok(Lend { end: WITHDRAWS }) => self.withdraw(),
            Ok(Lend { end: DIES }) => panic!("told to stop"),
            _ => self.take_back(),
        }
        request.done(&0u64);
    }
}
