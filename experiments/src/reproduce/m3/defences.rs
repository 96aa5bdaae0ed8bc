//! Attacks and per-activity regulation, as text and as parts of the page.
//!
//! What it deliberately does not know: how they were measured.

use super::Reproduced;
use super::attacks::Attack;
use super::beside::{Beside, reasons};
use super::regulation::Regulation;
use bulkhead_report::page::picture;
use bulkhead_report::plot::{Bar, bars};
use bulkhead_report::table::{plain, render};
use bulkhead_runner::error::Error;
use maud::{Markup, html};
use std::fmt::Write;

/// Attacks by kind, in the order in which they were run.
fn kinds(all: &[Attack]) -> Vec<Vec<&Attack>> {
    let mut groups: Vec<Vec<&Attack>> = Vec::new();
    for one in all {
        match groups.last_mut() {
            Some(group) if group[0].kind == one.kind => group.push(one),
            _ => groups.push(vec![one]),
        }
    }
    groups
}

fn time(microseconds: Option<f64>) -> String {
    microseconds.map_or("-".to_owned(), |time| format!("{time:.2}"))
}

fn kibibytes(bytes: f64) -> String {
    format!("{:.0}", bytes / 1024.0)
}

fn limit(limit: Option<u64>) -> String {
    limit.map_or("none".to_owned(), |rate| format!("{} MiB/s", rate >> 20))
}

/// The missing bounds and their reasons, to go below a table.
pub fn footnote<'a>(bounds: impl IntoIterator<Item = &'a Beside>) -> Option<String> {
    let reasons = reasons(bounds);
    (!reasons.is_empty()).then(|| format!("No bound: {}.", reasons.join("; ")))
}

/// For the terminal.
pub fn summary(all: &Reproduced) -> String {
    let mut out = String::new();
    for group in kinds(&all.attacks) {
        let mut table = plain(&[
            "name",
            "served",
            "refused",
            "unanswered",
            "median",
            "worst",
            "bound",
        ]);
        for one in &group {
            table.add_row(vec![
                one.variant.clone(),
                one.served.to_string(),
                one.refused.to_string(),
                one.unanswered.to_string(),
                time(one.median),
                time(one.worst),
                one.bound.text(2),
            ]);
        }
        let _ = writeln!(
            out,
            "Attack: {}; latencies in us\n{}",
            group[0].title,
            render(&table)
        );
        if let Some(note) = footnote(group.iter().map(|one| &one.bound)) {
            let _ = writeln!(out, "{note}\n");
        }
    }
    if !all.regulation.is_empty() {
        let mut table = plain(&["name", "task", "bound", "victim", "bound"]);
        for one in &all.regulation {
            table.add_row(vec![
                one.variant.clone(),
                format!("{:.2}", one.task),
                one.task_bound.text(2),
                format!("{:.2}", one.victim),
                one.victim_bound.text(2),
            ]);
        }
        let _ = writeln!(
            out,
            "Regulation by the activity: worst response of a task on the hogs' tile and worst run of a victim on another, in us\n{}",
            render(&table)
        );
        let mut table = plain(&["name", "variant", "tile", "limit", "moved", "bound"]);
        for (variant, hog) in all
            .regulation
            .iter()
            .flat_map(|one| one.hogs.iter().map(move |hog| (&one.variant, hog)))
        {
            table.add_row(vec![
                hog.name.clone(),
                variant.clone(),
                hog.tile.to_string(),
                limit(hog.limit),
                kibibytes(hog.bytes as f64),
                hog.bound.most().map_or("none".to_owned(), kibibytes),
            ]);
        }
        let _ = writeln!(
            out,
            "What each hog moved in the whole run, in KiB\n{}",
            render(&table)
        );
    }
    out
}

/// For the page.
pub fn sections(all: &Reproduced) -> Result<Vec<Markup>, Error> {
    let mut sections = Vec::new();
    for group in kinds(&all.attacks) {
        sections.push(attack(&group)?);
    }
    if !all.regulation.is_empty() {
        sections.push(regulation(&all.regulation)?);
    }
    Ok(sections)
}

fn attack(group: &[&Attack]) -> Result<Markup, Error> {
    let parts = ["worst latency".to_owned(), "bound".to_owned()];
    let rows: Vec<Bar> = group
        .iter()
        .map(|one| Bar {
            name: one.variant.clone(),
            parts: vec![
                one.worst.unwrap_or(f64::NAN),
                one.bound.most().unwrap_or(f64::NAN),
            ],
        })
        .collect();
    let svg = bars(
        "microseconds; no bar: nothing served, or no bound",
        &parts,
        &rows,
        false,
    )?;
    Ok(html! {
        h2 { "Attack: " (group[0].title) }
        div.scroll { table {
            tr { th.text { "variant" } th { "served" } th { "refused" } th { "not answered" } th { "median" } th { "worst" } th { "bound" } th.text { "" } }
            @for one in group {
                tr { td.text { (one.variant) } td { (one.served) } td { (one.refused) } td { (one.unanswered) } td { (time(one.median)) } td { (time(one.worst)) } td { (one.bound.text(2)) } td.text.soft { (one.about) } }
            }
        } }
        p.soft { "Latencies of the victim in microseconds. " (footnote(group.iter().map(|one| &one.bound)).unwrap_or_default()) }
        (picture(svg))
    })
}

fn regulation(all: &[Regulation]) -> Result<Markup, Error> {
    let parts = [
        "task on the hogs' tile, worst response".to_owned(),
        "victim on another tile, worst run".to_owned(),
    ];
    let rows: Vec<Bar> = all
        .iter()
        .map(|one| Bar {
            name: one.variant.clone(),
            parts: vec![one.task, one.victim],
        })
        .collect();
    let svg = bars("microseconds", &parts, &rows, false)?;
    let bounds = all
        .iter()
        .flat_map(|one| [&one.task_bound, &one.victim_bound]);
    Ok(html! {
        h2 { "Regulation by the activity, several activities on a tile" }
        div.scroll { table {
            tr { th.text { "variant" } th { "task" } th { "bound" } th { "victim" } th { "bound" } th.text { "" } }
            @for one in all {
                tr { td.text { (one.variant) } td { (format!("{:.2}", one.task)) } td { (one.task_bound.text(2)) } td { (format!("{:.2}", one.victim)) } td { (one.victim_bound.text(2)) } td.text.soft { (one.about) } }
            }
        } }
        p.soft { "Worst response of the task and worst run of the victim in microseconds. " (footnote(bounds).unwrap_or_default()) }
        (picture(svg))
        div.scroll { table {
            tr { th.text { "hog" } th.text { "variant" } th { "tile" } th { "limit" } th { "moved" } th { "bound" } }
            @for one in all { @for hog in &one.hogs {
                tr { td.text { (hog.name) } td.text { (one.variant) } td { (hog.tile) } td { (limit(hog.limit)) } td { (kibibytes(hog.bytes as f64)) } td { (hog.bound.most().map_or("none".to_owned(), kibibytes)) } }
            } }
        } }
        p.soft { "What each hog moved in the whole run, and what its bucket lets through in that time, in KiB." }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::m3::attacks::Expected;
    use crate::reproduce::m3::regulation::Hog;
    use crate::reproduce::m3::{attacks, more, regulation};

    fn attack(
        variant: &str,
        served: u64,
        worst: Option<f64>,
        bound: Beside,
        expected: Expected,
    ) -> Attack {
        Attack {
            kind: "buffers".to_owned(),
            title: "exhaustion of a receive buffer".to_owned(),
            variant: variant.to_owned(),
            about: String::new(),
            served,
            refused: 60 - served,
            unanswered: 0,
            finished: true,
            median: worst,
            worst,
            bound,
            expected,
        }
    }

    fn sample() -> Reproduced {
        let none = Beside::None("the buffer may be full".to_owned());
        let attacks = vec![
            attack(
                "alone",
                60,
                Some(20.45),
                Beside::AtMost(25.5),
                Expected::Baseline,
            ),
            attack("off", 0, None, none, Expected::Lost),
            attack(
                "credits",
                60,
                Some(81.75),
                Beside::AtMost(100.25),
                Expected::Kept(4.5),
            ),
            attack(
                "priorities",
                59,
                Some(61.0),
                Beside::AtMost(50.0),
                Expected::Kept(2.25),
            ),
        ];
        let hog = Hog {
            name: "hog-1".to_owned(),
            tile: 2,
            limit: Some(8 << 20),
            bytes: 300_000,
            bound: Beside::AtMost(310_000.0),
        };
        let regulation = vec![Regulation {
            variant: "hogs".to_owned(),
            about: "every hog has a bucket".to_owned(),
            task: 85.5,
            task_bound: Beside::AtMost(700.0),
            victim: 167.5,
            victim_bound: Beside::AtMost(9000.0),
            hogs: vec![hog],
        }];
        let mut claims = attacks::claims(&attacks);
        claims.extend(regulation::claims(&regulation));
        Reproduced {
            attacks,
            regulation,
            claims,
            ..more::empty()
        }
    }

    #[test]
    fn the_text_says_what_was_measured() {
        insta::assert_snapshot!(summary(&sample()));
    }

    /// A request that still waits at the end of the run is neither refused nor without an answer, but it is not served.
    #[test]
    fn requests_that_are_not_made_count_as_lost() {
        let late = Attack {
            refused: 0,
            finished: false,
            ..attack(
                "credits",
                41,
                Some(40.0),
                Beside::AtMost(100.25),
                Expected::Kept(4.5),
            )
        };
        let alone = attack(
            "alone",
            60,
            Some(20.0),
            Beside::AtMost(25.5),
            Expected::Baseline,
        );
        let off = Attack {
            worst: Some(1081.36),
            expected: Expected::Harm(10.0),
            bound: Beside::None("the buffer may be full".to_owned()),
            ..late.clone()
        };
        let held: Vec<bool> = attacks::claims(&[alone, late, off])
            .iter()
            .map(|claim| claim.held)
            .collect();
        // The bound of `alone`; `late` serves less than alone, within its bound; the attack harms.
        assert_eq!(held, [true, false, true, true]);
    }

    #[test]
    fn claims_are_judged() {
        let sample = sample();
        let failed: Vec<&str> = sample
            .claims
            .iter()
            .filter(|c| !c.held)
            .map(|c| c.what.as_str())
            .collect();
        assert_eq!(
            failed,
            [
                "exhaustion of a receive buffer, priorities: 59 served, 1 refused, 0 not answered, 2.983 times the worst alone; with the defence at most 2.25 times, and all 60 are served",
                "exhaustion of a receive buffer, priorities: worst 61.00 us above the bound of 50.00 us",
            ]
        );
        assert_eq!(sections(&sample).expect("draws").len(), 2);
    }
}
