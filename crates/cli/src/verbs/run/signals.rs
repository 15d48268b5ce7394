//! Forwards signals to the traced program while it runs. Afterwards they act on this
//! process as usual.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Catches signals from its creation on, and forwards them to a child process.
pub(super) struct SignalForwarder {
    child: Sender<u32>,
    /// The child has been waited for: its id may be another process's.
    ended: Arc<AtomicBool>,
}

impl SignalForwarder {
    pub(super) fn begin() -> io::Result<SignalForwarder> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
        let (sender, receiver) = channel();
        let ended = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ended);
        thread::spawn(move || {
            let Ok(child) = receiver.recv() else { return };
            let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
            // A terminal sends its signals to the program as well.
            let terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
            for number in signals.forever() {
                if has_ended.load(Ordering::SeqCst) {
                    end_by(number);
                    continue;
                }
                let from_terminal = terminal && matches!(number, SIGINT | SIGQUIT);
                if let (false, Some(signal)) = (from_terminal, Signal::from_named_raw(number)) {
                    // The program may be gone already.
                    let _ = kill_process(child, signal);
                }
            }
        });
        Ok(SignalForwarder { child: sender, ended })
    }

    /// Names the child. Signals that came before are forwarded now.
    pub(super) fn forward_to(&self, child: u32) {
        let _ = self.child.send(child);
    }

    /// From now on a signal ends this process.
    pub(super) fn child_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

/// Why signals cannot be forwarded.
pub(super) fn not_begun(error: &io::Error) -> String {
    let remedy = match Errno::from_io_error(error) {
        Some(Errno::MFILE) => ": raise `ulimit -n` to 16 or more",
        _ => "",
    };
    format!("signals cannot be passed on to the program: {error}{remedy}")
}

/// Ends this process by the signal that ended the program. Returns if it cannot.
pub(super) fn end_by(signal: i32) {
    let _ = emulate_default_handler(signal);
}
