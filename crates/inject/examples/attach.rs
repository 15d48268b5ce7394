//! Loads a library into a running program: `attach PID LIBRARY ENTRY ARGUMENT MILLISECONDS`.
//!
//! For the tests, which kill it at random moments, and for trying things out.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptap_inject::{Injection, inject};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pid, library, entry, argument, milliseconds] = &arguments[..] else {
        eprintln!("usage: attach PID LIBRARY ENTRY ARGUMENT MILLISECONDS");
        return ExitCode::from(2);
    };
    let (Ok(pid), Ok(milliseconds)) = (pid.parse(), milliseconds.parse()) else {
        eprintln!("PID and MILLISECONDS are numbers");
        return ExitCode::from(2);
    };
    let timeout = Duration::from_millis(milliseconds);
    let (library, cancelled) = (Path::new(library), &AtomicBool::new(false));
    let injection = Injection { library, entry, argument, timeout, cancelled };
    match inject(pid, &injection) {
        Ok(injected) => {
            println!("{injected:?}");
            ExitCode::SUCCESS
        }
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::FAILURE
        }
    }
}
