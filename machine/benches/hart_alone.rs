//! The hart on a minimal bus, with flat memory and two small caches. Shows what the hart itself
//! costs.

use bulkhead_machine::hart::*;
use object::{Object, ObjectSegment};
use std::path::Path;

const BASE: u64 = 0x8000_0000;
const FINISHER: u64 = 0x10_0000;

struct Cache {
    tags: Vec<[u64; 8]>,
}

impl Cache {
    fn new(sets: usize) -> Self {
        Self {
            tags: vec![[u64::MAX; 8]; sets],
        }
    }
    /// LRU by order within the set.
    fn hit(&mut self, physical: u64) -> bool {
        let line = physical >> 6;
        let index = line as usize & (self.tags.len() - 1);
        let set = &mut self.tags[index];
        let found = set.iter().position(|tag| *tag == line);
        let place = found.unwrap_or(7);
        set[..=place].rotate_right(1);
        set[0] = line;
        found.is_some()
    }
}

struct SmallBus {
    memory: Vec<u8>,
    code: Cache,
    data: Cache,
    finished: Option<u64>,
}

impl Bus for SmallBus {
    #[inline(always)]
    fn fetch(&mut self, now: u64, physical: u64) -> Timing {
        if self.code.hit(physical) {
            Timing::Hit
        } else {
            Timing::Ready(now + 12)
        }
    }
    #[inline(always)]
    fn data(&mut self, now: u64, physical: u64, _: Access) -> Timing {
        if self.data.hit(physical) {
            Timing::Hit
        } else {
            Timing::Ready(now + 12)
        }
    }
    #[inline(always)]
    fn read(&mut self, physical: u64, bytes: u8) -> Result<u64, BusFault> {
        let start = physical.wrapping_sub(BASE) as usize;
        let slice = self
            .memory
            .get(start..start.wrapping_add(bytes as usize))
            .ok_or(BusFault)?;
        Ok(match bytes {
            1 => slice[0] as u64,
            2 => u16::from_le_bytes(slice.try_into().unwrap()) as u64,
            4 => u32::from_le_bytes(slice.try_into().unwrap()) as u64,
            _ => u64::from_le_bytes(slice.try_into().unwrap()),
        })
    }
    fn allows(&self, physical: u64, bytes: u64, _: bool) -> bool {
        let start = physical.wrapping_sub(BASE);
        start.saturating_add(bytes) <= self.memory.len() as u64
    }
    #[inline(always)]
    fn place(&self, physical: u64, _: bool) -> Place {
        physical - BASE
    }
    #[inline(always)]
    fn read_place(&mut self, place: Place, bytes: u8) -> u64 {
        self.read(BASE + place, bytes).expect("in memory")
    }
    #[inline(always)]
    fn write_place(&mut self, place: Place, bytes: u8, value: u64) {
        let start = place as usize;
        self.memory[start..start + bytes as usize]
            .copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
    }
    fn is_device(&self, physical: u64) -> bool {
        physical & !0xfff == FINISHER
    }
    fn device_read(&mut self, _: u64, _: u64, _: u8) -> Result<DeviceRead, BusFault> {
        Err(BusFault)
    }
    fn device_write(&mut self, _: u64, _: u64, _: u8, value: u64) -> Result<DeviceWrite, BusFault> {
        self.finished = Some(value);
        Ok(DeviceWrite {
            extra: 0,
            sleep: true,
        })
    }
    fn epoch(&self) -> u32 {
        0
    }
    fn timer(&self, now: u64) -> u64 {
        now
    }
    fn marker(&mut self, _: u64, _: u64, _: u16, _: u64, _: bool) {}
}

/// Runs a program to its end. Returns the number of instructions.
pub fn run(program: &Path) -> u64 {
    let bytes = std::fs::read(program).expect("the program is there");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let mut bus = SmallBus {
        memory: vec![0; 8 << 20],
        code: Cache::new(64),
        data: Cache::new(64),
        finished: None,
    };
    for segment in file.segments() {
        let data = segment.data().expect("segment data");
        let start = (segment.address() - BASE) as usize;
        bus.memory[start..start + data.len()].copy_from_slice(data);
    }
    let mut hart = Hart::new(&HartConfig::default(), 0);
    hart.reset(file.entry(), 0);
    let stop = hart.run(&mut bus, u64::MAX);
    assert_eq!(
        (stop, bus.finished),
        (Stop::Sleep, Some(0x5555)),
        "the kernel's check failed"
    );
    hart.statistics().instructions
}
