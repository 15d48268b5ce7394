//! The runtime's parameters, as `Sys.runtime_parameters` returns them
//! (`caml_runtime_parameters`, `runtime/gc_ctrl.c`, 4.14.1 and 5.3.0).
//!
//! The runtime sets them when it starts, which is after the library was attached. Its own
//! function allocates in the program's heap, so the same variables are read here, on the
//! writer thread: each is a word or an int that is read in one piece.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Where a parameter's value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum ParameterSource {
    /// An `uintnat` at this address.
    Word(usize),
    /// A variable at this address, of which an `int` is printed.
    Int(usize),
    /// The word with this index of a state.
    StateWord(usize),
    /// An `int` in the word with this index of a state.
    StateInt(usize),
    /// A number that the runtime does not keep in a variable.
    Constant(usize),
}

/// A parameter's letter and value, or its letter and where the value is.
type Parameter<T> = (char, T);

/// All parameters, in the order of the runtime's text.
pub(super) struct Parameters<S> {
    sources: Vec<Parameter<ParameterSource>>,
    /// The address of a state, once there is one.
    state: S,
}

impl<S: Fn() -> Option<usize>> Parameters<S> {
    /// # Safety
    /// The sources are variables of the runtime, which are never unmapped, and `state`
    /// returns the address of a state with words of these indices.
    pub(super) unsafe fn new(sources: Vec<Parameter<ParameterSource>>, state: S) -> Self {
        Parameters { sources, state }
    }

    /// The text. `None` while the runtime has not set all of them.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let state = (self.state)()?;
        let value = |source| {
            let word = |address: usize| {
                // SAFETY: an aligned variable of the runtime or word of a state, by the
                // contract of `new`.
                let word = unsafe { AtomicUsize::from_ptr(address as *mut usize) };
                word.load(Ordering::Relaxed) as i128
            };
            let int = |address: usize| {
                // SAFETY: an aligned variable of the runtime or word of a state that begins
                // with an `int`, by the contract of `new`.
                let int = unsafe { AtomicI32::from_ptr(address as *mut i32) };
                i128::from(int.load(Ordering::Relaxed))
            };
            let in_state = |index: usize| state + index * size_of::<usize>();
            match source {
                ParameterSource::Word(address) => word(address),
                ParameterSource::Int(address) => int(address),
                ParameterSource::StateWord(index) => word(in_state(index)),
                ParameterSource::StateInt(index) => int(in_state(index)),
                ParameterSource::Constant(value) => value as i128,
            }
        };
        let values = self.sources.iter().map(|&(letter, source)| (letter, value(source)));
        text(&values.collect::<Vec<_>>())
    }
}

/// `caml_allocation_policy` of OCaml 4 before it is set (`runtime/freelist.c`, 4.14.1).
const NO_POLICY: i128 = 999;

/// The runtime's text. `None` if a parameter has a value that it has before the runtime
/// sets it only: the size of the young heap, the space overhead, or the policy.
fn text(values: &[Parameter<i128>]) -> Option<Vec<u8>> {
    let mut text = String::new();
    for &(letter, value) in values {
        if matches!((letter, value), ('s' | 'o', 0) | ('a', NO_POLICY)) {
            return None;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}{letter}={value}");
    }
    Some(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_where_they_are_once_there_is_a_state() {
        let state: [usize; 3] = [7, 262_144, usize::MAX];
        let (policy, overhead) = (2_usize, 120_usize);
        let sources = vec![
            ('a', ParameterSource::Int(&raw const policy as usize)),
            ('b', ParameterSource::StateInt(2)),
            ('l', ParameterSource::Constant(0)),
            ('o', ParameterSource::Word(&raw const overhead as usize)),
            ('s', ParameterSource::StateWord(1)),
        ];
        // SAFETY: variables of this test, and a state of three words.
        let none = unsafe { Parameters::new(sources.clone(), || None) };
        assert_eq!(none.read(), None);
        // SAFETY: variables of this test, and a state of three words.
        let some = unsafe { Parameters::new(sources, || Some(&raw const state as usize)) };
        assert_eq!(some.read().unwrap(), b"a=2,b=-1,l=0,o=120,s=262144");
    }

    #[test]
    fn a_runtime_that_is_starting_has_no_parameters_yet() {
        assert_eq!(text(&[('a', 999), ('s', 1)]), None);
        assert_eq!(text(&[('o', 0), ('s', 1)]), None);
        assert_eq!(text(&[('o', 1), ('s', 0)]), None);
        assert_eq!(text(&[('o', 1), ('s', 2)]).unwrap(), b"o=1,s=2");
    }
}
