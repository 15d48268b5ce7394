//! writer: the writer thread.
