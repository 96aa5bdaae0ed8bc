//! `bulkhead plan`.

use super::{Outcome, page_written, print_json, say, write_page};
use crate::arguments::{Aim, Export, Meaning, Plan};
use bulkhead_analysis::plan::cores;
use bulkhead_analysis::plan::files::{self as plan, Format};
use bulkhead_analysis::plan::system::complete as system_plan;
use bulkhead_report::verdict::Verdict;
use bulkhead_report::{plan as report, plan_page};
use bulkhead_runner::{Error, place};
use std::path::Path;

/// The options in the runner's form.
pub fn meaning(options: &Meaning) -> plan::Meaning {
    plan::Meaning {
        policy: options.policy.clone(),
        processors: options.processors,
        unit: options.unit.clone(),
        set: options.task_set,
    }
}

/// Refuses these options for anything but a task system, where they would change nothing.
pub fn only_tasks(options: &Meaning) -> Result<(), Error> {
    let all = [
        ("--policy", options.policy.is_some()),
        ("--processors", options.processors.is_some()),
        ("--unit", options.unit.is_some()),
        ("--task-set", options.task_set.is_some()),
    ];
    match all.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Error::input(
            format!("{option} is about task systems"),
            "leave it out; --set changes a system or a platform, such as --set 'tilemux[TILE]@policy=realtime' or --set @platform=NAME",
        )),
    }
}

/// Completes a task system or a system, bounds it, and writes it.
pub fn plan(options: &Plan) -> Outcome {
    if options.page.is_some() && options.page == options.out {
        return Err(Error::input(
            "--out and --page name the same file",
            "one holds the completed system, the other one a page about it: name two",
        ));
    }
    let meaning = meaning(&options.meaning);
    let wish = cores::Wish {
        aim: match options.aim {
            Some(Aim::Latency) => cores::Aim::Latency,
            Some(Aim::Cores) | None => cores::Aim::Cores,
        },
        cores: options.cores,
    };
    // A system of the one-shot RTOS is written as such, not as its tasks with the costs of its bounds.
    let placed = cores::planned(&options.system, &options.set, &wish)?;
    let plan = match &placed {
        Some(placed) => placed.plan.clone(),
        None if options.aim.is_some() || options.cores.is_some() => {
            return Err(Error::input(
                "--aim and --cores are about tasks of the one-shot RTOS",
                "leave them out, or write paradigm=\"one-shot\" at the <system>",
            ));
        }
        None => match plan::load(&options.system, &options.set, &meaning)? {
            Some(system) => plan::planned(&system)?,
            None => return plan_system(options),
        },
    };
    write_page(options.page.as_deref(), |book| {
        plan_page::tasks(&plan, None, book)
    })?;
    let verdict = report::verdict(&plan);
    let format = match options.export {
        Some(Export::Schedcat) => Format::Schedcat,
        Some(Export::Csv) => Format::Csv,
        Some(Export::Xml) | None => Format::Xml,
    };
    let unit = plan::unit(meaning.unit.as_deref())?;
    let text = || match (&placed, format) {
        (Some(placed), Format::Xml) => cores::completed(&options.system, &options.set, placed),
        _ => plan::export(&plan.system, format, unit),
    };
    deliver(options, &verdict, &plan, text, || report::summary(&plan))
}

/// Completes a system with a chip, bounds it, and writes it.
fn plan_system(options: &Plan) -> Outcome {
    if matches!(options.export, Some(Export::Schedcat | Export::Csv)) {
        return Err(Error::input(
            "a <system> is more than a task set, so only our own format can hold it",
            "leave --export out, or write --export xml",
        ));
    }
    only_tasks(&options.meaning)?;
    let plan = system_plan::planned(&options.system, &options.set)?;
    write_page(options.page.as_deref(), |book| {
        plan_page::system(&plan.system, &plan.runs, &plan.choices, &[], &[], book)
    })?;
    let verdict = report::system_verdict(&plan.runs);
    let text = || system_plan::completed(&options.system, &options.set, &plan);
    deliver(options, &verdict, &plan, text, || report::system(&plan))
}

/// Writes the completed file, and prints the file, the plan for machines, or its summary, as the options say.
fn deliver<E>(
    options: &Plan,
    verdict: &Verdict,
    plan: &impl serde::Serialize,
    text: impl Fn() -> Result<String, E>,
    summary: impl Fn() -> String,
) -> Outcome
where
    Error: From<E>,
{
    let (code, good) = (verdict.code(false), verdict.is_kept());
    if let Some(file) = &options.out {
        // A failed plan is not written; the existing file stays.
        if good {
            place::write(file, text()?)?;
        }
    } else if options.export.is_some() {
        say(&text()?);
        return Ok(code);
    }
    if options.json {
        print_json(&report::with_verdict(plan, verdict)?)?;
        return Ok(code);
    }
    let mut out = summary();
    if let Some(file) = &options.out {
        out.push_str(&written(file, good));
    }
    out.push_str(&page_written(options.page.as_deref()));
    say(&out);
    Ok(code)
}

/// A sentence on what happened to the file.
fn written(file: &Path, good: bool) -> String {
    let name = file.display();
    if good {
        format!("\nwritten to {name}\n")
    } else {
        format!("\n{name} is not written, because the plan fails\n")
    }
}
