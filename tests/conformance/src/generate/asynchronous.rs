//! Timer interrupts at any moment, which the program may not notice.
//!
//! Their times differ from run to run and from side to side, so the handler leaves nothing behind: it saves what it uses, sets
//! the timer a little further, and returns. Reservations are left out, because a trap may end them.

use super::{Builder, HALF, atomic, control, float, integer, memory, paging, switch};
use crate::assembler::{self, Assembler};
use crate::encode::{self, MRET, SFENCE, word};
use crate::layout::*;

/// Place of the handler, which is not in the result.
const HANDLER: u64 = SPARE;

pub(super) fn generate(b: &mut Builder) {
    let paged = b.random.one_in(2);
    let mode = if paged {
        b.random.below(2)
    } else {
        *b.random.pick(&[0, 1, 3])
    };
    if paged {
        let results = std::mem::take(&mut b.data);
        paging::setup(b);
        b.data = results;
        b.data.resize(2 * HALF as usize, 0);
    }
    let alias = if paged && mode == 0 { ALIAS } else { 0 };
    let period = b.random.range(20, 200);
    let handler = handler(period);
    b.fixed(|a, _| {
        // The handler's code, then what it needs.
        a.li(5, HANDLER);
        for (index, word) in handler.chunks_exact(4).enumerate() {
            let value = i32::from_le_bytes(word.try_into().expect("four bytes"));
            a.li(6, i64::from(value) as u64);
            a.memory("sw", 6, 4 * index as i64, 5);
        }
        a.push(word(encode::FENCE_I, "fence.i"));
        if paged {
            a.li(5, 8 << 60 | TABLES >> 12);
            a.csr("csrrw", 0, 0x180, 5);
            a.push(word(SFENCE, "sfence.vma"));
        }
        // Nothing may interrupt the runtime's handler: machine mode's own interrupts are enabled only in the part below.
        switch(a, mode, alias);
    });
    // Interrupts on: from here the program's own handler serves the timer and forwards everything else to the runtime's.
    b.fixed(|a, _| {
        a.li(17, SWITCH | 3);
        a.li(16, 0);
        a.push(word(encode::ECALL, "ecall"));
        a.li(5, HANDLER);
        a.csr("csrrw", 0, 0x305, 5);
        a.li(5, CLINT_COMPARE);
        a.memory("sd", 0, 0, 5);
        a.li(5, 0x80);
        a.csr("csrrw", 0, 0x304, 5);
        // MRET to the next instruction in the mode, with interrupts on.
        let here = a.label();
        a.address(6, here);
        a.li(5, alias);
        a.r("or", 6, 6, 5);
        a.csr("csrrw", 0, 0x341, 6);
        a.li(5, 0x1800);
        a.csr("csrrc", 0, 0x300, 5);
        a.li(5, mode << 11 | 0x80);
        a.csr("csrrs", 0, 0x300, 5);
        a.push(word(MRET, "mret"));
        a.bind(here);
        super::reload_pointers(a);
    });
    for _ in 0..2 {
        match b.random.below(5) {
            0 => integer::generate(b),
            1 => memory::generate(b),
            2 => atomic::operations(b, false),
            3 => float::generate(b),
            _ => control::generate(b),
        }
    }
    // Off again. In a lower mode only a trap leads to machine mode: an ecall, which the program's handler passes on.
    b.fixed(|a, _| {
        a.li(16, 0);
        a.li(17, SWITCH | 3);
        a.push(word(encode::ECALL, "ecall"));
        a.csr("csrrw", 0, 0x304, 0);
        a.li(5, MACHINE_HANDLER);
        a.csr("csrrw", 0, 0x305, 5);
        a.li(5, CLINT_COMPARE);
        a.li(6, u64::MAX);
        a.memory("sd", 6, 0, 5);
        let again = a.label();
        a.bind(again);
        a.csr("csrrs", 6, 0x344, 0);
        a.i("andi", 6, 6, 0x80);
        a.branch("bne", 6, 0, again);
    });
}

/// The timer's handler; it forwards exceptions to the runtime's, with all registers unchanged. Like that one it has the
/// runtime's frame in `mscratch`, but it saves to another place.
fn handler(period: i64) -> Vec<u8> {
    const SAVED: i64 = 0x700;
    let mut a = Assembler::new();
    let pass_on = a.label();
    a.csr("csrrw", 2, 0x340, 2);
    a.memory("sd", 5, SAVED, 2);
    a.memory("sd", 6, SAVED + 8, 2);
    a.csr("csrrs", 5, 0x342, 0);
    a.branch("bge", 5, 0, pass_on);
    a.li(5, CLINT_TIME);
    a.memory("ld", 6, 0, 5);
    a.i("addi", 6, 6, period);
    a.li(5, CLINT_COMPARE);
    a.memory("sd", 6, 0, 5);
    a.memory("ld", 6, SAVED + 8, 2);
    a.memory("ld", 5, SAVED, 2);
    a.csr("csrrw", 2, 0x340, 2);
    a.push(word(MRET, "mret"));
    a.bind(pass_on);
    a.memory("ld", 6, SAVED + 8, 2);
    a.memory("ld", 5, SAVED, 2);
    a.csr("csrrw", 2, 0x340, 2);
    a.push(encode::jal(
        0,
        MACHINE_HANDLER as i64 - HANDLER as i64 - a.here(),
    ));
    assembler::bytes(&a.finish())
}
