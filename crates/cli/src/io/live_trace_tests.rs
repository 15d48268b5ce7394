//! Tests of [`LiveTrace`].

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use heaptap_trace::Mode;

use super::*;

const TRACE: &[u8] = include_bytes!("../../../trace/tests/data/tiny.v2.ctf");

/// Reads until there is nothing more at once; returns the events and why it stopped.
fn drain(live: &mut LiveTrace) -> (usize, LiveState) {
    let mut events = 0;
    loop {
        let state = live.poll(&mut |_, _| {
            events += 1;
            ControlFlow::Continue(())
        });
        match state.unwrap() {
            LiveState::More => {}
            state => return (events, state),
        }
    }
}

fn events() -> usize {
    let mut reader = heaptap_trace::Reader::from_slice(TRACE, Mode::Strict).unwrap();
    std::iter::from_fn(|| reader.next_event().unwrap().map(drop)).count()
}

fn own() -> Option<Process> {
    Process::of(std::process::id())
}

/// A process that has a file open for writing.
fn holder(path: &Path) -> std::process::Child {
    let mut command = std::process::Command::new("sleep");
    let file = OpenOptions::new().append(true).open(path).unwrap();
    command.arg("600").stdout(file).spawn().unwrap()
}

/// Makes a file look as if nobody had written it for an hour.
fn age(path: &Path) {
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    OpenOptions::new().append(true).open(path).unwrap().set_modified(hour_ago).unwrap();
}

/// The trace, marked as the plugin marks one that is being written.
fn unfinished() -> Vec<u8> {
    let (mut bytes, at) = (TRACE.to_vec(), Completion::OFFSET as usize);
    bytes[at..at + 4].copy_from_slice(&Completion::Unfinished.bytes());
    bytes
}

#[test]
fn a_file_grows_until_its_writer_says_that_it_is_complete() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    let mut file = File::create(&path).unwrap();
    // This process is the writer, and lives on.
    let mut live = LiveTrace::open(&path, own()).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Waiting));
    let bytes = unfinished();
    let (first, rest) = bytes.split_at(bytes.len() - 10);
    file.write_all(first).unwrap();
    let (seen, state) = drain(&mut live);
    assert_eq!(state, LiveState::Waiting);
    assert!(seen < events());
    file.write_all(rest).unwrap();
    assert_eq!(drain(&mut live), (events() - seen, LiveState::Waiting));
    assert!(live.losses().unwrap().cut_short.is_some());
    file.write_all_at(&Completion::Complete.bytes(), Completion::OFFSET).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Ended));
    assert!(live.losses().unwrap().cut_short.is_none());
    assert_eq!(drain(&mut live), (0, LiveState::Ended));
}

/// A reader that asked too early what the trace says about itself loses no event.
#[test]
fn no_event_is_passed_before_the_begin_was_found() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    fs::write(&path, []).unwrap();
    let mut live = LiveTrace::open(&path, own()).unwrap();
    assert!(live.info().unwrap().is_none());
    fs::write(&path, unfinished()).unwrap();
    let state = live.poll(&mut |_, _| panic!("an event of which the reader knows no trace"));
    assert_eq!(state.unwrap(), LiveState::More);
    assert!(live.info().unwrap().is_some());
    assert_eq!(drain(&mut live).0, events());
}

#[test]
fn the_death_of_the_writer_ends_the_trace() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    let bytes = unfinished();
    fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let mut writer = holder(&path);
    let process = Process::of(writer.id());
    let mut live = LiveTrace::open(&path, process).unwrap();
    let (_, state) = drain(&mut live);
    assert_eq!(state, LiveState::Waiting);
    assert!(live.is_being_written());
    writer.kill().unwrap();
    while Process::of(writer.id()).is_some() {
        std::thread::yield_now();
    }
    // Before anybody has waited for it.
    assert_eq!(drain(&mut live), (0, LiveState::Ended));
    assert!(live.losses().unwrap().truncated.is_some(), "the packet that was being written");
    assert!(!live.is_being_written());
    writer.wait().unwrap();
    // If it grows nevertheless, it is read again, and the process is not asked any more.
    fs::write(&path, &bytes).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Resumed));
    assert_eq!(drain(&mut live), (events(), LiveState::Waiting));
    age(&path);
    assert_eq!(drain(&mut live), (0, LiveState::Ended));
}

/// The trace of another machine, or of a container with a name of its own: nobody here has its
/// number, or somebody else has.
#[test]
fn a_trace_whose_writer_is_elsewhere_has_ended_when_it_grows_no_more() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    fs::write(&path, unfinished()).unwrap();
    let mut live = LiveTrace::open(&path, None).unwrap();
    assert_eq!(drain(&mut live), (events(), LiveState::Waiting), "it may be growing");
    age(&path);
    assert_eq!(drain(&mut live), (0, LiveState::Ended));
    assert_eq!(drain(&mut live), (0, LiveState::Ended));
    let mut live = LiveTrace::open(&path, None).unwrap();
    assert_eq!(drain(&mut live), (events(), LiveState::Ended));
}

#[test]
fn a_program_that_is_started_again_has_another_trace() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    fs::write(&path, &unfinished()[..TRACE.len() - 10]).unwrap();
    age(&path);
    let mut live = LiveTrace::open(&path, None).unwrap();
    assert_eq!(drain(&mut live).1, LiveState::Ended);
    // It has written more by now than the first one had.
    let mut bytes = unfinished();
    bytes[8] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Replaced));
}

#[test]
fn another_file_of_the_same_name_is_read_from_its_beginning() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    fs::write(&path, unfinished()).unwrap();
    let mut live = LiveTrace::open(&path, None).unwrap();
    assert_eq!(drain(&mut live), (events(), LiveState::Waiting));
    // Rotated: the old one has another name, and a new one has its name.
    fs::rename(&path, place.path().join("old.ctf")).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Waiting));
    fs::write(&path, unfinished()).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Replaced));
    assert_eq!(drain(&mut live), (events(), LiveState::Waiting));
    // Truncated in place, as by a program that was started again.
    fs::write(&path, &unfinished()[..200]).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Replaced));
    assert_eq!(drain(&mut live).1, LiveState::Waiting);
}

/// `copytruncate`, and a writer that begins again and is ahead of us at once.
#[test]
fn a_file_that_was_truncated_is_read_from_its_beginning_even_if_it_is_longer() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    let first = unfinished();
    fs::write(&path, &first[..200]).unwrap();
    let mut live = LiveTrace::open(&path, None).unwrap();
    assert_eq!(drain(&mut live).1, LiveState::Waiting);
    // Its first packet has another size.
    let second = include_bytes!("../../../trace/tests/data/made-threads.v2.ctf");
    fs::write(&path, second).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Replaced));
    assert!(drain(&mut live).0 > events());
    // It is empty for a moment.
    fs::write(&path, "").unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Replaced));
    assert_eq!(drain(&mut live), (0, LiveState::Waiting));
    fs::write(&path, &first).unwrap();
    assert_eq!(drain(&mut live), (events(), LiveState::Waiting));
}

/// A writer that does not notice goes on behind a hole.
#[test]
fn a_hole_at_the_beginning_is_named() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    fs::write(&path, unfinished()).unwrap();
    let mut live = LiveTrace::open(&path, None).unwrap();
    assert_eq!(drain(&mut live), (events(), LiveState::Waiting));
    fs::write(&path, [&vec![0; TRACE.len()][..], TRACE].concat()).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Replaced));
    assert_eq!(drain(&mut live), (0, LiveState::Waiting), "it may still begin");
    live.opened.since -= HOLE_PATIENCE;
    let failure = live.poll(&mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert!(failure.message().unwrap().contains("truncated while it was"), "{failure:?}");
}

#[test]
fn a_file_without_a_name_is_reached_through_its_process() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t.ctf");
    let mut file = File::create(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let link = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    let mut live = LiveTrace::open(&link, own()).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Waiting));
    file.write_all(TRACE).unwrap();
    assert_eq!(drain(&mut live), (events(), LiveState::Waiting));
}

#[test]
fn a_pipe_is_read_as_far_as_it_is_written() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    // It does not wait for a writer.
    let mut live = LiveTrace::open(&path, None).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Waiting));
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(&TRACE[..100]).unwrap();
    assert_eq!(drain(&mut live), (0, LiveState::Waiting));
    writer.write_all(&TRACE[100..]).unwrap();
    let (seen, state) = drain(&mut live);
    assert_eq!((seen, state), (events(), LiveState::Waiting));
    drop(writer);
    let (_, state) = drain(&mut live);
    assert_eq!(state, LiveState::Waiting, "the pipe is found closed");
    assert_eq!(drain(&mut live), (0, LiveState::Ended));
}
