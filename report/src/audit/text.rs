//! The check's result on the terminal.
//!
//! What it deliberately does not know: how the check works; it reads only [`AuditResult`].

use super::result::{AttackResult, AuditResult, Clock, Difference, DomainResult};
use crate::format::{grouped, span};
use crate::result::Bound;
use crate::table::ANALYSED;
use crate::verdict::Judgement;

/// The label of a flow's bound.
pub const MEASURED_AND_ANALYSED: &str = "measured alone + analysed interference";

/// Thousandths as a factor, rounded up in the last digit.
pub fn factor(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

/// The greatest slowdown by an attack, and of what.
pub fn slowdown(attack: &AttackResult) -> String {
    match attack.slowdown {
        1000 => "nothing that is measured got slower".to_owned(),
        slowdown => format!("{} times slower ({})", factor(slowdown), attack.of),
    }
}

/// The name of the attack that the account describes, if that is not the worst one.
pub fn accounted(domain: &DomainResult) -> Option<&str> {
    let other = domain.accounted.filter(|at| domain.worst != Some(*at))?;
    Some(&domain.attacks.get(other)?.name)
}

/// One sentence about the actions of the attackers during the worst attack and its effect on the domain.
pub fn told(clock: Clock, domain: &DomainResult, attack: &AttackResult) -> String {
    let mut did: Vec<(&str, Vec<&str>)> = Vec::new();
    for plan in &attack.plans {
        let (who, what) = plan.split_once(": ").unwrap_or((plan, ""));
        match did.iter_mut().find(|(known, _)| *known == what) {
            Some((_, all)) => all.push(who),
            None => did.push((what, vec![who])),
        }
    }
    // The system's own programs have no plans.
    let own = "the system's own programs, as described".to_owned();
    let did = did
        .iter()
        .map(|(what, who)| format!("{}: {what}", who.join(", ")))
        .reduce(|all, one| format!("{all}; {one}"));
    let mut text = did.unwrap_or(own);
    for harm in &attack.harm {
        text += &format!("; {harm}");
    }
    match (attack.waited, domain.account.first()) {
        (0, _) | (_, None) => text += "; nobody waited for them",
        (waited, Some(most)) => {
            text += &format!(
                "; the domain waited {} for them, {} the longest, for {} at {}",
                both(clock, waited),
                most.victim,
                most.culprit,
                most.resource
            );
        }
    }
    text
}

/// A time or span in cycles and microseconds.
pub fn both(clock: Clock, ticks: u64) -> String {
    let microseconds = ticks as f64 * 1e6 / clock.ticks_per_second.max(1) as f64;
    let cycles = ticks.div_ceil(clock.cycle_ticks.max(1));
    format!("{} cycles ({})", grouped(cycles), span(microseconds))
}

/// One sentence on a difference and the event without the attack.
pub fn difference(clock: Clock, difference: &Difference) -> String {
    format!(
        "beside {}, {}",
        difference.beside,
        parted(clock, difference)
    )
}

fn parted(clock: Clock, difference: &Difference) -> String {
    let at = |moment: Option<u64>| match moment {
        Some(ticks) => {
            let microseconds = ticks as f64 * 1e6 / clock.ticks_per_second.max(1) as f64;
            format!(" at {microseconds:.3} us")
        }
        None => String::new(),
    };
    let by = match (difference.alone_at, difference.attacked_at) {
        (Some(alone), Some(attacked)) if difference.alone == difference.attacked => {
            let cycles = alone.abs_diff(attacked).div_ceil(clock.cycle_ticks.max(1));
            let way = if attacked > alone { "later" } else { "earlier" };
            format!(", {} cycles {way}", grouped(cycles))
        }
        _ => String::new(),
    };
    format!(
        "tile {}, event {}: alone, {}{}; attacked, {}{}{by}",
        difference.tile,
        difference.event,
        difference.alone,
        at(difference.alone_at),
        difference.attacked,
        at(difference.attacked_at)
    )
}

/// How a flow's bound was found.
pub fn method(bound: &Bound) -> &str {
    match bound.method.starts_with(ANALYSED) {
        true => ANALYSED,
        false => MEASURED_AND_ANALYSED,
    }
}

/// The outcome of an attack, if each attack's first difference was determined.
pub fn outcome(clock: Clock, attack: &AttackResult) -> String {
    let mut text = match (attack.identical, attack.harm.is_empty()) {
        (true, true) => "nothing changed".to_owned(),
        (_, false) => attack.harm.join("; "),
        (false, true) => slowdown(attack),
    };
    if let Some(first) = &attack.first {
        text += &format!("; first difference: {}", parted(clock, first));
    }
    match attack.refused {
        0 => text,
        count => text + &format!("; {} accesses refused", grouped(count)),
    }
}

/// The whole result.
pub fn summary(result: &AuditResult) -> String {
    let variant = result.variant.as_ref();
    let variant = variant.map_or(String::new(), |name| format!(", variant {name}"));
    let window = result.window as f64 * 1e6 / result.ticks_per_second.max(1) as f64;
    let mut out = format!(
        "{}{variant} on {}{}: each domain beside adversaries in the places of all others{}, compared over {} of simulated time\n",
        result.system,
        result.platform,
        peers(result),
        if result.chips.is_empty() {
            ""
        } else {
            " on both chips"
        },
        span(window)
    );
    out.push_str(&result.verdict().head(&result.happened()));
    for domain in &result.domains {
        out.push('\n');
        one(&mut out, result.clock(domain), domain);
    }
    out
}

/// The chip that a domain is on, if there are two.
pub fn chip(domain: &DomainResult) -> String {
    let chip = domain.chip.as_ref();
    chip.map_or(String::new(), |chip| format!(", chip {chip}"))
}

/// The other chips and their platforms.
pub fn peers(result: &AuditResult) -> String {
    let others = result.chips.iter().skip(1);
    let others = others.map(|chip| format!(" and {} on {}", chip.name, chip.platform));
    others.collect()
}

fn one(out: &mut String, clock: Clock, domain: &DomainResult) {
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    let owed = match (domain.ruling.judgement(), domain.owed) {
        (Judgement::Failed, _) => " - FAILED",
        (Judgement::Held, false) => " (a more critical domain exists, so only isolation is owed)",
        (Judgement::Held, true) | (Judgement::NotJudged, _) => "",
    };
    line(format!(
        "domain {} (criticality {}{}): {}{owed}",
        domain.name,
        domain.criticality,
        chip(domain),
        domain.ruling.verdict().text()
    ));
    let felt = domain
        .attacks
        .iter()
        .filter(|attack| !attack.identical)
        .count();
    if let Some(why) = domain.ruling.because() {
        line(format!("  {why}"));
    }
    if !domain.attackers.is_empty() {
        line(format!(
            "  {} attacks by {}; {felt} of them changed the timeline",
            domain.attacks.len(),
            domain.attackers.join(", ")
        ));
    }
    if domain.attacks.iter().any(|attack| attack.first.is_some()) {
        for attack in &domain.attacks {
            line(format!("  {}: {}", attack.name, outcome(clock, attack)));
        }
    }
    if let Some(worst) = domain.worst.and_then(|at| domain.attacks.get(at)) {
        line(format!("  worst: {}: {}", worst.name, slowdown(worst)));
        line(format!("  that is: {}", told(clock, domain, worst)));
    }
    if let Some(first) = &domain.difference {
        line(format!("  first difference: {}", difference(clock, first)));
    }
    if let Some(other) = accounted(domain) {
        line(format!("  worst of those that it waited for: {other}"));
    }
    for entry in domain.account.iter().take(3) {
        line(format!(
            "  {} waited {} for {} at {}",
            entry.victim,
            both(clock, entry.ticks),
            entry.culprit,
            entry.resource
        ));
    }
    for flow in &domain.flows {
        line(format!(
            "  flow {}: alone {}, attacked {}, bound {}",
            flow.name,
            both(clock, flow.alone),
            both(clock, flow.attacked),
            flow.bound
                .as_ref()
                .map_or("none".to_owned(), |b| both(clock, b.ticks))
        ));
        if let Some(bound) = &flow.bound {
            line(format!("    {}: {}", method(bound), bound.covers));
        }
    }
    let closest = domain
        .requests
        .iter()
        .filter_map(|r| Some((r, r.bound.as_ref()?.ticks)))
        .max_by_key(|(r, bound)| r.attacked * 1000 / bound.max(&1));
    if let Some((request, bound)) = closest {
        line(format!(
            "  closest to its bound: {} of {}, {} of {}",
            request.kind,
            request.application,
            both(clock, request.attacked),
            both(clock, bound)
        ));
    }
    const SHOWN: usize = 6;
    for reason in domain.reasons.iter().take(SHOWN) {
        line(format!("  because: {reason}"));
    }
    if domain.reasons.len() > SHOWN {
        line(format!(
            "  and {} more reasons in audit.html",
            domain.reasons.len() - SHOWN
        ));
    }
    for note in &domain.notes {
        line(format!("  note: {note}"));
    }
}
