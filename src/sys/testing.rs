//! For tests of what belongs to a whole process: signals, limits, descriptors,
//! forks.
#![allow(unsafe_code, reason = "forks")]

/// Runs `body` in a process of its own. `module` and `test` are the path and the
/// name of the calling test, which is run again there.
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

/// Forks; the child runs `body` and is gone. A panic in it fails the parent, and
/// so does a child that hangs: it is ended after a minute.
pub(crate) fn in_a_fork(body: impl FnOnce()) {
    // SAFETY: the child calls `body` and `_exit` only. The C library makes its
    // own locks usable again in a child.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: takes a number.
        unsafe { libc::alarm(60) };
        let held = std::panic::catch_unwind(core::panic::AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    let mut status = 0;
    // SAFETY: writes one number to the place given.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's status");
}
