//! Loads, stores and atomics of memories behind a network, one access at a time instead of lines.
//!
//! Why it exists: where tiles have local memories, each tile reads and writes the others' memories in place. The owner's memory
//! performs an access when it serves it, and the answer carries the result back to the hart. A store occupies a place in the store
//! buffer until it is acknowledged, so fences and releases wait for it as for a store that misses. The destination of a load is
//! among the registers that wait.
//!
//! Reads and writes travel on different networks and may overtake each other. So an access waits while another access to the same
//! eight bytes is outstanding on the other network. On one network, a hart's accesses to one memory keep their order. RVWMO
//! demands this for accesses to one address; accesses to different addresses need fences. What it deliberately does not know:
//! where the memories are, and how far away.

use super::Stop;
use super::bus::{Bus, RemoteOperation};
use super::core::{Core, Exit};
use super::isa::{Op, a};
use super::load_store_queue::{Action, LineBytes};
use super::mmu::MemoryType;
use super::pending::Completion;
use super::pmp::Need;
use crate::types::Tick;

/// An access that has left the hart.
#[derive(Clone, Copy, Debug)]
pub struct RemoteAccess {
    /// Physical address.
    address: u64,
    /// The action on the answer.
    action: Action,
    /// The access travels on the write network.
    write: bool,
    completion: Completion,
}

/// The answer replaces the bytes of a line: the memory has already performed the operation.
struct Answer(u64);

impl LineBytes for Answer {
    fn read(&mut self, _: u64, _: u8) -> u64 {
        self.0
    }
    fn write(&mut self, _: u64, _: u8, _: u64) {}
    fn take_reservation(&mut self, _: u64) -> Option<bool> {
        Some(self.0 == 0)
    }
}

/// The request sent to the memory.
fn operation(action: Action) -> RemoteOperation {
    match action {
        Action::Load(_) => RemoteOperation::Load,
        Action::Store(_, value) => RemoteOperation::Store(value),
        Action::Reserve(_) => RemoteOperation::Reserve,
        Action::Conditional(_, _, value) => RemoteOperation::Conditional(value),
        Action::Modify(op, operand) => RemoteOperation::Modify(a::function(&op), operand),
        Action::Part(..) | Action::Zero | Action::Early(..) => {
            panic!("{action:?} is not made across a network")
        }
    }
}

impl Core {
    /// A load of aligned bytes. The destination waits.
    #[cold]
    pub(super) fn remote_load<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        physical: u64,
        address: u64,
        bytes: u8,
    ) -> Result<u64, Exit> {
        let offset = op.cycle as Tick * self.costs.cycle;
        if self.acquiring && self.after_acquire(offset) {
            return Err(self.refused);
        }
        self.wait_other_network(physical, false, offset)?;
        let now = self.before_device(bus, offset)?;
        let token = self
            .send_remote(bus, now, physical, bytes, Action::Load(*op))
            .ok_or(Self::fault(Need::Read, address))?;
        self.statistics.loads += 1;
        self.push_pending(op.masks().1, Completion::Token(token));
        Ok(0)
    }

    /// A store of aligned bytes.
    #[cold]
    pub(super) fn remote_store<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        physical: u64,
        address: u64,
        store: Action,
    ) -> Result<(), Exit> {
        let Action::Store(bytes, _) = store else {
            panic!("{store:?} is no store");
        };
        let offset = op.cycle as Tick * self.costs.cycle;
        if self.acquiring && self.after_acquire(offset) {
            return Err(self.refused);
        }
        self.wait_store_room(1, offset)?;
        self.wait_other_network(physical, true, offset)?;
        let now = self.before_device(bus, offset)?;
        let token = self
            .send_remote(bus, now, physical, bytes, store)
            .ok_or(Self::fault(Need::Write, address))?;
        self.statistics.stores += 1;
        self.stores.push(Completion::Token(token));
        Ok(())
    }

    /// An atomic operation on memory that exists, once everything that it had to wait for has completed.
    #[cold]
    pub(super) fn remote_atomic<B: Bus>(
        &mut self,
        bus: &mut B,
        op: &Op,
        physical: u64,
        action: Action,
    ) {
        let now = self.base + op.cycle as Tick * self.costs.cycle;
        let token = self.send_remote(bus, now, physical, a::bytes(op), action);
        let token = token.expect("the bus said that there is memory");
        self.acquiring |= a::acquires(op);
        if a::releases(op) {
            self.releasing = Some(token);
        }
        self.push_pending(op.masks().1, Completion::Token(token));
    }

    /// `None`: nothing answers at this address.
    fn send_remote<B: Bus>(
        &mut self,
        bus: &mut B,
        now: Tick,
        physical: u64,
        bytes: u8,
        action: Action,
    ) -> Option<u32> {
        let operation = operation(action);
        let token = bus.remote(now, physical, bytes, operation).ok()?;
        self.remote.push(RemoteAccess {
            address: physical,
            action,
            write: operation.is_posted(),
            completion: Completion::Token(token),
        });
        self.ask_limit(bus);
        Some(token)
    }

    /// Waits for accesses to the same eight bytes that are outstanding on the other network; if accesses to the page are ordered, for all
    /// that are outstanding.
    #[cold]
    pub(super) fn wait_other_network(
        &mut self,
        physical: u64,
        write: bool,
        offset: Tick,
    ) -> Result<(), Exit> {
        let ordered = self.memory_type == MemoryType::Ordered;
        let same = |access: &&RemoteAccess| {
            ordered || access.write != write && (access.address ^ physical) & !7 == 0
        };
        let mut until = 0;
        for access in self.remote.iter().filter(same) {
            match access.completion {
                Completion::At(at) => until = until.max(at),
                Completion::Token(token) => return Err(Exit::Suspend(Stop::Pending(token))),
            }
        }
        let lost = self.delay_until(until, offset);
        *match write {
            true => &mut self.statistics.stall_store,
            false => &mut self.statistics.stall_load,
        } += lost;
        let now = self.base + offset;
        self.remote
            .retain(|access| !matches!(access.completion, Completion::At(at) if at <= now));
        Ok(())
    }

    /// Takes the answer to an access.
    pub fn complete_remote(&mut self, token: u32, at: Tick, value: u64) {
        self.released(token);
        let waiting = Completion::Token(token);
        let access = self.remote.iter_mut().find(|a| a.completion == waiting);
        if let Some(access) = access {
            access.completion = Completion::At(at);
            let (address, action) = (access.address, access.action);
            self.perform(0, address, action, &mut Answer(value));
        }
        self.pending.complete(token, at);
        self.stores.complete(token, at);
    }
}
