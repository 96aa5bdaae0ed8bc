//! One module for each sub-command.
//!
//! What they deliberately do not know: each other.

pub mod audit;
pub mod boot;
pub mod check;
pub mod list;
pub mod measure;
pub mod new;
pub mod plan;
pub mod reproduce;
pub mod run;
pub mod shell;
pub mod study;

use crate::diagnostics::plain;
use bulkhead_report::book::Book;
use bulkhead_runner::{Error, place};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Exit code, or an error.
pub type Outcome = Result<u8, Error>;

/// Prints a value for machines.
pub fn print_json<T: Serialize>(value: &T) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
    say_as_it_is(&text);
    Ok(())
}

/// Prints a text and, below it, the names of the files written to a folder.
fn say_with_files(text: &str, folder: &Path, written: &[PathBuf]) {
    let mut text = format!("{text}\nFiles in {}:\n", folder.display());
    for path in written {
        let name = path.file_name().unwrap_or_default();
        text.push_str(&format!("  {}\n", name.to_string_lossy()));
    }
    say(&text);
}

/// The folder for the results of a run whose files are for people: the requested one, or one below `out` in the current folder, whose name
/// is known later. It is tried immediately, because the run may take long.
fn results(asked: Option<&Path>) -> Result<impl FnOnce(String) -> PathBuf, Error> {
    let default = Path::new("out");
    place::writable(asked.unwrap_or(default))?;
    let asked = asked.map(Path::to_path_buf);
    Ok(move |name| asked.unwrap_or_else(|| default.join(name)))
}

/// Writes a page if requested; `page` receives the place of the book.
fn write_page(
    file: Option<&Path>,
    page: impl FnOnce(&Book) -> Result<String, bulkhead_report::Error>,
) -> Result<(), Error> {
    let Some(file) = file else { return Ok(()) };
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let book = place::pages(folder.unwrap_or(Path::new(".")))?;
    place::write(file, page(&book)?)
}

/// The text about a written page.
fn page_written(file: Option<&Path>) -> String {
    file.map_or(String::new(), |file| {
        format!("\npage: {}\n", file.display())
    })
}

/// Prints a text for people: names and texts in it come from descriptions and programs, and none of them reaches the terminal's cursor.
pub fn say(text: &str) {
    say_as_it_is(&plain(text));
}

/// Prints a text and ends the line. A reader that has gone away (`| head`) is not an error. A full disk is one, and nothing that follows
/// would be worth its exit code, so the command ends here.
fn say_as_it_is(text: &str) {
    let mut out = std::io::stdout().lock();
    let said = out
        .write_all(text.trim_end_matches('\n').as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    if let Err(error) = said
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let error = Error::file(Path::new("standard output"), error);
        crate::diagnostics::show(&error);
        std::process::exit(error.code().into());
    }
}
