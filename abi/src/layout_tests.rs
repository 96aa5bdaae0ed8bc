//! Byte offsets and bit positions, written from the text of `docs/reference/dtu.md` and of the module docs, not from the
//! code: a shared wrong offset would agree with itself.

extern crate std;

use crate::boot::{BootHeader, BootModule, BootTile};
use crate::dtu::*;
use crate::environment::{ArgumentEntry, Environment, GateEntry, SHARED_OFFSET};
use crate::message::Header;
use core::mem::{offset_of, size_of};

#[test]
fn message_header() {
    assert_eq!(size_of::<Header>(), 32);
    assert_eq!(offset_of!(Header, flags), 0);
    assert_eq!(offset_of!(Header, length), 2);
    assert_eq!(offset_of!(Header, sender_tile), 4);
    assert_eq!(offset_of!(Header, sender_endpoint), 6);
    assert_eq!(offset_of!(Header, reply_endpoint), 8);
    assert_eq!(offset_of!(Header, sender_activity), 10);
    assert_eq!(offset_of!(Header, shares), 12);
    assert_eq!(offset_of!(Header, reply_label), 16);
    assert_eq!(offset_of!(Header, label), 24);
}

#[test]
fn register_pages() {
    assert_eq!(
        [COMMAND, ADDRESS, SIZE, ARGUMENT, TIME],
        [0, 8, 0x10, 0x18, 0x20]
    );
    assert_eq!(
        [
            CURRENT_ACTIVITY,
            PRIVILEGED_COMMAND,
            PRIVILEGED_ARGUMENT,
            PRIVILEGED_ARGUMENT2,
            CORE_REQUEST,
            TIMER_EXPIRED,
            AWAITED
        ],
        [0x1000, 0x1008, 0x1010, 0x1018, 0x1020, 0x1028, 0x1040]
    );
    assert_eq!(
        [
            FEATURES,
            EXTERNAL_ARGUMENT,
            EXTERNAL_COMMAND,
            UNDER_WAY,
            WRITING_BACK,
            BUCKETS
        ],
        [0x2000, 0x2008, 0x2010, 0x2020, 0x2028, 0x2040]
    );
    assert_eq!(
        [BUCKET_RATE, BUCKET_AMOUNT, BUCKET_LIMIT, BUCKET_STRIDE],
        [0, 8, 0x10, 0x20]
    );
    assert_eq!((ENDPOINTS, ENDPOINT_STRIDE), (0x4000, 32));
    assert_eq!(
        [DEVICE_ADDRESS, DEVICE_PHYSICAL, DEVICE_SIZE, DEVICE_OWNER],
        [0x2100, 0x2108, 0x2110, 0x2118]
    );
}

#[test]
fn command_codes() {
    let opcodes = [
        (Opcode::Send, 1),
        (Opcode::Reply, 2),
        (Opcode::Read, 3),
        (Opcode::Write, 4),
        (Opcode::Fetch, 5),
        (Opcode::Acknowledge, 6),
        (Opcode::Sleep, 7),
    ];
    assert!(opcodes.iter().all(|(opcode, code)| *opcode as u8 == *code));
    let privileged = [
        (PrivilegedOpcode::ExchangeActivity, 1),
        (PrivilegedOpcode::InsertTlb, 2),
        (PrivilegedOpcode::InvalidatePage, 3),
        (PrivilegedOpcode::InvalidateTlb, 4),
        (PrivilegedOpcode::SetTimer, 5),
        (PrivilegedOpcode::AbortCommand, 6),
    ];
    assert!(
        privileged
            .iter()
            .all(|(opcode, code)| *opcode as u8 == *code)
    );
    assert_eq!(ExternalOpcode::InvalidateEndpoint as u8, 1);
    assert_eq!(ExternalOpcode::StartHart as u8, 2);
    assert_eq!(ExternalOpcode::StopHart as u8, 3);
    assert_eq!(ExternalOpcode::WriteBack as u8, 4);
    // bits 7..0 opcode, 23..8 endpoint, 63..32 argument
    assert_eq!(
        Command::new(Opcode::Reply, 0x1234, 0x89AB_CDEF).0,
        0x89AB_CDEF_0012_3402
    );
    // 31..24 error
    assert_eq!(Command(0x0500_0000).error(), 5);
}

#[test]
fn error_codes() {
    for (code, error) in [
        (0, DtuError::None),
        (1, DtuError::InvalidEndpoint),
        (2, DtuError::ForeignEndpoint),
        (3, DtuError::TranslationFault),
        (4, DtuError::BadSize),
        (5, DtuError::NoCredits),
        (6, DtuError::NoSpace),
        (7, DtuError::ReceiverGone),
        (8, DtuError::OutOfBounds),
        (9, DtuError::NoPermission),
        (10, DtuError::BadMessage),
        (11, DtuError::NoReply),
        (12, DtuError::Aborted),
        (13, DtuError::UnknownCommand),
        (14, DtuError::TargetRefused),
        (15, DtuError::Busy),
        (16, DtuError::Woken),
    ] {
        assert_eq!(DtuError::from_code(code), Some(error));
    }
    assert_eq!(DtuError::from_code(17), None);
}

#[test]
fn activity_registers() {
    // 15..0 activity, 31..16 unread messages, 33..32 bucket
    assert_eq!(CurrentActivity::new(0x1122, 0x3344, 3).0, 0x3_3344_1122);
    // 15..0 activity, 31..16 endpoint, 63 valid
    assert_eq!(CoreRequest::new(0x1122, 0x3344).0, 0x8000_0000_3344_1122);
    // 47..40 urgency
    let urgent = CurrentActivity::new(0x1122, 0x3344, 3).with_urgency(0x55);
    assert_eq!(urgent.0, 0x5503_3344_1122);
    assert_eq!((urgent.urgency(), urgent.bucket()), (0x55, 3));
    // 15..0 activity, 31..16 endpoint, 39..32 urgency, 63 valid
    let awaited = Awaited::new(0x1122, 0x3344, 0x55);
    assert_eq!(awaited.0, 0x8000_0055_3344_1122);
    assert!(awaited.is_for(0x1122, 0x3344) && !awaited.is_for(0x1122, 0x3345));
    assert!(Awaited::new(0x1122, NO_ENDPOINT, 0).is_for(0x1122, 0x3345));
    assert_eq!(awaited.after(257).0, 0x8000_0255_3344_1122);
    assert_eq!((awaited.after(257).delay(), awaited.delay()), (512, 0));
    assert_eq!(awaited.after(u64::MAX).0, 0xFFFF_FF55_3344_1122);
    assert_eq!(awaited.after(u64::MAX).after(0), awaited);
    assert!(!Awaited::default().is_for(0, 0));
}

#[test]
fn endpoint_words() {
    let send = Endpoint::Send(SendEndpoint {
        activity: 0x1111,
        target_tile: 0x2222,
        target_endpoint: 0x3333,
        label: 0x4444,
        credits: 5,
        credits_max: 6,
        message_size: 0x7777,
        credit_endpoint: 0x8888,
        reply: true,
        shares: 0,
        epoch: 0x9999_9999_9999,
    });
    assert_eq!(
        send.pack(),
        [
            0x2222_3333_1111_0101,
            0x4444,
            0x8888_7777_0605,
            0x9999_9999_9999
        ]
    );
    // The last word of an endpoint of a gate: 31..0 shares. Three shares are three credits.
    let gate = SendEndpoint::of_gate(0x1111, (0x2222, 0x3333), (0x4444, 0x8000_0003), 0x7777);
    let gate = Endpoint::Send(gate);
    let words = [0x2222_3333_1111_0001, 0x4444, 0xFFFF_7777_0303, 0x8000_0003];
    assert_eq!(gate.pack(), words);
    let unlimited = SendEndpoint::of_gate(0, (0, 0), (0, 0), 0);
    assert_eq!(unlimited.credits_max, UNLIMITED_CREDITS);
    let receive = Endpoint::Receive(ReceiveEndpoint {
        activity: 0x1111,
        reply_endpoints: 0x2222,
        buffer: 0x3333,
        slot_size: 0x4444,
        slots: 5,
        position: 6,
        occupied: 0x7777_7777,
        unread: 0x8888_8888,
    });
    assert_eq!(
        receive.pack(),
        [0x2222_1111_0002, 0x3333, 0x0605_4444, 0x8888_8888_7777_7777]
    );
    let memory = Endpoint::Memory(MemoryEndpoint {
        activity: 0x1111,
        target_tile: 0x2222,
        rights: 3,
        base: 4,
        size: 5,
    });
    assert_eq!(memory.pack(), [0x2222_0003_1111_0003, 4, 5, 0]);
    for endpoint in [send, gate, receive, memory, Endpoint::Invalid] {
        assert_eq!(Endpoint::unpack(endpoint.pack()), endpoint);
    }
}

#[test]
fn boot_table() {
    assert_eq!(size_of::<BootHeader>(), 64);
    assert_eq!(offset_of!(BootHeader, tiles), 12);
    assert_eq!(offset_of!(BootHeader, modules), 16);
    assert_eq!(offset_of!(BootHeader, manager_tile), 20);
    assert_eq!(offset_of!(BootHeader, manager_memory), 24);
    assert_eq!(offset_of!(BootHeader, timebase), 32);
    assert_eq!(offset_of!(BootHeader, free_start), 40);
    assert_eq!(offset_of!(BootHeader, free_end), 48);
    assert_eq!(offset_of!(BootHeader, heap), 56);
    assert_eq!(size_of::<BootTile>(), 48);
    assert_eq!(offset_of!(BootTile, memory), 8);
    assert_eq!(offset_of!(BootTile, endpoints), 24);
    assert_eq!(offset_of!(BootTile, policy), 32);
    assert_eq!(offset_of!(BootTile, slice), 36);
    assert_eq!(offset_of!(BootTile, line), 40);
    assert_eq!(size_of::<BootModule>(), 80);
    assert_eq!(offset_of!(BootModule, offset), 64);
}

#[test]
fn environment_page() {
    assert_eq!(size_of::<Environment>(), 144);
    assert_eq!(offset_of!(Environment, activity), 8);
    assert_eq!(offset_of!(Environment, shared) as u64, SHARED_OFFSET);
    assert_eq!(offset_of!(Environment, timebase), 16);
    assert_eq!(offset_of!(Environment, syscall_send), 80);
    assert_eq!(offset_of!(Environment, line), 90);
    assert_eq!(offset_of!(Environment, syscall_buffer), 96);
    assert_eq!(offset_of!(Environment, name), 112);
    assert_eq!(size_of::<GateEntry>(), 64);
    assert_eq!(offset_of!(GateEntry, kind), 32);
    assert_eq!(offset_of!(GateEntry, endpoint), 36);
    assert_eq!(offset_of!(GateEntry, buffer), 40);
    assert_eq!(size_of::<ArgumentEntry>(), 96);
}

/// The tables of `docs/reference/dma.md`.
#[test]
fn registers_of_dma_engines() {
    use crate::dma::*;
    use crate::memory_map::TILE_REGISTERS_SIZE;
    assert_eq!(
        (FIRST_CHANNEL, CHANNEL_SIZE, CHANNELS_MAX),
        (0x400, 0x80, 8)
    );
    assert!(FIRST_CHANNEL + u64::from(CHANNELS_MAX) * CHANNEL_SIZE <= TILE_REGISTERS_SIZE);
    let descriptor = [
        (0x00, CONFIG),
        (0x08, SOURCE),
        (0x10, DESTINATION),
        (0x18, COUNTS),
        (0x20, ELEMENT_STRIDES),
        (0x28, ROW_STRIDES),
        (0x30, NEXT),
        (0x38, FLAG),
    ];
    let registers = [
        (0x40, CONTROL),
        (0x48, STATUS),
        (0x50, ERROR_ADDRESS),
        (0x58, INTERRUPT),
        (0x60, COMPLETED),
        (0x68, DESCRIPTOR),
    ];
    for (offset, name) in descriptor.into_iter().chain(registers) {
        assert_eq!(offset, name);
    }
    assert_eq!((DESCRIPTOR_SIZE, REGISTERS_END), (0x40, 0x70));
    assert_eq!((START, START_CHAIN, STOP), (1, 2, 4));
    assert_eq!((INTERRUPT_AT_END, CONFIG_RESERVED), (4, 0xFFFF_FFF8));
    let states = [
        State::Idle,
        State::Busy,
        State::Done,
        State::Error,
        State::Stopped,
    ];
    assert_eq!(states.map(|state| state as u8), [0, 1, 2, 3, 4]);
    let causes = [
        Cause::None,
        Cause::ReadNothing,
        Cause::WriteNothing,
        Cause::ReadRefused,
        Cause::WriteRefused,
        Cause::Descriptor,
    ];
    assert_eq!(causes.map(|cause| cause as u8), [0, 1, 2, 3, 4, 5]);
    let words = contiguous(2, 0x100, 0x200, 7);
    assert_eq!(words, [2, 0x100, 0x200, 7 | 1 << 32, 4 | 4 << 32, 0, 0, 0]);
}
