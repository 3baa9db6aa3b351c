//! The choice of signs that makes a factorisation unique.

use crate::number::Number;

/// Whether a vector has to be negated, so that its first component that is not negligible is positive.
pub fn is_negative<T: Number>(vector: impl Iterator<Item = T> + Clone) -> bool {
    let largest =
        vector.clone().fold(T::ZERO, |most, x| if x.magnitude() > most { x.magnitude() } else { most });
    let bound = largest * T::NEGLIGIBLE;
    vector.into_iter().find(|x| x.magnitude() > bound).is_some_and(|x| x < T::ZERO)
}
