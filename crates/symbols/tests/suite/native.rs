//! C, C++ and Rust with DWARF: every byte of their functions, compared with binutils.

use std::path::Path;

use crate::toolchain::{addresses_in, binutils, compile, directory, have, ours};

/// Calls inlined into inlined calls.
pub(crate) const C: &str = r#"
#include <stdlib.h>
#include <stdio.h>
__attribute__((noinline)) void *block(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
static inline __attribute__((always_inline)) char *leaf(int n) {
    char *p = block(n + 1);
    p[0] = (char)n;
    return p;
}
static inline __attribute__((always_inline)) char *middle(int n) {
    char *p = leaf(n * 2);
    return p + leaf(n * 3)[0];
}
__attribute__((noinline)) int outer(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += middle(i)[0];
    return sum;
}
static __attribute__((noinline)) int local(int n) { return outer(n) + outer(n + 1); }
int main(int argc, char **argv) { (void)argv; printf("%d\n", local(argc)); return 0; }
"#;

const CPP: &str = r"
#include <map>
#include <string>
#include <vector>
namespace zoo {
template <typename T> struct Cage {
    std::vector<T> beasts;
    __attribute__((noinline)) void admit(const T &beast) { beasts.push_back(beast); }
    int operator()(int n) const { return static_cast<int>(beasts.size()) * n; }
};
struct Keeper {
    std::map<std::string, int> seen;
    virtual ~Keeper() {}
    virtual int feed(const std::string &name) { return ++seen[name]; }
};
}
int main(int argc, char **argv) {
    zoo::Cage<std::string> cage;
    zoo::Keeper keeper;
    for (int i = 0; i < argc; i++) { cage.admit(argv[i]); keeper.feed(argv[i]); }
    auto twice = [&](int n) { return cage(n) * 2; };
    return twice(argc) & 1;
}
";

const RUST: &str = r#"
use std::collections::BTreeMap;
#[inline(never)]
fn fill(map: &mut BTreeMap<String, Vec<u8>>, count: usize) {
    for index in 0..count {
        map.entry(format!("{index}")).or_default().push(index as u8);
    }
}
struct Zoo<T>(Vec<T>);
impl<T: Clone> Zoo<T> {
    #[inline(never)]
    fn twice(&self) -> Vec<T> { self.0.iter().chain(self.0.iter()).cloned().collect() }
}
fn main() {
    let mut map = BTreeMap::new();
    fill(&mut map, std::env::args().count());
    let zoo = Zoo(map.keys().cloned().collect());
    println!("{}", zoo.twice().len());
}
"#;

/// Compares every address; returns how many have more than one frame.
fn compare(program: &Path, addresses: &[u64]) -> usize {
    let (mine, theirs) = (ours(program, addresses), binutils(program, addresses));
    let mut wrong = 0;
    for ((address, mine), theirs) in addresses.iter().zip(&mine).zip(&theirs) {
        if mine != theirs {
            wrong += 1;
            if wrong < 10 {
                eprintln!("{address:#x}:\n  ours     {mine:?}\n  binutils {theirs:?}");
            }
        }
    }
    assert_eq!(wrong, 0, "of {} addresses", addresses.len());
    mine.iter().filter(|frames| frames.len() > 1).count()
}

#[test]
fn c_is_located_as_by_binutils() {
    if !have(&["gcc", "nm", "addr2line"]) {
        return;
    }
    let directory = directory("native-c");
    for (name, options) in
        [("dwarf5", "-gdwarf-5"), ("dwarf4", "-gdwarf-4"), ("fixed", "-no-pie"), ("slow", "-O0")]
    {
        let command = format!("gcc -g -O2 {options} -o {name} SOURCE");
        compile(&directory, "program.c", C, &command);
        let program = directory.join(name);
        let own = ["block", "outer", "local", "main"];
        let addresses = addresses_in(&program, |name| own.contains(&name));
        assert!(addresses.len() > 100, "{}", addresses.len());
        let inlined = compare(&program, &addresses);
        assert!(inlined > 20, "{name}: {inlined} addresses in inlined calls");
    }
}

#[test]
fn inlined_calls_come_outermost_first() {
    if !have(&["gcc", "nm"]) {
        return;
    }
    let directory = directory("native-order");
    compile(&directory, "program.c", C, "gcc -g -O2 -o program SOURCE");
    let program = directory.join("program");
    let addresses = addresses_in(&program, |name| name == "outer");
    let deep = ours(&program, &addresses).into_iter().find(|frames| frames.len() == 3).unwrap();
    let names: Vec<&str> = deep.iter().map(|(function, _, _)| function.as_str()).collect();
    assert_eq!(names, ["outer", "middle", "leaf"]);
    assert!(deep.iter().all(|(_, file, line)| file.ends_with("program.c") && *line > 1));
}

#[test]
fn cpp_is_located_as_by_binutils() {
    if !have(&["g++", "nm", "addr2line"]) {
        return;
    }
    let directory = directory("native-cpp");
    compile(&directory, "program.cc", CPP, "g++ -g -O2 -o program SOURCE");
    let program = directory.join("program");
    let addresses = addresses_in(&program, |name| name == "main" || name.contains("3zoo"));
    assert!(addresses.len() > 500, "{}", addresses.len());
    let inlined = compare(&program, &addresses);
    assert!(inlined > 100, "{inlined} addresses in inlined calls");
}

#[test]
fn rust_is_located_as_by_binutils() {
    if !have(&["rustc", "nm", "addr2line"]) {
        return;
    }
    let directory = directory("native-rust");
    // Older compilers use the legacy mangling by default.
    for (name, mangling) in [("default", ""), ("v0", "-C symbol-mangling-version=v0")] {
        let command = format!("rustc -g -O --edition 2021 {mangling} -o {name} SOURCE");
        compile(&directory, "program.rs", RUST, &command);
        let program = directory.join(name);
        let addresses = addresses_in(&program, |name| {
            name.contains("program") && (name.contains("fill") || name.contains("twice"))
        });
        assert!(addresses.len() > 300, "{}", addresses.len());
        let inlined = compare(&program, &addresses);
        assert!(inlined > 100, "{inlined} addresses in inlined calls");
    }
}
