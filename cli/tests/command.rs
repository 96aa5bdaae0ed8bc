//! The command as users type it: exit codes, messages, and the commands of the book.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the checkout is there")
}

fn bulkhead(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .args(arguments)
        .current_dir(folder)
        .env("BULKHEAD_ROOT", root())
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Commands of the blocks that begin with "```console runnable".
fn runnable(page: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line.trim() == "```console runnable";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ bulkhead ")) {
            commands.push(command.split_whitespace().map(str::to_owned).collect());
        }
    }
    commands
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What only the machine can refuse, such as a window of slots that refreshes fill, is bad input before anything runs.
#[test]
fn a_chip_that_the_machine_refuses_is_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = r#"<system name="s" paradigm="bare" platform="virt-shares"><domain name="d">
        <app name="a" harts="1" program="memory/measure"/></domain></system>"#;
    std::fs::write(folder.path().join("s.xml"), system).expect("it can be written");
    for (what, path) in [("s.xml", "platform/dram"), ("virt-shares", "dram")] {
        for (value, says) in [
            (
                "controller@bandwidth-blocks=1",
                "leave no block that could be reserved",
            ),
            (
                "controller@bandwidth-blocks=3",
                "leave no block that could be reserved",
            ),
        ] {
            let set = format!("{path}/{value}");
            let done = bulkhead(folder.path(), &["check", what, "--set", &set]);
            let said = text(&done.stderr).replace('\n', " ");
            assert_eq!(done.status.code(), Some(2), "{what} {set}: {said}");
            assert!(said.contains(says), "{what} {set}: {said}");
        }
    }
    // Whether there is room for a TiB, only the host knows; if there is none, all commands say the same.
    let system = system
        .replace("virt-shares", "epiphany3")
        .replace(r#" harts="1""#, "");
    std::fs::write(folder.path().join("m.xml"), system).expect("it can be written");
    let set = "platform/memory@size=1024GiB";
    let done = bulkhead(folder.path(), &["check", "m.xml", "--set", set]);
    if done.status.code() != Some(0) {
        let commands = [
            &["check", "m.xml", "--set", set][..],
            &["check", "epiphany3", "--set", "memory@size=1024GiB"],
            &["check", "oneshot/pair", "--set", set],
            &["run", "m.xml", "--set", set],
            &["audit", "m.xml", "--set", set],
        ];
        for command in commands {
            let done = bulkhead(folder.path(), command);
            let said = text(&done.stderr).replace('\n', " ");
            assert_eq!(done.status.code(), Some(2), "{command:?}: {said}");
            assert!(
                said.contains("its memories have 1048576 MiB"),
                "{command:?}: {said}"
            );
        }
    }
}

#[test]
fn commands_of_the_book_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for page in pages(&root().join("docs"))
        .into_iter()
        .chain([root().join("README.md")])
    {
        for command in runnable(&std::fs::read_to_string(&page).expect("readable")) {
            let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            let output = bulkhead(folder.path(), &arguments);
            assert!(
                output.status.success(),
                "{}: bulkhead {}: {}",
                page.display(),
                command.join(" "),
                text(&output.stderr)
            );
            assert!(!output.stdout.is_empty(), "{}", command.join(" "));
            count += 1;
        }
    }
    assert!(count >= 4, "the tutorial has commands");
}

#[test]
fn bad_input_is_explained_and_nothing_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.xml");
    std::fs::write(
        &file,
        "<system name=\"s\" platform=\"tiled-gem5\" duration=\"5\"/>\n",
    )
    .expect("writes");
    let cases: [(&[&str], &str); 7] = [
        (&["run", "bad.xml"], "has no unit"),
        (&["run", "nowhere.xml"], "nowhere.xml"),
        (&["run", "quickstrat"], "quickstart"),
        (&["run", "quickstart", "--variant", "other"], "no variant"),
        (&["run", "quickstart", "--set", "nothing@here=1"], "nothing"),
        (&["boot", "bad.xml"], "not an ELF file"),
        (&["new", "Upper"], "is not a name for an application"),
    ];
    for (arguments, expected) in cases {
        let output = bulkhead(folder.path(), arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).contains(expected),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(!folder.path().join("out").exists(), "nothing was run");
}

/// Creates an application with these options and runs it. Returns the output and the console.
fn made_and_run(options: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let new = [&["new", "blink"], options].concat();
    let made = bulkhead(folder.path(), &new);
    assert!(made.status.success(), "{}", text(&made.stderr));
    // The command that it prints works unchanged.
    let printed = text(&made.stdout);
    let command = printed.lines().last().expect("a line");
    let command = command.split_once(" run ").expect("a command").1;
    let output = bulkhead(
        folder.path(),
        &["run", command, "--out", "result", "--no-trace", "--console"],
    );
    let shown = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{shown}{}",
        text(&output.stderr)
    );
    let console = folder.path().join("result/blink.console.txt");
    let console = std::fs::read_to_string(console).expect("written");
    for line in console.lines() {
        assert!(shown.contains(line), "{line}");
    }
    let result = folder.path().join("result/result.json");
    let result = std::fs::read_to_string(result).expect("written");
    let folder_name = folder.path().display().to_string();
    assert!(
        !result.contains(&folder_name),
        "the result names a folder of the host"
    );
    (shown, console)
}

#[test]
fn a_new_application_builds_and_runs() {
    let (shown, console) = made_and_run(&[]);
    assert!(shown.contains("blink"), "{shown}");
    assert!(
        console.contains("[blink] hello from blink: 10 jobs"),
        "{console}"
    );
    assert!(
        console.contains("[blink] done, 0 deadlines missed"),
        "{console}"
    );
}

#[test]
fn two_new_applications_talk() {
    let (shown, console) = made_and_run(&["--tiles", "2"]);
    assert!(shown.contains("message        20"), "{shown}");
    assert!(console.contains("[sender] sent 20 numbers"), "{console}");
}

#[test]
fn new_applications_in_c_do_the_same() {
    if bulkhead_runner::c_programs::compiler().is_none() {
        eprintln!("skipped: no C compiler for RISC-V");
        return;
    }
    let (shown, console) = made_and_run(&["--language", "c"]);
    assert!(shown.contains("blink     blink"), "{shown}");
    assert!(console.contains("[blink] done"), "{console}");
    let (shown, _) = made_and_run(&["--language", "c", "--tiles", "2"]);
    assert!(shown.contains("message        20"), "{shown}");
}

#[test]
fn a_shell_and_a_manual_know_the_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = bulkhead(folder.path(), &["completions", "bash"]);
    assert!(text(&script.stdout).contains("reproduce"));
    assert!(bulkhead(folder.path(), &["man", "pages"]).status.success());
    let page = std::fs::read_to_string(folder.path().join("pages/bulkhead-run.1"));
    assert!(page.expect("a page").contains("\\-\\-variant"));
}

#[test]
fn platforms_can_be_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = bulkhead(folder.path(), &["check", "tiled-gem5"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
    let file = folder.path().join("chip.xml");
    std::fs::write(&file, "<platform name=\"chip\" kind=\"tiled\"/>\n").expect("writes");
    let output = bulkhead(folder.path(), &["check", "chip.xml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("chip.xml:1:2"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(
        bulkhead(folder.path(), &["plan", "tiled-gem5"])
            .status
            .code(),
        Some(2)
    );
}

/// A program that is not in the repository, built here.
fn program(folder: &Path, name: &str, body: &str) -> PathBuf {
    let source = folder.join(format!("{name}.rs"));
    let code = format!(
        "#![no_std]\n#![no_main]\ncore::arch::global_asm!(\".globl _start\", \"_start:\", \"bnez a0, 1f\", \"la sp, 0x80100000\", \"call program\", \"1: j 1b\");\n\
         #[unsafe(no_mangle)]\nextern \"C\" fn program(_hart: usize, _tree: *const u8) {{\n    for byte in b\"hello\\n\" {{ unsafe {{ (0x1000_0000 as *mut u8).write_volatile(*byte) }} }}\n{body}\n}}\n\
         #[panic_handler]\nfn panic(_: &core::panic::PanicInfo) -> ! {{ loop {{}} }}\n"
    );
    std::fs::write(&source, code).expect("writes");
    let elf = folder.join(format!("{name}.elf"));
    let status = Command::new("rustc")
        .args([
            "--edition",
            "2024",
            "--target",
            "riscv64gc-unknown-none-elf",
            "-g",
            "-C",
            "opt-level=1",
        ])
        .args([
            "-C",
            "panic=abort",
            "-C",
            "link-arg=--image-base=0x80000000",
            "-o",
        ])
        .arg(&elf)
        .arg(&source)
        .current_dir(root())
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "rustc builds {name}"
    );
    elf
}

#[test]
fn any_bare_metal_program_boots() {
    let folder = tempfile::tempdir().expect("a folder");
    let exit =
        |code: u32| format!("    unsafe {{ (0x10_0000 as *mut u32).write_volatile({code}) }}");
    let boot = |name: &str, body: &str, more: &[&str]| {
        let elf = program(folder.path(), name, body);
        let mut arguments = vec!["boot", elf.to_str().expect("a name")];
        arguments.extend(more);
        let output = bulkhead(folder.path(), &arguments);
        (output.status.code(), text(&output.stdout))
    };
    let (code, out) = boot("good", &exit(0x5555), &[]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("hello\nexit code 0\n"), "{out}");
    assert!(out.contains("l1i.misses"), "{out}");

    let (code, out) = boot("seven", &exit(7 << 16 | 0x3333), &[]);
    assert_eq!(code, Some(4), "{out}");
    assert!(out.contains("exit code 7"), "{out}");

    let (code, out) = boot("trap", "    unsafe { core::arch::asm!(\"unimp\") };", &[]);
    assert_eq!(code, Some(4), "{out}");
    assert!(out.contains("unhandled trap: illegal instruction"), "{out}");
    assert!(out.contains("trap.rs:"), "function, file and line: {out}");

    let (code, out) = boot("endless", "    loop {}", &["--max-cycles", "100000"]);
    assert_eq!(code, Some(4), "{out}");
    assert!(
        out.contains("the limit of 100000 cycles is reached"),
        "{out}"
    );

    let (code, out) = boot("traced", &exit(0x5555), &["--trace", "t.pftrace", "--json"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.trim_start().starts_with('{'), "{out}");
    assert!(std::fs::metadata(folder.path().join("t.pftrace")).is_ok_and(|file| file.len() > 0));
}

/// A program on a chip with doorbells finds them in its device tree, rings its own bell there and reads that it has rung.
#[test]
fn a_program_finds_the_doorbells_in_its_device_tree() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = r#"    let tree = _tree;
    let half = |at: usize| unsafe { u32::from_be_bytes(core::ptr::read_unaligned(tree.add(at) as *const [u8; 4])) };
    // Blocks of structure and strings; a property: token 3, length, offset of the name, value.
    let (structure, strings, size) = (half(8) as usize, half(12) as usize, half(36) as usize);
    let has_name = |at: usize, name: &[u8]| (0..name.len()).all(|i| unsafe { *tree.add(strings + at + i) } == name[i]);
    let (mut at, mut inside, mut base, mut number) = (structure, false, 0usize, 0u32);
    while at < structure + size {
        let token = half(at);
        at += 4;
        if token == 1 {
            let name = b"doorbells@";
            inside = (0..name.len()).all(|i| unsafe { *tree.add(at + i) } == name[i]);
            while unsafe { *tree.add(at) } != 0 { at += 1 }
            at = (at + 4) & !3;
        } else if token == 3 {
            let (length, name) = (half(at) as usize, half(at + 4) as usize);
            if inside && has_name(name, b"reg\0") { base = (half(at + 8) as usize) << 32 | half(at + 12) as usize }
            if inside && has_name(name, b"bulkhead,bells\0") { number = half(at + 8) }
            at = (at + 8 + length + 3) & !3;
        }
    }
    let mut code = 9 << 16 | 0x3333;
    if base != 0 {
        unsafe { ((base + 4 * number as usize) as *mut u32).write_volatile(1) };
        for _ in 0..100 {
            if unsafe { ((base + 0x400) as *const u64).read_volatile() } == 1 << number { code = 0x5555 }
        }
    }
    unsafe { (0x10_0000 as *mut u32).write_volatile(code) }"#;
    let elf = program(folder.path(), "bells", body);
    let elf = elf.to_str().expect("a name");
    for (platform, ends) in [
        ("tx2", Some(0)),
        ("tx2-coherent", Some(0)),
        ("zcu102", Some(0)),
        ("zcu102-colours", Some(0)),
        // It has none.
        ("single", Some(4)),
    ] {
        let output = bulkhead(folder.path(), &["boot", elf, "--platform", platform]);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), ends, "{platform}: {said}");
    }
}

/// `--set` changes the platform of `boot` by the paths of `run`, with or without `platform` in front, and what is wrong in it has the messages of `run`.
#[test]
fn boot_changes_its_platform() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = "    unsafe { (0x10_0000 as *mut u32).write_volatile(0x5555) }";
    let elf = program(folder.path(), "harts", body);
    let elf = elf.to_str().expect("a name");
    let boot = |set: &[&str]| {
        let set = set.iter().flat_map(|one| ["--set", one]);
        let arguments = ["boot", elf, "--platform", "virt"].into_iter().chain(set);
        let output = bulkhead(folder.path(), &arguments.collect::<Vec<_>>());
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        (output.status.code(), out, err)
    };
    for (set, harts) in [
        (&[][..], 4),
        (&["platform/cluster@harts=2"], 2),
        (&["cluster[quad]@harts=8", "cache[l2]@latency=30"], 8),
    ] {
        let (code, out, err) = boot(set);
        assert_eq!(code, Some(0), "{out}{err}");
        for hart in [1, 3, 7] {
            let there = out.contains(&format!("  hart {hart} loads\n"));
            assert_eq!(there, hart < harts, "{set:?}: {out}");
        }
    }
    let mut refused = String::new();
    for set in [
        "platform/cluster",
        "platform/cluster@hearts=2",
        "platform/clutser@harts=2",
        "platform/cluster@harts=two",
        "platform/cluster@harts=9",
    ] {
        let (code, out, err) = boot(&[set]);
        assert_eq!(code, Some(2), "{set}: {out}{err}");
        assert!(out.is_empty(), "{set}: {out}");
        refused.push_str(&err);
    }
    insta::assert_snapshot!(refused);
    // The same words as those of `run`.
    let set = "platform/cluster@harts=two";
    let run = bulkhead(folder.path(), &["run", "bare/shares", "--set", set]);
    assert_eq!(text(&run.stderr), boot(&[set]).2);
}
