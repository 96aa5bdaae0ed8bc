//! Links programs without a kernel.
fn main() {
    for argument in [
        "-Tbulkhead-bare.x",
        "-pie",
        "--no-dynamic-linker",
        "-znotext",
        "-znorelro",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
