//! What kind of process this is, and whether and where something can be injected. Reads only.

use std::fs;
use std::io;

use crate::elf::{Image, Kind};
use crate::images::{Images, Start};
use crate::maps::{Maps, number};
use crate::memory::Memory;
use crate::process::{Process, name_of};
use crate::refusal::Refusal;
use crate::room::Room;
use crate::runtime::Runtime;
use crate::site::Target;
use crate::stub::Loader;

/// Looks at a process without touching it.
pub(crate) fn examine(pid: libc::pid_t) -> Result<Target, Refusal> {
    let process = look(pid)?;
    let memory = Memory::open(pid).map_err(|error| refused(pid, &process, &error))?;
    let maps = fs::read(format!("/proc/{pid}/maps")).map_err(|_| Refusal::Ended)?;
    let maps = Maps::parse(&maps);
    let start = Start::read(pid).ok_or(Refusal::Ended)?;
    if start.is_privileged {
        return Err(Refusal::Privileged);
    }
    let found = find(&memory, &maps, &start);
    // The memory of a program that ends meanwhile looks like that of a strange one.
    let is_there = fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| !maps.is_empty());
    let (runtime, loader, room) = if is_there { found? } else { return Err(Refusal::Ended) };
    Ok(Target { pid, process, memory, maps, runtime, loader, room })
}

/// All that is used of the program.
fn find(memory: &Memory, maps: &Maps, start: &Start) -> Result<(Runtime, Loader, Room), Refusal> {
    let images = Images::find(memory, maps, start).ok_or(Refusal::NotAmd64)?;
    if !images.program().is_some_and(Image::is_dynamic) {
        return Err(Refusal::Static);
    }
    let runtime = Runtime::find(memory, maps, &images)?;
    let loader = find_loader(memory, maps, &images)?;
    Ok((runtime, loader, Room::find(memory, maps, &images)))
}

/// Whether it is a program at all, and one that nobody else has in hand.
fn look(pid: libc::pid_t) -> Result<Process, Refusal> {
    let process = Process::read(pid).ok_or(Refusal::NoProcess)?;
    if pid as u32 == std::process::id() {
        return Err(Refusal::Myself);
    }
    if process.group != pid as u64 {
        return Err(Refusal::IsThread { process: process.group });
    }
    if process.is_kernel_thread {
        return Err(Refusal::KernelThread);
    }
    if process.is_zombie() {
        return Err(Refusal::Zombie);
    }
    let [real, effective, saved] = process.users;
    if real != effective || real != saved {
        return Err(Refusal::Privileged);
    }
    Ok(process)
}

/// Who traces a process, as a refusal; `None` if nobody does.
pub(crate) fn tracer(pid: libc::pid_t) -> Option<Refusal> {
    let tracer = Process::read(pid)?.tracer;
    (tracer != 0).then(|| Refusal::Traced { tracer, name: name_of(tracer) })
}

/// Why its memory could not be opened, or it could not be stopped.
pub(crate) fn refused(pid: libc::pid_t, process: &Process, error: &io::Error) -> Refusal {
    let is_denied = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    if !is_denied {
        // A process that ends has no memory any more, and there is nothing that could be written.
        let is_gone = error.raw_os_error() == Some(libc::ESRCH)
            || error.kind() == io::ErrorKind::WriteZero
            || Process::read(pid).is_none_or(|process| process.is_zombie());
        return if is_gone {
            Refusal::Ended
        } else {
            Refusal::CannotWrite { error: error.to_string() }
        };
    }
    let own_user = Process::read(std::process::id() as libc::pid_t);
    let scope = fs::read("/proc/sys/kernel/yama/ptrace_scope").ok();
    let [user, ..] = process.users;
    Refusal::NoRight {
        user,
        own_user: own_user.map_or(user, |own| own.users[1]),
        ptrace_scope: scope.and_then(|scope| number(scope.trim_ascii(), 10)),
    }
}

/// The functions of glibc 2.34 and later.
fn find_loader(memory: &Memory, maps: &Maps, images: &Images) -> Result<Loader, Refusal> {
    let library = images.library(b"libc.so.6").ok_or(Refusal::NotGlibc)?;
    let function = |name: &str| {
        let symbol = library.symbol(memory, name)?;
        (symbol.kind == Kind::Function && maps.is_code(symbol.address)).then_some(symbol.address)
    };
    let errno_location = function("__errno_location").ok_or(Refusal::NotGlibc)?;
    let of_loader = |name| function(name).ok_or(Refusal::OldGlibc);
    Ok(Loader {
        errno_location,
        dlopen: of_loader("dlopen")?,
        dlsym: of_loader("dlsym")?,
        dlerror: of_loader("dlerror")?,
    })
}
