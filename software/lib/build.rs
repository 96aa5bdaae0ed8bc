//! Puts the linker script of applications where the linker of every binary that uses this library finds it.
use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy("bulkhead-app.x", out.join("bulkhead-app.x")).expect("the script is beside this file");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=bulkhead-app.x");
}
