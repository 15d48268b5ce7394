//! A library that is loaded, and its symbols by name.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::image::LoadedImage;

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// A library that stays loaded.
pub(crate) struct LoadedLibrary {
    /// From `dlopen`, never closed.
    handle: *mut c_void,
    image: LoadedImage,
}

// SAFETY: the handle is only passed to `dlsym`, which any thread may call; the
// image is `Send` itself.
unsafe impl Send for LoadedLibrary {}
// SAFETY: `dlsym` may be called by several threads at once (POSIX); the image is
// `Sync` itself.
unsafe impl Sync for LoadedLibrary {}

impl LoadedLibrary {
    /// The library that holds an address. It is never unloaded from now on.
    pub(crate) fn of(address: usize) -> Option<LoadedLibrary> {
        let image = LoadedImage::of(address)?;
        // Found by name: a static program that links this library must not seem to
        // need a dynamic loader.
        // SAFETY: `RTLD_DEFAULT` is always a valid handle.
        let open = unsafe { lookup_in(libc::RTLD_DEFAULT, c"dlopen") }?;
        // SAFETY: the C library's `dlopen` has this type.
        let open: Open = unsafe { std::mem::transmute(open) };
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the path is a C string that the loader owns; with `RTLD_NOLOAD`
        // no code is loaded or run.
        let handle = unsafe { open(image.path().as_ptr(), flags) };
        (!handle.is_null()).then_some(LoadedLibrary { handle, image })
    }

    /// The address of a symbol that the library defines, or that it imports: a
    /// runtime in a separate library imports the program's tables.
    pub(crate) fn lookup(&self, name: &CStr) -> Option<usize> {
        // SAFETY: the handle is from `dlopen`, and is never closed.
        unsafe { lookup_in(self.handle, name) }.or_else(|| self.image.imported(name))
    }
}

/// The address of a symbol in a library, by the loader.
///
/// # Safety
/// `library` is an open handle from `dlopen`, or one of `dlsym`'s special handles.
pub(crate) unsafe fn lookup_in(library: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: the handle is valid, as this function requires; the name is a C
    // string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) } as usize;
    (address != 0).then_some(address)
}
