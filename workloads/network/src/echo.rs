//! Sends every datagram back to its sender; waits for datagrams on two ports at once.
//!
//! Gates: `network` (send), `answers` (receive, slots of 1536 bytes). Arguments: `port` (7); the other one is the next. It never
//! ends.
#![no_std]
#![no_main]

use bulkhead_lib::common::network::DATA;
use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::select::{self, Event};
use bulkhead_lib::socket::{Network, Remote, Result, received};
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match serve() {
        Ok(()) => 0,
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn serve() -> Result<()> {
    let port: u16 = argument::value("port", 7);
    let mut network = Network::connect("network")?;
    let sockets = [network.bind(port)?, network.bind(port + 1)?];
    let answers = ReceiveGate::named("answers");
    for (label, socket) in (1..).zip(&sockets) {
        network.receive_later(socket, 0, &answers, label)?;
    }
    let mut buffer = [0; DATA];
    loop {
        let message = match select::wait(&[answers], None) {
            Ok(Event::Message(_, message)) => message,
            _ => continue,
        };
        let label = message.label();
        let outcome = received(&message, &mut buffer);
        // The slot is free for the next answer.
        drop(message);
        let reply = outcome?;
        let Some(socket) = sockets.get(label as usize - 1) else {
            continue;
        };
        let to = Remote {
            address: reply.address,
            port: reply.port,
        };
        network.send_to(socket, to, &buffer[..usize::from(reply.length)])?;
        network.receive_later(socket, 0, &answers, label)?;
    }
}
