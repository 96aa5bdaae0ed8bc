//! The lumped-link bound: the whole network as one exclusive bus.
//!
//! Why it exists: for comparison. Every transaction of every source is assumed to block every other for its whole duration, whether or not
//! their paths meet; direct and indirect contention are the same. Valid for any topology, easily computed, and pessimistic (S.
//! Balakrishnan, F. Özgüner, *A priority-driven flow control mechanism for real-time traffic in multiprocessor networks*, IEEE Transactions
//! on Parallel and Distributed Systems 9(7), 1998; named by m3-rtas24, section III-C, as the coarse end of the scale). It does not know
//! routes.

use super::bound::Work;
use super::interference::{Rival, Stays, Victim, least_window, outages};
use super::scenario::{
    Arbitration, CommunicationError, NetworkScenario, Resource, Step, TransactionClass,
    TransactionId,
};

/// Ticks for which a step blocks the bus.
fn span(step: &Step) -> u128 {
    u128::from(step.latency.max(step.occupancy))
}

/// Time in which some resource serves nothing, or serves something that is already over.
fn unavailable(scenario: &NetworkScenario, window: u128) -> u128 {
    let all = scenario.resources.iter().enumerate();
    all.fold(0u128, |sum, (index, r)| {
        sum.saturating_add(scenario.tail(index))
            .saturating_add(outages(r.outage.as_ref(), window))
    })
}

fn rivals(scenario: &NetworkScenario, victim: Option<TransactionId>) -> Vec<Rival<'_>> {
    let victim = victim.and_then(|id| Victim::new(scenario, id));
    let unknown = Stays::unknown();
    let all = scenario.sources.iter().enumerate();
    all.map(|(index, source)| {
        Rival::new(
            source,
            index,
            victim,
            &unknown,
            |c| c.steps.iter().collect(),
            span,
        )
    })
    .collect()
}

/// What rivals do before the second and each further turn of a transaction at the same resource: one step of each there. What they do
/// before the first turns is in their whole paths.
fn turns(scenario: &NetworkScenario, rivals: &[Rival<'_>], class: &TransactionClass) -> u128 {
    let at = |index| {
        let longest = |rival: &Rival<'_>| {
            let steps = rival.users.iter().flat_map(|user| user.class.at(index));
            steps.map(span).max().unwrap_or(0)
        };
        let further = (class.own_steps(index).count() as u128).saturating_sub(1);
        let round = match further {
            0 => 0,
            _ => rivals.iter().map(longest).sum::<u128>(),
        };
        further.saturating_mul(round)
    };
    (0..scenario.resources.len())
        .map(at)
        .fold(0, u128::saturating_add)
}

/// Longest wait of one transaction for the bus.
fn single(scenario: &NetworkScenario, id: TransactionId) -> Option<u128> {
    let rivals = rivals(scenario, Some(id));
    let down = |w| unavailable(scenario, w);
    let mut order = 0u128;
    let mut packets = 1u128;
    let mut round = 0u128;
    let mut further = turns(scenario, &rivals, scenario.class(id).ok()?.1);
    for rival in &rivals {
        for user in &rival.users {
            let outstanding = u128::from(user.outstanding);
            order = order.saturating_add(outstanding * user.occupancy);
            packets += outstanding;
            let turns = turns(scenario, &rivals, user.class);
            further = further.saturating_add(outstanding.saturating_mul(turns));
        }
        round += rival.users.iter().map(|u| u.occupancy).max().unwrap_or(0);
    }
    // With round robin anything outstanding may be in the transaction's own queue, and each turn of a packet there lets one of each source
    // pass.
    if scenario
        .resources
        .iter()
        .any(|r| r.arbitration == Arbitration::RoundRobin)
    {
        order = order.saturating_add(packets.saturating_mul(round).saturating_add(further));
    }
    let any = |r: &Resource| {
        matches!(
            r.arbitration,
            Arbitration::AnyOrder | Arbitration::LimitedPassing | Arbitration::Turns { .. }
        )
    };
    if scenario.resources.iter().any(any) {
        order = u128::MAX;
    }
    let order = least_window(u128::MAX, |w| order.saturating_add(down(w)));
    let cap = order.unwrap_or(u128::MAX);
    let window = least_window(cap, |w| {
        rivals.iter().fold(down(w), |sum, r| {
            sum.saturating_add(r.in_window(w, scenario.ticks_per_second))
        })
    });
    window.or(order)
}

/// The bound of all of `work` on the lumped link, on top of `fixed` ticks without contention; `None` if there is none.
pub(super) fn lumped(
    scenario: &NetworkScenario,
    work: &Work,
    fixed: u128,
) -> Result<Option<u128>, CommunicationError> {
    let mut cap = Some(fixed);
    let mut own = 0u128;
    let mut sources = Vec::new();
    for stage in &work.stages {
        for &(id, count) in &stage.transactions {
            let (_, class) = scenario.class(id)?;
            let one = single(scenario, id);
            cap = cap
                .zip(one)
                .map(|(c, w)| c.saturating_add(u128::from(count).saturating_mul(w)));
            own = own.saturating_add(
                u128::from(count).saturating_mul(class.steps.iter().map(span).sum()),
            );
            sources.push(id.source);
        }
    }
    sources.sort_unstable();
    sources.dedup();
    let one_source = work.covers_sources && sources.len() == 1;
    let rivals = rivals(scenario, None);
    let cap = cap.unwrap_or(u128::MAX);
    let window = least_window(cap, |w| {
        let down = unavailable(scenario, w);
        let mut sum = fixed.saturating_add(down);
        for (index, rival) in rivals.iter().enumerate() {
            if !(one_source && sources[0] == index) {
                sum = sum.saturating_add(rival.in_window(w, scenario.ticks_per_second));
            }
        }
        sum.saturating_add(if work.covers_sources { own } else { 0 })
    });
    Ok(window.or((cap < u128::MAX).then_some(cap)))
}
