//! Running processes: this one, and children that print the addresses of functions.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use heaptap_symbols::{DEFAULT_LIMIT, Process, Symbols};

use crate::toolchain::{Frame, compile, directory, functions, have};

#[inline(never)]
fn landmark(number: u32) -> u32 {
    std::hint::black_box(number) + 1
}
const LANDMARK_LINE: u32 = line!() - 3;

/// A return address whose call is the landmark's first instruction.
fn landmark_code() -> u64 {
    landmark as *const () as u64 + 1
}

fn located(symbols: &mut Symbols, address: u64) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    let found =
        symbols.locate(address, &mut |location| frames.push(crate::toolchain::frame(location)));
    assert_eq!(found, !frames.is_empty());
    found.then_some(frames)
}

#[test]
fn this_process_finds_its_own_functions() {
    assert_eq!(landmark(1), 2);
    let mut symbols = Symbols::of_self();
    let frames = located(&mut symbols, landmark_code()).unwrap();
    let [(function, file, line)] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(function, "suite::process::landmark");
    assert!(file.ends_with("tests/suite/process.rs"), "{file}");
    assert_eq!(*line, LANDMARK_LINE);
}

#[test]
fn addresses_in_no_file_have_no_location() {
    let mut symbols = Symbols::of_self();
    let text = String::from("not code");
    for address in [0, 1, 4096, text.as_ptr() as u64, u64::MAX] {
        assert_eq!(located(&mut symbols, address), None, "{address:#x}");
    }
    assert!(located(&mut symbols, landmark_code()).is_some());
}

#[test]
fn without_a_budget_for_debug_information_the_module_is_still_named() {
    let mut symbols = Symbols::of_process(Process::This, 0);
    let frames = located(&mut symbols, landmark_code()).unwrap();
    let [(function, file, 0)] = &frames[..] else { panic!("{frames:?}") };
    assert!(function.starts_with(&format!("{file}+0x")), "{function}");
}

#[test]
fn a_fresh_list_of_modules_changes_no_answer() {
    let mut symbols = Symbols::of_self();
    let before = located(&mut symbols, landmark_code());
    symbols.refresh();
    assert_eq!(located(&mut symbols, landmark_code()), before);
}

const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
#include <string.h>
int shared(int n);
static __attribute__((noinline)) int here(int n) { return n * 3; }
static void say(const char *name, void *address) { printf("%s %p\n", name, address); fflush(stdout); }
int main(int argc, char **argv) {
    char c;
    say("here", (void *)here);
    say("shared", dlsym(RTLD_DEFAULT, "shared"));
    say("end", 0);
    if (read(0, &c, 1) != 1) return here(argc);
    void *late = dlopen(argv[1], RTLD_NOW);
    say("late", dlsym(late, "late"));
    say("end", 0);
    if (read(0, &c, 1) != 1) return shared(argc);
    return 0;
}
"#;

/// A child that prints addresses, and runs until it is dropped.
struct ReportingChild {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl ReportingChild {
    fn start(program: &Path, argument: &Path) -> ReportingChild {
        let mut child = Command::new(program)
            .arg(argument)
            .env("LD_LIBRARY_PATH", program.parent().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        ReportingChild { child, lines }
    }

    /// The addresses that it prints next.
    fn addresses(&mut self) -> HashMap<String, u64> {
        let lines = self.lines.by_ref().lines().map(Result::unwrap);
        lines
            .take_while(|line| !line.starts_with("end "))
            .map(|line| {
                let (name, address) = line.split_once(" 0x").unwrap();
                (name.to_string(), u64::from_str_radix(address, 16).unwrap())
            })
            .collect()
    }

    fn proceed(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }

    fn symbols(&self) -> Symbols {
        Symbols::of_process(Process::Id(self.child.id()), DEFAULT_LIMIT)
    }
}

impl Drop for ReportingChild {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn build(directory: &Path, program: &str, library: &str) {
    let shared = "int shared(int n) { return n + 1; }";
    compile(
        directory,
        "shared.c",
        shared,
        &format!("gcc -g -O2 -shared -fPIC {library} -o libshared.so SOURCE"),
    );
    compile(
        directory,
        "late.c",
        "int late(int n) { return n + 2; }",
        "gcc -g -O2 -shared -fPIC -o liblate.so SOURCE",
    );
    compile(
        directory,
        "p.c",
        PROGRAM,
        &format!("gcc -g -O2 {program} -o p SOURCE -L. -lshared -ldl"),
    );
}

fn only(frames: Option<Vec<Frame>>) -> (String, String, u32) {
    let frames = frames.expect("a location");
    assert_eq!(frames.len(), 1, "{frames:?}");
    let (function, file, line) = frames[0].clone();
    (function, file.rsplit('/').next().unwrap().to_string(), line)
}

#[test]
fn programs_and_libraries_are_found_wherever_they_are_linked_and_loaded() {
    if !have(&["gcc", "nm"]) {
        return;
    }
    // A library whose first segment is not linked at 0, and small pages in large files.
    let linked_high = "-Wl,-Ttext-segment=0x10000000";
    for (number, (program, library)) in [
        ("-pie", ""),
        ("-no-pie", ""),
        ("-pie", linked_high),
        ("-pie -Wl,-z,noseparate-code", "-Wl,-z,noseparate-code"),
    ]
    .iter()
    .enumerate()
    {
        let directory = directory(&format!("process-{number}"));
        build(&directory, program, library);
        let mut child = ReportingChild::start(&directory.join("p"), &directory.join("liblate.so"));
        let addresses = child.addresses();
        let mut symbols = child.symbols();
        let here = only(located(&mut symbols, addresses["here"] + 1));
        assert_eq!(here, ("here".into(), "p.c".into(), 7));
        // A call at the end of a function returns to the next one.
        let size = functions(&directory.join("p"), "")["here"].1;
        let end = only(located(&mut symbols, addresses["here"] + size));
        assert_eq!(end, ("here".into(), "p.c".into(), 7));
        let shared = only(located(&mut symbols, addresses["shared"] + 1));
        assert_eq!(shared, ("shared".into(), "shared.c".into(), 1));
        // Loaded after the list of modules was read.
        child.proceed();
        let late = child.addresses()["late"];
        assert_eq!(only(located(&mut symbols, late + 1)), ("late".into(), "late.c".into(), 1));
    }
}

#[test]
fn a_program_replaced_on_disk_is_not_mistaken_for_the_running_one() {
    if !have(&["gcc"]) {
        return;
    }
    let directory = directory("process-replaced");
    build(&directory, "-pie", "");
    let mut child = ReportingChild::start(&directory.join("p"), &directory.join("liblate.so"));
    let addresses = child.addresses();
    for file in ["p", "libshared.so"] {
        std::fs::remove_file(directory.join(file)).unwrap();
    }
    let other = "int pad(int n) { return n; }\nint other(int n) { return n * 9; }\nint main(void) { return other(1); }\n";
    compile(&directory, "o.c", other, "gcc -g -O0 -o p SOURCE");
    compile(&directory, "o.c", other, "gcc -g -O0 -shared -fPIC -o libshared.so SOURCE");

    let mut symbols = child.symbols();
    // The program can still be read through /proc; the library is gone.
    let here = only(located(&mut symbols, addresses["here"] + 1));
    assert_eq!(here, ("here".into(), "p.c".into(), 7));
    let (function, file, line) = only(located(&mut symbols, addresses["shared"] + 1));
    assert!(function.starts_with("libshared.so+0x"), "{function}");
    assert_eq!((file.as_str(), line), ("libshared.so", 0));
}

#[test]
fn the_vdso_is_read_from_memory() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else {
        return eprintln!("SKIPPED: no vdso here");
    };
    if !have(&["nm"]) {
        return;
    }
    let (start, rest) = line.split_once('-').unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, end) = (number(start), number(rest.split(' ').next().unwrap()));
    let mut image = vec![0; (end - start) as usize];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&memory, &mut image, start).unwrap();
    let directory = directory("process-vdso");
    std::fs::write(directory.join("vdso.so"), image).unwrap();
    let known = functions(&directory.join("vdso.so"), "-D");
    assert!(!known.is_empty());

    let mut symbols = Symbols::of_self();
    for (address, _) in known.values() {
        let (function, file, line) = only(located(&mut symbols, start + address + 1));
        let names: Vec<&str> = known
            .iter()
            .filter(|(_, found)| found.0 == *address)
            .map(|(name, _)| name.split('@').next().unwrap())
            .collect();
        assert!(names.contains(&function.as_str()), "{function} is none of {names:?}");
        assert_eq!((file.as_str(), line), ("[vdso]", 0));
    }
}
