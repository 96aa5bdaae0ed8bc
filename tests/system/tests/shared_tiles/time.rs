//! Processor time as a capability, on the machine: whoever may start children starts them with all that he can get.

use bulkhead_system_tests::shared_tiles::{boot, spans, system, variant};

#[test]
fn a_control_loop_meets_every_deadline_beside_children_that_anyone_starts() {
    let result = boot(system("heirs"), &[]);
    for name in ["alone", "timeless", "manager", "both"] {
        let seen = variant(&result, name);
        println!("{name}: {:?} {:?}", seen.end, seen.incidents);
        let jobs = &spans(seen, "controller").samples;
        let worst = jobs.iter().map(|job| job.latency).max().unwrap_or(0);
        println!("{} jobs, worst {}", jobs.len(), result.microseconds(worst));
        assert_eq!(jobs.len(), 60, "{name}");
        assert!(result.microseconds(worst) <= 900.0, "{name}");
    }
}
