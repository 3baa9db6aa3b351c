//! Comparison of results with those of the oracle, within the tolerance of the dtype.

use crate::array::{Array, Number, round_to, unravelled, wrapped};
use crate::encode;
use crate::memory;
use crate::outcome::{Failure, Mismatch};
use keyway::dispatcher::registry::LayoutTolerance;
use keyway::{DType, Tensor};

/// |got - expected| <= atol + rtol * |expected|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
}

impl Tolerance {
    /// The tolerance of a dtype, as in PyTorch's `assert_close`; integers and bool are exact.
    pub fn of(dtype: DType) -> Tolerance {
        let (rtol, atol) = match dtype {
            DType::F16 => (1e-3, 1e-5),
            DType::BF16 => (1.6e-2, 1e-5),
            DType::F32 => (1.3e-6, 1e-5),
            DType::F64 => (1e-7, 1e-7),
            DType::C64 => (1.3e-6, 1e-5),
            DType::C128 => (1e-7, 1e-7),
            _ => (0.0, 0.0),
        };
        Tolerance { rtol, atol }
    }

    /// The bound of a layout's tolerance for these values, and the rounding of their dtype; 0 for a layout that holds values
    /// exactly.
    pub fn of_layout(declared: LayoutTolerance, values: &Array) -> Tolerance {
        if declared.is_exact() {
            return Tolerance { rtol: 0.0, atol: 0.0 };
        }
        let own = Tolerance::of(values.dtype);
        let magnitudes = values.values.iter().map(|value| value.float().abs()).filter(|v| v.is_finite());
        let max = magnitudes.fold(0.0, f64::max);
        Tolerance {
            rtol: own.rtol + declared.relative,
            atol: own.atol + declared.absolute + declared.relative_to_max * max,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Tolerance) -> Tolerance {
        Tolerance { rtol: self.rtol + other.rtol, atol: self.atol + other.atol }
    }

    /// The tolerance multiplied by a factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Tolerance {
        Tolerance { rtol: self.rtol * factor, atol: self.atol * factor }
    }

    fn holds(self, expected: f64, got: f64, dtype: DType) -> bool {
        let rounded = round_to(expected, dtype);
        if rounded == got || (rounded.is_nan() && got.is_nan()) {
            return true;
        }
        if got.is_infinite() {
            // An overflow is accepted if the expected value is within the relative tolerance of the largest finite number.
            let largest =
                [f64::from(half::f16::MAX), half::bf16::MAX.to_f64(), f64::from(f32::MAX), f64::MAX];
            let largest = match dtype {
                DType::F16 => largest[0],
                DType::BF16 => largest[1],
                DType::F32 => largest[2],
                _ => largest[3],
            };
            return expected.is_finite()
                && expected.signum() == got.signum()
                && expected.abs() >= largest * (1.0 - self.rtol);
        }
        expected.is_finite() && (got - expected).abs() <= self.atol + self.rtol * expected.abs()
    }

    /// As for real numbers, with the modulus as the absolute value; a number with a part that is not finite agrees if each part
    /// does.
    fn holds_complex(self, expected: [f64; 2], got: [f64; 2], dtype: DType) -> bool {
        let rounded = expected.map(|part| round_to(part, dtype));
        if rounded.iter().chain(&got).all(|part| part.is_finite()) {
            let error = (got[0] - expected[0]).hypot(got[1] - expected[1]);
            return rounded == got || error <= self.atol + self.rtol * expected[0].hypot(expected[1]);
        }
        expected.iter().zip(&got).all(|(&e, &g)| self.holds(e, g, dtype.to_real()))
    }
}

fn agrees(expected: Number, got: Number, dtype: DType, tolerance: Tolerance) -> bool {
    match (expected, got) {
        (Number::Any, _) => true,
        (Number::Int(e), Number::Int(g)) => wrapped(e, dtype) == g,
        (Number::Bool(e), Number::Bool(g)) => e == g,
        (Number::Float(e), Number::Float(g)) => tolerance.holds(e, g, dtype),
        (Number::Complex(e, ei), Number::Complex(g, gi)) => tolerance.holds_complex([e, ei], [g, gi], dtype),
        _ => false,
    }
}

/// Distance for the choice of the worst element.
fn distance(expected: Number, got: Number) -> f64 {
    let modulus = |re: f64, im: f64| if im == 0.0 { re.abs() } else { re.hypot(im) };
    let error = modulus(expected.float() - got.float(), expected.imaginary() - got.imaginary());
    let far = error / modulus(expected.float(), expected.imaginary()).max(1.0);
    if far.is_nan() { f64::INFINITY } else { far }
}

/// Checks one output: dtype, sizes, and each element.
///
/// # Errors
/// The failure, with the worst element.
pub fn array(nth: usize, expected: &Array, got: &Array, tolerance: Tolerance) -> Result<(), Failure> {
    if expected.dtype != got.dtype {
        return Err(Failure::new(
            format!("output {nth} has the wrong dtype"),
            expected.dtype.to_string(),
            got.dtype.to_string(),
        ));
    }
    if expected.sizes != got.sizes {
        return Err(Failure::new(
            format!("output {nth} has the wrong shape"),
            format!("{:?}", expected.sizes),
            format!("{:?}", got.sizes),
        ));
    }
    let wrong: Vec<usize> = (0..expected.numel())
        .filter(|&i| !agrees(expected.values[i], got.values[i], expected.dtype, tolerance))
        .collect();
    let Some(&worst) = wrong.iter().max_by(|&&a, &&b| {
        distance(expected.values[a], got.values[a]).total_cmp(&distance(expected.values[b], got.values[b]))
    }) else {
        return Ok(());
    };
    let (e, g) = (expected.values[worst], got.values[worst]);
    Err(Failure {
        what: format!("output {nth}: {} of {} elements are wrong", wrong.len(), expected.numel()),
        expected: encode::text(e, expected.dtype),
        got: encode::text(g, got.dtype),
        mismatch: Some(Mismatch {
            output: nth,
            element: unravelled(&expected.sizes, worst),
            wrong: wrong.len(),
            of: expected.numel(),
            rtol: tolerance.rtol,
            atol: tolerance.atol,
        }),
    })
}

/// Checks all outputs of a call.
///
/// # Errors
/// The first output that is wrong.
pub fn outputs(expected: &[Array], got: &[Tensor], factor: f64) -> Result<(), Failure> {
    within(expected, got, |dtype| Tolerance::of(dtype).times(factor))
}

/// Checks as [`outputs`] with `loose` times the tolerance, to detect missing or duplicated addends in results with many
/// addends. The absolute tolerance is scaled to the magnitude of the results: the elements of a softmax over a thousand
/// values are all below the tolerance for values around 1, so no error in them could be detected.
///
/// # Errors
/// The first output that is wrong.
pub fn pieces(expected: &[Array], got: &[Tensor], factor: f64, loose: f64) -> Result<(), Failure> {
    each(expected, got, |array| of_terms(array, factor, loose))
}

/// Checks as [`pieces`] one output that was already read.
///
/// # Errors
/// The failure, with the worst element.
pub fn piece(nth: usize, expected: &Array, got: &Array, factor: f64, loose: f64) -> Result<(), Failure> {
    array(nth, expected, got, of_size(expected, Tolerance::of(expected.dtype).times(factor), loose))
}

/// Checks as [`pieces`] sums of products one factor of which may have been rounded to the dtype before the multiplication,
/// as FlashAttention rounds the softmax weights: the absolute tolerance is at least the rounding error of the largest
/// result.
///
/// # Errors
/// The first output that is wrong.
pub fn of_rounded(expected: &[Array], got: &[Tensor], factor: f64, loose: f64) -> Result<(), Failure> {
    each(expected, got, |array| {
        let tolerance = Tolerance::of(array.dtype).times(factor);
        let largest =
            array.values.iter().map(|v| v.float().abs()).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let usual = of_size(array, tolerance, loose);
        Tolerance { atol: usual.atol.max(tolerance.rtol * largest), ..usual }
    })
}

/// The tolerance of [`pieces`] for this array.
pub fn of_terms(expected: &Array, factor: f64, loose: f64) -> Tolerance {
    of_size(expected, Tolerance::of(expected.dtype).times(factor), loose)
}

/// The tolerance multiplied by `loose`, the absolute one also by the root mean square of the expected values.
fn of_size(expected: &Array, tolerance: Tolerance, loose: f64) -> Tolerance {
    let wide = if loose > 1.0 { (loose * size(expected).min(1.0)).max(LEAST) } else { loose };
    Tolerance { rtol: tolerance.rtol * loose, atol: tolerance.atol * wide }
}

/// Minimum fraction of the usual absolute tolerance for small results.
const LEAST: f64 = 0.01;

/// The root of the mean square of the finite elements.
fn size(of: &Array) -> f64 {
    let finite = of.values.iter().map(|v| v.float()).filter(|v| v.is_finite());
    let (count, sum) = finite.fold((0.0_f64, 0.0), |(count, sum), v| (count + 1.0, sum + v * v));
    (sum / count.max(1.0)).sqrt()
}

/// Checks as [`outputs`], with a tolerance for each dtype.
///
/// # Errors
/// The first output that is wrong.
pub fn within(
    expected: &[Array],
    got: &[Tensor],
    tolerance: impl Fn(DType) -> Tolerance,
) -> Result<(), Failure> {
    each(expected, got, |array| tolerance(array.dtype))
}

/// Checks as [`outputs`], with a tolerance for each output.
///
/// # Errors
/// The first output that is wrong.
pub fn each(
    expected: &[Array],
    got: &[Tensor],
    tolerance: impl Fn(&Array) -> Tolerance,
) -> Result<(), Failure> {
    if expected.len() != got.len() {
        return Err(Failure::new(
            "wrong number of outputs",
            expected.len().to_string(),
            got.len().to_string(),
        ));
    }
    for (nth, (expected, got)) in expected.iter().zip(got).enumerate() {
        let Some(values) = memory::read(got)? else {
            return Err(Failure::new(
                format!("output {nth} holds bytes that are no {}", got.dtype()),
                "valid elements",
                "invalid bytes",
            ));
        };
        array(nth, expected, &values, tolerance(expected))?;
    }
    Ok(())
}

/// Checks the signs of zeros, which tolerances ignore. The outputs must already be as expected otherwise.
///
/// # Errors
/// The first zero with the wrong sign.
pub fn zeros(expected: &[Array], got: &[Tensor]) -> Result<(), Failure> {
    let negative = |number: Number| match number {
        Number::Float(0.0) => Some(number.float().is_sign_negative()),
        _ => None,
    };
    for (nth, (expected, got)) in expected.iter().zip(got).enumerate() {
        let Some(values) = memory::read(got)? else { continue };
        for (i, (&e, &g)) in expected.values.iter().zip(&values.values).enumerate() {
            if let (Some(wanted), Some(made)) = (negative(e), negative(g))
                && wanted != made
            {
                return Err(Failure::new(
                    format!(
                        "output {nth}: the zero at {:?} has the wrong sign",
                        unravelled(&expected.sizes, i)
                    ),
                    encode::text(e, expected.dtype),
                    encode::text(g, expected.dtype),
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_complex_numbers_are_relative_to_their_modulus() {
        let of = |re, im| Array::from_fn(DType::C64, [1], |_| Number::Complex(re, im));
        let tolerance = Tolerance { rtol: 1e-6, atol: 0.0 };
        let agrees = |e: Array, g: Array| array(0, &e, &g, tolerance).is_ok();
        assert!(agrees(of(1.0, 1e-9), of(1.0, 0.0)) && !agrees(of(1.0, 1e-3), of(1.0, 0.0)));
        assert!(!agrees(of(1.0, 2.0), of(1.0, -2.0)) && !agrees(of(1.0, 2.0), of(2.0, 1.0)));
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert!(agrees(of(inf, nan), of(inf, nan)) && !agrees(of(inf, nan), of(nan, nan)));
        assert!(!agrees(of(inf, 1.0), of(inf, 2.0)) && !agrees(of(1.0, 0.0), of(nan, 0.0)));
    }

    #[test]
    fn what_small_results_may_be_off_goes_with_their_size() {
        let equal = |value: f64| Array::from_fn(DType::F32, [8], |_| Number::Float(value));
        let allowed = |value| of_size(&equal(value), Tolerance::of(DType::F32), 100.0);
        let agrees = |expected, got| array(0, &equal(expected), &equal(got), allowed(expected)).is_ok();
        // An element of a softmax over ten thousand values, some of which are lost.
        assert!(agrees(1e-4, 1e-4 + 1e-8) && !agrees(1e-4, 1.02e-4) && !agrees(1e-4, 0.0));
        assert!(agrees(5.0, 5.001) && !agrees(5.0, 5.01));
        // For zeros and large values the absolute tolerance is bounded.
        assert!(allowed(0.0).atol > 0.0 && allowed(0.0).atol < 1e-6);
        assert_eq!(allowed(f64::NAN).atol, allowed(0.0).atol);
        assert_eq!(allowed(1e9).atol, allowed(1.0).atol);
    }
}
