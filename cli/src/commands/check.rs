//! `bulkhead check`.

use super::plan::meaning;
use super::{Outcome, print_json, say};
use crate::arguments::Check;
use bulkhead_analysis::plan::files as plan;
use bulkhead_analysis::plan::system::complete as system_plan;
use bulkhead_model::{System, TaskSystem};
use bulkhead_report::format::grouped;
use bulkhead_report::plan as report;
use bulkhead_report::result::Bound;
use bulkhead_report::table::{plain, render};
use bulkhead_runner::Error;
use bulkhead_runner::tiled::{admission, requests};
use bulkhead_runner::{place, run};
use serde_json::json;

/// Validates a description and says what is in it.
pub fn check(options: &Check) -> Outcome {
    let meaning = meaning(&options.meaning);
    match plan::load(&options.system, &options.set, &meaning)? {
        Some(tasks) => check_tasks(&tasks, options.json),
        None => check_system(options),
    }
}

/// Judges a task system.
fn check_tasks(system: &TaskSystem, as_json: bool) -> Outcome {
    let judged = plan::judged(system)?;
    let verdict = report::verdict(&judged.plan);
    if as_json {
        print_json(&report::with_verdict(&judged, &verdict)?)?;
    } else {
        say(&report::judged(&judged.plan, &judged.repairs));
    }
    Ok(verdict.code(false))
}

/// Judges a system: what its regulated traffic may suffer, and its tasks.
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
            "verdict": verdict,
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
        "{} on {}: {} applications, {} flows, valid\n",
        system.name,
        system.platform.name,
        system.apps.len(),
        system.flows.len()
    );
    for (name, variant) in &variants {
        text.push_str(&format!(
            "  variant {name}: {} applications, {}\n",
            variant.apps.len(),
            variant.duration
        ));
    }
    text.push_str(&verdict.head(&[]));
    let cycle = run::reference_cycle(&system).max(1);
    let mut table = plain(&[
        "variant",
        "application",
        "request",
        "bound",
        "wait for tokens",
    ]);
    let mut any = false;
    for (name, variant) in &variants {
        for request in requests::of_system(variant) {
            any = true;
            let cycles = |bound: &Option<Bound>| {
                bound
                    .as_ref()
                    .map_or("-".to_owned(), |bound| grouped(bound.ticks.div_ceil(cycle)))
            };
            table.add_row(vec![
                name.clone(),
                request.application.clone(),
                request.kind.clone(),
                cycles(&request.bound),
                request
                    .tokens
                    .map_or("-".to_owned(), |ticks| grouped(ticks.div_ceil(cycle))),
            ]);
        }
    }
    if any {
        text.push_str(&format!(
            "\nBounds of one request each, in cycles of the user tiles:\n{}",
            render(&table)
        ));
    }
    for run in &runs {
        text.push_str(&report::run(run));
    }
    if !verdict.is_kept() {
        text.push_str(&report::system_repairs(&repairs));
    }
    shared_tiles(&variants, &mut text)?;
    say(&text);
    Ok(verdict.code(false))
}

/// Response times on tiles with fixed priorities; the verdict has them as quotas.
fn shared_tiles(variants: &[(String, System)], text: &mut String) -> Result<(), Error> {
    let mut table = plain(&[
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
    let mut any = false;
    let time = |nanoseconds: u64| format!("{} us", grouped(nanoseconds.div_ceil(1000)));
    for (name, variant) in variants {
        for tile in admission::judge(variant)? {
            for one in &tile.reservations {
                any = true;
                table.add_row(vec![
                    name.clone(),
                    tile.tile.to_string(),
                    one.app.clone(),
                    one.priority.to_string(),
                    time(one.budget),
                    time(one.period),
                    one.response.map_or("none".to_owned(), time),
                    time(one.deadline),
                    if one.holds() { "admitted" } else { "REFUSED" }.to_owned(),
                ]);
            }
        }
    }
    if any {
        text.push_str(&format!(
            "\nTiles with fixed priorities, response times at worst:\n{}",
            render(&table)
        ));
    }
    Ok(())
}
