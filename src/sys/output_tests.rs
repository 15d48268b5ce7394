use super::*;
use crate::sys::file::create;
use crate::sys::testing::{in_a_fork, in_a_process};
use crate::sys::thread::{self, JoinOutcome};
use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(3600);

fn scratch() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.ctf");
    (dir, path)
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// Runs `body` where signals are blocked, as on the writer thread.
fn on_a_worker<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    match thread::start("heaptap-writer", |_| body()).unwrap().join(LONG) {
        JoinOutcome::Done(result) => result,
        JoinOutcome::Panicked(message) => panic!("{message}"),
        JoinOutcome::Running(_) => panic!("it takes an hour"),
    }
}

fn fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: `name` is a NUL-terminated string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

/// A reader of a pipe, open before there is a writer.
fn reader(path: &Path) -> File {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap()
}

fn errno(result: io::Result<usize>) -> Option<i32> {
    result.unwrap_err().raw_os_error()
}

#[test]
fn packets_are_counted_and_in_order() {
    let (_dir, path) = scratch();
    let mut output = create(&path).unwrap();
    assert_eq!(output.write(b"one").unwrap(), 3);
    assert_eq!(output.write(b"three").unwrap(), 5);
    assert_eq!(output.written(), 8);
    assert_eq!(std::fs::read(&path).unwrap(), b"onethree");
    assert!(output.descriptor >= 3, "the first three have a meaning to the host");
}

#[test]
fn a_full_device_is_an_error() {
    let mut output = create(Path::new("/dev/full")).unwrap();
    assert_eq!(errno(output.write(&[1; 100])), Some(libc::ENOSPC));
    assert_eq!(output.written(), 0);
}

#[test]
fn a_size_limit_cuts_to_the_last_whole_packet() {
    in_a_process(module_path!(), "a_size_limit_cuts_to_the_last_whole_packet", || {
        let (_dir, path) = scratch();
        let mut output = create(&path).unwrap();
        let limit = libc::rlimit { rlim_cur: 10_000, rlim_max: 10_000 };
        // SAFETY: setrlimit reads one `rlimit`, which is on this stack.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
        on_a_worker(move || {
            assert_eq!(output.write(&[1; 4096]).unwrap(), 4096);
            assert_eq!(output.write(&[2; 4096]).unwrap(), 4096);
            assert_eq!(errno(output.write(&[3; 4096])), Some(libc::EFBIG));
            assert_eq!(len(output.path()), 8192);
            assert_eq!(output.write(&[4; 1000]).unwrap(), 1000, "what fits still does");
            assert_eq!(len(output.path()), 9192);
        });
    });
}

#[test]
fn a_full_disk_cuts_to_the_last_whole_packet() {
    in_a_process(module_path!(), "a_full_disk_cuts_to_the_last_whole_packet", || {
        let (dir, path) = scratch();
        if !mount_small(dir.path()) {
            println!("skipped: only root may mount a file system of three pages");
            return;
        }
        let mut output = create(&path).unwrap();
        on_a_worker(move || {
            assert_eq!(output.write(&[1; 5000]).unwrap(), 5000);
            assert_eq!(output.write(&[2; 5000]).unwrap(), 5000);
            assert_eq!(errno(output.write(&[3; 5000])), Some(libc::ENOSPC));
            assert_eq!(len(output.path()), 10_000);
        });
    });
}

/// Mounts a file system of 12 KiB that only this process sees. False without the right
/// to.
fn mount_small(dir: &Path) -> bool {
    let dir = CString::new(dir.as_os_str().as_bytes()).unwrap();
    let null = core::ptr::null();
    // SAFETY: takes flags only; this process is the test's own.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return false;
    }
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the paths are NUL-terminated strings; NULL is allowed for the others.
    let alone = unsafe { libc::mount(null, c"/".as_ptr(), null, private, null.cast()) } == 0;
    let (tmpfs, size) = (c"tmpfs".as_ptr(), c"size=12k".as_ptr());
    // SAFETY: all arguments are NUL-terminated strings.
    alone && unsafe { libc::mount(tmpfs, dir.as_ptr(), tmpfs, 0, size.cast()) } == 0
}

#[test]
fn a_closed_descriptor_is_opened_again() {
    in_a_process(module_path!(), "a_closed_descriptor_is_opened_again", || {
        let (_dir, path) = scratch();
        let mut output = create(&path).unwrap();
        output.write_all(b"one").unwrap();
        // SAFETY: closes the number, as a host does that closes all it does not know; the
        // output is prepared for that.
        unsafe { libc::close(output.descriptor) };
        output.write_all(b"two").unwrap();
        output.write_all(b"three").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwothree");
        assert!(create(&path).is_err(), "and locked again");
    });
}

#[test]
fn a_reused_descriptor_is_neither_written_to_nor_closed() {
    in_a_process(module_path!(), "a_reused_descriptor_is_neither_written_to_nor_closed", || {
        let (dir, path) = scratch();
        let other = dir.path().join("host.log");
        let host = File::create(&other).unwrap();
        let mut output = create(&path).unwrap();
        output.write_all(b"one").unwrap();
        let number = output.descriptor;
        // SAFETY: dup2 takes numbers; the output is prepared for a descriptor that changes.
        assert_eq!(unsafe { libc::dup2(host.as_raw_fd(), number) }, number);
        output.write_all(b"two").unwrap();
        assert_ne!(output.descriptor, number);
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");

        // SAFETY: dup2 takes numbers, as before.
        unsafe { libc::dup2(host.as_raw_fd(), output.descriptor) };
        let second = output.descriptor;
        drop(output);
        assert_eq!(len(&other), 0);
        assert!([number, second].iter().all(|&fd| FileIdentity::of_descriptor(fd).is_some()));
    });
}

#[test]
fn a_lost_trace_that_changed_is_left_alone() {
    in_a_process(module_path!(), "a_lost_trace_that_changed_is_left_alone", || {
        type Change = fn(&Path);
        let changes: [(Change, &str); 3] = [
            (|path| std::fs::remove_file(path).unwrap(), "No such file"),
            (|path| std::fs::write(path, b"longer").unwrap(), "somebody else has written"),
            (
                |path| {
                    std::fs::rename(path, path.with_extension("old")).unwrap();
                    std::fs::write(path, b"one").unwrap();
                },
                "another file has its name",
            ),
        ];
        for (change, expected) in changes {
            let (_dir, path) = scratch();
            let mut output = create(&path).unwrap();
            output.write_all(b"one").unwrap();
            // SAFETY: closes the number, as a host does that closes all it does not know; the
            // output is prepared for that.
            unsafe { libc::close(output.descriptor) };
            change(&path);
            let error = output.write(b"two").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    });
}

#[test]
fn a_pipe_needs_a_reader_first() {
    let (_dir, path) = scratch();
    fifo(&path);
    let error = create(&path).unwrap_err().to_string();
    assert!(error.starts_with("nobody reads from "), "{error}");
}

#[test]
fn a_pipe_gets_every_byte_from_a_slow_reader() {
    let (_dir, path) = scratch();
    fifo(&path);
    let mut reader = reader(&path);
    let mut output = create(&path).unwrap();
    let worker = thread::start("heaptap-writer", move |_| {
        for i in 0..100_u8 {
            output.write_all(&[i; 10_000]).unwrap();
        }
    })
    .unwrap();
    let mut read = Vec::new();
    let mut part = [0; 7_777];
    while read.len() < 1_000_000 {
        match reader.read(&mut part) {
            Ok(len) => read.extend_from_slice(&part[..len]),
            Err(_) => std::thread::yield_now(),
        }
    }
    assert!((0..1_000_000).all(|i| usize::from(read[i]) == i / 10_000));
    assert!(matches!(worker.join(LONG), JoinOutcome::Done(())));
}

#[test]
fn a_stuck_reader_is_not_waited_for_forever() {
    let (_dir, path) = scratch();
    fifo(&path);
    let _reader = reader(&path);
    let mut output = create(&path).unwrap();
    output.patience = Duration::from_millis(50);
    let packet = vec![0; 10 << 20];
    assert_eq!(output.write(&packet).unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert!(output.write(b"more").unwrap_err().to_string().contains("middle of a packet"));
    assert_eq!(output.written(), 0);
}

/// With the default action of a C or OCaml host: SIGPIPE would kill.
#[test]
fn a_closed_pipe_is_an_error_and_does_not_kill_the_host() {
    in_a_process(module_path!(), "a_closed_pipe_is_an_error_and_does_not_kill_the_host", || {
        // SAFETY: SIG_DFL is a valid handler; undoes what Rust's start-up did.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (_dir, path) = scratch();
        fifo(&path);
        let reader = reader(&path);
        let mut output = create(&path).unwrap();
        drop(reader);
        on_a_worker(move || {
            assert_eq!(errno(output.write(b"packet")), Some(libc::EPIPE));
            assert_eq!(errno(output.write(b"packet")), Some(libc::EPIPE));
        });
    });
}

/// Who writes a file, by its record lock.
fn shown_writer(path: &Path) -> Option<libc::pid_t> {
    let file = File::open(path).unwrap();
    // SAFETY: `flock` consists of integers, for which zeros are a value.
    let mut asked: libc::flock = unsafe { core::mem::zeroed() };
    asked.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: F_GETLK reads and writes one `flock`, which is on this stack.
    let got = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut asked) };
    assert_eq!(got, 0);
    (asked.l_type != libc::F_UNLCK as libc::c_short).then_some(asked.l_pid)
}

/// Viewers ask for it: see `io/writing_process.rs` in `crates/cli`.
#[test]
fn others_see_that_the_file_is_being_written() {
    in_a_process(module_path!(), "others_see_that_the_file_is_being_written", || {
        let (_dir, path) = scratch();
        let writer = i32::try_from(std::process::id()).unwrap();
        let mut output = create(&path).unwrap();
        output.write_all(b"packet").unwrap();
        in_a_fork(|| assert_eq!(shown_writer(&path), Some(writer)));
        // A child is none, whatever it does with its copy of the descriptor.
        in_a_fork(|| in_a_fork(|| assert_eq!(shown_writer(&path), Some(writer))));
        // The host has closed the descriptor, and the trace is opened again.
        // SAFETY: close takes a number. The value checks that before it uses the descriptor.
        assert_eq!(unsafe { libc::close(output.descriptor) }, 0);
        in_a_fork(|| assert_eq!(shown_writer(&path), None));
        output.write_all(b"packet").unwrap();
        in_a_fork(|| assert_eq!(shown_writer(&path), Some(writer)));
        drop(output);
        in_a_fork(|| assert_eq!(shown_writer(&path), None));
    });
}

/// Of a file that was truncated while it was written, nothing is written behind a hole.
#[test]
fn a_file_that_was_truncated_is_begun_again() {
    let (_dir, path) = scratch();
    let mut output = create(&path).unwrap();
    output.write_all(b"first packet that is long").unwrap();
    assert!(!output.was_truncated());
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    output.write_all(b"second").unwrap();
    output.overwrite(2, b"!");
    assert_eq!(len(&path), 0, "written behind a hole");
    assert!(output.was_truncated());
    output.restart().unwrap();
    assert!(!output.was_truncated());
    output.write_all(b"third").unwrap();
    output.overwrite(0, b"T");
    assert_eq!(std::fs::read(&path).unwrap(), b"Third");
    assert_eq!(output.written(), 5);
    // Only a part of it is left.
    output.write_all(b"fourth").unwrap();
    File::options().write(true).open(&path).unwrap().set_len(6).unwrap();
    assert!(output.was_truncated());
    output.restart().unwrap();
    output.write_all(b"fifth").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"fifth");
}

/// Truncated between the look at its size and the write: the file is as long as it should be.
#[test]
fn a_hole_at_the_beginning_is_noticed() {
    let (_dir, path) = scratch();
    let mut output = create(&path).unwrap();
    output.write_all(b"packet").unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    file.set_len(6).unwrap();
    assert!(output.was_truncated());
    output.restart().unwrap();
    output.write_all(b"again").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"again");
}

#[test]
fn a_pipe_cannot_be_truncated() {
    let (_dir, path) = scratch();
    fifo(&path);
    let _reader = reader(&path);
    let mut output = create(&path).unwrap();
    output.write_all(b"packet").unwrap();
    assert!(!output.was_truncated());
}
