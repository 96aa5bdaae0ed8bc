//! The tile as its streaming unit sees it, if it has one instead of a hart.
//!
//! Why it exists: the unit acts when something has happened on its tile, through the registers of the data transfer unit. It does
//! not know what the unit does.
//!
//! The unit uses memory as the data transfer unit does ([`super::memory`]): an access takes the time of its lines, is charged to the
//! current activity, and reaches only memory that the tile may use.

use super::memory::Port;
use super::{Local, Tile, TileEnv};
use crate::accelerator::{Accelerator, Later, Ports, Side, Waits};
use crate::cache::Hierarchy;
use crate::dtu::Dtu;
use crate::fabric::Fabric;
use crate::local_token::{LocalToken, Part};
use crate::observe::HartState;
use crate::types::{Block, Tick};

/// An access of the unit to the tile's memory.
#[derive(Debug)]
struct Access {
    side: Side,
    physical: u64,
    write: bool,
    bytes: Vec<u8>,
    /// Parts whose lines have not arrived: token, and offset of the first byte within the access.
    missing: Vec<(LocalToken, usize)>,
    /// When the other parts are done.
    until: Tick,
    /// The tile may not make this access.
    refused: bool,
}

/// The unit's accesses that it has not consumed yet.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    all: Vec<Access>,
    last_token: u32,
}

impl Accesses {
    fn token(&mut self) -> LocalToken {
        Part::Stream.token(&mut self.last_token)
    }

    /// When the first access that waits for no line is done.
    fn next_time(&self, now: Tick) -> Tick {
        let done = self.all.iter().filter(|access| access.missing.is_empty());
        let later = done.map(|access| access.until).filter(|at| *at > now);
        later.min().unwrap_or(Tick::MAX)
    }

    /// A line has arrived at `at`, with the bytes of a read, or without bytes if the tile may no longer make the access.
    pub fn arrived(&mut self, token: LocalToken, at: Tick, bytes: Option<&[u8]>) {
        let part = |access: &Access| access.missing.iter().position(|part| part.0 == token);
        let found = self.all.iter_mut().find_map(|a| Some((part(a)?, a)));
        let Some((part, access)) = found else { return };
        let (_, from) = access.missing.swap_remove(part);
        access.until = access.until.max(at);
        match bytes {
            Some(bytes) if !access.write => {
                access.bytes[from..from + bytes.len()].copy_from_slice(bytes);
            }
            Some(_) => {}
            None => access.refused = true,
        }
    }

    /// The unit was reset: forgets all its accesses.
    pub fn forget(&mut self, caches: &mut Hierarchy) {
        let parts = self.all.iter().flat_map(|access| &access.missing);
        for (token, _) in parts {
            caches.forget(*token);
        }
        self.all.clear();
    }
}

struct TilePorts<'a> {
    unit: &'a mut Dtu,
    caches: &'a mut Hierarchy,
    local: &'a mut Local,
    fabric: &'a mut Fabric,
    /// A boot ROM is acting, which takes no time.
    rom: bool,
}

impl TilePorts<'_> {
    /// Begins the access if necessary. Returns an error until it is done.
    fn access(
        &mut self,
        side: Side,
        physical: u64,
        bytes: &[u8],
        write: bool,
    ) -> Result<&Access, Later> {
        // An abandoned access may still be in progress, with other bytes.
        let is = |a: &Access| {
            let same = (a.side, a.physical, a.write, a.bytes.len());
            same == (side, physical, write, bytes.len()) && (!write || a.bytes == bytes)
        };
        let known = self.local.accesses.all.iter().position(is);
        let index = known.unwrap_or_else(|| {
            let access = self.begin(side, physical, bytes.to_vec(), write);
            self.local.accesses.all.push(access);
            self.local.accesses.all.len() - 1
        });
        let access = &self.local.accesses.all[index];
        match access.missing.is_empty() && access.until <= self.local.now {
            true => Ok(access),
            false => Err(Later),
        }
    }

    /// Asks for all lines of an access.
    fn begin(&mut self, side: Side, physical: u64, bytes: Vec<u8>, write: bool) -> Access {
        let mut access = Access {
            side,
            physical,
            write,
            bytes,
            missing: Vec::new(),
            until: self.local.now,
            refused: false,
        };
        let (owner, line) = (self.local.owner, u64::from(self.local.line));
        let mut from = 0;
        while from < access.bytes.len() && !access.refused {
            let at = physical.wrapping_add(from as u64);
            let room = (line - at % line) as usize;
            let to = access.bytes.len().min(from + room);
            let token = self.local.accesses.token();
            let part = &mut access.bytes[from..to];
            let block = match write {
                true => Block::Write(part),
                false => Block::Read(part),
            };
            let mut port = Port {
                unit: Some(&mut *self.unit),
                caches: &mut *self.caches,
                local: &mut *self.local,
                fabric: &mut *self.fabric,
            };
            match port.access(at, block, owner, token) {
                Ok(Some(at)) => access.until = access.until.max(at),
                Ok(None) => access.missing.push((token, from)),
                Err(_) => access.refused = true,
            }
            from = to;
        }
        access
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
        let read = self.unit.read_register(&mut env, offset, 8);
        let value = read.unwrap_or_else(|fault| panic!("a streaming unit's {fault}"));
        self.local.after_unit(self.unit, self.caches, self.fabric);
        value
    }

    fn write(&mut self, offset: u64, value: u64) {
        let mut env = TileEnv {
            caches: self.caches,
            local: self.local,
            fabric: self.fabric,
        };
        let written = self.unit.write_register(&mut env, offset, 8, value);
        // Only a hart sleeps.
        written.unwrap_or_else(|fault| panic!("a streaming unit's {fault}, with {value:#x}"));
        self.local.after_unit(self.unit, self.caches, self.fabric);
    }

    fn load(&mut self, side: Side, physical: u64, buffer: &mut [u8]) -> Result<bool, Later> {
        if self.rom {
            return Ok(self.local.peek(self.caches, physical, buffer, self.fabric));
        }
        let access = self.access(side, physical, buffer, false)?;
        buffer.copy_from_slice(&access.bytes);
        Ok(!access.refused)
    }

    fn store(&mut self, side: Side, physical: u64, data: &[u8]) -> Result<bool, Later> {
        Ok(!self.access(side, physical, data, true)?.refused)
    }

    fn used(&mut self, side: Side) {
        let now = self.local.now;
        let kept = |a: &Access| a.side != side || !a.missing.is_empty() || a.until > now;
        self.local.accesses.all.retain(kept);
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
        rom: bool,
        act: impl FnOnce(&mut Accelerator, &mut dyn Ports) -> R,
    ) -> Option<R> {
        let (accelerator, unit) = (self.accelerator.as_mut()?, self.unit.as_mut()?);
        let mut ports = TilePorts {
            unit,
            caches: &mut self.caches,
            local: &mut self.local,
            fabric,
            rom,
        };
        Some(act(accelerator, &mut ports))
    }

    /// Gives the streaming unit a client as a boot ROM would. Mappings are virtual and tile-physical addresses and pages. Returns
    /// whether there is a unit and the client's gates suffice.
    pub fn adopt(
        &mut self,
        fabric: &mut Fabric,
        activity: u16,
        bucket: u8,
        mappings: &[(u64, u64, u64)],
    ) -> bool {
        self.synchronise(fabric);
        let good = self.with_accelerator(fabric, true, |unit, ports| {
            unit.adopt(ports, activity, bucket, mappings)
        });
        self.run_accelerator(fabric);
        good == Some(true)
    }

    /// Lets the streaming unit continue.
    pub(super) fn run_accelerator(&mut self, fabric: &mut Fabric) {
        let step = self.with_accelerator(fabric, false, |unit, ports| unit.step(ports));
        let Some(waits) = step else { return };
        let access = self.local.accesses.next_time(self.local.now);
        self.local.timer_at = match waits {
            Waits::Until(at) => at.min(access),
            Waits::Idle | Waits::Busy => access,
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
