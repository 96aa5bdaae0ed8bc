//! Network calculus: delay and backlog bounds from arrival and service curves.
//!
//! Why it exists: a regulated network has bounds that follow from two curves per flow and server, whatever the traffic does within them.
//! This module knows only curves and servers; [`crate::communication`] knows which links and memories a packet crosses.
//!
//! [`Network::bound`] has four analyses of a path over a feed-forward network, TFA, SFA, PMOO and LUDB; [`Analysis`] says what each is, where
//! it comes from and for which order of service it holds, and [`Network::least`] takes the least of those that hold.
//!
//! Sources: J.-Y. Le Boudec, P. Thiran, *Network Calculus*, Springer LNCS 2050, 2001 (definitions and theorems 1.4.1 to
//! 1.4.3, 1.4.6, 1.7.1 and chapter 6); R. L. Cruz, *A calculus for network delay*, parts I and II, IEEE Transactions on
//! Information Theory 37(1), 1991; M. Boyer, B. Dupont de Dinechin, A. Graillat, L. Havet, *Computing routes and delay
//! bounds for the network-on-chip of the Kalray MPPA2 processor*, ERTS 2018.
//!
//! Units are the caller's: *amount* (bytes, or ticks of service) and *time* (ticks). Curves are exact rationals.

mod arrival;
mod bounds;
mod ludb;
mod network;
mod path;
mod propagation;
mod service;
mod simplex;

pub use arrival::{ArrivalCurve, TokenBucket};
pub use bounds::{Unbounded, backlog, delay, output};
pub use network::{Analysis, Flow, Least, Multiplexing, Network, NetworkError};
pub use service::{RateLatency, ServiceCurve, round_robin};
