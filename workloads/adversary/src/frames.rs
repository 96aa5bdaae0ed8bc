//! Frames that cost their receiver time.
//!
//! Why it exists: even a dropped frame must be examined first, and one that must be answered costs more. What it deliberately does not
//! know: who receives them, beyond what its own arguments and answers say.

use bulkhead_lib::abi::network::FRAME_MAX;
use bulkhead_lib::argument;
use bulkhead_lib::common::network::address;
use bulkhead_random::Random;

/// The shortest frame of Ethernet without its check sequence.
const SHORT: usize = 60;
/// Bytes of the header of a frame.
const ETHERNET: usize = 14;
/// Bytes of an IPv4 header.
const IP: usize = 20;
const EVERYBODY: [u8; 6] = [0xFF; 6];

/// A sort of frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Of no protocol, as short as possible.
    Short,
    /// Of no protocol, as long as possible.
    Long,
    /// A request for the victim's address, which must be answered.
    Request,
    /// A short datagram for some port.
    Datagram,
    /// A long one.
    LongDatagram,
    /// The opening of a stream at some port.
    Opening,
    /// A long echo request, which must be answered.
    Echo,
}

/// Who is where.
pub struct Addresses {
    own: [u8; 4],
    victim: Option<[u8; 4]>,
    /// The victim's hardware address, once it has said something.
    mac: [u8; 6],
}

impl Addresses {
    /// What the arguments say.
    pub fn new() -> Self {
        let first = |name, end: char| {
            let text = argument::text(name)?;
            address(text.split(end).next().unwrap_or_default().trim())
        };
        Self {
            own: first("address", '/').unwrap_or([10, 0, 0, 66]),
            victim: first("neighbours", ','),
            mac: EVERYBODY,
        }
    }

    /// Remembers the sender of a frame.
    pub fn learn(&mut self, frame: &[u8]) {
        if let Some(from) = frame.get(6..12) {
            self.mac.copy_from_slice(from);
        }
    }
}

/// The kind of frame for a strength: its three lowest bits; 7 means all kinds in turn. While the victim's address is unknown, the
/// request for it comes first.
pub fn sort(strength: u64, addresses: &Addresses, random: &mut Random) -> Sort {
    let number = match strength & 7 {
        7 => random.below(7),
        number => number,
    };
    let unknown = addresses.mac == EVERYBODY && addresses.victim.is_some();
    match number {
        0 => Sort::Short,
        1 => Sort::Long,
        _ if unknown && random.below(4) == 0 => Sort::Request,
        2 => Sort::Request,
        3 => Sort::Datagram,
        4 => Sort::LongDatagram,
        5 => Sort::Opening,
        _ => Sort::Echo,
    }
}

/// Length of a frame.
pub fn bytes(sort: Sort) -> usize {
    match sort {
        Sort::Long | Sort::LongDatagram | Sort::Echo => FRAME_MAX,
        Sort::Short | Sort::Request | Sort::Datagram | Sort::Opening => SHORT,
    }
}

/// Checksum of RFC 1071 over pieces; all but the last must have an even length.
fn checksum(pieces: &[&[u8]]) -> [u8; 2] {
    let mut sum = 0u64;
    for piece in pieces {
        for pair in piece.chunks(2) {
            sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
        }
    }
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// Writes a frame of [`bytes`] bytes.
pub fn write(sort: Sort, frame: &mut [u8], to: &Addresses, mac: [u8; 6], random: &mut Random) {
    frame.fill(random.next() as u8);
    let victim = to.victim.unwrap_or([255; 4]);
    let target = if sort == Sort::Request {
        EVERYBODY
    } else {
        to.mac
    };
    frame[..6].copy_from_slice(&target);
    frame[6..12].copy_from_slice(&mac);
    let (kind, protocol): (u16, u8) = match sort {
        // For experiments (IEEE 802).
        Sort::Short | Sort::Long => (0x88B5, 0),
        Sort::Request => (0x0806, 0),
        Sort::Datagram | Sort::LongDatagram => (0x0800, 17),
        Sort::Opening => (0x0800, 6),
        Sort::Echo => (0x0800, 1),
    };
    frame[12..ETHERNET].copy_from_slice(&kind.to_be_bytes());
    let body = &mut frame[ETHERNET..];
    match sort {
        Sort::Short | Sort::Long => return,
        Sort::Request => return request(body, to.own, victim, mac),
        _ => {}
    }
    let length = (body.len() as u16).to_be_bytes();
    let (ip, data) = body.split_at_mut(IP);
    ip.copy_from_slice(&[
        0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0, to.own[0], to.own[1],
        to.own[2], to.own[3], victim[0], victim[1], victim[2], victim[3],
    ]);
    let sum = checksum(&[ip]);
    ip[10..12].copy_from_slice(&sum);
    let from = (1024 + random.below(60_000) as u16).to_be_bytes();
    // Where services usually listen.
    let port = (random.below(64) as u16).to_be_bytes();
    let length = (data.len() as u16).to_be_bytes();
    match sort {
        Sort::Echo => {
            data[..8].copy_from_slice(&[8, 0, 0, 0, from[0], from[1], 0, 1]);
            let sum = checksum(&[data]);
            data[2..4].copy_from_slice(&sum);
        }
        Sort::Opening => {
            let number = (random.next() as u32).to_be_bytes();
            data.fill(0);
            data[..2].copy_from_slice(&from);
            data[2..4].copy_from_slice(&port);
            data[4..8].copy_from_slice(&number);
            // A header of five words, SYN, and a window.
            data[12..16].copy_from_slice(&[5 << 4, 2, 0x10, 0]);
            let pseudo = [0, protocol, length[0], length[1]];
            let sum = checksum(&[&to.own, &victim, &pseudo, data]);
            data[16..18].copy_from_slice(&sum);
        }
        _ => {
            // Without a checksum, which IPv4 allows.
            data[..8].copy_from_slice(&[
                from[0], from[1], port[0], port[1], length[0], length[1], 0, 0,
            ]);
        }
    }
}

/// A request for the hardware address of `victim` (RFC 826).
fn request(body: &mut [u8], own: [u8; 4], victim: [u8; 4], mac: [u8; 6]) {
    body.fill(0);
    body[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    body[8..14].copy_from_slice(&mac);
    body[14..18].copy_from_slice(&own);
    body[24..28].copy_from_slice(&victim);
}
