//! A client that keeps what a service lent: it uses session, page and names after each way in which they can end, and prints the
//! outcome.
//!
//! Sessions: `service`, to `service/lender`. Arguments: `rounds` (3). Ends with 1 if it got anything that is not its own any more.
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_SESSIONS, Syscall, SyscallError};
use bulkhead_lib::client::Client;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::{argument, println, session, syscall, time};
use protocol::{DIES, Lend, SECRET, SHARED, TAKES, WITHDRAWS};

bulkhead_lib::main!(main);

/// Nanoseconds that the service may take to come back.
const PATIENCE: u64 = 20_000_000;

/// Selectors of a session, a page, and further requests.
const SESSION: u16 = SEL_FREE + 100;
const PAGE: u16 = SEL_FREE + 101;
const MORE: u16 = SEL_FREE + 102;

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Taken,
    Deactivated,
    Closed,
    Reused,
    Withdrawn,
    WithdrawnMeanwhile,
    Dead,
    DeadMeanwhile,
}

const ENDS: [End; 8] = [
    End::Taken,
    End::Deactivated,
    End::Closed,
    End::Reused,
    End::Withdrawn,
    End::WithdrawnMeanwhile,
    End::Dead,
    End::DeadMeanwhile,
];

/// A session and what came with it.
struct Kept {
    session: u16,
    page: u16,
    gate: MemoryGate,
}

fn exchange(session: u16, own: u16, how: u64) -> Result<u64, SyscallError> {
    let results = syscall::call(&Syscall::Exchange {
        session,
        delegate: 0,
        own,
        count: 1,
        argument0: how,
        argument1: 0,
        argument2: 0,
    })?;
    Ok(results[2])
}

/// Opens a session as soon as the service is available.
fn open(service: u16) -> Result<u16, Status> {
    let target = SESSION;
    let end = time::now() + PATIENCE;
    loop {
        let request = Syscall::OpenSession {
            service,
            target,
            argument: 0,
        };
        match syscall::call(&request) {
            Ok(_) => return Ok(target),
            Err(error) if time::now() > end => return Err(session::refused(error)),
            Err(_) => time::sleep_until(time::now() + 50_000),
        }
    }
}

fn begin(service: u16) -> Result<Kept, Status> {
    let session = open(service)?;
    let page = PAGE;
    exchange(session, page, TAKES).map_err(session::refused)?;
    let (endpoint, size) = syscall::activate(page).map_err(session::refused)?;
    let gate = MemoryGate::new(endpoint, size);
    match look(&gate) {
        Some(SHARED) => Ok(Kept {
            session,
            page,
            gate,
        }),
        _ => Err(Status::BadReply),
    }
}

/// The first word behind a gate, if it is still readable.
fn look(gate: &MemoryGate) -> Option<u64> {
    let mut word = [0; 8];
    let read = gate.read(0, &mut word);
    read.ok().map(|()| u64::from_le_bytes(word))
}

/// Ends it; answers and refusals of the service on the way do not matter.
fn finish(end: End, kept: &Kept) -> Result<(), Status> {
    let told = |end| {
        let _ = Client::named("service").call(&Lend { end });
    };
    match end {
        End::Taken => told(TAKES),
        End::Deactivated => {
            syscall::complete(&Syscall::Deactivate {
                gate: kept.page,
                endpoint: kept.gate.endpoint(),
            })
            .map_err(session::refused)?;
        }
        End::Closed | End::Reused => session::revoke(kept.session)?,
        End::Withdrawn => told(WITHDRAWS),
        End::Dead => told(DIES),
        End::WithdrawnMeanwhile | End::DeadMeanwhile => {
            let how = [WITHDRAWS, DIES][usize::from(end == End::DeadMeanwhile)];
            let own = MORE;
            if exchange(kept.session, own, how).is_ok() || syscall::activate(own).is_ok() {
                println!("won: what ended meanwhile was given");
                return Err(Status::BadReply);
            }
        }
    }
    if end == End::Reused {
        let request = Syscall::CreateSemaphore {
            target: kept.session,
            value: 1,
        };
        syscall::complete(&request).map_err(session::refused)?;
    }
    Ok(())
}

/// Uses everything that it had; returns the number of refusals, if every use was refused.
fn use_all(end: End, kept: &Kept) -> Result<u64, Status> {
    let mut refused = 0;
    // A client that closes is not told when the other side takes the page back; until then the page is what was lent.
    let begun = time::now();
    while matches!(end, End::Closed | End::Reused) && look(&kept.gate).is_some() {
        if look(&kept.gate) == Some(SECRET) || time::now() > begun + PATIENCE {
            println!("won: {end:?}: read on");
            return Err(Status::BadReply);
        }
    }
    for round in 0..20u64 {
        let mut uses = [
            look(&kept.gate).is_some(),
            kept.gate.write(8 * round, &[7; 8]).is_ok(),
            false,
            false,
        ];
        // With an endpoint given back, session and page are as before.
        if end != End::Deactivated {
            uses[2] = syscall::activate(kept.page).is_ok();
        }
        if !matches!(end, End::Deactivated | End::Taken) {
            let own = MORE;
            uses[3] = exchange(kept.session, own, TAKES).is_ok();
        }
        if uses != [false; 4] {
            println!("won: {end:?}: {uses:?}");
            return Err(Status::BadReply);
        }
        refused += 1;
        // Others get what was given back.
        time::sleep_until(time::now() + 20_000);
    }
    Ok(refused)
}

fn round(service: u16, end: End) -> Result<u64, Status> {
    let kept = begin(service)?;
    finish(end, &kept)?;
    let refused = use_all(end, &kept)?;
    session::revoke(kept.page)?;
    session::revoke(kept.session)?;
    if matches!(end, End::Withdrawn | End::WithdrawnMeanwhile) {
        // The service offers itself again after its restart.
        let _ = Client::named("service").call(&Lend { end: DIES });
    }
    Ok(refused)
}

fn main() -> u64 {
    let rounds: u64 = argument::value("rounds", 3);
    // That of its only gate.
    let service = SEL_SESSIONS;
    let (mut ends, mut refused) = (0, 0);
    for _ in 0..rounds {
        for end in ENDS {
            match round(service, end) {
                Ok(uses) => refused += uses,
                Err(status) => {
                    println!("{end:?}: {status}");
                    return 1;
                }
            }
            ends += 1;
        }
    }
    println!("{ends} ends, {refused} rounds of uses refused");
    0
}
