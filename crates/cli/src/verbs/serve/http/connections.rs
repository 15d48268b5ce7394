//! Accepts connections, each on a thread with a small stack.
//!
//! There are at most [`MOST`]. If there is one more, the connection that has been silent
//! for the longest is closed: one that has not sent its request yet. So clients that
//! connect and send nothing cannot keep others out.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most connections at a time.
const MOST: usize = 128;
/// Of the thread of a connection: it decodes no trace.
const STACK: usize = 512 << 10;
/// How long accepting pauses when it fails, as when too many files are open.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    number: u64,
    all: Arc<Connections>,
}

/// All connections.
#[derive(Default)]
struct Connections {
    state: Mutex<State>,
    /// One has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    open: usize,
    /// Those whose request has not come yet, the oldest first.
    silent: BTreeMap<u64, Arc<Connection>>,
}

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more, and makes room if need be.
    fn enter(&self) {
        let mut state = self.state();
        while state.open >= MOST {
            if let Some((_, oldest)) = state.silent.pop_first() {
                oldest.close();
            }
            let waited = self.ended.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.open += 1;
    }

    fn leave(&self) {
        self.state().open -= 1;
        self.ended.notify_one();
    }
}

impl Connection {
    /// The request has come: from now on it is not closed for others.
    pub(super) fn has_asked(&self) {
        self.all.state().silent.remove(&self.number);
    }

    /// Whether the client has closed the connection.
    pub(crate) fn is_gone(&self) -> bool {
        let stream = &self.stream;
        let peeked = stream
            .set_nonblocking(true)
            .and_then(|()| stream.peek(&mut [0]))
            .map_err(|error| error.kind());
        let restored = stream.set_nonblocking(false);
        restored.is_err() || !matches!(peeked, Ok(1) | Err(io::ErrorKind::WouldBlock))
    }

    fn close(&self) {
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Accepts connections for ever, and has each handled.
pub(crate) fn accept(listener: &TcpListener, handle: impl Fn(&Connection) + Send + Sync + 'static) {
    let handle = Arc::new(handle);
    let all = Arc::new(Connections::default());
    for (number, stream) in (0..).zip(listener.incoming()) {
        let Ok(stream) = stream else {
            thread::sleep(PAUSE);
            continue;
        };
        all.enter();
        let connection = Arc::new(Connection { stream, number, all: Arc::clone(&all) });
        all.state().silent.insert(number, Arc::clone(&connection));
        let (handle, leaving) = (Arc::clone(&handle), Leaving(Arc::clone(&all)));
        // If no thread can be started, the connection is closed.
        let started = thread::Builder::new().stack_size(STACK).spawn(move || {
            let _leaving = leaving;
            handle(&connection);
            connection.has_asked();
        });
        if started.is_err() {
            all.state().silent.remove(&number);
            thread::sleep(PAUSE);
        }
    }
}

/// Counts a connection out, also if its thread panics or was never started.
struct Leaving(Arc<Connections>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}
