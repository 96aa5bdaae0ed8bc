//! A program that lets its storage device copy blocks into its buffers, again and again, as fast as the device can, and waits for its
//! interrupts: the traffic is the device's, not the hart's.
//!
//! Arguments: `disk`, the address of the registers, and `disk-source`, the interrupt's number (the loader gives both for `<attach>`); `bytes` of a
//! command; `depth`, commands under way; `jobs`, after which the program ends the run, or `forever=true`. `expect` is the first
//! word of the content, if it is known. With `check=true` it looks whether a block that it writes and reads again is the same. With
//! `flush=false` it leaves its lines in the caches, as is right for a device that is coherent with them.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Registers, fence};
use bulkhead_bare::hal::abi::peripheral::{
    AT_END, CAUSE, COMMAND, COMPLETED, DESTINATION, ENABLE, INTERRUPT, LENGTH, READ, REFUSED, SIZE,
    SOURCE, UNIT, WRITE,
};
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::interrupts::Interrupts;
use bulkhead_bare::{Program, entry};

entry!(main);

fn main(program: &Program) {
    if program.rank > 0 {
        return;
    }
    let disk = Registers::at(program.value("disk", 0));
    let bytes: u64 = program.value("bytes", 4096);
    let depth: u64 = program.value("depth", 2);
    let buffers = program.memory.part(0, bytes * depth);
    let flush: bool = program.value("flush", true);
    if flush {
        // Lines of the buffers must not be written over what the device brings.
        buffers.flush();
    }
    let interrupts = Interrupts::of(program);
    interrupts.listen(program.value("disk-source", 0));
    disk.set(ENABLE, AT_END);
    let all = disk.get(SIZE) / disk.get(UNIT);
    let step = bytes / disk.get(UNIT);
    let command = |opcode, source, destination| {
        disk.set(SOURCE, source);
        disk.set(DESTINATION, destination);
        disk.set(LENGTH, bytes);
        disk.set(COMMAND, opcode);
    };
    let (mut asked, mut block) = (0, 0);
    let jobs: u64 = program.value("jobs", 10);
    let forever = program.value("forever", false);
    let wanted = if forever { u64::MAX } else { jobs };
    let mut done = 0;
    while done < wanted {
        while asked < wanted && asked - done < depth {
            let buffer = buffers.base() + asked % depth * bytes;
            command(READ, block, buffer);
            block = if block + 2 * step <= all {
                block + step
            } else {
                0
            };
            asked += 1;
        }
        let source = interrupts.wait();
        disk.set(INTERRUPT, 1);
        fence();
        let now = disk.get(COMPLETED);
        interrupts.complete(source);
        for job in done..now {
            marker::check(job);
        }
        done = now;
    }
    // What the device's content begins with, if the description says so.
    let expected: u64 = program.value("expect", 0);
    if expected != 0 {
        assert_eq!(buffers.get(0), expected);
    }
    if program.value("check", false) {
        // A word of the program goes to the device and comes back elsewhere.
        let (from, to) = (buffers.part(0, bytes), buffers.part(bytes, bytes));
        to.write(1);
        from.write(0x5EED);
        if flush {
            from.flush();
            to.flush();
        }
        // The stores come before the command.
        fence();
        command(WRITE, from.base(), 0);
        command(READ, 0, to.base());
        while disk.get(COMPLETED) + disk.get(REFUSED) < wanted + 2 {}
        assert_eq!((disk.get(REFUSED), to.get(8)), (0, 0x5EED));
        // What belongs to others is refused, and said.
        command(READ, 0, program.memory.base() - (1 << 20));
        fence();
        assert_eq!((disk.get(REFUSED), disk.get(CAUSE)), (1, 4));
    }
    device::exit(0);
}
