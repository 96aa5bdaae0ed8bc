//! The attacks that every application can mount with its own resources, and the loop that carries a plan out.
//!
//! Argument `plan`: 48 letters `a` to `p`, each four bits, the most significant first: 8 letters for the moment of the start (microseconds
//! since reset), 8 for the seed of random numbers, then four phases of 8 letters each, repeated for ever: kind (2), strength (2), length in
//! microseconds (4). All plans have one length and are read along one path, so systems with different plans start identically to the cycle.
//! Kinds: see `attack`, and from 14 on `rights`. It finds gates by trying every endpoint, as an attacker would.

use crate::rights::Rights;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bulkhead_lib::abi::dtu::{ADDRESS, ARGUMENT, COMMAND, DtuError, NO_ENDPOINT, SIZE};
use bulkhead_lib::abi::memory_map::DTU_BASE;
use bulkhead_lib::abi::syscall::{SYSCALL_WORDS, Syscall};
use bulkhead_lib::abi::tilemux::{Ecall, FIRST_ENDPOINT};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::hal::{dtu, probe, user};
use bulkhead_lib::{argument, environment, syscall, time};
use bulkhead_random::Random;

/// The first kind that uses rights other than memory and gates, and the kind that uses the device.
const RIGHTS: u64 = 14;
const FRAMES: u64 = 23;
/// Endpoints to try.
const ENDPOINTS: u16 = 256;
/// The most bytes of a message's payload.
const MESSAGE: usize = 2016;

/// Data of transfers and messages, on a page of its own.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

#[derive(Clone, Copy)]
struct Phase {
    kind: u64,
    strength: u64,
    nanoseconds: u64,
}

/// What an attacker has in addition to memory and gates.
pub trait Device {
    /// Does a little of an attack with the device; `end` is the end of the phase.
    fn attack(&mut self, strength: u64, random: &mut Random, end: u64);
}

struct Attacker {
    random: Random,
    page: Box<Page>,
    /// Reserved and never initialised: where traffic is limited, initialising it would take longer than the attack.
    memory: Vec<u64>,
    /// Where the walk through the memory continues.
    at: usize,
    /// Memory gates found so far, each with its readable or writable bytes.
    regions: Vec<MemoryGate>,
    senders: Vec<u16>,
    receivers: Vec<u16>,
    rights: Rights,
}

fn number(letters: &[u8]) -> u64 {
    letters
        .iter()
        .fold(0, |sum, letter| sum << 4 | u64::from(letter - b'a') & 15)
}

/// Carries the plan out; ends only if there is none.
pub fn run(device: &mut impl Device) -> u64 {
    let plan = argument::text("plan").unwrap_or_default().as_bytes();
    if plan.len() != 48 {
        return 1;
    }
    let start = number(&plan[..8]) * 1000;
    let seed = number(&plan[8..16]) << 1 | 1;
    let phases: Vec<Phase> = plan[16..]
        .chunks_exact(8)
        .map(|phase| Phase {
            kind: number(&phase[..2]),
            strength: number(&phase[2..4]),
            nanoseconds: number(&phase[4..]) * 1000,
        })
        .collect();
    // Half of the heap, so that the allocator's own data has room.
    let words = environment().heap_size as usize / 16;
    let mut attacker = Attacker {
        random: Random::new(seed),
        page: Box::new(Page([0; 4096])),
        memory: Vec::with_capacity(words.max(8)),
        at: 0,
        regions: Vec::new(),
        senders: Vec::new(),
        receivers: Vec::new(),
        rights: Rights::new(),
    };
    time::sleep_until(start);
    attacker.explore();
    loop {
        for phase in &phases {
            let end = time::now() + phase.nanoseconds.max(1000);
            while time::now() < end {
                match phase.kind {
                    FRAMES => device.attack(phase.strength, &mut attacker.random, end),
                    _ => attacker.attack(phase, end),
                }
            }
        }
    }
}

impl Attacker {
    /// Finds its gates.
    fn explore(&mut self) {
        let own = environment();
        let mine = [own.syscall_send, own.syscall_reply, own.call_reply];
        let not_mine = |error| {
            matches!(
                error,
                Err(DtuError::InvalidEndpoint | DtuError::ForeignEndpoint)
            )
        };
        for endpoint in (FIRST_ENDPOINT..ENDPOINTS).filter(|e| !mine.contains(e)) {
            if dtu::fetch(endpoint).is_ok() {
                self.receivers.push(endpoint);
                continue;
            }
            let everything = MemoryGate::new(endpoint, u64::MAX);
            let mut usable = |offset| {
                everything.read(offset, &mut self.page.0[..8]).is_ok()
                    || everything.write(offset, &self.page.0[..8]).is_ok()
            };
            if usable(0) {
                let mut size = 4096;
                while size < 1 << 32 && usable(2 * size - 8) {
                    size *= 2;
                }
                self.regions.push(MemoryGate::new(endpoint, size));
                continue;
            }
            if !not_mine(self.send(endpoint, 8)) {
                self.senders.push(endpoint);
            }
        }
    }

    fn send(&mut self, endpoint: u16, bytes: usize) -> Result<(), DtuError> {
        let reply = environment().call_reply;
        let data = &self.page.0[..bytes];
        loop {
            match dtu::send(endpoint, data, reply, 0) {
                Err(DtuError::TranslationFault) => {
                    if user::ecall(Ecall::Translate, data.as_ptr() as u64, 1) != 0 {
                        return Err(DtuError::TranslationFault);
                    }
                }
                other => return other,
            }
        }
    }

    /// Frees the slots of a receive endpoint; replies where possible.
    fn drain(&mut self, endpoint: u16, answer: bool) {
        while let Ok(Some(offset)) = dtu::fetch(endpoint) {
            let data = &self.page.0[..8];
            if !answer || dtu::reply(endpoint, offset, data).is_err() {
                let _ = dtu::acknowledge(endpoint, offset);
            }
        }
    }

    /// Does a little of one kind; `end` is the end of the phase.
    fn attack(&mut self, phase: &Phase, end: u64) {
        match phase.kind {
            0 => time::sleep_until(end),
            1 => {
                for _ in 0..1000 {
                    core::hint::spin_loop();
                }
            }
            2..=4 => self.walk(phase),
            5 => self.transfer(phase, false),
            6 => self.transfer(phase, true),
            7 => self.messages(phase),
            8 => self.system_calls(),
            9 => self.tilemux_calls(phase),
            10 => self.unit_commands(),
            11 => time::sleep_until(time::now() + 500 + 100 * phase.strength),
            12 => {
                for index in 0..self.receivers.len() {
                    self.drain(self.receivers[index], true);
                }
            }
            13 => self.copy(),
            RIGHTS.. => {
                let random = &mut self.random;
                self.rights
                    .attack(phase.kind, phase.strength, random, &self.senders);
                let replies = environment().call_reply;
                if replies != NO_ENDPOINT {
                    self.drain(replies, false);
                }
            }
        }
    }

    /// Reads (2), writes (3) or copies (4) along its memory; the strength is the stride in lines of 64 bytes.
    fn walk(&mut self, phase: &Phase) {
        let stride = 8 * phase.strength.max(1) as usize;
        let length = self.memory.capacity();
        let base = self.memory.as_ptr() as u64;
        for _ in 0..64 {
            self.at = (self.at + stride) % length;
            let (here, there) = (8 * self.at as u64, 8 * (length - 1 - self.at) as u64);
            match phase.kind {
                2 => {
                    probe::load(base + here);
                }
                3 => probe::store(base + here, here),
                _ => probe::store(base + here, probe::load(base + there)),
            }
        }
    }

    /// Copies one half of its memory to the other, line by line.
    fn copy(&mut self) {
        let half = (self.memory.capacity() / 2) & !7;
        let base = self.memory.as_ptr() as u64;
        for _ in 0..16 {
            self.at = if self.at + 8 >= half { 0 } else { self.at + 8 };
            let from = base + 8 * self.at as u64;
            let line: [u64; 8] = core::array::from_fn(|word| probe::load(from + 8 * word as u64));
            for (word, value) in line.into_iter().enumerate() {
                probe::store(from + 8 * (half + word) as u64, value);
            }
        }
    }

    fn transfer(&mut self, phase: &Phase, write: bool) {
        let bytes = (64usize << (phase.strength % 7)).min(4096);
        for index in 0..self.regions.len() {
            let region = self.regions[index];
            let offset = self.random.below(region.size() / 64) * 64;
            let offset = offset.min(region.size() - bytes as u64);
            let _ = match write {
                true => region.write(offset, &self.page.0[..bytes]),
                false => region.read(offset, &mut self.page.0[..bytes]),
            };
        }
        if self.regions.is_empty() {
            self.walk(phase);
        }
    }

    fn messages(&mut self, phase: &Phase) {
        let bytes = (8usize << (phase.strength % 9)).min(MESSAGE);
        for index in 0..self.senders.len() {
            let endpoint = self.senders[index];
            if self.send(endpoint, bytes) == Err(DtuError::BadSize) {
                let _ = self.send(endpoint, 8);
            }
        }
        let replies = environment().call_reply;
        if replies != NO_ENDPOINT {
            self.drain(replies, false);
        }
        if self.senders.is_empty() {
            self.system_calls();
        }
    }

    fn system_calls(&mut self) {
        let mut words = [0; SYSCALL_WORDS];
        words[0] = self.random.below(64);
        for word in &mut words[1..] {
            *word = match self.random.below(4) {
                0 => self.random.next(),
                _ => self.random.below(32),
            };
        }
        match Syscall::decode(&words).unwrap_or(Syscall::Nothing {}) {
            // These would end the attack.
            Syscall::WaitEvent { .. } | Syscall::SemaphoreDown { .. } | Syscall::Stop { .. } => {}
            call => drop(syscall::call(&call)),
        }
    }

    fn tilemux_calls(&mut self, phase: &Phase) {
        let base = self.page.0.as_ptr() as u64;
        match phase.strength % 4 {
            0 => user::ecall(Ecall::Yield, 0, 0),
            1 => user::ecall(Ecall::Translate, base + self.random.below(1 << 22), 3),
            2 => user::ecall(Ecall::Wait, self.random.below(300), 1),
            // Unprintable text: the console stays readable.
            _ => user::ecall(Ecall::Print, base, 1),
        };
    }

    /// Random commands with random registers. None of them sleeps for long.
    fn unit_commands(&mut self) {
        let base = self.page.0.as_ptr() as u64;
        probe::store(DTU_BASE + ADDRESS, base + self.random.below(4096));
        probe::store(DTU_BASE + SIZE, self.random.below(2100));
        probe::store(DTU_BASE + ARGUMENT, 1 + self.random.below(5000));
        let endpoint = self.random.below(u64::from(ENDPOINTS));
        let argument = self.random.below(64);
        let opcode = self.random.below(9);
        probe::store(DTU_BASE + COMMAND, opcode | endpoint << 8 | argument << 32);
        probe::load(DTU_BASE + COMMAND);
    }
}
