use std::sync::mpsc::channel;

use super::*;
use crate::sys::testing::{in_a_fork, in_a_process};

#[test]
fn a_child_does_not_wait_for_a_thread_of_its_parent() {
    in_a_process(module_path!(), "a_child_does_not_wait_for_a_thread_of_its_parent", || {
        let process = RaceOnce::new();
        std::thread::scope(|scope| {
            let (begin, has_begun) = channel();
            let (end, may_end) = channel::<()>();
            let slow = scope.spawn(|| {
                let made = recorded_or_host(&process, move || {
                    begin.send(()).unwrap();
                    // Fails when the other end is dropped.
                    _ = may_end.recv();
                    PathBuf::from("/slow")
                });
                made.pid
            });
            has_begun.recv().unwrap();
            // The other thread, which is about to make the value, does not exist in the child.
            in_a_fork(|| {
                let made = recorded_or_host(&process, || PathBuf::from("/child"));
                assert_eq!(made.pid, std::process::id());
            });
            drop(end);
            assert_eq!(slow.join().unwrap(), std::process::id());
        });
    });
}
