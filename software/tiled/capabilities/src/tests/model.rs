//! The model: capabilities as a plain list, every quota computed from scratch.
//!
//! It shares nothing with the crate but the rules: no stored counters, no linked lists.

use crate::{QUOTAS, Quota, Request, Terms};
use bulkhead_abi::dtu::UNLIMITED_CREDITS;
use std::collections::{BTreeMap, BTreeSet};

/// Number of a model capability; never used again.
pub type Id = usize;

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Service,
    Session(u64),
    Memory {
        base: u64,
        size: u64,
        rights: u8,
        cut: Option<Id>,
    },
    Receive {
        slots: u8,
    },
    Send {
        credits: u8,
    },
    Mapping {
        tables: u64,
    },
    Activity {
        holder: u16,
    },
    /// Its own quotas (`None`: shared with the origin), and the amount that its processor time took from its
    /// origin.
    Tile {
        own: [Option<u64>; QUOTAS],
        taken: Option<u64>,
        terms: Terms,
    },
    Endpoint {
        count: u16,
    },
    Purse {
        given: u64,
    },
    Semaphore {
        value: u32,
    },
}

#[derive(Clone, Debug)]
pub struct Capability {
    pub kind: Kind,
    /// The capability of which this is a copy.
    pub original: Option<Id>,
    pub origin: Option<Id>,
    pub holder: u16,
    /// Other capabilities that must live for this one to live.
    pub needs: Vec<Id>,
    pub selector: Option<u16>,
    pub purse: Id,
    pub cost: u64,
}

#[derive(Clone, Debug)]
pub struct Person {
    pub node: Id,
    pub purse: Id,
    pub tile: Id,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub all: BTreeMap<Id, Capability>,
    pub people: BTreeMap<u16, Person>,
    pub next: Id,
    pub node_cost: u64,
    pub holder_cost: u64,
    pub places: u16,
}

impl Model {
    pub fn find(&self, holder: u16, selector: u16) -> Option<Id> {
        let mut found = self.all.iter();
        let hit = found.find(|(_, c)| c.holder == holder && c.selector == Some(selector));
        hit.map(|(id, _)| *id)
    }

    pub fn original(&self, id: Id) -> Id {
        self.all[&id].original.unwrap_or(id)
    }

    pub fn kind(&self, id: Id) -> &Kind {
        &self.all[&self.original(id)].kind
    }

    fn depth(&self, id: Id) -> u8 {
        self.all[&id]
            .origin
            .map_or(0, |origin| 1 + self.depth(origin))
    }

    /// What a purse has left.
    pub fn purse_left(&self, id: Id) -> u64 {
        let id = self.original(id);
        let Kind::Purse { given } = self.all[&id].kind else {
            panic!("no purse")
        };
        let charged: u64 = self
            .all
            .values()
            .filter(|c| c.purse == id)
            .map(|c| c.cost)
            .sum();
        let derived: u64 = self
            .all
            .values()
            .filter(|c| c.original.is_none() && c.origin.is_some_and(|o| self.original(o) == id))
            .map(|c| match c.kind {
                Kind::Purse { given } => given,
                _ => 0,
            })
            .sum();
        given - charged - derived
    }

    /// The tile capability whose quota a tile capability uses.
    pub fn quota_owner(&self, id: Id, quota: usize) -> Id {
        let id = self.original(id);
        let Kind::Tile { own, .. } = self.all[&id].kind else {
            panic!("no tile")
        };
        match (own[quota], self.all[&id].origin) {
            (None, Some(origin)) => self.quota_owner(origin, quota),
            _ => id,
        }
    }

    /// What is left of a quota; `None`: not regulated.
    pub fn quota_left(&self, id: Id, quota: usize) -> Option<u64> {
        let owner = self.quota_owner(id, quota);
        let Kind::Tile { own, .. } = self.all[&owner].kind else {
            panic!("no tile")
        };
        let given = own[quota]?;
        let mut used = 0;
        for c in self.all.values().filter(|c| c.original.is_none()) {
            used += match c.kind {
                Kind::Tile { taken, .. }
                    if quota == Quota::Cpu as usize
                        && c.origin
                            .is_some_and(|o| self.quota_owner(o, quota) == owner) =>
                {
                    taken.unwrap_or(0)
                }
                Kind::Tile { own, .. }
                    if c.origin
                        .is_some_and(|o| self.quota_owner(o, quota) == owner) =>
                {
                    own[quota].unwrap_or(0)
                }
                Kind::Endpoint { count: 0 }
                    if quota == Quota::Windows as usize
                        && self.quota_owner(c.needs[0], quota) == owner =>
                {
                    1
                }
                Kind::Activity { holder }
                    if quota == Quota::Activities as usize
                        && holder > 0
                        && c.origin
                            .is_some_and(|o| self.quota_owner(o, quota) == owner) =>
                {
                    1
                }
                Kind::Endpoint { count }
                    if quota == Quota::Endpoints as usize
                        && self.quota_owner(c.needs[0], quota) == owner =>
                {
                    count.into()
                }
                Kind::Mapping { tables }
                    if quota == Quota::PageTables as usize
                        && self.quota_owner(c.needs[0], quota) == owner =>
                {
                    tables
                }
                _ => 0,
            };
        }
        Some(given - used)
    }

    pub fn credits_left(&self, id: Id) -> u8 {
        let id = self.original(id);
        let Kind::Receive { slots } = self.all[&id].kind else {
            panic!("no gate")
        };
        let given: u8 = self
            .all
            .values()
            .filter(|c| c.original.is_none() && c.origin.is_some_and(|o| self.original(o) == id))
            .map(|c| match c.kind {
                Kind::Send { credits } if credits == UNLIMITED_CREDITS => 0,
                Kind::Send { credits } => credits,
                Kind::Service => 1,
                _ => 0,
            })
            .sum();
        slots - given
    }

    pub fn is_active(&self, id: Id) -> bool {
        let id = self.original(id);
        self.all.values().any(|c| {
            matches!(c.kind, Kind::Endpoint { .. })
                && c.origin.is_some_and(|o| self.original(o) == id)
        })
    }

    fn pieces(&self, id: Id) -> Vec<(u64, u64)> {
        let id = self.original(id);
        let mut pieces: Vec<(u64, u64)> = self
            .all
            .values()
            .filter(|c| c.original.is_none())
            .filter_map(|c| match c.kind {
                Kind::Memory {
                    base, size, cut, ..
                } if cut == Some(id) => Some((base, size)),
                _ => None,
            })
            .collect();
        pieces.sort();
        pieces
    }

    /// The lowest aligned gap, found by trying the ends of all pieces.
    pub fn gap(&self, id: Id, wanted: u64, align: u64) -> Option<u64> {
        let &Kind::Memory { base, size, .. } = self.kind(id) else {
            panic!("no memory")
        };
        let pieces = self.pieces(id);
        if pieces.len() >= 64 {
            return None;
        }
        let mut starts: Vec<u64> = pieces.iter().map(|(b, s)| b + s).collect();
        starts.push(base);
        let mut starts: Vec<u64> = starts.iter().map(|s| s.next_multiple_of(align)).collect();
        starts.sort();
        starts.into_iter().find(|start| {
            let end = start + wanted;
            end <= base + size && pieces.iter().all(|(b, s)| end <= *b || b + s <= *start)
        })
    }

    /// Adds a capability if holder, selector, depth and purse allow it.
    #[expect(clippy::too_many_arguments, reason = "the fields of a capability")]
    pub fn make(
        &mut self,
        kind: Kind,
        original: Option<Id>,
        origin: Option<Id>,
        holder: u16,
        needs: Vec<Id>,
        selector: Option<u16>,
        payer: u16,
        extra: u64,
    ) -> Option<Id> {
        let purse = self.people.get(&payer)?.purse;
        let purse = self.original(purse);
        self.people.get(&holder)?;
        if selector.is_some_and(|s| self.find(holder, s).is_some()) {
            return None;
        }
        if origin.is_some_and(|o| self.depth(o) >= crate::DEPTH_MAX) {
            return None;
        }
        let cost = self.node_cost
            + match (&kind, original) {
                (Kind::Activity { .. }, None) => self.holder_cost,
                (Kind::Activity { .. }, Some(_)) => 0,
                _ => 0,
            };
        if self.purse_left(purse) < cost + extra {
            return None;
        }
        let id = self.next;
        self.next += 1;
        self.all.insert(
            id,
            Capability {
                kind,
                original,
                origin,
                holder,
                needs,
                selector,
                purse,
                cost,
            },
        );
        Some(id)
    }

    pub fn derive_tile(
        &mut self,
        caller: u16,
        source: u16,
        target: u16,
        request: Request,
        mut terms: Terms,
    ) -> Option<Id> {
        let origin = self.find(caller, source)?;
        let &Kind::Tile { terms: above, .. } = self.kind(origin) else {
            return None;
        };
        terms.idle |= request[1] == Some(0);
        if terms.priority > above.priority || terms.idle && !above.idle {
            return None;
        }
        let mut taken = None;
        if request[2].is_some() != request[3].is_some() {
            return None;
        }
        let mut own = [None; QUOTAS];
        for quota in 0..QUOTAS {
            let Some(mut amount) = request[quota] else {
                continue;
            };
            own[quota] = Some(amount);
            if quota == 1 && amount > 0 {
                let period = terms.period;
                if period == 0 || amount > period {
                    return None;
                }
                let Kind::Tile { terms: whose, .. } = self.all[&self.quota_owner(origin, 1)].kind
                else {
                    return None;
                };
                // Its periods that begin in one of the owner's; a whole processor is divided by rates.
                amount = match whose.period {
                    0 => (u128::from(amount) * 1_000_000_000).div_ceil(period.into()) as u64,
                    of => (0..of).step_by(period as usize).count() as u64 * amount,
                };
            }
            if quota == 1 {
                taken = Some(amount);
            }
            if self
                .quota_left(origin, quota)
                .is_some_and(|left| left < amount)
            {
                return None;
            }
        }
        self.make(
            Kind::Tile { own, taken, terms },
            None,
            Some(origin),
            caller,
            vec![],
            Some(target),
            caller,
            0,
        )
    }

    pub fn derive_purse(
        &mut self,
        caller: u16,
        source: u16,
        target: u16,
        bytes: u64,
    ) -> Option<Id> {
        let origin = self.find(caller, source)?;
        let Kind::Purse { .. } = self.kind(origin) else {
            return None;
        };
        let same = self.original(self.people[&caller].purse) == self.original(origin);
        if self.purse_left(origin) < bytes {
            return None;
        }
        let extra = if same { bytes } else { 0 };
        self.make(
            Kind::Purse { given: bytes },
            None,
            Some(origin),
            caller,
            vec![],
            Some(target),
            caller,
            extra,
        )
    }

    pub fn cut(
        &mut self,
        caller: u16,
        source: u16,
        target: u16,
        size: u64,
        align: u64,
    ) -> Option<Id> {
        let origin = self.find(caller, source)?;
        let &Kind::Memory { rights, .. } = self.kind(origin) else {
            return None;
        };
        if size == 0 || rights & 2 == 0 {
            return None;
        }
        let base = self.gap(origin, size, align)?;
        let cut = Some(self.original(origin));
        self.make(
            Kind::Memory {
                base,
                size,
                rights,
                cut,
            },
            None,
            Some(origin),
            caller,
            vec![],
            Some(target),
            caller,
            0,
        )
    }

    pub fn derive_memory(
        &mut self,
        caller: u16,
        source: u16,
        target: u16,
        part: (u64, u64),
        wanted: u8,
    ) -> Option<Id> {
        let origin = self.find(caller, source)?;
        let &Kind::Memory {
            base, size, rights, ..
        } = self.kind(origin)
        else {
            return None;
        };
        if part.1 == 0 || part.0 + part.1 > size || wanted == 0 || wanted & rights != wanted {
            return None;
        }
        let kind = Kind::Memory {
            base: base + part.0,
            size: part.1,
            rights: wanted,
            cut: None,
        };
        self.make(
            kind,
            None,
            Some(origin),
            caller,
            vec![],
            Some(target),
            caller,
            0,
        )
    }

    pub fn create_activity(
        &mut self,
        caller: u16,
        target: u16,
        tile: u16,
        purse: u16,
        memory: u16,
        choice: Option<u16>,
    ) -> Option<u16> {
        let tile = self.find(caller, tile)?;
        let purse = self.find(caller, purse)?;
        let memory = self.find(caller, memory)?;
        let fits = matches!(self.kind(tile), Kind::Tile { .. })
            && matches!(self.kind(purse), Kind::Purse { .. })
            && matches!(self.kind(memory), Kind::Memory { .. });
        if !fits || self.quota_left(tile, 5) == Some(0) {
            return None;
        }
        // Any free place is correct.
        let mut places = (0..self.places).filter(|p| !self.people.contains_key(p));
        let holder = match choice {
            Some(choice) => places.find(|place| *place == choice)?,
            None => places.next()?,
        };
        let kind = Kind::Activity { holder };
        let node = self.make(
            kind,
            None,
            Some(tile),
            caller,
            vec![purse, memory],
            Some(target),
            caller,
            0,
        )?;
        self.people.insert(holder, Person { node, purse, tile });
        Some(holder)
    }

    /// A derived object without quota: gates, services, sessions, semaphores.
    pub fn derive(
        &mut self,
        caller: u16,
        source: Option<u16>,
        target: u16,
        fits: impl Fn(&Self, Id) -> bool,
        kind: Kind,
    ) -> Option<Id> {
        let origin = match source {
            Some(source) => Some(self.find(caller, source).filter(|id| fits(self, *id))?),
            None => None,
        };
        self.make(kind, None, origin, caller, vec![], Some(target), caller, 0)
    }

    pub fn activate(
        &mut self,
        caller: u16,
        gate: u16,
        activity: u16,
        count: u16,
        buffer: Option<u16>,
    ) -> Option<Id> {
        let origin = self.find(caller, gate)?;
        let buffer = match buffer {
            Some(buffer) => Some(self.find(caller, buffer)?),
            None => None,
        };
        let fits = match self.kind(origin) {
            Kind::Memory { .. } => true,
            Kind::Receive { .. } => buffer.is_some() && !self.is_active(origin),
            Kind::Send { .. } => self.is_active(self.all[&self.original(origin)].origin?),
            _ => false,
        };
        let tile = self.people.get(&activity)?.tile;
        if !fits
            || self
                .quota_left(tile, 0)
                .is_some_and(|left| left < count.into())
        {
            return None;
        }
        let mut needs = vec![tile];
        match self.kind(origin) {
            Kind::Receive { .. } => needs.extend(buffer),
            // The receiver's endpoint.
            Kind::Send { .. } => needs.extend(self.arrives(origin)),
            _ => {}
        }
        self.make(
            Kind::Endpoint { count },
            None,
            Some(origin),
            activity,
            needs,
            None,
            caller,
            0,
        )
    }

    /// A window: an endpoint object with a count of 0.
    pub fn show(&mut self, caller: u16, memory: u16, tile: u16) -> Option<Id> {
        let origin = self.find(caller, memory)?;
        let tile = self.find(caller, tile)?;
        let (Kind::Memory { .. }, Kind::Tile { .. }) = (self.kind(origin), self.kind(tile)) else {
            return None;
        };
        if self.quota_left(tile, 6) == Some(0) {
            return None;
        }
        let window = Kind::Endpoint { count: 0 };
        self.make(
            window,
            None,
            Some(origin),
            caller,
            vec![tile],
            None,
            caller,
            0,
        )
    }

    pub fn map(&mut self, caller: u16, memory: u16, activity: u16, tables: u64) -> Option<Id> {
        let origin = self.find(caller, memory)?;
        let Kind::Memory { .. } = self.kind(origin) else {
            return None;
        };
        let tile = self.people.get(&activity)?.tile;
        if self.quota_left(tile, 4).is_some_and(|left| left < tables) {
            return None;
        }
        self.make(
            Kind::Mapping { tables },
            None,
            Some(origin),
            activity,
            vec![tile],
            None,
            caller,
            0,
        )
    }

    pub fn copy(&mut self, payer: u16, from: (u16, u16), to: (u16, u16)) -> Option<Id> {
        if payer != from.0 && payer != to.0 {
            return None;
        }
        let origin = self.find(from.0, from.1)?;
        let original = self.original(origin);
        let kind = self.all[&original].kind.clone();
        let id = self.make(
            kind,
            Some(original),
            Some(origin),
            to.0,
            vec![],
            Some(to.1),
            payer,
            0,
        )?;
        Some(id)
    }

    /// Whether a capability is an endpoint that sends.
    fn sends(&self, c: &Capability) -> bool {
        let origin = c.origin.map(|origin| self.kind(origin));
        matches!(
            (&c.kind, origin),
            (Kind::Endpoint { .. }, Some(Kind::Send { .. }))
        )
    }

    /// Endpoints whose receiver is gone.
    pub fn disconnected(&self) -> Vec<Id> {
        let all = self.all.iter();
        all.filter(|(_, c)| self.sends(c) && c.needs.len() == 1)
            .map(|(id, _)| *id)
            .collect()
    }

    /// The endpoint at which a gate to send arrives.
    fn arrives(&self, send: Id) -> Option<Id> {
        let receive = self.all[&self.original(send)].origin;
        let receive = receive.map(|r| self.original(r));
        let mut all = self.all.iter();
        let active = all.find(|(_, c)| {
            matches!(c.kind, Kind::Endpoint { .. }) && c.origin.map(|o| self.original(o)) == receive
        });
        active.map(|(id, _)| *id)
    }

    pub fn connect(&mut self, endpoint: Id) -> bool {
        let send = self.all[&endpoint].origin.expect("it sends");
        let Some(receiver) = self.arrives(send) else {
            return false;
        };
        let needs = self.all.get_mut(&endpoint).map(|c| &mut c.needs);
        needs.expect("it is there").push(receiver);
        true
    }

    /// Everything that goes if `root` goes.
    pub fn closure(&self, root: Id) -> BTreeSet<Id> {
        let mut gone = BTreeSet::from([root]);
        loop {
            let more: Vec<Id> = self
                .all
                .iter()
                .filter(|(id, c)| {
                    !gone.contains(id)
                        && (c.origin.is_some_and(|o| gone.contains(&o))
                            // A sending endpoint stays without its receiver.
                            || c.needs[..c.needs.len().min(if self.sends(c) { 1 } else { 2 })]
                                .iter()
                                .any(|n| gone.contains(n))
                            || self
                                .people
                                .get(&c.holder)
                                .is_some_and(|p| gone.contains(&p.node)))
                })
                .map(|(id, _)| *id)
                .collect();
            if more.is_empty() {
                return gone;
            }
            gone.extend(more);
        }
    }

    pub fn revoke(&mut self, root: Id, keep: bool) -> usize {
        let mut gone = self.closure(root);
        if keep {
            gone.remove(&root);
        }
        for id in &gone {
            self.all.remove(id);
        }
        let sending = self.all.iter().filter(|(_, c)| self.sends(c));
        for id in sending.map(|(id, _)| *id).collect::<Vec<_>>() {
            let needs = self.all.get_mut(&id).map(|c| &mut c.needs);
            needs.expect("it is there").retain(|n| !gone.contains(n));
        }
        self.people.retain(|_, p| !gone.contains(&p.node));
        gone.len()
    }
}
