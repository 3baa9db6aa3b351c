//! Layouts as traits, and the tables made of them.

use super::call::{Call, CallFn};
use super::error::Error;
use super::extend::kernel_entry;
use super::guard::guarded;
use super::tensor::entries;
use crate::abi::RawStr;
use crate::abi::layout::{LayoutApi, LayoutOpsApi};

/// What a layout is: named component tensors and integer attributes.
///
/// Every plugin that has to do with a layout declares it, and all in the same way.
pub trait Layout: 'static {
    /// The layout's name: `sparse_csr`, or `vendor.example/blocked`.
    const NAME: &'static str;
    /// The names of the components, at least one. The first component gives a tensor its device.
    const COMPONENTS: &'static [RawStr];
    /// The names of the attributes.
    const ATTRS: &'static [RawStr] = &[];
    /// See [`LayoutApi::precedence`].
    const PRECEDENCE: u32 = 100;
}

/// What can be done with tensors of one layout on one device.
pub trait LayoutOps: 'static {
    /// The layout.
    type Layout: Layout;
    /// The device's name. All functions are given tensors on this kind of device alone.
    const DEVICE: &'static str;
    /// The shapes that [`LayoutOps::accepts`] takes, in words that follow "must be": `a square matrix`.
    const SHAPES: &'static str = "of any shape";
    /// See [`LayoutOpsApi::project`]; `None` if gradients are not projected.
    const PROJECT: Option<CallFn> = None;

    /// Whether the layout can hold tensors of these sizes.
    fn accepts(_sizes: &[i64]) -> bool {
        true
    }
    /// Checks that the components of argument 0 fit each other: sizes, dtypes, and what they hold. Their number is that of
    /// the layout, and the shape is one that it accepts.
    fn validate(call: &Call<'_>) -> Result<(), Error>;
    /// Writes argument 0, of this layout, into output 0, strided and contiguous.
    fn to_strided(call: &Call<'_>) -> Result<(), Error>;
    /// Makes output 0, of this layout, with [`Call::set_output`] from argument 0, strided. Values that the layout cannot
    /// hold are an error: none are dropped.
    fn from_strided(call: &Call<'_>) -> Result<(), Error>;
}

/// The table of a layout, for `static API: LayoutApi = layout_api::<MyLayout>();`.
pub const fn layout_api<L: Layout>() -> LayoutApi {
    LayoutApi {
        struct_size: size_of::<LayoutApi>() as u32,
        precedence: L::PRECEDENCE,
        name: RawStr::new(L::NAME),
        components: L::COMPONENTS.as_ptr(),
        attrs: L::ATTRS.as_ptr(),
        n_components: L::COMPONENTS.len() as u32,
        n_attrs: L::ATTRS.len() as u32,
    }
}

unsafe extern "C" fn accepts<L: LayoutOps>(ndim: u32, sizes: *const i64) -> i32 {
    guarded(|| {
        // SAFETY: the host gives `ndim` sizes, which stay until this returns.
        let sizes = unsafe { entries(sizes, ndim as usize) };
        if L::accepts(sizes) { Ok(()) } else { Err(Error::Unsupported { what: format!("shape {sizes:?}") }) }
    })
}

fn project<L: LayoutOps>(call: &Call<'_>) -> Result<(), Error> {
    match L::PROJECT {
        Some(project) => project(call),
        None => Err(Error::Unsupported { what: "a projection of gradients".into() }),
    }
}

/// The table of a layout on a device, for `static OPS: LayoutOpsApi = layout_ops_api::<MyLayoutOnMyDevice>();`.
pub const fn layout_ops_api<L: LayoutOps>() -> LayoutOpsApi {
    LayoutOpsApi {
        struct_size: size_of::<LayoutOpsApi>() as u32,
        reserved: 0,
        layout: RawStr::new(<L::Layout as Layout>::NAME),
        device: RawStr::new(L::DEVICE),
        shapes: RawStr::new(L::SHAPES),
        accepts: Some(accepts::<L>),
        validate: Some(kernel_entry!(L: LayoutOps, L::validate)),
        to_strided: Some(kernel_entry!(L: LayoutOps, L::to_strided)),
        from_strided: Some(kernel_entry!(L: LayoutOps, L::from_strided)),
        project: match L::PROJECT {
            Some(_) => Some(kernel_entry!(L: LayoutOps, project::<L>)),
            None => None,
        },
    }
}
