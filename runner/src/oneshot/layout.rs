//! The layout of a core's memory in a described system.
//!
//! Why it exists: image, data of ports and table share 32 KiB, and a user must learn which part is too large. What it deliberately does not
//! know: how images are built.
//!
//! From the bottom: the image. From the top, downwards: port records, the pointer to the table, the record of its clock and the master's list
//! of cores if clocks differ, the table, the data of the core's ports.

use super::footprint::Footprint;
use crate::error::Error;
use crate::image::{BootImage, Start, TilePiece};
use crate::programs::Program;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::one_shot::clock::{CORES_IN_A_WORD, LIST_SHIFT, RECORD, SERVED};
use bulkhead_abi::one_shot::port::{DATA_SHIFT, DATA_UNIT};
use bulkhead_abi::one_shot::table::{
    CORE_SHIFT, DATA, INPUTS, NAME, NOTIFY, OUTPUTS, PERIOD, POINTER, PORT_WORDS, PORTS,
    SIZE_SHIFT, SLOTS_SHIFT, TASK_WORDS, TOLD_SHIFT, WAIT_SHIFT,
};
use bulkhead_abi::one_shot::{IMAGE_SIZE, PORTS_OFFSET};
use bulkhead_machine::image::Image;
use bulkhead_model::System;
use bulkhead_model::platform::Topology;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;

/// Alignment of the data of a port.
const ALIGNMENT: u64 = 8;
/// Data that a record cannot name would only fail when its port is initialised: everything in a core's memory has a name.
const _: () = assert!(ALIGNMENT.is_multiple_of(DATA_UNIT));
const _: () = assert!(IMAGE_SIZE <= DATA_UNIT << (u64::BITS - DATA_SHIFT));

/// Adds what a core starts with.
///
/// # Errors
/// If it does not fit.
pub fn add(
    boot: &mut BootImage,
    system: &System,
    one_shot: &OneShot,
    core: u16,
    program: &Program,
) -> Result<(), Error> {
    let input = |error: &dyn std::fmt::Display| {
        Error::input(
            error.to_string(),
            "build the image with its kernel's linker script",
        )
    };
    let image = Image::parse(&program.name, &program.elf).map_err(|error| input(&error))?;
    let sizes = Footprint::of(&program.name, &program.elf)?;
    let table = Table::of(system, one_shot, core);
    let end = image
        .segments
        .iter()
        .map(|one| one.address + one.size)
        .max();
    let taken = end.map_or(0, |end| end.saturating_sub(MEMORY_BASE));
    if taken > table.bottom {
        return Err(too_large(core, one_shot, &sizes, &table, taken));
    }
    let mut put = |address: u64, bytes: Vec<u8>| {
        boot.tiles.push(TilePiece {
            tile: core,
            address,
            bytes,
        });
    };
    for segment in &image.segments {
        let mut bytes = segment.data.clone();
        bytes.resize(usize::try_from(segment.size).unwrap_or(usize::MAX), 0);
        put(segment.address, bytes);
    }
    put(MEMORY_BASE + table.start, table.bytes());
    let pointer = (MEMORY_BASE + table.start).to_le_bytes();
    put(MEMORY_BASE + POINTER, pointer.to_vec());
    if let Some(master) = one_shot.master(&system.platform) {
        let cores = match core == master {
            true => served(system, one_shot, master),
            false => Vec::new(),
        };
        // The kernel's policy has the value of the list: both sides compute it with the same code.
        let value = match cores.is_empty() {
            true => 0,
            false => bulkhead_exec_one_shot::clock::list(cores.iter().copied()) << LIST_SHIFT,
        };
        let word = value | cores.len() as u64;
        put(MEMORY_BASE + RECORD + SERVED, word.to_le_bytes().to_vec());
        for (place, word) in cores.chunks(CORES_IN_A_WORD as usize).enumerate() {
            let bytes = word.iter().flat_map(|core| core.to_le_bytes()).collect();
            put(MEMORY_BASE + RECORD - 8 * (place as u64 + 1), bytes);
        }
    }
    if let Some(ring) = super::footprint::ring(&program.elf) {
        boot.rings.push((core, ring));
    }
    boot.starts.push(Start {
        tile: core,
        hart: 0,
        entry: image.entry,
        arguments: [u64::from(number(system, core)), 0],
    });
    Ok(())
}

/// The number that a core's hart reads: its row and column.
pub fn number(system: &System, core: u16) -> u16 {
    let columns = match system.platform.network.topology {
        Topology::Mesh { columns, .. } | Topology::StarMesh { columns, .. } => columns.max(1),
        Topology::Crossbar => 1,
    };
    let router = system.platform.tile(core).map_or(0, |tile| tile.router);
    ((router / columns) << 6) | (router % columns)
}

/// What markers call the port of a channel.
pub fn marked(system: &System, one_shot: &OneShot, channel: usize) -> u64 {
    let reader = one_shot.tasks.channels[one_shot.tasks.port_of(channel)].to;
    let owner = number(system, one_shot.core(reader));
    u64::from(owner) | (one_shot.port(channel) as u64) << 16
}

/// The numbers of the cores that the master's core tells the time.
fn served(system: &System, one_shot: &OneShot, master: u16) -> Vec<u16> {
    let cores = one_shot.cores().into_iter();
    let others = cores.filter(|core| *core != master);
    others.map(|core| number(system, core)).collect()
}

/// Where what describes a core's clock begins: the table is below.
fn below_clock(system: &System, one_shot: &OneShot, core: u16) -> u64 {
    match one_shot.master(&system.platform) {
        None => POINTER,
        Some(master) if master == core => {
            let cores = one_shot.cores().len() as u64 - 1;
            RECORD - 8 * cores.div_ceil(CORES_IN_A_WORD)
        }
        Some(_) => RECORD,
    }
}

/// Timer counts for which a job of a task waits in its parallel section.
fn wait(system: &System, one_shot: &OneShot, task: usize) -> u64 {
    let picoseconds = u128::from(one_shot.tasks.tasks[task].wait.0);
    let counts = picoseconds * u128::from(system.platform.timebase.0) / 1_000_000_000_000;
    u64::try_from(counts).unwrap_or(u64::MAX)
}

/// Every part with its bytes, the largest first.
fn too_large(core: u16, one_shot: &OneShot, sizes: &Footprint, table: &Table, taken: u64) -> Error {
    let ports = PORTS_OFFSET - table.start + table.needed;
    let mut parts = [
        ("code and constants", sizes.text),
        ("data", sizes.data),
        ("zeroed data", sizes.bss),
        ("the stack", sizes.stack),
        ("the console", sizes.ring),
        ("table and data of ports", ports),
        ("port records", IMAGE_SIZE - PORTS_OFFSET),
    ];
    parts.sort_by_key(|part| std::cmp::Reverse(part.1));
    let parts: Vec<String> = parts
        .iter()
        .map(|(what, bytes)| format!("{what} {bytes}"))
        .collect();
    let names = one_shot.on_core(core).into_iter();
    let names: Vec<String> = names
        .map(|task| format!("`{}`", one_shot.tasks.tasks[task].name))
        .collect();
    Error::input(
        format!(
            "core {core} ({}) needs {} bytes of its {IMAGE_SIZE}: {}",
            names.join(", "),
            taken + ports + (IMAGE_SIZE - PORTS_OFFSET),
            parts.join(", ")
        ),
        "move a task to another core, or give its tasks less code, smaller items or less stack",
    )
}

/// Where the data of a core's ports is: the channels that it reads, each with its first offset and the offset after its last place.
pub(super) fn data(system: &System, one_shot: &OneShot, core: u16) -> Vec<(usize, u64, u64)> {
    let table = Table::of(system, one_shot, core);
    let here = one_shot.on_core(core);
    let mut all = Vec::new();
    for (number, task) in here.iter().copied().enumerate() {
        let first = table.words[number * TASK_WORDS + PORTS] as usize;
        for (place, channel) in one_shot.inputs(task).into_iter().enumerate() {
            let word = table.words[first + place * PORT_WORDS + DATA];
            let begin = (word & 0xFFFF_FFFF) - MEMORY_BASE;
            let size = one_shot.bytes(channel);
            let slots = u64::from(one_shot.slots(channel)).max(1);
            let bytes = size.next_multiple_of(ALIGNMENT) * slots;
            all.push((channel, begin, begin + bytes));
        }
    }
    all
}

/// A core's table, and where its parts are, as offsets in its memory.
struct Table {
    words: Vec<u64>,
    start: u64,
    /// Bytes of the data of ports, which is below the table.
    needed: u64,
    /// The image has everything below this; 0 if there is no room for it.
    bottom: u64,
}

impl Table {
    fn of(system: &System, one_shot: &OneShot, core: u16) -> Self {
        let here = one_shot.on_core(core);
        let channels = |task: usize| {
            let inputs = one_shot.inputs(task);
            (inputs.len(), [inputs, one_shot.outputs(task)].concat())
        };
        let ports: usize = here.iter().map(|&task| channels(task).1.len()).sum();
        let size = (here.len() * TASK_WORDS + ports * PORT_WORDS) as u64 * 8;
        let start = below_clock(system, one_shot, core) - size;
        let (mut bottom, mut needed) = (start, 0);
        let mut tasks = Vec::new();
        let mut names = Vec::new();
        for task in here.iter().copied() {
            let (inputs, channels) = channels(task);
            let mut words = [0; TASK_WORDS];
            words[PERIOD] = one_shot.tasks.tasks[task].period.0 / TICK.0;
            let told = one_shot.tasks.told_by(task);
            if let Some(number) = channels.iter().position(|one| told == Some(*one)) {
                words[PERIOD] |= (number as u64 + 1) << TOLD_SHIFT;
            }
            words[PERIOD] |= wait(system, one_shot, task) << WAIT_SHIFT;
            words[INPUTS] = inputs as u64;
            words[OUTPUTS] = (channels.len() - inputs) as u64;
            words[PORTS] = (here.len() * TASK_WORDS + names.len()) as u64;
            tasks.extend(words);
            for (place, channel) in channels.into_iter().enumerate() {
                let size = one_shot.bytes(channel);
                let owner = number(system, one_shot.core(one_shot.tasks.channels[channel].to));
                let mut words = [0; PORT_WORDS];
                words[NAME] = one_shot.port(channel) as u64
                    | (size << SIZE_SHIFT)
                    | (u64::from(owner) << CORE_SHIFT);
                if place < inputs {
                    let slots = u64::from(one_shot.slots(channel));
                    let data = size.next_multiple_of(ALIGNMENT) * slots.max(1);
                    // What does not fit is reported with its size.
                    needed += data;
                    bottom = start.saturating_sub(needed);
                    words[DATA] = (MEMORY_BASE + bottom) | slots << SLOTS_SHIFT;
                } else if one_shot.tasks.channels[channel].notify {
                    words[DATA] = NOTIFY;
                }
                names.extend(words);
            }
        }
        Self {
            words: [tasks, names].concat(),
            start,
            needed,
            bottom,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items of any size, next to queues: each place begins at a multiple of what records count in, and none overlaps another one.
    #[test]
    fn data_of_ports_is_where_records_can_name_it() {
        let mut text = String::from(
            r#"<system name="s" paradigm="one-shot" platform="epiphany3" duration="10ms">
            <task name="reader" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>"#,
        );
        for size in 1..=14 {
            let kind = match size % 3 {
                0 => r#" kind="queue" slots="3""#,
                _ => "",
            };
            text += &format!(
                r#"<task name="w{size}" program="p::B" core="{size}" priority="1" period="1ms" cost="1us"/>
                <channel name="c{size}" from="w{size}" to="reader" size="{size}B"{kind}/>"#
            );
        }
        let system =
            bulkhead_model::load_system_text("s", &(text + "</system>"), &Default::default());
        let system = system.expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let mut all = data(&system, one_shot, 0);
        assert_eq!(all.len(), 14);
        all.sort_by_key(|one| one.1);
        for (channel, begin, end) in &all {
            assert!(begin.is_multiple_of(DATA_UNIT), "{channel}: {begin}");
            assert!(begin < end && *end <= PORTS_OFFSET, "{channel}: {end}");
        }
        assert!(all.windows(2).all(|two| two[0].2 <= two[1].1), "{all:?}");
    }
}
