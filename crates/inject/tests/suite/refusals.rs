//! What is refused, and that the reason says what to do.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptap_inject::{Injection, Refusal, inject};

use crate::target::{Program, Running};
use crate::toolchain::{compile, directory, have, library, run};
use crate::undone::sleeper;

fn refusal(pid: i32) -> Refusal {
    let library = if have(&["gcc"]) { library() } else { Path::new("/lib.so") };
    let timeout = Duration::from_secs(5);
    let cancelled = &AtomicBool::new(false);
    let injection = Injection { library, entry: "test_entry", argument: "", timeout, cancelled };
    inject(pid, &injection).expect_err("to be refused")
}

fn start(directory: &Path, program: &Path) -> Running {
    let command = [program.to_str().expect("a plain path")];
    let mut running = Program::new("refused", directory, &command).start_with(Stdio::piped());
    running.await_output("ready");
    running
}

#[test]
fn what_is_no_program_of_ours_is_refused() {
    assert_eq!(refusal(i32::MAX), Refusal::NoProcess);
    assert_eq!(refusal(-1), Refusal::NoProcess);
    assert_eq!(refusal(std::process::id() as i32), Refusal::Myself);
    let mut sleep = Command::new("sleep").arg("100").spawn().expect("sleep");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(refusal(sleep.id() as i32), Refusal::NotOcaml);
    sleep.kill().expect("our child");
    let stat = format!("/proc/{}/stat", sleep.id());
    while !std::fs::read_to_string(&stat).expect("a zombie").contains(") Z ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(refusal(sleep.id() as i32), Refusal::Zombie);
    sleep.wait().expect("our child");
}

#[test]
fn threads_of_the_kernel_are_refused() {
    let is_kernel = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(kthreadd)")
    };
    match (2..20).find(is_kernel) {
        Some(pid) => assert_eq!(refusal(pid), Refusal::KernelThread),
        None => eprintln!("SKIPPED: no thread of the kernel is visible here"),
    }
}

#[test]
fn a_traced_program_is_refused() {
    let Some(running) = sleeper("traced") else { return };
    if !have(&["strace"]) {
        return;
    }
    let pid = running.pid().to_string();
    let mut strace = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-p", &pid])
        .stderr(Stdio::null())
        .spawn()
        .expect("strace");
    std::thread::sleep(Duration::from_millis(500));
    let refusal = refusal(running.pid());
    let wanted =
        Refusal::Traced { tracer: u64::from(strace.id()), name: Some("strace".to_owned()) };
    assert_eq!(refusal, wanted);
    assert!(refusal.to_string().contains("strace): end that"));
    strace.kill().expect("our child");
    strace.wait().expect("our child");
    // It is gone, so that the program can be attached to.
    let refusal = running.inject(Duration::from_millis(20)).expect_err("it sleeps");
    assert!(matches!(refusal, Refusal::Asleep { .. }), "{refusal}");
}

#[test]
fn a_program_that_profiles_itself_is_refused() {
    if !have(&["ocamlopt", "gcc"]) {
        return;
    }
    let directory = directory("memprof");
    let program = compile(&directory, "memprof");
    let mut running = start(&directory, &program);
    let refusal = refusal(running.pid());
    assert_eq!(refusal, Refusal::MemprofInUse);
    assert!(running.is_running());
}

#[test]
fn a_static_program_is_refused() {
    if !have(&["ocamlopt", "gcc"]) {
        return;
    }
    let directory = directory("static");
    run(&directory, "ocamlopt -ccopt -static sleeper.ml -o sleeper");
    let running = start(&directory, &directory.join("sleeper"));
    assert_eq!(refusal(running.pid()), Refusal::Static);
}

/// Programs in C that look like something else.
#[test]
fn other_runtimes_are_refused() {
    if !have(&["gcc"]) {
        return;
    }
    let directory = directory("others");
    let refused = |name: &str, declaration: &str, statement: &str| {
        let source = format!(
            "#include <stdio.h>\n#include <unistd.h>\n{declaration}\n\
             int main(void) {{ {statement}; puts(\"ready\"); fflush(stdout); pause(); }}\n"
        );
        std::fs::write(directory.join(format!("{name}.c")), source).expect("a source");
        run(&directory, &format!("gcc -rdynamic {name}.c -o {name}"));
        refusal(start(&directory, &directory.join(name)).pid())
    };
    assert_eq!(refused("five", "__thread void *caml_state;", ""), Refusal::Ocaml5);
    assert_eq!(refused("old", "void *Caml_state;", ""), Refusal::OldOcaml);
    let strange = "void *Caml_state; char caml_memprof_main_ctx[64]; int caml_minor_gc_begin_hook;";
    let wanted = Refusal::UnknownLayout { what: "caml_minor_gc_begin_hook" };
    assert_eq!(refused("strange", strange, ""), wanted);
    if Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0) {
        assert_eq!(refused("dropped", "", "if (seteuid(65534)) return 1"), Refusal::Privileged);
    }
}

#[test]
fn a_thread_is_refused_with_its_process() {
    let thread = std::fs::read_link("/proc/thread-self").expect("a thread");
    let thread = thread.file_name().and_then(|name| name.to_str()).expect("a number");
    let process = u64::from(std::process::id());
    assert_eq!(refusal(thread.parse().expect("a number")), Refusal::IsThread { process });
}

#[test]
fn another_user_gets_nothing() {
    let Some(running) = sleeper("user") else { return };
    if !have(&["setpriv"]) || std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
        return;
    }
    let inject = crate::children::command(running.pid(), "", 1000);
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(inject.get_program())
        .args(inject.get_args())
        .output()
        .expect("setpriv");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("it runs as user 0, we as 65534"), "{errors}");
    assert_eq!(crate::text::differences(running.pid()), [""; 0]);
}

#[test]
fn a_library_that_cannot_be_loaded_is_refused_with_the_loaders_words() {
    if !have(&["ocamlopt", "gcc"]) {
        return;
    }
    let directory = directory("bad");
    let program = compile(&directory, "trees");
    let command = [program.to_str().expect("a plain path"), "10000"];
    let program = Program::new("bad", &directory, &command);
    let untouched = program.untouched();
    let running = program.start();
    std::thread::sleep(Duration::from_millis(50));
    let inject = |library: &Path, entry| {
        let timeout = Duration::from_secs(20);
        let cancelled = &AtomicBool::new(false);
        inject(running.pid(), &Injection { library, entry, argument: "", timeout, cancelled })
    };
    let text = directory.join("trees.ml");
    let refusal = inject(&text, "test_entry").expect_err("no library");
    assert!(refusal.to_string().contains("invalid ELF header"), "{refusal}");
    let refusal = inject(library(), "nothing").expect_err("no entry");
    assert!(refusal.to_string().contains("undefined symbol: nothing"), "{refusal}");
    let missing = PathBuf::from("/nowhere/lib.so");
    let refusal = inject(&missing, "test_entry").expect_err("no file");
    assert!(refusal.to_string().contains("/nowhere/lib.so"), "{refusal}");
    let relative = inject(Path::new("lib.so"), "test_entry").expect_err("relative");
    assert!(matches!(relative, Refusal::BadString { .. }), "{relative}");
    let long = "x".repeat(4000);
    let refusal = inject(library(), &long).expect_err("too long");
    assert_eq!(refusal, Refusal::NoRoom { strings: true });
    assert_eq!(crate::text::differences(running.pid()), [""; 0]);
    assert_eq!(running.end(), untouched);
}
