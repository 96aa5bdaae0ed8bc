//! Devices go to one activity at a time, and are taken back.

use super::*;
use bulkhead_abi::memory_map::NETWORK_CARD_BASE;
use bulkhead_abi::network::CARD_ADDRESS;
use bulkhead_abi::syscall::{SEL_MEMORY, SEL_TILE, StopCause};

/// A receive gate of the manager, active for an activity at APP; returns its endpoint.
fn interrupt_gate(system: &mut System, chip: &mut Chip) -> u16 {
    let gate = Syscall::CreateReceive {
        target: 60,
        slots: 2,
        slot_size: 64,
    };
    call(system, chip, 1, gate).unwrap();
    let active = activate(60, APP, Some((APP + 1, 0x9000)));
    call(system, chip, 1, active).unwrap()[0] as u16
}

fn give(endpoint: u16) -> Syscall {
    Syscall::GiveDevice {
        tile: SEL_TILES + 2,
        activity: APP,
        endpoint,
        address: 0x1000_5000,
        offset: 0x3000,
        size: 0x2000,
    }
}

#[test]
fn a_device_sees_only_what_it_was_given() {
    let (mut system, mut chip) = boot();
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let endpoint = interrupt_gate(&mut system, &mut chip);
    call(&mut system, &mut chip, 1, give(endpoint)).unwrap();
    let physical = system.activity(id).unwrap().physical + 0x3000;
    assert_eq!(
        chip.devices,
        [(2, (id, endpoint), (0x1000_5000, physical, 0x2000))]
    );
    assert!(matches!(
        chip.requests.last(),
        Some((2, Request::Map { activity, address: CARD_ADDRESS, physical: NETWORK_CARD_BASE, pages: 1, rights: 3 }))
            if *activity == id
    ));
    // No other activity gets it while its holder lives.
    let again = call(&mut system, &mut chip, 1, give(endpoint));
    assert_eq!(again, Err(SyscallError::WrongState));
}

#[test]
fn whoever_ends_loses_the_device_before_his_memory() {
    for way in 0..3 {
        let (mut system, mut chip) = boot();
        let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
        let endpoint = interrupt_gate(&mut system, &mut chip);
        call(&mut system, &mut chip, 1, give(endpoint)).unwrap();
        start(&mut system, &mut chip, APP);
        match way {
            0 => {
                system.notified(&mut chip, 2, id, StopCause::Panic);
                finish(&mut system, &mut chip);
            }
            1 => {
                let stop = Syscall::Stop { activity: APP };
                call(&mut system, &mut chip, 1, stop).unwrap();
            }
            _ => {
                let revoke = Syscall::Revoke {
                    selector: APP + 1,
                    keep: 0,
                };
                call(&mut system, &mut chip, 1, revoke).unwrap();
            }
        }
        assert_eq!(chip.devices.last(), Some(&(2, (0, 0), (0, 0, 0))), "{way}");
        assert_eq!(system.activity(id).map(|a| a.tile), None);
        // Another activity can have it now.
        create(&mut system, &mut chip, 300, SEL_TILES + 2);
        let request = Syscall::GiveDevice {
            tile: SEL_TILES + 2,
            activity: 300,
            endpoint: 63,
            address: 0,
            offset: 0,
            size: 0x1000,
        };
        let refused = call(&mut system, &mut chip, 1, request);
        assert_eq!(refused, Err(SyscallError::NotReceiver));
    }
}

/// An application on a driver's tile has a capability for the tile, and makes an activity of its own. Before the fix, this activity got the
/// device when the driver had ended, and the driver never came back.
#[test]
fn a_device_is_given_by_whoever_is_in_charge_of_its_tile() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 201,
            size: 1 << 16,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 202,
            bytes: 1 << 16,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let neighbour = creation(200, SEL_TILES + 2, 0);
    let neighbour = call(&mut system, &mut chip, 1, neighbour).unwrap()[0] as u16;
    start(&mut system, &mut chip, 200);
    let (kid, piece, gate) = (20, 21, 22);
    let made = Syscall::CreateActivity {
        target: kid,
        tile: SEL_TILE,
        purse: SEL_KERNEL_MEMORY,
        memory: piece,
        reply: 0,
        priority: 0,
        tile_priority: 0,
        name: Name::new("kid").unwrap(),
    };
    let active = Syscall::Activate {
        gate,
        activity: kid,
        memory: piece,
        offset: 0x1000,
        replies: 0,
        endpoint: ANY_ENDPOINT,
    };
    for request in [
        Syscall::CutMemory {
            source: SEL_MEMORY,
            target: piece,
            size: 0x8000,
        },
        made,
        Syscall::CreateReceive {
            target: gate,
            slots: 2,
            slot_size: 64,
        },
    ] {
        call(&mut system, &mut chip, neighbour, request).unwrap();
    }
    let endpoint = call(&mut system, &mut chip, neighbour, active).unwrap()[0] as u16;
    let take = Syscall::GiveDevice {
        tile: SEL_TILE,
        activity: kid,
        endpoint,
        address: 0x4000_0000,
        offset: 0,
        size: 0x1000,
    };
    let taken = call(&mut system, &mut chip, neighbour, take);
    assert_eq!(taken, Err(SyscallError::WrongState));
    assert!(chip.devices.is_empty());
}

#[test]
fn nobody_helps_himself_to_a_device() {
    let (mut system, mut chip) = boot();
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let endpoint = interrupt_gate(&mut system, &mut chip);
    // For itself, with its own tile's capability.
    let own = Syscall::GiveDevice {
        tile: 2,
        activity: 0,
        endpoint,
        address: 0,
        offset: 0,
        size: 0x1000,
    };
    let taken = call(&mut system, &mut chip, id, own);
    assert_eq!(taken, Err(SyscallError::WrongState));
    let wrong = |change: fn(&mut (u64, u64, u64))| {
        let mut memory = (0x1000_5000, 0x3000, 0x2000);
        change(&mut memory);
        let (address, offset, size) = memory;
        Syscall::GiveDevice {
            tile: SEL_TILES + 2,
            activity: APP,
            endpoint,
            address,
            offset,
            size,
        }
    };
    // Memory that is not the activity's, or not in whole pages.
    for request in [
        wrong(|m| m.1 = 0xF000),
        wrong(|m| m.2 = 0),
        wrong(|m| m.2 = u64::MAX - 0xFFF),
        wrong(|m| m.1 = u64::MAX - 0xFFF),
        wrong(|m| m.0 = 1),
        wrong(|m| m.0 = u64::MAX - 0xFFF),
    ] {
        let refused = call(&mut system, &mut chip, 1, request);
        assert_eq!(refused, Err(SyscallError::OutOfBounds), "{request:?}");
    }
    // Another tile, an endpoint without an owner, and an activity that has started.
    let other = Syscall::GiveDevice {
        tile: SEL_TILES + 1,
        activity: APP,
        endpoint,
        address: 0,
        offset: 0,
        size: 0x1000,
    };
    let refused = call(&mut system, &mut chip, 1, other);
    assert_eq!(refused, Err(SyscallError::NoTile));
    let refused = call(&mut system, &mut chip, 1, give(endpoint + 20));
    assert_eq!(refused, Err(SyscallError::NotReceiver));
    start(&mut system, &mut chip, APP);
    let late = call(&mut system, &mut chip, 1, give(endpoint));
    assert_eq!(late, Err(SyscallError::WrongState));
    assert!(chip.devices.is_empty());
}
