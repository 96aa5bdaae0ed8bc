//! `bulkhead measure`.

use super::{Outcome, print_json, results, say_with_files};
use crate::arguments::Measure;
use crate::progress::Bars;
use bulkhead_experiments::measure;
use bulkhead_runner::{Error, place};

/// Draws what a platform's memory costs.
pub fn measure(options: &Measure) -> Outcome {
    // Checks before the work that the files can be written.
    let folder = match options.json {
        true => None,
        false => Some(results(options.out.as_deref())?),
    };
    let wanted = measure::Options {
        platform: options.platform.clone(),
        overrides: options.set.clone(),
        figures: options.figure.clone(),
        ..measure::Options::default()
    };
    let measured = measure::measure(&wanted, &Bars::new())?;
    let Some(folder) = folder else {
        print_json(&measured)?;
        return Ok(0);
    };
    let folder = folder(format!("measure-{}", measured.platform));
    let mut written = Vec::new();
    let mut add = |name: String, contents: String| -> Result<(), Error> {
        let path = folder.join(name);
        place::replace(&path, contents)?;
        written.push(path);
        Ok(())
    };
    add("measure.html".to_owned(), measured.page()?)?;
    let json = serde_json::to_string_pretty(&measured);
    add(
        "measure.json".to_owned(),
        json.map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?,
    )?;
    for figure in &measured.figures {
        add(format!("{}.svg", figure.id), figure.picture()?)?;
    }
    say_with_files(&measured.text(), &folder, &written);
    Ok(0)
}
