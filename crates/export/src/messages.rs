//! Messages of Protocol Buffers, a line for each field: name, type, and how `prost` encodes it.

/// Declares messages as structs.
macro_rules! messages {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty [$($encoding:tt)+],)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, ::prost::Message)]
        pub(crate) struct $name {
            $(#[prost($($encoding)+)] pub(crate) $field: $type,)*
        }
    )*};
}

pub(crate) use messages;
