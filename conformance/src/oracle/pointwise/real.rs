//! Functions of one real number. Integers and bool become f32.

use super::{reals, special};
use crate::oracle::Family;

/// The ops of this family.
pub const ALL: Family = &[
    ("acos", |i| reals(i, f64::acos)),
    ("acosh", |i| reals(i, special::acosh)),
    ("asin", |i| reals(i, f64::asin)),
    ("asinh", |i| reals(i, special::asinh)),
    ("atan", |i| reals(i, f64::atan)),
    ("atanh", |i| reals(i, special::atanh)),
    ("cos", |i| reals(i, f64::cos)),
    ("cosh", |i| reals(i, f64::cosh)),
    ("erf", |i| reals(i, special::erf)),
    ("erfc", |i| reals(i, special::erfc)),
    ("exp", |i| reals(i, f64::exp)),
    ("expm1", |i| reals(i, f64::exp_m1)),
    ("log", |i| reals(i, f64::ln)),
    ("log10", |i| reals(i, f64::log10)),
    ("log1p", |i| reals(i, f64::ln_1p)),
    ("log2", |i| reals(i, f64::log2)),
    ("reciprocal", |i| reals(i, |x| 1.0 / x)),
    ("rsqrt", |i| reals(i, |x| 1.0 / x.sqrt())),
    ("sigmoid", |i| reals(i, special::sigmoid)),
    ("sin", |i| reals(i, f64::sin)),
    ("sinh", |i| reals(i, f64::sinh)),
    ("sqrt", |i| reals(i, f64::sqrt)),
    ("tan", |i| reals(i, f64::tan)),
    ("tanh", |i| reals(i, f64::tanh)),
];

#[cfg(test)]
mod tests {
    use super::super::tests::floats;
    use crate::array::{Array, Number};
    use crate::oracle::{Inputs, Value, find};
    use keyway::DType;

    #[test]
    fn known_values_and_ends() {
        let (inf, pi) = (f64::INFINITY, std::f64::consts::PI);
        assert_eq!(floats("exp", &[&[0.0, -inf, inf]], &[]), [1.0, 0.0, inf]);
        assert_eq!(floats("log", &[&[1.0, 0.0, inf]], &[]), [0.0, -inf, inf]);
        assert_eq!(floats("log2", &[&[8.0, 0.25]], &[]), [3.0, -2.0]);
        assert_eq!(floats("acos", &[&[-1.0]], &[]), [pi]);
        assert_eq!(floats("rsqrt", &[&[4.0, 0.0, -0.0, inf]], &[]), [0.5, inf, -inf, 0.0]);
        assert_eq!(floats("reciprocal", &[&[4.0, -0.0]], &[]), [0.25, -inf]);
        assert_eq!(floats("sigmoid", &[&[0.0, -inf, inf]], &[]), [0.5, 0.0, 1.0]);
        assert!(floats("sqrt", &[&[-1.0, f64::NAN]], &[]).iter().all(|v| v.is_nan()));
    }

    #[test]
    fn integers_become_f32() {
        // 2^24 + 1 is the first integer that f32 lacks.
        let large = Array::new(DType::I64, [1], vec![Number::Int((1 << 24) + 1)]);
        let made = find("reciprocal").expect("an oracle")(&Inputs(vec![Value::Array(large)])).expect("made");
        assert_eq!(made[0].dtype, DType::F32);
        assert_eq!(made[0].floats(), [2f64.powi(-24)]);
    }
}
