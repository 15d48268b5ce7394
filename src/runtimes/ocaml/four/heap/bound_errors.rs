//! Bounds errors in code that was compiled without `-g`.
//!
//! Where an index is out of bounds, native code calls `caml_ml_array_bound_error`. Without `-g`
//! the return address of that call has no frame descriptor (`emit_call_bound_errors`,
//! `asmcomp/amd64/emit.mlp`, 4.14.1). On the way to the handler of the exception, `caml_raise`
//! does what is pending (`runtime/fail_nat.c`), such as a switch of threads that is due every 50 ms.
//! If a minor collection is requested at that moment, it is done there, and the collector
//! crashes because it finds no descriptor. So no collection is requested in such programs.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::runtimes::attach::symbols::lookup;
use crate::runtimes::ocaml::{MajorVersion, frames};
use crate::sys::process_memory::ProcessMemory;
use crate::tracer::WORD;

/// Whether all calls for bounds errors have frame descriptors: the plugin that had been loaded last when that
/// was found out, with [`FRAMED`] if they have.
pub(super) struct BoundErrors(AtomicUsize);

/// Plugins are at even addresses.
const FRAMED: usize = 1;
/// Not found out yet. No plugin is there.
const UNKNOWN: usize = usize::MAX;

impl BoundErrors {
    pub(super) const fn new() -> BoundErrors {
        BoundErrors(AtomicUsize::new(UNKNOWN))
    }

    /// Finds out, if there are plugins that were not looked at. On threads of ours: it reads all
    /// code of the program.
    pub(super) fn look(&self) {
        let plugin = frames::newest_plugin();
        let seen = self.0.load(Ordering::Acquire);
        if seen == UNKNOWN || seen & !FRAMED != plugin {
            let framed = if all_have_frames() { FRAMED } else { 0 };
            self.0.store(plugin | framed, Ordering::Release);
        }
    }

    /// Whether all calls are known to have frame descriptors.
    pub(super) fn are_framed(&self) -> bool {
        self.0.load(Ordering::Acquire) == frames::newest_plugin() | FRAMED
    }
}

fn all_have_frames() -> bool {
    let (Some(function), Some(segments)) =
        (lookup(c"caml_ml_array_bound_error"), lookup(c"caml_code_segments"))
    else {
        return false;
    };
    let Some(calls) = calls_of(function, segments) else { return false };
    let mut with_frames = 0;
    for table in frames::all_tables(MajorVersion::Four) {
        let Ok(addresses) = table.return_addresses() else { return false };
        with_frames += addresses.filter(|address| calls.binary_search(address).is_ok()).count();
    }
    with_frames == calls.len()
}

/// The return addresses of all calls of a function, ascending. `None` if there is no memory for them, or
/// code that is not known.
fn calls_of(function: usize, segments: usize) -> Option<Vec<u64>> {
    let memory = ProcessMemory::new();
    let mut calls = Vec::new();
    for code in segments_of_program(segments).map(Some).chain(frames::code_of_plugins()) {
        let code = code?;
        // SAFETY: code of the program or of a plugin, which is never unloaded once it runs.
        let bytes = unsafe { std::slice::from_raw_parts(code.start as *const u8, code.len()) };
        for call in return_addresses(bytes, |target| leads_to(&memory, target, function)) {
            calls.try_reserve(1).ok()?;
            calls.push(call);
        }
    }
    calls.sort_unstable();
    calls.dedup();
    Some(calls)
}

/// `caml_code_segments`: where the code of each module begins and ends, up to a NULL
/// (`runtime/caml/stack.h`, written by the linker step of `ocamlopt`).
fn segments_of_program(segments: usize) -> impl Iterator<Item = Range<usize>> {
    let segment = move |index: usize| {
        let at = segments + index * 2 * WORD;
        // SAFETY: the list goes on until its NULL.
        unsafe { (at as *const [usize; 2]).read() }
    };
    let all = (0..).map(segment).take_while(|&[begin, _]| begin != 0);
    all.map(|[begin, end]| begin..end.max(begin))
}

/// The return addresses of calls whose targets are wanted. Bytes that only look like a call
/// count, too.
fn return_addresses(code: &[u8], is_wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = u64> {
    /// `call`, with the distance to its target from the instruction behind it.
    const CALL: u8 = 0xe8;
    code.windows(5).filter_map(move |bytes| {
        let &[CALL, a, b, c, d] = bytes else { return None };
        let after = bytes.as_ptr() as usize + bytes.len();
        let target = after.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]) as isize);
        is_wanted(target).then_some(after as u64)
    })
}

/// Whether code at `target` is a function, or a jump of the linker's that leads or may lead to it.
fn leads_to(memory: &ProcessMemory, target: usize, function: usize) -> bool {
    /// `endbr64`, `bnd`, and `jmp *[rip + distance]`.
    const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    const BND: u8 = 0xf2;
    const JUMP: [u8; 2] = [0xff, 0x25];
    /// `push`, with which a jump begins that is not bound yet.
    const PUSH: u8 = 0x68;
    if target == function {
        return true;
    }
    let mut code = [0; 11];
    if !memory.read(target as u64, &mut code) {
        return false;
    }
    let jump = code.strip_prefix(&LANDING).unwrap_or(&code);
    let jump = jump.strip_prefix(&[BND]).unwrap_or(jump);
    let Some((distance, rest)) = jump.strip_prefix(&JUMP).and_then(<[u8]>::split_first_chunk::<4>)
    else {
        return false;
    };
    let after = target + code.len() - rest.len();
    let slot = after.wrapping_add_signed(i32::from_le_bytes(*distance) as isize);
    let Some(bound) = memory.word(slot) else { return false };
    let mut first = [0; 5];
    let is_unbound = memory.read(bound as u64, &mut first)
        && first.strip_prefix(&LANDING).unwrap_or(&first).first() == Some(&PUSH);
    bound == function || is_unbound
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code that calls `target`, between other bytes.
    fn calling(code: &mut [u8; 16], target: usize) -> u64 {
        let after = code.as_ptr() as usize + 9;
        let distance = i32::try_from(target as isize - after as isize).unwrap();
        code[4] = 0xe8;
        code[5..9].copy_from_slice(&distance.to_le_bytes());
        after as u64
    }

    #[test]
    fn calls_are_found_by_their_target() {
        let mut code = [0x90; 16];
        let target = code.as_ptr() as usize + 1000;
        let after = calling(&mut code, target);
        let found = |wanted| return_addresses(&code, move |target| target == wanted);
        assert_eq!(found(target).collect::<Vec<_>>(), [after]);
        assert_eq!(found(target + 1).count(), 0);
    }

    /// A jump through a word 32 bytes behind its beginning, and what it leads to.
    fn jump(prefix: &[u8], bound: usize) -> [u8; 40] {
        let mut code = [0; 40];
        let distance = 32 - prefix.len() as i32 - 6;
        let bytes = [prefix, &[0xff, 0x25], &distance.to_le_bytes()].concat();
        code[..bytes.len()].copy_from_slice(&bytes);
        code[32..].copy_from_slice(&bound.to_ne_bytes());
        code
    }

    #[test]
    fn jumps_of_the_linker_are_followed() {
        let function = jump as *const () as usize;
        let leads = |code: &[u8]| leads_to(&ProcessMemory::new(), code.as_ptr() as usize, function);
        let prefixes: [&[u8]; 3] =
            [&[], &[0xf3, 0x0f, 0x1e, 0xfa], &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2]];
        for prefix in prefixes {
            assert!(leads(&jump(prefix, function)));
            assert!(!leads(&jump(prefix, function + 1)));
            for unbound in [&[0x68_u8, 0, 0, 0, 0][..], &[0xf3, 0x0f, 0x1e, 0xfa, 0x68]] {
                assert!(leads(&jump(prefix, unbound.as_ptr() as usize)), "it may lead there");
            }
        }
        assert!(!leads(&[0x90; 40]));
        assert!(leads_to(&ProcessMemory::new(), function, function));
        assert!(!leads_to(&ProcessMemory::new(), 8, function));
    }
}
