//! Rules that compute the outputs' metadata of an op, and decompositions of an op into others.

use super::{Args, Outputs, Plan, Typing, ViewSpec};
use crate::base::dtype::DType;
use crate::base::error::Result;
use keyway_sdk::abi::tensor::KernelFn;

/// The rule that determines the outputs of an op.
#[derive(Clone, Copy)]
pub enum Rule {
    /// Each element of the output is computed from the elements at its index in the arguments of the mask, which has bit
    /// `i` for argument `i`. They are cast to one dtype and broadcast together; the function computes the dtypes.
    Elementwise(u32, fn(&Args<'_>) -> Result<Typing>),
    /// The function computes the outputs' metadata; the host allocates them, a kernel fills them.
    Structured(fn(&Args<'_>) -> Result<Plan>),
    /// The host creates a view of argument 0 if it is strided; other layouts need a kernel.
    View(fn(&Args<'_>) -> Result<ViewSpec>),
    /// As `View`, with several outputs.
    Views(fn(&Args<'_>) -> Result<Vec<ViewSpec>>),
    /// As `View`, with elements of another dtype: real and imaginary parts of complex numbers, or the reverse.
    Reinterpret(fn(&Args<'_>) -> Result<(DType, ViewSpec)>),
    /// The output's size depends on the data: the kernel allocates it. The plan's outputs are ignored.
    Allocates(fn(&Args<'_>) -> Result<Plan>),
    /// The host computes the outputs itself, without a backend.
    Host(fn(&Args<'_>) -> Result<Outputs>),
    /// A plugin computes the outputs' metadata; `None` means one output like argument 0.
    Foreign(Option<KernelFn>),
}

impl Rule {
    /// Whether results on strided tensors are views.
    pub fn is_view(&self) -> bool {
        matches!(self, Rule::View(_) | Rule::Views(_) | Rule::Reinterpret(_))
    }
}

/// The decomposition of an op into other ops: the last candidate of each of its keys.
#[derive(Clone, Copy)]
pub struct Decomposition {
    /// Computes the outputs with other ops.
    pub run: fn(&Args<'_>) -> Result<Outputs>,
    /// Every op that `run` may call and that needs a kernel: the op counts as served for a dtype only if all of these are.
    /// A view, which needs a kernel only for layouts other than strided, is among them if `run` views an argument that may
    /// have such a layout.
    pub parts: &'static [Part],
}

/// An op that a decomposition calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The op's name.
    pub op: &'static str,
    /// The dtype that its kernel is chosen by.
    pub dtype: PartDtype,
}

/// The dtype of a part of a decomposition, given the compute dtype of the whole call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartDtype {
    /// The compute dtype of the call.
    Compute,
    /// f32 for f16 and bf16, so that several steps are rounded once; otherwise the compute dtype of the call.
    Widened,
    /// A fixed dtype, independent of the dtype of the call.
    Fixed(DType),
}

impl Part {
    /// A part in the compute dtype of the call.
    pub const fn new(op: &'static str) -> Part {
        Part { op, dtype: PartDtype::Compute }
    }

    /// A part that computes f16 and bf16 in f32.
    pub const fn widened(op: &'static str) -> Part {
        Part { op, dtype: PartDtype::Widened }
    }

    /// A part with a fixed dtype.
    pub const fn fixed(op: &'static str, dtype: DType) -> Part {
        Part { op, dtype: PartDtype::Fixed(dtype) }
    }

    /// The dtype that the part's kernel is chosen by, for a call computed in `compute`.
    pub fn dtype_for(&self, compute: DType) -> DType {
        match self.dtype {
            PartDtype::Widened if matches!(compute, DType::F16 | DType::BF16) => DType::F32,
            PartDtype::Compute | PartDtype::Widened => compute,
            PartDtype::Fixed(dtype) => dtype,
        }
    }
}
