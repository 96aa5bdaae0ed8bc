//! The page of `check` and `plan`: bounds against deadlines, and the schedule behind them.
//!
//! Why it exists: a table says which task is late; a picture shows by how much, compared with the others, and what keeps the processor
//! busy. What it deliberately does not know: how bounds and schedules are derived; browser scripts.

use super::lanes::{Frame, Ink, Lane, Shape, picture as draw};
use super::page::{page, picture};
use super::plan::{
    choices, failure, grid, heading, noun, repairs, system_verdict, task_grid, value, verdict,
};
use super::table::{Grid, TEXTS};
use crate::Error;
use crate::book::{ANALYSES, BOUNDS, Book, TASKS, VERDICTS};
use crate::format::span;
use crate::palette::Palette;
use bulkhead_analysis::plan::instant::{CriticalInstant, Group, Part, Row, instants};
use bulkhead_analysis::plan::repair::Repair;
use bulkhead_analysis::plan::system::complete::{Run, SystemRepair};
use bulkhead_analysis::plan::{Choice, Constraint, Judgement, Kind, Plan};
use bulkhead_model::system::priority_of_tile;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Maximum lanes of one picture. What holds is left out first.
const LANES: usize = 200;
/// Maximum schedules of one system. Those without a failure are left out first.
const SCHEDULES: usize = 12;
/// From this ratio on, a logarithmic axis shows what a linear one would squeeze into a corner.
const WIDE: f64 = 150.0;
/// Characters of a reason that fit in a picture.
const REASON: usize = 62;
/// Characters that fit in it side by side.
const WIDTH: f64 = 72.0;

/// The page of a task system. `found`: its repairs, if they were searched for; `book`: where the book is.
///
/// # Errors
/// [`Error`] if a picture cannot be drawn.
pub fn tasks(plan: &Plan, found: Option<&[Repair]>, book: &Book) -> Result<String, Error> {
    let name = &plan.system.name;
    let repaired = found.map(repairs).unwrap_or_default();
    let palette = Palette::named(plan.system.tasks.iter().map(|task| task.name.as_str()));
    let body = html! {
        h1 { (name) }
        p { (heading(plan)) "." }
        @if let Some(about) = &plan.system.about { p.soft { (about) } }
        @let failed: Vec<String> = plan.failures().into_iter().map(failure).collect();
        (list("What fails", &failed))
        (list("Not judged", &verdict(plan).unjudged()))
        (list("Single changes that repair it, smallest first", &lines(&repaired)))
        (judged(plan, ("processor", |priority| priority), &palette, book)?)
        @if !plan.choices.is_empty() { (list("Open in the description, and chosen", &lines(&choices(plan)))) }
        (list("Notes", &plan.notes))
        (methods(plan.constraints.iter(), book))
    };
    Ok(page(&format!("{name} - Bulkhead"), &body))
}

/// A table of a system's page: what is shown above it, its cells, and what is said below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// The cells. A row that does not hold is shown as a failure.
    pub grid: Grid,
    /// A line below the table.
    pub note: Option<String>,
}

impl Section {
    /// The section as text; empty without rows.
    pub fn text(&self) -> String {
        if self.grid.rows.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{}:\n{}", self.title, self.grid.text());
        if let Some(note) = &self.note {
            text.push_str(note);
            text.push('\n');
        }
        text
    }
}

/// The page of a system with a chip, with all its variants. `sections`: further tables at its end.
///
/// # Errors
/// [`Error`] if a picture cannot be drawn.
pub fn system(
    name: &str,
    runs: &[Run],
    chosen: &[Choice],
    found: &[SystemRepair],
    sections: &[Section],
    book: &Book,
) -> Result<String, Error> {
    let all = || runs.iter().flat_map(|run| run.verdict.all());
    let change =
        |repair: &SystemRepair| format!("--set '{}' instead of {}", repair.set, repair.from);
    let chosen: Vec<String> = chosen
        .iter()
        .map(|choice| format!("{}: {}", choice.what, choice.how))
        .collect();
    let plans = runs.iter().flat_map(|run| &run.verdict.tasks);
    let tasks = plans.flat_map(|plan| &plan.system.tasks);
    let palette = Palette::named(tasks.map(|task| task.name.as_str()));
    let mut parts = Vec::new();
    for run in runs {
        parts.push(variant(run, &palette, book)?);
    }
    let body = html! {
        h1 { (name) }
        (system_verdict(runs).markup(&[]))
        p.soft { "What each word here means: " (book.more(VERDICTS)) }
        (list("Single changes that repair it, smallest first", &found.iter().map(change).collect::<Vec<_>>()))
        @for part in &parts { (part) }
        (list("Open in the description, and chosen", &chosen))
        @for section in sections {
            @if !section.grid.rows.is_empty() {
                h2 { (section.title) }
                (cells(&section.grid))
                @if let Some(note) = &section.note { p.soft { (note) } }
            }
        }
        (methods(all(), book))
    };
    Ok(page(&format!("{name} - Bulkhead"), &body))
}

/// One variant: its tasks by policy, then its flows and quotas.
fn variant(run: &Run, palette: &Palette, book: &Book) -> Result<Markup, Error> {
    let verdict = &run.verdict;
    let failed: Vec<String> = verdict.all().filter(|c| c.fails()).map(failure).collect();
    let mut plans = Vec::new();
    for plan in &verdict.tasks {
        plans.push((
            plan.system.policy.word(),
            judged(plan, ("tile", priority_of_tile), palette, book)?,
        ));
    }
    let constraints = &verdict.constraints;
    let times: Vec<Time> = constraints
        .iter()
        .filter_map(|c| Time::of(None, c))
        .collect();
    Ok(html! {
        h2 { "Variant " (run.variant) }
        @if verdict.all().next().is_none() { p { "Nothing in it was judged." } }
        (list("What fails", &failed))
        @for (policy, part) in &plans { p.soft { "Tiles with " (policy) "; memory interference as included in the tasks' costs." } (part) }
        @if !constraints.is_empty() {
            h3 { "Flows and quotas" }
            p.soft { (book.more(BOUNDS)) }
            @if !times.is_empty() { (picture(bars(&times, palette)?)) }
            (cells(&grid(constraints.iter())))
        }
        @if !verdict.assumptions.is_empty() {
            details { summary { "What bounds of flows assume" } ul { @for one in &verdict.assumptions { li { (one) } } } }
        }
    })
}

/// Pictures and tables of one task system. `place` is the name for its processors.
fn judged(
    plan: &Plan,
    (place, priority): (&str, fn(u32) -> u32),
    palette: &Palette,
    book: &Book,
) -> Result<Markup, Error> {
    let groups = instants(&plan.system).map_err(Error::new)?;
    let is_task = |kind: Kind| matches!(kind, Kind::Response | Kind::Tardiness);
    let rest = || plan.constraints.iter().filter(|c| !is_task(c.kind));
    let mut responses = BTreeMap::new();
    for group in &groups {
        for row in group.schedule.iter().flat_map(|schedule| &schedule.rows) {
            if let (Some(task), Some(response)) = (row.task, row.response) {
                responses.insert(plan.system.tasks[task].name.as_str(), response);
            }
        }
    }
    let judged = plan.constraints.iter();
    let judged = judged
        .filter_map(|c| Time::of(Some(plan), c))
        .map(|time| Time {
            response: responses
                .get(time.name.as_str())
                .copied()
                .filter(|_| time.is_task),
            ..time
        });
    let (of_tasks, others): (Vec<Time>, Vec<Time>) = judged.partition(|time| time.is_task);
    let schedules = schedules(plan, &groups, place, palette)?;
    Ok(html! {
        @if !of_tasks.is_empty() {
            h2 { "Responses and deadlines" }
            p.soft { (book.more(TASKS)) }
            (picture(bars(&of_tasks, palette)?))
            (left_out(of_tasks.len()))
            (cells(&task_grid(plan, priority)))
        }
        (schedules)
        @if rest().next().is_some() {
            h2 { "Everything else that must hold" }
            @if !others.is_empty() { (picture(bars(&others, palette)?)) (left_out(others.len())) }
            (cells(&grid(rest())))
        }
    })
}

fn left_out(count: usize) -> Markup {
    html! { @if count > LANES { p.soft { "The picture has " (LANES) " of " (count) " rows, failures first; the table has all." } } }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().to_owned()).collect()
}

fn list(title: &str, items: &[String]) -> Markup {
    html! {
        @if !items.is_empty() {
            h3 { (title) }
            ul { @for item in items { li { (item) } } }
        }
    }
}

fn cells(grid: &Grid) -> Markup {
    let words = |column: usize| TEXTS.contains(&grid.headings[column]);
    html! {
        div.scroll { table {
            tr { @for (column, heading) in grid.headings.iter().enumerate() { th.text[words(column)] { (heading) } } }
            @for (holds, row) in &grid.rows {
                tr { @for (column, cell) in row.iter().enumerate() { td.text[words(column)].bad[!*holds && column + 1 == row.len()] { (cell) } } }
            }
        } }
    }
}

/// Which test decides which constraint.
fn methods<'a>(constraints: impl Iterator<Item = &'a Constraint>, book: &Book) -> Markup {
    let mut all: Vec<(&str, &str)> = constraints.map(|c| (noun(c.kind), c.method)).collect();
    all.sort_unstable();
    all.dedup();
    html! {
        @if !all.is_empty() {
            details { summary { "How bounds were found" }
                ul { @for (what, method) in &all { li { (what) ": " (method) } } }
                p { (book.more(ANALYSES)) } }
        }
    }
}

/// A time span with a bound and a limit, in nanoseconds from the arrival of a job.
#[derive(Clone, Debug)]
struct Time {
    name: String,
    is_task: bool,
    judgement: Judgement,
    bound: Option<u64>,
    due: Option<u64>,
    /// It may be later than that and still hold.
    allowed: Option<u64>,
    response: Option<u64>,
    /// Why there is no bound.
    why: String,
}

impl Time {
    /// `None` unless it is about a time from arrival to completion.
    fn of(plan: Option<&Plan>, constraint: &Constraint) -> Option<Self> {
        let task = plan.and_then(|plan| {
            let index = plan.system.task(&constraint.subject)?;
            Some(&plan.system.tasks[index])
        });
        let after = |due: u64, late: Option<u64>| late.map(|late| due.saturating_add(late));
        let (bound, due, allowed) = match constraint.kind {
            Kind::Response | Kind::Flow | Kind::Quota | Kind::Channel => {
                (constraint.bound, constraint.limit, None)
            }
            Kind::Tardiness => {
                let due = task?.deadline.nanoseconds();
                let allowed = after(due, constraint.limit);
                (after(due, constraint.bound), Some(due), allowed)
            }
            _ => return None,
        };
        let is_task = matches!(constraint.kind, Kind::Response | Kind::Tardiness);
        let name = if is_task {
            constraint.subject.clone()
        } else {
            format!("{} {}", noun(constraint.kind), constraint.subject)
        };
        Some(Self {
            name,
            is_task,
            judgement: constraint.judgement,
            bound,
            due,
            allowed,
            response: None,
            why: plan.map_or_else(
                || because(None, constraint),
                |plan| because(Some(plan), constraint),
            ),
        })
    }

    fn fails(&self) -> bool {
        self.judgement == Judgement::Failed
    }

    fn ends(&self) -> impl Iterator<Item = u64> {
        let all = [self.bound, self.due, self.allowed, self.response];
        all.into_iter().flatten().filter(|time| *time > 0)
    }
}

/// Why a constraint has no bound.
fn because(plan: Option<&Plan>, constraint: &Constraint) -> String {
    if let Some(note) = &constraint.note {
        return note.clone();
    }
    if constraint.holds() {
        return "in time for certain, though the test gives no response time".to_owned();
    }
    let overload = plan.and_then(|plan| {
        let core = plan.system.tasks[plan.system.task(&constraint.subject)?].core;
        let place = core.map(|core| format!("processor {core}"));
        plan.constraints.iter().find(|c| {
            c.kind == Kind::Capacity && c.fails() && place.as_ref().is_none_or(|p| *p == c.subject)
        })
    });
    match overload {
        Some(c) => format!(
            "{} has a load of {} of {}",
            c.subject,
            c.bound
                .map_or("more".to_owned(), |bound| value(bound, c.unit)),
            c.limit
                .map_or("what it has".to_owned(), |limit| value(limit, c.unit)),
        ),
        None => "the test finds none within the deadline".to_owned(),
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}

/// The nanoseconds of the unit that suits `longest` best, and its name.
fn unit(longest: u64) -> (f64, &'static str) {
    match longest {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// Bounds as bars with marks at the deadlines.
fn bars(times: &[Time], palette: &Palette) -> Result<String, Error> {
    let mut times: Vec<&Time> = times.iter().collect();
    if times.len() > LANES {
        times.sort_by_key(|time| !time.fails());
        times.truncate(LANES);
    }
    let ends = || times.iter().flat_map(|time| time.ends());
    let (least, most) = (ends().min().unwrap_or(1), ends().max().unwrap_or(1));
    let logarithmic = most as f64 / least as f64 > WIDE;
    // Three digits after the point are shown.
    let (size, unit) = unit(if logarithmic {
        most.min(least.saturating_mul(1000))
    } else {
        most
    });
    let scaled = |time: u64| time as f64 / size;
    let (begin, axis) = if logarithmic {
        let decade = 10f64.powf((scaled(least) * 0.9).log10().floor());
        (decade, format!("time from arrival in {unit} (logarithmic)"))
    } else {
        (0.0, format!("time from arrival in {unit}"))
    };
    let end = scaled(most) * 1.04;
    // The share of the picture before a time.
    let place = |at: f64| match logarithmic {
        true => (at / begin).ln() / (end / begin).ln(),
        false => at / end,
    };
    let lane = |time: &&Time| {
        let mut shapes = Vec::new();
        if let Some(bound) = time.bound {
            let ink = if time.fails() { Ink::Late } else { Ink::Bound };
            shapes.push(Shape::Bar(begin, scaled(bound), 0.66, ink));
        }
        if let Some(response) = time.response.filter(|_| time.bound.is_some()) {
            shapes.push(Shape::Bar(begin, scaled(response), 0.2, Ink::Response));
        }
        shapes.extend(time.due.map(|due| Shape::Line(scaled(due), Ink::Limit)));
        shapes.extend(
            time.allowed
                .map(|due| Shape::Line(scaled(due), Ink::Kernel)),
        );
        if time.bound.is_none() {
            let (ink, text) = match time.judgement {
                Judgement::Held => (Ink::Word, time.why.clone()),
                Judgement::NotJudged => (Ink::Word, format!("not judged: {}", time.why)),
                Judgement::Failed => (Ink::Late, format!("no bound: {}", time.why)),
            };
            // After the mark of the deadline if there is room for all of it.
            let due = time.due.map_or(0.0, |due| place(scaled(due)));
            let behind = text.chars().count() as f64 <= (1.0 - due) * WIDTH;
            let at = time.due.filter(|_| behind).map_or(begin, scaled);
            shapes.push(Shape::Words(at, shortened(&text), ink));
        }
        let limit = time.allowed.or(time.due);
        let of = match limit {
            // A task that may be as late as it is has a deadline but no limit.
            Some(due) if !time.fails() && time.bound.is_some_and(|bound| bound > due) => {
                format!(", due at {}", span(microseconds(due)))
            }
            Some(due) => format!(" of {}", span(microseconds(due))),
            None => String::new(),
        };
        let bound = time.bound.map(|bound| span(microseconds(bound)));
        Lane {
            name: time.name.clone(),
            colour: time.is_task.then(|| palette.colour(&time.name)),
            shapes,
            aside: match bound {
                Some(bound) => format!("{bound}{of}"),
                None => match time.response {
                    Some(response) => format!("{} seen{of}", span(microseconds(response))),
                    None => format!("-{of}"),
                },
            },
        }
    };
    let lanes: Vec<Lane> = times.iter().map(lane).collect();
    let sample = |share: f64, ink: Ink| Shape::Bar(0.0, 1.0, share, ink);
    let mut legend = vec![("bound: the longest time at worst", sample(0.66, Ink::Bound))];
    if times
        .iter()
        .any(|time| time.fails() && time.bound.is_some())
    {
        legend.push(("bound that is not allowed", sample(0.66, Ink::Late)));
    }
    if times.iter().any(|time| time.response.is_some()) {
        legend.push((
            "longest response in the schedule drawn below",
            sample(0.2, Ink::Response),
        ));
    }
    legend.push(("deadline", Shape::Line(0.5, Ink::Limit)));
    if times.iter().any(|time| time.allowed.is_some()) {
        legend.push((
            "deadline with the tardiness that is allowed",
            Shape::Line(0.5, Ink::Kernel),
        ));
    }
    let frame = Frame {
        axis: &axis,
        range: (begin, end),
        logarithmic,
        legend: &legend,
    };
    draw(&frame, &lanes)
}

/// A reason shortened to fit in a picture; the lists have it in full.
fn shortened(text: &str) -> String {
    if text.chars().count() <= REASON {
        return text.to_owned();
    }
    let begin: String = text.chars().take(REASON - 1).collect();
    format!("{}…", begin.trim_end())
}

/// The schedules of the processors; those with a failure first if there are too many.
fn schedules(
    plan: &Plan,
    groups: &[Group],
    place: &str,
    palette: &Palette,
) -> Result<Markup, Error> {
    let constraint = |task: usize| {
        let name = &plan.system.tasks[task].name;
        let all = plan.constraints.iter();
        let mut all = all.filter(|c| matches!(c.kind, Kind::Response | Kind::Tardiness));
        all.find(|c| c.subject == *name)
    };
    // If nothing was judged, there is nothing to explain.
    let asked = |group: &&Group| group.tasks.iter().any(|&task| constraint(task).is_some());
    let mut groups: Vec<&Group> = groups.iter().filter(asked).collect();
    let count = groups.len();
    if count > SCHEDULES {
        let good = |group: &Group| {
            let mut all = group.tasks.iter().filter_map(|&task| constraint(task));
            !all.any(|c| c.fails())
        };
        groups.sort_by_key(|group| good(group));
        groups.truncate(SCHEDULES);
    }
    let title = |group: &Group| match group.processor {
        Some(number) => format!("{}{} {number}", place[..1].to_uppercase(), &place[1..]),
        None => "All processors together".to_owned(),
    };
    let mut parts = Vec::new();
    for group in groups {
        parts.push(match &group.schedule {
            Ok(schedule) => html! {
                h3 { (title(group)) }
                (picture(gantt(plan, schedule, palette, group.processor.is_none())?))
                @if schedule.cut { p.soft { "Cut off: the first busy period or a first deadline ends after the picture, or the busy period never ends." } }
                @for note in &schedule.notes { p.soft { (note) } }
            },
            Err(why) => html! { h3 { (title(group)) } p { "There is no picture: " (why) "." } },
        });
    }
    Ok(html! {
        @if !parts.is_empty() {
            h2 { "What runs when everything is released at once" }
            p.soft { "A simulation that knows nothing of the bounds: all tasks are released at 0, as late as their jitter lets them, further jobs "
                "as early as they may, and each job runs for its whole cost, overheads included. The pictures show the first busy period and, where there is room, the first deadline of each task." }
            @for part in &parts { (part) }
            @if count > SCHEDULES { p.soft { "Left out: " (count - SCHEDULES) " " (place) "s, those with failures last." } }
        }
    })
}

/// Maximum releases of a row that are drawn: more arrows would cover each other.
const ARROWS: usize = 60;

/// Tasks as rows over time.
fn gantt(
    plan: &Plan,
    schedule: &CriticalInstant,
    palette: &Palette,
    together: bool,
) -> Result<String, Error> {
    let (size, unit) = unit(schedule.length);
    let scaled = |time: u64| time as f64 / size;
    let several = together && plan.system.processors > 1;
    let mut lanes = Vec::new();
    for (index, row) in schedule.rows.iter().enumerate() {
        let name = row.task.map(|task| plan.system.tasks[task].name.as_str());
        let colour = name.map(|name| palette.colour(name));
        let mut shapes = Vec::new();
        for run in schedule.runs.iter().filter(|run| run.row == index) {
            let ink = match row.task {
                _ if run.late => Ink::Late,
                Some(_) if run.part != Part::Runs => Ink::Bound,
                Some(_) => colour.map_or(Ink::Response, Ink::Own),
                None => Ink::Kernel,
            };
            let (start, end) = (scaled(run.start), scaled(run.end));
            shapes.push(Shape::Bar(start, end, 0.5, ink));
            if several {
                shapes.push(Shape::Label(start, end, run.processor.to_string(), ink));
            }
        }
        if row.releases.len() <= ARROWS {
            let releases = row.releases.iter();
            shapes.extend(releases.map(|at| Shape::Up(scaled(*at), Ink::Word)));
            let deadlines = row.deadlines.iter();
            shapes.extend(deadlines.map(|at| Shape::Down(scaled(*at), Ink::Limit)));
        }
        lanes.push(Lane {
            name: name.unwrap_or("kernel").to_owned(),
            colour,
            shapes,
            aside: row
                .response
                .map_or(String::new(), |response| span(microseconds(response))),
        });
    }
    // Slots of a table are not jobs and have no responses.
    let responses = match schedule.rows.iter().any(|row| row.response.is_some()) {
        true => "; at the right the longest response of jobs released here",
        false => "",
    };
    let axis = format!("time in {unit}{responses}");
    let sample = |ink: Ink| Shape::Bar(0.0, 1.0, 0.5, ink);
    let mut legend = vec![(
        if several {
            "runs (in the task's colour), with the number of the processor"
        } else {
            "runs (in the task's colour)"
        },
        sample(Ink::Response),
    )];
    if schedule.runs.iter().any(|run| run.part != Part::Runs) {
        legend.push(("loads before it runs, unloads after it", sample(Ink::Bound)));
    }
    if schedule.runs.iter().any(|run| run.late) {
        legend.push(("runs after its deadline", sample(Ink::Late)));
    }
    if schedule.rows.iter().any(|row| row.task.is_none()) {
        legend.push((
            "releases, interrupts, and a first stall by regulation",
            sample(Ink::Kernel),
        ));
    }
    let is_dense = |row: &Row| row.releases.len() > ARROWS;
    let [release, deadline] = match schedule.rows.iter().any(is_dense) {
        true => [
            "release, where a row has room for arrows",
            "deadline, in the same rows",
        ],
        false => ["release", "deadline"],
    };
    legend.push((release, Shape::Up(0.5, Ink::Word)));
    legend.push((deadline, Shape::Down(0.5, Ink::Limit)));
    let frame = Frame {
        axis: &axis,
        range: (0.0, scaled(schedule.length)),
        logarithmic: false,
        legend: &legend,
    };
    draw(&frame, &lanes)
}
