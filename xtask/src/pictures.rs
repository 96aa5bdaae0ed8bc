//! The pictures of the README come from the quickstart's own report, so they show what a user gets.
//!
//! What it deliberately does not know: how they are drawn.

use std::path::Path;
use std::process::Command;

/// Where the run's report goes.
const OUT: &str = "target/pictures";
/// File in `docs/pictures`, and the heading of the report before the picture.
const PICTURES: [(&str, &str); 3] = [
    ("quickstart-latency.svg", "<h3>Distribution</h3>"),
    ("quickstart-blame.svg", "<h3>Waiting of the flow loop</h3>"),
    ("quickstart-chip.svg", "<h3>unregulated</h3>"),
];

/// Runs the quickstart and takes the pictures from its report.
pub fn run(root: &Path) -> Result<bool, String> {
    let mut bulkhead = Command::new(root.join("bulkhead"));
    bulkhead.args(["run", "quickstart", "--out", OUT]);
    let status = bulkhead.current_dir(root).status();
    let status = status.map_err(|error| format!("./bulkhead run: {error}"))?;
    if !status.success() {
        return Ok(false);
    }
    let report = root.join(OUT).join("report.html");
    let page = std::fs::read_to_string(&report)
        .map_err(|error| format!("{}: {error}", report.display()))?;
    for (name, heading) in PICTURES {
        let svg = picture(&page, heading)
            .ok_or_else(|| format!("{}: no picture behind {heading}", report.display()))?;
        let file = root.join("docs/pictures").join(name);
        std::fs::write(&file, format!("{svg}\n"))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        println!("docs/pictures/{name}");
    }
    Ok(true)
}

/// The first picture after a heading.
fn picture<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    const END: &str = "</svg>";
    let behind = &page[page.find(heading)?..];
    let svg = &behind[behind.find("<svg ")?..];
    Some(&svg[..svg.find(END)? + END.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_behind_a_heading_is_taken() {
        let page = "<svg a></svg><h3>x</h3><div><svg b>1</svg></div><svg c></svg>";
        assert_eq!(picture(page, "<h3>x</h3>"), Some("<svg b>1</svg>"));
        assert_eq!(picture(page, "<h3>y</h3>"), None);
    }
}
