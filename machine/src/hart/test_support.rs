//! For the hart's own tests: a small assembler and a flat bus with made-up latencies.

use super::*;
use std::collections::BTreeMap;

pub const BASE: u64 = 0x8000_0000;
pub const DEVICE: u64 = 0x1000_0000;

/// Encodes instructions in sequence. Branch targets are instruction indexes.
#[derive(Default, Clone)]
pub struct Assembler {
    pub words: Vec<u32>,
}

impl Assembler {
    pub fn word(&mut self, word: u32) -> &mut Self {
        self.words.push(word);
        self
    }
    pub fn here(&self) -> i32 {
        self.words.len() as i32
    }
    pub fn r(
        &mut self,
        opcode: u32,
        funct3: u32,
        funct7: u32,
        rd: u32,
        rs1: u32,
        rs2: u32,
    ) -> &mut Self {
        self.word(funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode)
    }
    pub fn i(&mut self, opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> &mut Self {
        self.word((imm as u32 & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode)
    }
    pub fn s(&mut self, funct3: u32, rs2: u32, rs1: u32, imm: i32) -> &mut Self {
        let imm = imm as u32;
        self.word(
            (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 31) << 7 | 0x23,
        )
    }
    pub fn addi(&mut self, rd: u32, rs1: u32, imm: i32) -> &mut Self {
        self.i(0x13, 0, rd, rs1, imm)
    }
    pub fn add(&mut self, rd: u32, rs1: u32, rs2: u32) -> &mut Self {
        self.r(0x33, 0, 0, rd, rs1, rs2)
    }
    pub fn ld(&mut self, rd: u32, rs1: u32, imm: i32) -> &mut Self {
        self.i(0x03, 3, rd, rs1, imm)
    }
    pub fn sd(&mut self, rs2: u32, rs1: u32, imm: i32) -> &mut Self {
        self.s(3, rs2, rs1, imm)
    }
    pub fn csrw(&mut self, csr: u32, rs1: u32) -> &mut Self {
        self.i(0x73, 1, 0, rs1, csr as i32)
    }
    /// Opens the whole physical memory to the lower modes. Four instructions; clobbers `x6`.
    pub fn open_protection(&mut self) -> &mut Self {
        self.addi(6, 0, -1)
            .csrw(0x3b0, 6)
            .addi(6, 0, 0x1f)
            .csrw(0x3a0, 6)
    }
    pub fn csrr(&mut self, rd: u32, csr: u32) -> &mut Self {
        self.i(0x73, 2, rd, 0, csr as i32)
    }
    pub fn marker(&mut self, rs1: u32, kind: i32) -> &mut Self {
        self.i(0x13, 2, 0, rs1, kind)
    }
    /// Loads a constant by shifting in 11 bits at a time.
    pub fn li(&mut self, rd: u32, value: u64) -> &mut Self {
        self.addi(rd, 0, 0);
        let mut started = false;
        for group in (0..6).rev() {
            let bits = (value >> (group * 11) & 0x7ff) as i32;
            if started {
                self.i(0x13, 1, rd, rd, 11);
            }
            if bits != 0 {
                self.i(0x13, 6, rd, rd, bits);
                started = true;
            }
        }
        self
    }
    pub fn branch(&mut self, funct3: u32, rs1: u32, rs2: u32, target: i32) -> &mut Self {
        let offset = ((target - self.here()) * 4) as u32;
        let imm = (offset >> 12 & 1) << 31
            | (offset >> 5 & 0x3f) << 25
            | (offset >> 1 & 15) << 8
            | (offset >> 11 & 1) << 7;
        self.word(imm | rs2 << 20 | rs1 << 15 | funct3 << 12 | 0x63)
    }
    pub fn jal(&mut self, rd: u32, target: i32) -> &mut Self {
        let offset = ((target - self.here()) * 4) as u32;
        let imm = (offset >> 20 & 1) << 31
            | (offset >> 1 & 0x3ff) << 21
            | (offset >> 11 & 1) << 20
            | (offset >> 12 & 0xff) << 12;
        self.word(imm | rd << 7 | 0x6f)
    }
    pub fn bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }
}

pub const ECALL: u32 = 0x73;
pub const WFI: u32 = 0x1050_0073;
pub const MRET: u32 = 0x3020_0073;
pub const FENCE: u32 = 0x0ff0_000f;
pub const FENCE_I: u32 = 0x100f;

/// An event that the flat bus reports to its hart later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// An access to this address completes.
    Complete(u32, u64),
    /// The timer interrupt changes its level.
    Timer(bool),
}

/// Memory at [`BASE`], one device page at [`DEVICE`] whose registers read as the time of the access, and latencies that
/// depend only on the position of an access in the sequence of accesses.
#[derive(Clone)]
pub struct FlatBus {
    pub memory: Vec<u8>,
    /// 0: everything hits. Otherwise seeds the latencies.
    pub seed: u64,
    /// If not 0: the latency of every data access.
    pub constant: Tick,
    /// If not 0: how long every data access waits for its line.
    pub far: Tick,
    accesses: u64,
    /// Future events, by time and sequence.
    pub events: BTreeMap<(Tick, u32), Event>,
    pub markers: Vec<(Tick, u16, u64)>,
    pub device_log: Vec<(Tick, u64, u64)>,
    pub data_log: Vec<(Tick, u64, Access)>,
    pub fetch_log: Vec<(Tick, u64)>,
    token: u32,
    pub epoch: u32,
    /// Instead of made-up latencies: an LRU cache with 16 sets of two lines each (with
    /// the tick of their arrival), oldest first.
    pub cache: Option<Vec<Vec<(u64, Tick)>>>,
    /// If not 0: a regulator admits one access per this many ticks.
    pub distance: Tick,
    /// When it admits the next access.
    pub next_token: Tick,
    /// Accesses that were withdrawn.
    pub withdrawn: u32,
}

impl FlatBus {
    pub fn new(program: &[u8], seed: u64) -> Self {
        let mut memory = vec![0; 1 << 20];
        memory[..program.len()].copy_from_slice(program);
        Self {
            memory,
            seed,
            constant: 0,
            far: 0,
            accesses: 0,
            events: BTreeMap::new(),
            markers: Vec::new(),
            device_log: Vec::new(),
            data_log: Vec::new(),
            fetch_log: Vec::new(),
            token: 0,
            epoch: 0,
            cache: None,
            distance: 0,
            next_token: 0,
            withdrawn: 0,
        }
    }

    /// The line of an address, for the hart.
    pub fn line(&mut self, physical: u64) -> Option<(u64, &mut [u8])> {
        let line = physical & !63;
        let start = self.start(line, 64).ok()?;
        Some((line, &mut self.memory[start..start + 64]))
    }

    fn start(&self, physical: u64, bytes: u8) -> Result<usize, BusFault> {
        let start = physical.checked_sub(BASE).ok_or(BusFault)? as usize;
        if start + bytes as usize <= self.memory.len() {
            Ok(start)
        } else {
            Err(BusFault)
        }
    }

    fn timing(&mut self, now: Tick, physical: u64, write: bool) -> Timing {
        if self.constant != 0 {
            return Timing::ReadyOnce(now + self.constant);
        }
        if self.seed == 0 {
            return Timing::Hit;
        }
        // The hart may or may not ask again for the line that it used last, so that access must be a hit.
        self.accesses += 1;
        let mut hash = (physical >> 6) ^ self.seed ^ (self.accesses << 20) ^ (write as u64) << 60;
        for _ in 0..3 {
            hash = (hash ^ hash >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let latency = 1 + (hash >> 8) % 90;
        match hash >> 40 & 7 {
            0 | 1 => Timing::Ready(now + 4 + latency % 12),
            2 => {
                self.token += 1;
                let token = self.token;
                self.events.insert(
                    (now + 20 + latency, token),
                    Event::Complete(token, physical),
                );
                Timing::Pending(token)
            }
            _ => Timing::Hit,
        }
    }

    pub fn word(&self, address: u64) -> u64 {
        let start = (address - BASE) as usize;
        u64::from_le_bytes(self.memory[start..start + 8].try_into().unwrap())
    }

    /// Raises the timer interrupt at this tick.
    pub fn raise_timer(&mut self, at: Tick) {
        self.token += 1;
        self.events.insert((at, self.token), Event::Timer(true));
    }

    pub fn set_word(&mut self, address: u64, value: u64) {
        let start = (address - BASE) as usize;
        self.memory[start..start + 8].copy_from_slice(&value.to_le_bytes());
    }
}

impl Bus for FlatBus {
    fn regulates(&self) -> bool {
        self.distance != 0
    }
    fn admit(&mut self, now: Tick, _: u64, _: bool, user: bool) -> Result<(), Tick> {
        if now < self.next_token && user {
            return Err(self.next_token);
        }
        self.next_token = now + self.distance;
        Ok(())
    }
    fn withdraw(&mut self, _: Tick) {
        self.withdrawn += 1;
    }
    fn fetch(&mut self, now: Tick, physical: u64) -> Timing {
        self.fetch_log.push((now, physical));
        if self.constant != 0 || self.far != 0 {
            return Timing::Hit;
        }
        self.timing(now, physical, false)
    }
    fn data(&mut self, now: Tick, physical: u64, access: Access) -> Timing {
        self.data_log.push((now, physical, access));
        if self.far != 0 {
            self.token += 1;
            let event = Event::Complete(self.token, physical);
            self.events.insert((now + self.far, self.token), event);
            return Timing::Pending(self.token);
        }
        if let Some(sets) = &mut self.cache {
            let line = physical >> 6;
            let set = &mut sets[line as usize & 15];
            let known = set
                .iter()
                .position(|other| other.0 == line)
                .map(|place| set.remove(place));
            if known.is_none() && set.len() == 2 {
                set.remove(0);
            }
            let arrival = known.map_or(now + 17, |known| known.1);
            set.push((line, arrival));
            return if arrival <= now {
                Timing::Hit
            } else {
                Timing::Ready(arrival)
            };
        }
        self.timing(now, physical, access == Access::Store)
    }
    fn read(&mut self, physical: u64, bytes: u8) -> Result<u64, BusFault> {
        let start = self.start(physical, bytes)?;
        let mut value = [0; 8];
        value[..bytes as usize].copy_from_slice(&self.memory[start..start + bytes as usize]);
        Ok(u64::from_le_bytes(value))
    }
    fn allows(&self, physical: u64, bytes: u64, _: bool) -> bool {
        let end = BASE + self.memory.len() as u64;
        physical >= BASE && physical.saturating_add(bytes) <= end
    }
    fn place(&self, physical: u64, _: bool) -> Place {
        physical
    }
    fn read_place(&mut self, place: Place, bytes: u8) -> u64 {
        self.read(place, bytes).unwrap()
    }
    fn write_place(&mut self, place: Place, bytes: u8, value: u64) {
        let start = self.start(place, bytes).unwrap();
        self.memory[start..start + bytes as usize]
            .copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
    }
    fn is_device(&self, physical: u64) -> bool {
        physical & !0xfff == DEVICE
    }
    fn device_read(&mut self, now: Tick, physical: u64, _: u8) -> Result<DeviceRead, BusFault> {
        self.device_log.push((now, physical, 0));
        Ok(DeviceRead {
            value: now,
            extra: 3,
        })
    }
    fn device_write(
        &mut self,
        now: Tick,
        physical: u64,
        _: u8,
        value: u64,
    ) -> Result<DeviceWrite, BusFault> {
        self.device_log.push((now, physical, value));
        if physical & 0xfff == 0x10 {
            // Acknowledges the timer a little later, like a real interrupt controller.
            self.token += 1;
            self.events
                .insert((now + 5, self.token), Event::Timer(false));
        }
        Ok(DeviceWrite {
            extra: 0,
            sleep: physical & 0xfff == 0x700,
        })
    }
    fn epoch(&self) -> u32 {
        self.epoch
    }
    fn timer(&self, now: Tick) -> u64 {
        now / 10
    }
    fn limit(&self) -> Tick {
        self.events.keys().next().map_or(Tick::MAX, |(at, _)| *at)
    }
    fn marker(&mut self, now: Tick, _: u64, kind: u16, value: u64, _: bool) {
        self.markers.push((now, kind, value));
    }
}

/// A hart that starts with the program, and a bus on which everything hits.
pub fn start(assembler: &Assembler) -> (Hart, FlatBus) {
    let mut hart = Hart::new(&HartConfig::default(), 0);
    hart.reset(BASE, 0);
    (hart, FlatBus::new(&assembler.bytes(), 0))
}

/// Runs a program until it waits for an interrupt or dies.
pub fn run(assembler: &Assembler) -> (Hart, FlatBus, Stop) {
    let (mut hart, mut bus) = start(assembler);
    let stop = hart.run(&mut bus, 1_000_000);
    (hart, bus, stop)
}
