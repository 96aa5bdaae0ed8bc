//! Writes lines back on the kernel's request: a range of memory leaves the tile's caches and returns to memory.
//!
//! Why it exists: when memory changes its owner, caches may still hold its lines, and a captured tile does not flush them itself. The
//! kernel names a bounded number of lines, and a register says when memory has them. It does not know why, and it does not keep the tile
//! from reading the lines again: the kernel must first close the window or stop the hart.

use super::Dtu;
use super::env::{DtuEvent, Env, Later, LocalTiming};
use crate::local_token::LocalToken;
use crate::types::Owner;
use bulkhead_abi::dtu::WRITE_BACK_LINES;

/// The kernel's write-back command.
#[derive(Clone, Debug)]
pub(super) struct WriteBack {
    /// Its asker.
    owner: Owner,
    /// The next line, and the number of lines left, including it.
    next: u64,
    left: u16,
    /// Outstanding lines: token, address, and whether they must be asked for again.
    under_way: Vec<(LocalToken, u64, bool)>,
    /// Lines to be asked for again now.
    again: Vec<u64>,
}

impl Dtu {
    /// The kernel wants this many lines written back, starting at an address. False: refused.
    pub(super) fn begin_write_back<E: Env>(
        &mut self,
        env: &mut E,
        owner: Owner,
        (address, lines): (u64, u16),
    ) -> bool {
        let length = env.line();
        let first = address - address % length;
        let end = first.checked_add(length * u64::from(lines));
        if self.write_back.is_some() || lines > WRITE_BACK_LINES || end.is_none() {
            return false;
        }
        self.write_back = Some(WriteBack {
            owner,
            next: first,
            left: lines,
            under_way: Vec::new(),
            again: Vec::new(),
        });
        self.advance_write_back(env);
        true
    }

    /// Asks for as many lines as the port accepts. The command ends when all are done.
    fn advance_write_back<E: Env>(&mut self, env: &mut E) {
        while let Some(work) = &mut self.write_back {
            if work.under_way.len() >= self.config.parallel.max(1) as usize {
                return;
            }
            let line = work.again.pop().or_else(|| {
                work.left = work.left.checked_sub(1)?;
                let line = work.next;
                work.next += env.line();
                Some(line)
            });
            let Some(line) = line else {
                if work.under_way.is_empty() {
                    self.write_back = None;
                }
                return;
            };
            let token = self.local.token();
            match env.local_write_back(line, work.owner, token) {
                Ok(LocalTiming::Ready(at)) if at <= env.now() => {}
                Ok(LocalTiming::Ready(at)) => {
                    work.under_way.push((token, line, false));
                    env.schedule(at, DtuEvent::Local(token));
                }
                Ok(LocalTiming::Pending) => work.under_way.push((token, line, false)),
                Err(Later) => work.under_way.push((token, line, true)),
            }
        }
    }

    /// The access with this token is over. Returns whether it was a line being written back.
    pub(super) fn line_written<E: Env>(&mut self, env: &mut E, token: LocalToken) -> bool {
        let Some(work) = &mut self.write_back else {
            return false;
        };
        let Some(position) = work.under_way.iter().position(|line| line.0 == token) else {
            return false;
        };
        let (_, line, again) = work.under_way.swap_remove(position);
        work.again.extend(again.then_some(line));
        self.advance_write_back(env);
        true
    }
}
