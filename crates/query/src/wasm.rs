//! The exports of the WebAssembly module, which imports nothing.
//!
//! The page writes bytes into memory that [`alloc`] returned, and passes them to
//! [`open`], [`reopen`] or [`query`], which take that memory over. The answer stays at
//! [`result`] until the next call. A worker has one thread, so all state is local
//! to it.

#![allow(unsafe_code)]

use std::cell::RefCell;

use crate::Engine;
use crate::engine::refusal;

/// All that a module keeps between calls.
#[derive(Default)]
struct State {
    engine: Engine,
    /// The memory that the page writes into.
    input: Vec<u8>,
    result: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// Memory for the next input, of this length.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn alloc(length: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; length];
        state.input.as_mut_ptr()
    })
}

/// Opens the archive in the input. Returns the number of the trace, or the negative
/// length of the result, which is an error.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn open() -> i32 {
    open_with(|engine, archive| engine.open(archive))
}

/// Opens the archive in the input in place of that of a trace. Returns its number, or the
/// negative length of the result, which is an error.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn reopen(trace: usize) -> i32 {
    open_with(|engine, archive| engine.reopen(trace, archive).map(|()| trace))
}

fn open_with(open: impl FnOnce(&mut Engine, &[u8]) -> Result<usize, String>) -> i32 {
    STATE.with_borrow_mut(|state| {
        let input = std::mem::take(&mut state.input);
        match open(&mut state.engine, &input) {
            Ok(number) => i32::try_from(number).unwrap_or(i32::MAX),
            Err(error) => {
                state.result = refusal(&error).into_bytes();
                -i32::try_from(state.result.len()).unwrap_or(i32::MAX)
            }
        }
    })
}

/// Answers the request in the input. Returns the length of the result.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn query() -> usize {
    STATE.with_borrow_mut(|state| {
        let input = std::mem::take(&mut state.input);
        state.result = state.engine.query(&input).into_bytes();
        state.result.len()
    })
}

/// The last result.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn result() -> *const u8 {
    STATE.with_borrow(|state| state.result.as_ptr())
}
