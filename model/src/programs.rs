//! Program names that a description may use.
//!
//! Why it exists: an unknown program name is refused before anything runs. What it deliberately does not know: what programs are and how
//! they are built.

/// The programs that a system may name. The runner knows them; the model only asks.
pub trait Programs {
    /// Whether a program with this name exists.
    fn contains(&self, name: &str) -> bool;
    /// All names, for suggestions.
    fn names(&self) -> Vec<String>;
    /// Why something of this name exists but is not a program, and what would be a program. `None` if it is one, or if only building it can
    /// tell.
    fn refusal(&self, _name: &str) -> Option<(String, String)> {
        None
    }
    /// The same for an application of the tiled OS, whose managers load it.
    fn application_refusal(&self, name: &str) -> Option<(String, String)> {
        self.refusal(name)
    }
}

impl Programs for Vec<String> {
    fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }

    fn names(&self) -> Vec<String> {
        self.clone()
    }
}
