//! Memory of a hostile manager that a tile sees, with the children's code in it.

use crate::child::{CODE, revoke};
use bulkhead_lib::abi::syscall::{SEL_MEMORIES, SEL_TILES, Syscall};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::syscall;

/// Writes the children's code into memory.
fn fill(memory: u16) -> bool {
    let Ok((endpoint, size)) = syscall::activate(memory) else {
        return false;
    };
    let gate = MemoryGate::new(endpoint, size);
    let code = CODE.map(u32::to_le_bytes);
    let written = gate.write(0, code.as_flattened()).is_ok();
    let request = Syscall::Deactivate {
        gate: memory,
        endpoint: gate.endpoint(),
    };
    syscall::call(&request).is_ok() && written
}

/// Cuts memory, makes it visible to a tile and fills it, if all that is possible.
pub fn show(tile: u16, memory: u16, window: u16) -> bool {
    let cut = Syscall::CutMemory {
        source: SEL_MEMORIES + memory,
        target: window,
        size: 32768,
    };
    if syscall::call(&cut).is_err() {
        return false;
    }
    let shown = [40, 0].iter().any(|tables| {
        let request = Syscall::ConfigureTile {
            tile: SEL_TILES + tile,
            memory: window,
            tables: *tables,
        };
        syscall::call(&request).is_ok()
    });
    let done = shown && fill(window);
    if !done {
        revoke(window);
    }
    done
}
