//! The same as `any`, for an application with a network card: it can also flood the other end of the cable.
//!
//! Arguments: `plan` (see `attacker`); `address` and `neighbours` as the network service has them: its own address and the
//! victim's, the first of them. Without them, frames are broadcast. Gate: `interrupt` (receive; the card's).
#![no_std]
#![no_main]

extern crate alloc;

mod attacker;
mod frames;
mod rights;

use attacker::Device;
use bulkhead_lib::abi::network::INTERRUPT_GATE;
use bulkhead_lib::common::network::Card as _;
use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{environment, time};
use bulkhead_network_card::NetworkCard;
use bulkhead_random::Random;
use frames::Addresses;

bulkhead_lib::main!(main);

/// Bytes of heap that the card's buffers need, in addition to the half of the heap that is attacked.
const HEAP: u64 = 512 << 10;
/// Frames offered before the plan is checked again.
const BURST: u32 = 16;

/// The card, from the first attack on it.
struct Card {
    card: Option<NetworkCard>,
    tried: bool,
    addresses: Addresses,
}

impl Card {
    /// Starts the card; does nothing if the card refuses or there is no memory for its buffers.
    fn start(&mut self) {
        if !core::mem::replace(&mut self.tried, true) && environment().heap_size >= HEAP {
            self.card = NetworkCard::new().ok();
        }
    }
}

impl Device for Card {
    fn attack(&mut self, strength: u64, random: &mut Random, end: u64) {
        self.start();
        let Some(card) = &mut self.card else {
            return time::sleep_until(end);
        };
        let interrupt = ReceiveGate::named(INTERRUPT_GATE);
        while let Ok(Some(message)) = interrupt.fetch() {
            drop(message);
        }
        card.acknowledge();
        // Replies show where the victim is.
        while let Some((buffer, start, bytes)) = card.receive() {
            self.addresses.learn(&buffer[start..start + bytes]);
            card.give_back(buffer);
        }
        let mac = card.mac();
        for _ in 0..BURST {
            let sort = frames::sort(strength, &self.addresses, random);
            let write =
                &mut |frame: &mut [u8]| frames::write(sort, frame, &self.addresses, mac, random);
            if !card.send(frames::bytes(sort), write) {
                break;
            }
        }
        let pause = 1000 * (strength >> 3);
        if pause > 0 {
            time::sleep_until(time::now() + pause);
        }
    }
}

fn main() -> u64 {
    let mut card = Card {
        card: None,
        tried: false,
        addresses: Addresses::new(),
    };
    attacker::run(&mut card)
}
