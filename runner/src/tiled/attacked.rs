//! One run of the check: a domain beside attackers or sleepers, on its own chip and on the chip at the other end of its cables, with the
//! timelines of the domain's tiles.
//!
//! What it deliberately does not know: what the runs are compared for.

use super::Tiled;
use crate::chips::{Chips, images};
use crate::collect::ticks;
use crate::error::Error;
use crate::measure::MarkerEvent;
use crate::observed;
use crate::programs::Program;
use crate::tiled::attack::{Act, NEVER};
use crate::tiled::catalogue::Can;
use crate::tiled::held;
use crate::tiled::names::described;
use crate::tiled::quiet;
use bulkhead_abi::dtu::{IDLE_ACTIVITY, TILEMUX_ACTIVITY};
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_machine::dram::BankActivity;
use bulkhead_machine::dtu::Observation;
use bulkhead_machine::hart::UnhandledTrap;
use bulkhead_machine::ledger::Ledger;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::LinkActivity;
use bulkhead_machine::observe::{HartState, Marker, Observer};
use bulkhead_machine::timeline::Timeline;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::system::{App, CableEnd, Domain};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum number of software-requested ends that are passed over: the comparison continues to a fixed moment.
const ENDS_MAX: u32 = 16;
/// The same for the second chip, over the whole run.
const OTHER_ENDS_MAX: u32 = 64;

/// Attacks begin at multiples of this, in microseconds.
const GRID: u64 = 100;

/// Where an application is: on the system's own chip (0) or on its peer's (1), and its index among the applications there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The chip.
    pub chip: usize,
    /// The application.
    pub app: usize,
}

/// A domain, and the programs that replace all others, on all chips.
#[derive(Clone, Debug)]
pub struct Stand {
    /// The system with its peer, with adversaries in place of the others.
    pub whole: System,
    /// The same as described.
    described: System,
    /// The chip that the domain is on: 0, or 1 for the peer's.
    pub chip: usize,
    /// Index of the domain among those of its chip.
    pub domain: usize,
    /// Where the attackers are.
    pub attackers: Vec<Place>,
}

/// The system of a chip: the peer's if the chip is 1 and there is a peer.
pub fn on_chip(whole: &System, chip: usize) -> &System {
    match &whole.peer {
        Some(peer) if chip > 0 => &peer.system,
        _ => whole,
    }
}

/// Changes the systems of all chips.
fn on_each_chip(whole: &mut System, mut change: impl FnMut(usize, &mut System)) {
    change(0, whole);
    if let Some(peer) = &mut whole.peer {
        change(1, &mut peer.system);
    }
}

/// The driver of a network card knows its own address and its neighbours'; so does an attacker in its place.
const CARD_ARGUMENTS: [&str; 2] = ["address", "neighbours"];

impl Stand {
    /// Replaces all applications of other domains with adversaries. They keep tiles, memory, limits and gates, because an attacker in
    /// their place would have them; and a network card with the addresses that its driver knows.
    pub fn new(system: &System, chip: usize, domain: usize) -> Self {
        let mut whole = system.clone();
        let mut attackers = Vec::new();
        on_each_chip(&mut whole, |at, here| {
            let before = here.apps.clone();
            let is_own = |app: usize| at == chip && before[app].domain == domain;
            let replaced = quiet::others(here, is_own);
            for &app in &replaced {
                let attacker = &mut here.apps[app];
                if attacker.device {
                    attacker.program = quiet::ADVERSARY_WITH_CARD.to_owned();
                    let known = before[app].arguments.iter();
                    let known = known.filter(|a| CARD_ARGUMENTS.contains(&a.name.as_str()));
                    attacker.arguments.extend(known.cloned());
                }
                // A chip without a foreground application would end immediately.
                attacker.background = at == chip;
            }
            attackers.extend(replaced.into_iter().map(|app| Place { chip: at, app }));
        });
        Self {
            whole,
            described: system.clone(),
            chip,
            domain,
            attackers,
        }
    }

    /// The system of the domain's chip.
    pub fn system(&self) -> &System {
        on_chip(&self.whole, self.chip)
    }

    /// The domain.
    pub fn domain(&self) -> &Domain {
        &self.system().domains[self.domain]
    }

    /// Name of the chip, if there are two.
    pub fn chip_name(&self) -> Option<&str> {
        chip_name(&self.whole, self.chip)
    }

    /// Name of the domain; for the peer's domains, preceded by the peer's name.
    pub fn label(&self) -> String {
        label(&self.whole, self.chip, self.domain)
    }

    /// Name of an application; for those of the other chip, preceded by its name.
    pub fn name(&self, place: Place) -> String {
        let name = &on_chip(&self.whole, place.chip).apps[place.app].name;
        match chip_name(&self.whole, place.chip) {
            Some(chip) if place.chip != self.chip => format!("{chip}/{name}"),
            _ => name.clone(),
        }
    }

    /// Whether an application of the domain's chip belongs to the domain.
    pub fn is_own(&self, app: usize) -> bool {
        self.system().apps[app].domain == self.domain
    }

    /// Which attackers have a network card.
    pub fn cards(&self) -> Vec<bool> {
        self.can().iter().map(|can| can.card).collect()
    }

    /// The resources of each attacker that a program of the catalog may need.
    pub fn can(&self) -> Vec<Can> {
        let attackers = self.attackers.iter();
        let app = |place: &Place| &on_chip(&self.whole, place.chip).apps[place.app];
        attackers.map(|place| Can::new(app(place))).collect()
    }

    /// The described program of an attacker's place.
    pub fn own_program(&self, place: Place) -> &str {
        &on_chip(&self.described, place.chip).apps[place.app].program
    }

    /// Tiles of the domain, without duplicates.
    pub fn tiles(&self) -> Vec<u16> {
        let own = self.system().apps.iter();
        let mut tiles: Vec<u16> = own
            .filter(|app| app.domain == self.domain)
            .map(|app| app.tile)
            .collect();
        tiles.sort_unstable();
        tiles.dedup();
        tiles
    }

    /// The sender of the frames that reach the network card of a tile of the domain's chip over its cable, unless that is the domain
    /// itself.
    pub fn neighbour(&self, tile: u16) -> Option<String> {
        let other = chip_name(&self.whole, 1 - self.chip.min(1)).unwrap_or_default();
        self.whole.cables.iter().find_map(|cable| match cable.to {
            CableEnd::Peer(there) => {
                let here = if self.chip == 0 { cable.from } else { there };
                (here == tile).then(|| other.to_owned())
            }
            CableEnd::Here(to) => {
                let far = match tile {
                    _ if self.chip != 0 => return None,
                    tile if tile == cable.from => to,
                    tile if tile == to => cable.from,
                    _ => return None,
                };
                let mut drivers = self.system().apps.iter().enumerate();
                let driver = drivers.find(|(_, app)| app.tile == far && app.device);
                let (_, app) = driver.filter(|(index, _)| !self.is_own(*index))?;
                Some(app.name.clone())
            }
        })
    }

    /// Whether another domain's frames reach a network card of the domain.
    pub fn is_reached_by_frames(&self) -> bool {
        let own = self.system().apps.iter().enumerate();
        own.filter(|(index, app)| app.device && self.is_own(*index))
            .any(|(_, app)| self.neighbour(app.tile).is_some())
    }

    /// The system in which the attackers do this from a moment on, in microseconds, and the programs that are held back until then.
    fn with(
        &self,
        acts: &[Act],
        begin: u32,
        programs: &[Program],
    ) -> Result<(System, Vec<Program>), Error> {
        let mut whole = self.whole.clone();
        let mut held: Vec<String> = Vec::new();
        let mut hold = |app: &mut App| {
            let known = held.iter().position(|name| *name == app.program);
            let number = known.unwrap_or_else(|| {
                held.push(app.program.clone());
                held.len() - 1
            });
            app.program = held_name(number);
        };
        on_each_chip(&mut whole, |chip, here| {
            let described = on_chip(&self.described, chip);
            let attackers = self.attackers.iter().zip(acts);
            for (place, act) in attackers.filter(|(place, _)| place.chip == chip) {
                let app = &mut here.apps[place.app];
                match act {
                    Act::Plan(plan) => app.arguments[0].value = plan.text(begin),
                    // Unchanged, except that the run does not wait for it.
                    Act::Own => {
                        let background = app.background;
                        *app = described.apps[place.app].clone();
                        app.background = background;
                        hold(app);
                    }
                    Act::Program(program) => {
                        program.put(app);
                        hold(app);
                    }
                }
            }
        });
        let held = held.iter().enumerate().map(|(number, name)| {
            let mut built = programs.iter();
            let program = built.find(|program| program.name == *name);
            let program = program
                .ok_or_else(|| Error::Machine(format!("the program {name} was not built")))?;
            held::back(program, held_name(number), begin)
        });
        let mut programs = programs.to_vec();
        for program in held {
            programs.push(program?);
        }
        Ok((whole, programs))
    }
}

/// Name of a program that is held back. No other program has such a name.
fn held_name(number: usize) -> String {
    format!("held:{number}")
}

/// Name of a chip, if there are two.
pub fn chip_name(whole: &System, chip: usize) -> Option<&str> {
    let peer = whole.peer.as_ref()?;
    Some(if chip == 0 { &whole.name } else { &peer.name })
}

/// Name of a domain; for the peer's domains, preceded by the peer's name.
pub fn label(whole: &System, chip: usize, domain: usize) -> String {
    let name = &on_chip(whole, chip).domains[domain].name;
    match &whole.peer {
        Some(peer) if chip > 0 => format!("{}/{name}", peer.name),
        _ => name.clone(),
    }
}

/// The run to make.
#[derive(Clone, Debug)]
pub struct Experiment<'a> {
    /// The domain.
    pub stand: &'a Stand,
    /// The actions of the attackers; `None`: they sleep.
    pub acts: Option<&'a [Act]>,
    /// The moment at which they begin, in microseconds; [`NEVER`]: they are loaded but never begin.
    pub begin: u32,
    /// Start of the comparison in microseconds.
    pub start: u32,
    /// End of the comparison in ticks.
    pub until: u64,
    /// The ledger keeps every transaction.
    pub transactions: bool,
    /// Strides of timelines to keep in full.
    pub record: BTreeMap<u16, u64>,
}

/// The observations from the start of the attack on.
pub struct Seen {
    /// Timelines of the domain's tiles, from reset on.
    pub timelines: BTreeMap<u16, Timeline>,
    /// Markers, from reset on.
    pub markers: Vec<MarkerEvent>,
    /// Tiles with more markers than are kept, and how many of each were dropped.
    pub unkept: Vec<(u16, u64)>,
    /// Waits, and transactions if requested.
    pub ledger: Ledger,
    /// Instructions of the domain's tiles.
    pub instructions: u64,
    /// Console of the kernel, from reset on.
    pub console: String,
    /// End in ticks.
    pub ticks: u64,
    /// An unhandled trap on any chip: nothing came after it.
    pub trapped: Option<String>,
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
    fn hart(&mut self, _: u64, _: (u16, usize), _: HartState) {}
    fn activity(&mut self, at: u64, owner: Owner) {
        if ![IDLE_ACTIVITY, TILEMUX_ACTIVITY, KERNEL_ACTIVITY].contains(&owner.activity) {
            self.first.entry(owner).or_insert(at);
        }
    }
    fn marker(&mut self, _: &Marker) {}
    /// The moment at which the last of the wanted activities ran for the first time; empty before.
    fn bytes(&self) -> Vec<u8> {
        let mut moments: Vec<u64> = self.first.values().copied().collect();
        moments.sort_unstable();
        match moments.get(self.wanted - 1) {
            Some(moment) => moment.to_le_bytes().to_vec(),
            None => Vec::new(),
        }
    }
}

fn boot(system: &System, programs: &[Program]) -> Result<Chips, Error> {
    let (image, peer_image) = images(&Tiled, system, programs)?;
    let mut chips = Chips::boot(&Tiled, system, &image, peer_image.as_ref())?;
    chips.pass_over_ends(OTHER_ENDS_MAX);
    Ok(chips)
}

/// Runs to `until`, in ticks of the first chip. Software that ends the run does not end the comparison.
fn run_to(chips: &mut Chips, until: u64) -> Result<(), String> {
    run_counting(chips, until, &mut 0)
}

/// The same if software has already ended the run this often.
fn run_counting(chips: &mut Chips, until: u64, ends: &mut u32) -> Result<(), String> {
    let trapped = |tile: u16, trap: &UnhandledTrap| {
        let what = crate::trap::describe(trap);
        Err(format!("tile {tile}: {what}"))
    };
    while chips.first.now() < until {
        match chips.run(RunLimit { ticks: until }, &mut |_| {}) {
            Outcome::Exit { .. } if *ends < ENDS_MAX => *ends += 1,
            Outcome::Unhandled { tile, trap, .. } => return trapped(tile, &trap),
            Outcome::Limit => {}
            Outcome::Exit { .. } | Outcome::Idle { .. } => break,
        }
    }
    match chips.other_outcome() {
        Some(Outcome::Unhandled { tile, trap, .. }) => trapped(tile, &trap),
        _ => Ok(()),
    }
}

/// A system without attacks, up to the moment when everything runs.
pub struct Started {
    /// The moment, in microseconds, at which every application and manager runs, on every chip. The attack begins there, so that the start
    /// of the system, during which kernel and managers work for all, is the same in every run.
    pub start: u32,
    chips: Chips,
    whole: System,
    /// How often software has ended the run.
    ends: u32,
}

/// Watches the timelines of the domain's tiles. `record`: strides to keep in full.
fn watch(chips: &mut Chips, stand: &Stand, record: &BTreeMap<u16, u64>) -> Result<(), Error> {
    let machine = chips.machine_mut(stand.chip);
    for tile in stand.tiles() {
        let watched = machine.watch(tile, record.get(&tile).copied());
        watched.map_err(|error| Error::Machine(error.to_string()))?;
    }
    Ok(())
}

/// Runs until everything runs. `acts`: what the attackers are prepared for; they do not begin it yet.
pub fn start(stand: &Stand, acts: Option<&[Act]>, programs: &[Program]) -> Result<Started, Error> {
    let (whole, programs) = put(stand, acts, NEVER, programs)?;
    let mut chips = boot(&whole, &programs)?;
    watch(&mut chips, stand, &BTreeMap::new())?;
    let mut ends = 0;
    let per_second = stand.whole.platform.ticks_per_second();
    // The next moment at which the run is checked is never after the start, so the run can continue from there.
    let step = per_second / 1_000_000 * GRID;
    let most = ticks(stand.whole.duration, per_second);
    let all = 0..=usize::from(stand.whole.peer.is_some());
    for chip in all.clone() {
        let system = on_chip(&stand.whole, chip);
        let starts = Starts {
            wanted: system.apps.len() + system.managers.len(),
            first: BTreeMap::new(),
        };
        chips.machine_mut(chip).set_observer(Some(Box::new(starts)));
    }
    loop {
        let until = chips.first.now() + step;
        run_counting(&mut chips, until, &mut ends).map_err(Error::Machine)?;
        let mut moments = Vec::new();
        for chip in all.clone() {
            let per_second = on_chip(&stand.whole, chip).platform.ticks_per_second();
            let machine = chips.machine_mut(chip);
            let observer = machine.take_observer();
            let bytes = observer.as_ref().map(|o| o.bytes()).unwrap_or_default();
            machine.set_observer(observer);
            if let Ok(moment) = <[u8; 8]>::try_from(bytes.as_slice()) {
                let microsecond = (per_second / 1_000_000).max(1);
                moments.push(u64::from_le_bytes(moment) / microsecond);
            }
        }
        if moments.len() == all.clone().count() {
            let moment = moments.into_iter().max().unwrap_or(0);
            // Slightly later, so that each started program has also found out what it is.
            let start = (moment + GRID).next_multiple_of(GRID);
            let start = u32::try_from(start)
                .map_err(|_| Error::Machine("the system starts too late".to_owned()))?;
            for chip in all {
                chips.machine_mut(chip).set_observer(None);
            }
            return Ok(Started {
                start,
                chips,
                whole,
                ends,
            });
        }
        let now = chips.first.now();
        if now >= most || now + step / 2 < until {
            return Err(Error::input(
                format!(
                    "not all applications run after {} of simulated time",
                    bulkhead_report::format::span(now as f64 * 1e6 / per_second as f64)
                ),
                "the check compares systems that have started: give a longer duration, or look at the console of \
                 `bulkhead run`",
            ));
        }
    }
}

/// The system in which the attackers do this from a moment on.
fn put<'a>(
    stand: &Stand,
    acts: Option<&[Act]>,
    begin: u32,
    programs: &'a [Program],
) -> Result<(System, Cow<'a, [Program]>), Error> {
    Ok(match acts {
        Some(acts) => {
            let (whole, programs) = stand.with(acts, begin, programs)?;
            (whole, Cow::Owned(programs))
        }
        None => (stand.whole.clone(), Cow::Borrowed(programs)),
    })
}

/// Makes one run.
pub fn execute(experiment: &Experiment<'_>, programs: &[Program]) -> Result<Seen, Error> {
    let (stand, begin) = (experiment.stand, experiment.begin);
    let (whole, programs) = put(stand, experiment.acts, begin, programs)?;
    let mut chips = boot(&whole, &programs)?;
    watch(&mut chips, stand, &experiment.record)?;
    go_on(experiment, &whole, (chips, 0))
}

impl Started {
    /// Continues to the end of an experiment that begins here without an attack: like [`execute`], without the time before.
    pub fn execute(self, experiment: &Experiment<'_>) -> Result<Seen, Error> {
        debug_assert!(experiment.begin == NEVER && experiment.start == self.start);
        debug_assert!(experiment.record.is_empty());
        go_on(experiment, &self.whole, (self.chips, self.ends))
    }
}

fn go_on(
    experiment: &Experiment<'_>,
    whole: &System,
    (mut chips, mut ends): (Chips, u32),
) -> Result<Seen, Error> {
    let stand = experiment.stand;
    let system = on_chip(whole, stand.chip);
    let error = |error: bulkhead_machine::machine::MachineError| Error::Machine(error.to_string());
    let tiles = stand.tiles();
    let instructions = |machine: &Machine| -> u64 {
        let harts = machine.statistics().harts;
        let own = harts.iter().filter(|hart| tiles.contains(&hart.tile));
        own.map(|hart| hart.counters.instructions).sum()
    };
    // Moments of the domain's chip; the first chip's clock drives the run.
    let reach = |chips: &Chips, until: u64| match stand.chip {
        0 => until,
        _ => chips.first_tick(until),
    };
    let microsecond = system.platform.ticks_per_second() / 1_000_000;
    let start = u64::from(experiment.start) * microsecond;
    let until = reach(&chips, start);
    let early = run_counting(&mut chips, until, &mut ends).err();
    let machine = chips.machine_mut(stand.chip);
    machine.clear_ledger();
    if experiment.transactions {
        machine.keep_transactions();
    }
    let before = instructions(chips.machine(stand.chip));
    let trapped = match early {
        Some(trap) => Some(trap),
        None => {
            let until = reach(&chips, experiment.until);
            run_to(&mut chips, until).err()
        }
    };
    let machine = chips.machine(stand.chip);
    let mut timelines = BTreeMap::new();
    for &tile in &tiles {
        let timeline = machine.timeline(tile).map_err(error)?;
        timelines.insert(tile, timeline.cloned().unwrap_or_default());
    }
    let console = machine.console(system.kernel_tile).map_err(error)?;
    Ok(Seen {
        timelines,
        markers: observed::markers(machine),
        unkept: machine.unkept_markers(),
        ledger: machine.ledger().clone(),
        instructions: instructions(machine) - before,
        console: described(system, &String::from_utf8_lossy(console)),
        ticks: machine.now(),
        trapped,
    })
}
