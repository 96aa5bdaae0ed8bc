//! Calls as words.
//!
//! Why it exists: on the way from a message to the code of its call, nothing is copied. What it deliberately does not know: what a
//! call does.

use super::{Reply, System, Ticket};
use crate::hardware::Hardware;
use bulkhead_abi::syscall::{Call, Handler, Syscall, SyscallError};
use bulkhead_capabilities::HolderId;

impl System {
    /// Carries out the call in these words, as [`call`](Self::call) does. Returns whether to answer it now; the answer is then in
    /// `reply`, and stays there on the way to the unit.
    #[inline(always)]
    pub fn call_words(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        words: &[u64],
        reply: &mut Reply,
    ) -> bool {
        let outcome = match self.holder(ticket) {
            Ok(caller) => {
                let (ticket, reply) = (&ticket, &mut *reply);
                let call = Carried {
                    system: self,
                    hardware,
                    caller,
                    ticket,
                    reply,
                };
                Syscall::dispatch(words, call)
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(true) => true,
            Ok(false) => {
                self.park(hardware, ticket);
                false
            }
            Err(error) => {
                reply.clear();
                reply.push(&[error as u64]);
                true
            }
        }
    }
}

/// A call with everything that it needs.
struct Carried<'a, H> {
    system: &'a mut System,
    hardware: &'a mut H,
    caller: HolderId,
    ticket: &'a Ticket,
    reply: &'a mut Reply,
}

impl<H: Hardware> Handler for Carried<'_, H> {
    type Output = bool;

    #[inline(always)]
    fn handle(self, call: Call) -> Result<bool, SyscallError> {
        self.system
            .call_into(self.hardware, (self.caller, self.ticket), call, self.reply)
    }
}
