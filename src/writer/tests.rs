//! Tests of the writer as a whole: outputs that fail.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, mpsc};

use heaptap_trace::{Completion, Locate, LocationList, TraceFormat, TraceInfo, WriteError};

use crate::queue::{Channel, Part};
use crate::writer::context::Context;
use crate::writer::mailbox::{Mailbox, Request};
use crate::writer::output::TraceOutput;
use crate::writer::trace_file::NewFile;
use crate::writer::{Writer, WriterExit};

/// Keeps the name of the output that failed.
#[derive(Clone, Default)]
struct Failures(Arc<Mutex<Vec<String>>>);

impl Locate for Failures {
    fn locate(&mut self, _: u64, _: &mut LocationList) {}
}

impl Context for Failures {
    fn observe_time(&mut self) {}

    fn micros(&mut self, ticks: u64) -> u64 {
        ticks
    }

    fn now(&mut self) -> u64 {
        1_000_000
    }

    fn part_code(&mut self, return_address: u64, _: Part) -> u64 {
        return_address
    }

    fn write_failed(&mut self, output: &OsStr, error: &WriteError) {
        self.0.lock().unwrap().push(format!("{}: {error}", output.display()));
    }
}

/// An output that takes a number of packets.
struct Limited {
    name: &'static str,
    packets: usize,
    completions: Arc<Mutex<Vec<Completion>>>,
}

impl Write for Limited {
    fn write(&mut self, packet: &[u8]) -> io::Result<usize> {
        self.packets = self.packets.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(packet.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TraceOutput for Limited {
    fn name(&self) -> &OsStr {
        OsStr::new(self.name)
    }

    fn set_completion(&mut self, completion: Completion) {
        self.completions.lock().unwrap().push(completion);
    }
}

fn file(name: &'static str, packets: usize) -> NewFile<Limited> {
    let info = TraceInfo {
        sample_rate: 0.5,
        word_size: 64,
        executable: b"test".to_vec(),
        host: b"here".to_vec(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 1_000_000,
        domain: 0,
    };
    NewFile { out: Limited { name, packets, completions: Arc::default() }, info, late_params: None }
}

/// Runs a writer that rotates and stops: what failed, and whether the rotation
/// was answered.
fn rotate(first: NewFile<Limited>, second: NewFile<Limited>) -> (Vec<String>, bool) {
    let (_channel, consumer) = Channel::new(2).unwrap();
    let mailbox = Arc::new(Mailbox::new());
    let (done, answer) = mpsc::channel();
    assert!(mailbox.post(Request::Rotate(Box::new(second), done)));
    assert!(mailbox.post(Request::Stop));
    let failures = Failures::default();
    let writer = Writer::new(
        consumer,
        Arc::clone(&mailbox),
        failures.clone(),
        TraceFormat::Memtrace3,
        first,
        None,
    );
    assert_eq!(writer.unwrap().run(), WriterExit::Finished);
    assert!(!mailbox.post(Request::Stop), "the mailbox is still open");
    (failures.0.lock().unwrap().clone(), answer.recv().is_ok())
}

/// A trace info whose parameters are not known yet is written with the first request.
#[test]
fn a_file_begins_when_its_trace_info_is_complete() {
    for (known, expected) in [(true, 1), (false, 0)] {
        let (_channel, consumer) = Channel::new(2).unwrap();
        let mailbox = Arc::new(Mailbox::new());
        let mut first = file("first", 9);
        first.late_params = Some(Arc::new(move || known.then(|| b"o=120".to_vec())));
        let failures = Failures::default();
        let writer = Writer::new(
            consumer,
            Arc::clone(&mailbox),
            failures.clone(),
            TraceFormat::Memtrace2,
            first,
            None,
        );
        let writer = writer.unwrap();
        assert_eq!(usize::from(writer.file.is_some()), expected);
        assert!(mailbox.post(Request::Stop));
        assert_eq!(writer.run(), WriterExit::Finished);
    }
    let mut late = file("late", 0);
    late.late_params = Some(Arc::new(|| None));
    assert_eq!(rotate(late, file("second", 9)).0.len(), 1, "the trace info was not written");
}

#[test]
fn a_file_says_whether_it_is_complete() {
    use Completion::{Complete, Unfinished, WriteFailed};
    // The second packet of a file is the last one, before the rotation.
    for (packets, expected) in
        [(9, vec![Unfinished, Complete]), (1, vec![Unfinished, WriteFailed]), (0, Vec::new())]
    {
        let first = file("first", packets);
        let completions = Arc::clone(&first.out.completions);
        let second = file("second", 9);
        let of_second = Arc::clone(&second.out.completions);
        let (_channel, consumer) = Channel::new(2).unwrap();
        let mailbox = Arc::new(Mailbox::new());
        let (done, _answer) = mpsc::channel();
        assert!(mailbox.post(Request::Rotate(Box::new(second), done)));
        assert!(mailbox.post(Request::Stop));
        let context = Failures::default();
        let writer = Writer::new(consumer, mailbox, context, TraceFormat::Memtrace2, first, None);
        if let Ok(writer) = writer {
            writer.run();
            assert_eq!(*of_second.lock().unwrap(), expected, "{packets} packets");
        }
        assert_eq!(*completions.lock().unwrap(), expected, "{packets} packets");
    }
    let (lost, kept) = (file("second", 0), file("first", 9));
    let completions = Arc::clone(&kept.out.completions);
    assert_eq!(rotate(kept, lost).0.len(), 1);
    assert_eq!(*completions.lock().unwrap(), [Unfinished, WriteFailed]);
}

#[test]
fn an_error_names_the_output_that_failed() {
    assert_eq!(rotate(file("first", 9), file("second", 9)), (Vec::new(), true));
    let (failures, answered) = rotate(file("first", 9), file("second", 0));
    assert!(!answered);
    assert!(failures.len() == 1 && failures[0].starts_with("second: "), "{failures:?}");
}
