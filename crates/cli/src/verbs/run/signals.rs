//! Forwards signals to the traced program.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Catches signals from its creation on, and forwards them to a child process.
pub(super) struct SignalForwarder {
    child: Sender<u32>,
}

impl SignalForwarder {
    pub(super) fn begin() -> io::Result<SignalForwarder> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let Ok(child) = receiver.recv() else { return };
            let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
            // A terminal sends its signals to the program as well.
            let terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
            for number in signals.forever() {
                let from_terminal = terminal && matches!(number, SIGINT | SIGQUIT);
                if let (false, Some(signal)) = (from_terminal, Signal::from_named_raw(number)) {
                    // The program may be gone already.
                    let _ = kill_process(child, signal);
                }
            }
        });
        Ok(SignalForwarder { child: sender })
    }

    /// Names the child. Signals that came before are forwarded now.
    pub(super) fn forward_to(&self, child: u32) {
        let _ = self.child.send(child);
    }
}

/// Ends this process by the signal that ended the program. Returns if it cannot.
pub(super) fn end_by(signal: i32) {
    let _ = emulate_default_handler(signal);
}
