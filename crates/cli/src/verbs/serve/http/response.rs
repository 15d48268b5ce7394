//! Writes a response, with the headers that every response has.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connections::Connection;

/// How long a client may take to accept some of a response, and all of it.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
const WHOLE_PATIENCE: Duration = Duration::from_secs(120);
/// What is still accepted of a refused request, so that its sender can read the refusal.
const DRAINED: usize = 256 << 10;
const DRAIN_PATIENCE: Duration = Duration::from_millis(500);

/// Nothing that is sent may be kept, guessed at, framed, or read by another site.
const HEADERS: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: frame-ancestors 'none'\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n\
    Connection: close\r\n";

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    status: u16,
    media_type: &'static str,
    body: Arc<[u8]>,
    /// A further header.
    header: Option<(&'static str, String)>,
}

impl Response {
    pub(crate) fn new(media_type: &'static str, body: Arc<[u8]>) -> Self {
        Response { status: 200, media_type, body, header: None }
    }

    pub(crate) fn json(text: impl Into<Vec<u8>>) -> Self {
        Response::new("application/json", text.into().into())
    }

    /// A message for a person, who may see it in the browser.
    pub(crate) fn text(status: u16, message: impl Into<String>) -> Self {
        let text: String = message.into() + "\n";
        let media_type = "text/plain; charset=utf-8";
        Response { status, media_type, body: text.into_bytes().into(), header: None }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.header = Some((name, value));
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Sends it, without the body if only the head is wanted, and ends the connection. A
    /// client that is gone has no use for it.
    pub(crate) fn send(&self, connection: &Connection, only_head: bool) {
        let body = if only_head { &[] } else { &self.body[..] };
        let head = self.head();
        let deadline = Instant::now() + WHOLE_PATIENCE;
        let _ = write(connection, head.as_bytes(), deadline)
            .and_then(|()| write(connection, body, deadline))
            .and_then(|()| connection.stream.shutdown(Shutdown::Write));
        if self.status >= 400 {
            drain(connection);
        }
    }

    fn head(&self) -> String {
        let (status, reason) = (self.status, reason(self.status));
        let mut head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{HEADERS}",
            self.media_type,
            self.body.len()
        );
        if let Some((name, value)) = &self.header {
            // Writing to a string does not fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head + "\r\n"
    }
}

fn write(connection: &Connection, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    let mut stream = &connection.stream;
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    while !bytes.is_empty() {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let count = stream.write(bytes)?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// Reads on for a moment: closing a connection with unread bytes resets it, and the
/// client might lose the response.
fn drain(connection: &Connection) {
    let mut stream = &connection.stream;
    let deadline = Instant::now() + DRAIN_PATIENCE;
    let mut drained = 0;
    while drained < DRAINED && Instant::now() < deadline {
        let patience = stream.set_read_timeout(Some(DRAIN_PATIENCE));
        match patience.and_then(|()| stream.read(&mut [0; 4096])) {
            Ok(0) | Err(_) => break,
            Ok(count) => drained += count,
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        303 => "See Other",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    }
}
