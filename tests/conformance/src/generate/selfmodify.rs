//! Code that the program itself writes, made visible by FENCE.I.

use super::{Builder, HALF, kept, scratch};
use crate::assembler::{self, Assembler};
use crate::encode::{self, FENCE_I, word};

pub(super) fn generate(b: &mut Builder) {
    // Room for a function in the lower half; results are not stored there.
    b.slot = 1024;
    for _ in 0..40 {
        if b.slot < 1024 {
            b.slot = 1024;
        }
        let slot = b.slot();
        if b.random.one_in(2) {
            // A function is written word by word to the data area and called.
            b.chunk(|a, random| {
                let mut function = Assembler::new();
                for _ in 0..random.range(1, 4) {
                    let instruction = encode::compressed_integer(random, &|r| kept(r) || r == 1);
                    function.push(instruction);
                    let (x, y) = (random.range(20, 27) as u32, random.below(32) as u32);
                    function.r("sub", x, x, y);
                }
                function.push(encode::jalr(0, 1, 0));
                let mut bytes = assembler::bytes(&function.finish());
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                let place = random.below(64) as i64 * 2 - HALF as i64 / 2;
                for (index, word) in bytes.chunks_exact(4).enumerate() {
                    let value = i32::from_le_bytes(word.try_into().expect("four bytes"));
                    a.li(5, i64::from(value) as u64);
                    a.memory("sw", 5, place + 4 * index as i64, 8);
                }
                a.push(word_fence());
                a.i("addi", 5, 8, place);
                a.push(encode::jalr(1, 5, 0));
                a.memory("sd", 20, slot, 8);
            });
        } else {
            // An instruction a little further on is replaced, sometimes after it ran once.
            b.chunk(|a, random| {
                let (place, again, done) = (a.label(), a.label(), a.label());
                let register = loop {
                    let register = scratch(random);
                    if !matches!(register, 5..=7) {
                        break register;
                    }
                };
                let (old, new) = (random.range(-2048, 2047), random.range(-2048, 2047));
                let first = random.one_in(2);
                let mut replacement = Assembler::new();
                replacement.i("addi", register, register, new);
                let bits = replacement.finish()[0].bits;
                a.i("addi", 7, 0, 1);
                if first {
                    a.jump(0, place);
                }
                a.bind(again);
                a.i("addi", 7, 7, -1);
                a.address(5, place);
                a.li(6, i64::from(bits as i32) as u64);
                // The place may only be aligned to two bytes.
                a.memory("sh", 6, 0, 5);
                a.i("srli", 6, 6, 16);
                a.memory("sh", 6, 2, 5);
                a.push(word_fence());
                a.bind(place);
                a.i("addi", register, register, old);
                a.branch("beq", 7, 0, done);
                a.jump(0, again);
                a.bind(done);
                a.memory("sd", register, slot, 8);
            });
        }
    }
}

fn word_fence() -> encode::Instruction {
    word(FENCE_I, "fence.i")
}
