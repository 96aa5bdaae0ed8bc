//! Nothing: without a build script, Cargo ignores what a package's build depends on.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
