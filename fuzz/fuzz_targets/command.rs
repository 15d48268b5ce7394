//! Any line can be sent to the control socket, and any line can come back: no panic, a short answer in
//! ASCII, and what was understood is written as a line that means the same.

#![no_main]

use heaptap_control::words::Words;
use heaptap_control::{
    Command, Flushed, MAX_LINE, Marked, Reply, Rotated, Started, Status, Stopped, Taken,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let line = line.get(..MAX_LINE).unwrap_or(line);
    match Command::parse(line) {
        Ok(command) => {
            let again = command.to_string();
            assert!(again.is_ascii() && !again.contains('\n'), "{again:?}");
            // Each byte takes three at most, and a rate can have many digits.
            assert!(again.len() <= 3 * line.len() + 400, "{} bytes", again.len());
            assert_eq!(Command::parse(again.as_bytes()), Ok(command));
        }
        Err(why) => {
            assert!(why.is_ascii() && !why.contains('\n') && why.len() < 1000, "{why:?}");
        }
    }
    // What a process answers is foreign to the tools.
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if let Some(reply) = Reply::parse(line) {
        assert!(!reply.to_string().contains('\n'));
    }
    let words = Words(line);
    _ = (Started::from(words), Stopped::from(words), Status::from(words), Taken::from(words));
    _ = (Rotated::from(words), Flushed::from(words), Marked::from(words));
});
