//! The names of programs, as a description may use them.
//!
//! Why it exists: a name that no program has is refused before anything runs. What it deliberately does not know: what programs are and how
//! they are built.

/// The programs that a system may name. The runner knows them; the model only asks.
pub trait Programs {
    /// Whether there is a program with this name.
    fn contains(&self, name: &str) -> bool;
    /// All names, for suggestions.
    fn names(&self) -> Vec<String>;
}

impl Programs for Vec<String> {
    fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }

    fn names(&self) -> Vec<String> {
        self.clone()
    }
}
