//! Kernels and new ops of a plugin.

use super::RawStr;
use super::tensor::KernelFn;

/// One kernel for one (op, device, layout, dtype).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawKernel {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// See [`codes::kernel_flag`](super::codes::kernel_flag).
    pub flags: u32,
    /// The op's name.
    pub op: RawStr,
    /// The signature that the kernel was written against, e.g. `TTs>T`; see [`RawOp::schema`] for the letters. The host
    /// skips a kernel whose op has another signature.
    pub signature: RawStr,
    /// Device name.
    pub device: RawStr,
    /// Layout name.
    pub layout: RawStr,
    /// Dtype name.
    pub dtype: RawStr,
    /// The kernel.
    pub run: KernelFn,
}

// SAFETY: function pointer and static strings, all immutable; the plugin keeps them alive.
unsafe impl Send for RawKernel {}
// SAFETY: as for Send.
unsafe impl Sync for RawKernel {}

/// An op that the plugin brings. Masks have bit `i` for argument or output `i`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawOp {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// See [`codes::op_flag`](super::codes::op_flag).
    pub flags: u32,
    /// `name(Tensor a, Scalar s=1, *, int[] dims, bool flag=False) -> (Tensor, Tensor)`. In a signature the
    /// types are the letters T Tensor, O optional Tensor, L Tensor list, s Scalar, i int, f float, b bool,
    /// I int list, F float list, S str, d dtype; then `>` and one T for each output.
    pub schema: RawStr,
    /// Describes the outputs with `rule_output`, in order, and how they are computed with `rule_plan`, from the arguments'
    /// metadata: their elements may not have been computed yet. `None` means one output like argument 0, or the
    /// element-wise rule of `elementwise`.
    pub rule: Option<KernelFn>,
    /// The mask of tensor arguments on which the single output depends element by element, at equal indices. The host then
    /// casts them to their promoted dtype, broadcasts them and describes the output, which preserves their memory format
    /// and may alias one of them; there is no `rule`. 0 if the op is not element-wise.
    pub elementwise: u32,
    /// The mask of tensor arguments that are saved for `backward`.
    pub saves: u32,
    /// The mask of outputs that are saved for `backward`.
    pub saves_outputs: u32,
    /// The number of names in `parts`.
    pub n_parts: u32,
    /// The name of this op's backward op: it takes the gradients of the outputs, then the tensor arguments in `saves`, then
    /// the outputs in `saves_outputs`, then all other arguments, then, with the flag `BACKWARD_WANTS`, an `int[]` with 1
    /// for each tensor argument whose gradient is requested, otherwise 0. It returns one gradient for each tensor argument;
    /// for one that is not requested any tensor, such as an empty one. Empty if the op has no derivative of its own:
    /// gradients are then computed through the parts of `decomposition`.
    pub backward: RawStr,
    /// Computes the op with other ops, with `call_op` and `set_output`: the last candidate of each of its keys. Argument
    /// tensors are passed as the caller passed them. `None` if there is no decomposition.
    pub decomposition: Option<KernelFn>,
    /// The ops that `decomposition` calls and that need a kernel.
    pub parts: *const RawStr,
    /// Valid calls, for tests of kernels: a JSON list of objects `{"args": [...]}`, with an entry for each parameter.
    /// `null`, numbers, booleans, strings and lists of numbers are literals; `{"dtype": "i64"}` is a dtype; a tensor is
    /// `{"sizes": [2, 3]}`, with a `"fill"` of `{"uniform": [-2, 2]}`, `{"distinct": [-2, 2]}`, `{"away_from": [-2, 2,
    /// 1]}`, `{"index": 5}` or `{"values": [..]}`, and a `"dtype"` if it is not the tested one; a list of tensors is a list
    /// of these. Beside `args`, `"smooth": false` means that the function is not differentiable there, and `"loosened":
    /// [10, "why"]` is a factor of the dtype's tolerance. Empty if there are none.
    pub samples: RawStr,
    /// The reference implementation, for tests of kernels: called with f64 tensors in host memory for the kernel's float
    /// arguments, with f64 outputs for its float outputs. `None` if there is none.
    pub reference: Option<KernelFn>,
}

// SAFETY: function pointers and static strings, all immutable; the plugin keeps them alive.
unsafe impl Send for RawOp {}
// SAFETY: as for Send.
unsafe impl Sync for RawOp {}

/// One output, as a rule states it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawOutput {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Number of dimensions.
    pub ndim: u32,
    /// `ndim` sizes.
    pub sizes: *const i64,
    /// `ndim` strides, for the format `STRIDES`: each element has a distinct offset, and there are no gaps. Null for other
    /// formats.
    pub strides: *const i64,
    /// The output's dtype.
    pub dtype: u16,
    /// Zero.
    pub reserved: u16,
    /// The memory format, see [`codes::memory_format`](super::codes::memory_format).
    pub format: u32,
    /// For the format `LIKE` the index of the argument; for `IMAGES` the mask of arguments, where bits beyond the op's
    /// arguments are ignored.
    pub of: u32,
    /// Zero.
    pub reserved_end: u32,
}

/// The description of how the outputs of a call are computed, by a rule. Masks have bit `i` for argument `i`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPlan {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// The dtype that the kernel is chosen by.
    pub compute: u16,
    /// Zero.
    pub reserved: u16,
    /// The mask of tensor arguments that are cast to `compute` before they are passed to the kernel.
    pub cast: u32,
    /// Tensor arguments that are cast to i64: indices.
    pub cast_index: u32,
    /// The mask of tensor arguments that are broadcast to the shape of output 0, with stride 0 along broadcast dimensions.
    pub broadcast: u32,
    /// The mask of tensor arguments that are made contiguous.
    pub contiguous: u32,
    /// 1 if an output may be exactly the memory of an argument, as in an in-place call, otherwise 0.
    pub alias: u32,
}
