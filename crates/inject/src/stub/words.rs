//! The words that the stub and the attachers share: a state, in the zeros behind a `.bss`, and
//! constants, behind the code.
//!
//! They outlive an attacher that is killed, and are how a later one knows what was left. So a
//! change needs another [`MAGIC`].

/// The first word. The last byte is a version.
const MAGIC: u64 = u64::from_le_bytes(*b"heaptap\x01");

/// How far the stub is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Status {
    /// The hook points to the stub.
    Armed = 1,
    /// The hook is put back.
    Entered = 2,
    /// In `dlopen` or `dlsym`.
    Loading = 3,
    /// In the library's entry.
    Calling = 4,
    /// The entry has returned.
    Returned = 5,
    /// `dlopen` failed.
    NotLoaded = 6,
    /// `dlsym` failed.
    NoEntry = 7,
    /// There was no memory for a stack.
    NoStack = 8,
    /// Nothing was done: too late, or in another process; or the attacher took it back.
    Abandoned = 9,
}

impl Status {
    const ALL: [Status; 9] = [
        Status::Armed,
        Status::Entered,
        Status::Loading,
        Status::Calling,
        Status::Returned,
        Status::NotLoaded,
        Status::NoEntry,
        Status::NoStack,
        Status::Abandoned,
    ];

    pub(crate) fn of(word: u64) -> Option<Status> {
        Status::ALL.into_iter().find(|&status| status as u64 == word)
    }

    /// Whether the stub has nothing more to do than to return.
    pub(crate) fn is_over(self) -> bool {
        self as u64 >= Status::Returned as u64
    }
}

/// What the stub changes, as it lies in the program's memory. The loader's message follows.
#[repr(C)]
pub(crate) struct State {
    magic: u64,
    pub(crate) status: u64,
    code: u64,
    /// Of the code with what follows it.
    code_size: u64,
    /// Of the state with the message.
    state_size: u64,
    constants: u64,
    /// 1 if somebody else has set the hook before the stub ran, and may call it at any time.
    pub(crate) chained: u64,
    /// What the entry has returned.
    pub(crate) result: u64,
}

/// What the stub only reads. The strings follow.
#[repr(C)]
pub(crate) struct Constants {
    pub(crate) state: u64,
    /// Where the hook is.
    pub(crate) hook: u64,
    /// What it was before.
    pub(crate) earlier: u64,
    /// The process that is meant, by its own name for itself.
    pub(crate) pid: u64,
    /// In seconds of `CLOCK_REALTIME`, the only clock that is one in all namespaces of time.
    pub(crate) deadline: u64,
    /// The attacher, when it was started, and in which namespace of processes.
    owner: [u64; 3],
    pub(crate) errno_location: u64,
    pub(crate) dlopen: u64,
    pub(crate) dlsym: u64,
    pub(crate) dlerror: u64,
    /// Addresses of strings.
    pub(crate) library: u64,
    pub(crate) entry: u64,
    pub(crate) argument: u64,
    /// Where the loader's message goes, and how long it may be.
    pub(crate) message: u64,
    pub(crate) message_room: u64,
}

const WORD: usize = size_of::<u64>();
const STATE_WORDS: usize = size_of::<State>() / WORD;
const CONSTANT_WORDS: usize = size_of::<Constants>() / WORD;
const _: () = assert!(STATE_WORDS == 8 && CONSTANT_WORDS == 17);

/// The attacher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pid: u64,
    /// Field 22 of `/proc/PID/stat`.
    pub(crate) start: u64,
    /// The inode of `/proc/PID/ns/pid`.
    pub(crate) namespace: u64,
}

/// What an attacher finds out from a state, its own or another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) status: Status,
    pub(crate) code: u64,
    pub(crate) code_size: u64,
    pub(crate) state_size: u64,
    pub(crate) constants: u64,
    pub(crate) chained: bool,
    pub(crate) result: i32,
}

impl Header {
    /// How many bytes it is read from.
    pub(crate) const SIZE: usize = size_of::<State>();

    /// `None` if the bytes are something else.
    pub(crate) fn parse(bytes: &[u8; Header::SIZE]) -> Option<Header> {
        let [magic, status, code, code_size, state_size, constants, chained, result] =
            words::<STATE_WORDS>(bytes);
        (magic == MAGIC).then_some(())?;
        Some(Header {
            status: Status::of(status)?,
            code,
            code_size,
            state_size,
            constants,
            chained: chained != 0,
            result: result as u32 as i32,
        })
    }
}

/// What the constants say about an injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meant {
    pub(crate) state: u64,
    pub(crate) hook: u64,
    pub(crate) earlier: u64,
    pub(crate) pid: u64,
    pub(crate) deadline: u64,
    pub(crate) owner: Owner,
}

impl Meant {
    /// How many bytes it is read from.
    pub(crate) const SIZE: usize = size_of::<Constants>();

    /// Whatever the bytes are.
    pub(crate) fn parse(bytes: &[u8; Meant::SIZE]) -> Meant {
        let [state, hook, earlier, pid, deadline, owner, start, namespace, ..] =
            words::<CONSTANT_WORDS>(bytes);
        let owner = Owner { pid: owner, start, namespace };
        Meant { state, hook, earlier, pid, deadline, owner }
    }
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(WORD)) {
        *word = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    }
    words
}

/// The functions of the C library that the stub calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loader {
    /// `__errno_location`
    pub(crate) errno_location: u64,
    pub(crate) dlopen: u64,
    pub(crate) dlsym: u64,
    pub(crate) dlerror: u64,
}

/// The strings of an injection, without NUL.
#[derive(Clone, Copy)]
pub(crate) struct Strings<'a> {
    pub(crate) library: &'a [u8],
    pub(crate) entry: &'a [u8],
    pub(crate) argument: &'a [u8],
}

impl Strings<'_> {
    /// How many bytes constants and strings take.
    pub(crate) fn size(&self) -> usize {
        let strings = [self.library, self.entry, self.argument];
        let strings: usize = strings.iter().map(|string| string.len() + 1).sum();
        size_of::<Constants>() + strings.next_multiple_of(WORD)
    }
}

/// All that a new injection is made of.
pub(crate) struct New<'a> {
    /// Where code and state will be, and how large they may be.
    pub(crate) code: u64,
    pub(crate) code_size: u64,
    pub(crate) state: u64,
    pub(crate) state_size: u64,
    /// Where the constants will be.
    pub(crate) constants: u64,
    pub(crate) meant: Meant,
    pub(crate) loader: Loader,
    pub(crate) strings: Strings<'a>,
}

impl New<'_> {
    /// Not armed yet.
    pub(crate) fn state(&self) -> Vec<u8> {
        let words: [u64; STATE_WORDS] = [
            MAGIC,
            Status::Abandoned as u64,
            self.code,
            self.code_size,
            self.state_size,
            self.constants,
            0,
            0,
        ];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// With the strings behind them.
    pub(crate) fn constants(&self) -> Vec<u8> {
        let Strings { library, entry, argument } = self.strings;
        let library_at = self.constants + size_of::<Constants>() as u64;
        let entry_at = library_at + library.len() as u64 + 1;
        let Meant { state, hook, earlier, pid, deadline, owner } = self.meant;
        let room = self.state_size.saturating_sub(size_of::<State>() as u64);
        let words: [u64; CONSTANT_WORDS] = [
            state,
            hook,
            earlier,
            pid,
            deadline,
            owner.pid,
            owner.start,
            owner.namespace,
            self.loader.errno_location,
            self.loader.dlopen,
            self.loader.dlsym,
            self.loader.dlerror,
            library_at,
            entry_at,
            entry_at + entry.len() as u64 + 1,
            self.state + size_of::<State>() as u64,
            room,
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for string in [library, entry, argument] {
            bytes.extend_from_slice(string);
            bytes.push(0);
        }
        bytes.resize(self.strings.size(), 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use proptest::prelude::*;

    use super::*;

    const OWNER: Owner = Owner { pid: 7, start: 8, namespace: 9 };

    fn new() -> New<'static> {
        New {
            code: 0x4000,
            code_size: 0x400,
            state: 0x5000,
            state_size: 0x80,
            constants: 0x4180,
            meant: Meant {
                state: 0x5000,
                hook: 0x6000,
                earlier: 0x7000,
                pid: 1,
                deadline: 2,
                owner: OWNER,
            },
            loader: Loader { errno_location: 3, dlopen: 4, dlsym: 5, dlerror: 6 },
            strings: Strings { library: b"/lib.so", entry: b"run", argument: b"" },
        }
    }

    #[test]
    fn constants_are_where_the_stub_looks_for_them() {
        let bytes = new().constants();
        assert_eq!(bytes.len(), new().strings.size());
        let word = |offset: usize| words::<1>(&bytes[offset..])[0];
        let string = |offset: usize| {
            let start = word(offset) as usize - 0x4180;
            bytes[start..].split(|&byte| byte == 0).next().expect("a string")
        };
        assert_eq!(word(offset_of!(Constants, state)), 0x5000);
        assert_eq!(word(offset_of!(Constants, errno_location)), 3);
        assert_eq!(word(offset_of!(Constants, dlerror)), 6);
        assert_eq!(string(offset_of!(Constants, library)), b"/lib.so");
        assert_eq!(string(offset_of!(Constants, entry)), b"run");
        assert_eq!(string(offset_of!(Constants, argument)), b"");
        assert_eq!(word(offset_of!(Constants, message)), 0x5040);
        assert_eq!(word(offset_of!(Constants, message_room)), 0x40);
        assert_eq!(Meant::parse(bytes.first_chunk().expect("as long")), new().meant);
    }

    #[test]
    fn a_state_is_found_again() {
        let header = Header::parse(new().state().first_chunk().expect("as long"));
        let wanted = Header {
            status: Status::Abandoned,
            code: 0x4000,
            code_size: 0x400,
            state_size: 0x80,
            constants: 0x4180,
            chained: false,
            result: 0,
        };
        assert_eq!(header, Some(wanted));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_words_are_read_without_a_panic(bytes: [u8; 32], status in 0_u64..12) {
            let mut state = new().state();
            state[16..48].copy_from_slice(&bytes);
            state[8..16].copy_from_slice(&status.to_le_bytes());
            let header = Header::parse(state.first_chunk().expect("as long"));
            prop_assert_eq!(header.is_some(), (1..=9).contains(&status));
        }
    }
}
