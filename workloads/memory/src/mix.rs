//! Random accesses of every kind, to measure a program beside others that do the same, or to disturb it.
//!
//! Arguments: `bytes` of the working set (a power of two), `steps` of a pass, `passes`, `seed`; of 128 steps, about `stores` store and
//! `flushes` write lines back to memory, and the others load, each at four places at once. After each `burst` steps the program pauses for up
//! to `pause` turns of a loop. With `forever=true` it measures nothing and only disturbs others.
//!
//! Each pass is a flow from the program to itself. Before the first one, every word is read, and a pass is made without markers.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Memory, fence};
use bulkhead_bare::hal::{csr, device, marker};
use bulkhead_bare::{Program, entry};
use bulkhead_random::Random;

entry!(main);

fn main(program: &Program) {
    // The other harts of a program with several harts have nothing to do.
    if program.rank > 0 {
        return;
    }
    let bytes: u64 = program.value("bytes", 1 << 16);
    if !bytes.is_power_of_two() {
        panic!("a working set of {bytes} bytes, which are no power of two");
    }
    let mix = Mix {
        memory: program.memory.part(0, bytes),
        // Multiples of 8.
        inside: bytes - 8,
        steps: program.value("steps", 1000),
        stores: program.value("stores", 30),
        flushes: program.value("flushes", 0),
        burst: program.value("burst", 1).max(1),
        pause: program.value("pause", 0),
    };
    let mut random = Random::new(program.value("seed", 1));
    let mut sum = mix.memory.read();
    sum = sum.wrapping_add(mix.pass(&mut random));
    while program.value("forever", false) {
        sum = sum.wrapping_add(mix.pass(&mut random));
    }
    for pass in 0..program.value("passes", 1) {
        fence();
        marker::flow_begin(pass);
        sum = sum.wrapping_add(mix.pass(&mut random));
        fence();
        marker::flow_end(pass);
    }
    marker::check(sum);
    device::exit(0);
}

/// What to do.
struct Mix {
    memory: Memory,
    inside: u64,
    steps: u64,
    stores: u64,
    flushes: u64,
    burst: u64,
    pause: u64,
}

impl Mix {
    /// The sum of what was loaded.
    fn pass(&self, random: &mut Random) -> u64 {
        let mut sum = 0u64;
        for step in 0..self.steps {
            // No division: it would take longer than the accesses.
            let (low, high) = (random.next(), random.next());
            let places = [low, low >> 20, high, high >> 20].map(|bits| bits & self.inside);
            match high >> 41 & 127 {
                kind if kind < self.stores => {
                    places.iter().for_each(|at| self.memory.set(*at, step));
                }
                kind if kind < self.stores + self.flushes => {
                    for at in places {
                        csr::write_back(self.memory.base() + at);
                    }
                }
                _ => {
                    let [a, b, c, d] = places.map(|at| self.memory.get(at));
                    sum = sum.wrapping_add(a ^ b ^ c ^ d);
                }
            }
            if self.pause > 0 && step % self.burst == 0 {
                for _ in 0..random.below(self.pause) {
                    core::hint::spin_loop();
                }
            }
        }
        sum
    }
}
