//! A program that takes the packets of a camera from a ring and looks at every word of them, before the ring is full.
//!
//! Arguments: `camera`, the address of the registers, and `camera-source`, the interrupt's number (the loader gives both for `<attach>`);
//! `slots` of the ring; `frames`, after which the program ends the run. A frame is a job: it is released with the first packet, and complete
//! when its last packet has been looked at. A lost packet ends the run with exit code 1, unless `lossy=true`. With `flush=false` it does not
//! flush the slots, as is right for a camera that is coherent with the caches.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Registers, fence};
use bulkhead_bare::hal::abi::peripheral::{
    AT_PACKET, AT_REFUSAL, COMMAND, COMPLETED, CONSUMED, DESTINATION, ENABLE, INTERRUPT, LENGTH,
    LINES, OVERFLOWS, START, STOP, UNIT,
};
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::interrupts::Interrupts;
use bulkhead_bare::{Program, entry};

entry!(main);

fn main(program: &Program) {
    if program.rank > 0 {
        return;
    }
    let camera = Registers::at(program.value("camera", 0));
    let (packet, lines) = (camera.get(UNIT), camera.get(LINES));
    let slots: u64 = program.value("slots", 8);
    let ring = program.memory.part(0, packet * slots);
    let flush: bool = program.value("flush", true);
    if flush {
        ring.flush();
    }
    let interrupts = Interrupts::of(program);
    interrupts.listen(program.value("camera-source", 0));
    camera.set(DESTINATION, ring.base());
    camera.set(LENGTH, packet * slots);
    camera.set(ENABLE, AT_PACKET | AT_REFUSAL);
    camera.set(COMMAND, START);
    let packets = lines * program.value("frames", 4);
    let (mut taken, mut sum) = (0, 0u64);
    while taken + camera.get(OVERFLOWS) < packets {
        let source = interrupts.wait();
        camera.set(INTERRUPT, 1);
        fence();
        let delivered = camera.get(COMPLETED);
        interrupts.complete(source);
        while taken < delivered && taken < packets {
            let slot = ring.part(taken % slots * packet, packet);
            if flush {
                // The caches have older bytes of the slot.
                slot.flush();
            }
            let name = slot.get(0);
            let (frame, line) = (name & 0xFFFF_FFFF, name >> 32);
            if line == 0 {
                marker::job_release(frame);
            }
            for word in (0..packet).step_by(8) {
                sum = sum.wrapping_add(slot.get(word));
            }
            if line + 1 == lines {
                marker::job_complete(frame);
            }
            taken += 1;
            camera.set(CONSUMED, taken);
        }
    }
    camera.set(COMMAND, STOP);
    marker::check(sum);
    let lost = camera.get(OVERFLOWS);
    device::exit(u16::from(lost > 0 && !program.value("lossy", false)));
}
