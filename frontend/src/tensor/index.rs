//! Indexing that reads as in NumPy: `t.i((0, 1..3, .., NewAxis))`.

use super::{Int, Tensor};
use crate::error::{Result, called};
use keyway_dispatcher::DType;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::Error;
use smallvec::SmallVec;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// An index that inserts a dimension of size 1.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let x = Tensor::zeros((2, 3))?;
/// assert_eq!(x.i((.., NewAxis))?.shape(), [2, 1, 3]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAxis;

/// All remaining dimensions, as `...` in NumPy.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let x = Tensor::zeros((2, 3, 4))?;
/// assert_eq!(x.i((Ellipsis, 0))?.shape(), [2, 3]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ellipsis;

/// Every `step`-th index of a range: `StepBy(.., 2)`, `StepBy(1..-1, 3)`.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::prelude::*;
/// let x = Tensor::new([0, 1, 2, 3, 4])?;
/// assert_eq!(x.i(StepBy(.., 2))?.to_vec::<i32>()?, [0, 2, 4]);
/// assert_eq!(x.i(StepBy(1..-1, 2))?.to_vec::<i32>()?, [1, 3]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBy<R>(pub R, pub i64);

/// An index for one dimension, or for several (a mask).
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::{Tensor, tensor::Index};
/// // As many indices as a program finds it needs.
/// let x = Tensor::new([[1, 2], [3, 4]])?;
/// let at = vec![Index::At(-1); x.rank()];
/// assert_eq!(x.i(&at[..])?.item::<i32>()?, 4);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Index {
    /// One index, and the dimension is dropped; -1 is the last.
    At(i64),
    /// A range. Negative positions count from the end; beyond the ends they are clamped.
    Range {
        /// The first index; none is the start.
        start: Option<i64>,
        /// The exclusive end; `None` is the end of the dimension.
        end: Option<i64>,
        /// Step between indices.
        step: i64,
    },
    /// See [`NewAxis`].
    NewAxis,
    /// See [`Ellipsis`]. `..` in a tuple is one whole dimension, as `:` in NumPy.
    Ellipsis,
    /// The elements that a tensor of integers or a mask of bool points at, as in [`Tensor::index`].
    Tensor(Tensor),
}

impl Index {
    /// Number of dimensions of the tensor that it indexes; the ellipsis excepted.
    fn width(&self) -> usize {
        match self {
            Index::At(_) | Index::Range { .. } => 1,
            Index::Tensor(t) if t.dtype() == DType::BOOL => t.rank(),
            Index::Tensor(_) => 1,
            Index::NewAxis | Index::Ellipsis => 0,
        }
    }
}

fn range(start: Option<i64>, end: Option<i64>) -> Index {
    Index::Range { start, end, step: 1 }
}

/// The exclusive end after an included last index; -1 is the end itself.
fn behind(last: i64) -> Option<i64> {
    if last == -1 { None } else { Some(last.saturating_add(1)) }
}

impl From<i64> for Index {
    fn from(at: i64) -> Index {
        Index::At(at)
    }
}

impl From<i32> for Index {
    fn from(at: i32) -> Index {
        Index::At(at.into())
    }
}

impl From<usize> for Index {
    fn from(at: usize) -> Index {
        // An index beyond i64 is beyond every dimension too, and is reported as such.
        Index::At(at.to_i64())
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        range(None, None)
    }
}

// A bound beyond i64 is beyond every dimension too.
macro_rules! ranges {
    ($($t:ty),*) => {$(
        impl From<Range<$t>> for Index {
            fn from(r: Range<$t>) -> Index {
                range(Some(r.start.to_i64()), Some(r.end.to_i64()))
            }
        }
        impl From<RangeFrom<$t>> for Index {
            fn from(r: RangeFrom<$t>) -> Index {
                range(Some(r.start.to_i64()), None)
            }
        }
        impl From<RangeTo<$t>> for Index {
            fn from(r: RangeTo<$t>) -> Index {
                range(None, Some(r.end.to_i64()))
            }
        }
        impl From<RangeInclusive<$t>> for Index {
            fn from(r: RangeInclusive<$t>) -> Index {
                range(Some(r.start().to_i64()), behind(r.end().to_i64()))
            }
        }
        impl From<RangeToInclusive<$t>> for Index {
            fn from(r: RangeToInclusive<$t>) -> Index {
                range(None, behind(r.end.to_i64()))
            }
        }
    )*};
}
ranges!(i32, i64, u32, u64, usize);

impl From<NewAxis> for Index {
    fn from(_: NewAxis) -> Index {
        Index::NewAxis
    }
}

impl From<Ellipsis> for Index {
    fn from(_: Ellipsis) -> Index {
        Index::Ellipsis
    }
}

impl From<Tensor> for Index {
    fn from(at: Tensor) -> Index {
        Index::Tensor(at)
    }
}

impl From<&Tensor> for Index {
    fn from(at: &Tensor) -> Index {
        Index::Tensor(at.clone())
    }
}

impl<R: Into<Index>> From<StepBy<R>> for Index {
    fn from(StepBy(inner, by): StepBy<R>) -> Index {
        match inner.into() {
            Index::Range { start, end, step } => Index::Range { start, end, step: step.saturating_mul(by) },
            other => other,
        }
    }
}

/// A list of indices: one, a tuple of up to 8, or a slice of [`Index`].
///
/// ```
/// use keyway::tensor::{Index, IntoIndices};
/// assert!(matches!((0, 1..).into_indices()[..], [Index::At(0), Index::Range { start: Some(1), .. }]));
/// ```
#[doc(alias = "IndexOp")]
pub trait IntoIndices {
    /// The list.
    ///
    /// ```
    /// use keyway::tensor::IntoIndices;
    /// assert_eq!((0, .., 1).into_indices().len(), 3);
    /// assert_eq!(0.into_indices().len(), 1);
    /// ```
    fn into_indices(self) -> SmallVec<[Index; 8]>;
}

impl<I: Into<Index>> IntoIndices for I {
    fn into_indices(self) -> SmallVec<[Index; 8]> {
        SmallVec::from_iter([self.into()])
    }
}

impl IntoIndices for &[Index] {
    fn into_indices(self) -> SmallVec<[Index; 8]> {
        self.iter().cloned().collect()
    }
}

macro_rules! tuples {
    ($(($($name:ident)+)),* $(,)?) => {$(
        impl<$($name: Into<Index>),+> IntoIndices for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_indices(self) -> SmallVec<[Index; 8]> {
                let ($($name,)+) = self;
                SmallVec::from_iter([$($name.into()),+])
            }
        }
    )*};
}
tuples!((A), (A B), (A B C), (A B C D), (A B C D E), (A B C D E F), (A B C D E F G), (A B C D E F G H));

impl Tensor {
    /// A view at these indices, one for each dimension from the first on: an integer drops its dimension, a range selects a part,
    /// [`StepBy`] selects with a step, [`NewAxis`] inserts a dimension, and [`Ellipsis`] stands for all remaining dimensions.
    /// Negative integers count from the end. With integer tensors or masks among them the result is a copy: the view by the other
    /// indices, indexed as by [`Tensor::index`].
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::Tensor;
    /// use keyway::tensor::{Ellipsis, NewAxis, StepBy};
    /// let a = Tensor::from_vec((0..24).collect::<Vec<i32>>(), (2, 3, 4))?;
    /// assert_eq!(a.i((1, -1, 1..3))?.to_vec::<i32>()?, [21, 22]);
    /// assert_eq!(a.i((Ellipsis, 0))?.shape(), [2, 3]);
    /// assert_eq!(a.i((.., NewAxis, StepBy(.., 2)))?.shape(), [2, 1, 2, 4]);
    /// let at = Tensor::new([2i64, 0])?;
    /// assert_eq!(a.i((1, &at, 3))?.to_vec::<i32>()?, [23, 15]);
    /// assert_eq!(a.i(&a.gt(20)?)?.to_vec::<i32>()?, [21, 22, 23]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// More indices than dimensions, an index out of range, a step below 1; for tensors, see [`Tensor::index`].
    pub fn i(&self, indices: impl IntoIndices) -> Result<Tensor> {
        called("i", &["indices"], || {
            let indices = indices.into_indices();
            let used: usize = indices.iter().map(Index::width).sum();
            let ellipses = indices.iter().filter(|i| matches!(i, Index::Ellipsis)).count();
            if used > self.rank() || ellipses > 1 {
                let expected = if ellipses > 1 {
                    "at most one Ellipsis".to_string()
                } else {
                    format!("at most {} indices, for shape {:?}", self.rank(), Dims::from_slice(self.shape()))
                };
                let got = if ellipses > 1 { format!("{ellipses}") } else { format!("{used}") };
                return Err(Error::Value { op: "i", argument: "indices", expected, got }.into());
            }
            let mut made = self.clone();
            // `source` counts the tensor's own dimensions for messages, `dim` those of the result so far.
            let (mut source, mut dim) = (0usize, 0i64);
            // An entry for each dimension of the result so far, one for all dimensions of a mask.
            let mut tensors: SmallVec<[Option<Tensor>; 8]> = SmallVec::new();
            for index in indices {
                let width = index.width();
                match index {
                    Index::At(at) => {
                        let size = self.shape()[source];
                        if at >= size as i64 || at < -(size as i64) {
                            return Err(Error::Index { op: "i", index: at, dim: source as i64, size }.into());
                        }
                        made = made.select(dim, at)?;
                        source += 1;
                    }
                    Index::Range { start, end, step } => {
                        if (start, end, step) != (None, None, 1) {
                            made = made.slice(dim, start, end, step)?;
                        }
                        source += 1;
                        dim += 1;
                        tensors.push(None);
                    }
                    Index::NewAxis => {
                        made = made.unsqueeze(dim)?;
                        dim += 1;
                        tensors.push(None);
                    }
                    Index::Ellipsis => {
                        let whole = self.rank() - used;
                        source += whole;
                        dim += whole as i64;
                        tensors.extend((0..whole).map(|_| None));
                    }
                    Index::Tensor(at) => {
                        source += width;
                        dim += width as i64;
                        tensors.push(Some(at));
                    }
                }
            }
            if tensors.iter().all(Option::is_none) {
                return Ok(made);
            }
            let tensors: SmallVec<[Option<&Tensor>; 8]> = tensors.iter().map(Option::as_ref).collect();
            made.index(&tensors)
        })
    }
}
