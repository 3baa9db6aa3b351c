//! The result of a rule for a call: outputs, compute dtype, and the form of the kernel's arguments.

use super::{Arg, Args};
use crate::base::dims::Dims;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use smallvec::SmallVec;

/// The choice of an output's strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strides {
    /// Determined by the arguments: an element-wise op preserves their memory format.
    Preserve,
    /// In the element order of argument `i`, if it has the output's shape; without gaps.
    Like(usize),
    /// In the memory format of the images among the arguments of the mask, which has bit `i` for argument `i`, for any
    /// shapes: channels_last if any argument of 3 to 5 dimensions is, otherwise contiguous. An argument in both formats,
    /// with one channel or one pixel, decides only if no other is contiguous, and then by its strides. For ops such as
    /// convolution and pooling.
    Images(u32),
    /// Row-major.
    Contiguous,
    /// These strides. Rare, and boxed so that a plan stays small.
    Exact(Box<Dims>),
}

impl Strides {
    /// These strides.
    pub fn exact(strides: Dims) -> Strides {
        Strides::Exact(Box::new(strides))
    }
}

/// The dtypes of an element-wise call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Typing {
    /// The dtype that the kernel is chosen by, and its inputs are cast to.
    pub compute: DType,
    /// The dtype of the result.
    pub result: DType,
}

impl Typing {
    /// One dtype for compute and output.
    #[inline]
    pub fn of(dtype: DType) -> Typing {
        Typing { compute: dtype, result: dtype }
    }
}

/// The metadata of one output, as computed by the rule.
#[derive(Clone, Debug)]
pub struct OutSpec {
    /// Sizes.
    pub sizes: Dims,
    /// Element type.
    pub dtype: DType,
    /// Strides.
    pub strides: Strides,
}

/// The result of a rule for a call. Masks have bit `i` for argument `i`.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The dtype that the kernel is chosen by.
    pub compute: DType,
    /// The mask of tensor arguments that are cast to `compute` for the kernel.
    pub cast: u32,
    /// Tensor arguments that are cast to i64: indices.
    pub cast_index: u32,
    /// The mask of tensor arguments that are broadcast to the shape of output 0, with stride 0 in broadcast dimensions.
    pub broadcast: u32,
    /// The mask of tensor arguments that are made contiguous for the kernel.
    pub contiguous: u32,
    /// Whether an output may be exactly the memory of an input.
    pub alias: bool,
    /// The outputs.
    pub outputs: SmallVec<[OutSpec; 1]>,
}

impl Plan {
    /// A plan of one output, with all other fields at their defaults.
    #[inline]
    pub fn one(compute: DType, sizes: Dims, dtype: DType, strides: Strides) -> Plan {
        let outputs = SmallVec::from_buf([OutSpec { sizes, dtype, strides }]);
        Plan { compute, cast: 0, cast_index: 0, broadcast: 0, contiguous: 0, alias: false, outputs }
    }

    /// The plan of an element-wise op: the arguments in `inputs` are cast to the compute dtype and broadcast together, and
    /// the result may alias one of them.
    ///
    /// # Errors
    /// [`Error::Broadcast`](crate::Error::Broadcast).
    pub fn elementwise(args: &Args<'_>, inputs: u32, typing: Typing) -> Result<Plan> {
        let plan = Plan::one(typing.compute, args.broadcast(inputs)?, typing.result, Strides::Preserve);
        Ok(Plan { cast: inputs, broadcast: inputs, alias: true, ..plan })
    }

    /// The plan of an op with a contiguous output of the sizes and dtype of its first tensor.
    ///
    /// # Errors
    /// `Value` without a tensor.
    pub(crate) fn like_first(args: &Args<'_>) -> Result<Plan> {
        let first = args.values.iter().find_map(|arg| match arg {
            Arg::Tensor(t) => Some(*t),
            Arg::Tensors(list) => list.first().copied(),
            _ => None,
        });
        let Some(first) = first else {
            return Err(args.tensor(0).err().unwrap_or(Error::UnknownOp { name: args.name().into() }));
        };
        Ok(Plan::one(first.dtype(), Dims::from_slice(first.sizes()), first.dtype(), Strides::Contiguous))
    }

    /// Adds an output.
    #[must_use]
    pub fn and(mut self, sizes: Dims, dtype: DType, strides: Strides) -> Plan {
        self.outputs.push(OutSpec { sizes, dtype, strides });
        self
    }
}

/// The geometry of a view.
#[derive(Clone, Debug)]
pub struct ViewSpec {
    /// First element, in elements from the storage's start.
    pub offset: usize,
    /// Sizes.
    pub sizes: Dims,
    /// The strides in elements; `None` is contiguous.
    pub strides: Option<Dims>,
}
