//! A table of hooks with a defect does not compile.
//!
//! `src/runtimes/attach/hook_table.rs` is compiled as it is, with a table of two
//! functions of one type and a third of another, and with implementations that have one
//! defect each. The sound one compiles, so that the defect is what the compiler refuses.

use std::path::Path;
use std::process::Command;

/// Everything but the implementation. The three other modules are stand-ins.
const TABLE: &str = r#"
#![allow(dead_code, unused_imports)]
mod runtimes {
    pub(crate) mod attach {
        #[path = "HOOK_TABLE"]
        pub(crate) mod hook_table;
        pub(crate) mod image {
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct Symbol { pub(crate) address: usize, pub(crate) size: usize }
        }
        pub(crate) mod patch {
            pub(crate) struct Replacement {
                pub(crate) name: &'static std::ffi::CStr,
                pub(crate) address: usize,
                pub(crate) size: usize,
                pub(crate) with: usize,
                pub(crate) original: Option<&'static std::sync::atomic::AtomicUsize>,
            }
            pub(crate) struct Original<F>(std::sync::atomic::AtomicUsize, std::marker::PhantomData<F>);
            impl<F> Original<F> {
                pub(crate) fn place(&'static self) -> &'static std::sync::atomic::AtomicUsize { &self.0 }
            }
        }
        pub(crate) mod symbols {
            pub(crate) unsafe fn function_at<F: Copy>(address: usize) -> F {
                unsafe { std::mem::transmute_copy(&address) }
            }
        }
    }
}

mod table {
    crate::runtimes::attach::hook_table::hook_table! {
        pub(crate) trait Hooks replaces Functions {
            fn runtime_allocated(block: usize);
            fn runtime_freed(block: usize);
            fn runtime_moved(from: usize, to: usize) -> i32;
        }
    }
}

struct Ours;
fn replace(functions: table::Functions) {
    functions.replacements::<Ours>();
}
"#;

const ALLOCATED: &str = "extern \"C\" fn runtime_allocated(_: usize) {}";
const FREED: &str = "extern \"C\" fn runtime_freed(_: usize) {}";
const MOVED: &str = "extern \"C\" fn runtime_moved(_: usize, _: usize) -> i32 { 0 }";

/// What the compiler says about an implementation with these functions; empty if it
/// compiles.
fn refusal(hooks: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/runtimes/attach/hook_table.rs");
    let source = TABLE.replace("HOOK_TABLE", table.to_str().expect("a path in UTF-8"))
        + &format!("impl table::Hooks for Ours {{ {} }}", hooks.join("\n"));
    let file = directory.path().join("hooks.rs");
    std::fs::write(&file, source).expect("a file");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=short"])
        .arg("--out-dir")
        .arg(directory.path())
        .arg(&file)
        .output()
        .expect("the compiler");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), !errors.contains("error"), "{errors}");
    if output.status.success() { String::new() } else { errors }
}

#[test]
fn a_hook_of_another_type_does_not_compile() {
    assert_eq!(refusal(&[ALLOCATED, FREED, MOVED]), "");
    let swapped_body = "extern \"C\" fn runtime_moved(_: usize) {}";
    assert!(refusal(&[ALLOCATED, FREED, swapped_body]).contains("E0050"));
    let other_argument = "extern \"C\" fn runtime_freed(_: u32) {}";
    assert!(refusal(&[ALLOCATED, other_argument, MOVED]).contains("E0053"));
    let other_result = "extern \"C\" fn runtime_moved(_: usize, _: usize) -> i64 { 0 }";
    assert!(refusal(&[ALLOCATED, FREED, other_result]).contains("E0053"));
    let not_for_c = "fn runtime_freed(_: usize) {}";
    assert!(refusal(&[ALLOCATED, not_for_c, MOVED]).contains("E0053"));
}

#[test]
fn each_function_has_one_hook_of_its_name() {
    assert!(refusal(&[ALLOCATED, MOVED]).contains("E0046"), "one is missing");
    // The same type under the name of another: it is defined twice.
    assert!(refusal(&[ALLOCATED, ALLOCATED, MOVED]).contains("E0201"));
    let unknown = "extern \"C\" fn runtime_started(_: usize) {}";
    assert!(refusal(&[ALLOCATED, FREED, MOVED, unknown]).contains("E0407"));
}
