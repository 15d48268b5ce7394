//! A loaded ELF file, as it lies in the program's memory: its segments and dynamic symbols.
//!
//! Everything read is untrusted: counts are bounded, addresses are computed with wrapping
//! arithmetic and are only read from, and a damaged file has no symbols.

use object::LittleEndian;
use object::elf::{
    DT_GNU_HASH, DT_SONAME, DT_STRTAB, DT_SYMTAB, Dyn64, DynamicTag, ELFCLASS64, ELFDATA2LSB,
    ELFMAG, EM_X86_64, FileHeader64, GnuHashHeader, PF_W, PF_X, PT_DYNAMIC, PT_LOAD,
    ProgramHeader64, STT_FUNC, STT_NOTYPE, STT_OBJECT, STT_TLS, Sym64,
};
use object::pod::{Pod, from_bytes, slice_from_all_bytes};

use crate::memory::Memory;

const LE: LittleEndian = LittleEndian;

/// Linked programs have some ten headers.
const MOST_SEGMENTS: u16 = 64;

/// And some thirty entries in the dynamic section.
const MOST_ENTRIES: u64 = 1024;

/// Symbols whose names have hashes in one bucket: a handful.
const LONGEST_CHAIN: u32 = 4096;

/// A segment that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// In memory, as is the end.
    pub(crate) start: u64,
    /// One past the last byte.
    pub(crate) end: u64,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Variable,
    ThreadLocal,
}

/// A dynamic symbol that the file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    /// In memory; the offset of a thread-local variable.
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: Kind,
}

/// A loaded file.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) segments: Vec<Segment>,
    /// Its name for the loader.
    pub(crate) soname: Vec<u8>,
    symbols: Option<Symbols>,
}

/// Addresses of the tables.
#[derive(Debug)]
struct Symbols {
    bias: u64,
    table: u64,
    strings: u64,
    buckets: u64,
    bucket_count: u32,
    chains: u64,
    first: u32,
}

impl Image {
    /// The file whose first byte is at this address; `None` if that is no ELF file for amd64.
    pub(crate) fn open(memory: &Memory, start: u64) -> Option<Image> {
        let header: FileHeader64<LittleEndian> = pod(memory, start)?;
        let ident = &header.e_ident;
        if ident.magic != ELFMAG
            || ident.class != ELFCLASS64
            || ident.data != ELFDATA2LSB
            || header.e_machine.get(LE) != EM_X86_64
            || header.e_phnum.get(LE) > MOST_SEGMENTS
        {
            return None;
        }
        let at = start.wrapping_add(header.e_phoff.get(LE));
        let headers: Vec<ProgramHeader64<LittleEndian>> =
            table(memory, at, u64::from(header.e_phnum.get(LE)))?;
        let loaded = || headers.iter().filter(|header| header.p_type.get(LE) == PT_LOAD);
        let first = loaded().find(|header| header.p_offset.get(LE) == 0)?;
        let bias = start.wrapping_sub(first.p_vaddr.get(LE));
        let mut image = Image {
            segments: loaded().filter_map(|header| segment(header, bias)).collect(),
            soname: Vec::new(),
            symbols: None,
        };
        if let Some(dynamic) = headers.iter().find(|header| header.p_type.get(LE) == PT_DYNAMIC) {
            image.read_dynamic(memory, bias, dynamic);
        }
        Some(image)
    }

    #[cfg(test)]
    pub(crate) fn of_segments(segments: &[Segment]) -> Image {
        Image { segments: segments.to_vec(), soname: Vec::new(), symbols: None }
    }

    /// Whether the file uses the dynamic loader.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.symbols.is_some()
    }

    fn read_dynamic(
        &mut self,
        memory: &Memory,
        bias: u64,
        dynamic: &ProgramHeader64<LittleEndian>,
    ) -> Option<()> {
        let count = dynamic.p_memsz.get(LE) / size_of::<Dyn64<LittleEndian>>() as u64;
        let at = bias.wrapping_add(dynamic.p_vaddr.get(LE));
        let entries: Vec<Dyn64<LittleEndian>> = table(memory, at, count.min(MOST_ENTRIES))?;
        let value = |tag: DynamicTag| {
            let entry = entries.iter().find(|entry| entry.d_tag.get(LE) == tag)?;
            Some(entry.d_val.get(LE))
        };
        // The loader has added the bias to the addresses in this section, except where the
        // section is read-only.
        let address = |tag: DynamicTag| {
            let address = value(tag)?;
            Some(if self.contains(address) { address } else { address.wrapping_add(bias) })
        };
        let strings = address(DT_STRTAB)?;
        let symbols =
            Symbols::find(memory, bias, address(DT_SYMTAB)?, strings, address(DT_GNU_HASH)?);
        if let Some(name) = value(DT_SONAME) {
            self.soname = memory.string(strings.wrapping_add(name), 256);
        }
        self.symbols = symbols;
        Some(())
    }

    fn contains(&self, address: u64) -> bool {
        self.segments.iter().any(|segment| (segment.start..segment.end).contains(&address))
    }

    /// A symbol that this file defines. What is no offset lies in one of its segments.
    pub(crate) fn symbol(&self, memory: &Memory, name: &str) -> Option<Symbol> {
        let symbol = self.symbols.as_ref()?.lookup(memory, name)?;
        let last = symbol.address.checked_add(symbol.size.max(1))?.wrapping_sub(1);
        let is_inside = self.segments.iter().any(|segment| {
            (segment.start..segment.end).contains(&symbol.address)
                && last < segment.end
                && segment.executable == (symbol.kind == Kind::Function)
        });
        (symbol.kind == Kind::ThreadLocal || is_inside).then_some(symbol)
    }
}

impl Symbols {
    fn find(memory: &Memory, bias: u64, table: u64, strings: u64, hashes: u64) -> Option<Symbols> {
        let header: GnuHashHeader<LittleEndian> = pod(memory, hashes)?;
        let bucket_count = header.bucket_count.get(LE);
        let filters = hashes.wrapping_add(size_of::<GnuHashHeader<LittleEndian>>() as u64);
        let buckets = filters.wrapping_add(u64::from(header.bloom_count.get(LE)) * 8);
        (bucket_count > 0).then(|| Symbols {
            bias,
            table,
            strings,
            buckets,
            bucket_count,
            chains: buckets.wrapping_add(u64::from(bucket_count) * 4),
            first: header.symbol_base.get(LE),
        })
    }

    /// Searches the bucket of the name's hash (`DT_GNU_HASH`; there is no written standard, see
    /// `do_lookup_x`, `elf/dl-lookup.c`, glibc 2.36).
    fn lookup(&self, memory: &Memory, name: &str) -> Option<Symbol> {
        let hash = gnu_hash(name);
        let bucket = self.buckets.wrapping_add(u64::from(hash % self.bucket_count) * 4);
        let first = memory.int(bucket)?;
        for index in first..first.saturating_add(LONGEST_CHAIN) {
            let chain = u64::from(index.checked_sub(self.first)?) * 4;
            let found = memory.int(self.chains.wrapping_add(chain))?;
            if (found ^ hash) >> 1 == 0 && self.is_named(memory, index, name) {
                return self.symbol(memory, index);
            }
            if found & 1 == 1 {
                return None;
            }
        }
        None
    }

    fn entry(&self, memory: &Memory, index: u32) -> Option<Sym64<LittleEndian>> {
        let offset = u64::from(index) * size_of::<Sym64<LittleEndian>>() as u64;
        pod(memory, self.table.wrapping_add(offset))
    }

    fn is_named(&self, memory: &Memory, index: u32, name: &str) -> bool {
        let Some(entry) = self.entry(memory, index) else { return false };
        let mut found = vec![0; name.len() + 1];
        let at = self.strings.wrapping_add(u64::from(entry.st_name.get(LE)));
        memory.read(at, &mut found).is_some() && found.split_last() == Some((&0, name.as_bytes()))
    }

    fn symbol(&self, memory: &Memory, index: u32) -> Option<Symbol> {
        let entry = self.entry(memory, index)?;
        // 0 is `SHN_UNDEF`: another file defines it.
        (entry.st_shndx.get(LE).0 != 0).then_some(())?;
        let value = entry.st_value.get(LE);
        let (kind, bias) = match entry.st_info.st_type() {
            STT_FUNC => (Kind::Function, self.bias),
            STT_OBJECT | STT_NOTYPE => (Kind::Variable, self.bias),
            STT_TLS => (Kind::ThreadLocal, 0),
            _ => return None,
        };
        Some(Symbol { address: value.wrapping_add(bias), size: entry.st_size.get(LE), kind })
    }
}

/// The hash of a name in `DT_GNU_HASH`.
fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

fn segment(header: &ProgramHeader64<LittleEndian>, bias: u64) -> Option<Segment> {
    let start = header.p_vaddr.get(LE).wrapping_add(bias);
    let flags = header.p_flags.get(LE);
    Some(Segment {
        start,
        end: start.checked_add(header.p_memsz.get(LE))?,
        writable: flags.contains(PF_W),
        executable: flags.contains(PF_X),
    })
}

/// A structure of the program's memory.
fn pod<T: Pod + Copy>(memory: &Memory, at: u64) -> Option<T> {
    let mut bytes = vec![0; size_of::<T>()];
    memory.read(at, &mut bytes)?;
    from_bytes::<T>(&bytes).ok().map(|(value, _)| *value)
}

/// Some structures, of which there are few.
fn table<T: Pod + Copy>(memory: &Memory, at: u64, count: u64) -> Option<Vec<T>> {
    let mut bytes = vec![0; usize::try_from(count).ok()? * size_of::<T>()];
    memory.read(at, &mut bytes)?;
    slice_from_all_bytes::<T>(&bytes).ok().map(<[T]>::to_vec)
}
