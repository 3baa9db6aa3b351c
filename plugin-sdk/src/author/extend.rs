//! Entry points that the host calls, generated from the functions of authors' traits.

/// A guarded kernel entry for a function of a trait.
macro_rules! kernel_entry {
    ($t:ident: $bound:ident, $run:expr) => {{
        unsafe extern "C" fn shim<$t: $bound>(call: *const $crate::abi::tensor::RawCall) -> i32 {
            // SAFETY: the host upholds the contract of `KernelFn`.
            unsafe { $crate::author::export::run_kernel(call, $run) }
        }
        shim::<$t>
    }};
}
pub(super) use kernel_entry;
