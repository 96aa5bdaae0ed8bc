//! A request is checked before it changes anything: after a refusal everything is as before, wherever the refusal happened.
//!
//! Every step of a random story is first tried with each access to the store failing once (with nothing, a part, or nearly all of a write
//! stored), with pieces that cannot be lent or taken back, and with hardly any blocks and inodes left for its client.

use crate::layout::{BITS, LOG_BLOCKS};
use crate::tests::{Memory, fresh};
use crate::tests_serve::{Access, owner};
use crate::tests_steps::{OWNERS, Step, padded, step};
use crate::*;
use bulkhead_common::file::{self, Piece};
use bulkhead_common::shares::Shares;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

type Service = Files<Memory, Access>;

/// The whole state: everything in memory, and all blocks in use. The contents of free blocks and the log of finished operations are left
/// out, because nobody sees them.
fn digest(files: &Service) -> (String, Vec<u8>) {
    let mut files = files.clone();
    files.forget_hints();
    files.access().forget_numbers();
    let layout = files.system.layout;
    let mut bytes = files.system.store.inner().take();
    let block = |number: u32| number as usize * BLOCK..(number as usize + 1) * BLOCK;
    for number in 1..layout.blocks {
        let (byte, bit) = (number % BITS / 8, number % 8);
        let map = block(layout.bitmap + number / BITS);
        let is_free = bytes[map][byte as usize] >> bit & 1 == 0;
        if is_free || number <= 1 + LOG_BLOCKS as u32 {
            bytes[block(number)].fill(0);
        }
    }
    (std::format!("{files:?}"), bytes)
}

fn same(before: &(String, Vec<u8>), after: &(String, Vec<u8>)) -> core::result::Result<(), String> {
    if before.0 != after.0 {
        return Err(std::format!("\n{}\n{}", before.0, after.0));
    }
    let differs = |(a, b): (&u8, &u8)| a != b;
    match before.1.iter().zip(&after.1).position(differs) {
        Some(at) => Err(std::format!("byte {} of block {}", at % BLOCK, at / BLOCK)),
        None => Ok(()),
    }
}

/// A postponed request has changed nothing, like a refused one.
fn once<T>(outcome: core::result::Result<T, Refusal>) -> Result<()> {
    match outcome {
        Ok(_) => Ok(()),
        Err(Refusal::Status(status)) => Err(status),
        Err(Refusal::Later(_)) => Err(Status::Busy),
    }
}

/// Does a step. `None`: it is not a request.
fn perform(files: &mut Service, step: &Step) -> Option<Result<()>> {
    let who = |index: usize| owner(OWNERS[index].0, OWNERS[index].1);
    Some(match step {
        Step::Begin(_) | Step::End(_) | Step::Clean | Step::Stuck(_) | Step::Power(_) => {
            return None;
        }
        Step::Open(index, bytes, flags) => {
            let path = padded(bytes)?;
            let flags = *flags;
            once(files.open(who(*index), &file::Open { flags, path }))
        }
        Step::Close(index, handle) => files.close(who(*index), *handle).map(drop),
        Step::Stat(bytes) => files
            .stat(&file::Stat {
                path: padded(bytes)?,
            })
            .map(drop),
        Step::List(bytes, position) => {
            let (path, position) = (padded(bytes)?, *position);
            files.list(&file::List { position, path }).map(drop)
        }
        Step::MakeFolder(bytes) => {
            let path = padded(bytes)?;
            once(files.make_folder(who(bytes.len() % OWNERS.len()), &file::MakeFolder { path }))
        }
        Step::Remove(bytes) => {
            let path = padded(bytes)?;
            once(files.remove(&file::Remove { path }))
        }
        Step::Commit(index, handle, size) => {
            let (handle, size) = (*handle, *size);
            files
                .commit(who(*index), &file::Commit { handle, size })
                .map(drop)
        }
        Step::Read(index, handle, offset, length) => {
            let (handle, offset, length) = (*handle, *offset, *length);
            let request = file::Read {
                handle,
                offset,
                length,
            };
            files.read(who(*index), &request).map(drop)
        }
        Step::Write(index, handle, offset, length, byte) => {
            let (handle, offset) = (*handle, *offset);
            // A write that crosses into the next block is several operations.
            let within = BLOCK as u64 - offset % BLOCK as u64;
            let length = (*length).min(within).min(200) as usize;
            let piece = Piece::new(&std::vec![*byte; length]);
            let request = file::Write {
                handle,
                offset,
                piece,
            };
            once(files.write(who(*index), &request))
        }
        Step::Grant(activity, handle, offset, write, _) => {
            files.grant(*activity, *handle, *offset, *write).map(drop)
        }
    })
}

/// Steps that are several operations, each of which happens wholly or not at all: growing and then writing; taking back pieces one by one;
/// making a file and opening it; trimming what could not be trimmed before.
fn is_one(step: &Step) -> bool {
    matches!(
        step,
        Step::MakeFolder(_)
            | Step::Remove(_)
            | Step::Commit(..)
            | Step::Read(..)
            | Step::Stat(_)
            | Step::List(..)
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 24 } else { 64 }))]

    #[test]
    fn what_is_refused_changes_nothing(
        steps in prop::collection::vec(step(), 1..40),
        few in (0usize..12, 0usize..6),
    ) {
        let mut system = fresh();
        system.limit(Shares::new(few.0, few.0 * 2), Shares::new(few.1, few.1)).expect("room");
        let mut files = Files::new(system, Access::default(), Shares::new(1, 3), Shares::new(1, 3));
        (0..6).for_each(|activity| files.begin(activity));
        for step in &steps {
            let before = digest(&files);
            // As it is first, then with failures outside.
            for (refuses, stuck) in [(false, false), (true, false), (false, true)] {
                let mut trial = files.clone();
                trial.access().refuses = refuses;
                trial.access().is_stuck |= stuck;
                let outcome = perform(&mut trial, step);
                trial.access().refuses = false;
                trial.access().is_stuck = files.access().is_stuck;
                if let (Some(Err(status)), true) = (outcome, is_one(step) || !stuck) {
                    let is = same(&before, &digest(&trial));
                    // A long step that ended early has done a part, and only that part.
                    let partly = matches!(step, Step::Grant(..) | Step::Write(..) | Step::Open(..));
                    prop_assert!(is.is_ok() || partly && status != Status::BadRequest, "{step:?}: {status}: {is:?}");
                }
            }
            for written in [0, 100, usize::MAX] {
                for access in 0.. {
                    let mut trial = files.clone();
                    trial.system.store.inner().fail_once(access, written);
                    let outcome = perform(&mut trial, step);
                    let has_failed = trial.system.store.inner().has_failed();
                    if !has_failed || outcome.is_none() {
                        break;
                    }
                    // It is in doubt at most until the next request; by then it has happened or has not.
                    let _ = trial.stat(&file::Stat { path: padded(b"").expect("short") });
                    trial.system.check().expect("consistent");
                    let counted = trial.system.count_anew();
                    prop_assert!(counted, "{step:?}: accounts are wrong after access {access} failed");
                    if matches!(outcome, Some(Err(_))) && is_one(step) {
                        let after = digest(&trial);
                        let mut done = files.clone();
                        let _ = perform(&mut done, step);
                        let is = same(&before, &after).or_else(|why| same(&digest(&done), &after).map_err(|_| why));
                        prop_assert!(is.is_ok(), "{step:?}, access {access}: {is:?}");
                    }
                }
            }
            match step {
                Step::Begin(activity) => files.begin(*activity),
                Step::End(activity) => files.end(*activity),
                Step::Clean => drop(files.clean(None)),
                Step::Stuck(is_stuck) => files.access().is_stuck = *is_stuck,
                _ => drop(perform(&mut files, step)),
            }
            files.system.check().expect("consistent");
            prop_assert!(files.system.count_anew(), "{step:?}: accounts are wrong");
        }
    }
}
