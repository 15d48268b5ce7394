//! tracer: the session.
