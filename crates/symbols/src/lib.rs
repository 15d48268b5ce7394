//! Return addresses to source locations.
