//! Shapes and lists of dimensions as callers write them: `(2, 3)`, `[2, 3]`, `&sizes`, `5`, `..`.

use super::Tensor;
use crate::error::Result;
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::error::{Error, shown_all};
use keyway_dispatcher::op::Arg;
use smallvec::{Array, SmallVec};
use std::ops::RangeFull;

/// A short list of integers, without an allocation up to eight.
///
/// ```
/// use keyway::tensor::Ints;
/// let dims: Ints = [2, -1].into_iter().collect();
/// assert_eq!(dims.as_slice(), [2, -1]);
/// assert!(!dims.spilled(), "it is no allocation");
/// ```
pub type Ints = SmallVec<[i64; 8]>;

/// An integer type of sizes and dimensions.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let rows = Tensor::new([1i64, 2, 3])?.elem_count();
/// assert_eq!(Tensor::zeros((rows, 2u32))?.shape(), [3, 2]);
/// # Ok(()) }
/// ```
pub trait Int: Copy + Into<Arg<'static>> {
    /// As i64; larger values saturate to `i64::MAX`, which is out of range for every size.
    ///
    /// ```
    /// use keyway::tensor::Int;
    /// assert_eq!(7usize.to_i64(), 7);
    /// assert_eq!(u64::MAX.to_i64(), i64::MAX);
    /// ```
    fn to_i64(self) -> i64;
}

macro_rules! ints {
    ($($type:ty),*) => {$(
        impl Int for $type {
            #[inline]
            fn to_i64(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
    )*};
}
ints!(i32, i64, isize, u32, u64, usize);

/// A shape: one size, a tuple of up to 8, an array, a slice or a vector; `()` is the shape of a scalar.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let rows = 2;
/// assert_eq!(Tensor::zeros((rows, 3))?.shape(), Tensor::zeros([rows, 3])?.shape());
/// assert_eq!(Tensor::zeros(5)?.shape(), [5]);
/// assert_eq!(Tensor::zeros(())?.rank(), 0);
/// let error = Tensor::zeros((2, -3)).unwrap_err();
/// assert!(error.to_string().contains("sizes of 0 or more"));
/// # Ok(()) }
/// ```
pub trait IntoShape {
    /// Converts to a list of integers.
    ///
    /// ```
    /// use keyway::tensor::IntoShape;
    /// assert_eq!((2, 3).into_ints()[..], [2, 3]);
    /// assert_eq!(5.into_ints()[..], [5]);
    /// ```
    fn into_ints(self) -> Ints;
}

impl<I: Int> IntoShape for I {
    #[inline]
    fn into_ints(self) -> Ints {
        Ints::from_slice(&[self.to_i64()])
    }
}

impl IntoShape for () {
    #[inline]
    fn into_ints(self) -> Ints {
        Ints::new()
    }
}

impl<I: Int> IntoShape for &[I] {
    #[inline]
    fn into_ints(self) -> Ints {
        // The usual shape is written in place.
        let mut ints = [0; 8];
        if self.len() > ints.len() {
            return self.iter().map(|i| i.to_i64()).collect();
        }
        std::iter::zip(&mut ints, self).for_each(|(int, i)| *int = i.to_i64());
        Ints::from_buf_and_len(ints, self.len())
    }
}

macro_rules! lists {
    ($([$($generic:tt)*] $type:ty),* $(,)?) => {$(
        impl<I: Int, $($generic)*> IntoShape for $type {
            #[inline]
            fn into_ints(self) -> Ints {
                self[..].into_ints()
            }
        }
    )*};
}
lists!([const N: usize] [I; N], [const N: usize] &[I; N], [] Vec<I>, [] &Vec<I>);

impl<A: Array> IntoShape for &SmallVec<A>
where
    A::Item: Int,
{
    #[inline]
    fn into_ints(self) -> Ints {
        self[..].into_ints()
    }
}

impl<A: Array> IntoShape for SmallVec<A>
where
    A::Item: Int,
{
    #[inline]
    fn into_ints(self) -> Ints {
        self[..].into_ints()
    }
}

macro_rules! tuples {
    ($(($($name:ident)+)),* $(,)?) => {$(
        impl<$($name: Int),+> IntoShape for ($($name,)+) {
            #[inline]
            #[allow(non_snake_case)]
            fn into_ints(self) -> Ints {
                let ($($name,)+) = self;
                Ints::from_slice(&[$($name.to_i64()),+])
            }
        }
    )*};
}
tuples!((A), (A B), (A B C), (A B C D), (A B C D E), (A B C D E F), (A B C D E F G), (A B C D E F G H));

/// The dimensions of a reduction: what [`IntoShape`] takes, where -1 is the last dimension, or `..` for all.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// let x = keyway::Tensor::ones((2, 3, 4))?;
/// assert_eq!(x.sum(-1)?.shape(), [2, 3]);
/// assert_eq!(x.sum((0, 2))?.shape(), [3]);
/// assert_eq!(x.sum(..)?.item::<f32>()?, 24.0);
/// # Ok(()) }
/// ```
#[doc(alias = "D")]
pub trait IntoDims {
    /// The dimensions; none are all.
    ///
    /// ```
    /// use keyway::tensor::IntoDims;
    /// assert_eq!((0, -1).into_dims()[..], [0, -1]);
    /// assert!((..).into_dims().is_empty());
    /// ```
    fn into_dims(self) -> Ints;
}

impl<S: IntoShape> IntoDims for S {
    #[inline]
    fn into_dims(self) -> Ints {
        self.into_ints()
    }
}

impl IntoDims for RangeFull {
    #[inline]
    fn into_dims(self) -> Ints {
        Ints::new()
    }
}

/// The sizes of a shape.
///
/// # Errors
/// A negative number, and one above i64.
#[inline]
pub(crate) fn sizes(op: &'static str, shape: impl IntoShape) -> Result<Dims> {
    let ints = shape.into_ints();
    // A value above i64 was saturated.
    if ints.contains(&i64::MAX) {
        return Err(negative(op, "shape", &ints));
    }
    not_negative(op, "shape", &ints)
}

/// Like [`sizes`], for any argument.
///
/// # Errors
/// A negative number.
#[inline]
pub(crate) fn not_negative(op: &'static str, argument: &'static str, ints: &[i64]) -> Result<Dims> {
    if ints.iter().any(|&size| size < 0) {
        return Err(negative(op, argument, ints));
    }
    Ok(ints.iter().map(|&size| size as usize).collect())
}

#[cold]
fn negative(op: &'static str, argument: &'static str, ints: &[i64]) -> crate::Error {
    let what = if argument == "shape" { "sizes" } else { "numbers" };
    let most = if ints.contains(&i64::MAX) { ", below 2^63 - 1" } else { "" };
    let (expected, got) = (format!("{what} of 0 or more{most}"), shown_all(ints));
    Error::Value { op, argument, expected, got }.into()
}

macro_rules! tuples_of_sizes {
    ($($name:ident $count:literal ($($size:ident),+) $tuple:ty, $sizes:literal;)*) => {
        impl Tensor {$(
            #[doc = concat!("The sizes of a tensor of ", stringify!($count), " dimensions.")]
            ///
            #[doc = concat!(
                "```\n# fn main() -> keyway::Result<()> {\n",
                "let x = keyway::Tensor::zeros(", $sizes, ")?;\n",
                "assert_eq!(x.", stringify!($name), "()?, ", $sizes, ");\n",
                "# Ok(()) }\n```",
            )]
            ///
            /// # Errors
            /// Another number of dimensions.
            pub fn $name(&self) -> Result<$tuple> {
                match *self.shape() {
                    [$($size),+] => Ok(($($size),+)),
                    _ => Err(other_rank(stringify!($name), $count, self.shape())),
                }
            }
        )*}
    };
}
tuples_of_sizes! {
    dims1 1 (a) usize, "2";
    dims2 2 (a, b) (usize, usize), "(2, 3)";
    dims3 3 (a, b, c) (usize, usize, usize), "(2, 3, 4)";
    dims4 4 (a, b, c, d) (usize, usize, usize, usize), "(2, 3, 4, 5)";
    dims5 5 (a, b, c, d, e) (usize, usize, usize, usize, usize), "(2, 3, 4, 5, 6)";
}

#[cold]
fn other_rank(op: &'static str, count: usize, sizes: &[usize]) -> crate::Error {
    let (expected, got) = (format!("a tensor of {count} dimensions"), format!("shape {sizes:?}"));
    Error::Value { op, argument: "self", expected, got }.into()
}
