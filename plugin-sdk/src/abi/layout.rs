//! The interface of a layout: its declaration, and its conversions for each device.
//!
//! Every layout of a plugin is composite: named component tensors and attributes. A single buffer in an order that strides
//! cannot express, such as blocks, is a composite with one component. Strided tensors in another order of dimensions need
//! no layout: the host holds their strides, and dispatches `channels_last` itself.

use super::RawStr;
use super::tensor::KernelFn;

/// The declaration of a layout. Several plugins may declare the same layout; the declarations must be equal, or the later
/// plugin is refused.
#[repr(C)]
#[derive(Debug)]
pub struct LayoutApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Determines the layout by which a call is dispatched if its arguments have several: the one with the highest
    /// precedence and, at equal precedence, the one whose name sorts first. At least 1; `strided` has 0, `channels_last`
    /// 10, and sparse layouts use 100.
    pub precedence: u32,
    /// The layout's name: `sparse_csr`, or `vendor.example/blocked`.
    pub name: RawStr,
    /// `n_components` names, at least one. The device of a tensor is that of its first component.
    pub components: *const RawStr,
    /// `n_attrs` names.
    pub attrs: *const RawStr,
    /// Number of component names.
    pub n_components: u32,
    /// Number of attribute names.
    pub n_attrs: u32,
    /// The types of the attributes in their order, as a schema writes them: `int, float, int[]`. A type is `int`, `float`,
    /// `bool`, `str`, `int[]` or `float[]`; empty if all are `int`.
    pub attr_types: RawStr,
    /// The options of the conversion from strided, as the parameters of a schema: `int block=32, float? scale=None`. The
    /// types are those of attributes; an option without a default is required. An attribute with the name and type of an
    /// option contains the value that was used. Empty for a layout without options.
    pub options: RawStr,
    /// See `relative_to_max`; 0 for a lossless layout.
    pub absolute: f64,
    /// See `relative_to_max`.
    pub relative: f64,
    /// The maximum error of an element after the conversion to this layout and back, with the default options, is
    /// `absolute + relative * |value| + relative_to_max * m` plus the rounding of its dtype, where `m` is the largest magnitude in
    /// the tensor. All three are finite and not negative; all are 0 for a lossless layout.
    pub relative_to_max: f64,
    /// The gradient of the conversion from strided, see [`codes::layout_gradient`](super::codes::layout_gradient).
    pub gradient: u32,
    /// Zero.
    pub reserved: u32,
    /// Tensors that this layout can hold, for the conformance suite, which then tests no others: a JSON list of objects
    /// `{"sizes": [4, 64]}`, with a `"dtype"` if it is not `f32`, and `"options"` as in `block=16` if they are not the
    /// defaults, then with a `"tolerance"` of `[absolute, relative, relative_to_max]` if it differs. If empty, the suite
    /// chooses.
    pub samples: RawStr,
}

// SAFETY: the table holds static strings, all immutable; the plugin keeps them alive.
unsafe impl Send for LayoutApi {}
// SAFETY: as for Send.
unsafe impl Sync for LayoutApi {}

/// Whether a layout can hold tensors of these sizes: `OK`, or `UNSUPPORTED` if not.
pub type AcceptsFn = unsafe extern "C" fn(ndim: u32, sizes: *const i64) -> i32;

/// Conversions of tensors of one layout on one device. The plugin must declare the layout too. If several plugins provide
/// functions for one layout and device, those of the plugin with the highest priority are used.
#[repr(C)]
#[derive(Debug)]
pub struct LayoutOpsApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The layout's name.
    pub layout: RawStr,
    /// The device's name. The functions below receive tensors on this device type only.
    pub device: RawStr,
    /// The shapes that `accepts` allows, in words that follow "must be": `a square matrix`.
    pub shapes: RawStr,
    /// Whether the layout can hold tensors of these sizes. `None` accepts all.
    pub accepts: Option<AcceptsFn>,
    /// Checks that the components of argument 0 match. The host has checked their number and the shape, and calls this for
    /// every tensor that a user creates from components, but not for results of kernels. `None` accepts all.
    pub validate: Option<KernelFn>,
    /// Writes argument 0, of this layout, into output 0, strided and contiguous.
    pub to_strided: Option<KernelFn>,
    /// Creates output 0, of this layout, with `set_output`, from argument 0, strided and of a shape that the layout
    /// accepts. Fails for values that the layout cannot hold: no values are dropped, except for the digits that a layout
    /// with a tolerance may lose. The layout's options are arguments 1 and later, in the order of [`LayoutApi::options`]:
    /// each with its value or its default, of its declared type, and with the tag `NONE` if it is optional and absent.
    pub from_strided: Option<KernelFn>,
    /// Projects the gradient in argument 0, strided or of this layout, on the pattern of argument 1, of this layout:
    /// creates output 0 of this layout, with `set_output`, with the other components of argument 1 and, in its float
    /// components, the gradient with respect to each of their elements. With it, tensors of this layout can be
    /// differentiated with respect to their components, and leaves of it accumulate gradients of their own layout.
    pub project: Option<KernelFn>,
}

// SAFETY: the table holds function pointers and static strings, all immutable; the plugin keeps them alive.
unsafe impl Send for LayoutOpsApi {}
// SAFETY: as for Send.
unsafe impl Sync for LayoutOpsApi {}
