//! Why a library was not loaded, in words for the person who asked.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How to have a program traced that cannot be attached to.
const REMEDY: &str = "start it with HEAPTAP_LISTEN=1 and the library loaded, or by `heaptap run`";

/// Why nothing was done. The program is as it was before, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no process of that number.
    NoProcess,
    /// It ended, or became another program, before the library was called.
    Ended,
    /// It is dead and waits for its parent.
    Zombie,
    /// A thread of the kernel.
    KernelThread,
    /// This process itself.
    Myself,
    /// The number is that of a thread of this process.
    IsThread {
        /// The process.
        process: u64,
    },
    /// It may not be traced by us.
    NoRight {
        /// The user it runs as.
        user: u64,
        /// The user we run as.
        own_user: u64,
        /// `/proc/sys/kernel/yama/ptrace_scope`, if the kernel has it.
        ptrace_scope: Option<u64>,
    },
    /// It has, or had at its start, rights that its user has not.
    Privileged,
    /// Another process traces it.
    Traced {
        /// Its number; 0 if it is in another namespace.
        tracer: u64,
        /// Its name.
        name: Option<String>,
    },
    /// Another attach is under way.
    Busy {
        /// The process that attaches, in its own namespace.
        attacher: u64,
    },
    /// An attach has begun to load its library and has not finished.
    Unfinished,
    /// Not a 64-bit program for amd64.
    NotAmd64,
    /// Statically linked, so that nothing can be loaded.
    Static,
    /// A C library other than glibc.
    NotGlibc,
    /// glibc before 2.34, whose `dlopen` is in a library of its own.
    OldGlibc,
    /// No runtime of OCaml that exports its functions.
    NotOcaml,
    /// OCaml 5.
    Ocaml5,
    /// OCaml before 4.12.
    OldOcaml,
    /// The runtime is not as those of OCaml 4.12 to 4.14 are.
    UnknownLayout {
        /// What is different.
        what: &'static str,
    },
    /// The runtime has not begun to run OCaml code.
    NotStarted,
    /// The program uses `Gc.Memprof`.
    MemprofInUse,
    /// There is no space for what has to be written.
    NoRoom {
        /// Whether it is the strings that are too long, not the code.
        strings: bool,
    },
    /// The kernel does not let us write.
    CannotWrite {
        /// What it says.
        error: String,
    },
    /// A thread does not stop.
    DoesNotStop,
    /// The path of the library, its entry or the argument cannot be passed on.
    BadString {
        /// Which.
        what: &'static str,
    },
    /// The library cannot be read, or not be copied to where the program finds it.
    NoLibrary {
        /// Where it is, or should be copied.
        path: PathBuf,
        /// What the system says.
        error: String,
    },
    /// The program's own file system cannot be reached.
    NoNamespace {
        /// What the system says.
        error: String,
    },
    /// The program did not allocate; what was prepared was taken back.
    Asleep {
        /// How long we waited.
        waited: Duration,
    },
    /// The program has begun to load the library and goes on doing so.
    StillRunning {
        /// How long we waited.
        waited: Duration,
    },
    /// The program could not load the library.
    NotLoaded {
        /// What its loader says.
        message: String,
    },
    /// The library has no such entry.
    NoEntry {
        /// What its loader says.
        message: String,
    },
    /// The program had no memory for a stack.
    NoMemory,
}

impl Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoProcess => f.write_str("there is no such process"),
            Refusal::Ended => {
                f.write_str("the process ended or executed another program: look for its successor")
            }
            Refusal::Zombie => f.write_str("the process has ended and waits for its parent"),
            Refusal::KernelThread => f.write_str("this is a thread of the kernel, not a program"),
            Refusal::Myself => f.write_str("this is the process that attaches: give another one"),
            Refusal::IsThread { process } => {
                write!(f, "this is a thread: attach to its process, {process}")
            }
            Refusal::NoRight { user, own_user, ptrace_scope } => {
                f.write_str("no right to trace the process: ")?;
                no_right(f, *user, *own_user, *ptrace_scope)
            }
            Refusal::Privileged => write!(
                f,
                "the program has rights that its user has not (setuid, setgid or capabilities), \
                 and no library is put into such a process: run it without them"
            ),
            Refusal::Traced { tracer, name } => traced(f, *tracer, name.as_deref()),
            Refusal::Busy { attacher } => {
                write!(f, "another attach is under way (process {attacher}): try again later")
            }
            Refusal::Unfinished => f.write_str(
                "an earlier attach is still loading its library in the program: try again later",
            ),
            Refusal::NotAmd64 => {
                f.write_str("the program is not a 64-bit program for amd64, the only one supported")
            }
            Refusal::Static => write!(
                f,
                "the program is statically linked, so no library can be loaded: link it with \
                 heaptap's object file"
            ),
            Refusal::NotGlibc => {
                f.write_str("the program's C library is not glibc, the only one supported")
            }
            Refusal::OldGlibc => {
                write!(f, "the program's glibc is older than 2.34: {REMEDY}")
            }
            Refusal::NotOcaml => f.write_str(
                "no OCaml runtime with visible symbols is in the process: give the program itself, \
                 not a shell around it; if it was linked without -Wl,-E, link it again",
            ),
            Refusal::Ocaml5 => {
                write!(f, "a running program of OCaml 5 cannot be attached to: {REMEDY}")
            }
            Refusal::OldOcaml => {
                f.write_str("the program's OCaml is older than 4.12, the first one supported")
            }
            Refusal::UnknownLayout { what } => write!(
                f,
                "the program's OCaml runtime is not one that is known to 4.12 to 4.14 ({what}): {REMEDY}"
            ),
            Refusal::NotStarted => {
                f.write_str("the OCaml runtime has not started yet: try again in a moment")
            }
            Refusal::MemprofInUse => f.write_str(
                "the program profiles itself with Gc.Memprof: stop that (MEMTRACE in its \
                 environment?) and try again",
            ),
            Refusal::NoRoom { strings: true } => f.write_str(
                "there is no space for the library's path and the command in the program: use \
                 shorter paths",
            ),
            Refusal::NoRoom { strings: false } => {
                write!(f, "there is no unused space behind the program or its C library: {REMEDY}")
            }
            Refusal::CannotWrite { error } => write!(
                f,
                "the kernel does not let the program's memory be written ({error}): see \
                 proc_mem.force_override; or {REMEDY}"
            ),
            Refusal::DoesNotStop => f.write_str(
                "a thread of the program does not stop (it waits for a disk or a child?): try again",
            ),
            Refusal::BadString { what } => {
                write!(f, "{what} cannot be passed on: it is too long, not absolute or holds a NUL")
            }
            Refusal::NoLibrary { path, error } => {
                write!(f, "cannot give the program the library {}: {error}", path.display())
            }
            Refusal::NoNamespace { error } => write!(
                f,
                "the program runs in another mount namespace, which cannot be reached ({error}): \
                 attach from inside its container"
            ),
            Refusal::Asleep { waited } => write!(
                f,
                "the program did not allocate for {:.0} s, so nothing was done and everything \
                 was taken back: give it work, or try with a longer timeout",
                waited.as_secs_f64()
            ),
            Refusal::StillRunning { waited } => write!(
                f,
                "the program has begun to load the library and has not finished after {:.0} s: \
                 it cannot be interrupted there; look whether it is stopped or its disk is slow",
                waited.as_secs_f64()
            ),
            Refusal::NotLoaded { message } => {
                write!(f, "the program could not load the library: {message}")
            }
            Refusal::NoEntry { message } => {
                write!(f, "the library has no such entry; is it heaptap's, and this version? {message}")
            }
            Refusal::NoMemory => f.write_str("the program could not map memory for a stack"),
        }
    }
}

/// What to do about a missing right.
fn no_right(
    f: &mut fmt::Formatter<'_>,
    user: u64,
    own_user: u64,
    scope: Option<u64>,
) -> fmt::Result {
    if own_user != 0 && user != own_user {
        return write!(f, "it runs as user {user}, we as {own_user}; be that user, or root");
    }
    match scope {
        Some(scope @ 1..) => write!(
            f,
            "kernel.yama.ptrace_scope is {scope}; use sudo (CAP_SYS_PTRACE){}",
            if scope == 3 { ", or boot with another value" } else { ", or set it to 0" }
        ),
        _ => f.write_str(
            "CAP_SYS_PTRACE is needed; in a container, start it with --cap-add=SYS_PTRACE and a \
             seccomp profile that allows ptrace; a program that made itself undumpable needs root",
        ),
    }
}

fn traced(f: &mut fmt::Formatter<'_>, tracer: u64, name: Option<&str>) -> fmt::Result {
    f.write_str("the process is traced by another one")?;
    if tracer != 0 {
        write!(f, ", {tracer}")?;
    }
    if let Some(name) = name {
        write!(f, " ({name})")?;
    }
    f.write_str(": end that (a debugger, strace, another attach), then try again")
}
