//! Variables of the runtime that are changed for a while to prove a layout.

/// A variable of the runtime, before `main` or under its lock, while no other thread looks at it.
#[derive(Clone, Copy)]
pub(super) struct Variable<T>(*mut T);

impl<T: Copy> Variable<T> {
    /// # Safety
    /// The runtime declares a variable of type `T` at this address.
    pub(super) unsafe fn at(address: usize) -> Variable<T> {
        Variable(address as *mut T)
    }

    pub(super) fn get(self) -> T {
        // SAFETY: a variable of this type by the contract of `at`, and nobody else changes it now.
        unsafe { self.0.read() }
    }

    pub(super) fn set(self, value: T) {
        // SAFETY: a variable of this type by the contract of `at`, and nobody else looks at it now.
        unsafe { self.0.write(value) };
    }
}
