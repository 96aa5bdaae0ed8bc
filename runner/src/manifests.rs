//! What Cargo says of the packages in a folder.
//!
//! Why it exists: a run asks several times, and a process runs many systems; Cargo takes a tenth of a second for each answer. So an answer is kept as long as
//! nothing changes that it depends on: manifests, and the names of files in which Cargo looks for targets. What it deliberately does not know: what packages are for.

use crate::cargo::{cargo, no_cargo};
use crate::error::Error;
use bulkhead_model::input;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// An answer, and the digest of what it depends on.
type Kept = (Vec<u8>, Arc<Value>);

/// Cargo's metadata of the packages in a folder, without their dependencies.
///
/// # Errors
/// If Cargo is missing, or refuses a manifest.
pub fn metadata(folder: &Path) -> Result<Arc<Value>, Error> {
    static ALL: Mutex<BTreeMap<PathBuf, Kept>> = Mutex::new(BTreeMap::new());
    let folder = std::fs::canonicalize(folder).map_err(|error| Error::file(folder, error))?;
    // A thread that panics leaves the map whole.
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((digest, answer)) = all.get(&folder)
        && *digest == state(answer)
    {
        return Ok(Arc::clone(answer));
    }
    let answer = Arc::new(ask(&folder)?);
    all.insert(folder, (state(&answer), Arc::clone(&answer)));
    Ok(answer)
}

fn ask(folder: &Path) -> Result<Value, Error> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(folder)
        .output()
        .map_err(|error| no_cargo(&error))?;
    if !output.status.success() {
        return Err(Error::Build {
            program: folder.display().to_string(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::Machine(format!("cargo metadata: {error}")))
}

/// The manifests of an answer, and the names of the files from which Cargo infers targets.
fn state(answer: &Value) -> Vec<u8> {
    let mut hash = Sha256::new();
    let packages = answer["packages"].as_array().into_iter().flatten();
    let manifests = packages.filter_map(|package| package["manifest_path"].as_str());
    let manifests = manifests.map(PathBuf::from);
    let root = answer["workspace_root"].as_str();
    for manifest in manifests.chain(root.map(|root| Path::new(root).join("Cargo.toml"))) {
        // What cannot be read now could be read when Cargo was asked, so it is a change, too.
        hash.update(match input::read_text(&manifest) {
            Ok(text) => Sha256::digest(text),
            Err(error) => Sha256::digest(error.to_string()),
        });
        let folder = manifest.parent().unwrap_or(&manifest);
        for place in ["", "src", "src/bin"] {
            let entries = std::fs::read_dir(folder.join(place));
            let names = entries.into_iter().flatten().flatten();
            let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
            names.sort();
            for name in names {
                hash.update(name.as_encoded_bytes());
                hash.update("/");
            }
            hash.update("//");
        }
    }
    hash.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(folder: &Path) -> Vec<String> {
        let answer = metadata(folder).expect("a package");
        let packages = answer["packages"].as_array().expect("packages");
        let targets = packages[0]["targets"].as_array().expect("targets");
        let names = targets.iter().map(|one| one["name"].as_str());
        let mut names: Vec<String> = names.map(|name| name.expect("a name").to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_answer_is_kept_until_something_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let manifest = |name: &str| {
            format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n"
            )
        };
        put("Cargo.toml", &manifest("first"));
        put("src/lib.rs", "");
        assert_eq!(targets(folder.path()), ["first"]);
        let [one, other] = [(); 2].map(|()| metadata(folder.path()).expect("a package"));
        assert!(Arc::ptr_eq(&one, &other), "Cargo was asked again");
        // As long as the first one, and written at once.
        put("Cargo.toml", &manifest("other"));
        assert_eq!(targets(folder.path()), ["other"]);
        put("src/bin/more.rs", "fn main() {}");
        assert_eq!(targets(folder.path()), ["more", "other"]);
        std::fs::remove_file(folder.path().join("src/lib.rs")).expect("removed");
        assert_eq!(targets(folder.path()), ["more"]);
        put("Cargo.toml", "no manifest");
        assert!(metadata(folder.path()).is_err());
    }
}
