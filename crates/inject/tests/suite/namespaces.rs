//! A program in another mount namespace, which does not see the library.

use std::path::Path;
use std::time::Duration;

use crate::target::Program;
use crate::toolchain::{compile, directory, have};

/// How many copies of a library are in a directory.
fn copies_in(directory: &str) -> usize {
    let files = std::fs::read_dir(directory).expect("a directory").flatten();
    files.filter(|file| file.file_name().to_string_lossy().starts_with(".heaptap-")).count()
}

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
    // What is below the library's directory is hidden, and /tmp is another one. The checkout may be below /tmp, so
    // the program's directory is mounted there again.
    let hidden = crate::toolchain::library().parent().expect("a directory").display();
    let (place, file) = (directory.display(), program.display());
    let script = format!(
        "mount --bind {place} /mnt && mount -t tmpfs none /tmp && mkdir -p {place} {hidden} \
         && mount --bind /mnt {place} && mount -t tmpfs none {hidden} && exec {file} 10000"
    );
    let program = Program::new("namespace", &directory, &["unshare", "-m", "sh", "-c", &script]);
    let untouched = program.untouched();
    let running = program.start();
    let executes = || std::fs::read_link(format!("/proc/{}/exe", running.pid()));
    while !executes().expect("it runs").ends_with("trees") {
        std::thread::sleep(Duration::from_millis(5));
    }
    for count in 1..=3 {
        let injected = running.inject(Duration::from_secs(20)).expect("to be injected");
        // The same library each time, although its file is gone.
        assert_eq!(injected.result, count);
        assert_eq!(copies_in(&format!("/proc/{}/root/tmp", running.pid())), 0);
    }
    assert_eq!(copies_in("/tmp"), 0, "nothing was copied to our own");
    assert!(!Path::new("/tmp/.heaptap").exists());
    assert_eq!(running.end(), untouched);
}
