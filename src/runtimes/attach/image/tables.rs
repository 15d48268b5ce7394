//! The tables of a loaded image, in memory.

/// `Elf64_Dyn`
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: usize,
}

const DT_NULL: i64 = 0;

/// Reads the tables of one image.
#[derive(Clone, Copy)]
pub(super) struct Tables(());

impl Tables {
    /// # Safety
    /// The image stays loaded, and is only read at addresses that its own headers
    /// and tables give.
    pub(super) unsafe fn of_loaded() -> Tables {
        Tables(())
    }

    pub(super) fn read<T: Copy>(self, address: usize) -> T {
        // SAFETY: by the contract of `of_loaded` the address is in a table that the
        // linker wrote and the loader mapped, aligned as ELF requires.
        unsafe { (address as *const T).read() }
    }

    /// The value of an entry of the dynamic section, which ends with `DT_NULL`. The
    /// loader has relocated those that are addresses.
    pub(super) fn dynamic(self, section: usize, tag: i64) -> Option<usize> {
        let mut address = section;
        loop {
            let entry: Dynamic = self.read(address);
            if entry.tag == tag {
                return Some(entry.value);
            }
            if entry.tag == DT_NULL {
                return None;
            }
            address += size_of::<Dynamic>();
        }
    }
}
