//! What the file beside a trace says: the program's own quantities, its collector's and its process's time line.
//!
//! - `figures`: the probes and the log as values; `tree`: probes by the parts of their names; `words`: one in words.
//! - `intervals`: the time line, interval by interval; `major`: what has lived through a major collection.
//! - `page`: the document of the web page.

pub mod figures;
pub mod intervals;
pub mod major;
pub mod page;
pub mod tree;
pub mod words;
