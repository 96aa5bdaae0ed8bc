//! The endpoint file: rights, credits, receive slots and rights to reply.
//!
//! Why it exists: everything that a tile may do to others is state in this file, so its rules are in one place and are tested against a
//! simple model. It does not know time, packets or commands, and it never writes memory.

use crate::types::TileId;
use bulkhead_abi::dtu::{
    DtuError, ENDPOINT_WORDS, Endpoint, MESSAGE_MAX, NO_ENDPOINT, ReceiveEndpoint, SLOTS_MAX,
    SendEndpoint, UNLIMITED_CREDITS,
};
use bulkhead_abi::message::{FLAG_REPLY, HEADER_SIZE, Header};

/// The unit's knowledge of an endpoint besides its registers.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    /// The unit's epoch when it was last configured, so that nothing begun earlier can complete afterwards.
    configured: u64,
    /// Slot where the search for a free slot begins. It rotates like the fetch position so that messages keep their order.
    write_position: u8,
    /// A message arrived while its activity was not running, and TileMux has not been told yet.
    announce: bool,
    /// Slots reserved for messages that are still being stored.
    storing: u32,
}

/// The shares of gates that messages at a receive endpoint have. They are separate from [`Side`], which is searched often.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    /// A bit for each share that a message has.
    taken: u32,
    /// The share of the message in each slot, as a number, if its gate has shares.
    of: [Option<u8>; SLOTS_MAX],
}

impl Shares {
    /// The first free one of these shares.
    fn free_of(&self, shares: u32) -> Option<u8> {
        let free = shares & !self.taken;
        (free != 0).then_some(free.trailing_zeros() as u8)
    }

    fn take(&mut self, slot: u8, share: Option<u8>) {
        self.taken |= share.map_or(0, |share| 1 << share);
        self.of[usize::from(slot)] = share;
    }

    fn give_back(&mut self, slot: u8) {
        let share = self.of[usize::from(slot)].take();
        self.taken &= !share.map_or(0, |share| 1 << share);
    }
}

/// A slot chosen for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The receive endpoint.
    pub endpoint: u16,
    /// The slot.
    pub slot: u8,
    /// Tile-physical address of the slot.
    pub address: u64,
    generation: u64,
}

/// A right to reply that may be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyRight {
    /// Where the reply goes.
    pub send: SendEndpoint,
    receive: u16,
    slot: u8,
    generation: u64,
}

/// Where an endpoint leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The tile.
    pub tile: TileId,
    /// Only messages can take this way.
    pub messages: bool,
}

/// Where an endpoint leads to.
fn target(words: &[u64; ENDPOINT_WORDS]) -> Option<Way> {
    let (tile, messages) = match Endpoint::unpack(*words) {
        Endpoint::Send(send) => (send.target_tile, true),
        Endpoint::Memory(memory) => (memory.target_tile, false),
        Endpoint::Receive(_) | Endpoint::Invalid => return None,
    };
    Some(Way { tile, messages })
}

/// All endpoints of a unit.
#[derive(Clone, Debug)]
pub struct EndpointFile {
    /// Counts the configurations of all endpoints. At one per nanosecond it would wrap after 584 years.
    epoch: u64,
    /// Counts the changes of where endpoints lead.
    led_elsewhere: u64,
    words: Vec<[u64; ENDPOINT_WORDS]>,
    side: Vec<Side>,
    shares: Vec<Shares>,
}

impl EndpointFile {
    /// `count` invalid endpoints.
    pub fn new(count: u16) -> Self {
        Self {
            epoch: 0,
            led_elsewhere: 0,
            words: vec![[0; ENDPOINT_WORDS]; count.into()],
            side: vec![Side::default(); count.into()],
            shares: vec![Shares::default(); count.into()],
        }
    }

    /// Number of endpoints.
    pub fn len(&self) -> u16 {
        self.words.len() as u16
    }

    /// The value of an endpoint register as read; 0 outside the file.
    pub fn word(&self, index: u16, word: usize) -> u64 {
        self.words
            .get(usize::from(index))
            .and_then(|words| words.get(word))
            .copied()
            .unwrap_or(0)
    }

    /// Writes one register. Forgets everything the unit remembered of the endpoint. False outside the file.
    pub fn set_word(&mut self, index: u16, word: usize, value: u64) -> bool {
        let Some(words) = self.words.get_mut(usize::from(index)) else {
            return false;
        };
        let old = target(words);
        if let Some(register) = words.get_mut(word) {
            *register = value;
        }
        self.led_elsewhere += u64::from(target(words) != old);
        self.configured(index);
        true
    }

    /// Writes all registers of an endpoint. False outside the file.
    pub fn set(&mut self, index: u16, endpoint: Endpoint) -> bool {
        let Some(words) = self.words.get_mut(usize::from(index)) else {
            return false;
        };
        let old = target(words);
        *words = endpoint.pack();
        self.led_elsewhere += u64::from(target(words) != old);
        self.configured(index);
        true
    }

    /// Makes an endpoint invalid, with its unread messages and rights to reply.
    pub fn invalidate(&mut self, index: u16) -> bool {
        if let Endpoint::Receive(receive) = self.get(index) {
            for slot in 0..receive.slots {
                self.clear_right(&receive, slot);
            }
        }
        self.set(index, Endpoint::Invalid)
    }

    fn configured(&mut self, index: u16) {
        self.epoch += 1;
        self.side[usize::from(index)] = Side {
            configured: self.epoch,
            ..Side::default()
        };
        self.shares[usize::from(index)] = Shares::default();
    }

    /// The number of endpoint configurations so far. A message carries its sender's epoch, and the reply returns it: an endpoint that was
    /// configured since then is not the one that the message left from.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The epoch when the endpoint was last configured: it changes with every configuration and never repeats.
    pub fn generation(&self, index: u16) -> u64 {
        self.side
            .get(usize::from(index))
            .map_or(0, |side| side.configured)
    }

    /// The endpoint; invalid outside the file, or if the registers of a receive endpoint make no sense.
    pub fn get(&self, index: u16) -> Endpoint {
        let Some(&words) = self.words.get(usize::from(index)) else {
            return Endpoint::Invalid;
        };
        match Endpoint::unpack(words) {
            Endpoint::Receive(mut receive) => {
                let slots = usize::from(receive.slots);
                let slot_size = usize::from(receive.slot_size);
                let bytes = (slots * slot_size) as u64;
                if !(1..=SLOTS_MAX).contains(&slots)
                    || !(64..=MESSAGE_MAX).contains(&slot_size)
                    || slot_size % 64 != 0
                    || receive.buffer % 64 != 0
                    || receive.buffer.checked_add(bytes).is_none()
                {
                    return Endpoint::Invalid;
                }
                let all = u32::MAX >> (32 - slots);
                receive.occupied &= all;
                receive.unread &= receive.occupied;
                receive.position %= receive.slots;
                Endpoint::Receive(receive)
            }
            other => other,
        }
    }

    /// Stores a changed endpoint without counting this as a configuration.
    fn update(&mut self, index: u16, endpoint: Endpoint) {
        if let Some(words) = self.words.get_mut(usize::from(index)) {
            let old = target(words);
            *words = endpoint.pack();
            self.led_elsewhere += u64::from(target(words) != old);
        }
    }

    /// Changes whenever [`Self::targets`] changes.
    pub fn led_elsewhere(&self) -> u64 {
        self.led_elsewhere
    }

    /// Where endpoints lead to, one for each of them: receivers, senders that may be answered, and memories.
    pub fn targets(&self) -> impl Iterator<Item = Way> {
        self.words.iter().filter_map(target)
    }

    fn receive_of(&self, index: u16, activity: u16) -> Result<ReceiveEndpoint, DtuError> {
        match self.get(index) {
            Endpoint::Receive(r) if r.activity == activity => Ok(r),
            Endpoint::Receive(_) => Err(DtuError::ForeignEndpoint),
            _ => Err(DtuError::InvalidEndpoint),
        }
    }

    /// Checks that the endpoint is a receive endpoint of the activity.
    ///
    /// # Errors
    /// [`DtuError::InvalidEndpoint`] or [`DtuError::ForeignEndpoint`].
    pub fn check_receive(&self, index: u16, activity: u16) -> Result<(), DtuError> {
        self.receive_of(index, activity).map(|_| ())
    }

    /// Takes a credit for a message with `payload` bytes.
    ///
    /// # Errors
    /// The reason why the activity may not send; the file is then unchanged.
    pub fn take_credit(
        &mut self,
        index: u16,
        activity: u16,
        payload: u64,
    ) -> Result<SendEndpoint, DtuError> {
        let Endpoint::Send(mut send) = self.get(index) else {
            return Err(DtuError::InvalidEndpoint);
        };
        if send.activity != activity {
            return Err(DtuError::ForeignEndpoint);
        }
        // Only the reply command spends a right to reply, together with its message.
        if send.reply {
            return Err(DtuError::InvalidEndpoint);
        }
        if payload.saturating_add(HEADER_SIZE as u64) > u64::from(send.message_size) {
            return Err(DtuError::BadSize);
        }
        if send.credits_max != UNLIMITED_CREDITS {
            if send.credits == 0 {
                return Err(DtuError::NoCredits);
            }
            send.credits -= 1;
            self.update(index, Endpoint::Send(send));
        }
        Ok(send)
    }

    /// Returns a credit to the sender of a message that was not delivered, unless the endpoint was reconfigured.
    pub fn restore_credit(&mut self, index: u16, generation: u64) {
        if self.generation(index) == generation
            && let Endpoint::Send(mut send) = self.get(index)
            && send.credits_max != UNLIMITED_CREDITS
            && send.credits < send.credits_max
        {
            send.credits += 1;
            self.update(index, Endpoint::Send(send));
        }
    }

    /// Returns a credit that came with a reply from `tile` to a message that left at `epoch`. Ignored if the endpoint was configured
    /// since then or does not lead to that tile, so a late reply cannot feed a newer channel.
    pub fn accept_credit(&mut self, index: u16, tile: u16, epoch: u64) {
        if let Endpoint::Send(send) = self.get(index)
            && !send.reply
            && send.target_tile == tile
            && self.generation(index) <= epoch
        {
            self.restore_credit(index, self.generation(index));
        }
    }

    /// Reserves a free slot for a message of `payload` bytes addressed to the endpoint as it was at `epoch`, and one of the `shares` of
    /// its gate, if it has shares.
    ///
    /// # Errors
    /// [`DtuError::ReceiverGone`], also if the endpoint was configured since, [`DtuError::BadSize`], or [`DtuError::NoSpace`], also if
    /// other messages have all shares of the gate.
    pub fn reserve(
        &mut self,
        index: u16,
        payload: usize,
        epoch: u64,
        shares: u32,
    ) -> Result<Reservation, DtuError> {
        let Endpoint::Receive(mut receive) = self.get(index) else {
            return Err(DtuError::ReceiverGone);
        };
        if !self.receives_since(index, epoch) {
            return Err(DtuError::ReceiverGone);
        }
        if payload + HEADER_SIZE > usize::from(receive.slot_size) {
            return Err(DtuError::BadSize);
        }
        let taken = &mut self.shares[usize::from(index)];
        let share = match shares {
            0 => None,
            shares => Some(taken.free_of(shares).ok_or(DtuError::NoSpace)?),
        };
        let side = &mut self.side[usize::from(index)];
        let slot = (0..receive.slots)
            .map(|i| (side.write_position + i) % receive.slots)
            .find(|slot| receive.occupied >> slot & 1 == 0)
            .ok_or(DtuError::NoSpace)?;
        taken.take(slot, share);
        side.write_position = (slot + 1) % receive.slots;
        side.storing |= 1 << slot;
        let reservation = Reservation {
            endpoint: index,
            slot,
            address: receive.buffer + u64::from(slot) * u64::from(receive.slot_size),
            generation: side.configured,
        };
        receive.occupied |= 1 << slot;
        self.update(index, Endpoint::Receive(receive));
        Ok(reservation)
    }

    /// Whether an endpoint receives, and has not been configured since `epoch`.
    pub fn receives_since(&self, index: u16, epoch: u64) -> bool {
        matches!(self.get(index), Endpoint::Receive(_)) && self.generation(index) <= epoch
    }

    /// Makes a stored message visible and its right to reply usable. The message left its sender's unit at `epoch`. Returns the
    /// recipient.
    ///
    /// # Errors
    /// [`DtuError::ReceiverGone`] if the endpoint was reconfigured in the meantime.
    pub fn commit(
        &mut self,
        reservation: &Reservation,
        header: &Header,
        epoch: u64,
    ) -> Result<u16, DtuError> {
        let Reservation { endpoint, slot, .. } = *reservation;
        let Endpoint::Receive(mut receive) = self.get(endpoint) else {
            return Err(DtuError::ReceiverGone);
        };
        if !self.holds(reservation) {
            return Err(DtuError::ReceiverGone);
        }
        self.side[usize::from(endpoint)].storing &= !(1 << slot);
        receive.unread |= 1 << slot;
        self.update(endpoint, Endpoint::Receive(receive));
        self.clear_right(&receive, slot);
        let wanted = header.flags & FLAG_REPLY == 0 && header.reply_endpoint != NO_ENDPOINT;
        if wanted && let Some(index) = self.right_index(&receive, slot) {
            let right = SendEndpoint {
                activity: receive.activity,
                target_tile: header.sender_tile,
                target_endpoint: header.reply_endpoint,
                label: header.reply_label,
                credits: 1,
                credits_max: 1,
                message_size: MESSAGE_MAX as u16,
                credit_endpoint: header.sender_endpoint,
                reply: true,
                shares: 0,
                epoch,
            };
            self.update(index, Endpoint::Send(right));
        }
        Ok(receive.activity)
    }

    /// Whether the slot is still reserved, that is, the endpoint was not reconfigured.
    pub fn holds(&self, reservation: &Reservation) -> bool {
        self.generation(reservation.endpoint) == reservation.generation
    }

    /// Frees a slot whose message could not be stored.
    pub fn cancel(&mut self, reservation: &Reservation) {
        if self.generation(reservation.endpoint) == reservation.generation {
            self.side[usize::from(reservation.endpoint)].storing &= !(1 << reservation.slot);
            self.free(reservation.endpoint, reservation.slot);
        }
    }

    /// The endpoint that holds the right to reply to the message in this slot. Only an invalid endpoint or an old right is ever used, so
    /// a wrong configuration cannot overwrite other rights.
    fn right_index(&self, receive: &ReceiveEndpoint, slot: u8) -> Option<u16> {
        if receive.reply_endpoints == NO_ENDPOINT {
            return None;
        }
        let index = receive.reply_endpoints.checked_add(slot.into())?;
        let usable = match self.get(index) {
            Endpoint::Invalid => true,
            Endpoint::Send(send) => send.reply,
            _ => false,
        };
        (index < self.len() && usable).then_some(index)
    }

    fn clear_right(&mut self, receive: &ReceiveEndpoint, slot: u8) {
        if let Some(index) = self.right_index(receive, slot) {
            self.update(index, Endpoint::Invalid);
        }
    }

    fn free(&mut self, index: u16, slot: u8) {
        if let Endpoint::Receive(mut receive) = self.get(index) {
            receive.occupied &= !(1 << slot);
            receive.unread &= !(1 << slot);
            self.update(index, Endpoint::Receive(receive));
            self.shares[usize::from(index)].give_back(slot);
            self.clear_right(&receive, slot);
        }
    }

    /// Fetches the next unread message. Returns its offset in the buffer.
    ///
    /// # Errors
    /// [`DtuError::InvalidEndpoint`] or [`DtuError::ForeignEndpoint`].
    pub fn fetch(&mut self, index: u16, activity: u16) -> Result<Option<u64>, DtuError> {
        let mut receive = self.receive_of(index, activity)?;
        let slot = (0..receive.slots)
            .map(|i| (receive.position + i) % receive.slots)
            .find(|slot| receive.unread >> slot & 1 != 0);
        if let Some(slot) = slot {
            receive.unread &= !(1 << slot);
            receive.position = (slot + 1) % receive.slots;
            self.update(index, Endpoint::Receive(receive));
        }
        Ok(slot.map(|slot| u64::from(slot) * u64::from(receive.slot_size)))
    }

    /// The slot of a fetched message.
    fn fetched(
        &self,
        index: u16,
        activity: u16,
        offset: u64,
    ) -> Result<(ReceiveEndpoint, u8), DtuError> {
        let receive = self.receive_of(index, activity)?;
        let size = u64::from(receive.slot_size);
        let slot = offset / size;
        if !offset.is_multiple_of(size) || slot >= u64::from(receive.slots) {
            return Err(DtuError::BadMessage);
        }
        let held = receive.occupied & !receive.unread & !self.side[usize::from(index)].storing;
        if held >> slot & 1 == 0 {
            return Err(DtuError::BadMessage);
        }
        Ok((receive, slot as u8))
    }

    /// Frees the slot of a fetched message and drops its right to reply.
    ///
    /// # Errors
    /// [`DtuError::InvalidEndpoint`], [`DtuError::ForeignEndpoint`] or [`DtuError::BadMessage`].
    pub fn acknowledge(&mut self, index: u16, activity: u16, offset: u64) -> Result<(), DtuError> {
        let (_, slot) = self.fetched(index, activity, offset)?;
        self.free(index, slot);
        Ok(())
    }

    /// The right to reply to a fetched message.
    ///
    /// # Errors
    /// Those of [`Self::acknowledge`], [`DtuError::NoReply`] and [`DtuError::BadSize`].
    pub fn reply_right(
        &self,
        index: u16,
        activity: u16,
        offset: u64,
        payload: u64,
    ) -> Result<ReplyRight, DtuError> {
        let (receive, slot) = self.fetched(index, activity, offset)?;
        let place = self.right_index(&receive, slot);
        let place = place.ok_or(DtuError::NoReply)?;
        match self.get(place) {
            Endpoint::Send(send) if send.credits != 0 => {
                if payload.saturating_add(HEADER_SIZE as u64) > u64::from(send.message_size) {
                    return Err(DtuError::BadSize);
                }
                Ok(ReplyRight {
                    send,
                    receive: index,
                    slot,
                    generation: self.generation(index),
                })
            }
            _ => Err(DtuError::NoReply),
        }
    }

    /// Whether the receive endpoint that gave the right has not been reconfigured.
    pub fn is_current(&self, right: &ReplyRight) -> bool {
        self.generation(right.receive) == right.generation
    }

    /// Uses up a right whose reply was delivered, and frees the message.
    pub fn finish_reply(&mut self, right: &ReplyRight) {
        if self.generation(right.receive) == right.generation {
            self.free(right.receive, right.slot);
        }
    }

    /// Unread messages of an activity.
    pub fn unread_of(&self, activity: u16) -> u16 {
        let count = |index| match self.get(index) {
            Endpoint::Receive(r) if r.activity == activity => r.unread.count_ones(),
            _ => 0,
        };
        let sum: u32 = (0..self.len()).map(count).sum();
        sum.min(u16::MAX.into()) as u16
    }

    /// Whether the endpoint has unread messages.
    pub fn has_unread(&self, index: u16) -> bool {
        matches!(self.get(index), Endpoint::Receive(r) if r.unread != 0)
    }

    /// Notes that TileMux must be told about a message of this endpoint.
    pub fn announce(&mut self, index: u16) {
        if let Some(side) = self.side.get_mut(usize::from(index)) {
            side.announce = true;
        }
    }

    /// The next endpoint to tell TileMux about, searching cyclically from `start`, and its activity. Endpoints of the current activity
    /// and those without unread messages are dropped for good; those that may not interrupt are skipped for now.
    pub fn next_announcement(
        &mut self,
        start: u16,
        current: u16,
        may_interrupt: impl Fn(u16, u16) -> bool,
    ) -> Option<(u16, u16)> {
        let count = self.len();
        for index in
            (0..count).map(|i| ((u32::from(start) + u32::from(i)) % u32::from(count)) as u16)
        {
            if !self.side[usize::from(index)].announce {
                continue;
            }
            let found = match self.get(index) {
                Endpoint::Receive(r) if r.unread != 0 && r.activity != current => Some(r.activity),
                _ => None,
            };
            if found.is_some_and(|activity| !may_interrupt(activity, index)) {
                continue;
            }
            self.side[usize::from(index)].announce = false;
            if let Some(activity) = found {
                return Some((index, activity));
            }
        }
        None
    }

    /// Drops announcements for an activity that becomes current, because it sees its messages itself.
    pub fn silence(&mut self, activity: u16) {
        for index in 0..self.len() {
            if self.side[usize::from(index)].announce
                && matches!(self.get(index), Endpoint::Receive(r) if r.activity == activity)
            {
                self.side[usize::from(index)].announce = false;
            }
        }
    }
}
