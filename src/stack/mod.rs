//! stack: frame tables and the stack walk.
