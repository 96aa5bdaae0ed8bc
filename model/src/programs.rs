//! Names of programs and host files that a description may use.
//!
//! Why it exists: an unknown program name, or a file that is not there, is refused before anything runs. What it deliberately does not know:
//! what programs are and how they are built, where files are, and what is in them; and what the machine refuses.

use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::platform::Platform;

/// A host file or a folder that a description names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// The programs that a system may name, and the host files beside it. The runner knows them; the model only asks.
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
    /// The same for a system without a kernel.
    fn bare_refusal(&self, name: &str) -> Option<(String, String)> {
        self.refusal(name)
    }
    /// Why a finished program cannot run in `size` bytes of memory from `base` on, and what would be right. `None` if it can, or if only building it can tell.
    fn misplaced(&self, _name: &str, _base: u64, _size: u64) -> Option<(String, String)> {
        None
    }
    /// Why the machine refuses the shares that a platform gives to harts.
    fn shares_refusal(&self, _platform: &Platform) -> Option<String> {
        None
    }
    /// Why the host cannot read a file or a folder of this name: the path that was looked at, and the cause. `None` if it can, or if nobody
    /// knows where files are.
    fn unreadable(&self, _name: &str, _kind: HostKind) -> Option<(String, String)> {
        None
    }
}

/// Reports a file or a folder in this attribute that the host cannot read.
pub(crate) fn check_host_file(
    programs: Option<&dyn Programs>,
    (node, attribute): (&Node, &str),
    (written, kind): (&str, HostKind),
    errors: &mut Vec<Diagnostic>,
) {
    let found = programs.and_then(|programs| programs.unreadable(written, kind));
    let Some((name, cause)) = found else { return };
    let help = match kind {
        HostKind::File => "name a file by its path from the folder of the description",
        HostKind::Folder => {
            "name a folder by its path from the folder of the description; it may contain files and folders that can be read"
        }
    };
    let problem = Problem::Unreadable { name, cause };
    errors.push(Diagnostic::new(problem, node.place(attribute), help));
}

impl Programs for Vec<String> {
    fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }

    fn names(&self) -> Vec<String> {
        self.clone()
    }
}
