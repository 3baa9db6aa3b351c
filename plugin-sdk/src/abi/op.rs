//! Kernels and new ops as a plugin hands them over.

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
    /// The signature that the kernel was written against, e.g. `TTs>T`; see
    /// [`RawOp::schema`] for the letters. A kernel whose op has another signature in the host is left out.
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

// SAFETY: function pointer and static strings, all immutable; the plugin keeps them.
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
    /// States the outputs through `rule_output`, in order, and through `rule_plan` how they are computed, from the
    /// arguments' metadata: their elements may not have been computed yet. `None` means one output like argument 0, or
    /// the element-wise rule of `elementwise`.
    pub rule: Option<KernelFn>,
    /// Tensor arguments that the one output depends on element by element, at equal indices. The host then casts them
    /// to their promoted dtype, broadcasts them and states the output, which preserves their memory format and may be one
    /// of them; there is no `rule`. 0 for an op of another kind.
    pub elementwise: u32,
    /// Tensor arguments that `backward` takes.
    pub saves: u32,
    /// Outputs that `backward` takes.
    pub saves_outputs: u32,
    /// Number of names in `parts`.
    pub n_parts: u32,
    /// The op that is this one's backward: it takes the gradients of the outputs, then those tensor arguments that
    /// `saves` names, then those outputs that `saves_outputs` names, then all other arguments, then, with the flag
    /// `BACKWARD_WANTS`, an `int[]` with 1 for each tensor argument whose gradient is wanted, else 0. It returns one
    /// gradient for each tensor argument; of one that is not wanted any tensor, such as an empty one. Empty where the
    /// op has no derivative of its own: gradients then go through the parts of `decomposition`.
    pub backward: RawStr,
    /// Computes the op with others, through `call_op` and `set_output`: the last candidate of each of its keys. Argument
    /// tensors are as the caller passed them. `None` where there is no decomposition.
    pub decomposition: Option<KernelFn>,
    /// The ops that `decomposition` calls and that need a kernel.
    pub parts: *const RawStr,
    /// Valid calls, for tests of kernels: a JSON list of objects `{"args": [...]}`, an entry for each parameter.
    /// `null`, numbers, booleans, text and lists of numbers are literals; `{"dtype": "i64"}` is a dtype; a tensor
    /// is `{"sizes": [2, 3]}`, with a `"fill"` of `{"uniform": [-2, 2]}`, `{"distinct": [-2, 2]}`,
    /// `{"away_from": [-2, 2, 1]}`, `{"index": 5}` or `{"values": [..]}`, and a `"dtype"` where it is not the one under
    /// test; a list of tensors is a list of those. `"smooth": false` beside `args` means that the function has a kink
    /// there, `"loosened": [10, "why"]` a factor of the dtype's tolerance. Empty for none.
    pub samples: RawStr,
    /// The reference implementation, for tests of kernels: called on tensors of f64 in host memory where the kernel takes
    /// floats, with outputs of f64 instead of floats. `None` where there is no such function.
    pub reference: Option<KernelFn>,
}

// SAFETY: function pointers and static strings, all immutable; the plugin keeps them.
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
    /// `ndim` strides, for the format `STRIDES`: each element has an offset of its own, and there are no gaps. Else null.
    pub strides: *const i64,
    /// The output's dtype.
    pub dtype: u16,
    /// Zero.
    pub reserved: u16,
    /// The memory format, see [`codes::memory_format`](super::codes::memory_format).
    pub format: u32,
    /// The argument, for the format `LIKE`, one of those of the op; the mask of arguments, for `IMAGES`, where bits beyond the
    /// op's arguments are ignored.
    pub of: u32,
    /// Zero.
    pub reserved_end: u32,
}

/// How the outputs of a call are computed, as a rule states it. Masks have bit `i` for argument `i`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawPlan {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// The dtype that the kernel is chosen by.
    pub compute: u16,
    /// Zero.
    pub reserved: u16,
    /// Tensor arguments that are cast to `compute` before the kernel sees them.
    pub cast: u32,
    /// Tensor arguments that are cast to i64: indices.
    pub cast_index: u32,
    /// Tensor arguments that the kernel sees in the shape of output 0, with stride 0 where they are repeated.
    pub broadcast: u32,
    /// Tensor arguments that the kernel sees in row-major order without gaps.
    pub contiguous: u32,
    /// 1 where an output may be exactly the memory of an argument, as in an in-place call, else 0.
    pub alias: u32,
}
