//! Nested arrays as callers write them: `2.0f32`, `&[1, 2]`, `[[1.0, 2.0], [3.0, 4.0]]`, vectors of vectors.

use super::Tensor;
use super::options::IntoOptions;
use crate::error::{Result, called};
use crate::op::rules::is_held;
use half::{bf16, f16};
use keyway_dispatcher::dims::Dims;
use keyway_dispatcher::dtype::DType;
use keyway_dispatcher::error::Error;
use keyway_dispatcher::memory::bytes::Plain;
use keyway_dispatcher::op::Arg;
use keyway_sdk::num_complex::Complex;

/// A number, or an array, slice or vector of such, nested to any depth.
///
/// ```
/// # fn main() -> keyway::Result<()> {
/// use keyway::Tensor;
/// let rows: Vec<Vec<f32>> = (0..2).map(|row| vec![row as f32; 3]).collect();
/// assert_eq!(Tensor::new(&rows)?.shape(), [2, 3]);
/// assert!(Tensor::new(vec![vec![1.0f32], vec![]]).is_err());
/// # Ok(()) }
/// ```
pub trait NdArray {
    /// The type of the elements.
    type Elem: Plain;

    /// Appends the sizes, outermost first; without elements, the sizes that are known.
    ///
    /// ```
    /// use keyway::{dispatcher::dims::Dims, tensor::NdArray};
    /// let mut sizes = Dims::new();
    /// [[1, 2, 3], [4, 5, 6]].add_shape(&mut sizes);
    /// assert_eq!(sizes[..], [2, 3]);
    /// ```
    fn add_shape(&self, sizes: &mut Dims);

    /// Appends the elements in row-major order.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::tensor::NdArray;
    /// let mut values = Vec::new();
    /// [[1, 2], [3, 4]].add_values(&[2, 2], &mut values)?;
    /// assert_eq!(values, [1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Nested parts that do not have these `sizes`.
    fn add_values(&self, sizes: &[usize], values: &mut Vec<Self::Elem>) -> Result<()>;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl NdArray for $type {
            type Elem = $type;
            fn add_shape(&self, _: &mut Dims) {}
            fn add_values(&self, sizes: &[usize], values: &mut Vec<$type>) -> Result<()> {
                if !sizes.is_empty() {
                    return Err(ragged(sizes, 1));
                }
                values.push(*self);
                Ok(())
            }
        }
    )*};
}
numbers!(u8, i8, i16, i32, i64, u16, u32, u64, f32, f64, f16, bf16, bool, Complex<f32>, Complex<f64>);

impl<A: NdArray> NdArray for [A] {
    type Elem = A::Elem;
    fn add_shape(&self, sizes: &mut Dims) {
        sizes.push(self.len());
        if let Some(first) = self.first() {
            first.add_shape(sizes);
        }
    }
    fn add_values(&self, sizes: &[usize], values: &mut Vec<A::Elem>) -> Result<()> {
        match sizes.split_first() {
            Some((&size, inner)) if size == self.len() => {
                self.iter().try_for_each(|part| part.add_values(inner, values))
            }
            _ => Err(ragged(sizes, self.len())),
        }
    }
}

macro_rules! as_slices {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<A: NdArray, $($generics)*> NdArray for $type {
            type Elem = A::Elem;
            fn add_shape(&self, sizes: &mut Dims) {
                self[..].add_shape(sizes);
            }
            fn add_values(&self, sizes: &[usize], values: &mut Vec<A::Elem>) -> Result<()> {
                self[..].add_values(sizes, values)
            }
        }
    )*};
}
as_slices!([const N: usize] [A; N], [] Vec<A>);

impl<A: NdArray + ?Sized> NdArray for &A {
    type Elem = A::Elem;
    fn add_shape(&self, sizes: &mut Dims) {
        (**self).add_shape(sizes);
    }
    fn add_values(&self, sizes: &[usize], values: &mut Vec<A::Elem>) -> Result<()> {
        (**self).add_values(sizes, values)
    }
}

#[cold]
fn ragged(sizes: &[usize], got: usize) -> crate::Error {
    let first = sizes.first().copied().unwrap_or_default();
    let expected = format!("parts of one length, here {first} as that of the first");
    let got = format!("one of length {got}");
    Error::Value { op: "new", argument: "array", expected, got }.into()
}

/// The first of these numbers that an integer dtype cannot represent.
fn first_lost<T: Into<Arg<'static>>>(numbers: Vec<T>, dtype: DType) -> Option<Arg<'static>> {
    numbers.into_iter().map(Into::into).find(|&number| !is_held(number, dtype))
}

/// Refuses values that the target integer dtype cannot represent.
fn require_held(values: &Tensor, dtype: DType) -> Result<()> {
    let own = values.dtype();
    let Some((low, high)) = dtype.integer_range().filter(|_| dtype.is_integer() && own != DType::BOOL) else {
        return Ok(());
    };
    if own.integer_range().is_some_and(|(least, most)| low <= least && most <= high) {
        return Ok(());
    }
    let lost = match own {
        DType::I64 => first_lost(values.to_vec::<i64>()?, dtype),
        DType::U64 => first_lost(values.to_vec::<u64>()?, dtype),
        _ => first_lost(values.to_vec_f64()?, dtype),
    };
    let Some(number) = lost else { return Ok(()) };
    let expected = format!("numbers that {dtype} holds, from {low} to {high}");
    Err(Error::Value { op: "new", argument: "array", expected, got: number.describe() }.into())
}

impl Tensor {
    /// A tensor with a copy of a number or of a nested array, of its Rust type, on the default device.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    /// assert_eq!((x.shape(), x.dtype()), (&[3, 2][..], DType::F32));
    /// assert_eq!(Tensor::new(7i64)?.rank(), 0);
    /// let error = Tensor::new(vec![vec![1, 2], vec![3]]).unwrap_err();
    /// assert!(error.to_string().contains("parts of one length, here 2"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Parts of different lengths; memory that does not suffice.
    #[doc(alias = "new_tensor")]
    #[doc(alias = "from_iter")]
    #[doc(alias = "tensor")]
    #[doc(alias = "scalar_tensor")]
    #[doc(alias = "as_tensor")]
    pub fn new<A: NdArray>(array: A) -> Result<Tensor> {
        Tensor::new_with(array, ())
    }

    /// [`Tensor::new`] with a dtype, a device and a memory format.
    ///
    /// ```
    /// # fn main() -> keyway::Result<()> {
    /// use keyway::prelude::*;
    /// let x = Tensor::new_with(&[1.0, 2.5], (DType::F16, Device::CPU))?;
    /// assert_eq!(x.to_vec::<f16>()?, [f16::from_f32(1.0), f16::from_f32(2.5)]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::new`]; a device that does not exist; a value that an integer dtype cannot represent.
    pub fn new_with<A: NdArray>(array: A, options: impl IntoOptions) -> Result<Tensor> {
        called("new", &["array", "options"], || {
            let mut options = options.into_options()?;
            options.device = Some(options.device());
            let made = Tensor::of(&array)?;
            if let Some(dtype) = options.dtype {
                require_held(&made, dtype)?;
            }
            made.to(options)
        })
    }

    fn of<A: NdArray>(array: &A) -> Result<Tensor> {
        let mut sizes = Dims::new();
        array.add_shape(&mut sizes);
        let mut values = keyway_dispatcher::memory::host_vec(sizes.iter().product())?;
        array.add_values(&sizes, &mut values)?;
        Tensor::from_vec(values, &sizes)
    }
}
