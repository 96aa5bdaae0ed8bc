//! The card as the protocols see it.
//!
//! Why it exists: the protocols take a frame and may answer it in the same step, so both need the card at once. What it
//! deliberately does not know: queues.

use bulkhead_abi::network::FRAME_MAX;
use bulkhead_common::network::{Card, Received};
use core::cell::RefCell;
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// A card in the shape that the protocols want.
pub(crate) struct Port<C> {
    pub card: RefCell<C>,
    /// The frame that they get next.
    pub next: Option<Received>,
}

pub(crate) struct Arrived<'a, C: Card> {
    card: &'a RefCell<C>,
    frame: Received,
}

pub(crate) struct Leaving<'a, C: Card>(&'a RefCell<C>);

impl<C: Card> RxToken for Arrived<'_, C> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let (buffer, start, bytes) = self.frame;
        let frame = buffer.get(start..start + bytes).unwrap_or_default();
        let result = f(frame);
        self.card.borrow_mut().give_back(buffer);
        result
    }
}

impl<C: Card> TxToken for Leaving<'_, C> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, f: F) -> R {
        let (mut f, mut result) = (Some(f), None);
        self.0.borrow_mut().send(bytes, &mut |frame| {
            if let Some(f) = f.take() {
                result = Some(f(frame));
            }
        });
        match (result, f) {
            (Some(result), _) => result,
            // A card that did not want the frame after all: it is lost, as on a bad cable.
            (None, Some(f)) => f(&mut alloc::vec![0; bytes]),
            (None, None) => unreachable!("the frame was written"),
        }
    }
}

impl<C: Card> Device for Port<C> {
    type RxToken<'a>
        = Arrived<'a, C>
    where
        C: 'a;
    type TxToken<'a>
        = Leaving<'a, C>
    where
        C: 'a;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_, C>, Leaving<'_, C>)> {
        let frame = self.next.take()?;
        let card = &self.card;
        Some((Arrived { card, frame }, Leaving(card)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_, C>> {
        let can = self.card.get_mut().can_send();
        can.then_some(Leaving(&self.card))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_MAX;
        capabilities
    }
}
