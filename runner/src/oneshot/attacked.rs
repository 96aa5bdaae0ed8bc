//! One run of the check of a one-shot system: its cores, or those of one domain, beside adversaries on all other cores.
//!
//! Why it exists: the machine is deterministic, so anything that an adversary changes shows as a difference between two runs. What it
//! deliberately does not know: which attacks exist, and what a difference means.

use super::adversary::{self, NEVER, Plan};
use super::paradigm::loaded;
use super::{OneShot as Room, host, images, layout};
use crate::boot;
use crate::convert::clock;
use crate::error::Error;
use crate::image::{BootImage, Start, TilePiece};
use crate::measure::MarkerEvent;
use crate::observed;
use crate::paradigm::{Paradigm, Said};
use crate::programs::Program;
use bulkhead_abi::memory_map::{MEMORY_BASE, TILE_WINDOW_SHIFT, TILE_WINDOWS};
use bulkhead_abi::one_shot::{IMAGE_SIZE, PORT_SIZE, PORTS, PORTS_OFFSET, clock, port, table};
use bulkhead_machine::ledger::Ledger;
use bulkhead_machine::local_tile::Refusals;
use bulkhead_machine::machine::{Outcome, RunLimit};
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_report::result::{End, Incident};
use std::collections::BTreeMap;
use std::ops::Range;

/// What is checked, and which cores attack.
#[derive(Clone, Debug)]
pub struct Stand {
    /// The system as described.
    pub system: System,
    /// Cores that are checked; the host core, if there is one, is the last of them: whatever happens to it, it happens to all.
    pub victims: Vec<u16>,
    /// All others of the chip.
    pub attackers: Vec<u16>,
    /// What the cores start with; for attackers' cores, only what their guards admit.
    image: BootImage,
    /// For each victim, the layout of its memory.
    places: BTreeMap<u16, Vec<Place>>,
}

/// A part of a victim's memory.
#[derive(Clone, Debug)]
pub struct Place {
    /// What it is called.
    pub name: String,
    /// Offsets.
    pub range: Range<u64>,
    /// It does not change once the system runs.
    pub constant: bool,
}

/// What happened on the victims.
pub struct Seen {
    /// Their markers, from reset on.
    pub markers: Vec<MarkerEvent>,
    /// Victims and culprits of all waits.
    pub ledger: Ledger,
    /// Their memories at the end.
    pub memories: BTreeMap<u16, Vec<u8>>,
    /// What their consoles say, each line prefixed with `core N: `.
    pub console: String,
    /// What went wrong on them.
    pub incidents: Vec<Incident>,
    /// What guards refused.
    pub refused: Vec<(u16, Refusals)>,
    /// Instructions of the victims.
    pub instructions: u64,
    /// End in ticks.
    pub ticks: u64,
    /// A program ended the whole chip's run early, or an unhandled trap did.
    pub ended: Option<String>,
}

/// The address of a core's window.
pub fn window(system: &System, core: u16) -> u64 {
    TILE_WINDOWS + (u64::from(layout::number(system, core)) << TILE_WINDOW_SHIFT)
}

impl Stand {
    /// A system of this paradigm, whose tasks on these cores are checked.
    ///
    /// # Errors
    /// If it is of another paradigm, or does not fit.
    pub fn new(system: &System, victims: &[u16], programs: &[Program]) -> Result<Self, Error> {
        let mut system = system.clone();
        images::learn(&mut system, programs)?;
        let system = &system;
        let one_shot = of(system)?;
        let mut image = loaded(system, one_shot, programs)?;
        image.tiles.retain(|piece| victims.contains(&piece.tile));
        image.rings.retain(|(tile, _)| victims.contains(tile));
        image.starts.retain(|start| victims.contains(&start.tile));
        let tiles = system.platform.tiles.iter().map(|tile| tile.id);
        let places_of =
            |image: &BootImage, core: u16| Ok((core, places(system, one_shot, image, core)?));
        let all = victims.iter().map(|&core| places_of(&image, core));
        let mut places = all.collect::<Result<BTreeMap<_, _>, Error>>()?;
        let mut victims = victims.to_vec();
        if let Some(host) = one_shot.host {
            // It loads and reads the checked cores only: the adversaries on all others have no kernel and no console.
            host::hand_over(&mut image, system, one_shot, host, programs)?;
            places.extend([places_of(&image, host)?]);
            victims.push(host);
        }
        Ok(Self {
            system: system.clone(),
            attackers: tiles.filter(|tile| !victims.contains(tile)).collect(),
            places,
            victims,
            image,
        })
    }

    /// The layout of a victim's memory.
    pub fn places(&self, core: u16) -> &[Place] {
        self.places.get(&core).map_or(&[], Vec::as_slice)
    }

    /// Whether a core loads the others.
    pub fn has_host(&self) -> bool {
        self.system
            .one_shot
            .as_ref()
            .is_some_and(|one| one.host.is_some())
    }

    /// Ports with locks in a victim's memory, and whether an attacker's core may write each.
    pub fn ports(&self, core: u16) -> Vec<(u64, bool)> {
        let Ok(one_shot) = of(&self.system) else {
            return Vec::new();
        };
        let channels = one_shot.tasks.channels.iter().enumerate();
        let own = channels
            .filter(|(_, channel)| one_shot.core(channel.to) == core && channel.joins.is_none());
        own.map(|(index, _)| {
            let record = PORTS_OFFSET + one_shot.port(index) as u64 * PORT_SIZE;
            let mut writers = one_shot.tasks.sharing(index).into_iter();
            let from = |channel: usize| one_shot.core(one_shot.tasks.channels[channel].from);
            let is_open = writers.any(|one| self.attackers.contains(&from(one)));
            (record, is_open)
        })
        .collect()
    }
    /// Queues in a victim's memory that victims and attackers' cores write into: the offset of each record, and its places.
    pub fn shared_queues(&self, core: u16) -> Vec<(u64, u16)> {
        let Ok(one_shot) = of(&self.system) else {
            return Vec::new();
        };
        let ports = layout::data(&self.system, one_shot, core).into_iter();
        let shared = ports.filter(|&(port, _, _)| {
            let sharing = one_shot.tasks.sharing(port).into_iter();
            let mut cores = sharing.map(|one| one_shot.core(one_shot.tasks.channels[one].from));
            let first = cores.clone().any(|one| self.victims.contains(&one));
            first && cores.any(|one| self.attackers.contains(&one))
        });
        let records = shared.map(|(port, _, _)| {
            let record = PORTS_OFFSET + one_shot.port(port) as u64 * PORT_SIZE;
            (record, one_shot.slots(port))
        });
        let queues = records.filter(|one| one.1 > 0);
        queues.collect()
    }
}

fn of(system: &System) -> Result<&OneShot, Error> {
    let one_shot = system.one_shot.as_ref();
    one_shot.ok_or_else(|| Error::Machine(format!("{} has no one-shot tasks", system.name)))
}

/// The parts of a core's memory that would interest an attacker.
fn places(
    system: &System,
    one_shot: &OneShot,
    image: &BootImage,
    core: u16,
) -> Result<Vec<Place>, Error> {
    let mut all = Vec::new();
    let mut put = |name: &str, range: Range<u64>, constant: bool| {
        if !range.is_empty() {
            all.push(Place {
                name: name.to_owned(),
                range,
                constant,
            });
        }
    };
    let start = image.starts.iter().find(|start| start.tile == core);
    let of_core = image.tiles.iter().filter(|piece| piece.tile == core);
    let (mut end_of_code, mut end) = (0, 0);
    for piece in of_core {
        let begin = piece.address - MEMORY_BASE;
        let behind = begin + piece.bytes.len() as u64;
        if start.is_some_and(|start| (piece.address..).contains(&start.entry)) && begin == 0 {
            end_of_code = behind;
        } else if begin < table::POINTER {
            end = end.max(behind);
        }
    }
    let data = layout::data(system, one_shot, core);
    let table = word_of(image, core, table::POINTER).map_or(table::POINTER, |at| at - MEMORY_BASE);
    let first = data.iter().map(|one| one.1).min().unwrap_or(table);
    let ring = image.rings.iter().find(|(tile, _)| *tile == core);
    let ring = ring.map_or(first, |(_, at)| at - MEMORY_BASE);
    put("code", 0..end_of_code, true);
    put("stack and data", end_of_code..ring, false);
    put("console", ring..end.clamp(ring, first), false);
    put("data of ports", first..table, false);
    if one_shot.master(&system.platform).is_some() {
        // The times in the messages depend on everything that delays the start.
        let list = clock::RECORD + clock::SERVED;
        put("table of tasks and ports", table..clock::RECORD, true);
        put("messages with the time", clock::RECORD..list, false);
        put("list of cores", list..PORTS_OFFSET, true);
    } else {
        put("table of tasks and ports", table..PORTS_OFFSET, true);
    }
    let used = one_shot.on_core(core).into_iter();
    let used = used.map(|task| one_shot.inputs(task).len()).sum::<usize>() as u64;
    put(
        "records of ports",
        PORTS_OFFSET..PORTS_OFFSET + used * PORT_SIZE,
        false,
    );
    for number in 0..used {
        let record = PORTS_OFFSET + number * PORT_SIZE;
        let name = format!("state of port {number}");
        put(&name, record + port::STATE..record + port::HOLDER, true);
    }
    put(
        "unused records",
        PORTS_OFFSET + used * PORT_SIZE..PORTS_OFFSET + PORTS as u64 * PORT_SIZE,
        false,
    );
    Ok(all)
}

/// A word of what a core starts with.
fn word_of(image: &BootImage, core: u16, offset: u64) -> Option<u64> {
    let mut pieces = image.tiles.iter().filter(|piece| piece.tile == core);
    let at = MEMORY_BASE + offset;
    let piece = pieces.find(|piece| {
        let end = piece.address + piece.bytes.len() as u64;
        (piece.address..end).contains(&at)
    })?;
    let begin = usize::try_from(at - piece.address).ok()?;
    let word = piece.bytes.get(begin..begin + 8)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

/// A run to `until` in which each attacker follows its plan from `begin` on, both in ticks of the machine.
///
/// # Errors
/// If the chip does not accept it.
pub fn execute(
    stand: &Stand,
    plans: &[Plan],
    begin: Option<u64>,
    until: u64,
) -> Result<Seen, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let system = &stand.system;
    let mut image = stand.image.clone();
    let idle = Plan::default();
    for (number, &tile) in stand.attackers.iter().enumerate() {
        let plan = plans.get(number).unwrap_or(&idle);
        if plan.steps.is_empty() {
            continue;
        }
        // An attacker sleeps until its own timer shows this count.
        let count = system.platform.tile(tile).zip(begin);
        let count = count.map_or(NEVER, |(of, begin)| clock(&system.platform, of).time(begin));
        image.tiles.push(TilePiece {
            tile,
            address: MEMORY_BASE,
            bytes: adversary::program(plan, count, MEMORY_BASE),
        });
        image.starts.push(Start {
            tile,
            hart: 0,
            entry: MEMORY_BASE,
            arguments: [0, 0],
        });
    }
    let mut machine = boot::boot(&Room, system, &image)?;
    let outcome = machine.run(RunLimit { ticks: until }, None);
    let ended = match outcome {
        Outcome::Limit | Outcome::Idle { .. } => None,
        Outcome::Exit { tile, .. } => Some(format!("core {tile} ended the run of the chip")),
        Outcome::Unhandled { tile, trap, .. } => {
            Some(format!("core {tile}: {}", crate::trap::describe(&trap)))
        }
    };
    let mut markers = observed::markers(&machine);
    markers.retain(|marker| stand.victims.contains(&marker.tile));
    let mut memories = BTreeMap::new();
    for &core in &stand.victims {
        let mut memory = vec![0; IMAGE_SIZE as usize];
        machine
            .peek(core, MEMORY_BASE, &mut memory)
            .map_err(|error| failed(&error))?;
        memories.insert(core, memory);
    }
    let harts = machine.statistics().harts;
    let own = harts
        .iter()
        .filter(|hart| stand.victims.contains(&hart.tile));
    let console = Room.console(system, &image, &machine)?;
    let names = Room.names(system, &markers);
    let rings = machine.rings();
    let (starts, prospects) = (machine.starts(), machine.prospects());
    // If nothing more can ever happen, that is known until the end.
    let ticks = match outcome {
        Outcome::Idle { .. } => until,
        _ => machine.now(),
    };
    let said = Said {
        names: &names,
        console: &console,
        markers: &markers,
        running: &[],
        rings: &rings,
        refused: &[],
        starts: &starts,
        prospects: &prospects,
        until: ticks,
        end: &End::Duration,
        ended_by: None,
    };
    let mut incidents = Room.incidents(system, &said, &|_, _| None);
    incidents.retain(|one| stand.victims.contains(&one.tile));
    Ok(Seen {
        console,
        incidents,
        memories,
        ledger: machine.ledger().clone(),
        refused: machine.refused(),
        instructions: own.map(|hart| hart.counters.instructions).sum(),
        ticks,
        ended,
        markers,
    })
}
