//! The functions of a runtime that are replaced, each with its name, its C type and
//! our hook, in one table.
//!
//! A jump to a hook of another type would corrupt a live process. So the table is a
//! trait with one function for each of the runtime's: the name of the function *is*
//! the symbol that is patched, the compiler compares the type of the hook with the
//! declared one, and no hook can be missing or stand for another.

use std::ffi::CStr;
use std::marker::PhantomData;

use super::image::Symbol;
use super::patch::{Original, Replacement};
use super::symbols::function_at;

/// A function of the runtime whose C type is `F`, a function pointer.
#[derive(Debug)]
pub(crate) struct RuntimeFunction<F> {
    name: &'static CStr,
    symbol: Symbol,
    pointer: PhantomData<F>,
}

impl<F> Clone for RuntimeFunction<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for RuntimeFunction<F> {}

impl<F: Copy> RuntimeFunction<F> {
    /// A function that was found at this symbol.
    pub(crate) fn new(name: &'static CStr, symbol: Symbol) -> Self {
        RuntimeFunction { name, symbol, pointer: PhantomData }
    }

    /// Its address.
    pub(crate) fn address(&self) -> usize {
        self.symbol.address
    }

    /// The runtime's own function, as long as it is not replaced.
    ///
    /// # Safety
    /// `F` is the type with which the runtime declares the function of this name.
    pub(crate) unsafe fn get(&self) -> F {
        // SAFETY: by this function's contract a function of type `F`. The loader keeps the
        // runtime's text mapped.
        unsafe { function_at(self.symbol.address) }
    }

    /// Replaces it by a hook of the same type.
    pub(crate) fn replaced_by(&self, hook: F) -> Replacement {
        const { assert!(size_of::<F>() == size_of::<usize>(), "not a function pointer") };
        let Symbol { address, size } = self.symbol;
        // SAFETY: a function pointer is as large as an address, and has no padding.
        let with = unsafe { std::mem::transmute_copy::<F, usize>(&hook) };
        Replacement { name: self.name, address, size, with, original: None }
    }

    /// Replaces it by a hook of the same type that calls it.
    pub(crate) fn wrapped_by(&self, hook: F, original: &'static Original<F>) -> Replacement {
        Replacement { original: Some(original.place()), ..self.replaced_by(hook) }
    }
}

/// Declares a trait of hooks, and the struct of the runtime's functions that they
/// replace:
///
/// ```ignore
/// hook_table! {
///     trait Hooks replaces Functions {
///         /// What it is for (`runtime/file.c`).
///         fn runtime_allocated(block: usize, words: c_int) -> usize;
///     }
/// }
/// ```
///
/// `Functions::NAMES` are the symbols, `Functions::found` takes them as they were
/// found, and `Functions::replacements::<H>` has each replaced by the function of the
/// same name in `impl Hooks for H`.
macro_rules! hook_table {
    (
        $(#[$of_table:meta])*
        $vis:vis trait $Hooks:ident replaces $Functions:ident {
            $(
                $(#[$of_function:meta])*
                fn $name:ident($($parameter:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
            )*
        }
    ) => {
        $(#[$of_table])*
        $vis trait $Hooks {
            $(
                $(#[$of_function])*
                extern "C" fn $name($($parameter: $type),*) $(-> $result)?;
            )*
        }

        /// The runtime's own functions, by name.
        #[derive(Clone, Copy)]
        #[allow(dead_code, reason = "most are only replaced")]
        $vis struct $Functions {
            $(
                pub(super) $name: $crate::runtimes::attach::hook_table::RuntimeFunction<
                    extern "C" fn($($type),*) $(-> $result)?
                >,
            )*
        }

        impl $Functions {
            /// The symbols that are looked for.
            $vis const NAMES: [&'static ::std::ffi::CStr; [$(stringify!($name)),*].len()] = [
                $({
                    let name = concat!(stringify!($name), "\0").as_bytes();
                    match ::std::ffi::CStr::from_bytes_with_nul(name) {
                        Ok(name) => name,
                        Err(_) => panic!("a name without NUL"),
                    }
                }),*
            ];

            /// The functions at these symbols, in the order of [`Self::NAMES`].
            $vis fn found(
                symbols: [$crate::runtimes::attach::image::Symbol; Self::NAMES.len()],
            ) -> $Functions {
                let [$($name),*] = ::std::array::from_fn(|index| {
                    (Self::NAMES[index], symbols[index])
                });
                $Functions {
                    $($name: $crate::runtimes::attach::hook_table::RuntimeFunction::new(
                        $name.0,
                        $name.1,
                    )),*
                }
            }

            /// Every function, replaced by the hook of its name.
            $vis fn replacements<H: $Hooks>(
                &self,
            ) -> Vec<$crate::runtimes::attach::patch::Replacement> {
                vec![$(self.$name.replaced_by(H::$name)),*]
            }
        }
    };
}

pub(crate) use hook_table;

#[cfg(test)]
mod tests {
    use super::*;

    hook_table! {
        trait Hooks replaces Functions {
            fn runtime_first(block: usize) -> usize;
            fn runtime_second(block: usize) -> usize;
        }
    }

    struct Ours;

    impl Hooks for Ours {
        extern "C" fn runtime_first(block: usize) -> usize {
            block + 1
        }

        extern "C" fn runtime_second(block: usize) -> usize {
            block + 2
        }
    }

    extern "C" fn original(block: usize) -> usize {
        block
    }

    #[test]
    fn each_name_is_replaced_by_its_own_hook() {
        assert_eq!(Functions::NAMES, [c"runtime_first", c"runtime_second"]);
        let address = original as *const () as usize;
        let functions =
            Functions::found([Symbol { address, size: 16 }, Symbol { address: 0x2000, size: 32 }]);
        // SAFETY: `original` has this type.
        assert_eq!(unsafe { functions.runtime_first.get() }(7), 7);
        let [first, second] = functions.replacements::<Ours>()[..] else { panic!("two") };
        assert_eq!((first.name, first.address, first.size), (c"runtime_first", address, 16));
        assert_eq!((second.name, second.address, second.size), (c"runtime_second", 0x2000, 32));
        let call = |replacement: Replacement| {
            // SAFETY: both hooks have this type.
            let hook: extern "C" fn(usize) -> usize =
                unsafe { std::mem::transmute(replacement.with) };
            hook(7)
        };
        assert_eq!((call(first), call(second)), (8, 9));
    }
}
