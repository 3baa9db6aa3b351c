//! The epilogue of a convolution: a tensor is added to the accumulators, and an activation applied. `conv` and its
//! gradients have none.

use crate::image::{Numbers, Pixel, unsupported};
use crate::turn::Staged;
use keyway_cpu_loops::images::Volume;
use keyway_cpu_loops::vectors::{Vector, read_some};
use keyway_sdk::author::{Call, Error, Lanes};
use std::ops::Range;
use std::ptr::null;

const LANES: usize = Numbers::LANES;

/// The activation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Activation {
    None,
    Relu,
    Relu6,
    Hardswish,
    Silu,
}

/// The operations on the accumulators before they are stored.
#[derive(Clone, Copy)]
pub struct Epilogue<'a, T> {
    /// A tensor with the strides of the result.
    add: Option<Lanes<'a, T>>,
    activation: Activation,
}

impl<T> Epilogue<'_, T> {
    /// No operation.
    pub const NONE: Self = Epilogue { add: None, activation: Activation::None };
}

impl<'a, T: Pixel> Epilogue<'a, T> {
    /// Arguments 7 and 8 of `conv_act`.
    ///
    /// # Errors
    /// If the addend's strides differ from the result's, or the activation is unknown.
    pub fn of(call: &Call<'a>, out: &Volume<'a, T>) -> Result<Self, Error> {
        let activation = match call.str(8)? {
            "none" => Activation::None,
            "relu" => Activation::Relu,
            "relu6" => Activation::Relu6,
            "hardswish" => Activation::Hardswish,
            "silu" => Activation::Silu,
            _ => return Err(unsupported("this activation")),
        };
        if call.is_none(7)? {
            return Ok(Epilogue { add: None, activation });
        }
        let add = Volume::<T>::argument(call, 7)?;
        let alike = |d: usize| out.sizes[d] == 1 || add.strides[d] == out.strides[d];
        if add.sizes != out.sizes || !(0..5).all(alike) {
            return Err(unsupported("a sum with a tensor of other strides than the result"));
        }
        Ok(Epilogue { add: Some(add.data), activation })
    }

    /// Whether there is neither an addend nor an activation.
    pub fn is_none(&self) -> bool {
        self.add.is_none() && self.activation == Activation::None
    }

    /// Addition of a tensor with the result's strides, followed by ReLU.
    #[cfg(test)]
    pub fn relu_of_sum_with(add: Lanes<'a, T>) -> Self {
        Epilogue { add: Some(add), activation: Activation::Relu }
    }

    /// An activation with an exponential.
    #[cfg(test)]
    pub fn silu() -> Self {
        Epilogue { add: None, activation: Activation::Silu }
    }

    /// Whether a tensor is added.
    pub fn adds(&self) -> bool {
        self.add.is_some()
    }

    /// Copies the addend of an area of the result to the staging buffer, from which [`Epilogue::apply`] reads it.
    ///
    /// # Safety
    /// As for [`Staged::take`], for a volume with the strides of the result.
    pub unsafe fn stage(
        &self,
        to: &Staged<T>,
        out: &Volume<'_, T>,
        sample: usize,
        channels: Range<usize>,
        area: [Range<usize>; 2],
    ) {
        if let Some(data) = self.add {
            // SAFETY: as the caller guarantees.
            unsafe { to.take(&Volume { data, ..*out }, sample, channels, area) };
        }
    }

    /// The address of the addend of an element of the result.
    #[inline(always)]
    pub fn place(&self, at: usize) -> *const T {
        self.add.map_or(null(), |add| add.as_ptr().cast_const().wrapping_add(at))
    }

    /// Applies the epilogue to the sums of `n` neighbouring channels.
    ///
    /// # Safety
    /// If a tensor is added, it must have `n` elements at `add`.
    #[inline(always)]
    pub unsafe fn apply(&self, add: *const T, n: usize, sum: Numbers) -> Numbers {
        let sum = match self.add {
            None => sum,
            // SAFETY: as the caller guarantees.
            Some(_) => Numbers::splat(1.0)
                .mul_add(sum, unsafe { if n == LANES { T::read(add) } else { few(add, n) } }),
        };
        match self.activation {
            Activation::None => sum,
            // NaN propagates as the second operand.
            Activation::Relu => Numbers::splat(0.0).larger(sum),
            Activation::Relu6 => {
                negative(Numbers::splat(-6.0).larger(negative(Numbers::splat(0.0).larger(sum))))
            }
            other => other.each(sum),
        }
    }
}

/// The negated values, including the signs of zeros.
#[inline(always)]
fn negative(vector: Numbers) -> Numbers {
    Numbers::splat(-1.0).mul_add(vector, Numbers::splat(-0.0))
}

/// A separate function, since partial vectors are rare.
///
/// # Safety
/// There must be `n` elements.
#[inline(never)]
unsafe fn few<T: Pixel>(from: *const T, n: usize) -> Numbers {
    // SAFETY: as the caller guarantees.
    unsafe { read_some(from, 1, n) }
}

impl Activation {
    /// A separate function, so that the loops around it are small.
    #[inline(never)]
    fn each(self, vector: Numbers) -> Numbers {
        let mut lanes = [0.0; LANES];
        // SAFETY: the array has the lanes of a vector.
        unsafe { vector.store(lanes.as_mut_ptr()) };
        match self {
            Activation::None | Activation::Relu | Activation::Relu6 => {}
            Activation::Hardswish => lanes.iter_mut().for_each(|x| {
                // Clamped, since minus infinity times 0 would be NaN.
                let x0 = bounded(*x, -3.0, f32::INFINITY);
                *x = x0 * (bounded(x0 + 3.0, 0.0, 6.0) / 6.0);
            }),
            Activation::Silu => lanes.iter_mut().for_each(|x| *x = silu(*x)),
        }
        // SAFETY: there are the lanes of a vector.
        unsafe { Numbers::load(lanes.as_ptr()) }
    }
}

/// Clamps to these bounds; NaN propagates.
#[inline(always)]
fn bounded(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `x / (1 + e^-x)`. Below -87 it is less than 1e-35, and the value at -87 is used.
#[inline(always)]
fn silu(x: f32) -> f32 {
    let x = bounded(x, -87.0, f32::INFINITY);
    let power = exp(bounded(-x.abs(), -87.0, 0.0));
    let right = 1.0 / (1.0 + power);
    x * if x < 0.0 { power * right } else { right }
}

/// `e^x` for x from -87 to 0, within 2 ULP: `2^n` times the power series of the remainder, which is at most `ln 2 / 2`.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// A magic constant: its sum with a value is rounded to an integer.
    const WHOLE: f32 = 12_582_912.0;
    /// `ln 2` in two parts (Cody-Waite): the first has few bits, so that its products with `n` are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const SERIES: [f32; 6] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5];
    let t = x * std::f32::consts::LOG2_E + WHOLE;
    let n = t - WHOLE;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let series = SERIES.iter().fold(0.0, |sum, factor| sum * r + factor);
    let power = 1.0 + (r + r * r * series);
    // The integer is in the low bits of `t`.
    power * f32::from_bits(t.to_bits().wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(activation: Activation, numbers: &[f32]) -> Vec<f32> {
        let epilogue: Epilogue<'_, f32> = Epilogue { add: None, activation };
        let each = |x: &f32| {
            let mut lanes = [0.0; LANES];
            // SAFETY: there is no addend; the array has the lanes of a vector.
            unsafe { epilogue.apply(null(), LANES, Numbers::splat(*x)).store(lanes.as_mut_ptr()) };
            lanes[0]
        };
        numbers.iter().map(each).collect()
    }

    #[test]
    fn activations_are_those_of_their_formulas() {
        let numbers: Vec<f32> =
            (-4000..4000).map(|i| i as f32 / 37.0).chain([0.0, -0.0, 3e38, -3e38]).collect();
        let near = |activation, formula: fn(f64) -> f64| {
            for (x, got) in numbers.iter().zip(of(activation, &numbers)) {
                let expected = formula(f64::from(*x));
                let error = (f64::from(got) - expected).abs();
                assert!(error <= 4e-7 * expected.abs() + 2e-36, "of {x}: {got}, not {expected}");
            }
        };
        near(Activation::None, |x| x);
        near(Activation::Relu, |x| x.max(0.0));
        near(Activation::Relu6, |x| x.clamp(0.0, 6.0));
        near(Activation::Silu, |x| x / (1.0 + (-x).exp()));
        near(Activation::Hardswish, |x| x * ((x + 3.0).clamp(0.0, 6.0) / 6.0));
        let zeros = of(Activation::Relu6, &[-0.0, 0.0]);
        assert_eq!([zeros[0], zeros[1]].map(f32::is_sign_negative), [true, false], "a zero keeps its sign");
    }

    #[test]
    fn nan_stays_and_infinity_has_its_limit() {
        use Activation::{Hardswish, None, Relu, Relu6, Silu};
        for (activation, limit) in [
            (None, f32::INFINITY),
            (Relu, f32::INFINITY),
            (Relu6, 6.0),
            (Hardswish, f32::INFINITY),
            (Silu, f32::INFINITY),
        ] {
            let made = of(activation, &[f32::NAN, f32::INFINITY]);
            assert!(made[0].is_nan() && made[1] == limit, "{made:?}");
        }
    }
}
