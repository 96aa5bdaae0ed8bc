//! What the build refuses in C tasks of the one-shot RTOS, because all tasks share one stack.

use bulkhead_runner::c_programs;
use std::path::Path;

/// Functions that call themselves with a later place: one stores an address in each place, the other reads the place.
const SPREAD: &str = "__attribute__((noinline)) static uint64_t spread(uint64_t **at, uint64_t *what, int n) { if (!n) return 0; *at = what; \
    uint64_t rest = spread(at + 1, what, n - 1); bh_print_number(\"\", rest); return rest + 1; }\n\
    __attribute__((noinline)) static uint64_t gather(uint64_t **at, int n) { if (!n) return 0; uint64_t rest = gather(at + 1, n - 1); bh_print_number(\"\", rest); return rest + **at; }";

/// Compiles a job. Returns the compiler's words if it refuses.
fn compiled(before: &str, job: &str) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("task.c");
    let text = format!(
        "#include \"bulkhead_oneshot.h\"\n\
         struct fields {{ bh_releases releases; uint64_t *kept; uint64_t length; uint64_t (*next)(struct fields *, uint64_t *); }};\n{before}\n\
         static bh_done run(struct fields *self, bh_job job) {{ {job} }}\n\
         BH_TASK(task, struct fields, run, {{.length = 0}})\n"
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

/// The compiler's own warning ends at the last call of a job, and almost every job ends with one.
#[test]
fn a_job_that_keeps_the_address_of_a_local_variable_is_refused() {
    if c_programs::compiler().is_none() {
        return;
    }
    let next = "return bh_next(&self->releases, job);";
    let keep = "__attribute__((noinline)) static void keep(struct fields *f, uint64_t *at) { bh_print(\"\"); f->kept = at; }";
    let pass = format!(
        "{keep} __attribute__((noinline)) static void pass(uint64_t *at, struct fields *f) {{ keep(f, at); bh_print(\"\"); }}"
    );
    let list = "struct node { uint64_t value; struct node *next; };\n\
        __attribute__((noinline)) static void link(struct node *to, struct node *one) { bh_print(\"\"); to->next = one; }\n\
        __attribute__((noinline)) static uint64_t total(struct node *one) { uint64_t sum = 0; for (; one; one = one->next) sum += one->value; return sum; }\n\
        __attribute__((noinline)) static uint64_t depth(struct node *one) { return one ? 1 + depth(one->next) + one->value % 2 : 0; }";
    let refused = [
        // A field and a variable.
        (
            "",
            "uint64_t local = bh_now(); if (self->kept) bh_print_number(\"\", *self->kept); self->kept = &local;",
        ),
        (
            "static uint64_t *kept;",
            "uint64_t local = bh_now(); if (kept) bh_print_number(\"\", *kept); kept = &local;",
        ),
        (
            "void fill(uint64_t *);",
            "uint64_t room[9]; fill(room); self->kept = room + room[0] % 9; bh_print(\"\");",
        ),
        (
            "void fill(uint64_t *);",
            "uint64_t room[900]; fill(room); self->kept = room + room[0] % 9; bh_print(\"\");",
        ),
        // A function stores it, or a function that it calls.
        (keep, "uint64_t local = bh_now(); keep(self, &local);"),
        (&pass, "uint64_t local = bh_now(); pass(&local, self);"),
        // In a case of a table of jumps.
        (
            "",
            "uint64_t local = bh_now(); switch (self->length) { case 0: bh_print(\"a\"); break; case 1: bh_print(\"b\"); break; case 2: self->kept = &local; break; \
             case 3: bh_print_number(\"\", *self->kept); break; case 4: bh_print(\"e\"); break; case 5: bh_print(\"f\"); break; case 6: self->length = 1; break; \
             case 7: return bh_end(job); } bh_print(\"\");",
        ),
        // By labels as values.
        (
            "",
            "static const void *const all[] = {&&a, &&b, &&c}; uint64_t local = bh_now(); goto *all[self->length % 3]; a: self->kept = &local; b: \
             self->length += 1; c: bh_print(\"\");",
        ),
        // The object for which a task waits must exist until then, also if a function that several tasks call returns it.
        (
            "",
            "bh_suspension object = {{0}}; if (bh_now() > 5) return bh_wait(&object, job);",
        ),
        (
            "static bh_done look(void *, bh_job job) { bh_suspension object = {{0}}; if (bh_now() > 5) return bh_wait(&object, job); return bh_end(job); }\n\
             BH_TASK(one, uint64_t, look, 0)\nBH_TASK(two, uint64_t, look, 0)",
            "",
        ),
        (
            "__attribute__((noinline)) static bh_done leave(uint64_t *one, bh_job job) { bh_events events = BH_EVENTS(2); if (*one) return bh_await(&events, job); return bh_end(job); }",
            "uint64_t local = bh_now(); if (local > 3) { bh_done done = leave(&local, job); bh_print(\"\"); return done; }",
        ),
        // The kernel keeps it.
        (
            "static void act(void) {}",
            "bh_timing_event event = BH_TIMING_EVENT(act); bh_set_event(&event, bh_now() + 5);",
        ),
        (
            "static void keep(void *data, void *argument) { *(void **)data = argument; }\n\
             static uint64_t *box; static bool open(const void *d) { return d != 0; } static void take(void *d, uint64_t m) { (void)d; (void)m; }\n\
             BH_PROTECTED(shared, &box, BH_ENTRY(open, take))",
            "uint64_t local = bh_now(); bh_update(&shared, keep, &local);",
        ),
        // A function that is called by its address.
        (
            &format!(
                "{keep} static void other(struct fields *f, uint64_t *at) {{ f->length = *at; }} static void (*const all[])(struct fields *, uint64_t *) = {{keep, other}};"
            ),
            "uint64_t local = bh_now(); all[self->length & 1](self, &local);",
        ),
        // A function returns it, reads it from a structure, or copies it as bytes.
        (
            "__attribute__((noinline)) static uint64_t *choose(uint64_t *a, uint64_t *b) { return *b > 3 ? a : b; }",
            "uint64_t one = bh_now(), other = bh_period(); self->kept = choose(&one, &other);",
        ),
        (
            "struct request { uint64_t kind; uint64_t *at; }; static uint64_t *kept;\n\
             __attribute__((noinline)) static void send(struct request *one) { bh_print(\"\"); kept = one->at; }",
            "uint64_t local = bh_now(); if (kept) self->length = *kept; struct request one = {3, &local}; send(&one);",
        ),
        (
            "struct many { uint64_t *at[40]; }; static struct many all; void use(struct many *);",
            "uint64_t local = bh_now(); struct many some = {{&local}}; use(&some); all = some; if (all.at[3]) self->length = *all.at[3];",
        ),
        (
            list,
            "static struct node head; struct node one = {bh_now(), 0}; self->length = total(&head); link(&head, &one);",
        ),
        // A recursion that stores further on each time.
        (
            SPREAD,
            "uint64_t local = bh_now(); self->length = spread(&self->kept, &local, 1);",
        ),
        // The ninth argument.
        (
            "static uint64_t *kept; __attribute__((noinline)) static void nine(long a, long b, long c, long d, long e, long f, long g, long h, uint64_t *at)\n\
             { bh_print_number(\"\", a ^ b ^ c ^ d ^ e ^ f ^ g ^ h); kept = at; }",
            "uint64_t local = bh_now(); if (kept) self->length = *kept; nine(local, 2, 3, 4, 5, 6, 7, local + 8, &local);",
        ),
    ];
    for (before, job) in refused {
        let words = compiled(before, &format!("{job} {next}")).expect_err(job);
        let told = "error: the address of a local variable is kept";
        assert!(
            words.contains("task.c:") && words.contains(told),
            "{job}\n{words}"
        );
    }
}

/// What jobs may do with addresses, and with values that only look like addresses.
#[test]
fn a_job_that_keeps_no_address_of_its_stack_is_built() {
    if c_programs::compiler().is_none() {
        return;
    }
    let next = "return bh_next(&self->releases, job);";
    let list = "struct node { uint64_t value; struct node *next; };\n\
        __attribute__((noinline)) static void link(struct node *to, struct node *one) { bh_print(\"\"); to->next = one; }\n\
        __attribute__((noinline)) static uint64_t total(struct node *one) { uint64_t sum = 0; for (; one; one = one->next) sum += one->value; return sum; }\n\
        __attribute__((noinline)) static uint64_t depth(struct node *one) { return one ? 1 + depth(one->next) + one->value % 2 : 0; }\n\
        __attribute__((noinline)) static void note(struct fields *f, struct node *one) { for (; one; one = one->next) if (one->value > f->length) f->length = one->value; }\n\
        struct queue { struct node *head, *tail; };\n\
        __attribute__((noinline)) static void append(struct queue *to, struct node *one) { if (to->tail) to->tail->next = one; else to->head = one; to->tail = one; one->next = 0; }";
    let fine = [
        // A recursion that stores further on each time.
        (
            SPREAD,
            "uint64_t local = bh_now(); uint64_t *room[3]; spread(room, &local, 3); bh_print_number(\"\", gather(room, 3));",
        ),
        // Passed, and stored in the frame.
        (
            "void fill(uint64_t *); struct node { struct node *next; uint64_t value; }; void walk(struct node *);",
            "uint64_t room[4]; fill(room); struct node last = {0, 3}, first = {&last, room[1]}; walk(&first); self->length = first.value;",
        ),
        // A distance, and the result of a comparison.
        (
            "void fill(char *);",
            "char text[40]; fill(text); char *at = text; while (*at && at < text + 40) at++; self->length = at - text; self->kept = 0;",
        ),
        // An address of something else.
        (
            "static uint64_t all[4]; __attribute__((noinline)) static uint64_t *choose(uint64_t *a, uint64_t *b) { return *b > 3 ? a : a + 1; }",
            "uint64_t local = bh_now(); self->kept = choose(all, &local);",
        ),
        // Lists that functions build, walk and count.
        (
            list,
            "struct node one = {bh_now(), 0}, two = {2, 0}, three = {3, 0}; link(&one, &two); link(&two, &three); self->length = total(&one) + depth(&one); self->length += two.value;",
        ),
        (
            list,
            "struct queue all = {0, 0}; struct node one = {bh_now(), 0}, two = {2, 0}, three = {3, 0}; append(&all, &one); append(&all, &two); append(&all, &three); \
             note(self, all.head); self->length += total(all.head);",
        ),
        // Functions and tasks that several tasks share.
        (
            "struct two { bh_releases releases; bh_suspension object; uint64_t at; };\n\
             static bh_done look(struct two *self, bh_job job) { uint64_t local = bh_now(); bh_print_number(\"\", local); self->at = local; if (local & 1) return bh_wait(&self->object, job); return bh_next(&self->releases, job); }\n\
             BH_TASK(one, struct two, look, {.at = 0})\nBH_TASK(two, struct two, look, {.at = 0})",
            "",
        ),
        // A state machine by a table of jumps, with an address in some of its cases.
        (
            "void fill(uint64_t *, uint64_t);",
            "uint64_t local[3]; switch (self->length) { case 0: fill(local, 1); self->length = local[1]; break; case 1: bh_print(\"b\"); break; case 2: fill(local, 2); \
             self->length = local[0] + 1; break; case 3: self->length = 9; break; case 4: bh_print(\"e\"); break; case 5: return bh_end(job); case 6: return bh_delay_until(job, 9); \
             case 7: fill(local, 4); bh_print_number(\"\", local[2]); break; default: self->length = 0; }",
        ),
        // States as functions, called by their addresses at the end of a job.
        (
            "struct state { bh_done (*run)(struct state *, bh_job); bh_releases releases; uint64_t n; };\n\
             static bh_done two(struct state *, bh_job);\n\
             static bh_done one(struct state *self, bh_job job) { uint64_t local = bh_now(); self->n += local; self->run = two; return bh_next(&self->releases, job); }\n\
             static bh_done two(struct state *self, bh_job job) { bh_print_number(\"\", self->n); self->run = one; return bh_next(&self->releases, job); }\n\
             static bh_done any(struct state *self, bh_job job) { return self->run(self, job); }\n\
             BH_TASK(machine, struct state, any, {.run = one})",
            "",
        ),
        // A sort with a comparison by its address.
        (
            "typedef int order(const void *, const void *); static int less(const void *a, const void *b) { return *(const uint64_t *)a < *(const uint64_t *)b; }\n\
             __attribute__((noinline)) static void sort(uint64_t *all, int count, order *by) { for (int i = 1; i < count; i++) for (int j = i; j && by(&all[j], &all[j - 1]); j--) \
             { uint64_t one = all[j]; all[j] = all[j - 1]; all[j - 1] = one; } }",
            "uint64_t all[9]; for (int i = 0; i < 9; i++) all[i] = bh_cycles() % 100; sort(all, 9, less); self->length = all[4];",
        ),
        // Structures by value, in and out.
        (
            "struct sum { uint64_t sum, least, most; };\n\
             __attribute__((noinline)) static struct sum sums(const uint64_t *all, int count) { struct sum it = {0, ~0, 0}; for (int i = 0; i < count; i++) { it.sum += all[i]; \
             if (all[i] < it.least) it.least = all[i]; if (all[i] > it.most) it.most = all[i]; } return it; }\n\
             __attribute__((noinline)) static uint64_t middle(struct sum it) { return (it.least + it.most) / 2; }",
            "uint64_t all[5]; for (int i = 0; i < 5; i++) all[i] = bh_cycles() >> i; struct sum it = sums(all, 5); self->length = middle(it) + it.sum;",
        ),
        // A large array, and a recursive function.
        (
            "__attribute__((noinline)) static uint64_t fib(uint64_t n, uint64_t *calls) { ++*calls; return n < 2 ? n : fib(n - 1, calls) + fib(n - 2, calls); }",
            "uint64_t calls = 0; self->length = fib(9, &calls); self->length += calls; uint8_t big[3000]; for (int i = 0; i < 3000; i++) big[i] = bh_cycles(); \
             uint64_t sum = 0; for (int i = 0; i < 3000; i++) sum += big[i] * i; self->length += sum;",
        ),
        // A local section of a parallel job, items of channels, and copies of bytes.
        (
            "struct help { bh_helper helpers[2]; bh_input in; bh_output out; uint64_t part[3], result[2]; bh_releases releases; uint8_t copy[200]; };\n\
             static bh_done share(struct help *self, bh_job job) { bh_section section; if (bh_begin(&section, self->helpers, 2) > 0) for (size_t i = 0; i < 2; i++) bh_hand(&section, i, self->part, 8); \
             uint64_t got = 0; for (size_t i = 0; i < 2; i++) if (bh_collect(&section, i, &got, sizeof got) > 0) self->result[i] = got; return bh_next_section(job); }\n\
             BH_TASK(help, struct help, share, {.helpers = {BH_HELPER(0, 0), BH_HELPER(1, 1)}})\n\
             static bh_done copy(struct help *self, bh_job job) { uint8_t item[200]; if (bh_take(&self->in, item, sizeof item) > 0) { __builtin_memcpy(self->copy, item, sizeof item); \
             bh_put(&self->out, item, sizeof item); } return bh_next(&self->releases, job); }\n\
             BH_TASK(copy, struct help, copy, {.in = BH_INPUT(0)})",
            "",
        ),
        // Protected data, a body and an action that change it, and a local argument.
        (
            "struct box { uint64_t count, last; }; static struct box box;\n\
             static bool has(const void *data) { return ((const struct box *)data)->count > 0; }\n\
             static void take(void *data, uint64_t most) { struct box *one = data; one->count -= one->count < most ? one->count : most; }\n\
             static void put(void *data, void *argument) { struct box *one = data; one->count++; one->last = *(uint64_t *)argument; }\n\
             BH_PROTECTED(shared, &box, BH_ENTRY(has, take))",
            "uint64_t local = bh_now(); if (bh_update(&shared, put, &local) && local % 3 == 0) return bh_call(&shared, 0, local, job);",
        ),
        // Atomic operations on a local variable, and a procedure without an instruction.
        (
            "void use(uint64_t *); void never(void) { __builtin_unreachable(); }",
            "uint64_t local = bh_now(); use(&local); __atomic_fetch_add(&local, 3, __ATOMIC_SEQ_CST); self->length = local; \
             switch (self->length & 3) { case 0: bh_print(\"\"); break; case 1: break; case 2: self->length++; break; case 3: break; default: __builtin_unreachable(); }",
        ),
        // A function with a variable list of arguments.
        (
            "#include <stdarg.h>\n__attribute__((noinline)) static uint64_t sum(int count, ...) { va_list all; va_start(all, count); uint64_t sum = 0; while (count--) sum += va_arg(all, uint64_t); va_end(all); return sum; }",
            "self->length = sum(3, bh_now(), bh_cycles(), bh_period());",
        ),
    ];
    for (before, job) in fine {
        assert_eq!(
            compiled(before, &format!("{job} {next}")),
            Ok(()),
            "{job}\n{before}"
        );
    }
}

/// Every task in C of the repository.
#[test]
fn the_repositorys_tasks_are_built() {
    if c_programs::compiler().is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("a checkout");
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("workloads/one-shot")).expect("a folder") {
        let source = entry.expect("an entry").path();
        if source.extension().is_none_or(|one| one != "c") {
            continue;
        }
        count += 1;
        for notifies in [false, true] {
            let built = c_programs::object(&root, &source, folder.path(), 2, notifies);
            assert!(built.is_ok(), "{}: {:?}", source.display(), built.err());
        }
    }
    assert!(count >= 8, "{count}");
}
