//! `heaptap serve`: whom it answers, whom it refuses, and how it ends.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use heaptap_query::Engine;
use heaptap_report::Archive;
use heaptap_trace::Format;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agreement::{ROWS, assert_same, filters, printed};
use crate::labels;
use crate::program::{Place, command, heaptap};
use crate::traces::workload;

/// A server that goes away with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Server {
    pub(crate) fn start(options: &str, files: &[&Path]) -> Server {
        Server::start_reading(options, files, Stdio::null())
    }

    /// With this standard input.
    pub(crate) fn start_reading(options: &str, files: &[&Path], stdin: Stdio) -> Server {
        let mut child = command(&format!("serve --no-open {options}"), files)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let (_, url) = line.split_once(" at http://").expect(&line);
        let (address, token) = url.split_once("/?token=").unwrap();
        let address = address.parse().unwrap();
        let token = token.split_whitespace().next().unwrap().to_owned();
        Server { child, out, address, token }
    }

    /// Sends bytes and returns what comes back until the end.
    pub(crate) fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // The server may refuse before it has read everything.
        let _ = stream.write_all(request);
        answer(stream)
    }

    /// A request with the headers that a browser sends.
    fn request(&self, method: &str, target: &str) -> Answer {
        self.send(self.head(method, target).as_bytes())
    }

    fn head(&self, method: &str, target: &str) -> String {
        format!("{method} {target} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n\r\n", self.address)
    }

    /// With the token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let mark = if path.contains('?') { '&' } else { '?' };
        self.request("GET", &format!("{path}{mark}token={}", self.token))
    }

    /// A request for exact figures, with the token.
    pub(crate) fn exact(&self, request: &Value) -> Value {
        self.send(self.exact_request(&request.to_string()).as_bytes()).json()
    }

    fn exact_request(&self, body: &str) -> String {
        format!(
            "POST /exact?token={} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            self.address,
            body.len()
        )
    }

    /// The progress of a reading for exact figures of the first trace.
    fn exact_progress(&self) -> Option<Value> {
        self.get("/status").json()[0].get("exact").cloned()
    }

    /// The state of all traces, when none is being read any more.
    pub(crate) fn status(&self) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.get("/status").json();
            let states = status.as_array().unwrap();
            if states.iter().all(|trace| trace["state"] != "reading") {
                return status;
            }
            assert!(Instant::now() < deadline, "{status}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it by a signal. Returns its status, what else it printed, and its messages.
    pub(crate) fn stop(mut self, signal: Signal) -> (Option<i32>, String, String) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
        self.end()
    }

    fn end(&mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(mut stream: TcpStream) -> Answer {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[end..].to_vec() }
}

fn small_trace(place: &Place) -> std::path::PathBuf {
    place.file("trace.ctf", &workload(Format::V3, 2, 3000, 20))
}

#[test]
fn the_page_and_the_trace_are_served_to_who_knows_the_token() {
    let place = Place::new();
    let path = small_trace(&place);
    let server = Server::start("", &[&path]);
    assert!(server.address.ip().is_loopback());
    assert_eq!(server.token.len(), 32);
    let page = server.get("/");
    assert_eq!(page.status, 200);
    for header in [
        "Content-Type: text/html; charset=utf-8",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "frame-ancestors 'none'",
    ] {
        assert!(page.head.contains(header), "no `{header}` in {}", page.head);
    }
    assert!(!page.head.contains("Access-Control"), "{}", page.head);
    let text = page.text();
    assert!(text.contains(
        r#"{"mode":"serve","traces":[{"name":"trace.ctf"}],"snapshots":0,"source":false,"#
    ));
    assert!(text.contains("connect-src 'self'"));
    let status = server.status();
    assert_eq!((&status[0]["name"], &status[0]["state"]), (&"trace.ctf".into(), &"ready".into()));
    let size = fs::metadata(&path).unwrap().len();
    assert_eq!((&status[0]["read"], &status[0]["size"]), (&size.into(), &size.into()));
    let trace = server.get("/trace/0");
    let mut archive = Vec::new();
    GzDecoder::new(&trace.body[..]).read_to_end(&mut archive).unwrap();
    let archive = Archive::from_bytes(&archive).unwrap();
    let info = heaptap("report --json", &[&path]).text(0);
    let report: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(report["totals"]["samples"], archive.aggregate.samples());
    for missing in ["/trace/1", "/trace/00x", "/trace/", "/trace/-1", "/nothing", "/page", "//"] {
        assert_eq!(server.get(missing).status, 404, "{missing}");
    }
    let only_head = server.request("HEAD", &format!("/?token={}", server.token));
    assert_eq!((only_head.status, only_head.body.len()), (200, 0));
    assert!(only_head.head.contains(&format!("Content-Length: {}\r\n", text.len())));
}

#[test]
fn foreign_hosts_missing_tokens_and_other_methods_are_refused() {
    let place = Place::new();
    let server = Server::start("", &[&small_trace(&place)]);
    let (address, token, port) = (server.address, &server.token, server.address.port());
    let with_host = |host: &str| {
        let request = format!("GET /status?token={token} HTTP/1.1\r\n{host}\r\n");
        server.send(request.as_bytes()).status
    };
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")]
    {
        assert_eq!(with_host(&format!("Host: {host}\r\n")), 200, "{host}");
    }
    for hosts in [
        String::new(),
        "Host: 127.0.0.1\r\n".to_owned(),
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{port}\r\n"),
        format!("Host: 127.0.0.1.evil.example:{port}\r\n"),
        format!("Host: {address}\r\nHost: evil.example\r\n"),
        format!("Host: 10.0.0.1:{port}\r\n"),
    ] {
        assert_eq!(with_host(&hosts), 403, "{hosts}");
    }
    let almost = format!("{}{}", &token[..31], if token.ends_with('0') { '1' } else { '0' });
    for target in [
        "/".to_owned(),
        "/status".to_owned(),
        "/trace/0?token=".to_owned(),
        format!("/?token={almost}"),
        format!("/?token={token}0"),
        format!("/?token={}", &token[..31]),
        format!("/?token={almost}&token={token}"),
        format!("/?TOKEN={token}"),
        "/?ticket=".to_owned(),
        format!("/?ticket={token}"),
    ] {
        assert_eq!(server.request("GET", &target).status, 403, "{target}");
    }
    let wrong = server.request("GET", &format!("/exact?token={token}"));
    assert!(wrong.status == 405 && wrong.head.contains("Allow: POST\r\n"), "{}", wrong.head);
    assert_eq!(server.request("POST", "/exact").status, 403);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get"] {
        let refused = server.request(method, &format!("/?token={token}"));
        assert_eq!(refused.status, 405, "{method}");
        assert!(refused.head.contains("Allow: GET, HEAD\r\n"), "{}", refused.head);
    }
}

#[test]
fn requests_that_are_too_large_or_none_are_refused() {
    let place = Place::new();
    let server = Server::start("", &[&small_trace(&place)]);
    let long = format!("GET /?token={} HTTP/1.1\r\n\r\n", "0".repeat(100_000));
    assert_eq!(server.send(long.as_bytes()).status, 431);
    let headers = format!("GET / HTTP/1.1\r\n{}\r\n", "Name: value\r\n".repeat(100));
    assert_eq!(server.send(headers.as_bytes()).status, 431);
    let no_end = format!("GET / HTTP/1.1\r\nName: {}", "value".repeat(10_000));
    assert_eq!(server.send(no_end.as_bytes()).status, 431);
    let with = |header: &str| {
        let request =
            format!("POST /exact HTTP/1.1\r\nHost: {}\r\n{header}\r\n\r\n", server.address);
        server.send(request.as_bytes()).status
    };
    assert_eq!(with("Content-Length: 65537"), 413);
    assert_eq!(with("Content-Length: 18446744073709551616"), 400);
    assert_eq!(with("Content-Length: 1\r\nContent-Length: 2"), 400);
    assert_eq!(with("Transfer-Encoding: chunked"), 501);
    for malformed in ["\0\0\0\n\n", "hello\r\n\r\n", "GET / HTTP/9\r\n\r\n", "\x16\x03\x01\n"] {
        assert_eq!(server.send(malformed.as_bytes()).status, 400, "{malformed:?}");
    }
    assert_eq!(server.get("/").status, 200);
}

/// A page with few of the blocks asks the server, which reads the trace with the filter.
#[test]
fn exact_figures_of_a_thinned_trace_are_those_of_the_command_line() {
    let place = Place::new();
    let one = place.file("one.ctf", &workload(Format::V3, 3, 2000, 31));
    let other = place.file("other.ctf", &labels::trace().0);
    let server = Server::start("--blocks 100", &[&one, &other]);
    server.status();
    assert!(server.get("/").text().contains(r#""exact":true"#));
    let mut engine = Engine::default();
    for number in 0..2 {
        let mut archive = Vec::new();
        let gzip = server.get(&format!("/trace/{number}")).body;
        GzDecoder::new(&gzip[..]).read_to_end(&mut archive).unwrap();
        engine.open(&archive).unwrap();
    }
    let check = |request: &Value, call: &str, files: &[&Path]| {
        assert_exact(&server, request, call, files);
    };
    for (options, filter) in filters().into_iter().skip(1) {
        let request = json!({ "q": "report", "trace": 1, "filter": filter });
        let rough: Value =
            serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap();
        assert_eq!(rough["exact"], false, "{options}");
        for (by, metric) in ROWS.into_iter().zip(["peak", "live", "allocated"].iter().cycle()) {
            for (trace, file) in [&one, &other].into_iter().enumerate() {
                let request = json!({ "q": "report", "trace": trace, "filter": filter, "by": by,
                    "metric": metric });
                let call = format!("report --top 0 --by {by} --metric {metric} {options}");
                check(&request, &call, &[file]);
            }
        }
        let request = json!({ "q": "report", "filter": filter, "metric": "at", "at": 3000,
            "by": "domain" });
        check(&request, &format!("report --top 0 --by domain --at 3ms {options}"), &[&one]);
        let request = json!({ "q": "leaks", "filter": filter });
        check(&request, &format!("leaks {options}"), &[&one]);
        let request = json!({ "q": "hot", "trace": 1, "filter": filter });
        check(&request, &format!("hot {options}"), &[&other]);
        let request = json!({ "q": "diff", "before": 1, "after": 0, "filter": filter });
        check(&request, &format!("diff --top 0 {options}"), &[&other, &one]);
    }
    drop(server);
    let directory = place.path("traces");
    fs::create_dir(&directory).unwrap();
    for (number, path) in [&one, &other].into_iter().enumerate() {
        fs::copy(path, directory.join(format!("{number}.ctf"))).unwrap();
    }
    let server = Server::start("--blocks 100", &[&directory]);
    assert_eq!(server.status()[0]["name"], "traces (2 traces)");
    let check = |request: &Value, call: &str, files: &[&Path]| {
        assert_exact(&server, request, call, files);
    };
    let request = json!({ "q": "report", "filter": { "domains": [1] }, "metric": "live" });
    check(&request, "report --top 0 --metric live --domain 1", &[&directory]);
    let changed = json!({ "q": "report", "filter": { "domains": [0] } });
    fs::write(directory.join("0.ctf"), workload(Format::V3, 3, 2001, 31)).unwrap();
    let error = server.exact(&changed)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("traces (2 traces) has changed since it was read"), "{error}");
    let server = Server::start("--blocks 100", &[&one]);
    server.status();
    let check = |request: &Value, call: &str, files: &[&Path]| {
        assert_exact(&server, request, call, files);
    };
    // What is live at a time needs a reading without a filter too.
    let request = json!({ "q": "report", "metric": "at", "at": 3000 });
    check(&request, "report --top 0 --at 3ms", &[&one]);
    assert_eq!(server.stop(Signal::INT), (Some(0), String::new(), String::new()));
}

/// The server answers what the command line prints.
#[track_caller]
fn assert_exact(server: &Server, request: &Value, call: &str, files: &[&Path]) {
    let mut answer = server.exact(request);
    let exact = answer.as_object_mut().and_then(|answer| answer.remove("exact"));
    assert_eq!(exact, Some(true.into()), "{request}: {answer}");
    assert_same(answer, printed(call, files), call);
}

#[test]
fn requests_for_exact_figures_are_refused_in_words() {
    let place = Place::new();
    let path = small_trace(&place);
    let server = Server::start("--blocks 100", &[&path]);
    server.status();
    let refusal = |request: &Value| server.exact(request)["error"].as_str().unwrap().to_owned();
    for (request, words) in [
        (json!({ "q": "report", "trace": 7 }), "there is no trace 7"),
        (json!({ "q": "report", "filter": { "include": ["("] } }), "not a regular expression"),
        (json!({ "q": "info", "trace": 0 }), "the page itself answers this"),
        (json!([]), "the request is not one"),
        (json!({ "q": "tree", "by": "label" }), "filter by them instead"),
    ] {
        assert!(refusal(&request).contains(words), "{request}: {}", refusal(&request));
    }
    let request = json!({ "q": "report", "filter": { "domains": [1] } });
    assert_eq!(server.exact(&request)["exact"], true);
    // What is kept stays; what is to be read must still be the same.
    let other = json!({ "q": "report", "filter": { "domains": [0] } });
    fs::write(&path, workload(Format::V3, 2, 3001, 20)).unwrap();
    assert!(refusal(&other).contains("has changed since it was read; start `heaptap serve` again"));
    fs::remove_file(&path).unwrap();
    assert!(refusal(&other).contains("is not there any more"));
    assert_eq!(server.exact(&request)["exact"], true);
}

/// Its client closes the connection: the reading ends long before the trace does, and
/// the next one has its turn.
#[test]
fn a_reading_for_a_client_that_is_gone_is_cancelled() {
    let place = Place::new();
    let path = place.file("long.ctf", &workload(Format::V3, 2, 80_000, 33));
    let server = Server::start("--blocks 1000", &[&path]);
    server.status();
    let request = |domain: u16| json!({ "q": "report", "filter": { "domains": [domain] } });
    let start = Instant::now();
    assert_eq!(server.exact(&request(0))["exact"], true);
    let whole = start.elapsed();

    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(server.exact_request(&request(7).to_string()).as_bytes()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.exact_progress().is_none() {
        assert!(Instant::now() < deadline, "the reading does not begin");
        thread::sleep(Duration::from_millis(5));
    }
    let left = Instant::now();
    drop(stream);
    while let Some(progress) = server.exact_progress() {
        assert!(Instant::now() < deadline, "{progress} is not the end");
        thread::sleep(Duration::from_millis(5));
    }
    let took = left.elapsed();
    let most = (whole / 2).max(Duration::from_millis(500));
    assert!(took < most, "it took {took:?} to end a reading of {whole:?}");
    // Several that want the same share one reading.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(server.exact(&request(1))["exact"], true));
        }
    });
}

#[test]
fn source_files_are_those_of_the_trace_under_the_root() {
    let place = Place::new();
    let path = small_trace(&place);
    let root = place.path("root");
    fs::create_dir_all(root.join("directory")).unwrap();
    fs::write(root.join("directory/source_1.ml"), "let one = 1\n\nlet () = ()").unwrap();
    let secret = place.file("secret", b"secret");
    symlink(&secret, root.join("directory/source_2.ml")).unwrap();
    fs::create_dir(root.join("directory/source_3.ml")).unwrap();
    fs::write(root.join("directory/source_4.ml"), vec![b'\n'; 5 << 20]).unwrap();
    fs::write(root.join("other.ml"), "secret").unwrap();
    let server = Server::start(&format!("--source-root {}", root.display()), &[&path]);
    server.status();
    assert!(server.get("/").text().contains(r#""source":true"#));
    let source = |file: &str| server.get(&format!("/source?trace=0&file={file}")).json();
    let found = source("directory%2Fsource_1.ml");
    assert_eq!(found["lines"], serde_json::json!(["let one = 1", "", "let () = ()"]));
    assert_eq!(found["file"], "directory/source_1.ml");
    let secret = secret.display().to_string();
    for (file, why) in [
        ("directory/source_2.ml", "leads out of"),
        ("directory/source_3.ml", "is not in"),
        ("directory/source_4.ml", "larger than 4 MiB"),
        ("directory/source_5.ml", "is not in"),
        ("other.ml", "not a source file"),
        ("../secret", "not a source file"),
        ("directory/../../secret", "not a source file"),
        ("%2e%2e%2fsecret", "not a source file"),
        ("%252e%252e%252fsecret", "not a source file"),
        ("directory/source_1.ml%00", "not a source file"),
        ("", "not a source file"),
        (&secret, "not a source file"),
        ("/etc/passwd", "not a source file"),
    ] {
        let refused = source(file);
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains(why), "{file}: {error}");
        assert!(refused.get("lines").is_none(), "{file}");
    }
    assert_eq!(server.get("/source?trace=7&file=directory/source_1.ml").status, 404);
    assert_eq!(server.request("GET", "/source?trace=0&file=directory/source_1.ml").status, 403);
    drop(server);

    let server = Server::start("", &[&path]);
    server.status();
    let refused = server.get("/source?trace=0&file=directory/source_1.ml").json();
    assert!(refused["error"].as_str().unwrap().contains("--source-root DIR"), "{refused}");
    heaptap("serve --no-open --source-root /no/where", &[&path]).says(2, &["name a directory"]);
}

#[test]
fn many_connections_are_answered_beside_stalled_ones() {
    let place = Place::new();
    let server = Server::start("", &[&small_trace(&place)]);
    server.status();
    // More than there may be at a time: some say nothing, some the beginning of a request.
    let stalled: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            if number % 2 == 0 {
                stream.write_all(b"GET /status?tok").unwrap();
            }
            stream
        })
        .collect();
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| assert_eq!(server.get("/trace/0").status, 200));
        }
    });
    let took = start.elapsed();
    assert!(took < Duration::from_secs(8), "200 requests took {took:?}");
    drop(stalled);
}

#[test]
fn a_request_that_dribbles_in_is_given_up() {
    let place = Place::new();
    let server = Server::start("", &[&small_trace(&place)]);
    let mut stream = TcpStream::connect(server.address).unwrap();
    let start = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    loop {
        let _ = stream.write_all(b"A: b\r\n");
        match stream.read(&mut [0; 16]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => break,
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it is still connected");
    }
    assert!(start.elapsed() > Duration::from_secs(5), "it had too little time");
}

#[test]
fn signals_end_it_at_once_with_0_and_it_prints_one_line() {
    let place = Place::new();
    let path = small_trace(&place);
    for signal in [Signal::INT, Signal::TERM] {
        let server = Server::start("", &[&path]);
        let _stalled = TcpStream::connect(server.address).unwrap();
        server.status();
        let start = Instant::now();
        assert_eq!(server.stop(signal), (Some(0), String::new(), String::new()));
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
    // Also while it reads.
    let server = Server::start("", &[&path]);
    assert_eq!(server.stop(Signal::INT).0, Some(0));
}

#[test]
fn a_port_in_use_is_an_error_that_names_the_remedy() {
    let place = Place::new();
    let path = small_trace(&place);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    heaptap(&format!("serve --no-open --port {port}"), &[&path])
        .says(2, &[&format!("127.0.0.1:{port}"), "another --port, or none for a free one"]);
    drop(taken);
    let server = Server::start(&format!("--port {port}"), &[&path]);
    assert_eq!(server.address.port(), port);
}

#[test]
fn files_that_cannot_be_read_fail_beside_those_that_can() {
    let place = Place::new();
    let path = small_trace(&place);
    let (none, text) = (place.path("none.ctf"), place.file("text", b"this is not a trace"));
    let server = Server::start("", &[&none, &path, &text]);
    let status = server.status();
    let states: Vec<_> =
        status.as_array().unwrap().iter().map(|trace| trace["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["failed", "ready", "failed"]);
    assert!(status[0]["error"].as_str().unwrap().contains("no such file; check the path"));
    assert!(status[2]["error"].as_str().unwrap().contains("not a memtrace file"));
    assert_eq!(server.get("/trace/0").status, 404);
    assert_eq!(server.get("/trace/1").status, 200);
    let (code, out, err) = server.stop(Signal::INT);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains("no such file") && err.contains("not a memtrace file"), "{err}");

    heaptap("serve --no-open", &[&none]).says(2, &["no such file; check the path"]);
    heaptap("serve --no-open", &[&none, &text]).says(2, &["no such file", "not a memtrace file"]);
    assert_eq!(heaptap("serve --no-open", &[&none, &text]).err.lines().count(), 2);
    heaptap("serve --no-open", &[]).says(2, &["no trace is named"]);
    // A pipe is read only once, so what is wrong with it shows when it is read.
    heaptap("serve --no-open -", &[]).says(2, &["standard input", "empty"]);
}

#[test]
fn traces_of_the_same_name_are_told_apart_and_hostile_names_are_harmless() {
    let place = Place::new();
    let trace = workload(Format::V3, 1, 100, 21);
    fs::create_dir(place.path("a")).unwrap();
    let (one, other) = (place.file("a/same.ctf", &trace), place.file("same.ctf", &trace));
    let server = Server::start("", &[&one, &other]);
    let status = server.status();
    assert_ne!(status[0]["name"], status[1]["name"]);
    drop(server);
    let hostile = place.file("<script>alert(1)<\\script>.ctf", &trace);
    let server = Server::start("", &[&hostile]);
    assert!(!server.get("/").text().contains("<script>alert"));
}
