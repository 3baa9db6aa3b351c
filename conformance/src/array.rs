//! Values of the oracle: numbers in row-major order, with a dtype and sizes.

use keyway::DType;
use smallvec::SmallVec;

/// One element. An integer is exact; a float is the f64 nearest to the exact result, not rounded to the dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An element of a floating-point dtype.
    Float(f64),
    /// An element of an integer dtype. A result outside the dtype's range represents its value modulo 2^bits.
    Int(i128),
    /// An element of bool.
    Bool(bool),
    /// An element of a complex dtype: the real and the imaginary part.
    Complex(f64, f64),
    /// Any value is correct: the op does not specify it.
    Any,
}

impl Number {
    /// The value as a float, of a complex number the real part; `Any` is NaN.
    pub fn float(self) -> f64 {
        match self {
            Number::Float(v) | Number::Complex(v, _) => v,
            Number::Int(v) => v as f64,
            Number::Bool(v) => f64::from(u8::from(v)),
            Number::Any => f64::NAN,
        }
    }

    /// The value as an integer: floats are truncated towards zero; `Any` is 0.
    pub fn int(self) -> i128 {
        match self {
            Number::Float(v) | Number::Complex(v, _) => v as i128,
            Number::Int(v) => v,
            Number::Bool(v) => i128::from(v),
            Number::Any => 0,
        }
    }

    /// Whether it differs from zero; NaN does.
    pub fn truth(self) -> bool {
        match self {
            Number::Float(v) => v != 0.0,
            Number::Complex(re, im) => re != 0.0 || im != 0.0,
            Number::Int(v) => v != 0,
            Number::Bool(v) => v,
            Number::Any => false,
        }
    }

    /// The imaginary part; 0 of a real number, and NaN of `Any`.
    pub fn imaginary(self) -> f64 {
        match self {
            Number::Complex(_, im) => im,
            Number::Any => f64::NAN,
            _ => 0.0,
        }
    }

    /// Converts to `dtype` like a cast: to integers towards zero and modulo 2^bits, to bool by [`Number::truth`]. A float is
    /// rounded to the dtype. A float out of range of an integer dtype becomes `Any`.
    pub fn cast(self, dtype: DType) -> Number {
        if matches!(self, Number::Any) {
            return self;
        }
        if dtype == DType::BOOL {
            return Number::Bool(self.truth());
        }
        if dtype.is_float() {
            return Number::Float(round_to(self.float(), dtype));
        }
        if dtype.is_complex() {
            return Number::Complex(round_to(self.float(), dtype), round_to(self.imaginary(), dtype));
        }
        match self {
            Number::Float(v) => {
                let (low, high) = dtype.integer_range().unwrap_or((0, 0));
                let whole = v.trunc();
                if whole >= low as f64 && whole <= high as f64 && (whole as i128) <= high {
                    Number::Int(whole as i128)
                } else {
                    Number::Any
                }
            }
            other => Number::Int(wrapped(other.int(), dtype)),
        }
    }
}

/// The nearest value of a floating-point dtype, or of the parts of a complex one, ties to even, infinity beyond the largest; for f16 and bf16 the nearest to the
/// nearest `f32`.
pub fn round_to(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::C64 => f64::from(value as f32),
        DType::F16 => half::f16::from_f32(value as f32).to_f64(),
        DType::BF16 => half::bf16::from_f32(value as f32).to_f64(),
        _ => value,
    }
}

/// The value of an integer dtype that equals this one modulo 2^bits.
pub fn wrapped(value: i128, dtype: DType) -> i128 {
    let Some((low, high)) = dtype.integer_range() else { return value };
    let count = high - low + 1;
    (value - low).rem_euclid(count) + low
}

/// A tensor's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// The sizes; empty for a 0-d array.
    pub sizes: Vec<usize>,
    /// Elements in row-major order; their number is the product of the sizes.
    pub values: Vec<Number>,
}

impl Array {
    /// An array of elements in row-major order.
    pub fn new(dtype: DType, sizes: impl Into<Vec<usize>>, values: Vec<Number>) -> Array {
        Array { dtype, sizes: sizes.into(), values }
    }

    /// Creates an array whose elements are a function of the multi-index.
    pub fn from_fn(
        dtype: DType,
        sizes: impl Into<Vec<usize>>,
        mut element: impl FnMut(&[usize]) -> Number,
    ) -> Array {
        let sizes = sizes.into();
        let mut values = Vec::with_capacity(sizes.iter().product());
        let mut index = Indices::new(&sizes);
        while let Some(at) = &index.at {
            values.push(element(at));
            index.advance();
        }
        Array { dtype, sizes, values }
    }

    /// Creates a 0-d array.
    pub fn scalar(dtype: DType, value: Number) -> Array {
        Array { dtype, sizes: Vec::new(), values: vec![value] }
    }

    /// The number of dimensions.
    pub fn ndim(&self) -> usize {
        self.sizes.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.values.len()
    }

    /// The element at a multi-index.
    pub fn at(&self, index: &[usize]) -> Number {
        self.values[flat(&self.sizes, index)]
    }

    /// The element at a multi-index of a shape that this one broadcasts to: leading dimensions are dropped, and a dimension
    /// of size 1 has index 0.
    pub fn broadcast_at(&self, index: &[usize]) -> Number {
        let own = self.sizes.iter().zip(&index[index.len() - self.sizes.len()..]);
        self.values[own.fold(0, |at, (&size, &i)| if size == 1 { at } else { at * size + i })]
    }

    /// The elements of this array broadcast to a shape, in row-major order of that shape.
    pub fn spread(&self, sizes: &[usize]) -> impl Iterator<Item = Number> + '_ {
        Offsets::new(sizes, &spread_strides(&self.sizes, sizes.len()), 0).map(|at| self.values[at])
    }

    /// Applies a function to each element.
    pub fn map(&self, dtype: DType, element: impl FnMut(Number) -> Number) -> Array {
        Array { dtype, sizes: self.sizes.clone(), values: self.values.iter().copied().map(element).collect() }
    }

    /// Casts each element; see [`Number::cast`].
    pub fn cast(&self, dtype: DType) -> Array {
        if self.dtype == dtype { self.clone() } else { self.map(dtype, |v| v.cast(dtype)) }
    }

    /// The elements as floats.
    pub fn floats(&self) -> Vec<f64> {
        self.values.iter().map(|v| v.float()).collect()
    }

    /// The elements as integers.
    pub fn ints(&self) -> Vec<i128> {
        self.values.iter().map(|v| v.int()).collect()
    }

    /// The same elements in row-major order, in another shape of the same number of elements.
    #[must_use]
    pub fn reshaped(mut self, sizes: impl Into<Vec<usize>>) -> Array {
        self.sizes = sizes.into();
        self
    }
}

/// The row-major index of a multi-index.
pub fn flat(sizes: &[usize], index: &[usize]) -> usize {
    sizes.iter().zip(index).fold(0, |at, (&size, &i)| at * size + i)
}

/// The strides with which a row-major array of these sizes is broadcast to `ndim` dimensions.
pub fn spread_strides(sizes: &[usize], ndim: usize) -> Vec<usize> {
    let mut strides = vec![0; ndim];
    let mut next = 1;
    for (stride, &size) in strides.iter_mut().rev().zip(sizes.iter().rev()) {
        *stride = if size == 1 { 0 } else { next };
        next *= size;
    }
    strides
}

/// The multi-index of a row-major index.
pub fn unravelled(sizes: &[usize], mut offset: usize) -> Vec<usize> {
    let mut index = vec![0; sizes.len()];
    for (i, &size) in index.iter_mut().zip(sizes).rev() {
        *i = offset % size;
        offset /= size;
    }
    index
}

/// A multi-index.
pub type Index = SmallVec<[usize; 8]>;

/// Every multi-index of a shape, in row-major order.
#[derive(Clone, Debug)]
pub struct Indices {
    sizes: Index,
    /// The next multi-index; `None` at the end.
    at: Option<Index>,
}

impl Indices {
    /// The multi-indices of this shape in row-major order; one, empty, for 0-d.
    pub fn new(sizes: &[usize]) -> Indices {
        let first = (!sizes.contains(&0)).then(|| SmallVec::from_elem(0, sizes.len()));
        Indices { sizes: SmallVec::from_slice(sizes), at: first }
    }

    fn advance(&mut self) {
        let Some(at) = &mut self.at else { return };
        for (i, &size) in at.iter_mut().zip(&self.sizes).rev() {
            *i += 1;
            if *i < size {
                return;
            }
            *i = 0;
        }
        self.at = None;
    }
}

impl Iterator for Indices {
    type Item = Index;
    fn next(&mut self) -> Option<Index> {
        let now = self.at.as_deref().map(SmallVec::from_slice);
        self.advance();
        now
    }
}

/// A dimension of [`Offsets`].
#[derive(Clone, Debug)]
struct Dim {
    size: usize,
    stride: usize,
    /// The index of the next position.
    at: usize,
}

/// The offsets of the elements of a shape in memory with given strides, in row-major order of the shape.
#[derive(Clone, Debug)]
pub struct Offsets {
    dims: Vec<Dim>,
    next: usize,
    left: usize,
}

impl Offsets {
    /// The offsets, starting with that of the first element.
    pub fn new(sizes: &[usize], strides: &[usize], first: usize) -> Offsets {
        let dims = sizes.iter().zip(strides).map(|(&size, &stride)| Dim { size, stride, at: 0 }).collect();
        Offsets { dims, next: first, left: sizes.iter().product() }
    }
}

impl Iterator for Offsets {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let now = self.next;
        for dim in self.dims.iter_mut().rev() {
            dim.at += 1;
            self.next += dim.stride;
            if dim.at < dim.size {
                break;
            }
            self.next -= dim.stride * dim.size;
            dim.at = 0;
        }
        Some(now)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_the_indices() {
        for (sizes, strides) in
            [(vec![2, 3, 4], vec![1, 0, 7]), (vec![5], vec![2]), (vec![], vec![]), (vec![2, 0], vec![1, 1])]
        {
            let by_index = Indices::new(&sizes)
                .map(|at| at.iter().zip(&strides).fold(9, |offset, (i, stride)| offset + i * stride));
            assert_eq!(Offsets::new(&sizes, &strides, 9).collect::<Vec<_>>(), by_index.collect::<Vec<_>>());
        }
    }

    #[test]
    fn elements_are_spread_as_they_broadcast() {
        let of = |sizes: &[usize]| {
            Array::new(
                DType::I64,
                sizes,
                (0..sizes.iter().product::<usize>() as i128).map(Number::Int).collect(),
            )
        };
        for (own, shape) in
            [(vec![3, 1], vec![2, 3, 4]), (vec![], vec![2, 2]), (vec![4], vec![0, 4]), (vec![1], vec![1])]
        {
            let array = of(&own);
            let each: Vec<_> = Indices::new(&shape).map(|at| array.broadcast_at(&at)).collect();
            assert_eq!(array.spread(&shape).collect::<Vec<_>>(), each);
        }
    }
}
