//! What a snapshot holds, counted by its writer.

use heaptap_codec::Cursor;

use crate::model::Item;

macro_rules! totals {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// What a snapshot holds, counted by its writer. A reader compares.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct Totals {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Totals {
            /// Every number with its name, in the order of the file.
            pub fn named(&self) -> [(&'static str, u64); Totals::COUNT] {
                [$((stringify!($field), self.$field),)*]
            }

            pub(crate) const COUNT: usize = [$(stringify!($field),)*].len();

            /// Decodes what [`Totals::named`] lists. Numbers that a later version added are skipped.
            pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Option<Totals> {
                let count = cursor.varint()?;
                let mut totals = Totals::default();
                let known = [$(&mut totals.$field,)*];
                let mut rest = count;
                for field in known {
                    if rest == 0 {
                        break;
                    }
                    *field = cursor.varint()?;
                    rest -= 1;
                }
                Some(totals)
            }
        }
    };
}

totals! {
    /// Blocks.
    blocks,
    /// Their words, without headers.
    words,
    /// Their pointers.
    pointers,
    /// Their code addresses.
    codes,
    /// Custom blocks.
    customs,
    /// The bytes that these hold outside the heap.
    outside_bytes,
    /// Blocks whose contents are included.
    strings,
    /// Roots.
    roots,
    /// Finalisers.
    finalisers,
    /// Ephemerons.
    ephemerons,
    /// Their keys.
    ephemeron_keys,
    /// Segments.
    segments,
    /// The words of the segments.
    segment_words,
    /// Modules.
    modules,
    /// Threads.
    threads,
    /// Code addresses listed.
    codes_seen,
    /// Kinds of custom blocks.
    custom_kinds,
    /// Names of tags and of hosts' kinds of roots.
    kind_names,
    /// Names of code addresses.
    names,
    /// Blocks that a trace tracks too.
    followed,
    /// Facts about the snapshot.
    meta,
    /// Areas outside the heap that blocks keep, each as often as it has blocks.
    outside_areas,
}

impl Totals {
    /// Counts an item as its writer did.
    pub fn count(&mut self, item: &Item<'_>) {
        match item {
            Item::Meta { .. } => self.meta += 1,
            Item::Segment(segment) => {
                self.segments += 1;
                self.segment_words = self.segment_words.saturating_add(segment.words);
            }
            Item::Block(block) => {
                if block.is_first {
                    self.blocks += 1;
                    self.words = self.words.saturating_add(block.words);
                }
                self.pointers += block.pointers.len() as u64;
                self.codes += block.codes.len() as u64;
                self.strings += u64::from(block.string.is_some());
                if let Some(custom) = block.custom {
                    self.customs += 1;
                    self.outside_bytes = self.outside_bytes.saturating_add(custom.outside_bytes);
                }
            }
            Item::Root(_) => self.roots += 1,
            Item::Finaliser(_) => self.finalisers += 1,
            Item::Ephemeron(ephemeron) => {
                self.ephemerons += u64::from(ephemeron.is_first);
                self.ephemeron_keys += ephemeron.keys.len() as u64;
            }
            Item::Module { .. } => self.modules += 1,
            Item::Thread { .. } => self.threads += 1,
            Item::CodeSeen(_) => self.codes_seen += 1,
            Item::CustomKind { .. } => self.custom_kinds += 1,
            Item::KindName { .. } => self.kind_names += 1,
            Item::Name(_) => self.names += 1,
            Item::Tracked(_) => self.followed += 1,
            Item::OutsideArea(_) => self.outside_areas += 1,
        }
    }
}
