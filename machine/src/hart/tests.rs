//! Worked examples for the hart: privileged behaviour and closed forms of its timing. Conformance of the instructions
//! themselves is checked against QEMU in `tests/conformance`.

use super::test_support::*;
use super::*;

fn assemble(build: impl FnOnce(&mut Assembler)) -> Assembler {
    let mut assembler = Assembler::default();
    build(&mut assembler);
    assembler
}

/// A program after a prologue that directs machine traps to a WFI.
fn guarded(build: impl FnOnce(&mut Assembler)) -> Assembler {
    assemble(|a| {
        a.jal(5, 3).word(WFI).jal(0, 1); // x5 = address of the WFI
        a.csrw(0x305, 5);
        build(a);
        a.word(WFI);
    })
}

#[test]
fn loops_and_sums() {
    let (hart, _, stop) = run(&assemble(|a| {
        a.addi(1, 0, 100)
            .add(2, 2, 1)
            .addi(1, 1, -1)
            .branch(1, 1, 0, 1)
            .word(WFI);
    }));
    assert_eq!((stop, hart.register(2)), (Stop::WaitForInterrupt, 5050));
    assert_eq!(hart.statistics().instructions, 1 + 300 + 1);
}

#[test]
fn static_schedule_has_closed_form() {
    // 10 dependent additions: one cycle each; then a load (2 cycles to its use) and a division (34).
    let (hart, bus, _) = run(&assemble(|a| {
        (0..10).for_each(|_| {
            a.addi(1, 1, 1);
        });
        a.marker(1, 0x100); // cycle 10
        a.r(0x17, 0, 0, 2, 0, 0); // auipc x2, 0: cycle 11
        a.ld(3, 2, 4).addi(3, 3, 1); // cycles 12 and 14
        a.word(FENCE).marker(1, 0x101); // 15, 16: the end of the line
        a.r(0x33, 4, 1, 4, 1, 1).addi(4, 4, 0); // div at 17, use at 51
        a.marker(4, 0x102); // 52
        a.word(WFI);
    }));
    assert_eq!(
        bus.markers,
        [(10, 0x100, 10), (16, 0x101, 10), (52, 0x102, 1)]
    );
    assert_eq!(hart.statistics().instructions, 20);
}

#[test]
fn a_miss_delays_only_the_use() {
    struct Slow(FlatBus);
    // Every load takes 50 ticks.
    impl Bus for Slow {
        fn fetch(&mut self, _: Tick, _: u64) -> Timing {
            Timing::Hit
        }
        fn data(&mut self, now: Tick, _: u64, access: Access) -> Timing {
            if access == Access::Load {
                Timing::Ready(now + 50)
            } else {
                Timing::Hit
            }
        }
        fn read(&mut self, physical: u64, bytes: u8) -> Result<u64, BusFault> {
            self.0.read(physical, bytes)
        }
        fn allows(&self, physical: u64, bytes: u64, write: bool) -> bool {
            self.0.allows(physical, bytes, write)
        }
        fn place(&self, physical: u64, write: bool) -> Place {
            self.0.place(physical, write)
        }
        fn read_place(&mut self, place: Place, bytes: u8) -> u64 {
            self.0.read_place(place, bytes)
        }
        fn write_place(&mut self, place: Place, bytes: u8, value: u64) {
            self.0.write_place(place, bytes, value);
        }
        fn is_device(&self, physical: u64) -> bool {
            self.0.is_device(physical)
        }
        fn device_read(
            &mut self,
            now: Tick,
            physical: u64,
            bytes: u8,
        ) -> Result<DeviceRead, BusFault> {
            self.0.device_read(now, physical, bytes)
        }
        fn device_write(
            &mut self,
            now: Tick,
            p: u64,
            bytes: u8,
            value: u64,
        ) -> Result<DeviceWrite, BusFault> {
            self.0.device_write(now, p, bytes, value)
        }
        fn epoch(&self) -> u32 {
            0
        }
        fn timer(&self, now: Tick) -> u64 {
            now
        }
        fn marker(&mut self, now: Tick, pc: u64, kind: u16, value: u64, machine_mode: bool) {
            self.0.marker(now, pc, kind, value, machine_mode);
        }
    }
    let program = assemble(|a| {
        a.r(0x17, 0, 0, 2, 0, 0); // 0
        a.ld(3, 2, 0); // 1: result at 51
        a.addi(4, 0, 1).marker(0, 0x100); // 2, 3: independent
        a.addi(3, 3, 1).marker(0, 0x101); // 51, 52
        a.ld(6, 2, 64).ld(7, 2, 128).marker(0, 0x102); // 53, 54, 55: two loads in parallel
        a.ld(8, 2, 192).marker(0, 0x103); // waits for the first: 103, 104
        a.word(WFI);
    });
    let (mut hart, bus) = start(&program);
    let mut bus = Slow(bus);
    assert_eq!(hart.run(&mut bus, 10_000), Stop::WaitForInterrupt);
    let times: Vec<_> = bus.0.markers.iter().map(|marker| marker.0).collect();
    assert_eq!(times, [3, 52, 55, 104]);
    assert_eq!(hart.statistics().stall_load, 47 + 47);
}

#[test]
fn illegal_instruction_reports_its_bits() {
    let (hart, _, _) = run(&guarded(|a| {
        a.word(0xffff_ffff);
    }));
    assert_eq!(
        (hart.csr(0x342), hart.csr(0x343)),
        (Some(2), Some(0xffff_ffff))
    );
    assert_eq!(hart.csr(0x341), Some(BASE + 16));
    // A CSR that does not exist, and a write to one that is read-only.
    for word in [0x7ff0_1073, 0xf141_1073] {
        let (hart, _, _) = run(&guarded(|a| {
            a.word(word);
        }));
        assert_eq!(
            (hart.csr(0x342), hart.csr(0x343)),
            (Some(2), Some(word as u64))
        );
    }
}

#[test]
fn trap_without_handler_is_reported() {
    let (hart, _, stop) = run(&assemble(|a| {
        a.addi(1, 0, 8).ld(2, 1, 0);
    }));
    assert_eq!(
        stop,
        Stop::Unhandled(UnhandledTrap {
            cause: 5,
            pc: BASE + 4,
            value: 8
        })
    );
    assert_eq!(hart.statistics().instructions, 1);
}

#[test]
fn user_mode_call_returns_to_machine_mode() {
    let (hart, _, stop) = run(&guarded(|a| {
        a.open_protection();
        // mepc = two instructions behind mret, MPP = user.
        a.r(0x17, 0, 0, 6, 0, 0)
            .addi(6, 6, 16)
            .csrw(0x341, 6)
            .word(MRET)
            .word(ECALL);
    }));
    assert_eq!(stop, Stop::WaitForInterrupt);
    assert_eq!(
        (hart.csr(0x342), hart.csr(0x341)),
        (Some(8), Some(BASE + 12 * 4))
    );
    assert_eq!(hart.privilege(), Privilege::Machine);
}

#[test]
fn timer_interrupt_wakes_and_is_vectored() {
    let (mut hart, mut bus, stop) = run(&assemble(|a| {
        a.li(1, BASE + 0x101)
            .csrw(0x305, 1)
            .addi(1, 0, 0x80)
            .csrw(0x304, 1);
        a.i(0x73, 6, 0, 8, 0x300); // csrsi mstatus, MIE
        a.word(WFI).addi(9, 9, 1);
        a.jal(0, a.here() - 1);
    }));
    assert_eq!(stop, Stop::WaitForInterrupt);
    let handler = assemble(|a| {
        a.word(WFI);
    });
    let place = 0x100 + 4 * 7;
    bus.memory[place..place + 4].copy_from_slice(&handler.bytes());
    hart.set_interrupt(InterruptLine::Timer, true, 500);
    assert_eq!(hart.time(), 500);
    assert_eq!(hart.run(&mut bus, 501), Stop::Horizon); // trap entry took it past the horizon
    assert_eq!(hart.pc(), BASE + place as u64);
    assert_eq!(hart.csr(0x342), Some(1 << 63 | 7));
}

#[test]
fn device_access_waits_for_its_turn() {
    let (mut hart, mut bus) = start(&assemble(|a| {
        a.r(0x37, 0, 0, 1, 0, 0); // patched below: lui x1, DEVICE
        a.ld(2, 1, 0).sd(2, 1, 8).word(WFI);
    }));
    bus.memory[..4].copy_from_slice(&(DEVICE as u32 | 0xb7).to_le_bytes());
    assert_eq!(hart.run(&mut bus, 1), Stop::Device);
    assert_eq!((hart.time(), bus.device_log.len()), (1, 0));
    assert_eq!(hart.run(&mut bus, 2), Stop::Device);
    // Read at 1; its cost is 6 + 3 more, and the load-to-use latency of 2.
    assert_eq!((hart.time(), bus.device_log[0]), (12, (1, DEVICE, 0)));
    assert_eq!(hart.run(&mut bus, 100), Stop::WaitForInterrupt);
    assert_eq!(bus.device_log[1], (12, DEVICE + 8, 1));
}

#[test]
fn device_write_puts_the_hart_to_sleep() {
    let (mut hart, mut bus) = start(&assemble(|a| {
        a.li(1, DEVICE + 0x700)
            .sd(0, 1, 0)
            .marker(0, 0x100)
            .word(WFI);
    }));
    assert_eq!(hart.run(&mut bus, 10_000), Stop::Sleep);
    hart.wake(1000);
    assert_eq!(hart.run(&mut bus, 10_000), Stop::WaitForInterrupt);
    assert_eq!(bus.markers, [(1000, 0x100, 0)]);
    assert!(hart.statistics().slept > 900);
}

#[test]
fn sv39_translates_superpages_and_sets_accessed_and_dirty() {
    // A 2 MiB page: virtual 0x4000_0000 to BASE; supervisor mode stores through it.
    let (root, middle) = (BASE + 0x10000, BASE + 0x11000);
    let program = guarded(|a| {
        a.open_protection();
        a.li(6, 8 << 60 | root >> 12).csrw(0x180, 6);
        a.li(6, 0x4000_0000 + 0x200)
            .csrw(0x341, 6)
            .li(6, 1 << 11)
            .csrw(0x300, 6)
            .word(MRET);
    });
    let (mut hart, mut bus) = start(&program);
    bus.set_word(root + 8, (middle >> 12) << 10 | 1);
    bus.set_word(middle, (BASE >> 12) << 10 | 0xf);
    let supervisor = assemble(|a| {
        a.li(1, 0x4000_0000 + 0x2000)
            .addi(2, 0, 77)
            .sd(2, 1, 0)
            .ld(3, 1, 0)
            .ld(4, 0, 0);
    });
    bus.memory[0x200..0x200 + supervisor.bytes().len()].copy_from_slice(&supervisor.bytes());
    assert_eq!(hart.run(&mut bus, 100_000), Stop::WaitForInterrupt);
    assert_eq!((bus.word(BASE + 0x2000), hart.register(3)), (77, 77));
    assert_eq!(bus.word(middle) & 0xff, 0xcf);
    // The load from address 0 faults: load page fault.
    assert_eq!((hart.csr(0x342), hart.csr(0x343)), (Some(13), Some(0)));
    assert_eq!(hart.statistics().fetch_tlb_misses, 1);
    assert_eq!(hart.statistics().data_tlb_misses, 2);
    assert_eq!(hart.statistics().walks, 3);
    assert_eq!(
        bus.data_log
            .iter()
            .filter(|entry| entry.2 == Access::Walk)
            .count(),
        2 + 2 + 1
    );
}

#[test]
fn reservations_end_with_a_change_and_with_a_trap() {
    let (hart, _, _) = run(&assemble(|a| {
        a.li(1, BASE + 0x1000);
        let (lr, sc, swap) = (2 << 2, 3 << 2, 1 << 2);
        a.r(0x2f, 3, lr, 2, 1, 0).r(0x2f, 3, sc, 3, 1, 1); // succeeds: 0
        a.r(0x2f, 3, lr, 2, 1, 0)
            .r(0x2f, 3, swap, 4, 1, 0)
            .r(0x2f, 3, sc, 5, 1, 1); // fails: 1
        a.r(0x2f, 3, sc, 6, 1, 1).word(WFI); // no reservation: 1
    }));
    assert_eq!([3, 5, 6].map(|r| hart.register(r)), [0, 1, 1]);
    assert_eq!(
        (hart.register(2), hart.register(4)),
        (BASE + 0x1000, BASE + 0x1000)
    );
}

#[test]
fn misaligned_access_works_across_lines() {
    let (hart, bus, _) = run(&assemble(|a| {
        a.li(1, BASE + 0x103c)
            .li(2, 0x1122_3344_5566_7788)
            .sd(2, 1, 0)
            .ld(3, 1, 0)
            .word(WFI);
    }));
    assert_eq!(hart.register(3), 0x1122_3344_5566_7788);
    assert_eq!(bus.word(BASE + 0x103c), 0x1122_3344_5566_7788);
    assert_eq!(bus.data_log.len(), 4);
}

#[test]
fn instruction_across_lines_and_pages() {
    // A compressed no-op puts a 4-byte instruction across the end of a page.
    let (mut hart, mut bus) = start(&assemble(|a| {
        a.li(1, BASE + 0xffc).i(0x67, 0, 0, 1, 0);
    }));
    let code = [0x01u8, 0x00, 0x13, 0x05, 0xa0, 0x02, 0x73, 0x00, 0x50, 0x10]; // c.nop; li a0, 42; wfi
    bus.memory[0xffc..0xffc + code.len()].copy_from_slice(&code);
    assert_eq!(hart.run(&mut bus, 1000), Stop::WaitForInterrupt);
    assert_eq!(hart.register(10), 42);
}

#[test]
fn fence_i_shows_new_code() {
    let (hart, _, _) = run(&assemble(|a| {
        // Writes "addi x3, x0, 7" over the instruction at index 12, after it ran once.
        a.jal(1, 1).addi(1, 1, 12 * 4 - 4).li(2, 0x0070_0193); // 1 + 1 + 7 = 9 words
        while a.here() < 11 {
            a.addi(0, 0, 0);
        }
        a.jal(0, 12).addi(3, 0, 5).branch(1, 4, 0, 18).addi(4, 4, 1);
        a.s(2, 2, 1, 0).word(FENCE_I).jal(0, 12).word(WFI);
    }));
    assert_eq!((hart.register(3), hart.register(4)), (7, 1));
}

#[test]
fn counters_count_and_stop() {
    let (hart, _, _) = run(&assemble(|a| {
        a.csrr(1, 0xb02).addi(0, 0, 0).csrr(2, 0xb02); // instret: 0 and 2
        a.addi(3, 0, 4).csrw(0x320, 3).csrr(4, 0xb02).csrr(5, 0xb02); // stopped
        a.addi(6, 0, 100)
            .csrw(0xb02, 6)
            .csrr(7, 0xb02)
            .csrw(0x320, 0)
            .csrr(8, 0xb02);
        a.word(WFI);
    }));
    assert_eq!([1, 2].map(|r| hart.register(r)), [0, 2]);
    assert_eq!(hart.register(4), hart.register(5));
    assert_eq!([7, 8].map(|r| hart.register(r)), [100, 100]);
}

/// The times of the markers of a program on a bus where data accesses take `latency` ticks (0: hits).
fn marker_times(
    config: HartConfig,
    latency: Tick,
    build: impl FnOnce(&mut Assembler),
) -> Vec<Tick> {
    let program = assemble(build);
    let mut hart = Hart::new(&config, 0);
    hart.reset(BASE, 0);
    let mut bus = FlatBus::new(&program.bytes(), 0);
    bus.constant = latency;
    assert_eq!(hart.run(&mut bus, 1_000_000), Stop::WaitForInterrupt);
    bus.markers.iter().map(|marker| marker.0).collect()
}

#[test]
fn jumps_branches_and_returns_cost_their_penalties() {
    let config = HartConfig {
        predictor_entries: 0,
        branch_penalty: 7,
        jump_penalty: 2,
        ..HartConfig::default()
    };
    let times = marker_times(config, 0, |a| {
        a.jal(0, 1).marker(0, 0x100); // jump at 0, two more: marker at 3
        a.branch(0, 1, 0, 4).addi(0, 0, 0); // taken forward at 4, predicted "not taken": next at 12
        a.marker(0, 0x101); // 12
        a.branch(1, 1, 0, 0).marker(0, 0x102); // backward at 13, not taken but predicted: marker at 21
        a.jal(1, 10).marker(0, 0x103).word(WFI); // call at 22; after the return: marker
        a.i(0x67, 0, 0, 1, 0); // return at 25, predicted: marker at 28
    });
    assert_eq!(times, [3, 12, 21, 28]);
}

#[test]
fn a_full_store_buffer_stalls_until_its_oldest_store_completes() {
    let config = HartConfig {
        store_buffer: 2,
        ..HartConfig::default()
    };
    let times = marker_times(config, 40, |a| {
        a.r(0x17, 0, 0, 2, 0, 0); // 0
        a.sd(0, 2, 0).sd(0, 2, 64).marker(0, 0x100); // stores at 1 and 2; marker at 3
        a.sd(0, 2, 128).marker(0, 0x101); // place free at 41: marker at 42
        a.word(FENCE).marker(0, 0x102); // the last store, at 41, completes at 81
        a.word(WFI);
    });
    assert_eq!(times, [3, 42, 82]);
}

#[test]
fn traps_cost_their_entry_and_return() {
    let config = HartConfig {
        trap_entry: 9,
        ..HartConfig::default()
    };
    let times = marker_times(config, 0, |a| {
        // 0: jump over the handler (1 more cycle for the jump); handler: marker, skip the call, return.
        a.jal(5, 6)
            .marker(0, 0x100)
            .csrr(6, 0x341)
            .addi(6, 6, 4)
            .csrw(0x341, 6)
            .word(MRET);
        a.csrw(0x305, 5)
            .marker(0, 0x101)
            .word(ECALL)
            .marker(0, 0x102)
            .word(WFI);
    });
    // jal 0 to 1, csrw 2, marker 3, ecall 4; handler from 4 + 9 = 13: marker 13, mret at 17; next at 18 + 9.
    assert_eq!(times, [3, 13, 27]);
}

/// The interrupt comes in the middle of a block, while the first access waits for its line. The second access then has to wait for
/// tokens. The interrupt ends this wait at once, although it came earlier.
#[test]
fn a_wait_for_tokens_is_over_for_an_interrupt_that_came_before_it() {
    const TOKENS: Tick = 10_000;
    let (mut hart, mut bus) = start(&assemble(|a| {
        a.jal(5, 3).marker(0, 0x101).word(WFI); // x5 = the handler's address
        a.csrw(0x305, 5).open_protection().li(7, BASE + 0x10000);
        a.addi(6, 0, 0x80).csrw(0x304, 6).csrw(0x300, 0);
        a.r(0x17, 0, 0, 6, 0, 0).addi(6, 6, 16);
        a.csrw(0x341, 6).word(MRET); // to the next instruction, in user mode
        a.ld(8, 7, 0).addi(8, 8, 1).ld(9, 7, 64).addi(9, 9, 1);
        a.word(WFI);
    }));
    (bus.far, bus.distance) = (100, 1);
    let stop = hart.run(&mut bus, 1_000_000);
    let ((arrival, token), _) = bus.events.pop_first().expect("the first access");
    assert_eq!(stop, Stop::Pending(token));
    bus.next_token = TOKENS;
    hart.set_interrupt(InterruptLine::Timer, true, arrival - 50);
    let line = bus.line(BASE + 0x10000);
    hart.complete(token, arrival, line);
    let stops: Vec<Stop> = (0..4).map(|_| hart.run(&mut bus, 1_000_000)).collect();
    let taken = bus.markers.first().map(|(at, ..)| *at);
    let taken = taken.unwrap_or_else(|| panic!("{stops:?} at {:#x}", hart.pc()));
    assert!(
        taken < arrival + 50,
        "taken at {taken}, the line was there at {arrival}"
    );
    assert_eq!((bus.withdrawn, hart.csr(0x342)), (1, Some(1 << 63 | 7)));
}

/// A loop whose first instruction reaches into the next line, where its branch is: `length` times.
fn loop_across_lines(length: i32) -> Vec<u8> {
    let mut a = Assembler::default();
    a.addi(5, 0, length);
    for _ in 0..14 {
        a.addi(0, 0, 0);
    }
    let mut bytes = a.bytes();
    bytes.extend(1u16.to_le_bytes()); // c.nop, so that the loop begins two bytes before the end of the line
    let mut a = Assembler::default();
    a.addi(5, 5, -1).branch(1, 5, 0, 0).word(WFI);
    bytes.extend(a.bytes());
    bytes
}

/// Each time, the block before the branch fetches both of its lines, and waits for what is on its way: whether the loop of blocks finds it, or
/// each block has a run of its own.
#[test]
fn a_block_that_reaches_into_the_next_line_fetches_both_each_time() {
    for seed in 0..40 {
        let run = |width: Tick| {
            let mut bus = FlatBus::new(&loop_across_lines(5), seed);
            let mut hart = Hart::new(&HartConfig::default(), 0);
            hart.reset(BASE, 0);
            let mut stop = Stop::Horizon;
            while stop != Stop::WaitForInterrupt {
                let next = bus.events.first_key_value().map(|(key, _)| key.0);
                let horizon = next.unwrap_or(Tick::MAX).min(hart.time() + width);
                stop = hart.run(&mut bus, horizon);
                if let (Stop::Pending(_), Some(((at, token), Event::Complete(_, address)))) =
                    (stop, bus.events.pop_first())
                {
                    let line = bus.line(address);
                    hart.complete(token, at, line);
                }
            }
            let fetched: Vec<u64> = bus.fetch_log.iter().map(|f| (f.1 - BASE) & !63).collect();
            assert_eq!(hart.register(5), 0);
            (hart.time(), fetched)
        };
        let (time, fetched) = run(1_000_000);
        assert_eq!(run(1), (time, fetched.clone()), "seed {seed}");
        if seed == 0 {
            assert_eq!(fetched, [0, 64].repeat(5));
        }
    }
}
