//! Sockets that listen, their clients, and hosts that close descriptors.

use super::*;
use crate::sys::testing::{in_a_fork, in_a_process};
use std::io::BufRead;
use tempfile::TempDir;

fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("7.sock");
    (directory, path)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn client(listener: &Listener) -> Client {
    match listener.accept().unwrap() {
        Accepted::Client(client) => client,
        Accepted::Lost => panic!("nobody has closed it"),
    }
}

#[test]
fn a_socket_is_for_its_owner_and_replaces_what_was_left() {
    let (directory, path) = scratch();
    drop(UnixListener::bind(&path).unwrap());
    fs::write(directory.path().join("7.sock.new"), b"left").unwrap();
    let listener = Listener::bind(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let mut stream = UnixStream::connect(listener.path()).unwrap();
    let mut client = client(&listener);
    // SAFETY: takes no arguments and cannot fail.
    assert_eq!(client.user().unwrap(), unsafe { libc::geteuid() });
    stream.write_all(b"one\ntwo").unwrap();
    assert_eq!(client.read_line(100, soon()).as_deref(), Some(&b"one"[..]));
    assert!(client.write(b"answer\n", soon()));
    let mut answer = String::new();
    io::BufReader::new(&stream).read_line(&mut answer).unwrap();
    assert_eq!(answer, "answer\n");
    listener.remove_name();
    assert!(!path.exists());
}

#[test]
fn a_name_of_another_socket_is_kept() {
    let (_directory, path) = scratch();
    let listener = Listener::bind(&path).unwrap();
    let other = Listener::bind(&path).unwrap();
    listener.remove_name();
    assert!(path.exists(), "it is the other's");
    other.remove_name();
    assert!(!path.exists());
}

#[test]
fn lines_have_a_length_and_an_end() {
    let pair = || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Client::new(ours).unwrap(), theirs)
    };
    let (mut client, mut stream) = pair();
    stream.write_all(&[b'x'; 99]).unwrap();
    stream.write_all(b"\n").unwrap();
    assert_eq!(client.read_line(100, soon()).unwrap().len(), 99);
    let (mut client, mut stream) = pair();
    stream.write_all(&[b'x'; 100]).unwrap();
    stream.write_all(b"\n").unwrap();
    assert_eq!(client.read_line(100, soon()), None, "too long");
    let (mut client, mut stream) = pair();
    stream.write_all(b"half").unwrap();
    drop(stream);
    assert_eq!(client.read_line(100, soon()), None, "closed");
    let (mut client, _stream) = pair();
    let start = Instant::now();
    let deadline = start + Duration::from_millis(100);
    assert_eq!(client.read_line(100, deadline), None, "silent");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_client_that_sends_byte_by_byte_has_no_more_time() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut client = Client::new(ours).unwrap();
    let trickle = std::thread::spawn(move || {
        while theirs.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let start = Instant::now();
    assert_eq!(client.read_line(1 << 20, start + Duration::from_millis(200)), None);
    assert!(start.elapsed() < Duration::from_secs(10));
    drop(client);
    trickle.join().unwrap();
}

#[test]
fn a_client_that_does_not_read_does_not_block() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut client = Client::new(ours).unwrap();
    let deadline = Instant::now() + Duration::from_millis(100);
    assert!(!client.write(&vec![b'x'; 64 << 20], deadline));
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    assert!(!Client::new(ours).unwrap().write(b"x", soon()), "it has gone");
}

#[test]
fn a_descriptor_that_the_host_has_closed_is_left_alone() {
    in_a_process(module_path!(), "a_descriptor_that_the_host_has_closed_is_left_alone", || {
        let (directory, path) = scratch();
        let listener = Listener::bind(&path).unwrap();
        let number = listener.descriptor.number();
        assert!(number >= 64, "{number} is one of the host's");
        let own = File::create(directory.path().join("host")).unwrap();
        // SAFETY: takes numbers: closes the socket and gives its number to a file.
        assert_eq!(unsafe { libc::dup2(own.as_raw_fd(), number) }, number);
        assert!(matches!(listener.accept().unwrap(), Accepted::Lost));
        listener.inherited().close();
        drop(listener);
        // SAFETY: takes numbers.
        assert!(unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0, "the host's file is closed");
    });
}

#[test]
fn a_forked_child_closes_its_parents_socket() {
    in_a_process(module_path!(), "a_forked_child_closes_its_parents_socket", || {
        let (_directory, path) = scratch();
        let listener = Listener::bind(&path).unwrap();
        let (inherited, number) = (listener.inherited(), listener.descriptor.number());
        in_a_fork(move || {
            inherited.close();
            // SAFETY: takes numbers.
            assert_eq!(unsafe { libc::fcntl(number, libc::F_GETFD) }, -1);
        });
        let _stream = UnixStream::connect(&path).unwrap();
        client(&listener);
    });
}

#[test]
fn a_directory_must_be_private() {
    let (directory, _) = scratch();
    // SAFETY: takes no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    let private = directory.path().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    check_private(&private, user).unwrap();
    let refused = |path: &Path, user| check_private(path, user).unwrap_err().to_string();
    assert!(refused(&private, user + 1).contains("another user"));
    fs::set_permissions(&private, Permissions::from_mode(0o710)).unwrap();
    assert!(refused(&private, user).contains("0700"));
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    assert!(refused(&link, user).contains("not a directory"));
    assert!(check_private(&directory.path().join("none"), user).is_err());
}
