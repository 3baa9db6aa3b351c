//! The element types: f32, f64, and complex numbers of them.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::{ComputeEigenvectors, EvdError, evd_cplx, evd_real, evd_scratch};
use faer::traits::ComplexField;
use faer::{MatMut, MatRef, Par, Spec};
use keyway_sdk::author::{Element, Plain, c64, c128};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A real number: the part of an element.
pub trait Part: Number<Part = Self> + PartialOrd + Div<Output = Self> {
    /// 2^-10, the size of a negligible component relative to the largest one.
    const NEGLIGIBLE: Self;

    /// The complex number with these parts.
    type Complex: Number<Part = Self> + Element;

    /// `re + i im`.
    fn with(self, im: Self) -> Self::Complex;

    /// The square root.
    fn root(self) -> Self;

    /// The largest power of two that is not above a positive number, and 1 for 0; at least the smallest normal number.
    fn power_of_two(self) -> Self;
}

/// An element of a matrix.
pub trait Number:
    Plain
    + Element
    + ComplexField
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// The type of the real part.
    type Part: Part;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// 0.5.
    const HALF: Self;
    /// NaN, in both parts.
    const NAN: Self;

    /// The modulus, computed without overflow.
    fn modulus(self) -> Self::Part;

    /// The complex conjugate.
    fn conjugate(self) -> Self;

    /// The real part.
    fn part(self) -> Self::Part;

    /// The number with this real part.
    fn of_part(part: Self::Part) -> Self;

    /// The quotient by a real number.
    fn over(self, divisor: Self::Part) -> Self;

    /// Whether all parts are neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// The memory that [`Number::eigen`] needs.
    fn eigen_scratch(n: usize, vectors: ComputeEigenvectors) -> StackReq {
        match n {
            0 => StackReq::EMPTY,
            _ => evd_scratch::<Self>(n, ComputeEigenvectors::No, vectors, Par::Seq, Spec::default()),
        }
    }

    /// The eigenvalues of a general matrix of `n` rows, and its eigenvectors: `values` has `2 n` elements. Those of a real matrix
    /// are the real parts followed by the imaginary parts, and the vectors of a conjugate pair are two columns, the real and the
    /// imaginary part of the vector of the first.
    ///
    /// # Errors
    /// An iteration that does not converge.
    fn eigen(
        a: MatRef<'_, Self>,
        values: &mut [Self],
        vectors: Option<MatMut<'_, Self>>,
        stack: &mut MemStack,
    ) -> Result<(), EvdError>;

    /// Eigenvalue `j` of those of [`Number::eigen`].
    fn eigenvalue(values: &[Self], n: usize, j: usize) -> <Self::Part as Part>::Complex;

    /// Component `i` of eigenvector `j`.
    fn eigenvector(
        values: &[Self],
        vectors: MatRef<'_, Self>,
        i: usize,
        j: usize,
    ) -> <Self::Part as Part>::Complex;
}

macro_rules! numbers {
    ($($t:ty, $complex:ty);*) => {$(
        impl Part for $t {
            const NEGLIGIBLE: Self = 1.0 / 1024.0;
            type Complex = $complex;

            fn with(self, im: Self) -> $complex {
                <$complex>::new(self, im)
            }

            fn root(self) -> Self {
                self.sqrt()
            }

            fn power_of_two(self) -> Self {
                // The exponent without the mantissa.
                let exponent = <$t>::from_bits(self.max(<$t>::MIN_POSITIVE).to_bits() & <$t>::INFINITY.to_bits());
                if self > 0.0 { exponent } else { 1.0 }
            }
        }

        impl Number for $t {
            type Part = $t;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const HALF: Self = 0.5;
            const NAN: Self = <$t>::NAN;

            fn modulus(self) -> $t {
                self.abs()
            }

            fn conjugate(self) -> Self {
                self
            }

            fn part(self) -> $t {
                self
            }

            fn of_part(part: $t) -> Self {
                part
            }

            fn over(self, divisor: $t) -> Self {
                self / divisor
            }

            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }

            fn eigen(
                a: MatRef<'_, Self>,
                values: &mut [Self],
                vectors: Option<MatMut<'_, Self>>,
                stack: &mut MemStack,
            ) -> Result<(), EvdError> {
                let (re, im) = values.split_at_mut(a.nrows());
                let (re, im) = (DiagMut::from_slice_mut(re), DiagMut::from_slice_mut(im));
                evd_real(a, re, im, None, vectors, Par::Seq, stack, Spec::default())
            }

            fn eigenvalue(values: &[Self], n: usize, j: usize) -> $complex {
                values[j].with(values[n + j])
            }

            fn eigenvector(values: &[Self], vectors: MatRef<'_, Self>, i: usize, j: usize) -> $complex {
                let im = values[vectors.nrows() + j];
                if im == 0.0 {
                    vectors[(i, j)].with(0.0)
                } else if im > 0.0 {
                    vectors[(i, j)].with(vectors[(i, j + 1)])
                } else {
                    vectors[(i, j - 1)].with(-vectors[(i, j)])
                }
            }
        }

        impl Number for $complex {
            type Part = $t;
            const ZERO: Self = <$complex>::new(0.0, 0.0);
            const ONE: Self = <$complex>::new(1.0, 0.0);
            const HALF: Self = <$complex>::new(0.5, 0.0);
            const NAN: Self = <$complex>::new(<$t>::NAN, <$t>::NAN);

            fn modulus(self) -> $t {
                self.re.hypot(self.im)
            }

            fn conjugate(self) -> Self {
                self.conj()
            }

            fn part(self) -> $t {
                self.re
            }

            fn of_part(part: $t) -> Self {
                <$complex>::new(part, 0.0)
            }

            fn over(self, divisor: $t) -> Self {
                <$complex>::new(self.re / divisor, self.im / divisor)
            }

            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }

            fn eigen(
                a: MatRef<'_, Self>,
                values: &mut [Self],
                vectors: Option<MatMut<'_, Self>>,
                stack: &mut MemStack,
            ) -> Result<(), EvdError> {
                let values = DiagMut::from_slice_mut(&mut values[..a.nrows()]);
                evd_cplx(a, values, None, vectors, Par::Seq, stack, Spec::default())
            }

            fn eigenvalue(values: &[Self], _: usize, j: usize) -> $complex {
                values[j]
            }

            fn eigenvector(_: &[Self], vectors: MatRef<'_, Self>, i: usize, j: usize) -> $complex {
                vectors[(i, j)]
            }
        }
    )*};
}

numbers!(f32, c64; f64, c128);
