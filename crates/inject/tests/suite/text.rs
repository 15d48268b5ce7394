//! Whether a program's memory is as if nothing had been injected.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

/// Differences between a running program and its files, in words. Empty if the program ends
/// meanwhile.
pub(crate) fn differences(pid: i32) -> Vec<String> {
    let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { return Vec::new() };
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else { return Vec::new() };
    let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) else { return Vec::new() };
    let program = program.to_string_lossy().into_owned();
    let mut found = Vec::new();
    let mut base = None;
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[range, permissions, offset, _, _, path] = &fields[..] else { continue };
        let (start, end) = range.split_once('-').expect("a range");
        let [start, end, offset] =
            [start, end, offset].map(|number| u64::from_str_radix(number, 16).expect("hex"));
        if path == program && offset == 0 {
            base = Some(start);
        }
        let is_checked = path == program || path.contains("/libc.so") || path.contains("/libm.so");
        if permissions == "r-xp" && is_checked {
            let mut loaded = vec![0; (end - start) as usize];
            if memory.read_exact_at(&mut loaded, start).is_err() {
                return Vec::new();
            }
            if loaded != file(path, offset, loaded.len()) {
                found.push(format!("text of {path}"));
            }
        }
    }
    if let Some(base) = base {
        found.extend(variables(&program, &memory, base));
    }
    found
}

/// The bytes of a file, with zeros behind its end, as it is mapped.
fn file(path: &str, offset: u64, size: usize) -> Vec<u8> {
    let file = File::open(path).expect("a mapped file");
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match file.read_at(&mut bytes[filled..], offset + filled as u64).expect("readable") {
            0 => break,
            read => filled += read,
        }
    }
    bytes
}

/// What is left of the hook, and behind the variables, of a program that is loaded there.
fn variables(program: &str, memory: &File, base: u64) -> Vec<String> {
    let mut found = Vec::new();
    let bias = if is_fixed(program) { 0 } else { base };
    let word = |address: u64| {
        let mut word = [0; 8];
        memory.read_exact_at(&mut word, address).map(|()| u64::from_le_bytes(word)).ok()
    };
    // One of the test programs has a hook of its own.
    let own = symbol(program, "hooked_begin").unwrap_or(0);
    if let Some(hook) = symbol(program, "caml_minor_gc_begin_hook")
        && word(bias + hook).is_some_and(|hook| hook != 0 && hook.wrapping_sub(bias) != own)
    {
        found.push("the hook".to_owned());
    }
    let end = data_end(program) + bias;
    let mut rest = vec![0; (end.next_multiple_of(4096) - end) as usize];
    let _ = memory.read_exact_at(&mut rest, end);
    if rest.iter().any(|&byte| byte != 0) {
        found.push("the zeros behind .bss".to_owned());
    }
    found
}

fn output(command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).output().expect("binutils");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn is_fixed(program: &str) -> bool {
    output(&["readelf", "-hW", program]).contains("EXEC (")
}

/// The linked address of a dynamic symbol.
pub(crate) fn symbol(program: &str, name: &str) -> Option<u64> {
    let symbols = output(&["nm", "-D", "--defined-only", program]);
    let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}")))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

/// The linked address of the end of the last writable segment.
fn data_end(program: &str) -> u64 {
    let headers = output(&["readelf", "-lW", program]);
    let mut segments = headers.lines().filter(|line| line.trim_start().starts_with("LOAD"));
    let last = segments.rfind(|line| line.contains("RW ")).expect("variables");
    let fields: Vec<&str> = last.split_whitespace().collect();
    let number =
        |at: usize| u64::from_str_radix(fields[at].trim_start_matches("0x"), 16).expect("hex");
    number(2) + number(5)
}
