//! Types of blocks: on values made of known types, on damaged ones, and on hostile tables.

mod made;
mod spreading;
mod values;
