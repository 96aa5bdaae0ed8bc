//! Messages that the data transfer unit has fetched for a streaming unit.
//!
//! Why it exists: they are in the tile's memory, so reading one takes time. It does not know what they say.

use super::context::Inbox;
use super::job::Step;
use super::{Later, Ports, Side};
use bulkhead_abi::dtu::{ARGUMENT, DtuError, NO_MESSAGE};
use bulkhead_abi::message::{HEADER_SIZE, Header};
use zerocopy::FromBytes;

/// The offset that a fetch found, if any.
pub(super) fn found(ports: &mut dyn Ports, error: DtuError) -> Option<u64> {
    let offset = ports.read(ARGUMENT);
    (error == DtuError::None && offset != NO_MESSAGE).then_some(offset)
}

/// Header and payload words of a message; `None` if they are not in the tile's memory.
pub(super) type Message = Option<(Header, Vec<u64>)>;
/// The offset of a message in its buffer, and the message.
pub(super) type Came = (u64, Message);

/// The message that a step has fetched, if the step was a fetch and found one.
pub(super) fn came(
    ports: &mut dyn Ports,
    step: Step,
    error: DtuError,
) -> Result<Option<Came>, Later> {
    let (Step::FetchRequest(inbox)
    | Step::FetchKernel(inbox)
    | Step::FetchAnswer(inbox)
    | Step::FetchPipe(inbox)) = step
    else {
        return Ok(None);
    };
    let Some(offset) = found(ports, error) else {
        return Ok(None);
    };
    Ok(Some((offset, message(ports, inbox, offset)?)))
}

/// A message in an inbox.
pub(super) fn message(ports: &mut dyn Ports, inbox: Inbox, offset: u64) -> Result<Message, Later> {
    let mut header = [0; HEADER_SIZE];
    let Some(at) = inbox.buffer.checked_add(offset) else {
        return Ok(None);
    };
    if !ports.load(Side::Command, at, &mut header)? {
        return Ok(None);
    }
    let Ok(header) = Header::read_from_bytes(&header) else {
        return Ok(None);
    };
    let mut payload = vec![0; header.length.into()];
    if !ports.load(Side::Command, at + HEADER_SIZE as u64, &mut payload)? {
        return Ok(None);
    }
    let words = payload.as_chunks().0.iter();
    let words = words.map(|word| u64::from_le_bytes(*word)).collect();
    Ok(Some((header, words)))
}
