//! OCaml: the debug information in real frame tables, compared with what the runtime
//! reads from it, and symbols as the compiler makes them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use heaptap_symbols::ocaml_debuginfo::{self, Memory, Packing};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment, ObjectSymbol};

use crate::toolchain::{compile, directory, functions, have, ours, run};

/// Prints, for every frame of a call stack, its descriptor's address and its location by
/// the runtime, innermost first.
const PROGRAM: &str = r#"
let frames () =
  let raw = Printexc.get_callstack 64 in
  let codes : int array = Obj.magic raw in
  Array.iteri (fun i code ->
    Printf.printf "frame %x\n" (2 * code);
    let rec show slot =
      let plain = Printexc.convert_raw_backtrace_slot slot in
      (match Printexc.Slot.location plain with
       | Some l ->
         Printf.printf "%s|%d|%d|%d|%s\n" l.filename l.line_number l.start_char l.end_char
           (Option.value ~default:"" (Printexc.Slot.name plain))
       | None -> ());
      Option.iter show (Printexc.get_raw_backtrace_next_slot slot)
    in
    show (Printexc.get_raw_backtrace_slot raw i)) codes
[@@inline never]

let leaf x = frames (); x + 1 [@@inline always]
let middle x = let y = leaf (x * 2) in y + 1 [@@inline always]
module Inner = struct
  let outer x =
    let z = middle x in
    z * 2
  [@@inline never]
end
let ( +++ ) a b = Inner.outer a + b [@@inline never]
let far_to_the_right x =
                                                                                                                                                                                                                                                                                               (fun y -> let z = y +++ x in
     let w = z + 1 in w) (x + 1) [@@inline never]
let () =
  let step acc x = let v = far_to_the_right (acc +++ x) in v + 1 in
  Printf.printf "%d\n" (List.fold_left step 0 [1; 2])
"#;

/// The memory of a program linked at fixed addresses, from its file.
struct Image {
    segments: Vec<(u64, Vec<u8>)>,
    frame_table: u64,
}

impl Image {
    fn read(program: &Path) -> Image {
        let bytes = std::fs::read(program).unwrap();
        let file = ElfFile64::<object::LittleEndian>::parse(&*bytes).unwrap();
        let segments = file.segments().map(|s| (s.address(), s.data().unwrap().to_vec()));
        let table = file.symbols().find(|symbol| symbol.name() == Ok("caml_frametable"));
        Image { segments: segments.collect(), frame_table: table.unwrap().address() }
    }

    fn bytes<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        assert!(self.read(address, &mut bytes), "{address:#x}");
        bytes
    }

    /// The addresses of all descriptors: `caml_frametable` lists the units'
    /// tables, each a count and the descriptors (`runtime/stack.h`, 4.14.1).
    fn descriptors(&self) -> Vec<u64> {
        let mut found = Vec::new();
        for unit in 0.. {
            let table = u64::from_le_bytes(self.bytes(self.frame_table + 8 * unit));
            if table == 0 {
                break;
            }
            let mut address = table + 8;
            for _ in 0..u64::from_le_bytes(self.bytes(table)) {
                found.push(address);
                let (_, end) = self.debug_infos(address);
                address = end.next_multiple_of(8);
            }
        }
        found
    }

    /// The debug entries of a descriptor, and where it ends.
    fn debug_infos(&self, descriptor: u64) -> (Vec<u64>, u64) {
        let size = u16::from_le_bytes(self.bytes(descriptor + 8));
        let live = u16::from_le_bytes(self.bytes(descriptor + 10));
        let mut at = descriptor + 12 + 2 * u64::from(live);
        if size == 0xffff {
            return (Vec::new(), at);
        }
        let mut count = u64::from(size & 1);
        if size & 2 != 0 {
            let parts = u64::from(self.bytes::<1>(at)[0]);
            at += 1 + parts;
            count *= parts;
        }
        if count > 0 {
            at = at.next_multiple_of(4);
        }
        let offsets = (0..count).map(|part| at + 4 * part);
        let infos = offsets.filter_map(|at| {
            let offset = u64::from(u32::from_le_bytes(self.bytes(at)));
            (offset != 0).then_some(at + offset)
        });
        (infos.collect(), at + 4 * count)
    }
}

impl Memory for Image {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let found = self.segments.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(into.len())?)
        });
        found.map(|bytes| into.copy_from_slice(bytes)).is_some()
    }
}

/// What the program prints for each frame, from the image, innermost first.
fn shown(image: &Image, info: u64, packing: Packing) -> Vec<String> {
    let mut lines = Vec::new();
    let found = ocaml_debuginfo::locate(image, info, packing, &mut |location| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (file, function) = (text(location.file), text(location.function));
        let (line, start, end) = (location.line, location.start_char, location.end_char);
        lines.push(format!("{file}|{line}|{start}|{end}|{function}"));
    });
    assert!(found && !lines.is_empty(), "{info:#x}");
    lines.reverse();
    lines
}

/// The program and its compiler's packing; `None` without a compiler.
fn program(test: &str) -> Option<(PathBuf, Packing)> {
    if !have(&["ocamlopt", "gcc"]) {
        return None;
    }
    let directory = directory(test);
    let version = run(&directory, "ocamlopt -version");
    let mut numbers = version.split('.').map(|number| number.trim().parse::<u32>().unwrap_or(0));
    let version = (numbers.next()?, numbers.next()?);
    let packing = if version < (5, 2) { Packing::Until5_1 } else { Packing::Since5_2 };
    compile(&directory, "prog.ml", PROGRAM, "ocamlopt -g -ccopt -no-pie -o prog SOURCE");
    Some((directory.join("prog"), packing))
}

#[test]
fn frame_tables_are_read_as_by_the_runtime() {
    let Some((program, packing)) = program("ocaml-frames") else {
        return;
    };
    let image = Image::read(&program);
    let descriptors: BTreeSet<u64> = image.descriptors().into_iter().collect();
    let printed = run(program.parent().unwrap(), program.to_str().unwrap());
    let mut compared = 0;
    let mut inlined = 0;
    for frame in printed.split("frame ").skip(1) {
        let mut lines = frame.lines();
        let descriptor = u64::from_str_radix(lines.next().unwrap(), 16).unwrap();
        assert!(descriptors.contains(&descriptor), "{descriptor:#x}");
        // The program's own result follows the last frame.
        let wanted: Vec<&str> = lines.filter(|line| line.contains('|')).collect();
        let (infos, _) = image.debug_infos(descriptor);
        let mine = infos.first().map_or(Vec::new(), |&info| shown(&image, info, packing));
        assert_eq!(mine, wanted, "{descriptor:#x}");
        compared += 1;
        inlined += usize::from(wanted.len() > 1);
    }
    assert!(compared >= 20, "{compared} frames");
    assert!(inlined >= 3, "{inlined} frames with inlined calls");
}

#[test]
fn every_entry_of_the_standard_library_is_decoded() {
    let Some((program, packing)) = program("ocaml-tables") else {
        return;
    };
    let image = Image::read(&program);
    let descriptors = image.descriptors();
    let infos: Vec<u64> = descriptors.iter().flat_map(|&at| image.debug_infos(at).0).collect();
    assert!(descriptors.len() > 1000 && infos.len() > 1000, "{}", infos.len());
    for info in infos {
        for line in shown(&image, info, packing) {
            let fields: Vec<&str> = line.split('|').collect();
            let [file, row, start, end, definition] = fields[..] else { panic!("{line}") };
            let number = |text: &str| text.parse::<u32>().unwrap();
            assert!(file.contains(".ml"), "{line}");
            assert!((1..20_000).contains(&number(row)), "{line}");
            assert!(number(start) <= number(end), "{line}");
            assert!(definition.starts_with(|first: char| first.is_ascii_uppercase()), "{line}");
        }
    }
}

#[test]
fn ocaml_symbols_are_readable() {
    let Some((program, _)) = program("ocaml-symbols") else {
        return;
    };
    let known = functions(&program, "");
    let of = |prefix: &str| {
        let found = known.iter().find(|(name, _)| name.starts_with(prefix));
        let (start, _) = found.unwrap_or_else(|| panic!("{prefix}")).1;
        ours(&program, &[*start])[0].last().unwrap().0.clone()
    };
    let dotted = known.keys().any(|name| name.starts_with("camlProg."));
    let separator = if dotted { "." } else { "__" };
    for (unit, identifier, wanted) in [
        ("camlProg", "outer_", "Prog.outer"),
        ("camlProg", "$2b$2b$2b_", "Prog.(+++)"),
        ("camlProg", "fun_", "Prog.fun"),
        ("camlProg", "entry", "Prog.entry"),
        ("camlStdlib__List", "fold_left_", "Stdlib.List.fold_left"),
        ("camlStdlib", "$5e$5e_", "Stdlib.(^^)"),
    ] {
        assert_eq!(of(&format!("{unit}{separator}{identifier}")), wanted);
    }
}
