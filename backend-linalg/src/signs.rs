//! The choice of signs and phases that makes a factorisation unique.

use crate::number::{Number, Part};

/// The factor of modulus 1 by which a vector has to be multiplied, so that its first component that is not negligible is real
/// and positive, and the index of this component: 1 or -1 for real numbers.
pub fn phase<T: Number>(vector: impl Iterator<Item = T> + Clone) -> (T, usize) {
    let largest = vector.clone().fold(T::Part::ZERO, |most, x| {
        let modulus = x.modulus();
        if modulus > most { modulus } else { most }
    });
    let bound = largest * T::Part::NEGLIGIBLE;
    match vector.enumerate().find(|(_, x)| x.modulus() > bound) {
        Some((at, x)) => (x.conjugate().over(x.modulus()), at),
        None => (T::ONE, usize::MAX),
    }
}

/// A component of the vector multiplied by its phase: the one that the phase belongs to is exactly real.
pub fn with_phase<T: Number>(x: T, (phase, at): (T, usize), i: usize) -> T {
    if i == at { T::of_part(x.modulus()) } else { x * phase }
}
