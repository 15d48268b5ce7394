//! Starts what the settings ask for, and ends it: at exit and in forked children.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heaptap_settings::Trigger;

use super::process::{self, Process, RuntimeSupport};
use super::settings::Settings;
use super::{socket, trigger};
use crate::sys::listener::Listener;
use crate::tracer::{self, Failure, say};

/// The longest wait at exit for commands that are being carried out.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Starts taking commands and snapshots, as far as the settings ask for them. Only the first
/// call in a process has an effect.
///
/// Call it after a session has started: handlers for exit run in reverse order, and a
/// snapshot at exit is to be taken before the trace ends.
pub(crate) fn start(settings: &Settings, support: RuntimeSupport) {
    let Some(process) = process::record(settings, support) else { return };
    if !settings.is_active() {
        return;
    }
    register_handlers();
    if settings.listen {
        socket::start(process);
    }
    trigger::start(process);
}

/// The settings of a host that links this library. A value that is not accepted is reported to
/// the user.
pub(crate) fn settings_of_host() -> Result<Settings, Failure> {
    Settings::from_environment().map_err(|invalid| {
        say(format_args!("{invalid}: correct or unset it; not tracing"));
        Failure::Option
    })
}

/// [`start`] for a host that links this library.
pub(crate) fn start_for_host(settings: &Settings) {
    if settings.is_active() {
        start(settings, RuntimeSupport::of_host());
    }
}

/// Whether this process takes commands. A forked child of one that does, does so from now on.
pub(crate) fn listens() -> Result<bool, String> {
    let Some(process) = process::recorded() else { return Ok(false) };
    if process.is_current() {
        return Ok(socket::is_open());
    }
    let socket = OpenSocket::open()?;
    match process::record_child() {
        Some(child) => socket::serve(child, socket.0).map(|()| true),
        None => Ok(false),
    }
}

/// The socket of a program that is attached to while it runs, which nobody answers on yet.
pub(crate) struct OpenSocket(Listener);

impl OpenSocket {
    /// An error says why there is none.
    pub(crate) fn open() -> Result<OpenSocket, String> {
        // SAFETY: `getauxval` reads the process's auxiliary vector and takes any key.
        if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
            return Err("a program with more rights than its user takes no commands".into());
        }
        let opened = socket::open_unserved(std::process::id());
        let opened = opened.map_err(|error| format!("it cannot take commands: {error}"))?;
        let listens = "another copy of heaptap's library listens in it already";
        opened.map(OpenSocket).ok_or_else(|| listens.to_owned())
    }

    /// Starts answering.
    pub(crate) fn serve(self, support: RuntimeSupport) -> Result<(), String> {
        let directory = std::env::current_dir().unwrap_or_default();
        let settings = Settings { listen: true, directory, ..Settings::default() };
        let Some(process) = process::record(&settings, support) else {
            self.abandon();
            return Err("it links heaptap, and starts and stops its traces itself".into());
        };
        register_handlers();
        socket::serve(process, self.0)
    }

    /// Closes it.
    pub(crate) fn abandon(self) {
        self.0.remove_name();
    }
}

fn register_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a function of this library, which is never unloaded once it has
        // registered a handler.
        unsafe { libc::atexit(at_exit) };
        // SAFETY: `in_child` is a function of this library, which stays loaded for the handler above.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// On the thread that has called `exit`.
extern "C" fn at_exit() {
    tracer::guard(|| {
        if let Some(process) = process::recorded().filter(|process| process.is_current()) {
            end(process);
        }
    });
}

fn end(process: &'static Process) {
    process.finish(LONGEST_WAIT);
    if process.triggers.contains(&Trigger::Exit) {
        process.take_at_exit();
    }
    socket::remove_name();
}

extern "C" fn in_child() {
    socket::close_in_child();
    if process::recorded().is_some_and(|process| process.listens_in_forks) {
        // Only async-signal-safe functions may be called here.
        HAS_FORKED.store(true, Ordering::Relaxed);
    }
}

/// This is a forked child that is to take commands, and does not yet.
static HAS_FORKED: AtomicBool = AtomicBool::new(false);

/// The runtime comes to a point at which a thread may be started. In a forked child that is to take
/// commands, it does so from the first of these on. Inside hooks; costs one load otherwise.
#[inline]
pub(crate) fn may_start_in_child() {
    if HAS_FORKED.load(Ordering::Relaxed) {
        start_in_child();
    }
}

#[cold]
fn start_in_child() {
    if HAS_FORKED.swap(false, Ordering::Relaxed)
        && let Some(process) = process::record_child()
    {
        tracer::guard(|| socket::start(process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::in_a_process;
    use heaptap_control::socket::{RUNTIME_DIRECTORY, in_runtime_directory, name};
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    /// The targets of this process's descriptors that are sockets.
    fn sockets() -> Vec<String> {
        let entries = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let names = targets.map(|target| target.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("socket:")).collect()
    }

    fn status(path: &Path) -> String {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(b"status\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    }

    /// Runs `body` in a forked child, which then exits as programs do, with its handlers.
    fn in_a_child_that_exits(body: impl FnOnce()) {
        // SAFETY: the child has one thread, and calls `body` and `exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
            // SAFETY: takes a number.
            unsafe { libc::exit(i32::from(!held)) };
        }
        let mut status = 0;
        // SAFETY: waitpid writes one int to `status`.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child's status");
    }

    #[test]
    fn a_forked_child_closes_the_socket_and_its_exit_leaves_the_name() {
        let test = "a_forked_child_closes_the_socket_and_its_exit_leaves_the_name";
        in_a_process(module_path!(), test, || {
            let place = tempfile::tempdir().unwrap();
            // SAFETY: the only test of this process, whose other thread waits for it.
            unsafe { std::env::set_var(RUNTIME_DIRECTORY, place.path()) };
            let before = sockets();
            let settings = Settings { listen: true, ..Settings::default() };
            start(&settings, RuntimeSupport::of_test(None));
            let own: Vec<_> = sockets().into_iter().filter(|name| !before.contains(name)).collect();
            assert_eq!(own.len(), 1, "the socket that listens");
            let path = in_runtime_directory(place.path()).join(name(std::process::id()));
            in_a_child_that_exits(|| assert!(!sockets().contains(&own[0]), "it is open"));
            assert!(status(&path).starts_with("ok pid="), "the parent answers");
            at_exit();
            assert!(!path.exists(), "the parent's exit removes it");
        });
    }

    #[test]
    fn nothing_starts_unless_it_is_asked_for() {
        in_a_process(module_path!(), "nothing_starts_unless_it_is_asked_for", || {
            let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
            let (before, sockets_before) = (threads(), sockets());
            start(&Settings::default(), RuntimeSupport::of_test(None));
            assert_eq!((threads(), sockets()), (before, sockets_before));
        });
    }
}
