//! The tile as its network card sees it.
//!
//! Why it exists: the card's accesses pass the same caches, windows and bucket as those of the hart and the unit, and its interrupts reach
//! the activity that the kernel gave the card to. It does not know what the card does.

use super::memory::Port;
use super::{FROM_CABLE, FROM_CARD, Local, Signal, Tile, TileEnv, TileEvent};
use crate::cache::Hierarchy;
use crate::device::network::queue::Broken;
use crate::device::network::{CardEvent, Confinement, DropReason, Fate, Frame, NetworkCard, Ports};
use crate::dtu::Dtu;
use crate::fabric::Fabric;
use crate::hart::InterruptLine;
use crate::ledger::Resource;
use crate::local_token::LocalToken;
use crate::types::{Block, Owner, Tick};
use bulkhead_abi::memory_map::{NETWORK_CARD_BASE, NETWORK_CARD_SIZE};

/// The tile's state for its card.
#[derive(Debug)]
pub(super) struct CardPlace {
    /// Taken out while the card acts.
    pub card: Option<Box<NetworkCard>>,
    /// The unit's count of device grants, as last seen by the card.
    epoch: u32,
    /// Frames that have left, and when.
    pub sent: Vec<(Tick, Frame)>,
}

impl CardPlace {
    pub fn new(card: Option<NetworkCard>) -> Self {
        Self {
            card: card.map(Box::new),
            epoch: 0,
            sent: Vec::new(),
        }
    }
}

struct CardPorts<'a> {
    unit: Option<&'a mut Dtu>,
    caches: &'a mut Hierarchy,
    local: &'a mut Local,
    fabric: &'a mut Fabric,
    owner: Owner,
}

impl Ports for CardPorts<'_> {
    fn now(&self) -> Tick {
        self.local.now
    }

    fn line(&self) -> u64 {
        self.local.line.into()
    }

    fn allowed(&self, physical: u64, bytes: u64, write: bool) -> bool {
        // A range that would cross the end of a window is outside it altogether. This limit keeps the length from wrapping.
        let reach = u64::MAX / 2;
        bytes < reach && self.local.window(physical, bytes, write).is_some()
    }

    fn access(
        &mut self,
        physical: u64,
        block: Block<'_>,
        token: LocalToken,
    ) -> Result<Option<Tick>, Broken> {
        let mut port = Port {
            unit: self.unit.as_deref_mut(),
            caches: self.caches,
            local: self.local,
            fabric: self.fabric,
        };
        let at = port.access(physical, block, self.owner, token);
        at.map_err(|_| Broken)
    }

    fn forget(&mut self, token: LocalToken) {
        self.caches.forget(token);
    }

    fn schedule(&mut self, at: Tick, event: CardEvent) {
        let at = at.max(self.local.now);
        self.local.queue.push(at, FROM_CARD, TileEvent::Card(event));
    }

    fn transmit(&mut self, at: Tick, mut frame: Frame) {
        frame.tile = self.local.id;
        self.fate(&frame, Fate::Sent { left: at });
        self.local.card.sent.push((at, frame));
    }

    fn waited(&mut self, ticks: Tick, link: bool) {
        let resource = match link {
            true => Resource::Cable,
            false => Resource::NetworkCard,
        };
        self.fabric
            .ledger
            .book(self.owner, self.owner, resource, ticks);
    }

    fn fate(&mut self, frame: &Frame, fate: Fate) {
        if let Some(observer) = &mut self.fabric.observer {
            observer.frame(self.local.now, self.local.id, frame, fate);
        }
    }
}

/// Lets the card act, and delivers its interrupt.
pub(super) fn with_card<R>(
    mut unit: Option<&mut Dtu>,
    caches: &mut Hierarchy,
    local: &mut Local,
    fabric: &mut Fabric,
    act: impl FnOnce(&mut NetworkCard, &mut dyn Ports) -> R,
) -> Option<R> {
    let mut card = local.card.card.take()?;
    if let Some(unit) = &unit
        && unit.device_epoch() != local.card.epoch
    {
        local.card.epoch = unit.device_epoch();
        let grant = unit.device();
        let confinement = Confinement {
            address: grant.address,
            physical: grant.physical,
            size: grant.size,
            owner: grant.owner,
        };
        card.confine((grant.size > 0).then_some(confinement));
    }
    let owner = card.owner().unwrap_or(local.owner);
    let mut ports = CardPorts {
        unit: unit.as_deref_mut(),
        caches,
        local,
        fabric,
        owner,
    };
    let result = act(&mut card, &mut ports);
    for token in card.take_abandoned() {
        ports.forget(token);
    }
    for frame in card.take_forgotten() {
        ports.fate(&frame, Fate::Dropped(DropReason::Stopped));
    }
    let line = card.take_line();
    local.card.card = Some(card);
    if let Some(unit) = unit {
        if line == Some(true) {
            let mut env = TileEnv {
                caches,
                local,
                fabric,
            };
            unit.device_interrupt(&mut env);
        }
        local.after_unit(unit, caches, fabric);
    } else if let Some(level) = line {
        let signal = Signal::Line(InterruptLine::External, level);
        local.signals.push(signal);
    }
    Some(result)
}

/// Offset in the card's registers.
pub(super) fn register(physical: u64) -> Option<u64> {
    let offset = physical.wrapping_sub(NETWORK_CARD_BASE);
    (offset < NETWORK_CARD_SIZE).then_some(offset)
}

impl Tile {
    /// The network card.
    pub fn card(&self) -> Option<&NetworkCard> {
        self.local.card.card.as_deref()
    }

    /// Frames that have left since the last call.
    #[inline]
    pub fn take_frames(&mut self) -> Vec<(Tick, Frame)> {
        std::mem::take(&mut self.local.card.sent)
    }

    /// A frame will have arrived at `at`.
    pub fn deliver_frame(&mut self, at: Tick, frame: Frame) {
        let event = TileEvent::Card(CardEvent::Frame(Box::new(frame)));
        self.local.queue.push(at, FROM_CABLE, event);
    }

    pub(super) fn card_event(&mut self, event: CardEvent, fabric: &mut Fabric) {
        self.with_card(fabric, |card, ports| card.event(ports, event));
    }

    /// Lets the card act on something other than an access of a hart.
    pub(super) fn with_card(
        &mut self,
        fabric: &mut Fabric,
        act: impl FnOnce(&mut NetworkCard, &mut dyn Ports),
    ) {
        let (caches, local) = (&mut self.caches, &mut self.local);
        with_card(self.unit.as_mut(), caches, local, fabric, act);
        self.after_caches();
    }
}
