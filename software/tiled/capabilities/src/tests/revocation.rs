//! Revocation in small steps: bounds, nesting, and operations between the steps.

use super::{KERNEL, PURSE, TILE, activity, finish, space, space_of};
use crate::{
    ACTIVITY_STEPS, CUT_STEPS, Error, LEVELS, MAKE_STEPS, Object, Progress, REVOKE_STEPS, Request,
    Space, Terms,
};

#[test]
fn a_large_tree_is_removed_in_bounded_steps() {
    let mut space = space(4000);
    // A tree: each capability is derived from the one at a seventh of its distance from the start.
    space.create_semaphore(KERNEL, 100, 0).unwrap();
    for i in 1..900u16 {
        space
            .copy(KERNEL, (KERNEL, 100 + i / 7), (KERNEL, 100 + i))
            .unwrap();
    }
    space.check().unwrap();
    space.revoke(0, KERNEL, 100, false).unwrap();
    let (mut calls, mut removed) = (0u32, 0);
    loop {
        let before = space.steps();
        let progress = space.step(0);
        assert!(space.steps() - before <= REVOKE_STEPS.into());
        match progress {
            Progress::Done => break,
            Progress::Removed(_) => removed += 1,
            Progress::Working | Progress::Disconnected(_) => {}
        }
        calls += 1;
    }
    assert_eq!(removed, 900);
    // Every node except the root is visited once, and every node is removed once.
    assert_eq!(calls, 900 + 899);
    space.check().unwrap();
}

#[test]
fn a_tree_of_ten_thousand_is_removed_in_the_same_small_steps() {
    let mut space = space_of(16_000, 16);
    let left = space.kernel_memory_left(KERNEL).unwrap();
    let rest = 64 * Space::NODE_COST + 16 * Space::HOLDER_COST;
    space.add_kernel_memory(PURSE, left - rest).unwrap();
    space.create_semaphore(KERNEL, 900, 0).unwrap();
    let mut holders = Vec::new();
    for number in 0..12 {
        let holder = activity(&mut space, TILE, 10 + 4 * number, 900 * Space::NODE_COST);
        space.copy(holder, (KERNEL, 900), (holder, 16)).unwrap();
        for i in 1..850u16 {
            let source = (holder, 16 + i / 7);
            space.copy(holder, source, (holder, 16 + i)).unwrap();
        }
        holders.push(holder);
    }
    space.check().unwrap();
    space.revoke(0, KERNEL, 900, false).unwrap();
    let (mut removed, mut worst) = (0, 0);
    loop {
        let before = space.steps();
        let progress = space.step(0);
        worst = worst.max(space.steps() - before);
        match progress {
            Progress::Done => break,
            Progress::Removed(_) => removed += 1,
            Progress::Working | Progress::Disconnected(_) => {}
        }
    }
    assert_eq!(removed, 1 + 12 * 850);
    assert!(worst <= REVOKE_STEPS.into(), "{worst}");
    println!("{removed} capabilities, at most {worst} nodes in a step");
    for holder in holders {
        let left = space.kernel_memory_left(holder).unwrap();
        assert_eq!(left, 900 * Space::NODE_COST);
    }
    space.check().unwrap();
}

#[test]
fn the_root_can_stay() {
    let mut space = space(256);
    space.create_semaphore(KERNEL, 100, 0).unwrap();
    for i in 0..10 {
        space
            .copy(KERNEL, (KERNEL, 100), (KERNEL, 101 + i))
            .unwrap();
    }
    space.revoke(0, KERNEL, 100, true).unwrap();
    assert_eq!(
        space.copy(KERNEL, (KERNEL, 100), (KERNEL, 120)),
        Err(Error::Revoked)
    );
    assert_eq!(finish(&mut space, 0), 10);
    space.copy(KERNEL, (KERNEL, 100), (KERNEL, 120)).unwrap();
    space.check().unwrap();
}

#[test]
fn revocations_nest_on_overlapping_trees() {
    // All orders of two revocations on a path, with every number of steps between them.
    for (outer, inner) in [(100, 102), (102, 100), (101, 101), (100, 105), (105, 100)] {
        // Miri takes a few of them.
        let every = if cfg!(miri) { 7 } else { 1 };
        for first in (0..20).step_by(every) {
            for second in (0..20).step_by(every) {
                for keep in [false, true] {
                    let mut space = space(256);
                    space.create_semaphore(KERNEL, 100, 0).unwrap();
                    for i in 0..6 {
                        space
                            .copy(KERNEL, (KERNEL, 100 + i), (KERNEL, 101 + i))
                            .unwrap();
                        space
                            .copy(KERNEL, (KERNEL, 100 + i), (KERNEL, 111 + i))
                            .unwrap();
                    }
                    space.revoke(1, KERNEL, outer, keep).unwrap();
                    for _ in 0..first {
                        space.step(1);
                    }
                    match space.revoke(2, KERNEL, inner, false) {
                        Ok(()) => {
                            for _ in 0..second {
                                space.step(2);
                            }
                            space.check().unwrap();
                            // The lower one may even continue first.
                            if second % 2 == 0 {
                                finish(&mut space, 1);
                                space.check().unwrap();
                            }
                            finish(&mut space, 2);
                        }
                        Err(Error::Revoked | Error::NoCapability) => {}
                        Err(other) => panic!("{other:?}"),
                    }
                    space.check().unwrap();
                    finish(&mut space, 1);
                    space.check().unwrap();
                    let least = outer.min(inner);
                    for selector in least + 1..=106 {
                        if keep && selector == outer {
                            continue;
                        }
                        if space.find(KERNEL, selector).is_ok() {
                            // Only if the inner one was refused.
                            assert!(selector <= outer, "{outer} {inner} {selector}");
                        }
                    }
                    for level in 0..LEVELS {
                        assert!(!space.is_revoking(level));
                    }
                }
            }
        }
    }
}

/// Another caller derives as fast as the machine removes. A capability that is being revoked cannot
/// grow, so the revocation ends.
#[test]
fn revocation_ends_although_others_derive() {
    let mut space = space(2000);
    let a = activity(&mut space, TILE, 10, 65536);
    let b = activity(&mut space, TILE, 20, 65536);
    space.create_semaphore(a, 0, 0).unwrap();
    for i in 0..50 {
        space.copy(b, (a, 0), (b, i)).unwrap();
    }
    space.end_activity(0, a).unwrap();
    let (mut steps, mut made) = (0, 0);
    let mut selector = 50;
    while space.step(0) != Progress::Done {
        steps += 1;
        for i in 0..50 {
            made += u32::from(space.copy(b, (b, i), (b, selector)).is_ok());
            selector = if selector < 900 { selector + 1 } else { 50 };
        }
        assert!(steps < 2 * 2000, "no end");
    }
    assert_eq!(made, 0);
    space.check().unwrap();
}

#[test]
fn operations_keep_their_bounds_in_the_deepest_tree() {
    let mut space = space(600);
    activity(&mut space, TILE, 10, 4096);
    let mut worst = 0;
    // A chain of purses and tiles, each derived from the one before.
    for i in 0..20u16 {
        let (from_tile, from_purse) = match i {
            0 => (TILE, PURSE),
            i => (99 + i, 199 + i),
        };
        let before = space.steps();
        let request = Request::default();
        space
            .derive_tile(KERNEL, from_tile, 100 + i, request, Terms::default())
            .unwrap();
        worst = worst.max(space.steps() - before);
        let bytes = match *space.look(KERNEL, from_purse).unwrap().1 {
            Object::KernelMemory { left, .. } => left * 9 / 10,
            other => panic!("{other:?}"),
        };
        let before = space.steps();
        space
            .derive_kernel_memory(KERNEL, from_purse, 200 + i, bytes)
            .unwrap();
        worst = worst.max(space.steps() - before);
    }
    space
        .cut_memory(KERNEL, super::MEMORY, 300, 65536, 4096)
        .unwrap();
    let before = space.steps();
    let (_, deep) = space.create_activity(KERNEL, 301, 119, 219, 300).unwrap();
    assert!(space.steps() - before <= ACTIVITY_STEPS.into());
    for i in 0..20u16 {
        let before = space.steps();
        let result = space.copy(deep, (KERNEL, 119), (deep, i));
        worst = worst.max(space.steps() - before);
        if result.is_err() {
            break;
        }
    }
    assert!(worst <= MAKE_STEPS.into(), "{worst}");
    for i in 0..60u16 {
        let before = space.steps();
        let cut = space.cut_memory(KERNEL, 300, 400 + i, 16, 16);
        cut.unwrap();
        assert!(space.steps() - before <= CUT_STEPS.into());
    }
    space.check().unwrap();
}
