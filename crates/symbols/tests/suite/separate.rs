//! Debug information in a separate file, as distributions ship it.

use std::path::Path;

use crate::native::C;
use crate::toolchain::{Frame, addresses_in, compile, directory, have, ours, run};

/// A stripped program whose debug information is in `program.debug`: its addresses, and
/// their locations before it was stripped.
fn separated(directory: &Path, options: &str, objcopy: &str) -> (Vec<u64>, Vec<Vec<Frame>>) {
    compile(directory, "program.c", C, &format!("gcc -g -O2 {options} -o program SOURCE"));
    let program = directory.join("program");
    let addresses = addresses_in(&program, |name| ["outer", "local", "main"].contains(&name));
    let whole = ours(&program, &addresses);
    assert!(whole.iter().any(|frames| frames.len() == 3));
    run(directory, &format!("objcopy --only-keep-debug {objcopy} program program.debug"));
    run(directory, "strip program");
    run(directory, "objcopy --add-gnu-debuglink=program.debug program");
    (addresses, whole)
}

fn is_unnamed(frames: &[Vec<Frame>]) -> bool {
    frames.iter().all(|frames| frames.len() == 1 && frames[0].0.starts_with("program+0x"))
}

#[test]
fn a_debug_file_beside_the_program_or_in_its_own_directory_is_found() {
    if !have(&["gcc", "nm", "objcopy", "strip"]) {
        return;
    }
    let directory = directory("separate-link");
    let (addresses, whole) = separated(&directory, "", "");
    let program = directory.join("program");
    assert_eq!(ours(&program, &addresses), whole);

    std::fs::create_dir(directory.join(".debug")).unwrap();
    std::fs::rename(directory.join("program.debug"), directory.join(".debug/program.debug"))
        .unwrap();
    assert_eq!(ours(&program, &addresses), whole);

    std::fs::remove_file(directory.join(".debug/program.debug")).unwrap();
    assert!(is_unnamed(&ours(&program, &addresses)));
}

#[test]
fn compressed_sections_are_read() {
    if !have(&["gcc", "nm", "objcopy", "strip", "readelf"]) {
        return;
    }
    let directory = directory("separate-compressed");
    let (addresses, whole) = separated(&directory, "", "--compress-debug-sections=zlib");
    assert!(run(&directory, "readelf -t program.debug").contains("COMPRESSED"));
    assert_eq!(ours(&directory.join("program"), &addresses), whole);
}

#[test]
fn another_program_s_debug_file_is_refused() {
    if !have(&["gcc", "nm", "objcopy", "strip"]) {
        return;
    }
    // By checksum, where there is no build id; and by build id.
    for (name, options) in
        [("checksum", "-Wl,--build-id=none"), ("build-id", "-Wl,--build-id=sha1")]
    {
        let directory = directory(&format!("separate-{name}"));
        let (addresses, whole) = separated(&directory, options, "");
        let program = directory.join("program");
        assert_eq!(ours(&program, &addresses), whole, "{name}");

        let other = C.replace("n * 2", "n * 5");
        compile(&directory, "other.c", &other, &format!("gcc -g -O2 {options} -o other SOURCE"));
        run(&directory, "objcopy --only-keep-debug other program.debug");
        assert!(is_unnamed(&ours(&program, &addresses)), "{name}");
    }
}
