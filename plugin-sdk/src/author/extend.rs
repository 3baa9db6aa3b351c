//! Layouts and ops as traits, and the tables made of them.

use super::call::Call;
use super::error::Error;
use super::export::{host_api, run_kernel};
use super::tensor::no_host;
use crate::abi::RawStr;
use crate::abi::codes::layout_flag;
use crate::abi::layout::LayoutApi;
use crate::abi::op::RawOp;
use crate::abi::tensor::RawCall;
use std::ops::Deref;

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

/// An op that the plugin brings.
pub trait Op: 'static {
    /// See [`RawOp::schema`].
    const SCHEMA: &'static str;
    /// See [`RawOp::backward`].
    const BACKWARD: &'static str = "";
    /// States each output with [`RuleCall::state`], from the arguments' metadata.
    fn rule(call: &RuleCall<'_>) -> Result<(), Error>;
}

/// A call as a shape rule sees it: for the arguments' metadata. Their elements may not have been computed yet.
#[derive(Debug)]
pub struct RuleCall<'a>(&'a Call<'a>);

impl RuleCall<'_> {
    /// States output `index`.
    pub fn state(&self, index: usize, dtype: u16, sizes: &[i64]) -> Result<(), Error> {
        let host = host_api().ok_or_else(no_host)?;
        let context = self.0.raw().context;
        // SAFETY: `context` is this call's; the host copies the sizes.
        match unsafe { (host.rule_output)(context, index as u32, dtype, sizes.len() as u32, sizes.as_ptr()) }
        {
            0 => Ok(()),
            status => Err(Error::Host { status }),
        }
    }
}

impl<'a> Deref for RuleCall<'a> {
    type Target = Call<'a>;
    fn deref(&self) -> &Call<'a> {
        self.0
    }
}

/// The table of an op, for `static OP: RawOp = op::<MyOp>();`.
pub const fn op<O: Op>() -> RawOp {
    RawOp {
        struct_size: size_of::<RawOp>() as u32,
        reserved: 0,
        schema: RawStr::new(O::SCHEMA),
        rule: Some(kernel_entry!(O: Op, |call| O::rule(&RuleCall(call)))),
        backward: RawStr::new(O::BACKWARD),
    }
}
