//! Links a program that takes over a tile.
fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-arg-bins=-T{folder}/captured.x");
    println!("cargo:rerun-if-changed=captured.x");
}
