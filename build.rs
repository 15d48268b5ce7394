//! How the shared library is linked.

fn main() {
    // Once it has registered what happens at exit and fork, it must stay.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
