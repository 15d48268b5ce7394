//! What a snapshot holds, counted by its writer.

use heaptap_codec::Cursor;

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
    /// Blocks that a trace follows too.
    followed,
    /// Facts about the snapshot.
    meta,
    /// Areas outside the heap that blocks keep, each as often as it has blocks.
    outside_areas,
}
