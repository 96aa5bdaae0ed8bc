//! Puts the linker script where the linker of every program without a kernel finds it.
use std::{env, fs, path::PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy("bulkhead-bare.x", out.join("bulkhead-bare.x"))
        .expect("the script is beside this file");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=bulkhead-bare.x");
}
