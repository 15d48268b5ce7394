//! All threads of a process stand still, for a fraction of a millisecond.
//!
//! `PTRACE_SEIZE` and `PTRACE_INTERRUPT` (manual page `ptrace(2)`). Registers are read and never
//! written. A thread that is about to handle a signal says so before it stops: it is told to go
//! on with that signal, which keeps all that the kernel knows about it, and stops then.
//!
//! The kernel lets a tracer's threads go when the tracer ends, however it ends. So each stop has
//! a thread of its own, which also covers what cannot be let go by a call: a thread of the
//! program that has not stopped yet.
//!
//! Nothing here waits for the end of a process, whose parent may be the caller.

#![allow(unsafe_code, reason = "ptrace, waitid and setpriority")]

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// How long the only thread of a program may take to stop: on a busy machine it waits for a
/// processor.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for one of several, since the others stand still meanwhile.
const PATIENCE_WITH_MANY: Duration = Duration::from_millis(300);

/// The same for one that is in the kernel and cannot be interrupted: it waits for a disk, or for a
/// child to execute a program, and the others shall not wait for it.
const PATIENCE_WITH_KERNEL: Duration = Duration::from_millis(50);

/// More threads than any program of OCaml 4 has, one of which runs at a time.
const MOST_THREADS: usize = 10_000;

/// Why a process could not be stopped.
#[derive(Debug)]
pub(crate) enum NotStopped {
    /// It is gone.
    Gone,
    /// Somebody else traces it.
    Denied,
    /// Not in time.
    Late,
    /// The kernel says so.
    Failed(io::Error),
}

/// All threads of a process stand still as long as this exists.
pub(crate) struct Stopped {
    threads: Vec<libc::pid_t>,
    /// When the first of them was seen to stand still.
    begin: Option<Instant>,
}

/// Runs `work` while all threads of the process stand still. Also says for how long, from when the
/// first of them was seen to stand.
pub(crate) fn while_stopped<T: Send>(
    pid: libc::pid_t,
    work: impl FnOnce(&Stopped) -> T + Send,
) -> Result<(T, Duration), NotStopped> {
    let tracer = move || {
        hurry();
        let stopped = Stopped::stop(pid)?;
        let begin = stopped.begin.unwrap_or_else(Instant::now);
        let done = work(&stopped);
        // A thread that goes on may at once take the processor from this one.
        let duration = begin.elapsed();
        drop(stopped);
        Ok((done, duration))
    };
    std::thread::scope(|scope| {
        let tracer = std::thread::Builder::new().spawn_scoped(scope, tracer);
        let tracer = tracer.map_err(NotStopped::Failed)?;
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Asks for the processor before others, for this thread, which soon ends: the program stands still
/// as long as this thread waits for one.
fn hurry() {
    // Not every user may do so; then it takes longer on a busy machine.
    // SAFETY: the call takes numbers; 0 is the calling thread.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

impl Stopped {
    fn stop(pid: libc::pid_t) -> Result<Stopped, NotStopped> {
        let asked = Instant::now();
        let mut stopped = Stopped { threads: Vec::new(), begin: None };
        // Threads may begin others until all of them stand still.
        loop {
            let new: Vec<libc::pid_t> =
                list(pid)?.into_iter().filter(|tid| !stopped.threads.contains(tid)).collect();
            let mut seized = Vec::with_capacity(new.len());
            for tid in new {
                if seize(tid)? {
                    seized.push(tid);
                }
            }
            if seized.is_empty() {
                break;
            }
            let is_only = stopped.threads.is_empty() && seized.len() == 1;
            let patience = if is_only { PATIENCE } else { PATIENCE_WITH_MANY };
            for tid in seized {
                if wait_for_stop(tid, asked, patience)? {
                    stopped.begin.get_or_insert_with(Instant::now);
                    stopped.threads.push(tid);
                }
            }
        }
        if stopped.threads.is_empty() { Err(NotStopped::Gone) } else { Ok(stopped) }
    }

    /// The registers of each thread; `None` if a thread was killed meanwhile.
    pub(crate) fn registers(&self) -> Option<Vec<libc::user_regs_struct>> {
        self.threads.iter().map(|&tid| registers(tid)).collect()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for &tid in &self.threads {
            // Fails if the thread was killed, and then there is nothing to let go.
            let _ = request(libc::PTRACE_DETACH, tid, 0);
        }
    }
}

/// The threads of a process.
fn list(pid: libc::pid_t) -> Result<Vec<libc::pid_t>, NotStopped> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| NotStopped::Gone)?;
    let names = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok());
    let threads: Vec<libc::pid_t> = names.take(MOST_THREADS + 1).collect();
    if threads.len() > MOST_THREADS { Err(NotStopped::Late) } else { Ok(threads) }
}

/// Asks a thread to stop. False if it is gone.
fn seize(tid: libc::pid_t) -> Result<bool, NotStopped> {
    let asked =
        request(libc::PTRACE_SEIZE, tid, 0).and_then(|()| request(libc::PTRACE_INTERRUPT, tid, 0));
    match asked {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
        // A thread that is ending cannot be traced either.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            if is_ending(tid) {
                Ok(false)
            } else {
                Err(NotStopped::Denied)
            }
        }
        Err(error) => Err(NotStopped::Failed(error)),
    }
}

/// Waits until a thread stands still. False if it is gone.
fn wait_for_stop(tid: libc::pid_t, asked: Instant, patience: Duration) -> Result<bool, NotStopped> {
    let mut looks = 0_u32;
    loop {
        match take_stop(tid).map_err(NotStopped::Failed)? {
            Some(Stop::Still) => return Ok(true),
            Some(Stop::BeforeSignal(signal)) => {
                // Fails if the thread was killed, which the next look shows.
                let _ = request(libc::PTRACE_CONT, tid, signal as usize);
                continue;
            }
            None => {}
        }
        let patience = match state(tid) {
            None | Some(b'Z' | b'X') => return Ok(false),
            Some(b'D') => PATIENCE_WITH_KERNEL,
            Some(_) => patience,
        };
        if asked.elapsed() > patience {
            return Err(NotStopped::Late);
        }
        looks += 1;
        if looks < 100 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// How a thread stopped.
enum Stop {
    /// As it was asked, or because the whole process is stopped (`SIGSTOP`).
    Still,
    /// It is about to handle this signal.
    BeforeSignal(i32),
}

/// Whether the thread has stopped since the last look. Does not take the end of a process, which
/// its parent waits for.
fn take_stop(tid: libc::pid_t) -> io::Result<Option<Stop>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WSTOPPED | libc::WNOHANG | libc::__WALL;
    // SAFETY: `info` is a `siginfo_t` that the call may fill.
    let done = unsafe { libc::waitid(libc::P_PID, tid as libc::id_t, info.as_mut_ptr(), options) };
    if done != 0 {
        let error = io::Error::last_os_error();
        // The thread is gone, as its state will say.
        let gone = error.raw_os_error() == Some(libc::ECHILD);
        return if gone { Ok(None) } else { Err(error) };
    }
    // SAFETY: all zero is a value of the type, and the call may have filled it.
    let info = unsafe { info.assume_init() };
    // SAFETY: zero, or filled by `waitid`, which sets this member.
    if unsafe { info.si_pid() } != tid {
        return Ok(None);
    }
    // SAFETY: filled by `waitid`, which sets this member.
    let status = unsafe { info.si_status() };
    let (signal, event) = (status & 0xff, status >> 8);
    Ok(Some(if event == libc::PTRACE_EVENT_STOP {
        Stop::Still
    } else {
        Stop::BeforeSignal(signal)
    }))
}

/// Whether a thread is gone, or about to be.
fn is_ending(tid: libc::pid_t) -> bool {
    matches!(state(tid), None | Some(b'Z' | b'X'))
}

/// The state of a thread (third field of `/proc/TID/stat`). `None` if it is gone.
fn state(tid: libc::pid_t) -> Option<u8> {
    let stat = fs::read(format!("/proc/{tid}/stat")).ok()?;
    let name = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(name + 2).copied()
}

fn registers(tid: libc::pid_t) -> Option<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    let into = registers.as_mut_ptr();
    // SAFETY: the call fills `registers`, which is what it wants.
    let done = unsafe {
        libc::ptrace(libc::PTRACE_GETREGS, tid, std::ptr::null_mut::<libc::c_void>(), into)
    };
    // SAFETY: all zero is a value of the type, and the call may have filled it.
    (done == 0).then(|| unsafe { registers.assume_init() })
}

/// A request of `ptrace` that writes nothing here.
fn request(request: libc::c_uint, tid: libc::pid_t, data: usize) -> io::Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the requests that are made take a number, and no pointer.
    let done = unsafe { libc::ptrace(request, tid, none, data) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
