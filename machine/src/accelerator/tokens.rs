//! When a client's token bucket admits its next command.
//!
//! Why it exists: the registers of the data transfer unit carry one command at a time. A command that waited there for tokens would
//! make the unit's other clients wait for a bucket that is not theirs. So a client's command begins only when its bucket has all the
//! tokens it needs, and is limited to what the bucket can hold. What it deliberately does not know: whose turn it is.

use super::context::{Context, Output};
use super::job::Step;
use super::{AcceleratorConfig, Ports};
use crate::types::Tick;
use bulkhead_abi::accelerator::{ANSWER_WORDS, REQUEST_WORDS};
use bulkhead_abi::dtu::{BUCKET_AMOUNT, BUCKET_LIMIT, BUCKET_RATE, BUCKET_STRIDE, BUCKETS};
use bulkhead_abi::file::PATH;
use bulkhead_abi::message::HEADER_SIZE;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

impl Step {
    /// Bytes that it takes from the bucket.
    fn cost(&self) -> u64 {
        let message = |bytes: u64| HEADER_SIZE as u64 + bytes;
        match *self {
            Step::Read(_, _, bytes, _) | Step::Write(_, _, bytes) | Step::Store(_, _, bytes) => {
                bytes
            }
            Step::Put(_, bytes) => message(bytes),
            Step::Place(..) => message(16),
            Step::Use(..) | Step::End(_) => message(1),
            Step::Forward(..) => message(8 * REQUEST_WORDS as u64),
            Step::Answer(..) => message(8 * ANSWER_WORDS as u64),
            // The longest call names a file.
            Step::Call(_) => message(16 + PATH as u64),
            // Nothing leaves the tile, or it leaves on behalf of the unit itself.
            Step::FetchRequest(_)
            | Step::FetchKernel(_)
            | Step::FetchAnswer(_)
            | Step::FetchPipe(_)
            | Step::Probe(_)
            | Step::Exit(_) => 0,
        }
    }

    /// The same with at most this many bytes, if it can be split.
    fn at_most(self, limit: u64, context: &Context) -> Self {
        let Some(gates) = context.gates else {
            return self;
        };
        let cut = |bytes: u64, limit: u64| if limit > 0 { bytes.min(limit) } else { bytes };
        match self {
            Step::Read(endpoint, offset, bytes, page) => {
                Step::Read(endpoint, offset, cut(bytes, limit), page)
            }
            // The next unit takes whole rows.
            Step::Write(endpoint, offset, bytes) if gates.next.is_some() => {
                let width = context
                    .job
                    .as_ref()
                    .map_or(1, |job| job.request.width.max(1));
                let rows = match gates.output {
                    Output::Memory(_) => limit / width * width,
                    _ => limit,
                };
                Step::Write(endpoint, offset, cut(bytes, rows))
            }
            Step::Write(endpoint, offset, bytes) => {
                Step::Write(endpoint, offset, cut(bytes, limit))
            }
            Step::Store(endpoint, offset, bytes) => {
                Step::Store(endpoint, offset, cut(bytes, limit))
            }
            Step::Put(endpoint, bytes) => {
                let limit = limit.saturating_sub(HEADER_SIZE as u64);
                Step::Put(endpoint, cut(bytes, limit))
            }
            other => other,
        }
    }
}

impl AcceleratorConfig {
    /// The step as the client's bucket admits it now, or else when to check again.
    pub(super) fn affords(
        &self,
        ports: &mut dyn Ports,
        context: &Context,
        step: Step,
    ) -> Result<Step, Tick> {
        let bucket = BUCKETS + u64::from(context.bucket) * BUCKET_STRIDE;
        let rate = ports.read(bucket + BUCKET_RATE);
        if rate == 0 {
            return Ok(step);
        }
        let limit = ports.read(bucket + BUCKET_LIMIT);
        let step = step.at_most(limit, context);
        let needed = step.cost().min(limit);
        let lacking = needed.saturating_sub(ports.read(bucket + BUCKET_AMOUNT));
        if lacking == 0 {
            return Ok(step);
        }
        let ticks = u128::from(lacking) * u128::from(self.nanosecond.max(1)) * u128::from(SECOND);
        let ticks = u64::try_from(ticks.div_ceil(rate.into())).unwrap_or(Tick::MAX);
        Err(ports.now().saturating_add(ticks.max(self.cycle)))
    }
}
