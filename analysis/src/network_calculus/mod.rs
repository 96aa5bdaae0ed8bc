//! Network calculus: delay and backlog bounds from arrival and service curves.
//!
//! Why it exists: a regulated network has bounds that follow from two curves per flow and server, whatever the traffic
//! does within them. This module knows curves and servers only; which links and memories a packet crosses is the
//! business of [`crate::communication`].
//!
//! Sources: J.-Y. Le Boudec, P. Thiran, *Network Calculus*, Springer LNCS 2050, 2001 (definitions and theorems 1.4.1 to
//! 1.4.3, 1.4.6, 1.7.1 and chapter 6); R. L. Cruz, *A calculus for network delay*, parts I and II, IEEE Transactions on
//! Information Theory 37(1), 1991; M. Boyer, B. Dupont de Dinechin, A. Graillat, L. Havet, *Computing routes and delay
//! bounds for the network-on-chip of the Kalray MPPA2 processor*, ERTS 2018.
//!
//! Units are the caller's: *amount* (bytes, or ticks of service) and *time* (ticks). Curves are exact rationals.

mod arrival;
mod bounds;
mod service;
mod tandem;

pub use arrival::{ArrivalCurve, TokenBucket};
pub use bounds::{Unbounded, backlog, delay, output};
pub use service::{RateLatency, ServiceCurve, round_robin};
pub use tandem::{Flow, Tandem, TandemBound, TandemError};
