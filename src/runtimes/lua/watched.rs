//! A state of our own that is watched by its allocator: which blocks it has, and where the tables
//! of its program are made. For `proof`, before `main`.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;

use super::constructors::{Registers, Request};
use super::kinds::{self, AllocateFunction};
use super::layout::{self, Global};
use super::places::Places;
use super::stack::{Moment, StateStack};
use super::symbols::Calls;

/// What is known of the state that is watched.
pub(super) struct Watched {
    pub(super) calls: Calls,
    standard_allocator: AllocateFunction,
    /// The blocks that are allocated: size and kind by address.
    blocks: BTreeMap<usize, (usize, usize)>,
    /// The first block that was asked for: address, size, and kind.
    first: Option<(usize, usize, usize)>,
    stack: StateStack,
    places: &'static Places,
    /// How many stacks were found to be what the runtime says.
    pub(super) inspected: usize,
    /// The first difference.
    pub(super) difference: Option<&'static str>,
    /// The tables and arrays of the program, as `proof` expects them.
    tables: Vec<(bool, u32)>,
}

/// The state that is watched.
///
/// # Safety
/// `global` is that of the state that `proof` has made, and its allocator is not running.
pub(super) unsafe fn watched_of<'a>(global: Global) -> Option<&'a mut Watched> {
    let (function, data) = global.allocator();
    let is_ours = function == watch as *const () as usize;
    // SAFETY: the contract of this function.
    is_ours.then(|| unsafe { &mut *(data as *mut Watched) })
}

/// `lua_Alloc`
///
/// # Safety
/// As the manual has it, with a `Watched` as `data` that nobody else is using.
pub(super) unsafe extern "C-unwind" fn watch(
    data: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: the contract of this function.
    let watched = unsafe { &mut *data.cast::<Watched>() };
    let request = Request { is_new: block.is_null(), kind: old, size: new };
    if watched.is_table(request) && watched.inspected > 0 {
        watched.note_table(request, Registers::capture());
    }
    // SAFETY: that of the runtime, with its arguments.
    let made = unsafe { (watched.standard_allocator)(ptr::null_mut(), block, old, new) };
    if new == 0 || !made.is_null() {
        let before = watched.blocks.remove(&(block as usize));
        let kind = before.map_or(old, |(_, kind)| kind);
        if new != 0 {
            watched.blocks.insert(made as usize, (new, kind));
            watched.first.get_or_insert((made as usize, new, kind));
        }
    }
    made
}

impl Watched {
    /// Of a state that is about to be made.
    pub(super) fn new(
        calls: &Calls,
        standard_allocator: AllocateFunction,
        stack: StateStack,
        places: &'static Places,
    ) -> Watched {
        Watched {
            calls: *calls,
            standard_allocator,
            blocks: BTreeMap::new(),
            first: None,
            stack,
            places,
            inspected: 0,
            difference: None,
            tables: Vec::new(),
        }
    }

    /// The first block that was asked for: address, size, and kind.
    pub(super) fn first(&self) -> Option<(usize, usize, usize)> {
        self.first
    }

    /// The program runs in this thread.
    pub(super) fn enter(&mut self, thread: usize) {
        self.stack.enter(thread);
    }

    /// For each table and array of the program, whether it is an array, and its line.
    pub(super) fn tables(&self) -> &[(bool, u32)] {
        &self.tables
    }

    /// Whether it is a table of the program, or an array of one.
    fn is_table(&self, request: Request) -> bool {
        let Request { is_new, kind, size } = request;
        let is_array = kind == kinds::NONE && (size == 16 || size == 48);
        is_new && (kind == kinds::TABLE || is_array)
    }

    fn note_table(&mut self, request: Request, registers: Registers) {
        let mut codes = [0; 64];
        self.stack.moment = Some(Moment { request, registers });
        if self.stack.codes(&mut codes) > 0 {
            self.tables.push((request.kind == kinds::NONE, self.places.line(codes[0])));
        }
    }

    /// The bytes that are allocated.
    pub(super) fn bytes(&self) -> isize {
        self.blocks.values().map(|&(size, _)| size as isize).sum()
    }

    /// Whether a block of this size begins there.
    pub(super) fn is_block(&self, address: usize, size: usize) -> bool {
        self.blocks.get(&address).is_some_and(|block| block.0 == size)
    }

    /// Whether these bytes are in a block.
    pub(super) fn holds(&self, address: usize, size: usize) -> bool {
        let before = self.blocks.range(..=address).next_back();
        let offset = |start: usize| (address - start).saturating_add(size);
        before.is_some_and(|(&start, block)| offset(start) <= block.0)
    }

    /// Whether a function's prototype begins there.
    pub(super) fn is_proto(&self, address: usize) -> bool {
        self.blocks.get(&address) == Some(&(layout::PROTO_SIZE, kinds::PROTO))
    }
}
