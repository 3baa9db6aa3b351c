//! Vectors of the level that the library is built for, and how elements come into them.

use keyway_sdk::author::{Float, Real};
use keyway_sdk::half::{bf16, f16};

/// A vector register of numbers.
pub trait Vector: Copy {
    /// What it holds.
    type Number: Real;
    /// How many.
    const LANES: usize;
    /// The same number in each lane.
    fn splat(number: Self::Number) -> Self;
    /// Reads the numbers from here on.
    ///
    /// # Safety
    /// There must be `LANES` of them.
    unsafe fn load(from: *const Self::Number) -> Self;
    /// Writes the numbers from here on.
    ///
    /// # Safety
    /// There must be `LANES` places, which nobody else may use.
    unsafe fn store(self, to: *mut Self::Number);
    /// `self * a + b`.
    fn mul_add(self, a: Self, b: Self) -> Self;
}

/// An element type that is read into vectors of the type in which its sums are accumulated.
pub trait Lanes: Float {
    /// The vectors.
    type Vector: Vector<Number = Self::Acc>;
    /// Reads and widens the elements from here on.
    ///
    /// # Safety
    /// There must be as many as the vector has lanes.
    unsafe fn read(from: *const Self) -> Self::Vector;
}

/// The sum of the lanes of `a` and `b`, always in the same order.
pub fn sum<V: Vector>(a: V, b: V) -> V::Number {
    const MOST: usize = 16;
    const { assert!(V::LANES <= MOST && V::LANES.is_power_of_two()) };
    let mut lanes = [V::Number::ZERO; 2 * MOST];
    // SAFETY: there are twice the lanes of a vector.
    unsafe {
        a.store(lanes.as_mut_ptr());
        b.store(lanes.as_mut_ptr().add(V::LANES));
    }
    let mut width = V::LANES;
    while width > 0 {
        for l in 0..width {
            let upper = lanes[l + width];
            lanes[l] += upper;
        }
        width /= 2;
    }
    lanes[0]
}

/// Rows of a matrix that are read at once: twice as many sums have to stay in registers.
pub const ROWS: usize = level::ROWS;

/// A vector of the processor's.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma"))]
macro_rules! vector {
    ($v:ty, $t:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $mul_add:ident) => {
        impl super::Vector for $v {
            type Number = $t;
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(number: $t) -> Self {
                // SAFETY: the build's level has the instruction.
                unsafe { $splat(number) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller guarantees the numbers; the build's level has the instruction.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller guarantees the places; the build's level has the instruction.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                // SAFETY: the build's level has the instruction.
                unsafe { $mul_add(self, a, b) }
            }
        }
    };
}

/// How elements are read into a vector.
macro_rules! read {
    ($($t:ty, $v:ty, $from:ident => $read:expr;)+) => {$(
        impl super::Lanes for $t {
            type Vector = $v;
            #[inline(always)]
            unsafe fn read($from: *const Self) -> $v {
                // SAFETY: the caller guarantees the elements; the build's level has the instructions.
                unsafe { $read }
            }
        }
    )+};
}

#[cfg(all(target_arch = "x86_64", target_feature = "avx512f"))]
mod level {
    use super::{Vector, bf16, f16};
    use std::arch::x86_64::*;

    pub(super) const ROWS: usize = 8;
    vector!(__m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps);
    vector!(__m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd);
    read! {
        f32, __m512, from => __m512::load(from);
        f64, __m512d, from => __m512d::load(from);
        f16, __m512, from => _mm512_cvtph_ps(_mm256_loadu_si256(from.cast()));
        bf16, __m512, from => {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        };
    }
}

#[cfg(all(
    target_arch = "x86_64",
    target_feature = "avx2",
    target_feature = "fma",
    target_feature = "f16c",
    not(target_feature = "avx512f")
))]
mod level {
    use super::{Vector, bf16, f16};
    use std::arch::x86_64::*;

    pub(super) const ROWS: usize = 4;
    vector!(__m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps);
    vector!(__m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd);
    read! {
        f32, __m256, from => __m256::load(from);
        f64, __m256d, from => __m256d::load(from);
        f16, __m256, from => _mm256_cvtph_ps(_mm_loadu_si128(from.cast()));
        bf16, __m256, from => {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        };
    }
}

/// Elsewhere arrays, whose loops the compiler turns into what there is.
#[cfg(not(any(
    all(target_arch = "x86_64", target_feature = "avx512f"),
    all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma", target_feature = "f16c")
)))]
mod level {
    use super::{Real, Vector, bf16, f16};
    use keyway_sdk::author::Float;

    pub(super) const ROWS: usize = 1;
    const LANES: usize = 8;

    /// Numbers side by side.
    #[derive(Clone, Copy)]
    pub struct Array<T>([T; LANES]);

    impl<T: Real> Vector for Array<T> {
        type Number = T;
        const LANES: usize = LANES;
        #[inline(always)]
        fn splat(number: T) -> Self {
            Array([number; LANES])
        }
        #[inline(always)]
        unsafe fn load(from: *const T) -> Self {
            // SAFETY: the caller guarantees the numbers, and an array needs no other alignment.
            Array(unsafe { *from.cast() })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut T) {
            // SAFETY: the caller guarantees the places.
            unsafe { *to.cast() = self.0 };
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            // Rounded twice: without an instruction of its own, rounding once takes a call for each number.
            Array(std::array::from_fn(|i| self.0[i] * a.0[i] + b.0[i]))
        }
    }

    read! {
        f32, Array<f32>, from => Array::load(from);
        f64, Array<f64>, from => Array::load(from);
        f16, Array<f32>, from => Array(std::array::from_fn(|i| (*from.add(i)).to_acc()));
        bf16, Array<f32>, from => Array(std::array::from_fn(|i| (*from.add(i)).to_acc()));
    }
}
