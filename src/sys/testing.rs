//! Runs tests in processes of their own: for signals, limits, descriptors and forks.
#![allow(unsafe_code, reason = "forks")]

/// Runs `body` in a new process, which runs the calling test again. `module` and `test`
/// are that test's module path and name.
pub(crate) fn in_a_process(module: &str, test: &str, body: impl FnOnce()) {
    const CHILD: &str = "HEAPTAP_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let within = module.split_once("::").map_or("", |(_, within)| within);
    let name = format!("{within}::{test}");
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("running 1 test"), "{name} is not a test: {text}");
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
}

/// Forks. The child runs `body` and exits. If it panics, the parent fails too; so it does
/// if the child hangs, which is killed after a minute.
pub(crate) fn in_a_fork(body: impl FnOnce()) {
    // SAFETY: the child calls `body` and `_exit` only. After a fork the C library resets its
    // own locks in the child.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: alarm takes a number.
        unsafe { libc::alarm(60) };
        let held = std::panic::catch_unwind(core::panic::AssertUnwindSafe(body)).is_ok();
        // SAFETY: takes a number; skips the exit handlers, which are the parent's.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    let mut status = 0;
    // SAFETY: waitpid writes one int to `status`.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's status");
}
