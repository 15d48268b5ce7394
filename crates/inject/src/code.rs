//! What the runtime's machine code says about its variables. It proves that a symbol is what
//! its name promises, and finds what has no symbol.
//!
//! Only the few instructions that compilers use for it are known (Intel's manual, volume 2,
//! chapter 2: opcode, `ModRM`, displacement). Bytes that are not one of them prove nothing.

use crate::memory::Memory;

/// The beginning of a function's code.
pub(crate) struct Code {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Where `caml_request_minor_gc` stores, as indices of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) requested_minor_gc: u64,
    pub(crate) young_limit: u64,
}

/// Index of `young_alloc_end` in all releases from 4.12 to 4.14 (`domain_state.tbl`).
pub(crate) const YOUNG_ALLOC_END: u64 = 7;

impl Code {
    /// Addresses that instructions refer to, relative to their own or absolute.
    fn references(&self) -> impl Iterator<Item = u64> {
        let windows = self.bytes.windows(6).enumerate();
        windows
            .flat_map(|(index, bytes)| {
                let &[first, second, ref displacement @ ..] = bytes else { return [None; 4] };
                let displacement = i32::from_le_bytes(displacement.try_into().unwrap_or_default());
                let displacement = i64::from(displacement) as u64;
                let next = self.at.wrapping_add(index as u64 + 6);
                // [rip + displacement], which counts from behind an immediate operand.
                let is_relative = second & 0xc7 == 0x05;
                let from =
                    |size| is_relative.then(|| next.wrapping_add(size).wrapping_add(displacement));
                // [displacement]
                let is_absolute = first & 0xc7 == 0x04 && second == 0x25;
                [from(0), from(1), from(4), is_absolute.then_some(displacement)]
            })
            .flatten()
    }

    /// Addresses of words that are loaded into registers: `mov reg, [rip + displacement]`.
    fn loads(&self) -> impl Iterator<Item = u64> {
        let windows = self.bytes.windows(7).enumerate();
        windows.filter_map(|(index, bytes)| {
            let &[rex, 0x8b, mode, ref displacement @ ..] = bytes else { return None };
            let displacement = i32::from_le_bytes(displacement.try_into().ok()?);
            let next = self.at.wrapping_add(index as u64 + 7);
            (rex & 0xfb == 0x48 && mode & 0xc7 == 0x05)
                .then(|| next.wrapping_add(i64::from(displacement) as u64))
        })
    }

    /// Whether the code uses this variable, itself or through the table of addresses that
    /// shared libraries have.
    pub(crate) fn uses(&self, memory: &Memory, variable: u64) -> bool {
        self.references().any(|address| address == variable)
            || self.loads().any(|slot| memory.word(slot) == Some(variable))
    }

    /// What `caml_request_minor_gc` stores: 1 in one word of the state, and in another what is in
    /// `young_alloc_end`.
    pub(crate) fn request(&self) -> Option<Request> {
        let requested = self.bytes.windows(11).find_map(|bytes| {
            // mov qword ptr [reg + displacement], 1
            let &[rex, 0xc7, mode, a, b, c, d, 1, 0, 0, 0] = bytes else { return None };
            (rex & 0xfe == 0x48 && mode & 0xf8 == 0x80)
                .then(|| u64::from(u32::from_le_bytes([a, b, c, d])))
        })?;
        let limit = self.bytes.windows(8).find_map(raised_limit)?;
        (requested % 8 == 0)
            .then_some(Request { requested_minor_gc: requested / 8, young_limit: limit })
    }

    /// Where `caml_memprof_stop` looks whether the profiler was started, an `int`: the first
    /// variable that it compares with 0.
    pub(crate) fn started(&self) -> Option<u64> {
        let displacement =
            |bytes: &[u8]| Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?)) as u64);
        let test = |(index, bytes): (usize, &[u8])| {
            let next = self.at.wrapping_add(index as u64);
            match *bytes {
                // mov reg, dword ptr [rip + displacement]; test reg, reg
                [0x8b, mode, ref at @ .., 0x85, test]
                    if mode & 0xc7 == 0x05 && test == 0xc0 | (mode & 0x38) | mode >> 3 =>
                {
                    Some(next.wrapping_add(6).wrapping_add(displacement(at)?))
                }
                // cmp dword ptr [rip + displacement], 0
                [0x83, 0x3d, a, b, c, d, 0, _] => {
                    Some(next.wrapping_add(7).wrapping_add(displacement(&[a, b, c, d])?))
                }
                _ => None,
            }
        };
        self.bytes.windows(8).take(24).enumerate().find_map(test)
    }
}

/// The index of the word that `mov r, [base + young_alloc_end]; mov [base + x], r` stores to.
fn raised_limit(bytes: &[u8]) -> Option<u64> {
    let &[rex, 0x8b, load, end, store_rex, 0x89, store, offset] = bytes else { return None };
    let is_same = rex & 0xfa == 0x48 && rex == store_rex && (load ^ store) & 0x3f == 0;
    // These two registers are written otherwise.
    let is_plain = !matches!(load & 7, 4 | 5);
    if !is_same || !is_plain || load >> 6 != 1 || u64::from(end) != YOUNG_ALLOC_END * 8 {
        return None;
    }
    match store >> 6 {
        0 => Some(0),
        1 if offset % 8 == 0 && offset < 0x80 => Some(u64::from(offset) / 8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(bytes: &[u8]) -> Code {
        Code { at: 0x1000, bytes: bytes.to_vec() }
    }

    #[test]
    fn the_words_of_a_request_are_read() {
        // caml_request_minor_gc of Debian's OCaml 4.13.1.
        let gcc = [
            0x48, 0x8b, 0x05, 0x19, 0x4d, 0x46, 0, 0xc7, 0x05, 0x77, 0x05, 0x46, 0, 1, 0, 0, 0,
            0x48, 0xc7, 0x80, 0x18, 0x01, 0, 0, 1, 0, 0, 0, 0x48, 0x8b, 0x50, 0x38, 0x48, 0x89,
            0x10, 0xc3,
        ];
        let request = code(&gcc).request();
        assert_eq!(request, Some(Request { requested_minor_gc: 35, young_limit: 0 }));
        // In 4.12 the limit is the second word.
        let mut older = gcc[..34].to_vec();
        older.extend([0x50, 0x08, 0xc3]);
        let request = code(&older).request();
        assert_eq!(request, Some(Request { requested_minor_gc: 35, young_limit: 1 }));
        // Another register is stored.
        older[34] = 0x48;
        assert_eq!(code(&older).request(), None);
    }

    #[test]
    fn variables_are_found_in_code() {
        let file = tempfile::tempfile().expect("a file");
        let memory = Memory::of_file(file);
        let load = code(&[0x90, 0x48, 0x8b, 0x15, 0x10, 0, 0, 0]);
        assert!(load.uses(&memory, 0x1018));
        assert!(!load.uses(&memory, 0x1017));
        let store = code(&[0xc7, 0x05, 0x10, 0, 0, 0, 1, 0, 0, 0]);
        assert!(store.uses(&memory, 0x101a));
        let absolute = code(&[0x48, 0x8b, 0x04, 0x25, 0x40, 0x30, 0x20, 0]);
        assert!(absolute.uses(&memory, 0x0020_3040));
    }

    #[test]
    fn the_profilers_flag_is_found() {
        let gcc = [0x48, 0x83, 0xec, 8, 0x8b, 0x05, 0xde, 0x65, 0x44, 0, 0x85, 0xc0, 0x0f, 0x84];
        assert_eq!(code(&gcc).started(), Some(0x1000 + 10 + 0x44_65de));
        let clang = [0x50, 0x83, 0x3d, 0x10, 0, 0, 0, 0, 0x74, 0x10];
        assert_eq!(code(&clang).started(), Some(0x1000 + 8 + 0x10));
        let other = [0x8b, 0x05, 0xde, 0x65, 0x44, 0, 0x85, 0xc9, 0, 0];
        assert_eq!(code(&other).started(), None, "tests another register");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_code_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let code = Code { at: u64::MAX - 20, bytes };
            code.request();
            code.started();
            code.references().for_each(drop);
            code.loads().for_each(drop);
        }
    }
}
