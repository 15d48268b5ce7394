//! How the shared library is linked.

use std::env;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The name that programs record when they link the library. Its number changes with
/// every incompatible change of the C ABI.
const SONAME: &str = "libheaptap.so.0";

fn main() {
    // The library cannot be unloaded: it registers functions for exit and fork.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    println!("cargo::rerun-if-changed=build.rs");
    link_soname();
}

/// Links the name to the library in the directory where cargo puts it, so that
/// programs that were linked there find it. Installed libraries have their own link.
fn link_soname() {
    // `target/release/build/heaptap-0123456789abcdef/out`
    let out = env::var_os("OUT_DIR").expect("cargo sets it for build scripts");
    let Some(directory) = Path::new(&out).ancestors().nth(3) else { return };
    let link = directory.join(SONAME);
    if link.symlink_metadata().is_err()
        && let Err(error) = symlink("libheaptap.so", &link)
    {
        println!("cargo::warning={}: {error}", link.display());
    }
}
