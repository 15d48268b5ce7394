//! Which Lua a program holds, by its symbols.

use std::ffi::CStr;

use heaptap_settings::LUA;

use crate::runtimes::attach::{Lookup, Refusal, patch, symbols};

/// The release whose layout is known.
pub(super) const RELEASE: &str = "Lua 5.4.4";

/// Whether a program with these symbols holds a Lua that can be traced. A refusal if it holds
/// another one.
pub(super) fn is_lua(lookup: Lookup<'_>) -> Result<bool, Refusal> {
    if lookup(c"lua_newstate").is_none() {
        return Ok(false);
    }
    // SAFETY: what the program exports under this name.
    let found = lookup(c"lua_ident").and_then(|address| unsafe { release_at(address) });
    match found {
        Some(RELEASE) => Ok(true),
        Some(found) => Err(refused(found)),
        // It has the same functions, and no such text.
        None if lookup(c"luaJIT_setmode").is_some() => Err(refused("LuaJIT")),
        None => Err(refused("a Lua of unknown version")),
    }
}

fn refused(found: &'static str) -> Refusal {
    Refusal::Version { found, supported: LUA.releases }
}

/// The release in a text such as `$LuaVersion: Lua 5.4.4  Copyright ...` (`lapi.c`).
///
/// # Safety
/// A variable of the program is at this address, and stays.
unsafe fn release_at(address: usize) -> Option<&'static str> {
    /// Of the shortest of these texts, in Lua 5.1.
    const LENGTH: usize = 64;
    // SAFETY: the caller's; every release's text is longer.
    let text = unsafe { std::slice::from_raw_parts(address as *const u8, LENGTH) };
    release_in(text)
}

fn release_in(text: &'static [u8]) -> Option<&'static str> {
    let start = text.windows(4).position(|part| part == b"Lua ")?;
    let rest = text.get(start..)?;
    let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let length = 4 + rest.iter().skip(4).take_while(|byte| is_version(byte)).count();
    let release = std::str::from_utf8(rest.get(..length)?).ok()?;
    (text.first() == Some(&b'$') && length > 4).then_some(release)
}

/// Whether another copy of this library traces the runtime in this program.
pub(super) fn is_traced_already() -> bool {
    let name: &CStr = c"lua_newstate";
    let is_replaced = |function| {
        // SAFETY: a function of the runtime of more than 16 bytes (`lstate.c`). Its target, if it
        // begins with a jump, is a relay or code of the same runtime.
        unsafe { patch::is_replaced(function) }
    };
    symbols::lookup(name).is_some_and(is_replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_from_the_text_that_each_has() {
        let of = |text: &'static [u8]| release_in(text);
        assert_eq!(of(b"$LuaVersion: Lua 5.4.4  Copyright (C) 1994-2022"), Some(RELEASE));
        assert_eq!(of(b"$LuaVersion: Lua 5.4.6  Copyright (C) 1994-2023"), Some("Lua 5.4.6"));
        assert_eq!(of(b"$Lua: Lua 5.1.5 Copyright (C) 1994-2012 Lua.org"), Some("Lua 5.1.5"));
        assert_eq!(of(b"Lua 5.4.4"), None);
        assert_eq!(of(b"$LuaVersion: Lua x"), None);
        assert_eq!(of(b""), None);
    }

    #[test]
    fn other_runtimes_are_refused_by_name() {
        let text: &[u8; 80] =
            b"$LuaVersion: Lua 5.3.6  Copyright (C) 1994-2020 Lua.org, PUC-Rio $$LuaAuthors: x";
        let verdict = |symbols: &[&CStr]| {
            let address =
                |name: &CStr| if name == c"lua_ident" { text.as_ptr() as usize } else { 1 };
            is_lua(&|name| symbols.contains(&name).then(|| address(name)))
        };
        let why = |symbols: &[&CStr]| verdict(symbols).unwrap_err().to_string();
        assert_eq!(verdict(&[c"lua_ident"]), Ok(false));
        assert_eq!(why(&[c"lua_newstate", c"lua_ident"]), "its runtime is Lua 5.3.6: use 5.4.4");
        assert_eq!(why(&[c"lua_newstate", c"luaJIT_setmode"]), "its runtime is LuaJIT: use 5.4.4");
        assert!(why(&[c"lua_newstate"]).contains("unknown version"));
    }
}
