//! The interface of a layout: its declaration, once, and its conversions, for each device.
//!
//! Every layout that a plugin brings is composite: named component tensors and attributes. One buffer in an
//! order that strides cannot express, such as blocks, is a composite of one component. Strided tensors in another order of
//! dimensions need no layout: the host keeps their strides, and dispatches `channels_last` by itself.

use super::RawStr;
use super::tensor::KernelFn;

/// The declaration of a layout. Several plugins may declare the same layout; the declarations must be equal, or the later
/// plugin is refused.
#[repr(C)]
#[derive(Debug)]
pub struct LayoutApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Which layout a call is dispatched by when its arguments have several: the one with the higher number, and of
    /// equal ones that whose name sorts first. At least 1; `strided` has 0, `channels_last` 10, and a sparse layout
    /// takes 100.
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
    /// The options of the conversion from strided, as the parameters of a schema: `int block=32, float? scale=None`. The types
    /// are those of attributes; an option without a default must be given. An attribute with the name and type of an option
    /// holds the value that was used. Empty for a layout without options.
    pub options: RawStr,
    /// See `relative_to_max`; 0 for a layout that loses no digits.
    pub absolute: f64,
    /// See `relative_to_max`.
    pub relative: f64,
    /// How far an element may be from its value after the conversion to this layout and back, with the default options: by at
    /// most `absolute + relative * |value| + relative_to_max * m`, where `m` is the largest magnitude in the tensor, and by
    /// the rounding of its dtype. All three are finite and not negative; all are 0 for a layout that holds values exactly.
    pub relative_to_max: f64,
    /// How a gradient passes through the conversion from strided, see
    /// [`codes::layout_gradient`](super::codes::layout_gradient).
    pub gradient: u32,
    /// Zero.
    pub reserved: u32,
    /// Tensors that this layout can hold, for the conformance suite, which then asks for no others: a JSON list of objects
    /// `{"sizes": [4, 64]}`, with a `"dtype"` where it is not `f32`, and `"options"` as in `block=16` where they are not the
    /// default ones, then with a `"tolerance"` of `[absolute, relative, relative_to_max]` where it is another. Empty leaves the choice to the suite.
    pub samples: RawStr,
}

// SAFETY: the table holds static strings, all immutable; the plugin keeps them.
unsafe impl Send for LayoutApi {}
// SAFETY: as for Send.
unsafe impl Sync for LayoutApi {}

/// Whether a layout can hold tensors of these sizes: `OK`, or `UNSUPPORTED` if not.
pub type AcceptsFn = unsafe extern "C" fn(ndim: u32, sizes: *const i64) -> i32;

/// Conversions of tensors of one layout on one device. The plugin must declare the layout too. Where several
/// plugins bring functions for one layout and device, those of the plugin with the higher priority serve.
#[repr(C)]
#[derive(Debug)]
pub struct LayoutOpsApi {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The layout's name.
    pub layout: RawStr,
    /// The device's name. The functions below take tensors on this kind of device only.
    pub device: RawStr,
    /// The shapes that `accepts` takes, in words that follow "must be": `a square matrix`.
    pub shapes: RawStr,
    /// Whether the layout can hold tensors of these sizes. `None` takes all.
    pub accepts: Option<AcceptsFn>,
    /// Checks that the components of argument 0 fit each other. The host has checked their number and the shape, and asks
    /// for every tensor that a user makes of components; it does not check results of kernels. `None` takes all.
    pub validate: Option<KernelFn>,
    /// Writes argument 0, of this layout, into output 0, strided and contiguous.
    pub to_strided: Option<KernelFn>,
    /// Makes output 0, of this layout, through `set_output`, from argument 0, strided and of a shape that the layout can
    /// hold. Fails for values that the layout cannot hold: none are dropped, but for the digits that a layout with a tolerance
    /// loses. The layout's options are arguments 1 and later, in the order of [`LayoutApi::options`]: each given or with its
    /// default, of its declared type, and of the tag `NONE` if it is optional and not given.
    pub from_strided: Option<KernelFn>,
    /// Projects the gradient in argument 0, strided or of this layout, on the pattern of argument 1, of this layout: makes
    /// output 0 of this layout, through `set_output`, with the other components of argument 1 and, in its float components,
    /// the gradient with respect to each of their elements. With it, tensors of this layout can be differentiated with
    /// respect to their components, and leaves of it collect gradients of their own layout.
    pub project: Option<KernelFn>,
}

// SAFETY: the table holds function pointers and static strings, all immutable; the plugin keeps them.
unsafe impl Send for LayoutOpsApi {}
// SAFETY: as for Send.
unsafe impl Sync for LayoutOpsApi {}
