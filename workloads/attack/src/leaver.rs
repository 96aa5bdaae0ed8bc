//! Opens as many files of a file service as it may, with as many pieces of each as it may, and gives all of them up at once by ending its
//! session; again and again.
//!
//! Sessions: `files`. Arguments: `name`: prefix of its files (`l`). It prints how often it left, and the total numbers of open files and of
//! pieces.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_SESSIONS, Syscall};
use bulkhead_lib::client::Client;
use bulkhead_lib::common::file::{CREATE, Open, READ, WRITE, path};
use bulkhead_lib::{argument, println, syscall};

bulkhead_lib::main!(main);

/// Selectors of its session and pieces.
const SESSION: u16 = SEL_FREE + 100;
const PIECES: u16 = SEL_FREE + 101;
/// The most that a client can have.
const FILES: u16 = 16;
const OF_A_FILE: u16 = 4;

fn main() -> u64 {
    let name = argument::text("name").unwrap_or("l");
    let mut client = Client::named("files");
    let (mut rounds, mut files, mut pieces) = (0u64, 0u64, 0u64);
    loop {
        let open = Syscall::OpenSession {
            // That of its first gate.
            service: SEL_SESSIONS,
            target: SESSION,
            argument: 0,
        };
        if syscall::call(&open).is_err() {
            continue;
        }
        for number in 0..FILES {
            let Ok(path) = path(&format!("{name}{number}")) else {
                continue;
            };
            let flags = READ | WRITE | CREATE;
            let Ok(opened) = client.call(&Open { flags, path }) else {
                break;
            };
            files += 1;
            for piece in 0..OF_A_FILE {
                let obtained = syscall::call(&Syscall::Exchange {
                    session: SESSION,
                    delegate: 0,
                    own: PIECES + number * OF_A_FILE + piece,
                    count: 1,
                    argument0: opened.handle,
                    argument1: 0,
                    argument2: 1,
                });
                pieces += u64::from(obtained.is_ok());
            }
        }
        for selector in SESSION..PIECES + FILES * OF_A_FILE {
            // Most of them went with the session.
            let _ = syscall::call(&Syscall::Revoke { selector, keep: 0 });
        }
        rounds += 1;
        if rounds % 10 == 0 {
            println!("{rounds} rounds, {files} files, {pieces} pieces");
        }
    }
}
