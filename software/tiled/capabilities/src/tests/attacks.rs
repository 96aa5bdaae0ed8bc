//! What a hostile activity might try.

use super::{KERNEL, MEMORY, SMALL_TILE, TILE, activity, finish, space};
use crate::{DEPTH_MAX, Error, HolderId, PIECES_MAX, Progress, Quota, Request, SELECTORS, Terms};

#[test]
fn selectors_that_are_stale_foreign_or_senseless() {
    let mut space = space(256);
    let a = activity(&mut space, TILE, 10, 4096);
    space.create_semaphore(a, 1, 0).unwrap();
    space.revoke(0, a, 1, false).unwrap();
    finish(&mut space, 0);
    // A stale selector, and a second revocation.
    assert_eq!(space.revoke(0, a, 1, false), Err(Error::NoCapability));
    assert_eq!(space.semaphore_up(a, 1), Err(Error::NoCapability));
    // Another object under the same selector is another object.
    space.create_receive(a, 1, 1, 64).unwrap();
    assert_eq!(space.semaphore_up(a, 1), Err(Error::WrongKind));
    for selector in [SELECTORS as u16, u16::MAX] {
        assert_eq!(space.find(a, selector), Err(Error::NoCapability));
        if selector != u16::MAX {
            assert_eq!(
                space.create_semaphore(a, selector, 0),
                Err(Error::SelectorTaken)
            );
        }
    }
    assert_eq!(space.find(HolderId(7), 1), Err(Error::NoHolder));
    assert_eq!(space.find(HolderId(999), 1), Err(Error::NoHolder));
    assert_eq!(space.end_activity(0, KERNEL), Err(Error::NoHolder));
    assert_eq!(space.create_semaphore(a, 1, 0), Err(Error::SelectorTaken));
    assert_eq!(
        space.copy(a, (KERNEL, TILE), (a, u16::MAX)),
        Err(Error::SelectorTaken)
    );
    space.check().unwrap();
}

#[test]
fn numbers_that_overflow() {
    let mut space = space(256);
    activity(&mut space, TILE, 10, 4096);
    for bytes in [u64::MAX, u64::MAX - 100, 1 << 60] {
        let result = space.derive_kernel_memory(KERNEL, super::PURSE, 30, bytes);
        assert_eq!(result, Err(Error::NoQuota));
    }
    for (size, align) in [(u64::MAX, 1), (1, 1 << 63), (0, 1), (1, 0), (1, 3)] {
        assert!(space.cut_memory(KERNEL, MEMORY, 30, size, align).is_err());
    }
    for part in [
        (u64::MAX, 2),
        (2, u64::MAX),
        (0, (1 << 20) + 1),
        (1 << 20, 1),
        (0, 0),
    ] {
        let result = space.derive_memory(KERNEL, MEMORY, 30, part, 1);
        assert_eq!(result, Err(Error::OutOfBounds));
    }
    assert_eq!(
        space.derive_memory(KERNEL, MEMORY, 30, (0, 1), 8),
        Err(Error::OutOfBounds)
    );
    for value in [u64::MAX, u64::MAX - 1] {
        for quota in [
            Quota::Endpoints,
            Quota::Cpu,
            Quota::PageTables,
            Quota::NocRate,
        ] {
            let terms = Terms {
                period: u64::MAX,
                ..Terms::default()
            };
            let mut request = Request::default();
            request[quota as usize] = Some(value);
            if quota == Quota::NocRate {
                request[Quota::NocBurst as usize] = Some(1);
            }
            let result = space.derive_tile(KERNEL, SMALL_TILE, 30, request, terms);
            if quota != Quota::Cpu {
                assert_eq!(result, Err(Error::NoQuota), "{quota:?}");
            }
            if result.is_ok() {
                space.revoke(0, KERNEL, 30, false).unwrap();
                finish(&mut space, 0);
            }
        }
    }
    let id = space.create_semaphore(KERNEL, 31, u32::MAX).unwrap();
    assert_eq!(space.semaphore_up(KERNEL, 31), Err(Error::OutOfBounds));
    assert!(space.semaphore_take(id));
    space.check().unwrap();
}

#[test]
fn derivations_in_a_row_end() {
    let mut space = space(256);
    let mut selector = 100;
    space.create_semaphore(KERNEL, selector, 0).unwrap();
    for _ in 0..DEPTH_MAX {
        space
            .copy(KERNEL, (KERNEL, selector), (KERNEL, selector + 1))
            .unwrap();
        selector += 1;
    }
    assert_eq!(
        space.copy(KERNEL, (KERNEL, selector), (KERNEL, selector + 1)),
        Err(Error::TooDeep)
    );
    space.revoke(0, KERNEL, 100, false).unwrap();
    assert_eq!(finish(&mut space, 0), usize::from(DEPTH_MAX) + 1);
}

#[test]
fn pieces_of_memory_are_limited() {
    let mut space = space(128);
    for i in 0..u16::from(PIECES_MAX) {
        space.cut_memory(KERNEL, MEMORY, 100 + i, 16, 16).unwrap();
    }
    assert_eq!(
        space.cut_memory(KERNEL, MEMORY, 200, 16, 16),
        Err(Error::NoMemory)
    );
    space.check().unwrap();
}

#[test]
fn nobody_lets_others_pay() {
    let mut space = space(256);
    let a = activity(&mut space, TILE, 10, 4096);
    let b = activity(&mut space, TILE, 20, 4096);
    space.create_semaphore(a, 1, 0).unwrap();
    assert_eq!(space.copy(KERNEL, (a, 1), (b, 1)), Err(Error::OutOfBounds));
}

#[test]
fn nothing_is_derived_from_what_is_being_revoked() {
    let mut space = space(256);
    let a = activity(&mut space, TILE, 10, 4096);
    let b = activity(&mut space, TILE, 20, 4096);
    space.create_receive(a, 1, 8, 64).unwrap();
    space.create_send(a, 1, 2, 0, 1).unwrap();
    space.copy(b, (a, 2), (b, 2)).unwrap();
    space.copy(b, (b, 2), (b, 3)).unwrap();
    space.revoke(0, a, 1, false).unwrap();
    // Even before the first step, anywhere in the tree.
    assert_eq!(space.create_send(a, 1, 4, 0, 1), Err(Error::Revoked));
    assert_eq!(space.copy(b, (b, 3), (b, 4)), Err(Error::Revoked));
    assert_eq!(space.copy(a, (b, 3), (a, 4)), Err(Error::Revoked));
    assert_eq!(space.revoke(0, b, 3, false), Err(Error::Busy));
    // A second revocation of the same node, at another level, is refused too once the node is
    // marked.
    assert_eq!(space.revoke(1, a, 1, false), Err(Error::Revoked));
    // A part of it may go first.
    space.revoke(1, b, 2, false).unwrap();
    assert_eq!(finish(&mut space, 1), 2);
    space.check().unwrap();
    assert_eq!(finish(&mut space, 0), 2);
    assert_eq!(space.step(0), Progress::Done);
    space.check().unwrap();
}

#[test]
fn an_activity_that_ends_itself_is_gone() {
    let mut space = space(256);
    let a = activity(&mut space, TILE, 10, 8192);
    space.copy(KERNEL, (KERNEL, 12), (a, 0)).unwrap();
    // Its capability is a copy: revoking the copy does not end the activity; revoking the
    // activity's own node does.
    space.revoke(0, a, 0, false).unwrap();
    assert_eq!(finish(&mut space, 0), 1);
    space.create_semaphore(a, 1, 0).unwrap();
    space.end_activity(0, a).unwrap();
    assert_eq!(space.create_semaphore(a, 2, 0), Err(Error::NoHolder));
    assert_eq!(finish(&mut space, 0), 2);
    space.check().unwrap();
}
