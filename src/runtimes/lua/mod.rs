//! Lua: everything that is known about its runtime. Programs of Lua 5.4.4 for amd64 are traced
//! unmodified: the interpreter, and programs that use the library.
//!
//! A Lua state gets all its memory from one function that the program gives it. Before `main` the
//! first bytes of `lua_newstate` are replaced by a jump to a hook that puts a function of ours
//! around that one. It takes words off a countdown; a sample walks the calls of the state.
//!
//! - `runtime`: Lua as an implementation of the trait `Runtime`; `detect`: which Lua a program
//!   holds; `sessions`: how a session begins and ends.
//! - `symbols`: what is used of the runtime; `layout`: how it lays out what is read; `proof`,
//!   `proof_calls` and `watched`: the live proof of that, before anything is changed.
//! - `hooks`: the functions that are replaced; `state`: what each state has while it is traced;
//!   `allocator`: the function around the program's; `filter`: what is freed and was not sampled; `kinds`: what a block is for.
//! - `stack`: from the calls of a state to codes; `constructors`: where the interpreter is in a
//!   table constructor; `lines` and `names`: what a place is called; `places`: what codes mean,
//!   for good; `place_cache`: the codes of places that were met.
//!
//! Facts about the runtime are from the source of Lua 5.4.4.
//!
//! Hooks run on the thread that uses the state. Each state has a mutator.

mod allocator;
mod constructors;
mod detect;
mod filter;
mod hooks;
mod kinds;
mod layout;
mod lines;
mod names;
mod place_cache;
mod places;
mod proof;
mod proof_calls;
mod runtime;
mod sessions;
mod stack;
mod state;
mod symbols;
mod watched;

use runtime::Lua54;

/// Lua 5.4.
pub(super) static LUA54: Lua54 = Lua54;
