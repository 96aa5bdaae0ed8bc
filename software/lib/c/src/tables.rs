//! What the numbers of C stand for.
//!
//! Why it exists: a wrong number must be an error and nothing worse. What it deliberately does not know: pointers.

use bulkhead_lib::abi::dtu::DtuError;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::file::Mount;
use bulkhead_lib::gate::{MemoryGate, Message, MessageBuffer, ReceiveGate, SendGate};
use bulkhead_lib::select::{self, Event};

/// Gates of one kind at most.
const GATES: usize = 32;
/// Messages that can be held at once.
const MESSAGES: usize = 32;

/// Codes of `bulkhead.h` beside those of the unit.
pub const BAD_ARGUMENT: i32 = -100;
/// Nothing of this name.
pub const NOT_FOUND: i32 = -101;
/// No message before the time was over.
pub const NOTHING: i32 = -102;
/// Below this: what a service says.
const SERVICE: i32 = -200;
/// No place for another gate or message.
pub const TOO_MANY: i32 = -103;

/// A result of C: not negative, or an error.
pub type Result<T> = core::result::Result<T, i32>;

/// The error of the unit as C has it.
pub fn code(error: DtuError) -> i32 {
    -(error as i32)
}

/// What a service says as C has it.
pub fn status(status: Status) -> i32 {
    SERVICE - status.code() as i32
}

/// All gates and messages of the application.
pub struct Tables {
    send: [Option<SendGate>; GATES],
    receive: [Option<ReceiveGate>; GATES],
    memory: [Option<MemoryGate>; GATES],
    messages: [Option<Message>; MESSAGES],
    mounts: [Option<Mount>; GATES],
    buffer: MessageBuffer,
}

fn put<T>(table: &mut [Option<T>], item: T) -> Result<i32> {
    let free = table.iter().position(Option::is_none).ok_or(TOO_MANY)?;
    table[free] = Some(item);
    Ok(free as i32)
}

fn get<T: Copy>(table: &[Option<T>], number: i32) -> Result<T> {
    let place = usize::try_from(number).ok().and_then(|n| table.get(n));
    place.copied().flatten().ok_or(BAD_ARGUMENT)
}

impl Tables {
    /// Nothing in them.
    pub const fn new() -> Self {
        Self {
            send: [None; GATES],
            receive: [None; GATES],
            memory: [None; GATES],
            messages: [const { None }; MESSAGES],
            mounts: [const { None }; GATES],
            buffer: MessageBuffer::new(),
        }
    }

    /// Opens a send gate.
    pub fn open_send(&mut self, name: &str) -> Result<i32> {
        put(&mut self.send, SendGate::find(name).ok_or(NOT_FOUND)?)
    }

    /// Opens a receive gate.
    pub fn open_receive(&mut self, name: &str) -> Result<i32> {
        put(&mut self.receive, ReceiveGate::find(name).ok_or(NOT_FOUND)?)
    }

    /// Opens a memory gate.
    pub fn open_memory(&mut self, name: &str) -> Result<i32> {
        put(&mut self.memory, MemoryGate::find(name).ok_or(NOT_FOUND)?)
    }

    /// A memory gate.
    pub fn memory(&self, number: i32) -> Result<MemoryGate> {
        get(&self.memory, number)
    }

    /// Opens a session with a file service.
    pub fn open_mount(&mut self, name: &str) -> Result<i32> {
        SendGate::find(name).ok_or(NOT_FOUND)?;
        put(&mut self.mounts, Mount::connect(name).map_err(status)?)
    }

    /// A file service.
    pub fn mount(&mut self, number: i32) -> Result<&mut Mount> {
        let place = usize::try_from(number).ok();
        let place = place.and_then(|n| self.mounts.get_mut(n));
        place.and_then(Option::as_mut).ok_or(BAD_ARGUMENT)
    }

    /// A message must not cross a page, so it is sent from here.
    fn copy(&mut self, data: &[u8]) -> Result<usize> {
        let target = self.buffer.0.get_mut(..data.len()).ok_or(BAD_ARGUMENT)?;
        target.copy_from_slice(data);
        Ok(data.len())
    }

    /// Sends; the answer is dropped.
    pub fn send(&mut self, gate: i32, data: &[u8]) -> Result<i32> {
        let gate = get(&self.send, gate)?;
        let length = self.copy(data)?;
        gate.send_waiting(&self.buffer.0[..length]).map_err(code)?;
        Ok(0)
    }

    /// Asks; gives the message with the answer.
    pub fn call(&mut self, gate: i32, data: &[u8]) -> Result<i32> {
        let gate = get(&self.send, gate)?;
        let length = self.copy(data)?;
        let answer = gate.call(&self.buffer.0[..length]).map_err(code)?;
        put(&mut self.messages, answer)
    }

    /// Waits for a message of any of these gates; gives it and the index of the gate.
    pub fn wait(&mut self, gates: &[i32], until: u64) -> Result<(i32, i32)> {
        if gates.len() > GATES || gates.is_empty() {
            return Err(BAD_ARGUMENT);
        }
        let mut open = [get(&self.receive, gates[0])?; GATES];
        for (place, &number) in open.iter_mut().zip(gates) {
            *place = get(&self.receive, number)?;
        }
        let until = (until > 0).then_some(until);
        match select::wait(&open[..gates.len()], until).map_err(code)? {
            Event::Message(index, message) => Ok((put(&mut self.messages, message)?, index as i32)),
            Event::Time => Err(NOTHING),
        }
    }

    /// The held message.
    pub fn message(&self, number: i32) -> Result<&Message> {
        let place = usize::try_from(number).ok();
        let place = place.and_then(|n| self.messages.get(n));
        place.and_then(Option::as_ref).ok_or(BAD_ARGUMENT)
    }

    /// Gives up a message.
    pub fn take(&mut self, number: i32) -> Result<Message> {
        let place = usize::try_from(number).ok();
        let place = place.and_then(|n| self.messages.get_mut(n));
        place.and_then(Option::take).ok_or(BAD_ARGUMENT)
    }

    /// Answers a message and gives it up.
    pub fn reply(&mut self, number: i32, data: &[u8]) -> Result<i32> {
        let length = self.copy(data)?;
        let message = self.take(number)?;
        message.reply(&self.buffer.0[..length]).map_err(code)?;
        Ok(0)
    }
}
