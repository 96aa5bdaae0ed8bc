//! `bulkhead plan`.

use super::{Outcome, print_json, say};
use crate::arguments::{Export, Meaning, Plan};
use bulkhead_runner::plan::{self, Format};
use bulkhead_runner::{Error, report::plan as report};

/// The options as the runner wants them.
pub fn meaning(options: &Meaning) -> plan::Meaning {
    plan::Meaning {
        policy: options.policy.clone(),
        processors: options.processors,
        unit: options.unit.clone(),
        set: options.task_set,
    }
}

/// Completes a task system, bounds it, and writes it.
pub fn plan(options: &Plan) -> Outcome {
    let meaning = meaning(&options.meaning);
    let Some(system) = plan::load(&options.system, &options.set, &meaning)? else {
        // Loading it as a system says what is wrong with the file, if anything is.
        bulkhead_model::load_system(&options.system, &bulkhead_model::LoadOptions::default())?;
        return Err(Error::input(
            "a <system> places itself when it is loaded; there is nothing left to plan",
            "`bulkhead check` bounds its tasks; write a <task-system> for what is to be planned",
        ));
    };
    let plan = plan::planned(&system)?;
    let code = super::check::code(plan.schedulable);
    let format = match options.export {
        Some(Export::Schedcat) => Format::Schedcat,
        Some(Export::Csv) => Format::Csv,
        Some(Export::Xml) | None => Format::Xml,
    };
    let unit = plan::unit(meaning.unit.as_deref())?;
    if let Some(file) = &options.out {
        // A plan that fails is no plan; what was there stays.
        if plan.schedulable {
            let text = plan::export(&plan.system, format, unit)?;
            std::fs::write(file, text).map_err(|error| Error::file(file, error))?;
        }
    } else if options.export.is_some() {
        say(&plan::export(&plan.system, format, unit)?);
        return Ok(code);
    }
    if options.json {
        print_json(&plan)?;
        return Ok(code);
    }
    let mut text = report::summary(&plan);
    if let Some(file) = &options.out {
        let name = file.display();
        text.push_str(&if plan.schedulable {
            format!("\nwritten to {name}\n")
        } else {
            format!("\n{name} is not written: a plan that fails is none\n")
        });
    }
    say(&text);
    Ok(code)
}
