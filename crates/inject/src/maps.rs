//! The mappings in `/proc/PID/maps`: what may be read, run and written, and which file is behind.
//!
//! The kernel writes that file, but the paths in it are the program's. Lines that are not
//! understood are left out.

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    /// One past the last address.
    pub(crate) end: u64,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
    /// Writes stay in this process.
    pub(crate) private: bool,
    pub(crate) offset: u64,
    /// Device and inode; `None` for memory without a file.
    pub(crate) file: Option<(Vec<u8>, u64)>,
    /// As the kernel writes it: with escapes, and with ` (deleted)`.
    pub(crate) path: Vec<u8>,
}

/// All mappings of a process, in order of address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Maps(pub(crate) Vec<Mapping>);

/// More mappings than this have programs that map single pages by the thousand; what is looked
/// for is among the first of each file. Bounds what is kept.
const MOST: usize = 1 << 17;

impl Maps {
    pub(crate) fn parse(text: &[u8]) -> Maps {
        let lines = text.split(|&byte| byte == b'\n').filter_map(Mapping::parse);
        let mut mappings: Vec<Mapping> = lines.take(MOST).collect();
        mappings.sort_by_key(|mapping| mapping.start);
        Maps(mappings)
    }

    /// The mapping that an address is in.
    pub(crate) fn at(&self, address: u64) -> Option<&Mapping> {
        let after = self.0.partition_point(|mapping| mapping.start <= address);
        let mapping = self.0.get(after.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// The mapping that a whole range is in.
    pub(crate) fn around(&self, start: u64, size: u64) -> Option<&Mapping> {
        let end = start.checked_add(size)?;
        self.at(start).filter(|mapping| end <= mapping.end)
    }

    /// Whether a range is private memory that the program itself may write.
    pub(crate) fn is_variable(&self, start: u64, size: u64) -> bool {
        self.around(start, size)
            .is_some_and(|mapping| mapping.private && mapping.writable && !mapping.executable)
    }

    /// Whether an address is one of code.
    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.at(address).is_some_and(|mapping| mapping.executable)
    }
}

impl Mapping {
    fn parse(line: &[u8]) -> Option<Mapping> {
        // The path is the rest of the line and may hold spaces.
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let (start, end) = split_once(fields.next()?, b'-')?;
        let (start, end) = (number(start, 16)?, number(end, 16)?);
        let &[_, write, execute, private] = fields.next()? else { return None };
        let offset = number(fields.next()?, 16)?;
        let device = fields.next()?.to_vec();
        let inode = number(fields.next()?, 10)?;
        let path = fields.next().unwrap_or_default().trim_ascii_start().to_vec();
        (start < end).then_some(Mapping {
            start,
            end,
            writable: write == b'w',
            executable: execute == b'x',
            private: private == b'p',
            offset,
            file: (inode != 0).then_some((device, inode)),
            path,
        })
    }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = bytes.iter().position(|&byte| byte == at)?;
    Some((bytes.get(..position)?, bytes.get(position + 1..)?))
}

/// A number without sign or spaces.
pub(crate) fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
    u64::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAPS: &[u8] = b"\
555555554000-555555556000 r--p 00000000 08:01 1234                       /usr/bin/a b
555555556000-555555558000 r-xp 00002000 08:01 1234                       /usr/bin/a b
555555558000-555555559000 rw-p 00004000 08:01 1234                       /usr/bin/a b
555555559000-55555555a000 rw-p 00000000 00:00 0                          [heap]
7ffff0000000-7ffff0001000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
nonsense
";

    #[test]
    fn mappings_are_found_by_address() {
        let maps = Maps::parse(MAPS);
        assert_eq!(maps.0.len(), 5);
        let text = maps.at(0x5555_5555_7fff).expect("text");
        assert_eq!((text.executable, text.writable, text.offset), (true, false, 0x2000));
        assert_eq!(
            (&text.path[..], text.file.clone()),
            (&b"/usr/bin/a b"[..], Some((b"08:01".to_vec(), 1234)))
        );
        assert!(maps.is_code(0x5555_5555_6000) && !maps.is_code(0x5555_5555_8000));
        assert!(maps.is_variable(0x5555_5555_8ff8, 8), "of the file, private");
        assert!(!maps.is_variable(0x5555_5555_8ffc, 8), "over the end of a mapping");
        assert!(!maps.is_variable(0x7fff_f000_0000, 8), "shared");
        assert!(!maps.is_variable(u64::MAX - 3, 8), "over the end of all");
        assert_eq!(maps.at(0x1000), None);
        assert_eq!(maps.at(0x5555_5555_a000), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_line_is_read_without_a_panic(
            line in "[0-9a-f+]{0,18}-[0-9a-f]{0,18} ?[rwxps-]{0,5} [0-9a-f: ]{0,20}.{0,30}",
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            Maps::parse(line.as_bytes());
            Maps::parse(&bytes);
        }
    }
}
