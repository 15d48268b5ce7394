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
        Replacement { name: c"a", address: page, size: 12, with },
        Replacement { name: c"b", address: page + 64, size: 16, with },
    ]
}

#[test]
fn a_jump_is_near_where_a_far_one_has_no_room() {
    for short in [0, 1] {
        let page = theirs();
        let mut replacements = both(page);
        replacements[short].size -= 1;
        let mut jumps = Jumps::prepare(&replacements).unwrap();
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
    let mut jumps = Jumps::prepare(&both(page)).unwrap();
    assert_eq!((call(page), call(page + 64)), (7, 7));
    assert_eq!(both_replaced(page), (false, false));
    jumps.write().unwrap();
    assert_eq!((call(page), call(page + 64)), (42, 42));
    assert_eq!(both_replaced(page), (true, true));
}

#[test]
fn jumps_are_written_through_proc_where_pages_are_protected() {
    let page = theirs();
    Jumps::prepare(&both(page)).unwrap().write_through_proc().unwrap();
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
fn a_page_has_room_for_a_fixed_number_of_relays() {
    let page = theirs();
    let [long, _] = both(page);
    let short = Replacement { name: c"short", size: long.size - 1, ..long };
    let prepare = |before: usize| {
        let mut replacements = vec![long; before];
        replacements.push(short);
        Jumps::prepare(&replacements).map(|jumps| jumps.writes[before].length)
    };
    assert_eq!(prepare(RELAYS - 1), Ok(NEAR));
    assert_eq!(prepare(RELAYS), Err(Refusal::Symbol(c"short")));
}
