//! Properties of ops that the layers below the definitions read.

/// Properties of an op that neither its schema nor its rule expresses, as a set.
///
/// ```
/// use keyway::ops::{def::OpFlags, linalg, pointwise};
/// assert!(linalg::mm::DEF.is(OpFlags::AUTOCAST) && pointwise::exp::DEF.is(OpFlags::AUTOCAST_F32));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpFlags(u16);

impl OpFlags {
    /// The empty set.
    pub const NONE: OpFlags = OpFlags(0);
    /// The results are elements of the arguments, or values that every dtype represents: the error is 0. A cast rounds to
    /// nearest.
    pub const EXACT: OpFlags = OpFlags(1);
    /// IEEE 754 specifies the sign of a zero in the result.
    pub const SIGNED_ZEROS: OpFlags = OpFlags(1 << 1);
    /// The results of many elements exceed the range of every dtype: long products.
    pub const MAY_OVERFLOW: OpFlags = OpFlags(1 << 2);
    /// Kernels are selected by the output dtype; their registration does not list the input dtypes.
    pub const CASTS: OpFlags = OpFlags(1 << 3);
    /// The result depends on the strides of an argument or its storage, not only on its values.
    pub const STRIDE_DEPENDENT: OpFlags = OpFlags(1 << 4);
    /// One argument determines the memory format of the result, whatever the format of the others.
    pub const SETS_FORMAT: OpFlags = OpFlags(1 << 5);

    /// An element-wise function of one tensor with `f(0) = 0`, so it applies to the stored values of a sparse tensor.
    pub const ZERO_PRESERVING: OpFlags = OpFlags(1 << 6);
    /// Reads the entries of a sparse tensor as stored, including duplicates. The derivative of any other op is that with
    /// respect to its elements, so a sparse argument is coalesced before the op is recorded.
    pub const UNCOALESCED: OpFlags = OpFlags(1 << 7);
    /// [`OpFlags::ZERO_PRESERVING`] if the second argument is a number above 0.
    pub const ZERO_PRESERVING_IF_POSITIVE: OpFlags = OpFlags(1 << 8);
    /// Computed in the dtype of [`autocast`](crate::autocast()): products, which gain most and accumulate in f32.
    pub const AUTOCAST: OpFlags = OpFlags(1 << 9);
    /// Computed in f32 under [`autocast`](crate::autocast()): functions that exceed the range of f16, long sums, losses.
    pub const AUTOCAST_F32: OpFlags = OpFlags(1 << 10);

    /// [`OpFlags::ZERO_PRESERVING`] if 0 is between the second and the third argument, which are numbers or absent.
    pub const ZERO_PRESERVING_IF_IN_BOUNDS: OpFlags = OpFlags(1 << 11);
    /// [`OpFlags::ZERO_PRESERVING`] if the second argument is a number other than 0.
    pub const ZERO_PRESERVING_IF_NONZERO: OpFlags = OpFlags(1 << 12);

    /// The derivative's formula computes f16 and bf16 in f32 itself, and returns f32 gradients where arguments may be f32. Its
    /// saved tensors are passed without a cast where f32 is the widest dtype, so images need not be converted for the sake of
    /// f32 weights.
    pub const DERIVED_IN_F32: OpFlags = OpFlags(1 << 13);

    /// The derivative's formula is correct for complex tensors in PyTorch's convention, in which the gradient of a real result
    /// points in the direction of steepest ascent: conjugate Wirtinger. Ops that are linear with real coefficients satisfy it as
    /// they are.
    pub const COMPLEX: OpFlags = OpFlags(1 << 14);
    /// The op is holomorphic in each argument, and its formula the complex derivative, without conjugates: autograd conjugates
    /// the incoming gradients and the results, which gives the gradients of [`OpFlags::COMPLEX`].
    pub const HOLOMORPHIC: OpFlags = OpFlags(1 << 15);

    /// The union of both sets.
    ///
    /// ```
    /// use keyway::ops::def::OpFlags;
    /// let both = OpFlags::EXACT.and(OpFlags::ZERO_PRESERVING);
    /// assert!(both.has(OpFlags::EXACT) && both.has(OpFlags::ZERO_PRESERVING));
    /// ```
    #[must_use]
    pub const fn and(self, more: OpFlags) -> OpFlags {
        OpFlags(self.0 | more.0)
    }

    /// Whether the op has a derivative for complex tensors.
    pub(crate) const fn is_of_complex(self) -> bool {
        self.has(OpFlags::COMPLEX) || self.has(OpFlags::HOLOMORPHIC)
    }

    /// Whether the set contains all of `flags`.
    ///
    /// ```
    /// use keyway::ops::def::OpFlags;
    /// assert!(OpFlags::EXACT.has(OpFlags::EXACT) && !OpFlags::EXACT.has(OpFlags::CASTS));
    /// assert!(OpFlags::EXACT.has(OpFlags::NONE));
    /// ```
    pub const fn has(self, flags: OpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}
