//! Tensors and arguments as passed to a kernel.

use std::ffi::c_void;

/// A tensor that the host owns. Kernels borrow it for one call. This structure is frozen: a later host may append to it,
/// which `struct_size` shows.
#[repr(C)]
#[derive(Debug)]
pub struct RawTensor {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Number of dimensions.
    pub ndim: u32,
    /// Element type, see [`codes::dtype`](super::codes::dtype).
    pub dtype: u16,
    /// Interned layout; 0 is `strided`.
    pub layout: u16,
    /// Interned device; 0 is `cpu`.
    pub device: u16,
    /// The index of the device among those of its name.
    pub device_index: u16,
    /// See [`codes::tensor_flag`](super::codes::tensor_flag).
    pub flags: u32,
    /// Number of component tensors of a composite layout, otherwise 0.
    pub n_components: u32,
    /// Address of element (0, ..., 0); null for a composite tensor. Dangling if `numel` is 0.
    pub data: *mut c_void,
    /// `ndim` sizes, in elements.
    pub sizes: *const i64,
    /// `ndim` strides, in elements, never negative; null for a composite tensor.
    pub strides: *const i64,
    /// Product of the sizes.
    pub numel: i64,
    /// The host's handle of this tensor, for `call_op` and `tensor_retain`; null for a temporary. It is borrowed; services
    /// that take an owned handle need one of `tensor_retain`.
    pub handle: *const c_void,
    /// `n_components` component tensors, in the order of the layout's component names.
    pub components: *const *const RawTensor,
    /// Attributes of a composite tensor, in the order of the layout's attribute names. A `bool` is 0 or 1, a `float` the
    /// bits of an f64; a string or a list is 0 here, and is read with
    /// [`HostApi::tensor_attr`](super::host::HostApi::tensor_attr).
    pub attrs: *const i64,
    /// Number of attributes.
    pub n_attrs: u32,
    /// Zero.
    pub reserved: u32,
}

/// One argument, in the order of the op's schema. This structure is frozen at 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawArg {
    /// See [`codes::tag`](super::codes::tag).
    pub tag: u32,
    /// Number of entries of a list.
    pub len: u32,
    /// The value or its address, depending on the tag.
    pub value: u64,
}

/// One call of a kernel. This structure is frozen, as [`RawTensor`] is.
///
/// The host guarantees:
/// - everything that the call points to lives and is unchanged until the kernel returns, except for the outputs that the
///   kernel writes; an asynchronous kernel copies the inputs that it needs later;
/// - outputs share no memory with each other, and an output is exactly an argument (same address, sizes, strides and dtype)
///   or shares no memory with any; exactly an argument only if the op allows it;
/// - every byte of an output counts as initialised, with an unspecified value: it may be read;
/// - outputs are strided, on the device of the call, with the sizes and dtype of the op's rule.
///
/// A kernel guarantees: it writes every element of each output that the host allocated; it sets each output that it
/// allocates itself (flag `ALLOCATES`) with `set_output`; it retains no part of the call except owned handles.
#[repr(C)]
#[derive(Debug)]
pub struct RawCall {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Number of arguments.
    pub n_args: u32,
    /// Arguments in schema order.
    pub args: *const RawArg,
    /// Outputs that the host allocated, in schema order; null entries for a kernel that allocates.
    pub outputs: *const *const RawTensor,
    /// Number of outputs.
    pub n_outputs: u32,
    /// Zero.
    pub reserved: u32,
    /// The stream of this call, as returned by `stream_create`; null is the default one.
    pub stream: *mut c_void,

    /// The host's state of this call, for `set_output`; null if the host allocates the outputs.
    pub context: *mut c_void,
}

/// A kernel. Returns a status; never unwinds.
pub type KernelFn = unsafe extern "C" fn(call: *const RawCall) -> i32;
