//! After an internal failure a host gets a status, and no more samples are taken.
//!
//! Each test runs in its own process, because a process has one tracer.

#![allow(unsafe_code, reason = "calls the C ABI")]

use std::ffi::{CString, c_void};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

use heaptap::abi::*;

/// Runs a test of this file again, in its own process.
fn in_a_process(test: &str, body: impl FnOnce()) {
    if std::env::var_os("HEAPTAP_TEST_INSIDE").is_some() {
        return body();
    }
    let this = std::env::current_exe().expect("the test's own name");
    let output = Command::new(this)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("HEAPTAP_TEST_INSIDE", "1")
        .output()
        .expect("running the test");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {}\n{errors}", output.status);
}

/// The smallest host: a young heap of one page.
struct Host {
    tracer: *mut heaptap_tracer,
    mutator: *mut heaptap_mutator,
    heap: Vec<usize>,
    used: usize,
    limit: *mut c_void,
}

unsafe extern "C-unwind" fn walk(_: *mut c_void, codes: *mut u64, _: usize) -> usize {
    // SAFETY: heaptap passes room for at least one code.
    unsafe { codes.write(4242) };
    1
}

unsafe extern "C-unwind" fn walk_into_a_panic(_: *mut c_void, _: *mut u64, _: usize) -> usize {
    panic!("a panic on purpose");
}

/// Starts a tracer of one mutator at rate 1.
fn start(file: &Path) -> (heaptap_status, *mut heaptap_tracer) {
    let file = CString::new(file.as_os_str().as_bytes()).expect("no NUL");
    let options = heaptap_options {
        size: size_of::<heaptap_options>(),
        file: file.as_ptr(),
        rate: 1.0,
        max_mutators: 1,
        // SAFETY: zero is a valid value of every field.
        ..unsafe { std::mem::zeroed() }
    };
    let mut tracer = ptr::null_mut();
    // SAFETY: the options and the result are local variables.
    let status = unsafe { heaptap_tracer_start(&options, &mut tracer) };
    (status, tracer)
}

impl Host {
    fn start(file: &Path, walk: heaptap_walk_fn) -> Host {
        let (status, tracer) = start(file);
        assert_eq!(status, HEAPTAP_STATUS_OK);
        let options = heaptap_mutator_options {
            size: size_of::<heaptap_mutator_options>(),
            walk,
            // SAFETY: zero is a valid value of every field.
            ..unsafe { std::mem::zeroed() }
        };
        let mut mutator = ptr::null_mut();
        // SAFETY: the tracer is a handle, the rest are local variables.
        let started = unsafe { heaptap_mutator_start(tracer, &options, &mut mutator) };
        assert_eq!(started, HEAPTAP_STATUS_OK);
        let mut host =
            Host { tracer, mutator, heap: vec![0; 512], used: 0, limit: ptr::null_mut() };
        host.empty();
        host
    }

    fn young_start(&mut self) -> *mut c_void {
        self.heap.as_mut_ptr().cast()
    }

    fn young_ptr(&mut self) -> *mut c_void {
        let end = self.heap.len() - self.used;
        self.heap.as_mut_ptr_range().start.wrapping_add(end).cast()
    }

    /// A minor collection in which everything dies.
    fn empty(&mut self) {
        unsafe extern "C-unwind" fn dead(_: *mut c_void, _: *mut *mut c_void) -> heaptap_fate {
            HEAPTAP_FATE_DEAD
        }
        self.used = 0;
        let (pointer, start) = (self.young_ptr(), self.young_start());
        // SAFETY: the mutator is used by this thread only.
        unsafe { heaptap_young_sweep(self.mutator, Some(dead), ptr::null_mut()) };
        // SAFETY: the mutator is used by this thread only, the heap is its own.
        let renewed = unsafe { heaptap_young_renew(self.mutator, pointer, start, &mut self.limit) };
        assert_eq!(renewed, HEAPTAP_STATUS_OK);
    }

    /// Allocates two words. Returns the hook's status if the hook was called.
    fn alloc(&mut self) -> Option<heaptap_status> {
        if self.used + 2 > self.heap.len() {
            self.empty();
        }
        self.used += 2;
        let pointer = self.young_ptr();
        if pointer >= self.limit {
            return None;
        }
        // SAFETY: the mutator is used by this thread only, the block is in its heap.
        Some(unsafe { heaptap_young_hit(self.mutator, pointer, &2, 1, &mut self.limit) })
    }

    fn state(&self) -> heaptap_status {
        let mut stats =
            heaptap_stats { size: size_of::<heaptap_stats>(), ..heaptap_stats::default() };
        // SAFETY: the tracer is a handle, `stats` has the size that it starts with.
        let asked = unsafe { heaptap_tracer_stats(self.tracer, &mut stats) };
        assert_eq!(asked, HEAPTAP_STATUS_OK);
        stats.state
    }

    /// Asserts that nothing is sampled any more, in any heap, and no hook is called.
    fn assert_quiet(&mut self) {
        // The limit may still be the old one: the next hit resets it.
        self.alloc();
        for _ in 0..10_000 {
            assert_eq!(self.alloc(), None);
            let start = self.young_start();
            assert_eq!(self.limit, start);
        }
        // SAFETY: the mutator is used by this thread only.
        let hit = unsafe { heaptap_major_hit(self.mutator, ptr::null_mut(), 1) };
        assert_eq!(hit, HEAPTAP_STATUS_OK);
        // SAFETY: the first field of the mutator, as the header declares it.
        let until_sample = unsafe { self.mutator.cast::<isize>().read() };
        assert_eq!(until_sample, isize::MAX);
    }
}

#[test]
fn a_panic_is_a_status_and_turns_tracing_off() {
    in_a_process("a_panic_is_a_status_and_turns_tracing_off", || {
        let dir = tempfile::tempdir().expect("a directory");
        let mut host = Host::start(&dir.path().join("trace.ctf"), Some(walk_into_a_panic));
        assert_eq!(host.alloc(), Some(HEAPTAP_STATUS_PANIC));
        assert_eq!(host.state(), HEAPTAP_STATUS_PANIC);
        host.assert_quiet();
        // SAFETY: the tracer is a handle.
        assert_eq!(unsafe { heaptap_tracer_flush(host.tracer) }, HEAPTAP_STATUS_OFF);
        // SAFETY: the tracer is a handle.
        assert_eq!(unsafe { heaptap_tracer_stop(host.tracer) }, HEAPTAP_STATUS_OFF);
    });
}

#[test]
fn after_a_failed_write_nothing_is_sampled() {
    in_a_process("after_a_failed_write_nothing_is_sampled", || {
        let dir = tempfile::tempdir().expect("a directory");
        let fifo = dir.path().join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success());
        // A reader that closes the pipe after the first bytes.
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || {
                let mut first = [0; 64];
                std::fs::File::open(fifo).expect("the fifo").read_exact(&mut first).expect("bytes");
            }
        });
        std::thread::sleep(Duration::from_millis(100));
        let mut host = Host::start(&fifo, Some(walk));
        reader.join().expect("the reader");
        let start = Instant::now();
        while host.state() == HEAPTAP_STATUS_OK {
            host.alloc();
            assert!(start.elapsed() < Duration::from_secs(30), "the failure goes unnoticed");
        }
        assert_eq!(host.state(), HEAPTAP_STATUS_FILE);
        host.assert_quiet();
    });
}

#[test]
fn after_a_stop_nothing_is_sampled() {
    in_a_process("after_a_stop_nothing_is_sampled", || {
        let dir = tempfile::tempdir().expect("a directory");
        let mut host = Host::start(&dir.path().join("trace.ctf"), Some(walk));
        for _ in 0..1000 {
            assert_eq!(host.alloc(), Some(HEAPTAP_STATUS_OK));
        }
        // SAFETY: the tracer is a handle.
        assert_eq!(unsafe { heaptap_tracer_stop(host.tracer) }, HEAPTAP_STATUS_OK);
        host.assert_quiet();
    });
}

/// The first packet is written by the thread that starts the tracer. SIGXFSZ would kill it.
#[test]
fn a_file_size_limit_of_0_is_a_status_and_not_a_signal() {
    in_a_process("a_file_size_limit_of_0_is_a_status_and_not_a_signal", || {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("trace.ctf");
        let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: setrlimit reads one `rlimit`, which is on this stack.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
        let (status, tracer) = start(&file);
        assert_eq!(status, HEAPTAP_STATUS_FILE);
        assert!(tracer.is_null());
    });
}
