//! The frames of C code between a sample and the innermost managed frame.
//!
//! Unwinding starts from the registers of an exported function of this library, captured
//! in that very function ([`Registers::capture`]): its caller is the first frame that is
//! not the library's, even when the library is linked statically into the host. It
//! follows the unwind tables up to the limit that the host gave, or to the first rule
//! that is not simple ([`rule`]).
//!
//! Runs on the mutator, inside hooks: no malloc, no locks, no panics, no system calls.
//! The rule of each return address is cached, direct-mapped. A miss asks the C library
//! for the module and interprets the unwind instructions of one function, in a few
//! hundred bytes of stack (a test measures it). So a backtrace is complete from the first
//! sample on.

#![allow(unsafe_code, reason = "hands out the reader of the live stack")]

mod modules;
mod registers;
mod rule;
#[cfg(test)]
mod tests;

use super::memory::{Live, Memory};
use super::slots::spread;
pub(crate) use modules::Modules;
pub(crate) use registers::Registers;
use rule::Rule;

/// Entries of the cache, each of two words.
const CACHE: usize = 1024;

/// In the cache: the address has no rule that can be followed.
const NO_RULE: u64 = 0;

/// The native frames of one mutator's samples.
pub(crate) struct Unwinder<S> {
    /// Pairs of a return address and its packed rule, [`CACHE`] of them.
    cache: S,
}

impl<S: AsMut<[u64]>> Unwinder<S> {
    /// How many words of storage an unwinder needs.
    pub(crate) const WORDS: usize = 2 * CACHE;

    /// `None` if the storage is too small.
    pub(crate) fn new(mut storage: S) -> Option<Self> {
        storage.as_mut().get_mut(..Self::WORDS)?.fill(0);
        Some(Self { cache: storage })
    }

    /// Writes the return addresses of the frames outside the captured one,
    /// innermost first, and returns how many.
    ///
    /// # Safety
    /// `registers` were captured in a function that has not returned, and the stack from
    /// there up to `limit` is readable.
    pub(crate) unsafe fn unwind(
        &mut self,
        modules: &Modules,
        registers: Registers,
        limit: u64,
        codes: &mut [u64],
    ) -> usize {
        // SAFETY: `step` reads only between the captured stack pointer and `limit`, which
        // the caller guarantees to be readable.
        let live = unsafe { Live::new() };
        let mut registers = registers;
        let mut count = 0;
        let mut skipping = true;
        while let Some(slot) = codes.get_mut(count) {
            let Some(outer) = self.step(&live, modules, registers, limit) else {
                break;
            };
            registers = outer;
            skipping = skipping && modules.is_own(outer.pc);
            if !skipping {
                *slot = outer.pc;
                count += 1;
            }
        }
        count
    }

    /// The caller's registers: `(pc, sp, bp) = (*(cfa − 8), cfa, bp | *(cfa + offset))`.
    fn step<M: Memory>(
        &mut self,
        memory: &M,
        modules: &Modules,
        registers: Registers,
        limit: u64,
    ) -> Option<Registers> {
        let rule = self.rule(modules, registers.pc)?;
        let base = if rule.cfa_from_bp { registers.bp } else { registers.sp };
        let cfa = base.checked_add_signed(i64::from(rule.cfa_offset))?;
        if cfa <= registers.sp || cfa >= limit {
            return None;
        }
        let read = |offset: i64| {
            let address = cfa.checked_add_signed(offset)?;
            let inside = registers.sp <= address && address < limit;
            if inside { memory.word(address) } else { None }
        };
        let pc = read(-8).filter(|&pc| pc != 0)?;
        let bp = match rule.bp_offset {
            Some(offset) => read(i64::from(offset))?,
            None => registers.bp,
        };
        Some(Registers { pc, sp: cfa, bp })
    }

    fn rule(&mut self, modules: &Modules, pc: u64) -> Option<Rule> {
        let index = (spread(pc) >> (64 - CACHE.trailing_zeros())) as usize;
        let entry = self.cache.as_mut().get_mut(2 * index..2 * index + 2)?;
        let [key, word] = entry else { return None };
        if *key != pc {
            // The rule of the call, one byte before: a call that does not return may be
            // the last instruction of its function.
            let code = pc.checked_sub(1)?;
            let found = modules.find(code).and_then(|module| Rule::find(&module, code));
            (*key, *word) = (pc, found.map_or(NO_RULE, Rule::pack));
        }
        Rule::unpack(*word)
    }
}
