//! A chip, and optionally a second one connected by cables, stepped together.
//!
//! Why it exists: a frame takes a cable's delay from one chip to the other, so both may run for that long without
//! synchronising. Then frames cross, each with its exact moment. This is the conservative scheme that the machine uses
//! between its tiles, with the shortest cable as lookahead. What it deliberately does not know: frames, software.
//!
//! The chips may have different clocks: moments are compared in the least common multiple of both ticks, exactly. A frame
//! arrives at the first tick of the other chip that is not before its moment.

use crate::boot;
use crate::error::Error;
use crate::image::BootImage;
use crate::observed::{self, Observed, OtherSeen};
use crate::paradigm::Paradigm;
use crate::programs::Program;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::observe::Missing;
use bulkhead_machine::types::Tick;
use bulkhead_model::System;
use bulkhead_model::system::{CableEnd, lookahead};
use sha2::{Digest, Sha256};

/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// The second chip.
struct Other {
    machine: Machine,
    console_tile: u16,
    /// Common ticks per tick: of the first chip, of this one.
    factors: (u128, u128),
    /// Common ticks that both may run without synchronising.
    window: u128,
    /// Tiles connected by cables: of the first chip, of this one.
    cables: Vec<(u16, u16)>,
    /// How the chip ended, if it has.
    outcome: Option<Outcome>,
    /// Ends requested by its software that were passed over.
    passed_over: u32,
}

/// One chip or two.
pub struct Chips {
    /// The chip of the system being run.
    pub first: Machine,
    other: Option<Box<Other>>,
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Ticks of `factor` common ticks each that end no earlier than a common moment.
fn ticks(common: u128, factor: u128) -> Tick {
    Tick::try_from(common.div_ceil(factor)).unwrap_or(Tick::MAX)
}

/// The memory contents of a system's chip and its peer's, each with the modules that it needs itself.
///
/// # Errors
/// If something does not fit.
pub fn images(
    paradigm: &dyn Paradigm,
    system: &System,
    programs: &[Program],
) -> Result<(BootImage, Option<BootImage>), Error> {
    let image_of = |system: &System| {
        let alone = System {
            peer: None,
            ..system.clone()
        };
        paradigm.image(&alone, programs)
    };
    let peer = system.peer.as_ref();
    let peer_image = peer.map(|peer| image_of(&peer.system)).transpose()?;
    Ok((image_of(system)?, peer_image))
}

impl Chips {
    /// Boots a system, and its peer from the peer's own image.
    ///
    /// # Errors
    /// If a machine cannot be made.
    pub fn boot(
        paradigm: &dyn Paradigm,
        system: &System,
        image: &BootImage,
        peer_image: Option<&BootImage>,
    ) -> Result<Self, Error> {
        let first = boot::boot(paradigm, system, image)?;
        let (Some(peer), Some(image)) = (&system.peer, peer_image) else {
            return Ok(Self { first, other: None });
        };
        let machine = boot::boot_as(paradigm, &peer.system, image, Some(system))?;
        let [a, b] = [&first, &machine].map(|m| u128::from(m.config().ticks_per_second));
        let common = a / greatest_common_divisor(a, b) * b;
        let delay = lookahead(system).map_or(SECOND, |time| u128::from(time.0));
        let cables = system.cables.iter().filter_map(|cable| match cable.to {
            CableEnd::Peer(tile) => Some((cable.from, tile)),
            CableEnd::Here(_) => None,
        });
        Ok(Self {
            first,
            other: Some(Box::new(Other {
                machine,
                console_tile: paradigm.console_tile(&peer.system),
                factors: (common / a, common / b),
                window: (delay * common / SECOND).max(1),
                cables: cables.collect(),
                outcome: None,
                passed_over: 0,
            })),
        })
    }

    /// Makes both chips synchronise more often: the window is divided by this. Must not change any result.
    pub fn divide_windows(&mut self, by: u64) {
        if let Some(other) = &mut self.other {
            other.window = (other.window / u128::from(by.max(1))).max(1);
        }
    }

    /// Runs until something ends the first chip's run.
    pub fn run(&mut self, limit: RunLimit, progress: &mut dyn FnMut(Tick)) -> Outcome {
        let Some(other) = &mut self.other else {
            return self.first.run(limit, Some(progress));
        };
        let (ours, theirs) = other.factors;
        let end = u128::from(limit.ticks) * ours;
        let mut windows = 0u32;
        loop {
            let mut next = u128::from(self.first.next_time()) * ours;
            if other.outcome.is_none() {
                next = next.min(u128::from(other.machine.next_time()) * theirs);
            }
            let until = next.saturating_add(other.window).min(end);
            let ticks_here = RunLimit {
                ticks: ticks(until, ours),
            };
            let outcome = self.first.run(ticks_here, None);
            // When the first chip ends, the other one stops, too.
            let until = match outcome {
                Outcome::Exit { at, .. } | Outcome::Unhandled { at, .. } => {
                    until.min(u128::from(at) * ours)
                }
                _ => until,
            };
            if other.outcome.is_none() {
                let there = RunLimit {
                    ticks: ticks(until, theirs),
                };
                loop {
                    match other.machine.run(there, None) {
                        Outcome::Limit => {}
                        Outcome::Idle { .. } => other.machine.advance(there.ticks),
                        Outcome::Exit { .. } if other.passed_over > 0 => {
                            other.passed_over -= 1;
                            continue;
                        }
                        ended => other.outcome = Some(ended),
                    }
                    break;
                }
            }
            for frame in self.first.take_outgoing() {
                let cable = other.cables.iter().find(|c| c.0 == frame.tile);
                if let Some((_, tile)) = cable {
                    let at = ticks(u128::from(frame.at) * ours, theirs);
                    other.machine.frame(*tile, at, frame.frame);
                }
            }
            for frame in other.machine.take_outgoing() {
                let cable = other.cables.iter().find(|c| c.1 == frame.tile);
                if let Some((tile, _)) = cable {
                    let at = ticks(u128::from(frame.at) * theirs, ours);
                    self.first.frame(*tile, at, frame.frame);
                }
            }
            let idle = matches!(outcome, Outcome::Idle { .. });
            let asleep = self.first.next_time() == Tick::MAX
                && (other.outcome.is_some() || other.machine.next_time() == Tick::MAX);
            if idle && !asleep {
                self.first.advance(ticks_here.ticks);
            }
            match outcome {
                Outcome::Limit if until >= end => return outcome,
                Outcome::Limit => {}
                Outcome::Idle { .. } if !asleep && until < end => {}
                Outcome::Idle { .. } if !asleep => return Outcome::Limit,
                ended => return ended,
            }
            windows = windows.wrapping_add(1);
            if windows.is_multiple_of(1 << 10) || idle && windows.is_multiple_of(1 << 6) {
                progress(self.first.now());
            }
        }
    }

    /// The observations of the second chip.
    pub fn other(&self) -> Option<OtherSeen> {
        let other = self.other.as_ref()?;
        let machine = &other.machine;
        let console = machine.console(other.console_tile).unwrap_or(&[]);
        let observed = Observed {
            outcome: other.outcome.unwrap_or(Outcome::Limit),
            ended_by: other.outcome.and_then(|outcome| machine.ended_by(outcome)),
            trapped: other.outcome.and_then(|outcome| machine.trapped(outcome)),
            ticks: machine.now(),
            markers: observed::markers(machine),
            forged: Vec::new(),
            unkept: machine.unkept_markers(),
            crashes: machine.crashes(),
            running: machine.running(),
            ledger: machine.ledger().clone(),
            statistics: machine.statistics(),
            reservations: machine.reservations(),
            carried: machine.carried(),
            rings: machine.rings(),
            starts: machine.starts(),
            prospects: machine.prospects(),
            digest: observed::hexadecimal(&machine.digest()),
            console: observed::console_text(console),
            unread: None,
            trace: None,
            missing: Missing::default(),
            other: None,
            network_cards: machine.network_cards(),
            refused: machine.refused(),
            slices: Vec::new(),
            log: None,
        };
        Some(OtherSeen {
            observed: Box::new(observed),
            outcome: other.outcome,
        })
    }

    /// The machine of a chip: 0 is the first one; 1 is the second one, if there is one.
    pub fn machine(&self, chip: usize) -> &Machine {
        match &self.other {
            Some(other) if chip > 0 => &other.machine,
            _ => &self.first,
        }
    }

    /// The same, to watch it.
    pub fn machine_mut(&mut self, chip: usize) -> &mut Machine {
        match &mut self.other {
            Some(other) if chip > 0 => &mut other.machine,
            _ => &mut self.first,
        }
    }

    /// Lets the second chip continue past the end reported by its software, this many times.
    pub fn pass_over_ends(&mut self, ends: u32) {
        if let Some(other) = &mut self.other {
            other.passed_over = ends;
        }
    }

    /// How the second chip ended, if it has.
    pub fn other_outcome(&self) -> Option<Outcome> {
        self.other.as_ref().and_then(|other| other.outcome)
    }

    /// The first tick of the first chip that is no earlier than this tick of the second chip.
    pub fn first_tick(&self, ticks_there: Tick) -> Tick {
        self.other.as_ref().map_or(ticks_there, |other| {
            let (ours, theirs) = other.factors;
            ticks(u128::from(ticks_there) * theirs, ours)
        })
    }

    /// The second chip.
    pub fn other_machine(&self) -> Option<&Machine> {
        self.other.as_ref().map(|other| &other.machine)
    }

    /// SHA-256 over everything that happened on both.
    pub fn digest(&self) -> [u8; 32] {
        let own = self.first.digest();
        let Some(other) = &self.other else {
            return own;
        };
        let mut hash = Sha256::new();
        hash.update(own);
        hash.update(other.machine.digest());
        hash.finalize().into()
    }
}

/// Takes away markers that nobody believes, on both chips. `peers`: the kind of system of the second one.
pub fn disown(
    paradigm: &dyn Paradigm,
    peers: Option<&dyn Paradigm>,
    system: &System,
    programs: &[Program],
    seen: &mut Observed,
) {
    seen.forged = paradigm.disown(system, programs, &mut seen.markers);
    if let (Some(peer), Some(peers), Some(other)) = (&system.peer, peers, &mut seen.other) {
        let other = &mut other.observed;
        other.forged = peers.disown(&peer.system, programs, &mut other.markers);
    }
}
