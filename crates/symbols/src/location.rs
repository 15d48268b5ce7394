//! What is known of a return address.

/// A location in a program's source, as a trace stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation<'a> {
    /// The file's name as the compiler recorded it; the module's if that is unknown.
    pub file: &'a [u8],
    /// The line, from 1; 0 if it is unknown.
    pub line: u32,
    /// The column at which it begins. OCaml counts from 0, DWARF from 1 with 0 for
    /// unknown.
    pub start_char: u32,
    /// The column at which it ends, counted from the beginning of the first line.
    /// DWARF has only the beginning.
    pub end_char: u32,
    /// The function's name, demangled.
    pub function: &'a [u8],
}
