//! Progress of long work on the terminal.
//!
//! What it deliberately does not know: what is done. It shows nothing but warnings if standard error is not a terminal.

use bulkhead_runner::progress::{Progress, Stage};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Bars for stages.
pub struct Bars {
    all: MultiProgress,
    open: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Bars {
    /// Nothing on the screen yet.
    pub fn new() -> Self {
        Self {
            all: MultiProgress::new(),
            open: Mutex::new(BTreeMap::new()),
        }
    }
}

impl Progress for Bars {
    fn stage(&self, stage: Stage<'_>) {
        // A poisoned lock only means that another bar could not be drawn.
        let mut open = self
            .open
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        match stage {
            Stage::Work { what } => {
                let bar = self.all.add(ProgressBar::new_spinner());
                bar.set_message(what.to_owned());
                bar.enable_steady_tick(Duration::from_millis(120));
                open.insert(what.to_owned(), bar);
            }
            Stage::Simulation {
                name,
                microseconds,
                of,
            } => {
                let bar = open.entry(name.to_owned()).or_insert_with(|| {
                    let bar = self.all.add(ProgressBar::new(of));
                    if let Ok(style) = ProgressStyle::with_template(
                        "  {msg:<16} {bar:30} {percent:>3} % of simulated time, {eta} left",
                    ) {
                        bar.set_style(style);
                    }
                    bar.set_message(name.to_owned());
                    bar
                });
                bar.set_position(microseconds.min(of));
            }
            Stage::Done { name } => {
                if let Some(bar) = open.remove(name) {
                    bar.finish_and_clear();
                }
            }
            Stage::Warning { text } => self.all.suspend(|| eprintln!("{}", text.trim_end())),
        }
    }
}
