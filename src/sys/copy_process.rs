//! A copy of this process that nobody but us notices.
//!
//! `fork` runs the program's at-fork handlers, and its child is seen by the program's
//! `wait` and SIGCHLD handler. A raw `clone` with exit signal 0 has neither effect: only
//! `waitpid` with `__WALL` finds the child (clone(2)). Pages are shared until one of the
//! two processes writes to them.
//!
//! The copy has one thread, the calling one. Locks that other threads held stay locked in
//! it for ever, so it makes system calls and calls nothing of the C library that locks or
//! allocates. All signals of the program are blocked in it: no handler of the program runs, and
//! a fault ends it. It ends when the process ends that it was made of.
#![allow(unsafe_code, reason = "makes system calls")]

use core::ffi::{c_int, c_long, c_ulong};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::time::Instant;

use super::errno;

/// The kernel's signal set.
type SignalSet = u64;

/// Copies this process and calls `work` in the copy, which ends with what `work` returns as its
/// exit status. Returns the copy's process id, or the error number of `clone`.
///
/// # Safety
/// `work` neither allocates nor takes a lock, and touches only memory, not what other
/// threads would have to do for it.
pub(crate) unsafe fn run_in_copy(work: impl FnOnce() -> u8) -> Result<i32, i32> {
    let original = std::process::id();
    let mask = set_signal_mask(SignalSet::MAX);
    // SAFETY: `clone` without flags and with no new stack copies the process, as `fork`
    // does. The child goes on here, on a copy of this stack.
    let copied = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    if copied == 0 {
        let _never_returns = ExitOnUnwind;
        end_with(original);
        exit_group(work());
    }
    let error = errno::get();
    set_signal_mask(mask);
    i32::try_from(copied).ok().filter(|&pid| pid > 0).ok_or(error)
}

/// The process that this one is a copy of. In the copy only.
static ORIGINAL: AtomicU32 = AtomicU32::new(0);

/// Has the copy end soon after the process that it was made of: nobody would take its result. In
/// the copy only.
///
/// A signal at the end of its parent (`PR_SET_PDEATHSIG`) would come when the thread that has made
/// the copy ends, and a pipe would stay open in children of the program. So a timer looks at
/// the parent's id.
fn end_with(original: u32) {
    const PERIOD: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
    ORIGINAL.store(original, Ordering::Relaxed);
    // SAFETY: zeros are a valid `sigaction`: no flags, and no signal in its mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = look_for_original as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler takes the signal's number only and is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGALRM, &raw const action, core::ptr::null_mut()) };
    set_signal_mask(SignalSet::MAX & !(1 << (libc::SIGALRM - 1)));
    let timer = libc::itimerval { it_interval: PERIOD, it_value: PERIOD };
    // SAFETY: the kernel reads the structure; NULL means that the old timer is not wanted.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, core::ptr::null_mut()) };
}

extern "C" fn look_for_original(_signal: c_int) {
    // SAFETY: takes no arguments and cannot fail.
    let parent = unsafe { libc::getppid() };
    if u32::try_from(parent) != Ok(ORIGINAL.load(Ordering::Relaxed)) {
        exit_group(ORPHANED);
    }
}

/// The exit status of a copy whose original has ended.
const ORPHANED: u8 = 71;

/// Ends the copy if `work` unwinds: it must never go on with the program's code.
struct ExitOnUnwind;

impl Drop for ExitOnUnwind {
    fn drop(&mut self) {
        exit_group(UNWOUND);
    }
}

/// The exit status of a copy whose work has unwound.
const UNWOUND: u8 = 70;

fn exit_group(status: u8) -> ! {
    loop {
        // SAFETY: takes one integer and ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, c_long::from(status)) };
    }
}

/// Sets the calling thread's mask, also of the signals that the C library reserves for
/// itself. Returns the mask before.
fn set_signal_mask(mask: SignalSet) -> SignalSet {
    let mut before: SignalSet = 0;
    // SAFETY: the kernel reads and writes sets of 8 bytes, which both are.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            size_of::<SignalSet>(),
        )
    };
    before
}

/// Makes the copy harmless: it leaves the process group, so that signals from the terminal
/// do not reach it, closes every descriptor but `kept`, so that pipes and sockets of the
/// program end when the program closes them, steps back behind other processes, and is the
/// first to be killed when memory is short. In the copy only.
pub(crate) fn step_aside(kept: c_int) {
    const KILLED_FIRST: &[u8] = b"1000";
    // SAFETY: takes numbers only.
    unsafe { libc::setpgid(0, 0) };
    close_all_but(kept);
    // SAFETY: the name is a C string of less than 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"heaptap-copy".as_ptr()) };
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel reads the structure.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) };
    // SAFETY: takes numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
    let path = c"/proc/self/oom_score_adj".as_ptr();
    // SAFETY: the path is a C string.
    let file = unsafe { libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC) };
    if file >= 0 {
        // SAFETY: the bytes are there, and `open` has returned the descriptor.
        unsafe { libc::write(file, KILLED_FIRST.as_ptr().cast(), KILLED_FIRST.len()) };
        // SAFETY: `open` has returned the descriptor.
        unsafe { libc::close(file) };
    }
}

fn close_all_but(kept: c_int) {
    let Ok(kept) = u32::try_from(kept) else { return };
    if !close_range(kept + 1, u32::MAX) {
        // Linux before 5.9. Most programs have fewer descriptors.
        (kept + 1..4096).for_each(close);
        (0..kept).for_each(close);
    } else if kept > 0 {
        close_range(0, kept - 1);
    }
}

fn close_range(first: u32, last: u32) -> bool {
    let (first, last) = (c_ulong::from(first), c_ulong::from(last));
    // SAFETY: takes numbers only, and the copy needs no other descriptor.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
}

fn close(descriptor: u32) {
    // SAFETY: takes a number only, and the copy needs no other descriptor.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// How a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyEnd {
    /// With this exit status.
    Status(u8),
    /// By this signal.
    Signal(i32),
    /// It is unknown: somebody else has waited for it.
    Unknown,
}

/// Waits until the copy has ended, and kills it after `longest` or once `gives_up` returns true.
pub(crate) fn wait_for(pid: i32, longest: Duration, gives_up: impl Fn() -> bool) -> CopyEnd {
    const FIRST_SLEEP: Duration = Duration::from_micros(200);
    const LONGEST_SLEEP: Duration = Duration::from_millis(20);
    let start = Instant::now();
    let (mut sleep, mut killed) = (FIRST_SLEEP, false);
    loop {
        let mut status = 0;
        let flags = libc::__WALL | if killed { 0 } else { libc::WNOHANG };
        // SAFETY: the kernel writes the status.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, flags) };
        if waited == pid {
            return end_of(status);
        }
        if waited < 0 && errno::get() != libc::EINTR {
            return CopyEnd::Unknown;
        }
        if start.elapsed() > longest || gives_up() {
            // SAFETY: our child, which nobody has waited for, so the id is still its.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            killed = true;
        } else {
            std::thread::sleep(sleep);
            sleep = (2 * sleep).min(LONGEST_SLEEP);
        }
    }
}

fn end_of(status: c_int) -> CopyEnd {
    if libc::WIFEXITED(status) {
        CopyEnd::Status(libc::WEXITSTATUS(status) as u8)
    } else {
        CopyEnd::Signal(libc::WTERMSIG(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_copy_is_invisible_to_wait_and_reports_its_end() {
        crate::sys::testing::in_a_process(
            module_path!(),
            "a_copy_is_invisible_to_wait_and_reports_its_end",
            || {
                // SAFETY: the work does nothing.
                let pid = unsafe { run_in_copy(|| 7) }.unwrap();
                let mut status = 0;
                // SAFETY: the kernel writes the status.
                let waited = unsafe { libc::waitpid(-1, &raw mut status, 0) };
                assert_eq!((waited, errno::get()), (-1, libc::ECHILD));
                assert_eq!(wait_for(pid, LONG, || false), CopyEnd::Status(7));
                assert_eq!(wait_for(pid, LONG, || false), CopyEnd::Unknown);
            },
        );
    }

    #[test]
    fn a_copy_whose_work_unwinds_ends() {
        crate::sys::testing::in_a_process(module_path!(), "a_copy_whose_work_unwinds_ends", || {
            // SAFETY: no other thread of this process holds a lock that the panic needs.
            let pid = unsafe { run_in_copy(|| std::panic::resume_unwind(Box::new(()))) };
            assert_eq!(wait_for(pid.unwrap(), LONG, || false), CopyEnd::Status(UNWOUND));
        });
    }

    #[test]
    fn a_copy_that_faults_or_hangs_is_killed() {
        crate::sys::testing::in_a_process(
            module_path!(),
            "a_copy_that_faults_or_hangs_is_killed",
            || {
                let fault = || {
                    step_aside(2);
                    // SAFETY: there is nothing at this address: the fault is wanted.
                    unsafe { core::ptr::without_provenance::<u8>(8).read_volatile() }
                };
                // SAFETY: the work makes system calls only.
                let pid = unsafe { run_in_copy(fault) }.unwrap();
                assert_eq!(wait_for(pid, LONG, || false), CopyEnd::Signal(libc::SIGSEGV));
                let hang = || loop {
                    // SAFETY: takes nothing.
                    unsafe { libc::pause() };
                };
                // SAFETY: the work makes system calls only.
                let pid = unsafe { run_in_copy(hang) }.unwrap();
                let end = wait_for(pid, Duration::from_millis(20), || false);
                assert_eq!(end, CopyEnd::Signal(libc::SIGKILL));
                // SAFETY: the work makes system calls only.
                let pid = unsafe { run_in_copy(hang) }.unwrap();
                assert_eq!(wait_for(pid, LONG, || true), CopyEnd::Signal(libc::SIGKILL));
            },
        );
    }

    #[test]
    fn only_one_descriptor_stays_open_in_the_copy() {
        crate::sys::testing::in_a_process(
            module_path!(),
            "only_one_descriptor_stays_open_in_the_copy",
            || {
                let mut pipe = [0; 2];
                // SAFETY: the kernel writes two descriptors.
                assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
                let work = || {
                    step_aside(pipe[1]);
                    // SAFETY: takes numbers only.
                    let is_open = |fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
                    u8::from(is_open(pipe[1])) + 2 * u8::from((0..pipe[1]).any(is_open))
                };
                // SAFETY: the work makes system calls only.
                let pid = unsafe { run_in_copy(work) }.unwrap();
                assert_eq!(wait_for(pid, LONG, || false), CopyEnd::Status(1));
            },
        );
    }

    #[test]
    fn a_copy_ends_with_the_process_that_it_was_made_of() {
        let test = "a_copy_ends_with_the_process_that_it_was_made_of";
        crate::sys::testing::in_a_process(module_path!(), test, || {
            let mut pipe = [0; 2];
            // SAFETY: the kernel writes two descriptors.
            assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
            let [read, write] = pipe;
            crate::sys::testing::in_a_fork(move || {
                let hang = || {
                    step_aside(write);
                    loop {
                        // SAFETY: takes nothing.
                        unsafe { libc::pause() };
                    }
                };
                // SAFETY: the work makes system calls only.
                unsafe { run_in_copy(hang) }.unwrap();
            });
            // SAFETY: takes a number only; the copy has its own.
            unsafe { libc::close(write) };
            let mut ended = libc::pollfd { fd: read, events: libc::POLLIN, revents: 0 };
            // SAFETY: poll reads and writes one `pollfd`.
            assert_eq!(unsafe { libc::poll(&raw mut ended, 1, 20_000) }, 1, "the copy is there");
        });
    }
}
