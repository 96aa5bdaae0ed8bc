//! How systems of the one-shot RTOS are built, booted and read.
//!
//! Why it exists: it implements the seam [`Paradigm`] for this kind of system. What it deliberately does not know: other paradigms.

use super::console::{Ring, read};
use super::images::{self, Filled};
use super::{alive, clocks, forged, guard, host, jobs, layout, misused, results};
use crate::error::Error;
use crate::image::BootImage;
use crate::measure::MarkerEvent;
use crate::names::{Names, Naming};
use crate::observed::{console_text, printed};
use crate::paradigm::{BesideRun, Paradigm, Ran, Said};
use crate::places::place_of;
use crate::programs::{Library, Program};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::one_shot::{AFTER_LAST, IMAGE_SIZE, NESTED, NO_ROOM, marker};
use bulkhead_machine::machine::Machine;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::system::OneShot as Described;
use bulkhead_report::result::{AddedRun, End, Incident, IncidentKind, VariantResult};
use bulkhead_report::verdict::Promise;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The one-shot RTOS.
pub struct OneShot;

/// Systems of other paradigms do not get here.
fn described(system: &System) -> Result<&Described, Error> {
    let one_shot = system.one_shot.as_ref();
    one_shot.ok_or_else(|| Error::Machine(format!("{} has no one-shot tasks", system.name)))
}

impl Paradigm for OneShot {
    fn admit(&self, _: &str, _: &System) -> Result<(), Error> {
        Ok(())
    }

    /// Programs are parts of images, which [`Paradigm::build`] builds.
    fn programs<'s>(&self, _: &'s System) -> Vec<&'s str> {
        Vec::new()
    }

    fn build(&self, library: &Library, systems: &[&System]) -> Result<Vec<Program>, Error> {
        images::build(library, systems)
    }

    fn learn(&self, system: &mut System, programs: &[Program]) -> Result<(), Error> {
        images::learn(system, programs)
    }

    fn image(&self, system: &System, programs: &[Program]) -> Result<BootImage, Error> {
        let one_shot = described(system)?;
        let mut boot = loaded(system, one_shot, programs)?;
        if let Some(core) = one_shot.host {
            host::hand_over(&mut boot, system, one_shot, core, programs)?;
        }
        Ok(boot)
    }

    fn prepare(&self, _: &System, _: &mut Machine) -> Result<(), Error> {
        Ok(())
    }

    fn console_tile(&self, system: &System) -> u16 {
        let host = system.one_shot.as_ref().and_then(|one_shot| one_shot.host);
        host.unwrap_or(system.kernel_tile)
    }

    /// The contents of all cores' rings at the end, each line with its core; with a host core, what that has shown.
    fn console(
        &self,
        system: &System,
        image: &BootImage,
        machine: &Machine,
    ) -> Result<String, Error> {
        if let Some(host) = described(system)?.host {
            let console = printed(machine, host);
            return console.map_err(|error| Error::Machine(error.to_string()));
        }
        let mut text = String::new();
        for &(core, address) in &image.rings {
            let bytes = (MEMORY_BASE + IMAGE_SIZE).saturating_sub(address);
            let mut memory = vec![0; usize::try_from(bytes).unwrap_or(0)];
            machine
                .peek(core, address, &mut memory)
                .map_err(|error| Error::Machine(error.to_string()))?;
            let of_core = |tile: u16| tile == core;
            let marked = || machine.markers().iter().any(|one| of_core(one.tile));
            let is_started = || machine.prospects().iter().any(|one| of_core(one.tile));
            // Writing to a string cannot fail.
            let _ = match read(&memory) {
                Ring::Silent if marked() => {
                    writeln!(text, "core {core}: its console was written over")
                }
                Ring::Silent if is_started() => {
                    writeln!(text, "core {core}: its kernel made no console")
                }
                Ring::Silent => writeln!(text, "core {core}: never started"),
                Ring::Broken => writeln!(text, "core {core}: its console was written over"),
                Ring::Lines { lines, lost } => {
                    if lost > 0 {
                        let _ = writeln!(text, "core {core}: ({lost} older lines, modulo 65536)");
                    }
                    for line in lines {
                        let line = console_text(line.as_bytes()).replace('\n', "\\n");
                        let _ = writeln!(text, "core {core}: {line}");
                    }
                    Ok(())
                }
            };
        }
        Ok(text)
    }

    fn described(&self, _: &System, console: &str) -> String {
        console.to_owned()
    }

    fn names(&self, system: &System, _: &[MarkerEvent]) -> Names {
        Names::of(Cores(system.one_shot.clone()))
    }

    fn naming(&self, system: &System) -> Box<dyn Naming> {
        Box::new(Cores(system.one_shot.clone()))
    }

    fn incidents(
        &self,
        system: &System,
        seen: &Said<'_>,
        locate: &dyn Fn(&str, u64) -> Option<String>,
    ) -> Vec<Incident> {
        match described(system) {
            Ok(one_shot) => incidents(system, one_shot, seen, locate),
            Err(_) => Vec::new(),
        }
    }

    fn disown(
        &self,
        system: &System,
        programs: &[Program],
        markers: &mut Vec<MarkerEvent>,
    ) -> Vec<Incident> {
        match &system.one_shot {
            Some(one_shot) => forged(system, one_shot, programs, markers),
            None => Vec::new(),
        }
    }

    /// The description names tasks; a core is named by its number.
    fn image_of(&self, system: &System, name: &str) -> Option<String> {
        let one_shot = system.one_shot.as_ref()?;
        let mut tasks = one_shot.tasks.tasks.iter();
        let core = match tasks.position(|task| task.name == name) {
            Some(task) => one_shot.core(task),
            None => name.strip_prefix("core ")?.parse().ok()?,
        };
        let bounds = bulkhead_analysis::plan::one_shot::bounds(one_shot, &system.platform);
        Some(Filled::of(system, one_shot, &bounds, core).name())
    }

    fn bound(
        &self,
        runs: &[Ran<'_>],
        _: &[(BesideRun, Ran<'_>)],
        variants: &mut [VariantResult],
    ) -> Vec<AddedRun> {
        for (ran, variant) in runs.iter().zip(variants) {
            results::add(ran.system, &ran.seen.markers, variant);
        }
        Vec::new()
    }

    fn promises(&self, system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise> {
        results::promises(system, cycle, variant)
    }
}

/// The initial memory of all cores with tasks, whether the run's loader or a host core loads it.
pub(super) fn loaded(
    system: &System,
    one_shot: &Described,
    programs: &[Program],
) -> Result<BootImage, Error> {
    let bounds = bulkhead_analysis::plan::one_shot::bounds(one_shot, &system.platform);
    let mut boot = BootImage::default();
    for core in one_shot.cores() {
        let name = Filled::of(system, one_shot, &bounds, core).name();
        let program = programs.iter().find(|program| program.name == name);
        let program = program.ok_or_else(|| Error::Machine(format!("the {name} was not built")))?;
        layout::add(&mut boot, system, one_shot, core, program)?;
    }
    boot.guards = guard::rules(system, one_shot);
    Ok(boot)
}

/// Takes away the markers of kernels that no kernel made. Cores share images; a host core has one of its own.
fn forged(
    system: &System,
    one_shot: &Described,
    programs: &[Program],
    markers: &mut Vec<MarkerEvent>,
) -> Vec<Incident> {
    let bounds = bulkhead_analysis::plan::one_shot::bounds(one_shot, &system.platform);
    let named = |name: &str| programs.iter().find(|program| program.name == name);
    let of_tasks = one_shot.cores().into_iter();
    let of_tasks = of_tasks.map(|core| (core, Filled::of(system, one_shot, &bounds, core).name()));
    let of_host = one_shot
        .host
        .map(|core| (core, Filled::host(system).name()));
    let images: BTreeMap<u16, &Program> = of_tasks
        .chain(of_host)
        .filter_map(|(core, name)| Some((core, named(&name)?)))
        .collect();
    let mut places: BTreeMap<&str, forged::Places> = BTreeMap::new();
    let is_kernels = |core: u16, pc: u64| {
        images.get(&core).is_some_and(|program| {
            let places = places.entry(&program.name);
            let places = places.or_insert_with(|| forged::Places::of(&program.elf));
            places.are_kernels(pc)
        })
    };
    let locate = |core: u16, pc: u64| Some(place_of(images.get(&core)?, pc));
    forged::take(one_shot, markers, is_kernels, locate)
}

/// Tasks that stopped or exceeded their budget, items that found no place in a queue, cores that stopped or never started.
fn incidents(
    system: &System,
    one_shot: &Described,
    seen: &Said<'_>,
    locate: &dyn Fn(&str, u64) -> Option<String>,
) -> Vec<Incident> {
    let mut all = undelivered(system, one_shot, seen);
    all.extend(guard::refusals(one_shot, seen.refused));
    all.extend(clocks::incidents(system, one_shot, seen));
    all.extend(host::incidents(system, one_shot, seen));
    all.extend(exited(system, one_shot, seen));
    all.extend(misused::incidents(system, one_shot, seen.markers));
    for event in seen.markers {
        let (kind, what) = match event.kind {
            marker::STOPPED => (IncidentKind::Crash, "stopped"),
            marker::OVERRUN => (IncidentKind::Stopped, OVER),
            marker::RINGS => {
                let what = rung(event.tile, event.value, seen);
                // Reported once per core, however often it happened.
                let same = |one: &Incident| one.tile == event.tile && one.what == what;
                if !all.iter().any(same) {
                    all.push(Incident {
                        crash: None,
                        kind: IncidentKind::Stopped,
                        at: Some(event.at),
                        tile: event.tile,
                        application: format!("core {}", event.tile),
                        what,
                    });
                }
                continue;
            }
            _ => continue,
        };
        let (number, place) = match event.kind {
            marker::OVERRUN => (event.value & 0xFF, event.value >> 8),
            _ => (event.value, 0),
        };
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let task = one_shot.on_core(event.tile).get(number).copied();
        let name = match task {
            Some(task) => one_shot.tasks.tasks[task].name.clone(),
            None => format!("core {}", event.tile),
        };
        let told = format!("core {}: stopped: ", event.tile);
        let said = || {
            let lines = seen.console.lines();
            lines.filter_map(|line| line.strip_prefix(&told))
        };
        let of_task = task.and_then(|_| {
            let mut said = said();
            said.rfind(|line| line.starts_with(&format!("task {number}, ")))
        });
        // A handler that interrupted the task, or nobody, stops the core.
        let of_core = || said().rfind(|line| line.starts_with("core, "));
        let (said, task, name) = match event.kind {
            marker::STOPPED if of_task.is_none() => match of_core() {
                Some(line) => (Some(line), None, format!("core {}", event.tile)),
                None => (None, task, name),
            },
            marker::STOPPED => (of_task, task, name),
            _ => (None, task, name),
        };
        let what = match said {
            Some(line) => {
                let trap = trap(line).map(|trap| {
                    let waits = trap.value.and_then(|value| locate(&name, value));
                    let cause = match waits.is_some_and(|at| at.starts_with(IN_HANDLER)) {
                        true => "a handler of a timing event waits".to_owned(),
                        false => trap.cause,
                    };
                    match locate(&name, trap.pc) {
                        Some(place) => format!(": {cause} in {place}"),
                        None => format!(": {cause}"),
                    }
                });
                let closed = task.map_or_else(String::new, |task| closed(one_shot, task));
                format!("{what}: {line}{}{closed}", trap.unwrap_or_default())
            }
            None => match locate(&name, place).filter(|_| place != 0) {
                Some(place) => format!("{what}; at a tick it was in {place}"),
                None => what.to_owned(),
            },
        };
        // A task that is over its budget again and again is told once, with the first place.
        let same = |one: &Incident| {
            let is_over = what.starts_with(OVER) && one.what.starts_with(OVER);
            one.application == name && (one.what == what || is_over)
        };
        if all.iter().any(same) {
            continue;
        }
        all.push(Incident {
            crash: None,
            kind,
            at: Some(event.at),
            tile: event.tile,
            application: name,
            what,
        });
    }
    let dead = alive::incidents(system, one_shot, seen, locate, &all);
    all.extend(dead);
    for core in one_shot.cores() {
        let begun = |event: &MarkerEvent| event.tile == core && event.kind == marker::BEGIN;
        if !seen.markers.iter().any(begun) {
            all.push(Incident {
                crash: None,
                kind: IncidentKind::Unfinished,
                at: None,
                tile: core,
                application: format!("core {core}"),
                what: "no job of its tasks ever began".to_owned(),
            });
        }
    }
    all
}

/// A described system should end only with its duration, but each core of a platform with an exit device can end the run of the chip.
fn exited(system: &System, one_shot: &Described, seen: &Said<'_>) -> Option<Incident> {
    let (End::Exit { code }, Some(owner)) = (seen.end, seen.ended_by) else {
        return None;
    };
    let tasks = one_shot.on_core(owner.tile).into_iter();
    let tasks: Vec<String> = tasks
        .map(|task| format!("`{}`", one_shot.tasks.tasks[task].name))
        .collect();
    let of = match tasks.is_empty() {
        true => "no task".to_owned(),
        false => tasks.join(", "),
    };
    Some(Incident {
        crash: None,
        kind: IncidentKind::Unfinished,
        at: None,
        tile: owner.tile,
        application: format!("core {}", owner.tile),
        what: format!(
            "it wrote to the exit device with code {code} and so ended the run of all cores before its duration of {} was over; this core runs {of}. A described \
             system ends with its duration: no task writes to that device",
            system.duration
        ),
    })
}

/// What is said of a job that has had more than its budget.
const OVER: &str =
    "over its budget: a job took longer than its cost, its waits and the kernel's interrupts";

/// Whose writes fail from now on, because the reader has stopped.
fn closed(one_shot: &Described, task: usize) -> String {
    let inputs: Vec<String> = one_shot
        .inputs(task)
        .into_iter()
        .flat_map(|port| one_shot.tasks.sharing(port))
        .map(|channel| &one_shot.tasks.channels[channel])
        .map(|channel| {
            let writer = &one_shot.tasks.tasks[channel.from];
            format!(
                "`{}` of `{}` on core {}",
                channel.name,
                writer.name,
                one_shot.core(channel.from)
            )
        })
        .collect();
    match inputs.is_empty() {
        true => String::new(),
        false => format!("; {} has no reader any more", inputs.join(", ")),
    }
}

/// A core that stopped accepting rings in some tick. Its kernel cannot know which core rang, but the machine does.
fn rung(core: u16, limit: u64, seen: &Said<'_>) -> String {
    let mut by: Vec<(u64, u16)> = seen
        .rings
        .iter()
        .filter(|(tile, _, _)| *tile == core)
        .map(|(_, by, count)| (*count, *by))
        .collect();
    by.sort_by_key(|(count, tile)| (std::cmp::Reverse(*count), *tile));
    let by: Vec<String> = by
        .iter()
        .map(|(count, by)| format!("core {by} {count} times"))
        .collect();
    format!(
        "its doorbell rang more than {limit} times in a tick, and was masked until the next tick; it was rung by {}",
        match by.is_empty() {
            true => "itself".to_owned(),
            false => by.join(", "),
        }
    )
}

/// Where a handler of a timing event in Ada that waits tries to keep its address: the run time's function that calls handlers.
const IN_HANDLER: &str = "bulkhead_ada_fire";

/// What a kernel's line reports of a trap.
struct Trap {
    cause: String,
    pc: u64,
    /// Where it wanted to write and must not.
    value: Option<u64>,
}

/// The trap, if a kernel's line reports one: `task 3, cause 7 at 0x80001234, value 0x0`.
fn trap(line: &str) -> Option<Trap> {
    const STORE: u64 = 7;
    let (number, rest) = line.split_once(", cause ")?.1.split_once(" at 0x")?;
    let (pc, rest) = rest.split_once(',')?;
    let pc = u64::from_str_radix(pc, 16).ok()?;
    let number = number.parse().ok()?;
    let value = rest.split_once("value 0x").filter(|_| number == STORE);
    let value = value.and_then(|one| u64::from_str_radix(one.1, 16).ok());
    let cause = match number {
        NO_ROOM => "less stack is left than an interrupt needs".to_owned(),
        NESTED => "a protected operation calls its own object".to_owned(),
        AFTER_LAST => "Constraint_Error: the time of a timing event is after Time_Last".to_owned(),
        cause => crate::trap::cause(cause),
    };
    Some(Trap { cause, pc, value })
}

/// What channels report: queues without a place for an item, and slices or results that did not arrive. Each is reported once, with the
/// number of times.
fn undelivered(system: &System, one_shot: &Described, seen: &Said<'_>) -> Vec<Incident> {
    let read = jobs::read(system, one_shot, seen.markers, 1, seen.until);
    let mut all = Vec::new();
    for (index, channel) in one_shot.tasks.channels.iter().enumerate() {
        let vain = read.vain[index];
        if vain > 0 {
            let [writer, reader] = [channel.from, channel.to].map(|end| &one_shot.tasks.tasks[end]);
            all.push(Incident {
                crash: None,
                kind: IncidentKind::Stopped,
                at: None,
                tile: one_shot.core(channel.to),
                application: reader.name.clone(),
                what: format!(
                    "{vain} jobs waited for `{}` in vain: `{}` on core {} sent nothing within {}",
                    channel.name,
                    writer.name,
                    one_shot.core(channel.from),
                    reader.wait
                ),
            });
        }
        let lost = read.queues[index].lost;
        if lost > 0 {
            let queue = one_shot.tasks.port_of(index);
            let name = &one_shot.tasks.channels[queue].name;
            let places = one_shot.slots(queue);
            all.push(Incident {
                crash: None,
                kind: IncidentKind::Stopped,
                at: None,
                tile: one_shot.core(channel.from),
                application: one_shot.tasks.tasks[channel.from].name.clone(),
                what: format!("{lost} items did not fit into the queue {name}, which has {places} places; its writer got an error"),
            });
        }
    }
    all
}

/// Names: a core by its number, with its tasks.
#[derive(Clone, Debug)]
struct Cores(Option<Described>);

impl Naming for Cores {
    fn hear(&mut self, _: u16, _: u16, _: u64) -> Option<(Owner, String)> {
        None
    }

    fn on_tile(&self, tile: u16) -> Vec<String> {
        let Some(one_shot) = &self.0 else {
            return Vec::new();
        };
        let here = one_shot.on_core(tile).into_iter();
        here.map(|task| one_shot.tasks.tasks[task].name.clone())
            .collect()
    }

    fn owner(&self, owner: Owner) -> String {
        format!("core {}", owner.tile)
    }
}
