//! TileMux on a user tile, in machine mode.
//!
//! Why it exists: turns traps into changes of [`bulkhead_tilemux::mux::Mux`] and resumes whom that decides. What it
//! deliberately does not know: other tiles, except that the kernel sends requests and wants to hear of what stops.
#![no_std]
#![no_main]

mod arch;
mod tile;

use arch::Resume;
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::marker::{HEAP_EXHAUSTED, PANIC};
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::Ecall;
use bulkhead_exec::tile::{Decision, Policy};
use bulkhead_hal::trap::{A0, A1, A7};
use bulkhead_hal::{dtu, marker};
use bulkhead_tilemux::mux::{Mux, is_environment_call, panic_cause};
use tile::Tile;

/// Interrupt bit of `mcause`.
const INTERRUPT: u64 = 1 << 63;

/// TileMux.
struct TileMux {
    mux: Mux,
    tile: Tile,
    /// Who runs, and since when.
    running: Option<(u16, u64)>,
}

impl TileMux {
    fn new(policy: Policy, slice: u64) -> Self {
        Self {
            mux: Mux::new(policy, slice),
            tile: Tile::new(),
            running: None,
        }
    }

    /// A trap of the running activity, whose registers are in its context.
    fn trap(&mut self, cause: u64, value: u64) -> Resume {
        let Some((id, _)) = self.running else {
            panic!("a trap while nothing runs: {cause:#x}")
        };
        if cause & INTERRUPT == 0 {
            if is_environment_call(cause) {
                if self.call(id) {
                    return Resume::Same;
                }
            } else {
                let pc = arch::context(self.place(id)).pc();
                self.stop(id, StopCause::Fault { cause, pc, value });
            }
        }
        self.schedule()
    }

    fn place(&self, id: u16) -> usize {
        match self.mux.place(id) {
            Some(place) => place,
            None => panic!("activity {id} is not here"),
        }
    }

    /// A call of the activity. True if it simply goes on.
    fn call(&mut self, id: u16) -> bool {
        let context = arch::context(self.place(id));
        // Behind the `ecall`, which has 4 bytes.
        context.registers[0] += 4;
        let (first, second) = (context.registers[A0], context.registers[A1]);
        let Some(call) = Ecall::from_code(context.registers[A7]) else {
            let pc = context.pc() - 4;
            let cause = StopCause::Fault {
                cause: 8,
                pc,
                value: context.registers[A7],
            };
            self.stop(id, cause);
            return false;
        };
        context.registers[A0] = 0;
        match call {
            Ecall::Translate => {
                let rights = second & 3;
                let known = self.mux.translate(&mut self.tile, id, first, rights);
                arch::context(self.place(id)).registers[A0] = u64::from(!known);
                true
            }
            Ecall::Print => {
                let (result, done) = self.print(id, first, second);
                arch::context(self.place(id)).registers[A0] = result;
                done
            }
            Ecall::Wait => {
                let endpoint = u16::try_from(first).unwrap_or(NO_ENDPOINT);
                // Before the look at the messages: from now on, new ones raise an interrupt.
                self.leave();
                let now = dtu::time();
                self.mux.wait(&self.tile, id, endpoint, second, now);
                false
            }
            Ecall::Yield => {
                self.mux.give_way(id);
                false
            }
            Ecall::Exit => {
                self.stop(id, StopCause::Exit(first));
                false
            }
            Ecall::Panic => {
                self.stop(id, panic_cause(first));
                false
            }
        }
    }

    /// Sends text to the kernel's console. The result for the activity, and whether it simply goes on.
    fn print(&mut self, id: u16, address: u64, length: u64) -> (u64, bool) {
        if length > bulkhead_abi::tilemux::PRINT_TEXT as u64 {
            return (1, true);
        }
        let mut text = [0; bulkhead_abi::tilemux::PRINT_TEXT];
        let text = &mut text[..length as usize];
        for (offset, byte) in text.iter_mut().enumerate() {
            let address = address.wrapping_add(offset as u64);
            match self.mux.readable(&self.tile, id, address) {
                Some(physical) => *byte = arch::read_byte(physical),
                None => return (1, true),
            }
        }
        if length == 0 {
            return (0, true);
        }
        self.leave();
        let sent = self.tile.print(text);
        let done = self.enter(id);
        (if sent { 0 } else { 2 }, done)
    }

    /// Ends an activity and tells the kernel.
    fn stop(&mut self, id: u16, cause: StopCause) {
        match cause {
            StopCause::Fault { cause, .. } => marker::activity_fault(cause),
            StopCause::Panic => marker::activity_fault(PANIC),
            StopCause::OutOfMemory => marker::activity_fault(HEAP_EXHAUSTED),
            StopCause::Exit(_) | StopCause::Killed => {}
        }
        self.leave();
        self.running = None;
        self.mux.remove(&mut self.tile, id);
        dtu::invalidate_translations();
        self.tile.notify(id, cause);
    }

    /// The running activity leaves the unit: its command registers are saved, TileMux is the current activity.
    fn leave(&mut self) {
        if let Some((id, _)) = self.running
            && !self.tile.is_own()
        {
            let place = self.place(id);
            self.tile.leave(place);
        }
    }

    /// The activity gets the unit. False if TileMux must look at requests first.
    fn enter(&mut self, id: u16) -> bool {
        let place = self.place(id);
        let bucket = self.mux.activity(id).map_or(0, |a| a.bucket);
        self.tile.enter(place, id, bucket)
    }

    /// Looks at interrupts and requests, and decides who runs.
    fn schedule(&mut self) -> Resume {
        loop {
            let was_running = self.running;
            self.leave();
            let now = dtu::time();
            if let Some((id, since)) = was_running {
                // An activity that has just been stopped is not there any more.
                self.mux.charge(id, since, now);
            }
            while let Some((activity, endpoint)) = self.tile.take_core_request() {
                self.mux.message(activity, endpoint, now);
            }
            self.tile.take_timer();
            self.tile.take_print_answer();
            while let Some((offset, request)) = self.tile.fetch_request() {
                let answer = match request {
                    Some(request) => self.mux.request(&mut self.tile, request, now),
                    None => Err(bulkhead_abi::tilemux::TileMuxError::BadRequest),
                };
                if let Ok(Some((id, entry))) = answer {
                    let place = self.place(id);
                    arch::start_context(place, entry);
                    self.tile.forget(place);
                }
                self.tile.answer(offset, answer.err());
            }
            if let Some((id, _)) = was_running
                && self.mux.place(id).is_none()
            {
                self.running = None;
            }
            match self.mux.decide(dtu::time()) {
                Decision::Run { id, until } => {
                    self.tile.set_timer(until);
                    let place = self.place(id);
                    let previous = self.running.map(|(id, _)| self.place(id));
                    if let Some(activity) = self.mux.activity(id) {
                        arch::switch(previous, place, activity.space.satp());
                    }
                    self.running = Some((id, dtu::time()));
                    if self.enter(id) {
                        return Resume::Place(place);
                    }
                }
                Decision::Idle { until } => {
                    if let Some((id, _)) = self.running.take() {
                        arch::park(self.place(id));
                    }
                    self.tile.set_timer(until);
                    self.tile.idle();
                }
            }
        }
    }
}
