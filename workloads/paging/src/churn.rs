//! Uses pages of its heap and of a file in random order, with fewer pages than both have, and keeps track of their contents.
//!
//! Gates: `files` (send, the file service), `pager` (send, the pager's gate `requests`). Arguments: `file` (`churn`): its path; `make` (1):
//! 0 waits until another client has made it; `pages` (24): of the file, and the same number of the heap; `changes` (6): how many of each
//! are written; `steps` (400); `seed` (1). It ends with 0, or 1 if a page did not hold what it should.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use bulkhead_lib::file::{CREATE, Mount, Result, TRUNCATE, WRITE};
use bulkhead_lib::hal::user;
use bulkhead_lib::paging::Pager;
use bulkhead_lib::{argument, environment, marker, println, time};

bulkhead_lib::main!(main);

const PAGE: usize = 4096;

/// The word at an offset of the file.
const fn word(at: usize) -> u64 {
    (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Pages with their changes: one word each.
struct Region {
    memory: &'static mut [u8],
    written: Vec<Option<u64>>,
    is_file: bool,
}

impl Region {
    fn new(memory: &'static mut [u8], is_file: bool) -> Self {
        let written = alloc::vec![None; memory.len() / PAGE];
        Self {
            memory,
            written,
            is_file,
        }
    }

    fn load(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.memory[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    /// The word's value before the first write.
    fn fresh(&self, at: usize) -> u64 {
        if self.is_file { word(at) } else { 0 }
    }

    /// Where a page has its changing word.
    const fn place(page: usize) -> usize {
        page * PAGE + page % 500 * 8
    }

    /// Whether a page holds what it should; checks its changing word and one other word.
    fn is_right(&self, page: usize, other: usize) -> bool {
        let place = Self::place(page);
        let expected = self.written[page].unwrap_or(self.fresh(place));
        let other = page * PAGE + other % 512 * 8;
        self.load(place) == expected && (other == place || self.load(other) == self.fresh(other))
    }

    fn write(&mut self, page: usize, value: u64) {
        let place = Self::place(page);
        self.memory[place..place + 8].copy_from_slice(&value.to_le_bytes());
        self.written[page] = Some(value);
    }
}

fn main() -> u64 {
    match work() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

/// Makes the file.
fn make(name: &str, bytes: usize) -> Result<()> {
    let mut mount = Mount::connect("files")?;
    let mut file = mount.open(name, WRITE | CREATE | TRUNCATE)?;
    let mut page = [0; PAGE];
    for start in (0..bytes).step_by(PAGE) {
        for (index, place) in page.chunks_exact_mut(8).enumerate() {
            place.copy_from_slice(&word(start + index * 8).to_le_bytes());
        }
        file.write(&page)?;
    }
    file.close()
}

fn work() -> Result<bool> {
    let name = argument::text("file").unwrap_or("churn");
    let pages: usize = argument::value("pages", 24);
    let changes = argument::value("changes", 6usize).clamp(1, pages);
    let bytes = pages * PAGE;
    if argument::value("make", 1u8) != 0 {
        make(name, bytes)?;
    }
    let mut pager = Pager::named("pager");
    let file = loop {
        match pager.map_file(name) {
            Ok(memory) if memory.len() == bytes => break memory,
            _ => time::sleep_until(time::now() + 100_000),
        }
    };
    let heap = environment();
    let end = (heap.heap_start + heap.heap_size) & !(PAGE as u64 - 1);
    let own = user::pages(end - bytes as u64, bytes as u64);
    let mut regions = [Region::new(own, false), Region::new(file, true)];
    let mut random = argument::value("seed", 1u64) | 1;
    let mut next = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    marker::span_begin(0);
    let steps: usize = argument::value("steps", 400);
    for step in 0..steps {
        let region = &mut regions[next() % 2];
        // For the heap only the pages that change: the others would be its own for ever.
        let page = next() % if region.is_file { pages } else { changes };
        match next() % 16 {
            0..11 => {}
            11..15 => region.write(page % changes, next() as u64),
            _ => {
                let count = 1 + next() % (pages - page).min(3);
                let range = page * PAGE..(page + count) * PAGE;
                pager.give_back(&mut region.memory[range])?;
                region.written[page..page + count].fill(None);
            }
        }
        if !region.is_right(page, next()) {
            let kind = if region.is_file { "file" } else { "heap" };
            println!("page {page} of the {kind} is wrong at step {step}");
            return Ok(false);
        }
    }
    marker::span_end(0);
    for region in &regions {
        let last = if region.is_file { pages } else { changes };
        for page in 0..last {
            if !region.is_right(page, next()) {
                println!("page {page} is wrong in the end");
                return Ok(false);
            }
        }
    }
    let counted = pager.count()?;
    println!(
        "{} pages of its own, {} left, {} shared",
        counted.given, counted.left, counted.shared
    );
    Ok(true)
}
