//! A client of the file service: makes folders and files, writes, reads back, lists, removes.
//!
//! Gates: `files` (send). Arguments: `folder`, its own name there; `bytes` of a file (5000); `rounds` (3), `session`
//! (`yes`: transfers carry the bytes, not messages).
#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::file::{CREATE, Mount, READ, Result, TRUNCATE, WRITE};
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let folder = argument::text("folder").unwrap_or("client");
    match work(folder) {
        Ok(bytes) => {
            println!("{bytes} bytes compared");
            0
        }
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn work(folder: &str) -> Result<usize> {
    let size: usize = argument::value("bytes", 5000);
    let rounds: u8 = argument::value("rounds", 3);
    let mut mount = match argument::text("session") {
        Some("yes") => Mount::connect("files")?,
        _ => Mount::by_messages("files")?,
    };
    mount.make_folder(folder)?;
    let mut compared = 0;
    for round in 0..rounds {
        let data: Vec<u8> = (0..size)
            .map(|i| (i as u8).wrapping_mul(31) ^ round)
            .collect();
        let path = format!("{folder}/file-{round}");
        let mut file = mount.open(&path, WRITE | CREATE | TRUNCATE)?;
        file.write(&data)?;
        file.close()?;
        let mut file = mount.open(&path, READ)?;
        let mut back = vec![0; size + 1];
        let length = file.read(&mut back)?;
        file.close()?;
        if back[..length] != data[..] {
            return Err(Status::Corrupt);
        }
        compared += length;
    }
    let mut names = Vec::new();
    mount.list(folder, |entry| names.push((entry.name, entry.info.size)))?;
    for (index, (name, length)) in names.iter().enumerate() {
        if *name != format!("file-{index}") || *length != size as u64 {
            return Err(Status::Corrupt);
        }
    }
    if names.len() != rounds.into() || mount.remove(folder) != Err(Status::NotEmpty) {
        return Err(Status::Corrupt);
    }
    for round in 0..rounds {
        mount.remove(&format!("{folder}/file-{round}"))?;
    }
    mount.remove(folder)?;
    if mount.stat(folder) != Err(Status::NotFound) {
        return Err(Status::Corrupt);
    }
    Ok(compared)
}
