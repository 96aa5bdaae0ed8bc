//! The descriptions in the book's pages are valid.

use bulkhead_model::{LoadOptions, load_platform, load_system_text, load_tasks_text};
use std::path::{Path, PathBuf};

/// All pages below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the book is there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            all.extend(pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// XML code blocks, with the line at which each begins.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim() == "```xml" {
            let inside = lines.by_ref().take_while(|(_, line)| line.trim() != "```");
            let block: String = inside.map(|(_, line)| format!("{line}\n")).collect();
            all.push((number + 2, block));
        }
    }
    all
}

#[test]
fn complete_descriptions_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let (mut tried, mut wrong) = (0, Vec::new());
    for page in pages(&root) {
        let text = std::fs::read_to_string(&page).expect("readable");
        for (line, block) in blocks(&text) {
            let name = format!("{}:{line}", page.display());
            let options = LoadOptions::default();
            // Omitted parts are written as "...".
            if block.contains("...") {
                continue;
            }
            let begins = |element: &str| block.trim_start().starts_with(element);
            let outcome = if begins("<system ") {
                load_system_text(&name, &block, &options).map(drop)
            } else if begins("<task-system ") {
                load_tasks_text(&name, &block, &options).map(drop)
            } else if begins("<platform ") {
                let file = tempfile::Builder::new().suffix(".xml").tempfile();
                let file = file.expect("a file");
                std::fs::write(file.path(), &block).expect("writes");
                load_platform(file.path(), &options).map(drop)
            } else {
                continue;
            };
            tried += 1;
            if let Err(errors) = outcome {
                wrong.push(format!("{name}: {errors}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 4, "{tried} blocks were found");
}
