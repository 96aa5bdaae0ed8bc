//! Links images of the one-shot RTOS.
fn main() {
    println!("cargo:rustc-link-arg-bins=-Tbulkhead-oneshot.x");
}
