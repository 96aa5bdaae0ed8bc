//! Construction in steps: no more important caller waits for the whole, and an interrupted construction leaves nothing
//! behind.

use super::*;
use crate::costs as bounds;

/// What is left of everything, and the endpoints of the chip.
pub(super) type Left = (Vec<Vec<u64>>, BTreeMap<(u16, u16), Endpoint>);

pub(super) fn left(system: &mut System, chip: &mut Chip) -> Left {
    let selectors = [
        SEL_TILES + 1,
        SEL_TILES + 2,
        SEL_MEMORIES + MEMORY,
        SEL_KERNEL_MEMORY,
    ];
    let left = selectors.map(|selector| {
        let query = Syscall::Query { selector };
        call(system, chip, 1, query).unwrap()
    });
    (left.to_vec(), chip.endpoints.clone())
}

fn cut(source: u16, target: u16, size: u64) -> Syscall {
    Syscall::CutMemory {
        source,
        target,
        size,
    }
}

const CONFIGURE: Syscall = Syscall::ConfigureTile {
    tile: SEL_TILES + 2,
    memory: 99,
    tables: 10,
};

/// One step of any kind; returns false if there is nothing to do.
fn step(system: &mut System, chip: &mut Chip) -> bool {
    if let Some((number, answer)) = chip.answer() {
        system.tile_answered(chip, number, answer);
        return true;
    }
    let level = (0..3).rev().find(|level| system.has_step(*level));
    let Some(level) = level else { return false };
    chip.effects = 0;
    let before = system.space().steps();
    system.step(chip, level);
    let nodes = system.space().steps() - before;
    assert!(nodes <= bounds::MAKING.nodes.into(), "{nodes} nodes");
    assert!(chip.effects <= bounds::MAKING.effects);
    true
}

#[test]
fn somebody_more_important_is_served_between_any_two_steps_of_a_creation() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    for request in [
        cut(99, 201, 1 << 16),
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 202,
            bytes: 4096,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let mut low = ticket(&system, 1);
    low.level = 0;
    let outcome = system.call(&mut chip, low, creation(200, SEL_TILES + 2, 0));
    assert!(matches!(outcome, Ok(None)));
    let mut steps = 0;
    while step(&mut system, &mut chip) {
        steps += 1;
        let high = ticket(&system, 1);
        let served = system.call(&mut chip, high, Syscall::Nothing {});
        assert!(matches!(served, Ok(Some(_))));
        check(&mut system);
    }
    assert!(steps > 8, "{steps}");
    let (_, reply) = system.take_reply().unwrap();
    assert_eq!(words(&reply).map(|words| words.len()), Ok(4));
}

/// The memory, the purse or the tile of an object under construction is revoked after every number of steps.
#[test]
fn what_is_cut_short_leaves_nothing() {
    let (mut cut_short, mut most) = (0, 0);
    for revoked in [99, 201, 202, 203] {
        for after in 0..40 {
            let (mut system, mut chip) = boot();
            let share = limited(203, 1_000_000, 4096);
            let before = left(&mut system, &mut chip);
            let mut asked = vec![cut(SEL_MEMORIES + MEMORY, 99, 1 << 20), share];
            asked.push(CONFIGURE);
            asked.push(cut(99, 201, 1 << 16));
            asked.push(Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target: 202,
                bytes: 4096,
            });
            asked.push(creation(200, 203, 0));
            let (mut steps, mut done) = (0, false);
            for request in asked {
                // Another level than that of the revoking caller.
                let mut caller = ticket(&system, 1);
                caller.level = 1;
                if system.call(&mut chip, caller, request).is_err() {
                    break;
                }
                while !done && step(&mut system, &mut chip) {
                    steps += 1;
                    done = steps == after;
                }
                if done {
                    break;
                }
                while system.take_reply().is_some() {}
            }
            most = most.max(steps);
            cut_short += u32::from(done);
            for selector in [revoked, 203, 202, 201, 99] {
                let gone = Syscall::Revoke { selector, keep: 0 };
                let _ = later(&mut system, &mut chip, 1, gone);
                check(&mut system);
            }
            while step(&mut system, &mut chip) {}
            while system.take_reply().is_some() {}
            while system.reported().is_some() {}
            assert!(!system.has_jobs() && !system.is_asking());
            chip.buckets.clear();
            hear_all(&mut system, &mut chip, 1);
            assert_eq!(
                left(&mut system, &mut chip),
                before,
                "{revoked} after {after}"
            );
            if after % 10 == 9 {
                // The tile can be used again.
                let again = cut(SEL_MEMORIES + MEMORY, 99, 1 << 20);
                call(&mut system, &mut chip, 1, again).unwrap();
                call(&mut system, &mut chip, 1, CONFIGURE).unwrap();
            }
        }
    }
    println!("{cut_short} cut short, of {most} steps");
    assert!(cut_short > 60);
}

/// An activity has eight capabilities when there is no place for its page tables; removing all at once would make others
/// wait.
#[test]
fn what_cannot_be_made_goes_in_small_steps() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    for request in [
        cut(99, 201, 1 << 16),
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 202,
            bytes: 4096,
        },
        Syscall::DeriveTile {
            source: SEL_TILES + 2,
            target: 203,
            endpoints: SHARE,
            budget: SHARE,
            period: 0,
            rate: SHARE,
            burst: SHARE,
            tables: 1,
            priority: 0,
            idle: 1,
            activities: SHARE,
            windows: SHARE,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let before = left(&mut system, &mut chip);
    let entered = system.numbers_in_use().count();
    let caller = ticket(&system, 1);
    let outcome = system.call(&mut chip, caller, creation(200, 203, 0));
    assert!(matches!(outcome, Ok(None)));
    let (mut was_there, mut steps) = (false, 0);
    while system.reply_level().is_none() {
        let nodes = system.space().steps();
        assert!(step(&mut system, &mut chip));
        let nodes = system.space().steps() - nodes;
        let is_there = system.numbers_in_use().count() > entered;
        if was_there && !is_there {
            steps += 1;
            assert!(nodes <= bounds::REVOCATION.nodes.into(), "{nodes} nodes");
        }
        was_there |= is_there;
    }
    // One visit and one removal for each of four copies and the activity.
    assert!(steps >= 10, "{steps} steps");
    let (_, reply) = system.take_reply().unwrap();
    assert_eq!(words(&reply), Err(SyscallError::NoQuota));
    assert_eq!(left(&mut system, &mut chip), before);
}
