//! What the build refuses in C tasks of the one-shot RTOS, because all tasks share one stack.

use bulkhead_runner::c_programs;
use std::path::Path;

/// Compiles a job. Returns the compiler's words if it refuses.
fn compiled(before: &str, job: &str) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("task.c");
    let text = format!(
        "#include \"bulkhead_oneshot.h\"\n\
         struct fields {{ bh_releases releases; uint64_t *kept; }};\n{before}\n\
         static bh_done run(struct fields *self, bh_job job) {{ {job} }}\n\
         BH_TASK(task, struct fields, run, {{{{0}}, 0}})\n"
    );
    std::fs::write(&source, text).expect("it is written");
    let compiled = c_programs::object(&root, &source, folder.path(), 1, false);
    compiled.map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_job_that_needs_its_stack_afterwards_is_refused() {
    if c_programs::compiler().is_none() {
        return;
    }
    assert_eq!(
        compiled("", "return bh_next(&self->releases, job);"),
        Ok(())
    );
    let refused = [
        // Continues after the wait, as if it had blocked.
        (
            "",
            "uint64_t local = bh_now(); bh_delay_until(job, local + 1); bh_print_number(\"\", local); return bh_end(job);",
            "unused-result",
        ),
        // A loop that waits, as a thread would.
        (
            "",
            "for (;;) bh_next(&self->releases, job);",
            "unused-result",
        ),
        // Ends without saying what the task waits for.
        ("", "if (bh_now() > 5) return bh_end(job);", "return-type"),
        (
            "",
            "bh_done done; (void)self; (void)job; return done;",
            "uninitialized",
        ),
        // Keeps an address on the stack.
        (
            "",
            "uint64_t local = bh_now(); self->kept = &local; return bh_end(job);",
            "dangling-pointer",
        ),
        // The size of its stack is unknown.
        (
            "void use(char *);",
            "char room[bh_now()]; use(room); (void)self; return bh_end(job);",
            "vla",
        ),
    ];
    for (before, job, why) in refused {
        let words = compiled(before, job).expect_err(job);
        assert!(words.contains(&format!("-Werror={why}")), "{job}\n{words}");
    }
}
