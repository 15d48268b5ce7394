//! Sockets that listen, their clients, and hosts that close descriptors.

use super::*;
use crate::sys::testing::{in_a_fork, in_a_process};
use std::fs::File;
use std::io::BufRead;
use std::os::fd::AsRawFd;
use tempfile::TempDir;

fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("7.sock");
    (directory, path)
}

/// A client that has connected already.
fn client(listener: &Listener) -> Client {
    match listener.accept().unwrap() {
        Accepted::Client(client) => client,
        Accepted::None => panic!("nobody has connected"),
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
    assert!(matches!(listener.accept(), Ok(Accepted::None)), "there is one client");
    stream.write_all(b"one").unwrap();
    let mut read = [0; 100];
    assert_eq!((client.read(&mut read), &read[..3]), (Transfer::Done(3), &b"one"[..]));
    assert_eq!(client.write(b"answer\n"), Transfer::Done(7));
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
fn nothing_waits_for_a_client() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut client = Client::new(ours).unwrap();
    assert_eq!(client.read(&mut [0; 10]), Transfer::Later, "it is silent");
    let much = vec![b'x'; 64 << 20];
    assert!(matches!(client.write(&much), Transfer::Done(written) if written < much.len()));
    assert_eq!(client.write(&much), Transfer::Later, "it does not read");
    drop(theirs);
    assert_eq!(client.read(&mut [0; 10]), Transfer::Ended);
    assert_eq!(client.write(b"x"), Transfer::Ended);
}

#[test]
fn an_answer_ends_also_if_a_child_has_inherited_the_connection() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let _inherited = ours.try_clone().unwrap();
    let mut client = Client::new(ours).unwrap();
    assert_eq!(client.write(b"ok\n"), Transfer::Done(3));
    client.end_answer();
    drop(client);
    theirs.set_read_timeout(Some(core::time::Duration::from_secs(20))).unwrap();
    let mut answer = String::new();
    theirs.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "ok\n");
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
        listener.close_in_child();
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
        let number = listener.descriptor.number();
        in_a_fork(|| {
            listener.close_in_child();
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
