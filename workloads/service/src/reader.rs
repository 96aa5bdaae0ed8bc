//! Reads what the description gives: a module, and files under several mounts.
//!
//! Gates: `map` (memory, optional). Arguments: `mounts` as in `lib::mounts`, `file`: the file to read, `write`: a file to
//! make.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::string::String;
use alloc::vec;
use bulkhead_lib::file::{CREATE, READ, Result, TRUNCATE, WRITE};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::mounts::Mounts;
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    if let Some(map) = MemoryGate::find("map") {
        let mut text = vec![0; map.size() as usize];
        match map.read(0, &mut text) {
            Ok(()) => {
                let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
                println!("map: {}", String::from_utf8_lossy(&text[..end]).trim_end());
            }
            Err(error) => println!("map: {error:?}"),
        }
        // It belongs to several applications; nobody may change it.
        println!("writing the map: {:?}", map.write(0, b"mine").err());
    }
    match files() {
        Ok(()) => 0,
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn files() -> Result<()> {
    let mut mounts = Mounts::from_environment()?;
    if let Some(path) = argument::text("write") {
        let mut file = mounts.open(path, WRITE | CREATE | TRUNCATE)?;
        file.write(b"written here")?;
        file.close()?;
    }
    if let Some(paths) = argument::text("file") {
        for path in paths.split_whitespace() {
            let mut file = mounts.open(path, READ)?;
            let mut text = vec![0; file.size() as usize];
            let length = file.read(&mut text)?;
            file.close()?;
            println!(
                "{path}: {}",
                String::from_utf8_lossy(&text[..length]).trim_end()
            );
        }
    }
    Ok(())
}
