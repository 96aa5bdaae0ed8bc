//! One run of the check: a domain beside attackers or beside sleepers, with the timelines of its tiles.
//!
//! What it deliberately does not know: what the runs are compared for.

use super::plan::Plan;
use crate::collect::ticks;
use crate::error::Error;
use crate::measure::MarkerEvent;
use crate::programs::Program;
use crate::quiet;
use crate::run;
use crate::session::{self, Counts};
use bulkhead_abi::dtu::{IDLE_ACTIVITY, TILEMUX_ACTIVITY};
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_machine::dram::BankActivity;
use bulkhead_machine::dtu::Observation;
use bulkhead_machine::ledger::Ledger;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::LinkActivity;
use bulkhead_machine::observe::{HartState, Marker, Observer};
use bulkhead_machine::timeline::Timeline;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::system::Domain;
use std::collections::BTreeMap;

/// Ends of a run by software that are passed over: the comparison goes on to a fixed moment.
const ENDS_MAX: u32 = 16;

/// A domain and those who take the places of all others.
#[derive(Clone, Debug)]
pub struct Stand {
    /// The system, with adversaries in the places of others.
    pub system: System,
    /// Index of the domain.
    pub domain: usize,
    /// Indices of the attackers among the applications.
    pub attackers: Vec<usize>,
}

impl Stand {
    /// Puts adversaries into the places of all applications of other domains. They keep tiles, memory, limits and gates,
    /// because that is what an attacker in their place would have.
    pub fn new(system: &System, domain: usize) -> Self {
        let mut system = system.clone();
        let domains: Vec<usize> = system.apps.iter().map(|app| app.domain).collect();
        let attackers = quiet::others(&mut system, |app| domains[app] == domain);
        Self {
            system,
            domain,
            attackers,
        }
    }

    /// The domain.
    pub fn domain(&self) -> &Domain {
        &self.system.domains[self.domain]
    }

    /// Whether an application belongs to the domain.
    pub fn is_own(&self, app: usize) -> bool {
        self.system.apps[app].domain == self.domain
    }

    /// Tiles of the domain, each once.
    pub fn tiles(&self) -> Vec<u16> {
        let own = self.system.apps.iter();
        let mut tiles: Vec<u16> = own
            .filter(|app| app.domain == self.domain)
            .map(|app| app.tile)
            .collect();
        tiles.sort_unstable();
        tiles.dedup();
        tiles
    }

    /// The system with these plans.
    fn with(&self, plans: &[Plan], start: u32) -> System {
        let mut system = self.system.clone();
        for (index, plan) in self.attackers.iter().zip(plans) {
            system.apps[*index].arguments[0].value = plan.text(start);
        }
        system
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Experiment<'a> {
    /// The domain.
    pub stand: &'a Stand,
    /// Plans of the attackers; none: they sleep.
    pub plans: Option<&'a [Plan]>,
    /// Start of the attack in microseconds.
    pub start: u32,
    /// End of the comparison in ticks.
    pub until: u64,
    /// Count transactions in slices of this length in ticks, that begin so many ticks before multiples of it.
    pub slice: Option<(u64, u64)>,
    /// Strides of timelines to keep in full.
    pub record: BTreeMap<u16, u64>,
}

/// What happened from the start of the attack on.
pub struct Seen {
    /// Timelines of the domain's tiles, from reset on.
    pub timelines: BTreeMap<u16, Timeline>,
    /// Markers, from reset on.
    pub markers: Vec<MarkerEvent>,
    /// Waits.
    pub ledger: Ledger,
    /// Instructions of the domain's tiles.
    pub instructions: u64,
    /// Console of the kernel, from reset on.
    pub console: String,
    /// End in ticks.
    pub ticks: u64,
    /// Transactions in each slice, if they were asked for, with its begin.
    pub slices: Vec<(u64, Counts)>,
}

/// Notices when activities run for the first time.
struct Starts {
    wanted: usize,
    first: BTreeMap<Owner, u64>,
}

impl Observer for Starts {
    fn unit(&mut self, _: u64, _: u16, _: &Observation) {}
    fn link(&mut self, _: &LinkActivity) {}
    fn bank(&mut self, _: u16, _: &BankActivity) {}
    fn hart(&mut self, _: u64, _: u16, _: HartState) {}
    fn activity(&mut self, at: u64, owner: Owner) {
        if ![IDLE_ACTIVITY, TILEMUX_ACTIVITY, KERNEL_ACTIVITY].contains(&owner.activity) {
            self.first.entry(owner).or_insert(at);
        }
    }
    fn marker(&mut self, _: &Marker) {}
    /// The moment at which the last of the wanted activities ran for the first time; nothing before.
    fn bytes(&self) -> Vec<u8> {
        let mut moments: Vec<u64> = self.first.values().copied().collect();
        moments.sort_unstable();
        match moments.get(self.wanted - 1) {
            Some(moment) => moment.to_le_bytes().to_vec(),
            None => Vec::new(),
        }
    }
}

fn boot(system: &System, programs: &[Program]) -> Result<Machine, Error> {
    let image = run::image(system, programs)?;
    session::boot(system, &image)
}

/// Runs to `until`. Software that ends the run does not end the comparison.
fn run_to(machine: &mut Machine, until: u64) -> Result<(), Error> {
    let mut ends = 0;
    while machine.now() < until {
        match machine.run(RunLimit { ticks: until }, None) {
            Outcome::Exit { .. } if ends < ENDS_MAX => ends += 1,
            Outcome::Unhandled { tile, trap, .. } => {
                let what = crate::trap::describe(&trap);
                return Err(Error::Machine(format!("tile {tile}: {what}")));
            }
            Outcome::Limit => {}
            Outcome::Exit { .. } | Outcome::Idle { .. } => break,
        }
    }
    Ok(())
}

/// The moment, in microseconds, at which every application and manager runs. The attack begins there, so that the start
/// of the system, which kernel and managers do for everybody, is the same in every run.
pub fn start_of(stand: &Stand, programs: &[Program]) -> Result<u32, Error> {
    let mut machine = boot(&stand.system, programs)?;
    let per_second = stand.system.platform.ticks_per_second();
    let step = per_second / 1000;
    let most = ticks(stand.system.duration, per_second);
    machine.set_observer(Some(Box::new(Starts {
        wanted: stand.system.apps.len() + stand.system.managers.len(),
        first: BTreeMap::new(),
    })));
    loop {
        let until = machine.now() + step;
        run_to(&mut machine, until)?;
        let observer = machine.take_observer();
        let bytes = observer.as_ref().map(|o| o.bytes()).unwrap_or_default();
        machine.set_observer(observer);
        if let Ok(moment) = <[u8; 8]>::try_from(bytes.as_slice()) {
            let microsecond = (per_second / 1_000_000).max(1);
            // A little later, so that who was started has also found out what it is.
            let start = (u64::from_le_bytes(moment) / microsecond + 100).next_multiple_of(100);
            return u32::try_from(start)
                .map_err(|_| Error::Machine("the system starts too late".to_owned()));
        }
        if machine.now() >= most || machine.now() + step / 2 < until {
            return Err(Error::input(
                format!(
                    "not all applications run after {} of simulated time",
                    crate::report::format::span(machine.now() as f64 * 1e6 / per_second as f64)
                ),
                "the check compares systems that have started: give a longer duration, or look at the console of \
                 `bulkhead run`",
            ));
        }
    }
}

/// Makes one run.
pub fn execute(experiment: &Experiment<'_>, programs: &[Program]) -> Result<Seen, Error> {
    let stand = experiment.stand;
    let system = match experiment.plans {
        Some(plans) => stand.with(plans, experiment.start),
        None => stand.system.clone(),
    };
    let mut machine = boot(&system, programs)?;
    let error = |error: bulkhead_machine::machine::MachineError| Error::Machine(error.to_string());
    let tiles = stand.tiles();
    for &tile in &tiles {
        let record = experiment.record.get(&tile).copied();
        machine.watch(tile, record).map_err(error)?;
    }
    let instructions = |machine: &Machine| -> u64 {
        let harts = machine.statistics().harts;
        let own = harts.iter().filter(|hart| tiles.contains(&hart.tile));
        own.map(|hart| hart.counters.instructions).sum()
    };
    let microsecond = system.platform.ticks_per_second() / 1_000_000;
    run_to(&mut machine, u64::from(experiment.start) * microsecond)?;
    machine.clear_ledger();
    let before = instructions(&machine);
    let mut slices = Vec::new();
    let mut counted = Counts::new();
    while let Some((length, early)) = experiment.slice {
        let begin = machine.now();
        let next = ((begin + early) / length + 1) * length - early;
        run_to(&mut machine, next.min(experiment.until))?;
        let now = session::counts(machine.ledger());
        slices.push((begin, session::difference(&counted, &now)));
        counted = now;
        if machine.now() >= experiment.until || machine.now() == begin {
            break;
        }
    }
    run_to(&mut machine, experiment.until)?;
    let mut timelines = BTreeMap::new();
    for &tile in &tiles {
        let timeline = machine.timeline(tile).map_err(error)?;
        timelines.insert(tile, timeline.cloned().unwrap_or_default());
    }
    let console = machine.console(system.kernel_tile).map_err(error)?;
    Ok(Seen {
        timelines,
        markers: session::markers(&machine),
        ledger: machine.ledger().clone(),
        instructions: instructions(&machine) - before,
        console: String::from_utf8_lossy(console).into_owned(),
        ticks: machine.now(),
        slices,
    })
}
