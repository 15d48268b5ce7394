use super::*;

/// As `dladdr1` reports them.
#[test]
fn sizes_are_those_of_the_symbol_table() {
    let names = [c"getpid", c"malloc", c"execve", c"strlen"];
    let addresses = names.map(|name| {
        // SAFETY: `RTLD_DEFAULT` is a valid handle, and the name is a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
    });
    let image = LoadedImage::of(addresses[0]).unwrap();
    let mut symbols = addresses.map(|address| Symbol { address, size: 0 });
    image.measure(&mut symbols, &names);
    for Symbol { address, size } in symbols {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let mut entry: *mut c_void = std::ptr::null_mut();
        // SAFETY: both pointers are to writable memory of their types; 1 (`RTLD_DL_SYMENT`)
        // asks for the symbol.
        unsafe { libc::dladdr1(address as _, info.as_mut_ptr(), &raw mut entry, 1) };
        if !entry.is_null() {
            // SAFETY: `dladdr1` has stored a pointer to an entry of a loaded symbol table.
            let symbol = unsafe { entry.cast::<libc::Elf64_Sym>().read() };
            assert_eq!(size, symbol.st_size as usize);
        }
    }
    assert!(symbols[..3].iter().all(|symbol| symbol.size > 0));
    let mut nothing = [Symbol { address: 1, size: 7 }, Symbol { address: 1, size: 7 }];
    image.measure(&mut nothing, &[c"getpid", c"no_such_function"]);
    assert!(nothing.iter().all(|symbol| symbol.size == 0));
}

/// As `dladdr` reports it.
#[test]
fn the_function_that_covers_an_address_is_found() {
    for name in [c"getpid", c"malloc", c"execve"] {
        // SAFETY: `RTLD_DEFAULT` is a valid handle, and the name is a C string.
        let start = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize };
        let image = LoadedImage::of(start).unwrap();
        let mut symbol = [Symbol { address: start, size: 0 }];
        image.measure(&mut symbol, &[name]);
        let last = start + symbol[0].size - 1;
        for address in [start, last] {
            assert!(image.covers(name, address));
            let covering = image.covering(address).unwrap();
            // Of several names for one function any will do here.
            assert!(image.covers(covering, start) && image.covers(covering, last));
        }
        for address in [start - 1, last + 1] {
            assert!(!image.covers(name, address));
            assert_ne!(image.covering(address), Some(name));
        }
        assert!(!image.covers(c"no_such_function", start));
        assert_eq!(image.defined(name), Some(start));
        assert_eq!(image.defined(c"no_such_function"), None);
    }
}

#[test]
fn the_program_is_the_image_that_runs() {
    let here = the_program_is_the_image_that_runs as *const () as usize;
    let program = LoadedImage::of_program().unwrap();
    assert_eq!(program.base, LoadedImage::of(here).unwrap().base);
    // It imports this function.
    assert_eq!(program.defined(c"getauxval"), None);
}

#[test]
fn every_address_of_an_image_is_found() {
    let here = sizes_are_those_of_the_symbol_table as *const () as usize;
    let text = LoadedImage::of(here).unwrap();
    let data = LoadedImage::of(&raw const DATA as usize).unwrap();
    assert_eq!(text.base, data.base);
    assert_eq!(text.path(), c"");
    assert!(LoadedImage::of(16).is_none());
}

static DATA: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(1);
