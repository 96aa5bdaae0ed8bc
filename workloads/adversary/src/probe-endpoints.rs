//! Tries every command on every endpoint of its tile and checks that all except those on its own are refused.
//!
//! Exit code: 0 if all others were refused, else 1.
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::DtuError;
use bulkhead_lib::gate::Aligned;
use bulkhead_lib::hal::dtu;
use bulkhead_lib::{environment, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut data = Aligned([0u8; 64]);
    let own = environment();
    let mine = [own.syscall_send, own.syscall_reply, own.call_reply];
    let mut allowed = 0;
    for endpoint in (0..256).chain([0x7FFF, 0xFFFE]) {
        let results = [
            dtu::send(endpoint, &data.0, endpoint, 0),
            dtu::send(endpoint, &data.0, 0xFFFF, 0),
            dtu::reply(endpoint, 0, &data.0),
            dtu::read_memory(endpoint, 0, &mut data.0),
            dtu::write_memory(endpoint, 0, &data.0),
            dtu::fetch(endpoint).map(|_| ()),
            dtu::acknowledge(endpoint, 0),
        ];
        let refused = |r: &Result<(), DtuError>| {
            matches!(
                r,
                Err(DtuError::InvalidEndpoint | DtuError::ForeignEndpoint)
            )
        };
        if !mine.contains(&endpoint) && !results.iter().all(refused) {
            println!("endpoint {endpoint}: {results:?}");
            allowed += 1;
        }
    }
    println!("{allowed} endpoints of others could be used");
    u64::from(allowed != 0)
}
