//! `cargo run -p bulkhead-conformance -- --seeds 0..200 [--category X] [--jobs N]`: the long form of the comparison with QEMU.

use std::io::Write as _;
use std::process::ExitCode;

use bulkhead_conformance::program::Category;
use bulkhead_conformance::program::Program;
use bulkhead_conformance::{check, compare};
use clap::Parser;

/// Compares the hart with QEMU on generated programs.
#[derive(Parser)]
struct Options {
    /// Seeds of each category, as FIRST..END.
    #[arg(long, default_value = "0..200", value_parser = seeds)]
    seeds: std::ops::Range<u64>,
    /// Only this category; may be repeated.
    #[arg(long, value_parser = category)]
    category: Vec<Category>,
    /// Batches under way at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Mismatches that are made small and shown.
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// Print the programs instead of running them.
    #[arg(long)]
    list: bool,
    /// Print what QEMU says instead of comparing.
    #[arg(long)]
    reference: bool,
    /// Write the memory with which the programs start, to stand at 0x80000000, to this file.
    #[arg(long)]
    image: Option<std::path::PathBuf>,
    /// Print what is not compared, and why.
    #[arg(long)]
    differences: bool,
}

fn seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (first, end) = text.split_once("..").ok_or("expected FIRST..END")?;
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("`{text}` is not a number"))
    };
    Ok(number(first)?..number(end)?)
}

fn category(name: &str) -> Result<Category, String> {
    let names = || Category::ALL.map(Category::name).join(", ");
    Category::from_name(name).ok_or_else(|| format!("no such category; there are {}", names()))
}

fn reference(programs: &[Program]) -> ExitCode {
    for batch in programs.chunks(check::BATCH) {
        let references: Vec<&Program> = batch.iter().collect();
        match check::on_qemu(&references) {
            Ok(outcomes) => {
                for (program, outcome) in batch.iter().zip(outcomes) {
                    println!("{}:\n{}", program.name(), outcome.text(program));
                }
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.differences {
        for (_, item, bits, why) in compare::DIFFERENCES {
            println!("{item}, bits {bits:#x}: {why}");
        }
        for (what, why) in compare::LEFT_OUT {
            println!("{what}: {why}");
        }
        return ExitCode::SUCCESS;
    }
    let categories = if options.category.is_empty() {
        Category::ALL.to_vec()
    } else {
        options.category
    };
    let programs = check::programs(&categories, options.seeds);
    if options.list {
        for program in &programs {
            println!("{}:\n{}", program.name(), program.listing());
        }
        return ExitCode::SUCCESS;
    }
    if let Some(path) = options.image {
        let references: Vec<&Program> = programs.iter().collect();
        if let Err(error) =
            std::fs::write(&path, bulkhead_conformance::program::image(&references).0)
        {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
        return ExitCode::SUCCESS;
    }
    if options.reference {
        return reference(&programs);
    }
    let done = std::sync::atomic::AtomicUsize::new(0);
    let total = programs.len();
    let mismatches = match check::run(&programs, options.jobs, |tests| {
        let done = done.fetch_add(tests, std::sync::atomic::Ordering::Relaxed) + tests;
        eprint!("\r{done} of {total} programs");
        let _ = std::io::stderr().flush();
    }) {
        Ok(mismatches) => mismatches,
        Err(error) => {
            eprintln!("\n{error}");
            return ExitCode::from(2);
        }
    };
    eprintln!();
    for mismatch in &mismatches {
        println!(
            "{}: {}",
            mismatch.program.name(),
            mismatch.difference.lines().next().unwrap_or_default()
        );
    }
    for mismatch in mismatches.iter().take(options.show) {
        match check::shrink(mismatch.clone(), 200) {
            Ok(small) => println!(
                "\n{}: {}\n{}",
                small.program.name(),
                small.difference,
                small.program.listing()
            ),
            Err(error) => eprintln!("{error}"),
        }
    }
    println!("{total} programs, {} mismatches", mismatches.len());
    if mismatches.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
