//! The seam between what every run does and what one kind of system does in its own way.
//!
//! Why it exists: five systems are run in the same way: build, lay out, boot, watch, read, bound, judge. What differs is behind this
//! trait, with a folder for each kind (`tiled/`, `oneshot/`, `bare/`). What it deliberately does not know: any kernel. These folders
//! never use each other.

use crate::error::Error;
use crate::image::BootImage;
use crate::measure::{Lives, MarkerEvent};
use crate::names::{Names, Naming};
use crate::observed::{Observed, console_text};
use crate::programs::{Library, Program};
use bulkhead_machine::crash::Running;
use bulkhead_machine::local_tile::{Prospect, Refusals, Started};
use bulkhead_machine::machine::Machine;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_report::result::{AddedRun, End, Incident, QuotaUse, VariantResult};
use bulkhead_report::verdict::Promise;

/// How systems of one kind are laid out, booted and read.
pub trait Paradigm: Sync {
    /// Refuses a system that must not be run. `name`: the name of its variant, for the message.
    ///
    /// # Errors
    /// Which promise the system cannot keep.
    fn admit(&self, name: &str, system: &System) -> Result<(), Error>;

    /// Refuses a system whose applications have too little memory, as far as this shows without building their programs. Checks a peer, too.
    ///
    /// # Errors
    /// Names the application, and how much it needs.
    fn fits(&self, _: &System, _: &Library) -> Result<(), Error> {
        Ok(())
    }

    /// The programs of a system's own chip. The first one is what runs where there is no application: faults there end the run.
    fn programs<'s>(&self, system: &'s System) -> Vec<&'s str>;

    /// Builds what only these systems need, besides [`Paradigm::programs`].
    ///
    /// # Errors
    /// If it does not build.
    fn build(&self, _: &Library, _: &[&System]) -> Result<Vec<Program>, Error> {
        Ok(Vec::new())
    }

    /// Adds to a system what only its built programs say. Must come before [`Paradigm::image`].
    ///
    /// # Errors
    /// If a program is missing or cannot be read.
    fn learn(&self, _: &mut System, _: &[Program]) -> Result<(), Error> {
        Ok(())
    }

    /// The memory contents of a system's own chip when it starts, and which harts start.
    ///
    /// # Errors
    /// If it does not fit.
    fn image(&self, system: &System, programs: &[Program]) -> Result<BootImage, Error>;

    /// Does to a chip, before its harts start, what a boot ROM would.
    ///
    /// # Errors
    /// If the machine refuses it.
    fn prepare(&self, system: &System, machine: &mut Machine) -> Result<(), Error>;

    /// The tile whose console is the system's.
    fn console_tile(&self, system: &System) -> u16;

    /// The output of a chip: from the console of [`Paradigm::console_tile`], or from where its image keeps it.
    ///
    /// # Errors
    /// If the machine has no such console.
    fn console(&self, system: &System, _: &BootImage, machine: &Machine) -> Result<String, Error> {
        let console = machine.console(self.console_tile(system));
        let console = console.map_err(|error| Error::Machine(error.to_string()))?;
        Ok(console_text(console))
    }

    /// The tile of the console, and the bytes that it printed and the host did not keep, if some; for consoles whose lines say what happened on
    /// the chip. The other ones end with a line of the host.
    fn unread(&self, _: &System, _: &Machine) -> Option<(u16, u64)> {
        None
    }

    /// The output of a chip, in a form for users: activities have the names of the description.
    fn described(&self, system: &System, console: &str) -> String;

    /// Names for everything that the machine numbers. `markers` are those of the run.
    fn names(&self, system: &System, markers: &[MarkerEvent]) -> Names;

    /// The same while it runs.
    fn naming(&self, system: &System) -> Box<dyn Naming>;

    /// The incidents: applications that stopped without success, and applications that had not finished when the run was cut off. `locate`
    /// says where in an application a program counter is.
    fn incidents(
        &self,
        system: &System,
        seen: &Said<'_>,
        locate: &dyn Fn(&str, u64) -> Option<String>,
    ) -> Vec<Incident>;

    /// Takes away the markers that only a kernel makes and that something else made, and tells of them.
    fn disown(&self, _: &System, _: &[Program], _: &mut Vec<MarkerEvent>) -> Vec<Incident> {
        Vec::new()
    }

    /// The name of the program of a task or core, if those are not applications.
    fn image_of(&self, _: &System, _: &str) -> Option<String> {
        None
    }

    /// The name of what runs on a hart without an activity; a trap there ends the run. `None`: the first of [`Paradigm::programs`].
    fn outside(&self, _: &System, _: Owner) -> Option<String> {
        None
    }

    /// How far a program was moved from the addresses of its file when it was loaded for an application, modulo 2^64.
    fn moved(&self, _: &System, _: &str, _: &Program) -> u64 {
        0
    }

    /// How long each activity lived.
    fn lives(&self, _: &System, seen: &Observed) -> Lives {
        Lives::until(seen.ticks)
    }

    /// How much of each quota was used. Empty without a kernel that keeps accounts.
    fn quotas(&self, _: &System, _: &str) -> Vec<QuotaUse> {
        Vec::new()
    }

    /// When the kernel began each piece of its work, and which. For measurements.
    fn work(&self, _: &System, _: &[MarkerEvent]) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// The harts whose requests to memory a bound compares, line by line, with those of a run alone.
    fn compared(&self, _: &System) -> Vec<Owner> {
        Vec::new()
    }

    /// Whether this run can serve a bound, so that its transactions are kept.
    fn serves_bounds(&self, _: &System) -> bool {
        false
    }

    /// Runs that bounds need beside the chosen ones (the first argument); the second: every variant of the system; the third: whether the chosen
    /// runs are watched, so that they can serve themselves.
    fn besides(&self, _: &[(String, System)], _: &[(String, System)], _: bool) -> Vec<BesideRun> {
        Vec::new()
    }

    /// Adds bounds to the results. Returns what the additional runs were for.
    fn bound(
        &self,
        runs: &[Ran<'_>],
        besides: &[(BesideRun, Ran<'_>)],
        variants: &mut [VariantResult],
    ) -> Vec<AddedRun>;

    /// The promises of a variant, and whether they held. `cycle`: ticks per cycle of the reference clock.
    fn promises(&self, system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise>;
}

/// The reports of a chip through console and markers, and how it ended.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The names behind the numbers.
    pub names: &'a Names,
    /// The console's output.
    pub console: &'a str,
    /// Every marker.
    pub markers: &'a [MarkerEvent],
    /// The activities that were in user mode at the end.
    pub running: &'a [Running],
    /// For each doorbell rung by another tile: the tile rung, the tile that rang, and how often.
    pub rings: &'a [(u16, u16, u64)],
    /// The requests that guards of local memories refused: the tile with the guard, and what it refused to another tile.
    pub refused: &'a [(u16, Refusals)],
    /// Harts that a tile of the chip started by a write, and how often.
    pub starts: &'a [Started],
    /// What may still happen on each hart of a mesh.
    pub prospects: &'a [Prospect],
    /// Why the run ended.
    pub end: &'a End,
    /// The moment until which it is known what happened: the end of the run, or of its described duration if nothing more could ever happen.
    pub until: u64,
    /// The hart that ended the run, if one did.
    pub ended_by: Option<Owner>,
}

impl<'a> Said<'a> {
    /// What was seen of a chip. `until`: see [`Said::until`].
    pub fn of(names: &'a Names, seen: &'a Observed, end: &'a End, until: u64) -> Self {
        Self {
            names,
            console: &seen.console,
            markers: &seen.markers,
            running: &seen.running,
            rings: &seen.rings,
            refused: &seen.refused,
            starts: &seen.starts,
            prospects: &seen.prospects,
            end,
            until,
            ended_by: seen.ended_by,
        }
    }
}

/// A run that only serves the bound of a flow.
#[derive(Clone, Debug)]
pub struct BesideRun {
    /// The flow.
    pub flow: String,
    /// Its description, for readers.
    pub about: String,
    /// The system to run. Its transactions are kept.
    pub system: System,
}

/// A finished run, as seen by bounds.
pub struct Ran<'a> {
    /// The system that was run.
    pub system: &'a System,
    /// The names behind the numbers.
    pub names: &'a Names,
    /// The observations.
    pub seen: &'a Observed,
}
