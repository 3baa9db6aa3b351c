//! What `ceil`, `floor`, `round` and `trunc` share: they differ in which integer they give.

use crate::ops::def::{Derivative, Dtypes, Facts, OpDef};
use crate::ops::sample::Fill;
use crate::ops::{rules, sample};

/// The samples keep away from the integers, where all but `round` jump.
pub(super) const fn def(schema: &'static str) -> OpDef {
    OpDef::unary(schema, rules::unary_number, Derivative::ZERO)
        .dtypes(Dtypes::NUMERIC)
        .samples(|| sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]))
        .errors(sample::refuses_bool)
        .with(Facts::EXACT.and(Facts::SIGNED_ZEROS))
}
