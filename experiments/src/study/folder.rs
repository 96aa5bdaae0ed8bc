//! The folder of a study: what identifies it, and what has been counted.
//!
//! Why it exists: a study can be stopped at any moment, even by `kill -9`, and continues from this folder. Each scenario is one
//! file, written next to its place and then renamed, with a checksum in its last line. So a file is complete or absent, and a
//! damaged one is counted again. Every count depends only on the study's identity, so nothing can be counted twice.

use super::summary::ScenarioCounts;
use bulkhead_analysis::mc2::parameters::StudyParameters;
use bulkhead_analysis::mc2::schemes::Scheme;
use bulkhead_analysis::mc2::study::Counts;
use bulkhead_analysis::mc2::task_system::Scenario;
use bulkhead_model::input;
use bulkhead_runner::error::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The identity of a study: two runs with the same one are the same study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Bulkhead's version.
    pub version: String,
    /// SHA-256 over all parameters.
    pub parameters_hash: String,
    /// The parameters, seed included.
    pub parameters: StudyParameters,
    /// Which schemes, in the paper's order.
    pub schemes: Vec<Scheme>,
    /// Numbers of the scenarios.
    pub scenarios: Vec<usize>,
    /// How the study was requested.
    pub command: String,
}

impl Identity {
    /// The identity of a study for this version.
    pub fn new(
        parameters: &StudyParameters,
        schemes: &[Scheme],
        scenarios: &[Scenario],
        command: &str,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            parameters_hash: parameters.hash(),
            parameters: parameters.clone(),
            schemes: schemes.to_vec(),
            scenarios: scenarios.iter().map(Scenario::index).collect(),
            command: command.to_owned(),
        }
    }
}

/// Name of the file with the identity.
pub const IDENTITY: &str = "study.json";
const COUNTS: &str = "counts";
const RESULTS: &str = "summary.json";

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    hash: String,
}

fn remedy_other(path: &Path) -> String {
    format!(
        "continue it (--resume {}), choose another folder (--out DIR), or remove it",
        path.display()
    )
}

impl Folder {
    /// Begins a study in a folder. Replaces a finished study there and refuses an unfinished one.
    pub fn create(path: &Path, identity: &Identity) -> Result<Self, Error> {
        if path.join(IDENTITY).exists() {
            if !path.join(RESULTS).exists() {
                return Err(Error::input(
                    format!("{} holds a study that is not finished", path.display()),
                    remedy_other(path),
                ));
            }
            let old = path.join(COUNTS);
            if old.exists() {
                std::fs::remove_dir_all(&old).map_err(|e| Error::file(&old, e))?;
            }
            let old = path.join(RESULTS);
            std::fs::remove_file(&old).map_err(|e| Error::file(&old, e))?;
        }
        write_identity(path, identity)?;
        Ok(Self::at(path, identity))
    }

    /// Continues the study of a folder. With other scenarios, the folder's study becomes the one requested now: its scenarios and
    /// its command are rewritten, and the counts of the old ones are kept for a later request.
    ///
    /// # Errors
    /// Refuses a folder without a study, and one of another version, other parameters, another seed or other schemes.
    pub fn resume(path: &Path, identity: &Identity) -> Result<Self, Error> {
        let there = Self::identity(path)?;
        let differs = |what: &str, theirs: &dyn std::fmt::Display, ours: &dyn std::fmt::Display| {
            Err(Error::input(
                format!(
                    "{} holds a study with {what} {theirs}; this one has {ours}",
                    path.display()
                ),
                "resume it with the command that began it (in its study.json), or choose another folder with --out",
            ))
        };
        if there.version != identity.version {
            return differs("version", &there.version, &identity.version);
        }
        if there.parameters.seed != identity.parameters.seed {
            return differs("seed", &there.parameters.seed, &identity.parameters.seed);
        }
        if there.parameters_hash != identity.parameters_hash
            || there.parameters_hash != there.parameters.hash()
        {
            let short = |hash: &str| hash.chars().take(12).collect::<String>();
            return differs(
                "parameters",
                &short(&there.parameters_hash),
                &short(&identity.parameters_hash),
            );
        }
        if there.schemes != identity.schemes {
            let names = |schemes: &[Scheme]| {
                schemes
                    .iter()
                    .map(|s| s.name())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            return differs("schemes", &names(&there.schemes), &names(&identity.schemes));
        }
        if there.scenarios != identity.scenarios {
            // Otherwise results of the old scenarios would be next to the new identity.
            let old = path.join(RESULTS);
            if old.exists() {
                std::fs::remove_file(&old).map_err(|e| Error::file(&old, e))?;
            }
            write_identity(path, identity)?;
        }
        Ok(Self::at(path, identity))
    }

    /// Reads the identity of a folder's study.
    pub fn identity(path: &Path) -> Result<Identity, Error> {
        let file = path.join(IDENTITY);
        if !file.exists() {
            return Err(Error::input(
                format!("{} holds no study", path.display()),
                "name the folder that a study was begun in (--out DIR)",
            ));
        }
        let text = input::read_text(&file).map_err(|error| Error::file(&file, error))?;
        serde_json::from_str(&text).map_err(|error| {
            Error::input(
                format!("{} is not readable: {error}", file.display()),
                "it was written by another version, or damaged; begin anew in another folder",
            )
        })
    }

    fn at(path: &Path, identity: &Identity) -> Self {
        Self {
            path: path.to_path_buf(),
            hash: identity.parameters_hash.clone(),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, scenario: Scenario) -> PathBuf {
        self.path
            .join(COUNTS)
            .join(format!("{:03}.csv", scenario.index()))
    }

    /// Keeps the counts of a scenario.
    pub fn keep(&self, counts: &ScenarioCounts) -> Result<(), Error> {
        let mut text = format!("{} {}\n", self.hash, counts.scenario.index());
        for point in &counts.points {
            let _ = write!(text, "{}", point.samples);
            for one in point.schedulable {
                let _ = write!(text, ",{one}");
            }
            text.push('\n');
        }
        let sum = checksum(&text);
        let _ = writeln!(text, "{sum}");
        replace(&self.file(counts.scenario), &text)
    }

    /// The counts of a scenario, if they are complete.
    pub fn kept(&self, scenario: Scenario, points: u64) -> Option<ScenarioCounts> {
        let text = input::read_text(&self.file(scenario)).ok()?;
        let (body, sum) = text.trim_end_matches('\n').rsplit_once('\n')?;
        let body = format!("{body}\n");
        if checksum(&body) != sum {
            return None;
        }
        let mut lines = body.lines();
        if lines.next()? != format!("{} {}", self.hash, scenario.index()) {
            return None;
        }
        let points_there: Vec<Counts> = lines.map(counts).collect::<Option<_>>()?;
        (points_there.len() as u64 == points).then_some(ScenarioCounts {
            scenario,
            points: points_there,
        })
    }
}

fn counts(line: &str) -> Option<Counts> {
    let numbers: Vec<u64> = line
        .split(',')
        .map(|n| n.parse().ok())
        .collect::<Option<_>>()?;
    let (&samples, rest) = numbers.split_first()?;
    let schedulable: [u64; 9] = rest.try_into().ok()?;
    schedulable.iter().all(|&s| s <= samples).then_some(Counts {
        samples,
        schedulable,
    })
}

fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::new(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
}

fn write_identity(path: &Path, identity: &Identity) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(identity)
        .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
    replace(&path.join(IDENTITY), &text)
}

/// Writes a file so that it is complete or absent.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    // The name contains the process, so two processes that write the same folder do not disturb each other's partial files.
    let beside = path.with_extension(format!("part-{}", std::process::id()));
    let put = || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // A file that a process of this number left there, or a link that others put there.
        if std::fs::symlink_metadata(&beside).is_ok() {
            std::fs::remove_file(&beside)?;
        }
        let mut file = std::fs::File::create_new(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()
    };
    put().map_err(|error| Error::file(&beside, error))?;
    std::fs::rename(&beside, path).map_err(|error| Error::file(path, error))
}
