//! Who may ask: those who know the token, under a name of this server.
//!
//! - The token is 128 random bits in the address of the page, or in the header
//!   `Authorization: Bearer`. Other users of the machine can connect, but do not know it.
//!   A [file](super::token_file) keeps it for the next server, if that is wanted.
//! - The header `Host` must name this server. A site whose name was made to lead here
//!   (DNS rebinding) sends its own name.
//! - The browser is started with a ticket in place of the token, because other users see
//!   the arguments of processes. It is exchanged for the token once.

use std::fmt::Write as _;
use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use rand::TryRng as _;
use rand::rngs::SysRng;

use super::http::request::{Method, Request};
use super::http::response::Response;
use crate::exit_status::Failure;

/// What a request must have.
pub(super) struct Access {
    address: SocketAddr,
    token: String,
    /// Until the browser has used it.
    ticket: Mutex<Option<String>>,
}

impl Access {
    /// For a server that listens at `address`.
    pub(super) fn new(address: SocketAddr, token: String) -> Access {
        Access { address, token, ticket: Mutex::new(None) }
    }

    /// The address of the page.
    pub(super) fn url(&self) -> String {
        format!("http://{}/?token={}", self.shown(), self.token)
    }

    /// An address that leads to the page once.
    pub(super) fn ticket_url(&self) -> Result<String, Failure> {
        let ticket = secret()?;
        let url = format!("http://{}/?ticket={ticket}", self.shown());
        if let Ok(mut kept) = self.ticket.lock() {
            *kept = Some(ticket);
        }
        Ok(url)
    }

    /// The address for people: a server that listens everywhere is reached through the
    /// loopback too.
    fn shown(&self) -> SocketAddr {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            ip => ip,
        };
        SocketAddr::new(ip, self.address.port())
    }

    /// Fails unless the request may be answered.
    pub(super) fn check(&self, request: &Request) -> Result<(), Response> {
        if !self.is_our_name(&request.host) {
            return Err(Response::text(
                403,
                format!(
                    "this server is http://{}, not {:?}; through a tunnel, use the same port",
                    self.shown(),
                    request.host
                ),
            ));
        }
        let allowed = match request.path.as_str() {
            "/exact" => "POST",
            _ => "GET, HEAD",
        };
        let is_allowed = match request.method {
            Method::Get | Method::Head => allowed != "POST",
            Method::Post => allowed == "POST",
            Method::Other => false,
        };
        if !is_allowed {
            let refusal = Response::text(405, format!("only {allowed} can be used here"));
            return Err(refusal.with_header("Allow", allowed.to_owned()));
        }
        if let Some(ticket) = request.parameter("ticket").filter(|_| request.path == "/") {
            return Err(self.exchange(ticket));
        }
        match request.parameter("token").or(request.bearer.as_deref()) {
            Some(token) if same(token, &self.token) => Ok(()),
            _ => Err(Response::text(
                403,
                "the token is missing or wrong; open the address that `heaptap serve` printed",
            )),
        }
    }

    /// Leads from the ticket to the page.
    fn exchange(&self, ticket: &str) -> Response {
        let Ok(mut kept) = self.ticket.lock() else { return Response::text(503, "try again") };
        if kept.as_deref().is_some_and(|kept| same(ticket, kept)) {
            *kept = None;
            let location = format!("/?token={}", self.token);
            return Response::text(303, "see the page").with_header("Location", location);
        }
        let message = "the address was used already; open the one that `heaptap serve` printed";
        Response::text(403, message)
    }

    /// Whether the header `Host` names this server. If it was told to listen elsewhere than
    /// on the loopback, any address may lead to it, but no name.
    fn is_our_name(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        if port != self.address.port().to_string() {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        match bare.parse::<IpAddr>() {
            Ok(ip) => !self.address.ip().is_loopback() || ip.is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// 128 random bits, in hexadecimal.
pub(super) fn secret() -> Result<String, Failure> {
    let mut bits = [0; 16];
    SysRng.try_fill_bytes(&mut bits).map_err(|error| {
        Failure::Trouble(format!("the system gives no random numbers for a token: {error}"))
    })?;
    Ok(bits.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Compares in a time that does not depend on where the texts differ.
fn same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    let difference =
        pairs.fold(0, |difference, (one, other)| black_box(difference | (one ^ other)));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str) -> Access {
        Access::new(address.parse().unwrap(), secret().unwrap())
    }

    #[test]
    fn only_names_of_this_server_are_ours() {
        let loopback = access("127.0.0.1:8080");
        for host in ["127.0.0.1:8080", "localhost:8080", "LocalHost:8080", "[::1]:8080"] {
            assert!(loopback.is_our_name(host), "{host}");
        }
        for host in [
            "",
            "localhost",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:08080",
            "192.168.0.1:8080",
            "example.org:8080",
            "localhost.example.org:8080",
            "127.0.0.1.example.org:8080",
            "localhost:8080@example.org",
            "example.org:8080:8080",
        ] {
            assert!(!loopback.is_our_name(host), "{host}");
        }
        let everywhere = access("0.0.0.0:8080");
        assert!(everywhere.is_our_name("192.168.0.1:8080"));
        assert!(!everywhere.is_our_name("example.org:8080"));
        assert!(everywhere.url().starts_with("http://127.0.0.1:8080/?token="));
        assert!(access("[::]:80").url().starts_with("http://[::1]:80/?token="));
    }

    #[test]
    fn texts_are_the_same_or_not() {
        assert!(same("0123", "0123") && same("", ""));
        for other in ["", "012", "01234", "0124", "1123"] {
            assert!(!same("0123", other) && !same(other, "0123"), "{other}");
        }
    }

    #[test]
    fn secrets_are_long_and_differ() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one.len() == 32 && one != other, "{one} {other}");
    }

    #[test]
    fn a_ticket_leads_to_the_page_once() {
        let access = access("127.0.0.1:8080");
        assert_eq!(access.exchange("").status(), 403);
        let url = access.ticket_url().unwrap();
        let (_, ticket) = url.split_once("?ticket=").unwrap();
        assert_eq!(access.exchange("other").status(), 403);
        assert_eq!(access.exchange(ticket).status(), 303);
        assert_eq!(access.exchange(ticket).status(), 403);
    }
}
