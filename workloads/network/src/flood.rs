//! A hostile neighbour on the cable: drives its card itself and sends random frames, some of them nearly right.
//!
//! Gates: `interrupt` (receive; the card's). Arguments: `seed` (1), `to` (10.0.0.1): the victim's address, `pause` between two frames
//! (10us), `mac` (the last byte of the victim's hardware address; 6). It never ends.
#![no_std]
#![no_main]

use bulkhead_lib::abi::network::{FRAME_MAX, INTERRUPT_GATE};
use bulkhead_lib::common::network::{Card, address};
use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{argument, println, time};
use bulkhead_network_card::NetworkCard;
use bulkhead_random::Random;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut random = Random::new(argument::value("seed", 1u64) << 1 | 1);
    let pause = argument::time("pause", 10_000);
    let last: u8 = argument::value("mac", 6);
    let Some(victim) = argument::text("to").or(Some("10.0.0.1")).and_then(address) else {
        println!("argument `to`: an address such as `10.0.0.1`");
        return 1;
    };
    let mut card = match NetworkCard::new() {
        Ok(card) => card,
        Err(error) => {
            println!("the network card: {error:?}");
            return 1;
        }
    };
    let interrupt = ReceiveGate::named(INTERRUPT_GATE);
    loop {
        while let Ok(Some(message)) = interrupt.fetch() {
            drop(message);
        }
        card.acknowledge();
        while let Some((buffer, _, _)) = card.receive() {
            card.give_back(buffer);
        }
        let bytes = 14 + (random.next() as usize % (FRAME_MAX - 13));
        card.send(bytes, &mut |frame| write(frame, &mut random, victim, last));
        if pause > 0 {
            time::sleep_until(time::now() + pause);
        }
    }
}

/// A random frame for the victim or everybody; three of four have a correct IP header.
fn write(frame: &mut [u8], random: &mut Random, victim: [u8; 4], last: u8) {
    for byte in frame.iter_mut() {
        *byte = random.next() as u8;
    }
    let to = match random.next() & 7 {
        0 => [0xFF; 6],
        _ => [2, 0, 0, 0, 0, last],
    };
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x66]);
    let kind: u16 = match random.next() & 3 {
        0 => 0x0806,
        _ => 0x0800,
    };
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
    if kind != 0x0800 || frame.len() < 42 || random.next() & 3 == 0 {
        return;
    }
    let length = (frame.len() - 14) as u16;
    let ip = &mut frame[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[6..8].copy_from_slice(&[0, 0]);
    ip[9] = [1, 6, 17, 17][random.next() as usize & 3];
    ip[10..12].copy_from_slice(&[0, 0]);
    ip[12..16].copy_from_slice(&[victim[0], victim[1], victim[2], 66]);
    ip[16..20].copy_from_slice(&victim);
    let sum: u32 = ip
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    // Ports that may have a listener.
    frame[36..38].copy_from_slice(&(7 + random.next() as u16 % 3).to_be_bytes());
}
