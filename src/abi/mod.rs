//! abi: every export of the C ABI.
