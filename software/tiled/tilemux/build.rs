//! Links the multiplexer with its own script.
fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-arg-bins=-T{folder}/tilemux.x");
    println!("cargo:rerun-if-changed=tilemux.x");
}
