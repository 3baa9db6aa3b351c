//! SIMD vectors of the level for which the library is built, and loads and stores of elements.

use keyway_sdk::author::{Float, Real};
use keyway_sdk::half::{bf16, f16};

/// A SIMD vector of floats.
pub trait Vector: Copy {
    /// The type of a lane.
    type Number: Real;
    /// The number of lanes.
    const LANES: usize;
    /// Broadcasts a value to all lanes.
    fn splat(number: Self::Number) -> Self;
    /// Loads `LANES` values.
    ///
    /// # Safety
    /// There must be `LANES` values at `from`.
    unsafe fn load(from: *const Self::Number) -> Self;
    /// Stores all lanes.
    ///
    /// # Safety
    /// `to` must have capacity for `LANES` values, uniquely owned.
    unsafe fn store(self, to: *mut Self::Number);
    /// Loads `n` values, at most the number of lanes; other lanes are 0.
    ///
    /// # Safety
    /// There must be `n` values at `from`.
    #[inline(always)]
    unsafe fn load_few(from: *const Self::Number, n: usize) -> Self {
        let mut copy = [Self::Number::ZERO; MOST];
        // SAFETY: as the caller guarantees; no vector has more lanes than the copy.
        unsafe {
            copy.iter_mut().take(n).enumerate().for_each(|(i, slot)| *slot = *from.add(i));
            Self::load(copy.as_ptr())
        }
    }
    /// Stores the first `n` lanes, at most the number of lanes.
    ///
    /// # Safety
    /// `to` must have capacity for `n` values, uniquely owned.
    #[inline(always)]
    unsafe fn store_few(self, to: *mut Self::Number, n: usize) {
        let mut copy = [Self::Number::ZERO; MOST];
        // SAFETY: as the caller guarantees; no vector has more lanes than the copy.
        unsafe {
            self.store(copy.as_mut_ptr());
            copy.iter().take(n).enumerate().for_each(|(i, number)| *to.add(i) = *number);
        }
    }
    /// Gathers one value for each lane, at indices relative to this address.
    ///
    /// # Safety
    /// The values must be valid to read, and there must be one index per lane.
    #[inline(always)]
    unsafe fn gather(from: *const Self::Number, at: *const i32) -> Self {
        let mut copy = [Self::Number::ZERO; MOST];
        // SAFETY: as the caller guarantees; no vector has more lanes than the copy.
        unsafe {
            let places = copy.iter_mut().take(Self::LANES).enumerate();
            places.for_each(|(i, slot)| *slot = *from.offset(*at.add(i) as isize));
            Self::load(copy.as_ptr())
        }
    }
    /// Whether [`Vector::pick`] is a single instruction.
    const PICKS: bool = false;
    /// A two-source permute: for each lane the value at an index into the lanes of `self` followed by those of `other`.
    ///
    /// # Safety
    /// There must be one index per lane, each below twice the number of lanes.
    #[inline(always)]
    unsafe fn pick(self, other: Self, at: *const i32) -> Self {
        let mut both = [Self::Number::ZERO; 2 * MOST];
        // SAFETY: as the caller guarantees; the array has the lanes of both.
        unsafe {
            self.store(both.as_mut_ptr());
            other.store(both.as_mut_ptr().add(Self::LANES));
            Self::gather(both.as_ptr(), at)
        }
    }
    /// `self * a + b`.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The lane-wise maximum; `other` if one of the two is NaN.
    fn larger(self, other: Self) -> Self;
}

/// An element type that is loaded into vectors of its accumulation type.
pub trait Lanes: Float {
    /// The vector type.
    type Vector: Vector<Number = Self::Acc>;
    /// Loads and widens the elements at `from`.
    ///
    /// # Safety
    /// `from` must have one element per lane.
    unsafe fn read(from: *const Self) -> Self::Vector;
    /// Rounds all lanes to nearest even and stores them.
    ///
    /// # Safety
    /// `to` must have capacity for one element per lane, uniquely owned.
    unsafe fn write(to: *mut Self, vector: Self::Vector);
    /// Loads `n` elements, at most the number of lanes; other lanes are 0.
    ///
    /// # Safety
    /// There must be `n` elements at `from`.
    #[inline(always)]
    unsafe fn read_few(from: *const Self, n: usize) -> Self::Vector {
        let mut copy = [Self::from_acc(Self::Acc::ZERO); MOST];
        // SAFETY: as the caller guarantees; no vector has more lanes than the copy.
        unsafe {
            copy.iter_mut().take(n).enumerate().for_each(|(i, slot)| *slot = *from.add(i));
            Self::read(copy.as_ptr())
        }
    }
    /// Stores the first `n` lanes, at most the number of lanes.
    ///
    /// # Safety
    /// `to` must have capacity for `n` elements, uniquely owned.
    #[inline(always)]
    unsafe fn write_few(to: *mut Self, n: usize, vector: Self::Vector) {
        let mut copy = [Self::from_acc(Self::Acc::ZERO); MOST];
        // SAFETY: as the caller guarantees; no vector has more lanes than the copy.
        unsafe {
            Self::write(copy.as_mut_ptr(), vector);
            copy.iter().take(n).enumerate().for_each(|(i, element)| *to.add(i) = *element);
        }
    }
}

/// The maximum number of lanes of a vector.
pub const MOST: usize = 16;

/// Loads `n` values, at most a vector; other lanes are 0.
///
/// # Safety
/// There must be `n` values, and `n` must be at most the vector's lanes.
#[inline(always)]
pub unsafe fn load_some<V: Vector>(from: *const V::Number, n: usize) -> V {
    // SAFETY: as the caller guarantees.
    unsafe { if n == V::LANES { V::load(from) } else { V::load_few(from, n) } }
}

/// Stores the first `n` lanes of a vector.
///
/// # Safety
/// `to` must have capacity for `n` elements, uniquely owned, and `n` must be at most the number of lanes.
#[inline(always)]
pub unsafe fn store_some<V: Vector>(to: *mut V::Number, n: usize, vector: V) {
    // SAFETY: as the caller guarantees.
    unsafe { if n == V::LANES { vector.store(to) } else { vector.store_few(to, n) } }
}

/// Loads `n` elements with a stride; other lanes are 0.
///
/// # Safety
/// There must be `n` elements, and `n` must be at most the number of lanes.
#[inline(always)]
pub unsafe fn read_some<T: Lanes>(from: *const T, step: usize, n: usize) -> T::Vector {
    // SAFETY: as the caller guarantees; no vector has more lanes than the copy.
    unsafe {
        if n == T::Vector::LANES && step == 1 {
            return T::read(from);
        }
        if step == 1 {
            return T::read_few(from, n);
        }
        let mut copy = [T::from_acc(T::Acc::ZERO); MOST];
        copy.iter_mut().take(n).enumerate().for_each(|(i, slot)| *slot = *from.add(i * step));
        T::read(copy.as_ptr())
    }
}

/// Rounds and stores the first `n` lanes of a vector with a stride.
///
/// # Safety
/// `to` must have capacity for `n` elements, uniquely owned, and `n` must be at most the number of lanes.
#[inline(always)]
pub unsafe fn write_some<T: Lanes>(to: *mut T, step: usize, n: usize, vector: T::Vector) {
    // SAFETY: as the caller guarantees; no vector has more lanes than the copy.
    unsafe {
        if n == T::Vector::LANES && step == 1 {
            return T::write(to, vector);
        }
        if step == 1 {
            return T::write_few(to, n, vector);
        }
        let mut copy = [T::from_acc(T::Acc::ZERO); MOST];
        T::write(copy.as_mut_ptr(), vector);
        copy.iter().take(n).enumerate().for_each(|(i, element)| *to.add(i * step) = *element);
    }
}

/// Widens `n` contiguous elements.
///
/// # Safety
/// `from` must have `n` elements, and `to` capacity for them, uniquely owned.
#[inline]
pub unsafe fn widen<T: Lanes>(to: *mut T::Acc, from: *const T, n: usize) {
    let whole = n - n % T::Vector::LANES;
    for i in (0..whole).step_by(T::Vector::LANES) {
        // SAFETY: as the caller guarantees.
        unsafe { T::read(from.add(i)).store(to.add(i)) };
    }
    if whole < n {
        // SAFETY: as above.
        unsafe { T::read_few(from.add(whole), n - whole).store_few(to.add(whole), n - whole) };
    }
}

/// Rounds values to nearest even and stores them with stride `step`.
///
/// # Safety
/// `to` must have capacity for `from.len()` elements at this stride, uniquely owned.
#[inline]
pub unsafe fn narrow<T: Lanes>(to: *mut T, step: usize, from: &[T::Acc]) {
    for i in (0..from.len()).step_by(T::Vector::LANES) {
        let n = T::Vector::LANES.min(from.len() - i);
        // SAFETY: the caller guarantees the target; there are `n` values after index `i`.
        unsafe { write_some::<T>(to.add(i * step), step, n, load_some(from.as_ptr().add(i), n)) };
    }
}

/// `a + b`.
#[inline(always)]
pub fn plus<V: Vector>(a: V, b: V) -> V {
    a.mul_add(V::splat(V::Number::ONE), b)
}

/// `a - b`.
#[inline(always)]
pub fn minus<V: Vector>(a: V, b: V) -> V {
    b.mul_add(V::splat(-V::Number::ONE), a)
}

/// Reduces a power of two of values pairwise, by halves.
#[inline(always)]
pub fn halves<A: Copy>(values: &mut [A], combine: impl Fn(A, A) -> A) -> A {
    let mut width = values.len();
    while width > 1 {
        width /= 2;
        for k in 0..width {
            values[k] = combine(values[k], values[k + width]);
        }
    }
    values[0]
}

/// The horizontal sum of `a` and `b`, always in the same order.
#[inline]
pub fn sum<V: Vector>(a: V, b: V) -> V::Number {
    const { assert!(V::LANES <= MOST && V::LANES.is_power_of_two()) };
    let mut lanes = [V::Number::ZERO; 2 * MOST];
    // SAFETY: there are twice the lanes of a vector.
    unsafe {
        a.store(lanes.as_mut_ptr());
        b.store(lanes.as_mut_ptr().add(V::LANES));
    }
    halves(&mut lanes[..2 * V::LANES], |a, b| a + b)
}

/// The maximum of a nonempty list; NaN elements may be ignored.
#[inline(always)]
pub fn largest<A: Real + Lanes<Acc = A>>(values: &[A]) -> A {
    const VECTORS: usize = 4;
    let lanes = A::Vector::LANES;
    let mut vectors = [A::Vector::splat(A::NEG_INFINITY); VECTORS];
    let mut k = 0;
    // SAFETY: the slice has the elements up to its length.
    unsafe {
        while k + VECTORS * lanes <= values.len() {
            for (i, vector) in vectors.iter_mut().enumerate() {
                *vector = vector.larger(A::Vector::load(values.as_ptr().add(k + i * lanes)));
            }
            k += VECTORS * lanes;
        }
        while k + lanes <= values.len() {
            vectors[0] = vectors[0].larger(A::Vector::load(values.as_ptr().add(k)));
            k += lanes;
        }
    }
    let pairs = (vectors[0].larger(vectors[1]), vectors[2].larger(vectors[3]));
    let mut lanes = [A::NEG_INFINITY; MOST];
    // SAFETY: the array has the lanes of a vector.
    unsafe { pairs.0.larger(pairs.1).store(lanes.as_mut_ptr()) };
    let larger = |a: A, b: A| if a > b { a } else { b };
    for (lane, x) in lanes.iter_mut().zip(&values[k..]) {
        *lane = larger(*lane, *x);
    }
    halves(&mut lanes, larger)
}

/// The number of matrix rows that are read in one loop: the register tile has twice as many accumulators.
pub const ROWS: usize = level::ROWS;

/// Implements [`Vector`] for a vector type of the processor.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2", target_feature = "fma"))]
macro_rules! vector {
    ($v:ty, $t:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $mul_add:ident, $max:ident
        , ($from:ident, $at:ident) => $gather:expr
        $(, $mask:ty, $load_few:ident, $store_few:ident, ($low:ident, $high:ident, $of:ident) => $pick:expr)?) => {
        impl crate::vectors::Vector for $v {
            type Number = $t;
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(number: $t) -> Self {
                // SAFETY: the build's level has the instruction.
                unsafe { $splat(number) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller guarantees the elements; the build's level has the instruction.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller guarantees the target; the build's level has the instruction.
                unsafe { $store(to, self) }
            }
            $(
                #[inline(always)]
                unsafe fn load_few(from: *const $t, n: usize) -> Self {
                    // SAFETY: only the elements that the caller guarantees are read; the build's level has the instruction.
                    unsafe { $load_few(((1u32 << n) - 1) as $mask, from) }
                }
                #[inline(always)]
                unsafe fn store_few(self, to: *mut $t, n: usize) {
                    // SAFETY: only the elements that the caller guarantees are written; the build's level has the instruction.
                    unsafe { $store_few(to, ((1u32 << n) - 1) as $mask, self) }
                }
                const PICKS: bool = true;
                #[inline(always)]
                unsafe fn pick(self, $high: Self, $of: *const i32) -> Self {
                    let $low = self;
                    // SAFETY: the caller guarantees the addresses and indices; the build's level has the instructions.
                    unsafe { $pick }
                }
            )?
            #[inline(always)]
            unsafe fn gather($from: *const $t, $at: *const i32) -> Self {
                // SAFETY: the caller guarantees elements and indices; the build's level has the instructions.
                unsafe { $gather }
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                // SAFETY: the build's level has the instruction.
                unsafe { $mul_add(self, a, b) }
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                // SAFETY: the build's level has the instruction.
                unsafe { $max(self, other) }
            }
        }
    };
}

/// Implements [`Lanes`] for an element type.
macro_rules! elements {
    ($(
        $t:ty, $v:ty, $from:ident => $read:expr, ($to:ident, $vector:ident) => $write:expr
        $(, $n:ident few $read_few:expr, $write_few:expr)?;
    )+) => {$(
        impl crate::vectors::Lanes for $t {
            type Vector = $v;
            #[inline(always)]
            unsafe fn read($from: *const Self) -> $v {
                // SAFETY: the caller guarantees the elements; the build's level has the instructions.
                unsafe { $read }
            }
            #[inline(always)]
            unsafe fn write($to: *mut Self, $vector: $v) {
                // SAFETY: the caller guarantees the addresses and indices; the build's level has the instructions.
                unsafe { $write }
            }
            $(
                #[inline(always)]
                unsafe fn read_few($from: *const Self, $n: usize) -> $v {
                    // SAFETY: only elements that the caller guarantees are read; the build's level has the instructions.
                    unsafe { $read_few }
                }
                #[inline(always)]
                unsafe fn write_few($to: *mut Self, $n: usize, $vector: $v) {
                    // SAFETY: only elements that the caller guarantees are written; the build's level has the instructions.
                    unsafe { $write_few }
                }
            )?
        }
    )+};
}

#[cfg(all(target_arch = "x86_64", target_feature = "avx512bw", target_feature = "avx512vl"))]
mod level {
    use super::{Vector, bf16, f16};
    use std::arch::x86_64::*;

    pub(super) const ROWS: usize = 8;
    vector!(
        __m512,
        f32,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_max_ps,
        (from, at) => _mm512_i32gather_ps::<4>(_mm512_loadu_si512(at.cast()), from),
        __mmask16,
        _mm512_maskz_loadu_ps,
        _mm512_mask_storeu_ps,
        (low, high, at) => _mm512_permutex2var_ps(low, _mm512_loadu_si512(at.cast()), high)
    );
    vector!(
        __m512d,
        f64,
        8,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        _mm512_max_pd,
        (from, at) => _mm512_i32gather_pd::<8>(_mm256_loadu_si256(at.cast()), from),
        __mmask8,
        _mm512_maskz_loadu_pd,
        _mm512_mask_storeu_pd,
        (low, high, at) => {
            _mm512_permutex2var_pd(low, _mm512_cvtepi32_epi64(_mm256_loadu_si256(at.cast())), high)
        }
    );
    elements! {
        f32, __m512, from => __m512::load(from), (to, v) => v.store(to),
            n few __m512::load_few(from, n), v.store_few(to, n);
        f64, __m512d, from => __m512d::load(from), (to, v) => v.store(to),
            n few __m512d::load_few(from, n), v.store_few(to, n);
        f16, __m512, from => _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())),
            (to, v) => _mm256_storeu_si256(to.cast(), half(v)),
            n few _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), from.cast())),
            _mm256_mask_storeu_epi16(to.cast(), first(n), half(v));
        bf16, __m512, from => wide(_mm256_loadu_si256(from.cast())),
            (to, v) => _mm256_storeu_si256(to.cast(), upper_half(v)),
            n few wide(_mm256_maskz_loadu_epi16(first(n), from.cast())), {
                // No masked store: for a mask known to select one lane, LLVM 22 stores the lane before it is narrowed,
                // overwriting the neighbouring element.
                let mut copy = [0u16; 16];
                _mm256_storeu_si256(copy.as_mut_ptr().cast(), upper_half(v));
                copy.iter().take(n).enumerate().for_each(|(i, half)| *to.add(i) = bf16::from_bits(*half));
            };
    }

    /// The mask of the first `n` lanes.
    #[inline(always)]
    fn first(n: usize) -> __mmask16 {
        ((1u32 << n) - 1) as __mmask16
    }

    #[inline(always)]
    fn half(v: __m512) -> __m256i {
        // SAFETY: the build's level has the instruction.
        unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v) }
    }

    #[inline(always)]
    fn wide(halves: __m256i) -> __m512 {
        // SAFETY: the build's level has the instructions.
        unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves))) }
    }

    /// Rounds to nearest even: adds half a ULP, minus 1 if the last bit is even. The first fraction bit preserves NaN.
    #[inline(always)]
    fn upper_half(v: __m512) -> __m256i {
        // SAFETY: the build's level has the instructions.
        unsafe {
            let bits = _mm512_castps_si512(v);
            let upper = _mm512_srli_epi32::<16>(bits);
            let half =
                _mm512_add_epi32(_mm512_and_si512(upper, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7fff));
            let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, half));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
            _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(rounded, nan, upper, _mm512_set1_epi32(0x40)))
        }
    }
}

#[cfg(all(
    target_arch = "x86_64",
    target_feature = "avx2",
    target_feature = "fma",
    target_feature = "f16c",
    not(all(target_feature = "avx512bw", target_feature = "avx512vl"))
))]
mod level {
    use super::{Vector, bf16, f16};
    use std::arch::x86_64::*;

    pub(super) const ROWS: usize = 4;
    vector!(
        __m256,
        f32,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        _mm256_max_ps,
        (from, at) => _mm256_i32gather_ps::<4>(from, _mm256_loadu_si256(at.cast()))
    );
    vector!(
        __m256d,
        f64,
        4,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_fmadd_pd,
        _mm256_max_pd,
        (from, at) => _mm256_i32gather_pd::<8>(from, _mm_loadu_si128(at.cast()))
    );
    elements! {
        f32, __m256, from => __m256::load(from), (to, v) => v.store(to);
        f64, __m256d, from => __m256d::load(from), (to, v) => v.store(to);
        f16, __m256, from => _mm256_cvtph_ps(_mm_loadu_si128(from.cast())), (to, v) => {
            _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v))
        };
        bf16, __m256, from => {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }, (to, v) => {
            // Rounds to nearest even: adds half a ULP, minus 1 if the last bit is even. The first fraction bit preserves
            // NaN.
            let bits = _mm256_castps_si256(v);
            let upper = _mm256_srli_epi32::<16>(bits);
            let half = _mm256_add_epi32(_mm256_and_si256(upper, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
            let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, half));
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
            let rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
            let (low, high) = (_mm256_castsi256_si128(rounded), _mm256_extracti128_si256::<1>(rounded));
            _mm_storeu_si128(to.cast(), _mm_packus_epi32(low, high));
        };
    }
}

/// Other targets use arrays, whose loops the compiler vectorises.
#[cfg(not(all(
    target_arch = "x86_64",
    target_feature = "avx2",
    target_feature = "fma",
    target_feature = "f16c"
)))]
mod level {
    use super::{Real, Vector, bf16, f16};
    use keyway_sdk::author::Float;

    pub(super) const ROWS: usize = 1;
    const LANES: usize = 8;

    /// An array of lanes.
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
            // SAFETY: the caller guarantees the elements, and an array has the same alignment.
            Array(unsafe { *from.cast() })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut T) {
            // SAFETY: the caller guarantees the target.
            unsafe { *to.cast() = self.0 };
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            // Two roundings: without an FMA instruction, a single rounding takes a library call for each element.
            Array(std::array::from_fn(|i| self.0[i] * a.0[i] + b.0[i]))
        }
        #[inline(always)]
        fn larger(self, other: Self) -> Self {
            Array(std::array::from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
        }
    }

    elements! {
        f32, Array<f32>, from => Array::load(from), (to, v) => v.store(to);
        f64, Array<f64>, from => Array::load(from), (to, v) => v.store(to);
        f16, Array<f32>,
            from => Array(std::array::from_fn(|i| (*from.add(i)).to_acc())),
            (to, v) => v.0.into_iter().enumerate().for_each(|(i, x)| *to.add(i) = f16::from_acc(x));
        bf16, Array<f32>,
            from => Array(std::array::from_fn(|i| (*from.add(i)).to_acc())),
            (to, v) => v.0.into_iter().enumerate().for_each(|(i, x)| *to.add(i) = bf16::from_acc(x));
    }
}

#[cfg(test)]
mod tests;
