//! Facts that the kernel of the one-shot RTOS, its ports on other cores and the host share: records in memory and markers.
//!
//! Why it exists: a core reads and writes the records of others, and the host reads consoles while the kernel writes them. What it
//! deliberately does not know: the rules of access; they are in `software/exec/one-shot`.

/// Most bytes of an image with all its data: the local memory of the smallest core.
pub const IMAGE_SIZE: u64 = 32 * 1024;
/// Offset of the port records from the start of a core's memory: the same on every core, so that no table is needed.
pub const PORTS_OFFSET: u64 = IMAGE_SIZE - PORTS as u64 * PORT_SIZE;
/// Cause of a job that has not left enough stack for an interrupt; the specification leaves this number to platforms.
pub const NO_ROOM: u64 = 24;

/// Cause that the run time of Ada reports when a protected operation calls its own object from outside. The value is the object's address.
pub const NESTED: u64 = 25;

/// Cause that the run time of Ada reports when a timing event is set to a span after the last time. The value is the event's address.
pub const AFTER_LAST: u64 = 26;

/// Ports of a core.
pub const PORTS: usize = 16;
/// Bytes of a port record (m2os-mc-ngres21, section 5.1).
pub const PORT_SIZE: u64 = 32;

/// Bytes before each item of a parallel section: a tag, the count of the chip's timer at which the slice's section began.
pub const TAG: u64 = 8;

/// What a core finds in its memory if its system is described: the periods and ports of its tasks. Words of 8 bytes. The tasks come first,
/// the most urgent one before the others, then the ports.
pub mod table {
    use super::PORTS_OFFSET;

    /// Offset, from the start of a core's memory, of a word with the table's address in the local alias.
    pub const POINTER: u64 = PORTS_OFFSET - 8;
    /// Words of a task.
    pub const TASK_WORDS: usize = 4;
    /// Word of a task: its period in ticks in the low half; from [`TOLD_SHIFT`] on, one more than the number of the input whose messages release it (0:
    /// time does).
    pub const PERIOD: usize = 0;
    /// See [`PERIOD`].
    pub const TOLD_SHIFT: u32 = 32;
    /// Where the wait of a task in a parallel section begins in [`PERIOD`], in counts of the timer: messages never release such a task.
    pub const WAIT_SHIFT: u32 = TOLD_SHIFT;
    /// Word of a task: the number of ports that it reads.
    pub const INPUTS: usize = 1;
    /// Word of a task: the number of ports that it writes.
    pub const OUTPUTS: usize = 2;
    /// Word of a task: the number of the table's word where its ports begin, those that it reads first.
    pub const PORTS: usize = 3;
    /// Words of a port.
    pub const PORT_WORDS: usize = 2;
    /// Word of a port: index of its record, bytes of an item from [`SIZE_SHIFT`] on, number of its core from [`CORE_SHIFT`] on.
    pub const NAME: usize = 0;
    /// Word of a port: if it is read, address of its data in the local alias, and its places from [`SLOTS_SHIFT`] on (none: a sampling port).
    pub const DATA: usize = 1;
    /// See [`DATA`].
    pub const SLOTS_SHIFT: u32 = 32;
    /// Bit of [`DATA`] of a port that is written: the writer rings the doorbell of the port's core.
    pub const NOTIFY: u64 = 1 << 63;
    /// See [`NAME`].
    pub const SIZE_SHIFT: u32 = 16;
    /// See [`NAME`].
    pub const CORE_SHIFT: u32 = 48;
}

/// What a core of a described system finds in its memory if clocks of tiles differ: a record with which the master's core tells it the time.
/// Words of 8 bytes.
pub mod clock {
    use super::table;

    /// Offset of the record from the start of a core's memory: the same on every core.
    pub const RECORD: u64 = table::POINTER - 32;
    /// The core writes the number of the message that it waits for, and above it, from [`NUMBER_BITS`] on, a key that no earlier request had. 0: it has
    /// not started. At last, with the number [`DONE`], it writes which messages it took, a bit for each from [`NUMBER_BITS`] on, and what they
    /// contained, from [`DIGEST_SHIFT`] on.
    pub const READY: u64 = 0;
    /// The master writes its time at the send, from [`NUMBER_BITS`] on, and the number of the message below; at last, with the number [`DONE`],
    /// the time at which all begin.
    pub const SENT: u64 = 8;
    /// The master writes how long the message was under way at most, from [`NUMBER_BITS`] on, with the number below; from [`CHECK_SHIFT`] on, a value
    /// that follows from the core, its request, and both words.
    pub const WAY: u64 = 16;
    /// The loader writes how many cores the master serves, and from [`LIST_SHIFT`] on a value that follows from their list; 0: the core is not
    /// the master.
    pub const SERVED: u64 = 24;
    /// See [`SERVED`].
    pub const LIST_SHIFT: u32 = 32;
    /// Most cores that a master serves.
    pub const SERVED_MAX: u64 = 1023;
    /// Before the master's record, downwards: numbers of the cores that it serves, so many in a word, the first in its lowest bits.
    pub const CORES_IN_A_WORD: u64 = 4;
    /// Messages to each core; their numbers begin with 1.
    pub const MESSAGES: u64 = 4;
    /// See [`SENT`].
    pub const NUMBER_BITS: u32 = 4;
    /// See [`READY`].
    pub const DIGEST_SHIFT: u32 = 8;
    /// See [`WAY`]: there is room for 32 bits below.
    pub const CHECK_SHIFT: u32 = 36;
    /// Value of [`READY`]: the core has its time, and waits for the message with this number.
    pub const DONE: u64 = MESSAGES + 1;
    /// Ticks for which a core waits for the master.
    pub const PATIENCE: u64 = 20;
    /// Ticks for which the master waits for cores that are not ready: less, so that those that are ready wait for it.
    pub const MASTER_PATIENCE: u64 = 10;
    /// Ticks, at least one whole, between the last message to all and their begin: time for the messages to arrive, so that none is under way
    /// when jobs begin.
    pub const BEGIN: u64 = 2;
}

/// Why a core keeps its own time, whatever it added before: values of [`marker::CLOCK_ALONE`].
pub mod clock_alone {
    /// No message of the master came.
    pub const NO_MESSAGE: u64 = 0;
    /// No message was one that the master sent for the core's request.
    pub const NO_TRUE_MESSAGE: u64 = 1;
    /// The master did not say when all begin, or said it to be at a time that is not possible.
    pub const NO_BEGIN: u64 = 2;
    /// The core is the master, and its list is not the loader's.
    pub const LIST: u64 = 3;
}

/// What a host core finds in external memory: what it copies to the other cores, and which it starts. Words of 8 bytes; the pieces begin after
/// [`host::HEADER_WORDS`], the cores after the pieces.
pub mod host {
    /// Word: how many cores.
    pub const CORES: u64 = 0;
    /// Word: how many pieces.
    pub const PIECES: u64 = 1;
    /// Words before the pieces.
    pub const HEADER_WORDS: u64 = 2;
    /// Words of a piece: the chip-global addresses to copy to and from, and bytes, a multiple of 8.
    pub const PIECE_WORDS: u64 = 3;
    /// Words of a core.
    pub const CORE_WORDS: u64 = 5;
    /// Word of a core: the chip-global address of its register [`crate::memory_map::TILE_START`].
    pub const START: u64 = 0;
    /// Word of a core: the address of its first instruction, as the core sees it.
    pub const ENTRY: u64 = 1;
    /// Word of a core: the chip-global address of its console ring.
    pub const RING: u64 = 2;
    /// Word of a core: bytes of the ring after its header, at most [`RING_MAX`].
    pub const SIZE: u64 = 3;
    /// Word of a core: its number, and that of its tile from bit 16 on.
    pub const NUMBER: u64 = 4;
    /// Most cores.
    pub const CORES_MAX: usize = 1024;
    /// Most bytes of a ring after its header.
    pub const RING_MAX: usize = 1024;
    /// Ticks after which the host tells of a core that has not started.
    pub const PATIENCE: u64 = 20;
    /// Looks at a ring that changed meanwhile, after which the host tells of it.
    pub const BUSY: u16 = 4;
    /// The core has not made its ring.
    pub const SILENT: u64 = 0;
    /// The ring contains what no kernel writes.
    pub const BROKEN: u64 = 1;
    /// The ring changed during each look.
    pub const BUSY_RING: u64 = 2;
}

/// The layout behind an image's symbol `bulkhead_system`, for readers of the image's file: offsets in bytes.
pub mod system {
    /// Counts of the timer in a tick. No instruction depends on its value or on those of budgets, so they can be filled into the file.
    pub const TIMER: u64 = 0;
    /// Address of the tasks' descriptors, the most urgent one first; their number is in the next word.
    pub const TASKS: u64 = 8;
    /// Handlers of software and external interrupts, for the time when no task is ready, for the start, and for a task that stops; 0: none.
    pub const HANDLERS: [u64; 5] = [40, 48, 56, 64, 72];
    /// Bytes of all.
    pub const SIZE: u64 = 80;
    /// Bytes of a descriptor, which begins with the address of the function that runs a job.
    pub const DESCRIPTOR: u64 = 16;
    /// Of a descriptor, 4 bytes: cycles that a job may take; 0: nobody watches.
    pub const BUDGET: u64 = 8;
}

/// The layout behind an image's symbol `bulkhead_told`, for readers of the image's file: offsets in bytes. Images without tasks that messages release have no
/// such symbol. Like [`system`], it is filled into the file: no instruction depends on the values.
pub mod told {
    /// 4 bytes: rings of its doorbell that the core accepts in a tick.
    pub const RINGS: u64 = 0;
    /// Address of the tasks that messages release; their number is in the next word.
    pub const READERS: u64 = 8;
    /// Bytes of all.
    pub const SIZE: u64 = 24;
    /// Bytes of such a task. The first byte is its number.
    pub const READER: u64 = 24;
    /// The number of no task. Readers have it until they are filled in: with 0, they would be zeros, which are no part of a file.
    pub const NOBODY: u8 = u8::MAX;
}

/// Bytes of the stack that a job must leave for interrupts: registers, the kernel's way to a message, and a small handler. The kernel refuses an interrupt
/// of a job that has left less.
pub const ROOM_FOR_INTERRUPTS: u64 = 448;
/// Least bytes of a stack.
pub const STACK: u64 = 768;

/// Offsets in a port record. All words are little endian; a record that was never initialised is zero.
pub mod port {
    /// Spinlock, 4 bytes: 0 is free, 1 is held, [`CLOSED`].
    pub const LOCK: u64 = 0;
    /// 4 bytes: [`NEVER_WRITTEN`], [`NEW_DATA`] or [`WAS_READ`].
    pub const NEWS: u64 = 4;
    /// 4 bytes of a queue at the same place: the number of the oldest item's place, and the number of waiting items from [`WAITING_SHIFT`]
    /// on.
    pub const QUEUE: u64 = NEWS;
    /// 8 bytes: size of an item in bytes in the low half; [`INITIALISED`] of a sampling port, or the places of a queue from [`SLOTS_SHIFT`] on; the
    /// place of the data from [`DATA_SHIFT`] on. 0: not initialised. All that a writer must know of a port is in this one word, so
    /// it asks another core only once. Places of a queue follow each other, each at a multiple of 8 bytes.
    pub const STATE: u64 = 8;
    /// 4 bytes: number of the core that took the lock last.
    pub const HOLDER: u64 = 24;
    /// Value of [`LOCK`]: the task that reads the port has stopped for good.
    pub const CLOSED: u32 = 2;
    /// Value of [`NEWS`]: no data was written yet.
    pub const NEVER_WRITTEN: u32 = 0;
    /// Value of [`NEWS`]: data that has not been read.
    pub const NEW_DATA: u32 = 1;
    /// Value of [`NEWS`]: data that was read.
    pub const WAS_READ: u32 = 2;
    /// Bit of [`STATE`]: an initialised sampling port.
    pub const INITIALISED: u64 = 1 << 32;
    /// Where the number of places begins in [`STATE`], at most [`SLOTS_MAX`].
    pub const SLOTS_SHIFT: u32 = 33;
    /// Most places of a queue.
    pub const SLOTS_MAX: u16 = (1 << (DATA_SHIFT - SLOTS_SHIFT)) - 1;
    /// See [`QUEUE`].
    pub const WAITING_SHIFT: u32 = 16;
    /// Where the place of the data begins in [`STATE`]: its offset in the window of the record's core, in words of [`DATA_UNIT`] bytes.
    pub const DATA_SHIFT: u32 = 48;
    /// See [`DATA_SHIFT`].
    pub const DATA_UNIT: u64 = 8;
}

/// Offsets in a console ring. Records follow the header: each is one byte with its length (that byte included) and then a line; a
/// length of 0 says that the next record is at the start. The memory of a core that never ran has no [`ring::MAGIC`].
pub mod ring {
    /// 4 bytes: [`MAGIC`].
    pub const MAGIC_AT: u64 = 0;
    /// 4 bytes: bytes after the header, at most 65535.
    pub const SIZE: u64 = 4;
    /// 8 bytes, always stored in one access: four numbers of 16 bits, lowest first: where the oldest record begins, where the next one will
    /// begin, lines in the ring, lines written since the start (modulo 65536).
    pub const STATE: u64 = 8;
    /// Bytes of the header.
    pub const HEADER: u64 = 16;
    /// The first word of a ring: `RING`.
    pub const MAGIC: u32 = u32::from_le_bytes(*b"RING");
    /// Most bytes of a line.
    pub const LINE: usize = 254;
}

/// Markers of the kernel, of kinds that only it uses; the value is the number of the task, 0 being the most urgent.
pub mod marker {
    /// All kinds that only the kernel makes.
    pub const ALL: core::ops::RangeInclusive<u16> = 0x7E0..=0x7FF;
    /// Tasks are ready because of a tick: the value is a set, with a bit for the number of each.
    pub const RELEASE: u16 = 0x7E0;
    /// Its job begins: the last instruction before the task's own first one.
    pub const BEGIN: u16 = 0x7E1;
    /// Its job has ended.
    pub const END: u16 = 0x7E2;
    /// A job ran longer than its budget. From bit 8 on: the address that it had reached, or 0 if it has ended.
    pub const OVERRUN: u16 = 0x7E3;
    /// A task stopped for good.
    pub const STOPPED: u16 = 0x7E4;
    /// A task of a described system begins to write a port: the value is the port's core, and from bit 16 on the port's index. The same
    /// holds for the next kinds.
    pub const PUT: u16 = 0x7E5;
    /// It has written, or failed.
    pub const PUT_DONE: u16 = 0x7E6;
    /// It begins to read a port that has something new.
    pub const TAKE: u16 = 0x7E7;
    /// It has read, or failed.
    pub const TAKEN: u16 = 0x7E8;
    /// It has failed to write, because a queue has no place.
    pub const FULL: u16 = 0x7E9;
    /// A task is ready because of a message; its response begins here, and not at a tick.
    pub const TOLD: u16 = 0x7EA;
    /// The doorbell has rung as often as the core accepts it in a tick; it is masked until the next tick. The value is that number.
    pub const RINGS: u16 = 0x7EB;
    /// A job gave up waiting in a parallel section: the value is the port, as for [`PUT`].
    pub const VAIN: u16 = 0x7EC;
    /// The item that it began to take belonged to an earlier job and is dropped; the value is the same.
    pub const DROPPED: u16 = 0x7ED;
    /// The core knows the time of the master: the value is what it adds to its own timer, modulo 2^64.
    pub const CLOCK: u16 = 0x7EE;
    /// The largest error of that, in counts, when it was measured.
    pub const CLOCK_ERROR: u16 = 0x7EF;
    /// This core keeps its own time; the value says why ([`super::clock_alone`]).
    pub const CLOCK_ALONE: u16 = 0x7F0;
    /// The master gave up waiting for the core with this number.
    pub const CLOCK_ABSENT: u16 = 0x7F1;
    /// A message in this core's record is not one that the master sent for its request: the value is its number.
    pub const CLOCK_FALSE: u16 = 0x7F3;
    /// The core with this number took messages that the master did not send.
    pub const CLOCK_DENIED: u16 = 0x7F4;
    /// A task is ready because of what it waits for, and not because of a tick: a suspension object, an event, or an entry. The value is as of [`RELEASE`].
    pub const EVENT: u16 = 0x7F5;
    /// The running job is the last one of its task, which says so itself.
    pub const RETIRED: u16 = 0x7F6;
    /// The running task asks for an input that it does not have, or, with [`OUTPUT`], for an output: the value is the number.
    pub const NO_CHANNEL: u16 = 0x7F7;
    /// Bit of the value of [`NO_CHANNEL`].
    pub const OUTPUT: u64 = 1 << 63;
    /// The running task asks a port for items of a size that is not the port's. The value is the port, as for [`PUT`], and from
    /// [`SIZE_SHIFT`] on that size, or the maximum number if it is larger. If it is the port's, the item of a parallel section is not aligned.
    pub const WRONG_SIZE: u16 = 0x7F8;
    /// See [`WRONG_SIZE`].
    pub const SIZE_SHIFT: u32 = 32;
    /// The tick with this number calls handlers of timing events: just before the first one.
    pub const HANDLES: u16 = 0x7F9;
    /// Just after the last one.
    pub const HANDLED: u16 = 0x7FA;
    /// The host core tells of the console of a core, whose number this is; what is wrong is above bit 16 ([`super::host::SILENT`] and so on).
    pub const HOST_TOLD: u16 = 0x7F2;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the text above and the paper: at most 32 bytes, no field over another one, each aligned.
    #[test]
    fn a_port_record_has_32_bytes() {
        let fields = [
            (port::LOCK, 4),
            (port::NEWS, 4),
            (port::STATE, 8),
            (port::HOLDER, 4),
        ];
        assert!(fields.is_sorted());
        for pair in fields.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0);
        }
        assert!(fields.iter().all(|(at, size)| at % size == 0));
        assert!(fields[3].0 + fields[3].1 <= PORT_SIZE && PORT_SIZE == 32);
        assert_eq!(PORTS_OFFSET, 0x7E00);
    }

    #[test]
    fn a_ring_begins_with_its_name() {
        assert_eq!(ring::MAGIC.to_le_bytes(), *b"RING");
        assert_eq!((ring::SIZE, ring::STATE, ring::HEADER), (4, 8, 16));
    }
}
