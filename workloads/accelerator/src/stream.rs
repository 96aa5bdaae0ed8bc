//! Finds the edges of an image in a file and writes them to another one, by itself or by streaming units.
//!
//! Units read and write the files themselves, and hand data on through a pipe; this program asks each of them once and sleeps.
//!
//! Gates: `files` (send), `answers` (receive) and the units `unit-1`, ... (send; for `by` = `unit`). Arguments: `by` (`program`,
//! or `unit`), `width` (256), `height` (256), `runs` (4), `input` and `output` (names of the files), `checksum` (0: none; 1:
//! CRC-32 of the result, by the last unit). A span around each run; the check values are a hash of the result and the checksum
//! if there is one. It ends with 0, or 1 if something failed.
#![no_std]
#![no_main]

extern crate alloc;

mod image;

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use bulkhead_lib::abi::accelerator::{ANSWER_WORDS, Answer, REQUEST_WORDS, Request};
use bulkhead_lib::common::status::Status;
use bulkhead_lib::file::{CREATE, Mount, READ, Result, TRUNCATE, WRITE};
use bulkhead_lib::gate::{Aligned, ReceiveGate, SendGate};
use bulkhead_lib::{argument, marker, println};
use image::{Crc, Edges, Hash, Pixels};

bulkhead_lib::main!(main);

/// The page through which data passes.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

fn main() -> u64 {
    match work() {
        Ok(()) => 0,
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn work() -> Result<()> {
    let width: usize = argument::value("width", 256);
    let height: usize = argument::value("height", 256);
    let runs: u64 = argument::value("runs", 4);
    let checksum = argument::value("checksum", 0u8) != 0;
    let by_units = argument::text("by") == Some("unit");
    let input = argument::text("input").unwrap_or("image");
    let output = argument::text("output").unwrap_or("edges");
    let mut mount = Mount::connect("files")?;
    let mut page = Box::new(Page([0; 4096]));
    let mut image = mount.open(input, WRITE | CREATE | TRUNCATE)?;
    let mut pixels = Pixels::new();
    for offset in (0..width * height).step_by(4096) {
        let piece = &mut page.0[..(width * height - offset).min(4096)];
        pixels.fill(piece);
        image.write(piece)?;
    }
    image.close()?;
    let mut crc = Crc::new();
    let mut sum = 0;
    marker::measure_begin(runs);
    for run in 0..runs {
        marker::span_begin(run);
        let done = if by_units {
            ask(&Request::until_end(width as u64))
        } else {
            let crc = checksum.then_some(&mut crc);
            program(&mut mount, (input, output), width, crc, &mut page)
        };
        marker::span_end(run);
        sum = done?;
    }
    marker::measure_end(runs);
    let mut hash = Hash::new();
    let mut edges = mount.open(output, READ)?;
    loop {
        let length = edges.read(&mut page.0)?;
        if length == 0 {
            break;
        }
        hash.add(&page.0[..length]);
    }
    edges.close()?;
    marker::check(hash.0);
    if checksum {
        marker::check(sum);
    }
    Ok(())
}

/// Lets the units do the work; returns the checksum of the last one.
fn ask(request: &Request) -> Result<u64> {
    let mut message = Aligned([0u8; 8 * REQUEST_WORDS]);
    for (bytes, word) in message.0.chunks_exact_mut(8).zip(request.encode()) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let answers = ReceiveGate::named("answers");
    let (mut units, mut waiting) = (0, Vec::new());
    while let Some(unit) = SendGate::find(&format!("unit-{}", units + 1)) {
        let sent = unit.send_with_reply(&message.0, &answers, units);
        sent.map_err(|_| Status::Closed)?;
        waiting.push((units, unit));
        units += 1;
    }
    let mut checksum = 0;
    let mut good = true;
    while !waiting.is_empty() {
        let gates: Vec<SendGate> = waiting.iter().map(|(_, gate)| *gate).collect();
        let reply = answers.receive_reply(&gates).map_err(|_| Status::Closed)?;
        waiting.retain(|(unit, _)| *unit != reply.label());
        let mut words = [0; ANSWER_WORDS];
        for (word, bytes) in words.iter_mut().zip(reply.payload().chunks_exact(8)) {
            let mut whole = [0; 8];
            whole.copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        let answer = Answer::decode(&words).ok_or(Status::BadReply)?;
        if answer.status != 0 {
            println!("unit {} refused: {answer:?}", reply.label() + 1);
            good = false;
        }
        if reply.label() + 1 == units {
            checksum = answer.checksum;
        }
    }
    if good {
        Ok(checksum)
    } else {
        Err(Status::Closed)
    }
}

/// Does the work here, a page at a time like the unit; returns the checksum, or 0 without one.
fn program(
    mount: &mut Mount,
    (input, output): (&str, &str),
    width: usize,
    mut crc: Option<&mut Crc>,
    page: &mut Page,
) -> Result<u64> {
    let rows = (4096 / width).max(1) * width;
    let mut results = Vec::with_capacity(width * 256);
    let mut image = mount.open(input, READ)?;
    let mut edges = Edges::new(width);
    loop {
        let length = image.read(&mut page.0[..rows])?;
        if length == 0 {
            break;
        }
        for row in page.0[..length].chunks_exact(width) {
            edges.row(row, &mut results);
        }
    }
    edges.finish(&mut results);
    image.close()?;
    let mut file = mount.open(output, WRITE | CREATE | TRUNCATE)?;
    file.write(&results)?;
    file.close()?;
    Ok(crc.as_mut().map_or(0, |crc| {
        crc.reset();
        crc.add(&results);
        crc.value()
    }))
}
