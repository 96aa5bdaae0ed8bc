//! Finds the edges of an image, by itself or by a streaming unit, and may compute the checksum of the result.
//!
//! Gates: `frame` (memory), `edges` (memory), `unit` (send, to the unit or the first of a pipeline; for `by` = `unit`). Arguments:
//! `by` (`program`, or `unit`), `width` (256), `height` (256), `runs` (4), `checksum` (0: none; 1: CRC-32 of the result). A
//! span around each run; the check value is a hash of the result, and the checksum if there is one. It ends with 0, or 1 if
//! the unit refused.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use bulkhead_lib::abi::accelerator::{Answer, REQUEST_WORDS, Request};
use bulkhead_lib::gate::{Aligned, MemoryGate, SendGate};
use bulkhead_lib::{argument, marker, println};

bulkhead_lib::main!(main);

/// Through which data passes.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Table of the CRC-32 of IEEE 802.3, a byte at a time.
fn table() -> [u32; 256] {
    core::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |crc, _| {
            crc >> 1 ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

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
    // An image that anybody can make again: a linear congruential generator (Numerical Recipes).
    let mut state = 7u32;
    for offset in (0..bytes).step_by(4096) {
        let piece = &mut page.0[..(bytes - offset).min(4096)];
        for pixel in piece.iter_mut() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *pixel = (state >> 24) as u8;
        }
        if frame.write(offset as u64, piece).is_err() {
            return 1;
        }
    }
    let table = table();
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
                checksum.then_some(&table),
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
    // FNV-1a over the result.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for offset in (0..bytes).step_by(4096) {
        let piece = &mut page.0[..(bytes - offset).min(4096)];
        if edges.read(offset as u64, piece).is_err() {
            return 1;
        }
        for byte in piece.iter() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    marker::check(hash);
    if checksum {
        marker::check(sum);
    }
    0
}

/// Lets the unit do it; gives its checksum.
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

/// Does it here, a page at a time like the unit; gives the checksum, or 0 without one.
fn program(
    frame: &MemoryGate,
    edges: &MemoryGate,
    width: usize,
    height: usize,
    table: Option<&[u32; 256]>,
    page: &mut Page,
) -> Option<u64> {
    let rows = (4096 / width).max(1);
    let mut window: Vec<u8> = vec![0; 3 * width];
    let mut out: Vec<u8> = Vec::with_capacity(4096 + width);
    let (mut written, mut crc) = (0u64, u32::MAX);
    for y in 0..=height {
        if y < height {
            if y % rows == 0 {
                let bytes = rows.min(height - y) * width;
                frame.read((y * width) as u64, &mut page.0[..bytes]).ok()?;
            }
            let row = &page.0[y % rows * width..][..width];
            window.copy_within(width.., 0);
            window[2 * width..].copy_from_slice(row);
        }
        match y {
            0 => continue,
            1 => out.resize(out.len() + width, 0),
            y if y == height => out.resize(out.len() + width, 0),
            _ => sobel(&window, width, &mut out),
        }
        if out.len() >= rows * width || y == height {
            if let Some(table) = table {
                crc = out.iter().fold(crc, |crc, byte| {
                    crc >> 8 ^ table[usize::from(crc as u8 ^ byte)]
                });
            }
            edges.write(written, &out).ok()?;
            written += out.len() as u64;
            out.clear();
        }
    }
    Some(table.map_or(0, |_| u64::from(!crc)))
}

/// The middle row of three.
fn sobel(window: &[u8], width: usize, out: &mut Vec<u8>) {
    let (above, rest) = window.split_at(width);
    let (middle, below) = rest.split_at(width);
    out.push(0);
    for x in 1..width - 1 {
        let at = |row: &[u8], x: usize| i32::from(row[x]);
        let right = at(above, x + 1) + 2 * at(middle, x + 1) + at(below, x + 1);
        let left = at(above, x - 1) + 2 * at(middle, x - 1) + at(below, x - 1);
        let bottom = at(below, x - 1) + 2 * at(below, x) + at(below, x + 1);
        let top = at(above, x - 1) + 2 * at(above, x) + at(above, x + 1);
        out.push(((right - left).abs() + (bottom - top).abs()).min(255) as u8);
    }
    out.push(0);
}
