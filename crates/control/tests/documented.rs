//! `docs/control.md` has every command and answer, and each is what the types read and print.

use heaptap_control::words::Words;
use heaptap_control::{
    Budgeted, CLIENT_SECONDS, Command, Flushed, MAX_LINE, MAX_MARK_BYTES, MAX_STRING_BYTES,
    MAX_WAIT_SECONDS, Marked, Recorded, Reply, Rotated, Started, Status, Stopped, Taken,
};

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control.md");
    std::fs::read_to_string(path).expect("docs/control.md")
}

/// The words of an answer to a command, read and printed again. A new command does not compile
/// until it has its answer here.
fn reprinted(command: &Command, words: &str) -> String {
    let words = Words(words.as_bytes());
    match command {
        Command::Snapshot(_) => Taken::from(words).to_string(),
        Command::Status => Status::from(words).to_string(),
        Command::Flush => Flushed::from(words).to_string(),
        Command::Start(_) => Started::from(words).to_string(),
        Command::Stop(_) => Stopped::from(words).to_string(),
        Command::Mark(_) => Marked::from(words).to_string(),
        Command::Budget(_) => Budgeted::from(words).to_string(),
        Command::Recorder(_) => Recorded::from(words).to_string(),
        Command::Rotate | Command::Rate(_) => Rotated::from(words).to_string(),
    }
}

/// The texts between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// A command by how it is written, with its file or its rate.
fn command(usage: &str) -> Command {
    let words = usage.split(' ').filter(|word| !word.starts_with('['));
    let value = |word| match word {
        "FILE" => "/x",
        "R" => "1e-4",
        "P%" => "1%",
        word => word,
    };
    let line: Vec<_> = words.map(value).collect();
    Command::parse(line.join(" ").as_bytes()).expect(usage)
}

#[test]
fn the_table_has_every_command_and_the_keys_of_its_answer() {
    let document = document();
    let table = document.lines().skip_while(|line| !line.starts_with("| command"));
    let rows: Vec<Vec<&str>> = table
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    let usages: Vec<_> = rows.iter().map(|row| quoted(row[1])[0]).collect();
    assert_eq!(usages, Command::USAGE);
    for row in rows {
        let usage = quoted(row[1])[0];
        // What stands for a value, and how it begins.
        let mut keys = quoted(row[3]);
        keys.retain(|word| !["yes", "no: ", "tracing", "recording", "idle"].contains(word));
        let answer = reprinted(&command(usage), "");
        let printed = answer.split_whitespace().map(|word| word.split('=').next().unwrap());
        assert_eq!(keys, ["ok"].into_iter().chain(printed).collect::<Vec<_>>(), "{usage}");
        let options = usage.split(['[', ']']).skip(1).step_by(2);
        for option in options {
            assert!(row[2].contains(&format!("`{option}`")), "{option} is not explained");
        }
    }
}

#[test]
fn the_examples_are_read_and_printed_the_same() {
    let document = document();
    let mut asked: Option<Command> = None;
    let (mut commands, mut replies) = (Vec::new(), Vec::new());
    for line in document.lines() {
        if let Some(line) = line.strip_prefix("> ") {
            let command = Command::parse(line.as_bytes()).expect(line);
            assert_eq!(command.to_string(), line);
            commands.push(line.split(' ').next().unwrap());
            asked = Some(command);
        } else if let Some(line) = line.strip_prefix("< ") {
            let reply = Reply::parse(line.as_bytes()).expect(line);
            assert_eq!(reply.to_string(), line);
            if let Reply::Done(words) = &reply {
                assert_eq!(reprinted(asked.as_ref().unwrap(), words), *words, "{line}");
            }
            replies.push(std::mem::discriminant(&reply));
        }
    }
    let names: Vec<_> =
        Command::USAGE.iter().map(|usage| usage.split(' ').next().unwrap()).collect();
    assert_eq!(commands, names, "an example of each command");
    for reply in [Reply::Wait(1), Reply::Done(String::new()), Reply::Refused(String::new())] {
        assert!(replies.contains(&std::mem::discriminant(&reply)), "no example of {reply}");
    }
}

#[test]
fn the_limits_are_those_of_the_code() {
    let text = document().split_whitespace().collect::<Vec<_>>().join(" ");
    let thousands = |number: usize| format!("{},{:03}", number / 1000, number % 1000);
    let line = thousands(MAX_LINE);
    for limit in [
        format!("A line has at most {line} bytes"),
        format!("has {CLIENT_SECONDS} seconds to send its line"),
        format!("bytes of strings, up to {MAX_STRING_BYTES}"),
        format!("up to {MAX_WAIT_SECONDS}; fractions"),
        format!("at most {} bytes of text", thousands(MAX_MARK_BYTES)),
    ] {
        assert!(text.contains(&limit), "docs/control.md does not say: {limit}");
    }
}

#[test]
fn what_a_later_version_adds_is_ignored() {
    let status = Status::from(Words(b"later=1 pid=7 alone runtime=x later=%"));
    assert_eq!(status, Status { pid: 7, runtime: "x".into(), ..Status::default() });
    assert_eq!(Reply::parse(b"later 1"), None);
}
