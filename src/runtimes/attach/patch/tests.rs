use super::near_page::SLOTS;
use super::*;

#[test]
fn jumps_are_relative_to_their_end() {
    assert_eq!(near_jump(0x1000, 0x1005).unwrap()[..NEAR], [0xe9, 0, 0, 0, 0]);
    assert_eq!(near_jump(0x1000, 0xff0).unwrap()[1], 0xeb);
    assert!(near_jump(0x1000, 0x1_0000_0000).is_none());
}

extern "C" fn hook() -> i32 {
    42
}

/// A page with two functions, with and without a landing, that return 7.
fn theirs() -> usize {
    // SAFETY: maps a new page.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    } as usize;
    let body = [0xb8, 7, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90];
    for (offset, code) in [(0, &body[..]), (64, &LANDING), (68, &body[..])] {
        // SAFETY: the page is writable, and the code ends within it.
        unsafe {
            ptr::copy_nonoverlapping(code.as_ptr(), (page + offset) as *mut u8, code.len());
        };
    }
    protect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC).unwrap();
    page
}

fn call(address: usize) -> i32 {
    // SAFETY: one of the two functions of the page, of this type.
    let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(address) };
    function()
}

fn both_replaced(page: usize) -> (bool, bool) {
    // SAFETY: the functions of the page, which goes on behind them; their jumps, if any,
    // lead to a page of relays.
    let is_replaced = |function| unsafe { is_replaced(function) };
    (is_replaced(page), is_replaced(page + 64))
}

fn both(page: usize) -> [Replacement; 2] {
    let with = hook as *const () as usize;
    [
        Replacement { name: c"a", address: page, size: 12, with, original: None },
        Replacement { name: c"b", address: page + 64, size: 16, with, original: None },
    ]
}

#[test]
fn a_jump_is_near_where_a_far_one_has_no_room() {
    for short in [0, 1] {
        let page = theirs();
        let mut replacements = both(page);
        replacements[short].size -= 1;
        let jumps = Jumps::prepare(&replacements).unwrap();
        assert_eq!(jumps.writes[short].length, NEAR);
        assert_eq!(jumps.writes[1 - short].length, FAR);
        jumps.write().unwrap();
        assert_eq!((call(page), call(page + 64)), (42, 42));
        assert_eq!(both_replaced(page), (true, true));
    }
}

#[test]
fn functions_are_replaced() {
    let page = theirs();
    let jumps = Jumps::prepare(&both(page)).unwrap();
    assert_eq!((call(page), call(page + 64)), (7, 7));
    assert_eq!(both_replaced(page), (false, false));
    jumps.write().unwrap();
    assert_eq!((call(page), call(page + 64)), (42, 42));
    assert_eq!(both_replaced(page), (true, true));
}

#[test]
fn jumps_are_written_through_proc_where_pages_are_protected() {
    let page = theirs();
    Jumps::prepare(&both(page)).unwrap().put_through_proc(Side::Jump).unwrap();
    assert_eq!((call(page), call(page + 64)), (42, 42));
}

#[test]
fn a_function_that_is_too_small_refuses_all() {
    let page = theirs();
    let mut replacements = both(page);
    replacements[1].size = 6;
    assert!(matches!(Jumps::prepare(&replacements), Err(Refusal::Symbol(name)) if name == c"b"));
    assert_eq!(call(page), 7);
}

#[test]
fn a_page_has_a_fixed_number_of_slots() {
    let page = theirs();
    let [long, _] = both(page);
    let short = Replacement { name: c"short", size: long.size - 1, ..long };
    let prepare = |before: usize| {
        let mut replacements = vec![long; before];
        replacements.push(short);
        Jumps::prepare(&replacements).map(|jumps| jumps.writes[before].length)
    };
    assert_eq!(prepare(SLOTS - 1), Ok(NEAR));
    assert_eq!(prepare(SLOTS), Err(Refusal::Symbol(c"short")));
}

static VALUE: i32 = 7;

/// Functions as compilers make them, at the start of a page that has `VALUE` near: with and
/// without a landing, one that refers to memory by its distance, and one that cannot be wrapped.
fn functions_near_a_value() -> (usize, [(usize, usize); 4]) {
    let page = theirs();
    protect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE).unwrap();
    let value = page + 0x800;
    let codes: [&[u8]; 4] = [
        // push %rbp; mov %rsp, %rbp; mov $7, %eax; pop %rbp; ret
        &[0x55, 0x48, 0x89, 0xe5, 0xb8, 7, 0, 0, 0, 0x5d, 0xc3],
        // endbr64; sub $8, %rsp; mov $7, %eax; add $8, %rsp; ret
        &[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8, 0xb8, 7, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3],
        // mov VALUE(%rip), %eax; ret
        &[&[0x8b, 5], &(0x800 - 0x100 - 6_i32).to_le_bytes()[..], &[0xc3]].concat(),
        // mov $7, %eax; test %eax, %eax; jle .-5; ret
        &[0xb8, 7, 0, 0, 0, 0x85, 0xc0, 0x7e, 0xf9, 0xc3],
    ];
    let places = [0, 1, 2, 3].map(|index| (page + index * 0x80, codes[index].len()));
    for ((at, _), code) in places.into_iter().zip(codes) {
        // SAFETY: the page is writable, and the code ends within it.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, code.len()) };
    }
    // SAFETY: within the page, and aligned.
    unsafe { (value as *mut i32).write(VALUE) };
    protect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC).unwrap();
    (page, places)
}

/// What the page holds.
fn bytes(page: usize) -> Vec<u8> {
    // SAFETY: a page of these tests, which stays mapped and is changed by nobody else.
    unsafe { std::slice::from_raw_parts(page as *const u8, PAGE) }.to_vec()
}

type ReturnsInt = extern "C" fn() -> i32;

fn leaked_original() -> &'static Original<ReturnsInt> {
    Box::leak(Box::new(Original::new()))
}

fn call_original(original: &Original<ReturnsInt>) -> Option<i32> {
    // SAFETY: the functions of the page have this type.
    unsafe { original.get() }.map(|function| function())
}

#[test]
fn a_replaced_function_can_be_called_and_gets_its_bytes_back() {
    let (page, functions) = functions_near_a_value();
    let before = bytes(page);
    let originals = [(); 3].map(|()| leaked_original());
    let with = hook as *const () as usize;
    let replacement = |((address, size), original): ((usize, usize), &'static Original<_>)| {
        Replacement { name: c"f", address, size, with, original: Some(original.place()) }
    };
    let wrapped: Vec<_> = functions.into_iter().zip(originals).map(replacement).collect();
    assert_eq!(originals.map(call_original), [None; 3]);
    let jumps = Jumps::prepare(&wrapped).unwrap();
    assert_eq!(bytes(page), before, "nothing is written yet");
    for _ in 0..2 {
        jumps.write().unwrap();
        assert_eq!([0, 1, 2].map(|index| call(functions[index].0)), [42; 3]);
        assert_eq!(originals.map(call_original), [Some(7); 3]);
        jumps.remove().unwrap();
        assert_eq!(bytes(page), before);
        assert_eq!([0, 1, 2].map(|index| call(functions[index].0)), [7; 3]);
        assert_eq!(originals.map(call_original), [Some(7); 3], "still callable");
    }
    jumps.put_through_proc(Side::Jump).unwrap();
    assert_ne!(bytes(page), before);
    jumps.put_through_proc(Side::Before).unwrap();
    assert_eq!(bytes(page), before);
}

#[test]
fn a_far_jump_wraps_where_there_is_no_page_near() {
    let (page, functions) = functions_near_a_value();
    let before = bytes(page);
    // Below a tebibyte, where nothing is.
    let far = || NearPage::map(1 << 40).unwrap();
    let with = hook as *const () as usize;
    let wrap = |(address, size): (usize, usize), original: &'static Original<ReturnsInt>| {
        // What follows in the page belongs to the function.
        let size = size.max(FAR);
        Replacement { name: c"f", address, size, with, original: Some(original.place()) }
    };
    let original = leaked_original();
    let jumps = Jumps::prepare_with(&[wrap(functions[1], original)], Some(far())).unwrap();
    assert_eq!(jumps.writes[0].length, FAR);
    jumps.write().unwrap();
    assert_eq!((call(functions[1].0), call_original(original)), (42, Some(7)));
    jumps.remove().unwrap();
    assert_eq!(bytes(page), before);
    assert_eq!((call(functions[1].0), call_original(original)), (7, Some(7)));
    let relative = Jumps::prepare_with(&[wrap(functions[2], leaked_original())], Some(far()));
    assert_eq!(relative.err(), Some(Refusal::Original(c"f")), "its value is too far");
    let anywhere = NearPage::map_anywhere();
    assert!(Jumps::prepare_with(&[wrap(functions[1], leaked_original())], anywhere).is_ok());
}

#[test]
fn a_function_whose_original_cannot_be_called_is_refused() {
    let (page, functions) = functions_near_a_value();
    let (address, size) = functions[3];
    let original = leaked_original();
    let with = hook as *const () as usize;
    let replacement =
        Replacement { name: c"loop", address, size, with, original: Some(original.place()) };
    assert_eq!(Jumps::prepare(&[replacement]).err(), Some(Refusal::Original(c"loop")));
    assert_eq!((call(page), call_original(original)), (7, None));
}

#[test]
fn a_function_of_the_c_library_is_wrapped() {
    extern "C" fn longer(text: *const libc::c_char) -> *mut libc::c_char {
        // SAFETY: `secure_getenv` has this type.
        let value = unsafe { ORIGINAL.get() }.expect("prepared")(text);
        if value.is_null() { value } else { value.wrapping_add(1) }
    }
    static ORIGINAL: Original<extern "C" fn(*const libc::c_char) -> *mut libc::c_char> =
        Original::new();
    let replacement =
        in_c_library(c"secure_getenv", longer as *const (), Some(ORIGINAL.place())).unwrap();
    let jumps = Jumps::prepare(&[replacement]).unwrap();
    // The function is not replaced for real: other tests use it.
    assert_eq!(jumps.writes[0].length, NEAR);
    // SAFETY: `PATH` is not changed by these tests.
    let path = unsafe { libc::getenv(c"PATH".as_ptr()) };
    assert!(!path.is_null());
    assert_eq!(longer(c"PATH".as_ptr()), path.wrapping_add(1));
    assert!(longer(c"HEAPTAP_TEST_OF_NOTHING".as_ptr()).is_null());
}

#[test]
fn code_that_somebody_else_has_changed_is_left_alone() {
    const WRITABLE: i32 = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let page = theirs();
    let set = |byte: u8| {
        protect(page, PAGE, WRITABLE).unwrap();
        // SAFETY: the first byte of the page, which is writable.
        unsafe { std::mem::replace(&mut *(page as *mut u8), byte) }
    };
    let jumps = Jumps::prepare(&both(page)).unwrap();
    let own = set(0xcc);
    assert_eq!(jumps.write(), Err(Refusal::Replaced(c"a")));
    assert_eq!(both_replaced(page), (false, false));
    set(own);
    jumps.write().unwrap();
    assert_eq!(jumps.write(), Err(Refusal::Replaced(c"a")), "they are written already");
    let jump = set(0xcc);
    assert_eq!(jumps.remove(), Err(Refusal::Replaced(c"a")));
    set(jump);
    jumps.remove().unwrap();
    assert_eq!((call(page), call(page + 64)), (7, 7));
}
