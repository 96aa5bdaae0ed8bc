//! `bulkhead study`.

use super::{Outcome, print_json, say};
use crate::arguments::{Study, StudyMc2, StudyPlacement, StudySensitivity, StudyVariants};
use bulkhead_experiments::study::{
    self, Folder, Identity, Request, Scenario, Scheme, StudyParameters, VARIANTS, Variant,
    bad_parameter, matching,
};
use bulkhead_runner::error::exit;
use bulkhead_runner::{Error, place};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// Runs a study.
pub fn study(which: &Study) -> Outcome {
    match which {
        Study::Mc2(options) => mc2(options),
        Study::Sensitivity(options) => sensitivity(options),
        Study::Variants(options) => variants(options),
        Study::Placement(options) => placement(options),
    }
}

/// A bar that counts `what` and estimates the remaining time.
fn bar(what: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("  {msg} {bar:30} {pos}/{len}, {elapsed} gone, {eta} left")
    {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

fn show(bar: &ProgressBar) -> impl Fn(usize, usize) + Sync {
    move |done, of| {
        if bar.length() != Some(of as u64) {
            // Counts of an earlier run took no time in this one.
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            bar.reset_eta();
        }
        bar.set_position(done as u64);
    }
}

fn selected(pattern: &str, quick: bool) -> Result<Vec<Scenario>, Error> {
    let all = matching(pattern).map_err(bad_parameter)?;
    Ok(if quick {
        study::thinned(&all, study::QUICK)
    } else {
        all
    })
}

fn schemes(names: &[String]) -> Result<Vec<Scheme>, Error> {
    if names.is_empty() {
        return Ok(Scheme::ALL.to_vec());
    }
    let mut some = names
        .iter()
        .map(|name| Scheme::parse(name))
        .collect::<Result<Vec<_>, _>>()
        .map_err(bad_parameter)?;
    some.sort_unstable();
    some.dedup();
    Ok(some)
}

fn parameters(options: &StudyMc2) -> Result<StudyParameters, Error> {
    let mut parameters = StudyParameters::default();
    if let Some(seed) = options.seed {
        parameters.seed = seed;
    }
    if options.quick {
        study::quick(&mut parameters);
    }
    if let Some(name) = &options.variant {
        (study::named(name).map_err(bad_parameter)?.change)(&mut parameters);
    }
    Ok(parameters)
}

/// The command, with the variant.
fn command(
    options: &StudyMc2,
    pattern: &str,
    schemes: &[Scheme],
    is_quick: bool,
    seed: u64,
) -> String {
    let mut text = study::command(pattern, schemes, is_quick, seed);
    if let Some(name) = &options.variant {
        text += &format!(" --variant {name}");
    }
    text
}

/// The study to run: a new one, or the study of a folder where the command line does not override it.
fn request(options: &StudyMc2) -> Result<Request, Error> {
    let pattern = options.scenarios.as_deref().unwrap_or("*");
    let (schemes, parameters) = (schemes(&options.schemes)?, parameters(options)?);
    let mut request = Request {
        scenarios: selected(pattern, options.quick)?,
        threads: options.threads.map(std::num::NonZeroUsize::get),
        folder: PathBuf::new(),
        resume: options.resume.is_some(),
        command: command(options, pattern, &schemes, options.quick, parameters.seed),
        schemes,
        parameters,
    };
    match &options.resume {
        Some(folder) => {
            request.folder.clone_from(folder);
            let there = Folder::identity(folder)?;
            as_begun(options, &there, &mut request)?;
        }
        None => {
            request.folder = options
                .out
                .clone()
                .unwrap_or_else(|| PathBuf::from("out/study-mc2"));
        }
    }
    Ok(request)
}

/// A resumed study keeps what the command line does not change. Its changes are compared with the folder when the folder is
/// opened.
fn as_begun(options: &StudyMc2, there: &Identity, request: &mut Request) -> Result<(), Error> {
    if options.schemes.is_empty() {
        request.schemes.clone_from(&there.schemes);
    }
    let mut is_quick = options.quick;
    let mut begun = None;
    if !options.quick && options.seed.is_none() && options.variant.is_none() {
        // The model and the precision of the begun study. The hash checks that the rest agrees with this version.
        let frozen: fn(&mut StudyParameters) = |_| ();
        let models = std::iter::once((None, frozen))
            .chain(VARIANTS.iter().map(|v| (Some(v.name), v.change)));
        for (name, change) in models {
            for reduced in [false, true] {
                let mut known = StudyParameters::default();
                if reduced {
                    study::quick(&mut known);
                }
                change(&mut known);
                known.seed = there.parameters.seed;
                if known.hash() == there.parameters_hash {
                    request.parameters = known;
                    (is_quick, begun) = (reduced, name);
                }
            }
        }
    }
    match &options.scenarios {
        // Other scenarios are a different question: the folder then records the new one.
        Some(pattern) => {
            request.scenarios = selected(pattern, is_quick)?;
            let seed = request.parameters.seed;
            request.command = command(options, pattern, &request.schemes, is_quick, seed);
            if let Some(name) = begun {
                request.command += &format!(" --variant {name}");
            }
        }
        None => {
            request.scenarios = there
                .scenarios
                .iter()
                .map(|&index| Scenario::from_index(index))
                .collect::<Result<_, _>>()
                .map_err(bad_parameter)?;
            request.command.clone_from(&there.command);
        }
    }
    Ok(())
}

fn mc2(options: &StudyMc2) -> Outcome {
    let request = request(options)?;
    let bar = bar("scenarios");
    let result = study::run(&request, &show(&bar))?;
    bar.set_message("writing");
    study::write(&request.folder, &result)?;
    bar.finish_and_clear();
    if options.json {
        print_json(&result)?;
    } else {
        say(&format!(
            "{}\nFiles in {}:\n  index.html (all plots)\n  summary.json\n  counts.csv\n  plots/",
            study::table(&result)?,
            request.folder.display()
        ));
    }
    Ok(exit::GOOD)
}

fn sensitivity(options: &StudySensitivity) -> Outcome {
    place::writable(&options.out)?;
    let bar = bar("variations");
    let all = study::sensitivity(
        &StudyParameters::default(),
        &selected(&options.scenarios, false)?,
        options.threads.map(std::num::NonZeroUsize::get),
        &show(&bar),
    )?;
    bar.finish_and_clear();
    Answer {
        name: "sensitivity.json",
        page: study::sensitivity_page(&all, &place::pages(&options.out)?),
        shows: "",
        table: study::sensitivity_table(&all),
    }
    .give(&all, &options.out, options.json)
}

fn variants(options: &StudyVariants) -> Outcome {
    let some: Vec<&Variant> = if options.variant.is_empty() {
        VARIANTS.iter().collect()
    } else {
        let names = options.variant.iter();
        names
            .map(|name| study::named(name).map_err(bad_parameter))
            .collect::<Result<_, _>>()?
    };
    place::writable(&options.out)?;
    let bar = bar("variants");
    let all = study::variants(
        &StudyParameters::default(),
        &some,
        &selected(&options.scenarios, false)?,
        options.threads.map(std::num::NonZeroUsize::get),
        &show(&bar),
    )?;
    bar.finish_and_clear();
    Answer {
        name: "variants.json",
        page: study::variants_page(&all, &place::pages(&options.out)?),
        shows: " (what differs, and the arguments)",
        table: study::variants_table(&all),
    }
    .give(&all, &options.out, options.json)
}

fn placement(options: &StudyPlacement) -> Outcome {
    let bar = bar("scenarios");
    let scenarios = selected(&options.scenarios, false)?;
    bar.set_length(study::placement_work(&scenarios) as u64);
    let rows = study::placement(
        &StudyParameters::default(),
        &scenarios,
        options.samples,
        options.threads.map(std::num::NonZeroUsize::get),
        &|| bar.inc(1),
    )?;
    bar.finish_and_clear();
    if options.json {
        print_json(&rows)?;
    } else {
        say(&study::placement_table(&rows));
    }
    Ok(exit::GOOD)
}

/// A command's answer: a file for machines, a page and a table.
struct Answer<'a> {
    /// Name of the file for machines.
    name: &'a str,
    page: String,
    /// The content of the page, in brackets.
    shows: &'a str,
    table: String,
}

impl Answer<'_> {
    /// Writes the files and prints the table, or the data with `json`.
    fn give(&self, data: &impl serde::Serialize, folder: &Path, json: bool) -> Outcome {
        let text = serde_json::to_string_pretty(data)
            .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
        place::replace(&folder.join(self.name), &text)?;
        place::replace(&folder.join("index.html"), &self.page)?;
        if json {
            print_json(data)?;
        } else {
            let Self {
                name, shows, table, ..
            } = self;
            let folder = folder.display();
            say(&format!(
                "{table}\nFiles in {folder}:\n  index.html{shows}\n  {name}"
            ));
        }
        Ok(exit::GOOD)
    }
}
