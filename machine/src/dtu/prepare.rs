//! Conditions that a command must satisfy before any of its data moves.
//!
//! Why it exists: every check of a command's rights is here, in the order in which errors are reported. The checks change nothing but the
//! credit of a send.

use super::Dtu;
use super::env::TileKind;
use super::transfer::{Origin, Stage, Target, Transfer, split_memory, split_message};
use crate::noc::packet::Transaction;
use bulkhead_abi::dtu::{
    DtuError, Endpoint, MESSAGE_MAX, NO_ENDPOINT, Opcode, PAGE_SIZE, TILEMUX_ACTIVITY, TLB_READ,
    TLB_WRITE,
};
use bulkhead_abi::message::{FLAG_REPLY, HEADER_SIZE, Header};

impl Dtu {
    /// Tile-physical address of the running command's data.
    fn locate(&mut self, limit: u64, rights: u64) -> Result<u64, DtuError> {
        let Some(run) = &self.running else {
            return Err(DtuError::Aborted);
        };
        let (address, size, activity) = (run.address, run.size, run.owner.activity);
        if size == 0 || size > limit || address % PAGE_SIZE + size > PAGE_SIZE {
            return Err(DtuError::BadSize);
        }
        // TileMux, and the kernel on its tile, run without translation.
        let physical = if activity == TILEMUX_ACTIVITY {
            address
        } else {
            self.tlb
                .translate(activity, address, rights)
                .ok_or(DtuError::TranslationFault)?
        };
        self.check_local(physical, size, rights & TLB_WRITE != 0)
            .map_err(|_| DtuError::TargetRefused)?;
        Ok(physical)
    }

    pub(super) fn prepare_send(&mut self) -> Result<Transfer, DtuError> {
        let Some(run) = &self.running else {
            return Err(DtuError::Aborted);
        };
        let (size, label, activity) = (run.size, run.argument, run.owner.activity);
        let (endpoint, argument) = (run.command.endpoint(), run.command.argument());
        let Ok(reply_endpoint) = u16::try_from(argument) else {
            return Err(DtuError::InvalidEndpoint);
        };
        if reply_endpoint != NO_ENDPOINT {
            self.endpoints.check_receive(reply_endpoint, activity)?;
        }
        let Endpoint::Send(send) = self.endpoints.get(endpoint) else {
            return Err(DtuError::InvalidEndpoint);
        };
        if send.activity != activity {
            return Err(DtuError::ForeignEndpoint);
        }
        let physical = self.locate((MESSAGE_MAX - HEADER_SIZE) as u64, TLB_READ)?;
        if self.kind(send.target_tile) != TileKind::Processing {
            return Err(DtuError::TargetRefused);
        }
        let send = self.endpoints.take_credit(endpoint, activity, size)?;
        let header = Header {
            length: size as u16,
            sender_tile: self.tile,
            sender_endpoint: endpoint,
            reply_endpoint,
            sender_activity: activity,
            reply_label: label,
            label: send.label,
            shares: send.shares,
            ..Header::default()
        };
        Ok(Transfer {
            destination: send.target_tile,
            target: Target::Message {
                endpoint: send.target_endpoint,
                header,
                credit_endpoint: NO_ENDPOINT,
                epoch: self.endpoints.epoch(),
                origin: Origin::Send {
                    endpoint,
                    generation: self.endpoints.generation(endpoint),
                },
            },
            physical,
            chunks: split_message(size, self.config.block),
            asked: 0,
            stop: None,
        })
    }

    pub(super) fn prepare_reply(&mut self) -> Result<Transfer, DtuError> {
        let Some(run) = &self.running else {
            return Err(DtuError::Aborted);
        };
        let (size, activity, command) = (run.size, run.owner.activity, run.command);
        let right = self.endpoints.reply_right(
            command.endpoint(),
            activity,
            command.argument().into(),
            size,
        )?;
        let mut chunks = split_message(size, self.config.block);
        let physical = match chunks.as_mut_slice() {
            // It only asks whether the sender's endpoint is as it was. There is nothing to read.
            [question] if size == 0 => {
                (question.stage, question.data) = (Stage::Ready, Some(Box::default()));
                0
            }
            _ => self.locate((MESSAGE_MAX - HEADER_SIZE) as u64, TLB_READ)?,
        };
        if self.kind(right.send.target_tile) != TileKind::Processing {
            return Err(DtuError::TargetRefused);
        }
        let header = Header {
            flags: FLAG_REPLY,
            length: size as u16,
            sender_tile: self.tile,
            sender_endpoint: NO_ENDPOINT,
            reply_endpoint: NO_ENDPOINT,
            sender_activity: activity,
            label: right.send.label,
            ..Header::default()
        };
        Ok(Transfer {
            destination: right.send.target_tile,
            target: Target::Message {
                endpoint: right.send.target_endpoint,
                header,
                credit_endpoint: right.send.credit_endpoint,
                epoch: right.send.epoch,
                origin: Origin::Reply(right),
            },
            physical,
            chunks,
            asked: 0,
            stop: None,
        })
    }

    pub(super) fn prepare_memory(&mut self) -> Result<Transfer, DtuError> {
        let Some(run) = &self.running else {
            return Err(DtuError::Aborted);
        };
        let (size, offset, activity) = (run.size, run.argument, run.owner.activity);
        let (endpoint, read) = (run.command.endpoint(), run.opcode == Opcode::Read);
        let Endpoint::Memory(memory) = self.endpoints.get(endpoint) else {
            return Err(DtuError::InvalidEndpoint);
        };
        if memory.activity != activity {
            return Err(DtuError::ForeignEndpoint);
        }
        let (remote_right, local_right) = if read {
            (TLB_READ, TLB_WRITE)
        } else {
            (TLB_WRITE, TLB_READ)
        };
        if u64::from(memory.rights) & remote_right == 0 {
            return Err(DtuError::NoPermission);
        }
        let physical = self.locate(PAGE_SIZE, local_right)?;
        let end = offset.checked_add(size).ok_or(DtuError::OutOfBounds)?;
        let last = memory.base.checked_add(end).ok_or(DtuError::OutOfBounds)?;
        if end > memory.size {
            return Err(DtuError::OutOfBounds);
        }
        let transaction = match (self.kind(memory.target_tile), read) {
            (TileKind::Absent, _) => return Err(DtuError::TargetRefused),
            (TileKind::Processing, _) => Transaction::Register,
            (TileKind::Memory, true) => Transaction::DmaRead,
            (TileKind::Memory, false) => Transaction::DmaWrite,
        };
        Ok(Transfer {
            destination: memory.target_tile,
            target: Target::Memory {
                address: last - size,
                endpoint,
                generation: self.endpoints.generation(endpoint),
                transaction,
                read,
            },
            physical,
            chunks: split_memory(last - size, size, self.config.block),
            asked: 0,
            stop: None,
        })
    }
}
