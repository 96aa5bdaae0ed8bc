//! TileMux on a user tile, in machine mode.
//!
//! Why it exists: turns traps into changes of [`bulkhead_tilemux::mux::Mux`] and resumes the activity that it chooses. What it
//! deliberately does not know: other tiles, except that the kernel sends requests and expects notifications of stopped activities.
//!
//! The path from one activity to another is short: the unit moves directly from the one to the other. TileMux itself becomes the
//! unit's current activity only to talk to the kernel.
#![no_std]
#![no_main]

mod arch;
mod second;
mod tile;

use arch::Resume;
use bulkhead_abi::dtu::{Awaited, DtuError, IDLE_ACTIVITY, NO_ENDPOINT, TILEMUX_ACTIVITY};
use bulkhead_abi::marker::{HEAP_EXHAUSTED, MarkerKind, PANIC, Since};
use bulkhead_abi::pager::PagerAnswer;
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{Ecall, REQUEST_REST, Request, TileMuxError};
use bulkhead_exec::tile::{Cost, Decision, Policy};
use bulkhead_hal::trap::{A0, A1, A7};
use bulkhead_hal::{csr, device, dtu, marker};
use bulkhead_tilemux::mux::{
    Access, Mux, Registers, Witness, access_of_cause, access_of_rights, panic_cause,
};
use tile::Tile;

/// Interrupt bit of `mcause`.
const INTERRUPT: u64 = 1 << 63;
/// `mcause` of an `ecall` from user mode.
const ENVIRONMENT_CALL: u64 = 8;
/// Most announced messages that one interrupt takes: this bounds the time in machine mode, however fast messages arrive.
const ANNOUNCEMENTS: usize = 4;

/// The activity that runs.
#[derive(Clone, Copy)]
struct Running {
    id: u16,
    place: usize,
    since: u64,
}

/// The moment since which TileMux works, and the payer and kind of cost if that is not the running activity.
type Work = (u64, Option<(usize, Cost)>);

/// Why a text was not printed.
enum Unprinted {
    /// This is the call's result.
    Result(u64),
    /// A page that it needs was mapped, or a page table made: the call is repeated.
    Again,
    /// The page of this address is not mapped yet.
    Page(u64),
}

/// Informs the machine, by markers, which activities want the hart.
struct Markers;

impl Witness for Markers {
    #[inline(always)]
    fn tell(&mut self, kind: MarkerKind, since: Since) {
        match kind {
            MarkerKind::MuxReady => marker::mux_ready(since.pack()),
            MarkerKind::MuxBudget => marker::mux_budget(since.pack()),
            _ => marker::mux_member(since.pack()),
        }
    }
}

/// TileMux.
struct TileMux {
    mux: Mux<Markers>,
    tile: Tile,
    running: Option<Running>,
    /// Until this moment the kernel's requests wait while an activity that is as urgent as `bar` wants the hart, because one has just
    /// been carried out.
    calm: u64,
    /// Nanoseconds from one request to the next in that case, at least.
    distance: u64,
    bar: u8,
    /// There are ends for which the kernel had no slot. It is told again from this moment on.
    ends: bool,
    again: u64,
    /// Nanoseconds at either end of a trap that no reading of the clock sees.
    unseen: u64,
}

/// The same in cycles: registers are saved or restored, arrivals are checked, and the hart mispredicts branches. `tests/system`
/// measures it with a program that is displaced all the time.
const UNSEEN_CYCLES: u64 = 400;

/// Nanoseconds after which TileMux tells the kernel again about ends for which it had no slot: the time that the kernel takes for some
/// notifications.
const PAUSE: u64 = 10_000;

/// [`UNSEEN_CYCLES`] by the unit's clock.
fn unseen() -> u64 {
    let (cycles, time) = (csr::cycle(), dtu::time());
    while csr::cycle() - cycles < 2 * UNSEEN_CYCLES {}
    (dtu::time() - time) * UNSEEN_CYCLES / (csr::cycle() - cycles)
}

impl TileMux {
    fn new(policy: Policy, (slice, distance): (u64, u64), line: u64) -> Self {
        // Where priorities mean nothing, every activity is urgent and no admission counts requests: all requests together get one
        // share.
        let (bar, distance) = match policy {
            Policy::Realtime => (1, distance),
            Policy::Throughput => (0, 0),
        };
        Self {
            mux: Mux::new(policy, slice, Markers),
            tile: Tile::new(line),
            running: None,
            calm: 0,
            distance,
            bar,
            ends: false,
            again: 0,
            unseen: unseen(),
        }
    }

    /// A trap of the running activity, whose registers are in its context.
    fn trap(&mut self, cause: u64, value: u64) -> Resume {
        let Some(Running { id, place, .. }) = self.running else {
            panic!("a trap while nothing runs: {cause:#x}")
        };
        if cause & INTERRUPT != 0 {
            marker::mux_interrupts(cause);
            return self.interrupt();
        }
        if cause == ENVIRONMENT_CALL {
            return self.call(id, place);
        }
        let pc = arch::context(place).pc();
        let reason = StopCause::Fault { cause, pc, value };
        if let Some(access) = access_of_cause(cause) {
            if self.mux.fault(&mut self.tile, place, value, access) {
                arch::mapped(place);
                return Resume::Same;
            }
            if let Some((pager, page)) = self.mux.pager(&self.tile, place, value, access) {
                // It gets its command registers back, as after an interrupt.
                return self.ask((id, place), (pager, page), access, reason, Registers::Kept);
            }
        }
        self.stop(id, reason);
        self.dispatch(Registers::Kept)
    }

    /// Asks a pager for a page. The activity waits for the answer and then tries again.
    fn ask(
        &mut self,
        (id, place): (u16, usize),
        (pager, page): (u16, u64),
        access: Access,
        reason: StopCause,
        registers: Registers,
    ) -> Resume {
        self.tile.take(registers);
        match self.tile.ask_pager(pager, id, (page, access)) {
            Ok(()) => {
                self.mux.suspend(place, reason, dtu::time());
                self.tile.hear_pager(place, self.mux.urgency(place));
            }
            // The pager still has faults of others behind the same gate, such as a predecessor's: the activity tries again.
            Err(DtuError::NoSpace) => {}
            Err(_) => self.stop(id, reason),
        }
        self.dispatch(Registers::Kept)
    }

    /// A pager answered a fault.
    fn answered(&mut self, id: u16, answer: u64) {
        let Some((place, _, reason)) = self.mux.suspended(id) else {
            // The activity was ended meanwhile.
            return;
        };
        dtu::set_awaited(place, Awaited::default());
        if answer == PagerAnswer::Mapped as u64 {
            self.mux.wake(place, dtu::time());
        } else {
            self.end(id, reason);
        }
    }

    /// An activity was told that something can no longer arrive. If it waits for its pager, and the pager is gone, the activity ends.
    fn abandoned(&mut self, id: u16) {
        if let Some((_, pager, reason)) = self.mux.suspended(id)
            && !tile::leads_somewhere(pager)
        {
            self.end(id, reason);
        }
    }

    /// A call's arguments name an address that is not mapped: asks for its page and repeats the call.
    fn ask_for_call(
        &mut self,
        (id, place): (u16, usize),
        (pc, address): (u64, u64),
        access: Access,
    ) -> Option<Resume> {
        let asked = self.mux.pager(&self.tile, place, address, access)?;
        let cause = if access == Access::Write { 15 } else { 13 };
        let value = address;
        let reason = StopCause::Fault { cause, pc, value };
        Some(self.ask((id, place), asked, access, reason, Registers::Dropped))
    }

    /// A call of the activity.
    fn call(&mut self, id: u16, place: usize) -> Resume {
        let context = arch::context(place);
        // After the `ecall`, which has 4 bytes.
        context.registers[0] += 4;
        let (first, second) = (context.registers[A0], context.registers[A1]);
        let Some(call) = Ecall::from_code(context.registers[A7]) else {
            let pc = context.pc() - 4;
            let value = context.registers[A7];
            let cause = ENVIRONMENT_CALL;
            self.stop(id, StopCause::Fault { cause, pc, value });
            return self.dispatch(Registers::Kept);
        };
        context.registers[A0] = 0;
        let pc = context.pc() - 4;
        match call {
            Ecall::Translate => {
                let known = self.mux.translate(&mut self.tile, id, first, second & 3);
                context.registers[A0] = u64::from(!known);
                let access = access_of_rights(second);
                if !known && let Some(resume) = self.ask_for_call((id, place), (pc, first), access)
                {
                    // It repeats the command, and by then the page is mapped.
                    arch::context(place).registers[A0] = 0;
                    return resume;
                }
                return Resume::Same;
            }
            Ecall::Print => match self.print(id, place, first, second) {
                Ok(result) => context.registers[A0] = result,
                Err(Unprinted::Result(result)) => {
                    context.registers[A0] = result;
                    return Resume::Same;
                }
                Err(why) => {
                    // The call is repeated, perhaps once a page is mapped.
                    (context.registers[A0], context.registers[0]) = (first, pc);
                    let Unprinted::Page(address) = why else {
                        return Resume::Same;
                    };
                    let asked = self.ask_for_call((id, place), (pc, address), Access::Read);
                    return asked.unwrap_or_else(|| {
                        (context.registers[A0], context.registers[0]) = (1, pc + 4);
                        Resume::Same
                    });
                }
            },
            Ecall::Wait => {
                let endpoint = u16::try_from(first).unwrap_or(NO_ENDPOINT);
                let now = dtu::time();
                self.mux.wait(&self.tile, place, endpoint, second, now);
                if self.mux.awaits(place).is_some() {
                    let urgency = self.mux.urgency(place);
                    tile::hear(place, id, urgency, endpoint);
                }
            }
            Ecall::Yield => self.mux.give_way(place),
            Ecall::Exit => self.stop(id, StopCause::Exit(first)),
            Ecall::Panic => self.stop(id, panic_cause(first)),
        }
        self.dispatch(Registers::Dropped)
    }

    /// Sends text to the kernel's console. Returns the result for the activity, or an error if the activity continues at once.
    fn print(
        &mut self,
        id: u16,
        place: usize,
        address: u64,
        length: u64,
    ) -> Result<u64, Unprinted> {
        if length > bulkhead_abi::tilemux::PRINT_TEXT as u64 {
            return Err(Unprinted::Result(1));
        }
        let mut text = [0; bulkhead_abi::tilemux::PRINT_TEXT];
        let length = length as usize;
        for (offset, byte) in text[..length].iter_mut().enumerate() {
            let address = address.wrapping_add(offset as u64);
            let found = self.mux.readable(&self.tile, id, address);
            if found.is_none() && self.mux.fault(&mut self.tile, place, address, Access::Read) {
                arch::mapped(place);
                return Err(Unprinted::Again);
            }
            *byte = arch::read_byte(found.ok_or(Unprinted::Page(address))?);
        }
        if length == 0 {
            return Err(Unprinted::Result(0));
        }
        self.tile.take(Registers::Dropped);
        self.answers();
        let sent = self.tile.print(id, &text, length);
        Ok(if sent { 0 } else { 2 })
    }

    /// Ends an activity and tells the kernel.
    fn stop(&mut self, id: u16, cause: StopCause) {
        match cause {
            StopCause::Fault { cause, .. } => marker::activity_fault(cause),
            StopCause::Panic => marker::activity_fault(PANIC),
            StopCause::OutOfMemory => marker::activity_fault(HEAP_EXHAUSTED),
            StopCause::Exit(_) | StopCause::Killed | StopCause::TileLost => {}
        }
        self.tile.take(Registers::Dropped);
        self.running = None;
        self.remove(id, cause);
    }

    /// Ends an activity that does not run. TileMux is the unit's current activity.
    fn end(&mut self, id: u16, cause: StopCause) {
        if let StopCause::Fault { cause, .. } = cause {
            marker::activity_fault(cause);
        }
        self.remove(id, cause);
    }

    fn remove(&mut self, id: u16, cause: StopCause) {
        match self.tile.notify(id, cause) {
            true => self.mux.remove(&mut self.tile, id),
            false => self.mux.end(id, cause, dtu::time()),
        }
        self.ends |= self.mux.place(id).is_some();
    }

    /// Tells the kernel about ends for which it had no slot, as far as it has slots now.
    fn tell_ends(&mut self) {
        self.ends = false;
        while let Some((id, cause)) = self.mux.ended().filter(|_| !self.ends) {
            self.remove(id, cause);
        }
        self.again = dtu::time() + PAUSE;
    }

    /// An interrupt: messages for activities that do not run, requests of the kernel, the timer.
    fn interrupt(&mut self) -> Resume {
        let began = dtu::time() - self.unseen;
        let (receiver, changed) = self.announcements();
        // No message for a less urgent activity is announced, so the receiver pays for the interrupt.
        let payer = receiver.filter(|receiver| self.mux.is_limited(*receiver));
        if !(changed || payer.is_some()) {
            return Resume::Same;
        }
        let payer = payer.map(|payer| (payer, Cost::Interrupt));
        self.dispatch_after(Registers::Kept, Some((began, payer)))
    }

    /// Takes the unit's announcements, none of which is for a less urgent activity than the running one, and the timer. Returns the
    /// receiver of a message, and whether a decision is needed.
    fn announcements(&mut self) -> (Option<usize>, bool) {
        let (mut receiver, mut changed) = (None, false);
        for _ in 0..ANNOUNCEMENTS {
            match self.tile.take_announcement() {
                None => break,
                Some((TILEMUX_ACTIVITY, _)) => changed = true,
                Some((id, endpoint)) => {
                    if let Some(place) = self.mux.place(id) {
                        receiver = Some(place);
                        changed |= self.mux.message(place, endpoint, dtu::time);
                    }
                }
            }
        }
        // A second hart, if there is one, raised this interrupt.
        if csr::mip() & csr::SOFTWARE != 0 {
            device::set_software_interrupt(false);
        }
        (receiver, self.tile.take_timer() || changed)
    }

    /// Carries out one request of the kernel. Returns whether there was one. TileMux is the unit's current activity.
    fn request(&mut self) -> bool {
        let Some((offset, request)) = self.tile.fetch_request() else {
            return false;
        };
        let answer = request.ok_or(TileMuxError::BadRequest).and_then(|request| {
            marker::mux_works(request.activity().into());
            self.mux.request(&mut self.tile, request, dtu::time())
        });
        if answer == Err(TileMuxError::Again) {
            self.tile.kept = Some((offset, request));
            return true;
        }
        if let Ok(Some((id, entry))) = answer
            && let Some(place) = self.mux.place(id)
        {
            arch::start_context(place, entry);
            self.tile.forget(place);
        }
        if let Some(place) = request.and_then(|request| self.mux.place(request.activity())) {
            arch::mapped(place);
        }
        self.tile.answer(offset, answer.err());
        if let Some(Request::Wake { activity }) = request {
            self.abandoned(activity);
        }
        // The kernel may have stopped the activity that ran.
        self.running = self.running.filter(|r| self.mux.place(r.id).is_some());
        true
    }

    /// Takes the answers of pagers. TileMux is the unit's current activity.
    fn answers(&mut self) {
        while let Some((id, answer)) = self.tile.take_answer() {
            self.answered(id, answer);
        }
        // The unit forgets the receiver of an announced answer.
        for place in self.mux.paging() {
            self.tile.hear_pager(place, self.mux.urgency(place));
        }
    }

    /// Decides which activity runs and gives the unit to it; `registers` says what happens to the registers of the one that ran.
    fn dispatch(&mut self, registers: Registers) -> Resume {
        self.dispatch_after(registers, None)
    }

    /// Like [`Self::dispatch`]. The activity that begins pays for an interrupt and the switch after it; if the one that ran
    /// continues, the payer of the interrupt pays.
    #[inline(never)]
    fn dispatch_after(&mut self, mut registers: Registers, mut work: Option<Work>) -> Resume {
        loop {
            let now = dtu::time();
            let (mut began, payer) = work.take().unwrap_or((now, None));
            if let Some(running) = &mut self.running {
                let Running { place, since, .. } = *running;
                self.mux.charge(place, Cost::Run, since, began);
                running.since = began.max(since);
            }
            let previous = self.running;
            let decision = self.mux.decide(now);
            let stays = match (decision, previous) {
                (Decision::Run { member, .. }, Some(previous)) => previous.place == member,
                _ => false,
            };
            if let (false, Some((place, Cost::Back))) = (stays, payer) {
                self.mux.charge(place, Cost::Back, began, now);
                began = now;
            }
            let payer = payer.filter(|_| stays);
            let urgency = match decision {
                Decision::Run { member, .. } => Some(self.mux.urgency(member)),
                Decision::Idle { .. } => None,
            };
            // The kernel's requests take one request's time from urgent activities, and then no more for a while: `admission` counts
            // that. The same holds for ends for which the kernel had no slot.
            let calm = urgency >= Some(self.bar) && now < self.calm;
            let tells = self.ends && !calm && self.again <= now;
            if self.tile.answers || self.tile.requests && !calm || tells {
                self.tile
                    .take(core::mem::replace(&mut registers, Registers::Kept));
                // Remaining messages are seen when TileMux leaves the unit.
                if core::mem::take(&mut self.tile.answers) {
                    self.answers();
                }
                if tells {
                    self.tell_ends();
                }
                let did = !calm && core::mem::take(&mut self.tile.requests) && self.request();
                let over = dtu::time();
                if did || tells {
                    self.calm = over + self.distance.max(REQUEST_REST * (over - began));
                }
                // No activity pays for it.
                if let Some(running) = &mut self.running {
                    running.since = over;
                }
                work = Some((over, None));
                continue;
            }
            self.tile.listen(now, if calm { self.calm } else { 0 });
            // The unit does not announce a request that came while TileMux had it.
            let looks = match calm {
                true => (self.tile.requests || self.ends).then_some(self.calm),
                false => self.ends.then_some(self.again),
            };
            match decision {
                Decision::Run {
                    member: place,
                    until,
                } => {
                    let Some(activity) = self.mux.at(place) else {
                        panic!("nobody is at {place}")
                    };
                    let (id, bucket, satp) = (activity.id, activity.bucket, activity.space.satp());
                    let left = previous.filter(|_| !stays);
                    let gives_back =
                        left.filter(|left| self.mux.gives_back(left.place, Some(place)));
                    if gives_back.is_none() {
                        let until = until.into_iter().chain(looks).min();
                        // Time for which another activity pays is not part of its run.
                        let others = payer.map_or(0, |_| self.unseen * 3 / 2);
                        self.tile.set_timer(until.map(|until| until + others));
                    }
                    marker::mux_runs(id.into());
                    if !stays {
                        arch::switch(left.map(|left| left.place), place, satp);
                    }
                    let since = began;
                    self.running = Some(Running { id, place, since });
                    let missed =
                        self.tile
                            .give(registers, place, (id, bucket, urgency.unwrap_or(0)));
                    registers = Registers::Kept;
                    if let Some(left) = gives_back {
                        // Its run, and so the timer, begins when the switch is over.
                        work = Some((began, Some((left.place, Cost::Back))));
                    }
                    let own = self.tile.answers || self.tile.requests && (!calm || looks.is_none());
                    if self.missed(previous, missed) || own || gives_back.is_some() {
                        continue;
                    }
                    if let Some((payer, cost)) = payer {
                        let since = dtu::time() + self.unseen;
                        self.mux.charge(payer, cost, began, since);
                        self.running = Some(Running { id, place, since });
                    }
                    return Resume::Place(place);
                }
                Decision::Idle { until } => {
                    marker::mux_runs(IDLE_ACTIVITY.into());
                    self.tile.set_timer(until.into_iter().chain(looks).min());
                    if let Some(previous) = self.running.take() {
                        arch::park(previous.place);
                    }
                    let missed = self.tile.rest(registers);
                    registers = Registers::Kept;
                    let left = previous.filter(|left| self.mux.gives_back(left.place, None));
                    if let Some(left) = left {
                        self.mux.charge(left.place, Cost::Back, began, dtu::time());
                    }
                    let own = self.tile.answers || self.tile.requests;
                    if !(self.missed(previous, missed) || own) {
                        arch::wait_for_interrupt();
                        self.announcements();
                    }
                }
            }
        }
    }

    /// After the unit has changed its current activity: returns whether unread messages of the former one end its wait.
    fn missed(&mut self, previous: Option<Running>, unread: bool) -> bool {
        let Some(Running { place, .. }) = previous.filter(|_| unread) else {
            return false;
        };
        let awaited = self.mux.awaits(place);
        let is_there = awaited.is_some_and(|e| e == NO_ENDPOINT || tile::unread(e));
        if is_there {
            self.mux.wake(place, dtu::time());
        }
        is_there
    }
}
