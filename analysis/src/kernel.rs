//! How long a caller of the kernel waits for others: at the kernel, and for its turn on a tile with time slices.
//!
//! Why it exists: a system call is a message to a server shared by all. What it deliberately does not know: how long the caller's own calls
//! take, and the way there and back ([`crate::communication`]).
//!
//! # Method and assumptions
//! The kernel serves the highest priority first and does one uninterruptible piece of work at a time: a call, or a step of a revocation. So
//! a call waits for one lower-priority piece that was already begun (non-preemptive blocking, as in
//! [`crate::schedulability::fixed_priority`]), and while the caller has work at the kernel, no lower priority is served. No piece takes
//! longer than [`piece`] says for its kind: its steps are counted and bounded (`bulkhead_kernel::bounds`), its cycles are twice a measured
//! value that a test holds the kernel to (`tests/system`, `calls`), with cold caches and beside storms of calls. The caller's own pieces
//! are assumed to be equally long, because others' pieces may have emptied the kernel's caches. Resource managers are assumed to be idle.

use crate::admission::{INTERRUPT_CYCLES, call, requests, switch};
use crate::communication::{Chip, ChipError};
use crate::tiled_kernel::unbounded;
use bulkhead_abi::syscall::Number;
use bulkhead_abi::tilemux::REQUEST_REST;
use bulkhead_model::System;
use bulkhead_model::system::TilePolicy;

/// Maximum cycles of the kernel's hart that a caller waits for others: one piece of work that had begun, and one message of a tile or a
/// server that is handled before the call, each twice the longest measured (7093 and 3738). This is also assumed for a piece of unknown
/// length.
pub const PIECE_CYCLES: u64 = 24_000;

/// Maximum cycles of a piece of this kind: twice the longest measured beside storms on `tiled-gem5` (the tiled OS's reference, section
/// "What a call costs at most"), or [`PIECE_CYCLES`] if none was measured. `what`: the value of the kernel's marker: the number of a call,
/// or from 64 on a step of a job, the answer of a server, the answer of a TileMux, and its notification.
pub fn piece(what: u64) -> u64 {
    match what {
        65 => return 20_000,
        66 => return 3000,
        67 => return 7000,
        _ => {}
    }
    let Some(call) = Number::from_code(what) else {
        return PIECE_CYCLES;
    };
    match call {
        Number::Nothing => 2000,
        Number::Stop | Number::Usage => 3000,
        Number::SetPager | Number::Deactivate | Number::CreateSemaphore | Number::SemaphoreUp => {
            4000
        }
        Number::Map | Number::Start | Number::CreateReceive | Number::Revoke => 5000,
        Number::DeriveKernelMemory | Number::DeriveMemory | Number::Exchange => 6000,
        Number::CutMemory | Number::CreateSend | Number::Delegate => 7000,
        Number::WaitEvent | Number::Obtain | Number::Query => 8000,
        Number::CreateService | Number::Report => 10_000,
        Number::ConfigureTile => 11_000,
        Number::OpenModule => 12_000,
        Number::OpenSession => 16_000,
        Number::Activate => 18_000,
        Number::CreateActivity => 21_000,
        Number::DeriveTile => 22_000,
        _ => PIECE_CYCLES,
    }
}

/// The kernel's priority of callers in a domain of this criticality (the tiled OS's reference, section "Bounds").
pub const fn priority(criticality: char) -> u8 {
    match criticality {
        'A' => 2,
        'B' => 1,
        _ => 0,
    }
}

/// Maximum nanoseconds that `calls` of an application take at the kernel, including waits for others. `work`: cycles of all pieces of these
/// calls ([`piece`]).
///
/// # Errors
/// Why there is no bound.
pub fn calls(system: &System, app: usize, calls: u64, work: u64) -> Result<u64, String> {
    let level = |app: usize| {
        let domain = system.apps.get(app).map_or(0, |app| app.domain);
        priority(system.domains.get(domain).map_or('E', |d| d.criticality))
    };
    let own = level(app);
    let mut others = (0..system.apps.len()).filter(|other| *other != app);
    if let Some(rival) = others.find(|other| level(*other) >= own) {
        return Err(format!(
            "`{}` calls the kernel in the same priority or a higher one, and its revocations may be of any size",
            system.apps[rival].name
        ));
    }
    let tiles = system.apps.get(app).map(|app| app.tile);
    let mut tiles = tiles.into_iter().chain([system.kernel_tile]);
    if let Some(why) = tiles.find_map(|tile| unbounded(&system.platform, tile)) {
        return Err(why);
    }
    let tile = system.platform.tile(system.kernel_tile);
    let tile = tile.ok_or("the kernel has no tile")?;
    let hertz = u128::from(tile.pipeline.clock.frequency.0.max(1));
    let blocked = if system.apps.len() > 1 { calls } else { 0 };
    let cycles = u128::from(work) + u128::from(PIECE_CYCLES) * u128::from(blocked);
    u64::try_from((cycles * 1_000_000_000).div_ceil(hertz)).map_err(|error| error.to_string())
}

/// The cost to an application of each time that it was off its tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Nanoseconds until it runs, and for interrupts while it runs.
    pub wait: u64,
    /// Cache lines that others may have evicted, and that they may still be writing back.
    pub lines: u64,
    /// Nanoseconds to read them again without waits for others.
    pub reload: u64,
}

/// A turn of the others on a tile with time slices: each of them runs for a slice, with a switch before, and may end it with a call to
/// TileMux, which ends no call early; and each may get one answer of the kernel while the application runs, which interrupts it. Requests of
/// the kernel to TileMux are not part of it: see [`beside_requests`].
///
/// # Errors
/// Why there is no bound.
pub fn turn(system: &System, app: usize) -> Result<Turn, String> {
    let own = system.apps.get(app).ok_or("there is no such application")?;
    let here = system.apps.iter().enumerate();
    let others: Vec<_> = here
        .filter(|(index, other)| *index != app && other.tile == own.tile)
        .collect();
    if others.is_empty() {
        return Ok(Turn::default());
    }
    if let Some((_, other)) = others.iter().find(|(_, o)| !o.rgates.is_empty()) {
        return Err(format!(
            "`{}` gets messages on the same tile, each of which interrupts",
            other.name
        ));
    }
    if others.iter().any(|(_, other)| other.limit.is_some()) {
        return Err("a neighbour's load may wait for that neighbour's token bucket".to_owned());
    }
    let mux = system.tilemux.iter().find(|mux| mux.tile == own.tile);
    let mux = mux.filter(|mux| mux.policy == TilePolicy::Throughput);
    let mux = mux.ok_or("the tile has fixed priorities, and its quotas decide")?;
    let chip = Chip::new(&system.platform);
    let tile = chip
        .tile(own.tile)
        .map_err(|error: ChipError| error.to_string())?;
    let switch = switch(system, &chip, own.tile).map_err(|error| error.to_string())?;
    let hertz = tile.pipeline.clock.frequency.0.max(1);
    let interrupt = (INTERRUPT_CYCLES * 1_000_000_000).div_ceil(hertz);
    let count = others.len() as u64;
    let slice = mux.slice.0.div_ceil(1000);
    let call = call(system, &chip, own.tile).map_err(|error| error.to_string())?;
    // A slice ends with an interrupt, and at the end comes the switch back.
    let each = slice + call + switch + 2 * interrupt;
    let caches = [&tile.l1i, &tile.l1d, &tile.l2].into_iter().flatten();
    let lines: u64 = caches
        .map(|cache| cache.size.0 / u64::from(cache.line).max(1))
        .sum();
    let misses = [&tile.l1i, &tile.l1d, &tile.l2].into_iter().flatten();
    let lines = lines + misses.map(|cache| 2 * u64::from(cache.mshrs)).sum::<u64>();
    let read = chip.line_read(own.tile, own.memory_tile);
    let read = read.map_err(|error| error.to_string())?.uncontended();
    let second = tile.l2.as_ref().map_or(0, |l2| u64::from(l2.latency));
    let one = read + u128::from(second * chip.cycle(hertz));
    let reload = u128::from(lines) * one * 1_000_000_000 / u128::from(chip.ticks_per_second()) + 1;
    Ok(Turn {
        wait: count * each + switch,
        lines,
        reload: u64::try_from(reload).unwrap_or(u64::MAX),
    })
}

/// Nanoseconds that work of an application takes at most on a tile with time slices, if it takes `nanoseconds` without requests of the
/// kernel to TileMux. Any other application may cause these: by starting, stopping and waking activities, and by mapping pages. After each,
/// TileMux leaves the hart [`REQUEST_REST`] times its duration to the activities. So in a time *t* they take at most one request and the
/// share 1 / (1 + [`REQUEST_REST`]) of *t*.
///
/// # Errors
/// Why there is no bound.
pub fn beside_requests(system: &System, app: usize, nanoseconds: u64) -> Result<u64, String> {
    let own = system.apps.get(app).ok_or("there is no such application")?;
    if system.apps.len() == 1 {
        return Ok(nanoseconds);
    }
    let request = requests(system, &Chip::new(&system.platform), own.tile);
    let request = request.map_err(|error| error.to_string())?.cost;
    let all = u128::from(nanoseconds) + u128::from(request);
    let all = (all * u128::from(REQUEST_REST + 1)).div_ceil(u128::from(REQUEST_REST));
    u64::try_from(all).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    fn variant(system: &str, name: &str) -> System {
        let system = load_system(system, &LoadOptions::default()).expect("valid");
        let mut all = system.variants.into_iter();
        all.find(|one| one.variant.as_deref() == Some(name))
            .expect("there")
    }

    fn tenant(system: &System) -> usize {
        let mut apps = system.apps.iter();
        apps.position(|app| app.name == "tenant").expect("there")
    }

    #[test]
    fn a_call_waits_for_one_piece_of_a_lower_priority() {
        // 24 000 cycles of 2 GHz are 12 us, for each of two calls; 2000 and 7000 cycles are 4.5 us.
        let work = piece(0) + piece(3);
        let purses = variant("m3/attack-kernel-memory", "purses");
        assert_eq!(calls(&purses, tenant(&purses), 2, work), Ok(28_500));
        let alone = variant("m3/attack-kernel-memory", "alone");
        assert_eq!(calls(&alone, tenant(&alone), 2, work), Ok(4500));
        // The attackers wait for all.
        let hoard = purses.apps.iter().position(|app| app.name == "hoard-1");
        assert!(calls(&purses, hoard.expect("there"), 1, 1).is_err());
    }

    #[test]
    fn two_neighbours_take_two_slices() {
        let quotas = variant("m3/attack-endpoints", "quotas");
        let turn_of = turn(&quotas, tenant(&quotas)).expect("bounded");
        assert!(
            turn_of.wait > 200_000 && turn_of.wait < 300_000,
            "{turn_of:?}"
        );
        assert!(turn_of.lines > 0);
        let alone = variant("m3/attack-endpoints", "alone");
        assert_eq!(turn(&alone, tenant(&alone)), Ok(Turn::default()));
    }

    #[test]
    fn a_turn_has_the_last_call_of_each_neighbour() {
        let quotas = variant("m3/attack-endpoints", "quotas");
        let app = tenant(&quotas);
        let chip = Chip::new(&quotas.platform);
        let call = call(&quotas, &chip, quotas.apps[app].tile).expect("bounded");
        // 14 800 cycles of 2 GHz, and lines.
        assert!(call > 7400, "{call}");
        let wait = |system: &System| turn(system, tenant(system)).expect("bounded").wait;
        let mut one = quotas.clone();
        one.apps.retain(|app| app.name != "hoard-2");
        // Each neighbour costs a slice of 100 us and a call at least.
        assert!(wait(&quotas) - wait(&one) >= 100_000 + call);
    }

    #[test]
    fn requests_take_a_tenth_and_one_more() {
        let quotas = variant("m3/attack-endpoints", "quotas");
        let app = tenant(&quotas);
        let request = requests(&quotas, &Chip::new(&quotas.platform), quotas.apps[app].tile);
        let request = request.expect("bounded").cost;
        // In 10 us, however short or long the requests are: a list of requests with rests between never takes more.
        for length in 1..=request {
            let (mut now, mut left, mut rest) = (length, 10_000_u64, 0);
            while left > 0 {
                rest = if rest == 0 {
                    REQUEST_REST * length
                } else {
                    rest
                };
                let run = left.min(rest);
                (now, left, rest) = (now + run, left - run, rest - run);
                now += if left > 0 && rest == 0 { length } else { 0 };
            }
            assert!(beside_requests(&quotas, app, 10_000) >= Ok(now), "{length}");
        }
        let alone = variant("m3/attack-endpoints", "alone");
        assert_eq!(beside_requests(&alone, tenant(&alone), 10_000), Ok(10_000));
    }
}
