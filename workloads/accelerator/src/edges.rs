//! Finds the edges of an image, by itself or by a streaming unit, and may compute the checksum of the result.
//!
//! Gates: `frame` (memory), `edges` (memory), `unit` (send, to the unit or the first of a pipeline; for `by` = `unit`). Arguments:
//! `by` (`program`, or `unit`), `width` (256), `height` (256), `runs` (4), `checksum` (0: none; 1: CRC-32 of the result). A
//! span around each run; the check value is a hash of the result, and the checksum if there is one. It ends with 0, or 1 if
//! the unit refused.
#![no_std]
#![no_main]

extern crate alloc;

mod image;

use alloc::boxed::Box;
use alloc::vec::Vec;
use bulkhead_lib::abi::accelerator::{Answer, REQUEST_WORDS, Request};
use bulkhead_lib::gate::{Aligned, MemoryGate, SendGate};
use bulkhead_lib::{argument, marker, println};
use image::{Crc, Edges, Hash, Pixels};

bulkhead_lib::main!(main);

/// The page through which data passes.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

fn main() -> u64 {
    let frame = MemoryGate::named("frame");
    let edges = MemoryGate::named("edges");
    let width: usize = argument::value("width", 256);
    let height: usize = argument::value("height", 256);
    let runs: u64 = argument::value("runs", 4);
    let checksum = argument::value("checksum", 0u8) != 0;
    let by_unit = argument::text("by") == Some("unit");
    let bytes = width * height;
    let mut page = Box::new(Page([0; 4096]));
    let mut pixels = Pixels::new();
    for offset in (0..bytes).step_by(4096) {
        let piece = &mut page.0[..(bytes - offset).min(4096)];
        pixels.fill(piece);
        if frame.write(offset as u64, piece).is_err() {
            return 1;
        }
    }
    let mut crc = Crc::new();
    let mut sum = 0;
    marker::measure_begin(runs);
    for run in 0..runs {
        marker::span_begin(run);
        let result = if by_unit {
            ask(&Request::whole(bytes as u64, width as u64))
        } else {
            program(
                &frame,
                &edges,
                width,
                height,
                checksum.then_some(&mut crc),
                &mut page,
            )
        };
        marker::span_end(run);
        match result {
            Some(checksum) => sum = checksum,
            None => return 1,
        }
    }
    marker::measure_end(runs);
    let mut hash = Hash::new();
    for offset in (0..bytes).step_by(4096) {
        let piece = &mut page.0[..(bytes - offset).min(4096)];
        if edges.read(offset as u64, piece).is_err() {
            return 1;
        }
        hash.add(piece);
    }
    marker::check(hash.0);
    if checksum {
        marker::check(sum);
    }
    0
}

/// Lets the unit do the work; returns its checksum.
fn ask(request: &Request) -> Option<u64> {
    let words = request.encode();
    let mut message = Aligned([0u8; 8 * REQUEST_WORDS]);
    for (bytes, word) in message.0.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let reply = SendGate::named("unit").call(&message.0).ok()?;
    let mut words = [0; bulkhead_lib::abi::accelerator::ANSWER_WORDS];
    for (word, bytes) in words.iter_mut().zip(reply.payload().chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let answer = Answer::decode(&words)?;
    if answer.status != 0 {
        println!("the unit refused: {answer:?}");
        return None;
    }
    Some(answer.checksum)
}

/// Does the work here, a page at a time like the unit; returns the checksum, or 0 without one.
fn program(
    frame: &MemoryGate,
    edges: &MemoryGate,
    width: usize,
    height: usize,
    mut crc: Option<&mut Crc>,
    page: &mut Page,
) -> Option<u64> {
    let rows = (4096 / width).max(1);
    let mut out: Vec<u8> = Vec::with_capacity(4096 + width);
    let mut sobel = Edges::new(width);
    let mut written = 0u64;
    if let Some(crc) = &mut crc {
        crc.reset();
    }
    for y in 0..=height {
        if y < height {
            if y % rows == 0 {
                let bytes = rows.min(height - y) * width;
                frame.read((y * width) as u64, &mut page.0[..bytes]).ok()?;
            }
            sobel.row(&page.0[y % rows * width..][..width], &mut out);
        } else {
            sobel.finish(&mut out);
        }
        if out.len() >= rows * width || y == height {
            if let Some(crc) = &mut crc {
                crc.add(&out);
            }
            edges.write(written, &out).ok()?;
            written += out.len() as u64;
            out.clear();
        }
    }
    Some(crc.map_or(0, |crc| crc.value()))
}
