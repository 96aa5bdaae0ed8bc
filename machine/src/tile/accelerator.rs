//! The tile as its streaming unit sees it, where there is one instead of a hart.
//!
//! Why it exists: the unit acts when something happened on its tile, through the registers of the data transfer unit. It
//! does not know what the unit does.

use super::{Local, Tile, TileEnv};
use crate::accelerator::{Accelerator, Ports, Waits};
use crate::cache::Hierarchy;
use crate::dtu::Dtu;
use crate::fabric::Fabric;
use crate::observe::HartState;
use crate::types::Tick;

struct TilePorts<'a> {
    unit: &'a mut Dtu,
    caches: &'a mut Hierarchy,
    local: &'a mut Local,
    fabric: &'a mut Fabric,
}

impl TilePorts<'_> {
    fn place(&self, physical: u64, bytes: usize, write: bool) -> Option<(usize, usize)> {
        let (window, at) = self.local.window(physical, bytes as u64, write)?;
        Some((window.memory, at as usize))
    }
}

impl Ports for TilePorts<'_> {
    fn now(&self) -> Tick {
        self.local.now
    }

    fn read(&mut self, offset: u64) -> u64 {
        let mut env = TileEnv {
            caches: self.caches,
            local: self.local,
            fabric: self.fabric,
        };
        // What a hart would get a fault for reads as 0.
        let value = self.unit.read_register(&mut env, offset, 8).unwrap_or(0);
        self.local.after_unit(self.unit, self.caches, self.fabric);
        value
    }

    fn write(&mut self, offset: u64, value: u64) {
        let mut env = TileEnv {
            caches: self.caches,
            local: self.local,
            fabric: self.fabric,
        };
        let _ = self.unit.write_register(&mut env, offset, 8, value);
        self.local.after_unit(self.unit, self.caches, self.fabric);
    }

    fn load(&mut self, physical: u64, buffer: &mut [u8]) -> bool {
        let place = self.place(physical, buffer.len(), false);
        let bytes =
            place.and_then(|(memory, at)| self.fabric.ram[memory].get(at..at + buffer.len()));
        bytes.map(|bytes| buffer.copy_from_slice(bytes)).is_some()
    }

    fn store(&mut self, physical: u64, data: &[u8]) -> bool {
        let place = self.place(physical, data.len(), true);
        let bytes =
            place.and_then(|(memory, at)| self.fabric.ram[memory].get_mut(at..at + data.len()));
        bytes.map(|bytes| bytes.copy_from_slice(data)).is_some()
    }
}

impl Tile {
    /// The streaming unit, if there is one instead of a hart.
    pub fn accelerator(&self) -> Option<&Accelerator> {
        self.accelerator.as_deref()
    }

    fn with_accelerator<R>(
        &mut self,
        fabric: &mut Fabric,
        act: impl FnOnce(&mut Accelerator, &mut dyn Ports) -> R,
    ) -> Option<R> {
        let (accelerator, unit) = (self.accelerator.as_mut()?, self.unit.as_mut()?);
        let mut ports = TilePorts {
            unit,
            caches: &mut self.caches,
            local: &mut self.local,
            fabric,
        };
        Some(act(accelerator, &mut ports))
    }

    /// Gives the streaming unit a client as a boot ROM would; mappings are virtual and tile-physical addresses and pages.
    /// Tells whether there is a unit and the client's gates suffice.
    pub fn adopt(
        &mut self,
        fabric: &mut Fabric,
        activity: u16,
        bucket: u8,
        mappings: &[(u64, u64, u64)],
    ) -> bool {
        self.synchronise(fabric);
        let good = self.with_accelerator(fabric, |unit, ports| {
            unit.adopt(ports, activity, bucket, mappings)
        });
        self.run_accelerator(fabric);
        good == Some(true)
    }

    /// Lets the streaming unit go on.
    pub(super) fn run_accelerator(&mut self, fabric: &mut Fabric) {
        let Some(waits) = self.with_accelerator(fabric, |unit, ports| unit.step(ports)) else {
            return;
        };
        self.local.timer_at = match waits {
            Waits::Until(at) => at,
            Waits::Idle | Waits::Busy => Tick::MAX,
        };
        if self.is_watched(fabric) {
            let state = match waits {
                Waits::Idle => HartState::Idle,
                Waits::Busy | Waits::Until(_) => HartState::Running,
            };
            self.report(self.local.now, state, fabric);
        }
        let now = self.local.now;
        self.apply_signals(now);
    }
}
