//! Signals pass through: what is sent to us is meant for the program.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Catches signals from when it begins.
pub(super) struct Passing {
    child: Sender<u32>,
}

impl Passing {
    pub(super) fn begin() -> io::Result<Passing> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let Ok(child) = receiver.recv() else { return };
            let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
            // A terminal sends its own to both of us.
            let terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
            for number in signals.forever() {
                let from_terminal = terminal && matches!(number, SIGINT | SIGQUIT);
                if let (false, Some(signal)) = (from_terminal, Signal::from_named_raw(number)) {
                    // The program may be gone already.
                    let _ = kill_process(child, signal);
                }
            }
        });
        Ok(Passing { child: sender })
    }

    /// To whom: nothing is lost that was sent before.
    pub(super) fn pass_to(&self, child: u32) {
        let _ = self.child.send(child);
    }
}

/// Ends us as the signal ended the program. Returns if it cannot.
pub(super) fn end_by(signal: i32) {
    let _ = emulate_default_handler(signal);
}
