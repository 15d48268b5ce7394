//! What crosses the modules of the format: everything that is written is read again, whatever
//! is cut off, and whatever is damaged.

mod answers;
mod check;
mod damage;
mod documented;
mod dominators;
mod graph;
mod made_heap;
mod misuse;
mod oracle;
mod round_trip;
mod snapshot;
mod types;
