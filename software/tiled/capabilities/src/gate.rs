//! Gates, services, sessions, and the endpoints on which they become active.
//!
//! Why it exists: credits come from slots, endpoints from the quota of a tile. What it deliberately does not know: how an
//! endpoint is written.

use crate::node::{EXTRA2, NO_SELECTOR, NodeId, State};
use crate::object::{Line, Object, Quota, Receive, Service};
use crate::space::{HolderId, Plan, Space};
use crate::{Error, Result};
use bulkhead_abi::dtu::{MESSAGE_MAX, SLOTS_MAX, UNLIMITED_CREDITS};

/// The quota of a tile that this many endpoints take: none of them is a window.
pub(crate) fn quota_of(count: u16) -> (Quota, u64) {
    match count {
        0 => (Quota::Windows, 1),
        count => (Quota::Endpoints, count.into()),
    }
}

impl Space {
    fn receive(&self, id: NodeId) -> Result<Receive> {
        match *self.object(id) {
            Object::Receive(receive) => Ok(receive),
            _ => Err(Error::WrongKind),
        }
    }

    /// Creates a gate that can receive `slots` messages.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if a unit does not allow as many slots, or slots of this size, and the errors that every operation has for its operands.
    pub fn create_receive(
        &mut self,
        caller: HolderId,
        target: u16,
        slots: u8,
        slot_size: u16,
    ) -> Result<NodeId> {
        let valid = slot_size.is_multiple_of(64)
            && (64..=MESSAGE_MAX).contains(&slot_size.into())
            && (1..=SLOTS_MAX).contains(&slots.into());
        if !valid {
            return Err(Error::OutOfBounds);
        }
        let object = Object::Receive(Receive {
            slots,
            slot_size,
            free: u32::MAX >> (u32::BITS - u32::from(slots)),
            next: 1,
            place: None,
            senders: 0,
            departed: 0,
            active: NodeId::NONE,
        });
        self.make(Plan::own(caller, NodeId::NONE, target, object))
    }

    /// Creates a gate that sends to a receive gate, with credits for some of its slots. With [`UNLIMITED_CREDITS`] it takes none, and may
    /// fill the buffer together with other senders' messages: the receiver's holder decides whether to allow that.
    ///
    /// # Errors
    /// [`Error::NoCredits`] if the slots do not suffice, [`Error::OutOfBounds`] without credits, and the errors that every operation has
    /// for its operands.
    pub fn create_send(
        &mut self,
        caller: HolderId,
        receive: u16,
        target: u16,
        label: u64,
        credits: u8,
    ) -> Result<NodeId> {
        let origin = self.find(caller, receive)?;
        self.receive(origin)?;
        if credits == 0 {
            return Err(Error::OutOfBounds);
        }
        // Unlimited credits take no slots.
        let slots = credits % UNLIMITED_CREDITS;
        let gate = Object::Send { label, shares: 0 };
        self.behind(caller, origin, target, slots, gate)
    }

    /// Creates something that takes shares of a receive gate's slots. The next ones come first: one that was given back a moment ago may
    /// still belong to a message.
    fn behind(
        &mut self,
        caller: HolderId,
        receive: NodeId,
        target: u16,
        slots: u8,
        mut object: Object,
    ) -> Result<NodeId> {
        let mut gate = self.receive(receive)?;
        if gate.free.count_ones() < slots.into() {
            return Err(Error::NoCredits);
        }
        if let Object::Send { shares, .. } | Object::Service(Service { shares, .. }) = &mut object {
            while shares.count_ones() < slots.into() {
                *shares |= gate.free & gate.next;
                gate.next = gate.next.rotate_left(1);
            }
            gate.free &= !*shares;
        }
        let id = self.make(Plan::own(caller, receive, target, object))?;
        *self.object_mut(receive) = Object::Receive(gate);
        Ok(id)
    }

    /// Creates a service. The kernel asks its server through a receive gate of the caller, using one of its slots.
    ///
    /// # Errors
    /// [`Error::NoCredits`] without a slot, and the errors that every operation has for its operands.
    pub fn create_service(
        &mut self,
        caller: HolderId,
        receive: u16,
        target: u16,
    ) -> Result<NodeId> {
        let origin = self.find(caller, receive)?;
        let service = Object::Service(Service::default());
        self.behind(caller, origin, target, 1, service)
    }

    /// What took the last shares of a receive gate was discarded: its next ones are again those of `before`.
    pub fn go_back(&mut self, receive: NodeId, before: &Receive) {
        if let Object::Receive(gate) = self.object_mut(receive) {
            gate.next = before.next;
        }
    }

    /// What the kernel keeps of a service, if this is a living service.
    pub fn offer(&mut self, service: NodeId) -> Option<&mut Service> {
        let node = self.nodes.get_mut(service.index())?;
        match &mut node.object {
            Object::Service(offer) if node.state == State::Alive => Some(offer),
            _ => None,
        }
    }

    /// The activities that wait for a semaphore or for a server's answer.
    pub fn line(&mut self, owner: NodeId) -> Option<&mut Line> {
        match &mut self.nodes.get_mut(owner.index())?.object {
            Object::Service(offer) => Some(&mut offer.waiting),
            Object::Semaphore { waiting, .. } => Some(waiting),
            _ => None,
        }
    }

    /// The node that owns the service that a selector names.
    ///
    /// # Errors
    /// The errors that every operation has for its operands.
    pub fn service(&self, caller: HolderId, selector: u16) -> Result<NodeId> {
        let (id, object) = self.look(caller, selector)?;
        match object {
            Object::Service(_) => Ok(self.owner(id)),
            _ => Err(Error::WrongKind),
        }
    }

    /// The service of the session that a selector names, and the server's number for it.
    ///
    /// # Errors
    /// The errors that every operation has for its operands.
    pub fn session(&self, caller: HolderId, selector: u16) -> Result<(NodeId, u64)> {
        let (id, object) = self.look(caller, selector)?;
        let Object::Session { ident } = *object else {
            return Err(Error::WrongKind);
        };
        let service = self.origin(self.owner(id)).ok_or(Error::WrongKind)?;
        Ok((self.owner(service), ident))
    }

    /// Creates a session with a service that the caller holds, once the server has agreed.
    ///
    /// # Errors
    /// The errors that every operation has for its operands.
    pub fn create_session(
        &mut self,
        caller: HolderId,
        service: u16,
        target: u16,
        ident: u64,
    ) -> Result<NodeId> {
        let origin = self.find(caller, service)?;
        if !matches!(self.object(origin), Object::Service(_)) {
            return Err(Error::WrongKind);
        }
        self.make(Plan::own(caller, origin, target, Object::Session { ident }))
    }

    /// Checks that a selector of a holder is free and that the holder lives.
    ///
    /// # Errors
    /// [`Error::SelectorTaken`], [`Error::NoHolder`].
    pub fn is_free(&self, holder: HolderId, selector: u16) -> Result<()> {
        match selector {
            NO_SELECTOR => Err(Error::SelectorTaken),
            selector => self.check_selector(holder, selector),
        }
    }

    /// The receive gate that a send gate, or a copy of one, leads to.
    pub(crate) fn leads_to(&mut self, send: NodeId) -> Option<&mut Receive> {
        if !matches!(self.object(send), Object::Send { .. }) {
            return None;
        }
        let receive = self.origin(self.owner(send))?;
        match self.object_mut(receive) {
            Object::Receive(gate) => Some(gate),
            _ => None,
        }
    }

    /// The activity that receives what comes through a send gate, if the receiver is active and no endpoint leads to it any more.
    pub fn bereaved(&self, send: NodeId) -> Option<HolderId> {
        let (gate, _) = self.receiver(send)?;
        (gate.senders == 0).then(|| self.holder_of(gate.active))
    }

    /// Where the receiver of a send gate is active.
    pub fn receiver(&self, send: NodeId) -> Option<(Receive, (u16, u16))> {
        let receive = self.origin(self.owner(send))?;
        let gate = self.receive(receive).ok()?;
        Some((gate, gate.place?))
    }

    /// Activates a gate or memory for an activity on `count` endpoints of its tile, starting at `endpoint`, at the expense of the quota of
    /// its tile capability. `buffer` is the memory that a receive gate writes to. The caller configures the endpoints after this succeeds,
    /// and not any more once the node is removed.
    ///
    /// # Errors
    /// [`Error::NoQuota`] without that many endpoints, [`Error::WrongState`] for a receive gate that is active already or a send gate whose
    /// receiver is not, and the errors that every operation has for its operands.
    pub fn activate(
        &mut self,
        caller: HolderId,
        gate: u16,
        activity: HolderId,
        (endpoint, count): (u16, u16),
        buffer: Option<NodeId>,
    ) -> Result<NodeId> {
        let origin = self.find(caller, gate)?;
        // What it needs to live: a receiver needs its buffer; a sender needs the endpoint that it leads to, because that endpoint number
        // may later belong to another activity.
        let needed = match (self.object(origin), buffer) {
            (Object::Memory(_), _) => NodeId::NONE,
            (Object::Send { .. }, _) => match self.receiver(origin) {
                Some((receive, _)) => receive.active,
                None => return Err(Error::WrongState),
            },
            (Object::Receive(gate), Some(buffer)) if gate.place.is_none() => buffer,
            (Object::Receive(_), _) => return Err(Error::WrongState),
            _ => return Err(Error::WrongKind),
        };
        let tile = self.tile_of(activity)?;
        let extra = [tile, needed];
        let id = self.endpoint(caller, origin, activity, extra, (endpoint, count))?;
        let place = self.tile(tile)?.tile;
        if let Object::Receive(gate) = self.object_mut(origin) {
            gate.place = Some((place, endpoint));
            gate.active = id;
        } else if let Some(gate) = self.leads_to(origin) {
            gate.senders += 1;
        }
        Ok(id)
    }

    /// Whether a sending endpoint leads nowhere because its receiver is gone. Its number and its quota stay with its activity until its
    /// gate, the activity or its tile capability goes.
    pub fn is_disconnected(&self, id: NodeId) -> bool {
        let gate = self.origin(id).map(|gate| self.object(gate));
        matches!(gate, Some(Object::Send { .. }))
            && !self.nodes[id.index()].edges[EXTRA2].to.is_some()
    }

    /// Connects a disconnected endpoint to the receiver that is active now. The caller configures it after this succeeds.
    ///
    /// # Errors
    /// [`Error::WrongState`] if it is connected or the receiver is not active, [`Error::Revoked`] if the receiver or something that the
    /// endpoint depends on is being revoked.
    pub fn connect(&mut self, id: NodeId) -> Result<()> {
        let gate = self.origin(id).filter(|_| self.is_disconnected(id));
        let gate = gate.ok_or(Error::WrongState)?;
        let (receive, _) = self.receiver(gate).ok_or(Error::WrongState)?;
        if !self.is_live(id) || self.nodes[receive.active.index()].state != State::Alive {
            return Err(Error::Revoked);
        }
        // The node is born again, because a node may depend only on older ones.
        self.births += 1;
        self.nodes[id.index()].birth = self.births;
        self.link(id, EXTRA2, receive.active);
        if let Some(gate) = self.leads_to(gate) {
            gate.senders += 1;
        }
        Ok(())
    }

    /// Creates endpoints of an activity that depend on `origin`, out of the quota of the tile capability that comes first in `extra`.
    fn endpoint(
        &mut self,
        payer: HolderId,
        origin: NodeId,
        holder: HolderId,
        extra: [NodeId; 2],
        (endpoint, count): (u16, u16),
    ) -> Result<NodeId> {
        let (quota, amount) = quota_of(count);
        let rest = self.afford(extra[0], quota, amount)?;
        let active = Object::Endpoint {
            tile: self.tile(extra[0])?.tile,
            endpoint,
            count,
        };
        let id = self.make(Plan {
            extra,
            payer,
            ..Plan::own(holder, origin, NO_SELECTOR, active)
        })?;
        self.spend(quota, rest);
        Ok(id)
    }

    /// Creates endpoints that an activity has as long as it lives: its channel to the kernel.
    ///
    /// # Errors
    /// [`Error::NoQuota`] without that many endpoints, and the errors that every operation has for its operands.
    pub fn channel(
        &mut self,
        payer: HolderId,
        activity: HolderId,
        place: (u16, u16),
    ) -> Result<NodeId> {
        let tile = self.tile_of(activity)?;
        let node = self.holders[usize::from(activity.0)].node;
        self.endpoint(payer, node, activity, [tile, NodeId::NONE], place)
    }

    /// Makes memory visible to a tile through one of its windows, out of the quota of the tile capability. The window exists as long as the
    /// memory and the tile capability do.
    ///
    /// # Errors
    /// [`Error::NoQuota`] without a window, and the errors that every operation has for its operands.
    pub fn show(
        &mut self,
        caller: HolderId,
        memory: u16,
        tile: u16,
        window: u16,
    ) -> Result<NodeId> {
        let origin = self.find(caller, memory)?;
        self.memory(origin)?;
        let tile = self.find(caller, tile)?;
        self.endpoint(caller, origin, caller, [tile, NodeId::NONE], (window, 0))
    }
}
