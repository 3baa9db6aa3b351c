//! The definition that `ceil`, `floor`, `round` and `trunc` share.

use crate::ops::def::{Derivative, Dtypes, OpDef, OpFlags};
use crate::ops::sample::Fill;
use crate::ops::{rules, sample};

/// The samples avoid integers, at which all but `round` are discontinuous.
pub(super) const fn def(schema: &'static str) -> OpDef {
    OpDef::unary(schema, rules::unary_number, Derivative::ZERO)
        .dtypes(Dtypes::NUMERIC)
        .samples(|| sample::unary_of(&Fill::AwayFrom(-2.2, 2.2, 0.05), &[]))
        .errors(sample::refuses_bool)
        .with(OpFlags::EXACT.and(OpFlags::SIGNED_ZEROS))
}
