//! The control loop that hostile programs and struck tiles must not disturb.
//!
//! Why it exists: several tests put something bad next to the same loop and check whether the loop was disturbed. What it deliberately does
//! not know: its neighbours.

use crate::Report;
use bulkhead_abi::marker::MarkerKind;

/// The applications of the loop, in the order of their tiles: 2, 3 and 4.
pub const LOOP: [&str; 3] = ["sensor", "controller", "actuator"];
/// The tile where jobs end.
const LAST: u16 = 4;

/// The applications of a loop over three tiles with this many jobs, one per millisecond: for a domain.
pub fn apps(jobs: usize) -> String {
    format!(
        r#"<app name="sensor" tile="2" program="control/sensor">
      <argument name="samples" value="{jobs}"/><task period="1ms" deadline="400us"/>
      <sgate name="controller" to="controller" credits="2"/><mgate name="frame" size="64KiB" rights="r"/>
    </app>
    <app name="controller" tile="3" program="control/controller">
      <rgate name="input" slots="4" slot-size="256B"/><sgate name="actuator" to="actuator" credits="2"/>
    </app>
    <app name="actuator" tile="4" program="control/actuator"><rgate name="input" slots="4" slot-size="256B"/></app>"#
    )
}

/// Whether the loop did all of its jobs in time.
pub fn kept_up(report: &Report, jobs: usize) -> bool {
    report.flows().len() == jobs && report.values(MarkerKind::DeadlineMiss, LAST).is_empty()
}
