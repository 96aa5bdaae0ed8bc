//! Tests: a result with every possible field, against the published schema.
//!
//! A schema names every field and allows no others. So that a new field fails here until its schema has it, results are made with
//! every field filled; fill a new optional field here.

use crate::crash::Crash;
use crate::result::*;
use crate::verdict::Promise;
use serde::Serialize;
use serde_json::Value;

/// Fails unless a result fits a schema and the schema refuses an additional field.
#[track_caller]
pub fn fits(schema: &str, result: &impl Serialize) -> (jsonschema::Validator, Value) {
    let schema = serde_json::from_str(schema).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is one");
    let schema = jsonschema::validator_for(&schema).expect("the schema is one");
    let value = serde_json::to_value(result).expect("serialises");
    let wrong: Vec<String> = schema
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut more = value.clone();
    more["surprise"] = 1.into();
    assert!(!schema.is_valid(&more));
    (schema, value)
}

#[test]
fn a_run_with_everything_fits_its_schema() {
    let text = || Some("why".to_owned());
    let mut full = crate::sample::two_chips();
    full.added.push(AddedRun {
        flow: "loop".to_owned(),
        about: "alone".to_owned(),
        worst: Some(3),
        digest: "d".to_owned(),
    });
    let mut unjudged = Promise::not_judged("alone", "bound", "why");
    unjudged.expected = true;
    full.verdict = [unjudged].into_iter().collect();
    let bound = || {
        Some(Bound {
            ticks: 1,
            method: "m".to_owned(),
            covers: "c".to_owned(),
        })
    };
    let ends = [
        End::Duration,
        End::Exit { code: 1 },
        End::Idle,
        End::Limit,
        End::Trap {
            what: "ebreak".to_owned(),
        },
    ];
    let blank = full.variants[0].clone();
    full.variants.resize(ends.len(), blank);
    for (variant, end) in full.variants.iter_mut().zip(ends) {
        variant.end = end;
        variant.flows[0].bound = bound();
        variant.flows[0].unbounded = text();
        let request = &mut variant.requests[0];
        (request.bound, request.lumped) = (bound(), bound());
        (request.tokens, request.unbounded) = (Some(1), text());
        variant.spans.push(SpanResult {
            application: "a".to_owned(),
            latency: variant.flows[0].latency,
            samples: variant.flows[0].samples.clone(),
        });
        variant.quotas.push(QuotaUse {
            of: "a".to_owned(),
            quota: "slots".to_owned(),
            tile: Some(2),
            used: 1,
            limit: 2,
        });
        let off = |error| ClockError {
            error,
            bound: 2 * error,
        };
        variant.clocks.push(ClockResult {
            core: 1,
            master: 0,
            correction: -5,
            synchronised: off(1),
            end: off(2),
        });
        variant.checks.push(Check {
            application: "a".to_owned(),
            value: u64::MAX,
        });
        variant.incidents.push(Incident {
            kind: IncidentKind::Crash,
            at: Some(1),
            tile: 2,
            application: "a".to_owned(),
            what: "w".to_owned(),
            crash: Some(Crash {
                cause: "c".to_owned(),
                pc: 1,
                address: Some(u64::MAX),
                registers: vec![0; 32],
                backtrace: vec!["main".to_owned()],
                truncated: false,
            }),
        });
    }
    let schema = include_str!("../../docs/schemas/run.json");
    fits(schema, &full);
    fits(schema, &crate::sample::sample());
}
