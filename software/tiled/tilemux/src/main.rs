//! TileMux on a user tile, in machine mode.
//!
//! Why it exists: turns traps into changes of [`bulkhead_tilemux::mux::Mux`] and resumes the activity that it chooses. What it
//! deliberately does not know: other tiles, except that the kernel sends requests and wants to hear of what stops.
//!
//! The way from one activity to another is short: the unit goes from the one to the other at once. TileMux itself becomes the
//! unit's current activity only to talk to the kernel.
#![no_std]
#![no_main]

mod arch;
mod second;
mod tile;

use arch::Resume;
use bulkhead_abi::dtu::{IDLE_ACTIVITY, NO_ENDPOINT, TILEMUX_ACTIVITY, TLB_WRITE};
use bulkhead_abi::marker::{HEAP_EXHAUSTED, MarkerKind, PANIC, Since};
use bulkhead_abi::pager::PagerAnswer;
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{Ecall, Request, TileMuxError};
use bulkhead_exec::tile::{Decision, Policy};
use bulkhead_hal::trap::{A0, A1, A7};
use bulkhead_hal::{dtu, marker};
use bulkhead_tilemux::mux::{Access, Mux, Witness, is_environment_call, panic_cause};
use second::BOARD;
use tile::{Registers, Tile};

/// Interrupt bit of `mcause`.
const INTERRUPT: u64 = 1 << 63;
/// Announced messages that one interrupt takes at most: the time in machine mode is bounded however fast they come.
const ANNOUNCEMENTS: usize = 4;

/// The activity that runs.
#[derive(Clone, Copy)]
struct Running {
    id: u16,
    place: usize,
    since: u64,
}

/// Why a text was not printed.
enum Unprinted {
    /// This is the call's result.
    Result(u64),
    /// The page of this address is not there yet.
    Page(u64),
}

/// The machine hears of who wants the hart.
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
    /// A second hart takes the announcements of messages.
    second: bool,
}

impl TileMux {
    fn new(policy: Policy, slice: u64, second: bool) -> Self {
        Self {
            mux: Mux::new(policy, slice, Markers),
            tile: Tile::new(),
            running: None,
            second,
        }
    }

    /// A trap of the running activity, whose registers are in its context.
    fn trap(&mut self, cause: u64, value: u64) -> Resume {
        let Some(Running { id, place, .. }) = self.running else {
            panic!("a trap while nothing runs: {cause:#x}")
        };
        if cause & INTERRUPT != 0 {
            marker::mux_interrupts(cause);
            return self.interrupt(place);
        }
        if is_environment_call(cause) {
            return self.call(id, place);
        }
        let pc = arch::context(place).pc();
        let reason = StopCause::Fault { cause, pc, value };
        if let Some(access) = Access::of_cause(cause) {
            if self.mux.fault(&mut self.tile, place, value, access) {
                arch::mapped(place);
                return Resume::Same;
            }
            if let Some((pager, page)) = self.mux.pager(&self.tile, place, value, access) {
                // It finds its command registers again, as after an interrupt.
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
        if self.tile.ask_pager(pager, id, page, access) {
            self.mux.suspend(place, reason, dtu::time());
            self.requests();
        } else {
            self.stop(id, reason);
        }
        self.dispatch(Registers::Kept)
    }

    /// A pager answered a fault.
    fn answered(&mut self, id: u16, answer: u64) {
        let Some((place, _, reason)) = self.mux.suspended(id) else {
            // The activity was ended meanwhile.
            return;
        };
        if answer == PagerAnswer::Mapped as u64 {
            self.mux.wake(place, dtu::time());
        } else {
            self.end(id, reason);
        }
    }

    /// An activity was told that something will not come. If it waits for its pager, and that is gone, it ends.
    fn abandoned(&mut self, id: u16) {
        if let Some((_, pager, reason)) = self.mux.suspended(id)
            && !tile::leads_somewhere(pager)
        {
            self.end(id, reason);
        }
    }

    /// A system call's arguments name an address that is not mapped: its page is asked for, and the call made again.
    fn ask_for_call(
        &mut self,
        (id, place): (u16, usize),
        (pc, address): (u64, u64),
        access: Access,
    ) -> Option<Resume> {
        let asked = self.mux.pager(&self.tile, place, address, access)?;
        let cause = match access {
            Access::Write => 15,
            Access::Read | Access::Execute => 13,
        };
        let value = address;
        let reason = StopCause::Fault { cause, pc, value };
        Some(self.ask((id, place), asked, access, reason, Registers::Dropped))
    }

    /// A call of the activity.
    fn call(&mut self, id: u16, place: usize) -> Resume {
        let context = arch::context(place);
        // Behind the `ecall`, which has 4 bytes.
        context.registers[0] += 4;
        let (first, second) = (context.registers[A0], context.registers[A1]);
        let Some(call) = Ecall::from_code(context.registers[A7]) else {
            let pc = context.pc() - 4;
            let value = context.registers[A7];
            let cause = 8;
            self.stop(id, StopCause::Fault { cause, pc, value });
            return self.dispatch(Registers::Kept);
        };
        context.registers[A0] = 0;
        let pc = context.pc() - 4;
        match call {
            Ecall::Translate => {
                let known = self.mux.translate(&mut self.tile, id, first, second & 3);
                context.registers[A0] = u64::from(!known);
                let access = match second & TLB_WRITE {
                    0 => Access::Read,
                    _ => Access::Write,
                };
                if !known && let Some(resume) = self.ask_for_call((id, place), (pc, first), access)
                {
                    // It repeats the command, and then the page is there.
                    arch::context(place).registers[A0] = 0;
                    return resume;
                }
                return Resume::Same;
            }
            Ecall::Print => match self.print(id, place, first, second) {
                Err(Unprinted::Page(address)) => {
                    // The call is made again when the page is there.
                    context.registers[A0] = first;
                    context.registers[0] -= 4;
                    let asked = self.ask_for_call((id, place), (pc, address), Access::Read);
                    return asked.unwrap_or(Resume::Same);
                }
                Ok(result) => {
                    context.registers[A0] = result;
                    self.requests();
                }
                Err(Unprinted::Result(result)) => {
                    context.registers[A0] = result;
                    return Resume::Same;
                }
            },
            Ecall::Wait => {
                let endpoint = u16::try_from(first).unwrap_or(NO_ENDPOINT);
                let now = dtu::time();
                self.mux.wait(&self.tile, place, endpoint, second, now);
                if self.second {
                    let urgency = self.mux.urgency(place);
                    BOARD.waits(place, id, urgency, endpoint);
                }
            }
            Ecall::Yield => self.mux.give_way(place),
            Ecall::Exit => self.stop(id, StopCause::Exit(first)),
            Ecall::Panic => self.stop(id, panic_cause(first)),
        }
        self.dispatch(Registers::Dropped)
    }

    /// Sends text to the kernel's console. The result for the activity; an error if it goes on at once.
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
            let mut found = self.mux.readable(&self.tile, id, address);
            if found.is_none() && self.mux.fault(&mut self.tile, place, address, Access::Read) {
                arch::mapped(place);
                found = self.mux.readable(&self.tile, id, address);
            }
            match found {
                Some(physical) => *byte = arch::read_byte(physical),
                None if self
                    .mux
                    .pager(&self.tile, place, address, Access::Read)
                    .is_some() =>
                {
                    return Err(Unprinted::Page(address));
                }
                None => return Err(Unprinted::Result(1)),
            }
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
        self.requests();
    }

    /// Ends an activity that does not run. TileMux is the unit's current activity.
    fn end(&mut self, id: u16, cause: StopCause) {
        if let StopCause::Fault { cause, .. } = cause {
            marker::activity_fault(cause);
        }
        self.remove(id, cause);
    }

    fn remove(&mut self, id: u16, cause: StopCause) {
        self.mux.remove(&mut self.tile, id);
        self.tile.notify(id, cause);
    }

    /// An interrupt: messages for activities that do not run, requests of the kernel, the timer.
    fn interrupt(&mut self, running: usize) -> Resume {
        let (mut changed, mut requests) = (false, false);
        if self.second {
            (changed, requests) = self.news();
            changed |= self.tile.take_timer();
            if requests {
                self.tile.take(Registers::Kept);
                self.requests();
            } else if !changed {
                return Resume::Same;
            }
            return self.dispatch(Registers::Kept);
        }
        let urgency = self.mux.urgency(running);
        for _ in 0..ANNOUNCEMENTS {
            match self.tile.take_announcement() {
                None => break,
                Some((TILEMUX_ACTIVITY, _)) => requests = true,
                // Who is less urgent waits until this one does not run any more.
                Some((id, endpoint)) => {
                    let woken = self.mux.message(id, endpoint, dtu::time);
                    changed |= woken.is_some_and(|woken| self.mux.urgency(woken) >= urgency);
                }
            }
        }
        changed |= self.tile.take_timer();
        if requests {
            self.tile.take(Registers::Kept);
            self.requests();
        } else if !changed {
            return Resume::Same;
        }
        self.dispatch(Registers::Kept)
    }

    /// Takes the notes of the second hart: whether an activity was woken, and whether the kernel sent something.
    fn news(&mut self) -> (bool, bool) {
        let (mut woken, requests) = BOARD.take();
        let changed = woken != 0;
        while woken != 0 {
            let place = woken.trailing_zeros() as usize;
            woken &= woken - 1;
            if self.mux.awaits(place).is_some() {
                self.mux.wake(place, dtu::time());
            }
        }
        (changed, requests)
    }

    /// Carries out what the kernel asks. TileMux is the unit's current activity.
    fn requests(&mut self) {
        let now = dtu::time();
        self.answers();
        while let Some((offset, request)) = self.tile.fetch_request() {
            let answer = match request {
                Some(request) => self.mux.request(&mut self.tile, request, now),
                None => Err(TileMuxError::BadRequest),
            };
            if let Ok(Some((id, entry))) = answer
                && let Some(place) = self.mux.place(id)
            {
                arch::start_context(place, entry);
                self.tile.forget(place);
            }
            if let (Some(Request::MapPages { activity, .. }), Ok(_)) = (request, answer)
                && let Some(place) = self.mux.place(activity)
            {
                arch::mapped(place);
            }
            self.tile.answer(offset, answer.err());
            if let Some(Request::Wake { activity }) = request {
                self.abandoned(activity);
            }
        }
        // The kernel may have stopped the one that ran.
        if let Some(Running { id, .. }) = self.running
            && self.mux.place(id).is_none()
        {
            self.running = None;
        }
    }

    /// Takes the answers of pagers. TileMux is the unit's current activity.
    fn answers(&mut self) {
        while let Some((id, answer)) = self.tile.take_answer() {
            self.answered(id, answer);
        }
    }

    /// Decides who runs and gives the unit to it; `registers` says what becomes of the registers of the one that ran.
    fn dispatch(&mut self, mut registers: Registers) -> Resume {
        loop {
            let now = dtu::time();
            let previous = self.running;
            if let Some(running) = &mut self.running {
                self.mux.charge(running.place, running.since, now);
                running.since = now;
            }
            if self.second && BOARD.has_news() {
                let (_, requests) = self.news();
                if requests {
                    self.tile
                        .take(core::mem::replace(&mut registers, Registers::Kept));
                    self.requests();
                    continue;
                }
            }
            match self.mux.decide(now) {
                Decision::Run {
                    member: place,
                    until,
                } => {
                    self.tile.set_timer(until);
                    let Some(activity) = self.mux.at(place) else {
                        panic!("nobody is at {place}")
                    };
                    let id = activity.id;
                    marker::mux_runs(id.into());
                    if previous.is_none_or(|previous| previous.place != place) {
                        arch::switch(previous.map(|p| p.place), place, activity.space.satp());
                    }
                    let since = now;
                    self.running = Some(Running { id, place, since });
                    let bucket = activity.bucket;
                    // What came before the second hart could know that somebody less urgent runs.
                    let mut look = false;
                    if self.second {
                        let lower = BOARD.runs(place, self.mux.urgency(place));
                        look = lower && BOARD.has_news();
                    }
                    let missed = self.tile.give(registers, place, id, bucket);
                    registers = Registers::Kept;
                    if !self.missed(previous, missed) && !look {
                        return Resume::Place(place);
                    }
                }
                Decision::Idle { until } => {
                    marker::mux_runs(IDLE_ACTIVITY.into());
                    self.tile.set_timer(until);
                    if let Some(previous) = self.running.take() {
                        arch::park(previous.place);
                    }
                    if self.second {
                        BOARD.rests();
                    }
                    let missed = self.tile.rest(registers);
                    registers = Registers::Kept;
                    if !(self.missed(previous, missed) || self.second && BOARD.has_news()) {
                        arch::wait_for_interrupt();
                        self.wake_up();
                    }
                }
            }
        }
    }

    /// After the unit has changed its current activity: what came for the former one before, without being announced. Returns
    /// whether that changes anything.
    fn missed(&mut self, previous: Option<Running>, unread: tile::Unread) -> bool {
        match unread {
            tile::Unread::Nothing => false,
            tile::Unread::Own => {
                self.tile.take(Registers::Kept);
                self.requests();
                true
            }
            tile::Unread::Activity => {
                let Some(Running { place, .. }) = previous else {
                    return false;
                };
                let Some(endpoint) = self.mux.awaits(place) else {
                    return false;
                };
                if endpoint != NO_ENDPOINT && !tile::unread(endpoint) {
                    return false;
                }
                self.mux.wake(place, dtu::time());
                true
            }
        }
    }

    /// Something ended the rest of the tile.
    fn wake_up(&mut self) {
        if self.second {
            self.tile.take_timer();
            // The loop that rested looks at the news.
            return;
        }
        let mut requests = false;
        for _ in 0..ANNOUNCEMENTS {
            match self.tile.take_announcement() {
                None => break,
                Some((TILEMUX_ACTIVITY, _)) => requests = true,
                Some((id, endpoint)) => {
                    self.mux.message(id, endpoint, dtu::time);
                }
            }
        }
        self.tile.take_timer();
        if requests {
            self.tile.take(Registers::Kept);
            self.requests();
        }
    }
}
