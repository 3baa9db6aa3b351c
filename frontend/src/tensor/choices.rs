//! Choices that methods of several ops take, and results of several tensors.

use super::Tensor;
use keyway_dispatcher::op::Arg;

/// The reduction over elements with the same index.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, tensor::Reduce};
/// let (at, src) = (Tensor::new([0i64, 0])?, Tensor::new([3.0f32, 5.0])?);
/// for (reduce, expected) in [(Reduce::Sum, 9.0), (Reduce::Prod, 15.0), (Reduce::Mean, 3.0), (Reduce::Amin, 1.0)] {
///     assert_eq!(Tensor::new([1.0f32])?.scatter_reduce(0, &at, &src, reduce)?.item::<f32>()?, expected);
/// }
/// assert_eq!(Reduce::Amax.name(), "amax");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reduce {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The mean; that of integers is rounded down.
    Mean,
    /// The maximum; NaN propagates.
    Amax,
    /// The minimum; NaN propagates.
    Amin,
}

impl Reduce {
    /// The name in calls.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Prod => "prod",
            Reduce::Mean => "mean",
            Reduce::Amax => "amax",
            Reduce::Amin => "amin",
        }
    }
}

impl From<Reduce> for Arg<'_> {
    fn from(reduce: Reduce) -> Self {
        Arg::Str(reduce.name())
    }
}

/// The rounding of a quotient to an integer.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, tensor::Rounding};
/// let a = Tensor::new([-3.5f32])?;
/// assert_eq!(a.div_with(2.0, Rounding::Trunc)?.to_vec::<f32>()?, [-1.0]);
/// assert_eq!(a.div_with(2.0, Rounding::Floor)?.to_vec::<f32>()?, [-2.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Towards zero.
    Trunc,
    /// Towards negative infinity.
    Floor,
}

impl From<Rounding> for Arg<'_> {
    fn from(mode: Rounding) -> Self {
        match mode {
            Rounding::Trunc => Arg::Str("trunc"),
            Rounding::Floor => Arg::Str("floor"),
        }
    }
}

/// The value of a quantile that falls between two elements in sorted order.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, tensor::Interpolation};
/// let x = Tensor::new([1.0f64, 2.0])?;
/// for (interpolation, expected) in
///     [(Interpolation::Linear, 1.25), (Interpolation::Lower, 1.0), (Interpolation::Higher, 2.0)]
/// {
///     assert_eq!(x.quantile_with(0.25, None, false, interpolation)?.item::<f64>()?, expected);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Interpolation {
    /// Linear interpolation.
    #[default]
    Linear,
    /// The lower element.
    Lower,
    /// The higher element.
    Higher,
    /// The mean of both.
    Midpoint,
    /// The nearer element; ties go to the even index.
    Nearest,
}

/// The results of [`Tensor::unique_all`].
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let found = Tensor::new([5, 3, 5])?.unique_all()?;
/// assert_eq!(found.values.to_vec::<i32>()?, [3, 5]);
/// assert_eq!(found.values.index_select(0, &found.inverse)?.to_vec::<i32>()?, [5, 3, 5]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Unique {
    /// The distinct values: ascending, or those of runs in the order of the runs.
    pub values: Tensor,
    /// For each element, in this tensor's shape, the index of its value in `values`.
    pub inverse: Tensor,
    /// The number of occurrences of each value.
    pub counts: Tensor,
}
