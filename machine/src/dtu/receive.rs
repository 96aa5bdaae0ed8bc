//! Incoming messages: assembles, queues and stores them one at a time.
//!
//! Why it exists: all senders to a tile share its receive unit, so their waits for each other are recorded here. It runs in parallel
//! with the tile's own commands. It trusts that other units are genuine, but not that what they say still holds.

use super::Dtu;
use super::device::DEVICE_TAG;
use super::endpoints::Reservation;
use super::env::{DtuEvent, DtuResource, Env, Observation};
use super::local::{JobId, Moves};
use super::transfer::flow;
use crate::ledger::Party;
use crate::noc::packet::{Packet, PacketKind};
use crate::types::{Tick, TileId};
use bulkhead_abi::dtu::{DtuError, Endpoint, MESSAGE_MAX, NO_ENDPOINT, TILEMUX_ACTIVITY};
use bulkhead_abi::message::{FLAG_REPLY, HEADER_SIZE, Header};
use std::collections::{BTreeMap, VecDeque};
use zerocopy::IntoBytes;

/// A complete message.
#[derive(Clone, Debug)]
struct Incoming {
    /// The packet that completed it, which will be answered.
    packet: Packet,
    endpoint: u16,
    credit_endpoint: u16,
    /// When the message left its sender's unit. For a reply: when the message that it answers left this unit.
    epoch: u64,
    header: Header,
    payload: Vec<u8>,
    arrived: Tick,
}

/// A message with parts still to come.
#[derive(Clone, Debug)]
struct Partial {
    flow: u64,
    payload: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Storing {
    incoming: Incoming,
    started: Tick,
    reservation: Option<Reservation>,
}

/// The receive unit's state. Its size is bounded by the number of tiles, because a unit sends one message at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiveUnit {
    partial: BTreeMap<TileId, Partial>,
    queue: VecDeque<Incoming>,
    storing: Option<Storing>,
}

impl Dtu {
    /// A packet of a message arrived.
    pub(super) fn message_packet<E: Env>(&mut self, env: &mut E, mut packet: Packet) {
        let PacketKind::Message {
            endpoint,
            header,
            offset,
            payload,
            credit_endpoint,
            epoch,
        } = &mut packet.kind
        else {
            return;
        };
        let (endpoint, header) = (*endpoint, *header);
        let answer = (*credit_endpoint, *epoch);
        let (offset, payload) = (usize::from(*offset), std::mem::take(payload));
        let length = usize::from(header.length);
        let flow = flow(packet.source, packet.tag);
        let end = offset + payload.len();
        let sane = end <= length
            && length + HEADER_SIZE <= MESSAGE_MAX
            && !payload.is_empty()
            && header.sender_tile == packet.source;
        let partial = &mut self.receive.partial;
        if offset == 0 {
            let payload = Vec::new();
            partial.insert(packet.source, Partial { flow, payload });
        }
        let known = partial
            .get_mut(&packet.source)
            .filter(|part| sane && part.flow == flow && part.payload.len() == offset);
        let Some(part) = known else {
            partial.remove(&packet.source);
            if end >= length {
                let (owner, epoch) = (packet.owner, answer.1);
                let asks = payload.is_empty() && header.flags & FLAG_REPLY != 0;
                let error = match asks && !self.endpoints.receives_since(endpoint, epoch) {
                    true => DtuError::ReceiverGone,
                    false => DtuError::BadSize,
                };
                self.answer(env, &packet, error);
                if asks {
                    env.observe(Observation::MessageRefused { flow, owner, error });
                }
            }
            return;
        };
        part.payload.extend_from_slice(&payload);
        if end < length {
            return;
        }
        let payload = std::mem::take(&mut part.payload);
        partial.remove(&packet.source);
        self.enqueue(env, packet, (endpoint, answer), header, payload);
    }

    /// A message is complete.
    pub(super) fn enqueue<E: Env>(
        &mut self,
        env: &mut E,
        packet: Packet,
        (endpoint, (credit_endpoint, epoch)): (u16, (u16, u64)),
        header: Header,
        payload: Vec<u8>,
    ) {
        self.receive.queue.push_back(Incoming {
            endpoint,
            credit_endpoint,
            epoch,
            header,
            payload,
            arrived: env.now(),
            packet,
        });
        self.look_at_next(env);
    }

    /// Starts with the oldest message if the unit is free.
    fn look_at_next<E: Env>(&mut self, env: &mut E) {
        if self.receive.storing.is_some() {
            return;
        }
        let Some(incoming) = self.receive.queue.pop_front() else {
            return;
        };
        let now = env.now();
        self.receive.storing = Some(Storing {
            incoming,
            started: now,
            reservation: None,
        });
        let at = now + self.config.receive * self.config.cycle;
        env.schedule(at, DtuEvent::Receive);
    }

    /// The header has been examined: chooses a slot and starts storing.
    pub(super) fn place_message<E: Env>(&mut self, env: &mut E) {
        let Some(storing) = &mut self.receive.storing else {
            return;
        };
        if storing.reservation.is_some() {
            return;
        }
        let owner = storing.incoming.packet.owner;
        let incoming = &storing.incoming;
        let payload = incoming.payload.len();
        let bytes = (payload + HEADER_SIZE) as u64;
        // A reply is for the endpoint as it was when the message left, and a device interrupt for the endpoint as it was when the
        // device interrupted.
        let is_local = incoming.packet.source == self.tile;
        let newest = match incoming.header.flags & FLAG_REPLY != 0 || is_local {
            true => incoming.epoch,
            false => u64::MAX,
        };
        let (endpoint, shares) = (incoming.endpoint, incoming.header.shares);
        let placed = self.endpoints.reserve(endpoint, payload, newest, shares);
        match placed {
            Err(error) => self.message_end(env, Err(error)),
            Ok(reservation) => {
                storing.reservation = Some(reservation);
                // The shares that the sender's gate has of the buffer are for the unit alone.
                let header = Header {
                    shares: 0,
                    ..incoming.header
                };
                let mut data = header.as_bytes().to_vec();
                data.extend_from_slice(&incoming.payload);
                if self.check_local(reservation.address, bytes, true).is_err() {
                    self.endpoints.cancel(&reservation);
                    return self.message_end(env, Err(DtuError::ReceiverGone));
                }
                let (at, moves) = (reservation.address, Moves::Write(data.into()));
                self.local
                    .start(env.now(), JobId::Receive, at, moves, owner);
            }
        }
    }

    /// Called before anything more is stored: the buffer may have been given away in the meantime, in which case nothing more is
    /// written.
    pub(super) fn look_at_storing<E: Env>(&mut self, env: &mut E) {
        let storing = self.receive.storing.as_ref();
        if let Some(reservation) = storing.and_then(|storing| storing.reservation)
            && !self.endpoints.holds(&reservation)
        {
            self.local.drop_message(env);
            self.message_end(env, Err(DtuError::ReceiverGone));
        }
    }

    /// The message is in the receive buffer, unless a window was closed meanwhile.
    pub(super) fn message_stored<E: Env>(&mut self, env: &mut E, refused: bool) {
        let Some(storing) = &self.receive.storing else {
            return;
        };
        let Some(reservation) = storing.reservation else {
            return;
        };
        let incoming = &storing.incoming;
        let (source, credit) = (incoming.packet.source, incoming.credit_endpoint);
        let epoch = incoming.epoch;
        let outcome = if !self.endpoints.holds(&reservation) {
            Err(DtuError::ReceiverGone)
        } else if refused {
            self.endpoints.cancel(&reservation);
            Err(DtuError::ReceiverGone)
        } else {
            self.endpoints.commit(&reservation, &incoming.header, epoch)
        };
        if let Ok(receiver) = outcome {
            if credit != NO_ENDPOINT {
                self.endpoints.accept_credit(credit, source, epoch);
            }
            self.note_request(env.now(), receiver);
        }
        self.message_end(env, outcome);
    }

    /// From now on, the ledger counts the message being stored as waiting for `receiver`.
    fn note_request(&mut self, now: Tick, receiver: u16) {
        let Some(Storing {
            incoming,
            reservation: Some(reservation),
            ..
        }) = &self.receive.storing
        else {
            return;
        };
        let is_request = incoming.header.flags & FLAG_REPLY == 0;
        if let Endpoint::Receive(buffer) = self.endpoints.get(reservation.endpoint)
            && is_request
        {
            if receiver == TILEMUX_ACTIVITY {
                self.asked_by = incoming.packet.asker;
                return;
            }
            let place = (reservation.endpoint, reservation.address - buffer.buffer);
            let sender = match is_of_device(&incoming.packet, self.tile) {
                true => Party::Device,
                false => Party::Activity(incoming.packet.owner),
            };
            self.requests.stored(now, place, receiver, sender);
        }
    }

    /// Answers the message, records how long others waited for it, tells the recipient, and continues with the next one.
    fn message_end<E: Env>(&mut self, env: &mut E, outcome: Result<u16, DtuError>) {
        let Some(storing) = self.receive.storing.take() else {
            return;
        };
        let (now, culprit) = (env.now(), storing.incoming.packet.owner);
        let mut packet = storing.incoming.packet;
        packet.account.service += now - storing.started;
        // The tile's own transfers may have been ahead of the message at the port to the caches.
        if let Some((from, until, owner)) = self.local.take_wait() {
            packet.account.service -= until - from;
            packet.account.waited += until - from;
            env.observe(Observation::Wait {
                victim: culprit,
                culprit: owner,
                resource: DtuResource::DtuReceive,
                from,
                until,
            });
        }
        for waiting in &mut self.receive.queue {
            let from = waiting.arrived.max(storing.started);
            if from < now {
                waiting.packet.account.waited += now - from;
                env.observe(Observation::Wait {
                    victim: waiting.packet.owner,
                    culprit,
                    resource: DtuResource::DtuReceive,
                    from,
                    until: now,
                });
            }
        }
        let endpoint = storing.incoming.endpoint;
        let flow = flow(packet.source, packet.tag);
        self.answer(env, &packet, outcome.err().unwrap_or(DtuError::None));
        match outcome {
            Ok(activity) => {
                env.observe(Observation::MessageStored {
                    flow,
                    owner: culprit,
                    endpoint,
                    activity,
                    bytes: (storing.incoming.payload.len() + HEADER_SIZE) as u32,
                });
                self.notify(env, endpoint, activity);
            }
            Err(error) => env.observe(Observation::MessageRefused {
                flow,
                owner: culprit,
                error,
            }),
        }
        self.look_at_next(env);
    }

    fn answer<E: Env>(&mut self, env: &mut E, packet: &Packet, error: DtuError) {
        if is_of_device(packet, self.tile) {
            return;
        }
        let error = error as u8;
        env.send(packet.response(PacketKind::MessageResponse { error }));
    }

    /// Wakes the recipient if it is running; otherwise tells TileMux.
    fn notify<E: Env>(&mut self, env: &mut E, endpoint: u16, activity: u16) {
        if activity == self.activity {
            if let Some(wanted) = self.sleeping()
                && (wanted == NO_ENDPOINT || wanted == endpoint)
            {
                self.end_sleep(env, DtuError::None);
            }
        } else {
            self.endpoints.announce(endpoint);
            self.request_core(env);
        }
    }
}

/// Whether the tile's device sent this.
fn is_of_device(packet: &Packet, tile: TileId) -> bool {
    packet.tag == DEVICE_TAG && packet.source == tile
}
