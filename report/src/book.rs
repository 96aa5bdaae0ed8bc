//! Where the book is, relative to a page.
//!
//! Why it exists: a figure says in one line what it shows; the book says how it was measured and what to do about it. A page may be
//! anywhere, so its links are relative, and its writer says where the book is. What it deliberately does not know: files; the book's
//! text.

use maud::{Markup, html};

/// Pages that figures lead to. Pages that others lead to are public.
pub(crate) const CHIP: &str = "reference/results";
pub(crate) const FLOWS: &str = "reference/results";
pub(crate) const LEDGER: &str = "reference/ledger";
pub(crate) const BOUNDS: &str = "reference/bounds";
pub(crate) const TASKS: &str = "tasks";
pub(crate) const FRAMES: &str = "network";
pub(crate) const AUDIT: &str = "audit";
pub(crate) const VERDICTS: &str = "reference/exit-codes";
pub(crate) const ANALYSES: &str = "reference/schedulability";
/// The study of MC2.
pub const STUDY: &str = "studies/mc2";
/// The reproduction of M2OS-mc.
pub const M2OS: &str = "papers/m2os";
/// The reproduction of M3.
pub const M3: &str = "papers/m3";

/// The book, relative to the folder of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    /// The relative folder of the book, and the extension of its pages.
    at: Option<(String, &'static str)>,
}

impl Book {
    /// The built book: pages for a browser.
    pub fn built(folder: &str) -> Self {
        let at = Some((folder.to_owned(), "html"));
        Self { at }
    }

    /// The sources of the book, which are readable, too.
    pub fn sources(folder: &str) -> Self {
        let at = Some((folder.to_owned(), "md"));
        Self { at }
    }

    /// "More in the book" on a page, such as `reference/ledger`; without an available book, the name of its file.
    pub fn more(&self, page: &str) -> Markup {
        html! {
            @match &self.at {
                Some((folder, ending)) => { a href=(format!("{folder}/{page}.{ending}")) { "More in the book" } "." }
                None => { "More in " code { "docs/" (page) ".md" } "." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_where_the_book_is() {
        let link = Book::built("../../target/book").more("reference/ledger");
        assert!(
            link.into_string()
                .contains("href=\"../../target/book/reference/ledger.html\"")
        );
        let named = Book::default().more("reference/ledger").into_string();
        assert!(named.contains("docs/reference/ledger.md") && !named.contains("href"));
    }

    #[test]
    fn every_page_that_is_linked_exists() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let of_runs = [CHIP, FLOWS, LEDGER, BOUNDS, TASKS, FRAMES];
        let of_others = [AUDIT, VERDICTS, ANALYSES, STUDY, M3];
        for page in of_runs.into_iter().chain(of_others) {
            assert!(docs.join(format!("{page}.md")).is_file(), "{page}");
        }
    }
}
