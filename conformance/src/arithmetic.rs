//! The floating-point environment of the thread, which a kernel must leave unchanged.

use std::hint::black_box;

/// Describes a deviation of the thread's floating-point environment from the default of IEEE 754: denormals are preserved,
/// results are rounded to nearest.
pub fn changed() -> Option<&'static str> {
    let product = |a: f64, b: f64| black_box(a) * black_box(b);
    let sum = |a: f64, b: f64| black_box(a) + black_box(b);
    if product(f64::MIN_POSITIVE, 0.5) == 0.0 || product(f64::from_bits(1), 2f64.powi(60)) == 0.0 {
        return Some("denormal numbers are taken for 0");
    }
    let unit = f64::EPSILON;
    let nearest =
        sum(1.0, unit / 4.0) == 1.0 && sum(-1.0, -unit / 4.0) == -1.0 && sum(1.0, unit * 0.75) == 1.0 + unit;
    (!nearest).then_some("results are not rounded to the nearest number")
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_begin_with_it() {
        assert_eq!(super::changed(), None);
    }
}
