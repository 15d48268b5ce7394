//! What a function and its chunk are called. Runs in hooks, when a function is met first.

use std::ffi::{CStr, c_char, c_int};

use super::layout::{CallInfo, Proto, Thread};
use super::places::{MOST_BYTES, Places, Text};

/// `lua_Debug` (`lua.h`, Lua 5.4).
#[repr(C)]
pub(super) struct Debug {
    event: c_int,
    pub(super) name: *const c_char,
    namewhat: *const c_char,
    what: *const c_char,
    pub(super) source: *const c_char,
    pub(super) source_length: usize,
    pub(super) current_line: c_int,
    pub(super) line_defined: c_int,
    last_line_defined: c_int,
    flags: [u8; 8],
    short_source: [u8; 60],
    call: usize,
}

const _: () = assert!(size_of::<Debug>() == 136 && std::mem::offset_of!(Debug, call) == 128);

impl Debug {
    /// About a call, for `lua_getinfo`.
    pub(super) fn of(call: CallInfo) -> Debug {
        // SAFETY: integers, bytes and pointers that may be NULL.
        let empty = unsafe { std::mem::zeroed() };
        Debug { call: call.address(), ..empty }
    }

    /// The address of the call that it is about.
    pub(super) fn call(&self) -> usize {
        self.call
    }
}

/// `int lua_getinfo (lua_State *L, const char *what, lua_Debug *ar)`
pub(super) type GetInfo = unsafe extern "C-unwind" fn(usize, *const c_char, *mut Debug) -> c_int;

/// The file of a function, or what its chunk is called: the name of a file, what the host says,
/// or the beginning of a text that was loaded.
pub(super) fn file(places: &Places, proto: Proto) -> Option<Text> {
    match proto.source() {
        None => places.text(b"?"),
        Some([b'@' | b'=', name @ ..]) => places.text(name),
        Some(text) => {
            const PREFIX: &[u8] = b"[string \"";
            let mut name = [0; MOST_BYTES];
            let line = text.split(|&byte| byte == b'\n').next().unwrap_or(text);
            let line = line.get(..LONGEST_LINE).unwrap_or(line);
            let end: &[u8] = if line.len() < text.len() { b"...\"]" } else { b"\"]" };
            let parts = PREFIX.iter().chain(line).chain(end);
            let length = PREFIX.len() + line.len() + end.len();
            name.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
            places.text(name.get(..length)?)
        }
    }
}

/// How much of a text that was loaded names it.
const LONGEST_LINE: usize = 48;

/// The name of the function that runs in a call of this thread, as its caller calls it.
pub(super) fn name(
    places: &Places,
    get_info: GetInfo,
    thread: Thread,
    call: CallInfo,
    proto: Proto,
) -> Option<Text> {
    if proto.line_defined() == 0 {
        return places.text(b"(main chunk)");
    }
    let mut debug = Debug::of(call);
    // SAFETY: the runtime's function of this type, a thread of it, and a call of that. What it
    // reads is the caller's code; it allocates nothing and raises no error.
    unsafe { get_info(thread.address(), c"n".as_ptr(), &raw mut debug) };
    if debug.name.is_null() {
        return places.text(b"(anonymous)");
    }
    // SAFETY: a C string of the runtime, kept by the caller's code or static.
    places.text(unsafe { CStr::from_ptr(debug.name) }.to_bytes())
}
