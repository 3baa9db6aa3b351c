//! Comparison of complex results.

use crate::array::{Array, Number, round_to, unravelled};
use crate::encode;
use crate::memory;
use crate::oracle::complex::{self, number::C};
use crate::oracle::{Inputs, Unknown};
use crate::outcome::{Failure, Mismatch};
use keyway::ops::def::OpFlags;
use keyway::{DType, Tensor};

/// The tolerance of arithmetic in ULP: a product of complex numbers has three roundings in each part.
const ARITHMETIC: f64 = 4.0;
/// That of functions of c64, which backends round once from f64 or compute to a few ULP, and of c128: the oracle's formulas lose
/// some hundred ULP, and the table of facts has the tolerance [`FACT`](super::facts::FACT).
const FUNCTION: [f64; 2] = [8.0, 1024.0];
/// That of sums, in ULP of the sum of the moduli.
const SUM: f64 = 16.0;

/// The expected results of a call with the allowed errors.
pub struct Judged {
    /// The expected results.
    pub arrays: Vec<Array>,
    /// The magnitudes of sums, see [`complex::magnitudes`].
    magnitudes: Option<Vec<Array>>,
    /// The tolerance in ULP.
    ulps: f64,
    /// Whether signs of zeros are compared.
    signed_zeros: bool,
    /// Whether it matters which part of a number is not finite.
    which_part: bool,
}

/// The distance from 1 to the next number of the dtype of the parts.
pub fn ulp(dtype: DType) -> f64 {
    if dtype.to_real() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// The smallest positive number of the dtype of the parts.
pub fn least(dtype: DType) -> f64 {
    if dtype.to_real() == DType::F32 { f64::from(f32::from_bits(1)) } else { f64::from_bits(1) }
}

/// The largest number of the dtype of the parts.
fn largest(dtype: DType) -> f64 {
    if dtype.to_real() == DType::F32 { f64::from(f32::MAX) } else { f64::MAX }
}

/// Ops that only move elements: their results have the bits of their arguments.
const MOVES: [&str; 2] = ["conj", "neg"];

impl Judged {
    /// The results of an op for these arguments.
    ///
    /// # Errors
    /// Arguments for which the oracle has no expected value.
    pub fn of(op: &str, inputs: &Inputs) -> Result<Judged, Unknown> {
        let oracle = complex::find(op).ok_or_else(|| Unknown(format!("there is no oracle of `{op}`")))?;
        let arrays = oracle(inputs)?;
        let magnitudes = complex::magnitudes(op, inputs)?;
        let def = keyway::ops::all().find(|def| def.name() == op);
        let exact = MOVES.contains(&op) || def.is_some_and(|def| def.is(OpFlags::EXACT));
        // A product over many elements has that many roundings.
        let mut addends = 1;
        crate::inputs::map_arrays(&mut inputs.clone(), |array| addends = addends.max(array.numel()));
        let results = arrays.iter().map(Array::numel).max().unwrap_or(1).max(1);
        let wide = arrays.iter().any(|array| array.dtype.to_real() == DType::F64);
        let ulps = match op {
            _ if exact => 0.0,
            "prod" => ARITHMETIC * (addends as f64 / results as f64).max(1.0),
            "cumprod" => ARITHMETIC * (addends as f64).min(200.0),
            _ if complex::is_function(op) => FUNCTION[usize::from(wide)],
            _ if magnitudes.is_some() => SUM,
            _ => ARITHMETIC,
        };
        let judged = Judged { arrays, magnitudes, ulps, signed_zeros: exact, which_part: true };
        Ok(if matches!(op, "prod" | "cumprod") { judged.within_range() } else { judged })
    }

    /// Accepts any value where an intermediate result may be out of range.
    #[must_use]
    pub fn within_range(mut self) -> Judged {
        for (nth, array) in self.arrays.iter_mut().enumerate() {
            let most = largest(array.dtype) / 8.0;
            let magnitudes = self.magnitudes.as_ref().map(|all| &all[nth]);
            for (i, value) in array.values.iter_mut().enumerate() {
                let Number::Complex(re, im) = *value else { continue };
                let modulus = magnitudes.map_or(re.hypot(im), |of| C::of(of.values[i]).modulus());
                let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
                if (modulus.is_finite() && modulus > most) || finite(re).max(finite(im)) > most {
                    *value = Number::Any;
                }
            }
        }
        self
    }

    /// Requires no more of an element that is not finite than that one of its parts is not.
    #[must_use]
    pub fn but_finite(self) -> Judged {
        Judged { which_part: false, ..self }
    }

    /// Compares all results.
    ///
    /// # Errors
    /// The first output that is wrong, with its worst element.
    pub fn check(&self, got: &[Tensor]) -> Result<(), Failure> {
        if self.arrays.len() != got.len() {
            let (expected, got) = (self.arrays.len().to_string(), got.len().to_string());
            return Err(Failure::new("wrong number of outputs", expected, got));
        }
        for (nth, (expected, got)) in self.arrays.iter().zip(got).enumerate() {
            if (expected.dtype, &expected.sizes[..]) != (got.dtype(), got.shape()) {
                return Err(Failure::new(
                    format!("output {nth} has the wrong dtype or shape"),
                    format!("{} {:?}", expected.dtype, expected.sizes),
                    format!("{} {:?}", got.dtype(), got.shape()),
                ));
            }
            let invalid = || Failure::new(format!("output {nth}"), "elements of its dtype", "others");
            let got = memory::read(got)?.ok_or_else(invalid)?;
            self.output(nth, &got)?;
        }
        Ok(())
    }

    fn output(&self, nth: usize, got: &Array) -> Result<(), Failure> {
        let expected = &self.arrays[nth];
        let unit = self.ulps * ulp(expected.dtype);
        let magnitude = |i: usize, modulus: f64| match &self.magnitudes {
            Some(all) => C::of(all[nth].values[i]).modulus(),
            None => modulus,
        };
        let is_wrong = |&i: &usize| {
            let bound = |modulus: f64| match self.ulps {
                0.0 => 0.0,
                _ => unit * magnitude(i, modulus) + 4.0 * least(expected.dtype),
            };
            !self.agrees(expected.values[i], got.values[i], expected.dtype, bound)
        };
        let wrong: Vec<usize> = (0..expected.numel()).filter(is_wrong).collect();
        let Some(&first) = wrong.first() else { return Ok(()) };
        Err(Failure {
            what: format!("output {nth}: {} of {} elements are wrong", wrong.len(), expected.numel()),
            expected: encode::text(expected.values[first], expected.dtype),
            got: encode::text(got.values[first], got.dtype),
            mismatch: Some(Mismatch {
                output: nth,
                element: unravelled(&expected.sizes, first),
                wrong: wrong.len(),
                of: expected.numel(),
                rtol: unit,
                atol: 0.0,
            }),
        })
    }

    fn agrees(&self, expected: Number, got: Number, dtype: DType, bound: impl Fn(f64) -> f64) -> bool {
        match (expected, got) {
            (Number::Any, _) => true,
            (Number::Bool(e), Number::Bool(g)) => e == g,
            (Number::Float(e), Number::Float(g)) => self.parts_agree([e, 0.0], [g, 0.0], dtype, bound),
            (Number::Complex(e, ei), Number::Complex(g, gi)) => {
                self.parts_agree([e, ei], [g, gi], dtype, bound)
            }
            (e, g) => e == g,
        }
    }

    fn parts_agree(&self, e: [f64; 2], g: [f64; 2], dtype: DType, bound: impl Fn(f64) -> f64) -> bool {
        let rounded = e.map(|part| round_to(part, dtype));
        if rounded.iter().chain(&g).all(|part| part.is_finite()) {
            let signs = rounded.iter().zip(&g).all(|(e, g)| e.is_sign_negative() == g.is_sign_negative());
            return if self.signed_zeros {
                rounded == g && signs
            } else {
                (g[0] - e[0]).hypot(g[1] - e[1]) <= bound(e[0].hypot(e[1]))
            };
        }
        if !self.which_part {
            return rounded.iter().any(|part| !part.is_finite()) && g.iter().any(|part| !part.is_finite());
        }
        // Part by part: NaN, infinities of a sign, and numbers.
        rounded.iter().zip(&g).all(|(&e, &g)| {
            e == g
                || (e.is_nan() && g.is_nan())
                || (e.is_finite() && g.is_finite() && (g - e).abs() <= bound(e.abs()))
        })
    }
}
