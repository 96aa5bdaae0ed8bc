//! Gates: the ends of channels that the DTU enforces.
//!
//! Why it exists: applications send, receive and transfer through these types. What it deliberately does not know: the program on
//! the other side.
//!
//! The common case of every operation is inlined and takes a handful of register accesses. If the DTU does not know a page yet, it
//! reports an error and TileMux inserts the translation; that is rare, because the unit keeps 32 pages.

mod buffer;

use crate::argument;
use crate::repeat::{PAUSE, repair, repair_or_wait, repeat, repeat_with};
use crate::time::Stopwatch;
use crate::{syscall, time};
use bulkhead_abi::dtu::{DtuError, PAGE_SIZE, TLB_READ, TLB_WRITE};
use bulkhead_abi::environment::GateKind;
use bulkhead_abi::message::{HEADER_SIZE, Header, MARKED, ONE_WAY, PLACED};
use bulkhead_abi::syscall::Syscall;
use bulkhead_hal::dtu::{self, Line, Slot};
use bulkhead_user::user;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use buffer::MessageBuffer;
pub use bulkhead_abi::words::Aligned;

/// Result of an operation on a gate.
pub type Result<T> = core::result::Result<T, DtuError>;

/// The meaning of a one-way message in addition to its payload; it travels as the label of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing.
    Plain,
    /// The end.
    End,
    /// The payload says where something is.
    Place,
}

impl Mark {
    const fn label(self) -> u64 {
        match self {
            Mark::Plain => ONE_WAY,
            Mark::End => MARKED,
            Mark::Place => PLACED,
        }
    }
}

/// Whether such messages were ever sent, or late answers to abandoned calls may arrive.
static ONE_WAY_USED: AtomicBool = AtomicBool::new(false);

/// The sending end of a channel.
#[derive(Clone, Copy, Debug)]
pub struct SendGate {
    line: Line,
    reply_buffer: u64,
}

impl SendGate {
    /// The gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        match Self::find(name) {
            Some(gate) => gate,
            None => panic!("no <sgate name=\"{name}\"> in the description"),
        }
    }

    /// The gate of this name, if the description gives it.
    pub fn find(name: &str) -> Option<Self> {
        let entry = argument::gate(name, GateKind::Send)?;
        let environment = user::environment();
        Some(Self::new(
            entry.endpoint,
            environment.call_reply,
            environment.call_buffer,
        ))
    }

    pub(crate) const fn new(endpoint: u16, reply: u16, reply_buffer: u64) -> Self {
        Self {
            line: Line::new(endpoint, reply),
            reply_buffer,
        }
    }

    /// Number of the endpoint.
    pub fn endpoint(&self) -> u16 {
        self.line.endpoint()
    }

    /// Sends a message; it must not cross a page. The receiver gives the credit back with [`Message::finish`] or a reply,
    /// whose content is dropped.
    ///
    /// # Errors
    /// Does not wait: [`DtuError::NoCredits`] if too many messages are outstanding, [`DtuError::NoSpace`] if earlier messages of the gate, such
    /// as those of this activity's predecessor, are still at the receiver, or another error of the DTU.
    #[inline(always)]
    pub fn send(&self, message: &[u8]) -> Result<()> {
        self.send_one_way(message, ONE_WAY)
    }

    #[inline(always)]
    fn send_one_way(&self, message: &[u8], label: u64) -> Result<()> {
        // Replies to earlier messages would fill the buffer for replies, so this takes one. One for each message is enough: unread
        // replies and unanswered messages together are at most as many as the credits, because their number grows only when a
        // message is sent while no reply is there.
        if let Some(reply) = fetch(self.line.reply(), self.reply_buffer)? {
            reply.acknowledge();
        }
        ONE_WAY_USED.store(true, Ordering::Relaxed);
        repeat(message.as_ptr() as u64, TLB_READ, || {
            self.line.send(message, label)
        })
    }

    /// Sends a message whose reply will come to `reply` with `label`.
    ///
    /// # Errors
    /// As for [`send`](Self::send); does not wait either.
    #[inline(always)]
    pub fn send_with_reply(&self, message: &[u8], reply: &ReceiveGate, label: u64) -> Result<()> {
        repeat(message.as_ptr() as u64, TLB_READ, || {
            dtu::send(self.endpoint(), message, reply.endpoint, label)
        })
    }

    /// Waits for a slot of the receiver, sends a message and waits for its reply, until the clock of [`time::now`] shows `moment`
    /// nanoseconds; then returns `None`. If the message was sent by then, its credit comes back only if the receiver still answers; that
    /// answer is dropped.
    ///
    /// # Errors
    /// As for [`send`](Self::send), except [`DtuError::NoSpace`].
    pub fn call_until(&self, message: &[u8], moment: u64) -> Result<Option<Message>> {
        /// Labels of such calls, none of which is 0 or [`ONE_WAY`].
        static LAST: AtomicU64 = AtomicU64::new(1 << 32);
        let label = LAST.fetch_add(1, Ordering::Relaxed);
        while let Err(error) = self.send_with_label(message, label) {
            let now = time::now();
            match error {
                DtuError::NoSpace if now >= moment => return Ok(None),
                DtuError::NoSpace => time::sleep_until(moment.min(now + PAUSE)),
                error => return Err(error),
            }
        }
        loop {
            while let Some(answer) = fetch(self.line.reply(), self.reply_buffer)? {
                if answer.label() == label {
                    return Ok(Some(answer));
                }
            }
            if time::now() >= moment {
                ONE_WAY_USED.store(true, Ordering::Relaxed);
                return Ok(None);
            }
            time::wait(self.line.reply(), moment);
        }
    }

    /// Sends a message whose answer comes to the gate for answers to calls, with `label`.
    pub(crate) fn send_with_label(&self, message: &[u8], label: u64) -> Result<()> {
        repeat(message.as_ptr() as u64, TLB_READ, || {
            self.line.send(message, label)
        })
    }

    /// Sends a message; waits for a credit, and for a slot of the receiver, without a time limit.
    ///
    /// # Errors
    /// The DTU's error, except [`DtuError::NoCredits`] and [`DtuError::NoSpace`].
    pub fn send_waiting(&self, message: &[u8]) -> Result<()> {
        self.send_waiting_marked(message, Mark::Plain)
    }

    /// The same, with a mark.
    pub(crate) fn send_waiting_marked(&self, message: &[u8], mark: Mark) -> Result<()> {
        loop {
            match self.send_one_way(message, mark.label()) {
                // The credit comes with a reply to an earlier message. If no receiver can send one any more, the kernel removes the
                // endpoint and ends the wait.
                Err(DtuError::NoCredits) => time::nap(self.line.reply()),
                Err(DtuError::NoSpace) => time::sleep_until(time::now() + PAUSE),
                other => return other,
            }
        }
    }

    /// Waits for a reply, and checks now and then whether a receiver still exists that could send one: when TileMux wakes this
    /// activity, because the kernel may have removed the endpoint, and after a long wait, because that may have happened just
    /// before the sleep.
    #[inline(always)]
    fn await_reply(&self) -> Result<Message> {
        if user::is_shared() {
            return self.await_reply_shared();
        }
        loop {
            // Sleeping first keeps the path free of branches; see `receive`.
            time::nap_alone(self.line.reply());
            if let Some(message) = fetch(self.line.reply(), self.reply_buffer)? {
                return Ok(message);
            }
            // Others may have come to the tile, and they need the hart.
            if user::is_shared() {
                return self.await_reply_shared();
            }
            self.check_receiver()?;
        }
    }

    #[cold]
    #[inline(never)]
    fn await_reply_shared(&self) -> Result<Message> {
        loop {
            if let Some(message) = fetch(self.line.reply(), self.reply_buffer)? {
                return Ok(message);
            }
            self.check_receiver()?;
            time::nap_shared(self.line.reply());
        }
    }

    /// Checks whether the receiver still exists: an empty message has no effect but shows whether the endpoint is there.
    ///
    /// # Errors
    /// [`DtuError::ReceiverGone`] if not.
    #[cold]
    #[inline(never)]
    pub fn check_receiver(&self) -> Result<()> {
        match self.line.send(&[], 0) {
            Err(DtuError::InvalidEndpoint | DtuError::ForeignEndpoint) => {
                Err(DtuError::ReceiverGone)
            }
            _ => Ok(()),
        }
    }

    /// Waits for a slot of the receiver, sends a message and waits for its reply. If the receiver only finishes the message, the reply is
    /// empty.
    ///
    /// # Errors
    /// As for [`send`](Self::send), except [`DtuError::NoSpace`]; [`DtuError::ReceiverGone`] if the receiver ended before it replied.
    #[inline(always)]
    pub fn call(&self, message: &[u8]) -> Result<Message> {
        self.call_with(repair_or_wait, message)
    }

    /// The same without the wait for a slot.
    #[inline(always)]
    pub(crate) fn call_once(&self, message: &[u8]) -> Result<Message> {
        self.call_with(repair, message)
    }

    #[inline(always)]
    fn call_with(
        &self,
        repair: fn(DtuError, u64, u64) -> Result<()>,
        message: &[u8],
    ) -> Result<Message> {
        repeat_with(repair, message.as_ptr() as u64, TLB_READ, || {
            self.line.send(message, 0)
        })?;
        loop {
            let reply = self.await_reply()?;
            // Examining the reply costs a cache miss, so this is done only if there may be other answers.
            if !ONE_WAY_USED.load(Ordering::Relaxed) || reply.label() == 0 {
                return Ok(reply);
            }
        }
    }
}

/// Drops answers to messages of [`SendGate::send`], which would keep [`time::wait_any`] from sleeping.
#[inline(always)]
pub(crate) fn drop_answers() {
    if ONE_WAY_USED.load(Ordering::Relaxed) {
        drop_all();
    }
}

#[cold]
#[inline(never)]
fn drop_all() {
    while let Some(answer) = fetch_answer() {
        drop(answer);
    }
}

/// The next answer to a call of any gate.
pub(crate) fn fetch_answer() -> Option<Message> {
    let environment = user::environment();
    fetch(environment.call_reply, environment.call_buffer).ok()?
}

/// The receiving end of channels.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveGate {
    endpoint: u16,
    slots: u8,
    buffer: u64,
}

impl ReceiveGate {
    /// The gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        match Self::find(name) {
            Some(gate) => gate,
            None => panic!("no <rgate name=\"{name}\"> in the description"),
        }
    }

    /// The gate of this name, if the description gives it.
    pub fn find(name: &str) -> Option<Self> {
        let entry = argument::gate(name, GateKind::Receive)?;
        Some(Self {
            endpoint: entry.endpoint,
            slots: entry.size as u8,
            buffer: entry.buffer,
        })
    }

    /// A gate on an endpoint that the kernel gave to this activity.
    pub(crate) const fn new(endpoint: u16, slots: u8, buffer: u64) -> Self {
        Self {
            endpoint,
            slots,
            buffer,
        }
    }

    /// Messages that it holds.
    pub fn slots(&self) -> u8 {
        self.slots
    }

    /// Number of the endpoint.
    pub fn endpoint(&self) -> u16 {
        self.endpoint
    }

    /// The next message, if there is one.
    ///
    /// # Errors
    /// The DTU's error.
    #[inline(always)]
    pub fn fetch(&self) -> Result<Option<Message>> {
        fetch(self.endpoint, self.buffer)
    }

    /// The next message, if there is one, and a stopwatch that was started before the fetch.
    ///
    /// # Errors
    /// The DTU's error.
    #[inline(always)]
    pub fn fetch_timed(&self) -> Result<Option<(Message, Stopwatch)>> {
        self.fetch_timed_from(self.buffer)
    }

    /// Address of its buffer.
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer
    }

    /// Like [`fetch_timed`](Self::fetch_timed), for a caller that has just read the address of the buffer.
    #[inline(always)]
    pub(crate) fn fetch_timed_from(&self, buffer: u64) -> Result<Option<(Message, Stopwatch)>> {
        loop {
            match dtu::fetch_timed(self.endpoint) {
                Ok((Some(offset), cycle)) => {
                    let message = Message::at(self.endpoint, buffer, offset);
                    return Ok(Some((message, Stopwatch::from(cycle))));
                }
                Ok((None, _)) => return Ok(None),
                Err(error) => repair(error, 0, 0)?,
            }
        }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// The DTU's error.
    #[inline(always)]
    pub fn receive(&self) -> Result<Message> {
        receive(self.endpoint, self.buffer)
    }

    /// Waits for the next message while a sender exists. Returns `None` once all senders are gone and their messages are read. If
    /// no sender has been connected yet, it waits for the first.
    ///
    /// # Errors
    /// The DTU's error.
    #[inline]
    pub fn receive_while_open(&self) -> Result<Option<Message>> {
        loop {
            // On a shared tile waiting means a call to TileMux, so it is the last resort.
            if user::is_shared()
                && let Some(message) = self.fetch()?
            {
                return Ok(Some(message));
            }
            // The kernel ends the sleep when the last sender is gone.
            time::nap(self.endpoint);
            if let Some(message) = self.fetch()? {
                return Ok(Some(message));
            }
            if !self.is_open() {
                // A message that arrived before the last sender ended.
                return self.fetch();
            }
        }
    }

    /// Whether a sender exists, or none has existed yet.
    #[cold]
    #[inline(never)]
    pub fn is_open(&self) -> bool {
        let request = Syscall::Senders {
            endpoint: self.endpoint,
        };
        match syscall::call(&request) {
            Ok([senders, departed, ..]) => senders > 0 || departed == 0,
            Err(_) => true,
        }
    }

    /// Waits for the next answer to messages that were sent with [`SendGate::send_with_reply`] over these gates and have no answer yet.
    ///
    /// # Errors
    /// [`DtuError::ReceiverGone`] if one of the receivers ended before it replied, or another error of the DTU.
    pub fn receive_reply(&self, gates: &[SendGate]) -> Result<Message> {
        loop {
            if let Some(message) = self.fetch()? {
                return Ok(message);
            }
            for gate in gates {
                gate.check_receiver()?;
            }
            time::nap(self.endpoint);
        }
    }

    /// Waits for the next message until the clock of [`time::now`] shows `moment` nanoseconds.
    ///
    /// # Errors
    /// The DTU's error.
    pub fn receive_until(&self, moment: u64) -> Result<Option<Message>> {
        loop {
            if let Some(message) = self.fetch()? {
                return Ok(Some(message));
            }
            if time::now() >= moment {
                return Ok(None);
            }
            time::wait(self.endpoint, moment);
        }
    }
}

#[inline(always)]
fn fetch(endpoint: u16, buffer: u64) -> Result<Option<Message>> {
    loop {
        match dtu::fetch_offset(endpoint) {
            Ok(Some(offset)) => {
                return Ok(Some(Message::at(endpoint, buffer, offset)));
            }
            Ok(None) => return Ok(None),
            // The multiplexer took the hart in between; a fetch without effect is repeated.
            Err(error) => repair(error, 0, 0)?,
        }
    }
}

#[inline(always)]
fn receive(endpoint: u16, buffer: u64) -> Result<Message> {
    if user::is_shared() {
        return receive_shared(endpoint, buffer);
    }
    loop {
        // The sleep ends immediately if there is a message. Sleeping first keeps the path from the message's arrival to its result free of
        // unpredictable branches.
        time::wait(endpoint, 0);
        if let Some(message) = fetch(endpoint, buffer)? {
            return Ok(message);
        }
    }
}

/// On a shared tile waiting means a call to TileMux, so it is the last resort.
#[cold]
#[inline(never)]
fn receive_shared(endpoint: u16, buffer: u64) -> Result<Message> {
    loop {
        if let Some(message) = fetch(endpoint, buffer)? {
            return Ok(message);
        }
        time::wait(endpoint, 0);
    }
}

/// A received message; its slot is freed when it is replied to, acknowledged or dropped.
#[derive(Debug)]
pub struct Message {
    /// Two words of one type travel in registers; three fields of different types would be taken apart into bytes on the hot path.
    place: Slot,
    address: u64,
}

/// The start of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    length: u16,
    word: u64,
}

impl Start {
    /// The first eight bytes of the payload as a number, if it has as many.
    #[inline(always)]
    pub fn word(self) -> Option<u64> {
        (self.length >= 8).then_some(self.word)
    }

    /// Whether that is 0.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        (self.length >= 8) & (self.word == 0)
    }
}

impl Message {
    #[inline(always)]
    fn at(endpoint: u16, buffer: u64, offset: u64) -> Self {
        Self {
            place: Slot::new(endpoint, offset),
            address: buffer + offset,
        }
    }

    /// Its length, its first word and the label of the channel, in one query.
    #[inline(always)]
    pub(crate) fn head(&self) -> (Start, u64) {
        let (length, word) = user::message_start(self.address);
        (Start { length, word }, user::message_label(self.address))
    }

    /// Its length and its first word.
    #[inline(always)]
    pub(crate) fn start(&self) -> Start {
        let (length, word) = user::message_start(self.address);
        Start { length, word }
    }

    /// Like [`reply`](Self::reply), with staged data.
    #[inline(always)]
    pub(crate) fn reply_staged(self, data: &[u8]) -> Result<()> {
        match self.place.reply_staged() {
            Ok(()) => {
                core::mem::forget(self);
                Ok(())
            }
            Err(_) => self.reply_again(data),
        }
    }

    #[cold]
    #[inline(never)]
    fn reply_again(self, data: &[u8]) -> Result<()> {
        self.reply(data)
    }

    /// The header that the DTU wrote.
    #[inline(always)]
    pub fn header(&self) -> &Header {
        user::message(self.address).0
    }

    /// The label of the channel (or, for a reply, the label given when sending).
    #[inline(always)]
    pub fn label(&self) -> u64 {
        self.header().label
    }

    /// The payload.
    #[inline(always)]
    pub fn payload(&self) -> &[u8] {
        user::message(self.address).1
    }

    /// The first eight bytes of the payload as a number, if it has as many.
    #[inline(always)]
    pub fn word(&self) -> Option<u64> {
        user::message_word(self.address)
    }

    /// The whole words of the payload.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        user::message_words(self.address)
    }

    /// The mark that the sender put on the message.
    pub(crate) fn mark(&self) -> Mark {
        let label = self.header().reply_label;
        let marked = |mark: &Mark| mark.label() == label;
        let known = [Mark::End, Mark::Place];
        known.into_iter().find(marked).unwrap_or(Mark::Plain)
    }

    /// The payload behind the first eight bytes.
    #[inline(always)]
    pub fn rest(&self) -> &[u8] {
        self.payload().get(8..).unwrap_or_default()
    }

    /// Replies, which frees the slot and gives the sender its credit back. The data must not cross a page.
    ///
    /// # Errors
    /// The DTU's error.
    #[inline(always)]
    pub fn reply(self, data: &[u8]) -> Result<()> {
        let result = repeat(data.as_ptr() as u64, TLB_READ, || self.place.reply(data));
        if result.is_ok() {
            core::mem::forget(self);
        }
        result
    }

    /// Like [`reply`](Self::reply), but if the sender has no room for the answer now, the message comes back, with the right to answer it later.
    ///
    /// # Errors
    /// The message. Any other refusal of the DTU is final: no sender waits for the answer any more.
    pub fn reply_or_keep(self, data: &[u8]) -> core::result::Result<(), Self> {
        let result = repeat(data.as_ptr() as u64, TLB_READ, || self.place.reply(data));
        match result {
            Ok(()) => core::mem::forget(self),
            Err(DtuError::NoSpace) => return Err(self),
            Err(_) => {}
        }
        Ok(())
    }

    /// Whether the sender still waits for an answer: it has not ended, and its endpoint for answers is as it was. Always true for a message
    /// without a right to reply, which says nothing about its sender. A server that keeps messages for a long time should ask now and then, because a
    /// kept message takes a slot from the next activity that has the sender's gate.
    pub fn is_awaited(&self) -> bool {
        // An empty reply has no effect, but the sender's unit says whether it would accept one.
        repeat(0, 0, || self.place.reply(&[])) != Err(DtuError::ReceiverGone)
    }

    /// Frees the slot without an answer, as a drop does, but at an explicit place.
    #[inline(always)]
    pub fn acknowledge(self) {
        while self.place.acknowledge() == Err(DtuError::Aborted) {}
        core::mem::forget(self);
    }

    /// Gives only the credit back, with an empty reply: for messages of [`SendGate::send`].
    ///
    /// # Errors
    /// The DTU's error.
    #[inline(always)]
    pub fn finish(self) -> Result<()> {
        static NOTHING: Aligned<[u8; 1]> = Aligned([0]);
        self.reply(&NOTHING.0)
    }
}

impl Drop for Message {
    #[inline(always)]
    fn drop(&mut self) {
        while self.place.acknowledge() == Err(DtuError::Aborted) {}
    }
}

/// Access to a region of memory by transfers of the DTU.
#[derive(Clone, Copy, Debug)]
pub struct MemoryGate {
    endpoint: u16,
    size: u64,
}

impl MemoryGate {
    /// The gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        match Self::find(name) {
            Some(gate) => gate,
            None => panic!("no <mgate name=\"{name}\"> in the description"),
        }
    }

    /// The gate of this name, if the description gives it.
    pub fn find(name: &str) -> Option<Self> {
        let entry = argument::gate(name, GateKind::Memory)?;
        Some(Self::new(entry.endpoint, entry.size))
    }

    /// A gate on an endpoint that the kernel gave to this activity.
    pub const fn new(endpoint: u16, size: u64) -> Self {
        Self { endpoint, size }
    }

    /// Number of the endpoint.
    pub fn endpoint(&self) -> u16 {
        self.endpoint
    }

    /// Bytes of the region.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads into a buffer in one page with one command, and runs a function until that is done. Returns every error of the unit, even one
    /// that a retry would avoid.
    #[inline(always)]
    pub(crate) fn read_once(
        &self,
        offset: u64,
        buffer: &mut [u8],
        meanwhile: impl FnOnce(),
    ) -> Result<()> {
        dtu::read_memory_while(self.endpoint, offset, buffer, meanwhile)
    }

    /// The same for writing.
    #[inline(always)]
    pub(crate) fn write_once(
        &self,
        offset: u64,
        data: &[u8],
        meanwhile: impl FnOnce(),
    ) -> Result<()> {
        dtu::write_memory_while(self.endpoint, offset, data, meanwhile)
    }

    /// Reads from `offset` on, in as many commands as the buffer has pages.
    ///
    /// # Errors
    /// The DTU's error; a part may have been read then.
    #[inline]
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let piece = to_page_end(buffer[done..].as_ptr() as u64, buffer.len() - done);
            let target = &mut buffer[done..done + piece];
            repeat(target.as_ptr() as u64, TLB_WRITE, || {
                dtu::read_memory(self.endpoint, offset + done as u64, target)
            })?;
            done += piece;
        }
        Ok(())
    }

    /// Writes from `offset` on, in as many commands as the data has pages.
    ///
    /// # Errors
    /// The DTU's error; a part may have been written then.
    #[inline]
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            let piece = to_page_end(data[done..].as_ptr() as u64, data.len() - done);
            let source = &data[done..done + piece];
            repeat(source.as_ptr() as u64, TLB_READ, || {
                dtu::write_memory(self.endpoint, offset + done as u64, source)
            })?;
            done += piece;
        }
        Ok(())
    }
}

/// Whether data is in one page.
#[inline(always)]
pub(crate) fn is_in_one_page(data: &[u8]) -> bool {
    to_page_end(data.as_ptr() as u64, data.len()) == data.len()
}

/// Bytes up to the end of the page, at most `length`.
#[inline(always)]
fn to_page_end(address: u64, length: usize) -> usize {
    length.min((PAGE_SIZE - address % PAGE_SIZE) as usize)
}

const _: () = assert!(HEADER_SIZE == size_of::<Header>());
