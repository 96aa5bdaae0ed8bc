//! Fills a file service: files, folders and blocks, open files and pieces of them, with tricky names, for ever.
//!
//! Gates: `files` (send). Arguments: `seed` (1), `private` (`no`): avoids names that begin with `honest`, so it can only disturb by what it
//! takes. It prints its progress every 400 operations.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_lib::file::{CREATE, Mount, READ, Result, TRUNCATE, WRITE};
use bulkhead_lib::{argument, println};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

/// Parts of paths: tricky ones for every reader, and the name of another client's file.
const PARTS: [&str; 12] = [
    "honest",
    "..",
    ".",
    "",
    "a",
    "b.",
    ".c",
    "é",
    "\u{202e}d",
    "\n",
    "x\u{301}",
    "0123456789012345678901234567890123456789012345678901234",
];
/// Sessions that are kept open.
const MOUNTS: usize = 6;
/// How a file may be opened; the last value is invalid.
const FLAGS: [u64; 4] = [READ, WRITE | CREATE, WRITE | CREATE | TRUNCATE, 255];

fn path(random: &mut Random) -> String {
    let mut path = String::new();
    for part in 0..1 + random.below(7) {
        if part > 0 {
            path.push('/');
        }
        path.push_str(PARTS[random.below(PARTS.len() as u64) as usize]);
    }
    path
}

/// Opens, writes, and forgets to close two of three.
fn fill(mount: &mut Mount, path: &str, flags: u64, forget: bool) -> Result<()> {
    let mut file = mount.open(path, flags)?;
    let written = file.write(&[9; 3000]);
    if forget {
        core::mem::forget(file);
    }
    written
}

fn main() -> u64 {
    let mut random = Random::new(argument::value("seed", 1));
    let is_private = argument::text("private") == Some("yes");
    let mut mounts: Vec<Mount> = Vec::new();
    let (mut done, mut refused) = (0u64, 0u64);
    loop {
        if mounts.len() < MOUNTS
            && let Ok(mount) = Mount::connect("files")
        {
            mounts.push(mount);
        }
        let path = path(&mut random);
        if mounts.is_empty() || is_private && path.contains("honest") {
            continue;
        }
        let at = random.below(mounts.len() as u64) as usize;
        let mount = &mut mounts[at];
        let outcome = match random.below(6) {
            0 => mount.make_folder(&path),
            1 => mount.remove(&path),
            2 | 3 => fill(
                mount,
                &path,
                FLAGS[random.below(4) as usize],
                random.below(3) > 0,
            ),
            4 => mount.list(&path, |_| ()),
            _ => {
                if random.below(4) == 0 {
                    mounts.swap_remove(at);
                }
                Ok(())
            }
        };
        match outcome {
            Ok(()) => done += 1,
            Err(_) => refused += 1,
        }
        if (done + refused) % 400 == 0 {
            println!("{done} done, {refused} refused");
        }
    }
}
