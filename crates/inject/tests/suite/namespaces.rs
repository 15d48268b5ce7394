//! A program in another mount namespace, which does not see the library.

use std::path::Path;
use std::time::Duration;

use crate::target::Program;
use crate::toolchain::{compile, directory, have};

#[test]
fn a_copy_is_made_for_another_mount_namespace_and_removed() {
    if !have(&["ocamlopt", "gcc", "unshare", "mount"]) {
        return;
    }
    let may = std::process::Command::new("unshare").args(["-m", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no right to make a mount namespace");
        return;
    }
    let directory = directory("namespace");
    let program = compile(&directory, "trees");
    // What is below the library's directory is hidden, and /tmp is another one.
    let hidden = crate::toolchain::library().parent().expect("a directory");
    let script = format!(
        "mount -t tmpfs none /tmp && mount -t tmpfs none {} && exec {} 10000",
        hidden.display(),
        program.display()
    );
    let program = Program::new("namespace", &directory, &["unshare", "-m", "sh", "-c", &script]);
    let untouched = program.untouched();
    let running = program.start();
    let executes = || std::fs::read_link(format!("/proc/{}/exe", running.pid()));
    while !executes().is_ok_and(|path| path.ends_with("trees")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    for count in 1..=3 {
        let injected = running.inject(Duration::from_secs(20)).expect("to be injected");
        // The same library each time, although its file is gone.
        assert_eq!(injected.result, count);
        let left = std::fs::read_dir(format!("/proc/{}/root/tmp", running.pid())).expect("/tmp");
        assert_eq!(left.count(), 0);
    }
    let own = std::fs::read_dir("/tmp").expect("/tmp").flatten();
    let left = own.filter(|file| file.file_name().to_string_lossy().starts_with(".heaptap-"));
    assert_eq!(left.count(), 0, "nothing was copied to our own");
    assert!(!Path::new("/tmp/.heaptap").exists());
    assert_eq!(running.end(), untouched);
}
