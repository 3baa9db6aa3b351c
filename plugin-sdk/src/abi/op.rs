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

/// An op that the plugin brings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawOp {
    /// Size of this structure in bytes.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// `name(Tensor a, Scalar s=1, *, int[] dims, bool flag=False) -> (Tensor, Tensor)`. In a signature the
    /// types are the letters T Tensor, O optional Tensor, L Tensor list, s Scalar, i int, f float, b bool,
    /// I int list, F float list, S str, d dtype; then `>` and one T for each output.
    pub schema: RawStr,
    /// States the outputs through `rule_output`, in order, from the arguments' metadata: their elements may
    /// not have been computed yet. `None` means one
    /// output like argument 0.
    pub rule: Option<KernelFn>,
    /// The op that is this one's backward: it takes the gradients of the outputs, then the inputs, then the
    /// outputs, then the other arguments, and returns one gradient for each tensor input. Empty if the op
    /// has no derivative.
    pub backward: RawStr,
}

// SAFETY: function pointers and static strings, all immutable; the plugin keeps them.
unsafe impl Send for RawOp {}
// SAFETY: as for Send.
unsafe impl Sync for RawOp {}
