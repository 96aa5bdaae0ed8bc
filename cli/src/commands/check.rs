//! `bulkhead check`.

use super::plan::{meaning, only_tasks};
use super::{Outcome, page_written, print_json, say, write_page};
use crate::arguments::Check;
use bulkhead_analysis::one_shot_clocks::{ClockBound, ClockError, ErrorBound};
use bulkhead_analysis::plan::Judgement;
use bulkhead_analysis::plan::files as plan;
use bulkhead_analysis::plan::system::complete as system_plan;
use bulkhead_model::platform::{Cache, Origin, Platform};
use bulkhead_model::units::Time;
use bulkhead_model::{LoadOptions, Root, System, TaskSystem, load_platform, load_system};
use bulkhead_report::format::{counted, grouped};
use bulkhead_report::placement::Placement;
use bulkhead_report::plan_page::Section;
use bulkhead_report::table::{Grid, nobody, placement_grid, plain, render};
use bulkhead_report::{plan as report, plan_page};
use bulkhead_runner::Error;
use bulkhead_runner::bare::unbounded_flows;
use bulkhead_runner::convert::{accepted, convert};
use bulkhead_runner::programs::absent_tasks;
use bulkhead_runner::tiled::unfinished::too_limited;
use bulkhead_runner::tiled::{admission, requests};
use bulkhead_runner::{place, run};
use serde_json::json;
use std::path::Path;

/// Validates a description and says what is in it.
pub fn check(options: &Check) -> Outcome {
    let load = LoadOptions::with_changes(&options.set);
    if bulkhead_model::root(&options.system, &load) == Root::Platform {
        only_tasks(&options.meaning)?;
        let platform = load_platform(&options.system, &load)?;
        convert(&platform).check().map_err(Error::from)?;
        return check_platform(&platform, options.json);
    }
    let meaning = meaning(&options.meaning);
    match plan::load(&options.system, &options.set, &meaning)? {
        Some(tasks) => {
            let assumed = plan::assumed(&options.system, &options.set)?;
            let clocks = plan::clocks(&options.system, &options.set)?;
            check_tasks(&tasks, (assumed, &clocks), options)
        }
        None => {
            only_tasks(&options.meaning)?;
            check_system(options)
        }
    }
}

/// Possible mistakes: names that mention an automotive level while the letter suggests another one. Those levels count the other way round.
fn notes(system: &System) -> Vec<String> {
    let all = system.domains.iter().filter_map(|domain| {
        let level = asil(&domain.local)?;
        // D, C, B, A and QM.
        let meant = if level == 'Q' { 'E' } else { (b'A' + b'D' - level as u8) as char };
        let named = if level == 'Q' { "QM".to_owned() } else { format!("ASIL {level}") };
        (meant != domain.criticality).then(|| {
            format!(
                "domain `{}` has criticality {}, of A (highest) to E; {named} is criticality {meant} (docs/criticality.md)",
                domain.name, domain.criticality
            )
        })
    });
    all.collect()
}

/// Limits that keep an application from doing anything in the run, each with its variants.
fn limits(variants: &[(String, System)]) -> Vec<String> {
    by_variant(variants, too_limited)
}

/// Notes on variants, each with the variants that it is about.
fn by_variant(
    variants: &[(String, System)],
    notes: impl Fn(&System) -> Vec<String>,
) -> Vec<String> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, variant) in variants {
        for note in notes(variant) {
            match all.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(name),
                None => all.push((note, vec![name])),
            }
        }
    }
    let in_words = |(note, names): (String, Vec<&str>)| match names.len() == variants.len() {
        true => note,
        false => format!("in {}: {note}", names.join(", ")),
    };
    all.into_iter().map(in_words).collect()
}

/// The automotive level mentioned in a name: `A` to `D`, `Q` for QM.
fn asil(name: &str) -> Option<char> {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(['-', '_']);
    while let Some(word) = words.next() {
        let level = match word.strip_prefix("ASIL") {
            Some("") => words.next()?,
            Some(level) => level,
            None if word == "QM" => "QM",
            None => continue,
        };
        return match level {
            "A" | "B" | "C" | "D" => level.chars().next(),
            "QM" => Some('Q'),
            _ => None,
        };
    }
    None
}

/// Shows what a platform has. It is valid: it was loaded, and the machine takes it.
fn check_platform(platform: &Platform, as_json: bool) -> Outcome {
    if as_json {
        print_json(platform)?;
        return Ok(0);
    }
    let mut table = plain(&[
        "tile",
        "harts",
        "pipeline",
        "clock",
        "first level",
        "second level",
        "unit",
    ]);
    for tile in &platform.tiles {
        let cache = |cache: &Option<Cache>| cache.as_ref().map(|cache| cache.size.to_string());
        let first = [&tile.l1i, &tile.l1d].into_iter().filter_map(cache);
        table.add_row(vec![
            tile.id.to_string(),
            tile.cluster
                .as_ref()
                .map_or(tile.harts, |cluster| cluster.harts)
                .to_string(),
            tile.pipeline.name.clone(),
            tile.pipeline.clock.frequency.to_string(),
            first.collect::<Vec<_>>().join(" + "),
            cache(&tile.l2).unwrap_or_default(),
            match (&tile.dtu, &tile.accelerator) {
                (Some(unit), None) => format!("{} endpoints", unit.endpoints),
                (Some(unit), Some(_)) => format!("{} endpoints, streaming", unit.endpoints),
                (None, _) => String::new(),
            },
        ]);
    }
    let mut memories = plain(&["memory tile", "controller", "clock", "banks", "size"]);
    for memory in &platform.memories {
        memories.add_row(vec![
            memory.id.to_string(),
            memory.dram.name.clone(),
            memory.dram.clock.frequency.to_string(),
            memory.dram.banks.to_string(),
            memory.size.to_string(),
        ]);
    }
    let assumed = |origin: &&Origin| origin.source.starts_with("assumption");
    say(&format!(
        "{}: valid\n{}\n{}\n{}\nSources: {} of values, {} of them assumptions",
        platform.name,
        platform
            .about
            .as_ref()
            .map_or(String::new(), |about| format!("{about}\n")),
        render(&table),
        render(&memories),
        platform.origins.len(),
        platform.origins.iter().filter(assumed).count()
    ));
    Ok(0)
}

/// Judges a task system.
fn check_tasks(
    system: &TaskSystem,
    (assumed, clocks): (Option<String>, &[ClockBound]),
    options: &Check,
) -> Outcome {
    let mut judged = plan::judged(system)?;
    judged.plan.notes.extend(assumed);
    judged.plan.notes.extend(absent_programs(options)?);
    let verdict = report::verdict(&judged.plan);
    write_page(options.page.as_deref(), |book| {
        plan_page::tasks(&judged.plan, Some(&judged.repairs), book)
    })?;
    if options.json {
        let mut value = report::with_verdict(&judged, &verdict)?;
        if let Some(fields) = value.as_object_mut().filter(|_| !clocks.is_empty()) {
            fields.insert("clocks".to_owned(), json!(clocks));
        }
        print_json(&value)?;
    } else {
        let mut text = report::judged(&judged.plan, &judged.repairs);
        text.push_str(&clock_table(clocks));
        say(&(text + &page_written(options.page.as_deref())));
    }
    Ok(verdict.code(false))
}

/// Programs of a one-shot system that are not there, if the machine takes its chip; nothing for other files.
fn absent_programs(options: &Check) -> Result<Vec<String>, Error> {
    let load = LoadOptions::with_changes(&options.set);
    if bulkhead_model::root(&options.system, &load) != Root::OneShot {
        return Ok(Vec::new());
    }
    let system = load_system(&options.system, &load)?;
    accepted(&system)?;
    let base = options.system.parent().unwrap_or(Path::new(""));
    match &system.one_shot {
        Some(tasks) => Ok(absent_tasks(&place::root()?, base, tasks)),
        None => Ok(Vec::new()),
    }
}

/// How wrong the clocks of cores may be.
fn clock_table(clocks: &[ClockBound]) -> String {
    if clocks.is_empty() {
        return String::new();
    }
    let mut table = plain(&["core", "follows", "synchronised", "end"]);
    let time = |time: Time| format!("{} ns", grouped(time.0.div_ceil(1000)));
    for one in clocks {
        let error = one.error.within();
        let cell =
            |of: fn(ClockError) -> Time| error.map_or("not judged".to_owned(), |e| time(of(e)));
        table.add_row(vec![
            one.core.to_string(),
            one.master.to_string(),
            cell(|error| error.synchronised),
            cell(|error| error.end),
        ]);
    }
    let mut text = format!(
        "\nBounds of the error of clocks, when they are synchronised and after the system's duration, beside no flood of the mesh:\n{}",
        render(&table)
    );
    for one in clocks {
        if let ErrorBound::Unbounded { unbounded } = &one.error {
            text += &format!("\nThe clock of core {}: {unbounded}", one.core);
        }
    }
    text
}

/// Judges a system: its tasks, and the delays of its regulated traffic.
fn check_system(options: &Check) -> Outcome {
    let (system, _) = run::load(&options.system, &options.set, &place::root()?)?;
    let variants = run::variants(&system, &[])?;
    let runs = system_plan::runs(&system)?;
    let verdict = report::system_verdict(&runs);
    let repairs = if verdict.is_kept() {
        Vec::new()
    } else {
        system_plan::repairs(&options.system, &options.set)?
    };
    let placement = Placement::of(&system);
    let placed = Section {
        title: "Placement",
        grid: placement_grid(&placement),
        note: nobody(&placement),
    };
    let asked = requests_of(&variants, run::reference_cycle(&system).max(1));
    let shared = shared_tiles(&variants)?;
    write_page(options.page.as_deref(), |book| {
        let sections = [placed.clone(), asked.clone(), shared.clone()];
        plan_page::system(&system.name, &runs, &[], &repairs, &sections, book)
    })?;
    let mut noted = notes(&system);
    noted.extend(limits(&variants));
    noted.extend(by_variant(&variants, unbounded_flows));
    if options.json {
        let names: Vec<&str> = variants.iter().map(|(name, _)| name.as_str()).collect();
        let mut tiles = serde_json::Map::new();
        for (name, variant) in &variants {
            tiles.insert(name.clone(), json!(admission::judge(variant)?));
        }
        print_json(&json!({
            "shared_tiles": tiles,
            "system": system.name, "platform": system.platform.name, "applications": system.apps.len(),
            "flows": system.flows.len(), "variants": names,
            "verdict": verdict, "placement": placement, "notes": noted,
            "tasks": runs.iter().flat_map(|run| run.verdict.tasks.iter().map(|plan| json!({
                "variant": run.variant, "policy": plan.system.policy, "constraints": plan.constraints,
            }))).collect::<Vec<_>>(),
            "constraints": runs.iter().map(|run| json!({
                "variant": run.variant, "constraints": run.verdict.constraints,
                "assumptions": run.verdict.assumptions,
            })).collect::<Vec<_>>(),
            "repairs": repairs,
        }))?;
        return Ok(verdict.code(false));
    }
    let mut text = format!(
        "{} on {}: {}, {}, valid\n",
        system.name,
        system.platform.name,
        counted(system.apps.len(), "application"),
        counted(system.flows.len(), "flow")
    );
    for (name, variant) in &variants {
        text.push_str(&format!(
            "  variant {name}: {}, {}\n",
            counted(variant.apps.len(), "application"),
            variant.duration
        ));
    }
    text.push_str(&verdict.head(&[]));
    for note in noted {
        text.push_str(&format!("Note: {note}\n"));
    }
    text.push_str(&placed.text());
    text.push_str(&asked.text());
    for run in &runs {
        text.push_str(&report::run(run));
    }
    if !verdict.is_kept() {
        text.push_str(&report::system_repairs(&repairs));
    }
    text.push_str(&shared.text());
    text.push_str(&page_written(options.page.as_deref()));
    say(&text);
    Ok(verdict.code(false))
}

/// Maximum time of one request of each application; nothing if no request has a bound. `cycle`: ticks of a cycle.
fn requests_of(variants: &[(String, System)], cycle: u64) -> Section {
    let mut grid = Grid::new(&[
        "variant",
        "application",
        "request",
        "bound",
        "wait for tokens",
    ]);
    let cycles =
        |ticks: Option<u64>| ticks.map_or("-".to_owned(), |ticks| grouped(ticks.div_ceil(cycle)));
    for (name, variant) in variants {
        for request in requests::of_system(variant) {
            let cells = vec![
                name.clone(),
                request.application.clone(),
                request.kind.clone(),
                cycles(request.bound.as_ref().map(|bound| bound.ticks)),
                cycles(request.tokens),
            ];
            grid.rows.push((true, cells));
        }
    }
    Section {
        title: "Bounds of one request each, in cycles of the user tiles",
        grid,
        note: None,
    }
}

/// Response times on tiles with fixed priorities; the verdict lists them as quotas.
fn shared_tiles(variants: &[(String, System)]) -> Result<Section, Error> {
    let mut grid = Grid::new(&[
        "variant",
        "tile",
        "application",
        "priority",
        "quota",
        "period",
        "response",
        "deadline",
        "",
    ]);
    let time = |nanoseconds: u64| format!("{} us", grouped(nanoseconds.div_ceil(1000)));
    for (name, variant) in variants {
        for tile in admission::judge(variant)? {
            for one in &tile.reservations {
                let cells = vec![
                    name.clone(),
                    tile.tile.to_string(),
                    one.app.clone(),
                    one.priority.to_string(),
                    time(one.budget),
                    time(one.period),
                    one.response.map_or("none".to_owned(), time),
                    time(one.deadline),
                    match one.judgement() {
                        Judgement::Held => "admitted",
                        Judgement::Failed => "REFUSED",
                        Judgement::NotJudged => "not judged",
                    }
                    .to_owned(),
                ];
                grid.rows
                    .push((one.judgement() != Judgement::Failed, cells));
            }
        }
    }
    Ok(Section {
        title: "Worst response times on tiles with fixed priorities",
        grid,
        note: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::load_system_text;

    #[test]
    fn automotive_levels_in_names_are_found() {
        let cases = [
            ("brake-asil-d", Some('D')),
            ("asilb", Some('B')),
            ("ASIL_A-lamp", Some('A')),
            ("radio-qm", Some('Q')),
            ("basil-d", None),
            ("asil-e", None),
            ("asil", None),
        ];
        for (name, level) in cases {
            assert_eq!(asil(name), level, "{name}");
        }
    }

    #[test]
    fn a_letter_that_looks_like_an_automotive_level_is_noted() {
        let system = |letter: char| {
            let text = format!(
                "<system name=\"s\" platform=\"tiled-gem5\" duration=\"1ms\"><domain name=\"brake-asil-d\" criticality=\"{letter}\">\
                 <app name=\"a\" program=\"x\"/></domain></system>"
            );
            load_system_text("s.xml", &text, &LoadOptions::default()).expect("valid")
        };
        assert!(notes(&system('A')).is_empty());
        insta::assert_snapshot!(notes(&system('D')).join("\n"), @"domain `brake-asil-d` has criticality D, of A (highest) to E; ASIL D is criticality A (docs/criticality.md)");
    }

    #[test]
    fn a_limit_that_lets_nothing_be_done_is_noted() {
        let text = "<system name=\"s\" platform=\"tiled-2ghz\" duration=\"10ms\"><domain name=\"d\" criticality=\"D\">\
             <app name=\"hog\" program=\"x\"><limit noc=\"1KiB/s\" burst=\"512B\"/></app></domain>\
             <variant name=\"slow\"/><variant name=\"fast\"><set path=\"d/hog/limit@noc\" value=\"8MiB/s\"/></variant></system>";
        let load = LoadOptions::default();
        let system = load_system_text("s.xml", text, &load).expect("valid");
        let variants = run::variants(&system, &[]).expect("two variants");
        insta::assert_snapshot!(limits(&variants).join("\n"), @"in slow: the <limit> of `hog` lets at most 522 bytes through in 10ms, the duration of the run; the smallest program reads about 8192 bytes from memory before it does anything");
    }
}
