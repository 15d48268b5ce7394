//! Reads a request: its head, and its body if it has one, within bounds and a deadline.

use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Error, Status};

use super::connections::Connection;
use super::response::Response;

/// The most bytes of a request line and its headers.
const MOST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// The most bytes of a body.
const MOST_BODY: usize = 64 << 10;
/// How long the whole request may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Other,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// As it was sent, without the query.
    pub(crate) path: String,
    /// The decoded parameters of the query.
    parameters: Vec<(String, String)>,
    /// Empty if there is none.
    pub(crate) host: String,
    /// The token of the header `Authorization: Bearer`.
    pub(crate) bearer: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// All parameters, decoded.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first parameter of this name.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a request. `Ok(None)`: the client sent none, or took too long.
pub(crate) fn read(connection: &Connection) -> Result<Option<Request>, Response> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut head = loop {
        let before = bytes.len();
        match receive(connection, deadline, &mut bytes) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
        // A head ends with a line.
        if bytes[before..].contains(&b'\n')
            && let Some(head) = Head::parse(&bytes)?
        {
            break head;
        }
        if bytes.len() > MOST_HEAD {
            return Err(too_large(431, "request headers", MOST_HEAD));
        }
    };
    let mut body = bytes.split_off(head.length);
    if head.body > MOST_BODY {
        return Err(too_large(413, "request", MOST_BODY));
    }
    while body.len() < head.body {
        match receive(connection, deadline, &mut body) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
    }
    connection.has_asked();
    head.request.body = body;
    Ok(Some(head.request))
}

/// Appends what has come, waiting for it until the deadline.
fn receive(connection: &Connection, deadline: Instant, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut stream = &connection.stream;
    stream.set_read_timeout(Some(left))?;
    let mut room = [0; 4096];
    let count = stream.read(&mut room)?;
    bytes.extend_from_slice(&room[..count]);
    Ok(count)
}

/// A parsed head.
struct Head {
    request: Request,
    /// The bytes of the head.
    length: usize,
    /// The bytes of the body.
    body: usize,
}

impl Head {
    /// `Ok(None)` if the head is not complete yet.
    fn parse(bytes: &[u8]) -> Result<Option<Head>, Response> {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let length = match parsed.parse(bytes) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return Ok(None),
            Err(Error::TooManyHeaders) => {
                return Err(Response::text(431, "too many request headers"));
            }
            Err(error) => return Err(Response::text(400, format!("not a request: {error}"))),
        };
        let values = |name: &str| -> Vec<&[u8]> {
            let named =
                parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            named.map(|header| header.value).collect()
        };
        if !values("transfer-encoding").is_empty() {
            return Err(Response::text(501, "chunked requests are not understood"));
        }
        let body = match values("content-length")[..] {
            [] => 0,
            [length] => number(length).ok_or(Response::text(400, "not a content length"))?,
            _ => return Err(Response::text(400, "several content lengths")),
        };
        let host = match values("host")[..] {
            [host] => String::from_utf8_lossy(host).into_owned(),
            _ => String::new(),
        };
        let bearer = match values("authorization")[..] {
            [value] => bearer(value),
            _ => None,
        };
        let method = match parsed.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            Some("POST") => Method::Post,
            _ => Method::Other,
        };
        let target = parsed.path.unwrap_or("");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            method,
            path: path.to_owned(),
            parameters: parameters(query),
            host,
            bearer,
            body: Vec::new(),
        };
        Ok(Some(Head { request, length, body }))
    }
}

/// The token of a value of `Authorization`, RFC 6750.
fn bearer(value: &[u8]) -> Option<String> {
    let (scheme, token) = str::from_utf8(value).ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// A decimal number, and nothing else.
fn number(digits: &[u8]) -> Option<usize> {
    let digits = str::from_utf8(digits).ok()?;
    // `parse` would accept a sign.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
        .collect()
}

/// Text from a query: `+` is a space, `%2f` a slash. What is not UTF-8 becomes U+FFFD.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|digits| str::from_utf8(digits).ok());
        let code = code.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match (bytes[at], code.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn too_large(status: u16, part: &str, most: usize) -> Response {
    Response::text(status, format!("the {part} is larger than {most} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Head>, u16> {
        Head::parse(text.as_bytes()).map_err(|response| response.status())
    }

    #[test]
    fn a_head_is_parsed_when_it_is_complete() {
        let text = "GET /source?file=a%2Fb+c.ml&token=1&token=2 HTTP/1.1\r\nHost: x:1\r\n\r\nrest";
        for end in 0..text.len() - 4 {
            assert!(matches!(parse(&text[..end]), Ok(None)), "{end}");
        }
        let head = parse(text).unwrap().unwrap();
        assert_eq!(head.length, text.len() - 4);
        let request = head.request;
        assert_eq!((request.method, request.path.as_str()), (Method::Get, "/source"));
        assert_eq!(request.parameter("file"), Some("a/b c.ml"));
        assert_eq!(request.parameter("token"), Some("1"));
        assert_eq!(request.parameter("none"), None);
        assert_eq!(request.host, "x:1");
    }

    #[test]
    fn heads_that_could_be_read_in_two_ways_are_refused() {
        let with = |header: &str| parse(&format!("POST / HTTP/1.1\r\n{header}\r\n\r\n"));
        let refused = |header: &str| with(header).map(|_| ()).unwrap_err();
        assert_eq!(refused("Transfer-Encoding: chunked"), 501);
        for length in ["+1", "-1", "", "1,2", "99999999999999999999999"] {
            assert_eq!(refused(&format!("Content-Length: {length}")), 400, "{length}");
        }
        assert_eq!(refused("Content-Length: 1\r\ncontent-length: 2"), 400);
        assert_eq!(refused(&"A: b\r\n".repeat(70)), 431);
        assert_eq!(refused("no colon"), 400);
        assert_eq!(with("Host: a\r\nHost: b").unwrap().unwrap().request.host, "");
        assert_eq!(with("Content-Length: 12").unwrap().unwrap().body, 12);
    }

    #[test]
    fn a_token_may_come_in_a_header() {
        let bearer = |header: &str| {
            let head = parse(&format!("GET / HTTP/1.1\r\n{header}\r\n\r\n")).unwrap().unwrap();
            head.request.bearer
        };
        assert_eq!(bearer("Authorization: Bearer 1234").as_deref(), Some("1234"));
        assert_eq!(bearer("authorization: bearer  1234").as_deref(), Some("1234"));
        assert_eq!(bearer("Authorization: Basic 1234"), None);
        assert_eq!(bearer("Authorization: Bearer 1\r\nAuthorization: Bearer 2"), None);
        assert_eq!(bearer("Accept: */*"), None);
    }

    #[test]
    fn percent_signs_are_decoded_once() {
        assert_eq!(decoded("a%2e%2E%2f+%252e"), "a../ %2e");
        assert_eq!(decoded("%"), "%");
        assert_eq!(decoded("%zz%+1%ff"), "%zz% 1\u{fffd}");
        assert_eq!(decoded("%00"), "\0");
    }
}
