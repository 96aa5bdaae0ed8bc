//! Links an application of the tiled OS.
fn main() {
    println!("cargo:rustc-link-arg-bins=-Tbulkhead-app.x");
}
