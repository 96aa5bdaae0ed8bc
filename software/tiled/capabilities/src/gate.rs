//! Gates, services, sessions, and the endpoints that they are made active on.
//!
//! Why it exists: credits come from slots, endpoints from the quota of a tile. What it deliberately does not know: how an
//! endpoint is written.

use crate::node::{NO_SELECTOR, NodeId};
use crate::object::{Object, Quota, Receive};
use crate::resource::take;
use crate::space::{HolderId, Plan, Space};
use crate::{Error, Result};

impl Space<'_> {
    fn receive(&self, id: NodeId) -> Result<Receive> {
        match *self.object(id) {
            Object::Receive(receive) => Ok(receive),
            _ => Err(Error::WrongKind),
        }
    }

    /// A node that is derived from `origin` for the caller.
    fn derive(
        &mut self,
        caller: HolderId,
        origin: NodeId,
        target: u16,
        object: Object,
    ) -> Result<NodeId> {
        self.make(Plan {
            object,
            origin,
            holder: caller,
            selector: target,
            extra: [NodeId::NONE; 2],
            payer: caller,
            original: None,
        })
    }

    /// Creates a gate that can receive `slots` messages.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] without slots, and what every operation says of its operands.
    pub fn create_receive(
        &mut self,
        caller: HolderId,
        target: u16,
        slots: u8,
        slot_size: u16,
    ) -> Result<NodeId> {
        if slots == 0 || slot_size == 0 {
            return Err(Error::OutOfBounds);
        }
        let object = Object::Receive(Receive {
            slots,
            slot_size,
            left: slots,
            place: None,
        });
        self.derive(caller, NodeId::NONE, target, object)
    }

    /// Creates a gate that sends to a receive gate, with credits for some of its slots.
    ///
    /// # Errors
    /// [`Error::NoCredits`] if the slots do not suffice, [`Error::OutOfBounds`] without credits, and what every operation says of
    /// its operands.
    pub fn create_send(
        &mut self,
        caller: HolderId,
        receive: u16,
        target: u16,
        label: u64,
        credits: u8,
    ) -> Result<NodeId> {
        let origin = self.find(caller, receive)?;
        let gate = self.receive(origin)?;
        if credits == 0 {
            return Err(Error::OutOfBounds);
        }
        let left = gate.left.checked_sub(credits).ok_or(Error::NoCredits)?;
        let id = self.derive(caller, origin, target, Object::Send { label, credits })?;
        if let Object::Receive(gate) = self.object_mut(origin) {
            gate.left = left;
        }
        Ok(id)
    }

    /// Creates a service whose server is asked through a receive gate of the caller.
    ///
    /// # Errors
    /// What every operation says of its operands.
    pub fn create_service(
        &mut self,
        caller: HolderId,
        receive: u16,
        target: u16,
    ) -> Result<NodeId> {
        let origin = self.find(caller, receive)?;
        self.receive(origin)?;
        self.derive(caller, origin, target, Object::Service)
    }

    /// The node that owns the service that a selector names.
    ///
    /// # Errors
    /// What every operation says of its operands.
    pub fn service(&mut self, caller: HolderId, selector: u16) -> Result<NodeId> {
        let (id, object) = self.look(caller, selector)?;
        match object {
            Object::Service => Ok(self.owner(id)),
            _ => Err(Error::WrongKind),
        }
    }

    /// The service of the session that a selector names, and the server's number for it.
    ///
    /// # Errors
    /// What every operation says of its operands.
    pub fn session(&mut self, caller: HolderId, selector: u16) -> Result<(NodeId, u64)> {
        let (id, object) = self.look(caller, selector)?;
        let Object::Session { ident } = object else {
            return Err(Error::WrongKind);
        };
        let service = self.origin(self.owner(id)).ok_or(Error::WrongKind)?;
        Ok((self.owner(service), ident))
    }

    /// Creates a session with a service that the caller holds, once the server has agreed.
    ///
    /// # Errors
    /// What every operation says of its operands.
    pub fn create_session(
        &mut self,
        caller: HolderId,
        service: u16,
        target: u16,
        ident: u64,
    ) -> Result<NodeId> {
        let origin = self.find(caller, service)?;
        if *self.object(origin) != Object::Service {
            return Err(Error::WrongKind);
        }
        self.derive(caller, origin, target, Object::Session { ident })
    }

    /// Checks that a selector of a holder is free and that he lives.
    ///
    /// # Errors
    /// [`Error::SelectorTaken`], [`Error::NoHolder`].
    pub fn is_free(&self, holder: HolderId, selector: u16) -> Result<()> {
        match selector {
            NO_SELECTOR => Err(Error::SelectorTaken),
            selector => self.check_selector(holder, selector),
        }
    }

    /// Where the receiver of a send gate is active.
    pub fn receiver(&self, send: NodeId) -> Option<(Receive, (u16, u16))> {
        let receive = self.origin(self.owner(send))?;
        let gate = self.receive(receive).ok()?;
        Some((gate, gate.place?))
    }

    /// Makes a gate or memory active for an activity on `count` endpoints of its tile, from `endpoint` on, which are taken from the
    /// quota of its tile capability. `buffer` is the memory that a receive gate writes to. The endpoints are to be
    /// configured after this succeeded, and not to be configured any more when the node is removed.
    ///
    /// # Errors
    /// [`Error::NoQuota`] without that many endpoints, [`Error::WrongState`] for a receive gate that is active already or a send gate
    /// whose receiver is not, and what every operation says of its operands.
    pub fn activate(
        &mut self,
        caller: HolderId,
        gate: u16,
        activity: HolderId,
        (endpoint, count): (u16, u16),
        buffer: Option<NodeId>,
    ) -> Result<NodeId> {
        let origin = self.find(caller, gate)?;
        match self.object(origin) {
            Object::Memory(_) => {}
            Object::Send { .. } if self.receiver(origin).is_some() => {}
            Object::Receive(gate) if gate.place.is_none() && buffer.is_some() => {}
            Object::Send { .. } | Object::Receive(_) => return Err(Error::WrongState),
            _ => return Err(Error::WrongKind),
        }
        let tile = self.tile_of(activity)?;
        let object = self.tile(tile)?;
        let owner = object.owner[Quota::Endpoints as usize];
        let rest = self.left(owner, Quota::Endpoints).map(|left| *left);
        let rest = rest.and_then(|left| take(left, count.into()));
        let rest = rest.ok_or(Error::NoQuota)?;
        let id = self.make(Plan {
            object: Object::Endpoint {
                tile: object.tile,
                endpoint,
                count,
            },
            origin,
            holder: activity,
            selector: NO_SELECTOR,
            extra: [tile, buffer.unwrap_or(NodeId::NONE)],
            payer: caller,
            original: None,
        })?;
        if let Some(left) = self.left(owner, Quota::Endpoints) {
            *left = rest;
        }
        if let Object::Receive(gate) = self.object_mut(origin) {
            gate.place = Some((object.tile, endpoint));
        }
        Ok(id)
    }
}
