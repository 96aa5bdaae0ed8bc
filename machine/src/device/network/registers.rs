//! The card's registers: everything that a hart can do to it.
//!
//! Why it exists: a driver may write anything in any order. What it deliberately does not know: what the queues
//! contain.

use super::queue::{Broken, Queue};
use super::{CardEvent, NetworkCard, Ports};
use bulkhead_abi::network::*;

const FEATURES: u64 = FEATURE_MAC | FEATURE_STATUS | FEATURE_VERSION_1;
/// Link status: up.
const LINK_UP: u8 = 1;

/// One half of a 64-bit register.
fn half(value: u64, upper: bool) -> u32 {
    (if upper { value >> 32 } else { value }) as u32
}

fn set_half(register: &mut u64, upper: bool, value: u32) {
    let shift = if upper { 32 } else { 0 };
    *register = *register & !(0xFFFF_FFFF << shift) | u64::from(value) << shift;
}

impl NetworkCard {
    fn configuration(&self, offset: u64) -> u8 {
        match offset {
            0..=5 => self.config.mac[offset as usize],
            6 => LINK_UP,
            _ => 0,
        }
    }

    fn selected(&self) -> Option<&Queue> {
        self.queues.get(self.queue_select as usize)
    }

    /// Reads a register; `None` if the device does not support the width: 4 aligned bytes, or 1, 2 or 4 for the
    /// configuration.
    pub fn read(&self, offset: u64, bytes: u8) -> Option<u64> {
        if !offset.is_multiple_of(u64::from(bytes.max(1))) || !matches!(bytes, 1 | 2 | 4) {
            return None;
        }
        if let Some(first) = offset.checked_sub(CONFIGURATION) {
            let bytes =
                (0..u64::from(bytes)).map(|i| u64::from(self.configuration(first + i)) << (8 * i));
            return Some(bytes.sum());
        }
        if bytes != 4 {
            return None;
        }
        let queue = self.selected();
        let value = match offset {
            MAGIC => MAGIC_VALUE,
            VERSION => 2,
            DEVICE_ID => DEVICE_NETWORK,
            VENDOR_ID => VENDOR,
            DEVICE_FEATURES => match self.device_features_select {
                select @ 0..=1 => half(FEATURES, select == 1),
                _ => 0,
            },
            QUEUE_SIZE_MAX => queue.map_or(0, |_| self.config.queue.into()),
            QUEUE_READY => queue.is_some_and(|q| q.ready).into(),
            INTERRUPT_STATUS => self.interrupt,
            STATUS => self.status,
            _ => 0,
        };
        Some(value.into())
    }

    /// Writes a register of 4 aligned bytes; `None` for other widths. Other registers are ignored.
    pub fn write(
        &mut self,
        ports: &mut dyn Ports,
        offset: u64,
        bytes: u8,
        value: u64,
    ) -> Option<()> {
        if offset >= CONFIGURATION {
            return Some(());
        }
        if bytes != 4 || !offset.is_multiple_of(4) {
            return None;
        }
        let value = value as u32;
        match offset {
            DEVICE_FEATURES_SELECT => self.device_features_select = value,
            DRIVER_FEATURES_SELECT => self.driver_features_select = value,
            DRIVER_FEATURES if self.driver_features_select < 2 => {
                let upper = self.driver_features_select == 1;
                set_half(&mut self.driver_features, upper, value);
            }
            QUEUE_SELECT => self.queue_select = value,
            INTERRUPT_ACKNOWLEDGE => self.interrupt &= !value,
            STATUS => self.set_status(ports, value),
            QUEUE_NOTIFY if value <= TRANSMIT_QUEUE => self.ring(ports, value),
            _ => self.write_queue(ports, offset, value),
        }
        Some(())
    }

    fn set_status(&mut self, ports: &mut dyn Ports, value: u32) {
        if value == 0 {
            return self.reset();
        }
        let mut value = value & !STATUS_NEEDS_RESET;
        // Without version 1 it would be a legacy device, which this device is not.
        let accepted =
            self.driver_features & FEATURE_VERSION_1 != 0 && self.driver_features & !FEATURES == 0;
        if value & STATUS_FEATURES != 0 && !accepted {
            value &= !STATUS_FEATURES;
        }
        self.status = value | self.status & STATUS_NEEDS_RESET;
        self.ring(ports, RECEIVE_QUEUE);
        self.ring(ports, TRANSMIT_QUEUE);
    }

    /// Checks a queue as soon as the register access is over.
    fn ring(&mut self, ports: &mut dyn Ports, queue: u32) {
        if self.is_live() {
            let event = CardEvent::Notified(self.generation, queue);
            ports.schedule(ports.now(), event);
        }
    }

    fn write_queue(&mut self, ports: &mut dyn Ports, offset: u64, value: u32) {
        let greatest = u32::from(self.config.queue);
        let Some(queue) = self.queues.get_mut(self.queue_select as usize) else {
            return;
        };
        if offset == QUEUE_READY {
            if value & 1 == 0 {
                *queue = Queue::default();
                // What is in progress there must not continue, and the other queue does not survive that either.
                match self.is_live() {
                    true => self.stop(Broken),
                    false => self.halt(),
                }
            } else if queue.size.is_power_of_two() {
                queue.ready = true;
                self.ring(ports, self.queue_select);
            } else {
                self.stop(Broken);
            }
            return;
        }
        // A queue in use cannot be moved.
        if queue.ready {
            return;
        }
        match offset {
            QUEUE_SIZE if value <= greatest => queue.size = value as u16,
            QUEUE_SIZE => queue.size = 0,
            _ => {
                let (register, upper) = (offset & !4, offset & 4 != 0);
                match register {
                    QUEUE_DESCRIPTORS => set_half(&mut queue.descriptors, upper, value),
                    QUEUE_DRIVER => set_half(&mut queue.driver, upper, value),
                    QUEUE_DEVICE => set_half(&mut queue.device, upper, value),
                    _ => {}
                }
            }
        }
    }
}
