//! Something is done before a signal ends the process, which then ends as it would have: by the same
//! signal, with the same core dump.
//!
//! Handlers are set only for signals that have none: those for which the system would end the
//! process. A program that sets one of its own later has it, and we do not come back. One
//! signal is special: a runtime sets a handler for SIGSEGV to detect stack overflows,
//! which gives up by resetting the signal. That handler is called as before, from ours, and something
//! is done only once it has given up.
//!
//! A handler runs on a stack that may have 8 KiB, and may have interrupted anything. In a process
//! that was forked it does nothing but end it.
#![allow(unsafe_code, reason = "sets signal handlers")]

use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::errno::KeepErrno;

/// The signals whose default is the end of the process, but for those that debuggers (SIGTRAP) and
/// profilers (SIGPROF, SIGVTALRM) use by the way, and those of real time.
const SIGNALS: [c_int; 16] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// The name of a signal, without memory.
pub(crate) fn name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        libc::SIGINT => "SIGINT",
        libc::SIGHUP => "SIGHUP",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGUSR2 => "SIGUSR2",
        _ => "a signal",
    }
}

/// What is done before the process ends. Async-signal-safe.
pub(crate) type LastWork = fn(signal: c_int);

/// A [`LastWork`]; NULL while nothing is to be done.
static WORK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The process that has set the handlers. Forked children inherit them.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The thread that does the last work; 0 if there is none.
static WORKING: AtomicI32 = AtomicI32::new(0);
/// The work is done.
static DONE: AtomicU32 = AtomicU32::new(0);

/// The longest that a thread waits which gets a signal while another does the last work: in all,
/// longer than that takes.
const LONGEST_WAIT_MS: u32 = 30_000;

/// The runtime's handler of SIGSEGV, 0 if ours does not go before it.
static BEHIND: AtomicUsize = AtomicUsize::new(0);
/// The last handler of SIGSEGV that was looked at.
static LOOKED_AT: AtomicUsize = AtomicUsize::new(0);

/// Whether a handler is ours, and stands for the signal's default.
pub(crate) fn stands_for_default(handler: libc::sighandler_t) -> bool {
    handler == ours()
}

fn ours() -> libc::sighandler_t {
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_signal;
    handler as libc::sighandler_t
}

fn over_the_runtimes() -> libc::sighandler_t {
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
    handler as libc::sighandler_t
}

/// The action of a signal.
fn action_of(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: all zeros are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: sigaction writes one struct; NULL changes nothing.
    let failed = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    (failed == 0).then_some(action)
}

/// Sets an action, and returns the one before.
fn set_action(signal: c_int, action: &libc::sigaction) -> Option<libc::sigaction> {
    // SAFETY: all zeros are a valid `sigaction`.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: sigaction reads one struct and writes another. Handlers in it are functions of this
    // library, which is never unloaded once it has set one, or those that were there before.
    let failed = unsafe { libc::sigaction(signal, action, &raw mut before) };
    (failed == 0).then_some(before)
}

fn default_action() -> libc::sigaction {
    // SAFETY: all zeros are a valid `sigaction`: the default, with an empty mask.
    unsafe { mem::zeroed() }
}

/// That of our handler, in which all signals are held back.
fn own_action() -> libc::sigaction {
    let mut own = default_action();
    own.sa_sigaction = ours();
    own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: sigfillset writes one set.
    unsafe { libc::sigfillset(&raw mut own.sa_mask) };
    own
}

/// Has `work` done before a signal ends this process, from now on.
pub(crate) fn install(work: LastWork) {
    WORK.store(work as *mut c_void, Ordering::Release);
    OWNER.store(std::process::id(), Ordering::Release);
    give_alternate_stack();
    let own = own_action();
    for signal in SIGNALS {
        let is_default = |action: libc::sigaction| action.sa_sigaction == libc::SIG_DFL;
        if !action_of(signal).is_some_and(is_default) {
            continue;
        }
        if let Some(before) = set_action(signal, &own)
            && !is_default(before)
        {
            // Another thread has set one meanwhile.
            set_action(signal, &before);
        }
    }
}

/// The handlers do nothing any more but end the process, and are removed where they are still set.
pub(crate) fn uninstall() {
    WORK.store(ptr::null_mut(), Ordering::Release);
    if OWNER.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    for signal in SIGNALS {
        if action_of(signal).is_some_and(|action| action.sa_sigaction == ours()) {
            set_action(signal, &default_action());
        }
    }
    let behind = BEHIND.swap(0, Ordering::AcqRel);
    LOOKED_AT.store(0, Ordering::Relaxed);
    if let Some(mut action) = action_of(libc::SIGSEGV)
        && action.sa_sigaction == over_the_runtimes()
    {
        // Everything else is as the runtime has set it.
        action.sa_sigaction = behind;
        set_action(libc::SIGSEGV, &action);
    }
}

/// Whether a thread does the last work, or has begun to: nothing may be freed that it uses.
pub(crate) fn is_ending() -> bool {
    WORKING.load(Ordering::SeqCst) != 0
}

/// The handler of SIGSEGV, if it is somebody else's and was not looked at before.
pub(crate) fn new_fault_handler() -> Option<usize> {
    if BEHIND.load(Ordering::Relaxed) != 0 {
        return None;
    }
    let handler = action_of(libc::SIGSEGV)?.sa_sigaction;
    let is_of_others = ![libc::SIG_DFL, libc::SIG_IGN, ours()].contains(&handler);
    let is_new = is_of_others && LOOKED_AT.swap(handler, Ordering::Relaxed) != handler;
    is_new.then_some(handler)
}

/// Goes before the runtime's handler of SIGSEGV, once, if it is the one at this address, and of the
/// kind that returns to the program when it has dealt with a fault.
pub(crate) fn go_before(handler: usize) {
    let Some(mut action) = action_of(libc::SIGSEGV) else { return };
    let needed = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let flags = action.sa_flags;
    if action.sa_sigaction != handler
        || flags & needed != needed
        || flags & libc::SA_RESETHAND != 0
        || BEHIND.load(Ordering::Relaxed) != 0
    {
        return;
    }
    BEHIND.store(handler, Ordering::Release);
    action.sa_sigaction = over_the_runtimes();
    if let Some(before) = set_action(libc::SIGSEGV, &action)
        && before.sa_sigaction != handler
    {
        // Another thread has set one meanwhile.
        set_action(libc::SIGSEGV, &before);
    }
}

/// Bytes of the alternate stack: the frame of a signal has some 3 KiB with all vector registers.
const STACK: usize = 64 << 10;

/// Gives the main thread an alternate stack, if it has none: without one nothing can be done
/// about a stack that has overflowed. It stays until the process ends.
///
/// Only of the main thread: others of the program cannot be reached, and ours have no use for it.
fn give_alternate_stack() {
    if this_thread() != this_process() {
        return;
    }
    // SAFETY: all zeros are a valid `stack_t`.
    let mut stack: libc::stack_t = unsafe { mem::zeroed() };
    // SAFETY: sigaltstack writes one struct; NULL changes nothing.
    let failed = unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) };
    if failed != 0 || stack.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    if let Some(memory) = super::memory::map_anonymous(STACK, libc::MAP_PRIVATE) {
        stack = libc::stack_t { ss_sp: memory.as_ptr().cast(), ss_flags: 0, ss_size: STACK };
        // SAFETY: the memory was just mapped, and is never unmapped.
        unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
    }
}

/// A signal ends this process. Async-signal-safe.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let _keep = KeepErrno::new();
    do_last_work(signal);
    end_by(signal, info);
}

/// A fault in a program whose runtime has a handler for it. Async-signal-safe.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = BEHIND.load(Ordering::Acquire);
    if handler == 0 {
        // It was put back just now, and is called when the fault happens again.
        return;
    }
    // SAFETY: `go_before` has found this handler, with SA_SIGINFO: it has this type. It may not
    // return, and nothing here has to be done then.
    let handle: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
        unsafe { mem::transmute(handler) };
    handle(signal, info, context);
    let _keep = KeepErrno::new();
    if action_of(signal).is_none_or(|action| action.sa_sigaction != libc::SIG_DFL) {
        return;
    }
    // It has given up by resetting the signal: the fault happens again, and ends the process.
    if is_fault(info) {
        let all = own_action().sa_mask;
        // SAFETY: pthread_sigmask reads one set. When the handler returns the mask is what it was.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut()) };
        do_last_work(signal);
        end_by(signal, info);
    } else {
        // Somebody has sent it, which the process survives this time.
        BEHIND.store(0, Ordering::Relaxed);
        set_action(signal, &own_action());
    }
}

/// Does the work, once in the process that has asked for it.
fn do_last_work(signal: c_int) {
    let (process, thread) = (this_process(), this_thread());
    if OWNER.load(Ordering::Acquire) != process as u32 {
        // A forked child.
        return;
    }
    match WORKING.compare_exchange(0, thread, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {
            let work = WORK.load(Ordering::SeqCst);
            if !work.is_null() {
                // SAFETY: `install` has stored a `LastWork`.
                let work: LastWork = unsafe { mem::transmute(work) };
                work(signal);
            }
            DONE.store(1, Ordering::Release);
        }
        // A fault in the work itself.
        Err(working) if working == thread => {}
        Err(_) => {
            for _ in 0..LONGEST_WAIT_MS {
                if DONE.load(Ordering::Acquire) != 0 {
                    break;
                }
                let millisecond = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
                // SAFETY: nanosleep reads one struct.
                unsafe { libc::nanosleep(&raw const millisecond, ptr::null_mut()) };
            }
        }
    }
}

fn this_process() -> libc::pid_t {
    // SAFETY: takes nothing.
    unsafe { libc::getpid() }
}

fn this_thread() -> libc::pid_t {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() }
}

/// Whether the processor has raised the signal, not a process.
fn is_fault(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes a struct to handlers with SA_SIGINFO.
    unsafe { info.as_ref() }.is_some_and(|info| info.si_code > 0)
}

/// Has the signal end the process when the handler returns.
fn end_by(signal: c_int, info: *mut libc::siginfo_t) {
    set_action(signal, &default_action());
    if [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL].contains(&signal) && is_fault(info)
    {
        // It happens again.
        return;
    }
    // It is held back until the handler returns. With the same information, for the core dump.
    let (process, thread) = (this_process(), this_thread());
    let queue = libc::SYS_rt_tgsigqueueinfo;
    // SAFETY: numbers, and the struct of the kernel, which a process may send to itself.
    let sent = unsafe { libc::syscall(queue, process, thread, signal, info) };
    if sent != 0 {
        // SAFETY: takes numbers.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::in_a_process;
    use core::sync::atomic::AtomicI32;

    /// The signal that the work was done for, in memory that a forked child shares.
    static SHARED: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());

    fn note(signal: c_int) {
        // SAFETY: the test has set it.
        if let Some(shared) = unsafe { SHARED.load(Ordering::Relaxed).as_ref() } {
            shared.store(signal, Ordering::Relaxed);
        }
    }

    /// How a child ends in which `body` runs, and the signal that was noted in it.
    fn ended(body: impl FnOnce()) -> (c_int, c_int) {
        let memory = super::super::memory::map_anonymous(4096, libc::MAP_SHARED).unwrap();
        SHARED.store(memory.as_ptr().cast(), Ordering::Relaxed);
        // SAFETY: the child has one thread.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: takes numbers; no core dumps of tests.
            unsafe {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            }
            body();
            // SAFETY: takes a number.
            unsafe { libc::_exit(42) };
        }
        let mut status = 0;
        // SAFETY: waitpid writes one int to `status`.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        // SAFETY: an `AtomicI32` in memory that was zeroed.
        let noted = unsafe { memory.cast::<AtomicI32>().as_ref() }.load(Ordering::Relaxed);
        (status, noted)
    }

    fn raise(signal: c_int) {
        // SAFETY: takes a number.
        unsafe { libc::raise(signal) };
    }

    extern "C" fn of_the_program(_: c_int) {}

    #[test]
    fn a_signal_ends_the_process_as_it_would_have() {
        in_a_process(module_path!(), "a_signal_ends_the_process_as_it_would_have", || {
            for signal in SIGNALS {
                // The test's own runtime has handlers for some.
                let reset = || _ = set_action(signal, &default_action());
                let untraced = ended(|| {
                    reset();
                    raise(signal);
                });
                assert_eq!(untraced, (signal, 0), "{signal}");
                let traced = ended(|| {
                    reset();
                    install(note);
                    raise(signal);
                });
                assert_eq!(traced, (signal, signal), "{signal}");
                assert_ne!(name(signal), "a signal");
            }
        });
    }

    #[test]
    fn a_real_fault_ends_it_too() {
        in_a_process(module_path!(), "a_real_fault_ends_it_too", || {
            let found = ended(|| {
                set_action(libc::SIGSEGV, &default_action());
                install(note);
                // SAFETY: none: it faults.
                unsafe { core::arch::asm!("mov byte ptr [0], 0") };
            });
            assert_eq!(found, (libc::SIGSEGV, libc::SIGSEGV));
        });
    }

    #[test]
    fn what_the_program_has_or_sets_is_kept() {
        in_a_process(module_path!(), "what_the_program_has_or_sets_is_kept", || {
            let handler: extern "C" fn(c_int) = of_the_program;
            let set = |signal, handler| {
                // SAFETY: sets a handler in the child of a test.
                unsafe { libc::signal(signal, handler) };
            };
            let found = ended(|| {
                set(libc::SIGTERM, handler as libc::sighandler_t);
                set(libc::SIGHUP, libc::SIG_IGN);
                install(note);
                set(libc::SIGINT, handler as libc::sighandler_t);
                [libc::SIGTERM, libc::SIGHUP, libc::SIGINT].into_iter().for_each(raise);
            });
            assert_eq!(found, (42 << 8, 0));
            let removed = ended(|| {
                install(note);
                uninstall();
                raise(libc::SIGTERM);
            });
            assert_eq!(removed, (libc::SIGTERM, 0));
        });
    }

    /// Deals with the first fault, by skipping an instruction of 8 bytes, and gives up at the second.
    extern "C" fn of_a_runtime(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        static FAULTS: AtomicU32 = AtomicU32::new(0);
        if FAULTS.fetch_add(1, Ordering::Relaxed) == 0 {
            // SAFETY: the kernel passes this struct.
            let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
            context.uc_mcontext.gregs[libc::REG_RIP as usize] += 8;
        } else {
            set_action(libc::SIGSEGV, &default_action());
        }
    }

    #[test]
    fn the_runtimes_handler_comes_first() {
        in_a_process(module_path!(), "the_runtimes_handler_comes_first", || {
            let fault = || {
                // SAFETY: none: it faults.
                unsafe { core::arch::asm!(".byte 0xc6, 0x04, 0x25, 0, 0, 0, 0, 0") };
            };
            let run = |faults: u32| {
                ended(|| {
                    install(note);
                    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                        of_a_runtime;
                    let mut action = default_action();
                    action.sa_sigaction = handler as libc::sighandler_t;
                    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                    set_action(libc::SIGSEGV, &action);
                    assert_eq!(new_fault_handler(), Some(action.sa_sigaction));
                    assert_eq!(new_fault_handler(), None);
                    go_before(action.sa_sigaction);
                    (0..faults).for_each(|_| fault());
                })
            };
            assert_eq!(run(1), (42 << 8, 0));
            assert_eq!(run(2), (libc::SIGSEGV, libc::SIGSEGV));
        });
    }

    #[test]
    fn a_forked_child_only_ends() {
        in_a_process(module_path!(), "a_forked_child_only_ends", || {
            install(note);
            assert_eq!(ended(|| raise(libc::SIGTERM)), (libc::SIGTERM, 0));
        });
    }
}
