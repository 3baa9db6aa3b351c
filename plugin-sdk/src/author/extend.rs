//! Layouts as traits, and the tables made of them.

use super::call::Call;
use super::error::Error;
use super::export::run_kernel;
use crate::abi::RawStr;
use crate::abi::codes::layout_flag;
use crate::abi::layout::LayoutApi;
use crate::abi::tensor::RawCall;

/// A composite layout: named component tensors and integer attributes.
pub trait Layout: 'static {
    /// The layout's name: `sparse_csr`, or `vendor.example/blocked`.
    const NAME: &'static str;
    /// The names of the components.
    const COMPONENTS: &'static [RawStr];
    /// The names of the attributes.
    const ATTRS: &'static [RawStr];
    /// Checks that the components of argument 0 fit each other.
    fn validate(call: &Call<'_>) -> Result<(), Error>;
    /// Writes argument 0, of this layout, into output 0, strided and contiguous.
    fn to_strided(call: &Call<'_>) -> Result<(), Error>;
    /// Makes output 0, of this layout, with [`Call::set_output`] from argument 0, strided.
    fn from_strided(call: &Call<'_>) -> Result<(), Error>;
}

/// A guarded kernel entry for a function of a trait.
macro_rules! kernel_entry {
    ($t:ident: $bound:ident, $run:expr) => {{
        unsafe extern "C" fn shim<$t: $bound>(call: *const RawCall) -> i32 {
            // SAFETY: the host upholds the contract of `KernelFn`.
            unsafe { run_kernel(call, $run) }
        }
        shim::<$t>
    }};
}

/// The table of a composite layout, for `static API: LayoutApi = layout_api::<MyLayout>();`.
pub const fn layout_api<L: Layout>() -> LayoutApi {
    LayoutApi {
        struct_size: size_of::<LayoutApi>() as u32,
        n_components: L::COMPONENTS.len() as u32,
        name: RawStr::new(L::NAME),
        parent: RawStr::EMPTY,
        flags: layout_flag::COMPOSITE,
        components: L::COMPONENTS.as_ptr(),
        attrs: L::ATTRS.as_ptr(),
        n_attrs: L::ATTRS.len() as u32,
        reserved: 0,
        validate: Some(kernel_entry!(L: Layout, L::validate)),
        to_strided: Some(kernel_entry!(L: Layout, L::to_strided)),
        from_strided: Some(kernel_entry!(L: Layout, L::from_strided)),
    }
}

/// The table of a layout that is strided memory in a certain order: `parent`'s kernels may serve it.
pub const fn sub_layout(name: &'static str, parent: &'static str) -> LayoutApi {
    LayoutApi {
        struct_size: size_of::<LayoutApi>() as u32,
        n_components: 0,
        name: RawStr::new(name),
        parent: RawStr::new(parent),
        flags: 0,
        components: std::ptr::null(),
        attrs: std::ptr::null(),
        n_attrs: 0,
        reserved: 0,
        validate: None,
        to_strided: None,
        from_strided: None,
    }
}
