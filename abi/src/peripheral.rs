//! Registers of the peripherals beside the tiles of a bare chip: storage, camera, streaming accelerator.
//!
//! Why it exists: software commands them, and the machine model is them. What it deliberately does not know: what a transfer costs.
//!
//! `docs/reference/devices.md` describes each register. All have eight bytes and are accessed whole. Pages follow those of the DMA engines
//! ([`crate::memory_map::DMA_BASE`]).

/// Register, read only: a [`Kind`].
pub const KIND: u64 = 0x00;
/// Register, write only: an opcode. It takes effect with the arguments that were written before.
pub const COMMAND: u64 = 0x08;
/// Register: an address, or the number of the first block ([`READ`]).
pub const SOURCE: u64 = 0x10;
/// Register: an address, or the number of the first block ([`WRITE`]).
pub const DESTINATION: u64 = 0x18;
/// Register: bytes.
pub const LENGTH: u64 = 0x20;
/// Register, read only: commands that are not finished; of a camera, packets that are not delivered.
pub const QUEUED: u64 = 0x28;
/// Register, read only: how many of these there may be.
pub const CAPACITY: u64 = 0x30;
/// Register, read only: commands that have ended; of a camera, packets that it has delivered to the present ring.
pub const COMPLETED: u64 = 0x38;
/// Register, read only: commands that the device has refused.
pub const REFUSED: u64 = 0x40;
/// Register: the [`Cause`] of the first refusal since a write to this register, which sets it to 0.
pub const CAUSE: u64 = 0x48;
/// Register, read only: the value that was refused then.
pub const CULPRIT: u64 = 0x50;
/// Register: bit 0 is 1 while the device asks for an interrupt. A write with bit 0 ends that, as at a DMA engine.
pub const INTERRUPT: u64 = 0x58;
/// Register: when the device asks for one, bits [`AT_END`], [`AT_REFUSAL`], [`AT_PACKET`].
pub const ENABLE: u64 = 0x60;
/// Register, read only: bytes of the content of a storage device.
pub const SIZE: u64 = 0x68;
/// Register, read only: bytes of a block of a storage device, or of a packet of a camera.
pub const UNIT: u64 = 0x70;
/// Register, read only: packets of a frame.
pub const LINES: u64 = 0x78;
/// Register: packets of the ring that software no longer needs, counted since the start.
pub const CONSUMED: u64 = 0x80;
/// Register, read only: packets that found no room since the start.
pub const OVERFLOWS: u64 = 0x88;
/// Register, read only: frames whose last packet was delivered or lost since the start.
pub const FRAMES: u64 = 0x90;
/// Offset after the last register.
pub const REGISTERS_END: u64 = 0x98;

/// Opcode: copies [`LENGTH`] bytes from block [`SOURCE`] on to the address [`DESTINATION`] (storage).
pub const READ: u64 = 1;
/// Opcode: copies [`LENGTH`] bytes from the address [`SOURCE`] to block [`DESTINATION`] and the following ones (storage).
pub const WRITE: u64 = 2;
/// Opcode: reads [`LENGTH`] bytes at [`SOURCE`] and writes their complement to [`DESTINATION`] (accelerator).
pub const PROCESS: u64 = 3;
/// Opcode: begins to deliver packets to the ring of [`LENGTH`] bytes at [`DESTINATION`] (camera).
pub const START: u64 = 4;
/// Opcode: begins no other packet (camera).
pub const STOP: u64 = 5;
/// Opcode: writes the eight bytes of [`SOURCE`] again and again, [`LENGTH`] bytes in all, to [`DESTINATION`] (accelerator).
pub const FILL: u64 = 6;

/// Bit of [`ENABLE`]: a command has ended; of a camera, a frame.
pub const AT_END: u64 = 1;
/// Bit of [`ENABLE`]: a command was refused, or a packet was lost.
pub const AT_REFUSAL: u64 = 2;
/// Bit of [`ENABLE`]: a camera has delivered a packet.
pub const AT_PACKET: u64 = 4;

/// What a peripheral is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// It has blocks, and copies them into memory and out of it.
    Storage = 1,
    /// It delivers the packets of frames.
    Camera = 2,
    /// It reads a buffer, computes, and writes another one.
    Accelerator = 3,
}

/// Why a command was refused. It has done nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// There was no refusal.
    #[default]
    None = 0,
    /// The device does not have this opcode.
    Opcode = 1,
    /// The queue is full, or the camera runs already.
    Busy = 2,
    /// The length is 0 or no multiple of eight, or of a packet or a block.
    Length = 3,
    /// The range begins at no multiple of eight bytes, or is not in the memory that the description gives the device.
    Memory = 4,
    /// The device has no such blocks.
    Block = 5,
}

/// Bytes at the begin of a packet of a camera: the frame's number (low half) and the packet's number in the frame (high half).
pub const PACKET_HEADER: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Written from the table in `docs/reference/devices.md`.
    #[test]
    fn registers_are_where_the_page_has_them() {
        let all = [
            KIND,
            COMMAND,
            SOURCE,
            DESTINATION,
            LENGTH,
            QUEUED,
            CAPACITY,
            COMPLETED,
            REFUSED,
            CAUSE,
            CULPRIT,
            INTERRUPT,
            ENABLE,
            SIZE,
            UNIT,
            LINES,
            CONSUMED,
            OVERFLOWS,
            FRAMES,
            REGISTERS_END,
        ];
        let expected = [
            0x00, 0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38, 0x40, 0x48, 0x50, 0x58, 0x60, 0x68,
            0x70, 0x78, 0x80, 0x88, 0x90, 0x98,
        ];
        assert_eq!(all, expected);
        assert_eq!(
            [READ, WRITE, PROCESS, START, STOP, FILL],
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!([AT_END, AT_REFUSAL, AT_PACKET], [1, 2, 4]);
        assert_eq!(Kind::Accelerator as u8, 3);
        assert_eq!(Cause::Block as u8, 5);
    }
}
