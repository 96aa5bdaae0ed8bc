//! The kernel's requests to a streaming unit.
//!
//! Why it exists: the unit answers them as TileMux does, so the kernel needs to know nothing new. What it deliberately does
//! not know: what clients ask for.

use super::context::{Context, Mapping};
use super::{Accelerator, Later, Ports};
use crate::types::Tick;
use bulkhead_abi::accelerator::Request;
use bulkhead_abi::tilemux::{Request as R, TileMuxError};

/// Maximum number of clients.
const CONTEXTS: usize = 4;

impl Accelerator {
    /// Carries out what the kernel asks, as TileMux would.
    ///
    /// # Errors
    /// It must wait for memory, and has done nothing yet.
    pub(super) fn obey(
        &mut self,
        ports: &mut dyn Ports,
        request: R,
    ) -> Result<TileMuxError, Later> {
        if let R::Create { activity, .. } = request {
            if self.context(activity).is_some() {
                return Ok(TileMuxError::WrongState);
            }
            if self.contexts.len() == CONTEXTS {
                return Ok(TileMuxError::Full);
            }
            self.contexts.push(Context::new(activity));
            return Ok(TileMuxError::None);
        }
        let (R::Map { activity, .. }
        | R::SetBucket { activity, .. }
        | R::Start { activity, .. }
        | R::Wake { activity }
        | R::Stop { activity, .. }) = request
        else {
            // Budgets and everything else that concerns harts do not exist here.
            return Ok(TileMuxError::None);
        };
        let (operation, row) = (self.config.operation, self.config.row);
        let Some(context) = self.context(activity) else {
            return Ok(TileMuxError::NoActivity);
        };
        match request {
            R::Map {
                address,
                physical,
                pages,
                ..
            } => context.mappings.push(Mapping {
                address,
                physical,
                pages,
            }),
            R::SetBucket { bucket, .. } => context.bucket = bucket,
            R::Wake { .. } => context.woken = true,
            R::Start { .. } => {
                if context.gates.is_some() {
                    return Ok(TileMuxError::WrongState);
                }
                let Some((gates, paths)) = context.gates_of(ports)? else {
                    return Ok(TileMuxError::WrongState);
                };
                (context.gates, context.paths) = (Some(gates), paths);
                if gates.requests.is_none() {
                    let all = Request::until_end(gates.width);
                    context.take(operation, row, Some(all), None);
                }
                self.insert_pages(ports, activity);
            }
            _ => self.remove(ports.now(), activity)?,
        }
        Ok(TileMuxError::None)
    }

    /// Removes a client and everything that the unit held for it. A piece of it leaves the data path, so that nothing of its memory is read after this, and
    /// nobody who gets its number gets its data.
    ///
    /// # Errors
    /// The piece has gone through, and its bytes are being read.
    pub(super) fn remove(&mut self, now: Tick, activity: u16) -> Result<(), Later> {
        if let Some(run) = self.path.filter(|run| run.activity == activity) {
            if run.until <= now {
                return Err(Later);
            }
            self.path = None;
        }
        self.contexts.retain(|c| c.activity != activity);
        if self.loaded == Some(activity) {
            self.loaded = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::{Gates, Inbox, Input, Output};
    use super::super::control::Run;
    use super::super::job::Piece;
    use super::super::{AcceleratorConfig, Operation, Side};
    use super::*;

    /// Nothing but the moment: a use of registers or memory fails the test.
    struct At(Tick);

    impl Ports for At {
        fn now(&self) -> Tick {
            self.0
        }
        fn read(&mut self, offset: u64) -> u64 {
            panic!("it reads register {offset:#x}")
        }
        fn write(&mut self, offset: u64, value: u64) {
            panic!("it writes {value} to register {offset:#x}")
        }
        fn load(&mut self, _: Side, physical: u64, _: &mut [u8]) -> Result<bool, Later> {
            panic!("it reads {physical:#x}")
        }
        fn store(&mut self, _: Side, physical: u64, _: &[u8]) -> Result<bool, Later> {
            panic!("it writes {physical:#x}")
        }
        fn used(&mut self, _: Side) {}
    }

    const CREATE: R = R::Create {
        activity: 7,
        table_pages: 0,
    };
    const STOP: R = R::Stop { activity: 7 };

    /// A unit whose data path is done with a piece of activity 7 at tick 100.
    fn unit() -> Accelerator {
        let config = AcceleratorConfig {
            operation: Operation::Copy,
            cycle: 1,
            nanosecond: 1,
            bytes_per_cycle: 1,
            startup: 0,
            switch: 0,
            row: 64,
        };
        let mut unit = Accelerator::new(&config, 1);
        assert_eq!(unit.obey(&mut At(0), CREATE), Ok(TileMuxError::None));
        let piece = Piece {
            at: 0x1000,
            bytes: 64,
            message: None,
        };
        (unit.path, unit.loaded) = (
            Some(Run {
                activity: 7,
                piece,
                until: 100,
            }),
            Some(7),
        );
        unit
    }

    /// Otherwise its memory would be read when somebody else may have it, and the next client of this number would get the bytes.
    #[test]
    fn a_stopped_client_leaves_no_piece_in_the_data_path() {
        let mut unit = unit();
        assert_eq!(unit.obey(&mut At(50), STOP), Ok(TileMuxError::None));
        assert!(unit.path.is_none() && unit.loaded.is_none());
        assert_eq!(unit.obey(&mut At(50), CREATE), Ok(TileMuxError::None));
        assert_eq!(unit.obey(&mut At(50), STOP), Ok(TileMuxError::None));
    }

    /// The kernel has its answer when nothing of the client's memory is read any more.
    #[test]
    fn a_client_stops_when_its_piece_has_been_read() {
        let mut unit = unit();
        assert_eq!(unit.obey(&mut At(100), STOP), Err(Later));
        assert!(unit.path.is_some() && unit.context(7).is_some());
        unit.path = None;
        assert_eq!(unit.obey(&mut At(120), STOP), Ok(TileMuxError::None));
        assert_eq!(unit.obey(&mut At(120), STOP), Ok(TileMuxError::NoActivity));
    }

    /// Two clients of a number would be one that nobody can stop, and a second start would forget a job whose pieces are under way.
    #[test]
    fn a_number_has_one_client_that_starts_once() {
        let mut unit = unit();
        assert_eq!(unit.obey(&mut At(0), CREATE), Ok(TileMuxError::WrongState));
        let start = R::Start {
            activity: 7,
            entry: 0,
            stack: 0,
        };
        // It has no environment yet.
        assert_eq!(unit.obey(&mut At(0), start), Ok(TileMuxError::WrongState));
        let inbox = Inbox {
            endpoint: 1,
            buffer: 0,
            fresh: false,
        };
        let gates = Gates {
            requests: Some(inbox),
            answers: None,
            kernel: (0, inbox),
            files: None,
            input: Input::File,
            output: Output::Nothing,
            regions: (None, None),
            next: None,
            width: 1,
            pages: Default::default(),
        };
        let environment = Mapping {
            address: bulkhead_abi::environment::ENVIRONMENT_BASE,
            physical: 0,
            pages: 1,
        };
        let client = unit.context(7).expect("it is there");
        client.gates = Some(gates);
        client.mappings.push(environment);
        assert_eq!(unit.obey(&mut At(0), start), Ok(TileMuxError::WrongState));
    }
}
