//! The oracle: expected results of each op, in plain f64 and exact integers.
//!
//! Written for clarity and from the ops' definitions in the literature, not for speed. It calls no op of the frontend and
//! no code of a backend; from `keyway` it only uses the names of dtypes.

mod activation;
mod alignments;
mod args;
mod attention;
mod channels;
pub mod complex;
mod conv;
mod create;
mod einsum;
mod factor;
mod family;
mod image;
mod index;
mod linalg;
mod lines;
mod loss;
mod memory;
mod norm;
mod number;
mod optim;
mod pointwise;
mod pool;
mod promotion;
mod random;
mod recurrent;
mod reduce;
mod resample;
mod running;
mod shape;
mod sparse;
mod spectrum;
mod unknown;
mod vectors;

pub use args::{Inputs, Value};
pub use family::{Family, Oracle};
pub use number::plus;
pub(crate) use pointwise::special;
pub use unknown::Unknown;

/// The families.
const FAMILIES: &[Family] = &[
    pointwise::activation::ALL,
    pointwise::arithmetic::ALL,
    pointwise::gamma::ALL,
    pointwise::logic::ALL,
    pointwise::pair::ALL,
    pointwise::real::ALL,
    pointwise::rounding::ALL,
    activation::ALL,
    create::ALL,
    memory::ALL,
    random::ALL,
    reduce::ALL,
    running::ALL,
    linalg::ALL,
    vectors::ALL,
    lines::ALL,
    einsum::ALL,
    factor::ALL,
    shape::ALL,
    sparse::ALL,
    spectrum::ALL,
    index::ARRANGE,
    index::BAGS,
    index::READ,
    index::REDUCED,
    index::SORTED,
    index::WRITE,
    norm::ALL,
    channels::ALL,
    conv::ALL,
    pool::ALL,
    image::ALL,
    resample::ALL,
    attention::ALL,
    recurrent::ALL,
    loss::ALL,
    alignments::ALL,
    optim::ALL,
];

/// Ops that no oracle judges, each with the reason and the family of cases that checks it instead.
pub const WITHOUT: &[(&str, &str)] = &[
    ("angle", "of complex tensors only; family `complex`"),
    ("complex", "its result is complex; family `complex`"),
    ("conj", "of complex tensors only; family `complex`"),
    ("eig", "its result is complex; family `linalg`"),
    ("eigvals", "its result is complex; family `linalg`"),
    ("fft_c2c", "of complex tensors only; family `fft`"),
    ("fft_c2r", "of complex tensors only; family `fft`"),
    ("fft_r2c", "its result is complex; family `fft`"),
    ("sgn", "of complex tensors only; family `complex`"),
    ("view_as_complex", "no kernel computes it; the tests of complex tensors check the view"),
    ("view_as_real", "no kernel computes it; the tests of complex tensors check the view"),
    ("component", "only the layouts of backends have components; family `layout`"),
    ("from_components", "only the layouts of backends have components; family `layout`"),
];

/// The oracle of an op.
pub fn find(op: &str) -> Option<Oracle> {
    FAMILIES.iter().copied().flatten().find(|(name, _)| *name == op).map(|(_, oracle)| *oracle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_op_has_one_oracle_or_a_reason() {
        let judged: Vec<&str> = FAMILIES.iter().copied().flatten().map(|(name, _)| *name).collect();
        let without = WITHOUT.iter().map(|(name, _)| *name);
        for op in keyway::ops::all() {
            let count =
                judged.iter().copied().chain(without.clone()).filter(|name| *name == op.name()).count();
            assert_eq!(count, 1, "oracles and reasons for `{}`", op.name());
        }
    }
}
