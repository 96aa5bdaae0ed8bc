//! The command line.
//!
//! What it deliberately does not know: what the commands do.

use bulkhead_model::units::{Dimension, Time, parse};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing failed
  1  Bulkhead, a build or the host failed
  2  the input is wrong; nothing was run
  3  a bound was exceeded, a deadline was missed more often than allowed, a domain lacks the protection that it must
     have (audit), or tasks are not schedulable (check, plan)
  4  a program faulted, ended with an error, did not finish, or reached a limit";

/// Describe a chip and the software on it in one file, boot the real binaries on a deterministic timing model, and see
/// who delays whom.
#[derive(Parser)]
#[command(name = "bulkhead", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Arguments {
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// Sub-commands.
#[derive(Subcommand)]
pub enum Command {
    /// Build, boot and measure all variants of a system; without a name, the quickstart
    Run(Run),
    /// Validate a system or a task system: list every bound, what fails and by how much, and what would repair it; run nothing
    Check(Check),
    /// Run each domain alone and beside adversaries in the places of all others, and compare the timelines tick by tick
    Audit(Audit),
    /// Fill in what a task system leaves open (processors, priorities, tables, ways, budgets), and bound every task
    Plan(Plan),
    /// Run any bare-metal RISC-V program (a static RV64GC ELF file) on a platform
    Boot(Boot),
    /// Measure and draw what accesses to a platform's memory cost: latency by working set, parallel misses, bandwidth, rivals, hops
    Measure(Measure),
    /// Run a paper's experiments and print its figures beside ours
    Reproduce(Reproduce),
    /// Large-scale schedulability studies
    Study {
        /// Which study
        #[command(subcommand)]
        study: Study,
    },
    /// List the platforms of the catalog
    Platforms {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the systems of the catalog
    Systems {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the programs that a system can name
    Programs {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a new application: programs that build, and a system that runs them
    New {
        /// Folder to create; its last part is the application's name
        folder: PathBuf,
        /// Language of the programs
        #[arg(long, value_enum, default_value = "rust")]
        language: Language,
        /// 1: a periodic task. 2: a sender and a receiver on two tiles, with a flow and its deadline
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2), conflicts_with = "paradigm")]
        tiles: u8,
        /// `one-shot`: a sender and a receiver on two cores of the one-shot RTOS, with a flow and its deadline
        #[arg(long, value_enum)]
        paradigm: Option<Paradigm>,
    },
    /// Print a script that lets a shell complete commands; source it in the shell's start-up file
    Completions {
        /// Which shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command into a folder
    Man {
        /// The folder, such as ~/.local/share/man/man1
        folder: PathBuf,
    },
}

impl Command {
    /// The description that the command reads, if it reads one.
    pub fn description(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Run(run) => Some(&mut run.system),
            Self::Check(check) => Some(&mut check.system),
            Self::Audit(audit) => Some(&mut audit.system),
            Self::Plan(plan) => Some(&mut plan.system),
            _ => None,
        }
    }
}

/// A time with its unit.
fn time(text: &str) -> Result<Time, String> {
    let time = parse(text, Dimension::Time).map(Time);
    time.map_err(|error| format!("{error}; write a number and ns, us, ms or s, such as 4ms"))
}

/// Number of a tile.
fn tile(text: &str) -> Result<u16, String> {
    let number = text.trim().parse();
    number.map_err(|_| "a tile is a number; separate several by commas: 2,5".to_owned())
}

/// A whole number.
fn count(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| "write a whole number in digits, such as 1000000".to_owned())
}

/// Arguments of `run`.
#[derive(Args)]
pub struct Run {
    /// A description (a file that ends in .xml, or a folder with a system.xml), or the name of a system of the catalog
    #[arg(default_value = "quickstart")]
    pub system: PathBuf,
    /// Folder for result.json, report.html, traces and consoles [default: out/NAME]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Change the description, for example `logger/*/limit@noc=4MiB/s` or `@duration=10ms`; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Run only this variant; repeatable
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Do not write traces, which are large
    #[arg(long)]
    pub no_trace: bool,
    /// Begin the traces at this moment, such as 4ms
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "no_trace")]
    pub trace_from: Option<Time>,
    /// End the traces at this moment
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "no_trace")]
    pub trace_until: Option<Time>,
    /// Trace only these tiles and what they send; separate tiles by commas
    #[arg(
        long,
        value_name = "TILES",
        value_delimiter = ',',
        value_parser = tile,
        conflicts_with = "no_trace"
    )]
    pub trace_tiles: Vec<u16>,
    /// Also print everything that the programs printed; by default, only its end, and only where something went wrong
    #[arg(long)]
    pub console: bool,
    /// Print the whole result as JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `check`.
#[derive(Args)]
pub struct Check {
    /// A description of a system, task system or platform, or a task set of SchedCAT (a file that ends in .xml); a folder with a
    /// system.xml; or a name of the catalog
    pub system: PathBuf,
    /// Change the description; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// How to read a task system
    #[command(flatten)]
    pub meaning: Meaning,
    /// Write a page here, with plots of bounds against deadlines and of the schedule behind them
    #[arg(long, value_name = "FILE.html")]
    pub page: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `audit`.
#[derive(Args)]
pub struct Audit {
    /// A description (a file that ends in .xml), or the name of a system of the catalog
    #[arg(default_value = "quickstart")]
    pub system: PathBuf,
    /// Folder for audit.html and audit.json [default: out/audit-NAME]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Change the description, for example `logger/*/limit@noc=none`; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Audit this variant; by default, the system without the changes of its variants
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Audit only this domain; repeatable
    #[arg(long, value_name = "NAME")]
    pub domain: Vec<String>,
    /// Try only the attacks with this text in their names, and no random ones; repeatable. The domain is judged only if it fails
    #[arg(long, value_name = "TEXT", conflicts_with = "searches")]
    pub attack: Vec<String>,
    /// Number of random attacks on each domain, after the attacks of the library
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub searches: u32,
    /// Seed of the search
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count)]
    pub seed: u64,
    /// Simulated time to compare, counted from the start of the attack
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub time: String,
    /// Print the whole result as JSON
    #[arg(long)]
    pub json: bool,
}

/// How to read a task system: other processors, another policy, and what a task set without units leaves open.
#[derive(Args)]
pub struct Meaning {
    /// Another policy, such as edf or global-fixed-priority
    #[arg(long)]
    pub policy: Option<String>,
    /// Another number of processors
    #[arg(long, value_name = "N")]
    pub processors: Option<u32>,
    /// Unit of numbers in formats without units [default: us]
    #[arg(long)]
    pub unit: Option<String>,
    /// Index of the task set, if a SchedCAT file holds several; the first is 0
    #[arg(long, value_name = "N")]
    pub task_set: Option<usize>,
}

/// Arguments of `plan`.
#[derive(Args)]
pub struct Plan {
    /// A description of a system or task system, or a task set of SchedCAT (a file that ends in .xml); or a name of the catalog
    pub system: PathBuf,
    /// Write the completed description here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format of the completed description; without --out, it is printed instead of the table
    #[arg(long, value_enum)]
    pub export: Option<Export>,
    /// Change the description; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// How to read a task system
    #[command(flatten)]
    pub meaning: Meaning,
    /// What the placement of one-shot tasks without a core should minimise
    #[arg(long, value_enum, value_name = "AIM")]
    pub aim: Option<Aim>,
    /// Cores on which one-shot tasks without a core may be placed, such as 0-3 [default: all]
    #[arg(long, value_name = "FIRST-LAST", value_parser = cores)]
    pub cores: Option<(u16, u16)>,
    /// Write a page here, with plots of bounds against deadlines and of the schedule behind them
    #[arg(long, value_name = "FILE.html")]
    pub page: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "export")]
    pub json: bool,
}

/// What is best of several placements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Aim {
    /// The fewest cores, and of those the shortest flows
    Cores,
    /// The shortest flows, and of those the fewest cores
    Latency,
}

/// Reads `5` or `0-3`.
fn cores(text: &str) -> Result<(u16, u16), String> {
    let wanted = "write one core, or the first and the last one: 0-3";
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u16>().map_err(|_| wanted.to_owned());
    let (first, last) = (number(first)?, number(last)?);
    match first <= last {
        true => Ok((first, last)),
        false => Err(wanted.to_owned()),
    }
}

/// Formats of task systems.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Export {
    /// Our description
    Xml,
    /// SchedCAT's XML
    Schedcat,
    /// Comma-separated values
    Csv,
}

/// Reads `5=program` or `1-15=program`.
fn tiles_and_program(text: &str) -> Result<(u16, u16, PathBuf), String> {
    let wanted =
        "write one tile, or the first and the last one, then `=` and a program: 1-15=program";
    let (tiles, elf) = text.split_once('=').ok_or(wanted)?;
    let (first, last) = tiles.split_once('-').unwrap_or((tiles, tiles));
    let number = |text: &str| text.parse::<u16>().map_err(|_| wanted.to_owned());
    let (first, last) = (number(first)?, number(last)?);
    if first > last || elf.is_empty() {
        return Err(wanted.to_owned());
    }
    Ok((first, last, elf.into()))
}

/// Arguments of `boot`.
#[derive(Args)]
pub struct Boot {
    /// The program: a static RV64GC ELF file
    pub elf: PathBuf,
    /// Platform: a name of the catalog, or a file that ends in .xml
    #[arg(long, default_value = "single")]
    pub platform: PathBuf,
    /// Change the platform, such as platform/cluster@harts=2; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// A program for other tiles of a mesh, such as 5=other or 1-15=other
    #[arg(long, value_name = "TILES=ELF", value_parser = tiles_and_program)]
    pub on: Vec<(u16, u16, PathBuf)>,
    /// Stop after this many cycles of the hart (exit code 4)
    #[arg(long, value_name = "N", value_parser = count)]
    pub max_cycles: Option<u64>,
    /// Write a trace for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Studies.
#[derive(Subcommand)]
pub enum Study {
    /// The mixed-criticality kernel: nine schemes for I/O and message buffers over 648 scenarios (RTS 2020, section 6)
    Mc2(StudyMc2),
    /// How each parameter that the paper leaves open changes the study's ratios
    Sensitivity(StudySensitivity),
    /// How other readings of the paper, and the study's earlier values, change its ratios
    Variants(StudyVariants),
    /// How much the best bank for each I/O buffer gains over the paper's patterns
    Placement(StudyPlacement),
}

/// Arguments of `measure`.
#[derive(Args)]
pub struct Measure {
    /// Platform: a name of the catalog, or a file that ends in .xml
    pub platform: PathBuf,
    /// Change the platform, such as cache[l2]@ways=8; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Only this figure: latency, rows, parallel, bandwidth, rivals-cache, rivals-memory, rivals-colours, rivals-translator, isolation, tiles, memories, dma, coupled, beside-all, slowdown, slowdown-in-order, ipc, loads, streams, hops, remote or ports; repeatable
    #[arg(long)]
    pub figure: Vec<String>,
    /// Folder for page, pictures and data [default: out/measure-PLATFORM]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Print JSON and write nothing
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `study mc2`.
#[derive(Args)]
pub struct StudyMc2 {
    /// Only these scenarios, in the paper's notation: criticality, period, utilisation, reload, message size, I/O
    /// bandwidth, direct I/O. Each is `*`, the beginning of a choice, or several joined by `|`; for example
    /// `C-Light,*,Heavy,*,Lar.,High,*`
    #[arg(long, value_name = "PATTERN")]
    pub scenarios: Option<String>,
    /// Only these schemes, separated by commas; for example `C|C,O|C+A/B-ALL` [default: all nine]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub schemes: Vec<String>,
    /// Another model than the frozen one: a name from `study variants`
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Fewer scenarios and less precision: takes a minute, but is not the study
    #[arg(long)]
    pub quick: bool,
    /// Continue the study in this folder with its own parameters; no result is lost or counted twice
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// Folder for counts, plots and the page [default: out/study-mc2]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads [default: one for each processor of the host]
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", value_parser = count)]
    pub seed: Option<u64>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `study sensitivity`.
#[derive(Args)]
pub struct StudySensitivity {
    /// Only these scenarios, as for `study mc2`; at most a hundred of them are used
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    pub scenarios: String,
    /// Folder for the page and the numbers
    #[arg(long, value_name = "DIR", default_value = "out/study-sensitivity")]
    pub out: PathBuf,
    /// Threads [default: one for each processor of the host]
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `study variants`.
#[derive(Args)]
pub struct StudyVariants {
    /// Only these variants; repeatable [default: all]
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Only these scenarios, as for `study mc2`; at most a hundred of them are used
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    pub scenarios: String,
    /// Folder for the page and the numbers
    #[arg(long, value_name = "DIR", default_value = "out/study-variants")]
    pub out: PathBuf,
    /// Threads [default: one for each processor of the host]
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `study placement`.
#[derive(Args)]
pub struct StudyPlacement {
    /// Only these scenarios, as for `study mc2`
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    pub scenarios: String,
    /// Systems of each scenario and utilisation
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub samples: u64,
    /// Threads [default: one for each processor of the host]
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `reproduce`.
#[derive(Args)]
pub struct Reproduce {
    /// Which paper
    #[arg(value_enum)]
    pub paper: Paper,
    /// Only this figure of m3 (table1, figure3 to figure6), or this additional experiment (attacks, regulation) [default: all];
    /// for m2os, figures cannot be chosen
    pub figure: Option<String>,
    /// Folder for the report page and the results [default: out/reproduce-PAPER]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Fewer repetitions: a quick look, not the paper's experiment
    #[arg(long)]
    pub quick: bool,
    /// Only the platforms with this pipeline, for m3 (attacks and regulation exist in order only) [default: both]
    #[arg(long, value_enum)]
    pub pipeline: Option<Pipeline>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Pipelines of the paper's chips.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Pipeline {
    /// tiled-2ghz and tiled-star
    Inorder,
    /// tiled-2ghz-ooo and tiled-star-ooo, which work out of order as the paper's
    Interval,
    /// All four
    Both,
}

/// Languages of new applications.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    /// Rust, without the standard library
    Rust,
    /// C11, freestanding
    C,
    /// Ada with the language's own tasks, for --paradigm one-shot
    Ada,
}

/// Paradigms of new applications.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Paradigm {
    /// Applications of the tiled OS, on one tile or two
    Tiled,
    /// Tasks of the one-shot RTOS
    OneShot,
}

/// Papers.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Paper {
    /// Core-local reasoning and predictable cross-core communication with M3 (RTAS 2024)
    M3,
    /// M2OS-mc: an RTOS for many-core processors (NG-RES 2021)
    M2os,
}

/// Figures of the paper.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Figure {
    /// Round trips of messages
    Table1,
    /// Worst latencies of a server with priorities
    Figure3,
    /// Interference without regulation
    Figure4,
    /// Interference with regulation
    Figure5,
    /// Falling asleep and waking up
    Figure6,
    /// Denial of service: each attack with our defence off and on
    Attacks,
    /// Bandwidth regulation for each activity, with several activities on a tile
    Regulation,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_says_what_there_is() {
        let help = Arguments::command().render_help().to_string();
        insta::assert_snapshot!(help);
    }
}
