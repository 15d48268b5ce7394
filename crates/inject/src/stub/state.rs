//! The words that the stub and the attachers share, in the zeros behind a `.bss`.
//!
//! They outlive an attacher that is killed, and are how a later one knows what was left. So a
//! change of the words up to `owner_namespace` needs another [`MAGIC`].

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

/// The state, as it lies in the program's memory.
#[repr(C)]
pub(crate) struct Words {
    magic: u64,
    pub(crate) status: u64,
    stub: u64,
    stub_size: u64,
    /// Of the state and the strings behind it.
    state_size: u64,
    /// Where the hook is.
    pub(crate) hook: u64,
    /// What it was before.
    pub(crate) earlier: u64,
    /// 1 if somebody else has set the hook before the stub ran, and may call it at any time.
    pub(crate) chained: u64,
    /// The process that is meant, by its own name for itself.
    pub(crate) pid: u64,
    /// In seconds of `CLOCK_REALTIME`, the only clock that is one in all namespaces of time.
    pub(crate) deadline: u64,
    /// The attacher, when it was started, and in which namespace of processes.
    owner: u64,
    owner_start: u64,
    owner_namespace: u64,
    /// A `struct timespec` for the stub.
    pub(crate) now: [u64; 2],
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
    /// What the entry has returned.
    pub(crate) result: u64,
}

const WORDS: usize = size_of::<Words>() / size_of::<u64>();
const _: () = assert!(size_of::<Words>() == 25 * 8);

/// What an attacher finds out about an injection, its own or another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) status: Status,
    pub(crate) stub: u64,
    pub(crate) stub_size: u64,
    pub(crate) state_size: u64,
    pub(crate) hook: u64,
    pub(crate) earlier: u64,
    pub(crate) chained: bool,
    pub(crate) pid: u64,
    pub(crate) deadline: u64,
    pub(crate) owner: Owner,
    pub(crate) message: u64,
    pub(crate) result: i32,
}

/// The attacher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pid: u64,
    /// Field 22 of `/proc/PID/stat`.
    pub(crate) start: u64,
    /// The inode of `/proc/PID/ns/pid`.
    pub(crate) namespace: u64,
}

impl Header {
    /// How many bytes it is read from.
    pub(crate) const SIZE: usize = size_of::<Words>();

    /// `None` if the bytes are something else.
    pub(crate) fn parse(bytes: &[u8; Header::SIZE]) -> Option<Header> {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(size_of::<u64>())) {
            *word = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        }
        let [magic, status, stub, stub_size, state_size, hook, earlier, chained, pid, deadline, ..] =
            words;
        let [.., message, _, result] = words;
        (magic == MAGIC).then_some(())?;
        Some(Header {
            status: Status::of(status)?,
            stub,
            stub_size,
            state_size,
            hook,
            earlier,
            chained: chained != 0,
            pid,
            deadline,
            owner: Owner { pid: words[10], start: words[11], namespace: words[12] },
            message,
            result: result as u32 as i32,
        })
    }
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

/// Space for the loader's message, if the strings leave less.
const MESSAGE: usize = 192;

impl Strings<'_> {
    fn room(&self) -> usize {
        let strings = [self.library, self.entry, self.argument];
        let size: usize = strings.iter().map(|string| string.len() + 1).sum();
        size.next_multiple_of(size_of::<u64>()).max(MESSAGE)
    }

    /// How many bytes state and strings take.
    pub(crate) fn state_size(&self) -> usize {
        size_of::<Words>() + self.room()
    }
}

/// All that a new state is made of.
pub(crate) struct NewState<'a> {
    /// Where it will be.
    pub(crate) address: u64,
    pub(crate) stub: u64,
    pub(crate) stub_size: usize,
    pub(crate) hook: u64,
    pub(crate) earlier: u64,
    pub(crate) pid: u64,
    pub(crate) deadline: u64,
    pub(crate) owner: Owner,
    pub(crate) loader: Loader,
    pub(crate) strings: Strings<'a>,
}

impl NewState<'_> {
    /// Armed.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Strings { library, entry, argument } = self.strings;
        let message = self.address + size_of::<Words>() as u64;
        let entry_at = message + library.len() as u64 + 1;
        let words: [u64; WORDS] = [
            MAGIC,
            Status::Armed as u64,
            self.stub,
            self.stub_size as u64,
            self.strings.state_size() as u64,
            self.hook,
            self.earlier,
            0,
            self.pid,
            self.deadline,
            self.owner.pid,
            self.owner.start,
            self.owner.namespace,
            0,
            0,
            self.loader.errno_location,
            self.loader.dlopen,
            self.loader.dlsym,
            self.loader.dlerror,
            message,
            entry_at,
            entry_at + entry.len() as u64 + 1,
            message,
            // The last byte of the room stays 0.
            self.strings.room() as u64 - 1,
            0,
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for string in [library, entry, argument] {
            bytes.extend_from_slice(string);
            bytes.push(0);
        }
        bytes.resize(self.strings.state_size(), 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use proptest::prelude::*;

    use super::*;

    const OWNER: Owner = Owner { pid: 7, start: 8, namespace: 9 };

    fn state(strings: Strings<'_>) -> Vec<u8> {
        let new = NewState {
            address: 0x5000,
            stub: 0x4000,
            stub_size: 0x180,
            hook: 0x6000,
            earlier: 0x7000,
            pid: 1,
            deadline: 2,
            owner: OWNER,
            loader: Loader { errno_location: 3, dlopen: 4, dlsym: 5, dlerror: 6 },
            strings,
        };
        new.bytes()
    }

    #[test]
    fn a_state_has_its_words_where_the_stub_looks_for_them() {
        let bytes = state(Strings { library: b"/lib.so", entry: b"run", argument: b"" });
        let word = |offset: usize| {
            u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
        };
        let string = |offset: usize| {
            let start = word(offset) as usize - 0x5000;
            bytes[start..].split(|&byte| byte == 0).next().expect("a string")
        };
        assert_eq!(word(offset_of!(Words, status)), 1);
        assert_eq!(word(offset_of!(Words, hook)), 0x6000);
        assert_eq!(word(offset_of!(Words, pid)), 1);
        assert_eq!(word(offset_of!(Words, errno_location)), 3);
        assert_eq!(word(offset_of!(Words, dlerror)), 6);
        assert_eq!(string(offset_of!(Words, library)), b"/lib.so");
        assert_eq!(string(offset_of!(Words, entry)), b"run");
        assert_eq!(string(offset_of!(Words, argument)), b"");
        let end = word(offset_of!(Words, message)) + word(offset_of!(Words, message_room));
        assert_eq!(end - 0x5000 + 1, bytes.len() as u64);

        let header = Header::parse(bytes.first_chunk().expect("as long")).expect("a state");
        assert_eq!((header.status, header.stub, header.stub_size), (Status::Armed, 0x4000, 0x180));
        assert_eq!((header.hook, header.earlier, header.chained), (0x6000, 0x7000, false));
        assert_eq!((header.pid, header.deadline, header.owner), (1, 2, OWNER));
        assert_eq!((header.state_size, header.message), (bytes.len() as u64, word(19 * 8)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_words_are_read_without_a_panic(bytes: [u8; 32], status in 0_u64..12) {
            let mut state = state(Strings { library: b"", entry: b"", argument: b"" });
            state[16..48].copy_from_slice(&bytes);
            state[8..16].copy_from_slice(&status.to_le_bytes());
            let header = Header::parse(state.first_chunk().expect("as long"));
            prop_assert_eq!(header.is_some(), (1..=9).contains(&status));
        }
    }
}
