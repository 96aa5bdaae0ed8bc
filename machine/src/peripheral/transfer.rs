//! A transfer of a peripheral: its pieces under way.
//!
//! Why it exists: all peripherals carry out a command in the same way. They move bytes from a source to a destination, piece by piece: each
//! piece is read (or generated), computed, and written (or kept). A piece leaves when it is written and all earlier ones have left. Writes
//! begin in the order of the pieces. What it deliberately does not know: commands, rates, what the bytes are.

use crate::types::Tick;
use std::collections::VecDeque;

/// Where bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Memory at a physical address.
    Memory(u64),
    /// The content of the device, from an offset on.
    Content(u64),
    /// A packet: its frame, and its number there.
    Packet(u32, u32),
    /// One word, again and again.
    Word(u64),
}

/// Where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Memory at a physical address.
    Memory(u64),
    /// The content of the device, from an offset on.
    Content(u64),
}

/// The bytes to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub from: From,
    pub to: To,
    pub bytes: u64,
}

/// How far a piece is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// Its read is under way.
    Reading,
    /// It has arrived, and is not computed yet.
    Read(Box<[u8]>, Tick),
    /// It may go to its destination from this moment on.
    Held(Box<[u8]>, Tick),
    /// Its write is under way.
    Writing,
    /// It is at its destination, and may leave from this moment on.
    Over(Tick),
}

#[derive(Clone, Debug)]
struct Piece {
    offset: u64,
    bytes: u32,
    progress: Progress,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Transfer {
    pub job: Job,
    /// Nothing begins earlier.
    pub from: Tick,
    /// Offset of the next piece.
    next: u64,
    pieces: VecDeque<Piece>,
    /// Number of the first piece; numbers of all transfers of a device follow each other.
    first: u32,
    /// Pieces whose write has begun.
    begun: usize,
    burst: u32,
    most: usize,
}

impl Transfer {
    /// A transfer of a job, from a moment on, in pieces of at most `burst` bytes, `most` of them under way; the first one has this number.
    pub fn new(job: Job, from: Tick, burst: u32, most: usize, first: u32) -> Self {
        Self {
            job,
            from,
            next: 0,
            pieces: VecDeque::new(),
            first,
            begun: 0,
            burst,
            most,
        }
    }

    /// Every byte is where it belongs.
    pub fn is_over(&self) -> bool {
        self.next == self.job.bytes && self.pieces.is_empty()
    }

    /// The number after that of the last piece.
    pub fn number(&self) -> u32 {
        self.first.wrapping_add(self.pieces.len() as u32)
    }

    /// Pieces that are over leave.
    pub fn leave(&mut self, now: Tick) {
        while let Some(piece) = self.pieces.front()
            && matches!(piece.progress, Progress::Over(from) if from <= now)
        {
            self.pieces.pop_front();
            self.first = self.first.wrapping_add(1);
            self.begun -= 1;
        }
    }

    /// Bytes of the next piece, which crosses no multiple of a burst at either end; 0: there is none, or no room for it.
    pub fn next_bytes(&self) -> u32 {
        if self.pieces.len() >= self.most {
            return 0;
        }
        let rest = self.job.bytes - self.next;
        let room = |at: u64| u64::from(self.burst) - (at + self.next) % u64::from(self.burst);
        let from = match self.job.from {
            From::Memory(at) => room(at),
            From::Content(_) | From::Packet(..) | From::Word(_) => rest,
        };
        let to = match self.job.to {
            To::Memory(at) => room(at),
            To::Content(_) => rest,
        };
        rest.min(from).min(to).min(self.burst.into()) as u32
    }

    /// The next piece begins: it is read, or it exists already (`data`, generated from its offset and its bytes). Returns its number and
    /// its offset.
    pub fn begin(&mut self, now: Tick, data: Option<Box<[u8]>>) -> (u32, u64) {
        let (offset, bytes) = (self.next, self.next_bytes());
        assert_ne!(bytes, 0, "{self:?} has no room for a piece");
        let number = self.number();
        self.pieces.push_back(Piece {
            offset,
            bytes,
            progress: match data {
                Some(data) => Progress::Held(data, now),
                None => Progress::Reading,
            },
        });
        self.next += u64::from(bytes);
        (number, offset)
    }

    /// The offset of the next piece.
    pub fn offset(&self) -> u64 {
        self.next
    }

    /// When the next piece may go to its destination, and its bytes.
    pub fn ready(&self) -> Option<(Tick, u32)> {
        let piece = self.pieces.get(self.begun)?;
        match &piece.progress {
            Progress::Held(_, from) => Some((*from, piece.bytes)),
            _ => None,
        }
    }

    /// The next piece goes to its destination: its number, its offset, its bytes.
    pub fn write(&mut self) -> (u32, u64, Box<[u8]>) {
        let number = self.first.wrapping_add(self.begun as u32);
        let piece = &mut self.pieces[self.begun];
        let Progress::Held(data, _) = std::mem::replace(&mut piece.progress, Progress::Writing)
        else {
            panic!("piece {number} is not there to be written");
        };
        self.begun += 1;
        (number, piece.offset, data)
    }

    /// An access to memory is answered; the device takes the answer at this edge.
    pub fn answer(&mut self, number: u32, edge: Tick, data: Option<Box<[u8]>>) {
        let place = number.wrapping_sub(self.first) as usize;
        let piece = self.pieces.get_mut(place);
        let piece = piece.expect("what is answered is under way");
        piece.progress = match (&piece.progress, data) {
            (Progress::Reading, Some(data)) => Progress::Read(data, edge),
            (Progress::Writing, None) => Progress::Over(edge),
            _ => panic!("{piece:?} waits for no such answer"),
        };
    }

    /// The first piece that was read and not computed, if all earlier ones were computed: its bytes, and when they arrived.
    pub fn uncomputed(&mut self) -> Option<(&mut Box<[u8]>, Tick)> {
        let waits =
            |piece: &&mut Piece| matches!(piece.progress, Progress::Reading | Progress::Read(..));
        let piece = self.pieces.iter_mut().find(waits)?;
        match &mut piece.progress {
            Progress::Read(data, since) => Some((data, *since)),
            _ => None,
        }
    }

    /// That piece is computed at this moment.
    pub fn computed(&mut self, at: Tick) {
        let waits = |piece: &&mut Piece| matches!(piece.progress, Progress::Read(..));
        let piece = self
            .pieces
            .iter_mut()
            .find(waits)
            .expect("a piece was read");
        let Progress::Read(data, _) = std::mem::replace(&mut piece.progress, Progress::Reading)
        else {
            unreachable!("it was found as one that was read");
        };
        piece.progress = Progress::Held(data, at);
    }

    /// The device keeps the piece whose number [`Transfer::write`] gave last.
    pub fn kept(&mut self, now: Tick) {
        self.pieces[self.begun - 1].progress = Progress::Over(now);
    }

    /// When the first piece may leave.
    pub fn leaves(&self) -> Option<Tick> {
        match self.pieces.front().map(|piece| &piece.progress) {
            Some(Progress::Over(from)) => Some(*from),
            _ => None,
        }
    }
}
