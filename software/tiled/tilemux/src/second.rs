//! The interrupt hart: what the second hart of a tile does.
//!
//! Why it exists: on a tile with two harts the unit announces messages to the second one (m3-rtas24, section III-B2), which informs
//! the first hart. What it deliberately does not know: the receiver of a message. The unit announces a message only if no more
//! urgent activity runs, as on a tile with one hart.

use bulkhead_abi::dtu::{CORE_REQUEST, CoreRequest};
use bulkhead_hal::{csr, device, dtu};

/// The second hart's endless loop.
pub extern "C" fn serve() -> ! {
    csr::set_mie(csr::EXTERNAL);
    loop {
        match CoreRequest(dtu::read(CORE_REQUEST)).is_valid() {
            // Until the first hart has taken it.
            true => device::set_software_interrupt(true),
            false => csr::wait_for_interrupt(),
        }
    }
}
