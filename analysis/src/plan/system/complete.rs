//! Plans, verdicts and repairs of systems with a chip.
//!
//! Why it exists: what a `<system>` leaves open (tiles, time slices, policies and quotas of shared tiles, token buckets) can be
//! chosen from its deadlines before anything is built, and a system that fails should say what would help. Every choice and every
//! repair is a change `PATH=VALUE` of the description, so all rules apply to it and every reader of the description can use it.
//! What it deliberately does not know: bounds (`bulkhead_analysis`) and the terminal.

use crate::admission;
use crate::plan::InputError;
use crate::plan::system::{Verdict, judge};
use crate::plan::{Choice, Constraint, Kind};
use bulkhead_abi::time::LEAST_BUDGET;
use bulkhead_model::system::TilePolicy;
use bulkhead_model::tree::Element;
use bulkhead_model::units::{Rate, Time, in_largest_unit};
use bulkhead_model::{LoadOptions, System, canonical, load_system};
use serde::Serialize;
use std::cell::Cell;
use std::path::Path;

/// Time slices to try, the longest first.
const SLICES: [&str; 7] = ["1ms", "500us", "200us", "100us", "50us", "20us", "10us"];
/// Token buckets to try, the deepest first; a network chunk is the minimum that a bucket can hold.
const BURSTS: [&str; 4] = ["4KiB", "2KiB", "1KiB", "512B"];
/// Rates are positive multiples of this many bytes per second.
const RATE_STEP: u64 = 64 << 10;
/// The largest rate tried.
const RATE_MAX: u64 = 16 << 30;
/// Systems judged while tiles are searched, and while repairs are.
const EFFORT: u32 = 600;
/// Periods are extended to at most this multiple of their length.
const PERIOD_FACTOR: u64 = 64;

/// One run of a system, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// Name of the variant, or of the system.
    pub variant: String,
    /// The variant demonstrates how deadlines are missed: late tasks and flows are not failures.
    pub misses_expected: bool,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Run {
    /// Whether a failure of this constraint is intended.
    pub fn is_expected(&self, constraint: &Constraint) -> bool {
        let deadline = matches!(constraint.kind, Kind::Response | Kind::Flow);
        self.misses_expected && deadline
    }
}

/// A system with everything decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SystemPlan {
    /// Name of the system.
    pub system: String,
    /// The choices that were open.
    pub choices: Vec<Choice>,
    /// The choices, as changes of the description.
    pub set: Vec<String>,
    /// Each variant with everything decided.
    pub runs: Vec<Run>,
}

impl SystemPlan {
    /// Nothing that was judged fails in any run. This does not say that anything was judged.
    pub fn is_kept(&self) -> bool {
        failures(&self.runs) == 0
    }
}

/// A change that makes a failing system pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SystemRepair {
    /// The change, in the form for `--set`.
    pub set: String,
    /// The value now.
    pub from: String,
    /// The value nearest to the current one with which everything holds.
    pub to: String,
    /// Size of the change in millionths of the current value, rounded up.
    pub relative: u64,
}

/// A description with changes.
struct Draft<'a> {
    path: &'a Path,
    given: &'a [String],
    effort: Cell<u32>,
}

impl<'a> Draft<'a> {
    fn new(path: &'a Path, given: &'a [String]) -> Self {
        Self {
            path,
            given,
            effort: Cell::new(EFFORT),
        }
    }

    fn options(&self, set: &[String]) -> LoadOptions<'static> {
        LoadOptions {
            overrides: self.given.iter().chain(set).cloned().collect(),
            ..LoadOptions::default()
        }
    }

    fn load(&self, set: &[String]) -> Result<System, InputError> {
        Ok(load_system(self.path, &self.options(set))?)
    }

    fn judge(&self, set: &[String]) -> Result<Vec<Run>, InputError> {
        runs(&self.load(set)?)
    }

    /// Constraints that fail with these changes; `None`: the changes break a rule, or enough was tried.
    fn failures(&self, set: &[String]) -> Option<usize> {
        let left = self.effort.get().checked_sub(1)?;
        self.effort.set(left);
        let runs = self.judge(set).ok()?;
        Some(failures(&runs))
    }
}

/// Judges every run of a system, and of its peer's chip.
///
/// # Errors
/// [`InputError::Input`] if something is beyond what the tests cover.
pub fn runs(system: &System) -> Result<Vec<Run>, InputError> {
    let name = |run: &System| run.variant.clone().unwrap_or_else(|| run.name.clone());
    let judged = |run: &System| -> Result<Run, InputError> {
        let verdict = judge(run).map_err(|error| {
            InputError::new(
                format!("{}: {error}", name(run)),
                "change the task, or leave its cost out",
            )
        })?;
        Ok(Run {
            variant: name(run),
            misses_expected: run.misses_expected,
            verdict,
        })
    };
    let all: Result<Vec<Run>, _> = system.runs().into_iter().map(judged).collect();
    let mut all = all?;
    if let Some(peer) = &system.peer {
        let run = judged(&peer.system)?;
        let variant = peer.name.clone();
        all.push(Run { variant, ..run });
    }
    Ok(all)
}

fn failures(runs: &[Run]) -> usize {
    let failed = |run: &Run| {
        let all = run.verdict.all();
        all.filter(|one| one.fails() && !run.is_expected(one))
            .count()
    };
    runs.iter().map(failed).sum()
}

/// The attributes that an element of the description leaves open.
struct Open {
    name: String,
    tile: bool,
    limit: bool,
    cpu: bool,
}

fn visit<'e>(element: &'e Element, name: &str, found: &mut Vec<&'e Element>) {
    if element.name == name {
        found.push(element);
    }
    for child in &element.children {
        visit(child, name, found);
    }
}

fn all<'e>(tree: &'e Element, name: &str) -> Vec<&'e Element> {
    let mut found = Vec::new();
    visit(tree, name, &mut found);
    found
}

fn open(tree: &Element) -> Vec<Open> {
    let apps = all(tree, "app").into_iter();
    apps.filter_map(|app| {
        let lacks = |name: &str| app.children.iter().all(|child| child.name != name);
        Some(Open {
            name: app.identity()?.to_owned(),
            tile: app.attribute("tile").is_none(),
            limit: lacks("limit"),
            cpu: lacks("cpu"),
        })
    })
    .collect()
}

/// Completes and judges a system from a file or a name of the catalog, with the changes `given`.
///
/// # Errors
/// Whatever is wrong with it.
pub fn planned(path: &Path, given: &[String]) -> Result<SystemPlan, InputError> {
    let draft = Draft::new(path, given);
    let tree = bulkhead_model::description(path, &draft.options(&[]))?;
    if tree
        .attribute("paradigm")
        .is_some_and(|word| word.value == "bare")
    {
        return Err(InputError::new(
            "nothing of a system without a kernel is left open: its programs have the harts and the memory that loading it gives them",
            "`bulkhead check` shows where they are",
        ));
    }
    let open = open(&tree);
    let mut choices = Vec::new();
    let mut set = tiles(&draft, &tree, &open, &mut choices)?;
    multiplexers(&draft, &tree, &open, &mut set, &mut choices)?;
    limits(&draft, &open, &mut set, &mut choices)?;
    let system = draft.load(&set)?;
    let runs = runs(&system)?;
    Ok(SystemPlan {
        system: system.name,
        choices,
        set,
        runs,
    })
}

/// Judges a system unchanged: only loading makes choices.
///
/// # Errors
/// Whatever is wrong with it.
pub fn judged(path: &Path, given: &[String]) -> Result<SystemPlan, InputError> {
    let system = Draft::new(path, given).load(&[])?;
    let runs = runs(&system)?;
    Ok(SystemPlan {
        system: system.name,
        choices: Vec::new(),
        set: Vec::new(),
        runs,
    })
}

/// The description with what a plan chose.
///
/// # Errors
/// If a change given by the caller cannot be written into it, such as a change of a platform in the catalog.
pub fn completed(path: &Path, given: &[String], plan: &SystemPlan) -> Result<String, InputError> {
    completed_by(path, given, &plan.set)
}

/// The description with changes.
///
/// # Errors
/// As [`completed`].
pub fn completed_by(path: &Path, given: &[String], set: &[String]) -> Result<String, InputError> {
    let draft = Draft::new(path, given);
    let mut tree = bulkhead_model::description(path, &draft.options(set))?;
    let elsewhere = tree
        .attribute("platform")
        .is_some_and(|attribute| attribute.value.ends_with(".xml"));
    if elsewhere {
        // The file may be in a different folder from the new description.
        let system = draft.load(set)?;
        let source = bulkhead_model::source::Source {
            name: "platform".to_owned(),
            text: canonical::platform(&system.platform),
        };
        let platform = bulkhead_model::tree::parse(&std::sync::Arc::new(source))
            .map_err(|error| InputError::Description(error.into()))?;
        tree.attributes.retain(|one| one.name != "platform");
        tree.children.insert(0, platform);
    }
    Ok(canonical::description(&tree))
}

/// Rounds in which quotas grow by what their jobs pay for others.
const QUOTA_ROUNDS: usize = 4;

/// Quotas for applications on tiles with fixed priorities that have a cost and no `<cpu>`, unless others there have their own
/// priorities: a task becomes its own quota, plus the switches that its jobs pay for.
fn quotas(draft: &Draft<'_>, open: &[Open], set: &[String]) -> Result<Vec<String>, InputError> {
    let system = draft.load(set)?;
    let mut chosen: Vec<(&str, u64, Time)> = Vec::new();
    for app in &system.apps {
        let realtime = system.tilemux(app.tile).policy == TilePolicy::Realtime;
        let asked = open.iter().any(|one| one.cpu && one.name == app.name);
        let (Some(task), true) = (&app.task, realtime && asked) else {
            continue;
        };
        let Some(cost) = task.cost_at(task.criticality, 0) else {
            continue;
        };
        chosen.push((&app.name, cost.nanoseconds().max(LEAST_BUDGET), task.period));
    }
    let written = |chosen: &[(&str, u64, Time)]| -> Vec<String> {
        let each = |&(name, quota, period): &(&str, u64, Time)| {
            [
                format!("app[{name}]/cpu@quota={quota}ns"),
                format!("app[{name}]/cpu@period={}", exact(period)),
            ]
        };
        chosen.iter().flat_map(each).collect()
    };
    // What a job pays for others depends on their quotas, which only grow.
    for _ in 0..QUOTA_ROUNDS {
        let Ok(with) = draft.load(&[set, &written(&chosen)].concat()) else {
            break;
        };
        let Ok(tiles) = admission::tiles(&with) else {
            break;
        };
        let mut grown = false;
        for tile in &tiles {
            for (name, quota, period) in &mut chosen {
                let mut own = tile.reservations.iter();
                let own = own.find(|one| one.app == *name);
                let charged = own.map_or(0, |one| one.charged).min(period.nanoseconds());
                grown |= charged > *quota;
                *quota = charged.max(*quota);
            }
        }
        if !grown {
            break;
        }
    }
    Ok(written(&chosen))
}

/// A time that the description reads back to the same.
fn exact(time: Time) -> String {
    format!("{}ns", time.nanoseconds())
}

/// Tiles for all applications: as placed by the loader; if something fails, other tiles are tried for those that are free to
/// move.
fn tiles(
    draft: &Draft<'_>,
    tree: &Element,
    open: &[Open],
    choices: &mut Vec<Choice>,
) -> Result<Vec<String>, InputError> {
    let system = draft.load(&[])?;
    let mut set = Vec::new();
    if tree.attribute("manager-tile").is_none() {
        set.push(format!("@manager-tile={}", system.managers[0].tile));
    }
    for manager in all(tree, "manager") {
        let name = manager.identity().unwrap_or_default();
        let placed = system.managers.iter().find(|one| one.name == name);
        if let (None, Some(placed)) = (manager.attribute("tile"), placed) {
            set.push(format!("manager[{name}]@tile={}", placed.tile));
        }
    }
    let fixed = set.len();
    let movable: Vec<&Open> = open.iter().filter(|one| one.tile).collect();
    for one in &movable {
        let tile = system.app(&one.name).map_or(0, |app| app.tile);
        set.push(format!("app[{}]@tile={tile}", one.name));
    }
    if set.is_empty() {
        return Ok(set);
    }
    let mut how = "the first free ones, then shared ones with the fewest on them".to_owned();
    let weigh = |set: &[String]| {
        let more = quotas(draft, open, set).ok()?;
        draft.failures(&[set, &more].concat())
    };
    let mut best = weigh(&set).unwrap_or(usize::MAX);
    let numbers: Vec<u16> = system.platform.tiles.iter().map(|tile| tile.id).collect();
    let mut better = best > 0;
    while better {
        better = false;
        for (index, one) in movable.iter().enumerate() {
            for &tile in &numbers {
                let mut moved = set.clone();
                moved[fixed + index] = format!("app[{}]@tile={tile}", one.name);
                if best > 0
                    && let Some(failed) = weigh(&moved)
                    && failed < best
                {
                    (best, set, better) = (failed, moved, true);
                    how = "not the first free ones, so that more constraints hold".to_owned();
                }
            }
        }
    }
    choices.push(Choice { what: "tiles", how });
    Ok(set)
}

/// Policies, slices and quotas of shared tiles.
fn multiplexers(
    draft: &Draft<'_>,
    tree: &Element,
    open: &[Open],
    set: &mut Vec<String>,
    choices: &mut Vec<Choice>,
) -> Result<(), InputError> {
    for mux in all(tree, "tilemux") {
        let Some(tile) = mux.attribute("tile").map(|tile| tile.value.clone()) else {
            continue;
        };
        let path = |attribute: &str, value: &str| format!("tilemux[{tile}]@{attribute}={value}");
        let policies: &[&str] = if mux.attribute("policy").is_some() {
            &[""]
        } else {
            &["throughput", "realtime"]
        };
        let mut best: Option<(usize, Vec<String>)> = None;
        'search: for policy in policies {
            let mut with = Vec::new();
            if !policy.is_empty() {
                with.push(path("policy", policy));
            }
            let slices: &[&str] = if mux.attribute("slice").is_some() {
                &[""]
            } else {
                &SLICES
            };
            for slice in slices {
                let mut with = with.clone();
                if !slice.is_empty() {
                    with.push(path("slice", slice));
                }
                with.extend(quotas(draft, open, &[set.as_slice(), &with].concat())?);
                let failed = draft.failures(&[set.as_slice(), &with].concat());
                let failed = failed.unwrap_or(usize::MAX);
                if best.as_ref().is_none_or(|best| failed < best.0) {
                    best = Some((failed, with));
                }
                if failed == 0 {
                    break 'search;
                }
            }
        }
        if let Some((_, with)) = best.filter(|best| !best.1.is_empty()) {
            // Without what was chosen for this tile, the description is valid.
            if draft.load(&[set.as_slice(), &with].concat()).is_err() {
                return Err(no_room(&tile, &with));
            }
            let short: Vec<String> = with.iter().map(|one| readable(one)).collect();
            choices.push(Choice {
                what: "shared tiles",
                how: format!("tile {tile}: {}", short.join(", ")),
            });
            set.extend(with);
        }
    }
    Ok(())
}

/// What the tasks of a tile need for lack of a `<cpu>` breaks a rule.
fn no_room(tile: &str, with: &[String]) -> InputError {
    let needed = with.iter().filter(|one| one.contains("/cpu@"));
    let needed: Vec<String> = needed.map(|one| readable(one)).collect();
    InputError::new(
        format!(
            "tile {tile}: the needs of its tasks without a <cpu> do not fit beside the quotas there: {}",
            needed.join(", ")
        ),
        "raise a period, lower a cost or a quota, or move an application to another tile",
    )
}

/// A change in readable form: times in the largest unit.
fn readable(change: &str) -> String {
    let Some((path, value)) = change.split_once('=') else {
        return change.to_owned();
    };
    let value = match value.strip_suffix("ns").and_then(|n| n.parse().ok()) {
        Some(nanoseconds) => in_largest_unit(nanoseconds),
        None => value.to_owned(),
    };
    let path = path.strip_prefix("tilemux").map_or(path, |rest| {
        rest.trim_start_matches(|c: char| c != '@')
            .trim_start_matches('@')
    });
    format!("{path} {value}")
}

/// Token buckets for applications whose missing limit deprives flows of a promise: one rate for all, the largest with which all
/// flows are in time.
fn limits(
    draft: &Draft<'_>,
    open: &[Open],
    set: &mut Vec<String>,
    choices: &mut Vec<Choice>,
) -> Result<(), InputError> {
    let unlimited = |set: &[String]| -> Result<Vec<String>, InputError> {
        let mut names: Vec<String> = draft
            .judge(set)?
            .into_iter()
            .flat_map(|run| run.verdict.unlimited)
            .filter(|name| open.iter().any(|one| one.limit && one.name == *name))
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    };
    let names = unlimited(set)?;
    if names.is_empty() {
        return Ok(());
    }
    let with = |rate: u64, burst: &str| -> Vec<String> {
        let mut all = set.clone();
        for name in &names {
            all.push(format!("app[{name}]/limit@noc={}", Rate(rate)));
            all.push(format!("app[{name}]/limit@burst={burst}"));
        }
        all
    };
    let others = failures(&draft.judge(set)?);
    // What fails in any case does not depend on the limits.
    let holds = |rate: u64, burst: &str| match draft.judge(&with(rate, burst)) {
        Ok(runs) => failures(&runs) <= others,
        Err(_) => false,
    };
    let burst = BURSTS.into_iter().find(|burst| holds(RATE_STEP, burst));
    let Some(burst) = burst else {
        let last = with(RATE_STEP, BURSTS[BURSTS.len() - 1]);
        choices.push(Choice {
            what: "limits",
            how: format!(
                "{} for {}: the least; flows are late even so",
                Rate(RATE_STEP),
                names.join(", ")
            ),
        });
        *set = last;
        return Ok(());
    };
    let (mut low, mut high) = (1, RATE_MAX / RATE_STEP);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle * RATE_STEP, burst) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let rate = low * RATE_STEP;
    choices.push(Choice {
        what: "limits",
        how: format!(
            "{} with a burst of {burst} for {}: the largest rate for all of them with which every flow is in time",
            Rate(rate),
            names.join(", ")
        ),
    });
    *set = with(rate, burst);
    Ok(())
}

/// A number of the description that may be changed.
struct Knob {
    path: String,
    from: u64,
    /// The value beyond which it is not changed.
    extreme: u64,
    text: fn(u64) -> String,
}

/// The smallest changes of single numbers with which everything holds, the relatively smallest first. Empty if the system holds,
/// or if none within reason helps.
///
/// # Errors
/// Whatever is wrong with the description.
pub fn repairs(path: &Path, given: &[String]) -> Result<Vec<SystemRepair>, InputError> {
    let draft = Draft::new(path, given);
    let system = draft.load(&[])?;
    let runs = runs(&system)?;
    if failures(&runs) == 0 {
        return Ok(Vec::new());
    }
    let mut found: Vec<SystemRepair> = knobs(&system, &runs)
        .iter()
        .filter_map(|knob| nearest(&draft, knob))
        .collect();
    found.sort_by(|a, b| (a.relative, &a.set).cmp(&(b.relative, &b.set)));
    Ok(found)
}

fn knobs(system: &System, runs: &[Run]) -> Vec<Knob> {
    let time = |nanoseconds: u64| format!("{nanoseconds}ns");
    let rate = |bytes: u64| format!("{bytes}B/s");
    let mut all: Vec<Knob> = Vec::new();
    let mut add = |path: String, from: u64, extreme: u64, text: fn(u64) -> String| {
        if from != extreme && all.iter().all(|knob| knob.path != path) {
            all.push(Knob {
                path,
                from,
                extreme,
                text,
            });
        }
    };
    let failed = runs.iter().flat_map(|run| run.verdict.all());
    for constraint in failed.filter(|constraint| constraint.fails()) {
        let subject = &constraint.subject;
        if constraint.kind == Kind::Flow {
            if let (Some(limit), Some(bound)) = (constraint.limit, constraint.bound) {
                add(format!("flow[{subject}]@deadline"), limit, bound, time);
            }
            for app in &system.apps {
                let name = &app.name;
                if let Some(limit) = app.limit {
                    add(
                        format!("app[{name}]/limit@noc"),
                        limit.noc.0,
                        RATE_STEP,
                        rate,
                    );
                }
                if let Some(cost) = app.task.as_ref().and_then(|task| task.cost) {
                    add(
                        format!("app[{name}]/task@cost"),
                        cost.nanoseconds(),
                        1,
                        time,
                    );
                }
            }
            continue;
        }
        let Some(failing) = system.app(subject) else {
            continue;
        };
        for app in system.apps.iter().filter(|app| app.tile == failing.tile) {
            let name = &app.name;
            if let Some(task) = &app.task {
                if let Some(cost) = task.cost {
                    add(
                        format!("app[{name}]/task@cost"),
                        cost.nanoseconds(),
                        1,
                        time,
                    );
                }
                let period = task.period.nanoseconds();
                let most = period.saturating_mul(PERIOD_FACTOR);
                add(format!("app[{name}]/task@period"), period, most, time);
            }
            if let Some(cpu) = app.cpu {
                let budget = cpu.budget.nanoseconds();
                let most = cpu.period.nanoseconds();
                let extreme = if name == subject { most } else { 1_000 };
                add(format!("app[{name}]/cpu@quota"), budget, extreme, time);
            }
        }
        if let Some(task) = &failing.task {
            let deadline = task.deadline.nanoseconds();
            let most = task.period.nanoseconds();
            if deadline < most {
                add(
                    format!("app[{subject}]/task@deadline"),
                    deadline,
                    most,
                    time,
                );
            }
        }
        if let Some(mux) = system.tilemux.iter().find(|mux| mux.tile == failing.tile) {
            let path = format!("tilemux[{}]@slice", mux.tile);
            add(path, mux.slice.nanoseconds(), 10_000, time);
        }
    }
    all
}

/// The value nearest to the current one with which everything holds, by bisection; its neighbour was judged, too, and fails.
fn nearest(draft: &Draft<'_>, knob: &Knob) -> Option<SystemRepair> {
    let change = |value: u64| format!("{}={}", knob.path, (knob.text)(value));
    let passes = |value: u64| Some(draft.failures(&[change(value)]) == Some(0));
    let (mut bad, mut good) = (knob.from, knob.extreme);
    // Too much of it may hurt others, so less than the extreme is tried, too.
    let mut tries = 12;
    while !passes(good)? {
        let nearer = bad.min(good) + bad.abs_diff(good) / 2;
        if tries == 0 || nearer == good || nearer == bad {
            return None;
        }
        tries -= 1;
        good = nearer;
    }
    while bad.abs_diff(good) > 1 {
        let middle = bad.min(good) + bad.abs_diff(good) / 2;
        if draft.effort.get() == 0 {
            return None;
        }
        if passes(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    let relative = u128::from(knob.from.abs_diff(good)) * 1_000_000;
    Some(SystemRepair {
        set: change(good),
        from: (knob.text)(knob.from),
        to: (knob.text)(good),
        relative: u64::try_from(relative.div_ceil(u128::from(knob.from.max(1))))
            .unwrap_or(u64::MAX),
    })
}
