//! The card against closed forms and against hostile drivers, in a world of fixed latencies.

use super::*;
use crate::engine::EventQueue;
use proptest::prelude::*;

/// First byte of the driver's memory, and of physical memory behind it.
const BASE: u64 = 0x4000_0000;
const PHYSICAL: u64 = 0x8000_0000;
const SIZE: u64 = 0x1_0000;
/// Ticks of an access.
const LATENCY: Tick = 10;
/// Where the driver in these tests puts its rings.
const DESCRIPTORS: u64 = BASE;
const DRIVER: u64 = BASE + 0x1000;
const DEVICE: u64 = BASE + 0x2000;
const BUFFERS: u64 = BASE + 0x4000;

struct World {
    now: Tick,
    queue: EventQueue<CardEvent>,
    memory: Vec<u8>,
    sent: Vec<(Tick, Frame)>,
    waited: Vec<(Tick, bool)>,
    fates: Vec<(Tick, Fate)>,
}

impl World {
    fn at(&self, physical: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
        let start = physical.checked_sub(PHYSICAL)? as usize;
        let end = start.checked_add(bytes)?;
        (end <= self.memory.len()).then_some(start..end)
    }
}

impl Ports for World {
    fn now(&self) -> Tick {
        self.now
    }
    fn line(&self) -> u64 {
        64
    }
    fn allowed(&self, physical: u64, bytes: u64, _: bool) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| self.at(physical, bytes).is_some())
    }
    fn access(
        &mut self,
        physical: u64,
        block: Block<'_>,
        _: LocalToken,
    ) -> Result<Option<Tick>, Broken> {
        assert!((1..=64).contains(&block.len()));
        let place = self.at(physical, block.len());
        let place = place.ok_or(Broken)?;
        match block {
            Block::Read(buffer) => buffer.copy_from_slice(&self.memory[place]),
            Block::Write(data) => self.memory[place].copy_from_slice(data),
        }
        Ok(Some(self.now + LATENCY))
    }
    fn forget(&mut self, _: LocalToken) {}
    fn schedule(&mut self, at: Tick, event: CardEvent) {
        self.queue.push(at, 0, event);
    }
    fn transmit(&mut self, at: Tick, frame: Frame) {
        self.sent.push((at, frame));
    }
    fn waited(&mut self, ticks: Tick, link: bool) {
        if ticks > 0 {
            self.waited.push((ticks, link));
        }
    }
    fn fate(&mut self, _: &Frame, fate: Fate) {
        self.fates.push((self.now, fate));
    }
}

/// A card and its driver. One tick is a nanosecond and the rate is 1 Gbit/s: 8 ticks per byte.
struct Bench {
    card: NetworkCard,
    world: World,
}

impl Bench {
    fn new() -> Self {
        let config = NetworkCardConfig {
            rate: 125_000_000,
            mac: [2, 0, 0, 0, 0, 9],
            queue: 64,
            buffer: 4096,
            parallel: 4,
        };
        let confinement = Confinement {
            address: BASE,
            physical: PHYSICAL,
            size: SIZE,
            owner: Owner::new(1, 7),
        };
        Self {
            card: NetworkCard::new(&config, 1_000_000_000, Some(confinement)),
            world: World {
                now: 0,
                queue: EventQueue::new(),
                memory: vec![0; 2 * SIZE as usize],
                sent: Vec::new(),
                waited: Vec::new(),
                fates: Vec::new(),
            },
        }
    }

    fn write(&mut self, register: u64, value: u32) {
        let width = self
            .card
            .write(&mut self.world, register, 4, u64::from(value));
        assert_eq!(width, Some(()));
    }

    fn read(&self, register: u64) -> u32 {
        self.card.read(register, 4).expect("a register") as u32
    }

    fn run(&mut self) {
        let mut steps = 0;
        while let Some((now, event)) = self.world.queue.pop() {
            self.world.now = now;
            self.card.event(&mut self.world, event);
            steps += 1;
            assert!(steps < 1_000_000, "the card does not come to an end");
        }
    }

    /// The steps of section 3.1.1, with both queues.
    fn start(&mut self) {
        self.write(STATUS, 0);
        self.write(STATUS, 1);
        self.write(STATUS, 3);
        self.write(DRIVER_FEATURES_SELECT, 1);
        self.write(DRIVER_FEATURES, (FEATURE_VERSION_1 >> 32) as u32);
        self.write(STATUS, 3 | STATUS_FEATURES);
        assert_ne!(self.read(STATUS) & STATUS_FEATURES, 0);
        for queue in 0..2 {
            let shift = u64::from(queue) * 0x800;
            self.write(QUEUE_SELECT, queue);
            self.write(QUEUE_SIZE, 8);
            for (register, address) in [
                (QUEUE_DESCRIPTORS, DESCRIPTORS + shift),
                (QUEUE_DRIVER, DRIVER + shift),
                (QUEUE_DEVICE, DEVICE + shift),
            ] {
                self.write(register, address as u32);
                self.write(register + 4, (address >> 32) as u32);
            }
            self.write(QUEUE_READY, 1);
        }
        self.write(STATUS, 3 | STATUS_FEATURES | STATUS_DRIVER_READY);
        self.run();
    }

    fn poke(&mut self, address: u64, bytes: &[u8]) {
        let place = self.world.at(address - BASE + PHYSICAL, bytes.len());
        self.world.memory[place.expect("memory")].copy_from_slice(bytes);
    }

    fn peek(&self, address: u64, bytes: usize) -> Vec<u8> {
        let place = self.world.at(address - BASE + PHYSICAL, bytes);
        self.world.memory[place.expect("memory")].to_vec()
    }

    fn descriptor(&mut self, queue: u64, index: u64, segment: (u64, u32), flags: u16, next: u16) {
        let at = DESCRIPTORS + queue * 0x800 + 16 * index;
        let mut bytes = segment.0.to_le_bytes().to_vec();
        bytes.extend(segment.1.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.poke(at, &bytes);
    }

    /// Makes a chain available and rings.
    fn offer(&mut self, queue: u64, head: u16) {
        let ring = DRIVER + queue * 0x800;
        let index = u16::from_le_bytes([self.peek(ring + 2, 2)[0], self.peek(ring + 2, 2)[1]]);
        self.poke(ring + 4 + 2 * u64::from(index % 8), &head.to_le_bytes());
        self.poke(ring + 2, &index.wrapping_add(1).to_le_bytes());
        self.write(QUEUE_NOTIFY, queue as u32);
    }

    fn used(&self, queue: u64) -> u16 {
        let index = self.peek(DEVICE + queue * 0x800 + 2, 2);
        u16::from_le_bytes([index[0], index[1]])
    }

    /// Offers a frame of n bytes in one piece.
    fn send(&mut self, place: u64, bytes: u32) {
        let address = BUFFERS + place * 0x800;
        let data: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
        self.poke(address + FRAME_HEADER as u64, &data);
        let length = bytes + FRAME_HEADER as u32;
        self.descriptor(1, place, (address, length), 0, 0);
        self.offer(1, place as u16);
    }
}

#[test]
fn registers_of_the_specification() {
    let mut bench = Bench::new();
    // "virt", version 2, network device.
    assert_eq!(bench.read(0x000), 0x7472_6976);
    assert_eq!((bench.read(0x004), bench.read(0x008)), (2, 1));
    bench.write(0x014, 1);
    assert_eq!(bench.read(0x010), 1);
    bench.write(0x014, 0);
    assert_eq!(bench.read(0x010), 1 << 5 | 1 << 16);
    // Hardware address and link status, by bytes.
    let bytes: Vec<u64> = (0..8)
        .filter_map(|i| bench.card.read(0x100 + i, 1))
        .collect();
    assert_eq!(bytes, [2, 0, 0, 0, 0, 9, 1, 0]);
    // Other widths are refused, as are features that were not offered.
    assert_eq!(bench.card.read(0x000, 8), None);
    assert_eq!(bench.card.write(&mut bench.world, 0x070, 2, 1), None);
    bench.write(0x024, 0);
    bench.write(0x020, 1);
    bench.write(0x070, 8);
    assert_eq!(bench.read(0x070) & 8, 0);
}

/// A frame of n bytes leaves n * 8 / rate after it was fetched. The fetch reads index, entry and descriptor one at a time
/// and then the data, four lines at once.
#[test]
fn a_frame_leaves_after_its_time() {
    for bytes in [14u32, 60, 100, 500, 1514] {
        let mut bench = Bench::new();
        bench.start();
        let begin = bench.world.now;
        bench.send(0, bytes);
        bench.run();
        let lines = u64::from(bytes + 12).div_ceil(64);
        // Four accesses begin at once, and each that ends lets the next one begin.
        let fetch = 3 * LATENCY + lines.div_ceil(4) * LATENCY;
        let expected = begin + fetch + 8 * Tick::from(bytes);
        let (left, frame) = &bench.world.sent[0];
        assert_eq!(*left, expected, "{bytes} bytes");
        assert_eq!(frame.len() as u32, bytes);
        assert!(frame.iter().enumerate().all(|(i, byte)| *byte == i as u8));
        assert_eq!(bench.used(1), 1);
        assert_eq!(bench.read(INTERRUPT_STATUS), INTERRUPT_USED);
        assert_eq!(bench.card.take_line(), Some(true));
        bench.write(INTERRUPT_ACKNOWLEDGE, INTERRUPT_USED);
        assert_eq!(bench.card.take_line(), Some(false));
    }
}

/// Back-to-back frames keep the link busy, and each waits for the one before it.
#[test]
fn the_link_is_never_idle_while_frames_wait() {
    let mut bench = Bench::new();
    bench.start();
    for place in 0..4 {
        bench.send(place, 1000);
    }
    bench.run();
    let ends: Vec<Tick> = bench.world.sent.iter().map(|(end, _)| *end).collect();
    assert!(
        ends.windows(2).all(|pair| pair[1] - pair[0] == 8000),
        "{ends:?}"
    );
    let waits: Vec<Tick> = bench.world.waited.iter().map(|(ticks, _)| *ticks).collect();
    // 16 lines take four rounds, so a frame waits for its predecessor's 8000 ticks minus 3 + 4 accesses.
    assert_eq!(waits, [8000 - 70; 3]);
    assert_eq!(bench.used(1), 4);
}

#[test]
fn a_frame_is_stored_in_pieces() {
    let mut bench = Bench::new();
    bench.start();
    // Header and ten bytes, then the rest.
    bench.descriptor(0, 2, (BUFFERS, 22), DESCRIPTOR_WRITE | DESCRIPTOR_NEXT, 5);
    bench.descriptor(0, 5, (BUFFERS + 0x800, 200), DESCRIPTOR_WRITE, 0);
    bench.offer(0, 2);
    let frame = Frame::from((0..100).collect::<Vec<u8>>());
    bench
        .world
        .queue
        .push(5000, 0, CardEvent::Frame(Box::new(frame)));
    bench.run();
    assert_eq!(bench.peek(BUFFERS + 12, 10), (0..10).collect::<Vec<u8>>());
    assert_eq!(
        bench.peek(BUFFERS + 0x800, 90),
        (10..100).collect::<Vec<u8>>()
    );
    // Used: head 2, 112 bytes; the header says one buffer.
    assert_eq!(bench.peek(DEVICE + 4, 8), [2, 0, 0, 0, 112, 0, 0, 0]);
    assert_eq!(bench.peek(BUFFERS + 10, 2), [1, 0]);
    // Index, entry, two descriptors, data, used entry, used index, flags.
    assert_eq!(bench.world.now, 5000 + 8 * LATENCY);
}

#[test]
fn frames_wait_for_buffers_until_there_is_no_room() {
    let mut bench = Bench::new();
    bench.start();
    for _ in 0..6 {
        let frame: Frame = vec![1; 1000].into();
        bench
            .world
            .queue
            .push(100, 0, CardEvent::Frame(Box::new(frame)));
    }
    bench.run();
    // 4096 bytes hold four of them.
    assert_eq!(bench.card.counters.dropped, 2);
    bench.world.now = 1100;
    for place in 0..4u16 {
        let at = BUFFERS + u64::from(place) * 0x800;
        bench.descriptor(0, place.into(), (at, 1600), DESCRIPTOR_WRITE, 0);
        bench.offer(0, place);
    }
    bench.run();
    assert_eq!((bench.used(0), bench.card.counters.received), (4, 4));
    assert!(bench.world.waited.iter().all(|(_, link)| !link));
    // A buffer that is too small is kept; the frame is lost.
    bench.descriptor(0, 0, (BUFFERS, 50), DESCRIPTOR_WRITE, 0);
    bench.offer(0, 0);
    let now = bench.world.now;
    bench
        .world
        .queue
        .push(now, 0, CardEvent::Frame(Box::new(vec![1; 60].into())));
    bench
        .world
        .queue
        .push(now, 0, CardEvent::Frame(Box::new(vec![1; 20].into())));
    bench.run();
    assert_eq!((bench.used(0), bench.card.counters.dropped), (5, 3));
    // Every arrival has exactly one fate, and the fates match the card's counters.
    let fates = bench.world.fates.iter().map(|(_, fate)| *fate);
    let of = |wanted: &dyn Fn(&Fate) -> bool| fates.clone().filter(wanted).count();
    assert_eq!(of(&|fate| *fate == Fate::Arrived), 8);
    assert_eq!(of(&|fate| matches!(fate, Fate::Stored { .. })), 5);
    assert_eq!(of(&|fate| *fate == Fate::Dropped(DropReason::Full)), 2);
    assert_eq!(
        of(&|fate| *fate == Fate::Dropped(DropReason::SmallBuffer)),
        1
    );
    // The first one waited for its buffer, index and entry, and took the reads of two descriptors, its data and the used
    // ring.
    let first = fates
        .clone()
        .find(|fate| matches!(fate, Fate::Stored { .. }));
    let from = 1100 + LATENCY;
    assert_eq!(first, Some(Fate::Stored { arrived: 100, from }));
}

#[test]
fn frames_that_wait_when_the_card_stops_are_dropped() {
    let mut bench = Bench::new();
    bench.start();
    for _ in 0..3 {
        let frame = CardEvent::Frame(Box::new(vec![1; 60].into()));
        bench.world.queue.push(100, 0, frame);
    }
    bench.run();
    assert_eq!(bench.card.counters.dropped, 0);
    bench.write(STATUS, 0);
    assert_eq!(bench.card.counters.dropped, 3);
    assert_eq!(bench.card.take_forgotten().len(), 3);
    assert!(bench.card.take_forgotten().is_empty());
}

fn attacked(attack: impl FnOnce(&mut Bench)) {
    let mut bench = Bench::new();
    bench.start();
    attack(&mut bench);
    bench.run();
    assert_ne!(bench.read(STATUS) & STATUS_NEEDS_RESET, 0);
    assert!(bench.world.sent.is_empty());
    // A reset helps.
    bench.world.memory.fill(0);
    bench.start();
    bench.send(0, 64);
    bench.run();
    assert_eq!(bench.world.sent.len(), 1);
}

#[test]
fn hostile_queues_stop_the_card() {
    // A circle.
    attacked(|b| {
        b.descriptor(1, 0, (BUFFERS, 100), DESCRIPTOR_NEXT, 1);
        b.descriptor(1, 1, (BUFFERS, 100), DESCRIPTOR_NEXT, 0);
        b.offer(1, 0);
    });
    // A descriptor outside the queue, as head and as next.
    attacked(|b| b.offer(1, 8));
    attacked(|b| {
        b.descriptor(1, 0, (BUFFERS, 100), DESCRIPTOR_NEXT, 0xFFFF);
        b.offer(1, 0);
    });
    // Memory outside, below, and around the end of the address space.
    for address in [BASE + SIZE - 10, BASE - 1, PHYSICAL, u64::MAX - 4, 0] {
        attacked(|b| {
            b.descriptor(1, 0, (address, 100), 0, 0);
            b.offer(1, 0);
        });
    }
    // More entries than the queue has.
    attacked(|b| {
        b.poke(DRIVER + 0x800 + 2, &9u16.to_le_bytes());
        b.write(QUEUE_NOTIFY, 1);
    });
    // Indirect tables, which were not offered.
    attacked(|b| {
        b.descriptor(1, 0, (BUFFERS, 32), 4, 0);
        b.offer(1, 0);
    });
    // Buffers that cannot be written.
    attacked(|b| {
        b.descriptor(0, 0, (BUFFERS, 2000), 0, 0);
        b.offer(0, 0);
        b.world
            .queue
            .push(0, 0, CardEvent::Frame(Box::new(vec![1; 60].into())));
    });
    attacked(|b| {
        b.descriptor(0, 0, (BASE + SIZE - 20, 2000), DESCRIPTOR_WRITE, 0);
        b.offer(0, 0);
        b.world
            .queue
            .push(0, 0, CardEvent::Frame(Box::new(vec![1; 60].into())));
    });
    // Rings outside.
    attacked(|b| {
        b.write(QUEUE_SELECT, 1);
        b.write(QUEUE_READY, 0);
    });
}

#[test]
fn lengths_that_are_no_frame_are_given_back_unsent() {
    for bytes in [0u32, 13, 25, 1527, 0x10_0000, u32::MAX] {
        let mut bench = Bench::new();
        bench.start();
        bench.descriptor(1, 0, (BUFFERS, bytes), 0, 0);
        bench.offer(1, 0);
        bench.run();
        assert_eq!((bench.used(1), bench.world.sent.len()), (1, 0), "{bytes}");
        assert_eq!(bench.card.counters.malformed, 1);
    }
}

#[test]
fn without_a_grant_the_card_reaches_nothing() {
    let mut bench = Bench::new();
    bench.start();
    bench.card.confine(None);
    assert_eq!(bench.read(STATUS), 0);
    bench.start();
    bench.send(0, 64);
    bench.run();
    assert!(bench.world.sent.is_empty());
    assert_ne!(bench.read(STATUS) & STATUS_NEEDS_RESET, 0);
}

/// The kernel takes the card, or gives it to a neighbour, while accesses of its driver's frames are under way, after any number of steps: from
/// then on, no byte of memory changes, and nothing reaches the new holder.
#[test]
fn what_is_under_way_ends_with_the_grant() {
    let neighbour = Confinement {
        address: BASE,
        physical: PHYSICAL,
        size: SIZE,
        owner: Owner::new(1, 8),
    };
    let (mut cut, mut whole) = (0, false);
    for next in [None, Some(neighbour)] {
        for steps in 0.. {
            let mut bench = Bench::new();
            bench.start();
            bench.descriptor(0, 2, (BUFFERS + 0x1000, 700), DESCRIPTOR_WRITE, 0);
            bench.offer(0, 2);
            bench.send(0, 600);
            let frame = Frame::from(vec![5; 600]);
            let arrival = CardEvent::Frame(Box::new(frame));
            bench.world.queue.push(bench.world.now, 0, arrival);
            for _ in 0..steps {
                let Some((now, event)) = bench.world.queue.pop() else {
                    whole = true;
                    break;
                };
                bench.world.now = now;
                bench.card.event(&mut bench.world, event);
            }
            if whole {
                whole = false;
                assert_eq!((bench.used(0), bench.used(1)), (1, 1));
                break;
            }
            cut += 1;
            bench.card.confine(next);
            let (memory, sent) = (bench.world.memory.clone(), bench.world.sent.len());
            bench.run();
            assert!(bench.world.memory == memory, "{next:?} after {steps} steps");
            // The link finishes a frame that it has begun, and begins no other.
            assert!(bench.world.sent.len() <= sent + 1);
            assert_eq!(bench.read(STATUS), 0, "after {steps} steps");
            assert_eq!(bench.read(INTERRUPT_STATUS), 0);
        }
    }
    assert!(cut > 40, "{cut}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is in memory and in the registers: no panic, it ends, and nothing outside the driver's memory changes.
    #[test]
    fn random_drivers_harm_only_themselves(
        seed in any::<u64>(),
        writes in proptest::collection::vec((0u64..0x120, any::<u32>(), any::<bool>()), 0..60),
        frames in proptest::collection::vec(0usize..2000, 0..6),
    ) {
        let mut bench = Bench::new();
        bench.start();
        let mut random = seed | 1;
        for byte in &mut bench.world.memory[..SIZE as usize] {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Small numbers, so that indices are often valid.
            *byte = if random & 3 == 0 { (random >> 32) as u8 & 7 } else { 0 };
        }
        for frame in frames {
            bench.world.queue.push(bench.world.now, 0, CardEvent::Frame(Box::new(vec![0xAA; frame].into())));
        }
        for (register, value, small) in writes {
            let value = if small { value & 0xF } else { value };
            let now = bench.world.now;
            let _ = bench.card.write(&mut bench.world, register & !3, 4, value.into());
            let _ = bench.card.read(register, 4);
            if value & 3 == 0 {
                bench.run();
            }
            prop_assert!(bench.world.now >= now);
        }
        bench.run();
        prop_assert!(bench.world.memory[SIZE as usize..].iter().all(|byte| *byte == 0));
    }
}
