//! Names of a real library, against binutils' `c++filt`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use heaptap_symbols::names::{MAX_NAME, readable};

use crate::toolchain::{have, run};

/// Each name as demangled by `c++filt`, without parameters (`-p`) and with the standard's
/// short names, such as `std::string` (`-i`).
fn filtered(names: &[&str]) -> Vec<String> {
    let mut child = Command::new("c++filt")
        .args(["-p", "-i"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = names.join("\n") + "\n";
    let feeder = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
}

/// With the four short names that the ABI has for classes (`Ss`, `Si`, `So`, `Sd`):
/// the two demanglers differ in where they write them out.
fn shortened(name: &str) -> String {
    let mut name = name.to_string();
    for (long, arguments, short) in [
        ("basic_string", "char, std::char_traits<char>, std::allocator<char>", "string"),
        ("basic_istream", "char, std::char_traits<char>", "istream"),
        ("basic_ostream", "char, std::char_traits<char>", "ostream"),
        ("basic_iostream", "char, std::char_traits<char>", "iostream"),
    ] {
        name = name.replace(&format!("std::{long}<{arguments} >"), &format!("std::{short}"));
        // Constructors and destructors have the class's name once more.
        name = name.replace(&format!("std::{short}::{long}"), &format!("std::{short}::{short}"));
        name = name.replace(&format!("std::{short}::~{long}"), &format!("std::{short}::~{short}"));
    }
    name
}

#[test]
fn functions_of_the_cpp_library_are_named_as_by_binutils() {
    if !have(&["g++", "nm", "c++filt"]) {
        return;
    }
    let library = run(Path::new("/"), "g++ -print-file-name=libstdc++.so");
    let listed = run(Path::new("/"), &format!("nm -D --defined-only {}", library.trim()));
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next_back()?.split('@').next())
        .filter(|name| name.starts_with("_ZN"))
        .collect();
    assert!(names.len() > 2000, "{}", names.len());
    let theirs = filtered(&names);
    assert_eq!(theirs.len(), names.len());
    let mut wrong = 0;
    for (name, theirs) in names.iter().zip(theirs) {
        let mine = String::from_utf8(readable(name.as_bytes()).into_owned()).unwrap();
        assert!(mine.len() < MAX_NAME, "{name}");
        if shortened(&mine) != shortened(&theirs) {
            wrong += 1;
            eprintln!("{name}\n  ours     {mine}\n  binutils {theirs}");
        }
    }
    assert_eq!(wrong, 0, "of {} names", names.len());
}
