//! Several services of one program, each with its own clients, gates and accounts.
//!
//! Why it exists: a program that serves two kinds of clients (files and blocks, say) should not mix their sessions. What it
//! deliberately does not know: the services themselves.
//!
//! The services take turns: each serves its most important request, if there is one. So a client of the highest priority waits for
//! at most one request of its own service and one of each other service.

use crate::server::{Server, Service};
use crate::time;
use bulkhead_abi::dtu::NO_ENDPOINT;

/// A service with its clients.
pub struct Offer<S> {
    /// The clients: [`Server::named`].
    pub server: Server,
    /// The service.
    pub service: S,
}

/// One of several services.
pub trait Turn {
    /// Offers the service.
    fn begin(&mut self);
    /// Serves at most one request. Returns the time (nanoseconds since reset) at which it has something to do without a request.
    fn turn(&mut self) -> Option<u64>;
}

impl<S: Service> Turn for Offer<S> {
    fn begin(&mut self) {
        self.server.offer::<S>();
    }

    fn turn(&mut self) -> Option<u64> {
        self.server.turn(&mut self.service)
    }
}

/// Serves all of them forever.
///
/// # Panics
/// If the kernel refuses to let one of them be offered.
pub fn run(all: &mut [&mut dyn Turn]) -> ! {
    for one in all.iter_mut() {
        one.begin();
    }
    loop {
        let due = all.iter_mut().filter_map(|one| one.turn()).min();
        crate::gate::drop_answers();
        // Returns at once if a message is there, for any of the services.
        time::wait(NO_ENDPOINT, due.unwrap_or(0));
    }
}
