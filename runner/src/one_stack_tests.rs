//! Procedures that are accepted, and procedures that are refused.
use super::*;

fn procedure(body: &str) -> Vec<String> {
    let text = format!(
        "\t.file 1 \"./t.adb\"\n\t.type t, @function\nt:\n\t.loc 1 1 0\n{body}\t.size t, .-t\n"
    );
    refusals(&text).iter().map(ToString::to_string).collect()
}

const WAIT: &str = "\tcall\tbulkhead_ada_delay_until\n";

#[test]
fn static_values_survive() {
    let body = format!(
        "\taddi\tsp,sp,-32\n\tsd\tra,24(sp)\n\tsd\ts0,16(sp)\n.L2:\n\tlla\ts0,count\n\tlw\ta5,0(s0)\n\tsw\ta5,8(sp)\n\tcall\tg\n\tlw\ta5,8(sp)\n\
         \tsw\ta5,0(s0)\n{WAIT}\tj\t.L2\n"
    );
    assert!(procedure(&body).is_empty(), "{:?}", procedure(&body));
}

#[test]
fn a_register_a_slot_and_a_return_are_refused() {
    let cases = [
        // A saved register that is read only in the second round.
        format!("\tli\ts1,0\n.L2:\n\t.loc 1 2 0\n\taddi\ts1,s1,1\n\t.loc 1 3 0\n{WAIT}\tj\t.L2\n"),
        // A slot that was only half rewritten.
        format!(
            "\taddi\tsp,sp,-16\n\tsd\ta0,0(sp)\n\t.loc 1 3 0\n{WAIT}\tsw\tzero,0(sp)\n\t.loc 1 2 0\n\tld\ta0,0(sp)\n.L1:\n\tj\t.L1\n"
        ),
        // On one of two paths.
        format!(
            "\t.loc 1 3 0\n{WAIT}\tlw\ta5,flag\n\tbeqz\ta5,.L3\n\tfmv.d.x\tfs0,zero\n.L3:\n\t.loc 1 2 0\n\tfadd.d\tfa0,fs0,fs0\n.L4:\n\tj\t.L4\n"
        ),
    ];
    for case in cases {
        assert_eq!(
            procedure(&case),
            [
                "t.adb:2: error: this needs a local value from before the task waited in line 3; the value is lost"
            ],
            "{case}"
        );
    }
    let returns = format!(
        "\taddi\tsp,sp,-16\n\tsd\tra,8(sp)\n\t.loc 1 3 0\n{WAIT}\tld\tra,8(sp)\n\taddi\tsp,sp,16\n\tjr\tra\n"
    );
    assert_eq!(procedure(&returns).len(), 1, "{:?}", procedure(&returns));
    let tail = format!("{WAIT}\ttail\tg\n");
    assert_eq!(
        procedure(&tail),
        [
            "t.adb:1: error: a procedure waits here and returns later: wait in the task's body itself"
        ]
    );
}

#[test]
fn what_is_not_known_is_refused_where_a_job_ends() {
    for odd in [
        "\taddi\ta0,sp,8\n",
        "\tmv\ta0,sp\n",
        "\tsd\tsp,0(a0)\n",
        "\tadd\tsp,sp,t0\n",
        "\tmv\tsp,s0\n",
        "\tvsetvli\ta0,a1\n",
        "\tbeqz\ta0,1f\n",
        "#APP\n\tnop\n#NO_APP\n",
        "\tlla\ta0,bulkhead_ada_wait\n",
        "\ttail\tbulkhead_ada_wait\n",
    ] {
        let body = format!("{odd}.L2:\n{WAIT}\tj\t.L2\n");
        assert!(!procedure(&body).is_empty(), "{odd}");
    }
    // Elsewhere they do not matter.
    assert!(procedure("\taddi\ta0,sp,8\n\tvsetvli\ta0,a1\n\tret\n").is_empty());
    // A depth that depends on the path.
    let depth =
        format!("\tbeqz\ta0,.L2\n\taddi\tsp,sp,-16\n.L2:\n{WAIT}\tj\t.L3\n.L3:\n\tj\t.L3\n");
    assert!(!procedure(&depth).is_empty());
}

/// The compiler compares the result of a function, in the frame, with a constant.
#[test]
fn bytes_of_the_frame_that_calls_compare_and_copy_are_known() {
    let compare = |before: &str, call: &str, behind: &str| {
        format!(
            "\taddi\tsp,sp,-48\n.L5:\n{before}\tli\ta2,16\n\tlla\ta1,null\n\tmv\ta0,sp\n\tcall\t{call}\n{behind}\tbne\ta0,zero,.L4\n\tcall\tg\n.L4:\n{WAIT}\tj\t.L5\n"
        )
    };
    let result = "\tcall\tg\n\tsd\ta0,0(sp)\n\tsd\ta1,8(sp)\n";
    let none: [String; 0] = [];
    assert_eq!(procedure(&compare(result, "memcmp", "")), none);
    let written = "\tli\ta0,3\n";
    assert_eq!(procedure(&compare("", "memset", written)), none);
    // Half of what is compared is from before the task waited.
    let half = compare("\tcall\tg\n\tsd\ta0,0(sp)\n", "memcmp", "");
    assert!(procedure(&half)[0].contains("needs a local value from before"));
    for (case, why) in [
        (compare(result, "keeper", ""), "another function"),
        (compare(result, "memset", ""), "its result is the address"),
        (
            compare(result, "memset", "\tcall\tg\n"),
            "another function may get its result",
        ),
        (
            compare(result, "memcmp", "").replace("\tli\ta2,16\n", "\tmv\ta2,a5\n"),
            "an unknown number",
        ),
        (
            compare(result, "memcmp", "").replace("\tmv\ta0,sp\n", "\tmv\ta0,sp\n\tmv\ta5,a0\n"),
            "another register has it, too",
        ),
        (
            compare(result, "memcmp", "").replace("\tmv\ta0,sp\n", "\tmv\ta0,sp\n\tbeqz\ta5,.L4\n"),
            "it is there on another path, too",
        ),
    ] {
        let said = procedure(&case);
        assert!(
            said.iter()
                .any(|one| one.contains("the address of a local variable is used")),
            "{why}: {said:?}"
        );
    }
}

#[test]
fn names_of_registers_are_those_of_the_convention() {
    let names: Vec<Registers> = ["s0", "s1", "s2", "s11", "fs0", "fs1", "fs2", "fs11"]
        .into_iter()
        .filter_map(register)
        .collect();
    assert_eq!(names.len(), 8);
    assert!(names.iter().all(|one| one & SAVED == *one));
    let mut seen = 0;
    let floats = ["ft", "fs", "fa"]
        .iter()
        .flat_map(|kind| (0..12).map(move |n| format!("{kind}{n}")));
    for name in INTEGER.iter().map(|&name| name.to_owned()).chain(floats) {
        let one = register(&name).unwrap_or(0);
        assert_eq!(seen & one, 0, "{name}");
        seen |= one;
    }
    assert_eq!(seen, u64::MAX);
    assert_eq!(SAVED.count_ones(), 24);
}

/// A body like those that the compiler makes of an entry with a parameter `out`: the parameter's address is in a record of the frame.
fn body_with(call: &str, odd: &str) -> String {
    format!(
        "\t.file 1 \"./t.adb\"\n\t.type t__aTKB, @function\nt__aTKB:\n\t.loc 1 1 0\n\taddi\tsp,sp,-32\n\tsd\tra,24(sp)\n.L9:\n\taddi\ta2,sp,8\n\
         \taddi\ta5,sp,16\n\tsd\ta5,8(sp)\n{odd}\tlla\ta0,box\n\tcall\tsystem__tasking__protected_objects__operations__waits\n\tbeq\ta0,zero,.L7\n\
         \t.loc 1 3 0\n\tcall\t{call}\n.L7:\n\tld\ta5,8(sp)\n\tld\ta0,0(a5)\n\tcall\tprint\n{WAIT}\tj\t.L9\n\t.size\tt__aTKB, .-t__aTKB\n"
    )
}

fn said(text: &str) -> Vec<String> {
    refusals(text).iter().map(ToString::to_string).collect()
}

#[test]
fn a_body_that_calls_an_entry_with_parameters_keeps_its_frame() {
    let kept = body_with("bulkhead_ada_wait_kept", "");
    assert_eq!(said(&kept), [""; 0], "{kept}");
    assert_eq!(declared(&kept).kept, [("t__aTKB".to_owned(), 32)].into());
    let gone = body_with("bulkhead_ada_wait", "");
    assert!(!said(&gone).is_empty());
    assert!(declared(&gone).kept.is_empty());
    // In the frame only: a register is gone, whatever is kept.
    let register = kept.replace("ld\ta0,0(a5)", "mv\ta0,s2");
    assert_eq!(
        said(&register),
        [
            "t.adb:3: error: this needs a local value from before the task waited in line 3; the value is lost"
        ]
    );
    let procedure = kept.replace("t__aTKB", "t__p");
    assert_eq!(
        said(&procedure),
        [
            "t.adb:3: error: an entry with parameters is called outside of a task's body: call it in the body itself"
        ]
    );
}

#[test]
fn addresses_of_a_kept_frame_stay_in_it() {
    for odd in [
        "\tlla\ta4,box\n\tsd\ta5,0(a4)\n",
        "\tlla\ta4,box\n\tsd\tsp,0(a4)\n",
        "\tmv\ta0,a5\n\tcall\tkeeper\n",
        "\tli\ta1,0\n\tmv\ta0,a1\n\tmv\ta1,a5\n\tcall\tkeeper\n",
        "\tlla\ta3,box\n\tadd\ta4,a5,a3\n\tsd\ta4,0(a3)\n",
        "\tlla\ta3,box\n\tld\ta4,8(sp)\n\tsd\ta4,0(a3)\n",
        "\tlla\ta3,box\n\tamoswap.d\ta4,a5,(a3)\n",
        "\tld\ta4,0(a2)\n\tlla\ta3,box\n\tsd\ta4,0(a3)\n",
    ] {
        let all = said(&body_with("bulkhead_ada_wait_kept", odd));
        assert!(
            all.len() == 1 && all[0].contains("the address of a local variable leaves"),
            "{odd}: {all:?}"
        );
    }
    for fine in [
        "\tsd\tsp,16(sp)\n\tsd\tzero,16(sp)\n",
        "\tlla\ta3,box\n\tsd\tzero,0(a3)\n",
        "\tlla\ta4,box\n\tmv\ta3,a5\n\tli\ta3,0\n\tsd\ta3,0(a4)\n",
        // What is behind a gap is no argument.
        "\tli\ta2,0\n\tli\ta0,1\n\tli\ta1,1\n\tcall\tg\n\taddi\ta5,sp,16\n\tli\ta1,1\n\tcall\tg\n\taddi\ta2,sp,8\n",
        "\tlw\ta4,0(a2)\n\tlla\ta3,box\n\tsw\ta4,0(a3)\n",
    ] {
        let all = said(&body_with("bulkhead_ada_wait_kept", fine));
        assert_eq!(all, [""; 0], "{fine}");
    }
}

#[test]
fn priorities_are_those_of_the_calls_that_declare_tasks() {
    let create = |before: &str| {
        format!(
            "\t.type t__vip, @function\nt__vip:\n\taddi\tsp,sp,-32\n{before}\tcall\tsystem__tasking__restricted__stages__create_restricted_task_sequential\n\
             \tret\n\t.size\tt__vip, .-t__vip\n"
        )
    };
    let of = |before: &str| declared(&create(before)).priorities;
    let one = |priority| [("t__aTKB".to_owned(), priority)].into();
    assert_eq!(of("\tlla\ta7,t__aTKB\n\tli\ta0,5\n"), one(5));
    assert_eq!(
        of("\tli\ta5,200\n\tlla\ta7,t__aTKB\n\taddi\ta0,a5,-60\n"),
        one(140)
    );
    // What is not a constant of the way to the call is not known.
    for unknown in [
        "\tlla\ta7,t__aTKB\n\tlw\ta0,8(a1)\n",
        "\tli\ta0,5\n.L1:\n\tlla\ta7,t__aTKB\n",
        "\tli\ta0,5\n\tcall\tg\n\tlla\ta7,t__aTKB\n",
        "\tli\ta0,5\n\tld\ta7,8(sp)\n",
    ] {
        assert!(of(unknown).is_empty(), "{unknown}");
    }
}
