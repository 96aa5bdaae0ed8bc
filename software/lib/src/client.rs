//! The client side of services: typed requests over a send gate.
//!
//! Why it exists: a request is one line where it is made. What it deliberately does not know: protocols.

use crate::gate::SendGate;
use bulkhead_abi::dtu::DtuError;
use bulkhead_common::message::{self, Buffer, Null, Request};
use bulkhead_common::status::Status;

/// A channel to a service.
#[derive(Debug)]
pub struct Client {
    gate: SendGate,
    buffer: Buffer,
}

impl Client {
    /// A client over a gate that leads to a service.
    pub const fn new(gate: SendGate) -> Self {
        Self {
            gate,
            buffer: Buffer::new(),
        }
    }

    /// A client over the gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        Self::new(SendGate::named(name))
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The service's error; [`Status::Closed`] if it has gone; [`Status::Busy`] if all credits are in use.
    #[inline(always)]
    pub fn call<R: Request>(&mut self, request: &R) -> Result<R::Reply, Status> {
        match self.gate.call(self.buffer.request(request)) {
            Ok(reply) => message::outcome(reply.word(), reply.rest()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Waits for a slot of the service, sends a request and waits for the answer, until the clock shows `moment` nanoseconds.
    ///
    /// # Errors
    /// As for [`call`](Self::call); [`Status::Timeout`] if there was no answer by then. If the request was sent, its credit comes back only
    /// if the service still answers.
    pub fn call_until<R: Request>(&mut self, request: &R, moment: u64) -> Result<R::Reply, Status> {
        match self.gate.call_until(self.buffer.request(request), moment) {
            Ok(Some(reply)) => message::outcome(reply.word(), reply.rest()),
            Ok(None) => Err(Status::Timeout),
            Err(error) => Err(failed(error)),
        }
    }

    /// Sends an empty request, to find out whether the service is alive.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    #[inline(always)]
    pub fn null(&mut self) -> Result<(), Status> {
        match self.gate.call(self.buffer.request(&Null {})) {
            Ok(reply) => {
                // The load completes while the unit frees the slot.
                let start = reply.start();
                reply.acknowledge();
                match start.is_null() {
                    true => Ok(()),
                    false => message::outcome::<Null>(start.word(), &[]).map(|_| ()),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// The gate.
    pub fn gate(&self) -> SendGate {
        self.gate
    }
}

/// The status for a client whose transfer failed.
#[cold]
pub fn failed(error: DtuError) -> Status {
    match error {
        DtuError::NoCredits | DtuError::NoSpace => Status::Busy,
        DtuError::InvalidEndpoint | DtuError::ReceiverGone => Status::Closed,
        DtuError::BadSize => Status::TooBig,
        DtuError::OutOfBounds => Status::BadRequest,
        DtuError::NoPermission => Status::NoRights,
        _ => Status::Transfer,
    }
}
