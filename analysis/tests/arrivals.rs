//! Offsets in descriptions: used where arrivals are periodic and the test can use them, and otherwise reported as unused.

use bulkhead_analysis::plan::{Kind, Plan, plan};
use bulkhead_model::tasks::{self, TaskSystem};
use bulkhead_model::{LoadOptions, load_tasks_text};

fn load(text: &str) -> TaskSystem {
    load_tasks_text("t", text, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Two tasks of 2 ms per 4 ms with deadlines of 2 ms: they fit only if they never meet.
fn pair(policy: &str, arrivals: &str, more: &str) -> Plan {
    plan(&load(&format!(
        r#"<task-system name="pair">
  <processors policy="{policy}" arrivals="{arrivals}"/>
  <task name="a" period="4ms" deadline="2ms" cost="2ms"/>
  <task name="b" period="4ms" deadline="2ms" cost="2ms" offset="6ms" {more}/>
</task-system>"#
    )))
    .unwrap()
}

fn responses(plan: &Plan) -> Vec<Option<u64>> {
    let all = plan.constraints.iter().filter(|c| c.kind == Kind::Response);
    all.map(|c| c.bound).collect()
}

#[test]
fn offsets_count_where_arrivals_are_periodic() {
    for policy in ["fixed-priority", "rate-monotonic", "edf", "table"] {
        let exact = pair(policy, "periodic", "");
        assert!(exact.schedulable, "{policy}");
        assert_eq!(exact.notes, Vec::<String>::new(), "{policy}");
        assert_eq!(responses(&exact), [Some(2_000_000); 2], "{policy}");
        // The output is the same system and plans to itself.
        let again = load(&tasks::write(&exact.system));
        assert_eq!(again, exact.system);
        assert!(plan(&again).unwrap().choices.is_empty(), "{policy}");
    }
    for policy in ["fixed-priority", "rate-monotonic", "edf"] {
        let any = pair(policy, "sporadic", "");
        assert!(!any.schedulable, "{policy}");
        assert!(any.notes[0].starts_with("offsets of b are not used: arrivals are sporadic"));
        let late = pair(policy, "periodic", r#"jitter="1us""#);
        assert!(!late.schedulable, "{policy}");
        assert!(
            late.notes[0].contains("processor 0 are not used: jitter"),
            "{:?}",
            late.notes
        );
    }
    let other = pair("non-preemptive", "periodic", "");
    assert!(other.notes[0].contains("policy `non-preemptive`"));
}

/// Tasks are placed by what offsets allow, and by Audsley's assignment where deadlines do not order them.
#[test]
fn plans_use_offsets() {
    let tasks: String = (0..4)
        .map(|i| {
            format!(
                r#"<task name="t{i}" period="4ms" deadline="2ms" cost="2ms" offset="{}ms"/>"#,
                2 * (i / 2)
            )
        })
        .collect();
    let text = |arrivals: &str| {
        format!(
            r#"<task-system name="four"><processors count="2" policy="fixed-priority" arrivals="{arrivals}"/>{tasks}</task-system>"#
        )
    };
    assert!(plan(&load(&text("periodic"))).unwrap().schedulable);
    assert!(!plan(&load(&text("sporadic"))).unwrap().schedulable);
}

/// A hyperperiod beyond reach: the bound of sporadic arrivals is kept, and a note says so.
#[test]
fn long_hyperperiods_are_left_to_other_tests() {
    let system = load(
        r#"<task-system name="long"><processors policy="edf" arrivals="periodic"/>
  <task name="a" period="1000003us" cost="1ms"/><task name="b" period="999983us" cost="1ms" offset="1ms"/></task-system>"#,
    );
    let plan = plan(&system).unwrap();
    assert!(plan.schedulable);
    assert!(
        plan.notes[0].contains("repeats too late"),
        "{:?}",
        plan.notes
    );
}

/// Interrupts take from level C even without tasks of levels A and B: a handler of 1 ms per 4 ms on one of two processors.
#[test]
fn interrupts_take_from_level_c() {
    let with = |device: &str| {
        let plan = plan(&load(&format!(
            r#"<task-system name="c"><processors count="2" policy="mc2"/>
  <task name="x" criticality="C" period="10ms" cost="2ms"/><task name="y" criticality="C" period="10ms" cost="2ms"/>{device}</task-system>"#
        )))
        .unwrap();
        let late = plan.constraints.iter().find(|c| c.kind == Kind::Tardiness);
        late.and_then(|c| c.bound)
    };
    let device = r#"<device name="d" interrupt-period="4ms" interrupt-cost="1ms" core="0"/>"#;
    // Rates 3/4 and 1, a shortage of at most 2 * 1 ms * 3/4 = 1.5 ms. A job that the handler interrupts stays where it is, so the
    // handler's rate of 1/4 and its 1.5 ms beyond that count once more for the other processor: x = (2 + 3 + 1.5) / (7/4 - 1/4 - 1/5 -
    // 1/5) ms, plus the cost.
    assert_eq!((with(""), with(device)), (Some(2_000_000), Some(7_909_091)));
    let flood = r#"<device name="d" interrupt-period="1ms" interrupt-cost="2ms" core="0"/>"#;
    assert_eq!(with(flood), None);
}
