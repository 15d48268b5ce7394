//! A small HTTP server: one request for each connection, everything bounded.
//!
//! [`connections`] accepts and bounds them, [`request`] reads what a client wants within
//! a deadline, [`response`] writes the answer. No client, however slow, large or
//! malformed its request, takes more than a thread with a small stack for a few seconds,
//! or keeps another client waiting.
//!
//! `tiny_http` was considered: it starts a thread for every waiting connection without a
//! limit, and has no deadline for a request.

pub(super) mod connections;
pub(super) mod request;
pub(super) mod response;
