//! What a client asks for: one line of words (`docs/control.md`).

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::words::{self, Word, Words};

/// The most bytes of a string that a snapshot can include.
pub const MAX_STRING_BYTES: u32 = 4096;

/// The longest wait for a safe point that a client can ask for, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 3600;

/// The longest time that a trace can be given, in seconds: a year.
pub const MAX_SPAN_SECONDS: u64 = 365 * 24 * 3600;

/// The most bytes of a mark's text.
pub const MAX_MARK_BYTES: usize = 1024;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A snapshot of the heap. Answered by [`Taken`](crate::Taken).
    Snapshot(SnapshotRequest),
    /// What the process is. Answered by [`Status`](crate::Status).
    Status,
    /// To write everything recorded so far to the trace. Answered by
    /// [`Flushed`](crate::Flushed).
    Flush,
    /// To begin a trace. Answered by [`Started`](crate::Started).
    Start(StartRequest),
    /// To end the trace. Answered by [`Stopped`](crate::Stopped).
    Stop(StopRequest),
    /// To add a line to the log of the trace. Answered by [`Marked`](crate::Marked).
    Mark(OsString),
    /// To go on in the next file of a series. Answered by [`Rotated`](crate::Rotated).
    Rotate,
    /// To write what a flight recorder has in memory. Answered by [`Recorded`](crate::Recorded).
    Recorder(RecorderRequest),
    /// To sample at this rate from now on, in the next file if the trace is a series of several.
    /// Answered by [`Rotated`](crate::Rotated).
    Rate(f64),
    /// To change the rate so that tracing costs no more than so many per cent of the program's
    /// processor time; `None`: to stay at the rate of this moment. Answered by
    /// [`Budgeted`](crate::Budgeted).
    Budget(Option<f64>),
}

/// What a recorder has in memory, as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecorderRequest {
    /// An absolute name of a directory that is not there yet; `None` for the recorder's own next one.
    pub directory: Option<PathBuf>,
}

/// A trace that is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartRequest {
    /// An absolute name, with `%p`, `%e` and `%t` as in that of a trace from the beginning.
    pub file: PathBuf,
    /// The sampling rate, above 0 and at most 1; `None` for that of the program's settings.
    pub rate: Option<f64>,
    /// What the trace may cost, in per cent of the program's processor time: the rate is then the
    /// highest. `None`: what the settings say.
    pub budget: Option<f64>,
    /// When the trace goes on in another file, as in the settings; `None`: what these say.
    pub rotate: Option<String>,
    /// How many files are kept, the same.
    pub keep: Option<u64>,
    /// What is kept in memory, as the variable `HEAPTAP_RECORDER` has it, if the trace is not
    /// written all the time.
    pub recorder: Option<String>,
    /// Whether the collector's time line is recorded beside the trace; if not, as in the settings.
    pub timeline: bool,
    /// The trace ends by itself when it is so old, up to [`MAX_SPAN_SECONDS`]; `None`: it does not.
    pub span: Option<Duration>,
    /// The longest wait for a safe point, up to [`MAX_WAIT_SECONDS`]; `None` for the plugin's own.
    pub wait: Option<Duration>,
}

/// The end of the trace, as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopRequest {
    /// As in [`StartRequest`].
    pub wait: Option<Duration>,
}

/// A snapshot that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// An absolute name.
    pub file: PathBuf,
    /// Whether the heap is walked in the program itself, and not in a copy.
    pub sync: bool,
    /// How many bytes of each string are included, up to [`MAX_STRING_BYTES`].
    pub string_bytes: u32,
    /// The longest wait for a safe point, up to [`MAX_WAIT_SECONDS`]; `None` for the plugin's own.
    pub wait: Option<Duration>,
}

impl Command {
    /// How each command is written.
    pub const USAGE: &[&str] = &[
        "snapshot FILE [sync] [strings=N] [wait=SECONDS]",
        "status",
        "flush",
        "start FILE [RATE] [budget=P%] [rotate=WHEN] [keep=N] [recorder=TIME] [timeline] [for=SECONDS] [wait=SECONDS]",
        "stop [wait=SECONDS]",
        "mark TEXT",
        "rotate",
        "rate R",
        "budget P%",
        "recorder [DIRECTORY]",
    ];

    /// The command in a line, or why there is none.
    pub fn parse(line: &[u8]) -> Result<Command, String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut words = Words(line).iter();
        let name = words.next().unwrap_or_default();
        let command = match name {
            b"snapshot" => return SnapshotRequest::parse(words).map(Command::Snapshot),
            b"start" => return StartRequest::parse(words).map(Command::Start),
            b"stop" => return StopRequest::parse(words).map(Command::Stop),
            b"mark" => return mark(words).map(Command::Mark),
            b"recorder" => RecorderRequest::parse(&mut words).map(Command::Recorder)?,
            b"status" => Command::Status,
            b"flush" => Command::Flush,
            b"rotate" => Command::Rotate,
            b"budget" => Command::Budget(new_budget(words.next().unwrap_or_default())?),
            b"rate" => Command::Rate(new_rate(words.next().unwrap_or_default())?),
            _ => {
                let (name, known) = (shown(name), Command::USAGE.join(", "));
                return Err(format!("unknown command `{name}`; known are: {known}"));
            }
        };
        match words.next() {
            None => Ok(command),
            Some(_) if matches!(command, Command::Rate(_)) => Err("rate takes one number".into()),
            Some(_) if matches!(command, Command::Budget(_)) => {
                Err("budget takes one share, or `off`".into())
            }
            Some(_) if matches!(command, Command::Recorder(_)) => {
                Err("recorder takes the name of one directory".into())
            }
            Some(_) => Err(format!("{} takes no arguments", Word(name))),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Snapshot(request) => write!(f, "snapshot {request}"),
            Command::Status => f.write_str("status"),
            Command::Flush => f.write_str("flush"),
            Command::Start(request) => write!(f, "start {request}"),
            Command::Stop(request) => write!(f, "stop{request}"),
            Command::Mark(text) => write!(f, "mark {}", words::word(text)),
            Command::Rotate => f.write_str("rotate"),
            Command::Recorder(RecorderRequest { directory: None }) => f.write_str("recorder"),
            Command::Recorder(RecorderRequest { directory: Some(directory) }) => {
                write!(f, "recorder {}", words::word(directory))
            }
            Command::Rate(rate) => write!(f, "rate {rate}"),
            Command::Budget(Some(percent)) => write!(f, "budget {percent}%"),
            Command::Budget(None) => f.write_str("budget off"),
        }
    }
}

/// The name of a file, the first argument of a command.
fn absolute_file<'a>(
    command: &str,
    mut words: impl Iterator<Item = &'a [u8]>,
) -> Result<PathBuf, String> {
    let file = words.next().ok_or_else(|| format!("{command} needs the name of a file"))?;
    absolute("file", file)
}

/// The absolute name of a file or directory in a word.
fn absolute(kind: &str, word: &[u8]) -> Result<PathBuf, String> {
    let name = words::decode(word)
        .ok_or_else(|| format!("in the name of the {kind}, `%` needs two hexadecimal digits"))?;
    let name = PathBuf::from(name);
    if !name.is_absolute() || name.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(format!("the name of the {kind} must be absolute"));
    }
    Ok(name)
}

impl RecorderRequest {
    fn parse<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Result<RecorderRequest, String> {
        let directory = words.next().map(|word| absolute("directory", word)).transpose()?;
        Ok(RecorderRequest { directory })
    }
}

/// The text of a mark: one word, or several with a space between them, as they are typed.
fn mark<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<OsString, String> {
    let decoded: Option<Vec<OsString>> = words.map(words::decode).collect();
    let text = decoded.ok_or("in a mark, `%` needs two hexadecimal digits")?.join(OsStr::new(" "));
    match text.len() {
        0 => Err("mark needs a text".into()),
        1..=MAX_MARK_BYTES => Ok(text),
        _ => Err(format!("a mark has at most {MAX_MARK_BYTES} bytes")),
    }
}

impl SnapshotRequest {
    fn parse<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<SnapshotRequest, String> {
        let file = absolute_file("snapshot", &mut words)?;
        let mut request = SnapshotRequest { file, ..SnapshotRequest::default() };
        for word in words {
            if word == b"sync" {
                request.sync = true;
            } else if let Some(bytes) = string_bytes(word) {
                request.string_bytes = bytes;
            } else if let Some(wait) = wait(word) {
                request.wait = Some(wait);
            } else {
                return Err(format!(
                    "`{}` is not an option of snapshot: sync, strings=N (up to {MAX_STRING_BYTES} \
                     bytes) or wait=SECONDS (up to {MAX_WAIT_SECONDS}, also 0.5)",
                    shown(word)
                ));
            }
        }
        Ok(request)
    }
}

impl fmt::Display for SnapshotRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SnapshotRequest { file, sync, string_bytes, wait } = self;
        write!(f, "{}{}", words::word(file), if *sync { " sync" } else { "" })?;
        if *string_bytes > 0 {
            write!(f, " strings={string_bytes}")?;
        }
        write_wait(f, *wait)
    }
}

impl StartRequest {
    fn parse<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<StartRequest, String> {
        let file = absolute_file("start", &mut words)?;
        let mut request = StartRequest { file, ..StartRequest::default() };
        for word in words {
            if let Some(wait) = wait(word) {
                request.wait = Some(wait);
            } else if let Some(percent) = word.strip_prefix(b"budget=").and_then(percent) {
                request.budget = Some(percent);
            } else if let Some(when) = text(word, b"rotate=") {
                request.rotate = Some(when);
            } else if let Some(keep) = number(word, b"keep=") {
                request.keep = Some(keep);
            } else if let Some(recorder) = recorder(word).filter(|_| request.recorder.is_none()) {
                request.recorder = Some(recorder);
            } else if let Some(rate) = rate(word).filter(|_| request.rate.is_none()) {
                request.rate = Some(rate);
            } else if word == b"timeline" {
                request.timeline = true;
            } else if let Some(span) = span(word) {
                request.span = Some(span);
            } else {
                return Err(format!(
                    "`{}` is neither the rate of start, above 0 and up to 1 such as 1e-5, nor \
                     budget=P% (such as 1%), rotate=WHEN (such as 100MB,24h), keep=N, \
                     recorder=TIME (such as 30s), timeline, for=SECONDS (up to {MAX_SPAN_SECONDS}) nor \
                     wait=SECONDS (up to {MAX_WAIT_SECONDS}, also 0.5)",
                    shown(word)
                ));
            }
        }
        Ok(request)
    }
}

impl fmt::Display for StartRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StartRequest { file, rate, budget, rotate, keep, recorder, timeline, span, wait } =
            self;
        write!(f, "{}", words::word(file))?;
        rate.map_or(Ok(()), |rate| write!(f, " {rate}"))?;
        budget.map_or(Ok(()), |percent| write!(f, " budget={percent}%"))?;
        rotate.as_ref().map_or(Ok(()), |when| write!(f, " rotate={}", words::word(when)))?;
        keep.map_or(Ok(()), |keep| write!(f, " keep={keep}"))?;
        recorder.as_ref().map_or(Ok(()), |time| write!(f, " recorder={}", words::word(time)))?;
        f.write_str(if *timeline { " timeline" } else { "" })?;
        span.map_or(Ok(()), |span| write!(f, " for={}", in_seconds(span)))?;
        write_wait(f, *wait)
    }
}

impl StopRequest {
    fn parse<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<StopRequest, String> {
        let mut request = StopRequest::default();
        for word in words {
            let found = wait(word).ok_or_else(|| {
                format!(
                    "`{}` is not an option of stop: wait=SECONDS (up to {MAX_WAIT_SECONDS}, also \
                     0.5)",
                    shown(word)
                )
            })?;
            request.wait = Some(found);
        }
        Ok(request)
    }
}

impl fmt::Display for StopRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_wait(f, self.wait)
    }
}

fn write_wait(f: &mut fmt::Formatter<'_>, wait: Option<Duration>) -> fmt::Result {
    wait.map_or(Ok(()), |wait| write!(f, " wait={}", in_seconds(wait)))
}

/// A rate that can be one. Which the sampler accepts is the plugin's to say.
fn rate(word: &[u8]) -> Option<f64> {
    let rate: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (rate > 0.0 && rate <= 1.0).then_some(rate)
}

/// What `recorder=` says. Whether it can be one is the plugin's to say.
fn recorder(word: &[u8]) -> Option<String> {
    words::decode(word.strip_prefix(b"recorder=")?)?.into_string().ok()
}

/// As much of a client's word as an error repeats.
fn shown(word: &[u8]) -> Word<'_> {
    Word(word.get(..40).unwrap_or(word))
}

/// The rate that `rate` asks for.
fn new_rate(word: &[u8]) -> Result<f64, String> {
    rate(word).ok_or_else(|| {
        format!("`{}` is no sampling rate: a number above 0 and up to 1, such as 1e-4", shown(word))
    })
}

/// The share that `budget` asks for.
fn new_budget(word: &[u8]) -> Result<Option<f64>, String> {
    if word == b"off" {
        return Ok(None);
    }
    percent(word).map(Some).ok_or_else(|| {
        format!(
            "`{}` is no budget: a share of the program's processor time with its percent sign, such as \
             1%, or `off`",
            shown(word)
        )
    })
}

/// A number with its percent sign, above 0 and up to 100. Without the sign `1` could be meant either way.
/// The sign may be written as in any word, as `%25`. Which the plugin accepts is its to say.
fn percent(word: &[u8]) -> Option<f64> {
    let number = word.strip_suffix(b"%").or_else(|| word.strip_suffix(b"%25"))?;
    let number = std::str::from_utf8(number).ok()?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let percent: f64 = number.parse().ok()?;
    let is_share = is_number(whole) && is_number(fraction) && percent > 0.0 && percent <= 100.0;
    is_share.then_some(percent)
}

/// The text behind a key, if there is one.
fn text(word: &[u8], key: &[u8]) -> Option<String> {
    let text = words::decode(word.strip_prefix(key)?)?.into_string().ok()?;
    Some(text).filter(|text| !text.is_empty())
}

/// The whole number behind a key.
fn number(word: &[u8], key: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word.strip_prefix(key)?).ok()?;
    is_number(text).then(|| text.parse().ok())?
}

fn string_bytes(word: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(word.strip_prefix(b"strings=")?).ok()?;
    let bytes = is_number(text).then(|| text.parse().ok())??;
    (bytes <= MAX_STRING_BYTES).then_some(bytes)
}

fn span(word: &[u8]) -> Option<Duration> {
    let span = std::str::from_utf8(word.strip_prefix(b"for=")?).ok()?;
    seconds_up_to(span, MAX_SPAN_SECONDS).filter(|span| !span.is_zero())
}

fn wait(word: &[u8]) -> Option<Duration> {
    seconds(std::str::from_utf8(word.strip_prefix(b"wait=")?).ok()?)
}

/// A wait in seconds, such as `10` or `0.5`, up to [`MAX_WAIT_SECONDS`]; `None` for anything else.
pub fn seconds(text: &str) -> Option<Duration> {
    seconds_up_to(text, MAX_WAIT_SECONDS)
}

fn seconds_up_to(text: &str, most: u64) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // Digits beyond nanoseconds do not matter.
    let nanoseconds = format!("{:0<9}", fraction.get(..9).unwrap_or(fraction));
    let wait = Duration::new(whole.parse().ok()?, nanoseconds.parse().ok()?);
    (wait <= Duration::from_secs(most)).then_some(wait)
}

/// A time as [`seconds`] reads it, to the nanosecond: a float is not that precise.
fn in_seconds(time: Duration) -> String {
    let text = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_LINE;
    use std::path::Path;

    fn request(line: &str) -> SnapshotRequest {
        match Command::parse(line.as_bytes()) {
            Ok(Command::Snapshot(request)) => request,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_snapshot_has_a_file_and_options() {
        let plain = request("snapshot /tmp/a%20b%25.heap");
        assert_eq!(plain.file, Path::new("/tmp/a b%.heap"));
        assert_eq!((plain.sync, plain.string_bytes, plain.wait), (false, 0, None));
        let all = request("snapshot  /x wait=60 strings=4096 sync \r");
        assert_eq!((all.sync, all.string_bytes), (true, 4096));
        assert_eq!(all.wait, Some(Duration::from_secs(60)));
        assert_eq!(request("snapshot /x wait=0.6").wait, Some(Duration::from_millis(600)));
    }

    #[test]
    fn every_command_is_read_as_it_was_written() {
        let file = PathBuf::from("/a b%\n");
        let wait = Some(Duration::from_nanos(3_599_123_456_789));
        let all = SnapshotRequest { file, sync: true, string_bytes: 7, wait };
        let plain = SnapshotRequest { file: "/x".into(), ..SnapshotRequest::default() };
        let snapshots = [all, plain].map(Command::Snapshot);
        let file = PathBuf::from("/tmp/a %p.ctf");
        let starts = [
            StartRequest { file: file.clone(), ..StartRequest::default() },
            StartRequest {
                file,
                rate: Some(1e-5),
                budget: Some(0.07),
                rotate: Some("100MB,24h".into()),
                keep: Some(7),
                recorder: Some("30s, 64MiB".to_owned()),
                timeline: true,
                span: Some(Duration::from_secs(MAX_SPAN_SECONDS)),
                wait: Some(Duration::from_millis(1_500)),
            },
        ]
        .map(Command::Start);
        let others = [
            Command::Status,
            Command::Flush,
            Command::Stop(StopRequest::default()),
            Command::Stop(StopRequest { wait: Some(Duration::from_secs(60)) }),
            Command::Mark("deploy 42\n 100%".into()),
            Command::Rotate,
            Command::Rate(1e-7),
            Command::Rate(0.3),
            Command::Budget(Some(7.3)),
            Command::Budget(None),
            Command::Recorder(RecorderRequest::default()),
            Command::Recorder(RecorderRequest { directory: Some("/a b%".into()) }),
        ];
        for command in snapshots.into_iter().chain(starts).chain(others) {
            assert_eq!(Command::parse(command.to_string().as_bytes()), Ok(command));
        }
    }

    #[test]
    fn a_start_has_a_file_and_perhaps_a_rate() {
        let start = |line: &str| match Command::parse(line.as_bytes()) {
            Ok(Command::Start(request)) => request,
            other => panic!("{line}: {other:?}"),
        };
        let plain = start("start /tmp/a%20b.ctf");
        assert_eq!((&*plain.file, plain.rate, plain.wait), (Path::new("/tmp/a b.ctf"), None, None));
        let second = Some(Duration::from_secs(1));
        let all = start("start /x for=1 wait=1 1e-3");
        assert_eq!((all.rate, all.wait, all.span), (Some(1e-3), second, second));
        assert_eq!(start("start /x for=86400.5").span, Some(Duration::from_millis(86_400_500)));
        assert_eq!(start("start /x 1").rate, Some(1.0));
    }

    #[test]
    fn times_are_written_to_the_nanosecond() {
        for line in ["stop wait=3.9995999", "stop wait=10", "stop wait=0.000000001", "stop wait=0"]
        {
            let command = Command::parse(line.as_bytes()).unwrap();
            assert_eq!(command.to_string(), line);
        }
    }

    #[test]
    fn the_words_of_a_mark_are_one_text() {
        let mark = |line: &str| Command::parse(line.as_bytes());
        assert_eq!(mark("mark deploy 42"), Ok(Command::Mark("deploy 42".into())));
        assert_eq!(mark("mark a%20%0Ab"), Ok(Command::Mark("a \nb".into())));
    }

    #[test]
    fn the_other_commands_are_single_words() {
        assert_eq!(Command::parse(b"status"), Ok(Command::Status));
        assert_eq!(Command::parse(b" flush \r"), Ok(Command::Flush));
        assert!(Command::parse(b"status now").unwrap_err().contains("no arguments"));
    }

    #[test]
    fn wrong_lines_are_answered_with_what_is_right() {
        for (line, part) in [
            (&b""[..], "known are: snapshot FILE"),
            (b"strat /x 1", "unknown command `strat`"),
            (b"start", "start needs the name of a file"),
            (b"start x", "absolute"),
            (b"start /x 0", "neither the rate"),
            (b"start /x -1", "neither the rate"),
            (b"start /x 2", "neither the rate"),
            (b"start /x nan", "neither the rate"),
            (b"start /x inf", "neither the rate"),
            (b"start /x 0.5 0.5", "neither the rate"),
            (b"start /x often", "`often`"),
            (b"start /x budget=1", "budget=P%"),
            (b"start /x budget=0%", "budget=P%"),
            (b"start /x rotate=", "rotate=WHEN"),
            (b"start /x rotate=%ff", "rotate=WHEN"),
            (b"start /x keep=-1", "keep=N"),
            (b"start /x keep=", "keep=N"),
            (b"budget", "no budget"),
            (b"budget 1", "percent sign"),
            (b"budget 0%", "no budget"),
            (b"budget 200%", "no budget"),
            (b"budget nan%", "no budget"),
            (b"budget -1%", "no budget"),
            (b"budget 1% 2%", "one share"),
            (b"start /x for=0", "for=SECONDS"),
            (b"start /x for=31536001", "up to 31536000"),
            (b"stop now", "wait=SECONDS"),
            (b"stop wait=3601", "up to 3600"),
            (b"mark", "needs a text"),
            (b"mark %2", "hexadecimal"),
            (b"SNAPSHOT /x", "known are"),
            (b"\xff\0\x1b[2J", "`%FF%00%1B[2J`"),
            (b"rate", "`` is no sampling rate"),
            (b"rate 2", "`2` is no sampling rate"),
            (b"rate nan", "up to 1"),
            (b"rate 1 2", "one number"),
            (b"recorder x", "absolute"),
            (b"recorder /x /y", "one directory"),
            (b"start /x recorder=1s recorder=2s", "recorder=TIME (such as 30s)"),
            (b"rotate now", "no arguments"),
            (b"snapshot", "needs the name of a file"),
            (b"snapshot relative", "absolute"),
            (b"snapshot %2", "hexadecimal"),
            (b"snapshot /a%00b", "absolute"),
            (b"snapshot /x soon", "`soon` is not an option"),
            (b"snapshot /x strings=4097", "up to 4096"),
            (b"snapshot /x strings=", "strings=N"),
            (b"snapshot /x strings=-1", "strings=N"),
            (b"snapshot /x wait=3601", "up to 3600"),
            (b"snapshot /x wait=99999999999999999999", "wait=SECONDS"),
        ] {
            let error = Command::parse(line).unwrap_err();
            assert!(error.contains(part), "{error}");
            assert!(error.is_ascii() && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn no_line_is_echoed_at_length() {
        let long = vec![b'x'; MAX_LINE];
        for command in [&b""[..], b"snapshot /x ", b"start /x ", b"stop ", b"mark "] {
            let answer = |text: &[u8]| match Command::parse(&[command, text].concat()) {
                Err(why) => why.len(),
                // A short mark is one.
                Ok(_) => 0,
            };
            assert!(answer(&long) <= answer(b"x").max(60) + 40, "{}", command.escape_ascii());
        }
    }

    #[test]
    fn waits_have_fractions_and_a_limit() {
        let millis = |text| seconds(text).map(|wait| wait.as_millis());
        assert_eq!([millis("10"), millis("0"), millis("0.6")], [Some(10_000), Some(0), Some(600)]);
        assert_eq!([millis("1.50"), millis("3600.0")], [Some(1_500), Some(3_600_000)]);
        assert_eq!(seconds("0.1234567891234"), Some(Duration::from_nanos(123_456_789)));
        for wrong in ["", ".", ".5", "1.", "-1", "+1", "1e3", "1.2.3", "3600.1", "inf", " 1", "1_0"]
        {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
        assert_eq!(seconds("99999999999999999999"), None);
    }
}
