//! Names in the C files of an image: the files define each task of the image, and no two files define the same name.
//!
//! Why it exists: the linker names objects in a folder of the build, and no remedy. What it deliberately does not know: the kernel's own names.
//! For those, it repeats only what the linker says of names.

use crate::error::Error;
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeMap;

/// The prefix of the name of a task's constant.
pub(super) const TASK: &str = "bh_task_";

/// Refuses tasks that their files do not define, and names that two files define. `files`: names and objects of an image; `tasks`: files and names.
///
/// # Errors
/// If there is such a task or name.
pub(super) fn check(files: &[(&str, &[u8])], tasks: &[(&str, &str)]) -> Result<(), Error> {
    let names = |(file, bytes): &(&str, &[u8])| -> Result<Vec<String>, Error> {
        let parsed = object::File::parse(*bytes);
        let parsed = parsed.map_err(|error| Error::Build {
            program: (*file).to_owned(),
            output: format!("the compiler made no object that can be read: {error}"),
        })?;
        let globals = parsed
            .symbols()
            .filter(|one| one.is_global() && one.is_definition() && !one.is_weak());
        Ok(globals
            .filter_map(|one| Some(one.name().ok()?.to_owned()))
            .collect())
    };
    let names: Result<Vec<Vec<String>>, Error> = files.iter().map(names).collect();
    let files: Vec<&str> = files.iter().map(|one| one.0).collect();
    agree(&files, &names?, tasks)
}

fn agree(files: &[&str], names: &[Vec<String>], tasks: &[(&str, &str)]) -> Result<(), Error> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for (file, names) in files.iter().zip(names) {
        for name in names {
            let Some(other) = first.insert(name, file) else {
                continue;
            };
            let what = match name.strip_prefix(TASK) {
                Some(task) => format!("the task `{task}`"),
                None => format!("`{name}`"),
            };
            return Err(Error::input(
                format!("{other} and {file} both define {what}, and a core runs tasks of both"),
                "give one of them another name, or write `static` before a function or variable: the files of a core are one image",
            ));
        }
    }
    for (file, task) in tasks {
        let mut all = files.iter().zip(names);
        let names = all
            .find(|one| one.0 == file)
            .map_or(&[][..], |one| one.1.as_slice());
        if !names
            .iter()
            .any(|name| name.strip_prefix(TASK) == Some(*task))
        {
            let declared: Vec<&str> = names
                .iter()
                .filter_map(|name| name.strip_prefix(TASK))
                .collect();
            return Err(Error::input(
                format!("{file} defines no task `{task}`"),
                match declared.is_empty() {
                    true => format!("define it: BH_TASK({task}, ...)"),
                    false => format!(
                        "define it with BH_TASK, or name one of its tasks: {}",
                        declared.join(", ")
                    ),
                },
            ));
        }
    }
    Ok(())
}

/// What the linker says of names, without its arguments and objects. If it, or the compiler, says anything else, the whole text stays.
pub(super) fn short(error: Error) -> Error {
    let Error::Build { program, output } = error else {
        return error;
    };
    // Messages that only follow from the linker's errors.
    const SUMMARIES: [&str; 2] = [
        "error: linking with `rust-lld` failed",
        "error: could not compile",
    ];
    const NAMES: [&str; 2] = ["duplicate symbol: ", "undefined symbol: "];
    let mut said = String::new();
    let mut is_name = false;
    let mut has_other = false;
    for line in output.lines().map(str::trim) {
        let line = line.strip_prefix("= note: ").unwrap_or(line).trim();
        if let Some(what) = line.strip_prefix("rust-lld: error: ") {
            is_name = NAMES.iter().any(|name| what.starts_with(name));
            has_other |= !is_name;
            said.push_str(&format!("{what}\n"));
        } else if line.starts_with("error") {
            is_name = false;
            has_other |= !SUMMARIES.iter().any(|one| line.starts_with(one));
        } else if let Some((place, _)) = line
            .strip_prefix(">>> ")
            .and_then(|rest| rest.split_once(" ("))
            .filter(|_| is_name)
        {
            said.push_str(&format!("  {place}\n"));
        }
    }
    if said.is_empty() || has_other {
        return Error::Build { program, output };
    }
    said.push_str(
        "help: an image has the kernel, the files of its core's tasks, and memcpy, memmove, memset and memcmp, but no C library; define what is missing, and \
         write `static` before, or rename, what the kernel defines, too",
    );
    Error::Build {
        program,
        output: said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_are_not_there_and_names_that_are_there_twice_are_refused() {
        let check = |files: &[(&str, &[&str])], task| {
            let names: Vec<Vec<String>> = files
                .iter()
                .map(|one| one.1.iter().map(|&name| name.to_owned()).collect())
                .collect();
            let files: Vec<&str> = files.iter().map(|one| one.0).collect();
            agree(&files, &names, &[(files[0], task)]).map_err(|error| error.to_string())
        };
        let a: (&str, &[&str]) = ("a.c", &["bh_task_one", "own"]);
        assert_eq!(check(&[a], "one"), Ok(()));
        assert_eq!(
            check(&[a], "three"),
            Err("a.c defines no task `three`".to_owned())
        );
        let both = |what: &str| {
            Err(format!(
                "a.c and b.c both define {what}, and a core runs tasks of both"
            ))
        };
        assert_eq!(
            check(&[a, ("b.c", &["bh_task_one"])], "one"),
            both("the task `one`")
        );
        assert_eq!(
            check(&[a, ("b.c", &["bh_task_two", "own"])], "one"),
            both("`own`")
        );
        assert_eq!(check(&[a, ("b.c", &["bh_task_two"])], "one"), Ok(()));
    }

    #[test]
    fn the_linkers_words_without_its_objects() {
        let output = "error: linking with `rust-lld` failed: exit status: 1\n  |\n  = note:  \"rust-lld\" \"-flavor\"\n  = note: rust-lld: error: undefined symbol: nowhere\n          \
                      >>> referenced by tasks.c:3 (./tasks.c:3)\n          >>>               /t/tasks_1.o:(bh_run_go)\n\nerror: could not compile `images`";
        let error = Error::Build {
            program: "an image".to_owned(),
            output: output.to_owned(),
        };
        let text = short(error).to_string();
        assert!(
            text.contains(
                "\nundefined symbol: nowhere\n  referenced by tasks.c:3\nhelp: an image has"
            ),
            "{text}"
        );
        // If there is another error, too, the whole text is needed.
        for other in [
            "rust-lld: error: section '.bss' will not fit in region 'MEMORY'",
            "error[E0425]: cannot find value `x`",
        ] {
            let both = format!("{output}\n{other}\n");
            let error = Error::Build {
                program: "an image".to_owned(),
                output: both.clone(),
            };
            assert!(short(error).to_string().contains(&both), "{other}");
        }
        assert!(
            !text.contains("tasks_1.o") && !text.contains("-flavor"),
            "{text}"
        );
    }
}
