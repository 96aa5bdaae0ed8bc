//! Puts the linker script of images where the linker of every binary that uses this kernel finds it.
use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy("bulkhead-oneshot.x", out.join("bulkhead-oneshot.x"))
        .expect("the script is beside this file");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=bulkhead-oneshot.x");
}
