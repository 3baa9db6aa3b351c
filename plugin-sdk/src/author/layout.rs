//! Layouts as traits, and their function tables.

use super::call::{Call, CallFn};
use super::error::Error;
use super::extend::kernel_entry;
use super::extent::entries;
use super::guard::guarded;
use crate::abi::RawStr;
use crate::abi::codes::layout_gradient;
use crate::abi::layout::{LayoutApi, LayoutOpsApi};

/// The maximum error of an element after the conversion to a layout and back: `absolute + relative * |value| +
/// relative_to_max * m` plus the rounding of its dtype, where `m` is the largest magnitude in the tensor. The conformance
/// suite checks the bound.
///
/// ```
/// use keyway_sdk::author::Tolerance;
/// // Integers of 8 bits with a scale of `max / 127`: values are rounded to the nearest multiple of the scale.
/// const INT8: Tolerance = Tolerance { relative_to_max: 0.5 / 127.0, ..Tolerance::EXACT };
/// assert!(INT8.relative == 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The constant part.
    pub absolute: f64,
    /// The part relative to the element's magnitude.
    pub relative: f64,
    /// The part relative to the largest magnitude in the tensor.
    pub relative_to_max: f64,
}

impl Tolerance {
    /// The tolerance of a lossless layout.
    pub const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0, relative_to_max: 0.0 };
}

/// The gradient of the conversion of a strided tensor to a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutGradient {
    /// Passed unchanged, also if the conversion is lossy (straight-through estimator).
    StraightThrough,
    /// Projected on the pattern of the converted tensor: elements that are not stored have gradient 0. For a layout with
    /// [`LayoutOps::PROJECT`] that drops elements, such as the smaller ones of structured sparsity.
    Projected,
}

/// The declaration of a layout: named component tensors and attributes.
///
/// Every plugin that uses a layout declares it; all declarations must be equal.
///
/// ```
/// use keyway_sdk::abi::RawStr;
/// use keyway_sdk::author::{Layout, Tolerance};
///
/// /// Blocks of integers of 8 bits, each with a scale.
/// struct Int8;
/// impl Layout for Int8 {
///     const NAME: &'static str = "example.org/int8";
///     const COMPONENTS: &'static [RawStr] = &[RawStr::new("quantized"), RawStr::new("scales")];
///     const ATTRS: &'static [RawStr] = &[RawStr::new("block")];
///     // `x.to_layout_with(layout, &LayoutOptions::new().set("block", 16))`.
///     const OPTIONS: &'static str = "int block=32";
///     const TOLERANCE: Tolerance = Tolerance { relative_to_max: 0.5 / 127.0, ..Tolerance::EXACT };
/// }
/// ```
pub trait Layout: 'static {
    /// The layout's name: `sparse_csr`, or `vendor.example/blocked`.
    const NAME: &'static str;
    /// The names of the components, at least one. A tensor's device is that of its first component.
    const COMPONENTS: &'static [RawStr];
    /// The names of the attributes.
    const ATTRS: &'static [RawStr] = &[];
    /// The types of the attributes, such as `int, float, int[]`; empty if all are `int`. See [`LayoutApi::attr_types`].
    const ATTR_TYPES: &'static str = "";
    /// The options of [`LayoutOps::from_strided`], such as `int block=32, float? scale=None`. See [`LayoutApi::options`].
    const OPTIONS: &'static str = "";
    /// The digits that the conversion loses.
    const TOLERANCE: Tolerance = Tolerance::EXACT;
    /// The gradient of the conversion from strided.
    const GRADIENT: LayoutGradient = LayoutGradient::StraightThrough;
    /// Tensors that this layout can hold, for the conformance suite: `[{"sizes": [4, 64]}]`. See [`LayoutApi::samples`].
    const SAMPLES: &'static str = "";
    /// See [`LayoutApi::precedence`].
    const PRECEDENCE: u32 = 100;
}

/// The functions of one layout on one device.
pub trait LayoutOps: 'static {
    /// The layout.
    type Layout: Layout;
    /// The device's name. All functions receive tensors on this device type only.
    const DEVICE: &'static str;
    /// The shapes that [`LayoutOps::accepts`] allows, in words that follow "must be": `a square matrix`.
    const SHAPES: &'static str = "of any shape";
    /// See [`LayoutOpsApi::project`]; `None` if gradients are not projected.
    const PROJECT: Option<CallFn> = None;

    /// Whether the layout can hold tensors of these sizes.
    fn accepts(_sizes: &[i64]) -> bool {
        true
    }
    /// Checks that the components of argument 0 match: sizes, dtypes, and contents. Their number is that of the layout, and
    /// the shape is one that it accepts.
    fn validate(call: &Call<'_>) -> Result<(), Error>;
    /// Writes argument 0, of this layout, into output 0, strided and contiguous.
    fn to_strided(call: &Call<'_>) -> Result<(), Error>;
    /// Creates output 0, of this layout, with [`Call::set_output`] from argument 0, strided. Values that the layout cannot
    /// hold are an error: no values are dropped, except for the digits that [`Layout::TOLERANCE`] allows to lose. The
    /// options are arguments 1 and later, in the order of [`Layout::OPTIONS`], each with its value or its default:
    /// `call.int(1)`.
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
        attr_types: RawStr::new(L::ATTR_TYPES),
        options: RawStr::new(L::OPTIONS),
        absolute: L::TOLERANCE.absolute,
        relative: L::TOLERANCE.relative,
        relative_to_max: L::TOLERANCE.relative_to_max,
        gradient: match L::GRADIENT {
            LayoutGradient::StraightThrough => layout_gradient::STRAIGHT_THROUGH,
            LayoutGradient::Projected => layout_gradient::PROJECTED,
        },
        reserved: 0,
        samples: RawStr::new(L::SAMPLES),
    }
}

unsafe extern "C" fn accepts<L: LayoutOps>(ndim: u32, sizes: *const i64) -> i32 {
    guarded(|| {
        // SAFETY: the host passes `ndim` sizes, which are valid until this returns.
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
