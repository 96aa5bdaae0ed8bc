//! Sockets.
//!
//! Why it exists: see the parent module. What it deliberately does not know: protocols; the network service defines what a socket
//! is.

use super::{bytes, bytes_mut, not_given, text, with};
use crate::tables::{BAD_ARGUMENT, Result, Socket, SocketKind, Tables, status};
use bulkhead_lib::gate::SendGate;
use bulkhead_lib::socket::{Network, Remote, Tcp, Udp};
use core::ffi::{c_char, c_int, c_void};

/// `struct bh_remote`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CRemote {
    address: [u8; 4],
    port: u16,
}

/// # Safety
/// `remote` is null or points to one that does not change during the call.
unsafe fn remote(remote: *const CRemote) -> Result<Remote> {
    // SAFETY: the caller promises it.
    let CRemote { address, port } = *unsafe { remote.as_ref() }.ok_or(BAD_ARGUMENT)?;
    Ok(Remote { address, port })
}

/// # Safety
/// `target` is null, if the caller does not want to know, or points to one that is not used elsewhere during the call.
unsafe fn tell(target: *mut CRemote, from: Remote) {
    let Remote { address, port } = from;
    if !target.is_null() {
        // SAFETY: the caller promises it.
        unsafe { target.write(CRemote { address, port }) };
    }
}

/// The network of a socket, and the socket.
fn udp(tables: &mut Tables, socket: i32) -> Result<(&mut Network, &Udp)> {
    match tables.sockets.get(socket)? {
        Socket {
            network,
            kind: SocketKind::Udp(udp),
        } => Ok((tables.networks.get_mut(*network)?, udp)),
        _ => Err(BAD_ARGUMENT),
    }
}

fn tcp(tables: &mut Tables, socket: i32) -> Result<(&mut Network, &Tcp)> {
    match tables.sockets.get(socket)? {
        Socket {
            network,
            kind: SocketKind::Tcp(tcp),
        } => Ok((tables.networks.get_mut(*network)?, tcp)),
        _ => Err(BAD_ARGUMENT),
    }
}

fn put(tables: &mut Tables, network: i32, kind: SocketKind) -> Result<i32> {
    tables.sockets.put(Socket { network, kind })
}

functions! {
    fn bh_network(name: *const c_char) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let name = unsafe { text(name) }?;
            SendGate::find(name)
                .ok_or_else(|| not_given(format_args!("<sgate name=\"{name}\">")))?;
            tables.networks.put(Network::connect(name).map_err(status)?)
        })
    }

    fn bh_address(network: c_int, address: *mut u8) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module; it has four bytes.
            let target = unsafe { bytes_mut(address.cast(), 4) }?;
            let (own, _) = tables.networks.get_mut(network)?.own().map_err(status)?;
            target.copy_from_slice(&own);
            Ok(0)
        })
    }

    fn bh_udp(network: c_int, port: u16) -> c_int {
        with(|tables| {
            let socket = tables.networks.get_mut(network)?.bind(port).map_err(status)?;
            put(tables, network, SocketKind::Udp(socket))
        })
    }

    fn bh_send_to(socket: c_int, to: *const CRemote, data: *const c_void, length: usize) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let (to, data) = unsafe { (remote(to)?, bytes(data, length)?) };
            let (network, socket) = udp(tables, socket)?;
            network.send_to(socket, to, data).map_err(status)?;
            Ok(0)
        })
    }

    fn bh_receive_from(socket: c_int, target: *mut c_void, size: usize, until: u64, from: *mut CRemote) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let target = unsafe { bytes_mut(target, size) }?;
            let (network, socket) = udp(tables, socket)?;
            let (length, sender) = network.receive_from(socket, target, until).map_err(status)?;
            // SAFETY: see the head of the parent module.
            unsafe { tell(from, sender) };
            Ok(length as i32)
        })
    }

    fn bh_tcp_connect(network: c_int, to: *const CRemote, until: u64) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let to = unsafe { remote(to) }?;
            let open = tables.networks.get_mut(network)?;
            let socket = open.connect_to(to, until).map_err(status)?;
            put(tables, network, SocketKind::Tcp(socket))
        })
    }

    fn bh_tcp_listen(network: c_int, port: u16) -> c_int {
        with(|tables| {
            let socket = tables.networks.get_mut(network)?.listen(port).map_err(status)?;
            put(tables, network, SocketKind::Tcp(socket))
        })
    }

    fn bh_tcp_accept(socket: c_int, until: u64, from: *mut CRemote) -> c_int {
        with(|tables| {
            let (network, socket) = tcp(tables, socket)?;
            let sender = network.accept(socket, until).map_err(status)?;
            // SAFETY: see the head of the parent module.
            unsafe { tell(from, sender) };
            Ok(0)
        })
    }

    fn bh_tcp_send(socket: c_int, data: *const c_void, length: usize, until: u64) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let data = unsafe { bytes(data, length) }?;
            let (network, socket) = tcp(tables, socket)?;
            network.send(socket, data, until).map_err(status)?;
            Ok(0)
        })
    }

    fn bh_tcp_receive(socket: c_int, target: *mut c_void, size: usize, until: u64) -> c_int {
        with(|tables| {
            // SAFETY: see the head of the parent module.
            let target = unsafe { bytes_mut(target, size) }?;
            let (network, socket) = tcp(tables, socket)?;
            let count = network.receive(socket, target, until).map_err(status)?;
            Ok(count as i32)
        })
    }

    fn bh_socket_close(socket: c_int) -> c_int {
        with(|tables| {
            let Socket { network, kind } = tables.sockets.take(socket)?;
            let network = tables.networks.get_mut(network)?;
            let closed = match kind {
                SocketKind::Udp(socket) => network.unbind(socket),
                SocketKind::Tcp(socket) => network.close(socket),
            };
            closed.map_err(status)?;
            Ok(0)
        })
    }
}
