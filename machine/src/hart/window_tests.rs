//! Results must not depend on how the hart is driven: a random program must give the same registers, memory, times,
//! access sequences and statistics with the widest possible horizons and with small random ones.

use super::test_support::*;
use super::*;
use proptest::prelude::*;

/// A random instruction of the loop body; the numbers select registers and details.
#[derive(Clone, Copy, Debug)]
enum Step {
    Alu(u32, u32, u32, u32),
    Multiply(u32, u32, u32, u32),
    Load(u32, u32, i32),
    Store(u32, u32, i32),
    FloatLoad(u32, i32),
    FloatFma(u32, u32, u32, u32),
    Atomic(u32, u32),
    Branch(u32, u32, u32, i32),
    DeviceRead(u32),
    DeviceWrite(u32),
    Fence,
    FenceI,
    Counter(u32),
    Marker(u32),
    NextPage,
    Sleep,
    Loop(u32, i32),
}

fn step() -> impl Strategy<Value = Step> {
    let r = 1u32..12;
    let r2 = r.clone();
    let offset = -2000i32..2000;
    prop_oneof![
        6 => (r.clone(), r.clone(), r.clone(), 0u32..8).prop_map(|(a, b, c, f)| Step::Alu(a, b, c, f)),
        2 => (r.clone(), r.clone(), r.clone(), 0u32..8).prop_map(|(a, b, c, f)| Step::Multiply(a, b, c, f)),
        5 => (r.clone(), 0u32..4, offset.clone()).prop_map(|(a, f, o)| Step::Load(a, f, o)),
        4 => (r.clone(), 0u32..4, offset.clone()).prop_map(|(a, f, o)| Step::Store(a, f, o)),
        2 => (0u32..8, offset).prop_map(|(a, o)| Step::FloatLoad(a, o)),
        2 => (0u32..8, 0u32..8, 0u32..8, 0u32..8).prop_map(|(a, b, c, d)| Step::FloatFma(a, b, c, d)),
        1 => (r.clone(), r.clone()).prop_map(|(a, b)| Step::Atomic(a, b)),
        3 => (r.clone(), r.clone(), 0u32..2, 1i32..6).prop_map(|(a, b, f, d)| Step::Branch(a, b, f, d)),
        1 => r.clone().prop_map(Step::DeviceRead),
        1 => r.clone().prop_map(Step::DeviceWrite),
        1 => Just(Step::Fence),
        1 => Just(Step::FenceI),
        1 => r.clone().prop_map(Step::Counter),
        1 => r.prop_map(Step::Marker),
        2 => Just(Step::NextPage),
        1 => Just(Step::Sleep),
        2 => (r2, 1i32..9).prop_map(|(a, n)| Step::Loop(a, n)),
    ]
}

const ROOT: u64 = BASE + 0x80000;
const DATA: u64 = BASE + 0x10000;

/// The loop runs in supervisor mode behind Sv39 (identity mapped), the timer handler in machine mode.
fn program(steps: &[Step], rounds: i32) -> Assembler {
    let mut a = Assembler::default();
    a.jal(5, 5);
    // Handler: count, acknowledge the timer, return.
    a.addi(28, 28, 1).sd(28, 17, 0x10).word(FENCE).word(MRET);
    a.csrw(0x305, 5)
        .li(16, DATA)
        .li(17, DEVICE)
        .li(18, DATA)
        .li(15, 0x1008)
        .add(22, 18, 0);
    a.open_protection();
    a.li(6, 8 << 60 | ROOT >> 12)
        .csrw(0x180, 6)
        .addi(6, 0, -1)
        .csrw(0x306, 6)
        .addi(6, 0, 0x80)
        .csrw(0x304, 6);
    a.li(6, 1 << 13 | 1 << 11)
        .csrw(0x300, 6)
        .addi(20, 0, rounds);
    a.r(0x17, 0, 0, 6, 0, 0)
        .addi(6, 6, 16)
        .csrw(0x341, 6)
        .word(MRET);
    let top = a.here();
    for step in steps {
        match *step {
            Step::Alu(rd, rs1, rs2, f) => a.r(0x33, f, 0, rd, rs1, rs2),
            Step::Multiply(rd, rs1, rs2, f) => a.r(0x33, f, 1, rd, rs1, rs2),
            Step::Load(rd, f, offset) => a.i(0x03, f, rd, 16, offset),
            Step::Store(rs, f, offset) => a.s(f, rs, 16, offset),
            Step::FloatLoad(rd, offset) => a.i(0x07, 3, rd, 16, offset & !7),
            Step::FloatFma(rd, x, y, z) => {
                a.word(z << 27 | 1 << 25 | y << 20 | x << 15 | rd << 7 | 0x43)
            }
            Step::Atomic(rd, rs) => a.r(0x2f, 3, 0, rd, 16, rs),
            Step::Branch(x, y, f, distance) => {
                let target = (a.here() + distance).min(top + steps.len() as i32 * 6);
                a.branch(f, x, y, target)
            }
            Step::DeviceRead(rd) => a.ld(rd, 17, 0x20),
            Step::DeviceWrite(rs) => a.sd(rs, 17, 0x28),
            Step::Fence => a.word(FENCE),
            Step::FenceI => a.word(FENCE_I),
            Step::Counter(rd) => a.csrr(rd, 0xc00 + rd % 3),
            Step::Marker(rs) => a.marker(rs, 0x123),
            // x16 = DATA + (x16 + 0x1008) mod 64 KiB; also correct for a branch into the middle of it.
            Step::NextPage => {
                a.add(19, 16, 15).i(0x13, 1, 19, 19, 48);
                a.i(0x13, 5, 19, 19, 48).add(16, 18, 19)
            }
            // A loop of one block that walks through memory; also correct for a branch into the middle of it.
            Step::Loop(rd, rounds) => {
                a.addi(21, 0, rounds).add(22, 16, 0);
                let top = a.here();
                a.ld(rd, 22, 0)
                    .sd(21, 22, 8)
                    .addi(22, 22, 64)
                    .addi(21, 21, -1);
                a.branch(5, 21, 0, top)
            }
            Step::Sleep => a.sd(0, 17, 0x700).addi(0, 0, 0),
        };
    }
    // Forward branches may reach beyond the last step.
    (0..8).for_each(|_| {
        a.addi(13, 13, 1);
    });
    a.addi(20, 20, -1);
    let end = a.here() + 2;
    a.branch(0, 20, 0, end);
    a.jal(0, top).word(WFI);
    let wait = a.here() - 1;
    a.jal(0, wait);
    a
}

#[derive(PartialEq, Debug)]
struct Outcome {
    registers: Vec<u64>,
    floats: Vec<u64>,
    trap: [Option<u64>; 3],
    time: Tick,
    statistics: HartStatistics,
    markers: Vec<(Tick, u16, u64)>,
    devices: Vec<(Tick, u64, u64)>,
    data: Vec<(Tick, u64, Access)>,
    /// Digest of the memory.
    memory: u64,
}

/// Out-of-order pipelines with few and with many resources.
fn pipelines() -> impl Strategy<Value = Option<IntervalConfig>> {
    let out_of_order = |width, window, queue, units| IntervalConfig {
        width,
        window,
        load_queue: queue,
        store_queue: queue,
        alus: units,
        memory_ports: units,
        float_units: units,
    };
    prop_oneof![
        Just(Some(out_of_order(1, 2, 1, 1))),
        Just(Some(out_of_order(2, 20, 4, 2))),
        Just(Some(out_of_order(8, 192, 32, 4))),
    ]
}

/// Drives a hart as an engine does: events in time order, and no horizon beyond the next event.
fn drive(
    interval: Option<IntervalConfig>,
    assembler: &Assembler,
    seed: u64,
    timers: &[Tick],
    cached_sets: Option<u32>,
    distance: Tick,
    mut width: impl FnMut() -> Tick,
) -> Outcome {
    let config = HartConfig {
        ticks_per_cycle: 3,
        tlb_entries: 4,
        l2_tlb_entries: 8,
        store_buffer: 2,
        interval,
        ..HartConfig::default()
    };
    let mut hart = Hart::new(&config, 0);
    hart.set_data_sets(cached_sets.unwrap_or(1));
    hart.reset(BASE, 7);
    let mut bus = FlatBus::new(&assembler.bytes(), seed);
    bus.distance = distance;
    bus.cache = cached_sets.map(|_| vec![Vec::new(); 16]);
    // Identity: 512 pages from BASE, and a superpage with the device.
    bus.set_word(ROOT + 16, ((ROOT + 0x1000) >> 12) << 10 | 1);
    bus.set_word(ROOT + 0x1000, ((ROOT + 0x2000) >> 12) << 10 | 1);
    for page in 0..256 {
        bus.set_word(ROOT + 0x2000 + page * 8, ((BASE >> 12) + page) << 10 | 0xf);
    }
    bus.set_word(ROOT, ((ROOT + 0x3000) >> 12) << 10 | 1);
    bus.set_word(ROOT + 0x3000 + 128 * 8, (DEVICE >> 12) << 10 | 0xf);
    timers.iter().for_each(|at| bus.raise_timer(*at));
    let mut limit = 100_000;
    let mut waiting = false;
    loop {
        limit -= 1;
        assert!(
            limit > 0,
            "no progress at {:x} {:?} {:?} {:?}",
            hart.pc(),
            hart.privilege(),
            hart.csr(0x342),
            hart.csr(0x343)
        );
        let next = bus
            .events
            .first_key_value()
            .map(|(key, event)| (*key, *event));
        if let Some((key, event)) = next
            && (waiting || key.0 <= hart.time())
        {
            bus.events.remove(&key);
            match event {
                Event::Complete(token, physical) => {
                    hart.complete(token, key.0, bus.line(physical));
                }
                Event::Timer(level) => hart.set_interrupt(InterruptLine::Timer, level, key.0),
            }
            waiting = false;
        }
        let horizon = bus.limit().min(hart.time() + width());
        match hart.run(&mut bus, horizon) {
            Stop::Horizon | Stop::Device | Stop::Tokens => {}
            Stop::Pending(_) => waiting = true,
            Stop::WaitForInterrupt | Stop::Sleep if !bus.events.is_empty() => waiting = true,
            Stop::Sleep => hart.wake(hart.time() + 100),
            _ => break,
        }
    }
    Outcome {
        registers: (0..32).map(|r| hart.register(r)).collect(),
        floats: (0..32).map(|r| hart.float_register(r)).collect(),
        trap: [hart.csr(0x342), hart.csr(0x341), hart.csr(0x343)],
        time: hart.time(),
        statistics: *hart.statistics(),
        markers: bus.markers,
        devices: bus.device_log,
        data: bus.data_log,
        memory: bus.memory.iter().fold(0, |digest: u64, byte| {
            digest.wrapping_mul(0x100_0000_01b3) ^ *byte as u64
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn horizons_do_not_change_results(
        steps in prop::collection::vec(step(), 5..60),
        rounds in 1i32..5,
        seed in 0u64..1000,
        timers in prop::collection::vec(300u64..8000, 0..4),
        width in 1u64..60,
        distance in prop_oneof![Just(0u64), 1u64..400],
    ) {
        let assembler = program(&steps, rounds);
        let wide = drive(None, &assembler, seed, &timers, None, distance, || 1 << 40);
        let mut state = seed | 1;
        let narrow = drive(None, &assembler, seed, &timers, None, distance, || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            1 + (state >> 33) % width
        });
        prop_assert!(wide.statistics.instructions > 20);
        prop_assert_eq!(wide.time, narrow.time);
        prop_assert_eq!(wide, narrow);
    }

    /// The hart's knowledge of a cache makes no difference, whether it covers lines of many sets or of one.
    #[test]
    fn known_lines_do_not_change_results(
        steps in prop::collection::vec(step(), 5..60),
        rounds in 1i32..8,
    ) {
        let assembler = program(&steps, rounds);
        let mut few = drive(None, &assembler, 0, &[], Some(1), 0, || 1 << 40);
        let mut many = drive(None, &assembler, 0, &[], Some(16), 0, || 1 << 40);
        prop_assert!(many.data.len() <= few.data.len());
        few.data.clear();
        many.data.clear();
        prop_assert_eq!(few, many);
    }

    #[test]
    fn horizons_do_not_change_results_out_of_order(
        interval in pipelines(),
        steps in prop::collection::vec(step(), 5..60),
        rounds in 1i32..5,
        seed in 0u64..1000,
        timers in prop::collection::vec(300u64..8000, 0..4),
        width in 1u64..60,
        distance in prop_oneof![Just(0u64), 1u64..400],
    ) {
        let assembler = program(&steps, rounds);
        let wide = drive(interval, &assembler, seed, &timers, None, distance, || 1 << 40);
        let mut state = seed | 1;
        let narrow = drive(interval, &assembler, seed, &timers, None, distance, || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            1 + (state >> 33) % width
        });
        prop_assert!(wide.statistics.instructions > 20);
        prop_assert_eq!(wide.time, narrow.time);
        prop_assert_eq!(wide, narrow);
    }

    /// Whatever executes early, the program sees its own order.
    #[test]
    fn out_of_order_computes_the_same(
        interval in pipelines(),
        steps in prop::collection::vec(step(), 5..60),
        rounds in 1i32..5,
        seed in 0u64..1000,
        timers in prop::collection::vec(300u64..8000, 0..4),
        distance in prop_oneof![Just(0u64), 1u64..400],
    ) {
        // Time-dependent steps are left out.
        let steps: Vec<_> = steps
            .into_iter()
            .filter(|step| !matches!(step, Step::DeviceRead(_) | Step::Counter(_)))
            .collect();
        let assembler = program(&steps, rounds);
        let [one, other] = [None, interval].map(|pipeline| {
            let mut outcome = drive(pipeline, &assembler, seed, &timers, None, distance, || 1 << 40);
            // The handler counts, and may run after the end.
            outcome.registers[28] = 0;
            outcome.trap = [None; 3];
            let devices: Vec<_> = outcome.devices.iter().map(|access| (access.1, access.2)).collect();
            let devices: Vec<_> = devices.into_iter().filter(|access| access.0 & 0xfff != 0x10).collect();
            let markers: Vec<_> = outcome.markers.iter().map(|marker| (marker.1, marker.2)).collect();
            (outcome.registers, outcome.floats, outcome.memory, devices, markers)
        });
        prop_assert_eq!(&one.0, &other.0);
        prop_assert_eq!(one, other);
    }
}
