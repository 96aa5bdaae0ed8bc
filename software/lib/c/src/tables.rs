//! The objects behind the numbers that C programs use.
//!
//! Why it exists: a wrong number must be an error and nothing worse. What it deliberately does not know: pointers.

use bulkhead_lib::abi::dtu::DtuError;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::gate::{MemoryGate, Message, MessageBuffer, ReceiveGate, SendGate};
use bulkhead_lib::mounts::Mounts;
use bulkhead_lib::pipe::{Reader, Writer};
use bulkhead_lib::select::{self, Event};
use bulkhead_lib::socket::{Network, Tcp, Udp};
use bulkhead_lib::task::PeriodicTask;

/// Maximum objects of one kind: gates, messages and so on.
const ROOM: usize = 32;

/// Error codes of `bulkhead.h`, in addition to the unit's: a bad argument.
pub const BAD_ARGUMENT: i32 = -100;
/// Nothing has this name.
pub const NOT_FOUND: i32 = -101;
/// No message before the time ran out.
pub const NOTHING: i32 = -102;
/// Codes below this are statuses of services.
const SERVICE: i32 = -200;
/// No place for another object of this kind.
pub const TOO_MANY: i32 = -103;

/// A result of C: not negative, or an error.
pub type Result<T> = core::result::Result<T, i32>;

/// The C code of an error of the unit.
pub fn code(error: DtuError) -> i32 {
    -(error as i32)
}

/// The C code of a service's status.
pub fn status(status: Status) -> i32 {
    SERVICE - status.code() as i32
}

/// Objects of one kind, by number.
pub struct Table<T>([Option<T>; ROOM]);

impl<T> Table<T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self([const { None }; ROOM])
    }

    /// Adds an object. Returns its number.
    pub fn put(&mut self, item: T) -> Result<i32> {
        let free = self.0.iter().position(Option::is_none).ok_or(TOO_MANY)?;
        self.0[free] = Some(item);
        Ok(free as i32)
    }

    /// All objects with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (i32, &T)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(number, item)| Some((number as i32, item.as_ref()?)))
    }

    /// The object with a number.
    pub fn get(&self, number: i32) -> Result<&T> {
        let place = usize::try_from(number).ok().and_then(|n| self.0.get(n));
        place.and_then(Option::as_ref).ok_or(BAD_ARGUMENT)
    }

    /// The same, for a change.
    pub fn get_mut(&mut self, number: i32) -> Result<&mut T> {
        let place = usize::try_from(number).ok();
        let place = place.and_then(|n| self.0.get_mut(n));
        place.and_then(Option::as_mut).ok_or(BAD_ARGUMENT)
    }

    /// Removes an object.
    pub fn take(&mut self, number: i32) -> Result<T> {
        let place = usize::try_from(number).ok();
        let place = place.and_then(|n| self.0.get_mut(n));
        place.and_then(Option::take).ok_or(BAD_ARGUMENT)
    }
}

/// A socket, and the number of its network.
pub struct Socket {
    /// The network.
    pub network: i32,
    /// The socket itself.
    pub kind: SocketKind,
}

/// The kind of a socket.
pub enum SocketKind {
    /// Datagrams.
    Udp(Udp),
    /// A stream, or a connection that is awaited.
    Tcp(Tcp),
}

/// Everything that the application has opened.
pub struct Tables {
    send: Table<SendGate>,
    receive: Table<ReceiveGate>,
    memory: Table<MemoryGate>,
    messages: Table<Message>,
    /// Trees of names.
    pub mounts: Table<Mounts>,
    /// Pipes that are written.
    pub writers: Table<Writer>,
    /// Pipes that are read.
    pub readers: Table<Reader>,
    /// Channels to network services.
    pub networks: Table<Network>,
    /// Sockets of all networks.
    pub sockets: Table<Socket>,
    /// Periodic tasks.
    pub tasks: Table<PeriodicTask>,
    buffer: MessageBuffer,
}

impl Tables {
    /// Empty tables.
    pub const fn new() -> Self {
        Self {
            send: Table::new(),
            receive: Table::new(),
            memory: Table::new(),
            messages: Table::new(),
            mounts: Table::new(),
            writers: Table::new(),
            readers: Table::new(),
            networks: Table::new(),
            sockets: Table::new(),
            tasks: Table::new(),
            buffer: MessageBuffer::new(),
        }
    }

    /// Opens a send gate, if the description gives it.
    pub fn open_send(&mut self, name: &str) -> Result<Option<i32>> {
        let gate = SendGate::find(name);
        gate.map(|gate| self.send.put(gate)).transpose()
    }

    /// Opens a receive gate, if the description gives it.
    pub fn open_receive(&mut self, name: &str) -> Result<Option<i32>> {
        let gate = ReceiveGate::find(name);
        gate.map(|gate| self.receive.put(gate)).transpose()
    }

    /// Opens a memory gate, if the description gives it.
    pub fn open_memory(&mut self, name: &str) -> Result<Option<i32>> {
        let gate = MemoryGate::find(name);
        gate.map(|gate| self.memory.put(gate)).transpose()
    }

    /// A receive gate.
    pub fn receive(&self, number: i32) -> Result<ReceiveGate> {
        self.receive.get(number).copied()
    }

    /// A memory gate.
    pub fn memory(&self, number: i32) -> Result<MemoryGate> {
        self.memory.get(number).copied()
    }

    /// Copies a message to this aligned buffer, because it must not cross a page.
    fn copy(&mut self, data: &[u8]) -> Result<usize> {
        let target = self.buffer.0.get_mut(..data.len()).ok_or(BAD_ARGUMENT)?;
        target.copy_from_slice(data);
        Ok(data.len())
    }

    /// Sends; the answer is dropped.
    pub fn send(&mut self, gate: i32, data: &[u8]) -> Result<i32> {
        let gate = *self.send.get(gate)?;
        let length = self.copy(data)?;
        gate.send_waiting(&self.buffer.0[..length]).map_err(code)?;
        Ok(0)
    }

    /// Sends a request. Returns the message with the answer.
    pub fn call(&mut self, gate: i32, data: &[u8]) -> Result<i32> {
        let gate = *self.send.get(gate)?;
        let length = self.copy(data)?;
        let answer = gate.call(&self.buffer.0[..length]).map_err(code)?;
        self.messages.put(answer)
    }

    /// Waits for a message of any of these gates. Returns it and the index of the gate.
    pub fn wait(&mut self, gates: &[i32], until: u64) -> Result<(i32, i32)> {
        if gates.len() > ROOM || gates.is_empty() {
            return Err(BAD_ARGUMENT);
        }
        let mut open = [self.receive(gates[0])?; ROOM];
        for (place, &number) in open.iter_mut().zip(gates) {
            *place = self.receive(number)?;
        }
        let until = (until > 0).then_some(until);
        match select::wait(&open[..gates.len()], until).map_err(code)? {
            Event::Message(index, message) => Ok((self.messages.put(message)?, index as i32)),
            Event::Time => Err(NOTHING),
        }
    }

    /// The held message.
    pub fn message(&self, number: i32) -> Result<&Message> {
        self.messages.get(number)
    }

    /// Gives up a message.
    pub fn take(&mut self, number: i32) -> Result<Message> {
        self.messages.take(number)
    }

    /// Answers a message and gives it up.
    pub fn reply(&mut self, number: i32, data: &[u8]) -> Result<i32> {
        let length = self.copy(data)?;
        let message = self.take(number)?;
        message.reply(&self.buffer.0[..length]).map_err(code)?;
        Ok(0)
    }
}
