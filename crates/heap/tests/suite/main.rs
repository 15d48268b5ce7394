//! What crosses the modules of the format: everything that is written is read again, whatever
//! is cut off, and whatever is damaged.

mod damage;
mod documented;
mod misuse;
mod oracle;
mod round_trip;
mod snapshot;
