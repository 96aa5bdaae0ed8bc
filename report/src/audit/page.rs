//! The check's result as a self-contained page.
//!
//! What it deliberately does not know: how the check was made; it reads only [`AuditResult`].

use super::result::{AuditResult, Clock, DomainResult};
use super::text::{
    MEASURED_AND_ANALYSED, accounted, both, chip, difference, factor, outcome, peers, slowdown,
    told,
};
use crate::book::{AUDIT, BOUNDS, Book, LEDGER};
use crate::format::{grouped, span};
use crate::page;
use crate::verdict::Judgement;
use maud::{Markup, html};

/// The page. `book`: where the book is.
pub fn page(result: &AuditResult, book: &Book) -> String {
    let window = result.window as f64 * 1e6 / result.ticks_per_second.max(1) as f64;
    let body = html! {
        h1 { (result.system) ": non-interference" }
        p.soft { "on " (result.platform) (peers(result)) @if let Some(name) = &result.variant { "; variant " (name) }
            "; " (span(window)) " of simulated time compared, seed " (result.seed) }
        (result.verdict().markup(&result.happened()))
        p { "Each domain runs once beside sleepers and then beside adversaries in the places of all other applications" @if !result.chips.is_empty() { ", on both chips" } ". They "
            "keep the tiles, memory, limits and gates of the applications that they replace, and attack from the moment at which everything "
            "runs. (Programs of the system or of the catalog that take part in an attack are held back until then; the run without attack begins with the same programs, but never lets them continue.) The timelines of the domain's tiles are compared: every packet that arrives, every event of the unit, every "
            "sleep and every marker, with its tick." }
        div.scroll { table {
            tr { th { "domain" } th.text { "verdict" } th { "attacks" } th { "felt" } th { "worst slowdown" } th.text { "owed" } }
            @for domain in &result.domains { (row(domain)) }
        } }
        p.soft { "Identical: no attack changed one tick. Bounded: changes were seen, and every kind of request and flow of the "
            "domain has a bound that holds for every attack and keeps its deadline. Unbounded: changes were seen, and something has no bound. Broken: "
            "an attack stopped an application, changed a result, or made a request exceed its bound. A search can find "
            "disturbance, but cannot prove that there is none; only a bound covers attacks that were not tried. " (book.more(AUDIT)) }
        @for domain in &result.domains { (section(result.clock(domain), domain, book)) }
        h2 { "Provenance" }
        p.soft { "Bulkhead " (result.provenance.version) ". The check is deterministic: the same inputs and seed give the same page." }
        @if !result.provenance.overrides.is_empty() { p { "Overrides: " @for o in &result.provenance.overrides { code { (o) } " " } } }
        div.scroll { table {
            tr { th.text { "input" } th.text { "SHA-256" } }
            @for input in &result.provenance.inputs { tr { td { (input.name) } td.text { code { (input.sha256) } } } }
        } }
    };
    page::page(
        &format!("{} - non-interference - Bulkhead", result.system),
        &body,
    )
}

fn worst(domain: &DomainResult) -> Option<&super::result::AttackResult> {
    domain.attacks.get(domain.worst?)
}

fn class(domain: &DomainResult) -> &'static str {
    match domain.ruling.judgement() {
        Judgement::NotJudged => "soft",
        Judgement::Failed => "bad",
        Judgement::Held => "good",
    }
}

fn row(domain: &DomainResult) -> Markup {
    let felt = domain
        .attacks
        .iter()
        .filter(|attack| !attack.identical)
        .count();
    html! {
        tr {
            td { (domain.name) " (" (domain.criticality) (chip(domain)) ")" }
            td.text { span class=(class(domain)) { (domain.ruling.verdict().text()) } }
            td { (domain.attacks.len()) }
            td { (felt) }
            td { @match worst(domain) { Some(attack) => { (factor(attack.slowdown)) }, None => { "1.000" } } }
            td.text { @if domain.owed { "protection from everybody" } @else { "that nothing breaks" } }
        }
    }
}

fn section(clock: Clock, domain: &DomainResult, book: &Book) -> Markup {
    html! {
        h2 { "Domain " (domain.name) @if let Some(name) = &domain.chip { ", chip " (name) } ": " (domain.ruling.verdict().text()) }
        @if let Some(why) = domain.ruling.because() { p { "Not judged: " (why) "." } }
        p { "Applications: " (domain.applications.join(", ")) "."
            @if !domain.attackers.is_empty() { " Adversaries take the places of " (domain.attackers.join(", "))
                ", from " (both(clock, domain.start)) " after reset on." } }
        @if !domain.reasons.is_empty() { ul { @for reason in &domain.reasons { li { (reason) } } } }
        @if !domain.notes.is_empty() { ul.soft { @for note in &domain.notes { li { (note) } } } }
        @if let Some(attack) = worst(domain) {
            h3 { "Worst attack: " (attack.name) }
            p { (told(clock, domain, attack)) "; " (slowdown(attack)) "." }
            ul { @for plan in &attack.plans { li { (plan) } } }
            @if let Some(first) = &domain.difference { p { "First difference: " (difference(clock, first)) "." } }
            @if !domain.account.is_empty() {
                p { "The ledger's account of " @match accounted(domain) { Some(other) => { "the worst attack that it waited for, " (other) }, None => { "this attack" } }
                    ". Without an attack, the domain waited "
                    (both(clock, domain.waits_alone)) " for itself and for refreshes. " (book.more(LEDGER)) }
                div.scroll { table {
                    tr { th { "victim" } th.text { "waited for" } th.text { "at" } th { "cycles" } }
                    @for entry in &domain.account {
                        tr { td { (entry.victim) } td.text { (entry.culprit) } td.text { (entry.resource) }
                            td { (grouped(entry.ticks.div_ceil(clock.cycle_ticks.max(1)))) } }
                    }
                } }
            }
        }
        @if !domain.flows.is_empty() { (flows(clock, domain, book)) }
        @if !domain.requests.is_empty() { (requests(clock, domain, book)) }
        details { summary { "Every attack" } (attacks(clock, domain)) }
    }
}

fn flows(clock: Clock, domain: &DomainResult, book: &Book) -> Markup {
    html! {
        h3 { "Flows" }
        p.soft { (book.more(BOUNDS)) }
        div.scroll { table {
            tr { th { "flow" } th { "worst alone" } th { "worst attacked" } th { "bound: " (MEASURED_AND_ANALYSED) } th { "deadline" } }
            @for flow in &domain.flows {
                tr { td { (flow.name) } td { (both(clock, flow.alone)) } td { (both(clock, flow.attacked)) }
                    td { @match &flow.bound { Some(bound) => { (both(clock, bound.ticks)) }, None => { "none" } } }
                    td { @match flow.deadline { Some(deadline) => { (both(clock, deadline)) }, None => { "none" } } } }
            }
        } }
        @for flow in &domain.flows {
            @if let Some(bound) = &flow.bound { p.soft { "Bound of " (flow.name) ": " (bound.covers) "." } }
        }
    }
}

fn requests(clock: Clock, domain: &DomainResult, book: &Book) -> Markup {
    let cycles = |ticks: u64| grouped(ticks.div_ceil(clock.cycle_ticks.max(1)));
    html! {
        h3 { "Worst requests, in cycles" }
        p.soft { (book.more(BOUNDS)) }
        div.scroll { table {
            tr { th { "application" } th.text { "request" } th { "alone" } th { "attacked" } th { "bound" } }
            @for request in &domain.requests {
                tr { td { (request.application) } td.text { (request.kind) } td { (cycles(request.alone)) } td { (cycles(request.attacked)) }
                    td { @match &request.bound { Some(bound) => { (cycles(bound.ticks)) }, None => { "none" } } } }
            }
        } }
    }
}

fn attacks(clock: Clock, domain: &DomainResult) -> Markup {
    let cycles = |ticks: u64| grouped(ticks.div_ceil(clock.cycle_ticks.max(1)));
    html! {
        div.scroll { table {
            tr { th { "attack" } th.text { "timeline" } th { "slowdown" } th.text { "of" } th { "cycles" } th { "without" } th { "cycles waited for attackers" } th.text { "adversaries' plans" } }
            @for attack in &domain.attacks {
                tr {
                    td { (attack.name) @if attack.first.is_some() || attack.refused > 0 { p.soft { (outcome(clock, attack)) } } }
                    td.text { @if attack.identical { "identical" } @else { "changed" } }
                    td { (factor(attack.slowdown)) }
                    td.text { (attack.of) }
                    @match attack.took {
                        Some([alone, attacked]) => { td { (cycles(attacked)) } td { (cycles(alone)) } },
                        None => { td {} td {} },
                    }
                    td { (cycles(attack.waited)) }
                    td.text { @for (text, plan) in attack.arguments.iter().zip(&attack.plans) {
                        @if text.is_empty() { (plan) " " } @else { code { (text) } " " }
                    } }
                }
            }
        } }
    }
}
