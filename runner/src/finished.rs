//! A finished run: its files, and what the terminal says about it besides the tables.
//!
//! What it deliberately does not know: how it was made.

use crate::error::Error;
use crate::place;
use bulkhead_machine::observe::Missing;
use bulkhead_report as report;
use bulkhead_report::result::RunResult;
use std::path::{Path, PathBuf};

/// A run that is over.
pub struct Finished {
    /// The content of `result.json`.
    pub result: RunResult,
    /// Console of each variant.
    pub consoles: Vec<String>,
    /// Trace of each variant.
    pub traces: Vec<Option<Vec<u8>>>,
    /// The events for which each trace had no room.
    pub missing: Vec<Missing>,
}

impl Finished {
    /// Exit code of the command.
    pub fn code(&self) -> u8 {
        self.result.code()
    }

    /// The incomplete traces, one line each. A trace is not a result, so this is not an incident.
    pub fn truncations(&self) -> Vec<String> {
        let all = self.result.variants.iter().zip(&self.missing);
        all.filter(|(_, missing)| missing.events > 0)
            .map(|(variant, missing)| {
                let from = missing.from.unwrap_or_default();
                format!(
                    "{}.pftrace is truncated: {} events had no room, the first of them at {:.3} ms; --trace-from, --trace-until and \
                     --trace-tiles choose what it shows",
                    variant.name,
                    report::format::grouped(missing.events),
                    self.result.microseconds(from) / 1000.0
                )
            })
            .collect()
    }

    /// Writes all files into `folder`. Returns their paths. Removes consoles and traces of variants that only the folder's previous
    /// run had, so that `result.json` is the only result there.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let before = earlier(folder);
        let book = place::pages(folder)?;
        let mut written = Vec::new();
        let mut add = |name: String, contents: &[u8]| -> Result<(), Error> {
            let path = folder.join(name);
            place::replace(&path, contents)?;
            written.push(path);
            Ok(())
        };
        add(
            "report.html".to_owned(),
            report::page::report(&self.result, &self.truncations(), &book)?.as_bytes(),
        )?;
        let json = serde_json::to_string_pretty(&self.result)
            .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
        add("result.json".to_owned(), json.as_bytes())?;
        for (index, variant) in self.result.variants.iter().enumerate() {
            add(
                format!("{}.console.txt", variant.name),
                self.consoles[index].as_bytes(),
            )?;
            if let Some(trace) = &self.traces[index] {
                add(format!("{}.pftrace", variant.name), trace)?;
            }
        }
        for path in before.into_iter().filter(|path| !written.contains(path)) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file(&path, error));
                }
                _ => {}
            }
        }
        Ok(written)
    }

    /// The output of each variant's programs: all of it, or the last `lines` lines of variants in which something went wrong.
    pub fn said(&self, lines: Option<usize>) -> String {
        let mut text = String::new();
        for (variant, console) in self.result.variants.iter().zip(&self.consoles) {
            let all: Vec<&str> = console.lines().collect();
            let shown = match lines {
                None => &all[..],
                Some(_) if variant.incidents.is_empty() => continue,
                Some(most) => &all[all.len().saturating_sub(most)..],
            };
            let which = match shown.len() == all.len() {
                true => String::new(),
                false => format!(", the last {} of {} lines", shown.len(), all.len()),
            };
            text.push_str(&format!("\nConsole of {}{which}:\n", variant.name));
            for line in shown {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text
    }
}

/// Files of the run whose result is in a folder.
fn earlier(folder: &Path) -> Vec<PathBuf> {
    let text = place::read(&folder.join("result.json")).unwrap_or_default();
    let Ok(result) = serde_json::from_slice::<RunResult>(&text) else {
        return Vec::new();
    };
    // A name in a description cannot lead out of the folder, but a name in a file can.
    let names = result.variants.iter().map(|variant| &variant.name);
    let names = names.filter(|name| !name.contains(['/', '\\']));
    names
        .flat_map(|name| ["console.txt", "pftrace"].map(|ending| format!("{name}.{ending}")))
        .map(|name| folder.join(name))
        .collect()
}
