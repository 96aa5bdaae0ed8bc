//! The check's result as data: the schema of `audit.json`.
//!
//! What it deliberately does not know: how the result was obtained, and anything about the host.

use crate::result::{AddedRun, Bound, Interference, Provenance};
use crate::verdict::{self, Judgement, Promise};
use serde::{Deserialize, Serialize};

/// Version of the schema. 2: whatever was not judged has the verdict `not-judged`, and `judgement` replaces `held`.
pub const SCHEMA: u32 = 2;

/// Verdict on a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The domain was not attacked, or no longer existed: its runs say nothing, however alike they are.
    NotJudged,
    /// Under every attack that was tried, every event of the domain's tiles happened at the same tick as without it.
    Identical,
    /// The attacks had an effect, but each kind of request that the domain made and each flow inside it has a bound that holds for
    /// every attack, bounds of flows are within their deadlines, and no observation exceeded a bound.
    Bounded,
    /// The attacks had an effect, and no known bound limits the effect of other attacks.
    Unbounded,
    /// An attack stopped an application, changed a result, or made a request or flow exceed its bound.
    Broken,
}

impl Verdict {
    /// For readers.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotJudged => "not judged",
            Self::Identical => "identical",
            Self::Bounded => "bounded disturbance",
            Self::Unbounded => "unbounded disturbance",
            Self::Broken => "isolation broken",
        }
    }
}

/// The ruling on a domain, as table, page and file state it. Only [`Ruling::of`] creates one, so its parts agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    verdict: Verdict,
    judgement: Judgement,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

impl Ruling {
    /// The ruling on a domain from the comparison of its runs. `owed`: no other domain is more critical.
    ///
    /// Without an attack nothing is judged. A domain that was `gone` is judged only if it failed, because then it existed.
    pub fn of(compared: Verdict, owed: bool, attacked: bool, gone: Option<String>) -> Self {
        let held = match compared {
            Verdict::NotJudged | Verdict::Identical | Verdict::Bounded => true,
            Verdict::Unbounded => !owed,
            Verdict::Broken => false,
        };
        let because = match attacked {
            false => Some("no other domain can attack it".to_owned()),
            true => gone.filter(|_| held),
        };
        let judgement = match (&because, compared, held) {
            (Some(_), ..) | (_, Verdict::NotJudged, _) => Judgement::NotJudged,
            (.., true) => Judgement::Held,
            (.., false) => Judgement::Failed,
        };
        let verdict = match judgement {
            Judgement::NotJudged => Verdict::NotJudged,
            Judgement::Held | Judgement::Failed => compared,
        };
        Self {
            verdict,
            judgement,
            because,
        }
    }

    /// How the domain fared.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether it has the protection that it is owed.
    pub fn judgement(&self) -> Judgement {
        self.judgement
    }

    /// Why it was not judged.
    pub fn because(&self) -> Option<&str> {
        self.because.as_deref()
    }
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditResult {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the system.
    pub system: String,
    /// The variant that was checked, if not the system itself.
    pub variant: Option<String>,
    /// Name of the platform.
    pub platform: String,
    /// Ticks a second.
    pub ticks_per_second: u64,
    /// Ticks per cycle of the reference clock.
    pub cycle_ticks: u64,
    /// Ticks that were compared after the start of the attack.
    pub window: u64,
    /// Seed of the search.
    pub seed: u64,
    /// Attacks that were tried after the library, for each domain.
    pub searches: u32,
    /// The inputs.
    pub provenance: Provenance,
    /// Both chips, if there are two: the system's own first, then its peer's. A domain's times are ticks of its chip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chips: Vec<ChipResult>,
    /// Runs in which flows were alone. Bounds start from the latencies measured there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<AddedRun>,
    /// Domains in the order of the description; those of the peer follow those of the system.
    pub domains: Vec<DomainResult>,
}

/// A chip of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipResult {
    /// The system's name, or the peer's.
    pub name: String,
    /// Name of the platform.
    pub platform: String,
    /// Its clock.
    pub clock: Clock,
    /// Ticks that were compared after the start of the attack.
    pub window: u64,
}

/// The length of a chip's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Ticks a second.
    pub ticks_per_second: u64,
    /// Ticks per cycle of the reference clock.
    pub cycle_ticks: u64,
}

impl AuditResult {
    /// The clock of a domain's chip.
    pub fn clock(&self, domain: &DomainResult) -> Clock {
        let own = Clock {
            ticks_per_second: self.ticks_per_second,
            cycle_ticks: self.cycle_ticks,
        };
        let chips = self.chips.iter();
        let mut found = chips.filter(|chip| domain.chip.as_ref() == Some(&chip.name));
        found.next().map_or(own, |chip| chip.clock)
    }

    /// Whether each domain has the protection that it is owed. A domain that no adversary could attack is not judged.
    pub fn verdict(&self) -> verdict::Verdict {
        let of = |domain: &DomainResult| {
            let what = match domain.owed {
                true => "protection from everybody",
                false => "nobody breaks it",
            };
            let name = format!("domain {}", domain.name);
            let ruling = &domain.ruling;
            match ruling.judgement() {
                Judgement::NotJudged => {
                    Promise::not_judged(&name, what, ruling.because().unwrap_or_default())
                }
                judged => {
                    let what = format!("{what}: {}", ruling.verdict().text());
                    Promise::judged(&name, what, judged == Judgement::Held)
                }
            }
        };
        self.domains.iter().map(of).collect()
    }

    /// Ends that must not happen while all attackers sleep, one line each. An application that depends on one replaced by an
    /// adversary may end for that reason.
    pub fn happened(&self) -> Vec<String> {
        let whole = |domain: &&DomainResult| domain.needs.is_empty();
        let of = |domain: &DomainResult| {
            let line =
                |end: &String| format!("domain {}, while all others slept: {end}", domain.name);
            domain.stopped.iter().map(line).collect::<Vec<_>>()
        };
        self.domains.iter().filter(whole).flat_map(of).collect()
    }

    /// Exit code of the command.
    pub fn code(&self) -> u8 {
        self.verdict().code(!self.happened().is_empty())
    }
}

/// Result for one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainResult {
    /// Name; names of the peer's domains are preceded by the peer's name: `far/net`.
    pub name: String,
    /// The chip that it is on, if there are two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// `A` (most critical) to `E`.
    pub criticality: char,
    /// Its applications.
    pub applications: Vec<String>,
    /// Their tiles.
    pub tiles: Vec<u16>,
    /// Applications replaced by adversaries; those of the other chip are preceded by its name.
    pub attackers: Vec<String>,
    /// Start of the attack in ticks.
    pub start: u64,
    /// The verdict (`verdict`, `judgement` and, if it was not judged, `because`).
    #[serde(flatten)]
    pub ruling: Ruling,
    /// No other domain is more critical, so an unbounded disturbance is a failure. A broken isolation always is.
    pub owed: bool,
    /// How its applications and the kernel ended while all attackers slept, other than with exit code 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// Why the comparison ends early: an application no longer existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
    /// Applications of other domains that it sends to: adversaries replace them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Why the verdict is not better.
    pub reasons: Vec<String>,
    /// Notes that a reader needs to judge the verdict.
    pub notes: Vec<String>,
    /// Every attack that was tried, in order.
    pub attacks: Vec<AttackResult>,
    /// Number of the worst attack in `attacks`.
    pub worst: Option<usize>,
    /// The first difference that the worst attack made of those whose timelines can be compared.
    pub difference: Option<Difference>,
    /// Number in `attacks` of the attack that `account` describes: the worst one that made the domain wait for others. The worst
    /// attack overall may only have given one of its services more work.
    pub accounted: Option<usize>,
    /// The ledger's account of that attack: the applications that the domain waited for, the longest wait first.
    pub account: Vec<Interference>,
    /// Waits of the domain in the run without an attack, in ticks: for itself and for refreshes.
    pub waits_alone: u64,
    /// Flows inside the domain, with bounds.
    pub flows: Vec<FlowAudit>,
    /// Worst requests over all attacks, with bounds.
    pub requests: Vec<RequestAudit>,
}

/// Why nothing can be said about a domain that was gone: `gone` and what it depends on.
pub fn gone(gone: Option<&str>, needs: &[String]) -> Option<String> {
    Some(match (gone?, needs) {
        (why, []) => why.to_owned(),
        (why, needs) => format!(
            "{why}; it depends on {}, replaced by adversaries",
            needs.join(", ")
        ),
    })
}

/// One attack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttackResult {
    /// Name.
    pub name: String,
    /// The actions of each attacker.
    pub plans: Vec<String>,
    /// The same as arguments of the adversary, to repeat it.
    pub arguments: Vec<String>,
    /// Whether the timeline was the same to the tick as in a run in which the same programs are present but never begin.
    pub identical: bool,
    /// Worst slowdown in thousandths: 1000 is none.
    pub slowdown: u64,
    /// The flow, span, job or request that was slowed down most.
    pub of: String,
    /// Ticks that this took at worst, without the attack and with it; `None` for progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<[u64; 2]>,
    /// Ticks that the domain's requests waited for attackers.
    pub waited: u64,
    /// Ways in which the attack did harm beyond delay.
    pub harm: Vec<String>,
    /// The first difference that it made, if that was determined for every attack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Difference>,
    /// Accesses by attackers that guards of the domain's local memories refused.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub refused: u64,
}

fn is_nothing(count: &u64) -> bool {
    *count == 0
}

/// The first event that differed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Name of the attack.
    pub beside: String,
    /// Tile.
    pub tile: u16,
    /// Number of the event on the tile's timeline, from reset on.
    pub event: u64,
    /// When it happened without the attack, in ticks; `None` if it did not happen.
    pub alone_at: Option<u64>,
    /// The event without the attack.
    pub alone: String,
    /// When it happened with the attack, in ticks.
    pub attacked_at: Option<u64>,
    /// The event with the attack.
    pub attacked: String,
}

/// A flow over all attacks, in ticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowAudit {
    /// Name.
    pub name: String,
    /// Its deadline.
    pub deadline: Option<u64>,
    /// Worst latency without an attack.
    pub alone: u64,
    /// Worst latency beside any attack.
    pub attacked: u64,
    /// The bound.
    pub bound: Option<Bound>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbounded: Option<String>,
}

/// A kind of request of an application over all attacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAudit {
    /// Application.
    pub application: String,
    /// Kind.
    pub kind: String,
    /// Worst latency without an attack, in ticks.
    pub alone: u64,
    /// Worst latency beside any attack, in ticks.
    pub attacked: u64,
    /// The bound.
    pub bound: Option<Bound>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbounded: Option<String>,
}
