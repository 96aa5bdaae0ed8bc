//! The one binary, `bulkhead`.
//!
//! Why it exists: this is where users meet Bulkhead. What it deliberately does not know: how anything is done;
//! it reads arguments, calls the runner and shows the result.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod diagnostics;
mod progress;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut command = Arguments::parse().command;
    let described = command.description().map_or(Ok(()), |named| {
        *named = bulkhead_runner::place::description(named)?;
        Ok(())
    });
    match described.and_then(|()| carry_out(command)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            diagnostics::show(&error);
            ExitCode::from(error.code())
        }
    }
}

fn carry_out(command: Command) -> commands::Outcome {
    match command {
        Command::Run(options) => commands::run::run(&options),
        Command::Audit(options) => commands::audit::audit(&options),
        Command::Check(options) => commands::check::check(&options),
        Command::Plan(options) => commands::plan::plan(&options),
        Command::Boot(options) => commands::boot::boot(&options),
        Command::Measure(options) => commands::measure::measure(&options),
        Command::Reproduce(options) => commands::reproduce::reproduce(&options),
        Command::Study { study } => commands::study::study(&study),
        Command::Platforms { json } => commands::list::platforms(json),
        Command::Systems { json } => commands::list::systems(json),
        Command::Programs { json } => commands::list::programs(json),
        Command::New {
            folder,
            language,
            tiles,
            paradigm,
        } => commands::new::new(&folder, language, tiles, paradigm),
        Command::Completions { shell } => commands::shell::completions(shell),
        Command::Man { folder } => commands::shell::manual(&folder),
    }
}
